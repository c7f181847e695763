"""The page of people: what is known of a user and from where, what changed, and every action."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from playwright.async_api import Browser, Page, expect

from app.language.keyless.extractor import READER
from app.runtime import Runtime
from tests.dashboard.dashboard_support import HOSTILE, dialog, nothing_ran, section, told
from tests.profiles.profiles_support import derive
from tests.support.api import append, ok, save
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea in the morning."


class TestUsers:
    async def test_empty_list_says_where_users_come_from(self, page: Page) -> None:
        await open_page(page, "#/people")

        await expect(page.get_by_role("main")).to_contain_text("No user is known yet.")

    async def test_long_list_is_shown_fifty_at_a_time(
        self, page: Page, client: AsyncClient
    ) -> None:
        for number in range(51):
            ok(await client.post("/users", json={"user_id": f"user-{number}"}), 201)
        await open_page(page, "#/people")
        rows = page.locator("tbody tr")

        await expect(rows).to_have_count(50)
        await page.get_by_role("button", name="Next page").click()
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("user-0")
        await page.get_by_role("button", name="Previous page").click()
        await expect(rows).to_have_count(50)

    async def test_filters_stay_in_the_address(self, page: Page, client: AsyncClient) -> None:
        for name in ("ana", "ben"):
            ok(await client.post("/users", json={"user_id": name, "external_id": f"x-{name}"}), 201)
        await open_page(page, "#/people")

        await page.get_by_label("External id").fill("x-ben")
        await page.get_by_label("External id").press("Tab")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await page.reload()
        await expect(page.locator("tbody tr")).to_have_count(1)
        await expect(page.locator("tbody tr")).to_contain_text("ben")

    async def test_user_is_found_by_the_beginning_of_a_name(
        self, page: Page, client: AsyncClient
    ) -> None:
        for user_id, name in (("u1", "Ana Lima"), ("u2", "李明"), ("analyst", "Zoe")):
            ok(await client.post("/users", json={"user_id": user_id, "user_name": name}), 201)
        await open_page(page, "#/people")
        rows = page.locator("tbody tr")

        await page.get_by_label("Name or id begins with").fill("ana")
        await page.keyboard.press("Enter")
        await expect(rows).to_have_count(2)
        await page.get_by_label("Name or id begins with").fill("李")
        await page.keyboard.press("Enter")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("李明")

    async def test_user_is_opened_by_id(self, page: Page, client: AsyncClient) -> None:
        ok(await client.post("/users", json={"user_id": "ana", "user_name": "Ana Lima"}), 201)
        await open_page(page, "#/people")

        await page.get_by_label("Open a user by id").fill("ana")
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("heading", level=2).first).to_have_text("Ana Lima")

    async def test_unknown_user_is_named_as_the_service_names_it(
        self, page: Page, watch: Watch
    ) -> None:
        watch.allow_refusals(404)
        await open_page(page, "#/people/nobody")

        await expect(page.get_by_role("alert")).to_contain_text("user_not_found")
        await expect(page.get_by_role("main")).to_contain_text("This user was never erased.")


class TestProfile:
    async def test_derived_value_leads_to_its_memory_and_the_message(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        await told(client)
        await derive(client)
        await open_page(page, "#/people/ana")

        await page.get_by_role("button", name="Where is this from?").first.click()
        await settled(page)
        entry = page.locator(".entries > li").first
        await expect(entry.get_by_role("link", name="I moved to Hamburg.")).to_be_visible()
        await expect(entry.locator(".message")).to_contain_text("By the way, I moved to Hamburg.")
        await expect(page.get_by_role("table")).to_contain_text("personal context · set")

    async def test_derivation_that_changes_nothing_says_so_and_names_its_job(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        await told(client)
        await derive(client)
        await open_page(page, "#/people/ana")

        await page.get_by_role("button", name="Derive it now").click()

        await expect(page.get_by_text("Done, there was nothing new")).to_be_visible()
        made = page.get_by_role("table").locator("tbody tr").first.get_by_role("link")
        await made.click()
        await expect(dialog(page)).to_contain_text("derive a profile profile")

    async def test_value_is_written_and_given_back(self, page: Page, client: AsyncClient) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        await open_page(page, "#/people/ana")
        await page.get_by_role("button", name="Write a value").click()
        await dialog(page).get_by_label("Which value").select_option("programming languages")
        await dialog(page).get_by_label("Value", exact=True).fill("Rust\n\nGo")
        await dialog(page).get_by_role("button", name="Save").click()

        await expect(dialog(page)).to_have_count(0)
        await expect(page.locator(".entries > li")).to_contain_text("written, no job changes it")
        profile = ok(await client.get("/users/ana/profile"))
        assert profile["attributes"]["programming_languages"]["value"] == ["Rust", "Go"]
        await page.get_by_role("button", name="Leave it to the service").click()
        await dialog(page).get_by_role("button", name="Leave it to the service").click()
        await expect(page.get_by_role("main")).to_contain_text("Nothing is in the profile yet.")
        assert ok(await client.get("/users/ana/profile"))["attributes"] == {}

    async def test_change_in_the_meantime_is_shown_before_it_is_overwritten(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        path, anyhow = "/users/ana/profile", {"If-Match": "*"}
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        body = {"attributes": {"profession": "nurse"}}
        ok(await client.patch(path, json=body, headers=anyhow))
        await page.set_viewport_size({"width": 360, "height": 400})
        await open_page(page, "#/people/ana")
        await page.get_by_role("button", name="Edit: profession").click()
        body = {"attributes": {"profession": "pilot"}}
        ok(await client.patch(path, json=body, headers=anyhow))
        watch.allow_refusals(409)

        await dialog(page).get_by_label("Value").fill("teacher")
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(dialog(page).get_by_role("alert")).to_have_count(1)
        await expect(dialog(page).get_by_role("alert")).to_contain_text('"pilot"')
        await expect(dialog(page).get_by_role("button", name="Save")).to_be_in_viewport(ratio=1)
        assert ok(await client.get(path))["attributes"]["profession"]["value"] == "pilot"
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(dialog(page)).to_have_count(0)
        assert ok(await client.get(path))["attributes"]["profession"]["value"] == "teacher"

    async def test_derivation_is_ordered(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA)
        await open_page(page, "#/people/ana")

        await page.get_by_role("button", name="Derive it now").click()
        status = page.get_by_role("status").filter(has_text="Ordered.")
        await expect(status).to_contain_text("The profile changes when this job is done")
        await expect(status.get_by_role("link")).to_contain_text("job_")

    async def test_end_of_a_derivation_is_told(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        await save(client, TEA)
        await open_page(page, "#/people/ana")

        await page.get_by_role("button", name="Derive it now").click()

        await expect(page.get_by_role("status").filter(has_text="Done")).to_be_visible()


class TestMemories:
    async def test_list_is_narrowed_by_type_state_and_text(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA, memory_type="preference")
        archived = await save(client, "She works as a pilot.")
        await save(client, "She keeps bees on the roof.")
        path = f"/memories/{archived['memory_id']}"
        ok(await client.patch(path, json={"status": "archived"}))
        await open_page(page, "#/people/ana?tab=memories")
        rows = page.locator("tbody tr")

        await expect(rows).to_have_count(2)
        await page.get_by_label("Type").select_option("preference")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text(TEA)
        await page.get_by_label("Type").select_option("All")
        await page.get_by_label("State").select_option("archived")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("pilot")
        await page.get_by_label("State").select_option("active")
        await page.get_by_label("Contains the text").fill("bees")
        await page.get_by_label("Contains the text").press("Enter")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("bees")
        await page.get_by_label("Contains the text").fill("whales")
        await page.get_by_label("Contains the text").press("Tab")
        await expect(page.get_by_role("main")).to_contain_text("No memory fits these filters.")

    async def test_why_it_is_known_is_answered_by_what_was_said(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        memory = await told(client)
        await open_page(page, f"#/people/ana/{memory['memory_id']}")
        why = section(page, "Why do we know this?")

        await expect(why.locator(".message")).to_have_count(1)
        await expect(why.locator(".marked")).to_contain_text("By the way, I moved to Hamburg.")
        await why.get_by_role("button", name="Show what was said around it").click()
        await expect(why.locator(".message")).to_have_count(4)
        await expect(why.locator(".message").last).to_contain_text("How do you like it there?")
        await expect(why.locator("tbody tr")).to_contain_text("replaced an older one")
        await why.get_by_role("button", name="Show run").click()
        await expect(dialog(page)).to_contain_text(READER)
        await expect(dialog(page)).to_contain_text("talk")

    async def test_history_tells_what_replaced_what(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        memory = await told(client)
        await open_page(page, f"#/people/ana/{memory['memory_id']}")

        await section(page, "History").get_by_role("link", name="I live in Munich").click()
        await settled(page)
        history = section(page, "History")
        await expect(history).to_contain_text("replaced by a newer one")
        # A moment as people read it, not as the API writes it.
        await expect(history.locator("ins > time")).not_to_contain_text("T")
        await expect(history.get_by_role("link", name="I moved to Hamburg.")).to_be_visible()

    async def test_only_times_are_shown_as_times_and_days_as_the_same_day_everywhere(
        self, browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch
    ) -> None:
        path = f"/memories/{(await save(client, TEA))['memory_id']}"
        words = "2026-03-04T05:06:07Z"
        times = {"valid_from": "2026-05-01T00:00:00Z", "valid_to": "2027-05-01T00:00:01Z"}
        ok(await client.patch(path, json={"content": words} | times))
        async with context_of(
            browser, address, acme.key, watch, timezone_id="America/Los_Angeles"
        ) as context:
            page = await context.new_page()
            await open_page(page, f"#/people/ana/{path.rpartition('/')[2]}")

            changes = section(page, "History").locator("p:has(> ins)")
            for name, shown in (
                ("content", words), ("valid from", "May 1, 2026"),
                ("valid to", re.compile(r"Apr 30, 2027, 5:00\sPM")),
            ):  # fmt: skip
                await expect(changes.filter(has_text=f"{name}:").locator("ins")).to_have_text(shown)
            await expect(page.locator("dd").get_by_text("May 1, 2026", exact=True)).to_be_visible()
            # It is edited as it is shown: a midnight stands for the day.
            await page.get_by_role("button", name="Edit").click()
            start = dialog(page).get_by_label("Holds from")
            await expect(start).to_have_value("2026-05-01T00:00")
            await start.fill("2026-05-02T00:00")
            await dialog(page).get_by_role("button", name="Save").click()
            await expect(page.locator("dd").get_by_text("May 2, 2026", exact=True)).to_be_visible()
        assert ok(await client.get(path))["valid_from"] == "2026-05-02T00:00:00Z"
        watch.check()

    async def test_day_since_when_a_newer_one_took_its_place_is_the_same_west_of_utc(
        self, browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch
    ) -> None:
        old = await save(client, TEA)
        newer = ok(
            await client.post(
                f"/memories/{old['memory_id']}/supersede",
                json={"content": "She drinks coffee now.", "valid_from": "2026-05-01T00:00:00Z"},
            ),
            201,
        )
        async with context_of(
            browser, address, acme.key, watch, timezone_id="America/Los_Angeles"
        ) as context:
            page = await context.new_page()
            await open_page(page, f"#/people/ana/{newer['memory_id']}")
            replaced = section(page, "History").locator("li").filter(has_text=TEA)
            await expect(replaced.locator("time")).to_have_text("May 1, 2026")
        watch.check()

    async def test_deleted_evidence_is_said_to_be_gone(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        saved = await save(client, TEA, evidence=["msg_gone"])
        watch.allow_refusals(404)
        await open_page(page, f"#/people/ana/{saved['memory_id']}")

        await expect(page.get_by_text("This message was deleted.")).to_be_visible()


class TestActions:
    async def test_memory_is_edited(self, page: Page, client: AsyncClient) -> None:
        saved = await save(client, TEA)
        path = f"/memories/{saved['memory_id']}"
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Edit").click()
        await dialog(page).get_by_label("Content").fill("She drinks black tea in the morning.")
        await dialog(page).get_by_label("Type").select_option("habit")
        await dialog(page).get_by_label("Held until").fill("2030-05-01T10:00")
        await dialog(page).get_by_label("Reason").fill("She said so.")
        await dialog(page).get_by_role("button", name="Save").click()

        await expect(page.locator(".lead")).to_have_text("She drinks black tea in the morning.")
        memory = ok(await client.get(path))
        assert (memory["memory_type"], memory["confidence"]) == ("habit", 1.0)
        assert memory["valid_to"] == "2030-05-01T10:00:00Z"
        await expect(section(page, "History")).to_contain_text("She said so.")
        await expect(section(page, "History").locator("del").first).to_have_text(TEA)

    async def test_change_in_the_meantime_is_shown_before_it_is_overwritten(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        saved = await save(client, TEA)
        path = f"/memories/{saved['memory_id']}"
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Edit").click()
        ok(await client.patch(path, json={"content": "She drinks cocoa in the morning."}))
        watch.allow_refusals(409)

        await dialog(page).get_by_label("Content").fill("She drinks water in the morning.")
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(dialog(page).get_by_role("alert")).to_have_count(1)
        await expect(dialog(page).get_by_role("alert")).to_contain_text("by someone else")
        await expect(dialog(page)).to_contain_text("She drinks cocoa in the morning.")
        assert ok(await client.get(path))["content"] == "She drinks cocoa in the morning."
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(page.locator(".lead")).to_have_text("She drinks water in the morning.")

    async def test_other_change_in_the_meantime_stays(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        saved = await save(client, TEA)
        path = f"/memories/{saved['memory_id']}"
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Edit").click()
        theirs = {"memory_type": "habit", "confidence": 0.9, "expires_at": "2099-05-01T10:00:00Z"}
        ok(await client.patch(path, json=theirs))
        watch.allow_refusals(409)

        await dialog(page).get_by_label("Content").fill("She drinks water in the morning.")
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(dialog(page).get_by_role("alert")).to_have_count(1)
        await expect(dialog(page).get_by_role("alert")).to_contain_text("by someone else")
        await dialog(page).get_by_role("button", name="Save").click()

        await expect(page.locator(".lead")).to_have_text("She drinks water in the morning.")
        memory = ok(await client.get(path))
        assert {name: memory[name] for name in theirs} == theirs

    async def test_refusal_of_the_gate_is_shown(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        saved = await save(client, TEA)
        watch.allow_refusals(422)
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Edit").click()
        await dialog(page).get_by_label("Content").fill("Tea")
        await dialog(page).get_by_role("button", name="Save").click()

        await expect(dialog(page).get_by_role("alert")).to_contain_text("gate_rejected")
        await page.keyboard.press("Escape")
        await expect(dialog(page)).to_have_count(0)
        await expect(page.locator(".lead")).to_have_text(TEA)

    async def test_memory_is_archived_and_made_active_again(
        self, page: Page, client: AsyncClient
    ) -> None:
        saved = await save(client, TEA)
        path = f"/memories/{saved['memory_id']}"
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        for button, status in (("Archive", "archived"), ("Make it active again", "active")):
            await page.get_by_role("button", name=button).click()
            await dialog(page).get_by_role("button", name=button).click()
            await expect(dialog(page)).to_have_count(0)
            await expect(page.locator(".tag").first).to_have_text(status)
            assert ok(await client.get(path))["status"] == status

    async def test_newer_one_replaces_it_and_is_shown(
        self, page: Page, client: AsyncClient
    ) -> None:
        saved = await save(client, TEA)
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Replace by a newer one").click()
        await dialog(page).get_by_label("What holds now").fill("She drinks coffee in the morning.")
        await dialog(page).get_by_role("button", name="Replace by a newer one").click()

        await expect(page.locator(".lead")).to_have_text("She drinks coffee in the morning.")
        await expect(section(page, "History").get_by_role("link", name=TEA)).to_be_visible()
        old = ok(await client.get(f"/memories/{saved['memory_id']}"))
        assert (old["status"], old["superseded_by"] in page.url) == ("superseded", True)

    async def test_earlier_state_is_restored(self, page: Page, client: AsyncClient) -> None:
        saved = await save(client, TEA)
        path = f"/memories/{saved['memory_id']}"
        ok(await client.patch(path, json={"content": "She drinks cocoa in the morning."}))
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Make it this again").click()
        await expect(dialog(page)).to_contain_text(TEA)
        await dialog(page).get_by_role("button", name="Make it this again").click()

        await expect(page.locator(".lead")).to_have_text(TEA)
        assert ok(await client.get(path))["content"] == TEA

    async def test_memory_is_rated_with_a_comment(self, page: Page, client: AsyncClient) -> None:
        saved = await save(client, TEA)
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        feedback = section(page, "Feedback")
        await expect(feedback).to_contain_text("Nobody has rated this memory yet.")
        await feedback.get_by_role("button", name="Outdated").click()
        await dialog(page).get_by_label("Comment").fill("Coffee, since May.")
        await dialog(page).get_by_role("button", name="Save").click()

        await expect(feedback.locator("tbody tr")).to_contain_text("Coffee, since May.")
        path = f"/memories/{saved['memory_id']}"
        [given] = ok(await client.get(f"{path}/feedback"))["items"]
        assert (given["rating"], given["comment"]) == ("outdated", "Coffee, since May.")
        await feedback.get_by_role("button", name="Helpful").click()
        await expect(dialog(page).get_by_label("Comment")).to_have_value("")
        await dialog(page).get_by_role("button", name="Save").click()
        await expect(feedback.locator("tbody tr")).to_have_count(2)
        assert ok(await client.get(path))["version"] == 1

    async def test_memory_is_deleted(self, page: Page, client: AsyncClient) -> None:
        saved = await save(client, TEA)
        await save(client, "She keeps bees on the roof.")
        await open_page(page, f"#/people/ana/{saved['memory_id']}")
        await page.get_by_role("button", name="Delete").click()
        await dialog(page).get_by_role("button", name="Delete").click()

        await expect(page.locator("tbody tr")).to_have_count(1)
        await expect(page.locator("tbody tr")).to_contain_text("bees")
        assert (await client.get(f"/memories/{saved['memory_id']}")).status_code == 404


class TestData:
    async def test_user_is_erased_only_when_the_id_is_typed(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA)
        await open_page(page, "#/people/ana?tab=data")
        await page.get_by_role("button", name="Erase this user").click()
        await expect(dialog(page)).to_contain_text("memories")
        await dialog(page).get_by_label("Type ana to confirm").fill("anna")
        await dialog(page).get_by_role("button", name="Erase for good").click()
        await expect(dialog(page)).to_be_visible()
        assert (await client.get("/users/ana")).status_code == 200
        await dialog(page).get_by_label("Type ana to confirm").fill("ana")
        await dialog(page).get_by_role("button", name="Erase for good").click()

        await expect(page.get_by_role("heading", name="Erased. Receipt")).to_be_visible()
        assert (await client.get("/users/ana")).status_code == 404
        [receipt] = ok(await client.get("/erasures", params={"kind": "user", "id": "ana"}))["items"]
        await expect(page.get_by_role("main")).to_contain_text(receipt["erasure_id"])

    async def test_receipt_is_found_after_the_user_is_gone(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        await save(client, TEA)
        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))
        watch.allow_refusals(404)
        await open_page(page, "#/people/ana")

        await expect(page.locator("tbody tr")).to_contain_text(receipt["erasure_id"])

    async def test_key_that_may_not_erase_is_told_so(
        self, browser: Browser, address: str, app: FastAPI, runtime: Runtime, acme: Caller,
        client: AsyncClient, watch: Watch,
    ) -> None:  # fmt: skip
        await save(client, TEA)
        reader = await make_key(runtime, acme.tenant_id, "read")
        async with context_of(browser, address, reader.key, watch) as context:
            page = await context.new_page()
            await open_page(page, "#/people/ana?tab=data")
            erase = page.get_by_role("button", name="Erase this user")
            await expect(erase).to_be_disabled()
            await expect(erase).to_have_attribute("title", "This takes an admin's key.")
        watch.check()
        async with client_of(app, reader.key) as reading:
            assert (await reading.get("/users/ana")).status_code == 200

    async def test_export_is_saved_as_a_file(
        self, page: Page, client: AsyncClient, tmp_path: Path
    ) -> None:
        await save(client, TEA)
        await open_page(page, "#/people/ana?tab=data")
        async with page.expect_download() as starting:
            await page.get_by_role("button", name="Download").click()
        download = await starting.value
        await download.save_as(tmp_path / "ana.jsonl")

        assert download.suggested_filename == "ana.jsonl"
        lines = [json.loads(line) for line in (tmp_path / "ana.jsonl").read_text().splitlines()]
        assert (lines[0]["type"], lines[-1]["type"]) == ("manifest", "end")
        [memory] = [line["row"] for line in lines if line["type"] == "memory"]
        assert memory["content"] == TEA


class TestEverywhere:
    async def test_text_that_looks_like_markup_is_shown_and_not_run(
        self, page: Page, client: AsyncClient
    ) -> None:
        body = {"message_id": "m1", "role": "user", "content": HOSTILE}
        await append(client, "talk", body)
        saved = await save(client, HOSTILE, evidence=["m1"])
        patch = {"attributes": {"profession": HOSTILE}}
        ok(await client.patch("/users/ana/profile", json=patch, headers={"If-Match": "*"}))
        for place in (
            "#/people/ana",
            "#/people/ana?tab=memories",
            f"#/people/ana/{saved['memory_id']}",
        ):
            await open_page(page, place)
            await expect(page.get_by_text(HOSTILE).first).to_be_visible()
            assert await nothing_ran(page)
        await expect(page.locator(".message").get_by_text(HOSTILE)).to_be_visible()
        assert await nothing_ran(page)

    @pytest.mark.parametrize(("scheme", "locale"), [("light", "en-GB"), ("dark", "zh-CN")])
    async def test_every_view_is_accessible_and_fits_a_phone(
        self, browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch,
        worker: None, has_axe: None, scheme: Any, locale: str,
    ) -> None:  # fmt: skip
        memory = await told(client)
        await derive(client)
        size = {"width": 360, "height": 740}
        async with context_of(
            browser, address, acme.key, watch, viewport=size, color_scheme=scheme, locale=locale
        ) as context:
            page = await context.new_page()
            for place in (
                "#/people", "#/people/ana", "#/people/ana?tab=memories",
                "#/people/ana?tab=sessions", "#/people/ana?tab=data",
                f"#/people/ana/{memory['memory_id']}",
            ):  # fmt: skip
                await open_page(page, place)
                assert await page.evaluate("document.documentElement.scrollWidth") <= 360, place
                await axe(page)
            await page.locator("section .buttons button").first.click()
            await expect(dialog(page)).to_be_visible()
            await axe(page)
        watch.check()
