"""Whoever waits for a reading while the model's endpoint takes connections and answers nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta

import pytest
from httpx import AsyncClient
from sqlalchemy import text

from app.errors import UnavailableError
from app.identity.tenants.access import Access, Principal
from app.identity.usage.quota import Quota
from app.language.llm.embedder_catalogue import OpenAIParameters
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.run_policy import RunLimits
from app.memory.extraction.schemas import ExtractRequest
from app.memory.extraction.service import ExtractionService
from app.runtime import Runtime
from tests.support.api import append, ok
from tests.support.silent_server import silent_server

REPLY = {"role": "assistant", "content": "I see."}

CLOSE, ANSWER = "close", "answer"
READ = "UPDATE sessions SET last_extracted_seq = last_sequence_no"
PUT_OFF = "UPDATE jobs SET deferred_reason = 'rate_limited', due_at = '2026-05-01 00:00:09Z'"


@asynccontextmanager
async def waiting(
    runtime: Runtime, base_url: str, now: datetime | None = None
) -> AsyncIterator[ExtractionService]:
    """Whose model is at that address, and whose jobs no worker takes."""
    endpoint = OpenAIParameters(base_url=base_url, timeout=timedelta(hours=1))
    models = ModelCatalogue("openai/reader", rules=runtime.models.keyless, openai=endpoint)
    yield ExtractionService(
        runtime.work,
        models,
        RunLimits(3, Quota()),
        runtime.now if now is None else lambda: now,
        patience=timedelta(milliseconds=10),
    )
    await models.aclose()


def principal_of(client: AsyncClient) -> Principal:
    return Principal(Access(client.tenant_id), "key", frozenset({"write"}), {})


class Endpoint:
    """Takes connections, and after what is told for each it closes it without a word, or answers
    that there is no list of models.
    """

    def __init__(self, runtime: Runtime, tenant_id: str, *steps: str) -> None:
        """After a step with SQL that has been done, without a word."""
        self._runtime = runtime
        self._tenant_id = tenant_id
        self.steps = list(steps)

    async def take(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        step = self.steps.pop(0)
        if step == ANSWER:
            writer.write(b"HTTP/1.1 404 Not Found\r\nContent-Length: 0\r\n\r\n")
            await writer.drain()
        elif step != CLOSE:
            async with self._runtime.database.begin(self._tenant_id) as db:
                await db.execute(text(step))
        writer.close()

    @asynccontextmanager
    async def open(self, now: datetime | None = None) -> AsyncIterator[ExtractionService]:
        async with await asyncio.start_server(self.take, "127.0.0.1", 0) as server:
            port = server.sockets[0].getsockname()[1]
            async with waiting(self._runtime, f"http://127.0.0.1:{port}/v1", now) as service:
                yield service


@pytest.mark.parametrize("before", [(CLOSE,), (CLOSE, ANSWER, CLOSE)])
async def test_run_that_ends_during_the_second_silence_in_a_row_is_answered(
    client: AsyncClient, model_runtime: Runtime, before: tuple[str, ...]
) -> None:
    await append(client, "talk", "The user lives in Munich.", REPLY)
    endpoint = Endpoint(model_runtime, client.tenant_id, *before, READ)

    async with endpoint.open() as service:
        answer, status = await service.extract(
            principal_of(client), "talk", ExtractRequest(wait=True)
        )

    assert (answer.done, status) == (True, 200)
    assert endpoint.steps == []


async def test_silence_says_why_and_when_the_job_is_tried_again(
    client: AsyncClient, model_runtime: Runtime
) -> None:
    await append(client, "talk", "The user lives in Munich.", REPLY)
    endpoint = Endpoint(model_runtime, client.tenant_id, PUT_OFF, CLOSE)

    async with endpoint.open(datetime(2026, 5, 1, tzinfo=UTC)) as service:
        with pytest.raises(ModelUnavailableError) as caught:
            await service.extract(principal_of(client), "talk", ExtractRequest(wait=True))

    assert caught.value.reason == "connection"
    assert caught.value.headers == {"Retry-After": "9"}


async def test_silent_endpoint_is_told_and_the_job_stays(
    client: AsyncClient, model_runtime: Runtime
) -> None:
    said = await append(client, "talk", "The user lives in Munich.", REPLY)

    async with silent_server() as base_url, waiting(model_runtime, base_url) as service:
        with pytest.raises(ModelUnavailableError) as caught:
            await service.extract(principal_of(client), "talk", ExtractRequest(wait=True))

    assert (caught.value.reason, caught.value.headers) == ("timeout", UnavailableError.headers)
    job = ok(await client.get(f"/jobs/{said['extraction']['job_id']}"))
    assert job["status"] == "pending"
    assert ok(await client.get("/sessions/talk"))["last_extracted_seq"] == 0
