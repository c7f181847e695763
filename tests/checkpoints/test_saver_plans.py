"""What LangGraph's checkpoints cost in rows looked at, whatever the statistics say."""

import zlib
from collections.abc import AsyncIterator
from typing import Any

import pytest
from httpx import AsyncClient
from sqlalchemy import TextClause, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.integrations.langgraph.list_repository import SaverLists, Wanted
from app.platform.embedded.server import EmbeddedPostgres
from app.prompting.checkpoints.saver_thread_repository import HASHED, SaverThreadRepository
from app.runtime import Runtime
from app.settings import Settings
from tests.checkpoints.saver_support import put, rows
from tests.support.api import execute, ok
from tests.support.plans import Crowd, new_crowd, nodes
from tests.support.tenants import Caller

CHANNELS = 10
SESSION = """
    WITH home AS (
        INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')
        ON CONFLICT DO NOTHING
    ), person AS (
        INSERT INTO users (tenant_id, user_id, agent_id) VALUES ($1, 'ana', 'default')
        ON CONFLICT DO NOTHING
    )
    INSERT INTO sessions (tenant_id, session_id, user_id, agent_id)
    VALUES ($1, $2, 'ana', 'default')
"""
CHECKPOINTS = """
    INSERT INTO saver_checkpoints (tenant_id, session_id, namespace, checkpoint_id, parent_id,
        run_id, metadata, channels, type, checkpoint)
    SELECT $1, $2, '', lpad(step::text, 8, '0'), lpad(nullif(step - 1, 0)::text, 8, '0'),
        'run-' || step % 3, '{}', coalesce(
            (SELECT jsonb_object_agg('c' || place,
                    md5((CASE WHEN place < 3 THEN step ELSE step / 50 END) || 'x' || place))
                FROM generate_series(1, $4::int) AS place), '{}'), 'msgpack', '\\x80'
    FROM generate_series(1, $3::int) AS step
"""
VALUES = """
    INSERT INTO saver_values (tenant_id, session_id, digest, type, chunks)
    SELECT DISTINCT tenant_id, session_id, decode(value, 'hex'), 'msgpack',
        ARRAY[decode(value, 'hex')]
    FROM saver_checkpoints, jsonb_each_text(channels) WHERE tenant_id = $1
"""
CHUNKS = """
    INSERT INTO saver_chunks (tenant_id, session_id, digest, content)
    SELECT tenant_id, session_id, digest, '\\x78' FROM saver_values WHERE tenant_id = $1
"""


class Explaining:
    """A transaction that runs each statement under EXPLAIN, as it would run, and notes its plan."""

    def __init__(self, db: AsyncSession) -> None:
        self._db = db
        self.plans: list[dict[str, Any]] = []

    async def execute(self, statement: Any, values: Any = None) -> Any:
        if statement is HASHED:
            return await self._db.execute(statement)
        changes = isinstance(statement, TextClause)
        words = statement.text if changes else _as_text(statement)
        explained = text(f"EXPLAIN (ANALYZE, FORMAT JSON) {words}")
        told = await self._db.execute(explained, values or {})
        self.plans.append(told.scalar_one()[0]["Plan"])
        # A change is made by now, and any row says that there was one.
        return await self._db.execute(text("SELECT 1") if changes else statement)

    def looked_at(self) -> int:
        """Rows, over all plans: what nodes returned, and what they took up and dropped."""
        dropped = ("Rows Removed by Filter", "Rows Removed by Join Filter")
        return sum(
            (node["Actual Rows"] + sum(node.get(name, 0) for name in dropped))
            * node["Actual Loops"]
            for plan in self.plans
            for node in nodes(plan)
        )


def _as_text(statement: Any) -> str:
    as_text = {"literal_binds": True}
    compiled = statement.compile(dialect=postgresql.dialect(), compile_kwargs=as_text)
    return str(compiled).replace(":", "\\:")


@pytest.fixture
async def crowd(
    postgres: EmbeddedPostgres, settings: Settings, request: pytest.FixtureRequest
) -> AsyncIterator[Crowd]:
    name = f"saver_{zlib.crc32(request.node.nodeid.encode())}"
    async with new_crowd(postgres, settings, name) as opened:
        yield opened


async def fill(dsn: str, tenant_id: str, session: str, steps: int, channels: int) -> None:
    await execute(dsn, SESSION, tenant_id, session)
    await execute(dsn, CHECKPOINTS, tenant_id, session, steps, channels)


@pytest.fixture(params=["unknown to the planner", "analyzed"])
async def long_thread(request: pytest.FixtureRequest, crowd: Crowd) -> int:
    """300 steps of 10 channels; how many rows it has, the entries of its channels counted."""
    await fill(crowd.dsn, crowd.tenant_id, "trip", 300, CHANNELS)
    await execute(crowd.dsn, VALUES, crowd.tenant_id)
    await execute(crowd.dsn, CHUNKS, crowd.tenant_id)
    if request.param == "analyzed":
        await execute(crowd.dsn, "ANALYZE saver_checkpoints, saver_values, saver_chunks")
    return 300 * CHANNELS + sum((await rows(crowd.dsn, crowd.tenant_id)).values())


class TestRemoving:
    @pytest.mark.parametrize("what", ["steps", "runs"])
    async def test_no_pair_of_rows_is_compared(
        self, crowd: Crowd, long_thread: int, what: str
    ) -> None:
        """Compared pair by pair, 3,000 steps took longer than a statement may."""
        gone = {("", f"{step:08}") for step in range(1, 300)}
        async with crowd.runtime.database.begin(crowd.tenant_id) as db:
            explaining = Explaining(db)
            thread = SaverThreadRepository(explaining, crowd.tenant_id, "trip")
            if what == "steps":
                await thread.remove(gone)
            else:
                await thread.remove_runs(["run-1", "run-2"])

        kinds = [(node["Node Type"], node.get("Join Type")) for plan in explaining.plans for node in nodes(plan)]  # fmt: skip # noqa: E501
        assert len(explaining.plans) == 4
        assert "Materialize" not in {kind for kind, _ in kinds}
        assert sum(str(join).endswith("Anti") for _, join in kinds) == 3
        # Beside an anti-join only what unfolds the channels of a row.
        inner = {
            node["Plans"][1]["Node Type"]
            for plan in explaining.plans
            for node in nodes(plan)
            if node["Node Type"] == "Nested Loop"
        }
        assert inner <= {"Function Scan"}
        assert explaining.looked_at() < 12 * long_thread
        held = {"steps": [1, CHANNELS, CHANNELS], "runs": [100, 256, 256]}[what]
        assert list((await rows(crowd.dsn, crowd.tenant_id)).values()) == [*held, 0]

    async def test_where_nothing_is_removed_nothing_is_swept(
        self, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"]}))

        class Counting:
            def __init__(self, db: AsyncSession) -> None:
                self._db = db
                self.statements = 0

            async def execute(self, *given: Any) -> Any:
                self.statements += 1
                return await self._db.execute(*given)

        async with runtime.database.begin(acme.tenant_id) as db:
            counting = Counting(db)
            thread = SaverThreadRepository(counting, acme.tenant_id, "trip")
            assert await thread.remove([("", "gone")]) == 0
            assert await thread.remove_runs(["unknown"]) == 0

        assert counting.statements == 2 * 2

    async def test_a_thread_of_any_length_is_pruned(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        """A statement has at most 32,767 parameters; a checkpoint to delete was two of them."""
        await fill(dsn, acme.tenant_id, "trip", 16_400, 0)

        pruned = await client.post("/saver/prune", json={"session_ids": ["trip"]})

        assert ok(pruned) == {"checkpoints": 16_399}


class TestListing:
    @pytest.mark.parametrize(
        "wanted",
        [Wanted(), Wanted(before="00000150"), Wanted(session_id="s3", namespace="")],
        ids=["all", "before", "one thread"],
    )
    @pytest.mark.parametrize("start", [None, ("00000100", "s3", "")], ids=["first", "later"])
    async def test_a_page_looks_at_its_own_rows(self, crowd: Crowd, wanted, start) -> None:
        for number in range(8):
            await fill(crowd.dsn, crowd.tenant_id, f"s{number}", 200, 1)
        await execute(crowd.dsn, "ANALYZE saver_checkpoints")

        async with crowd.runtime.database.begin(crowd.tenant_id) as db:
            explaining = Explaining(db)
            lists = SaverLists(explaining, Access(crowd.tenant_id))
            found, more = await lists.list_checkpoints(wanted, start=start, limit=10)

        assert (len(found), more) == (10, True)
        [plan] = explaining.plans
        read = [one for one in nodes(plan) if one.get("Relation Name") == "saver_checkpoints"]
        assert [one["Node Type"] for one in read] == ["Index Scan"]
        looked_at = read[0]["Actual Rows"] + read[0].get("Rows Removed by Filter", 0)
        # Of one thread and of those with the same id in others that the last page had shown.
        assert 11 <= looked_at <= 11 + 8
