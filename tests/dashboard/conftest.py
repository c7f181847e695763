"""A browser on the service. Tests that need one are left out, and say so, where there is none."""

from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from playwright.async_api import Browser, BrowserContext, Page, expect

from app.runtime import Runtime
from tests.support.dashboard import AXE, Watch, as_new, browser_at, context_of, find_chromium
from tests.support.service import listening
from tests.support.tenants import Caller
from tests.support.working import working

# Milliseconds. Conditions are looked at all the time: a long limit costs nothing where they hold.
expect.set_options(timeout=60_000)


@pytest.fixture(scope="session")
async def browser() -> AsyncIterator[Browser]:
    """One in each process of tests."""
    executable = find_chromium()
    if executable is None:
        pytest.skip("Left out: no Chromium is installed (Debian: apt-get install chromium).")
    async with browser_at(executable) as opened:
        yield opened


@pytest.fixture(scope="session")
async def address(app: FastAPI) -> AsyncIterator[str]:
    """Where the service of the tests listens."""
    async with listening(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture(scope="session")
def watching(address: str) -> Watch:
    """Hears what the browser complains about, also in the tab that tests share."""
    return Watch(address)


@pytest.fixture
def watch(watching: Watch) -> Watch:
    """What the browser of this test complains about; it fails at the end."""
    watching.begin_anew()
    return watching


@pytest.fixture
async def context(
    browser: Browser, address: str, acme: Caller, watch: Watch
) -> AsyncIterator[BrowserContext]:
    """A browser profile whose tabs are signed in as an admin of `acme`."""
    async with context_of(browser, address, acme.key, watch) as opened:
        yield opened
    watch.check()


@pytest.fixture(scope="session")
async def tab(browser: Browser, address: str, watching: Watch) -> AsyncIterator[Page]:
    """One for all tests: it opens the dashboard in a third of the time that a new one takes."""
    async with context_of(browser, address, None, watching) as opened:
        yield await opened.new_page()


@pytest.fixture
async def page(tab: Page, acme: Caller, watch: Watch) -> AsyncIterator[Page]:
    """A tab signed in as an admin of `acme`: `open_page(page, "#/keys")` loads the dashboard.

    It has nothing of the test before. A clock and further tabs take a `context`.
    """
    async with as_new(tab, acme.key):
        yield tab
        watch.check()


@pytest.fixture
def has_axe() -> None:
    """For tests that call `axe`."""
    if not AXE.exists():
        pytest.skip("Left out: axe-core is not installed (npm ci in dashboard/).")


@pytest.fixture
async def worker(runtime: Runtime, dsn: str) -> AsyncIterator[None]:
    async with working(runtime, dsn):
        yield
