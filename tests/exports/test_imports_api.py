"""What an import takes, what it refuses, and that what it wrote works."""

import asyncio
import json
from datetime import datetime, timedelta
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.database.base import subject_hash
from app.runtime import Runtime
from tests.exports.exports_support import (
    end_of,
    exported,
    imported,
    parts_of,
    rows_in,
    send,
    sessions_that,
    with_row,
)
from tests.support.api import append, execute, fields, found, ok, problem, save, search
from tests.support.folders import folder, passages_of, upload
from tests.support.patience import PATIENCE
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key
from tests.support.working import over, working

MANIFEST = b'{"type":"manifest","format":1}'


async def talked(client: AsyncClient) -> list[bytes]:
    """The export of a tenant in which ana has said something."""
    await append(client, "talk", "I have two cats.", "And a dog in Munich.")
    await save(client, "She has two cats.")
    await save(client, "She lives in Munich.", external_id="ext-1")
    return await exported(client)


@pytest.fixture
async def lines(client: AsyncClient) -> list[bytes]:
    return await talked(client)


def line(noun: str, **row: Any) -> bytes:
    return json.dumps({"type": noun, "row": row}).encode()


class TestBroken:
    @for_each(
        ("body", "where"),
        [
            (b"", "body.1"),
            (b"\n", "body.1"),
            (b"{}", "body.1"),
            (b"[1]", "body.1"),
            (b"nonsense", "body.1"),
            (b'{"type":"manifest","format":2}', "body.1"),
            (b'{"type":"manifest","format":true}', "body.1"),
            (b'{"type":"manifest","format":1,"created_at":7}', "body.1"),
            (b'{"type":"manifest","format":1,"created_at":"2026-01-01T00:00:00"}', "body.1"),
            (b'{"type":"agent","row":{}}', "body.1"),
            (MANIFEST + b"\nnonsense", "body.2"),
            (MANIFEST + b'\n{"type":"agent"}', "body.2"),
            (MANIFEST + b'\n{"type":"tenant","row":{}}', "body.2"),
            (MANIFEST + b'\n{"type":"key","row":{}}', "body.2"),
            (MANIFEST + b'\n{"type":["agent"],"row":{}}', "body.2"),
            (MANIFEST + b'\n{"type":"agent","row":[]}', "body.2"),
            (MANIFEST + b'\n{"type":"agent","row":{},"more":1}', "body.2"),
            (MANIFEST + b'\n{"type":"agent","row":{"agent_id":"\\ud800"}}', "body.2"),
            (MANIFEST + b'\n{"type":"end","sha256":"0"}', "body.2"),
            (MANIFEST + b"\n\xff\xfe", "body.2"),
        ],
    )
    async def test_a_line_that_is_none_is_named(
        self, client: AsyncClient, body: bytes, where: str
    ) -> None:
        answer = await client.post("/import", content=body)

        assert fields(problem(answer, 422, "invalid_import")) == [where]

    @for_each(
        ("changes", "field"),
        [
            ({"tenant_id": "other"}, "tenant_id"),
            ({"nothing_of_the_kind": 1}, "nothing_of_the_kind"),
            ({"memory_id": "mem_1\nx"}, "memory_id"),
            ({"content": 7}, "content"),
            ({"content": None}, "content"),
            ({"content": "a\x00b"}, "content"),
            ({"memory_type": "x" * 21}, "memory_type"),
            ({"version": "1"}, "version"),
            ({"version": 1.5}, "version"),
            ({"version": True}, "version"),
            ({"version": 2**63}, "version"),
            ({"confidence": "high"}, "confidence"),
            ({"create_time": "yesterday"}, "create_time"),
            ({"create_time": "2026-01-01T00:00:00"}, "create_time"),
            ({"create_time": None}, "create_time"),
            ({"content_hash": "not base64!"}, "content_hash"),
            ({"embedding": []}, "embedding"),
            ({"embedding": ["1"]}, "embedding"),
            ({"embedding": [0.1, 0.2]}, "embedding"),
            ({"embedding": [0.1] * 257}, "embedding"),
            ({"terms": "nonsense"}, "terms"),
            ({"terms": "{1:1}/999999999"}, "terms"),
            ({"terms": "{1:1}/1000000001"}, "terms"),
            ({"terms": "{1:1}/11000000000"}, "terms"),
            ({"terms": [1]}, "terms"),
            ({"code": "1011"}, "code"),
            ({"evidence": "one"}, "evidence"),
            ({"user_id": "nobody"}, "user_id"),
            ({"session_id": "none"}, "session_id"),
            ({"superseded_by": "none"}, "superseded_by"),
        ],
    )
    async def test_a_bad_value_is_named_with_its_line_and_field(
        self, lines: list[bytes], stranger: AsyncClient, changes: dict, field: str
    ) -> None:
        before = [one for one in lines[1:-1] if b'"type":"memory"' not in one]
        wrong = with_row("memory", lines, **changes)

        answer = await send(stranger, [lines[0], *before, wrong[1]])

        body = problem(answer, 422, "invalid_import")
        assert fields(body) == [f"body.{len(before) + 2}.row.{field}"]
        assert rows_in(await exported(stranger)) == []

    @for_each(
        "changes",
        [
            {"memory_type": "nonsense"},
            {"confidence": 2},
            {"terms": "nonsense}/1000000000"},
            {"code": "2" * 256},
            {"embedding": [1e300] * 256},
            {"embedding": [0.1] * 20_000, "embedding_model": "of-no-known-length"},
            {"metadata": {"a": ["b\x00"]}},
            {"evidence": ["a\x00"]},
            {"scope": "project"},
        ],
    )
    async def test_what_postgresql_refuses_is_named_with_its_line(
        self, lines: list[bytes], stranger: AsyncClient, changes: dict
    ) -> None:
        before = [one for one in lines[1:-1] if b'"type":"memory"' not in one]
        [_, right, *_] = with_row("memory", lines)
        [_, wrong] = with_row("memory", lines, memory_id="other", **changes)

        answer = await send(stranger, [lines[0], *before, right, wrong])

        body = problem(answer, 422, "invalid_import")
        assert fields(body) == [f"body.{len(before) + 3}.row"]
        assert body["errors"][0]["detail"].startswith("this memory ")
        assert "nonsense" not in answer.text
        assert rows_in(await exported(stranger)) == []

    async def test_vectors_of_one_model_are_of_one_length(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        """Of a model whose name does not say which."""
        lines = await talked(client)
        before = [one for one in lines[1:-1] if b'"type":"memory"' not in one]
        wrong = [
            with_row(
                "memory", lines, memory_id=f"m{length}", content_hash="AAA" + letter,
                embedding=[0.5] * length, embedding_model=model, code=None,
            )[1]
            for letter, length, model in (("A", 2, "one"), ("B", 3, "other"), ("C", 4, "one"))
        ]  # fmt: skip

        answer = await send(stranger, [lines[0], *before, *wrong])

        body = problem(answer, 422, "invalid_import")
        assert fields(body) == [f"body.{len(before) + 4}.row.embedding"]
        assert rows_in(await exported(stranger)) == []
        ok(await send(stranger, [lines[0], *before, *wrong[:2]]))

    async def test_a_missing_column_is_named(self, client: AsyncClient) -> None:
        answer = await send(client, [MANIFEST, line("agent", agent_id="a")])

        assert fields(problem(answer, 422, "invalid_import")) == ["body.2.row.agent_name"]

    async def test_a_whole_export_is_held_against_its_end(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        shorter = [*lines[:-2], lines[-1]]

        problem(await send(stranger, shorter), 422, "invalid_import")
        assert rows_in(await exported(stranger)) == []

        ok(await send(stranger, lines))
        assert end_of(await exported(stranger)) == end_of(lines)

    async def test_nothing_may_follow_the_end(self, client: AsyncClient) -> None:
        lines = await talked(client)

        answer = await send(client, [*lines, lines[1]])

        assert fields(problem(answer, 422, "invalid_import")) == [f"body.{len(lines) + 1}"]


class TestConflicts:
    async def test_another_content_refuses_the_part_and_names_the_lines(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        await imported(stranger, lines)
        before = await exported(stranger)
        changed = with_row("memory", lines, content="She has three cats.", tier="long")
        new = line("agent", agent_id="new", agent_name="New")

        body = problem(await send(stranger, [*changed, new]), 409, "import_conflict")

        [conflict] = body["conflicts"]
        assert conflict["line"] == 2
        assert conflict["type"] == "memory"
        assert conflict["detail"] == "differs in content"
        assert body["count"] == 1
        assert (await exported(stranger))[1:-1] == before[1:-1]

    async def test_or_is_left_as_it_is(self, client: AsyncClient, stranger: AsyncClient) -> None:
        lines = await talked(client)
        await imported(stranger, lines)
        changed = with_row("memory", lines, content="She has three cats.")
        new = line("agent", agent_id="new", agent_name="New")

        report = ok(await send(stranger, [*changed, new], on_conflict="skip"))

        assert report["skipped"] == {"memory": 1}
        assert report["inserted"] == {"agent": 1}
        assert len(report["conflicts"]) == 1
        assert b"three cats" not in b"".join(await exported(stranger))

    async def test_the_same_statement_under_another_id_is_a_conflict(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        await imported(stranger, lines)

        answer = await send(stranger, with_row("memory", lines, memory_id="another"))

        [conflict] = problem(answer, 409, "import_conflict")["conflicts"]
        assert conflict["detail"] == "another row holds a value that only one may have"

    async def test_the_id_of_somebody_else_s_session_is_a_conflict(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        await append(stranger, "talk", "This is mine.", user_id="ben")
        await stranger.post("/users", json={"user_id": "ana", "agent_id": "default"})

        own = [one for one in lines[1:-1] if b'"type":"session"' in one]
        [conflict] = problem(await send(stranger, [lines[0], *own]), 409, "import_conflict")[
            "conflicts"
        ]

        assert conflict["key"] == {"session_id": "talk"}
        assert "user_id" in conflict["detail"]

    async def test_a_line_that_comes_twice_is_there_once(self, client: AsyncClient) -> None:
        one = line("agent", agent_id="a", agent_name="A")
        other = line("agent", agent_id="a", agent_name="B")

        report = ok(await send(client, [MANIFEST, one, one]))
        assert (report["inserted"], report["unchanged"]) == ({"agent": 1}, {"agent": 1})
        problem(await send(client, [MANIFEST, one, other]), 409, "import_conflict")

    async def test_a_stub_takes_whoever_is_there(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        home = json.loads(next(one for one in lines if b'"type":"agent"' in one))["row"]
        body = {"agent_id": home["agent_id"], "agent_name": "Quite another"}
        ok(await stranger.post("/agents", json=body), 201)

        await imported(stranger, await exported(client, user_id="ana"))

        agent = ok(await stranger.get(f"/agents/{home['agent_id']}"))
        assert agent["agent_name"] == "Quite another"

    async def test_two_imports_at_once_both_end(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        """Two connections, the same lines."""
        lines = await talked(client)

        done = await asyncio.gather(*(imported(stranger, lines) for _ in range(2)))

        assert sum(one["inserted"] for one in done) == len(lines) - 2
        assert sum(one["unchanged"] for one in done) == len(lines) - 2
        assert end_of(await exported(stranger)) == end_of(lines)


async def erase(client: AsyncClient, user_id: str) -> None:
    ok(await client.delete(f"/users/{user_id}", params={"hard": True, "confirm": True}))


class TestErased:
    async def test_who_was_erased_since_is_not_brought_back(self, client: AsyncClient) -> None:
        lines = await talked(client)
        await erase(client, "ana")
        before = await exported(client)

        body = problem(await send(client, lines), 409, "erased")
        dry = await send(client, lines, dry_run=True)

        assert (body["user_ids"], body["count"]) == (["ana"], 1)
        problem(dry, 409, "erased")
        assert (await exported(client))[1:-1] == before[1:-1]

    async def test_unless_that_is_asked_for(self, client: AsyncClient) -> None:
        lines = await talked(client)
        await erase(client, "ana")

        await imported(client, lines, restore_erased=True)

        assert end_of(await exported(client)) == end_of(lines)

    async def test_nor_is_what_is_theirs_in_a_later_part(self, client: AsyncClient) -> None:
        """Somebody of that id is there again: what the one before said is not theirs."""
        lines = await talked(client)
        await erase(client, "ana")
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "default"}), 201)
        own = [one for one in lines[1:-1] if b'"type":"session"' in one]

        problem(await send(client, [lines[0], *own]), 409, "erased")

    async def test_nor_a_stub(self, client: AsyncClient) -> None:
        await talked(client)
        agents = rows_in(await exported(client))
        [agent_id] = [one["row"]["agent_id"] for one in agents if one["type"] == "agent"]
        lines = await exported(client, agent_id=agent_id)
        stubs = [one for one in lines[1:-1] if b'"type":"user"' in one]
        assert stubs
        await erase(client, "ana")

        problem(await send(client, [lines[0], *stubs]), 409, "erased")

    async def test_an_export_that_is_younger_is_taken(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        await talked(client)
        await erase(client, "ana")
        lines = await talked(client)
        shown = json.loads(lines[0])["created_at"]
        statement = (
            "UPDATE erasures SET create_time = $2::timestamptz + $3::interval WHERE tenant_id = $1"
        )
        moment = datetime.fromisoformat(shown)

        await execute(dsn, statement, acme.tenant_id, moment, timedelta(microseconds=-1))
        ok(await send(client, lines))
        for later in (0, 1):
            await execute(dsn, statement, acme.tenant_id, moment, timedelta(microseconds=later))
            problem(await send(client, lines), 409, "erased")

    async def test_one_without_a_time_is_taken_for_older(self, client: AsyncClient) -> None:
        lines = await talked(client)
        await erase(client, "ana")

        problem(await send(client, [MANIFEST, *lines[1:-1]]), 409, "erased")

    async def test_another_tenant_has_erased_nobody(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        await erase(client, "ana")

        ok(await send(stranger, lines))

    async def test_an_erasure_that_ends_meanwhile_counts(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        """Two connections: the import waits for the row that the erasure has deleted."""
        await client.post("/agents", json={"agent_id": "default", "agent_name": "Default"})
        await client.post("/users", json={"user_id": "ana", "agent_id": "default"})
        lines = await exported(client)
        erasing = await asyncpg.connect(dsn)
        try:
            await erasing.execute("SET ROLE kemem_owner")
            async with erasing.transaction():
                await erasing.execute("DELETE FROM users WHERE tenant_id = $1", acme.tenant_id)
                await erasing.execute(
                    "INSERT INTO erasures (tenant_id, erasure_id, kind, subject_hash) "
                    "VALUES ($1, 'era_1', 'user', $2)",
                    acme.tenant_id,
                    subject_hash(acme.tenant_id, "user", "ana"),
                )
                sending = asyncio.create_task(send(client, lines))
                await _waiting_for_a_row(dsn)
            problem(await sending, 409, "erased")
        finally:
            await erasing.close()

        assert ok(await client.get("/users"))["items"] == []


async def _waiting_for_a_row(dsn: str) -> None:
    async with asyncio.timeout(PATIENCE):
        while not await sessions_that(  # noqa: ASYNC110 (another connection brings it about)
            dsn, "wait_event_type = 'Lock' AND query LIKE '%INSERT INTO users%'"
        ):
            await asyncio.sleep(0.02)


class TestEffect:
    async def test_a_dry_run_writes_nothing(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)

        # The parts do not see what those before them would have written.
        done = await imported(stranger, lines, size=2, dry_run=True)

        assert done == {"inserted": len(lines) - 2, "unchanged": 0, "skipped": 0}
        assert rows_in(await exported(stranger)) == []
        await imported(stranger, lines)
        done = await imported(stranger, lines, dry_run=True)
        assert done["unchanged"] == len(lines) - 2

    async def test_a_repeated_request_is_answered_again(self, client: AsyncClient) -> None:
        body = MANIFEST + b"\n" + line("agent", agent_id="a", agent_name="A")
        headers = {"Idempotency-Key": "once"}

        answers = [
            ok(await client.post("/import", content=body, headers=headers)) for _ in range(2)
        ]

        assert answers[0]["inserted"] == {"agent": 1}
        assert answers[1] == answers[0]

    async def test_only_an_admin_may(self, app: FastAPI, runtime: Runtime, acme: Caller) -> None:
        key = await make_key(runtime, acme.tenant_id, "write")
        async with client_of(app, key.key) as writer:
            problem(await send(writer, [MANIFEST]), 403, "insufficient_scope")

    async def test_a_part_that_fails_leaves_those_before_it(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        parts = parts_of(lines, 3)
        for part in parts[:-1]:
            ok(await send(stranger, part))
        problem(await send(stranger, [*parts[-1], b"nonsense"]), 422, "invalid_import")

        await imported(stranger, lines, size=3)

        assert end_of(await exported(stranger)) == end_of(lines)

    async def test_the_tenant_works_as_before(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        lines = await talked(client)
        await imported(stranger, lines)

        assert await found(stranger, "cats") == await found(client, "cats") != []
        assert (await search(stranger, "Where does she live?"))["results"]
        context = ok(await stranger.post("/sessions/talk/context", json={"query": "cats"}))
        assert "dog in Munich" in json.dumps(context)
        added = await append(stranger, "talk", "And a horse.")
        assert [one["sequence_no"] for one in added["messages"]] == [3]

    async def test_what_was_read_is_not_read_again(
        self, client: AsyncClient, stranger: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        await append(client, "talk", "I live in Munich and I love green tea.")
        async with working(runtime, dsn):
            assert ok(await client.post("/sessions/talk/extract", json={"wait": True}))["done"]
        lines = await exported(client)
        await imported(stranger, lines)

        answer = ok(await stranger.post("/sessions/talk/extract", json={}))

        assert answer["done"]
        assert not answer["scheduled"]

    async def test_rows_without_vectors_wait_for_new_ones(
        self, client: AsyncClient, stranger: AsyncClient, other: Caller, dsn: str
    ) -> None:
        await talked(client)
        lines = await exported(client, vectors=False)

        await imported(stranger, lines)

        rows = await execute(
            dsn,
            "SELECT embedding_model, embedding IS NULL AS bare FROM memories WHERE tenant_id = $1",
            other.tenant_id,
        )
        assert {(row["embedding_model"], row["bare"]) for row in rows} == {("", True)}

    async def test_a_file_that_was_not_read_yet_is_read_on_request(
        self, client: AsyncClient, stranger: AsyncClient, runtime: Runtime, dsn: str
    ) -> None:
        folder_id = await folder(client)
        accepted = await upload(client, folder_id, "bees.txt", b"A hive has one queen.")
        lines = await exported(client)
        await imported(stranger, lines)
        path = f"/folders/{folder_id}/files/{accepted['file']['file_id']}"
        file = ok(await stranger.get(path))
        assert (file["state"], file["error_code"]) == ("error", "job_gone")

        async with working(runtime, dsn):
            again = ok(await stranger.post(f"{path}/reingest"), 202)
            await over(stranger, again["job_id"])

        assert ok(await stranger.get(path))["state"] == "completed"
        [passage] = await passages_of(stranger, folder_id, accepted["file"]["file_id"])
        assert passage["content"] == "A hive has one queen."


async def test_who_reads_rows_with_codes_hears_of_imported_ones(
    client: AsyncClient, stranger: AsyncClient, dsn: str, other: Caller
) -> None:
    """A search chooses among those that were read, and among rows without a code."""
    lines = await talked(client)
    before = [one for one in lines[1:-1] if b'"type":"memory"' not in one]
    await execute(
        dsn,
        "INSERT INTO memory_buckets (tenant_id, scope, scope_id, embedding_model, rows) "
        "VALUES ($1, 'user', 'ana', 'wordllama/l2_supercat:256', 1)",
        other.tenant_id,
    )

    ok(await send(stranger, [lines[0], *before, with_row("memory", lines, code="01" * 128)[1]]))

    [row] = await execute(
        dsn, "SELECT version FROM memory_buckets WHERE tenant_id = $1", other.tenant_id
    )
    assert row["version"] == 1
