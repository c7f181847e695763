"""The `alembic` command at the checkout, with the database of the environment."""

import asyncio
import os
import sys
from pathlib import Path

from app.platform.database.migrate import check_schema, head, upgrade
from app.platform.embedded.server import EmbeddedPostgres
from tests.support.databases import new_database
from tests.support.first_version import as_in_first_version

ROOT = Path(__file__).parents[2]
NOWHERE = "postgresql://nobody:secret@127.0.0.1:1/nothing"


async def alembic(*arguments: str, **settings: str) -> tuple[int, str]:
    """Exit code and output of one command, as typed at the top of the checkout."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "DATABASE_"))
    }
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "alembic", *arguments,
        cwd=ROOT, env=kept | settings,
        stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    output, _ = await process.communicate()
    return process.returncode or 0, output.decode()


class TestWithoutDatabase:
    async def test_history_lists_the_revisions(self) -> None:
        code, output = await alembic("history")

        assert code == 0, output
        assert "<base> -> initial_schema" in output
        assert f"-> {head()} (head)" in output

    async def test_missing_database_url_is_named(self) -> None:
        code, output = await alembic("current")

        assert code != 0
        assert output.count("DATABASE_URL is not set") == 1
        assert "kemem migrate" in output
        assert "Traceback" not in output

    async def test_unreachable_database_is_named_without_its_password(self) -> None:
        code, output = await alembic("upgrade", "head", DATABASE_URL=NOWHERE)

        assert code != 0
        assert "cannot be reached" in output
        assert "secret" not in output
        assert "Traceback" not in output


class TestWithDatabase:
    async def test_upgrade_makes_what_current_and_check_find(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "alembic")

        assert "not up to date" in (await alembic("check", DATABASE_URL=dsn))[1]
        # Reading has made no table, which would belong to the login and not to the owner.
        code, output = await alembic("upgrade", "head", DATABASE_URL=dsn)
        assert (code, f"-> {head()}" in output) == (0, True), output
        await check_schema(dsn)
        code, output = await alembic("current", DATABASE_URL=dsn)
        assert (code, f"{head()} (head)" in output) == (0, True), output
        code, output = await alembic("check", DATABASE_URL=dsn)
        assert (code, "No new upgrade operations" in output) == (0, True), output

    async def test_migration_url_comes_before_database_url(
        self, postgres: EmbeddedPostgres
    ) -> None:
        dsn = await new_database(postgres, "alembic_login")
        await upgrade(dsn)

        code, output = await alembic("current", DATABASE_URL=NOWHERE, MEMORY_MIGRATION_URL=dsn)

        assert (code, f"{head()} (head)" in output) == (0, True), output

    async def test_database_of_the_first_version_is_named(self, postgres: EmbeddedPostgres) -> None:
        dsn = await new_database(postgres, "alembic_first")
        await upgrade(dsn)
        await as_in_first_version(dsn, "0007")

        code, output = await alembic("current", DATABASE_URL=dsn)

        assert code != 0
        assert "one of version 0.1" in output
        assert "alembic upgrade head" in output
