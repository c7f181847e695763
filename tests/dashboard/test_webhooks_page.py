"""The page Webhooks: making, changing and deleting them, and the log of what they were sent."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, BrowserContext, Page, expect

from app.runtime import Runtime
from tests.support.api import execute, ok, problem
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.service import client_of, listening, service
from tests.support.tenants import Caller, make_key

TARGET = "http://127.0.0.1:9/kemem"
"""Nothing is sent in these tests, since no worker runs."""


@pytest.fixture(scope="module")
async def hooked(dsn: str) -> AsyncIterator[FastAPI]:
    """The service of a deployment that lets webhooks call its own network."""
    async with service(dsn, webhook_private_targets=True) as app:
        yield app


@pytest.fixture
async def address(hooked: FastAPI) -> AsyncIterator[str]:
    async with listening(hooked) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def watch(address: str) -> Watch:
    return Watch(address)


@pytest.fixture
async def page(context: BrowserContext) -> Page:
    return await context.new_page()


@pytest.fixture
async def admin(hooked: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(hooked, acme.key) as opened:
        yield opened


@pytest.fixture
async def webhook(admin: AsyncClient) -> str:
    """The id of a webhook."""
    made = ok(await admin.post("/webhooks", json={"url": TARGET, "description": "chat"}), 201)
    return made["webhook_id"]


async def secret_shown(page: Page) -> str:
    dialog = page.get_by_role("dialog", name="The secret of this webhook")
    secret = await dialog.get_by_label("Secret", exact=True).input_value()
    await dialog.get_by_role("button", name="Close").click()
    await expect(page.get_by_role("dialog")).to_have_count(0)
    return secret


async def test_webhook_is_created_and_its_secret_shown_once(page: Page, admin: AsyncClient) -> None:
    await open_page(page, "#/webhooks")
    await expect(page.get_by_text("No webhook yet.")).to_be_visible()
    await page.get_by_role("button", name="Create a webhook").click()
    form = page.get_by_role("dialog", name="Create a webhook")
    await form.get_by_label("Address").fill(TARGET)
    await form.get_by_label("memory.added").check()
    await expect(form.get_by_label("all events")).not_to_be_checked()
    await form.get_by_label("job.dead").check()
    await form.get_by_role("button", name="Create").click()

    secret = await secret_shown(page)

    assert secret.startswith("whsec_")
    assert secret not in await page.content()
    [made] = ok(await admin.get("/webhooks"))["items"]
    assert made["events"] == ["job.dead", "memory.added"]
    await expect(page.get_by_role("main")).to_contain_text(TARGET)


async def test_address_that_may_not_be_called_is_explained(page: Page, watch: Watch) -> None:
    watch.allow_refusals(422)
    await open_page(page, "#/webhooks")
    await page.get_by_role("button", name="Create a webhook").click()
    form = page.get_by_role("dialog")
    await form.get_by_label("Address").fill("http://name:word@127.0.0.1/kemem")
    await form.get_by_role("button", name="Create").click()

    await expect(form.get_by_role("alert")).to_contain_text("body.url")


async def test_webhook_is_edited_disabled_and_enabled(
    page: Page, admin: AsyncClient, webhook: str
) -> None:
    await open_page(page, f"#/webhooks/{webhook}")
    await page.get_by_role("button", name="Edit").click()
    form = page.get_by_role("dialog", name="Edit the webhook")
    await form.get_by_label("Description").fill("billing")
    await form.get_by_role("button", name="Save").click()
    await expect(page.get_by_role("main")).to_contain_text("billing")

    await page.get_by_role("button", name="Disable").click()
    await expect(page.get_by_role("main")).to_contain_text("disabled")
    assert ok(await admin.get(f"/webhooks/{webhook}"))["enabled"] is False
    await page.get_by_role("button", name="Enable").click()
    await expect(page.get_by_role("button", name="Disable")).to_be_visible()
    read = ok(await admin.get(f"/webhooks/{webhook}"))
    assert (read["enabled"], read["description"]) == (True, "billing")


async def test_new_secret_is_shown_and_the_former_still_signs(page: Page, webhook: str) -> None:
    await open_page(page, f"#/webhooks/{webhook}")
    await page.get_by_role("button", name="New secret").click()
    asked = page.get_by_role("dialog", name="Make a new secret?")
    await asked.get_by_role("button", name="New secret").click()

    assert (await secret_shown(page)).startswith("whsec_")
    await expect(page.get_by_text("The former secret signs until")).to_be_visible()


async def test_test_event_is_listed_shown_and_sent_again(
    page: Page, admin: AsyncClient, webhook: str, dsn: str
) -> None:
    await open_page(page, f"#/webhooks/{webhook}")
    await expect(page.get_by_text("Nothing was sent that matches.")).to_be_visible()
    await page.get_by_role("button", name="Send a test event").click()
    await expect(page.get_by_text("is on its way")).to_be_visible()
    rows = page.locator("tbody tr")
    await expect(rows).to_have_count(1)
    await expect(rows).to_contain_text("webhook.test")
    await expect(rows).to_contain_text("pending")

    await execute(
        dsn,
        "UPDATE webhook_deliveries SET status = 'dead', attempts = 8, response_status = 500, "
        "error_code = 'answered', duration_ms = 1234 WHERE webhook_id = $1",
        webhook,
    )
    await page.get_by_role("button", name="Reload").click()
    await expect(rows).to_contain_text("given up")
    await expect(rows).to_contain_text("500 · answered · 1,234 ms")

    await rows.get_by_role("button", name="sends").click()
    await expect(page.get_by_role("dialog")).to_contain_text('"webhook.test"')
    await page.keyboard.press("Escape")

    await rows.get_by_role("button", name="again").click()
    await expect(page.get_by_text("is sent again as a new delivery")).to_be_visible()
    await expect(rows).to_have_count(2)
    deliveries = ok(await admin.get(f"/webhooks/{webhook}/deliveries"))["items"]
    assert len({one["event_id"] for one in deliveries}) == 1

    await page.get_by_label("Status").select_option("dead")
    await expect(rows).to_have_count(1)
    await expect(page).to_have_url(f"{page.url.split('#')[0]}#/webhooks/{webhook}?status=dead")


async def test_test_of_a_disabled_webhook_is_refused_in_a_sentence(
    page: Page, admin: AsyncClient, webhook: str, watch: Watch
) -> None:
    watch.allow_refusals(409)
    ok(
        await admin.patch(
            f"/webhooks/{webhook}", json={"enabled": False}, headers={"If-Match": "1"}
        )
    )
    await open_page(page, f"#/webhooks/{webhook}")

    await page.get_by_role("button", name="Send a test event").click()

    await expect(page.get_by_role("alert")).to_contain_text("disabled")


async def test_webhook_is_deleted(page: Page, admin: AsyncClient, webhook: str) -> None:
    await open_page(page, f"#/webhooks/{webhook}")
    await page.get_by_role("button", name="Delete").click()
    asked = page.get_by_role("dialog", name="Delete this webhook?")
    await asked.get_by_role("button", name="Delete").click()

    await expect(page.get_by_text("No webhook yet.")).to_be_visible()
    problem(await admin.get(f"/webhooks/{webhook}"), 404, "webhook_not_found")


async def test_key_without_the_scope_is_told_so(
    browser: Browser, address: str, runtime: Runtime, acme: Caller, watch: Watch
) -> None:
    writer = await make_key(runtime, acme.tenant_id, "write")
    async with context_of(browser, address, writer.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/webhooks")
        await expect(page.get_by_role("main")).to_contain_text("This takes an admin's key.")
    watch.check()


async def test_description_runs_nothing_and_nothing_serious_is_found(
    page: Page, admin: AsyncClient, has_axe: None
) -> None:
    text = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"
    made = ok(await admin.post("/webhooks", json={"url": TARGET, "description": text}), 201)
    for hash_ in ("#/webhooks", f"#/webhooks/{made['webhook_id']}"):
        await open_page(page, hash_)
        await settled(page)
        await expect(page.get_by_role("main")).to_contain_text(text)
        await axe(page)
    assert await page.title() == "Webhooks · KeMem"
