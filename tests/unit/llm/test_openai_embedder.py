"""The OpenAI adapter against a real server that misbehaves on request."""

import asyncio
import threading
from datetime import timedelta

import numpy as np
import pytest
from openai import AsyncOpenAI

from app.errors import ConfigurationError
from app.language.llm.embedder import Embedder
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.llm.openai_embedder import OpenAIEmbedder, OpenAILimits
from tests.support.chat_behaviours import held
from tests.support.openai_server import (
    NATIVE_DIMENSION,
    Behaviour,
    OpenAIServer,
    a_plain_object,
    a_web_page,
    all_numbered_zero,
    good,
    in_dimension,
    not_finite,
    not_json,
    one_short,
    ragged,
    refusal,
    shuffled,
    slow,
    vector_of,
    without_dimensions,
    zeros,
)
from tests.support.patience import PATIENCE

MODEL = "local-model"
SECRETS = ("sk-secret", "hush", "my diary")


@pytest.fixture
def embedder(client: AsyncOpenAI) -> OpenAIEmbedder:
    return OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, native=NATIVE_DIMENSION)


async def failure(embedder: Embedder, texts: list[str] | None = None) -> EmbeddingUnavailableError:
    with pytest.raises(EmbeddingUnavailableError) as caught:
        await embedder.embed(texts or ["my diary", "more of it", "and more"])
    return caught.value


async def test_vectors_are_the_servers_at_unit_length(embedder: OpenAIEmbedder):
    [row] = await embedder.embed(["绿茶 🍵"])

    expected = np.array(vector_of("绿茶 🍵", NATIVE_DIMENSION))
    assert row == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


async def test_plain_numbers_are_asked_for(server: OpenAIServer, embedder: OpenAIEmbedder):
    await embedder.embed(["tea"])

    [request] = server.requests
    assert request.body["encoding_format"] == "float"
    assert request.headers["authorization"] == "Bearer sk-secret"


async def test_answers_out_of_order_are_put_in_order(
    server: OpenAIServer, embedder: OpenAIEmbedder
):
    straight = await embedder.embed(["one", "two", "three"])
    server.script(shuffled)

    assert (await embedder.embed(["one", "two", "three"]) == straight).all()


@pytest.mark.parametrize(
    ("behaviour", "words"),
    [
        (one_short, "2 vectors for 3 texts"),
        (in_dimension(32), f"32 dimensions; {NATIVE_DIMENSION}"),
        (ragged, "63 and of 64 dimensions"),
        (all_numbered_zero, "numbered"),
        (not_finite, "not finite"),
        (not_json, "not a list of embeddings"),
        (a_web_page, "not a list of embeddings"),
        (a_plain_object, "not a list of embeddings"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
async def test_an_answer_that_does_not_fit_is_refused(
    server: OpenAIServer, embedder: OpenAIEmbedder, behaviour: Behaviour, words: str
):
    server.otherwise = behaviour

    error = await failure(embedder)

    assert error.members == {"reason": "bad_answer"}
    assert words in error.detail


async def test_a_vector_of_zeros_stays_one(server: OpenAIServer, embedder: OpenAIEmbedder):
    server.script(zeros)

    assert not (await embedder.embed(["tea", "coffee"])).any()


@pytest.mark.parametrize(
    ("status", "code", "reason"),
    [
        (400, "bad", "refused"),
        (401, "invalid_api_key", "authentication"),
        (403, "forbidden", "authentication"),
        (404, "model_not_found", "model_not_found"),
        (422, "bad", "refused"),
        (429, "rate_limit_exceeded", "rate_limited"),
        (429, "insufficient_quota", "quota_exhausted"),
        (500, "oops", "provider_error"),
        (503, "overloaded", "provider_error"),
    ],
)
async def test_a_failure_says_its_reason_and_keeps_secrets(
    server: OpenAIServer, embedder: OpenAIEmbedder, status: int, code: str, reason: str
):
    server.script(refusal(status, code=code, message="hush: sk-secret said 'my diary'"))

    error = await failure(embedder)

    assert error.status == 503
    assert error.code == "embedding_unavailable"
    assert error.members == {"reason": reason, "provider_status": status, "provider_code": code}
    assert not any(secret in f"{error} {error.members}" for secret in SECRETS)


async def test_a_code_that_is_no_plain_word_is_left_out(
    server: OpenAIServer, embedder: OpenAIEmbedder
):
    server.script(refusal(400, code="cannot embed 'my diary'"))

    assert (await failure(embedder)).members == {"reason": "refused", "provider_status": 400}


async def test_a_provider_that_is_too_slow_is_a_timeout(server: OpenAIServer):
    server.script(slow(1.0))
    async with server.client(timeout=0.1) as client:
        error = await failure(OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION))

    assert error.reason == "timeout"


async def test_a_provider_that_is_not_there_is_a_connection_failure():
    # Port 9 (discard) of this machine, where nothing listens.
    async with AsyncOpenAI(api_key="k", base_url="http://127.0.0.1:9/v1", max_retries=0) as client:
        error = await failure(OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION))

    assert error.reason == "connection"


async def test_what_may_pass_is_asked_again(server: OpenAIServer):
    server.script(refusal(429, retry_after="0.01"), refusal(500, retry_after="0.01"), good)
    async with server.client(max_retries=2) as client:
        vectors = await OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION).embed(["tea"])

    assert vectors.any()
    assert len(server.requests) == 3


@pytest.mark.parametrize(("asked", "told"), [(None, None), ("0.25", "1"), ("7", "7")])
async def test_a_failure_says_how_long_the_provider_asks_to_wait(
    server: OpenAIServer, asked: str | None, told: str | None
):
    server.script(refusal(429, retry_after=asked))
    async with server.client() as client:
        error = await failure(OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION))

    assert error.retry_after == (None if asked is None else timedelta(seconds=float(asked)))
    assert error.headers.get("Retry-After") == (told or "5")


async def test_an_endpoint_that_hangs_costs_one_timeout(
    server: OpenAIServer, release: threading.Event
):
    server.otherwise = held(release, good)
    async with server.client(timeout=0.5, max_retries=2) as client:
        error = await failure(OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION))

    assert error.reason == "timeout"
    assert len(server.requests) <= 1


async def test_large_batches_are_split_by_texts_and_by_bytes(
    server: OpenAIServer, client: AsyncOpenAI
):
    limits = OpenAILimits(texts_per_call=10, bytes_per_call=100, concurrent_calls=1)
    embedder = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, limits=limits)
    # 25 short ones in calls of 10; then 30 + 60 bytes fit one call, a further 60 do not.
    texts = [f"t{number}" for number in range(25)] + ["绿" * 10, "茶" * 20, "茶" * 20]

    vectors = await embedder.embed(texts)

    assert server.batch_sizes == [10, 10, 6, 1, 1]
    assert max(sum(len(text.encode()) for text in r.texts) for r in server.requests) <= 100
    for text, row in zip(texts, vectors, strict=True):
        expected = np.array(vector_of(text, NATIVE_DIMENSION))
        assert row == pytest.approx(expected / np.linalg.norm(expected), abs=1e-6)


async def test_the_default_batch_is_128(server: OpenAIServer, embedder: OpenAIEmbedder):
    await embedder.embed(["tea"] * 300)

    assert sorted(server.batch_sizes) == [44, 128, 128]


async def test_blank_texts_are_never_sent(server: OpenAIServer, embedder: OpenAIEmbedder):
    await embedder.embed(["", "  "])
    await embedder.embed(["", "tea", "\n"])

    assert [request.texts for request in server.requests] == [["tea"]]


async def test_no_more_calls_run_at_once_than_allowed(server: OpenAIServer, client: AsyncOpenAI):
    limits = OpenAILimits(texts_per_call=1, concurrent_calls=3)
    slots = asyncio.Semaphore(3)
    server.otherwise = slow(0.02)
    one = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, limits=limits, slots=slots)
    other = OpenAIEmbedder(client, "other", NATIVE_DIMENSION, limits=limits, slots=slots)

    await asyncio.gather(*(each.embed(["tea"] * 8) for each in (one, other)))

    assert server.most_at_once == 3


async def test_a_query_does_not_wait_for_a_whole_batch(server: OpenAIServer, client: AsyncOpenAI):
    limits = OpenAILimits(texts_per_call=1, concurrent_calls=2)
    embedder = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, limits=limits)
    server.otherwise = slow(0.02)
    batch = asyncio.create_task(embedder.embed(["tea"] * 20))
    await asyncio.sleep(0.01)

    await embedder.embed(["query"])

    assert ["query"] in [request.texts for request in server.requests[:6]]
    await batch


async def test_one_failed_call_fails_the_batch_and_stops_the_rest(
    server: OpenAIServer, client: AsyncOpenAI
):
    limits = OpenAILimits(texts_per_call=1, concurrent_calls=2)
    embedder = OpenAIEmbedder(client, MODEL, NATIVE_DIMENSION, limits=limits)
    server.script(good, refusal(401))
    server.otherwise = slow(0.05)

    error = await failure(embedder, ["tea"] * 50)

    assert error.reason == "authentication"
    assert error.__cause__ is not None
    assert len(server.requests) < 6
    # The slots are free again.
    assert (await asyncio.wait_for(embedder.embed(["tea"] * 4), PATIENCE)).any()


@pytest.mark.parametrize(
    ("text", "sent"),
    [("a" * 20_000, "a" * 8_191), ("茶" * 9_000, "茶" * 2_730), ("a" * 8_191, "a" * 8_191)],
    ids=["Latin", "Chinese", "just fits"],
)
async def test_a_text_is_cut_where_it_cannot_have_too_many_tokens(
    server: OpenAIServer, embedder: OpenAIEmbedder, text: str, sent: str
):
    await embedder.embed([text])

    assert server.requests[0].texts == [sent]


class TestDimension:
    async def test_of_a_known_model_needs_no_call(self, server: OpenAIServer, client: AsyncOpenAI):
        embedder = await OpenAIEmbedder.open(client, "text-embedding-3-small")

        assert embedder.name == "openai/text-embedding-3-small:1536"
        assert server.requests == []
        await embedder.embed(["tea"])
        assert "dimensions" not in server.requests[0].body

    async def test_of_another_model_is_asked_of_the_endpoint(
        self, server: OpenAIServer, client: AsyncOpenAI
    ):
        embedder = await OpenAIEmbedder.open(client, "BAAI/bge-m3")

        assert embedder.name == f"openai/BAAI/bge-m3:{NATIVE_DIMENSION}"
        await embedder.embed(["tea"])
        assert ["dimensions" in request.body for request in server.requests] == [False, False]

    async def test_shorter_than_the_models_is_asked_for(
        self, server: OpenAIServer, client: AsyncOpenAI
    ):
        embedder = await OpenAIEmbedder.open(client, "text-embedding-3-large", 256)

        assert (await embedder.embed(["tea"])).shape == (1, 256)
        assert server.requests[0].body["dimensions"] == 256

    @pytest.mark.parametrize(
        ("model", "dimension"),
        [
            ("text-embedding-3-small", 3072),
            ("text-embedding-ada-002", 256),
            ("text-embedding-3-small", 0),
            (MODEL, 0),
        ],
    )
    async def test_that_the_model_cannot_have_is_refused_at_start(
        self, client: AsyncOpenAI, model: str, dimension: int
    ):
        with pytest.raises(ConfigurationError, match="MEMORY_EMBEDDING_DIM"):
            await OpenAIEmbedder.open(client, model, dimension)

    async def test_given_for_a_strict_server_works_without_the_argument(
        self, server: OpenAIServer, client: AsyncOpenAI
    ):
        server.otherwise = without_dimensions
        embedder = await OpenAIEmbedder.open(client, MODEL, NATIVE_DIMENSION)

        await embedder.embed(["tea"])
        await embedder.embed(["tea"])

        assert ["dimensions" in request.body for request in server.requests] == [True, False, False]

    async def test_is_asked_for_again_after_an_unrelated_refusal(
        self, server: OpenAIServer, client: AsyncOpenAI
    ):
        embedder = await OpenAIEmbedder.open(client, MODEL, 16)
        server.script(refusal(400), refusal(400))
        assert (await failure(embedder)).reason == "refused"

        assert (await embedder.embed(["tea"])).shape == (1, 16)

    @pytest.mark.parametrize(
        "behaviour", [refusal(401, message="hush sk-secret"), refusal(404), refusal(500), not_json]
    )
    async def test_that_cannot_be_asked_stops_the_start_with_advice(
        self, server: OpenAIServer, client: AsyncOpenAI, behaviour: Behaviour
    ):
        server.otherwise = behaviour

        with pytest.raises(ConfigurationError) as caught:
            await OpenAIEmbedder.open(client, MODEL)

        message = str(caught.value)
        for setting in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "MEMORY_EMBEDDING_MODEL"):
            assert setting in message
        assert not any(secret in message for secret in SECRETS)
