"""Old checkpoints are put away, can be read and gone back to, and go with their session."""

import asyncio
from datetime import timedelta
from typing import Any

import pytest
from checkpoints_support import (
    CHECKPOINTS,
    SESSION,
    age,
    checkpoint,
    put_state,
    restore,
    window,
)
from httpx import AsyncClient

from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.runtime import Runtime
from tests.support.api import append, dump, every_page, ok, problem, tables_with
from tests.support.tenants import Caller
from tests.support.threads import watched_threads

DAYS = timedelta(days=30)


@pytest.fixture
def archiving(runtime: Runtime) -> CheckpointArchiving:
    return CheckpointArchiving(runtime.database, DAYS)


def archived(count: int) -> dict[str, int]:
    return {"checkpoints_archived": count, "approvals_expired": 0, "saver_parts_removed": 0}


async def made_old(
    client: AsyncClient, dsn: str, caller: Caller, by: timedelta = DAYS, **body: Any
) -> str:
    """A checkpoint of so long ago; its id."""
    one: str = (await checkpoint(client, **body))["checkpoint_id"]
    await age(dsn, caller, one, by)
    return one


@pytest.mark.usefixtures("session")
class TestWhich:
    async def test_those_that_are_old_enough(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        for by in (DAYS - timedelta(minutes=1), DAYS, DAYS + timedelta(days=1)):
            await made_old(client, dsn, acme, by)
        newest = (await checkpoint(client))["checkpoint_id"]

        assert await archiving.due(acme.tenant_id) == archived(2)
        assert await archiving.run(acme.tenant_id) == archived(2)
        assert await archiving.run(acme.tenant_id) == archived(0)

        rows = await every_page(client, CHECKPOINTS, archived=True)
        assert [row["archived"] for row in rows] == [False, False, True, True]
        assert rows[0]["checkpoint_id"] == newest

    async def test_never_the_newest_of_a_session_that_runs(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        old = [await made_old(client, dsn, acme, DAYS + timedelta(hours=3 - n)) for n in range(3)]
        await made_old(client, dsn, acme, DAYS + timedelta(days=9), namespace="planner")

        assert await archiving.run(acme.tenant_id) == archived(2)

        live = await every_page(client, CHECKPOINTS)
        assert {row["namespace"] for row in live} == {"", "planner"}
        assert old[2] in {row["checkpoint_id"] for row in live}
        # Once it has ended, nobody goes on from there.
        ok(await client.post(f"{SESSION}/end"))
        assert await archiving.run(acme.tenant_id) == archived(2)

    async def test_none_when_they_are_kept_as_they_are(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for _ in range(2):
            await made_old(client, dsn, acme, DAYS * 1000)
        archiving = CheckpointArchiving(runtime.database, None)

        assert await archiving.due(acme.tenant_id) == archived(0)
        assert await archiving.run(acme.tenant_id) == archived(0)

    async def test_archiving_is_limited_to_its_tenant(
        self,
        client: AsyncClient,
        archiving: CheckpointArchiving,
        acme: Caller,
        other: Caller,
        dsn: str,
    ) -> None:
        for _ in range(2):
            await made_old(client, dsn, acme)
        before = await kept(dsn, acme)

        assert await archiving.due(other.tenant_id) == archived(0)
        assert await archiving.run(other.tenant_id) == archived(0)

        assert await kept(dsn, acme) == before


async def kept(dsn: str, tenant: Caller) -> dict[str, list[str]]:
    """Every row but those of keys: when one was last used is written at leisure."""
    rows = await dump(dsn, tenant.tenant_id)
    return {name: lines for name, lines in rows.items() if name != "api_keys"}


class TestWhatStays:
    async def test_archived_checkpoint_is_read_and_gone_back_to_as_before(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        await append(client, "s1", "One.", "二。")
        await put_state(client, {"goal": "火车 🚄"})
        contents = {"agent_state": {"todo": ["日期", 1.5, None]}, "messages": [{"role": "user"}]}
        about = {"namespace": "planner", "step": 7, "source": "loop", "metadata": {"run": "r1"}}
        one = await made_old(client, dsn, acme, contents=contents, **about)
        await append(client, "s1", "Three.")
        await put_state(client, {"goal": "plane"})
        await checkpoint(client, namespace="planner")
        before = ok(await client.get(f"{CHECKPOINTS}/{one}"))

        assert await archiving.run(acme.tenant_id) == archived(1)

        after = ok(await client.get(f"{CHECKPOINTS}/{one}"))
        assert after["archived_at"].endswith("Z")
        changed = {"archived": True, "archived_at": after["archived_at"]}
        assert after == before | changed
        assert (
            tables_with("火车", {"checkpoints": (await dump(dsn, acme.tenant_id))["checkpoints"]})
            == []
        )
        await restore(client, one)
        assert await window(dsn, acme) == ["One.", "二。"]
        assert ok(await client.get(f"{SESSION}/state"))["state"] == {"goal": "火车 🚄"}

    @pytest.mark.usefixtures("session")
    async def test_archived_checkpoint_is_unpacked_while_others_go_on(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        one = await made_old(client, dsn, acme)
        live = (await checkpoint(client))["checkpoint_id"]
        await archiving.run(acme.tenant_id)

        with watched_threads() as ran:
            ok(await client.get(f"{CHECKPOINTS}/{live}"))
            await restore(client, live)
            assert "unpack" not in ran
            ok(await client.get(f"{CHECKPOINTS}/{one}"))
            assert ran.count("unpack") == 1
            await restore(client, one)
            assert ran.count("unpack") == 2

    @pytest.mark.usefixtures("session")
    async def test_list_shows_archived_checkpoints_on_request(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        ids = [
            await made_old(client, dsn, acme, DAYS * (6 - n), namespace="ab"[n % 2])
            for n in range(6)
        ]
        await archiving.run(acme.tenant_id)
        live = ids[4:]

        def shown(rows: list[dict[str, Any]]) -> list[str]:
            return [row["checkpoint_id"] for row in rows]

        assert shown(await every_page(client, CHECKPOINTS)) == live[::-1]
        assert shown(await every_page(client, CHECKPOINTS, archived=True, limit=1)) == ids[::-1]
        assert shown(await every_page(client, CHECKPOINTS, archived=True, limit=4)) == ids[::-1]
        assert shown(await every_page(client, CHECKPOINTS, archived=True, namespace="a")) == [
            ids[4],
            ids[2],
            ids[0],
        ]
        assert shown(await every_page(client, CHECKPOINTS, archived=True, before=ids[2])) == [
            ids[1],
            ids[0],
        ]

    @pytest.mark.usefixtures("session")
    async def test_archived_checkpoint_can_be_a_parent_and_be_deleted(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        one = await made_old(client, dsn, acme)
        child = (await checkpoint(client, parent_id=one))["checkpoint_id"]
        await archiving.run(acme.tenant_id)
        later = (await checkpoint(client, parent_id=one))["checkpoint_id"]

        ok(await client.delete(f"{CHECKPOINTS}/{one}"), 204)

        problem(await client.get(f"{CHECKPOINTS}/{one}"), 404, "checkpoint_not_found")
        for row in (child, later):
            assert ok(await client.get(f"{CHECKPOINTS}/{row}"))["parent_id"] is None

    @pytest.mark.usefixtures("session")
    async def test_archived_checkpoint_goes_with_its_session(
        self, client: AsyncClient, archiving: CheckpointArchiving, acme: Caller, dsn: str
    ) -> None:
        one = await made_old(client, dsn, acme)
        await checkpoint(client)
        await archiving.run(acme.tenant_id)
        assert tables_with(one, await dump(dsn, acme.tenant_id)) == ["checkpoint_archive"]

        ok(await client.delete(SESSION, params={"confirm": True}))

        assert tables_with(one, await dump(dsn, acme.tenant_id)) == []


@pytest.mark.usefixtures("session")
class TestAtOnce:
    async def test_each_is_put_away_once(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for _ in range(12):
            await made_old(client, dsn, acme)
        archiving = CheckpointArchiving(runtime.database, DAYS, batch=2)

        done = await asyncio.gather(*(archiving.run(acme.tenant_id) for _ in range(4)))
        rest = await archiving.run(acme.tenant_id)

        total = sum(one["checkpoints_archived"] for one in [*done, rest])
        assert total == 11
        rows = await dump(dsn, acme.tenant_id)
        assert (len(rows["checkpoint_archive"]), len(rows["checkpoints"])) == (11, 1)

    async def test_locked_session_is_skipped_until_the_next_time(
        self,
        client: AsyncClient,
        runtime: Runtime,
        archiving: CheckpointArchiving,
        acme: Caller,
        dsn: str,
    ) -> None:
        for _ in range(2):
            await made_old(client, dsn, acme)
        async with runtime.database.begin(acme.tenant_id) as db:
            await (await db.connection()).exec_driver_sql("SELECT 1 FROM sessions FOR UPDATE")
            assert await archiving.run(acme.tenant_id) == archived(0)

        assert await archiving.run(acme.tenant_id) == archived(1)

    async def test_archiving_during_read_restore_and_delete_does_no_harm(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        archiving = CheckpointArchiving(runtime.database, DAYS, batch=1)
        for _ in range(4):
            ids = [await made_old(client, dsn, acme) for _ in range(6)]

            _, *answers = await asyncio.gather(
                archiving.run(acme.tenant_id),
                *(client.get(f"{CHECKPOINTS}/{one}") for one in ids),
                *(client.post(f"{CHECKPOINTS}/{one}/restore") for one in ids[:2]),
                client.delete(f"{CHECKPOINTS}/{ids[5]}"),
            )

            assert {answer.status_code for answer in answers[:5]} == {200}
            assert {answer.status_code for answer in answers[6:]} == {200, 204}
            problem(await client.get(f"{CHECKPOINTS}/{ids[5]}"), 404, "checkpoint_not_found")

    async def test_erasure_during_archiving_leaves_nothing(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        for turn in range(4):
            if turn:
                body = {"session_id": "s1", "user_id": "ana"}
                ok(await client.post("/sessions", json=body), 201)
            for _ in range(6):
                await made_old(client, dsn, acme)
            archiving = CheckpointArchiving(runtime.database, DAYS, batch=1)

            _, erased = await asyncio.gather(
                archiving.run(acme.tenant_id), client.delete(SESSION, params={"confirm": True})
            )

            ok(erased)
            rows = await dump(dsn, acme.tenant_id)
            assert not rows["checkpoint_archive"] + rows["checkpoints"]


@pytest.mark.usefixtures("session")
async def test_housekeeping_archives_old_checkpoints(
    client: AsyncClient, runtime: Runtime, archiving: CheckpointArchiving, acme: Caller, dsn: str
) -> None:
    for _ in range(3):
        await made_old(client, dsn, acme)
    house = Housekeeping(runtime.database, Retention(deleted=DAYS), checkpoints=archiving)

    assert archived(2).items() <= (await house.due(acme.tenant_id)).items()
    assert archived(2).items() <= (await house.run(acme.tenant_id)).items()
    assert archived(0).items() <= (await house.run(acme.tenant_id)).items()
