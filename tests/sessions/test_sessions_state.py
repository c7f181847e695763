"""The working state of a session through the public routes."""

import asyncio
import json
from typing import Any

import pytest
from httpx import AsyncClient, Response

from app.conversation.sessions.schemas import STATE_BYTES
from app.conversation.sessions.state_repository import AUTOMATIC_SNAPSHOTS, StateRepository
from app.identity.tenants.access import Access
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, fields, ok, problem, tables_with
from tests.support.rows import for_each
from tests.support.tenants import Caller

STATE = "/sessions/s1/state"
SNAPSHOTS = f"{STATE}/snapshots"


@pytest.fixture
async def session(client: AsyncClient) -> None:
    ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)


async def put(client: AsyncClient, state: Any, version: object = "*") -> Response:
    return await client.put(STATE, json=state, headers={"If-Match": str(version)})


async def patch(client: AsyncClient, change: Any, version: object = "*") -> Response:
    return await client.patch(STATE, json=change, headers={"If-Match": str(version)})


async def read(client: AsyncClient) -> tuple[Any, int]:
    body = ok(await client.get(STATE))
    return body["state"], body["version"]


def filled(size: int, **rest: Any) -> dict[str, Any]:
    """A state of so many bytes of JSON, with `rest` in it."""
    empty = len(json.dumps(rest | {"text": ""}, separators=(",", ":")))
    return rest | {"text": "x" * (size - empty)}


@pytest.mark.usefixtures("session")
class TestWriting:
    async def test_a_state_that_was_never_written_is_empty(self, client: AsyncClient) -> None:
        assert ok(await client.get(STATE)) == {
            "session_id": "s1", "state": {}, "version": 0, "update_time": None,
        }  # fmt: skip

    async def test_state_comes_back_as_it_was_written(self, client: AsyncClient) -> None:
        state = {"目标": "订票 ⛩", "todo": ["dates", {"seats": 2, "class": None}], "done": False}

        written = ok(await put(client, state, 0))

        assert (written["state"], written["version"]) == (state, 1)
        assert written["update_time"].endswith("Z")
        assert ok(await client.get(STATE)) == written

    async def test_a_patch_merges(self, client: AsyncClient) -> None:
        ok(await put(client, {"goal": "train", "draft": "x", "plan": {"a": 1, "b": 2}}, 0))

        change = {"draft": None, "plan": {"b": None, "c": [None]}, "todo": []}
        patched = ok(await patch(client, change, 1))

        assert patched["state"] == {"goal": "train", "plan": {"a": 1, "c": [None]}, "todo": []}
        assert patched["version"] == 2

    async def test_the_media_type_of_merge_patches_is_understood(self, client: AsyncClient) -> None:
        headers = {"If-Match": "0", "Content-Type": "application/merge-patch+json"}

        ok(await client.patch(STATE, content=b'{"a": 1, "b": null}', headers=headers))

        assert await read(client) == ({"a": 1}, 1)

    async def test_a_write_that_names_no_version_is_refused(self, client: AsyncClient) -> None:
        ok(await put(client, {"a": 1}, 0))

        for method in ("PUT", "PATCH"):
            response = await client.request(method, STATE, json={"a": 2})
            problem(response, 428, "version_required")

        assert await read(client) == ({"a": 1}, 1)

    async def test_a_write_by_a_stale_version_is_refused(self, client: AsyncClient) -> None:
        ok(await put(client, {"a": 1}, 0))
        ok(await patch(client, {"a": 2}, '"1"'))

        for version in (0, 1, 'W/"1"', 3):
            for write in (put, patch):
                stale = problem(await write(client, {"a": 3}, version), 409, "version_conflict")
                assert stale["current_version"] == 2

        assert await read(client) == ({"a": 2}, 2)

    async def test_what_changes_nothing_raises_no_version(self, client: AsyncClient) -> None:
        assert ok(await put(client, {}, 0))["version"] == 0
        first = ok(await put(client, {"a": {"b": 1}, "c": [1, 2]}, 0))

        assert ok(await put(client, {"c": [1, 2], "a": {"b": 1}}, 1)) == first
        assert ok(await patch(client, {"d": None, "a": {}}, 1)) == first

    @pytest.mark.parametrize(("old", "new"), [(1, True), (0, False), (1, 1.0), (None, 0)])
    async def test_what_only_python_takes_for_the_same_is_written(
        self, client: AsyncClient, old: Any, new: Any
    ) -> None:
        ok(await put(client, {"a": old}, 0))

        ok(await put(client, {"a": new}, 1))

        state, version = await read(client)
        assert json.dumps(state) == json.dumps({"a": new})
        assert version == 2

    async def test_a_state_is_as_large_as_it_may_be_and_no_larger(
        self, client: AsyncClient
    ) -> None:
        for size in (STATE_BYTES - 1, STATE_BYTES):
            assert ok(await put(client, filled(size)))["state"] == filled(size)
        refused = await put(client, filled(STATE_BYTES + 1))

        assert fields(problem(refused, 422, "invalid_request")) == ["body"]
        assert (await read(client))[0] == filled(STATE_BYTES)

    async def test_many_small_changes_grow_no_further(self, client: AsyncClient) -> None:
        base = filled(STATE_BYTES - 20)
        ok(await put(client, base, 0))

        below = await patch(client, {"a": "x" * 12})
        exactly = await patch(client, {"a": "x" * 13})
        above = await patch(client, {"a": "x" * 14})

        assert ok(below)["version"] == 2
        assert ok(exactly)["state"] == base | {"a": "x" * 13}
        refused = problem(above, 422, "state_too_large")
        assert (refused["size"], refused["limit"]) == (STATE_BYTES + 1, STATE_BYTES)
        assert await read(client) == (base | {"a": "x" * 13}, 3)

    @for_each(
        "state",
        [
            {"a": "\x00"}, {"\x00": 1}, {"a": "\ud800"}, {"a": float("nan")}, {"a": 2**63},
            ["a"], "a", 1, None,
        ],
    )  # fmt: skip
    async def test_what_cannot_be_stored_is_refused(self, client: AsyncClient, state: Any) -> None:
        headers = {"If-Match": "*", "Content-Type": "application/json"}
        for method in ("PUT", "PATCH"):
            response = await client.request(
                method, STATE, content=json.dumps(state), headers=headers
            )
            assert fields(problem(response, 422, "invalid_request")) == ["body"]

        assert await read(client) == ({}, 0)

    async def test_a_state_nested_too_deep_is_refused(self, client: AsyncClient) -> None:
        deep: Any = {}
        for _ in range(31):
            deep = {"a": deep}

        assert ok(await put(client, deep))["state"] == deep
        refused = await put(client, {"a": deep})

        assert fields(problem(refused, 422, "invalid_request")) == ["body"]


class TestWhose:
    async def test_state_is_of_a_session_that_exists(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)
        ok(await put(client, {"a": 1}, 0))

        for response in (
            await stranger.get(STATE),
            await put(stranger, {"a": 2}),
            await patch(stranger, {"a": 2}),
            await stranger.post(SNAPSHOTS),
            await stranger.get(SNAPSHOTS),
        ):
            problem(response, 404, "session_not_found")

        assert ok(await stranger.get("/sessions"))["items"] == []
        assert await read(client) == ({"a": 1}, 1)

    async def test_whoever_is_disabled_keeps_no_state(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.")
        ok(await client.patch("/users/ana", json={"status": "disabled"}))

        problem(await put(client, {"a": 1}), 409, "disabled")
        problem(await client.post(SNAPSHOTS), 409, "disabled")

        assert await read(client) == ({}, 0)

    async def test_state_goes_with_its_session(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)
        ok(await put(client, {"goal": "blue elephants"}, 0))
        made = ok(await client.post(SNAPSHOTS, headers={"Idempotency-Key": "k"}), 201)
        ok(
            await client.post(
                f"{SNAPSHOTS}/{made['snapshot_id']}/restore", headers={"Idempotency-Key": "k2"}
            )
        )
        assert tables_with("blue elephants", await dump(dsn, acme.tenant_id)) != []

        ok(await client.delete("/sessions/s1", params={"confirm": True}))

        assert tables_with("blue elephants", await dump(dsn, acme.tenant_id)) == []


@pytest.mark.usefixtures("session")
class TestEnding:
    async def test_an_end_drops_it_and_keeps_a_copy(self, client: AsyncClient) -> None:
        ok(await put(client, {"goal": "train"}, 0))

        ok(await client.post("/sessions/s1/end"))

        assert await read(client) == ({}, 2)
        [kept] = await every_page(client, SNAPSHOTS)
        assert (kept["reason"], kept["state_version"]) == ("end", 1)
        whole = ok(await client.get(f"{SNAPSHOTS}/{kept['snapshot_id']}"))
        assert whole == kept | {"state": {"goal": "train"}}

    async def test_an_ended_session_takes_none(self, client: AsyncClient) -> None:
        ok(await put(client, {"goal": "train"}, 0))
        made = ok(await client.post(SNAPSHOTS), 201)
        ok(await client.post("/sessions/s1/end"))

        for response in (
            await put(client, {"a": 1}),
            await patch(client, {"a": 1}),
            await client.post(SNAPSHOTS),
            await client.post(f"{SNAPSHOTS}/{made['snapshot_id']}/restore"),
        ):
            problem(response, 409, "session_ended")

        assert (await read(client))[0] == {}

    async def test_a_version_from_before_the_end_is_stale_after_it(
        self, client: AsyncClient
    ) -> None:
        ok(await put(client, {"goal": "train"}, 0))
        ok(await client.post("/sessions/s1/end"))
        ok(await client.post("/sessions/s1/reopen"))
        ok(await put(client, {"goal": "plane"}, 2))

        problem(await put(client, {"goal": "old"}, 1), 409, "version_conflict")

        assert await read(client) == ({"goal": "plane"}, 3)

    async def test_an_empty_state_leaves_no_copy(self, client: AsyncClient) -> None:
        ok(await client.post("/sessions/s1/end"))
        ok(await client.post("/sessions/s1/end"))

        assert await every_page(client, SNAPSHOTS) == []
        assert await read(client) == ({}, 0)


@pytest.mark.usefixtures("session")
class TestSnapshots:
    async def test_a_copy_says_when_and_why_it_was_made(self, client: AsyncClient) -> None:
        await append(client, "s1", "One.", "Two.")
        ok(await put(client, {"a": 1}, 0))

        made = ok(await client.post(SNAPSHOTS), 201)

        assert made["snapshot_id"].startswith("snp_")
        assert {name: made[name] for name in ("session_id", "seq", "state_version", "reason")} == {
            "session_id": "s1", "seq": 2, "state_version": 1, "reason": "manual",
        }  # fmt: skip
        assert await every_page(client, SNAPSHOTS) == [made]

    async def test_a_state_goes_back_and_its_version_forth(self, client: AsyncClient) -> None:
        ok(await put(client, {"a": 1}, 0))
        made = ok(await client.post(SNAPSHOTS), 201)
        ok(await put(client, {"b": 2}, 1))

        restored = ok(await client.post(f"{SNAPSHOTS}/{made['snapshot_id']}/restore"))

        assert (restored["state"], restored["version"]) == ({"a": 1}, 3)
        before = (await every_page(client, SNAPSHOTS))[0]
        assert (before["reason"], before["state_version"]) == ("before_restore", 2)
        ok(await client.post(f"{SNAPSHOTS}/{before['snapshot_id']}/restore"))
        assert await read(client) == ({"b": 2}, 4)

    async def test_a_restore_may_name_the_version_that_was_read(self, client: AsyncClient) -> None:
        ok(await put(client, {"a": 1}, 0))
        made = ok(await client.post(SNAPSHOTS), 201)
        ok(await put(client, {"b": 2}, 1))
        path = f"{SNAPSHOTS}/{made['snapshot_id']}/restore"

        stale = await client.post(path, headers={"If-Match": "1"})

        problem(stale, 409, "version_conflict")
        assert await read(client) == ({"b": 2}, 2)
        assert len(await every_page(client, SNAPSHOTS)) == 1
        ok(await client.post(path, headers={"If-Match": "2"}))

    async def test_pages_hold_each_copy_once(self, client: AsyncClient) -> None:
        ids = [ok(await client.post(SNAPSHOTS), 201)["snapshot_id"] for _ in range(5)]

        rows = await every_page(client, SNAPSHOTS, limit=2)

        assert [row["snapshot_id"] for row in rows] == ids[::-1]

    async def test_a_repeated_request_makes_one(self, client: AsyncClient) -> None:
        headers = {"Idempotency-Key": "k"}

        first = await client.post(SNAPSHOTS, headers=headers)
        again = await client.post(SNAPSHOTS, headers=headers)

        assert first.json() == again.json()
        assert len(await every_page(client, SNAPSHOTS)) == 1

    async def test_a_copy_of_another_session_is_not_there(self, client: AsyncClient) -> None:
        ok(await client.post("/sessions", json={"session_id": "s2", "user_id": "ana"}), 201)
        other = ok(await client.post("/sessions/s2/state/snapshots"), 201)["snapshot_id"]

        for path in (f"{SNAPSHOTS}/{other}", f"{SNAPSHOTS}/nobody"):
            problem(await client.get(path), 404, "snapshot_not_found")
            problem(await client.post(f"{path}/restore"), 404, "snapshot_not_found")

    async def test_of_those_nobody_asked_for_the_newest_stay(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        ok(await put(client, {"a": 1}, 0))
        asked = ok(await client.post(SNAPSHOTS), 201)["snapshot_id"]
        made = []
        async with runtime.database.begin(acme.tenant_id) as db:
            states = StateRepository(db, Access(acme.tenant_id))
            for _ in range(AUTOMATIC_SNAPSHOTS + 1):
                row = await states.snapshot("s1", "before_compact")
                assert row is not None
                made.append(row.snapshot_id)

        rows = await every_page(client, SNAPSHOTS)

        assert [row["snapshot_id"] for row in rows] == [*made[:0:-1], asked]


class TestBesideMessages:
    """A tool's result and what it changes in the state, in one request."""

    async def say(self, client: AsyncClient, *messages: Any, **body: Any) -> Response:
        whole = {"user_id": "ana", "messages": list(messages)} | body
        return await client.post("/sessions/s1/messages", json=whole)

    async def test_both_are_written(self, client: AsyncClient) -> None:
        call = {"role": "assistant", "tool_calls": [{"id": "c1", "name": "pick_seat"}]}
        ok(await self.say(client, call, state={"goal": "train", "draft": 1}, state_version=0), 201)
        result = {"role": "tool", "tool_call_id": "c1", "content": "12A"}

        said = ok(
            await self.say(client, result, state={"seat": "12A", "draft": None}, state_version=1),
            201,
        )

        assert said["state_version"] == 2
        assert await read(client) == ({"goal": "train", "seat": "12A"}, 2)

    async def test_neither_is_written_by_a_stale_version(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.")
        ok(await put(client, {"a": 1}, 0))
        message = {"role": "user", "content": "Second."}

        stale = await self.say(client, message, state={"a": 2}, state_version=0)

        problem(stale, 409, "version_conflict")
        assert await read(client) == ({"a": 1}, 1)
        assert len(await every_page(client, "/sessions/s1/messages")) == 1

    async def test_neither_is_written_when_the_state_would_be_too_large(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", "Hello.")
        ok(await put(client, filled(STATE_BYTES), 0))
        message = {"role": "user", "content": "Second."}

        problem(
            await self.say(client, message, state={"b": 2}, state_version=1), 422, "state_too_large"
        )

        assert len(await every_page(client, "/sessions/s1/messages")) == 1

    async def test_a_repeated_append_changes_it_once(self, client: AsyncClient) -> None:
        message = {"role": "user", "content": "One.", "message_id": "m1"}
        ok(await self.say(client, message, state={"n": 1}, state_version=0), 201)
        ok(await patch(client, {"n": 2}, 1))

        ok(await self.say(client, message, state={"n": 1}, state_version=0))

        assert await read(client) == ({"n": 2}, 2)


@pytest.mark.usefixtures("session")
class TestRaces:
    async def test_of_two_who_read_the_same_version_one_writes(self, client: AsyncClient) -> None:
        ok(await put(client, {"n": 0}, 0))

        answers = await asyncio.gather(*(put(client, {"n": n}, 1) for n in range(1, 9)))

        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7
        [won] = [answer.json()["state"] for answer in answers if answer.status_code == 200]
        assert await read(client) == (won, 2)

    async def test_two_first_writes_do_not_crash(self, client: AsyncClient) -> None:
        answers = await asyncio.gather(*(patch(client, {str(n): n}, 0) for n in range(8)))

        assert sorted(answer.status_code for answer in answers) == [200] + [409] * 7

    async def test_patches_of_different_keys_lose_nothing(self, client: AsyncClient) -> None:
        answers = await asyncio.gather(*(patch(client, {str(n): n}) for n in range(8)))

        assert {answer.status_code for answer in answers} == {200}
        assert await read(client) == ({str(n): n for n in range(8)}, 8)

    async def test_a_late_write_brings_no_deleted_session_back(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        async with runtime.database.begin(acme.tenant_id) as db:
            connection = await db.connection()
            await connection.exec_driver_sql(
                "SELECT 1 FROM sessions WHERE session_id = 's1' FOR UPDATE"
            )
            late = [
                asyncio.create_task(put(client, {"goal": "elephants"})),
                asyncio.create_task(client.post(SNAPSHOTS)),
            ]
            done, _ = await asyncio.wait(late, timeout=0.5)
            assert not done
            await connection.exec_driver_sql("DELETE FROM sessions WHERE session_id = 's1'")

        for response in await asyncio.gather(*late):
            problem(response, 404, "session_not_found")
        assert tables_with("s1", await dump(dsn, acme.tenant_id)) == []
