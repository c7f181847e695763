"""The two logins: the owner's, which migrates, and the one that serves requests.

The serving login is a member of `kemem_app` and `kemem_dispatch` and of nothing else, so that no
statement of a request can become the owner. It inherits nothing either: a connection that left its
role would have the rights of both roles at once, the rows of the one and the columns of the other.
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import parse_qs, unquote, urlsplit

import asyncpg

from app.errors import ConfigurationError
from app.platform.database.roles import APP, DISPATCH, settable

SERVING_ROLES: Final = (APP, DISPATCH)
EXAMPLE: Final = "postgresql://kemem_serving:<password>@<host>/<database>"

_SCRAM_ITERATIONS: Final = 4096
"""PostgreSQL's own default."""
_SALT_BYTES: Final = 16

_MEMBERSHIP = """
SELECT login.rolsuper, login.rolcreaterole, login.rolreplication, login.rolbypassrls,
    ARRAY(SELECT role.rolname::text FROM pg_roles AS role
        WHERE role.oid <> login.oid AND role.rolname <> ALL($2::text[])
        AND pg_has_role(login.oid, role.oid, 'MEMBER') ORDER BY 1) AS others,
    ARRAY(SELECT role.rolname::text FROM pg_roles AS role WHERE role.rolname = ANY($2::text[])
        AND pg_has_role(login.oid, role.oid, '{settable}')) AS roles,
    ARRAY(SELECT role.rolname::text FROM pg_roles AS role WHERE role.rolname = ANY($2::text[])
        AND pg_has_role(login.oid, role.oid, 'USAGE')) AS inherited
FROM pg_roles AS login WHERE login.rolname = $1
"""
# Every right is asked for alone: a list of rights means any of them.
_WITHOUT_RIGHTS = f"""
SELECT name FROM unnest($1::text[]) AS name JOIN pg_class AS t ON t.oid = to_regclass(name)
WHERE NOT (t.relrowsecurity AND t.relforcerowsecurity) OR NOT (
    SELECT bool_and(has_table_privilege('{APP}', t.oid, needed))
    FROM unnest(ARRAY['SELECT', 'INSERT', 'UPDATE', 'DELETE']) AS needed)
ORDER BY 1
"""
_USES_SCHEMA = "SELECT has_schema_privilege($1, 'public', 'USAGE')"
_FOR_DISPATCH = ("api_keys", "tenants", "jobs", "webhooks", "webhook_deliveries")
_WITHOUT_DISPATCH = f"""
SELECT name FROM unnest($1::text[]) AS name
WHERE NOT has_any_column_privilege('{DISPATCH}', name, 'SELECT') ORDER BY 1
"""


@dataclass(frozen=True, slots=True)
class DatabaseUrls:
    """One database under its two logins; the same twice where there is one."""

    migration: str = field(repr=False)
    serving: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Login:
    name: str
    password: str | None = field(repr=False)


@dataclass(frozen=True, slots=True)
class _Membership:
    """What a login may, and whom it may become."""

    name: str
    powers: tuple[str, ...]
    others: tuple[str, ...]
    roles: frozenset[str]
    inherited: frozenset[str]

    @property
    def excess(self) -> str | None:
        """What it may beyond serving, as the end of a sentence."""
        if "is a superuser" in self.powers:
            return "is a superuser"
        becoming = [f"may become {', '.join(self.others)}"] if self.others else []
        return " and ".join([*self.powers, *becoming]) or None


def login_of(url: str) -> Login:
    """Name and password in a URL of a database.

    Raises:
        ConfigurationError: it names nobody.

    """
    parts = urlsplit(url)
    options = parse_qs(parts.query)
    name = unquote(parts.username or "") or options.get("user", [""])[0]
    if not name:
        raise ConfigurationError(f"DATABASE_URL names no login: write {EXAMPLE}.")
    password = unquote(parts.password or "") or options.get("password", [""])[0]
    return Login(name, password or None)


def scram_verifier(password: str, salt: bytes) -> str:
    """What PostgreSQL stores for a password, so that the password itself is never sent.

    Raises:
        ConfigurationError: the password has characters that clients may spell in several ways.

    """
    if not (password.isascii() and password.isprintable()):
        raise ConfigurationError(
            "The password in DATABASE_URL may have printable ASCII characters only when "
            "`kemem migrate` creates its login."
        )
    salted = hashlib.pbkdf2_hmac("sha256", password.encode(), salt, _SCRAM_ITERATIONS)
    client, server = (
        hmac.digest(salted, name, "sha256") for name in (b"Client Key", b"Server Key")
    )
    stored = hashlib.sha256(client).digest()
    texts = [base64.b64encode(part).decode() for part in (salt, stored, server)]
    return f"SCRAM-SHA-256${_SCRAM_ITERATIONS}:{texts[0]}${texts[1]}:{texts[2]}"


async def ensure_serving_login(urls: DatabaseUrls) -> None:
    """Create the login of `urls.serving` where it is missing, and grant what `serve` needs.

    The schema is migrated already. A login that was given its roles here before gets the password
    of the URL when it has another. Safe to repeat.

    Raises:
        ConfigurationError: the login may do more than serve, or that of `urls.migration` may not
            create it; the message says what to run.

    """
    login = login_of(urls.serving)
    connection = await asyncpg.connect(urls.migration)
    try:
        found = await _membership(connection, login.name)
        if found is not None and found.excess:
            raise ConfigurationError(
                f"The login of DATABASE_URL, {login.name}, {found.excess}, and must serve "
                f"requests alone. Name another there, such as {EXAMPLE}: `kemem migrate` creates "
                "it."
            )
        try:
            await _grant(connection, login, found, known=await _logs_in(urls.serving))
        except asyncpg.InsufficientPrivilegeError as error:
            name = await connection.fetchval("SELECT quote_ident($1)", login.name)
            raise ConfigurationError(
                f"The login of MEMORY_MIGRATION_URL may not create or change {login.name}, the "
                f"login of DATABASE_URL. Let an administrator run once: CREATE ROLE {name} LOGIN "
                f"NOINHERIT PASSWORD '<the one in DATABASE_URL>'; GRANT {APP}, {DISPATCH} TO "
                f"{name}; GRANT USAGE ON SCHEMA public TO {name};"
            ) from error
    finally:
        await connection.close()


async def _grant(
    connection: asyncpg.Connection, login: Login, found: _Membership | None, *, known: bool
) -> None:
    name = await connection.fetchval("SELECT quote_ident($1)", login.name)
    if found is None:
        await _execute(connection, f"CREATE ROLE {name} LOGIN NOINHERIT", login.password)
    elif not known and found.roles:
        await _execute(connection, f"ALTER ROLE {name} LOGIN", login.password)
    for role in SERVING_ROLES:
        if found is None or role not in found.roles:
            await connection.execute(f"GRANT {role} TO {name}")
        if found is not None and role in found.inherited:
            await connection.execute(
                f"GRANT {role} TO {name} WITH INHERIT FALSE"
                if connection.get_server_version().major >= 16
                else f"ALTER ROLE {name} NOINHERIT"
            )
    # Both are open to everyone where nobody has taken them away.
    database = await connection.fetchval("SELECT quote_ident(current_database())")
    if not await connection.fetchval(
        "SELECT has_database_privilege($1, current_database(), 'CONNECT')", login.name
    ):
        await connection.execute(f"GRANT CONNECT ON DATABASE {database} TO {name}")
    if not await connection.fetchval(_USES_SCHEMA, login.name):
        await connection.execute(f"GRANT USAGE ON SCHEMA public TO {name}")


async def _execute(connection: asyncpg.Connection, statement: str, password: str | None) -> None:
    if password is not None:
        # Letters, digits and +/=:$- alone: nothing in it ends the quotes.
        statement += f" PASSWORD '{scram_verifier(password, secrets.token_bytes(_SALT_BYTES))}'"
    await connection.execute(statement)


async def _logs_in(url: str) -> bool:
    try:
        connection = await asyncpg.connect(url)
    except asyncpg.InvalidAuthorizationSpecificationError:
        return False
    except asyncpg.InsufficientPrivilegeError:
        # It may not connect to this database yet; the password was right.
        return True
    await connection.close()
    return True


async def serving_faults(url: str, tables: Iterable[str], *, waived: bool) -> list[str]:
    """What keeps the service from starting with this login; nothing when it would start.

    Args:
        url: where the service logs in.
        tables: those that it uses; they must exist.
        waived: whether a login that may become the owner is accepted.

    """
    name = login_of(url).name
    try:
        connection = await asyncpg.connect(url)
    except asyncpg.InvalidAuthorizationSpecificationError:
        return [f"{name} cannot log in with the password of DATABASE_URL: {_MIGRATE}."]
    except asyncpg.InsufficientPrivilegeError:
        return [f"{name} may not connect to the database: {_MIGRATE}."]
    try:
        member = await _membership(connection, name)
        faults = [] if member is None else _faults(member, waived=waived)
        if not await connection.fetchval(_USES_SCHEMA, name):
            # It finds no table there, whatever the rights on them are.
            return [*faults, f"{name} may not use the schema public: {_MIGRATE}."]
        without = [row["name"] for row in await connection.fetch(_WITHOUT_RIGHTS, [*tables])]
        dispatch = await connection.fetch(_WITHOUT_DISPATCH, list(_FOR_DISPATCH))
    finally:
        await connection.close()
    if without:
        faults.append(
            f"{APP} lacks rights on, or row-level security does not hold for: "
            f"{', '.join(without)}. Let the owner of the tables grant them again."
        )
    if dispatch:
        faults.append(
            f"{DISPATCH} may not read {', '.join(row['name'] for row in dispatch)}. Let the owner "
            "of the tables grant it again."
        )
    return faults


_MIGRATE = "run `kemem migrate` with MEMORY_MIGRATION_URL"


def _faults(member: _Membership, *, waived: bool) -> list[str]:
    faults = []
    if not waived and (refusal := owner_refusal(member)):
        faults.append(refusal)
    if missing := [role for role in SERVING_ROLES if role not in member.roles]:
        faults.append(f"{member.name} may not become {', '.join(missing)}: {_MIGRATE}.")
    if member.inherited and not member.excess:
        faults.append(
            f"{member.name} inherits the rights of {', '.join(sorted(member.inherited))} where "
            f"it should only become them: {_MIGRATE}."
        )
    return faults


def owner_refusal(member: _Membership) -> str | None:
    """Why the service does not start with this login, and what to run."""
    if member.excess is None:
        return None
    return (
        f"The login of DATABASE_URL, {member.name}, {member.excess}: one faulty statement in a "
        "request could show the rows of every tenant. Put this login into MEMORY_MIGRATION_URL "
        f"and one of its own into DATABASE_URL, such as {EXAMPLE}; then run `kemem migrate`, "
        "which creates it, and start again. For development MEMORY_ALLOW_OWNER_LOGIN=true starts "
        "without this wall."
    )


async def refuse_owner_login(url: str) -> None:
    """Check that what serves requests can become nobody but the roles of the service.

    Raises:
        ConfigurationError: it can; the message says what to run.

    """
    connection = await asyncpg.connect(url)
    try:
        name = await connection.fetchval("SELECT session_user")
        member = await _membership(connection, name)
    finally:
        await connection.close()
    if member is not None and (refusal := owner_refusal(member)):
        raise ConfigurationError(refusal)


async def _membership(connection: asyncpg.Connection, name: str) -> _Membership | None:
    statement = _MEMBERSHIP.format(settable=settable(connection))
    row = await connection.fetchrow(statement, name, list(SERVING_ROLES))
    if row is None:
        return None
    powers = {
        "rolsuper": "is a superuser",
        "rolcreaterole": "may create roles",
        "rolreplication": "may replicate the database",
        "rolbypassrls": "may bypass row-level security",
    }
    return _Membership(
        name,
        tuple(words for column, words in powers.items() if row[column]),
        tuple(row["others"]),
        frozenset(row["roles"]),
        frozenset(row["inherited"]),
    )
