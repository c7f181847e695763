"""What the OpenAI adapter says it has spent, against a real server that charges for it."""

import asyncio

import pytest
from openai import AsyncOpenAI

from app.language.llm.embedder import EmbeddingUse
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.llm.openai_embedder import OpenAIEmbedder, OpenAILimits
from tests.support.openai_server import (
    NATIVE_DIMENSION,
    Behaviour,
    OpenAIServer,
    a_web_page,
    charging,
    not_json,
    refusal,
    reporting,
    rows_of,
    slow,
    without_dimensions,
)
from tests.support.patience import until_asked

MODEL = "local-model"


@pytest.fixture
def embedder(client: AsyncOpenAI) -> OpenAIEmbedder:
    return OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, native=NATIVE_DIMENSION)


async def test_every_call_of_a_batch_is_counted_with_its_tokens(
    server: OpenAIServer, client: AsyncOpenAI
):
    server.otherwise = charging(7)
    embedder = OpenAIEmbedder(
        client, MODEL, NATIVE_DIMENSION, limits=OpenAILimits(texts_per_call=2)
    )
    use = EmbeddingUse()

    await embedder.embed(["one", "two", " ", "three", "four", "five"], use)
    assert use == EmbeddingUse(calls=3, failures=0, input_tokens=35)

    await embedder.embed([], use)
    await embedder.embed(["", " "], use)
    assert use.calls == 3

    # It is added to what was there, and not asked for.
    await embedder.embed(["six"], use)
    await embedder.embed(["seven"])
    assert use == EmbeddingUse(calls=4, failures=0, input_tokens=42)
    assert embedder.model == MODEL


async def test_a_long_answer_is_counted_too(server: OpenAIServer, embedder: OpenAIEmbedder):
    """It is read in a thread."""
    server.otherwise = charging(7)
    use = EmbeddingUse()

    await embedder.embed([f"text {number}" for number in range(128)], use)

    assert use == EmbeddingUse(calls=1, failures=0, input_tokens=128 * 7)


@pytest.mark.parametrize(
    ("usage", "tokens"),
    [
        ({"prompt_tokens": 12, "total_tokens": 13}, 12), ({"total_tokens": 13}, 13),
        ({"prompt_tokens": None, "total_tokens": 13}, 13), ({"prompt_tokens": 12.0}, 12),
        ({"prompt_tokens": "12"}, 0), ({"prompt_tokens": -1}, 0), ({"prompt_tokens": 0}, 0),
        ({"prompt_tokens": 999_999_999}, 999_999_999), ({"prompt_tokens": 10**9}, 10**9),
        ({"prompt_tokens": 10**9 + 1}, 10**9), ({"prompt_tokens": 10**30}, 10**9),
        ({"prompt_tokens": float("inf")}, 0), ({}, 0), (None, 0), ("many", 0), ([12], 0),
    ],
)  # fmt: skip
async def test_tokens_are_what_the_provider_says_and_nonsense_is_none(
    server: OpenAIServer, embedder: OpenAIEmbedder, usage: object, tokens: int
):
    async def behave(request):
        return reporting(usage, rows_of(request))

    server.otherwise = behave
    use = EmbeddingUse()

    await embedder.embed(["tea"], use)

    assert use == EmbeddingUse(calls=1, failures=0, input_tokens=tokens)


@pytest.mark.parametrize("behaviour", [refusal(500), refusal(401), not_json, a_web_page])
async def test_a_call_that_brought_nothing_is_a_failure(
    server: OpenAIServer, embedder: OpenAIEmbedder, behaviour: Behaviour
):
    server.otherwise = behaviour
    use = EmbeddingUse()

    with pytest.raises(EmbeddingUnavailableError):
        await embedder.embed(["tea"], use)

    assert use == EmbeddingUse(calls=1, failures=1, input_tokens=0)


async def test_what_cannot_be_used_has_its_price(server: OpenAIServer, embedder: OpenAIEmbedder):
    async def too_few(_):
        return reporting({"prompt_tokens": 9}, [])

    async def too_long(request):
        return reporting({"prompt_tokens": 9}, rows_of(request, NATIVE_DIMENSION + 1))

    server.script(too_few, too_long)
    use = EmbeddingUse()
    for _ in range(2):
        with pytest.raises(EmbeddingUnavailableError):
            await embedder.embed(["tea"], use)

    assert use == EmbeddingUse(calls=2, failures=2, input_tokens=18)


async def test_asking_anew_without_the_dimension_is_a_second_call(
    server: OpenAIServer, client: AsyncOpenAI
):
    server.script(without_dimensions)
    server.otherwise = charging(7)
    embedder = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION)
    use = EmbeddingUse()

    await embedder.embed(["tea"], use)

    assert use == EmbeddingUse(calls=2, failures=1, input_tokens=7)


async def test_what_was_paid_before_a_batch_failed_is_counted(
    server: OpenAIServer, client: AsyncOpenAI
):
    server.script(charging(7), refusal(500))
    limits = OpenAILimits(texts_per_call=1, concurrent_calls=1)
    embedder = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, limits=limits)
    use = EmbeddingUse()

    with pytest.raises(EmbeddingUnavailableError):
        await embedder.embed(["one", "two", "three"], use)

    assert use == EmbeddingUse(calls=2, failures=1, input_tokens=7)


async def test_a_call_that_nobody_waits_for_any_more_was_made(
    server: OpenAIServer, embedder: OpenAIEmbedder
):
    server.otherwise = slow(30)
    use = EmbeddingUse()
    asking = asyncio.create_task(embedder.embed(["tea"], use))
    await until_asked(server)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking

    assert use == EmbeddingUse(calls=1, failures=0, input_tokens=0)
