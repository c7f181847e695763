"""How a transaction names its tenant and ends, and how a read is one statement or three."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence

import asyncpg

from app.platform.database.failures import OutcomeUnknownError, is_lost
from app.platform.database.roles import TENANT_SETTING

# What `platform/values/fields.py` lets through as an id; none of it means anything inside quotes.
_TENANT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}\Z")

ROLLBACK_SECONDS = 5

# In one simple query with what opens the transaction; it ends with the transaction.
_NAME_TENANT = f"SET LOCAL {TENANT_SETTING} = '{{tenant_id}}'"

_SNAPSHOT = (
    "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL statement_timeout = 0; "
    "SET LOCAL idle_in_transaction_session_timeout = '10min'"
)
"""A long reader may also pause; a reader that is gone is disconnected."""

ONE_PLAN = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
"""For statements that are sent often: they have one good plan whatever the values, and planning
them took PostgreSQL up to 2 ms each time. Nor may it depend on what few users of many have on the
average: each is read by an index."""

_PLAN_ONCE = "; ".join(f"SET LOCAL {name} = {value}" for name, value in ONE_PLAN.items())

# The tenant is set by the outer row before the statement beside it runs, because that
# statement refers to `tenant.id`: one round trip, one transaction, the policies in force.
FRAME = (
    f"SELECT hit.* FROM (SELECT set_config('{TENANT_SETTING}', $1, true)) AS tenant(id) "
    "CROSS JOIN LATERAL ({statement}) AS hit"
)

Query = Callable[[asyncpg.Connection], Awaitable[list[asyncpg.Record]]]
"""A query on a pooled connection, which it leaves outside of a transaction."""


def checked_tenant_id(tenant_id: str) -> str:
    """The id itself; it is written into SQL text, so anything unusual is a bug."""
    if not _TENANT_ID.match(tenant_id):
        raise ValueError("malformed tenant id")
    return tenant_id


def name_tenant(tenant_id: str) -> str:
    return _NAME_TENANT.format(tenant_id=checked_tenant_id(tenant_id))


def opened_for(tenant_id: str, *, snapshot: bool, hot: bool, first: str | None) -> str:
    """What opens a transaction in one round trip; the arguments are those of `Database.begin`."""
    begin = [_SNAPSHOT if snapshot else "BEGIN", name_tenant(tenant_id)]
    return "; ".join(
        each for each in (*begin, _PLAN_ONCE if hot else None, first) if each is not None
    )


def in_one_statement(tenant_id: str, statement: str, args: Sequence[object]) -> Query:
    """A hot read that names the tenant inside its statement: one round trip."""
    framed = FRAME.format(statement=statement)

    async def query(connection: asyncpg.Connection) -> list[asyncpg.Record]:
        return list(await connection.fetch(framed, tenant_id, *args))

    return query


def in_transaction(tenant_id: str, statement: str, args: Sequence[object]) -> Query:
    """The same after `BEGIN; SET LOCAL`, and before COMMIT: three round trips.

    The tenant is a parameter of the statement and the setting a command of its own, which a
    PostgreSQL that spreads tenants over servers can send to the server of the tenant.
    """
    parametrised = statement.replace("tenant.id", "CAST($1 AS text)")

    async def query(connection: asyncpg.Connection) -> list[asyncpg.Record]:
        await connection.execute(f"BEGIN READ ONLY; {name_tenant(tenant_id)}")
        try:
            rows = list(await connection.fetch(parametrised, tenant_id, *args))
            await connection.execute("COMMIT")
        except BaseException:
            await asyncio.shield(roll_back(connection))
            raise
        return rows

    return query


async def commit(driver: asyncpg.Connection) -> None:
    """Raises OutcomeUnknownError."""
    try:
        status = await driver.execute("COMMIT")
    except asyncpg.InterfaceError:
        # Lost before: COMMIT was never sent.
        raise
    except Exception as error:
        if is_lost(error) or isinstance(error, TimeoutError):
            raise OutcomeUnknownError from error
        raise
    if status != "COMMIT":
        # PostgreSQL answers COMMIT of a failed transaction with ROLLBACK.
        raise RuntimeError("a failed transaction was about to be committed")


async def roll_back(driver: asyncpg.Connection) -> None:
    if driver.is_closed():
        return
    try:
        # The driver's own timeout begins only when an earlier statement has been cancelled.
        async with asyncio.timeout(ROLLBACK_SECONDS):
            await driver.execute("ROLLBACK")
    except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError, TimeoutError):
        # It must not return to the pool in the middle of a statement.
        driver.terminate()
