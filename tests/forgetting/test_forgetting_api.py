"""What is forgotten by itself: looked at first, then done by a job; what stays, and why."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.builders.factory import Factory
from app.governance.forgetting.schemas import STEPS
from app.governance.forgetting.steps import Forgetting, ForgettingRules
from app.identity.agents.config import ForgettingPolicy
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, ok, problem, save
from tests.support.tenants import Caller
from tests.support.working import extracted, over, working

NOTHING = dict.fromkeys(STEPS, 0)
CONFIG = {
    "max_facts": 3,
    "source_deleted_days": 5,
    "with_session": True,
    "superseded_days": 10,
    "decay_below": 0.6,
    "message_retention_days": 30,
    "checkpoint_retention_days": 40,
}


@pytest.fixture
def forgetting(runtime: Runtime) -> Forgetting:
    return Factory(runtime).get(Forgetting)


async def coach(client: AsyncClient, **forgetting: Any) -> None:
    body = {"agent_id": "coach", "agent_name": "Coach", "config": {"forgetting": forgetting}}
    ok(await client.post("/agents", json=body), 201)


async def fact(
    client: AsyncClient, dsn: str, text: str, *, confidence: float = 0.8, **columns: Any
) -> str:
    """An extracted memory of Ana's and the coach's; its id."""
    saved = await save(client, text, agent_id="coach", confidence=confidence)
    one: str = saved["memory_id"]
    await set_columns(dsn, one, **{"source": "ai"} | columns)
    return one


async def set_columns(dsn: str, memory_id: str, **columns: Any) -> None:
    """Write columns as time would have; a timedelta is so long ago."""
    for name, value in columns.items():
        ago = isinstance(value, timedelta)
        place = "now() - $2::interval" if ago else "$2"
        await execute(
            dsn, f"UPDATE memories SET {name} = {place} WHERE memory_id = $1", memory_id, value
        )


async def look(client: AsyncClient, **body: Any) -> dict[str, Any]:
    """What a dry run says, by step, where it says something."""
    shown = ok(await client.post("/forgetting/run", json=body))
    assert shown["dry_run"] is True
    return {one["step"]: one for one in shown["steps"] if one["due"]}


async def last_reason(client: AsyncClient, memory_id: str) -> str:
    lines = await every_page(client, f"/memories/{memory_id}/history")
    return str(lines[-1]["reason"])


class TestMemories:
    @pytest.mark.parametrize(
        ("step", "reason", "due", "early"),
        [
            ("expired", "expired", {"expires_at": timedelta(0)}, {"expires_at": -timedelta(1)}),
            (
                "source_deleted",
                "source_deleted",
                {"source_deleted_at": timedelta(days=5), "source": "knowledge_base"},
                {"source_deleted_at": timedelta(days=4, hours=23), "source": "knowledge_base"},
            ),
            (
                "session_deleted",
                "session_deleted",
                {"source_deleted_at": timedelta(0)},
                # A client's word for where it has it from.
                {"source_id": "gone"},
            ),
            (
                "decayed",
                "decayed",
                {"create_time": timedelta(days=900), "confidence": 0.75},
                {"create_time": timedelta(days=1), "confidence": 0.75},
            ),
        ],
    )
    async def test_each_step_archives_its_own_with_its_reason(
        self,
        forgetting: Forgetting,
        client: AsyncClient,
        acme: Caller,
        dsn: str,
        step: Any,
        reason: str,
        due: dict[str, Any],
        early: dict[str, Any],
    ) -> None:
        await coach(client, **CONFIG)
        gone = await fact(client, dsn, "她喜欢绿茶，每天早上喝。", **due)
        kept = await fact(client, dsn, "The stove is broken again.", **early)

        seen = await look(client, agent_id="coach")
        assert [seen[step]["due"], seen[step]["sample"]] == [1, [{"id": gone, "reason": reason}]]
        done = await forgetting.run(acme.tenant_id, STEPS)

        assert done == NOTHING | {step: 1}
        assert await forgetting.run(acme.tenant_id, STEPS) == NOTHING
        assert await last_reason(client, gone) == reason
        assert ok(await client.get(f"/memories/{gone}"))["status"] == "archived"
        assert ok(await client.get(f"/memories/{kept}"))["status"] == "active"

    @pytest.mark.parametrize("with_session", [False, True])
    async def test_what_a_deleted_session_told_goes_and_what_a_client_saved_stays(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str, with_session: bool
    ) -> None:
        # For what is of no agent, too.
        await execute(
            dsn, "UPDATE tenants SET config = $2 WHERE tenant_id = $1", acme.tenant_id,
            f'{{"forgetting": {{"with_session": {str(with_session).lower()}}}}}',
        )  # fmt: skip
        reply = {"role": "assistant", "content": "I see."}
        await append(client, "talk", "I live in Munich.", reply)
        async with working(runtime, dsn):
            await extracted(client, "talk")
        [told] = ok(await client.get("/memories", params={"user_id": "ana"}))["items"]
        saved = [
            await save(client, "她喜欢绿茶。", session_id="talk", source="ai"),
            await save(client, "A horse.....", source="ai", source_id="talk"),
            await save(client, "A newt.....", source="ai", source_id="thread-7"),
        ]
        ok(await client.delete("/sessions/talk", params={"confirm": True}))

        done = await Factory(runtime).get(Forgetting).run(acme.tenant_id, STEPS)

        assert done == NOTHING | {"session_deleted": int(with_session)}
        found = ok(await client.get(f"/memories/{told['memory_id']}"))
        assert found["status"] == ("archived" if with_session else "active")
        if with_session:
            assert await last_reason(client, told["memory_id"]) == "session_deleted"
        for one in saved:
            assert ok(await client.get(f"/memories/{one['memory_id']}"))["status"] == "active"

    async def test_what_was_superseded_long_ago_goes_and_without_a_policy_nothing_does(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await coach(client)
        old = await fact(client, dsn, "She lives in Bonn.", status="superseded")
        await execute(dsn, "ALTER TABLE memories DISABLE TRIGGER memories_update_time")
        await set_columns(dsn, old, update_time=timedelta(days=10))
        await execute(dsn, "ALTER TABLE memories ENABLE TRIGGER memories_update_time")
        assert await forgetting.run(acme.tenant_id, STEPS) == NOTHING

        config = {"forgetting": {"superseded_days": 10}}
        ok(await client.patch("/agents/coach", json={"config": config}))

        assert await forgetting.run(acme.tenant_id, STEPS) == NOTHING | {"superseded": 1}
        assert await last_reason(client, old) == "superseded_long_ago"

    @pytest.mark.parametrize("count", [2, 3, 4])
    async def test_the_weakest_beyond_the_cap_go_and_what_a_person_saved_does_not_count(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str, count: int
    ) -> None:
        await coach(client, max_facts=3)
        texts = ["A horse.....", "A newt.....", "A gecko.....", "A ferret....."]
        ids = [
            await fact(client, dsn, text, confidence=0.7 + number / 100)
            for number, text in enumerate(texts[:count])
        ]
        await save(client, "Saved by hand, with great care.", agent_id="coach", confidence=0.7)

        done = await forgetting.run(acme.tenant_id, STEPS)

        assert done == NOTHING | {"over_capacity": max(count - 3, 0)}
        if count > 3:
            assert await last_reason(client, ids[0]) == "over_capacity"

    async def test_nothing_is_bounded_where_the_cap_is_0_or_forgetting_is_off(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await coach(client, max_facts=1)
        for text in ("A horse.....", "A newt.....", "A gecko....."):
            await fact(client, dsn, text)

        for said in ({"max_facts": 0}, {"max_facts": 1, "enabled": False}):
            ok(await client.patch("/agents/coach", json={"config": {"forgetting": said}}))
            assert await forgetting.run(acme.tenant_id, STEPS) == NOTHING

    async def test_the_other_way_to_choose_is_shown_beside(
        self, client: AsyncClient, dsn: str
    ) -> None:
        await coach(client, max_facts=1)
        stale = await fact(
            client, dsn, "A horse.....", confidence=0.9, create_time=timedelta(days=900)
        )
        used = await fact(
            client, dsn, "A newt.....", confidence=0.75, use_count=20, last_used_at=timedelta(1)
        )

        body = {"eviction": "hybrid", "steps": ["over_capacity"]}
        shown = ok(await client.post("/forgetting/run", json=body))

        assert shown["steps"][0]["sample"] == [{"id": used, "reason": "over_capacity"}]
        assert shown["shadow"] == {
            "eviction": "hybrid", "buckets": 1, "both": 0, "only_policy": [used],
            "only_shadow": [stale], "truncated": False,
        }  # fmt: skip
        assert ok(await client.get(f"/memories/{used}"))["status"] == "active"

    async def test_what_was_archived_is_removed_another_day_unless_somebody_touched_it(
        self, runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await coach(client, max_facts=1)
        gone = await fact(client, dsn, "A horse.....", confidence=0.7)
        back = await fact(client, dsn, "A newt.....", confidence=0.71)
        await fact(client, dsn, "A gecko.....", confidence=0.9)
        await Factory(runtime).get(Forgetting).run(acme.tenant_id, STEPS)
        await execute(dsn, "UPDATE memories SET version = version + 1 WHERE memory_id = $1", back)
        rules = ForgettingRules(ForgettingPolicy(), timedelta(0), runtime.window_policy)
        now = Forgetting(runtime.database, rules)

        assert await now.run(acme.tenant_id, STEPS) == NOTHING | {"purged": 1}

        lines = await execute(
            dsn,
            "SELECT event, reason, before, after FROM memory_history WHERE memory_id = $1",
            gone,
        )
        assert [tuple(one) for one in lines if one["event"] == "DELETE"] == [
            ("DELETE", "forgotten", None, None)
        ]
        assert ok(await client.get(f"/memories/{back}"))["status"] == "archived"


CALL = {
    "role": "assistant",
    "content": "",
    "tool_calls": [{"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}"}}],
}
RESULT = {"role": "tool", "tool_call_id": "c1", "content": "42"}


class TestMessages:
    async def aged(self, dsn: str, session_id: str, days: int, upto: int) -> None:
        await execute(
            dsn,
            "UPDATE messages SET create_time = create_time - $2::interval "
            "WHERE session_id = $1 AND sequence_no <= $3",
            session_id, timedelta(days=days), upto,
        )  # fmt: skip

    async def numbers(self, client: AsyncClient, session_id: str) -> list[int]:
        rows = await every_page(client, f"/sessions/{session_id}/messages")
        return [one["sequence_no"] for one in rows]

    async def test_old_ones_go_once_they_were_read_and_are_in_no_window(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await coach(client, **CONFIG)
        session = f"s-{acme.tenant_id}"
        await append(client, session, *(f"我去了第{n}个城市。" for n in range(6)), agent_id="coach")
        await self.aged(dsn, session, 31, 5)
        step = ["messages"]
        assert await forgetting.run(acme.tenant_id, step) == {"messages": 0}

        await execute(
            dsn, "UPDATE sessions SET last_extracted_seq = 6, in_context_from = 4 "
            "WHERE session_id = $1", session,
        )  # fmt: skip
        assert (await look(client))["messages"]["due"] == 4
        assert await forgetting.run(acme.tenant_id, step) == {"messages": 4}
        assert await self.numbers(client, session) == [5, 6]
        [row] = await execute(
            dsn, "SELECT window_messages, window_seq FROM sessions WHERE session_id = $1", session
        )
        assert tuple(row) == (2, 6)

        ok(await client.post(f"/sessions/{session}/end"))
        assert await forgetting.run(acme.tenant_id, step) == {"messages": 1}
        assert await self.numbers(client, session) == [6]

    async def test_half_of_a_call_never_goes(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await coach(client, **CONFIG)
        session = f"s-{acme.tenant_id}"
        await append(client, session, "What is six times seven?", CALL, RESULT, agent_id="coach")
        await self.aged(dsn, session, 31, 2)
        await execute(
            dsn, "UPDATE sessions SET last_extracted_seq = 3, in_context_from = 3 "
            "WHERE session_id = $1", session,
        )  # fmt: skip

        assert await forgetting.run(acme.tenant_id, ["messages"]) == {"messages": 1}
        assert await self.numbers(client, session) == [2, 3]

        await self.aged(dsn, session, 31, 3)
        assert await forgetting.run(acme.tenant_id, ["messages"]) == {"messages": 2}


class TestTheJob:
    async def test_forgetting_job_does_what_was_shown_and_says_how_much(
        self, runtime: Runtime, client: AsyncClient, dsn: str
    ) -> None:
        await coach(client, max_facts=1)
        for number, text in enumerate(("A horse.....", "A newt.....")):
            await fact(client, dsn, text, confidence=0.8 + number / 100)

        ordered = ok(await client.post("/forgetting/run", json={"dry_run": False}), 202)
        async with working(runtime, dsn):
            job = await over(client, ordered["job_id"])

        assert job["result"] == NOTHING | {"over_capacity": 1, "total": 1}
        shown = ok(await client.get("/forgetting"))
        assert shown["policy"]["max_facts"] == 100
        assert shown["agents"]["coach"]["max_facts"] == 1
        assert shown["last_runs"][0]["result"]["over_capacity"] == 1

    async def test_two_at_once_take_each_row_once(
        self, forgetting: Forgetting, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for number in range(12):
            await save(client, f"她在第{number}个城市住过。")
        await execute(
            dsn, "UPDATE memories SET expires_at = now() WHERE tenant_id = $1", acme.tenant_id
        )

        first, second = await asyncio.gather(
            *(forgetting.run(acme.tenant_id, ["expired"]) for _ in range(2))
        )

        assert first["expired"] + second["expired"] == 12
        lines = await execute(
            dsn, "SELECT memory_id FROM memory_history WHERE tenant_id = $1 AND event = 'ARCHIVE'",
            acme.tenant_id,
        )  # fmt: skip
        assert len(lines) == len({one["memory_id"] for one in lines}) == 12


class TestPolicy:
    @pytest.mark.parametrize(
        ("said", "place"),
        [
            ({"max_facts": 501}, "body.config.forgetting.max_facts"),
            ({"max_facts": "3"}, "body.config.forgetting.max_facts"),
            ({"eviction": "oldest"}, "body.config.forgetting.eviction"),
            ({"decay_below": 1.5}, "body.config.forgetting.decay_below"),
            ({"max_fact": 3}, "body.config.forgetting.max_fact"),
            ("off", "body.config.forgetting"),
        ],
    )
    async def test_what_cannot_be_meant_is_refused_by_name(
        self, client: AsyncClient, said: Any, place: str
    ) -> None:
        await coach(client)

        response = await client.patch("/agents/coach", json={"config": {"forgetting": said}})

        body = problem(response, 422, "invalid_config")
        assert ".".join(body["errors"][0]["location"]) == place

    async def test_an_unknown_agent_is_not_found(self, client: AsyncClient) -> None:
        response = await client.post("/forgetting/run", json={"agent_id": "nobody"})
        problem(response, 404, "agent_not_found")

    async def test_a_comparison_is_never_acted_on(self, client: AsyncClient) -> None:
        body = {"dry_run": False, "eviction": "hybrid"}
        problem(await client.post("/forgetting/run", json=body), 422, "invalid_request")
