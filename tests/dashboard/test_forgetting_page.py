"""The page Forgetting: a dry run by rule, the run for real, policies, and receipts of erasures."""

import re
from typing import Any

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from app.runtime import Runtime
from tests.support.api import execute, ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.tenants import Caller, make_key
from tests.support.working import over, working


def table(page: Page, name: str) -> Locator:
    """The rows of a table, without its head."""
    return page.get_by_role("table", name=name, exact=True).locator("tbody tr")


async def expired(client: AsyncClient, dsn: str, *texts: str) -> list[str]:
    """Memories of Ana's whose time is over; their ids."""
    made = [(await save(client, text))["memory_id"] for text in texts]
    past = "UPDATE memories SET expires_at = now() - interval '1 day' WHERE memory_id = ANY($1)"
    await execute(dsn, past, made)
    return made


async def statuses(dsn: str, *memory_ids: str) -> list[str]:
    """In the order of the ids."""
    held = "SELECT memory_id, status FROM memories WHERE memory_id = ANY($1)"
    by_id = {row["memory_id"]: row["status"] for row in await execute(dsn, held, list(memory_ids))}
    return [by_id[memory_id] for memory_id in memory_ids]


async def forget_jobs(client: AsyncClient) -> list[dict[str, Any]]:
    jobs: list[dict[str, Any]] = ok(await client.get("/jobs", params={"kind": "forget"}))["items"]
    return jobs


async def test_nothing_due_nothing_run_and_nothing_erased_are_said(page: Page) -> None:
    await open_page(page, "#/forgetting")
    await expect(page.get_by_text("Forgetting has not run yet.")).to_be_visible()
    await expect(page.get_by_text("Nothing was erased yet.")).to_be_visible()

    await page.get_by_role("button", name="Show what would go").click()

    await expect(page.get_by_text("Nothing would be forgotten now.")).to_be_visible()
    await expect(page.get_by_role("button", name="Forget for real")).to_have_count(0)


async def test_dry_run_names_rules_and_ids_and_forgets_nothing(
    page: Page, client: AsyncClient, dsn: str, has_axe: None
) -> None:
    [gone] = await expired(client, dsn, "She rents a boat this week.")
    await open_page(page, "#/forgetting")

    await page.get_by_role("button", name="Show what would go").click()

    await expect(table(page, "Would go now")).to_have_count(1)
    await expect(table(page, "Would go now")).to_contain_text("Memories that have expired")
    await expect(table(page, "Would go now")).to_contain_text(gone)
    assert await statuses(dsn, gone) == ["active"]
    await axe(page)


async def test_chosen_rules_alone_are_looked_at(page: Page, client: AsyncClient, dsn: str) -> None:
    await expired(client, dsn, "She rents a boat this week.")
    await open_page(page, "#/forgetting")
    await page.get_by_text("Choose rules").click()
    await page.get_by_label("Memories whose score has decayed").check()

    await page.get_by_role("button", name="Show what would go").click()
    await expect(page.get_by_text("Nothing would be forgotten now.")).to_be_visible()

    await page.get_by_label("Memories that have expired").check()
    await page.get_by_role("button", name="Show what would go").click()
    await expect(table(page, "Would go now")).to_have_count(1)


async def test_another_eviction_is_compared(page: Page, client: AsyncClient, dsn: str) -> None:
    config = {"forgetting": {"max_facts": 1}}
    agent = {"agent_id": "coach", "agent_name": "Coach", "config": config}
    ok(await client.post("/agents", json=agent), 201)
    sure = await save(client, "She keeps bees.", agent_id="coach", confidence=0.9)
    unsure = await save(client, "He plays the oboe.", agent_id="coach", confidence=0.8)
    # The less certain one was confirmed last, by far.
    old = "UPDATE memories SET source = 'ai', reviewed_at = now() - $2::int * interval '1 day',"
    old += " create_time = now() - $2::int * interval '1 day' WHERE memory_id = $1"
    await execute(dsn, old, sure["memory_id"], 900)
    await execute(dsn, old, unsure["memory_id"], 0)
    await open_page(page, "#/forgetting")

    await page.get_by_label("Only this agent").fill("coach")
    await page.get_by_role("combobox", name="Compare with another eviction").select_option("hybrid")
    await page.get_by_role("button", name="Show what would go").click()

    compared = page.locator("dl.facts").filter(has_text="Both would archive")
    await expect(compared).to_contain_text("Both would archive0")
    await expect(compared).to_contain_text(f"Only the policy in force{unsure['memory_id']}")
    await expect(compared).to_contain_text(f"Only hybrid{sure['memory_id']}")
    await expect(table(page, "Agents with a policy of their own")).to_contain_text("coach")


async def test_run_for_real_needs_the_word_and_orders_a_job_that_does_it(
    page: Page, client: AsyncClient, runtime: Runtime, dsn: str, has_axe: None
) -> None:
    [gone] = await expired(client, dsn, "She rents a boat this week.")
    kept = (await save(client, "She keeps bees on the roof."))["memory_id"]
    await open_page(page, "#/forgetting")
    await page.get_by_role("button", name="Show what would go").click()
    await page.get_by_role("button", name="Forget for real").click()
    dialog = page.get_by_role("dialog")
    await axe(page)
    for wrong in ("", "forget it"):
        await dialog.get_by_role("textbox").fill(wrong)
        await dialog.get_by_role("button", name="Forget for real").click()
        await expect(dialog.locator("input:invalid")).to_have_count(1)
    assert await forget_jobs(client) == []

    await dialog.get_by_role("textbox").fill("forget")
    await page.keyboard.press("Enter")

    ordered = page.get_by_text(re.compile("Ordered as job job_"))
    await expect(ordered).to_be_visible()
    [job] = await forget_jobs(client)
    await expect(ordered).to_contain_text(job["job_id"])
    async with working(runtime, dsn):
        assert (await over(client, job["job_id"]))["result"]["expired"] == 1
    assert await statuses(dsn, gone, kept) == ["archived", "active"]
    await page.get_by_role("button", name="Reload").click()
    await expect(table(page, "Last runs")).to_contain_text("expired 1")
    await page.get_by_role("status").get_by_role("link", name="See the job").click()
    await expect(page.get_by_role("dialog")).to_contain_text(job["job_id"])


async def test_receipts_of_erasures_are_listed_and_found_by_the_id(
    page: Page, client: AsyncClient
) -> None:
    await save(client, "She keeps bees.")
    await save(client, "He plays the oboe.", user_id="ben")
    for user in ("ana", "ben"):
        ok(await client.delete(f"/users/{user}", params={"confirm": True}))
    await open_page(page, "#/forgetting")
    await expect(table(page, "Receipts of erasures")).to_have_count(2)

    await page.get_by_role("combobox", name="Kind").select_option("user")
    await page.get_by_label("Id of the subject").fill("ana")
    await page.get_by_role("button", name="Find").click()

    receipts = table(page, "Receipts of erasures")
    await expect(receipts).to_have_count(1)
    await expect(receipts).to_contain_text("memories 1")
    assert "ana" not in await receipts.inner_text()

    await page.get_by_label("Id of the subject").fill("nobody")
    await page.get_by_role("button", name="Find").click()
    await expect(page.get_by_text("No receipt matches.")).to_be_visible()


async def test_refusal_of_a_filter_is_shown(page: Page, watch: Watch) -> None:
    await open_page(page, "#/forgetting")
    watch.allow_refusals(422)

    await page.get_by_label("Id of the subject").fill("ana")
    await page.get_by_role("button", name="Find").click()

    await expect(page.get_by_role("alert")).to_contain_text("needs kind beside it")


async def test_key_that_may_not_is_told_so(
    browser: Browser,
    address: str,
    runtime: Runtime,
    acme: Caller,
    watch: Watch,
) -> None:
    writer = await make_key(runtime, acme.tenant_id, "write")
    async with context_of(browser, address, writer.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/forgetting")
        await expect(page.get_by_role("main")).to_contain_text("This takes an admin's key.")
    watch.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_and_chinese(
    browser: Browser,
    address: str,
    client: AsyncClient,
    acme: Caller,
    dsn: str,
    watch: Watch,
    scheme: str,
    has_axe: None,
) -> None:
    await expired(client, dsn, "她这周租了一条船。")
    ok(await client.post("/users", json={"user_id": "ben"}), 201)
    ok(await client.delete("/users/ben", params={"confirm": True}))
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        await open_page(page, "#/forgetting")
        await page.get_by_role("button", name="查看会移除什么").click()
        await expect(page.get_by_text("已过期的记忆").last).to_be_visible()
        await settled(page)
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await axe(page)
        await page.get_by_role("button", name="正式执行遗忘").click()
        await expect(page.get_by_label("输入“遗忘”以确认")).to_be_visible()
    watch.check()
