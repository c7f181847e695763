"""Databases of version 0.1, whose seven revisions `initial_schema` replaces.

The last of the seven has the same tables. What differs is brought over in one transaction: no
foreign key sets a column to null, the index of key prefixes names the tenant, and constraints
have their table's name once. Earlier ones are refused: they belong to no released version.
"""

from collections.abc import Iterable

from alembic.util import CommandError
from sqlalchemy import Connection, inspect, text

from app.errors import ConfigurationError
from app.platform.database.migrate import FIRST_VERSION_HEAD, refuse_unknown

INITIAL = "initial_schema"

_FOREIGN_KEYS = {
    "sessions_fk_projects": ("sessions", "project_id", "projects (tenant_id, project_id)"),
    "memories_fk_projects": ("memories", "project_id", "projects (tenant_id, project_id)"),
    "memories_fk_sessions": ("memories", "session_id", "sessions (tenant_id, session_id)"),
    "memories_fk_superseded_by": ("memories", "superseded_by", "memories (tenant_id, memory_id)"),
    "graph_entities_fk_merged_into": (
        "graph_entities", "merged_into", "graph_entities (tenant_id, entity_id)",
    ),
}  # fmt: skip

# Its CHECK constraints were called `agents_ck_agents_ck_status`.
_RENAME_CHECKS = """
DO $$
DECLARE found record;
BEGIN
    FOR found IN
        SELECT conrelid::regclass::text AS table_name, conname AS old,
            substr(conname, length(relname) + 5) AS new
        FROM pg_constraint JOIN pg_class ON pg_class.oid = conrelid
        WHERE connamespace = 'public'::regnamespace AND contype = 'c'
            AND starts_with(conname, relname || '_ck_' || relname || '_ck_')
    LOOP
        EXECUTE format(
            'ALTER TABLE %I RENAME CONSTRAINT %I TO %I', found.table_name, found.old, found.new
        );
    END LOOP;
END $$
"""


def bring_over(connection: Connection) -> None:
    """Make a database of version 0.1 one of `initial_schema`; leave every other one alone.

    Raises:
        ConfigurationError: it is at an earlier revision than version 0.1 had at last.

    """
    current = _revision(connection)
    refuse_unknown(current)
    if current == FIRST_VERSION_HEAD:
        for statement in _statements():
            connection.exec_driver_sql(statement)
    connection.commit()


def refuse(connection: Connection) -> None:
    """For what only reads.

    Raises:
        CommandError: the database is one of version 0.1.

    """
    current = _revision(connection)
    try:
        refuse_unknown(current)
    except ConfigurationError as error:
        raise CommandError(str(error)) from None
    if current == FIRST_VERSION_HEAD:
        raise CommandError(
            "The database is one of version 0.1: `alembic upgrade head` or `kemem migrate` "
            "brings it to this release."
        )
    connection.rollback()


def _revision(connection: Connection) -> str | None:
    if not inspect(connection).has_table("alembic_version"):
        return None
    revision: str | None = connection.scalar(text("SELECT version_num FROM alembic_version"))
    return revision


def _statements() -> Iterable[str]:
    for name, (table, column, parent) in _FOREIGN_KEYS.items():
        # Not checked again while the tables are locked: the old key held until now.
        yield (
            f"ALTER TABLE {table} DROP CONSTRAINT {name}, ADD CONSTRAINT {name} "
            f"FOREIGN KEY (tenant_id, {column}) REFERENCES {parent} NOT VALID"
        )
        yield f"ALTER TABLE {table} VALIDATE CONSTRAINT {name}"
    yield "DROP INDEX api_keys_uk_key_prefix"
    yield "CREATE UNIQUE INDEX api_keys_uk_key_prefix ON api_keys (key_prefix, tenant_id)"
    yield _RENAME_CHECKS
    yield f"UPDATE alembic_version SET version_num = '{INITIAL}'"
