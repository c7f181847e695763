"""Whoever waits for a reading while the model's endpoint takes connections and answers nothing."""

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
from httpx import AsyncClient

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


@pytest.fixture
async def hanging(model_runtime: Runtime) -> AsyncIterator[ExtractionService]:
    """Whose endpoint never answers, and whose jobs no worker takes."""
    async with silent_server() as base_url:
        endpoint = OpenAIParameters(base_url=base_url, timeout=timedelta(hours=1))
        models = ModelCatalogue(
            "openai/reader", rules=model_runtime.models.keyless, openai=endpoint
        )
        yield ExtractionService(
            model_runtime.work,
            models,
            RunLimits(3, Quota()),
            model_runtime.now,
            patience=timedelta(milliseconds=10),
        )
        await models.aclose()


async def test_silent_endpoint_is_told_and_the_job_stays(
    client: AsyncClient, hanging: ExtractionService
) -> None:
    said = await append(client, "talk", "The user lives in Munich.", REPLY)
    principal = Principal(Access(client.tenant_id), "key", frozenset({"write"}), {})

    with pytest.raises(ModelUnavailableError) as caught:
        await hanging.extract(principal, "talk", ExtractRequest(wait=True))

    assert caught.value.reason == "timeout"
    job = ok(await client.get(f"/jobs/{said['extraction']['job_id']}"))
    assert job["status"] == "pending"
    assert ok(await client.get("/sessions/talk"))["last_extracted_seq"] == 0
