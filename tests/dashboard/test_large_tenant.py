"""A tenant with many users, sessions and memories: pages show a part, and ask for no more.

`KEMEM_LARGE_MEMORIES` is how many memories there are, half of them of one user.
"""

import os
from collections.abc import AsyncIterator
from typing import Any, Final

import asyncpg
import pytest
from playwright.async_api import Browser, Page, Response, expect

from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.dashboard import Watch, context_of, open_page, settled
from tests.support.databases import migrated_database, served
from tests.support.large_tenant import Size, fill_tenant
from tests.support.service import listening, service
from tests.support.tenants import make_tenant

pytestmark = pytest.mark.slow

MEMORIES: Final = int(os.environ.get("KEMEM_LARGE_MEMORIES", "200000"))
SIZE: Final = Size(
    users=10_000,
    sessions=10_000,
    messages=400,
    memories=MEMORIES,
    of_first=MEMORIES // 2,
    verdicts=MEMORIES // 2,
)
MOST_ROWS: Final = 50
MOST_BYTES: Final = 300_000
"""Of all answers of one page."""

FIRST: Final = "user-0000000"
LISTS: Final = (
    "#/people", f"#/people/{FIRST}?tab=memories", f"#/people/{FIRST}?tab=sessions",
    "#/conversation", "#/gate",
)  # fmt: skip
PAGES: Final = (
    "#/overview", f"#/people/{FIRST}", "#/conversation/session-0000000", "#/jobs", "#/graph",
    "#/forgetting", "#/keys", "#/webhooks", "#/evaluation",
    f"#/search?query=green%20tea&user_id={FIRST}",
)  # fmt: skip


class Answers:
    """What the API answered to a page."""

    def __init__(self, page: Page) -> None:
        self._kept: list[Response] = []
        page.on("response", self._note)

    def _note(self, response: Response) -> None:
        self._kept.append(response)

    async def take(self) -> list[tuple[str, Any, int]]:
        """Path, content and bytes of the answers since the last call."""
        kept, self._kept[:] = list(self._kept), []
        answers = [each for each in kept if "/v1/" in each.url]
        return [
            (each.url.partition("/v1/")[2], await each.json(), len(await each.body()))
            for each in answers
        ]


@pytest.fixture(scope="module")
async def large(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[tuple[str, str]]:
    """Address and key of a service whose only tenant is large."""
    dsn = await migrated_database(postgres, "large_tenant")
    async with open_runtime(settings, served(dsn)) as runtime:
        tenant = await make_tenant(runtime)
    owner = await asyncpg.connect(postgres.superuser_dsn, database="large_tenant")
    await fill_tenant(owner, tenant.tenant_id, SIZE)
    await owner.close()
    async with service(dsn) as app, listening(app) as port:
        yield f"http://127.0.0.1:{port}", tenant.key


@pytest.fixture
async def page(browser: Browser, large: tuple[str, str]) -> AsyncIterator[Page]:
    address, key = large
    watch = Watch(address)
    async with context_of(browser, address, key, watch) as context:
        yield await context.new_page()
    watch.check()


def longest(content: Any) -> int:
    """Items of the longest list of an answer, days of statistics apart."""
    if isinstance(content, dict):
        return max((longest(value) for value in content.values()), default=0)
    if isinstance(content, list):
        days = all(isinstance(item, dict) and item.get("day") for item in content)
        return max([0 if days else len(content), *map(longest, content)])
    return 0


async def check(page: Page, answers: Answers) -> list[str]:
    """Fail if the page shows or asks for more than a part; the paths that it asked."""
    shown = await page.evaluate(
        "() => [...document.querySelectorAll('tbody, ul, ol')].map((list) => list.children.length)"
    )
    assert max(shown) <= MOST_ROWS, shown
    taken = await answers.take()
    lists = {path: longest(content) for path, content, _ in taken}
    assert all(number <= MOST_ROWS for number in lists.values()), lists
    sizes = {path: size for path, _, size in taken}
    assert sum(sizes.values()) <= MOST_BYTES, sizes
    return list(lists)


@pytest.mark.parametrize("address", [*LISTS, *PAGES])
async def test_page_shows_a_part(page: Page, address: str) -> None:
    answers = Answers(page)

    await open_page(page, address)

    assert 1 <= len(await check(page, answers)) <= 10
    assert await page.get_by_role("alert").count() == 0


@pytest.mark.parametrize("address", LISTS)
async def test_next_page_takes_the_place_of_the_first(page: Page, address: str) -> None:
    await open_page(page, address)
    answers = Answers(page)
    rows = page.locator(".table tbody tr")
    seen = set()
    for _ in range(3):
        seen.update(await rows.all_inner_texts())
        first = await rows.first.inner_text()
        await page.get_by_role("button", name="Next page").click()
        await expect(rows.first).not_to_have_text(first)
        await settled(page)
        assert not seen & set(await rows.all_inner_texts())
        assert len(await check(page, answers)) == 1


async def test_search_finds_a_page_at_a_time(page: Page) -> None:
    await open_page(page, f"#/search?user_id={FIRST}")
    answers = Answers(page)
    await page.get_by_role("searchbox").fill("Who repairs bicycles in Hamburg?")
    await page.get_by_role("button", name="Search").click()
    hits = page.locator("ol.entries > li")

    await expect(hits).to_have_count(10)
    await expect(hits.first).to_contain_text("repairs bicycles")
    assert await check(page, answers) == ["memories/search"]
