"""/guide: the built site, without a key and without the internet."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Page

from app.integrations.guide.router import install_guide
from app.platform.http import problems
from tests.support.dashboard import Watch, browser_at, context_of, find_chromium
from tests.support.patience import PATIENCE
from tests.support.service import client_of, listening


def serving(site: Path) -> FastAPI:
    app = FastAPI()
    install_guide(app, site)
    problems.install(app)
    app.state.reached = app
    return app


@pytest.fixture
async def stranger(guide_site: Path) -> AsyncIterator[AsyncClient]:
    async with client_of(serving(guide_site), None) as client:
        yield client


async def test_page_needs_no_key_and_runs_only_what_the_service_serves(stranger) -> None:
    answer = await stranger.get("http://test/guide/")

    assert answer.status_code == 200
    assert "Back up and restore" in answer.text
    policy = dict(
        directive.split(" ", 1)
        for directive in answer.headers["content-security-policy"].split("; ")
    )
    assert policy["default-src"] == policy["frame-ancestors"] == "'none'"
    assert policy["script-src"] == policy["style-src"] == policy["connect-src"] == "'self'"


async def test_address_without_the_slash_leads_to_the_one_with_it(stranger) -> None:
    answer = await stranger.get("http://test/guide")

    assert answer.status_code == 307
    assert answer.headers["location"] == "http://test/guide/"


async def test_an_unchanged_page_is_not_sent_again(stranger) -> None:
    first = await stranger.get("http://test/guide/keys.html")

    tag = {"If-None-Match": first.headers["etag"]}
    assert (await stranger.get("http://test/guide/keys.html", headers=tag)).status_code == 304
    assert first.headers["cache-control"] == "no-cache"


@pytest.mark.parametrize("name", ["nothing.html", "..%2Frouter.py", "%2e%2e/router.py"])
async def test_other_names_are_not_found(stranger, name: str) -> None:
    answer = await stranger.get(f"http://test/guide/{name}")

    assert answer.status_code == 404
    assert answer.json()["code"] == "path_not_found"


async def test_service_without_a_built_guide_says_how_to_build_it(tmp_path: Path) -> None:
    async with client_of(serving(tmp_path / "site"), None) as client:
        answer = await client.get("http://test/guide/")

    assert answer.status_code == 404
    assert "make guide" in answer.json()["detail"]


async def test_service_has_the_guide(app: FastAPI) -> None:
    async with client_of(app, None) as client:
        answer = await client.get("http://test/guide/")

    # A checkout in which nothing was built says so; both come from the same place.
    assert answer.status_code == 200 or "make guide" in answer.json()["detail"]


async def search(page: Page, text: str) -> None:
    """Type into the search, which is there when the page's script has run; before, "/" is lost."""
    field = page.get_by_role("dialog", name="Search").get_by_role("combobox")
    async with asyncio.timeout(PATIENCE):
        while not await field.is_visible():
            await page.keyboard.press("/")
            await asyncio.sleep(0.1)
    await field.fill(text)


async def test_guide_is_read_and_searched_in_a_browser(guide_site: Path) -> None:
    executable = find_chromium()
    if executable is None:
        pytest.skip("Left out: no Chromium is installed (Debian: apt-get install chromium).")
    async with listening(serving(guide_site)) as port, browser_at(executable) as browser:
        watch = Watch(f"http://127.0.0.1:{port}")
        async with context_of(browser, watch._address, None, watch) as context:
            page = await context.new_page()
            await page.goto("/guide/")
            await page.get_by_role("link", name="Quickstart").first.click()
            await page.wait_for_url("**/getting-started.html")
            await search(page, "watermark")
            await page.locator("mark", has_text="watermark").first.wait_for()
        watch.check()
