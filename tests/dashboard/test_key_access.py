"""What a key may not do is said before it is tried, and every key lands on a page that works."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, BrowserContext, Page, expect

from app.runtime import Runtime
from tests.support.api import append, ok, problem, save
from tests.support.dashboard import Watch, context_of, open_page, settled
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TabOf = Callable[[Caller], Awaitable[Page]]


@pytest.fixture
async def tab_of(browser: Browser, address: str, watch: Watch) -> AsyncIterator[TabOf]:
    """Opens a tab that is signed in with a caller's key, on the page it begins with."""
    async with AsyncExitStack() as stack:

        async def opened(caller: Caller) -> Page:
            context = await stack.enter_async_context(
                context_of(browser, address, caller.key, watch)
            )
            page = await context.new_page()
            await open_page(page, "")
            return page

        yield opened
    watch.check()


PAGES = (
    "overview", "people", "search", "conversation", "gate", "jobs", "graph", "forgetting", "keys",
    "webhooks", "evaluation",
)  # fmt: skip


async def access_of(client: AsyncClient) -> dict:
    answer = await client.get("http://test/dashboard/key")
    assert answer.status_code == 200, answer.text
    return answer.json()


async def test_key_is_told_what_it_may_do(app, runtime: Runtime, acme: Caller) -> None:
    bound = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    operator = await make_key(runtime, acme.tenant_id, "operator")
    nobody = {"user_id": None, "agent_id": None, "default_user_id": None}
    for caller, scopes, whom in (
        (acme, ["read", "write", "admin"], nobody),
        (bound, ["read", "write"], nobody | {"user_id": "ana"}),
        (operator, ["operator"], nobody),
    ):
        async with client_of(app, caller.key) as client:
            assert await access_of(client) == {"scopes": scopes} | whom


@pytest.mark.parametrize("key", [None, "kem_nobody"])
async def test_nothing_is_told_without_a_key(app, key: str | None) -> None:
    async with client_of(app, key) as client:
        answer = await client.get("http://test/dashboard/key")
    problem(answer, 401, "missing_key" if key is None else "unknown_key")


async def test_page_and_files_answer_head_as_get(client: AsyncClient) -> None:
    page = "http://test/dashboard"
    asset = (
        f"{page}/assets/"
        + (await client.get(page)).text.split("/dashboard/assets/")[1].split('"')[0]
    )
    for address in (page, asset):
        got, head = await client.get(address), await client.head(address)
        assert head.status_code == 200
        assert head.content == b""
        own = {"date", "x-request-id"}
        assert {k: v for k, v in head.headers.items() if k not in own} == {
            k: v for k, v in got.headers.items() if k not in own
        }


async def test_operator_begins_at_the_tenants(
    runtime: Runtime, acme: Caller, tab_of: TabOf
) -> None:
    operator = await make_key(runtime, acme.tenant_id, "operator")
    page = await tab_of(operator)
    main = page.get_by_role("main")
    await expect(main).to_contain_text("This key may: operator.")
    await main.get_by_role("link", name="Keys").click()
    await expect(page.get_by_role("tab", name="Tenants")).to_have_attribute("aria-selected", "true")
    await settled(page)
    for name in PAGES:
        if name not in {"overview", "keys"}:
            await open_page(page, f"#/{name}")
            await expect(main).to_contain_text("manages tenants and keys")


async def test_key_of_a_user_begins_at_its_user_and_no_page_is_refused(
    runtime: Runtime, client: AsyncClient, acme: Caller, tab_of: TabOf
) -> None:
    await save(client, "She drinks tea in the morning.")
    bound = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
    page = await tab_of(bound)
    for name in PAGES:
        await open_page(page, f"#/{name}")
        await expect(page.get_by_role("alert")).to_have_count(0)
    await open_page(page, "")
    main = page.get_by_role("main")
    await expect(main).to_contain_text("It is bound to the user ana")
    await main.get_by_role("link", name="ana", exact=True).click()
    await expect(page.get_by_role("heading", level=1)).to_have_text("People")
    await settled(page)
    await expect(page.get_by_role("alert")).to_have_count(0)


async def test_key_that_only_reads_finds_buttons_off_with_the_reason(
    runtime: Runtime, client: AsyncClient, acme: Caller, tab_of: TabOf
) -> None:
    saved = await save(client, "She drinks tea in the morning.")
    await client.post("/memories", json={"messages": "Tea", "user_id": "ana", "infer": False})
    reader = await make_key(runtime, acme.tenant_id, "read")
    page = await tab_of(reader)
    await open_page(page, f"#/people/ana/{saved['memory_id']}")
    for name in ("Edit", "Archive", "Delete"):
        button = page.get_by_role("button", name=name, exact=True)
        await expect(button).to_be_disabled()
        await expect(button).to_have_attribute("title", "This takes a key that may write.")
    await append(client, "talk", "Hello.")
    ok(await client.post("/sessions/talk/checkpoints", json={}), 201)
    await open_page(page, "#/conversation/talk?tab=checkpoints")
    for name in ("Make a checkpoint", "Restore", "Fork"):
        await expect(page.get_by_role("button", name=name, exact=True)).to_be_disabled()
    await expect(page.get_by_role("button", name="Contents")).to_be_enabled()
    await open_page(page, "#/gate")
    anyway = page.get_by_role("button", name="Store it anyway: Tea")
    await expect(anyway).to_be_disabled()
    await expect(anyway).to_have_attribute("title", "This takes an admin's key.")
    await open_page(page, "#/webhooks")
    await expect(page.get_by_role("main")).to_contain_text("This takes an admin's key.")


async def test_search_that_names_nobody_says_whom_it_searches(
    runtime: Runtime, client: AsyncClient, acme: Caller, tab_of: TabOf
) -> None:
    await save(client, "She drinks tea in the morning.")
    bound = await make_key(runtime, acme.tenant_id, "read", user_id="ana")
    page = await tab_of(bound)
    await open_page(page, "#/search?query=tea")
    await expect(page.get_by_role("main")).to_contain_text("what is of the user ana is searched")
    await open_page(page, "#/search?query=tea&user_id=ana")
    await expect(page.locator("main .note")).to_have_count(0)


async def test_page_of_a_list_stands_in_the_address(
    context: BrowserContext, client: AsyncClient
) -> None:
    page = await context.new_page()
    for number in range(101):
        body = {"user_id": f"u{number:03}"}
        assert (await client.post("/users", json=body)).status_code == 201
    await open_page(page, "#/people")
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(50)
    first = await rows.first.inner_text()
    for place in (2, 3):
        await page.get_by_role("button", name="Next page").click()
        await expect(page.get_by_text(f"Page {place}")).to_be_visible()
        await settled(page)
    await expect(rows).to_have_count(1)
    third = page.url

    await page.go_back()
    await expect(page.get_by_text("Page 2")).to_be_visible()
    await expect(rows).to_have_count(50)
    await page.get_by_role("button", name="Previous page").click()
    await expect(page.get_by_text("Page 1")).to_be_visible()
    await expect(rows.first).to_have_text(first.replace("\t", ""))

    another = await context.new_page()
    await another.goto(third)
    await expect(another.get_by_text("Page 3")).to_be_visible()
    await expect(another.locator("tbody tr")).to_have_count(1)
    await another.get_by_role("button", name="First page").click()
    await expect(another.locator("tbody tr")).to_have_count(50)
