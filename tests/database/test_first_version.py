"""A database of version 0.1 becomes one of this release, or is refused in a sentence."""

import asyncpg
import pytest

from app.errors import ConfigurationError
from app.platform.database.migrate import check_schema, head, refuse_unknown, upgrade
from app.platform.database.roles import OWNER
from app.platform.embedded.server import EmbeddedPostgres
from tests.support.catalog import catalog
from tests.support.databases import new_database
from tests.support.first_version import AS_IN_FIRST_VERSION, as_in_first_version

ROWS = """
INSERT INTO tenants (tenant_id, tenant_name) VALUES ('t', 'T');
INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ('t', 'a', 'A');
INSERT INTO users (tenant_id, user_id, agent_id) VALUES ('t', 'u', 'a');
INSERT INTO projects (tenant_id, project_id, project_name) VALUES ('t', 'p', 'P');
INSERT INTO sessions (tenant_id, session_id, agent_id, user_id, project_id)
VALUES ('t', 's', 'a', 'u', 'p');
INSERT INTO memories (tenant_id, memory_id, user_id, session_id, scope, scope_id, content,
    content_hash, memory_type, tier, source, confidence, visibility, embedding_model)
VALUES ('t', 'm', 'u', 's', 'user', 'u', 'tea', 'x', 'fact', 'long', 'user', 1, 'members', 'none');
"""

# A column that came later is null, or counts from 0.
READ = """SELECT jsonb_strip_nulls(to_jsonb(s) - 'opening_seq' || to_jsonb(m))
    FROM sessions s, memories m"""


async def schema_and_rows(dsn: str) -> tuple[dict[str, set[str]], str]:
    connection = await asyncpg.connect(dsn)
    await connection.execute(f"SET ROLE {OWNER}")
    found = await catalog(connection), await connection.fetchval(READ)
    await connection.close()
    return found


@pytest.fixture(scope="module")
async def first_version(postgres: EmbeddedPostgres) -> str:
    dsn = await new_database(postgres, "first_version")
    await upgrade(dsn)
    await as_in_first_version(dsn, "0007", ROWS + AS_IN_FIRST_VERSION)
    return dsn


@pytest.fixture(scope="module")
async def unfinished(postgres: EmbeddedPostgres) -> str:
    dsn = await new_database(postgres, "unfinished")
    await upgrade(dsn)
    await as_in_first_version(dsn, "0004")
    return dsn


class TestFirstVersion:
    async def test_service_asks_for_a_migration(self, first_version: str) -> None:
        with pytest.raises(ConfigurationError, match=r"is older \(0007\).*run `kemem migrate`"):
            await check_schema(first_version)

    async def test_upgrade_gives_the_schema_of_a_new_database_and_keeps_rows(
        self, postgres: EmbeddedPostgres, first_version: str
    ) -> None:
        fresh = await new_database(postgres, "fresh")
        await upgrade(fresh)
        await as_in_first_version(fresh, head(), ROWS)
        before, rows = await schema_and_rows(first_version)
        expected, _ = await schema_and_rows(fresh)
        assert before != expected

        await upgrade(first_version)

        assert await schema_and_rows(first_version) == (expected, rows)
        await check_schema(first_version)


class TestUnfinished:
    """A revision before the last one of version 0.1."""

    SENTENCE = r"\(0004\).*`kemem migrate`.*`kemem export`.*`kemem import`"

    @pytest.mark.parametrize("act", [check_schema, upgrade])
    async def test_is_refused_and_told_how_to_move(self, unfinished: str, act) -> None:
        with pytest.raises(ConfigurationError, match=self.SENTENCE):
            await act(unfinished)

    def test_every_earlier_revision_is_refused(self) -> None:
        for number in range(1, 7):
            with pytest.raises(ConfigurationError, match="kemem export"):
                refuse_unknown(f"000{number}")
        refuse_unknown("0007")
