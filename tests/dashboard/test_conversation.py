"""The page of conversations: what was said and remembered, what a model sees, and every action."""

import asyncio
import re
from typing import Any

import pytest
from httpx import AsyncClient
from playwright.async_api import Browser, Page, expect

from app.language.keyless.extractor import READER
from tests.checkpoints.checkpoints_support import asking
from tests.dashboard.dashboard_support import HOSTILE, dialog, nothing_ran, section, told
from tests.support.api import append, ok, save
from tests.support.conversations import converse, policy
from tests.support.dashboard import Watch, axe, context_of, open_page, settled
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

TEA = "She drinks green tea in the morning."


async def numbers(page: Page) -> list[int]:
    """Numbers of the messages that are shown, in their order."""
    lines = await page.locator(".messages > .message > p:first-child").all_inner_texts()
    return [int(line.split(" · ")[1]) for line in lines]


async def recorded(client: AsyncClient) -> list[dict[str, Any]]:
    """What contexts of the session `s` had, once something was recorded."""
    async with asyncio.timeout(PATIENCE):
        while True:
            rows = ok(await client.get("/sessions/s/injections"))["items"]
            if rows:
                return rows
            await asyncio.sleep(0.02)


class TestList:
    async def test_empty_list_says_where_conversations_come_from(self, page: Page) -> None:
        await open_page(page, "#/conversation")

        await expect(page.get_by_role("main")).to_contain_text("There is no conversation yet.")

    async def test_list_is_narrowed_and_kept_in_the_address(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "one", "Hello.", user_id="ana")
        await append(client, "two", "Hello.", user_id="ben")
        await open_page(page, "#/conversation")
        rows = page.locator("tbody tr")

        await expect(rows).to_have_count(2)
        await page.get_by_label("User").fill("ben")
        await page.get_by_label("User").press("Tab")
        await expect(rows).to_have_count(1)
        await page.reload()
        await expect(rows).to_have_count(1)
        await rows.get_by_role("link", name="two").click()
        await expect(page.get_by_role("heading", level=2).first).to_have_text("two")

    async def test_conversation_is_opened_by_id(self, page: Page, client: AsyncClient) -> None:
        await append(client, "one", "Hello.")
        await open_page(page, "#/conversation")

        await page.get_by_label("Open a conversation by id").fill("one")
        await page.keyboard.press("Enter")
        await expect(page.locator(".message")).to_contain_text("Hello.")

    async def test_unknown_one_is_named_as_the_service_names_it(
        self, page: Page, watch: Watch
    ) -> None:
        watch.allow_refusals(404)
        await open_page(page, "#/conversation/none")

        await expect(page.get_by_role("alert")).to_contain_text("session_not_found")


class TestMessages:
    async def test_long_conversation_is_read_both_ways(
        self, page: Page, client: AsyncClient
    ) -> None:
        await converse(client, "long", 70)
        await open_page(page, "#/conversation/long")

        async def press(button: str) -> list[int]:
            await page.get_by_role("button", name=button).click()
            await settled(page)
            return await numbers(page)

        assert await numbers(page) == list(range(41, 71))
        await expect(page.get_by_role("button", name="Later messages")).to_have_count(0)
        assert await press("Earlier messages") == list(range(11, 41))
        assert await press("Earlier messages") == list(range(1, 11))
        await expect(page.get_by_role("button", name="Earlier messages")).to_have_count(0)
        assert await press("Later messages") == list(range(11, 41))
        assert await press("Oldest") == list(range(1, 31))
        assert await press("Newest") == list(range(41, 71))

    async def test_link_to_a_message_shows_it_in_the_middle(
        self, page: Page, client: AsyncClient
    ) -> None:
        await converse(client, "long", 70)
        found = ok(await client.get("/sessions/long/messages", params={"limit": 40}))["items"][-1]
        await open_page(page, f"#/conversation/long?message={found['message_id']}")

        assert await numbers(page) == list(range(25, 56))
        await expect(page.locator(".marked")).to_contain_text(found["content"])
        await expect(page.locator(".marked")).to_be_in_viewport()

    async def test_messages_are_narrowed_by_role_and_text(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "I like tea.", {"role": "assistant", "content": "Which tea?"},
                     "I like bees.")  # fmt: skip
        await open_page(page, "#/conversation/s")

        await page.get_by_label("Role").select_option("assistant")
        await expect(page.locator(".message")).to_have_count(1)
        await expect(page.locator(".message")).to_contain_text("Which tea?")
        await page.get_by_label("Role").select_option("All")
        await page.get_by_label("Contains the text").fill("bees")
        await page.get_by_label("Contains the text").press("Tab")
        await expect(page.locator(".message")).to_have_count(1)
        await expect(page.locator(".message")).to_contain_text("I like bees.")
        await page.get_by_label("Contains the text").fill("whales")
        await page.get_by_label("Contains the text").press("Tab")
        await expect(page.get_by_role("main")).to_contain_text("No message fits these filters.")

    async def test_each_message_names_what_is_remembered_from_it(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        await told(client)
        await open_page(page, "#/conversation/talk")
        messages = page.locator(".message")

        await expect(messages.nth(0).locator(".from-it")).to_contain_text("I live in Munich")
        await expect(messages.nth(0).locator(".from-it")).to_contain_text("superseded")
        await expect(messages.nth(3).locator(".from-it")).to_contain_text("active")
        await expect(page.locator(".from-it")).to_have_count(2)
        await messages.nth(3).get_by_role("link", name="I moved to Hamburg.").click()
        await expect(page.locator(".lead")).to_have_text("I moved to Hamburg.")

    async def test_calls_of_tools_and_results_are_shown(
        self, page: Page, client: AsyncClient
    ) -> None:
        call = {"id": "c1", "type": "function",
                "function": {"name": "route", "arguments": '{"to": "work"}'}}  # fmt: skip
        await append(
            client, "s", "How long to work?",
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "22 minutes"},
        )  # fmt: skip
        await open_page(page, "#/conversation/s")

        await page.get_by_text("Call of route").click()
        await expect(page.get_by_text('{"to": "work"}')).to_be_visible()
        await expect(page.locator(".role-tool")).to_contain_text("Result of the call c1")


class TestContext:
    async def test_every_part_is_shown_with_its_tokens(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA)
        await append(client, "s", "What tea do I drink in the morning?")
        body = {"render": "parts", "preview": True}
        answer = ok(await client.post("/sessions/s/context", json=body))
        await open_page(page, "#/conversation/s?tab=context")
        bars = page.get_by_role("list", name="Part by part, in tokens").get_by_role("listitem")

        await expect(bars).to_have_count(len(answer["parts"]))
        for part, bar in zip(answer["parts"], await bars.all(), strict=True):
            await expect(bar).to_contain_text(str(part["tokens"]))
        await page.get_by_text("memories · 1 shown").click()
        await expect(page.locator("details[open] pre").get_by_text(TEA)).to_be_visible()
        used = section(page, "Memories in it, and why")
        await expect(used.get_by_role("link", name=TEA)).to_be_visible()
        await used.get_by_text("Why?").click()
        await expect(used.get_by_role("list", name="Parts of the score")).to_contain_text(
            "confidence"
        )
        await expect(page.get_by_role("main")).to_contain_text("what the user said last")

    async def test_query_and_budget_are_asked_for(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA)
        await append(client, "s", "Hello there.")
        await open_page(page, "#/conversation/s?tab=context")

        await page.get_by_label("Query", exact=True).fill("What does she drink?")
        await page.get_by_label("Tokens for what is remembered").fill("100")
        async with page.expect_request(re.compile("/context$")) as asking:
            await page.get_by_role("button", name="Show", exact=True).click()
        asked = (await asking.value).post_data_json
        await expect(page.get_by_role("main")).to_contain_text("this form")
        assert (asked["query"], asked["max_memory_tokens"]) == ("What does she drink?", 100)

    async def test_looking_leaves_no_trace(self, page: Page, client: AsyncClient) -> None:
        await save(client, TEA)
        await append(client, "s", "What tea do I drink?")
        await open_page(page, "#/conversation/s?tab=context")
        await expect(section(page, "Memories in it, and why").get_by_role("link")).to_have_count(1)
        body = {"include": {"memories": False}}
        shown = ok(await client.post("/sessions/s/context", json=body))

        rows = await recorded(client)
        assert [row["content_sha256"] for row in rows] == [shown["content_sha256"]]

    async def test_contexts_that_were_shown_are_listed(
        self, page: Page, client: AsyncClient
    ) -> None:
        await save(client, TEA)
        await append(client, "s", "What tea do I drink?")
        await open_page(page, "#/conversation/s?tab=injections")
        await expect(page.get_by_role("main")).to_contain_text("No context of this conversation")
        ok(await client.post("/sessions/s/context", json={}))

        await recorded(client)
        await page.reload()
        await page.locator("tbody tr").get_by_role("button", name="1").first.click()
        await expect(page.locator("tbody").get_by_role("link", name=TEA)).to_be_visible()


class TestWindow:
    async def test_window_and_summaries_are_shown(self, page: Page, client: AsyncClient) -> None:
        await policy(client, "s", budget_tokens=1000, keep_messages=4, automatic=False)
        await converse(client, "s", 40)
        compacted = ok(await client.post("/sessions/s/compact", json={"force": True}))
        await open_page(page, "#/conversation/s?tab=window")

        window = ok(await client.get("/sessions/s/window"))
        await expect(page.locator(".facts").last).to_be_attached()
        facts = page.locator(".panel .facts").first
        await expect(facts).to_contain_text(str(window["in_context_from"]))
        row = page.locator("tbody tr").first
        await expect(row).to_contain_text(
            f"{compacted['summary']['from_seq']} to {compacted['summary']['to_seq']}"
        )
        await expect(row).to_contain_text("Yes")

    async def test_window_is_compacted_after_a_count_and_the_job_is_shown(
        self, page: Page, client: AsyncClient
    ) -> None:
        await policy(client, "s", budget_tokens=1000, keep_messages=4, automatic=False)
        await converse(client, "s", 40)
        await open_page(page, "#/conversation/s?tab=window")
        await page.get_by_role("button", name="Compact now").click()
        await expect(dialog(page).get_by_role("status")).to_contain_text("would leave the window")
        assert ok(await client.get("/sessions/s/summaries"))["items"] == []
        await dialog(page).get_by_role("button", name="Compact now").click()

        await expect(page.get_by_text("are in a summary now")).to_be_visible()
        [summary] = ok(await client.get("/sessions/s/summaries"))["items"]
        covered = f"{summary['from_seq']} to {summary['to_seq']}"
        await expect(page.get_by_text(f"Messages {covered} are in a summary now")).to_be_visible()
        await expect(page.locator("tbody tr")).to_contain_text(covered)
        await page.get_by_role("link", name="Show the job").click()
        [job] = ok(await client.get("/jobs", params={"session_id": "s", "kind": "rescue"}))["items"]
        await expect(page.get_by_role("main")).to_contain_text(job["job_id"])

    async def test_window_with_nothing_to_compact_says_so(
        self, page: Page, client: AsyncClient
    ) -> None:
        await policy(client, "s", automatic=False)
        await open_page(page, "#/conversation/s?tab=window")
        await page.get_by_role("button", name="Compact now").click()

        await expect(dialog(page).get_by_role("status")).to_contain_text(
            "nothing to compact. The window is empty."
        )
        await expect(dialog(page).get_by_role("button")).to_have_text(["Close"])


class TestApprovals:
    async def test_calls_that_wait_are_approved_and_rejected(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "Book it.", asking("c/1", "c2"))
        await open_page(page, "#/conversation/s?tab=approvals")
        rows = page.locator("tbody tr")
        await expect(rows).to_have_count(2)
        for left, call_id, name in ((1, "c2", "Approve"), (0, "c/1", "Reject")):
            await rows.first.get_by_role("button", name=name).click()
            await expect(dialog(page).locator("pre")).to_contain_text('"seats": 1')
            await dialog(page).get_by_label("Comment").fill(f"About {call_id}.")
            await dialog(page).get_by_role("button", name=name).click()
            await expect(rows).to_have_count(left)

        await expect(page.get_by_text("No call of a tool waits for a decision.")).to_be_visible()
        await page.get_by_label("Only those that wait").uncheck()
        await expect(rows).to_have_count(2)
        decided = ok(await client.get("/sessions/s/approvals"))["items"]
        assert {one["tool_call_id"]: (one["status"], one["comment"]) for one in decided} == {
            "c2": ("approved", "About c2."), "c/1": ("rejected", "About c/1."),
        }  # fmt: skip


class TestCheckpoints:
    async def test_checkpoint_is_made_shown_and_restored(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "One.", "Two.")
        await open_page(page, "#/conversation/s?tab=checkpoints")
        await page.get_by_role("button", name="Make a checkpoint").click()
        row = page.locator("tbody tr").first
        await expect(row).to_contain_text("manual")
        await row.get_by_role("button", name="Contents").click()
        await expect(dialog(page)).to_contain_text("agent_state")
        await dialog(page).get_by_role("button", name="Close").click()
        await append(client, "s", "Three.")
        await row.get_by_role("button", name="Restore").click()
        await dialog(page).get_by_role("button", name="Restore").click()

        await expect(page.get_by_text("Restored. The state before is")).to_be_visible()
        assert ok(await client.get("/sessions/s/window"))["messages"] == 2

    async def test_fork_begins_a_conversation_and_opens_it(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "One.", "Two.")
        ok(await client.post("/sessions/s/checkpoints", json={}), 201)
        await open_page(page, "#/conversation/s?tab=checkpoints")
        await page.get_by_role("button", name="Fork").click()
        await dialog(page).get_by_label("Id of the new conversation").fill("other")
        await dialog(page).get_by_role("button", name="Fork").click()

        await expect(page.get_by_role("heading", level=2).first).to_have_text("other")
        await expect(page.get_by_role("link", name="s, after message 2")).to_be_visible()
        await expect(page.locator(".message")).to_have_count(2)

    async def test_taken_id_of_a_fork_is_refused_in_the_dialog(
        self, page: Page, client: AsyncClient, watch: Watch
    ) -> None:
        await append(client, "s", "One.")
        await append(client, "taken", "Two.")
        ok(await client.post("/sessions/s/checkpoints", json={}), 201)
        watch.allow_refusals(409)
        await open_page(page, "#/conversation/s?tab=checkpoints")
        await page.get_by_role("button", name="Fork").click()
        await dialog(page).get_by_label("Id of the new conversation").fill("taken")
        await dialog(page).get_by_role("button", name="Fork").click()

        await expect(dialog(page).get_by_role("alert")).to_contain_text("id_taken")


class TestActions:
    async def test_memories_are_extracted_now(
        self, page: Page, client: AsyncClient, worker: None
    ) -> None:
        await append(client, "s", "I moved to Hamburg.")
        await open_page(page, "#/conversation/s")
        await page.get_by_role("button", name="Extract memories now").click()

        await expect(page.get_by_text("Everything said so far is read. added 1")).to_be_visible()
        await expect(page.locator(".from-it")).to_contain_text("I moved to Hamburg.")
        await page.get_by_role("tab", name="Extraction").click()
        await page.get_by_role("button", name="Show run").click()
        await expect(dialog(page)).to_contain_text(READER)

    async def test_conversation_is_ended_and_reopened(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "Hello.")
        await open_page(page, "#/conversation/s")
        await page.get_by_role("button", name="End").click()
        await dialog(page).get_by_role("button", name="End").click()
        await expect(page.get_by_role("button", name="Reopen")).to_be_visible()
        assert ok(await client.get("/sessions/s"))["status"] == "ended"
        await page.get_by_role("button", name="Reopen").click()

        await expect(page.get_by_role("button", name="End")).to_be_visible()
        assert ok(await client.get("/sessions/s"))["status"] == "running"

    async def test_conversation_is_deleted_when_its_id_is_typed(
        self, page: Page, client: AsyncClient
    ) -> None:
        await append(client, "s", "Hello.")
        await open_page(page, "#/conversation/s")
        await page.get_by_role("button", name="Delete").click()
        await expect(dialog(page)).to_contain_text("messages")
        await dialog(page).get_by_role("button", name="Erase for good").click()
        assert (await client.get("/sessions/s")).status_code == 200
        await dialog(page).get_by_label("Type s to confirm").fill("s")
        await dialog(page).get_by_role("button", name="Erase for good").click()

        await expect(page.get_by_role("status").get_by_role("heading")).to_be_visible()
        assert (await client.get("/sessions/s")).status_code == 404


class TestEverywhere:
    async def test_text_that_looks_like_markup_is_shown_and_not_run(
        self, page: Page, client: AsyncClient
    ) -> None:
        call = {"id": "c1", "type": "function",
                "function": {"name": "<b>x</b>", "arguments": HOSTILE}}  # fmt: skip
        await append(
            client, "s", HOSTILE, {"role": "assistant", "tool_calls": [call]},
            {"role": "user", "content": [{"type": "text", "text": HOSTILE}]},
        )  # fmt: skip
        await save(client, HOSTILE)
        await open_page(page, "#/conversation/s")
        await page.get_by_text("Call of <b>x</b>").click()
        await expect(page.get_by_text(HOSTILE)).to_have_count(3)
        assert await nothing_ran(page)
        await open_page(page, "#/conversation/s?tab=context")
        for summary in await page.locator("details > summary").all():
            await summary.click()
        await expect(page.get_by_text(HOSTILE).first).to_be_visible()
        assert await nothing_ran(page)

    @pytest.mark.parametrize(("scheme", "locale"), [("light", "en-GB"), ("dark", "zh-CN")])
    async def test_every_view_is_accessible_and_fits_a_phone(
        self, browser: Browser, address: str, acme: Caller, client: AsyncClient, watch: Watch,
        worker: None, has_axe: None, scheme: Any, locale: str,
    ) -> None:  # fmt: skip
        await told(client)
        ok(await client.post("/sessions/talk/checkpoints", json={}), 201)
        await append(client, "talk", asking("c1"))
        size = {"width": 360, "height": 740}
        async with context_of(
            browser, address, acme.key, watch, viewport=size, color_scheme=scheme, locale=locale
        ) as context:
            page = await context.new_page()
            tabs = (
                "messages",
                "context",
                "window",
                "checkpoints",
                "approvals",
                "injections",
                "extraction",
            )
            for place in ("", *(f"/talk?tab={tab}" for tab in tabs)):
                await open_page(page, f"#/conversation{place}")
                for summary in await page.locator("details > summary").all():
                    await summary.click()
                assert await page.evaluate("document.documentElement.scrollWidth") <= 360, place
                await axe(page)
        watch.check()

    async def test_tabs_are_reached_by_the_keyboard(self, page: Page, client: AsyncClient) -> None:
        await append(client, "s", "Hello.")
        await open_page(page, "#/conversation/s")
        await page.get_by_role("tab", name="Messages").focus()
        await page.keyboard.press("ArrowRight")

        await expect(page.get_by_role("tab", name="What the model sees now")).to_be_focused()
        await expect(page.get_by_role("button", name="Show", exact=True)).to_be_visible()
        await page.keyboard.press("End")
        await expect(page.get_by_role("tab", name="Extraction")).to_be_focused()
