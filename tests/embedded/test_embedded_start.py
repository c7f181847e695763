"""The ordinary life of the embedded PostgreSQL: first start, second start, one owner."""

import asyncio
import json
import os
import stat
from pathlib import Path

import asyncpg
import psutil
import pytest
import structlog
from embedded_support import copy_of, eventually, notes, query, servers_on, service_on, write
from sqlalchemy import text
from sqlalchemy.ext.asyncio import create_async_engine

from app.errors import ConfigurationError
from app.platform.embedded.attachment import attach
from app.platform.embedded.data_folder import DataFolderInUseError
from app.platform.embedded.server import EmbeddedPostgres


def mode(path: Path) -> int:
    return stat.S_IMODE(path.lstat().st_mode)


async def test_first_start_makes_role_database_and_extension(folder):
    async with EmbeddedPostgres(folder / "data") as postgres:
        [role] = await query(
            postgres.dsn,
            "SELECT current_user AS name, current_database() AS database, rolsuper, rolcreaterole,"
            " rolbypassrls, rolcreatedb FROM pg_roles WHERE rolname = current_user",
        )
        assert tuple(role) == ("kemem_service", "kemem", False, True, False, False)
        [vector] = await query(
            postgres.dsn, "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        )
        assert tuple(int(part) for part in vector["extversion"].split("."))[:2] >= (0, 8)
        [owner] = await query(
            postgres.dsn,
            "SELECT pg_get_userbyid(datdba) AS name FROM pg_database WHERE datname = 'kemem'",
        )
        assert owner["name"] == "kemem_service"
        [serving] = await query(
            postgres.urls.serving,
            "SELECT current_user AS name, rolinherit, rolsuper, rolcreaterole, rolbypassrls,"
            " rolcreatedb FROM pg_roles WHERE rolname = current_user",
        )
        assert tuple(serving) == ("kemem_serving", False, False, False, False, False)
        [superuser] = await query(postgres.superuser_dsn, "SELECT current_user AS name")
        assert superuser["name"] == "kemem_superuser"


async def test_data_is_there_after_stop_and_start(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        await write(postgres.dsn, "kept")
    assert servers_on(data_dir) == []
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["kept", "made"]


async def test_one_object_starts_again_after_stop(data_dir):
    postgres = EmbeddedPostgres(data_dir)
    for _ in range(2):
        await postgres.start()
        assert await notes(postgres.dsn) == ["made"]
        await postgres.stop()
        await postgres.stop()
    with pytest.raises(RuntimeError, match="not running"):
        _ = postgres.dsn


async def test_second_start_on_the_folder_names_the_holder_and_the_ways_on(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        with pytest.raises(DataFolderInUseError) as refusal:
            await EmbeddedPostgres(data_dir).start()
        assert str(refusal.value) == (
            f"The data folder {data_dir} is in use by the process with pid {os.getpid()}. Stop "
            "that process, or choose another folder with --data-dir, or use the running "
            "service at its address."
        )
        assert await notes(postgres.dsn) == ["made"]


async def test_everything_is_private(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        for name in (
            "secrets.json", "serving.password", "state.json", "kemem.lock", "postgres.log"
        ):  # fmt: skip
            assert mode(data_dir / name) == 0o600, name
            assert (data_dir / name).stat().st_uid == os.geteuid(), name
        assert mode(data_dir) == (0o711 if os.geteuid() == 0 else 0o700)
        assert mode(data_dir / "postgres-18") == 0o700
        assert mode(postgres.socket_folder) == 0o700
        assert mode(postgres.socket_folder / ".s.PGSQL.5432") == 0o700
        [hba] = await query(
            postgres.superuser_dsn,
            "SELECT array_agg(DISTINCT auth_method) AS methods FROM pg_hba_file_rules",
        )
        assert hba["methods"] == ["scram-sha-256"]
        [listen] = await query(postgres.dsn, "SELECT current_setting('listen_addresses') AS to")
        assert listen["to"] == ""


async def test_folder_with_one_login_gets_a_second(data_dir):
    file, serving = data_dir / "secrets.json", data_dir / "serving.password"
    async with EmbeddedPostgres(data_dir) as postgres:
        kept = file.read_text()
        await query(postgres.superuser_dsn, "DROP ROLE kemem_serving")
        # As an earlier release left it, whose service still runs.
        serving.unlink()
        with pytest.raises(ConfigurationError, match="of an earlier release: stop it"):
            await attach(data_dir)

    async with EmbeddedPostgres(data_dir) as postgres:
        [row] = await query(postgres.urls.serving, "SELECT current_user AS name")
        assert row["name"] == "kemem_serving"
        made = serving.read_text()
        assert await notes(postgres.dsn) == ["made"]
    async with EmbeddedPostgres(data_dir) as postgres:
        assert serving.read_text() == made
        await query(postgres.urls.serving, "SELECT 1")
    assert file.read_text() == kept
    assert mode(serving) == 0o600


async def test_the_first_file_of_passwords_has_the_names_that_every_release_reads(data_dir):
    async with EmbeddedPostgres(data_dir):
        assert set(json.loads((data_dir / "secrets.json").read_text())) == {
            "superuser_password",
            "service_password",
        }


async def test_a_name_of_a_later_release_among_the_passwords_is_passed_over(data_dir):
    file = data_dir / "secrets.json"
    async with EmbeddedPostgres(data_dir):
        kept = json.loads(file.read_text())
    file.write_text(json.dumps(kept | {"later_password": "x"}))

    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["made"]


async def test_ctrl_c_in_the_terminal_does_not_reach_the_server(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        assert os.getsid(postgres.pid) != os.getsid(0)


async def test_nobody_gets_in_without_the_password(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        stranger = postgres.dsn.replace(postgres.dsn.split(":")[2].split("@")[0], "guess")
        with pytest.raises(asyncpg.InvalidPasswordError):
            await asyncpg.connect(stranger)


async def test_passwords_are_in_no_log_no_repr_and_no_command_line(data_dir):
    with structlog.testing.capture_logs() as lines:
        async with EmbeddedPostgres(data_dir) as postgres:
            passwords = [
                *json.loads((data_dir / "secrets.json").read_text()).values(),
                (data_dir / "serving.password").read_text(),
            ]
            shown = [repr(postgres), repr(psutil.Process(postgres.pid).cmdline())]
            with pytest.raises(asyncpg.PostgresError):
                await query(postgres.dsn, "SELECT 'what was said' FROM nowhere")
    shown += [repr(lines), (data_dir / "postgres.log").read_text()]
    assert [line["event"] for line in lines] == ["postgres_started", "postgres_stopped"]
    assert len(set(passwords)) == 3
    for text_shown in shown:
        assert "what was said" not in text_shown
        assert not any(password in text_shown for password in passwords)


async def test_lost_passwords_are_reported_and_data_left_alone(data_dir):
    (data_dir / "secrets.json").unlink()
    with pytest.raises(ConfigurationError, match=r"secrets\.json cannot be read"):
        await EmbeddedPostgres(data_dir).start()
    assert (data_dir / "postgres-18" / "PG_VERSION").exists()


async def test_a_changed_service_password_is_mended_at_start(data_dir):
    file = data_dir / "secrets.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | {"service_password": "a'b%c"}))
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["made"]


async def test_a_server_that_cannot_start_quotes_its_log(data_dir):
    with (data_dir / "postgres-18" / "postgresql.conf").open("a") as file:
        file.write("no_such_setting = 1\n")
    with pytest.raises(ConfigurationError, match="no_such_setting") as refusal:
        await EmbeddedPostgres(data_dir).start()
    assert str(data_dir / "postgres.log") in str(refusal.value)
    # The folder is free again.
    with pytest.raises(ConfigurationError, match="no_such_setting"):
        await EmbeddedPostgres(data_dir).start()


async def test_a_cancelled_start_leaves_nothing_running(data_dir):
    start = asyncio.create_task(EmbeddedPostgres(data_dir).start())
    await eventually(lambda: servers_on(data_dir))
    start.cancel()
    with pytest.raises(asyncio.CancelledError):
        await start
    assert servers_on(data_dir) == []
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await notes(postgres.dsn) == ["made"]


async def test_a_cancelled_stop_still_stops(data_dir):
    postgres = EmbeddedPostgres(data_dir)
    await postgres.start()
    stop = asyncio.create_task(postgres.stop())
    await asyncio.sleep(0)
    stop.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stop
    assert servers_on(data_dir) == []
    async with EmbeddedPostgres(data_dir):
        pass


async def test_sqlalchemy_takes_the_url_of_an_odd_folder(folder, made_once):
    data_dir = copy_of(made_once, folder / "with space % and 记忆")
    async with EmbeddedPostgres(data_dir) as postgres:
        assert postgres.socket_folder == data_dir / "socket"
        assert await notes(postgres.dsn) == ["made"]
        engine = create_async_engine(postgres.dsn.replace("postgresql:", "postgresql+asyncpg:"))
        async with engine.connect() as connection:
            assert await connection.scalar(text("SELECT count(*) FROM notes")) == 1
        await engine.dispose()


async def test_settings_of_another_postgres_in_the_environment_do_not_matter(data_dir):
    foreign = {"PGPORT": "5999", "PGHOST": "/nowhere", "PGDATA": "/nowhere", "PGUSER": "nobody"}
    async with service_on(data_dir, environment=foreign) as service:
        assert await notes(service.dsn) == ["made"]
