"""How fast the pages of the dashboard load: `python -m benchmarks.dashboard [--quick] [--out F]`.

A Chromium with an empty profile opens each page on what `kemem demo` leaves, and in turn a bare
page that the same process serves: a paragraph, whose script asks for one answer. What the machine
does beside slows both. Times and bytes are the browser's own; nothing runs in a page to measure it.
"""

import argparse
import asyncio
import os
import statistics
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import httpx
from fastapi import FastAPI
from fastapi.responses import HTMLResponse, Response
from playwright.async_api import Browser, Page
from pydantic import SecretStr

from app.main import application
from app.settings import Settings
from benchmarks.database import open_cluster
from benchmarks.processes import DSN, ROOT, server
from benchmarks.publishing import load_of, publish
from benchmarks.serving import serve
from kemem.address import KEY_VARIABLE, URL_VARIABLE
from tests.support.dashboard import browser_at, find_chromium, signed_in

ROUNDS: Final = 10
QUICK_ROUNDS: Final = 2
WARM_UP: Final = 1
FIRST_PAGE: Final = "Overview"
GOAL_BYTES: Final = 300_000
GOAL_MS: Final = 1_000

BARE: Final = "/bare"
_BARE_PAGE: Final = (
    '<!doctype html><title>Bare</title><link rel="icon" href="data:,"><p id="app">Bare</p>'
    f'<script type="module" src="{BARE}/script.js"></script>'
)
_BARE_SCRIPT: Final = (
    f'document.getElementById("app").textContent = await (await fetch("{BARE}/answer")).text();'
)

# Entries of the browser's own timeline, once no request is left.
_TIMELINE: Final = """() => {
  const loaded = ["navigation", "resource"].flatMap((type) => performance.getEntriesByType(type));
  return {
    requests: loaded.length,
    bytes: loaded.reduce((sum, entry) => sum + entry.transferSize, 0),
    content_ms: performance.getEntriesByName("first-contentful-paint")[0].startTime,
    answer_ms: Math.max(...loaded.map((entry) => entry.responseEnd)),
  };
}"""

Figures = dict[str, float]


def service(dsn: str) -> FastAPI:
    """KeMem with its worker, and the bare page."""
    app = application(Settings(_env_file=None, database_url=SecretStr(dsn)))

    @app.get(BARE)
    async def page() -> Response:
        return HTMLResponse(_BARE_PAGE)

    @app.get(f"{BARE}/script.js")
    async def script() -> Response:
        return Response(_BARE_SCRIPT, media_type="text/javascript")

    @app.get(f"{BARE}/answer")
    async def answer() -> Response:
        return Response("Answered", media_type="text/plain")

    return app


async def play_demo(address: str, key: str) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "app.cli.main", "demo", cwd=ROOT, stdout=asyncio.subprocess.DEVNULL,
        env=os.environ | {URL_VARIABLE: address, KEY_VARIABLE: key},
    )  # fmt: skip
    if await process.wait():
        raise RuntimeError("the demo failed")


async def pages_of(address: str, key: str) -> dict[str, str]:
    """Addresses of all pages by name, those of one thing for what the demo left."""
    headers = {"Authorization": f"Bearer {key}"}
    async with httpx.AsyncClient(base_url=f"{address}/v1", headers=headers) as client:
        memory = (await client.get("/memories")).json()["items"][0]
        session = (await client.get("/sessions")).json()["items"][0]["session_id"]
    user = memory["user_id"]
    return {
        FIRST_PAGE: "overview",
        "People": "people",
        "a person": f"people/{user}",
        "a memory": f"people/{user}/{memory['memory_id']}",
        "Search": f"search?query=tea&user_id={user}",
        "Conversations": "conversation",
        "a conversation": f"conversation/{session}",
        "Gate": "gate",
        "Jobs": "jobs",
        "Graph": f"graph?user_id={user}",
        "Forgetting": "forgetting",
        "Keys": "keys",
        "Webhooks": "webhooks",
        "Evaluation": "evaluation",
    }


async def loaded(browser: Browser, address: str, key: str, path: str) -> Figures:
    """What one load takes with nothing kept from the last."""
    context = await browser.new_context(base_url=address)
    try:
        await signed_in(context, key)
        page: Page = await context.new_page()
        await page.goto(path, wait_until="networkidle")
        return dict(await page.evaluate(_TIMELINE))
    finally:
        await context.close()


async def measure(chromium: str, rounds: int) -> dict[str, Any]:
    load_before = os.getloadavg()[0]
    async with (
        open_cluster() as cluster,
        server("dashboard", "--serve", dsn=cluster.dsn) as served,
        browser_at(chromium) as browser,
    ):
        address = f"http://127.0.0.1:{served.port}"
        await play_demo(address, cluster.key)
        pages = await pages_of(address, cluster.key)
        taken: dict[str, tuple[list[Figures], list[Figures]]] = {name: ([], []) for name in pages}
        for number in range(WARM_UP + rounds):
            for name, place in pages.items():
                ours = await loaded(browser, address, cluster.key, f"/dashboard#/{place}")
                bare = await loaded(browser, address, cluster.key, BARE)
                if number >= WARM_UP:
                    taken[name][0].append(ours)
                    taken[name][1].append(bare)
        version = browser.version
    return {
        "chromium": version,
        "rounds": rounds,
        "load_before": load_before,
        "load_after": os.getloadavg()[0],
        "pages": {
            name: {"KeMem": median(ours), "bare": median(bare)}
            for name, (ours, bare) in taken.items()
        },
    }


def median(rounds: Sequence[Figures]) -> Figures:
    return {name: statistics.median(one[name] for one in rounds) for name in rounds[0]}


def markdown(found: dict[str, Any]) -> str:
    first = found["pages"][FIRST_PAGE]["KeMem"]
    lines = [
        "# Loading the dashboard",
        "",
        f"The first page takes {first['bytes'] / 1000:.0f} kB (goal: {GOAL_BYTES / 1000:.0f}), and "
        f"its last answer is there after {first['answer_ms']:.0f} ms (goal: {GOAL_MS:,}).",
        "",
        f"Chromium {found['chromium']} without a window and with an empty profile opens each page "
        "on what `kemem demo` leaves, in turn with a bare page of the same process: a paragraph "
        "whose script asks for one answer. Times begin with the navigation, bytes are as sent, "
        f"with headers. Median of {found['rounds']} rounds after a first that is not counted.",
        "",
        "| page | requests | kB | first content, ms | bare | last answer, ms | bare | times bare |",
        "|:--|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for name, of_page in found["pages"].items():
        ours, bare = of_page["KeMem"], of_page["bare"]
        lines.append(
            f"| {name} | {ours['requests']:.0f} | {ours['bytes'] / 1000:.0f} "
            f"| {ours['content_ms']:.0f} | {bare['content_ms']:.0f} "
            f"| {ours['answer_ms']:.0f} | {bare['answer_ms']:.0f} "
            f"| {ours['answer_ms'] / bare['answer_ms']:.1f} |"
        )
    lines += [
        "",
        f"{load_of(found)} Service, PostgreSQL and browser run on it.",
        "",
    ]
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_ROUNDS} rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/dashboard.json"))
    parser.add_argument("--serve", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(service(os.environ[DSN]))
        return
    chromium = find_chromium()
    if chromium is None:
        sys.exit("No Chromium is installed (Debian: apt-get install chromium).")
    found = asyncio.run(measure(chromium, QUICK_ROUNDS if given.quick else ROUNDS))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
