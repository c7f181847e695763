"""The page Gate: verdicts and why, refusals over time, a text tried by hand, storing anyway."""

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from tests.support.api import execute, ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page
from tests.support.tenants import Caller

HOSTILE = "<script>document.title='ran'</script><img src=x onerror=\"document.title='ran'\">"
CARD = "Her card is 4111 1111 1111 1111."


def verdicts(page: Page) -> Locator:
    """The rows of the list, without its head."""
    return page.get_by_role("table", name="Verdicts, newest first").locator("tbody tr")


def figures(page: Page) -> Locator:
    return page.get_by_role("table", name="Refusals by day and rule").locator("tbody tr")


async def refuse(client: AsyncClient, text: str, **more: object) -> None:
    body = {"messages": text, "user_id": "ana", "infer": False} | more
    response = await client.post("/memories", json=body)
    assert response.status_code in {409, 422}, response.text


async def test_gate_that_decided_nothing_is_explained(page: Page) -> None:
    await open_page(page, "#/gate")

    await expect(page.get_by_text("The gate has not decided anything yet.")).to_be_visible()
    await expect(page.get_by_text("Nothing was refused in this time.")).to_be_visible()


async def test_verdicts_show_text_rules_and_figures_and_nothing_sensitive(
    page: Page, client: AsyncClient, has_axe: None
) -> None:
    await save(client, "She keeps bees.")
    await refuse(client, "Tea")
    await refuse(client, CARD)
    await open_page(page, "#/gate")

    await expect(verdicts(page)).to_have_count(3)
    await expect(verdicts(page).nth(0)).to_contain_text("The text was not kept: it was sensitive.")
    await expect(verdicts(page).nth(1)).to_contain_text("length 3, minimum 5")
    await expect(verdicts(page).nth(2)).to_contain_text("stored")
    assert "4111" not in await page.content()
    await axe(page)


async def test_hostile_texts_are_shown_and_do_not_run(page: Page, client: AsyncClient) -> None:
    await save(client, f"She says {HOSTILE}", user_id="ana")
    await open_page(page, "#/gate")

    await expect(verdicts(page).first).to_contain_text(HOSTILE)
    assert await page.locator("main img, main script").count() == 0
    assert "ran" not in await page.title()


async def test_refusals_are_counted_by_rule_and_day(page: Page, client: AsyncClient) -> None:
    await save(client, "She keeps bees.")
    for text in ("Tea", "Oh", "She keeps  BEES.", CARD):
        await client.post("/memories", json={"messages": text, "user_id": "ana", "infer": False})
    stats = ok(await client.get("/stats/refusals"))["totals"]
    assert stats["by_code"]["too_short"] == 2
    await open_page(page, "#/gate")

    bars = page.get_by_role("list", name="Refusals by rule")
    await expect(bars.get_by_role("listitem").filter(has_text="too_short")).to_contain_text("2")
    await expect(bars.get_by_role("listitem").filter(has_text="sensitive")).to_contain_text("1")
    await expect(figures(page)).to_have_count(1)
    await expect(page.get_by_role("img", name="Refusals by day and rule")).to_be_visible()

    await page.get_by_role("combobox", name="Days").select_option("7")
    await expect(figures(page)).to_have_count(1)


async def test_list_is_filtered_by_rule_outcome_and_user(page: Page, client: AsyncClient) -> None:
    await save(client, "She keeps bees.")
    await save(client, "He plays the oboe.", user_id="ben")
    await refuse(client, "Tea")
    await refuse(client, CARD)
    await open_page(page, "#/gate")
    await expect(verdicts(page)).to_have_count(4)
    form = page.get_by_role("form", name="Filter verdicts")

    await form.get_by_label("Rule").fill("too_short")
    await page.keyboard.press("Enter")
    await expect(verdicts(page)).to_have_count(1)
    await expect(verdicts(page)).to_contain_text("Tea")
    await form.get_by_label("Rule").fill("")
    await form.get_by_role("combobox", name="Outcome").select_option("rejected")
    await form.get_by_role("button", name="Apply").click()
    await expect(verdicts(page)).to_have_count(2)
    await form.get_by_label("User id").fill("ben")
    await form.get_by_role("button", name="Apply").click()
    await expect(page.get_by_text("No verdict matches.")).to_be_visible()


async def test_rule_leads_to_its_refusals_of_the_days_that_are_counted(
    page: Page, client: AsyncClient, dsn: str
) -> None:
    await refuse(client, "Tea")
    await refuse(client, "Oh")
    [_, tea] = ok(await client.get("/memories/decisions"))["items"]
    past = "UPDATE gate_decisions SET create_time = create_time - interval '40 days' WHERE "
    await execute(dsn, past + "decision_id = $1", tea["decision_id"])
    await open_page(page, "#/gate")
    await expect(verdicts(page)).to_have_count(2)

    await page.get_by_role("link", name="too short too_short").click()

    await expect(verdicts(page)).to_have_count(1)
    await expect(verdicts(page)).to_contain_text("Oh")
    await page.get_by_label("From day (UTC)").fill("")
    await page.get_by_role("button", name="Apply").click()
    await expect(verdicts(page)).to_have_count(2)


async def test_long_list_is_paged(page: Page, client: AsyncClient, dsn: str) -> None:
    await refuse(client, "Tea")
    [decision] = ok(await client.get("/memories/decisions"))["items"]
    copied = (
        "INSERT INTO gate_decisions SELECT (jsonb_populate_record(d, jsonb_build_object("
        "'decision_id', 'gat_' || n, 'create_time', d.create_time - n * interval '1 second'))).*"
        " FROM gate_decisions AS d, generate_series(1, 70) AS n WHERE d.decision_id = $1"
    )
    await execute(dsn, copied, decision["decision_id"])
    await open_page(page, "#/gate")
    await expect(verdicts(page)).to_have_count(50)

    await page.get_by_role("button", name="Next page").click()

    await expect(verdicts(page)).to_have_count(21)


async def test_text_is_tried_and_nothing_is_stored(page: Page, client: AsyncClient) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    await open_page(page, "#/gate")
    form = page.locator("section").filter(has_text="Try a text")
    await form.get_by_role("textbox", name="Text").fill("Tea")
    await form.get_by_label("User id").fill("ana")
    await form.get_by_role("button", name="Check").click()
    await expect(form.get_by_role("status")).to_contain_text("It would be refused.")
    await expect(form.get_by_role("status")).to_contain_text("too_short")

    await form.get_by_role("textbox", name="Text").fill("She drinks tea.")
    await form.get_by_role("button", name="Check").click()
    await expect(form.get_by_role("status")).to_contain_text("It would be stored.")
    assert ok(await client.get("/memories", params={"user_id": "ana"}))["items"] == []
    assert ok(await client.get("/memories/decisions"))["items"] == []


async def test_refused_text_is_stored_anyway(
    page: Page, client: AsyncClient, has_axe: None
) -> None:
    await refuse(client, "Tea")
    await open_page(page, "#/gate")

    await page.get_by_role("button", name="Store it anyway: Tea").click()
    dialog = page.get_by_role("dialog")
    await expect(dialog).to_contain_text("too_short")
    await axe(page)
    await page.keyboard.press("Escape")
    assert ok(await client.get("/memories", params={"user_id": "ana"}))["items"] == []

    await page.get_by_role("button", name="Store it anyway: Tea").click()
    await dialog.get_by_role("combobox", name="Type").select_option("preference")
    await dialog.get_by_role("button", name="Store it anyway").click()

    await expect(page.get_by_text("Stored as mem_")).to_be_visible()
    [memory] = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
    assert (memory["content"], memory["memory_type"]) == ("Tea", "preference")


async def test_sensitive_and_stored_texts_offer_nothing(page: Page, client: AsyncClient) -> None:
    await save(client, "She keeps bees.")
    await refuse(client, CARD)
    await open_page(page, "#/gate")

    await expect(verdicts(page)).to_have_count(2)
    await expect(page.get_by_role("button", name="Store it anyway")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_and_chinese(
    browser: Browser,
    address: str,
    client: AsyncClient,
    acme: Caller,
    watch: Watch,
    scheme: str,
    has_axe: None,
) -> None:
    await save(client, "她养蜜蜂。" + "很" * 300)
    await refuse(client, "茶")
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        await open_page(page, "#/gate")
        await expect(page.get_by_role("heading", name="各规则的拒绝数")).to_be_visible()
        await expect(page.get_by_text("已拒绝").first).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await axe(page)
    watch.check()
