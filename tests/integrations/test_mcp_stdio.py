"""`kemem mcp` and `kemem-mcp` as a desktop starts them, before a service on a socket."""

import asyncio
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from mcp import MCPError, StdioServerParameters
from mcp.client import Client

from tests.support.desktop import called, refused
from tests.support.patience import PATIENCE
from tests.support.service import listening
from tests.support.tenants import Caller, make_key

ROOT = Path(__file__).parents[2]
PROGRAMS = [["-m", "kemem.mcp"], ["-m", "app.cli.main", "mcp"]]


def started(program: list[str], **chosen: str) -> StdioServerParameters:
    """A program with nothing of this process' environment but where our code is."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT)} | chosen
    return StdioServerParameters(command=sys.executable, args=program, env=environment)


@pytest.fixture
async def url(app) -> AsyncIterator[str]:
    async with listening(app) as port:
        yield f"http://127.0.0.1:{port}"


class TestPrograms:
    @pytest.mark.parametrize("program", PROGRAMS)
    @pytest.mark.parametrize("mode", ["legacy", "auto"])
    async def test_a_desktop_saves_finds_and_reads(
        self, url, runtime, acme: Caller, program: list[str], mode: str
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        server = started(program, KEMEM_URL=url, KEMEM_API_KEY=key.key)
        async with Client(server, mode=mode) as client:
            version = {"legacy": "2025-11-25", "auto": "2026-07-28"}[mode]
            assert client.protocol_version == version
            assert len((await client.list_tools()).tools) == 9
            saved = await called(client, "memory_save", content="她早上喝绿茶。")
            found = await called(client, "memory_search", query="绿茶")
            assert [one["memory_id"] for one in found["items"]] == [saved["memory_id"]]
            [profile] = (await client.list_resources()).resources
            assert (await client.read_resource(str(profile.uri))).contents
            many = [called(client, "memory_search", query="绿茶") for _ in range(10)]
            assert all(answer["items"] for answer in await asyncio.gather(*many))

    async def test_a_user_is_named_by_an_option(self, url, acme: Caller) -> None:
        program = ["-m", "kemem.mcp", "--url", url, "--user", "ana"]
        async with Client(started(program, KEMEM_API_KEY=acme.key), mode="legacy") as client:
            await called(client, "memory_save", content="Ana sails on Sundays.")
            assert (await refused(client, "memory_list", user_id="ben"))[0] == "user_not_found"

    async def test_a_wrong_key_is_told_at_the_handshake(self, url) -> None:
        server = started(PROGRAMS[0], KEMEM_URL=url, KEMEM_API_KEY="kem_no")
        with pytest.raises(BaseExceptionGroup) as failed:
            async with Client(server, mode="legacy"):
                pass

        error: BaseException = failed.value
        while isinstance(error, BaseExceptionGroup):
            [error] = error.exceptions
        assert isinstance(error, MCPError)
        assert error.error.message == "Unknown API key: This key is not known here."
        assert error.error.data == {"code": "unknown_key"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_without_a_key_a_sentence_says_where_one_is_looked_for(program, tmp_path) -> None:
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT),
                   "MEMORY_DATA_DIR": str(tmp_path)}  # fmt: skip
    done = subprocess.run(
        [sys.executable, *program], env=environment, input="", capture_output=True, text=True,
        timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode != 0
    assert done.stdout == ""
    assert done.stderr.startswith("kemem: There is no API key for http://127.0.0.1:8000")
    assert "Traceback" not in done.stderr


def test_without_a_service_a_sentence_says_how_to_start_one() -> None:
    """The port is one that nothing listens on: it was given and taken back."""
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": str(ROOT),
                   "KEMEM_URL": "http://127.0.0.1:9", "KEMEM_API_KEY": "kem_1"}  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-m", "kemem.mcp"], env=environment, input="", capture_output=True,
        text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr.startswith("kemem: no service answers at http://127.0.0.1:9: start it with")
