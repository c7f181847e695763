"""How full a window is: counted with every append and deletion, told in every answer."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.messages.window_repository import WindowCounters, WindowRepository
from app.conversation.sessions.policy import WindowPolicy
from app.conversation.sessions.repository import SessionRepository
from app.identity.tenants.access import Access
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, fields, ok, problem
from tests.support.conversations import policy, window
from tests.support.service import client_of, tapped
from tests.support.tenants import Caller

COUNTED = """
SELECT sum(m.token_count)::int8 AS window_tokens, count(*) AS window_messages,
    coalesce(max(m.sequence_no) FILTER (WHERE m.role = 'user'), 0) AS last_user_seq
FROM messages m JOIN sessions s USING (tenant_id, session_id)
WHERE m.tenant_id = $1 AND m.session_id = $2
    AND m.sequence_no > s.in_context_from AND NOT m.sequence_no <@ s.set_aside
"""

KEPT = """
SELECT window_tokens, window_messages, last_user_seq FROM sessions
WHERE tenant_id = $1 AND session_id = $2
"""

JOBS = "SELECT key, session_id, status FROM jobs WHERE tenant_id = $1 AND kind = 'compact'"


def tokens(text: str, **parts: Any) -> int:
    return message_tokens(EstimatedTokens(), content=text, **parts)


async def agree(dsn: str, acme: Caller, session_id: str = "s") -> dict[str, int]:
    """The counters of the session, which must be what its messages add up to."""
    [kept] = await execute(dsn, KEPT, acme.tenant_id, session_id)
    [counted] = await execute(dsn, COUNTED, acme.tenant_id, session_id)
    wanted = dict(counted) | {"window_tokens": counted["window_tokens"] or 0}
    assert dict(kept) == wanted
    return wanted


def counted(window_tokens: int = 0, messages: int = 50, **fields: Any) -> WindowCounters:
    given = {"last_user_seq": 40, "summary_tokens": 0, "token_scale": 1.0, "in_context_from": 0}
    return WindowCounters(window_tokens=window_tokens, window_messages=messages, **(given | fields))


class TestAppend:
    async def test_answers_with_the_pressure(self, client: AsyncClient) -> None:
        told = await append(
            client, "s", "我上周搬到了慕尼黑。", {"role": "assistant", "content": "Nice!"}
        )

        there = tokens("我上周搬到了慕尼黑。") + tokens("Nice!")
        assert told["pressure"] == {
            "level": "ok", "tokens": there, "budget_tokens": 4000, "share": round(there / 4000, 4),
            "notice": None, "counter": "estimate/v1", "compaction_job_id": None,
        }  # fmt: skip

    async def test_counts_calls_names_and_parts(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
        part = {"type": "image_url", "image_url": {"url": "data:image/png;base64,AAAA"}}

        told = await append(
            client,
            "s",
            {"role": "user", "content": "See", "content_parts": [part], "name": "ana"},
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "A cat."},
        )

        wanted = tokens("See", content_parts=[part], name="ana") + tokens("", tool_calls=[call])
        assert told["pressure"]["tokens"] == wanted + tokens("A cat.")
        assert (await agree(dsn, acme))["last_user_seq"] == 1

    async def test_metadata_is_not_sent_and_not_counted(self, client: AsyncClient) -> None:
        """It inflated the prompt of others."""
        message = {"role": "user", "content": "Hi", "metadata": {"trace": "x" * 5000}}

        assert (await append(client, "s", message))["pressure"]["tokens"] == tokens("Hi")

    @pytest.mark.parametrize(
        ("reserved", "level"),
        [(699, "ok"), (700, "warn"), (701, "warn"), (999, "warn"), (1000, "flush")],
    )
    async def test_tells_each_level(self, client: AsyncClient, reserved: int, level: str) -> None:
        there = tokens("Hello") + tokens("Hi") + tokens("Bye")
        await policy(client, "s", budget_tokens=1000, reserved_tokens=reserved - there)

        told = await append(client, "s", "Hello", {"role": "assistant", "content": "Hi"}, "Bye")

        assert (told["pressure"]["level"], told["pressure"]["tokens"]) == (level, reserved)
        # The job is there as long as no worker has taken it.
        assert (await window(client, "s"))["pressure"] == told["pressure"]
        assert (told["pressure"]["compaction_job_id"] is not None) == (level == "flush")

    async def test_at_the_threshold_one_job_is_ordered_however_many_append(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await policy(client, "s", budget_tokens=100)
        long = "The blue notebook lies on the shelf near the window. " * 10

        first = await append(client, "s", "Hello", {"role": "assistant", "content": long}, "And?")
        second = await append(client, "s", {"role": "assistant", "content": long})

        job = first["pressure"]["compaction_job_id"]
        assert job == second["pressure"]["compaction_job_id"]
        [row] = await execute(dsn, JOBS, acme.tenant_id)
        assert (row["key"], row["session_id"]) == ("s", "s")

    async def test_without_automatic_none_is(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await policy(client, "s", budget_tokens=100, automatic=False)

        told = await append(
            client, "s", "Hello", {"role": "assistant", "content": "long " * 200}, "x"
        )

        assert (told["pressure"]["level"], told["pressure"]["compaction_job_id"]) == ("flush", None)
        assert await execute(dsn, JOBS, acme.tenant_id) == []

    async def test_sent_again_it_counts_once(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        message = {"role": "user", "content": "Hello", "message_id": "m1"}

        first = await append(client, "s", message, usage={"input_tokens": 10})
        again = await append(client, "s", message, usage={"input_tokens": 900})

        assert again["pressure"] == first["pressure"]
        assert (await agree(dsn, acme))["window_tokens"] == tokens("Hello")

    async def test_counts_what_a_provider_reports(self, client: AsyncClient) -> None:
        """Its own count scales ours, by 1.25 at most and never down."""
        text = "The blue notebook lies on the shelf near the window."
        there = tokens(text)

        reply = {"role": "assistant", "content": "I see."}
        await append(client, "s", text, reply, usage={"input_tokens": 10 * there})
        assert (await window(client, "s"))["token_scale"] == 1.25
        told = await append(client, "s", reply, usage={"input_tokens": 1})

        assert (await window(client, "s"))["token_scale"] == 1.0
        assert told["pressure"]["tokens"] == there + 2 * tokens("I see.")

    async def test_what_the_model_answered_was_not_in_its_input(self, client: AsyncClient) -> None:
        """The trigger counted output tokens too, fired at 60 percent and again at once."""
        before = "The blue notebook lies on the shelf near the window."
        reply = {"role": "assistant", "content": "word " * 500}
        await append(client, "s", before)

        reported = round(1.1 * (tokens(before) + tokens("And now?")))
        await append(client, "s", "And now?", reply, usage={"input_tokens": reported})

        scale = (await window(client, "s"))["token_scale"]
        assert scale == pytest.approx(1.1, abs=0.03)

    @pytest.mark.parametrize("reported", [0, 10_000_001])
    async def test_a_report_has_bounds(self, client: AsyncClient, reported: int) -> None:
        body = {
            "user_id": "ana",
            "messages": [{"role": "user", "content": "x"}],
            "usage": {"input_tokens": reported},
        }

        refused = problem(
            await client.post("/sessions/s/messages", json=body), 422, "invalid_request"
        )

        assert fields(refused) == ["body.usage.input_tokens"]

    async def test_asks_the_database_no_oftener_for_being_counted(
        self, acme: Caller, dsn: str
    ) -> None:
        """11 was the number before there was a window."""
        async with tapped(dsn, acme.key) as (wire, client):
            for number in range(3):
                await append(client, "s", f"Turn {number}.", usage={"input_tokens": 20})

            before = wire.round_trips
            await append(client, "s", "One more.", usage={"input_tokens": 50})

            assert wire.round_trips - before <= 11


class TestTogether:
    async def test_many_appends_at_once_add_up(
        self, client: AsyncClient, app: Any, dsn: str, acme: Caller
    ) -> None:
        async with client_of(app, acme.key) as other:
            await asyncio.gather(
                *(
                    append(one, "s", "Hello " * number, {"role": "assistant", "content": "你好"})
                    for number in range(1, 11)
                    for one in (client, other)
                )
            )

        assert (await agree(dsn, acme))["window_messages"] == 40

    async def test_appends_and_deletions_at_once_add_up(
        self, client: AsyncClient, app: Any, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s", *(f"Turn {number}" for number in range(30)))

        async with client_of(app, acme.key) as other:
            await asyncio.gather(
                *(append(client, "s", f"More {number}") for number in range(10)),
                *(other.post("/sessions/s/messages/delete", json={"oldest": 2}) for _ in range(10)),
            )

        assert (await agree(dsn, acme))["window_messages"] == 20


class TestDeletion:
    async def conversation(self, client: AsyncClient) -> list[str]:
        call = {"id": "c1", "function": {"name": "look", "arguments": "{}"}}
        told = await append(
            client,
            "s",
            "One",
            {"role": "assistant", "tool_calls": [call]},
            {"role": "tool", "tool_call_id": "c1", "content": "A cat."},
            {"role": "assistant", "content": "It is a cat."},
            "Two",
            {"role": "assistant", "content": "Yes."},
        )
        return [row["message_id"] for row in told["messages"]]

    async def test_takes_a_pair_out_of_the_count(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        ids = await self.conversation(client)

        ok(await client.delete(f"/sessions/s/messages/{ids[2]}"))

        assert (await agree(dsn, acme))["window_messages"] == 4

    async def test_of_the_newest_request_makes_the_one_before_it_current(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        ids = await self.conversation(client)

        ok(await client.post("/sessions/s/messages/delete", json={"message_ids": [ids[4]]}))

        assert (await agree(dsn, acme))["last_user_seq"] == 1

    async def test_of_everything_leaves_nothing(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await self.conversation(client)

        ok(await client.delete("/sessions/s/messages", params={"confirm": True}))

        assert await agree(dsn, acme) == {
            "window_tokens": 0, "window_messages": 0, "last_user_seq": 0
        }  # fmt: skip
        await append(client, "s", "Again")
        assert (await agree(dsn, acme))["last_user_seq"] == 7

    async def test_a_dry_run_changes_nothing(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await self.conversation(client)
        before = await agree(dsn, acme)

        await client.post("/sessions/s/messages/delete", json={"oldest": 3, "dry_run": True})

        assert await agree(dsn, acme) == before


async def aside(runtime: Runtime, acme: Caller, ranges: str, pointer: int = 0) -> None:
    """Set numbers of the session aside, and its pointer, as a restore does."""
    access = Access(acme.tenant_id)
    async with runtime.database.begin(acme.tenant_id) as db:
        session = await SessionRepository(db, access).get("s", lock=True)
        driver = (await (await db.connection()).get_raw_connection()).driver_connection
        assert driver is not None
        await driver.execute(
            "UPDATE sessions SET set_aside = $2::text::int8multirange, in_context_from = $3 "
            "WHERE session_id = $1", "s", ranges, pointer,
        )  # fmt: skip
        await db.refresh(session)
        await WindowRepository(db, access, session).recount(WindowPolicy())


class TestOtherBranches:
    """What a restore has set aside is kept, and is in no window."""

    async def test_what_is_set_aside_does_not_count(
        self, client: AsyncClient, runtime: Runtime, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s", *(f"Turn {number}" for number in range(10)))

        await aside(runtime, acme, "{[3,6),[8,11)}", pointer=1)

        assert await agree(dsn, acme) == {
            "window_tokens": 3 * tokens("Turn 1"), "window_messages": 3, "last_user_seq": 7
        }  # fmt: skip
        await append(client, "s", "On")
        assert (await agree(dsn, acme))["window_messages"] == 4

    async def test_a_message_hangs_on_the_newest_of_its_own_branch(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        told = await append(client, "s", "One", "Two", "Three")
        await aside(runtime, acme, "{[3,4)}")

        [new] = (await append(client, "s", "Other"))["messages"]

        assert new["parent_message_id"] == told["messages"][1]["message_id"]

    async def test_a_call_answered_over_there_is_open_here(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """A run that is resumed at a pending approval answers it again."""
        result = {"role": "tool", "tool_call_id": "c1", "content": "Done."}
        call = {"role": "assistant", "tool_calls": [{"id": "c1"}]}
        await append(client, "s", "One", call, result)
        await aside(runtime, acme, "{[3,4)}")

        await append(client, "s", result)
        problem(
            await client.post("/sessions/s/messages", json={"messages": [result]}),
            422,
            "unknown_tool_call",
        )

    async def test_a_call_from_over_there_cannot_be_answered_here(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        result = {"role": "tool", "tool_call_id": "c1", "content": "Done."}
        await append(client, "s", "One", {"role": "assistant", "tool_calls": [{"id": "c1"}]})
        await aside(runtime, acme, "{[2,3)}")

        problem(
            await client.post("/sessions/s/messages", json={"messages": [result]}),
            422,
            "unknown_tool_call",
        )

    async def test_sent_again_a_message_from_over_there_is_a_conflict(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        """Answered as existing, it would be in no window."""
        message = {"role": "user", "content": "Two", "message_id": "m2"}
        await append(client, "s", "One", message)
        await aside(runtime, acme, "{[2,3)}")

        body = {"messages": [message]}

        problem(await client.post("/sessions/s/messages", json=body), 409, "message_set_aside")
        assert (await window(client, "s"))["set_aside"] == 1


OLDER_APPEND = """
WITH placed AS (
    UPDATE sessions SET last_sequence_no = last_sequence_no + 1
    WHERE tenant_id = $1 AND session_id = 's' RETURNING *
)
INSERT INTO messages (tenant_id, message_id, session_id, user_id, agent_id, role, content,
    sequence_no)
SELECT tenant_id, 'old' || last_sequence_no, session_id, user_id, agent_id, 'user', $2,
    last_sequence_no
FROM placed
"""


class TestOlderReleases:
    async def test_what_one_appended_is_counted_with_the_next_append(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        """It neither counts its messages nor moves the counters."""
        await append(client, "s", "Hello")
        await execute(dsn, OLDER_APPEND, acme.tenant_id, "The blue notebook lies there. " * 20)
        await execute(dsn, OLDER_APPEND, acme.tenant_id, "蓝色的笔记本放在那边的架子上。" * 20)

        english, chinese = (
            tokens("The blue notebook lies there. " * 20),
            tokens("蓝色的笔记本放在那边的架子上。" * 20),
        )
        seen = await window(client, "s")
        assert (seen["messages"], seen["current_request"]) == (3, 3)
        # Without a count they are estimated where they are.
        assert seen["tokens"] == pytest.approx(tokens("Hello") + english + chinese, rel=0.25)
        [kept] = await execute(dsn, KEPT, acme.tenant_id, "s")
        assert kept["window_messages"] == 1

        told = await append(client, "s", "Bye")

        [kept] = await execute(dsn, KEPT, acme.tenant_id, "s")
        assert (kept["window_messages"], kept["last_user_seq"]) == (4, 4)
        assert told["pressure"]["tokens"] == seen["tokens"] + tokens("Bye")

    async def test_a_session_it_has_left_can_be_trimmed(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await append(client, "s", "Hello")
        for number in range(5):
            await execute(dsn, OLDER_APPEND, acme.tenant_id, f"Turn {number}")

        trimmed = ok(await client.post("/sessions/s/window/trim", json={"max_tokens": 20}))

        assert [row["content"] for row in trimmed["messages"]] == ["Turn 2", "Turn 3", "Turn 4"]


class TestWorkingState:
    """A tool's result and the state that it changes, in one request."""

    async def test_comes_with_the_messages_or_not_at_all(self, client: AsyncClient) -> None:
        told = await append(client, "s", "Hello", state={"goal": "tea", "x": 1}, state_version=0)
        assert told["state_version"] == 1

        body = {
            "messages": [{"role": "user", "content": "More"}],
            "state": {"x": None},
            "state_version": 0,
        }
        problem(await client.post("/sessions/s/messages", json=body), 409, "version_conflict")
        assert len(await every_page(client, "/sessions/s/messages")) == 1
        ok(await client.post("/sessions/s/messages", json=body | {"state_version": 1}), 201)

        state = ok(await client.get("/sessions/s/state"))
        assert (state["state"], state["version"]) == ({"goal": "tea"}, 2)

    async def test_sent_again_it_is_not_applied_again(self, client: AsyncClient) -> None:
        message = {"role": "user", "content": "Hello", "message_id": "m1"}
        await append(client, "s", message, state={"n": 1}, state_version=0)
        ok(await client.patch("/sessions/s/state", json={"n": 2}, headers={"If-Match": "1"}))

        again = await append(client, "s", message, state={"n": 1}, state_version=0)

        assert again["state_version"] is None
        assert ok(await client.get("/sessions/s/state"))["state"] == {"n": 2}

    @pytest.mark.parametrize("given", [{"state": {"n": 1}}, {"state_version": 1}])
    async def test_a_change_names_its_version(
        self, client: AsyncClient, given: dict[str, Any]
    ) -> None:
        body = {"user_id": "ana", "messages": [{"role": "user", "content": "x"}]} | given

        problem(await client.post("/sessions/s/messages", json=body), 422, "invalid_request")


class TestKeeping:
    async def test_a_call_that_needs_leave_waits_for_it_until_its_message_goes(
        self, client: AsyncClient
    ) -> None:
        call = {
            "role": "assistant", "tool_calls": [{"id": "c1"}],
            "metadata": {"requires_approval": True},
        }  # fmt: skip
        told = await append(client, "s", "Pay it", call)

        [waiting] = await every_page(client, "/sessions/s/approvals")
        assert waiting["tool_call_id"] == "c1"
        ok(await client.delete(f"/sessions/s/messages/{told['messages'][1]['message_id']}"))
        assert await every_page(client, "/sessions/s/approvals") == []

    async def test_a_checkpoint_is_kept_whenever_so_many_messages_have_come(
        self, client: AsyncClient
    ) -> None:
        await policy(client, "s", checkpoint_every=3)

        for count, size in enumerate((1, 1, 1, 2, 1, 7), 1):
            await append(client, "s", *(f"{count}/{number}" for number in range(size)))

        # At 3, at 6, and once for 7 to 13.
        kept = await every_page(client, "/sessions/s/checkpoints")
        assert [(row["message_seq"], row["reason"]) for row in kept] == [
            (13, "periodic"), (6, "periodic"), (3, "periodic")
        ]  # fmt: skip
