"""The pages that show the published document, in a browser without the internet.

What they load and their policy, tests/http/test_document.py asks for without one.
"""

import pytest
from playwright.async_api import Browser, expect

from tests.support.dashboard import Watch, context_of

pytestmark = pytest.mark.slow


async def test_root_leads_to_the_page_that_tries_routes(
    browser: Browser, address: str, watch: Watch
) -> None:
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto("/")

        assert page.url == f"{address}/docs"
        tags = page.locator(".opblock-tag")
        await expect(tags.first).to_be_visible()
        shown = await tags.evaluate_all("all => all.map((one) => one.dataset.tag)")
        assert shown[:4] == ["memories", "sessions", "messages", "context"]
    watch.check()


async def test_page_for_reading_loads_nothing_from_another_host(
    browser: Browser, address: str
) -> None:
    """It asks for a picture of its makers; the policy of the page stops that request."""
    async with await browser.new_context(base_url=address) as context:
        page = await context.new_page()
        answered: list[str] = []
        page.on("response", lambda response: answered.append(response.url))
        async with page.expect_event("requestfailed") as failed:
            await page.goto("/redoc")

        await expect(page.get_by_text("Find memories by meaning, best first.")).to_be_visible()
        assert (await failed.value).failure == "csp"
        assert {f"{address}/redoc", f"{address}/openapi.json"} < set(answered)
        own = (f"{address}/", f"blob:{address}/", "data:")
        assert [url for url in answered if not url.startswith(own)] == []
