"""The page Jobs: what waits and failed, by kind; retry and cancel; updates by itself."""

import re

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, BrowserContext, Locator, Page, expect

from app.runtime import Runtime
from tests.support.api import execute, ok
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.job_rows import become, owe
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

HOSTILE = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"


def row(page: Page, job_id: str) -> Locator:
    """The row of a job in the list."""
    return page.get_by_role("row").filter(has=page.get_by_label(f"Details of {job_id}"))


def listed(page: Page) -> Locator:
    """The rows of the list, without its head."""
    return page.get_by_role("table", name="Jobs, newest first").locator("tbody tr")


async def dead_job(runtime: Runtime, caller: Caller, dsn: str, key: str, detail: str) -> str:
    job_id = await owe(runtime, caller, key, user_id="ana")
    quoted = detail.replace("'", "''")
    await become(
        dsn, job_id, "dead", attempts=8, error_code="'model_failed'", error_detail=f"'{quoted}'"
    )
    return job_id


async def status_of(client: AsyncClient, job_id: str) -> str:
    return ok(await client.get(f"/jobs/{job_id}"))["status"]


async def test_tenant_without_jobs_is_told_when_some_will_be_there(page: Page) -> None:
    await open_page(page, "#/jobs")

    await expect(page.get_by_text("No job has been ordered yet.")).to_be_visible()
    await expect(page.get_by_text("none is due")).to_be_visible()


async def test_counts_lag_and_last_errors_are_shown_and_nothing_in_them_runs(
    page: Page, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, has_axe: None
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    waiting = await owe(runtime, acme, "due", kind="profile")
    await execute(
        dsn, "UPDATE jobs SET due_at = now() - interval '3 hours' WHERE job_id = $1", waiting
    )
    dead = await dead_job(runtime, acme, dsn, "dead", HOSTILE)

    await open_page(page, "#/jobs")

    figures = page.locator("dl.figures > div")
    await expect(figures).to_have_text(
        ["Waiting1", "Running0", "Dead1", "Of which due now1", re.compile("Lag3 hr")]
    )
    await expect(row(page, dead)).to_contain_text(HOSTILE)
    await expect(row(page, dead)).to_contain_text("model_failed")
    await expect(row(page, dead)).to_contain_text("8 / 8")
    await row(page, dead).get_by_role("link").click()
    await expect(page.get_by_role("dialog")).to_contain_text(HOSTILE)
    assert "ran" not in await page.title()
    await axe(page)


async def test_dead_job_is_retried(
    page: Page, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    dead = await dead_job(runtime, acme, dsn, "k", "The model did not answer.")
    await open_page(page, "#/jobs")

    await page.get_by_role("button", name=f"Retry {dead}").click()

    await expect(page.get_by_text(f"{dead} will run again.")).to_be_visible()
    await expect(row(page, dead)).to_contain_text("waiting")
    assert await status_of(client, dead) == "pending"


async def test_cancelling_asks_first_and_esc_gives_up(
    page: Page, client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    waiting = await owe(runtime, acme, "k")
    await open_page(page, "#/jobs")
    button = page.get_by_role("button", name=f"Cancel {waiting}")

    await button.focus()
    await page.keyboard.press("Enter")
    await expect(page.get_by_role("dialog")).to_contain_text(waiting)
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)
    await expect(button).to_be_focused()
    assert await status_of(client, waiting) == "pending"

    await page.keyboard.press("Enter")
    await page.get_by_role("dialog").get_by_role("button", name="Cancel").first.click()
    await expect(page.get_by_text(f"{waiting} is cancelled.")).to_be_visible()
    assert await status_of(client, waiting) == "cancelled"


async def test_list_is_filtered_by_kind_status_and_user(
    page: Page, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    extract = await owe(runtime, acme, "a")
    profile = await owe(runtime, acme, "b", kind="profile", user_id="ana")
    cancelled = await owe(runtime, acme, "c", kind="profile")
    await become(dsn, cancelled, "cancelled")
    await open_page(page, "#/jobs")
    await expect(listed(page)).to_have_count(3)

    await page.get_by_role("button", name="Show 1 profile job: cancelled").click()
    await expect(listed(page)).to_have_count(1)
    await expect(row(page, cancelled)).to_be_visible()

    await page.get_by_role("combobox", name="Status").select_option("")
    await expect(listed(page)).to_have_count(2)
    await page.get_by_role("textbox", name="User id").fill("ana")
    await page.get_by_role("button", name="Apply").click()
    await expect(listed(page)).to_have_count(1)
    await expect(row(page, profile)).to_be_visible()

    await page.get_by_role("combobox", name="Kind").select_option("extract")
    await expect(page.get_by_text("No job matches.")).to_be_visible()
    await page.get_by_role("textbox", name="User id").fill("")
    await page.get_by_role("button", name="Apply").click()
    await expect(row(page, extract)).to_be_visible()
    await page.reload()
    await settled(page)
    await expect(listed(page)).to_have_count(1)


async def test_page_updates_itself_while_seen_and_not_paused(
    context: BrowserContext, runtime: Runtime, acme: Caller
) -> None:
    page = await context.new_page()
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    await page.clock.install()
    await open_page(page, "#/jobs")
    await expect(page.get_by_text("No job has been ordered yet.")).to_be_visible()

    first = await owe(runtime, acme, "first")
    await page.clock.run_for(6_000)
    await expect(row(page, first)).to_be_visible()

    await page.get_by_role("button", name="Pause updates").click()
    await settled(page)
    asked.clear()
    second = await owe(runtime, acme, "second")
    await page.clock.run_for(60_000)
    assert asked == []

    await page.get_by_role("button", name="Update now").click()
    await expect(row(page, second)).to_be_visible()
    await page.get_by_role("button", name="Pause updates").click()
    await page.evaluate("Object.defineProperty(document, 'visibilityState', {value: 'hidden'})")
    await settled(page)
    asked.clear()
    await page.clock.run_for(60_000)
    assert asked == []


async def test_long_list_is_paged_and_an_update_stays_on_its_page(
    page: Page, acme: Caller, dsn: str, runtime: Runtime
) -> None:
    pattern = await owe(runtime, acme, "pattern")
    copied = (
        "INSERT INTO jobs SELECT (jsonb_populate_record(j, jsonb_build_object("
        "'job_id', 'job_' || n, 'key', 'k' || n, 'status', 'succeeded',"
        " 'create_time', j.create_time - n * interval '1 second'))).*"
        " FROM jobs AS j, generate_series(1, 120) AS n WHERE j.job_id = $1"
    )
    await execute(dsn, copied, pattern)
    await open_page(page, "#/jobs")
    await expect(listed(page)).to_have_count(50)

    await page.get_by_role("button", name="Next page").click()
    await expect(page.get_by_text("Page 2")).to_be_visible()
    await expect(row(page, "job_50")).to_be_visible()
    await page.get_by_role("button", name="Update now").click()
    await settled(page)
    await expect(row(page, "job_50")).to_be_visible()
    await page.get_by_role("button", name="Next page").click()
    await expect(listed(page)).to_have_count(21)


async def test_key_that_only_reads_is_told_so(
    browser: Browser,
    address: str,
    app: FastAPI,
    client: AsyncClient,
    runtime: Runtime,
    acme: Caller,
    dsn: str,
    watch: Watch,
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    dead = await dead_job(runtime, acme, dsn, "k", "The model did not answer.")
    reader = await make_key(runtime, acme.tenant_id, "read")
    async with context_of(browser, address, reader.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/jobs")
        retry = page.get_by_role("button", name=f"Retry {dead}")
        await expect(retry).to_be_disabled()
        await expect(retry).to_have_attribute("title", "This takes a key that may write.")
        async with client_of(app, acme.key) as admin:
            assert await status_of(admin, dead) == "dead"
    watch.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_and_chinese(
    browser: Browser,
    address: str,
    client: AsyncClient,
    runtime: Runtime,
    acme: Caller,
    dsn: str,
    watch: Watch,
    scheme: str,
    has_axe: None,
) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    dead = await dead_job(runtime, acme, dsn, "k", "很" * 300)
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        await open_page(page, "#/jobs")
        await expect(page.get_by_role("button", name=f"重试 {dead}")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await axe(page)
    watch.check()
