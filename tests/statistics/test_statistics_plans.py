"""How many rows statistics read of days that are not closed, and of memories."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime
from typing import Any

import asyncpg
import pytest

from app.governance.statistics.repository import SourceRepository
from app.governance.statistics.rollup import DAY, midnight
from app.platform.embedded.server import EmbeddedPostgres
from app.settings import Settings
from tests.support.large_tenant import Size, fill_tenant
from tests.support.plans import Crowd, generic_plans, new_crowd, nodes, sent_by, vacuumed

VERDICTS = 9_000
"""Over 90 days, so that each has a hundred."""

MEMORIES = 2_000
TODAY = datetime.now(UTC).date()


@pytest.fixture(scope="module")
async def crowd(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Crowd]:
    async with new_crowd(postgres, settings, "statistics_plans") as opened:
        owner = await asyncpg.connect(postgres.superuser_dsn, database="statistics_plans")
        await fill_tenant(
            owner, opened.tenant_id, Size(users=20, memories=MEMORIES, verdicts=VERDICTS)
        )
        await owner.close()
        await vacuumed(opened.dsn, "gate_decisions")
        yield opened


async def scans(crowd: Crowd, table: str, read: Any) -> list[dict[str, Any]]:
    """Where the statements of `read` read the table."""
    async with crowd.runtime.database.begin(crowd.tenant_id) as db:
        connection = (await db.connection()).sync_connection
        with sent_by(connection) as sent:
            await read(SourceRepository(db, crowd.tenant_id))
        plans = await generic_plans(db, sent)
    found = [node for plan in plans for node in nodes(plan)]
    return [node for node in found if node.get("Relation Name") == table]


@pytest.mark.parametrize("days", [1, 30])
async def test_verdicts_are_counted_from_an_index_of_the_days_alone(
    crowd: Crowd, days: int
) -> None:
    until = midnight(TODAY - DAY)

    [scan] = await scans(
        crowd,
        "gate_decisions",
        lambda rows: rows.of_days(["decisions"], until - days * DAY, until),
    )

    assert scan["Node Type"] == "Index Only Scan"
    read = scan["Actual Rows"] * scan["Actual Loops"]
    assert read == pytest.approx(days * VERDICTS / 90, abs=2 * days)


async def test_memories_are_read_once(crowd: Crowd) -> None:
    [scan] = await scans(crowd, "memories", lambda rows: rows.memories())

    assert scan["Actual Rows"] * scan["Actual Loops"] == MEMORIES
