"""The second wall: what PostgreSQL itself refuses, whatever the code above it forgets."""

import json
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError

from app.errors import ConfigurationError
from app.governance.tables import TABLES
from app.platform.database.engine import Database, open_database
from app.platform.database.roles import APP, DISPATCH, OWNER, ROLES, TENANT_SETTING
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from tests.support.databases import make_logins, served
from tests.support.patience import PATIENCE
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.world import World, build_world, rows_of

NAMES = [table.__tablename__ for table in TABLES]

FOREIGN_KEYS = [
    (table.__tablename__, key.columns.keys()[-1], str(key.name))
    for table in TABLES
    for key in sorted(table.__table__.foreign_key_constraints, key=lambda one: str(one.name))
]


@asynccontextmanager
async def acting_as(
    dsn: str, role: str, tenant_id: str | None = None
) -> AsyncIterator[asyncpg.Connection]:
    """A transaction as `role`, in which `tenant_id` is named; nothing of it stays."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(f"SET ROLE {role}")
        transaction = connection.transaction()
        await transaction.start()
        if tenant_id is not None:
            await connection.execute(f"SELECT set_config('{TENANT_SETTING}', $1, true)", tenant_id)
        yield connection
        await transaction.rollback()
    finally:
        await connection.close()


@pytest.fixture(scope="module")
async def ours(app: FastAPI, runtime: Runtime) -> World:
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner, mark="our-")


@pytest.fixture(scope="module")
async def theirs(app: FastAPI, runtime: Runtime) -> World:
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner, mark="their-")


async def one_row(dsn: str, table: str, tenant_id: str) -> str:
    """A row of the tenant as JSON, as the owner of the tables sees it."""
    async with acting_as(dsn, OWNER) as connection:
        row = await connection.fetchval(
            f"SELECT to_jsonb(t) FROM {table} t WHERE tenant_id = $1 LIMIT 1", tenant_id
        )
    assert row is not None, f"the world has no row in {table}"
    return row


async def insert_copy(connection: asyncpg.Connection, table: str, row: str) -> None:
    await connection.execute(
        f"INSERT INTO {table} SELECT (jsonb_populate_record(NULL::{table}, $1::jsonb)).*", row
    )


def with_new_ids(table: str, row: str) -> str:
    """The same row under another primary key."""
    [model] = [one for one in TABLES if one.__tablename__ == table]
    values = json.loads(row)
    for column in model.__table__.primary_key.columns:
        if column.name != "tenant_id" and not column.foreign_keys and column.name != "day":
            values[column.name] = 999 if isinstance(values[column.name], int) else "copied"
    taken = "key_prefix content_hash external_id key name_key relation file_name"
    for column in taken.split():
        if column in values:
            values[column] = "\\xffff" if column == "content_hash" else "copied"
    if "sequence_no" in values:
        values |= {"sequence_no": 999, "create_time": "2030-01-01T00:00:00Z"}
    return json.dumps(values)


def only_refers(table: str) -> bool:
    """Whether the primary key is made of other tables', so that no copy has a new one."""
    [model] = [one for one in TABLES if one.__tablename__ == table]
    return all(column.foreign_keys for column in model.__table__.primary_key.columns)


class TestWithoutTenant:
    @for_each("table", NAMES)
    async def test_a_table_reads_as_empty(
        self, dsn: str, ours: World, theirs: World, table: str
    ) -> None:
        await one_row(dsn, table, ours.owner.tenant_id)

        async with acting_as(dsn, APP) as connection:
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0

    @for_each("table", NAMES)
    async def test_a_table_takes_no_row(self, dsn: str, ours: World, table: str) -> None:
        row = with_new_ids(table, await one_row(dsn, table, ours.owner.tenant_id))

        async with acting_as(dsn, APP) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level security"):
                await insert_copy(connection, table, row)

    @for_each("table", NAMES)
    async def test_nothing_in_a_table_changes(self, dsn: str, ours: World, table: str) -> None:
        async with acting_as(dsn, APP) as connection:
            updated = await connection.execute(f"UPDATE {table} SET tenant_id = tenant_id")
            deleted = await connection.execute(f"DELETE FROM {table}")

        assert (updated, deleted) == ("UPDATE 0", "DELETE 0")

    async def test_an_empty_tenant_is_no_tenant(self, dsn: str, ours: World) -> None:
        async with acting_as(dsn, APP, "") as connection:
            for table in NAMES:
                assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0


class TestWithTenant:
    @for_each("table", NAMES)
    async def test_only_its_own_rows_are_there(
        self, dsn: str, ours: World, theirs: World, table: str
    ) -> None:
        await one_row(dsn, table, theirs.owner.tenant_id)

        async with acting_as(dsn, APP, ours.owner.tenant_id) as connection:
            rows = await connection.fetch(f"SELECT DISTINCT tenant_id FROM {table}")

        assert [row["tenant_id"] for row in rows] == [ours.owner.tenant_id]

    @for_each("table", NAMES)
    async def test_rows_of_another_cannot_be_made_moved_changed_or_removed(
        self, dsn: str, ours: World, theirs: World, table: str
    ) -> None:
        foreign = with_new_ids(table, await one_row(dsn, table, theirs.owner.tenant_id))
        before = await rows_of(dsn, theirs.owner.tenant_id)

        async with acting_as(dsn, APP, ours.owner.tenant_id) as connection:
            where = f"WHERE tenant_id = '{theirs.owner.tenant_id}'"
            for statement in (
                f"UPDATE {table} SET tenant_id = tenant_id {where}",
                f"DELETE FROM {table} {where}",
            ):
                assert (await connection.execute(statement)).endswith(" 0")
        for tried in (
            lambda connection: insert_copy(connection, table, foreign),
            lambda connection: connection.execute(
                f"UPDATE {table} SET tenant_id = '{theirs.owner.tenant_id}'"
            ),
        ):
            async with acting_as(dsn, APP, ours.owner.tenant_id) as connection:
                with pytest.raises(asyncpg.InsufficientPrivilegeError, match="row-level"):
                    await tried(connection)

        assert await rows_of(dsn, theirs.owner.tenant_id) == before

    @for_each("table", sorted(set(NAMES) - {"tenants"}))
    async def test_its_own_rows_can_be_made(self, dsn: str, ours: World, table: str) -> None:
        """Or the refusals above would prove nothing."""
        row = with_new_ids(table, await one_row(dsn, table, ours.owner.tenant_id))

        async with acting_as(dsn, APP, ours.owner.tenant_id) as connection:
            # One owner has one profile.
            if only_refers(table) or table == "profiles":
                await connection.execute(f"DELETE FROM {table}")
            await insert_copy(connection, table, row)


class TestForeignKeys:
    def test_all_but_those_to_the_tenant_carry_it(self) -> None:
        assert len(FOREIGN_KEYS) > 20
        for table in TABLES:
            for key in table.__table__.foreign_key_constraints:
                assert key.columns.keys()[0] == "tenant_id"

    @for_each(
        ("table", "column", "name"),
        [one for one in FOREIGN_KEYS if one[1] != "tenant_id"],
    )
    async def test_a_row_cannot_point_at_another_tenants(
        self, dsn: str, ours: World, theirs: World, table: str, column: str, name: str
    ) -> None:
        ids = theirs.ids | {
            "parent_message_id": theirs.ids["message_id"],
            "superseded_by": theirs.ids["memory_id"],
            "template_id": theirs.ids["block_id"],
            "merged_into": theirs.ids["entity_id"],
            "source_id": theirs.ids["entity_id"],
            "destination_id": theirs.ids["entity_id"],
        }
        # Rows of which nothing but this one foreign key can object: a scope that says nothing
        # about the other ids, a step to which nothing was written.
        where = {
            "memories": "AND scope = 'session'",
            "saver_checkpoints": "AND namespace = 'child'",
            "profiles": f"AND {column} IS NOT NULL",
            # One row, or two would be made the same.
            "graph_mentions": "AND entity_id = (SELECT max(g.entity_id) FROM graph_mentions g "
            "WHERE g.tenant_id = graph_mentions.tenant_id)",
            "folders": f"AND scope <> '{column.removesuffix('_id')}'",
        }.get(table, "")

        # As the owner, whom no policy stops.
        async with acting_as(dsn, OWNER) as connection:
            with pytest.raises(asyncpg.ForeignKeyViolationError) as raised:
                await connection.execute(
                    f"UPDATE {table} SET {column} = $1 WHERE tenant_id = $2 {where}",
                    ids[column],
                    ours.owner.tenant_id,
                )

        assert raised.value.constraint_name == name


class TestRoles:
    async def test_every_table_is_behind_forced_row_level_security(self, dsn: str) -> None:
        async with acting_as(dsn, OWNER) as connection:
            rows = await connection.fetch(
                "SELECT relname, relrowsecurity AND relforcerowsecurity AS forced, "
                "pg_get_userbyid(relowner) AS owner FROM pg_class "
                "WHERE relnamespace = 'public'::regnamespace AND relkind IN ('r', 'p', 'm', 'v') "
                "AND relname <> 'alembic_version'"
            )

        assert {row["relname"] for row in rows} == set(NAMES)
        assert {row["relname"] for row in rows if not row["forced"]} == set()
        assert {row["owner"] for row in rows} == {OWNER}

    async def test_no_role_may_bypass_it(self, dsn: str) -> None:
        async with acting_as(dsn, APP) as connection:
            rows = await connection.fetch(
                "SELECT rolname FROM pg_roles WHERE rolname = ANY($1) "
                "AND NOT (rolsuper OR rolbypassrls OR rolcanlogin)",
                list(ROLES),
            )

        assert {row["rolname"] for row in rows} == set(ROLES)

    @for_each("table", NAMES)
    async def test_the_owner_sees_all_by_its_policy_alone(
        self, dsn: str, ours: World, theirs: World, table: str
    ) -> None:
        both = {ours.owner.tenant_id, theirs.owner.tenant_id}
        async with acting_as(dsn, OWNER) as connection:
            rows = await connection.fetch(f"SELECT DISTINCT tenant_id FROM {table}")
            assert both <= {row["tenant_id"] for row in rows}

            await connection.execute(f"DROP POLICY {table}_owner ON {table}")
            assert await connection.fetchval(f"SELECT count(*) FROM {table}") == 0

    async def test_a_data_migration_reaches_every_tenant(
        self, dsn: str, ours: World, theirs: World
    ) -> None:
        async with acting_as(dsn, OWNER) as connection:
            rows = await connection.fetch("UPDATE users SET user_type = 'x' RETURNING tenant_id")

        assert {ours.owner.tenant_id, theirs.owner.tenant_id} <= {row[0] for row in rows}

    async def test_the_service_owns_nothing_and_makes_no_tables(self, dsn: str) -> None:
        for role in (APP, DISPATCH):
            async with acting_as(dsn, role) as connection:
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.execute("CREATE TABLE public.mine (a int)")
        async with acting_as(dsn, APP) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("ALTER TABLE users DISABLE ROW LEVEL SECURITY")
        async with acting_as(dsn, APP) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError):
                await connection.execute("TRUNCATE users CASCADE")


# What claiming work needs: neither what a job is about and for whom, nor what came of it.
PROGRESS = {
    "status", "priority", "due_at", "waiting_since", "deferred_reason", "run_again",
    "again_due_at", "again_since", "generation", "attempts", "max_attempts", "lease_token",
    "lease_expires_at", "worker", "error_code", "error_detail", "started_at", "finished_at",
    "update_time",
}  # fmt: skip
SCHEDULING = {"tenant_id", "job_id", "kind", "key"} | PROGRESS

# What a key look-up and the queue need, and nothing that was ever said.
DISPATCH_READS = {
    "api_keys": {
        "tenant_id", "key_id", "key_prefix", "key_hash", "scopes", "agent_id", "user_id",
        "expires_at", "revoked_at",
    },
    "tenants": {
        "tenant_id", "tenant_name", "status", "config", "embedding_models", "version",
        "create_time", "update_time",
    },
    "jobs": SCHEDULING | {"lane", "lane_order"},
    "webhooks": {"tenant_id", "webhook_id", "enabled", "paused_until"},
    "webhook_deliveries": {"tenant_id", "webhook_id", "status", "next_attempt_at"},
}  # fmt: skip
# A job that is over is emptied, and told what came of it, unread.
DISPATCH_UPDATES = {"api_keys": {"last_used_at"}, "jobs": PROGRESS | {"payload", "result"}}
DISPATCH_INSERTS = {"jobs": SCHEDULING}


class TestDispatch:
    @for_each("table", NAMES)
    async def test_dispatch_role_may_read_and_write_the_listed_columns_alone(
        self, dsn: str, table: str
    ) -> None:
        async with acting_as(dsn, DISPATCH) as connection:
            rows = await connection.fetch(
                "SELECT attname, has_column_privilege(attrelid, attnum, 'SELECT') AS reads, "
                "has_column_privilege(attrelid, attnum, 'UPDATE') AS updates, "
                "has_column_privilege(attrelid, attnum, 'INSERT') AS inserts "
                "FROM pg_attribute WHERE attrelid = $1::regclass AND attnum > 0 "
                "AND NOT attisdropped",
                table,
            )
            deletes = await connection.fetchval(
                "SELECT has_table_privilege($1, 'DELETE, TRUNCATE')", table
            )

        for right, allowed in (
            ("reads", DISPATCH_READS),
            ("updates", DISPATCH_UPDATES),
            ("inserts", DISPATCH_INSERTS),
        ):
            found = {row["attname"] for row in rows if row[right]}
            assert found == allowed.get(table, set()), right
        assert not deletes

    @for_each(
        "statement",
        [
            "SELECT * FROM api_keys",
            "SELECT key_name FROM api_keys",
            "SELECT content FROM memories",
            "SELECT content FROM messages",
            "UPDATE api_keys SET revoked_at = NULL",
            "UPDATE tenants SET status = 1",
            "DELETE FROM api_keys",
            "SELECT * FROM jobs",
            "SELECT payload FROM jobs",
            "SELECT again_payload FROM jobs",
            "SELECT signals FROM jobs",
            "SELECT user_id FROM jobs",
            "SELECT result FROM jobs",
            "UPDATE jobs SET payload = '{}' RETURNING payload",
            "UPDATE jobs SET result = payload",
            "UPDATE jobs SET user_id = 'ana'",
            "UPDATE jobs SET tenant_id = 'theirs'",
            "UPDATE jobs SET kind = 'extract'",
            "DELETE FROM jobs",
            "SELECT url FROM webhooks",
            "SELECT secret FROM webhooks",
            "UPDATE webhooks SET enabled = true",
            "SELECT payload FROM webhook_deliveries",
            "SELECT user_id FROM webhook_deliveries",
            "UPDATE webhook_deliveries SET status = 'dead'",
            "SELECT model FROM usage",
            "SELECT comment FROM memory_feedback",
            "SELECT user_id FROM extraction_runs",
        ],
    )
    async def test_everything_else_is_refused(self, dsn: str, statement: str) -> None:
        async with acting_as(dsn, DISPATCH) as connection:
            with pytest.raises(asyncpg.InsufficientPrivilegeError, match="permission denied"):
                await connection.execute(statement)


@pytest.fixture
async def single(dsn: str) -> AsyncIterator[Database]:
    """A database with one connection of each kind, so that the next user gets the same."""
    async with open_database(
        served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE
    ) as database:
        yield database


@pytest.fixture(params=[False, True], ids=["one_statement", "transaction"])
async def reads(dsn: str, request: pytest.FixtureRequest) -> AsyncIterator[Database]:
    """The same, for each way of a hot read."""
    async with open_database(
        served(dsn),
        pool_size=1,
        statement_timeout_seconds=PATIENCE,
        read_in_transactions=request.param,
    ) as database:
        yield database


COUNT = "SELECT count(*) AS count FROM memories"


class TestPool:
    async def seen_without_tenant(self, database: Database) -> tuple[int, str]:
        taken = await database._units.take("SELECT 1")
        row = await taken.driver.fetchrow(
            f"SELECT ({COUNT}), current_setting('{TENANT_SETTING}', true)"
        )
        await database._units.give_back(taken, taken.session())
        return row[0], row[1]

    async def test_a_connection_forgets_its_tenant_after_a_commit(
        self, single: Database, ours: World
    ) -> None:
        async with single.begin(ours.owner.tenant_id) as db:
            assert (await db.execute(text(COUNT))).scalar_one() > 0

        assert await self.seen_without_tenant(single) == (0, "")

    async def test_a_connection_forgets_its_tenant_after_a_failure(
        self, single: Database, ours: World
    ) -> None:
        async def read_and_fail() -> None:
            async with single.begin(ours.owner.tenant_id) as db:
                assert (await db.execute(text(COUNT))).scalar_one() > 0
                raise LookupError

        with pytest.raises(LookupError):
            await read_and_fail()

        assert await self.seen_without_tenant(single) == (0, "")

    async def test_a_connection_forgets_its_tenant_after_a_hot_read(
        self, reads: Database, ours: World
    ) -> None:
        rows = await reads.fetch(
            ours.owner.tenant_id, f"{COUNT} WHERE memories.tenant_id = tenant.id"
        )
        assert rows[0]["count"] > 0

        assert await reads._reads.use(lambda connection: connection.fetchval(COUNT)) == 0

    async def test_a_connection_forgets_its_tenant_after_a_failed_hot_read(
        self, reads: Database, ours: World
    ) -> None:
        with pytest.raises(asyncpg.DivisionByZeroError):
            await reads.fetch(
                ours.owner.tenant_id,
                "SELECT 1 / (status - status) FROM agents WHERE agents.tenant_id = tenant.id",
            )

        async def left_behind(connection: asyncpg.Connection) -> tuple[bool, int]:
            return connection.is_in_transaction(), await connection.fetchval(COUNT)

        assert await reads._reads.use(left_behind) == (False, 0)

    async def test_a_failed_statement_cannot_be_committed(
        self, single: Database, ours: World
    ) -> None:
        async def swallow_a_failure() -> None:
            async with single.begin(ours.owner.tenant_id) as db:
                with suppress(DBAPIError):
                    await db.execute(text("SELECT 1 / 0"))

        with pytest.raises(RuntimeError, match="failed transaction"):
            await swallow_a_failure()

    @for_each("table", ["memories", "users", "messages", "projects"])
    async def test_a_hot_read_sees_what_a_transaction_sees(
        self, reads: Database, ours: World, theirs: World, table: str
    ) -> None:
        tenant_id = ours.owner.tenant_id
        read = await reads.fetch(
            tenant_id,
            f"SELECT to_jsonb({table})::text AS row FROM {table} "
            f"WHERE {table}.tenant_id = tenant.id ORDER BY 1",
        )
        async with reads.begin(tenant_id) as db:
            rows = await db.execute(text(f"SELECT to_jsonb({table})::text FROM {table} ORDER BY 1"))

        assert [row["row"] for row in read] == [row[0] for row in rows]
        assert len(read) > 0

    async def test_a_hot_read_that_names_another_tenant_finds_nothing(
        self, reads: Database, ours: World, theirs: World
    ) -> None:
        statement = (
            "SELECT memory_id FROM memories "
            "WHERE memories.tenant_id = CAST($2 AS text) AND tenant.id <> ''"
        )

        rows = await reads.fetch(ours.owner.tenant_id, statement, theirs.owner.tenant_id)

        assert rows == []

    @for_each(
        "tenant_id",
        ["", " ", "a'b", "a b", 'a"', "a\\b", "a;b", "a\nb", "a\n", "名", "a\x00", "-a", "a" * 65],
    )
    async def test_an_odd_tenant_id_is_refused(self, single: Database, tenant_id: str) -> None:
        with pytest.raises(ValueError, match="malformed tenant id"):
            async with single.begin(tenant_id):
                pass

    @for_each("tenant_id", ["a", "A.b_c:d-e@f|g+h=i~j", "0" * 64])
    async def test_every_id_that_a_request_may_carry_is_taken(
        self, single: Database, tenant_id: str
    ) -> None:
        async with single.begin(tenant_id) as db:
            rows = await db.execute(text(f"SELECT current_setting('{TENANT_SETTING}')"))
            assert rows.scalar_one() == tenant_id


@pytest.fixture
def another_folder() -> Iterator[Path]:
    path = Path(tempfile.mkdtemp(prefix="kemem-tests-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


@pytest.fixture
async def spoiled(another_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A server of its own: roles are shared by all databases of one."""
    async with EmbeddedPostgres(another_folder / "data") as server:
        await make_logins(server)
        yield server


async def open_and_close(dsn: str) -> Any:
    async with open_database(
        served(dsn), pool_size=1, statement_timeout_seconds=PATIENCE
    ) as database:
        return await database.look_up("SELECT 1 AS one")


async def test_the_service_refuses_a_role_that_could_bypass_the_policies(
    spoiled: EmbeddedPostgres,
) -> None:
    assert (await open_and_close(spoiled.dsn))[0]["one"] == 1
    admin = await asyncpg.connect(spoiled.superuser_dsn)
    try:
        for role in (APP, DISPATCH):
            for power in ("SUPERUSER", "BYPASSRLS"):
                await admin.execute(f"ALTER ROLE {role} {power}")
                with pytest.raises(ConfigurationError, match=f"must act as {role}.*NOBYPASSRLS"):
                    await open_and_close(spoiled.dsn)
                await admin.execute(f"ALTER ROLE {role} NO{power}")
    finally:
        await admin.close()
