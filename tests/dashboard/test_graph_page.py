"""The page Graph: an entity and what is around it, drawn and as tables; merge, split and undo."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, Locator, Page, expect

from app.runtime import Runtime
from tests.support.api import ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page
from tests.support.tenants import Caller, make_key

HOSTILE = "<img src=x onerror=\"document.title='ran'\"><script>document.title='ran'</script>"

# A place well inside a node of the drawing that is not its centre, by the colour of such nodes.
OTHER_NODE = """async () => {
  const box = document.querySelector('.graph-drawing').getBoundingClientRect();
  for (;;) {
    for (const canvas of document.querySelectorAll('.graph-drawing canvas')) {
      const { width, height } = canvas;
      const pixels = canvas.getContext('2d').getImageData(0, 0, width, height).data;
      const isNode = (x, y) =>
        [36, 86, 196].every((part, n) => pixels[4 * (y * width + x) + n] === part);
      for (let y = 8; y < height - 8; y += 4) for (let x = 8; x < width - 8; x += 4)
        if ([[0, 0], [8, 0], [-8, 0], [0, 8], [0, -8]].every(([dx, dy]) => isNode(x + dx, y + dy)))
          return { x: box.x + x * box.width / width, y: box.y + y * box.height / height };
    }
    await new Promise(requestAnimationFrame);
  }
}"""


async def relate(client: AsyncClient, source: str, relation: str, to: str, **more: Any) -> Any:
    body = {"user_id": "ana", "source": source, "relation": relation, "destination": to} | more
    return ok(await client.post("/graph/relations", json=body), 201)


@pytest.fixture
async def ids(client: AsyncClient) -> dict[str, str]:
    """A small graph of Ana's; ids of its entities by name."""
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    known: dict[str, str] = {}
    for made in (
        await relate(client, "Ana", "works_at", "Siemens", valid_from="2026-05-01T00:00:00Z"),
        await relate(
            client, "Ana", "works_at", "BMW",
            valid_from="2020-01-01T00:00:00Z", valid_to="2026-05-01T00:00:00Z",
        ),
        await relate(client, "Ana", "friend_of", "李明"),
        await relate(client, "李明", "lives_in", "München"),
        await relate(client, "Siemens AG", "located_in", "München"),
    ):  # fmt: skip
        for side in ("source", "destination"):
            known[made[side]["name"]] = made[side]["entity_id"]
    return known


def table(page: Page, name: str) -> Locator:
    """The rows of a table, without its head."""
    return page.get_by_role("table", name=name, exact=True).locator("tbody tr")


async def around(client: AsyncClient, entity_id: str, **query: Any) -> set[str]:
    answer = await client.get("/graph/neighbours", params={"entity_id": entity_id} | query)
    return {entity["name"] for entity in ok(answer)["entities"]}


async def test_empty_graph_is_explained(page: Page) -> None:
    await open_page(page, "#/graph")

    await expect(page.get_by_text("The graph is empty.")).to_be_visible()
    await expect(page.get_by_text("Nothing was merged or split yet.")).to_be_visible()


async def test_entity_is_found_by_a_piece_of_its_name_and_shown_with_what_is_around(
    page: Page, ids: dict[str, str], has_axe: None
) -> None:
    await open_page(page, "#/graph")
    await page.get_by_label("Name or alias").fill("an")
    await page.get_by_role("button", name="Search").click()
    await page.get_by_role("link", name="Ana", exact=True).click()

    await expect(page.get_by_role("heading", name="Around Ana")).to_be_visible()
    await expect(table(page, "Entities")).to_have_count(3)
    await expect(table(page, "Relations")).to_have_count(2)
    drawing = page.get_by_role("img", name="Drawing of 3 entities and 2 relations")
    await expect(drawing.locator("canvas").first).to_be_visible()
    await axe(page)


async def test_search_that_finds_nothing_says_so(page: Page, ids: dict[str, str]) -> None:
    await open_page(page, "#/graph?q=nobody")

    await expect(page.get_by_text("No entity matches.")).to_be_visible()


async def test_depth_relation_and_limit_bound_what_is_shown(
    page: Page, ids: dict[str, str]
) -> None:
    await open_page(page, f"#/graph/{ids['Ana']}")
    await expect(table(page, "Entities")).to_have_count(3)

    await page.get_by_role("combobox", name="Steps").select_option("2")
    await expect(table(page, "Entities")).to_have_count(4)
    await page.get_by_label("Only this relation").fill("friend_of")
    await page.get_by_role("button", name="Apply").click()
    await expect(table(page, "Entities")).to_have_count(2)


async def test_crowd_is_cut_at_the_limit_said_and_paged(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    for number in range(60):
        await relate(client, "Ana", "owns", f"Thing {number}")
    await open_page(page, f"#/graph/{ids['Ana']}?limit=25")
    await expect(page.get_by_text("There is more than is shown")).to_be_visible()
    await expect(table(page, "Entities")).to_have_count(26)

    await page.get_by_role("combobox", name="Others at most").select_option("200")
    await expect(page.get_by_text("There is more than is shown")).to_have_count(0)
    await expect(table(page, "Entities")).to_have_count(50)
    await page.get_by_role("button", name="Next page").first.click()
    await expect(table(page, "Entities")).to_have_count(13)


async def test_graph_of_an_earlier_time_is_shown(page: Page, ids: dict[str, str]) -> None:
    await open_page(page, f"#/graph/{ids['Ana']}")
    await expect(table(page, "Relations").filter(has_text="Siemens")).to_have_count(1)

    await page.get_by_label("As of").fill("2024-03-01T12:00")
    await page.get_by_role("button", name="Apply").click()

    await expect(table(page, "Relations").filter(has_text="BMW")).to_have_count(1)
    await expect(table(page, "Relations").filter(has_text="Siemens")).to_have_count(0)


async def test_links_of_the_table_and_clicks_on_the_drawing_lead_to_an_entity(
    page: Page, ids: dict[str, str]
) -> None:
    await open_page(page, f"#/graph/{ids['BMW']}?as_of=2024-03-01T12:00")
    await table(page, "Entities").get_by_role("link", name="Ana").press("Enter")
    await expect(page.get_by_role("heading", name="Around Ana")).to_be_visible()

    await open_page(page, f"#/graph/{ids['BMW']}?as_of=2024-03-02T12:00")
    await expect(page.get_by_role("heading", name="Around BMW")).to_be_visible()
    await page.mouse.click(**await page.evaluate(OTHER_NODE))
    await expect(page.get_by_role("heading", name="Around Ana")).to_be_visible()


async def test_history_of_a_relation_shows_every_version(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    relations = ok(await client.get("/graph/relations", params={"relation": "friend_of"}))["items"]
    body = {"confidence": 0.5, "reason": "She is not so sure."}
    relation_id = relations[0]["relation_id"]
    ok(await client.patch(f"/graph/relations/{relation_id}", json=body))
    await open_page(page, f"#/graph/{ids['Ana']}")

    await page.get_by_role("button", name="History of Ana friend_of 李明").click()

    await expect(page.get_by_role("dialog").locator("tbody tr")).to_have_count(2)
    await expect(page.get_by_role("dialog")).to_contain_text("She is not so sure.")
    await page.keyboard.press("Escape")
    await expect(page.get_by_role("dialog")).to_have_count(0)


async def test_details_show_aliases_and_the_memories_that_speak_of_it(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    memory = (await save(client, f"She met Li Ming at the lake. {HOSTILE}"))["memory_id"]
    await relate(client, "Ana", "knows", "李明", memory_ids=[memory])
    path = f"/graph/entities/{ids['李明']}/aliases"
    ok(await client.post(path, json={"alias": "Li Ming"}))

    await open_page(page, f"#/graph/{ids['李明']}")

    details = page.locator("dl.facts")
    await expect(details).to_contain_text("Li Ming")
    await expect(table(page, "Memories that speak of it")).to_contain_text(HOSTILE)
    assert "ran" not in await page.title()


async def test_hostile_names_are_shown_as_text_in_table_and_drawing(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    made = await relate(client, "Ana", "knows", HOSTILE)

    await open_page(page, f"#/graph/{made['destination']['entity_id']}")

    await expect(page.get_by_role("heading", name="Around <img")).to_be_visible()
    await expect(table(page, "Relations")).to_contain_text(HOSTILE)
    await expect(page.locator(".graph-drawing canvas").first).to_be_visible()
    assert await page.locator("main img, main script").count() == 0
    assert "ran" not in await page.title()


async def test_entities_are_merged_after_a_count_and_the_merge_is_undone(
    page: Page, client: AsyncClient, ids: dict[str, str], has_axe: None
) -> None:
    await relate(client, "Siemens AG", "partner_of", "Siemens")
    await open_page(page, f"#/graph/{ids['Siemens']}")
    merge = page.get_by_role("button", name="Merge the selected into Siemens")
    await expect(merge).to_be_disabled()
    await page.get_by_label("Select Siemens AG").check()
    await merge.click()
    dialog = page.get_by_role("dialog")
    await expect(dialog.get_by_role("status")).to_contain_text("Rows that change: ")
    await axe(page)
    assert "München" not in await around(client, ids["Siemens"])

    await dialog.get_by_role("button", name="Merge").click()
    await expect(page.get_by_text("Merged.", exact=True)).to_be_visible()
    assert "München" in await around(client, ids["Siemens"])
    await expect(table(page, "Entities").filter(has_text="München")).to_have_count(1)

    merged = table(page, "Merges and splits").locator("td").nth(2).locator("div")
    await expect(merged.first).to_have_text(f"Siemens{ids['Siemens']}")
    await expect(merged.last).to_have_text(f"Siemens AG{ids['Siemens AG']}")
    await page.get_by_role("button", name="Undo merge").click()
    await dialog.get_by_role("button", name="Undo").click()
    await expect(page.get_by_text("The change is undone.")).to_be_visible()
    await expect(table(page, "Merges and splits")).to_contain_text("undone")
    assert "München" not in await around(client, ids["Siemens"])


async def test_merges_that_look_wrong_are_pointed_out_before_and_after(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    made = await relate(
        client, "Siemens", "partner_of", "Köln", source_type="organization",
        destination_type="place",
    )  # fmt: skip
    for into, other in (("Siemens", "Siemens AG"), ("München", "BMW")):
        path = f"/graph/entities/{ids[into]}/merge"
        ok(await client.post(path, json={"entity_ids": [ids[other]]}))
    await open_page(page, f"#/graph/{ids['Siemens']}")
    merges = table(page, "Merges and splits")
    await expect(merges).to_have_count(2)
    await expect(merges.nth(0)).to_contain_text("München and BMW have 0% of their letters")
    await expect(merges.nth(1)).not_to_contain_text("look at it")

    await page.get_by_label("Only merges that look wrong").check()
    await expect(merges).to_have_count(1)

    await page.get_by_label("Select Köln").check()
    await page.get_by_role("button", name="Merge the selected into Siemens").click()
    await expect(page.get_by_role("dialog")).to_contain_text(
        "Siemens is of the type organization, Köln of place."
    )
    assert made["destination"]["entity_type"] == "place"


async def test_days_from_when_it_holds_are_the_same_west_of_utc(
    browser: Browser, address: str, acme: Caller, ids: dict[str, str], watch: Watch
) -> None:
    async with context_of(
        browser, address, acme.key, watch, timezone_id="America/Los_Angeles", locale="en-GB"
    ) as context:
        page = await context.new_page()
        await open_page(page, f"#/graph/{ids['Ana']}")
        job = table(page, "Relations").filter(has_text="Siemens")
        await expect(job.locator("time")).to_have_text("May 1, 2026")
        await job.get_by_role("button", name="History").click()
        versions = page.get_by_role("dialog").get_by_role("row")
        await expect(versions.nth(1).locator("time").first).to_have_text("May 1, 2026")
        await page.keyboard.press("Escape")

        # A midnight in the field is the day, too: it holds on its first day, not before.
        for at, shown in (("2026-05-01T00:00", "Siemens"), ("2026-04-30T00:00", "BMW")):
            await page.get_by_label("As of").fill(at)
            await page.get_by_role("button", name="Apply").click()
            jobs = table(page, "Relations").filter(has_text="works_at")
            await expect(jobs).to_have_count(1)
            await expect(jobs).to_contain_text(shown)
    watch.check()


async def test_undo_that_others_changed_since_is_refused_with_its_sentence(
    page: Page, client: AsyncClient, ids: dict[str, str], watch: Watch
) -> None:
    path = f"/graph/entities/{ids['Siemens']}/merge"
    ok(await client.post(path, json={"entity_ids": [ids["Siemens AG"]]}))
    moved = ok(await client.get("/graph/relations", params={"relation": "located_in"}))["items"][0]
    changed = {"confidence": 0.5}
    ok(await client.patch(f"/graph/relations/{moved['relation_id']}", json=changed))
    await open_page(page, "#/graph")
    watch.allow_refusals(409)

    await page.get_by_role("button", name="Undo merge").click()
    await page.get_by_role("dialog").get_by_role("button", name="Undo").click()

    await expect(page.get_by_role("dialog").get_by_role("alert")).to_contain_text("changed_since")
    await page.keyboard.press("Escape")
    assert ok(await client.get("/graph/changes"))["items"][0]["undone_at"] is None


async def test_entity_is_split_and_takes_the_relations_chosen(
    page: Page, client: AsyncClient, ids: dict[str, str]
) -> None:
    await open_page(page, f"#/graph/{ids['Ana']}")
    await page.get_by_role("button", name="Split").click()
    dialog = page.get_by_role("dialog")
    await dialog.get_by_label("Name of the new entity").fill("Ana Lima")
    await dialog.get_by_label("Ana friend_of 李明").check()
    await dialog.get_by_role("button", name="Count what changes").click()
    await expect(dialog.get_by_role("status")).to_contain_text("Rows that change: ")
    assert "李明" in await around(client, ids["Ana"])

    await dialog.get_by_role("button", name="Split").click()

    await expect(page.get_by_text("Split.", exact=True)).to_be_visible()
    assert "李明" not in await around(client, ids["Ana"])
    await expect(table(page, "Relations")).to_have_count(1)


async def test_entity_of_another_tenant_is_not_found(
    page: Page, stranger: AsyncClient, watch: Watch
) -> None:
    body = {"agent_id": "a", "source": "Eve", "relation": "knows", "destination": "Mallory"}
    ok(await stranger.post("/agents", json={"agent_id": "a", "agent_name": "A"}), 201)
    theirs = ok(await stranger.post("/graph/relations", json=body), 201)["source"]["entity_id"]
    watch.allow_refusals(404)

    await open_page(page, f"#/graph/{theirs}")

    await expect(page.get_by_role("alert").first).to_contain_text("entity_not_found")


async def test_key_that_only_reads_is_told_so(
    browser: Browser,
    address: str,
    app: FastAPI,
    runtime: Runtime,
    acme: Caller,
    ids: dict[str, str],
    client: AsyncClient,
    watch: Watch,
) -> None:
    reader = await make_key(runtime, acme.tenant_id, "read")
    async with context_of(browser, address, reader.key, watch) as context:
        page = await context.new_page()
        await open_page(page, f"#/graph/{ids['Ana']}")
        await page.get_by_label("Select Siemens").check()
        merge = page.get_by_role("button", name="Merge the selected into Ana")
        await expect(merge).to_be_disabled()
        await expect(merge).to_have_attribute("title", "This takes a key that may write.")
    watch.check()


@pytest.mark.parametrize("scheme", ["light", "dark"])
async def test_narrow_and_chinese(
    browser: Browser,
    address: str,
    acme: Caller,
    ids: dict[str, str],
    watch: Watch,
    scheme: str,
    has_axe: None,
) -> None:
    narrow = {"width": 360, "height": 740}
    async with context_of(
        browser, address, acme.key, watch, viewport=narrow, color_scheme=scheme, locale="zh-CN"
    ) as context:
        page = await context.new_page()
        await open_page(page, f"#/graph/{ids['Ana']}")
        await expect(page.get_by_role("heading", name="Ana 的周围")).to_be_visible()
        assert await page.evaluate("document.documentElement.scrollWidth") <= 360
        await axe(page)
    watch.check()
