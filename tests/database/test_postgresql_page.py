"""The statements of docs/postgresql.md prepare a PostgreSQL whose owner may create no role."""

import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import asyncpg
import pytest

from app.errors import ConfigurationError
from app.governance.tables import TABLES
from app.platform.database.logins import DatabaseUrls, ensure_serving_login, serving_faults
from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.database.test_logins import as_login, connected
from tests.support.tenants import make_tenant

PAGE = (Path(__file__).parents[2] / "docs" / "postgresql.md").read_text(encoding="utf-8")
[STATEMENTS] = re.findall(r"```sql\n(.*?)```", PAGE, re.DOTALL)
PASSWORDS = dict(re.findall(r"CREATE ROLE (\w+) LOGIN[^']*'([^']+)'", STATEMENTS))
NAMES = [table.__tablename__ for table in TABLES]


@pytest.fixture
def own_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="kemem-tests-", dir="/tmp"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
async def untouched(own_folder: Path) -> AsyncIterator[EmbeddedPostgres]:
    """A server of its own, since roles are shared by all databases of one. Its login of the same
    name as that of the page is renamed.
    """
    async with EmbeddedPostgres(own_folder / "data") as server:
        async with connected(server.superuser_dsn) as admin:
            await admin.execute("ALTER ROLE kemem_serving RENAME TO kemem_serving_embedded")
        yield server


async def prepared(server: EmbeddedPostgres, statements: str) -> DatabaseUrls:
    async with connected(server.superuser_dsn) as admin:
        await admin.execute(statements)
    return DatabaseUrls(
        migration=as_login(server.superuser_dsn, "kemem_migration", PASSWORDS["kemem_migration"]),
        serving=as_login(server.superuser_dsn, "kemem_serving", PASSWORDS["kemem_serving"]),
    )


async def test_statements_of_the_page_suffice(
    untouched: EmbeddedPostgres, settings: Settings
) -> None:
    urls = await prepared(untouched, STATEMENTS)
    async with connected(urls.migration) as owner:
        with pytest.raises(asyncpg.InsufficientPrivilegeError):
            await owner.execute("CREATE ROLE another")

    await upgrade(urls.migration)
    await ensure_serving_login(urls)

    assert await serving_faults(urls.serving, NAMES, waived=False) == []
    async with open_runtime(settings, urls.serving) as runtime:
        await make_tenant(runtime)


async def test_without_the_grant_of_the_roles_the_migration_says_what_to_run(
    untouched: EmbeddedPostgres,
) -> None:
    grant = "GRANT kemem_owner, kemem_app, kemem_dispatch TO kemem_migration;"
    assert grant in STATEMENTS
    urls = await prepared(untouched, STATEMENTS.replace(grant, ""))

    with pytest.raises(ConfigurationError, match="administrator run once"):
        await upgrade(urls.migration)
