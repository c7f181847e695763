"""What tests of the dashboard need: a browser, what it complained about, accessibility."""

import json
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from playwright.async_api import (
    Browser,
    BrowserContext,
    ConsoleMessage,
    Page,
    Request,
    async_playwright,
)

from tests.support.patience import PATIENCE

ROOT: Final = Path(__file__).parents[2]
AXE: Final = ROOT / "dashboard" / "node_modules" / "axe-core" / "axe.min.js"

_ARGUMENTS: Final = (
    "--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--no-first-run",
)  # fmt: skip
_KEY_PLACE: Final = "kemem.key"


def find_chromium() -> str | None:
    """Where a Chromium is installed; None where there is none."""
    found = (shutil.which(name) for name in ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, found), None)


@asynccontextmanager
async def browser_at(executable: str) -> AsyncIterator[Browser]:
    """A browser with an empty profile, which asks nobody for updates."""
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=executable, args=list(_ARGUMENTS)
        )
        yield browser
        await browser.close()


class Watch:
    """What a browser complained about, and which hosts it asked."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._faults: list[str] = []
        self._refusals: set[str] = set()

    def allow_refusals(self, *statuses: int) -> None:
        """Let the API answer with these statuses of failure from now on."""
        self._refusals.update(f"status of {status} " for status in statuses)

    def allow_failed_requests(self) -> None:
        """Let requests get no answer from now on."""
        self._refusals.add("net::")

    def begin_anew(self) -> None:
        """For another test: nothing was complained about, and every refusal counts."""
        self._faults.clear()
        self._refusals.clear()

    async def begin(self, context: BrowserContext) -> None:
        # The page's own policy does not bind what the browser's driver adds.
        await context.expose_function("kememViolation", self._violated)
        await context.add_init_script(
            "addEventListener('securitypolicyviolation', (event) => kememViolation("
            "`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sample}`), true)"
        )
        context.on("request", self._asked)
        context.on("console", self._said)
        context.on("weberror", lambda error: self._faults.append(f"thrown: {error.error}"))

    def _violated(self, what: str) -> None:
        self._faults.append(what)

    def _asked(self, request: Request) -> None:
        if not request.url.startswith((f"{self._address}/", "blob:")):
            self._faults.append(f"asked another host: {request.url}")

    def _said(self, message: ConsoleMessage) -> None:
        if message.type not in {"error", "warning"}:
            return
        text, where = message.text, message.location.get("url", "")
        if where.endswith("/favicon.ico"):
            # Of what the service answers without a page: a page of the dashboard names its icon.
            return
        if text.startswith("Failed to load resource") and any(
            refusal in text for refusal in self._refusals
        ):
            return
        self._faults.append(f"{message.type}: {text} ({where})")

    def check(self) -> None:
        """Fail if there was anything that a reader of the console would see."""
        assert not self._faults, "\n".join(self._faults)


@asynccontextmanager
async def context_of(
    browser: Browser, address: str, key: str | None, watch: Watch, **options: Any
) -> AsyncIterator[BrowserContext]:
    """A profile of its own for the service at `address`; signed in when there is a key."""
    defaults: dict[str, Any] = {"locale": "en-GB", "timezone_id": "UTC"}
    context = await browser.new_context(base_url=address, **(defaults | options))
    context.set_default_timeout(PATIENCE * 1000)
    await watch.begin(context)
    if key is not None:
        await signed_in(context, key)
    try:
        yield context
    finally:
        await context.close()


async def signed_in(context: BrowserContext, key: str) -> None:
    """Let every new tab of the profile begin with the key."""
    kept = f"{json.dumps(_KEY_PLACE)}, {json.dumps(key)}"
    await context.add_init_script(
        # The empty page of a new tab has no storage. A test may sign out.
        "if (location.protocol === 'http:' && !sessionStorage.getItem('tests.begun')) {"
        f" sessionStorage.setItem({kept}); sessionStorage.setItem('tests.begun', 'yes'); }}"
    )


@asynccontextmanager
async def as_new(tab: Page, key: str) -> AsyncIterator[None]:
    """For the time of the block the tab is signed in, with nothing of who used it before."""
    await tab.set_viewport_size({"width": 1280, "height": 720})
    # Whatever the service answers has its storage.
    await tab.goto("/livez")
    await tab.evaluate(
        "([place, key]) => { localStorage.clear(); sessionStorage.clear();"
        " sessionStorage.setItem(place, key); }",
        [_KEY_PLACE, key],
    )
    try:
        yield
    finally:
        await tab.unroute_all(behavior="ignoreErrors")
        await tab.goto("about:blank")


async def open_page(page: Page, hash_: str) -> None:
    """Go to a page of the dashboard, as `#/keys`, and wait until it has loaded what it shows."""
    await page.goto(f"/dashboard{hash_}")
    await settled(page)


async def settled(page: Page) -> None:
    """Wait until a heading is there, nothing is loading any more, and the page listens."""
    await page.locator("h1").first.wait_for()
    await page.wait_for_function("() => !document.querySelector('.loading, [aria-busy=\"true\"]')")
    await effective(page)


async def effective(page: Page) -> None:
    """Wait until what the page does behind a frame is done: charts, and listeners of the window."""
    await page.evaluate(
        "() => new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
    )


@cache
def _axe() -> str:
    return AXE.read_text(encoding="utf-8")


async def axe(page: Page) -> None:
    """Fail on serious findings of axe-core; AXE must exist."""
    await page.evaluate(_axe())
    found = await page.evaluate(
        "async () => (await axe.run(document, {resultTypes: ['violations']})).violations"
    )
    serious = [
        f"{one['id']}: {one['help']}: {[node['html'][:160] for node in one['nodes']]}"
        for one in found
        if one["impact"] in {"serious", "critical"}
    ]
    assert not serious, "\n".join(serious)
