"""The login that serves: what `kemem migrate` makes of it, and that nothing more can be made."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote, urlsplit, urlunsplit

import asyncpg
import pytest
from fastapi import FastAPI

from app.errors import ConfigurationError
from app.governance.tables import TABLES
from app.platform.database.engine import Database, open_database
from app.platform.database.logins import (
    DatabaseUrls,
    ensure_serving_login,
    refuse_owner_login,
    serving_faults,
)
from app.platform.database.migrate import check_schema
from app.platform.database.roles import APP, DISPATCH, OWNER
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from tests.support.databases import migrated_database, served
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.world import World, build_world

NAMES = [table.__tablename__ for table in TABLES]


def as_login(dsn: str, name: str, password: str = "p4ss word/+%") -> str:
    """The URL of the same database for another login."""
    netloc = f"{quote(name, safe='')}:{quote(password, safe='')}@"
    return urlunsplit(urlsplit(dsn)._replace(netloc=netloc))


@asynccontextmanager
async def connected(dsn: str) -> AsyncIterator[asyncpg.Connection]:
    connection = await asyncpg.connect(dsn)
    try:
        yield connection
    finally:
        await connection.close()


@pytest.fixture(scope="module")
async def own_dsn(postgres: EmbeddedPostgres) -> str:
    return await migrated_database(postgres, "logins")


@pytest.fixture
async def admin(postgres: EmbeddedPostgres) -> AsyncIterator[asyncpg.Connection]:
    """A superuser, on the database of this file after `own_dsn` has made it."""
    async with connected(postgres.superuser_dsn) as connection:
        yield connection


@pytest.fixture
async def login(admin: asyncpg.Connection, own_dsn: str) -> AsyncIterator[str]:
    """A name for a login that is gone after the test."""
    name = 'Serves "all" ö'
    yield name
    quoted = await admin.fetchval("SELECT quote_ident($1)", name)
    if await admin.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", name):
        await admin.execute(f"DROP ROLE {quoted}")


async def make(admin: asyncpg.Connection, name: str, rights: str = "", password: str = "x") -> str:
    """Create a login as an administrator does; its quoted name."""
    quoted: str = await admin.fetchval("SELECT quote_ident($1)", name)
    await admin.execute(f"CREATE ROLE {quoted} LOGIN {rights} PASSWORD '{password}'")
    return quoted


class TestMaking:
    async def test_the_login_of_the_url_is_made_and_suffices(
        self, own_dsn: str, login: str, settings: Settings
    ) -> None:
        urls = DatabaseUrls(migration=own_dsn, serving=as_login(own_dsn, login))
        with pytest.raises(ConfigurationError, match=r"run `kemem migrate`"):
            await check_schema(urls.serving)
        assert "run `kemem migrate`" in (await serving_faults(urls.serving, NAMES, waived=False))[0]

        for _ in range(2):
            await ensure_serving_login(urls)
            assert await serving_faults(urls.serving, NAMES, waived=False) == []

        async with open_runtime(settings, urls.serving) as runtime:
            await make_tenant(runtime)

    async def test_the_password_is_never_sent(
        self, own_dsn: str, login: str, admin: asyncpg.Connection, data_folder: Path
    ) -> None:
        await admin.execute("ALTER ROLE kemem_service SET log_statement = 'all'")
        try:
            for password in ("unheard-of-1", "unheard-of-2"):
                serving = as_login(own_dsn, login, password)
                await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=serving))
        finally:
            await admin.execute("ALTER ROLE kemem_service RESET log_statement")

        logged = (data_folder / "data" / "postgres.log").read_text()
        assert 'CREATE ROLE "Serves' in logged
        assert 'ALTER ROLE "Serves' in logged
        assert "SCRAM-SHA-256$4096:" in logged
        assert "unheard-of" not in logged

    async def test_a_login_that_was_made_here_gets_the_password_of_the_url(
        self, own_dsn: str, login: str
    ) -> None:
        old, new = (as_login(own_dsn, login, one) for one in ("old", "new"))
        await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=old))
        assert "cannot log in" in (await serving_faults(new, NAMES, waived=False))[0]

        await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=new))

        assert await serving_faults(new, NAMES, waived=False) == []
        assert "cannot log in" in (await serving_faults(old, NAMES, waived=False))[0]

    async def test_a_strangers_password_stays(
        self, own_dsn: str, login: str, admin: asyncpg.Connection
    ) -> None:
        await make(admin, login, "NOINHERIT", "theirs")
        serving = as_login(own_dsn, login, "ours")

        await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=serving))

        assert "cannot log in" in (await serving_faults(serving, NAMES, waived=False))[0]
        theirs = as_login(own_dsn, login, "theirs")
        assert await serving_faults(theirs, NAMES, waived=False) == []

    async def test_a_password_that_clients_may_spell_in_two_ways_is_refused(
        self, own_dsn: str, login: str
    ) -> None:
        urls = DatabaseUrls(migration=own_dsn, serving=as_login(own_dsn, login, "pässword"))

        with pytest.raises(ConfigurationError, match="ASCII") as raised:
            await ensure_serving_login(urls)

        assert "pässword" not in str(raised.value)

    async def test_a_login_that_may_not_create_one_is_told_what_an_administrator_runs(
        self, own_dsn: str, login: str
    ) -> None:
        urls = DatabaseUrls(migration=served(own_dsn), serving=as_login(own_dsn, login))

        with pytest.raises(ConfigurationError, match=r"CREATE ROLE .* NOINHERIT .*; GRANT"):
            await ensure_serving_login(urls)

    async def test_a_login_that_inherits_is_mended(
        self, own_dsn: str, login: str, admin: asyncpg.Connection
    ) -> None:
        quoted = await make(admin, login)
        await admin.execute(f"GRANT {APP}, {DISPATCH} TO {quoted}")
        serving = as_login(own_dsn, login, "x")
        [fault] = await serving_faults(serving, NAMES, waived=False)
        assert f"inherits the rights of {APP}, {DISPATCH}" in fault
        async with connected(serving) as connection:
            assert await connection.fetchval("SELECT pg_has_role($1, 'USAGE')", DISPATCH)

        await admin.execute(f"REVOKE {APP}, {DISPATCH} FROM {quoted}")
        await admin.execute(f"ALTER ROLE {quoted} NOINHERIT")
        await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=serving))

        assert await serving_faults(serving, NAMES, waived=False) == []

    async def test_a_schema_that_is_not_open_to_all_is_opened_to_the_login(
        self, own_dsn: str, login: str, admin: asyncpg.Connection, settings: Settings
    ) -> None:
        quoted = await make(admin, login, "NOINHERIT")
        await admin.execute(f"GRANT {APP}, {DISPATCH} TO {quoted}")
        serving = as_login(own_dsn, login, "x")
        async with connected(own_dsn) as owner:
            await owner.execute("REVOKE USAGE ON SCHEMA public FROM PUBLIC")
            try:
                [fault] = await serving_faults(serving, NAMES, waived=False)
                assert "may not use the schema public: run `kemem migrate`" in fault
                with pytest.raises(ConfigurationError, match="run `kemem migrate`"):
                    await check_schema(serving)

                await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=serving))

                assert await serving_faults(serving, NAMES, waived=False) == []
                async with open_runtime(settings, serving) as runtime:
                    await make_tenant(runtime)
            finally:
                await owner.execute(
                    f"REVOKE USAGE ON SCHEMA public FROM {quoted}; "
                    "GRANT USAGE ON SCHEMA public TO PUBLIC"
                )


class TestOwnerLogin:
    @pytest.mark.parametrize(
        ("rights", "words"),
        [
            ("CREATEROLE", "may create roles"),
            ("SUPERUSER", "is a superuser"),
            ("BYPASSRLS", "may bypass row-level security"),
            ("REPLICATION", "may replicate the database"),
            (f"IN ROLE {OWNER}", f"may become {OWNER}"),
            ("IN ROLE pg_read_all_data", "may become pg_read_all_data"),
        ],
    )
    async def test_what_may_do_more_than_serve_does_not_serve(
        self,
        own_dsn: str,
        login: str,
        admin: asyncpg.Connection,
        settings: Settings,
        rights: str,
        words: str,
    ) -> None:
        quoted = await make(admin, login, f"NOINHERIT {rights}")
        await admin.execute(f"GRANT {APP}, {DISPATCH} TO {quoted}")
        serving = as_login(own_dsn, login, "x")

        with pytest.raises(ConfigurationError, match=words) as raised:
            async with open_runtime(settings, serving):
                pass

        assert "MEMORY_MIGRATION_URL" in str(raised.value)
        assert "`kemem migrate`" in str(raised.value)
        assert "MEMORY_ALLOW_OWNER_LOGIN=true" in str(raised.value)
        assert [words in one for one in await serving_faults(serving, NAMES, waived=False)] == [
            True
        ]
        with pytest.raises(ConfigurationError, match=words):
            await ensure_serving_login(DatabaseUrls(migration=own_dsn, serving=serving))
        # Said to be wanted, it serves.
        waived = settings.model_copy(update={"allow_owner_login": True})
        assert await serving_faults(serving, NAMES, waived=True) == []
        async with open_runtime(waived, serving) as runtime:
            await make_tenant(runtime)

    async def test_the_narrow_login_serves(self, own_dsn: str) -> None:
        await refuse_owner_login(served(own_dsn))
        with pytest.raises(ConfigurationError, match=OWNER):
            await refuse_owner_login(own_dsn)


class TestCheck:
    async def test_a_role_that_is_missing_is_named(
        self, own_dsn: str, login: str, admin: asyncpg.Connection, settings: Settings
    ) -> None:
        quoted = await make(admin, login, "NOINHERIT")
        await admin.execute(f"GRANT {APP} TO {quoted}")
        serving = as_login(own_dsn, login, "x")

        [fault] = await serving_faults(serving, NAMES, waived=False)

        assert f"may not become {DISPATCH}:" in fault
        assert "run `kemem migrate`" in fault

    @for_each("right", ["SELECT", "INSERT", "UPDATE", "DELETE"])
    async def test_a_right_that_is_missing_is_named(self, own_dsn: str, right: str) -> None:
        async with connected(own_dsn) as owner:
            await owner.execute(f"SET ROLE {OWNER}; REVOKE {right} ON memories FROM {APP}")
            [fault] = await serving_faults(served(own_dsn), NAMES, waived=False)
            await owner.execute(f"GRANT {right} ON memories TO {APP}")

        assert f"{APP} lacks rights on" in fault
        assert ": memories." in fault
        assert await serving_faults(served(own_dsn), NAMES, waived=False) == []

    async def test_a_table_without_row_level_security_is_named(self, own_dsn: str) -> None:
        async with connected(own_dsn) as owner:
            await owner.execute(f"SET ROLE {OWNER}; ALTER TABLE users NO FORCE ROW LEVEL SECURITY")
            [fault] = await serving_faults(served(own_dsn), NAMES, waived=False)
            await owner.execute("ALTER TABLE users FORCE ROW LEVEL SECURITY")

        assert "row-level security does not hold for: users." in fault

    async def test_what_the_key_look_up_lacks_is_named(self, own_dsn: str) -> None:
        async with connected(own_dsn) as owner:
            await owner.execute(f"SET ROLE {OWNER}; REVOKE SELECT ON tenants FROM {DISPATCH}")
            [fault] = await serving_faults(served(own_dsn), NAMES, waived=False)
            await owner.execute(f"GRANT SELECT ON tenants TO {DISPATCH}")

        assert f"{DISPATCH} may not read tenants." in fault


@pytest.fixture(scope="module")
async def theirs(app: FastAPI, runtime: Runtime) -> World:
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        return await build_world(runtime, client, owner, mark="their-")


@pytest.fixture
async def database(dsn: str) -> AsyncIterator[Database]:
    async with open_database(served(dsn), pool_size=1) as opened:
        yield opened


BECOMING = [
    f"SET ROLE {OWNER}",
    f"SELECT set_config('role', '{OWNER}', false)",
    f"SET LOCAL ROLE {OWNER}",
    f"SET SESSION AUTHORIZATION {OWNER}",
    "SET SESSION AUTHORIZATION kemem_service",
    "SET ROLE kemem_service",
    "SET ROLE pg_read_all_data",
    "SET row_security = off",
    f"RESET ROLE; GRANT {OWNER} TO kemem_serving",
    f"RESET ROLE; SET ROLE {OWNER}",
]
LEAVING = [
    "RESET ROLE",
    "SET ROLE NONE",
    "SET ROLE kemem_serving",
    "SELECT set_config('role', 'none', false)",
    "SET SESSION AUTHORIZATION DEFAULT",
    "RESET ALL",
]


class TestEscape:
    """From the connections of a service there is no way to another tenant's rows."""

    @for_each("statement", BECOMING + LEAVING)
    @for_each("pool", ["work", "reads", "dispatch"])
    async def test_a_connection_of_the_service_reaches_nobody_elses_rows(
        self, database: Database, theirs: World, statement: str, pool: str
    ) -> None:
        async with self.taken(database, pool) as connection:
            role = await connection.fetchval("SELECT current_user")
            refused = False
            try:
                await connection.execute(statement)
            except asyncpg.PostgresError:
                refused = True

            shown = {name: await self.rows(connection, name) for name in NAMES}
            # The key look-up sees a few columns of all, which is what it is for.
            allowed = {"api_keys", "tenants", "jobs", "webhooks", "webhook_deliveries"}
            if await connection.fetchval("SELECT current_user") != DISPATCH:
                allowed = set()

        if "row_security" not in statement:
            assert refused is (statement in BECOMING)
        assert role in {APP, DISPATCH}
        assert {name for name, count in shown.items() if count} <= allowed

    async def test_the_role_that_looks_keys_up_reads_no_word(
        self, database: Database, theirs: World
    ) -> None:
        async with self.taken(database, "reads") as connection:
            await connection.execute(f"SET ROLE {DISPATCH}")
            for statement in (
                "SELECT content FROM memories",
                "SELECT content FROM messages",
                "SELECT payload FROM jobs",
                "SELECT secret FROM webhooks",
            ):
                with pytest.raises(asyncpg.InsufficientPrivilegeError):
                    await connection.fetch(statement)

    @asynccontextmanager
    async def taken(self, database: Database, pool: str) -> AsyncIterator[asyncpg.Connection]:
        """A connection as the service holds it, with the role that it has there."""
        if pool == "work":
            async with database._units.engine.connect() as wrapped:
                driver = (await wrapped.get_raw_connection()).driver_connection
                assert driver is not None
                yield driver
                await wrapped.invalidate()
            return
        chosen = database._reads if pool == "reads" else database._dispatch
        async with chosen._pool.acquire() as connection:
            yield connection
            await connection.close()

    async def rows(self, connection: asyncpg.Connection, name: str) -> int:
        """How many rows a table shows; none where it may not be read."""
        try:
            shown: int = await connection.fetchval(f"SELECT count(tenant_id) FROM {name}")
        except asyncpg.InsufficientPrivilegeError:
            return 0
        return shown
