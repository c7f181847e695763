"""The page Evaluation: whether memory helps, by day and agent."""

import asyncio

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from tests.support.api import append, ok, save, search
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller


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


async def test_time_without_anything_is_explained(page: Page) -> None:
    await open_page(page, "#/evaluation")

    await expect(page.get_by_text("No search and no context was asked for").first).to_be_visible()
    await expect(page.get_by_text("Nothing was read for memories in this time.")).to_be_visible()


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
    for name in ("Hit rate", "Use rate", "Asked for and shown", "Latency"):
        await expect(page.get_by_role("img", name=name, exact=True)).to_be_visible()
        await expect(table(page, name)).to_have_count(1)
    await expect(table(page, "Asked for and shown")).to_contain_text("2")
    await expect(table(page, "By agent")).to_have_count(1)
    await expect(figure(page, "Active memories")).to_have_text("1")
    await expect(figure(page, "In contradiction")).to_have_text("0")
    await axe(page)

    await page.get_by_role("combobox", name="Days").select_option("7")
    await settled(page)
    await expect(table(page, "Hit rate")).to_have_count(1)
    await page.get_by_role("textbox", name="Agent").fill("nobody")
    await page.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("No search and no context was asked for").first).to_be_visible()


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
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        await open_page(page, "#/evaluation")
        await expect(page.get_by_text("搜索命中率").first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await axe(page)
    watch.check()
