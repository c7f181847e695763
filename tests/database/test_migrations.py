"""The schema as the migrations make it: there and back, and exactly what it has to be."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

import asyncpg
import pytest
from alembic import command
from alembic.script import ScriptDirectory
from sqlalchemy import make_url

from app.errors import ConfigurationError
from app.governance.tables import TABLES
from app.platform.database.migrate import alembic_config, check_schema, head, upgrade
from app.platform.database.roles import OWNER
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.databases import new_database, served

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
async def migrated(postgres: EmbeddedPostgres) -> str:
    """A migrated database of this file alone."""
    dsn = await new_database(postgres, "migrations")
    await upgrade(dsn)
    return dsn


@pytest.fixture
async def owner(migrated: str) -> AsyncIterator[asyncpg.Connection]:
    """Acts as migrations do; what a test changes is rolled back."""
    connection = await asyncpg.connect(migrated)
    await connection.execute(f"SET ROLE {OWNER}")
    transaction = connection.transaction()
    await transaction.start()
    yield connection
    await transaction.rollback()
    await connection.close()


async def run(action, *args: str, dsn: str) -> None:
    await asyncio.to_thread(action, alembic_config(dsn), *args)


async def tables_of(dsn: str) -> set[str]:
    connection = await asyncpg.connect(dsn)
    try:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname='public'")
        return {row[0] for row in rows}
    finally:
        await connection.close()


class TestUpAndDown:
    async def test_an_empty_database_goes_up_down_and_up_again(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "there_and_back")
        names = {table.__tablename__ for table in TABLES}

        await upgrade(dsn)
        await run(command.check, dsn=dsn)
        assert await tables_of(dsn) == names | {"alembic_version"}
        await run(command.downgrade, "base", dsn=dsn)
        assert await tables_of(dsn) == {"alembic_version"}
        await upgrade(dsn)
        await run(command.check, dsn=dsn)

        assert await tables_of(dsn) == names | {"alembic_version"}

    async def test_downgrade_leaves_no_function_and_no_policy(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "left_overs")
        await upgrade(dsn)

        await run(command.downgrade, "base", dsn=dsn)

        connection = await asyncpg.connect(dsn)
        functions = await connection.fetch("SELECT 1 FROM pg_proc WHERE proname LIKE 'kemem%'")
        policies = await connection.fetch("SELECT 1 FROM pg_policies")
        await connection.close()
        assert (functions, policies) == ([], [])

    async def test_verdicts_with_more_codes_than_an_index_holds_are_shortened(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "many_codes")
        await upgrade(dsn)
        await run(command.downgrade, "users_by_name", dsn=dsn)
        given = {
            "usual": ["sensitive", "too_short"],
            "longest": ["x" * 512, "y" * 512],
            "long": [token_hex(2000), "two", "three", "four", "five"],
            "many": [token_hex(32) for _ in range(100)],
        }
        connection = await asyncpg.connect(dsn)
        await connection.execute(f"SET ROLE {OWNER}")
        await connection.execute("INSERT INTO tenants (tenant_id, tenant_name) VALUES ('t', 'T')")
        for decision_id, codes in given.items():
            await connection.execute(
                "INSERT INTO gate_decisions (tenant_id, decision_id, verdict, codes, scope, source)"
                " VALUES ('t', $1, 'rejected', $2, 'user', 'import')",
                decision_id, codes,
            )  # fmt: skip
        await upgrade(dsn)
        rows = await connection.fetch("SELECT decision_id, codes FROM gate_decisions")
        await connection.close()

        kept = {row["decision_id"]: row["codes"] for row in rows}
        assert (kept["usual"], kept["longest"]) == (given["usual"], given["longest"])
        assert kept["long"] == [given["long"][0][:64], "two", "three", "four"]
        assert kept["many"] == given["many"][:4]
        await check_schema(dsn)

    async def test_an_upgrade_may_be_repeated(self, migrated: str) -> None:
        await upgrade(migrated)

        await check_schema(migrated)

    async def test_a_table_of_somebody_else_is_left_alone(self, postgres: EmbeddedPostgres) -> None:
        dsn = await new_database(postgres, "shared")
        name = make_url(dsn).database
        somebody = await asyncpg.connect(postgres.superuser_dsn, database=name)
        await somebody.execute("CREATE TABLE theirs (tenant_id varchar(64) PRIMARY KEY)")

        await upgrade(dsn)

        known = "SELECT tablename FROM pg_stats WHERE tablename IN ('theirs', 'messages')"
        assert {row[0] for row in await somebody.fetch(known)} <= {"messages"}
        await somebody.close()

    def test_there_is_one_head(self) -> None:
        assert ScriptDirectory.from_config(alembic_config()).get_heads() == [head()]

    async def test_two_upgrades_at_once_do_not_clash(self, postgres: EmbeddedPostgres) -> None:
        dsn = await new_database(postgres, "at_once")
        code = "import asyncio,os; from app.platform.database.migrate import upgrade; "
        code += "asyncio.run(upgrade(os.environ['DSN']))"

        # Processes, as two deploys are: Alembic keeps its context in a module.
        running = [
            await asyncio.create_subprocess_exec(
                sys.executable,
                "-c",
                code,
                cwd=ROOT,
                env=os.environ | {"DSN": dsn},
                stderr=asyncio.subprocess.PIPE,
            )
            for _ in range(4)
        ]
        ended = [await one.communicate() for one in running]

        assert [error.decode()[-2000:] for _, error in ended] == [""] * 4
        assert [one.returncode for one in running] == [0] * 4
        await check_schema(dsn)


class TestCheckAtStart:
    async def test_a_current_schema_is_accepted(self, migrated: str) -> None:
        await check_schema(migrated)

    async def test_an_empty_database_is_told_to_migrate(self, postgres_dsn: str) -> None:
        with pytest.raises(ConfigurationError, match=r"older \(empty\).*run `kemem migrate`"):
            await check_schema(postgres_dsn)

    async def test_a_newer_schema_is_told_to_start_a_newer_release(
        self, postgres: EmbeddedPostgres, settings: Settings
    ) -> None:
        dsn = await new_database(postgres, "newer")
        await upgrade(dsn)
        connection = await asyncpg.connect(dsn)
        await connection.execute(f"SET ROLE {OWNER}")
        await connection.execute("UPDATE alembic_version SET version_num = 'from_tomorrow'")
        await connection.close()

        with pytest.raises(ConfigurationError, match=r"from_tomorrow.*newer release of kemem"):
            await check_schema(dsn)
        with pytest.raises(ConfigurationError, match=r"from_tomorrow.*newer release of kemem"):
            async with open_runtime(settings, served(dsn)):
                pass


ID = 'character varying(64) COLLATE "C"'
TIME = "timestamp(6) with time zone"
REQUIRED = " NOT NULL"

# The four tables of the first product, translated to PostgreSQL; + marks what was added.
COLUMNS = {
    "agents": {
        "tenant_id": ID + REQUIRED,  # +
        "agent_id": ID + REQUIRED,
        "agent_name": "character varying(255)" + REQUIRED,
        "agent_type": "character varying(50)",
        "description": "text",
        "config": "jsonb" + REQUIRED,
        "status": "smallint" + REQUIRED,
        "memory_enabled": "boolean" + REQUIRED,  # + switches
        "injection_enabled": "boolean" + REQUIRED,  # + switches
        "window_policy": "jsonb",  # + own policy
        "creator": ID,
        "version": "bigint" + REQUIRED,  # + optimistic locking
        "create_time": TIME + REQUIRED,
        "update_time": TIME + REQUIRED,
    },
    "users": {
        "tenant_id": ID + REQUIRED,  # +
        "user_id": ID + REQUIRED,
        "agent_id": ID + REQUIRED,
        "user_name": "character varying(255)",
        "user_type": "character varying(50)",
        "external_id": "character varying(255)",  # + the client's own id
        "profile": "jsonb" + REQUIRED,
        "status": "smallint" + REQUIRED,
        "last_active_time": TIME,
        "version": "bigint" + REQUIRED,  # + optimistic locking
        "create_time": TIME + REQUIRED,
        "update_time": TIME + REQUIRED,
    },
    "sessions": {
        "tenant_id": ID + REQUIRED,  # +
        "session_id": ID + REQUIRED,
        "agent_id": ID + REQUIRED,
        "user_id": ID + REQUIRED,
        "project_id": ID,  # + its project
        "session_name": "character varying(255)",
        "session_type": "character varying(50)",
        "context": "jsonb" + REQUIRED,
        "status": "smallint" + REQUIRED,
        "end_time": TIME,
        "memory_enabled": "boolean" + REQUIRED,  # + switches
        "injection_enabled": "boolean" + REQUIRED,  # + switches
        "last_sequence_no": "bigint" + REQUIRED,  # + the order of messages
        "last_message_time": TIME,  # + the order of messages
        "last_extracted_seq": "bigint" + REQUIRED,  # + how far it was read
        "taught": "boolean",  # + whether that taught anything
        "in_context_from": "bigint" + REQUIRED,  # + where the window begins
        "set_aside": "int8multirange" + REQUIRED,  # + messages of other branches
        "window_tokens": "bigint" + REQUIRED,  # + from here on, what stands in the window
        "window_messages": "bigint" + REQUIRED,
        "window_seq": "bigint" + REQUIRED,
        "last_user_seq": "bigint" + REQUIRED,  # + the current request
        "opening_seq": "bigint" + REQUIRED,  # + the request of the turn that it begins in
        "token_scale": "double precision" + REQUIRED,  # + measured tokens over estimated
        "summary_ids": 'character varying(64)[] COLLATE "C"'
        + REQUIRED,  # + summaries in the window
        "summary_tokens": "bigint" + REQUIRED,
        "beside_tokens": "bigint",  # + what the last context had besides
        "memory_tokens": "bigint",
        "window_policy": "jsonb",  # + own policy
        "forked_from": "jsonb",  # + where a fork began
        "version": "bigint" + REQUIRED,  # + optimistic locking
        "create_time": TIME + REQUIRED,
        "update_time": TIME + REQUIRED,
    },
    "messages": {
        "tenant_id": ID + REQUIRED,  # +
        "message_id": ID + REQUIRED,
        "agent_id": ID + REQUIRED,
        "user_id": ID + REQUIRED,
        "session_id": ID + REQUIRED,
        "role": "character varying(20)" + REQUIRED,
        "content": "text" + REQUIRED,
        "content_type": "character varying(50)" + REQUIRED,
        "content_parts": "jsonb",  # + parts of the content
        "tool_calls": "jsonb",  # + calls of tools
        "tool_call_id": "character varying(255)",  # + calls of tools
        "name": "character varying(255)",  # + calls of tools
        "metadata": "jsonb" + REQUIRED,
        "parent_message_id": ID,
        "copied_from": ID,  # + what a fork has from elsewhere
        "input_hash": "bytea",  # + what a processor changed can be sent again
        "captured": "boolean" + REQUIRED,  # + what extraction leaves out
        "create_time": TIME + REQUIRED,
        "sequence_no": "bigint" + REQUIRED,
        "token_count": "bigint",  # + estimated tokens
        "said_at": TIME,  # + the client's own time
        "terms": "sparsevec",  # + from here on what searches read (decision 0010)
        "term_count": "smallint",
        "word_count": "smallint",
        "is_question": "boolean",
        "has_time": "boolean",
        "analyser": "smallint",
        "embedding": "vector",
        "embedding_model": "character varying(255)",
        "states_wish": "boolean",
        "piece_ends": "integer[]",
        "piece_terms": "sparsevec[]",
        "piece_term_counts": "smallint[]",
        "piece_embeddings": "vector[]",
        "searched_text": "text",
    },
}

# Every index starts with the tenant; the columns it serves follow.
INDEXES = {
    "agents": {
        "agents_pkey": "tenant_id agent_id",
        "agents_idx_status": "tenant_id status",
        "agents_idx_create_time": "tenant_id create_time agent_id",
    },
    "users": {
        "users_pkey": "tenant_id user_id",
        "users_idx_agent_id": "tenant_id agent_id create_time user_id",
        "users_idx_agent_status": "tenant_id agent_id status",
        "users_idx_last_active_time": "tenant_id last_active_time",
        "users_idx_create_time": "tenant_id create_time user_id",
        "users_uk_external_id": "tenant_id agent_id external_id",
        "users_idx_user_name": "tenant_id user_name",
    },
    "sessions": {
        "sessions_pkey": "tenant_id session_id",
        "sessions_idx_agent_user": "tenant_id agent_id user_id",
        "sessions_idx_user_id": "tenant_id user_id create_time session_id",
        "sessions_idx_status_create_time": "tenant_id status create_time",
        "sessions_idx_create_time": "tenant_id create_time session_id",
        "sessions_idx_project_id": "tenant_id project_id",
    },
    "messages": {
        "messages_pkey": "tenant_id message_id",
        "messages_uk_agent_user_session_time": "tenant_id agent_id user_id session_id create_time",
        "messages_idx_session_create_time": "tenant_id session_id create_time",
        "messages_idx_session_sequence": "tenant_id session_id sequence_no",
        "messages_idx_user_create_time": "tenant_id user_id create_time",
        "messages_idx_create_time": "tenant_id create_time",
        "messages_idx_agent_create_time": "tenant_id agent_id create_time",
        "messages_idx_parent": "tenant_id parent_message_id",
        "messages_idx_copied_from": "tenant_id copied_from message_id",
        "messages_idx_analyser": "tenant_id analyser",
        "messages_idx_waiting": "tenant_id session_id sequence_no",
        "messages_idx_without_pieces": "tenant_id",
        "messages_idx_instructions": "tenant_id session_id sequence_no",
        "messages_idx_calls": "tenant_id session_id sequence_no",
        "messages_idx_results": "tenant_id session_id tool_call_id sequence_no",
    },
}
UNIQUE = {
    "agents_pkey", "users_pkey", "users_uk_external_id", "sessions_pkey", "messages_pkey",
    "messages_uk_agent_user_session_time", "messages_idx_session_sequence",
}  # fmt: skip


class TestTables:
    @pytest.mark.parametrize("table", COLUMNS)
    async def test_columns_are_as_listed(self, owner: asyncpg.Connection, table: str) -> None:
        rows = await owner.fetch(
            "SELECT attname, format_type(atttypid, atttypmod) AS type, attnotnull, "
            "collname FROM pg_attribute "
            "LEFT JOIN pg_collation ON pg_collation.oid = attcollation AND collname = 'C' "
            "WHERE attrelid = $1::regclass AND attnum > 0 AND NOT attisdropped",
            table,
        )
        found = {
            row["attname"]: row["type"]
            + (' COLLATE "C"' if row["collname"] else "")
            + (REQUIRED if row["attnotnull"] else "")
            for row in rows
        }

        assert found == COLUMNS[table]

    @pytest.mark.parametrize("table", INDEXES)
    async def test_indexes_are_as_listed(self, owner: asyncpg.Connection, table: str) -> None:
        rows = await owner.fetch(
            "SELECT c.relname, i.indisunique, array_agg(a.attname ORDER BY a.attnum) AS columns "
            "FROM pg_index i JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_attribute a ON a.attrelid = c.oid "
            "WHERE i.indrelid = $1::regclass GROUP BY 1, 2",
            table,
        )

        assert {row["relname"]: " ".join(row["columns"]) for row in rows} == INDEXES[table]
        assert {row["relname"] for row in rows if row["indisunique"]} == UNIQUE & {*INDEXES[table]}

    async def test_every_index_that_serves_a_query_starts_with_the_tenant(
        self, owner: asyncpg.Connection
    ) -> None:
        rows = await owner.fetch(
            "SELECT c.relname, a.attname FROM pg_index i "
            "JOIN pg_class c ON c.oid = i.indexrelid "
            "JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum = 1 "
            "WHERE c.relnamespace = 'public'::regnamespace"
        )
        others = {row["relname"] for row in rows if row["attname"] != "tenant_id"}

        assert len(rows) > 30
        # A key is looked up before its tenant is known.
        assert others == {"api_keys_uk_key_prefix", "alembic_version_pkc"}


ROWS = """
INSERT INTO tenants (tenant_id, tenant_name) VALUES ('t', 'T');
INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ('t', 'a', 'A');
INSERT INTO users (tenant_id, user_id, agent_id) VALUES ('t', 'u', 'a');
INSERT INTO projects (tenant_id, project_id, project_name) VALUES ('t', 'p', 'P');
INSERT INTO project_members (tenant_id, project_id, user_id, role) VALUES ('t', 'p', 'u', 'owner');
INSERT INTO sessions (tenant_id, session_id, agent_id, user_id) VALUES ('t', 's', 'a', 'u');
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding_model)
VALUES ('t', 'm', 'u', 'user', 'u', 'tea', 'x', 'fact', 'long', 'user', 1, 'members', 'none');
"""

WORK = """
INSERT INTO jobs (tenant_id, job_id, kind, key) VALUES ('t', 'j', 'extract', 's');
INSERT INTO webhooks (tenant_id, webhook_id, url, secret, events)
VALUES ('t', 'w', 'https://kemem.invalid', 'secret', '{*}');
INSERT INTO webhook_deliveries (tenant_id, delivery_id, webhook_id, event_id, event_type, payload)
VALUES ('t', 'd', 'w', 'e', 'memory.added', '{}');
"""


class TestTerms:
    """What the previous release edits loses its terms; who writes new ones keeps them."""

    @pytest.fixture
    async def rows(self, owner: asyncpg.Connection) -> asyncpg.Connection:
        await owner.execute(ROWS + WORK)
        await owner.execute("UPDATE memories SET terms = '{1:1}/10', term_count = 1, analyser = 1")
        return owner

    @pytest.mark.parametrize(
        ("change", "analyser"),
        [
            ("content = 'coffee'", None),
            ('metadata = \'{"speaker": "Ana"}\'', None),
            ("valid_from = now()", None),
            ("content = content", 1),
            ("confidence = 0.5", 1),
            ("use_count = use_count + 1", 1),
            ("terms = '{2:1}/10', analyser = 1, content = 'coffee'", 1),
            ("terms = terms, analyser = 1, content = 'coffee'", 1),
            ("terms = '{2:1}/10', analyser = 2", 2),
            ("terms = NULL, analyser = NULL, content = 'coffee'", None),
        ],
    )
    async def test_only_who_has_read_the_words_leaves_terms(
        self, rows: asyncpg.Connection, change: str, analyser: int | None
    ) -> None:
        await rows.execute(f"UPDATE memories SET {change} WHERE tenant_id = 't'")

        [row] = await rows.fetch(
            "SELECT analyser, terms IS NULL AS gone FROM memories WHERE tenant_id = 't'"
        )
        assert (row["analyser"], row["gone"]) == (analyser, analyser is None)


class TestUpdateTime:
    @pytest.fixture
    async def rows(self, owner: asyncpg.Connection) -> asyncpg.Connection:
        await owner.execute(ROWS + WORK)
        return owner

    async def touched(self, rows: asyncpg.Connection, table: str, change: str) -> bool:
        before = await rows.fetchval(f"SELECT update_time FROM {table} WHERE tenant_id = 't'")
        assert await rows.execute(f"UPDATE {table} SET {change} WHERE tenant_id = 't'")
        return (
            await rows.fetchval(f"SELECT update_time FROM {table} WHERE tenant_id = 't'") > before
        )

    @pytest.mark.parametrize(
        ("table", "change"),
        [
            ("tenants", "tenant_name = 'New'"),
            ("agents", "description = 'New'"),
            ("users", "user_name = 'New'"),
            ("projects", "description = 'New'"),
            ("project_members", "role = 'viewer'"),
            ("sessions", "session_name = 'New'"),
            ("memories", "content = 'coffee'"),
            ("jobs", "status = 'cancelled'"),
            ("webhooks", "enabled = false"),
            ("webhook_deliveries", "status = 'dead'"),
        ],
    )
    async def test_plain_sql_moves_it(
        self, rows: asyncpg.Connection, table: str, change: str
    ) -> None:
        assert await self.touched(rows, table, change)

    async def test_nobody_can_set_it_back(self, rows: asyncpg.Connection) -> None:
        assert await self.touched(rows, "agents", "update_time = '2000-01-01'")

    @pytest.mark.parametrize(
        "change",
        [
            "use_count = use_count + 1", "use_count = 5, last_used_at = now()",
            "analyser = 7, term_count = 3", "code = B'101'",
        ],
    )  # fmt: skip
    async def test_what_finds_a_memory_is_no_change_of_it(
        self, rows: asyncpg.Connection, change: str
    ) -> None:
        assert not await self.touched(rows, "memories", change)
