"""Steps that do not fit into one request, against the whole service in one process."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport
from langchain_core.messages import ToolMessage
from langgraph.checkpoint.base import empty_checkpoint

from kemem import AsyncMemory, ConflictError
from kemem.langgraph import KeMemSaver
from kemem.langgraph.checkpoints import STEP_BYTES
from tests.checkpoints.saver_support import rows
from tests.support.tenants import Caller

CONTENT = "/v1/sessions/trip/saver/content"


class KilledError(Exception):
    """The client went away."""


class Wire(ASGITransport):
    """The service; what it was sent, and a client that goes away after some parts."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app.state.reached, raise_app_exceptions=False)
        self.sent: list[tuple[str, int]] = []
        self.parts_left: int | None = None

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.url.path, len(request.content)))
        if request.url.path == CONTENT and self.parts_left is not None:
            if self.parts_left == 0:
                raise KilledError
            self.parts_left -= 1
        return await super().handle_async_request(request)

    def sizes(self, path: str = "") -> list[int]:
        return [size for at, size in self.sent if at.startswith(path)]


@pytest.fixture
def wire(app: FastAPI) -> Wire:
    return Wire(app)


@pytest.fixture
async def memory(wire: Wire, acme: Caller) -> AsyncIterator[AsyncMemory]:
    http = httpx.AsyncClient(transport=wire)
    async with AsyncMemory("http://test", acme.key, http_client=http) as opened:
        yield opened


@pytest.fixture
async def saver(memory: AsyncMemory) -> KeMemSaver:
    return KeMemSaver(memory, user_id="ana")


def noise(size: int, seed: int = 1) -> bytes:
    """Bytes that do not compress."""
    return random.Random(seed).randbytes(size)


def at(checkpoint_id: str | None = None) -> Any:
    named = {} if checkpoint_id is None else {"checkpoint_id": checkpoint_id}
    return {"configurable": {"thread_id": "trip", "checkpoint_ns": ""} | named}


async def put(saver: KeMemSaver, config: Any, **values: Any) -> Any:
    versions = {name: saver.get_next_version(None, None) for name in values}
    checkpoint = empty_checkpoint() | {"channel_values": values, "channel_versions": versions}
    return await saver.aput(config, checkpoint, {"source": "loop", "step": 1}, versions)


async def values(saver: KeMemSaver, config: Any) -> Any:
    found = await saver.aget_tuple(config)
    return None if found is None else found.checkpoint["channel_values"]


class TestLargeSteps:
    async def test_step_is_sent_once_in_parts_and_read_in_parts(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Wire
    ) -> None:
        """What a tool returned is written by its task, and is part of the next checkpoint."""
        first = await put(saver, at(), messages=["Read the file."])
        result = ToolMessage(noise(3_000_000).hex(), tool_call_id="c1")
        wire.sent.clear()

        await asyncio.gather(
            saver.aput_writes(first, [("messages", [result])], "task"),
            put(saver, first, messages=["Read the file.", result]),
        )

        # 3 MB of content, not well compressed, in base64; twice would be 9 MB.
        assert sum(wire.sizes()) < 1.25 * 3_000_000 * 4 / 3
        assert max(wire.sizes()) < 1.2 * 1024 * 1024
        fresh = KeMemSaver(memory, user_id="ana")
        assert (await values(fresh, at()))["messages"][1].content == result.content
        [(task, channel, written)] = (await fresh.aget_tuple(first)).pending_writes
        assert (task, channel, written[0].content) == ("task", "messages", result.content)
        read = wire.sizes(f"{CONTENT}/read")
        assert read == []  # It fits into a page.
        listed = [one async for one in fresh.alist(at())]
        assert listed[0].checkpoint["channel_values"]["messages"][1].content == result.content

        wire.sent.clear()
        await put(fresh, at(listed[0].checkpoint["id"]), messages=["Read the file.", result, "ok"])
        assert sum(wire.sizes()) < 100_000

    async def test_checkpoint_larger_than_a_page_is_read_in_parts(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Wire
    ) -> None:
        data = noise(9_000_000)
        stored = await put(saver, at(), data=data)
        await saver.aput_writes(stored, [("data", data[:100_000]), ("small", 1)], "task")
        wire.sent.clear()

        found = await KeMemSaver(memory, user_id="ana").aget_tuple(at())

        assert found.checkpoint["channel_values"] == {"data": data}
        assert [one[2] for one in found.pending_writes] == [data[:100_000], 1]
        assert len(wire.sizes(f"{CONTENT}/read")) == 2

    @pytest.mark.parametrize(
        "beyond",
        [pytest.param(-1, marks=pytest.mark.slow), pytest.param(0, marks=pytest.mark.slow), 1],
    )
    async def test_step_has_a_limit(self, saver: KeMemSaver, wire: Wire, beyond: int) -> None:
        """All values that change, and likewise all writes of a task."""
        first = await put(saver, at(), small=[1])
        half = bytes(STEP_BYTES // 2)
        large = {"a": half, "b": half + bytes(max(beyond, 0))}
        if beyond < 0:
            large["b"] = half[:beyond]
        wire.sent.clear()
        if beyond > 0:
            for call in (
                put(saver, first, **large), saver.aput_writes(first, [*large.items()], "task"),
            ):  # fmt: skip
                with pytest.raises(ValueError, match=r"50,331,648.*50,331,649: 25,165,825.*'b'"):
                    await call
            assert wire.sent == []
            assert await values(saver, at()) == {"small": [1]}
            return

        second = await put(saver, first, **large)
        await saver.aput_writes(second, [*large.items()], "task")

        found = await saver.aget_tuple(at())
        assert found.checkpoint["channel_values"] == large
        assert {name: value for _, name, value in found.pending_writes} == large


class TestGoneBetweenParts:
    async def test_nothing_is_half_written_and_the_parts_are_used(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Wire, acme: Caller, dsn: str
    ) -> None:
        first = await put(saver, at(), data=b"before")
        before = await rows(dsn, acme.tenant_id)
        data = noise(4_000_000)
        wire.parts_left = 3
        for call in (
            put(saver, first, data=data), saver.aput_writes(first, [("data", data)], "task"),
        ):  # fmt: skip
            with pytest.raises(KilledError):
                await call

        other = KeMemSaver(memory, user_id="ana")
        assert await values(other, at()) == {"data": b"before"}
        assert (await other.aget_tuple(at())).pending_writes == []
        after = await rows(dsn, acme.tenant_id)
        assert after["saver_chunks"] > before["saver_chunks"] + 100
        assert after | {"saver_chunks": 0} == before | {"saver_chunks": 0}

        wire.parts_left = None
        await put(other, first, data=data)
        assert await values(other, at()) == {"data": data}

    async def test_parts_that_were_deleted_meanwhile_are_sent_again(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Wire
    ) -> None:
        data = noise(4_000_000)
        await put(saver, at(), data=b"before")
        wire.parts_left = 2
        with pytest.raises(KilledError):
            await put(saver, at(), data=data)
        await KeMemSaver(memory, user_id="ana").adelete_thread("trip")
        wire.parts_left = None

        await put(saver, at(), data=data)  # It believes that the first parts are there.

        assert await values(saver, at()) == {"data": data}

    async def test_large_writes_of_a_refused_checkpoint_are_not_sent_again_and_again(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Wire
    ) -> None:
        await memory.append("trip", "Hello.", user_id="ana")
        await memory.end("trip")
        wire.sent.clear()

        with pytest.raises(ConflictError):
            await put(saver, at(), data=noise(4_000_000))

        assert len(wire.sizes(CONTENT)) == 1
