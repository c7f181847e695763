"""The page of searches: what is found and why, modes side by side, past times, what is left out."""

import json
import re
from typing import Any
from urllib.parse import urlencode

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from tests.dashboard.dashboard_support import HOSTILE, nothing_ran
from tests.support.api import append, ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.tenants import Caller

TEA = "She drinks green tea in the morning."
MODES = {
    "hybrid": "Results: words, meaning and context (default)",
    "semantic": "Results: meaning alone",
    "lexical": "Results: words alone",
}


def results(page: Page, mode: str = "hybrid") -> Locator:
    heading = page.get_by_role("heading", name=MODES[mode], exact=True)
    return page.locator("section").filter(has=heading)


def hits(page: Page, mode: str = "hybrid") -> Locator:
    return results(page, mode).locator(".entries > li")


async def fill(page: Page, **fields: str) -> None:
    for name, value in fields.items():
        await page.locator(f"[name={name}]").fill(value)
    await page.get_by_role("button", name="Search", exact=True).click()
    await settled(page)


class TestMemories:
    async def test_empty_page_says_what_to_enter(self, page: Page) -> None:
        await open_page(page, "#/search")

        await expect(page.get_by_role("main")).to_contain_text("Enter what you look for")

    async def test_hit_shows_every_part_of_its_score(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA)
        await save(client, "She keeps bees on the roof.")
        asked = {"query": "What tea does she drink?", "user_id": "ana"}
        body = asked | {"explain": True, "preview": True}
        [best, _] = ok(await client.post("/memories/search", json=body))["results"]
        await open_page(page, "#/search")
        await fill(page, **asked)

        hit = hits(page).first
        await expect(hit.get_by_role("link", name=TEA)).to_be_visible()
        # Of the first hit at once, of others when it is asked for.
        await expect(
            hits(page).nth(1).get_by_role("list", name="Parts of the score")
        ).to_be_hidden()
        await expect(hit.get_by_role("list", name="Score", exact=True)).to_contain_text(
            f"{best['score']:.3f}"
        )
        shares = hit.get_by_role("list", name="Parts of the score").get_by_role("listitem")
        for part, bar in zip(("relevance", "confidence", "scope"), await shares.all(), strict=True):
            await expect(bar).to_contain_text(f"{best['explain'][part]:.3f}")
        sources = hit.get_by_role("list", name="What made up relevance")
        for source in ("lexical", "cosine", "fused"):
            await expect(sources).to_contain_text(f"{best['explain'][source]:.3f}")
        added = [value for value in best["explain"]["boosts"].values() if value]
        signals = hit.get_by_role("list", name="Signals that were added")
        await expect(signals.get_by_role("listitem")).to_have_count(len(added))

    async def test_search_is_a_preview_and_stays_in_the_address(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA)
        await open_page(page, "#/search")
        async with page.expect_request(re.compile("/v1/memories/search$")) as asking:
            await fill(page, query="tea", user_id="ana")

        body = (await asking.value).post_data_json
        assert (body["preview"], body["explain"], body["mode"]) == (True, True, "hybrid")
        await page.reload()
        await expect(hits(page)).to_have_count(1)
        await expect(page.locator("[name=query]")).to_have_value("tea")

    async def test_modes_stand_side_by_side_with_their_places(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA)
        await save(client, "She keeps bees on the roof.")
        await open_page(page, "#/search?query=green+tea&user_id=ana&mode=compare")

        for mode in ("hybrid", "semantic"):
            await expect(hits(page, mode)).to_have_count(2)
        await expect(hits(page, "lexical")).to_have_count(1)
        await expect(hits(page).first).to_contain_text("words alone no. 1")
        await expect(hits(page).last).to_contain_text("words alone not among the first")
        await expect(results(page, "lexical")).to_contain_text(
            "Left out is what has none of the words of the query."
        )

    async def test_past_is_searched_as_it_was_and_as_it_was_known(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(
            client, "She lives in Munich.",
            valid_from="2020-01-01T00:00:00Z", valid_to="2021-01-01T00:00:00Z",
        )  # fmt: skip
        await open_page(page, "#/search?query=Munich&user_id=ana")
        await expect(results(page)).to_contain_text("Nothing was found.")
        await page.get_by_text("Filters and times").click()
        await fill(page, as_of="2020-06-01T00:00")
        await expect(hits(page)).to_have_count(1)
        await fill(page, known_at="2020-06-01T00:00")

        await expect(results(page)).to_contain_text("Nothing was found.")

    async def test_filters_narrow_what_is_found(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA, memory_type="preference", metadata={"topic": "tea"})
        await save(client, "She drinks no coffee in the morning.", memory_type="habit")
        await open_page(page, "#/search?query=morning&user_id=ana")
        await expect(hits(page)).to_have_count(2)
        await page.get_by_text("Filters and times").click()
        await page.get_by_label("Type").select_option("habit")
        await fill(page)
        await expect(hits(page)).to_have_count(1)
        await expect(hits(page)).to_contain_text("coffee")
        await page.get_by_label("Type").select_option("All")
        await fill(page, filters=json.dumps({"metadata.topic": "tea"}))
        await expect(hits(page)).to_have_count(1)
        await expect(hits(page)).to_contain_text(TEA)
        await fill(page, filters="", threshold="1")
        await expect(results(page)).to_contain_text("a similarity below 1 is left out")
        await expect(results(page)).to_contain_text("Nothing was found.")

    async def test_what_is_no_filter_is_not_sent_or_is_refused(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        await save(client, TEA)
        await open_page(page, "#/search?query=morning&user_id=ana")
        await page.get_by_text("Filters and times").click()
        await page.locator("[name=filters]").fill("{")
        await page.get_by_role("button", name="Search", exact=True).click()
        assert "filters" not in page.url
        await expect(hits(page)).to_have_count(1)
        watch.allow_refusals(422)
        await fill(page, filters='{"colour": "green"}')
        await expect(page.get_by_role("alert")).to_contain_text("invalid_filter")

        await open_page(page, "#/search?query=morning&user_id=ana&filters=%7B")
        await expect(page.get_by_role("alert")).to_contain_text("This is not JSON.")

    async def test_search_of_nobody_is_refused_as_the_service_says(
        self, page: Page, watch: Watch
    ) -> None:
        watch.allow_refusals(422)
        await open_page(page, "#/search")
        await fill(page, query="tea")

        await expect(page.get_by_role("alert")).to_contain_text("selector_required")

    async def test_long_answer_is_shown_ten_at_a_time(
        self, page: Page, client: AsyncClient
    ) -> None:
        for number in range(12):
            await save(
                client, f"She planted tree number {number} in the garden.", on_duplicate="allow"
            )
        await open_page(page, "#/search?query=tree+in+the+garden&user_id=ana")

        await expect(hits(page)).to_have_count(10)
        await page.get_by_role("button", name="Next page").click()
        await expect(hits(page)).to_have_count(2)
        await page.get_by_role("button", name="Previous page").click()
        await expect(hits(page)).to_have_count(10)


class TestMessages:
    async def test_message_is_found_with_its_score_and_its_place(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(
            client, "talk", "I moved to Hamburg.", {"role": "assistant", "content": "Nice."}
        )
        await open_page(page, "#/search")
        await page.get_by_label("Search in").select_option("messages")
        await fill(page, query="Where did I move?", user_id="ana")

        hit = hits(page).first
        await expect(hit.locator(".said")).to_have_text("I moved to Hamburg.")
        await expect(hit.get_by_role("list", name="What made up relevance")).to_be_visible()
        await expect(results(page)).to_contain_text("2 messages were searched.")
        await hit.get_by_role("link", name="talk · 1").click()
        await expect(page.locator(".marked")).to_contain_text("I moved to Hamburg.")

    async def test_message_shows_what_it_is_ordered_by(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(
            client, "talk", "Which city should I move to?",
            {"role": "assistant", "content": "I recommend the city of Hamburg."},
        )  # fmt: skip
        asked = {"query": "Which city did you recommend?", "user_id": "ana"}
        body = asked | {"explain": True}
        [best, *_] = ok(await client.post("/messages/search", json=body))["items"]
        added = {name: value for name, value in best["explain"]["pieces"].items() if value}
        assert {"piece", "message", "neighbours", "asked"} <= added.keys()
        await open_page(page, f"#/search?what=messages&{urlencode(asked)}")

        hit = page.locator(".entries > li").first
        for language, title, names in (
            ("en", "What its place adds up from",
             ("its best piece", "the message as a whole", "messages around it fit",
              "the question before it fits")),
            ("zh", "排序依据的构成",
             ("最匹配的片段", "整条消息", "前后消息匹配", "之前的提问匹配")),
        ):  # fmt: skip
            await page.locator("select:has(option[value=zh])").select_option(language)
            parts = hit.get_by_role("list", name=title).get_by_role("listitem")
            await expect(parts).to_have_count(len(added))
            for key, name in zip(("piece", "message", "neighbours", "asked"), names, strict=True):
                await expect(parts.filter(has_text=name)).to_contain_text(f"{added[key]:.3f}")

    async def test_messages_are_narrowed_by_role_and_time(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(
            client, "talk", "Hamburg is where I live.",
            {"role": "assistant", "content": "Hamburg is a city."},
        )  # fmt: skip
        await open_page(page, "#/search?what=messages&query=Hamburg&user_id=ana")
        await expect(hits(page)).to_have_count(2)
        await page.get_by_text("Filters and times").click()
        await page.get_by_label("Role").select_option("assistant")
        await fill(page)
        await expect(hits(page)).to_have_count(1)
        await expect(hits(page)).to_contain_text("Hamburg is a city.")
        await fill(page, until="2020-01-01T00:00")
        await expect(results(page)).to_contain_text("Nothing was found.")


class TestEverywhere:
    async def test_text_that_looks_like_markup_is_shown_and_not_run(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "talk", HOSTILE)
        await save(client, HOSTILE)
        for what in ("memories", "messages"):
            await open_page(page, f"#/search?what={what}&query=handle&user_id=ana")
            await expect(page.get_by_text(HOSTILE)).to_be_visible()
            assert await nothing_ran(page)

    @pytest.mark.parametrize(("scheme", "locale"), [("light", "en-GB"), ("dark", "zh-CN")])
    async def test_every_view_is_accessible_and_fits_a_phone(
        self, browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch,
        has_axe: None, scheme: Any, locale: str,
    ) -> None:  # fmt: skip
        await append(client, "talk", "I drink green tea.")
        await save(client, TEA)
        size = {"width": 360, "height": 740}
        async with context_of(
            browser, address, acme.key, watch, viewport=size, color_scheme=scheme, locale=locale
        ) as context:
            page = await context.new_page()
            for place in ("", "?query=tea&user_id=ana&mode=compare",
                          "?what=messages&query=tea&user_id=ana"):  # fmt: skip
                await open_page(page, f"#/search{place}")
                for summary in await page.locator("details > summary").all():
                    await summary.click()
                assert await page.evaluate("document.documentElement.scrollWidth") <= 360, place
                await axe(page)
        watch.check()

    async def test_search_goes_by_the_keyboard(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA)
        await open_page(page, "#/search?user_id=ana")
        await page.get_by_label("Query").focus()
        await page.keyboard.type("tea")
        await page.keyboard.press("Enter")

        await expect(hits(page)).to_have_count(1)
