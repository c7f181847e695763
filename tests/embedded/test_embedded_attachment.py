"""Commands beside a running service, and commands alone."""

import asyncio
import json

import pytest
from embedded_support import notes, servers_on, service_on

from app.platform.embedded.attachment import attach, open_embedded
from app.platform.embedded.data_folder import DataFolderInUseError
from app.platform.embedded.server import EmbeddedPostgres


async def test_sharing_uses_the_server_of_a_running_service(data_dir):
    async with service_on(data_dir) as service:
        before = servers_on(data_dir)
        async with open_embedded(data_dir, share=True) as urls:
            assert urls.migration == service.dsn
            assert await notes(urls.migration) == ["made"]
        assert service.postmaster in servers_on(data_dir)
        assert service.postmaster in before
        assert await attach(data_dir) == urls


async def test_sharing_runs_a_server_when_there_is_none(data_dir):
    assert await attach(data_dir) is None
    async with open_embedded(data_dir, share=True) as urls:
        assert await notes(urls.migration) == ["made"]
    assert servers_on(data_dir) == []


async def test_asking_for_a_service_makes_no_folder(folder):
    assert await attach(folder / "nothing here") is None
    assert list(folder.iterdir()) == []


async def test_serving_never_shares(data_dir):
    async with open_embedded(data_dir, share=False):
        with pytest.raises(DataFolderInUseError):
            async with open_embedded(data_dir, share=False):
                pass


async def test_sharing_waits_for_a_service_that_is_starting(data_dir):
    postgres = EmbeddedPostgres(data_dir)
    start = asyncio.create_task(postgres.start())
    await asyncio.sleep(0)
    async with open_embedded(data_dir, share=True) as urls:
        await start
        assert urls == postgres.urls
    await postgres.stop()


async def test_the_command_that_runs_the_server_leaves_last(data_dir):
    host_is_in, guest_is_in, guest_may_go = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def host() -> None:
        async with open_embedded(data_dir, share=True):
            host_is_in.set()
            await guest_is_in.wait()

    async def client() -> list[str]:
        await host_is_in.wait()
        async with open_embedded(data_dir, share=True) as urls:
            guest_is_in.set()
            await guest_may_go.wait()
            return await notes(urls.migration)

    hosting, visiting = asyncio.create_task(host()), asyncio.create_task(client())
    await guest_is_in.wait()
    done, _ = await asyncio.wait([hosting], timeout=1)
    assert not done
    guest_may_go.set()
    assert await visiting == ["made"]
    await hosting
    assert servers_on(data_dir) == []


async def test_what_a_killed_service_wrote_is_not_believed(data_dir):
    async with service_on(data_dir) as service:
        await service.kill()
    assert (data_dir / "state.json").exists()
    assert await attach(data_dir) is None
    async with open_embedded(data_dir, share=True) as urls:
        assert await notes(urls.migration) == ["made"]


async def test_a_server_whose_service_is_dead_is_not_joined(data_dir):
    async with EmbeddedPostgres(data_dir) as postgres:
        assert await attach(data_dir) == postgres.urls
        # No system gives such a number.
        nobody = 2**31 - 1
        (data_dir / "kemem.lock").write_text(str(nobody))
        state = {"pid": nobody, "socket_folder": str(postgres.socket_folder)}
        (data_dir / "state.json").write_text(json.dumps(state))
        assert await attach(data_dir) is None
