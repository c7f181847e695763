"""Take the screenshots of docs/ anew: `make screenshots`. Needs a Chromium.

They show what `kemem demo` leaves in a service that is started for them, on a folder that is
removed again.
"""

import asyncio
import base64
import re
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final

import httpx
from playwright.async_api import Page, ViewportSize

from tests.support.dashboard import browser_at, find_chromium, open_page

ROOT: Final = Path(__file__).parents[1]
DOCS: Final = ROOT / "docs"
SIZE: Final = ViewportSize(width=1100, height=760)
PATIENCE_SECONDS: Final = 120
QUALITY: Final = 80
MOST_BYTES: Final = 80_000
# Where a page is scrolled to, so that its answer is in the picture.
BEGINS: Final = {
    "conversation": "[role=tablist]",
    "gate": "main section:has(form.filters)",
    "graph": "main section:has(.graph-drawing)",
}
KEMEM: Final = (sys.executable, "-m", "app.cli.main")
_LINK: Final = re.compile(r"http://\S+/dashboard#code=\S+")
_KEY: Final = "sessionStorage.getItem('kemem.key')"


@asynccontextmanager
async def started(folder: str) -> AsyncIterator[str]:
    """A service of its own; the link that signs in."""
    process = await asyncio.create_subprocess_exec(
        *KEMEM, "serve", "--port", "0", "--data-dir", folder, cwd=ROOT,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.DEVNULL,
    )  # fmt: skip
    try:
        yield await _link(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


async def _link(process: asyncio.subprocess.Process) -> str:
    if process.stdout is not None:
        async for line in process.stdout:
            if found := _LINK.search(line.decode()):
                return found[0]
    raise RuntimeError("the service did not start")


async def play_demo(folder: str) -> None:
    process = await asyncio.create_subprocess_exec(
        *KEMEM, "demo", "--data-dir", folder, cwd=ROOT, stdout=asyncio.subprocess.DEVNULL
    )
    if await process.wait():
        raise RuntimeError("the demo failed")


async def find_places(client: httpx.AsyncClient) -> dict[str, str]:
    """The pages by the names of their files, once what was said is read and the profile made."""

    async def listed(path: str, **params: str) -> list[dict[str, Any]]:
        answer = await client.get(path, params=params)
        return list(answer.raise_for_status().json()["items"])

    [user] = await listed("/users", starts_with="李明")
    user_id = user["user_id"]
    [session_id] = [
        each["session_id"]
        for each in await listed("/sessions", user_id=user_id)
        if each["session_id"].endswith("friday")
    ]
    read = await client.post(f"/sessions/{session_id}/extract", json={})
    await finished(client, read.raise_for_status().json()["job_id"])
    ordered = await client.post(f"/users/{user_id}/profile/derive")
    await finished(client, ordered.raise_for_status().json()["job_id"])
    [person] = [each for each in await listed("/graph/entities") if each["entity_type"] == "person"]
    return {
        "person": f"people/{user_id}",
        "search": f"search?query=Who+does+she+work+for%3F&user_id={user_id}",
        "conversation": f"conversation/{session_id}?tab=context",
        "gate": "gate",
        "graph": f"graph/{person['entity_id']}",
        "evaluation": "evaluation",
        # Signing in has opened it; last, so that it asks again.
        "overview": "overview",
    }


async def finished(client: httpx.AsyncClient, job_id: str) -> None:
    for _ in range(PATIENCE_SECONDS):
        job = await client.get(f"/jobs/{job_id}")
        if job.raise_for_status().json()["status"] == "succeeded":
            return
        await asyncio.sleep(1)
    raise RuntimeError(f"{job_id} did not succeed")


async def take(page: Page, place: str) -> bytes:
    """As WebP, which no other way of Playwright writes."""
    await open_page(page, f"#/{place}")
    await page.wait_for_load_state("networkidle")
    begin = page.locator(BEGINS.get(place.partition("/")[0], "body"))
    await begin.first.evaluate("(element) => element.scrollIntoView()")
    session = await page.context.new_cdp_session(page)
    shot = await session.send("Page.captureScreenshot", {"format": "webp", "quality": QUALITY})
    return base64.b64decode(shot["data"])


async def take_all(chromium: str, folder: str) -> dict[str, bytes]:
    async with started(folder) as link, browser_at(chromium) as browser:
        await play_demo(folder)
        address = link.partition("/dashboard")[0]
        context = await browser.new_context(
            base_url=address, locale="en-GB", viewport=SIZE, color_scheme="light"
        )
        page = await context.new_page()
        await page.goto(link)
        await page.locator("h1").wait_for()
        headers = {"Authorization": f"Bearer {await page.evaluate(_KEY)}"}
        async with httpx.AsyncClient(
            base_url=f"{address}/v1", headers=headers, timeout=60
        ) as client:
            places = await find_places(client)
        return {name: await take(page, place) for name, place in places.items()}


def main() -> None:
    chromium = find_chromium()
    if chromium is None:
        sys.exit("No Chromium is installed (Debian: apt-get install chromium).")
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        # PostgreSQL does not run as root; the account it gets must reach its folder.
        Path(folder).chmod(0o755)
        taken = asyncio.run(take_all(chromium, f"{folder}/data"))
    for name, content in taken.items():
        if len(content) > MOST_BYTES:
            sys.exit(
                f"The screenshot of {name} has {len(content):,} bytes, more than {MOST_BYTES:,}."
            )
        file = DOCS / f"dashboard-{name}.webp"
        file.write_bytes(content)
        sys.stdout.write(f"{file.relative_to(ROOT)}  {len(content) / 1000:.0f} kB\n")


if __name__ == "__main__":
    main()
