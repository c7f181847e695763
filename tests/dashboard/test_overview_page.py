"""The page Overview: what the statistics say, and that nothing is invented where there is none."""

import asyncio
import re

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, Page, Route, expect

from app.runtime import Runtime
from tests.support.api import execute, ok, save, search
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.job_rows import become, owe
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller


def figure(page: Page, name: str):
    return page.locator(".figures > div").filter(has_text=name).locator("dd")


async def counted(client: AsyncClient, searches: int) -> None:
    """Wait until the searches are in the statistics, which are written behind the answers."""
    async with asyncio.timeout(PATIENCE):
        while True:
            totals = ok(await client.get("/stats/effect"))["totals"]
            if totals["searches"]["count"] >= searches:
                return
            await asyncio.sleep(0.05)


async def test_empty_tenant_is_explained(page: Page, has_axe: None) -> None:
    await open_page(page, "#/overview")

    await expect(figure(page, "Memories")).to_have_text("0")
    await expect(figure(page, "Searches with a hit")).to_have_text("–")
    for sentence in (
        "Nothing is remembered yet.",
        "Nothing was searched in this period.",
        "The gate has decided nothing in this period.",
        "No conversation was read in this period.",
        "No job has been ordered yet.",
        "No model of a provider was asked in this period.",
    ):
        await expect(page.get_by_role("main")).to_contain_text(sentence)
    await axe(page)


async def test_figures_are_those_of_the_statistics(
    page: Page, client: AsyncClient, has_axe: None
) -> None:
    await save(client, "I drink green tea every morning.")
    await save(client, "My favourite colour is blue.", memory_type="preference")
    await client.post("/memories", json={"messages": "ok", "user_id": "ana", "infer": False})
    refusals = ok(await client.get("/stats/refusals"))["totals"]
    assert refusals["rejected"] == 1
    await search(client)
    await search(client, "What is the weather on the moon?")
    await counted(client, 2)

    await open_page(page, "")

    await expect(figure(page, "Memories")).to_have_text("2")
    effect = ok(await client.get("/stats/effect"))["totals"]["searches"]
    await expect(page.locator(".figures")).to_contain_text(
        re.compile(rf"Searches\s*{effect['count']}\s*Searches with a hit")
    )
    await expect(figure(page, "Refused")).to_have_text(str(refusals["rejected"]))
    types = page.get_by_role("list", name="By type").get_by_role("listitem")
    await expect(types.filter(has_text="preference")).to_contain_text("1")
    jobs = ok(await client.get("/jobs/stats"))
    await expect(figure(page, "Jobs due")).to_have_text(str(jobs["due"]))
    code = next(iter(refusals["by_code"]))
    rule = page.get_by_role("list", name="Refusals by rule").get_by_role("link", name=code)
    # Of the same days as the figure, by its name and its code.
    assert re.search(
        rf"verdict=rejected&code={code}&since=\d{{4}}-\d\d-\d\d",
        await rule.get_attribute("href") or "",
    )
    await expect(
        page.get_by_role("img", name="Searches and contexts by day", exact=True)
    ).to_be_visible()
    await axe(page)


async def test_period_is_chosen_and_kept_in_the_address(page: Page) -> None:
    await open_page(page, "#/overview")
    async with page.expect_request(re.compile("/v1/stats/effect")) as asked:
        await page.get_by_label("Period").select_option("7")
    days = re.search(r"since=([\d-]+)&until=([\d-]+)", (await asked.value).url)

    assert days
    await expect(page).to_have_url(re.compile(r"#/overview\?days=7$"))
    await page.reload()
    await settled(page)
    await expect(page.get_by_label("Period")).to_have_value("7")


async def test_money_is_shown_where_prices_are_known_and_else_said_to_be_unknown(
    page: Page, client: AsyncClient, acme: Caller, dsn: str
) -> None:
    await execute(
        dsn,
        "INSERT INTO usage (tenant_id, day, operation, model, calls, failures, input_tokens, "
        "output_tokens) VALUES ($1, current_date, 'extract', 'some-model', 3, 1, 1200, 34)",
        acme.tenant_id,
    )
    await open_page(page, "")

    models = page.get_by_role("region", name="Models")
    await expect(models).to_contain_text("3 calls, of which 1 failed; 1,234 tokens")
    await expect(models).to_contain_text("extract · some-model")
    await expect(models).to_contain_text("a model has no price")
    await expect(models).to_contain_text("Today: 3 calls, 1,234 tokens.")


async def test_costs_of_today_stand_beside_those_of_the_period(page: Page) -> None:
    async def answer(route: Route) -> None:
        got = await route.fetch()
        body = await got.json()
        day = {"operation": "extract", "model": "m", "failures": 0, "output_tokens": 0}
        spent = [("2026-01-01", 5, 500, 2.5), (body["until"], 2, 100, 0.25)]
        body["items"] = [
            day | {"day": at, "calls": calls, "input_tokens": tokens, "cost": cost}
            for at, calls, tokens, cost in spent
        ]
        body["totals"] |= {"calls": 7, "input_tokens": 600, "cost": 2.75}
        await route.fulfill(response=got, json=body)

    await page.route("**/v1/usage*", answer)
    await open_page(page, "")

    models = page.get_by_role("region", name="Models")
    await expect(models).to_contain_text("Cost: 2.75")
    await expect(models).to_contain_text("Today: 2 calls, 100 tokens, cost 0.25.")


async def test_only_figures_whose_list_has_as_many_lead_there(
    page: Page, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    await save(client, "I drink green tea every morning.")
    short = {"messages": "Tea", "user_id": "ana", "infer": False}
    ok(await client.post("/memories", json=short), 422)
    dead = await owe(runtime, acme, "dead", user_id="ana")
    await become(dsn, dead, "dead", attempts=8)
    await owe(runtime, acme, "deferred", user_id="ana")
    await open_page(page, "")

    await expect(figure(page, "Refused")).to_have_text("1")
    await expect(page.locator(".figures").get_by_role("link")).to_have_count(1)
    await figure(page, "Jobs dead").get_by_role("link", name="1").click()
    await settled(page)
    listed = page.get_by_role("table", name="Jobs, newest first").locator("tbody tr")
    await expect(listed).to_have_count(1)
    await expect(listed.get_by_label(f"Details of {dead}")).to_be_visible()


async def test_refused_part_hides_no_other(page: Page, client: AsyncClient, watch: Watch) -> None:
    await save(client, "I drink green tea every morning.")
    watch.allow_refusals(503)
    await page.route(
        "**/v1/stats/effect*",
        lambda route: route.fulfill(
            status=503,
            content_type="application/problem+json",
            json={"code": "overloaded", "title": "Busy", "detail": "Later.", "request_id": "req_1"},
        ),
    )
    await open_page(page, "")

    await expect(page.get_by_role("alert")).to_contain_text("req_1")
    await expect(figure(page, "Memories")).to_have_text("1")


async def test_page_is_in_chinese_too(page: Page, client: AsyncClient) -> None:
    await save(client, "我每天早上喝绿茶。")
    await open_page(page, "")
    await page.get_by_label("Language").select_option("zh")

    await expect(page.get_by_role("heading", level=1)).to_have_text("概览")
    await expect(page.get_by_role("region", name="记忆")).to_contain_text("按类型")


async def test_first_page_is_quick_and_small(
    browser: Browser, address: str, acme: Caller, watch: Watch, app: FastAPI, runtime: Runtime
) -> None:
    """Bytes as they are sent, of everything until the page has settled."""
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        await open_page(page, "#/overview")
        sent = await page.evaluate(
            "performance.getEntriesByType('resource')"
            ".concat(performance.getEntriesByType('navigation'))"
            ".reduce((sum, entry) => sum + entry.transferSize, 0)"
        )
        assert 10_000 < sent <= 300_000
    watch.check()


async def test_legend_of_a_chart_is_plain_until_a_day_is_pointed_at(
    page: Page, client: AsyncClient
) -> None:
    await search(client, "tea")
    await counted(client, 1)
    await open_page(page, "")
    chart = page.locator(".chart").first
    names, values = chart.locator("tr.u-series th"), chart.locator("td.u-value")
    borders = "cells => cells.map((cell) => getComputedStyle(cell).borderBottomWidth)"

    assert set(await chart.locator("tr, th, td").evaluate_all(borders)) == {"0px"}
    await expect(names.first).to_be_hidden()
    await expect(names.last).to_be_visible()
    for value in await values.all():
        await expect(value).to_be_hidden()
    await chart.locator(".u-over").hover()
    await expect(names.first).to_be_visible()
    await expect(values.last).to_be_visible()
    await page.get_by_role("heading", level=1).hover()
    await expect(values.last).to_be_hidden()


@pytest.mark.parametrize(
    ("lag", "shown"), [(86_399_000, "≈ 24 hr"), (86_400_000, "> 1 day"), (2_500, "≈ 2.5 sec")]
)
async def test_lag_is_an_estimate_and_beyond_a_day_only_a_least(
    page: Page, client: AsyncClient, lag: int, shown: str
) -> None:
    async def answer(route: Route) -> None:
        got = await route.fetch()
        body = await got.json()
        body["totals"] |= {"runs": 1, "lag_p50_ms": lag, "lag_p95_ms": lag}
        await route.fulfill(response=got, json=body)

    await page.route("**/v1/stats/extraction*", answer)
    await open_page(page, "")

    name = page.get_by_text("Extraction lag, p95", exact=True)
    figure = page.locator("dl.figures > div").filter(has=name).locator("dd")
    await expect(figure).to_have_text(shown)
