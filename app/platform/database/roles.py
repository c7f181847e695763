"""The three roles of the database, who may do what, and the policies that hold them to it.

`kemem_owner`     owns the tables; migrations run as it.
`kemem_app`       every request: only rows of the tenant that the transaction names.
`kemem_dispatch`  looks a key up before the tenant is known, and notes when it was used.

Roles are cluster-wide, so they are made once, outside the migrations, and never dropped.
"""

import asyncpg

from app.errors import ConfigurationError

OWNER = "kemem_owner"
APP = "kemem_app"
DISPATCH = "kemem_dispatch"
ROLES = (OWNER, APP, DISPATCH)

TENANT_SETTING = "kemem.tenant_id"

# After the first transaction that set it, the setting is empty and no longer null.
_TENANT = f"nullif(current_setting('{TENANT_SETTING}', true), '')"

MINIMUM_POSTGRES = 150_000
MINIMUM_VECTOR = (0, 8)


def tenant_policies(table: str) -> list[str]:
    """Statements that put `table` behind row-level security, the owner included."""
    return [
        f"ALTER TABLE {table} ENABLE ROW LEVEL SECURITY",
        f"ALTER TABLE {table} FORCE ROW LEVEL SECURITY",
        f"CREATE POLICY {table}_tenant ON {table} TO {APP} "
        f"USING (tenant_id = {_TENANT}) WITH CHECK (tenant_id = {_TENANT})",
        # FORCE holds for the owner too: without this a data migration would change nothing.
        f"CREATE POLICY {table}_owner ON {table} TO {OWNER} USING (true) WITH CHECK (true)",
        f"GRANT SELECT, INSERT, UPDATE, DELETE ON {table} TO {APP}",
    ]


def settable(connection: asyncpg.Connection) -> str:
    """What `pg_has_role` calls the right to become a role."""
    return "SET" if connection.get_server_version().major >= 16 else "MEMBER"


async def prepare_cluster(connection: asyncpg.Connection) -> None:
    """Create the roles and the extension where they are missing; safe to repeat.

    Raises:
        ConfigurationError: the server is too old, or the login may not create what is
            missing; the message has the statements an administrator must run.

    """
    await _check_versions(connection)
    try:
        for role in ROLES:
            exists = await connection.fetchval("SELECT 1 FROM pg_roles WHERE rolname = $1", role)
            if not exists:
                await _create_role(connection, role)
            member = f"SELECT pg_has_role($1, '{settable(connection)}')"
            if not await connection.fetchval(member, role):
                await connection.execute(f"GRANT {role} TO CURRENT_USER")
        await connection.execute("CREATE EXTENSION IF NOT EXISTS vector")
        await connection.execute(f"GRANT USAGE, CREATE ON SCHEMA public TO {OWNER}")
        await connection.execute(f"GRANT USAGE ON SCHEMA public TO {APP}, {DISPATCH}")
    except asyncpg.InsufficientPrivilegeError as error:
        roles = "; ".join(f"CREATE ROLE {role} NOLOGIN" for role in ROLES)
        raise ConfigurationError(
            "The login of the migration may not create roles or extensions. Name one that may in "
            "MEMORY_MIGRATION_URL, or let an "
            f"administrator run once: CREATE EXTENSION IF NOT EXISTS vector; {roles}; "
            f"GRANT {', '.join(ROLES)} TO <login>; "
            f"GRANT USAGE, CREATE ON SCHEMA public TO {OWNER}; "
            f"GRANT USAGE ON SCHEMA public TO {APP}, {DISPATCH};"
        ) from error
    vector = await connection.fetchval("SELECT extversion FROM pg_extension WHERE extname='vector'")
    if tuple(int(part) for part in str(vector).split(".")[:2]) < MINIMUM_VECTOR:
        raise ConfigurationError(
            f"pgvector {vector} is too old: 0.8 or newer is needed. Install it, then run "
            "ALTER EXTENSION vector UPDATE."
        )


async def _create_role(connection: asyncpg.Connection, role: str) -> None:
    try:
        await connection.execute(f"CREATE ROLE {role} NOLOGIN NOBYPASSRLS")
    except (asyncpg.DuplicateObjectError, asyncpg.UniqueViolationError):
        # Another database of the cluster was prepared at the same time.
        return


async def _check_versions(connection: asyncpg.Connection) -> None:
    """Raises ConfigurationError."""
    number = int(await connection.fetchval("SHOW server_version_num"))
    if number < MINIMUM_POSTGRES:
        raise ConfigurationError(
            f"PostgreSQL {number // 10_000} is too old: 15 or newer is needed."
        )


async def refuse_powerful_role(connection: asyncpg.Connection, *, role: str) -> None:
    """Check that a service connection acts as a role that row-level security binds.

    Raises:
        ConfigurationError: the effective role is not `role`, or may bypass the policies.

    """
    row = await connection.fetchrow(
        "SELECT current_user AS name, rolsuper OR rolbypassrls AS powerful "
        "FROM pg_roles WHERE rolname = current_user"
    )
    if row is None or row["name"] != role or row["powerful"]:
        raise ConfigurationError(
            f"The service must act as {role}, which row-level security binds. Run "
            f"ALTER ROLE {role} NOSUPERUSER NOBYPASSRLS, and GRANT {role} to the login of "
            "DATABASE_URL."
        )
