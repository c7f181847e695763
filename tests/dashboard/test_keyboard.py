"""Every control of every page is reached by the keyboard alone, is seen, and keeps the focus."""

from typing import Any, Final

import pytest
from httpx import AsyncClient
from playwright.async_api import Page, expect

from tests.dashboard.dashboard_support import dialog, told
from tests.support.api import save
from tests.support.dashboard import open_page, settled

MOST_STOPS: Final = 500
"""Far more than any page here has."""

ADDRESSES: Final = (
    "#/overview", "#/people", "#/people/ana", "#/people/ana?tab=memories",
    "#/people/ana?tab=data", "#/search?query=Hamburg&user_id=ana", "#/conversation/talk", "#/gate",
    "#/jobs", "#/graph", "#/forgetting", "#/keys", "#/webhooks", "#/evaluation",
)  # fmt: skip

# Marks what can be used now, and says how much there is.
CONTROLS: Final = """() => [...document.querySelectorAll(
    'main :is(button, a[href], input, select, textarea, summary)')]
  .filter((each) => !each.disabled && each.tabIndex >= 0 && each.checkVisibility()
    && (each.tagName === 'SUMMARY' || !each.closest('details:not([open])')))
  .map((each, place) => { each.dataset.place = place; return each.outerHTML.slice(0, 120); })"""
FOCUSED: Final = """() => {
  const { outlineStyle, outlineWidth } = getComputedStyle(document.activeElement);
  return {
    main: document.activeElement.closest('main') !== null,
    place: document.activeElement.dataset.place ?? null,
    seen: outlineStyle !== 'none' && parseFloat(outlineWidth) > 0,
  };
}"""


async def tab_through(page: Page) -> list[dict[str, Any]]:
    """Where the focus was, from the heading to the end of the page.

    Raises:
        AssertionError: the focus does not get out of the page.

    """
    await page.locator("h1").click()
    stops: list[dict[str, Any]] = []
    while len(stops) < MOST_STOPS:
        await page.keyboard.press("Tab")
        stop = await page.evaluate(FOCUSED)
        if not stop["main"]:
            return stops
        stops.append(stop)
    raise AssertionError(("the focus is trapped", stops[-3:]))


async def test_tab_reaches_every_control_and_shows_where_it_is(
    page: Page, client: AsyncClient, worker: None
) -> None:
    await told(client)
    await page.set_viewport_size({"width": 360, "height": 740})
    for address in ADDRESSES:
        await open_page(page, address)
        if address == "#/jobs":
            # What it updates by itself has no marks.
            await page.get_by_role("button", name="Pause updates").press("Enter")
            await settled(page)
        controls = await page.evaluate(CONTROLS)
        stops = await tab_through(page)

        reached = {stop["place"] for stop in stops}
        lost = [html for place, html in enumerate(controls) if str(place) not in reached]
        assert not lost, (address, lost)
        assert all(stop["seen"] for stop in stops), (address, stops)


@pytest.mark.parametrize(
    ("where", "name", "done"),
    [
        ("#/people/ana", "Derive it now", "Ordered"),
        ("#/conversation/talk", "Extract memories now", "Everything said so far is read"),
    ],
)
async def test_pressed_button_keeps_the_focus(
    page: Page, client: AsyncClient, where: str, name: str, done: str
) -> None:
    await save(client, "She drinks tea.", session_id="talk")
    await open_page(page, where)
    button = page.get_by_role("button", name=name)

    await button.press("Enter")

    await expect(page.get_by_role("status").filter(has_text=done)).to_be_visible()
    await expect(button).to_be_focused()


async def test_turned_page_keeps_the_focus(page: Page, client: AsyncClient) -> None:
    for number in range(51):
        await save(client, f"Her locker has the number {number}.")
    await open_page(page, "#/people/ana?tab=memories")
    following = page.get_by_role("button", name="Next page")

    await following.press("Enter")

    await expect(page.get_by_text("Page 2", exact=True)).to_be_visible()
    await expect(following).to_be_disabled()
    await expect(following).to_be_focused()
    await following.press("Enter")
    await settled(page)
    await expect(page.get_by_text("Page 2", exact=True)).to_be_visible()
    await expect(following).to_be_focused()


async def test_dialog_takes_the_focus_and_gives_it_back(page: Page, client: AsyncClient) -> None:
    await save(client, "She drinks tea.")
    await open_page(page, "#/people/ana")
    button = page.get_by_role("button", name="Write a value")

    await button.press("Enter")
    await expect(dialog(page).locator(":focus")).to_have_count(1)
    await page.keyboard.press("Escape")

    await expect(button).to_be_focused()
