"""`kemem` with DATABASE_URL: it migrates when told, and refuses to guess."""

import asyncio
import signal

import httpx
import pytest
from cli_support import eventually, kemem, serving

from tests.support.databases import new_database

pytestmark = pytest.mark.slow


async def test_an_older_schema_is_refused_until_it_is_migrated(postgres, folder):
    env = {"DATABASE_URL": await new_database(postgres, "cli_old")}

    def play():
        refused = kemem("serve", "--port", "0", cwd=folder, env=env)
        assert refused.returncode == 2
        assert "run `kemem migrate`" in refused.stderr
        assert kemem("migrate", "--check", cwd=folder, env=env).returncode == 1
        migrated = kemem("migrate", cwd=folder, env=env)
        assert migrated.returncode == 0, migrated.stderr
        assert "was at nothing" in migrated.stdout
        created = kemem("tenants", "create", "Acme", cwd=folder, env=env)
        assert "kem_" in created.stdout

    await asyncio.to_thread(play)


def assert_counted_together(service):
    def asked():
        return [
            float(line.rsplit(" ", 1)[1])
            for line in httpx.get(f"{service.address}/metrics", trust_env=False).text.splitlines()
            if line.startswith("kemem_requests_total{") and '"/livez"' in line
        ]

    for _ in range(40):
        assert httpx.get(f"{service.address}/livez", trust_env=False).status_code == 200
    # Either worker answers some of these, and both say the same.
    assert [asked() for _ in range(8)] == [[40.0]] * 8


async def test_several_workers_serve_one_port_and_drain(dsn, folder):
    def play():
        with serving(folder / "many", "--workers", "2", env={"DATABASE_URL": dsn}) as service:
            assert "Key" not in service.greeting
            eventually(service.is_ready, seconds=60)
            assert_counted_together(service)
            assert service.stop(signal.SIGTERM) == 0
            with pytest.raises(httpx.TransportError):
                httpx.get(f"{service.address}/livez", trust_env=False)

    await asyncio.to_thread(play)
