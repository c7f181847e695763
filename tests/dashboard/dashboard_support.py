"""What tests of several pages need."""

from typing import Any, Final

from httpx import AsyncClient
from playwright.async_api import Locator, Page

from tests.support.api import append, ok
from tests.support.working import extracted

HOSTILE: Final = (
    "<script>window.ran = 1</script><img src=x onerror='window.ran = 1'> is her handle."
)


async def told(client: AsyncClient) -> dict[str, Any]:
    """A memory that was read from the session `talk`, and replaced an older one; needs a worker."""
    await append(client, "talk", "I live in Munich.", {"role": "assistant", "content": "Noted."})
    await extracted(client, "talk")
    await append(
        client, "talk", "What is new?", "By the way, I moved to Hamburg.",
        {"role": "assistant", "content": "How do you like it there?"},
    )  # fmt: skip
    await extracted(client, "talk")
    [memory] = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
    return memory


async def nothing_ran(page: Page) -> bool:
    """Whether no part of a text became an element or was run."""
    ran = await page.evaluate("() => 'ran' in window")
    return not ran and await page.locator("main img, main script").count() == 0


def dialog(page: Page) -> Locator:
    return page.get_by_role("dialog")


def section(page: Page, heading: str) -> Locator:
    """The panel with this heading."""
    return page.locator("section").filter(has=page.get_by_role("heading", name=heading, exact=True))
