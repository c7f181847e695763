"""The page Evaluation: whether memory helps, by day and agent; runs of `kemem eval` compared."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from tests.support.api import append, ok, save, search
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

HOSTILE = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"


def table(page: Page, name: str) -> Locator:
    """The rows of a table, without its head."""
    return page.get_by_role("table", name=name, exact=True).locator("tbody tr")


def figure(page: Page, name: str) -> Locator:
    label = page.get_by_text(name, exact=True)
    return page.locator("dl.figures > div").filter(has=label).locator("dd")


async def counted(client: AsyncClient, searches: int) -> None:
    """Wait until so many searches are counted; they are written in the background."""
    async with asyncio.timeout(PATIENCE):
        while True:
            totals = ok(await client.get("/stats/effect"))["totals"]
            if totals["searches"]["count"] >= searches:
                return
            await asyncio.sleep(0.05)


async def keep(client: AsyncClient, name: str, **metrics: Any) -> str:
    """A kept run; its id."""
    body = {
        "name": name, "dataset": "locomo",
        "settings": {"top_k": 10}, "metrics": metrics,
    }  # fmt: skip
    return str(ok(await client.post("/evaluations", json=body), 201)["evaluation_id"])


async def test_time_without_anything_is_explained(page: Page) -> None:
    await open_page(page, "#/evaluation")

    await expect(page.get_by_text("No search and no context was asked for").first).to_be_visible()
    await expect(page.get_by_text("Nothing was read for memories in this time.")).to_be_visible()
    await page.get_by_role("tab", name="Runs of kemem eval").click()
    await expect(page.get_by_text("No run is kept yet.")).to_be_visible()


async def test_hits_and_use_are_shown_by_day_and_by_agent(
    page: Page, client: AsyncClient, has_axe: None
) -> None:
    await save(client, "She drinks green tea in the morning.")
    await append(client, "talk", "Hello.", agent_id="coach")
    await search(client, "What does she drink in the morning?")
    await search(client, "quantum chromodynamics")
    await counted(client, 2)
    effect = ok(await client.get("/stats/effect"))["totals"]
    assert 0 < effect["searches"]["hit_rate"] < 1
    await open_page(page, "#/evaluation")

    rate = f"{effect['searches']['hit_rate']:.0%}"
    await expect(figure(page, "Hit rate of searches")).to_have_text(rate)
    await expect(figure(page, "Use rate, reported")).to_have_text("–")
    for name in ("Hit rate, %", "Use rate, %", "Asked for and shown", "Latency, ms"):
        await expect(page.get_by_role("img", name=name, exact=True)).to_be_visible()
        await expect(table(page, name)).to_have_count(1)
    await expect(table(page, "Asked for and shown")).to_contain_text("2")
    await expect(table(page, "By agent")).to_have_count(1)
    await expect(figure(page, "Active memories")).to_have_text("1")
    await expect(figure(page, "In contradiction")).to_have_text("0")
    await axe(page)

    await page.get_by_role("combobox", name="Days").select_option("7")
    await settled(page)
    await expect(table(page, "Hit rate, %")).to_have_count(1)
    await page.get_by_role("textbox", name="Agent").fill("nobody")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("No search and no context was asked for").first).to_be_visible()


async def reported(client: AsyncClient, session_id: str, memory_id: str) -> None:
    """Report a use, as soon as it is noted what the context showed."""
    body = {"session_id": session_id, "memory_ids": [memory_id]}
    async with asyncio.timeout(PATIENCE):
        while True:
            if ok(await client.post("/feedback/used", json=body))["used"] == 1:
                return
            await asyncio.sleep(0.05)


async def test_reported_use_stands_apart_from_the_estimate(page: Page, client: AsyncClient) -> None:
    tea = (await save(client, "She drinks green tea in the morning."))["memory_id"]
    await append(client, "talk", "What does she drink in the morning?")
    context = await client.post("/sessions/talk/context", json={"query": "green tea"})
    assert tea in {used["memory_id"] for used in ok(context)["used"]}
    await reported(client, "talk", tea)
    await open_page(page, "#/evaluation")

    await expect(figure(page, "Use rate, reported")).to_have_text("100%")
    await expect(figure(page, "Use rate, estimated")).to_have_text("0%")
    await expect(table(page, "Use rate, %")).to_contain_text("100%0%")


async def test_tabs_go_by_arrow_keys(page: Page) -> None:
    await open_page(page, "#/evaluation")
    await page.get_by_role("tab", name="Effect").focus()

    await page.keyboard.press("ArrowRight")

    await expect(page.get_by_role("tab", name="Runs of kemem eval")).to_be_focused()
    await expect(page.get_by_text("No run is kept yet.")).to_be_visible()


async def test_runs_are_compared_metric_by_metric(
    page: Page, client: AsyncClient, has_axe: None
) -> None:
    first = await keep(client, "before", recall={"at_10": 0.7, "at_5": 0.5}, ms=12)
    second = await keep(client, "after", recall={"at_10": 0.75}, ms=10)
    await open_page(page, "#/evaluation?tab=runs")
    await expect(table(page, "Runs, newest first")).to_have_count(2)

    await page.get_by_label(f"Compare before ({first})").check()
    await page.get_by_label(f"Compare after ({second})").check()

    rows = table(page, "Comparison")
    await expect(rows).to_have_text(["ms1210-2", "recall.at_100.70.75+0.05", "recall.at_50.5–"])
    await page.get_by_text("Settings of before").click()
    await expect(page.get_by_text('"top_k": 10').first).to_be_visible()
    await axe(page)
    await page.get_by_role("button", name="Clear the choice").click()
    await expect(rows).to_have_count(0)


async def test_at_most_four_runs_are_compared(page: Page, client: AsyncClient) -> None:
    made = [await keep(client, f"run {number}", ms=number) for number in range(5)]
    await open_page(page, "#/evaluation?tab=runs")
    for number in range(4):
        await page.get_by_label(f"Compare run {number} ({made[number]})").check()

    await expect(page.get_by_label(f"Compare run 4 ({made[4]})")).to_be_disabled()
    await page.get_by_label(f"Compare run 0 ({made[0]})").uncheck()
    await expect(page.get_by_label(f"Compare run 4 ({made[4]})")).to_be_enabled()


async def test_runs_are_filtered_and_deleted(page: Page, client: AsyncClient) -> None:
    first = await keep(client, "nightly", ms=1)
    second = await keep(client, "by hand", ms=2)
    await open_page(page, "#/evaluation?tab=runs")
    await page.get_by_label("Name").fill("nightly")
    await page.get_by_role("button", name="Apply").click()
    await expect(table(page, "Runs, newest first")).to_have_count(1)

    await page.get_by_role("button", name=f"Delete nightly ({first})").click()
    await page.get_by_role("dialog").get_by_role("button", name="Delete").click()

    await expect(page.get_by_text("No run matches.")).to_be_visible()
    left = ok(await client.get("/evaluations"))["items"]
    assert [run["evaluation_id"] for run in left] == [second]


async def test_hostile_names_and_metrics_do_not_run(page: Page, client: AsyncClient) -> None:
    made = await keep(client, HOSTILE, **{HOSTILE: 1})
    await open_page(page, "#/evaluation?tab=runs")

    await page.get_by_role("checkbox", name=made).check()

    await expect(table(page, "Comparison")).to_contain_text(HOSTILE)
    assert await page.locator("main img, main script").count() == 0
    assert "ran" not in await page.title()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_and_chinese(
    browser: Browser,
    address: str,
    client: AsyncClient,
    acme: Caller,
    watch: Watch,
    scheme: str,
    has_axe: None,
) -> None:
    await save(client, "她早上喝绿茶。")
    await search(client, "她早上喝什么？")
    await counted(client, 1)
    await keep(client, "每晚", recall={"at_10": 0.7})
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        for address_, text in (("#/evaluation", "搜索命中率"), ("#/evaluation?tab=runs", "每晚")):
            await open_page(page, address_)
            await expect(page.get_by_text(text).first).to_be_visible()
            assert await page.evaluate("document.documentElement.scrollWidth") <= 360
            await axe(page)
    watch.check()
