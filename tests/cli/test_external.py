"""`kemem` with DATABASE_URL: it migrates when told, and refuses to guess."""

import asyncio
import signal
import socket
import subprocess
import sys

import httpx
import pytest
from cli_support import (
    Service,
    assert_counted_together,
    environment,
    eventually,
    kemem,
    serving,
)

from tests.support.databases import new_database

UVICORN = [sys.executable, "-m", "uvicorn", "app.main:app"]

pytestmark = pytest.mark.slow


async def test_an_older_schema_is_refused_until_it_is_migrated(postgres, folder):
    env = {"DATABASE_URL": await new_database(postgres, "cli_old")}

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
        created = kemem("tenants", "create", "Acme", cwd=folder, env=env)
        assert "kem_" in created.stdout

    await asyncio.to_thread(play)


async def test_several_workers_serve_one_port_and_drain(dsn, folder):
    def play():
        with serving(folder / "many", "--workers", "2", env={"DATABASE_URL": dsn}) as service:
            assert "Key" not in service.greeting
            eventually(service.is_ready)
            assert_counted_together(service)
            assert service.stop(signal.SIGTERM) == 0
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{service.address}/livez", trust_env=False)

    await asyncio.to_thread(play)


async def test_uvicorn_serves_the_module_level_app(dsn, folder):
    def play():
        with socket.create_server(("127.0.0.1", 0)) as listener:
            number = listener.fileno()
            address = f"http://127.0.0.1:{listener.getsockname()[1]}"
            process = subprocess.Popen(
                [*UVICORN, "--fd", str(number)],
                cwd=folder,
                env=environment({"DATABASE_URL": dsn}),
                pass_fds=[number],
            )
        service = Service(process, folder, f"Address {address}", folder / "none")
        try:
            eventually(lambda: service.is_ready() or process.poll() is not None)
            assert service.is_ready()
            answer = httpx.get(f"{address}/v1/memories", trust_env=False)
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
