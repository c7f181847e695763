"""Two at once, each on a connection of its own: a lock that the test holds lines them up."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from contextlib import asynccontextmanager
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from tests.blocks.conftest import Desk
from tests.support.api import counts, execute, ok
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller

pytestmark = pytest.mark.usefixtures("people")

WAITING = "SELECT count(*) FROM pg_locks WHERE NOT granted"


@asynccontextmanager
async def locked(dsn: str, tenant_id: str, block_id: str) -> AsyncIterator[None]:
    """Nobody else may change the block while this runs."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        transaction = connection.transaction()
        await transaction.start()
        await connection.execute(
            "SELECT FROM blocks WHERE tenant_id = $1 AND block_id = $2 FOR UPDATE",
            tenant_id, block_id,
        )  # fmt: skip
        yield
        await transaction.rollback()
    finally:
        await connection.close()


async def at_once(dsn: str, tenant_id: str, block_id: str, *requests: Awaitable[Any]) -> list[Any]:
    """Answers to requests that all waited for the same block."""
    async with locked(dsn, tenant_id, block_id):
        running = [asyncio.ensure_future(request) for request in requests]
        await _all_wait(dsn, len(requests))
    return await asyncio.gather(*running)


async def _all_wait(dsn: str, count: int) -> None:
    async with asyncio.timeout(PATIENCE):
        while (  # noqa: ASYNC110 (only the table says so)
            await execute(dsn, WAITING)
        )[0]["count"] < count:
            await asyncio.sleep(0.01)


class TestEdits:
    async def test_two_appends_at_once_both_land(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", value="one")

        answers = await at_once(
            dsn, acme.tenant_id, "b1",
            *(
                client.post("/blocks/b1/append", json={"text": text})
                for text in ("two", "three")
            ),
        )  # fmt: skip

        assert [answer.status_code for answer in answers] == [200, 200]
        block = ok(await client.get("/blocks/b1"))
        assert sorted(block["value"].split("\n")) == ["one", "three", "two"]
        assert block["version"] == 3
        history = ok(await client.get("/blocks/b1/history"))["items"]
        assert [row["history_no"] for row in history] == [3, 2, 1]

    async def test_second_of_two_appends_that_fit_alone_is_refused(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", value="12345", limit=10)

        answers = await at_once(
            dsn, acme.tenant_id, "b1",
            *(client.post("/blocks/b1/append", json={"text": text}) for text in ("abc", "def")),
        )  # fmt: skip

        assert sorted(answer.status_code for answer in answers) == [200, 422]
        assert ok(await client.get("/blocks/b1"))["chars_current"] == 9

    async def test_second_change_of_the_same_version_is_refused(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", value="a")
        version = {"If-Match": "1"}

        answers = await at_once(
            dsn, acme.tenant_id, "b1",
            client.patch("/blocks/b1", json={"value": "b"}, headers=version),
            client.post("/blocks/b1/rewrite", json={"value": "c"}, headers=version),
        )  # fmt: skip

        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert ok(await client.get("/blocks/b1"))["version"] == 2

    async def test_second_undo_of_the_same_version_is_refused(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", value="a")
        for text in ("b", "c"):
            ok(await client.post("/blocks/b1/append", json={"text": text}))

        answers = await at_once(
            dsn, acme.tenant_id, "b1",
            *(client.post("/blocks/b1/undo", headers={"If-Match": "3"}) for _ in range(2)),
        )  # fmt: skip

        assert sorted(answer.status_code for answer in answers) == [200, 409]
        assert ok(await client.get("/blocks/b1"))["value"] == "a\nb"


class TestCopies:
    async def test_two_first_edits_of_a_user_make_one_copy(
        self, client: AsyncClient, desk: Desk, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human", value="Name?")
        ok(await client.put("/agents/a2/blocks/b1"))

        first, second = await at_once(
            dsn, acme.tenant_id, "b1",
            desk.append("s1", "human", "one"), desk.append("s3", "human", "two"),
        )  # fmt: skip

        assert first.block_id == second.block_id
        assert (await counts(dsn, acme.tenant_id))["blocks"] == 2
        said = (await desk.said("s1"))["human"]
        assert sorted(said.split("\n")) == ["Name?", "one", "two"]

    async def test_two_users_make_two(self, desk: Desk, dsn: str, acme: Caller, make: Any) -> None:
        await make("b1", "human")

        await at_once(
            dsn, acme.tenant_id, "b1",
            desk.append("s1", "human", "Ana"), desk.append("s2", "human", "Ben"),
        )  # fmt: skip

        assert await desk.said("s1") == {"human": "Ana"}
        assert await desk.said("s2") == {"human": "Ben"}

    async def test_a_copy_made_while_its_template_is_closed_is_closed(
        self, client: AsyncClient, desk: Desk, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "human")
        closing = client.patch("/blocks/b1", json={"read_only": True}, headers={"If-Match": "*"})

        answers = await at_once(
            dsn, acme.tenant_id, "b1",
            closing, _quietly(desk.append("s1", "human", "Ana")),
        )  # fmt: skip

        assert answers[0].status_code == 200
        assert all(block.read_only for block in await desk.seen("s1"))


async def _quietly(edit: Awaitable[Any]) -> Any:
    try:
        return await edit
    except Exception as error:  # noqa: BLE001 (either order of the two is fine)
        return error


class TestAttaching:
    async def test_second_block_with_the_same_label_is_not_attached(
        self, client: AsyncClient, make: Any
    ) -> None:
        for number in range(5):
            labels = {"label": f"label {number}", "agent_id": None}
            await make(f"x{number}", **labels)
            await make(f"y{number}", **labels)

            answers = await asyncio.gather(
                *(client.put(f"/agents/a1/blocks/{name}{number}") for name in "xy")
            )

            assert sorted(answer.status_code for answer in answers) == [200, 409]
        blocks = ok(await client.get("/agents/a1/blocks"))["items"]
        assert len({block["label"] for block in blocks}) == len(blocks) == 5

    async def test_one_block_is_attached_once(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", agent_id=None)

        answers = await asyncio.gather(*(client.put("/agents/a1/blocks/b1") for _ in range(4)))

        assert {answer.status_code for answer in answers} == {200}
        assert (await counts(dsn, acme.tenant_id))["agent_blocks"] == 1

    async def test_block_attached_during_its_renaming_has_the_new_label(
        self, client: AsyncClient, dsn: str, acme: Caller, make: Any
    ) -> None:
        await make("b1", "old", agent_id=None)

        await at_once(
            dsn, acme.tenant_id, "b1",
            client.patch("/blocks/b1", json={"label": "new"}, headers={"If-Match": "*"}),
            client.put("/agents/a1/blocks/b1"),
        )  # fmt: skip

        [row] = await execute(
            dsn, "SELECT label FROM agent_blocks WHERE tenant_id = $1", acme.tenant_id
        )
        assert row["label"] == "new"
