"""Stopping, dying and starting again; the folder's data outlives all of it."""

import asyncio
import signal
import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress

import asyncpg
import httpx
import psutil
import pytest
from cli_support import KEMEM, embedded, environment, eventually, is_running, kemem

from app.platform.embedded.attachment import attach, open_embedded
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

MESSAGES = {"user_id": "ana", "messages": [{"role": "user", "content": "Wait for me."}]}


def save(service, text):
    with service.client() as client:
        body = {"messages": text, "user_id": "ana", "infer": False}
        assert client.post("/memories", json=body).status_code == 201


def remembered(service):
    with service.client() as client:
        return [one["content"] for one in client.get("/memories").json()["items"]]


def test_data_and_key_survive_a_restart_and_a_lost_key_is_replaced(data_dir, tmp_path):
    with embedded(data_dir, env={"XDG_STATE_HOME": str(tmp_path)}) as service:
        key = service.key
        save(service, "It was said before.")
        assert list((tmp_path / "kemem" / "services").iterdir())
        assert service.stop() == 0
        assert not list((tmp_path / "kemem" / "services").iterdir())
    with embedded(data_dir) as service:
        assert service.key == key
        assert remembered(service) == ["It was said before."]
        assert service.stop(signal.SIGINT) == 0
    (data_dir / "key").unlink()
    with embedded(data_dir) as service:
        assert service.key != key
        assert "there is a new one" in service.greeting
        assert remembered(service) == ["It was said before."]


def test_a_start_with_a_disabled_tenant_says_how_to_enable_it(data_dir):
    done = kemem("tenants", "disable", "default", "--data-dir", data_dir, cwd=data_dir.parent)
    assert done.returncode == 0, done.stderr
    with embedded(data_dir) as service:
        assert "kemem tenants enable default" in service.greeting
        with service.client() as client:
            assert client.get("/memories").json()["code"] == "tenant_disabled"


def test_a_killed_service_leaves_nothing_and_starts_again(data_dir):
    with embedded(data_dir) as service:
        save(service, "It was said before.")
        postgres = service.postgres()
        service.process.kill()
        service.process.wait()
        eventually(lambda: not any(is_running(pid) for pid in postgres))
    with embedded(data_dir) as service:
        assert remembered(service) == ["It was said before."]


@asynccontextmanager
async def held_session(data_dir):
    """A lock on the session of MESSAGES, for which an append must wait."""
    connection = await asyncpg.connect((await attach(data_dir)).migration)
    try:
        await connection.execute("SET ROLE kemem_owner")
        await connection.execute("BEGIN")
        await connection.execute("SELECT 1 FROM sessions WHERE session_id = 's' FOR UPDATE")
        yield connection
    finally:
        connection.terminate()


async def waiting_append(service, connection, pool):
    """An append that waits for the lock; its answer is in the future."""

    def append():
        with service.client() as client:
            return client.post("/sessions/s/messages", json=MESSAGES)

    answer = pool.submit(append)
    async with asyncio.timeout(PATIENCE):
        while not await connection.fetchval(  # noqa: ASYNC110 (only the table says so)
            "SELECT count(*) FROM pg_locks WHERE NOT granted"
        ):
            await asyncio.sleep(0.02)
    return answer


async def test_a_request_that_runs_is_answered_before_the_end(data_dir):
    with embedded(data_dir) as service, ThreadPoolExecutor() as pool:
        with service.client() as client:
            assert client.post("/sessions/s/messages", json=MESSAGES).status_code == 201
        postgres = service.postgres()
        async with held_session(data_dir) as connection:
            answer = await waiting_append(service, connection, pool)
            service.process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(eventually, lambda: not service.is_ready())
            assert service.process.poll() is None
            await connection.execute("COMMIT")
        assert (await asyncio.wrap_future(answer)).status_code == 201
        assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
        assert not any(is_running(pid) for pid in postgres)


async def test_a_second_signal_forces_and_still_stops_postgresql(data_dir):
    with embedded(data_dir) as service, ThreadPoolExecutor() as pool:
        with service.client() as client:
            assert client.post("/sessions/s/messages", json=MESSAGES).status_code == 201
        postgres = service.postgres()
        async with held_session(data_dir) as connection:
            answer = await waiting_append(service, connection, pool)
            service.process.send_signal(signal.SIGINT)
            await asyncio.to_thread(eventually, lambda: not service.is_ready())
            service.process.send_signal(signal.SIGINT)
            assert await asyncio.to_thread(service.process.wait, PATIENCE) == 0
        with suppress(httpx.TransportError):
            assert (await asyncio.wrap_future(answer)).status_code >= 500
        assert not any(is_running(pid) for pid in postgres)


async def test_a_newer_schema_is_refused(data_dir):
    async with open_embedded(data_dir, share=False) as urls:
        connection = await asyncpg.connect(urls.migration)
        await connection.execute("SET ROLE kemem_owner")
        await connection.execute("UPDATE alembic_version SET version_num = '9999'")
        await connection.close()
    done = await asyncio.to_thread(kemem, "serve", "--data-dir", data_dir, cwd=data_dir.parent)
    assert done.returncode == 2
    assert "newer than this release" in done.stderr


def test_the_start_can_be_interrupted(data_dir):
    process = subprocess.Popen(
        [*KEMEM, "serve", "--port", "0", "--data-dir", str(data_dir)],
        env=environment(), stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    eventually((data_dir / "state.json").exists)
    postgres = [one.pid for one in psutil.Process(process.pid).children(recursive=True)]
    process.terminate()
    assert process.wait(PATIENCE) == 0
    assert not any(is_running(pid) for pid in postgres)
