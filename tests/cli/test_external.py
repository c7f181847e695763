"""`kemem` with DATABASE_URL: it migrates when told, and refuses to guess."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import httpx
import pytest
from cli_support import (
    KEMEM,
    Service,
    assert_counted_together,
    environment,
    eventually,
    kemem,
    serving,
)

from tests.support.databases import new_database, served
from tests.support.patience import PATIENCE

UVICORN = [sys.executable, "-m", "uvicorn", "app.main:app"]

pytestmark = pytest.mark.slow


async def test_an_older_schema_is_refused_until_it_is_migrated(postgres, folder):
    owner = await new_database(postgres, "cli_old")
    env = {"DATABASE_URL": served(owner), "MEMORY_MIGRATION_URL": owner}

    def play():
        refused = kemem("serve", "--port", "0", cwd=folder, env=env)
        assert refused.returncode == 2
        assert "run `kemem migrate`" in refused.stderr
        server = subprocess.run(
            [*UVICORN, "--port", "0"],
            cwd=folder, env=environment(env), capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert server.returncode == 3
        assert "kemem: The database schema is older (empty)" in server.stderr
        assert "Traceback" not in server.stderr
        assert kemem("migrate", "--check", cwd=folder, env=env).returncode == 1
        migrated = kemem("migrate", cwd=folder, env=env)
        assert migrated.returncode == 0, migrated.stderr
        assert "was at nothing" in migrated.stdout
        assert kemem("migrate", "--check", cwd=folder, env=env).returncode == 0
        created = kemem("tenants", "create", "Acme", cwd=folder, env=env)
        assert "kem_" in created.stdout

    await asyncio.to_thread(play)


async def test_migrate_makes_the_login_that_serves(postgres, folder):
    owner = await new_database(postgres, "cli_login")
    parts = urlsplit(owner)
    own = urlunsplit(parts._replace(netloc="made_by_migrate:pass%2Fword@"))
    env = {"DATABASE_URL": own, "MEMORY_MIGRATION_URL": owner}

    def play():
        refused = kemem("serve", "--port", "0", cwd=folder, env=env)
        assert refused.returncode == 2
        assert "for those of DATABASE_URL run `kemem migrate`" in refused.stderr
        migrated = kemem("migrate", cwd=folder, env=env)
        assert migrated.returncode == 0, migrated.stderr
        assert "The service can log in as made_by_migrate." in migrated.stdout
        assert "pass" not in migrated.stdout + migrated.stderr
        with serving(folder / "made", env={"DATABASE_URL": own}) as service:
            eventually(service.is_ready)
        alone = kemem("migrate", "--check", cwd=folder, env={"DATABASE_URL": own})
        assert alone.returncode == 0, alone.stderr

    try:
        await asyncio.to_thread(play)
    finally:
        admin = await asyncpg.connect(postgres.superuser_dsn)
        await admin.execute("DROP ROLE made_by_migrate")
        await admin.close()


async def test_one_login_for_both_is_refused_unless_it_is_said_to_be_wanted(dsn, folder):
    env = {"DATABASE_URL": dsn}

    def play():
        for command in (("serve", "--port", "0"), ("worker",)):
            refused = kemem(*command, cwd=folder, env=env)
            assert refused.returncode == 2
            assert "may become kemem_owner" in refused.stderr
            assert "then run `kemem migrate`" in refused.stderr
            assert "Traceback" not in refused.stderr
        for command in (("migrate",), ("migrate", "--check")):
            said = kemem(*command, cwd=folder, env=env)
            assert said.returncode == 1
            assert "may become kemem_owner" in said.stderr
        waived = env | {"MEMORY_ALLOW_OWNER_LOGIN": "true"}
        assert kemem("migrate", "--check", cwd=folder, env=waived).returncode == 0
        with serving(folder / "waived", env=waived) as service:
            eventually(service.is_ready)

    await asyncio.to_thread(play)


async def test_plain_owner_is_told_by_migrate_that_it_cannot_serve(postgres, folder):
    """It owns the database, and may become none of the roles."""
    owner = await new_database(postgres, "cli_plain")
    admin = await asyncpg.connect(postgres.superuser_dsn)
    await admin.execute("CREATE ROLE plain LOGIN PASSWORD 'x'")
    await admin.execute("ALTER DATABASE cli_plain OWNER TO plain")
    plain = urlunsplit(urlsplit(owner)._replace(netloc="plain:x@"))
    superuser = postgres.superuser_dsn.replace("/kemem?", "/cli_plain?")
    env = {"DATABASE_URL": plain, "MEMORY_MIGRATION_URL": superuser}

    def play():
        migrated = kemem("migrate", cwd=folder, env=env)
        assert migrated.returncode == 2
        assert "plain, may become pg_database_owner" in migrated.stderr
        checked = kemem("migrate", "--check", cwd=folder, env=env)
        assert checked.returncode == 1
        assert "plain may not become kemem_app, kemem_dispatch" in checked.stderr

    try:
        await asyncio.to_thread(play)
    finally:
        await admin.execute("DROP DATABASE cli_plain")
        await admin.execute("DROP ROLE plain")
        await admin.close()


async def test_several_workers_serve_one_port_and_drain(dsn, folder):
    def play():
        with serving(
            folder / "many", "--workers", "2", env={"DATABASE_URL": served(dsn)}
        ) as service:
            assert "Key" not in service.greeting
            eventually(service.is_ready)
            assert_counted_together(service)
            assert service.stop(signal.SIGTERM) == 0
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{service.address}/livez", timeout=PATIENCE, trust_env=False)

    await asyncio.to_thread(play)


async def test_first_key_is_made_once_and_kept(dsn, folder):
    env = {"DATABASE_URL": served(dsn), "MEMORY_DATA_DIR": str(folder / "kept")}

    def play():
        quiet = kemem("keys", "first", "--quiet", cwd=folder, env=env)
        assert (quiet.returncode, quiet.stdout) == (0, ""), quiet.stderr
        kept = folder / "kept" / "key"
        assert kept.stat().st_mode & 0o777 == 0o600
        for _ in range(2):
            shown = kemem("keys", "first", cwd=folder, env=env)
            assert shown.returncode == 0, shown.stderr
            assert shown.stdout == kept.read_text()
        with serving(folder / "used", env=env) as service:
            eventually(service.is_ready)
            answer = httpx.get(
                f"{service.address}/v1/memories?user_id=ana",
                headers={"Authorization": f"Bearer {shown.stdout.strip()}"},
                timeout=PATIENCE,
                trust_env=False,
            )
            assert answer.status_code == 200

    await asyncio.to_thread(play)


async def test_worker_touches_a_file_while_it_runs(dsn, folder):
    alive = folder / "alive"
    words = [*KEMEM, "worker", "--alive-file", str(alive)]
    env = environment({"DATABASE_URL": served(dsn)})

    def play():
        worker = subprocess.Popen(words, cwd=folder, env=env)
        try:
            eventually(alive.exists)
            os.utime(alive, (0, 0))
            eventually(lambda: alive.stat().st_mtime > 0)
        finally:
            worker.terminate()
            assert worker.wait() == 0
        refused = kemem("worker", "--alive-file", folder / "no" / "file", cwd=folder, env=env)
        assert refused.returncode == 2
        assert "--alive-file" in refused.stderr

    await asyncio.to_thread(play)


async def test_uvicorn_serves_the_module_level_app(dsn, folder):
    def play():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            number = listener.fileno()
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            process = subprocess.Popen(
                [*UVICORN, "--fd", str(number)],
                cwd=folder,
                env=environment({"DATABASE_URL": served(dsn)}),
                pass_fds=[number],
            )
        service = Service(process, folder, f"Address {address}", folder / "none")
        try:
            eventually(lambda: service.is_ready() or process.poll() is not None)
            assert service.is_ready()
            answer = httpx.get(f"{address}/v1/memories", timeout=PATIENCE, trust_env=False)
            assert answer.status_code == 401
            assert service.stop(signal.SIGTERM) in {0, -signal.SIGTERM}
        finally:
            process.kill()
            process.wait()

    await asyncio.to_thread(play)


@pytest.mark.parametrize(
    ("env", "words"),
    [
        ({}, "kemem: DATABASE_URL is not set. Set it, or run `kemem serve`"),
        ({"DATABASE_URL": "postgresql://a@b/c", "MEMORY_PROT": "1"}, "Unknown setting MEMORY_PROT"),
    ],
)
def test_uvicorn_cannot_serve_without_settings_that_work(env, words, folder):
    done = subprocess.run(
        UVICORN, cwd=folder, env=environment(env), capture_output=True, text=True, check=False
    )

    assert done.returncode == 1
    assert words in done.stderr
    assert "Traceback" not in done.stderr
