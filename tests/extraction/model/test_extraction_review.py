"""Old memories in the ordinary call: reviewed, extended, removed and merged, within limits."""

import asyncio
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from app.language.keyless.extractor import READER
from app.memory.extraction.decisions import MOST_REMOVALS
from app.memory.extraction.known_repository import LONGEST_PART, MOST_DUE, MOST_PARTS
from tests.support.api import append, every_page, execute, ok, save
from tests.support.chat_behaviours import (
    Line,
    by_question,
    cut_off,
    decides,
    declines,
    entry,
    extracts,
    held,
    lines_of,
    schema_name_of,
    writes,
)
from tests.support.openai_server import (
    Behaviour,
    Endpoint,
    Request,
    completion,
    refusal,
)
from tests.support.patience import PATIENCE
from tests.support.working import extracted, make_due, working

TEA = "The user drinks green tea in the morning."
COFFEE = "The user drinks black coffee in the morning."
THINGS = (
    "horse", "violin", "kayak", "lathe", "anvil", "tent", "globe", "piano", "sledge", "drone",
    "loom", "canoe", "easel", "kiln", "rifle", "trumpet", "barrow", "lantern", "hammock", "tractor",
    "abacus", "saddle", "ladder", "wagon", "compass", "camera", "bicycle", "scooter", "organ",
    "harp", "mixer", "printer", "telescope",
)  # fmt: skip

Judge = Callable[[Line], Mapping[str, Any] | None]
Joiner = Callable[[list[Line]], Sequence[Mapping[str, Any]]]


@pytest.fixture(scope="module")
def model_settings() -> dict[str, Any]:
    return {"max_facts": 40, "webhook_private_targets": True}


@pytest.fixture
def chat(chat: Endpoint) -> Endpoint:
    chat.otherwise = tending()
    return chat


@pytest.fixture
async def ana(client: AsyncClient) -> AsyncClient:
    """A client whose user has a fresh memory, near to what she will say."""
    await save(client, TEA, source="ai")
    return client


def tending(review: Judge | None = None, merge: Joiner | None = None) -> Behaviour:
    """Remembers what was said, replaces nothing, and looks at old memories like this."""
    remembering = extracts(
        lambda found: [entry(one["text"], one["id"]) for one in found if one["role"] == "user"]
    )
    return by_question(memories=remembering, decisions=deciding(review, merge))


def deciding(review: Judge | None = None, merge: Joiner | None = None) -> Behaviour:
    """Says that everything is remembered already, and this of old memories."""

    async def behave(request: Request):
        decided = json.loads((await decides(repeated)(request)).body)
        text = json.loads(decided["choices"][0]["message"]["content"])
        due = [(line, review(line) if review else None) for line in lines_of(request, "due")]
        parts = lines_of(request, "part")
        text["reviews"] = [
            {"memory": line["id"], "reason": "Because."} | dict(judged)
            for line, judged in due
            if judged is not None
        ]
        text["merges"] = [
            {"reason": "One matter.", "confidence": 0.9} | dict(one)
            for one in (merge(parts) if merge and parts else [])
        ]
        return completion(json.dumps(text))

    return behave


def repeated(_: Line, near: list[Line]) -> dict[str, Any]:
    return {"event": "NONE", "memories": [near[0]["id"]]}


def says_of_all(name: str) -> Judge:
    return lambda _: {"verdict": name}


def owns(thing: str) -> str:
    return f"The user owns a {thing}."


async def own(client: AsyncClient, count: int, *, days: float | None = None, **fields: Any):
    """Ids of so many extracted memories, in order, nobody having spoken of them for `days`."""
    body = {"user_id": "ana", "infer": False, "source": "ai", "on_duplicate": "allow"} | fields
    if days is not None:
        # What lasts is not over because it is old.
        body = {"memory_type": "context"} | body
    body["messages"] = [{"content": owns(thing)} for thing in THINGS[:count]]
    answer = ok(await client.post("/memories", json=body))
    ids = [one["memory_id"] for one in answer["results"]]
    if days is not None:
        await age(client, ids, days)
    return ids


async def age(client: AsyncClient, ids: Sequence[str], days: float, **columns: Any) -> None:
    """Let the last change lie that long ago: as an update of `use_count` it is none itself."""
    moment = datetime.now(UTC) - timedelta(days=days)
    names = [f"{name} = ${number}" for number, name in enumerate(columns, start=4)]
    await execute(
        client.dsn,
        f"UPDATE memories SET {', '.join(['use_count = use_count + 1', *names])}, "
        "update_time = $3, create_time = $3 WHERE tenant_id = $1 AND memory_id = ANY($2)",
        client.tenant_id,
        list(ids),
        moment,
        *columns.values(),
    )


async def infer(client: AsyncClient, text: str = COFFEE, **fields: Any) -> dict[str, Any]:
    """The run that read a text."""
    body = {"messages": text, "user_id": "ana"} | fields
    response = await client.post("/memories", json=body)
    assert response.status_code in {200, 201}, response.text
    return ok(await client.get(f"/extractions/{response.json()['extraction_id']}"))


def asked(chat) -> list[Request]:
    return [request for request in chat.requests if schema_name_of(request) == "decisions"]


def shown(chat, kind: str = "due") -> list[str]:
    """The texts that the last call held of this kind."""
    return [line["text"] for line in lines_of(asked(chat)[-1], kind)]


async def memory(client: AsyncClient, memory_id: str) -> dict[str, Any]:
    return ok(await client.get(f"/memories/{memory_id}"))


async def history(client: AsyncClient, memory_id: str) -> list[dict[str, Any]]:
    return await every_page(client, f"/memories/{memory_id}/history")


async def verdicts(client: AsyncClient, run: Mapping[str, Any]) -> dict[str, list[str]]:
    """Of old memories: what each became, and the codes that say why."""
    rows = await every_page(client, "/memories/decisions", extraction_id=run["extraction_id"])
    return {row["memory_id"]: [row["event"], *row["codes"]] for row in rows if row["codes"]}


class TestReview:
    async def test_each_verdict_does_what_it_says_in_the_one_call(self, ana, chat):
        gone, lasting, kept = await own(ana, 3, days=100)
        judged = {owns(THINGS[0]): "REMOVE", owns(THINGS[1]): "EXTEND", owns(THINGS[2]): "KEEP"}
        chat.otherwise = tending(lambda line: {"verdict": judged[line["text"]]})
        run = await infer(ana)

        assert [schema_name_of(one) for one in chat.requests] == ["memories", "decisions"]
        removed = await memory(ana, gone)
        assert (removed["status"], removed["content"]) == ("archived", owns(THINGS[0]))
        assert [(line["event"], line["reason"]) for line in await history(ana, gone)] == [
            ("ADD", None),
            ("ARCHIVE", "stale: Because."),
        ]
        extended = await memory(ana, lasting)
        assert (extended["status"], extended["expected_valid_days"]) == ("active", None)
        assert extended["reviewed_at"] is not None
        rest = await memory(ana, kept)
        assert (rest["status"], rest["expected_valid_days"], rest["version"]) == ("active", None, 2)
        assert (await history(ana, kept))[-1]["reason"] == "reviewed (KEEP): Because."
        assert await verdicts(ana, run) == {
            gone: ["REMOVE", "stale"],
            lasting: ["EXTEND", "stale"],
            kept: ["KEEP", "stale"],
        } | await repetition(ana)
        assert run["upkeep"] == {"reviewed": 3, "REMOVE": 1, "EXTEND": 1, "KEEP": 1}

    async def test_what_lasts_and_was_extended_still_lasts(self, ana, chat):
        ids = await own(ana, 2, days=400, memory_type="fact")
        await age(ana, ids[1:], 400, expected_valid_days=100)
        chat.otherwise = tending(says_of_all("EXTEND"))
        await infer(ana)
        assert [(await memory(ana, each))["expected_valid_days"] for each in ids] == [None, 200]
        await age(ana, ids, 400, reviewed_at=datetime.now(UTC) - timedelta(days=300))
        chat.otherwise = tending(says_of_all("REMOVE"))
        await infer(ana)

        assert [(await memory(ana, each))["status"] for each in ids] == ["active", "archived"]

    async def test_a_verdict_names_how_long_it_was_silent(self, ana, chat):
        [first, *_] = await own(ana, 3, days=100.5)
        run = await infer(ana)

        asked = {"extraction_id": run["extraction_id"], "code": "stale"}
        rows = await every_page(ana, "/memories/decisions", **asked)
        [row] = [one for one in rows if one["memory_id"] == first]
        [reason] = row["reasons"]
        assert reason["figures"] == {"days": 100, "expected_valid_days": 90}
        assert (row["verdict"], row["content"]) == ("accepted", owns(THINGS[0]))

    async def test_a_removal_is_told_and_can_be_undone(self, ana, chat):
        hook = {"url": "http://127.0.0.1:9/", "events": ["*"]}
        ok(await ana.post("/webhooks", json=hook), 201)
        ids = await own(ana, 3, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        await infer(ana)

        told = await execute(
            ana.dsn,
            "SELECT payload::text FROM webhook_deliveries WHERE tenant_id = $1 "
            "AND event_type = 'memory.updated'",
            ana.tenant_id,
        )
        assert sum('"ARCHIVE"' in row[0] for row in told) == len(ids)
        ok(await ana.patch(f"/memories/{ids[0]}", json={"status": "active"}))
        assert (await memory(ana, ids[0]))["status"] == "active"

    @pytest.mark.parametrize("count", [1, 2])
    async def test_one_is_enough(self, ana, chat, count):
        await own(ana, count, days=100)
        await infer(ana)

        assert len(shown(chat)) == count
        assert [schema_name_of(one) for one in chat.requests] == ["memories", "decisions"]

    @pytest.mark.parametrize(
        ("days", "expected", "due"),
        [
            (89, None, 0), (89.999, None, 0), (90, None, 3), (91, None, 3),
            (9, 10, 0), (10, 10, 3), (11, 10, 3), (99, 100, 0), (101, 100, 3), (1, 1, 3),
        ],
    )  # fmt: skip
    async def test_review_is_due_after_ninety_days_or_its_own(self, ana, chat, days, expected, due):
        ids = await own(ana, 3)
        await age(ana, ids, days, expected_valid_days=expected)
        await infer(ana)

        assert len(shown(chat)) == due

    @pytest.mark.parametrize(
        ("said", "expected", "due"),
        [(9.9, 10, 0), (10.1, 10, 3), (400, 10, 3), (400, None, 0), (None, 10, 0)],
    )
    async def test_what_was_read_late_is_due_by_when_it_was_said(
        self, ana, chat, said, expected, due
    ):
        """As an import reads it. What is thought to last waits for ninety days of its own."""
        ids = await own(ana, 3)
        said_at = None if said is None else datetime.now(UTC) - timedelta(days=said)
        await age(ana, ids, 0, expected_valid_days=expected, said_at=said_at)
        await infer(ana)

        assert len(shown(chat)) == due

    @pytest.mark.parametrize(("read", "due"), [(60, 0), (40, 3), (0, 3)])
    async def test_what_is_read_late_is_looked_at_as_of_when_it_was_said(
        self, ana, chat, worker, read, due
    ):
        """What was ahead at the time is not over. Said 100 days ago for 50 days."""
        ids = await own(ana, 3)
        said = datetime.now(UTC) - timedelta(days=100)
        await age(ana, ids, 0, expected_valid_days=50, said_at=said)
        then = datetime.now(UTC) - timedelta(days=read)
        message = {
            "role": "user",
            "content": COFFEE,
            "metadata": {"client_time": then.isoformat()},
        }
        await append(ana, "talk", message)
        await extracted(ana, "talk")

        assert len(shown(chat)) == due
        if due:
            [today] = [line["date"] for line in lines_of(asked(chat)[0], "today")]
            assert today == then.date().isoformat()

    @pytest.mark.parametrize("column", ["valid_from", "reviewed_at"])
    @pytest.mark.parametrize(("days", "due"), [(89, 3), (91, 4)])
    async def test_what_began_or_was_reviewed_since_counts_from_then(
        self, ana, chat, column, days, due
    ):
        ids = await own(ana, 4, days=200)
        await age(ana, ids[:1], 200, **{column: datetime.now(UTC) - timedelta(days=days)})
        await infer(ana)

        assert len(shown(chat)) == due

    @pytest.mark.parametrize("count", [MOST_DUE - 1, MOST_DUE, MOST_DUE + 1])
    async def test_the_stalest_twenty_are_shown(self, ana, chat, count):
        ids = await own(ana, count, days=100)
        await age(ana, ids[-1:], 300)
        await infer(ana)

        assert len(shown(chat)) == min(count, MOST_DUE)
        assert shown(chat)[0] == owns(THINGS[count - 1])

    @pytest.mark.parametrize("count", [MOST_REMOVALS, MOST_REMOVALS + 1])
    async def test_ten_go_at_the_most(self, ana, chat, count):
        ids = await own(ana, count, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        run = await infer(ana)

        left = [one for one in ids if (await memory(ana, one))["status"] == "active"]
        assert len(left) == count - MOST_REMOVALS
        found = await verdicts(ana, run)
        assert [found[one] for one in left] == [["KEEP", "stale", "removal_limit"]] * len(left)

    async def test_what_is_protected_is_never_shown(self, ana, chat):
        await own(ana, 3, days=100)
        by_hand = await save(ana, "The user was born in Hangzhou.")
        mended = await save(ana, "The user is no vegan.", source="ai", memory_type="correction")
        others = await save(ana, "Somebody else plays chess.", source="ai", user_id="ben")
        ended = await save(ana, "The user is on a trip.", source="ai")
        ids = [one["memory_id"] for one in (by_hand, mended, others, ended)]
        await age(ana, ids, 400)
        ok(await ana.patch(f"/memories/{ids[3]}", json={"status": "archived"}))
        chat.otherwise = tending(says_of_all("REMOVE"))
        await infer(ana)

        assert sorted(shown(chat)) == sorted(owns(thing) for thing in THINGS[:3])
        assert [(await memory(ana, one))["status"] for one in ids[:3]] == ["active"] * 3

    async def test_review_is_not_shown_in_the_next_run_but_after_another_period(self, ana, chat):
        ids = await own(ana, 4, days=100)
        await infer(ana)
        assert len(shown(chat)) == 4
        await infer(ana)
        assert shown(chat) == []
        await age(ana, ids, 300, reviewed_at=datetime.now(UTC) - timedelta(days=91))
        await age(ana, ids[:1], 300, expected_valid_days=180)
        await infer(ana)

        assert len(shown(chat)) == 3

    async def test_a_verdict_on_what_was_not_shown_changes_nothing(self, ana, chat):
        ids = await own(ana, 3, days=100)
        fresh = await own(ana, 1, user_id="ana", external_id="x")
        chat.otherwise = tending(lambda _: {"verdict": "REMOVE", "memory": "d9"})
        await infer(ana)

        states = [(await memory(ana, one))["status"] for one in [*ids, *fresh]]
        assert set(states) == {"active"}

    async def test_the_extractor_says_for_how_long(self, ana, chat):
        trip = "The user is on a trip to Oslo this week."
        chat.script(extracts(lambda found: [entry(trip, found[0]["id"], expected_valid_days=7)]))
        await infer(ana, trip)

        [row] = [one for one in await every_page(ana, "/memories") if one["content"] == trip]
        assert row["expected_valid_days"] == 7
        hits = ok(await ana.post("/memories/search", json={"query": trip, "user_id": "ana"}))
        assert hits["results"][0]["expected_valid_days"] == 7

    async def test_what_is_said_again_is_not_stale(self, ana, chat):
        ids = await own(ana, 4, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        # Word for word, so that no call is made about it; the other statement makes one.
        chat.script(
            extracts(
                lambda found: [
                    entry(COFFEE, found[0]["id"]),
                    entry(owns(THINGS[0]), found[0]["id"]),
                ]
            )
        )
        await infer(ana)

        said = await memory(ana, ids[0])
        assert (said["status"], (await history(ana, ids[0]))[-1]["reason"]) == (
            "active",
            "it was said again",
        )
        assert [(await memory(ana, one))["status"] for one in ids[1:]] == ["archived"] * 3

    @pytest.mark.parametrize(("days", "version"), [(29, 1), (31, 2)])
    async def test_what_is_said_again_is_noted_now_and_then(self, ana, chat, days, version):
        [known] = await own(ana, 1, days=days)
        await infer(ana, owns(THINGS[0]))

        row = await memory(ana, known)
        assert (row["version"], row["reviewed_at"] is not None) == (version, version == 2)


async def repetition(client: AsyncClient) -> dict[str, list[str]]:
    """The verdict on what was said: it is remembered already."""
    [tea] = [one for one in await every_page(client, "/memories") if one["content"] == TEA]
    return {tea["memory_id"]: ["NONE", "duplicate"]}


class TestWithoutACall:
    async def test_old_memories_make_none(self, ana, chat):
        await own(ana, 12, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        run = await infer(ana, "用户的妹妹在巴西学习建筑学。")

        assert [schema_name_of(one) for one in chat.requests] == ["memories"]
        assert run["upkeep"] == {}

    async def test_the_rules_leave_them_alone(self, ana, chat):
        body = {"agent_id": "plain", "agent_name": "Plain", "config": {"model": "rules"}}
        ok(await ana.post("/agents", json=body), 201)
        await own(ana, 12, agent_id="plain", days=400)
        await save(ana, "The user likes green tea.", source="ai", agent_id="plain")
        before = await every_page(ana, "/memories", agent_id="plain")
        run = await infer(ana, "I like green tea a lot.", agent_id="plain")

        assert (run["extractor"], run["upkeep"], chat.requests) == (READER, {}, [])
        after = {one["memory_id"]: one for one in await every_page(ana, "/memories")}
        assert [after[one["memory_id"]] for one in before[-12:]] == before[-12:]

    async def test_a_second_attempt_goes_without(self, ana, chat, model_runtime, dsn):
        ids = await own(ana, 3, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        chat.script(tending(), refusal(500))
        async with working(model_runtime, dsn, profiles=False):
            said = await append(ana, "talk", COFFEE, {"role": "assistant", "content": "I see."})
            job_id = said["extraction"]["job_id"]
            async with asyncio.timeout(PATIENCE):
                while ok(await ana.get(f"/jobs/{job_id}"))["status"] != "succeeded":
                    await make_due(dsn, "job_id = $1", job_id)
                    await asyncio.sleep(0.05)

        assert [len(lines_of(request, "due")) for request in asked(chat)] == [3, 0]
        assert [(await memory(ana, one))["status"] for one in ids] == ["active"] * 3

    @pytest.mark.parametrize(
        "broken",
        [[cut_off('{"decisions": [')], [declines], [writes("I would rather not.")] * 2],
    )
    async def test_they_do_not_keep_new_statements_out(self, ana, chat, broken):
        ids = await own(ana, 3, days=100)
        chat.script(tending(), *broken)
        run = await infer(ana)

        assert run["outcomes"] == {"NONE": 1}
        assert [len(lines_of(request, "due")) for request in asked(chat)] == [3, 0]
        # Nor are they shown in every run to a model that they make stumble.
        assert run["upkeep"] == {"reviewed": 3, "KEEP": 3}
        assert [(await memory(ana, one))["status"] for one in ids] == ["active"] * 3


class TestChangedMeanwhile:
    async def test_what_was_edited_or_deleted_while_the_model_thought_is_left_alone(
        self, ana, chat
    ):
        edited, deleted, *others = await own(ana, 4, days=100)
        release = threading.Event()
        chat.script(tending(), held(release, deciding(says_of_all("REMOVE"))))
        running = asyncio.create_task(infer(ana))
        await until(lambda: asked(chat))
        ok(await ana.patch(f"/memories/{edited}", json={"content": "The user sold the horse."}))
        ok(await ana.delete(f"/memories/{deleted}"), 204)
        release.set()
        run = await running

        assert (await memory(ana, edited))["status"] == "active"
        assert [(await memory(ana, one))["status"] for one in others] == ["archived"] * 2
        assert run["upkeep"] == {"reviewed": 4, "skipped": 2, "REMOVE": 2}

    async def test_what_changes_while_the_run_commits_is_left_alone(self, ana, chat):
        edited, *others = await own(ana, 3, days=100)
        chat.otherwise = tending(says_of_all("REMOVE"))
        running, committed = await while_changed(ana, chat, edited)

        assert not committed
        assert (await memory(ana, edited))["status"] == "active"
        assert running["upkeep"] == {"reviewed": 3, "skipped": 1, "REMOVE": 2}
        assert {(await memory(ana, one))["status"] for one in others} == {"archived"}

    async def test_a_merge_of_what_changed_is_skipped_whole_and_another_is_made(self, ana, chat):
        ids = await own(ana, 8)
        texts = [owns(thing) for thing in THINGS[:8]]
        chat.otherwise = tending(
            merge=joining(
                (texts[:3], "The user owns one, two and three."),
                (texts[3:5], "The user owns four and five."),
            )
        )
        run, committed = await while_changed(ana, chat, ids[1])

        assert not committed
        states = [(await memory(ana, one))["status"] for one in ids]
        assert states == ["active"] * 3 + ["superseded"] * 2 + ["active"] * 3
        rows = await every_page(ana, "/memories/decisions", extraction_id=run["extraction_id"])
        assert [row["codes"] for row in rows if row["event"] == "REJECT"] == [["source_changed"]]
        assert (run["upkeep"]["merged"], run["upkeep"]["refused"]) == (1, 1)


async def until(condition: Callable[[], Awaitable[object] | object]) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = condition()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            await asyncio.sleep(0.02)


async def while_changed(client: AsyncClient, chat, memory_id: str) -> tuple[dict[str, Any], bool]:
    """The run that meets somebody who has changed a memory and commits a moment later, and
    whether it was over before that.
    """
    connection = await asyncpg.connect(client.dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "UPDATE memories SET version = version + 1 WHERE tenant_id = $1 AND memory_id = $2",
            client.tenant_id,
            memory_id,
        )
        running = asyncio.create_task(infer(client))
        await until(lambda: asked(chat))
        await until(lambda: waiting(client.dsn))
        over_before = running.done()
        await transaction.commit()
        return await running, over_before
    finally:
        await connection.close()


async def waiting(dsn: str) -> int:
    [row] = await execute(
        dsn,
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE datname = current_database() AND NOT granted",
    )
    return int(row[0])


def joining(*groups: tuple[Sequence[str], str], **members: Any) -> Joiner:
    """Merges by the words of the parts."""

    def merge(parts: list[Line]) -> list[Mapping[str, Any]]:
        names = {line["text"]: line["id"] for line in parts}
        return [
            {"memories": [names[text] for text in texts], "content": content} | members
            for texts, content in groups
        ]

    return merge


class TestMerges:
    BOTH = "The user owns a horse and a violin."

    def merging(self, **members: Any) -> Behaviour:
        texts = [owns(THINGS[0]), owns(THINGS[1])]
        return tending(merge=joining((texts, self.BOTH), **members))

    async def one(self, client: AsyncClient, content: str = BOTH) -> dict[str, Any]:
        [row] = [one for one in await every_page(client, "/memories") if one["content"] == content]
        return row

    async def test_several_become_one(self, ana, chat):
        ids = await own(ana, 8, days=50, confidence=0.8, memory_type="fact")
        await age(ana, ids[1:2], 20, confidence=0.85, evidence=["m2", "m3"], expected_valid_days=40)
        said_at = datetime(2025, 5, 3, tzinfo=UTC)
        await age(ana, ids[:1], 30, evidence=["m1", "m2"], expected_valid_days=60, said_at=said_at)
        newest = (await memory(ana, ids[1]))["create_time"]
        chat.otherwise = self.merging(confidence=0.99)
        run = await infer(ana)

        row = await self.one(ana)
        assert row["confidence"] == 0.85
        assert row["valid_from"] == newest
        assert (row["said_at"], row["speaker"]) == ("2025-05-03T00:00:00Z", None)
        assert row["evidence"] == ["m1", "m2", "m3"]
        assert row["expected_valid_days"] == 40
        assert (row["memory_type"], row["source"], row["status"]) == ("fact", "ai", "active")
        assert [line["event"] for line in await history(ana, row["memory_id"])] == ["MERGE"]
        for one in ids[:2]:
            old = await memory(ana, one)
            assert (old["status"], old["superseded_by"]) == ("superseded", row["memory_id"])
            assert (await history(ana, one))[-1]["reason"] == "One matter."
        assert [(await memory(ana, one))["status"] for one in ids[2:]] == ["active"] * 6
        assert run["upkeep"]["merged"] == 1
        assert run["upkeep"]["category"] | {"agent_id": None} == {
            "scope": "user",
            "scope_id": "ana",
            "agent_id": None,
            "memory_type": "fact",
            "shown": 9,
        }
        rows = await every_page(ana, "/memories/decisions", extraction_id=run["extraction_id"])
        assert [one["event"] for one in rows if one["memory_id"] == row["memory_id"]] == ["MERGE"]

    async def test_what_lasts_in_a_source_lasts_in_the_whole(self, ana, chat):
        ids = await own(ana, 8, days=50, memory_type="fact")
        await age(ana, ids[:1], 30, expected_valid_days=60)
        chat.otherwise = self.merging()

        await infer(ana)

        assert (await self.one(ana))["expected_valid_days"] is None

    async def test_before_it_the_sources_held(self, ana, chat):
        await own(ana, 8, days=50)
        chat.otherwise = self.merging()
        await infer(ana)

        then = (datetime.now(UTC) - timedelta(days=51)).isoformat()
        now = [one["content"] for one in await every_page(ana, "/memories")]
        assert self.BOTH in now
        assert owns(THINGS[0]) not in now
        past = [one["content"] for one in await every_page(ana, "/memories", as_of=then)]
        assert owns(THINGS[0]) in past
        assert self.BOTH not in past
        hits = ok(await ana.post("/memories/search", json={"query": self.BOTH, "user_id": "ana"}))
        assert hits["results"][0]["content"] == self.BOTH

    @pytest.mark.parametrize(("count", "parts"), [(6, 0), (7, 8), (8, 9)])
    async def test_eight_of_a_type_are_looked_through(self, ana, chat, count, parts):
        """TEA is one of them."""
        await own(ana, count)
        await infer(ana)

        assert len(shown(chat, "part")) == parts

    @pytest.mark.parametrize("count", [MOST_PARTS - 2, MOST_PARTS - 1, MOST_PARTS])
    async def test_the_newest_thirty_are_shown(self, ana, chat, count):
        ids = await own(ana, count)
        await age(ana, ids[:1], 10)
        await infer(ana)

        assert len(shown(chat, "part")) == min(count + 1, MOST_PARTS)
        assert (owns(THINGS[0]) in shown(chat, "part")) is (count < MOST_PARTS)

    async def test_the_largest_type_is_shown_and_then_rests_for_a_week(self, ana, chat):
        await own(ana, 9)
        body = {"source": "ai", "on_duplicate": "allow", "memory_type": "goal"}
        for thing in THINGS[:12]:
            await save(ana, f"The user wants a {thing}.", **body)
        first = await infer(ana)
        assert first["upkeep"]["category"]["memory_type"] == "goal"
        second = await infer(ana)
        assert second["upkeep"]["category"]["memory_type"] == "fact"
        third = await infer(ana)
        assert "category" not in third["upkeep"]
        await execute(
            ana.dsn,
            "UPDATE extraction_runs SET finish_time = now() - interval '7 days 1 minute' "
            "WHERE run_id = $1",
            first["extraction_id"],
        )
        fourth = await infer(ana)

        assert fourth["upkeep"]["category"]["memory_type"] == "goal"

    @pytest.mark.parametrize(
        "fields",
        [
            {"source": "user"},
            {"attribute": "user.residence"},
            {"external_id": "x"},
            {"visibility": "owner_only"},
            {"tier": "short"},
            {"valid_to": "2099-01-01T00:00:00Z"},
            {"expires_at": "2099-01-01T00:00:00Z"},
        ],
        ids=str,
    )
    async def test_what_a_merge_would_take_from_somebody_is_left_out(self, ana, chat, fields):
        await own(ana, 8)
        apart = await save(
            ana, "The user lives near the old harbour of Ningbo.", **({"source": "ai"} | fields)
        )
        await infer(ana)

        assert apart["event"] == "ADD"
        assert "harbour" not in str(shown(chat, "part"))
        assert len(shown(chat, "part")) == 9

    @pytest.mark.parametrize(
        ("length", "parts"), [(LONGEST_PART - 1, 9), (LONGEST_PART, 9), (LONGEST_PART + 1, 8)]
    )
    async def test_long_ones_are_left_out(self, ana, chat, length, parts):
        await own(ana, 7)
        await save(ana, "长" * length, source="ai")
        await infer(ana)

        assert len(shown(chat, "part")) == parts

    async def test_corrections_are_no_category(self, ana, chat):
        for thing in THINGS[:12]:
            await save(
                ana,
                f"The user never had a {thing}.",
                source="ai",
                on_duplicate="allow",
                memory_type="correction",
            )
        await infer(ana)

        assert shown(chat, "part") == []

    async def test_words_that_the_gate_refuses_change_nothing(self, ana, chat):
        ids = await own(ana, 8)
        secret = f"The user owns a horse and sk-proj-{'a1B2c3D4' * 6}."
        texts = [owns(THINGS[0]), owns(THINGS[1])]
        chat.otherwise = tending(
            merge=joining((texts, "x" * 2001), ([owns(THINGS[2]), owns(THINGS[3])], secret))
        )
        run = await infer(ana)

        assert {(await memory(ana, one))["status"] for one in ids} == {"active"}
        rows = await every_page(ana, "/memories/decisions", extraction_id=run["extraction_id"])
        refused = [row for row in rows if row["event"] == "REJECT"]
        assert sorted(code for row in refused for code in row["codes"]) == ["sensitive", "too_long"]
        assert [row["content"] for row in refused if "sensitive" in row["codes"]] == [None]

    async def test_words_that_another_memory_has_change_nothing(self, ana, chat):
        ids = await own(ana, 8)
        known = await save(ana, self.BOTH, on_duplicate="allow")
        chat.otherwise = self.merging()
        await infer(ana)

        assert {(await memory(ana, one))["status"] for one in ids} == {"active"}
        assert (await memory(ana, known["memory_id"]))["version"] == 1

    async def test_words_of_one_of_them_keep_that_one(self, ana, chat):
        ids = await own(ana, 8)
        texts = [owns(THINGS[0]), owns(THINGS[1])]
        chat.otherwise = tending(merge=joining((texts, texts[1])))
        await infer(ana)

        old, kept = await memory(ana, ids[0]), await memory(ana, ids[1])
        assert (old["status"], old["superseded_by"]) == ("superseded", ids[1])
        assert kept["status"] == "active"

    async def test_what_all_of_them_have_the_whole_has(self, ana, chat):
        ids = await own(ana, 8, metadata={"kind": "thing", "shop": "a"}, session_id="one")
        await age(ana, ids[:1], 1, metadata='{"kind": "thing", "shop": "b"}')
        chat.otherwise = self.merging()
        await infer(ana)

        row = await self.one(ana)
        assert row["metadata"] == {"kind": "thing", "extractor": "openai/reader"}
        assert row["session_id"] == "one"

    async def test_removals_and_sources_are_ten_together(self, ana, chat):
        ids = await own(ana, 16, memory_type="context")
        await age(ana, ids[8:], 100)
        texts = [owns(thing) for thing in THINGS[:8]]
        chat.otherwise = tending(
            says_of_all("REMOVE"),
            joining((texts[:3], "The user owns three."), (texts[3:5], "The user owns two.")),
        )
        run = await infer(ana)

        counts = {name: run["upkeep"].get(name) for name in ("REMOVE", "merged", "refused")}
        assert counts == {"REMOVE": 8, "merged": 1, "refused": 1}
        states = [(await memory(ana, one))["status"] for one in ids]
        assert states.count("active") == 16 - MOST_REMOVALS

    async def test_what_it_merged_is_not_trimmed_in_the_same_run(self, ana, chat):
        """The cap is 40; the whole is the least sure of them."""
        await own(ana, 30, confidence=0.9)
        for thing in THINGS[:12]:
            await save(
                ana,
                f"The user wants a {thing}.",
                source="ai",
                on_duplicate="allow",
                memory_type="goal",
                confidence=0.95,
            )
        texts = [owns(THINGS[0]), owns(THINGS[1])]
        merge = joining((texts, "The user owns this and that."), confidence=0.7)
        adding = decides(lambda *_: {"event": "ADD"})

        async def added(request: Request):
            answer = json.loads((await adding(request)).body)
            text = json.loads(answer["choices"][0]["message"]["content"])
            return completion(json.dumps(text | {"merges": merge(lines_of(request, "part"))}))

        chat.script(tending(), added)
        await infer(ana)

        row = await self.one(ana, "The user owns this and that.")
        assert row["confidence"] == 0.7
