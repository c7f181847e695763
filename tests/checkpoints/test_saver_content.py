"""Chunks that come ahead of a checkpoint, and chunks that a page has no room for."""

from base64 import b64decode
from datetime import timedelta

import pytest
from httpx import AsyncClient, Response

from app.integrations.langgraph.pages import PAGE_BYTES, STAGED_BYTES, STEP_BYTES
from app.prompting.checkpoints.archive_service import PARTS_AGE, CheckpointArchiving
from app.runtime import Runtime
from tests.checkpoints.saver_support import b64, content, digest, held, listed, put, rows, write
from tests.checkpoints.test_saver_pages import noise
from tests.support.api import execute, ok, problem
from tests.support.tenants import Caller

PATH = "/sessions/trip/saver/content"
STEPS = "/sessions/trip/saver/checkpoints"
FILL = """
    INSERT INTO saver_chunks (tenant_id, session_id, digest, content, staged_at)
    SELECT $1, 'trip', decode(md5(place::text), 'hex'),
        convert_to(repeat('a', least($2 - place, 65536)::int), 'utf8'), CASE WHEN $3 THEN now() END
    FROM generate_series(0::bigint, $2 - 1, 65536) AS place
"""
DIGESTS = "SELECT encode(digest, 'hex') AS name FROM saver_chunks WHERE tenant_id = $1"


async def ahead(client: AsyncClient, *pieces: bytes, **fields: object) -> Response:
    body = {"user_id": "ana", "create": True, "content": content(*pieces)} | fields
    return await client.put(PATH, json=body)


async def read(client: AsyncClient, *names: str, **fields: object) -> Response:
    return await client.post(f"{PATH}/read", json={"chunks": names} | fields)


async def age(dsn: str, caller: Caller, by: timedelta) -> None:
    await execute(
        dsn, "UPDATE saver_chunks SET staged_at = now() - $2::interval WHERE tenant_id = $1 "
        "AND staged_at IS NOT NULL", caller.tenant_id, by,
    )  # fmt: skip


async def staged(dsn: str, caller: Caller) -> int:
    statement = "SELECT count(*) FROM saver_chunks WHERE tenant_id = $1 AND staged_at IS NOT NULL"
    return (await execute(dsn, statement, caller.tenant_id))[0][0]


@pytest.fixture
def maintenance(runtime: Runtime) -> CheckpointArchiving:
    return CheckpointArchiving(runtime.database, None)


class TestAhead:
    async def test_chunks_wait_for_their_checkpoint(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        assert ok(await ahead(client, b"one", b"two")) == {"session_id": "trip", "chunks": 2}
        assert ok(await ahead(client, b"two", b"six"))["chunks"] == 1
        assert await listed(client) == []
        assert await staged(dsn, acme) == 3

        ok(await put(client, "c1", values={"a": [b"one", b"two"]}, content={}))

        assert await held(client) == [{"a": b"onetwo"}]
        assert await staged(dsn, acme) == 1

    async def test_chunks_wait_for_their_writes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1"))
        ok(await ahead(client, b"one"))
        large = {
            "index": 0, "channel": "m", "type": "raw", "chunks": [digest(b"one"), digest(b"two")],
        }  # fmt: skip
        absent = await write(client, "c1", writes=[large])
        assert problem(absent, 409, "saver_content_missing")["chunks"] == [digest(b"two")]
        problem(await write(client, "c9", writes=[large]), 404, "saver_checkpoint_not_found")
        both = large | {"data": b64(b"x")}
        problem(await write(client, "c1", writes=[both]), 422, "invalid_request")

        ok(await write(client, "c1", writes=[large], content=content(b"two")))

        page = ok(await client.get(STEPS))
        assert page["content"] == content(b"one", b"two")
        [shown] = page["items"][0]["writes"]
        assert (shown["data"], shown["chunks"]) == ("", large["chunks"])
        assert await staged(dsn, acme) == 0
        ok(await client.post("/saver/prune", json={"session_ids": ["trip"]}))
        assert (await rows(dsn, acme.tenant_id))["saver_chunks"] == 2
        ok(await client.post("/saver/prune", json={"session_ids": ["trip"], "strategy": "delete"}))
        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]

    async def test_writes_go_with_their_chunks(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        """Pruned, and copied."""
        for step, piece in (("c1", b"one"), ("c2", b"two")):
            ok(await put(client, step, None if step == "c1" else "c1"))
            large = {"index": 0, "channel": "m", "type": "raw", "chunks": [digest(piece)]}
            ok(await write(client, step, writes=[large], content=content(piece)))
        ok(await ahead(client, b"not yet"))
        ok(await client.post("/sessions/trip/saver/copy", json={"target_session_id": "copy"}))
        assert (await rows(dsn, acme.tenant_id))["saver_chunks"] == 3 + 2

        ok(await client.post("/saver/prune", json={"session_ids": ["trip"]}))

        names = {
            row["name"]
            for row in await execute(dsn, DIGESTS + " AND session_id = 'trip'", acme.tenant_id)
        }
        assert names == {digest(b"two"), digest(b"not yet")}

    async def test_session_is_opened_only_for_a_first_checkpoint(self, client: AsyncClient) -> None:
        problem(await ahead(client, b"one", create=False), 404, "session_not_found")
        problem(await ahead(client, b"one", user_id=None), 422, "user_required")
        ok(await ahead(client, b"one"))
        assert ok(await client.get("/sessions/trip"))["user_id"] == "ana"
        problem(await ahead(client, b"one", user_id="bob"), 409, "session_mismatch")
        problem(await read(client, digest(b"one"), user_id="bob"), 409, "session_mismatch")
        wrong = {digest(b"one"): next(iter(content(b"two").values()))}
        problem(await ahead(client, content=wrong), 422, "invalid_request")
        ok(await client.post("/sessions/trip/end"))
        problem(await ahead(client, b"one"), 409, "session_ended")


class TestAbandoned:
    @pytest.mark.parametrize(("late", "left"), [(-60, 2), (60, 1)])
    async def test_chunks_that_nothing_came_for_are_deleted(
        self, client: AsyncClient, acme: Caller, dsn: str, maintenance: CheckpointArchiving,
        late: int, left: int,
    ) -> None:  # fmt: skip
        ok(await put(client, "c1", values={"a": [b"held"]}))
        ok(await ahead(client, b"orphan"))
        await age(dsn, acme, PARTS_AGE + timedelta(seconds=late))

        removed = {"saver_parts_removed": 2 - left}
        assert (await maintenance.due(acme.tenant_id)).items() >= removed.items()
        assert (await maintenance.run(acme.tenant_id)).items() >= removed.items()

        assert (await rows(dsn, acme.tenant_id))["saver_chunks"] == left
        assert await held(client) == [{"a": b"held"}]

    async def test_chunk_that_something_has_after_all_stays(
        self, client: AsyncClient, acme: Caller, dsn: str, maintenance: CheckpointArchiving
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"held"]}))
        await execute(
            dsn, "UPDATE saver_chunks SET staged_at = now() WHERE tenant_id = $1", acme.tenant_id
        )
        await age(dsn, acme, PARTS_AGE * 2)

        await maintenance.run(acme.tenant_id)

        assert await held(client) == [{"a": b"held"}]
        assert await staged(dsn, acme) == 0

    async def test_upload_that_goes_on_is_not_swept_away(
        self, client: AsyncClient, acme: Caller, dsn: str, maintenance: CheckpointArchiving
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"old"]}))
        ok(await put(client, "c2", "c1", values={"a": [b"new"]}))
        ok(await ahead(client, b"part"))
        await age(dsn, acme, PARTS_AGE * 2)
        ok(await ahead(client, b"part"))

        ok(await client.post("/saver/prune", json={"session_ids": ["trip"]}))
        await maintenance.run(acme.tenant_id)

        ok(await put(client, "c3", "c2", values={"a": [b"part"]}, content={}))

    async def test_chunks_of_a_replaced_write_are_deleted(
        self, client: AsyncClient, acme: Caller, dsn: str, maintenance: CheckpointArchiving
    ) -> None:
        """Below index 0 the later write wins, above the earlier; the other has nothing left."""
        ok(await put(client, "c1", values={"a": [b"shared"]}))
        for index in (-1, 1):
            for piece in (b"first", b"second", b"shared"):
                name = piece if piece == b"shared" else piece + str(index).encode()
                large = {"index": index, "channel": "m", "type": "raw", "chunks": [digest(name)]}
                ok(await write(client, "c1", writes=[large], content=content(name)))
        await age(dsn, acme, PARTS_AGE * 2)

        await maintenance.run(acme.tenant_id)

        names = {row["name"] for row in await execute(dsn, DIGESTS, acme.tenant_id)}
        assert names == {digest(b"shared"), digest(b"first1")}


class TestLimits:
    @pytest.mark.parametrize(("beyond", "status"), [(-1, 200), (0, 200), (1, 422)])
    async def test_step_has_so_manyb64decode(
        self, client: AsyncClient, acme: Caller, dsn: str, beyond: int, status: int
    ) -> None:
        ok(await put(client, "c1"))
        await execute(dsn, FILL, acme.tenant_id, STEP_BYTES + beyond, False)
        names = [row["name"] for row in await execute(dsn, DIGESTS, acme.tenant_id)]
        large = {"type": "raw", "chunks": names}
        body = {"checkpoint": {"type": "msgpack", "data": "gA=="}, "values": {"a": large}}

        answers = [
            await client.put(
                "/sessions/trip/saver/checkpoints/c2", json=body | {"parent_id": "c1"}
            ),
            await write(client, "c1", writes=[large | {"index": 0, "channel": "a"}]),
        ]

        assert [one.status_code for one in answers] == [status] * 2
        if status == 422:
            for refused in answers:
                told = problem(refused, 422, "saver_step_too_large")
                assert (told["bytes"], told["limit"]) == (STEP_BYTES + 1, STEP_BYTES)
                assert "67108865 bytes" in told["detail"]
            assert await listed(client) == ["c1"]

    @pytest.mark.parametrize(("beyond", "status"), [(-1, 200), (0, 200), (1, 422)])
    async def test_so_many_bytes_may_come_ahead(
        self, client: AsyncClient, acme: Caller, dsn: str, beyond: int, status: int
    ) -> None:
        ok(await put(client, "c1"))
        piece = noise(1000, 1)
        [size] = [len(one) for one in map(b64decode, content(piece).values())]
        await execute(dsn, FILL, acme.tenant_id, STAGED_BYTES - size + beyond, True)

        answer = await ahead(client, piece)

        assert answer.status_code == status
        if status == 422:
            told = problem(answer, 422, "saver_step_too_large")
            assert (told["bytes"], told["limit"]) == (STAGED_BYTES + 1, STAGED_BYTES)


class TestReading:
    async def test_chunks_are_read_some_megabytes_at_a_time(self, client: AsyncClient) -> None:
        pieces = [noise(65_536, number) for number in range(70)]
        for start in range(0, 70, 20):
            ok(await ahead(client, *pieces[start : start + 20]))
        ok(await put(client, "c1", values={"a": pieces}, content={}))
        names = [digest(piece) for piece in pieces]

        page = ok(await client.get(STEPS))
        rest = [name for name in names if name not in page["content"]]
        some = ok(await read(client, "f" * 32, *rest))
        many = ok(await read(client, *names))

        assert {*page["content"]} == {*names[: len(page["content"])]}
        assert page["content"] | some["content"] == content(*pieces)
        assert some["read"] == len(rest) + 1
        assert many["read"] == len(many["content"]) < 70
        for shown in (page["content"], many["content"]):
            size = sum(len(b64decode(text)) for text in shown.values())
            assert PAGE_BYTES - 65_600 < size <= PAGE_BYTES
