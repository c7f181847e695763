"""The page Keys: keys of the own tenant, and tenants with theirs for an operator."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, Route, expect

from app.identity.tenants.schemas import KeyCreate
from app.runtime import Runtime
from tests.support.api import ok, problem
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant, tenants


def row(page: Page, text: str) -> Locator:
    return page.locator("tbody tr").filter(has_text=text)


async def created_key(page: Page) -> str:
    """The key that the dialog shows once."""
    dialog = page.get_by_role("dialog", name="The new key")
    key = await dialog.get_by_label("Key", exact=True).input_value()
    await dialog.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    return key


async def test_created_key_is_shown_once_and_works(
    page: Page, app: FastAPI, client: AsyncClient
) -> None:
    await open_page(page, "#/keys")
    await page.get_by_role("button", name="Create a key").click()
    form = page.get_by_role("dialog", name="Create a key")
    await form.get_by_label("Name").fill("web backend")
    await form.get_by_label("write").uncheck()
    await form.get_by_label("read").check()
    await form.get_by_label("User id").fill("ana")
    await form.get_by_label("Expires at").fill("2099-01-02T03:04")
    await form.get_by_role("button", name="Create").click()

    key = await created_key(page)

    async with client_of(app, key) as bound:
        ok(await bound.get("/memories"))
    shown = row(page, "web backend")
    await expect(shown).to_contain_text("user ana")
    await expect(shown).to_contain_text("active")
    assert key not in await page.content()
    [made] = [one for one in ok(await client.get("/keys"))["items"] if one["user_id"] == "ana"]
    assert (made["scopes"], made["expires_at"]) == (["read"], "2099-01-02T03:04:00Z")


async def test_refused_key_is_explained_in_the_dialog(page: Page, watch: Watch) -> None:
    watch.allow_refusals(422)
    await open_page(page, "#/keys")
    await page.get_by_role("button", name="Create a key").click()
    form = page.get_by_role("dialog", name="Create a key")
    await form.get_by_label("admin").check()
    await form.get_by_label("User id").fill("ana")
    await form.get_by_role("button", name="Create").click()

    await expect(form.get_by_role("alert")).to_contain_text("may only read and write")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_revoked_key_is_refused_at_once(
    page: Page, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    body = KeyCreate(key_name="old laptop")
    made = await tenants(runtime).add_key(acme.tenant_id, body)
    await open_page(page, "#/keys")
    await page.get_by_role("button", name="Revoke old laptop").click()
    asked = page.get_by_role("dialog", name="Revoke old laptop?")
    await expect(asked).not_to_contain_text("signed out")
    await asked.get_by_role("button", name="Revoke").click()

    await expect(row(page, "old laptop")).to_contain_text("revoked")
    async with client_of(app, made.key) as client:
        problem(await client.get("/memories"), 401, "revoked_key")


async def test_revoking_the_own_key_signs_out(page: Page, acme: Caller) -> None:
    await open_page(page, "#/keys")
    own = page.locator("tbody tr").filter(has_text="signed in with it")
    await own.get_by_role("button").click()
    asked = page.get_by_role("dialog")
    await expect(asked).to_contain_text("you will be signed out")
    await asked.get_by_role("button", name="Revoke").click()

    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()


async def test_escape_gives_up_and_the_focus_returns(page: Page) -> None:
    await open_page(page, "#/keys")
    opener = page.get_by_role("button", name="Create a key")
    await opener.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_be_visible()

    await page.keyboard.press("Escape")

    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(opener).to_be_focused()


async def test_keys_are_paged(page: Page, runtime: Runtime, acme: Caller) -> None:
    for number in range(60):
        await tenants(runtime).add_key(acme.tenant_id, KeyCreate(key_name=f"key {number:02}"))
    await open_page(page, "#/keys")

    await expect(page.locator("tbody tr")).to_have_count(50)
    await page.get_by_role("button", name="Next page").click()
    await expect(page.get_by_text("Page 2")).to_be_visible()
    await settled(page)
    await expect(page.locator("tbody tr")).to_have_count(11)
    await expect(page.get_by_role("button", name="Next page")).to_be_disabled()
    await page.get_by_role("button", name="Previous page").click()
    await expect(row(page, "key 59")).to_be_visible()


async def test_key_without_the_scope_is_told_so(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    reader = await make_key(runtime, acme.tenant_id, "read")
    async with context_of(browser, address, reader.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/keys")

        await expect(page.get_by_role("main")).to_contain_text("This takes an admin's key.")
    watch.check()


@pytest.fixture
async def operator(runtime: Runtime, acme: Caller) -> Caller:
    return await make_key(runtime, acme.tenant_id, "admin", "operator")


async def test_operator_makes_disables_and_enables_a_tenant(
    browser: Browser, address: str, app: FastAPI, operator: Caller, watch: Watch
) -> None:
    async with context_of(browser, address, operator.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/keys")
        await page.get_by_role("tab", name="Tenants").click()
        await page.get_by_role("button", name="Create a tenant").click()
        form = page.get_by_role("dialog", name="Create a tenant")
        await form.get_by_label("Name").fill("Umbrella of this test")
        await form.get_by_role("button", name="Create").click()
        key = await created_key(page)

        async with client_of(app, key) as first:
            ok(await first.get("/memories"))
            await page.get_by_role("button", name="Disable Umbrella of this test").first.click()
            asked = page.get_by_role("dialog", name="Disable Umbrella of this test?")
            await asked.get_by_role("button", name="Disable").click()
            enable = page.get_by_role("button", name="Enable Umbrella of this test").first
            await expect(enable).to_be_visible()
            problem(await first.get("/memories"), 403, "tenant_disabled")
            await enable.click()
            await expect(
                page.get_by_role("button", name="Disable Umbrella of this test").first
            ).to_be_visible()
            ok(await first.get("/memories"))
    watch.check()


async def test_operator_makes_a_key_of_another_tenant(
    browser: Browser, address: str, app: FastAPI, runtime: Runtime, operator: Caller, watch: Watch
) -> None:
    theirs = await make_tenant(runtime, "Globex")
    async with context_of(browser, address, operator.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/keys?tab=tenants")
        await page.get_by_role("link", name=theirs.tenant_id).click()
        await expect(page.get_by_role("table")).to_contain_text("first key")
        await page.get_by_role("button", name="Create a key").click()
        form = page.get_by_role("dialog", name="Create a key")
        await form.get_by_label("Name").fill("made for them")
        await form.get_by_role("button", name="Create").click()
        key = await created_key(page)
        await expect(row(page, "made for them")).to_be_visible()
    assert (await runtime.identification.identify(key)).tenant_id == theirs.tenant_id
    watch.check()


async def test_page_in_chinese_has_no_serious_finding(page: Page, has_axe: None) -> None:
    await open_page(page, "#/keys")
    await page.get_by_label("Language").select_option("zh")
    await page.get_by_role("button", name="新建密钥").click()

    await expect(page.get_by_role("dialog")).to_contain_text("权限")
    await axe(page)


async def test_name_of_a_key_runs_nothing(page: Page, runtime: Runtime, acme: Caller) -> None:
    name = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
    await tenants(runtime).add_key(acme.tenant_id, KeyCreate(key_name=name))

    await open_page(page, "#/keys")

    await expect(row(page, name)).to_be_visible()
    assert await page.title() == "Keys · KeMem"


async def lose_answer(route: Route) -> None:
    """The service does what is asked, and nobody hears of it; once."""
    if route.request.method != "POST":
        await route.fallback()
        return
    await route.fetch()
    await route.abort()
    await route.request.frame.page.unroute("**/v1/keys")


async def test_key_whose_answer_was_lost_is_created_once(
    page: Page, client: AsyncClient, watch: Watch
) -> None:
    """An input that changed, or a dialog opened anew, asks for another key."""
    watch.allow_failed_requests()
    await open_page(page, "#/keys")
    form = page.get_by_role("dialog", name="Create a key")
    create = form.get_by_role("button", name="Create")

    async def names() -> list[str | None]:
        keys = ok(await client.get("/keys"))["items"]
        return sorted(key["key_name"] for key in keys if key["key_name"] in {"lost", "other"})

    for press_again in (True, False):
        await page.route("**/v1/keys", lose_answer)
        await page.get_by_role("button", name="Create a key").click()
        await form.get_by_label("Name").fill("lost")
        await create.click()
        await expect(form.get_by_role("alert")).to_contain_text("did not answer")
        if press_again:
            await create.click()
            again = page.get_by_role("dialog", name="The new key")
            await expect(again).to_contain_text("shown once")
            await again.get_by_role("button", name="Close").click()
            assert await names() == ["lost"]
    await form.get_by_label("Name").fill("other")
    await create.click()
    await created_key(page)

    assert await names() == ["lost", "lost", "other"]
