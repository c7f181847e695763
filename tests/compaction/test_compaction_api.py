"""Compaction on request: what leaves the window, what stays, what is said about it."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, counts, every_page, ok, problem
from tests.support.conversations import compact, converse, policy, summaries, turns, window
from tests.support.service import client_of, service
from tests.support.tenants import make_key


async def full(client: AsyncClient, count: int = 40, **keys: Any) -> None:
    """A session far above its budget, which nothing compacts by itself."""
    await policy(client, "talk", **({"budget_tokens": 400, "automatic": False} | keys))
    await converse(client, "talk", count)


async def messages(client: AsyncClient) -> list[dict[str, Any]]:
    return await every_page(client, "/sessions/talk/messages")


class TestWhatLeaves:
    async def test_the_older_part_leaves_and_the_newer_stays(self, client):
        """Neither all messages nor the newer part."""
        await full(client)

        answer = await compact(client, "talk")

        assert answer["compacted"] is True
        assert answer["why_not"] is None
        evicted, shown = answer["evicted"], await window(client, "talk")
        assert evicted["from_seq"] == 1
        assert shown["in_context_from"] == evicted["to_seq"] == answer["summary"]["to_seq"]
        assert evicted["messages"] == evicted["to_seq"]
        assert shown["messages"] == 40 - evicted["to_seq"]
        assert shown["tokens"] <= 200
        assert shown["current_request"] == 39

    async def test_history_and_the_kept_tail_are_as_they_were(self, client):
        """Nothing is deleted, rewritten or added."""
        await full(client)
        before = await messages(client)

        await compact(client, "talk")

        assert await messages(client) == before

    async def test_the_summary_is_no_message(self, client):
        await full(client)

        answer = await compact(client, "talk")

        texts = [one["content"] for one in await messages(client)]
        assert answer["summary"]["content"] not in texts
        assert {one["role"] for one in await messages(client)} == {"user", "assistant"}
        [listed] = await summaries(client, "talk")
        assert listed == answer["summary"]
        assert listed["in_context"] is True

    async def test_answer_has_the_pressure_before_and_after(self, client):
        await full(client)

        answer = await compact(client, "talk")

        assert answer["pressure_before"]["level"] == "flush"
        assert answer["pressure_after"]["level"] == "ok"
        assert answer["pressure_after"] == (await window(client, "talk"))["pressure"]

    async def test_below_the_trigger_nothing_happens(self, client):
        await policy(client, "talk", budget_tokens=4000)
        await converse(client, "talk", 40)

        answer = await compact(client, "talk")

        assert (answer["compacted"], answer["why_not"]) == (False, "below_trigger")
        assert answer["evicted"] is None
        assert await summaries(client, "talk") == []

    async def test_forced_compaction_ignores_the_trigger(self, client):
        await policy(client, "talk", budget_tokens=4000)
        await converse(client, "talk", 40)

        answer = await compact(client, "talk", force=True)

        assert answer["compacted"] is True
        assert 0 < (await window(client, "talk"))["in_context_from"] < 40

    async def test_a_session_without_messages_has_nothing_to_evict(self, client):
        await policy(client, "talk")

        answer = await compact(client, "talk", force=True)

        assert answer["why_not"] == "empty"

    async def test_by_default_twenty_messages_stay(self, client):
        await full(client, 60, budget_tokens=1400, evict_fraction=0.01)

        await compact(client, "talk")

        assert 20 <= (await window(client, "talk"))["messages"] <= 21

    async def test_few_and_large_messages_leave_too(self, client):
        """Five messages of 4,000 characters, keep 20."""
        await policy(client, "talk", budget_tokens=4000, automatic=False)
        large = [
            {
                "role": "user" if place % 2 == 0 else "assistant",
                "content": f"{place} " + "a b c " * 666,
            }
            for place in range(5)
        ]
        await append(client, "talk", *large)

        answer = await compact(client, "talk")

        assert answer["compacted"] is True
        assert (await window(client, "talk"))["messages"] < 5

    async def test_a_window_far_above_its_budget_can_be_compacted(self, client):
        """The summariser has no such cap as the window."""
        await full(client, 300, budget_tokens=200)

        answer = await compact(client, "talk")

        assert answer["compacted"] is True
        assert answer["pressure_after"]["level"] != "flush"

    async def test_of_very_many_messages_the_oldest_leave_first(self, client):
        """The rest follows, and no part of it is left out."""
        await full(client, 700, budget_tokens=200)
        spans = []

        for _ in range(4):
            answer = await compact(client, "talk")
            if not answer["compacted"]:
                break
            spans.append((answer["evicted"]["from_seq"], answer["evicted"]["to_seq"]))
            more = answer["more"]

        assert len(spans) == 2
        assert more is False
        assert spans[0][0] == 1
        assert spans[1][0] == spans[0][1] + 1
        assert spans[0][1] <= 400

    async def test_the_current_request_survives_a_long_first_turn(self, client):
        await policy(client, "talk", budget_tokens=300, automatic=False)
        steps = [{"role": "assistant", "content": one["content"]} for one in turns(30)]
        await append(client, "talk", "Please sort the archive by date.", *steps)

        answer = await compact(client, "talk", force=True)

        assert answer["compacted"] is True
        shown = await window(client, "talk")
        assert 1 <= shown["messages"] < 20
        assert shown["current_request"] == 1
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={}))
        assert trimmed["messages"][0]["content"] == "Please sort the archive by date."

    async def test_of_a_request_and_its_newest_step_nothing_leaves(self, client):
        await policy(client, "talk", budget_tokens=300, automatic=False)
        step = {"role": "assistant", "content": "word " * 1000}
        await append(client, "talk", "Please sort the archive by date.", step)

        answer = await compact(client, "talk", force=True)

        assert (answer["compacted"], answer["why_not"]) == (False, "current_turn")
        assert (await window(client, "talk"))["messages"] == 2

    async def test_calls_and_results_leave_together(self, client):
        await policy(client, "talk", budget_tokens=300, automatic=False)
        for number in range(1, 11):
            call = {"id": f"call-{number}", "name": "look_up"}
            await append(
                client,
                "talk",
                f"Where does the parcel with the number {number} lie at the moment?",
                {"role": "assistant", "content": "", "tool_calls": [call]},
                {"role": "tool", "content": f"Shelf {number}.", "tool_call_id": f"call-{number}"},
                {"role": "assistant", "content": f"The parcel {number} lies on shelf {number}."},
            )

        answer = await compact(client, "talk")

        to_seq = answer["evicted"]["to_seq"]
        assert to_seq % 4 == 0
        assert 0 < to_seq < 40

    async def test_a_call_that_waits_for_its_result_stays(self, client):
        await policy(client, "talk", budget_tokens=300, automatic=False)
        call = {"id": "call-1", "name": "pay"}
        await append(
            client, "talk", "Please pay the bill of the hotel in Lisbon.",
            {"role": "assistant", "content": "", "tool_calls": [call],
             "metadata": {"requires_approval": True}},
        )  # fmt: skip
        await append(client, "talk", *turns(40))

        answer = await compact(client, "talk", force=True)

        assert answer["why_not"] == "open_call" or answer["evicted"]["to_seq"] < 2
        assert (await window(client, "talk"))["in_context_from"] < 2

    async def test_a_call_that_the_user_spoke_after_leaves(self, client):
        """An agent that crashed inside a call must not let its session overflow."""
        await policy(client, "talk", budget_tokens=300, automatic=False)
        call = {"role": "assistant", "content": "", "tool_calls": [{"id": "c1", "name": "pay"}]}
        await append(client, "talk", "Please pay the bill of the hotel in Lisbon.", call)
        waits = await compact(client, "talk", force=True)
        await append(client, "talk", *turns(40))

        answer = await compact(client, "talk")

        assert waits["evicted"] is None
        assert answer["evicted"]["from_seq"] == 1
        assert answer["evicted"]["to_seq"] > 2
        assert (await window(client, "talk"))["tokens"] <= 150

    async def test_instructions_in_the_conversation_are_not_summarised_away(self, client):
        rule = "Always answer with exactly two sentences."
        await policy(client, "talk", budget_tokens=400, automatic=False)
        await append(client, "talk", {"role": "system", "content": rule}, *turns(40))

        answer = await compact(client, "talk")

        assert rule not in answer["summary"]["content"]
        assert answer["evicted"]["from_seq"] == 2
        assert answer["evicted"]["messages"] == answer["evicted"]["to_seq"] - 1
        trimmed = ok(await client.post("/sessions/talk/window/trim", json={}))
        assert trimmed["messages"][0]["content"] == rule

    async def test_events_are_summarised(self, client):
        event = {
            "role": "system",
            "content": "The courier Bruno Alves has rung at the door of the archive.",
            "metadata": {"event_type": "visit"},
        }
        await policy(client, "talk", budget_tokens=300, automatic=False)
        await append(client, "talk", event, *turns(20))

        answer = await compact(client, "talk")

        assert answer["evicted"]["from_seq"] == 1

    async def test_reserved_tokens_count(self, client):
        await policy(client, "talk", budget_tokens=4000, automatic=False, reserved_tokens=3500)
        await converse(client, "talk", 40)

        assert (await compact(client, "talk"))["compacted"] is True


class TestAgain:
    async def test_next_compaction_begins_where_the_last_ended(self, client):
        """No message is lost, none is told twice."""
        await full(client)
        spans = []
        for number in range(3):
            answer = await compact(client, "talk", force=True)
            spans.append((answer["evicted"]["from_seq"], answer["evicted"]["to_seq"]))
            await append(client, "talk", *turns(20, first=41 + 20 * number))

        assert spans[0][0] == 1
        assert [first for first, _ in spans[1:]] == [last + 1 for _, last in spans[:-1]]

    async def test_an_empty_window_does_not_overwrite_the_summary(self, client):
        await full(client)
        first = (await compact(client, "talk"))["summary"]
        while (await compact(client, "talk", force=True))["compacted"]:
            pass
        before = await summaries(client, "talk")

        again = await compact(client, "talk", force=True)

        assert again["compacted"] is False
        assert await summaries(client, "talk") == before
        assert first["summary_id"] in {one["summary_id"] for one in before}

    async def test_summaries_count_towards_the_pressure(self, client):
        await full(client)

        answer = await compact(client, "talk")

        shown = await window(client, "talk")
        assert shown["summary_tokens"] == answer["summary"]["tokens"] > 0
        assert shown["pressure"]["tokens"] == shown["tokens"] + shown["summary_tokens"]

    async def test_an_idempotency_key_compacts_once(self, client):
        await full(client)
        headers = {"Idempotency-Key": "once"}

        first = await client.post("/sessions/talk/compact", json={"force": True}, headers=headers)
        again = await client.post("/sessions/talk/compact", json={"force": True}, headers=headers)

        assert ok(first)["compacted"] is True
        assert ok(again) == ok(first)
        assert len(await summaries(client, "talk")) == 1


class TestOverrides:
    async def test_dry_run_shows_the_eviction_and_writes_nothing(self, client, dsn, acme):
        await full(client)
        before = await counts(dsn, acme.tenant_id)

        dry = await compact(client, "talk", dry_run=True)

        assert (dry["compacted"], dry["why_not"], dry["summary"]) == (False, "dry_run", None)
        assert await counts(dsn, acme.tenant_id) == before
        assert (await window(client, "talk"))["in_context_from"] == 0
        assert (await compact(client, "talk"))["evicted"] == dry["evicted"]

    @pytest.mark.parametrize(
        ("strategy", "kept"),
        [
            ({"name": "last_messages", "count": 4}, 4),
            ({"name": "last_messages", "count": 5}, 4),
            ({"name": "last_messages", "count": 6}, 6),
            ({"name": "message_fraction", "fraction": 0.5}, 6),
            ({"name": "first_last", "keep": 2}, 2),
        ],
    )
    async def test_a_strategy_chooses_what_stays(self, client, strategy, kept):
        await policy(client, "talk", budget_tokens=4000)
        await converse(client, "talk", 12)

        answer = await compact(client, "talk", force=True, strategy=strategy)

        assert answer["compacted"]
        # The window begins with the user, so of five one more leaves.
        assert (await window(client, "talk"))["messages"] == kept
        assert answer["evicted"]["to_seq"] == 12 - kept

    @pytest.mark.parametrize(
        ("body", "code"),
        [
            ({"strategy": {"name": "unknown"}}, "unknown_strategy"),
            ({"strategy": {}, "keep_messages": 3}, "invalid_request"),
        ],
    )
    async def test_a_strategy_that_cannot_choose_is_refused(self, client, body, code):
        await policy(client, "talk")
        answer = await client.post("/sessions/talk/compact", json=body)
        assert (answer.status_code, answer.json()["code"]) == (422, code)

    async def test_keep_messages_holds_for_this_once(self, client):
        await full(client, budget_tokens=4000)

        answer = await compact(client, "talk", force=True, keep_messages=3)

        assert answer["compacted"] is True
        assert 1 <= (await window(client, "talk"))["messages"] <= 4
        assert (await window(client, "talk"))["policy"]["keep_messages"] == 20

    async def test_more_leaves_the_larger_the_evict_fraction_is(self, client):
        """The fraction is that of what leaves, never of what stays."""
        await full(client, 40)
        evicted = [
            (await compact(client, "talk", dry_run=True, evict_fraction=fraction))["evicted"]
            for fraction in (0.1, 0.5, 0.9)
        ]

        tokens = [one["tokens"] for one in evicted]
        assert tokens == sorted(tokens)
        assert tokens[0] < tokens[-1]

    @pytest.mark.parametrize(
        ("body", "status"),
        [
            ({"keep_messages": 0}, 422),
            ({"keep_messages": 1}, 200),
            ({"keep_messages": 10_000}, 200),
            ({"keep_messages": 10_001}, 422),
            ({"evict_fraction": -0.01}, 422),
            ({"evict_fraction": 0}, 200),
            ({"evict_fraction": 1}, 200),
            ({"evict_fraction": 1.01}, 422),
            ({"instructions": ""}, 422),
            ({"instructions": "x"}, 200),
            ({"instructions": "x" * 2000}, 200),
            ({"instructions": "x" * 2001}, 422),
            ({"instructions": "a\x00b"}, 422),
            ({"reason": "a" * 20}, 200),
            ({"reason": "a" * 21}, 422),
            ({"reason": "Nightly"}, 422),
            ({"reason": ""}, 422),
            ({"force": "maybe"}, 422),
            ({"percentage": 0.5}, 422),
        ],
    )
    async def test_bounds(self, client, body, status):
        await policy(client, "talk")

        response = await client.post("/sessions/talk/compact", json=body)

        assert response.status_code == status, response.text

    async def test_reason_is_stored_with_the_summary(self, client):
        await full(client)

        answer = await compact(client, "talk", reason="nightly")

        assert answer["summary"]["reason"] == "nightly"

    async def test_a_body_may_be_left_out(self, client):
        await full(client)

        assert ok(await client.post("/sessions/talk/compact"))["compacted"] is True


class TestReading:
    async def test_summaries_are_paged_newest_first(self, client):
        await full(client)
        ids = []
        for number in range(3):
            ids.append((await compact(client, "talk", force=True))["summary"]["summary_id"])
            await append(client, "talk", *turns(20, first=41 + 20 * number))

        listed = await every_page(client, "/sessions/talk/summaries", limit=1, level=0)

        assert [one["summary_id"] for one in listed] == ids[::-1]

    async def test_one_can_be_read_by_its_id(self, client):
        await full(client)
        made = (await compact(client, "talk"))["summary"]

        found = ok(await client.get(f"/sessions/talk/summaries/{made['summary_id']}"))

        assert found == made

    async def test_unknown_summary_is_404(self, client):
        await full(client)

        response = await client.get("/sessions/talk/summaries/sum_1")

        problem(response, 404, "summary_not_found")

    async def test_summary_of_another_session_is_404(self, client):
        await full(client)
        made = (await compact(client, "talk"))["summary"]
        await policy(client, "other")

        response = await client.get(f"/sessions/other/summaries/{made['summary_id']}")

        problem(response, 404, "summary_not_found")


class TestRights:
    async def test_another_tenant_finds_no_session(self, client, stranger):
        await full(client)

        for response in (
            await stranger.post("/sessions/talk/compact", json={"force": True}),
            await stranger.get("/sessions/talk/summaries"),
            await stranger.get("/sessions/talk/summaries/sum_1"),
        ):
            problem(response, 404, "session_not_found")

    async def test_another_user_finds_no_session(self, client, app, acme, runtime: Runtime):
        await full(client)
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")

        async with client_of(app, key.key) as ben:
            problem(await ben.post("/sessions/talk/compact", json={}), 404, "session_not_found")

    async def test_a_key_that_reads_may_not_compact(self, client, app, acme, runtime: Runtime):
        await full(client)
        key = await make_key(runtime, acme.tenant_id, "read")

        async with client_of(app, key.key) as reader:
            assert (await reader.post("/sessions/talk/compact", json={})).status_code == 403
            assert ok(await reader.get("/sessions/talk/summaries"))["items"] == []

    async def test_nothing_is_compacted_while_memory_is_switched_off(self, client, acme, dsn):
        await full(client)

        async with service(dsn, enabled=False) as app, client_of(app, acme.key) as off:
            response = await off.post("/sessions/talk/compact", json={})

        problem(response, 503, "memory_disabled")

    async def test_nothing_is_compacted_for_a_disabled_agent(self, client):
        await full(client)
        agent = (await messages(client))[0]["agent_id"]
        ok(await client.patch(f"/agents/{agent}", json={"status": "disabled"}))

        problem(await client.post("/sessions/talk/compact", json={}), 409, "disabled")
