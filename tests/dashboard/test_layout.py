"""The frame around all pages: signing in and out, navigation, language, narrow screens."""

import re

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Page, expect

from app.integrations.dashboard.router import PAGE, find_built
from tests.checkpoints.checkpoints_support import asking
from tests.support.api import append, ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.tenants import Caller

PAGES = (
    "overview", "people", "search", "conversation", "gate", "jobs", "graph", "forgetting", "keys",
    "webhooks", "evaluation",
)  # fmt: skip


async def test_pasted_key_signs_in_this_tab_alone(
    browser: Browser, address: str, acme: Caller, watch: Watch
) -> None:
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto("/dashboard#/keys")
        await page.get_by_label("Key", exact=True).fill(f" {acme.key} ")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", level=1)).to_have_text("Keys")
        assert await page.evaluate("JSON.stringify(localStorage)") == "{}"
        assert await context.cookies() == []

        another = await context.new_page()
        await another.goto("/dashboard#/keys")
        await expect(another.get_by_role("button", name="Sign in")).to_be_visible()
    watch.check()


@pytest.mark.parametrize("text", ["hello 👋", "kem_1_2\u200b3", "a key", "password"])
async def test_what_is_no_key_signs_nobody_in(
    browser: Browser, address: str, watch: Watch, text: str
) -> None:
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto("/dashboard")
        await page.get_by_label("Key", exact=True).fill(text)
        await page.get_by_role("button", name="Sign in").click()

        await expect(page.get_by_role("alert")).to_contain_text("This is no key")
        assert await page.evaluate("sessionStorage.getItem('kemem.key')") is None
    watch.check()


async def test_pasted_header_signs_in(
    browser: Browser, address: str, acme: Caller, watch: Watch
) -> None:
    async with context_of(browser, address, None, watch) as context:
        page = await context.new_page()
        await page.goto("/dashboard#/keys")
        await page.get_by_label("Key", exact=True).fill(f"Bearer {acme.key}")
        await page.get_by_role("button", name="Sign in").click()

        await expect(page.get_by_role("heading", level=1)).to_have_text("Keys")
        await settled(page)
    watch.check()


async def test_signing_out_leaves_no_key(page: Page) -> None:
    await open_page(page, "")
    await page.get_by_role("button", name="Sign out").click()

    await expect(page.get_by_role("button", name="Sign in")).to_be_visible()
    assert await page.evaluate("sessionStorage.getItem('kemem.key')") is None


async def test_keyboard_reaches_every_page(page: Page) -> None:
    await open_page(page, "")
    await page.locator("body").press("Tab")
    await expect(page.get_by_text("Skip to the content")).to_be_focused()
    links = page.get_by_role("navigation").get_by_role("link")
    assert await links.count() == len(PAGES)
    for place, name in enumerate(PAGES):
        await links.nth(place).focus()
        await page.keyboard.press("Enter")
        await expect(page).to_have_url(re.compile(f"#/{name}$"))
        await expect(links.nth(place)).to_have_attribute("aria-current", "page")
        await expect(page.get_by_role("main")).to_be_focused() if place else None
        await settled(page)


async def test_unknown_page_is_named(page: Page) -> None:
    await page.goto("/dashboard#/nothing")

    await expect(page.get_by_role("main")).to_have_text("There is no such page.")


async def test_language_is_switched_and_kept(page: Page) -> None:
    await open_page(page, "")
    await page.get_by_label("Language").select_option("zh")

    await expect(page.get_by_role("heading", level=1)).to_have_text("概览")
    assert await page.evaluate("document.documentElement.lang") == "zh-CN"
    await page.reload()
    await expect(page.get_by_role("link", name="密钥")).to_be_visible()


async def test_browser_in_chinese_begins_in_chinese(
    browser: Browser, address: str, acme: Caller, watch: Watch
) -> None:
    async with context_of(browser, address, acme.key, watch, locale="zh-CN") as context:
        page = await context.new_page()
        await open_page(page, "#/webhooks")
        await expect(page.get_by_role("button", name="退出登录")).to_be_visible()
    watch.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_screens_need_no_scrolling_sideways(
    browser: Browser, address: str, acme: Caller, watch: Watch, scheme: str, has_axe: None
) -> None:
    size = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=size, color_scheme=scheme
    ) as context:
        page = await context.new_page()
        for name in PAGES:
            await open_page(page, f"#/{name}")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert wide <= 360, name
            await axe(page)
    watch.check()


# Words of up to twelve characters that stand on more than one line.
BROKEN = """() => {
  const found = [];
  const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    for (const { 0: word, index } of node.data.matchAll(/(?<!\\S)[a-z]{2,12}(?!\\S)/gi)) {
      const range = document.createRange();
      range.setStart(node, index);
      range.setEnd(node, index + word.length);
      const lines = new Set([...range.getClientRects()].map((box) => Math.round(box.top)));
      if (lines.size > 1) found.push(word);
    }
  }
  return found;
}"""


@pytest.mark.parametrize("width", [360, 800])
async def test_long_names_break_and_no_usual_word_does(
    browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch, width: int
) -> None:
    long = "verylongname" * 5
    user = {"user_id": long, "user_name": long * 4, "external_id": long * 4}
    ok(await client.post("/users", json=user), 201)
    saved = await save(client, f"She drinks {long} tea.", user_id=long)
    await client.post("/memories", json={"messages": "Tea", "user_id": long, "infer": False})
    rating = {"rating": "wrong", "comment": long}
    path = f"/memories/{saved['memory_id']}/feedback"
    ok(await client.post(path, json=rating), 201)
    await append(client, f"s-{long}", f"Hello {long}.", asking(long), user_id=long)
    relation = {"user_id": long, "source": long, "relation": "works_at", "destination": "Siemens"}
    related = ok(await client.post("/graph/relations", json=relation), 201)
    ok(await client.post("/webhooks", json={"url": f"https://example.org/{long}"}), 201)
    async with context_of(
        browser, address, acme.key, watch, viewport={"width": width, "height": 740}
    ) as context:
        page = await context.new_page()
        for place in (
            *PAGES, f"people/{long}", f"people/{long}?tab=memories", f"people/{long}?tab=sessions",
            f"people/{long}/{saved['memory_id']}", f"conversation/s-{long}",
            f"conversation/s-{long}?tab=approvals", f"graph/{related['source']['entity_id']}",
        ):  # fmt: skip
            await open_page(page, f"#/{place}")
            wide = await page.evaluate("document.documentElement.scrollWidth")
            assert (wide <= width, await page.evaluate(BROKEN)) == (True, []), place
    watch.check()


async def test_key_that_the_service_refuses_is_given_up_with_its_sentence(
    browser: Browser, address: str, watch: Watch
) -> None:
    watch.allow_refusals(401)
    async with context_of(browser, address, "kem_nobody", watch) as context:
        page = await context.new_page()
        await page.goto("/dashboard#/keys")

        await expect(page.get_by_role("alert")).to_contain_text("unknown_key")
        assert await page.evaluate("sessionStorage.getItem('kemem.key')") is None
    watch.check()


async def test_service_that_is_gone_is_said_and_asked_again(page: Page, watch: Watch) -> None:
    """The page keeps the key: nothing says that it is not good."""
    await page.route("**/v1/**", lambda route: route.abort())
    watch.allow_failed_requests()
    await open_page(page, "#/keys")
    await expect(page.get_by_role("alert")).to_contain_text("did not answer")

    await page.unroute("**/v1/**")
    await page.get_by_role("button", name="Try again").click()

    await expect(page.get_by_role("alert")).to_have_count(0)
    await expect(page.get_by_role("button", name="Sign out")).to_be_visible()


async def test_page_that_does_not_come_says_whether_the_service_is_there(
    page: Page, watch: Watch
) -> None:
    await open_page(page, "")
    watch.allow_failed_requests()
    await page.route("**/assets/people-*.js", lambda route: route.abort())
    await page.get_by_role("link", name="People", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("the service was updated meanwhile")

    await page.route("**/*", lambda route: route.abort())
    await page.get_by_role("link", name="Jobs", exact=True).click()
    await expect(page.get_by_role("alert")).to_contain_text("The service did not answer.")


async def test_first_page_is_small(
    browser: Browser, address: str, acme: Caller, watch: Watch
) -> None:
    """Whatever the browser asks for until the first page is shown, compressed."""
    names = [PAGE]
    start = f"{address}/dashboard/assets/"
    async with context_of(browser, address, acme.key, watch) as context:
        page = await context.new_page()
        context.on(
            "request",
            lambda request: (
                names.append(request.url.removeprefix(start))
                if request.url.startswith(start)
                else None
            ),
        )
        await open_page(page, "")
        await expect(page.get_by_role("heading", level=1)).to_have_text("Overview")
        assert await page.locator("link[rel=icon]").count() == 1
    watch.check()
    files = [find_built(name) for name in set(names)]
    assert None not in files
    assert any(name.startswith("overview-") for name in names)
    assert sum(len(file.compressed) for file in files if file) <= 300_000


@pytest.mark.parametrize("language", ["en-GB", "zh-CN"])
async def test_fields_of_a_row_are_equally_high(
    browser: Browser, address: str, acme: Caller, watch: Watch, language: str
) -> None:
    """Else the labels above them stand at different heights."""
    rows = """() => Array.from(document.querySelectorAll(".filters"), (row) => Array.from(
        row.querySelectorAll("label > :is(select, input:not([type=checkbox], [type=radio]))"),
        (field) => field.getBoundingClientRect().height))"""
    mixed = 0
    async with context_of(browser, address, acme.key, watch, locale=language) as context:
        page = await context.new_page()
        for name in PAGES:
            await open_page(page, f"#/{name}")
            for heights in await page.evaluate(rows):
                shown = [height for height in heights if height]
                mixed += len(shown) > 1
                assert max(shown, default=0) - min(shown, default=0) < 0.5, (name, heights)
    watch.check()
    assert mixed >= 3
