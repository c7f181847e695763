"""What every adapter owes its callers; each test runs against all of them."""

import asyncio
import re

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from openai import AsyncOpenAI

from app.language.llm.embedder import Embedder
from app.language.llm.openai_embedder import OpenAIEmbedder
from app.language.llm.wordllama_embedder import WordLlamaEmbedder

TEXTS = [
    "She drinks green tea in the morning.",
    "用户早上喝绿茶。",
    "ユーザーは東京に住んでいます",
    "Lives in 北京, works at Löwenbräu 🍺",
    "🧑‍🚀🚀",
    "𓀀𓂀 ꙮ",
    "nul \x00 and \u200b nothing",
    "half an emoji: \ud83d",
]
BLANK = ["", " ", "\n\t  ", "\u3000"]


@pytest.fixture(params=["wordllama", "openai"])
async def embedder(
    request: pytest.FixtureRequest, wordllama: WordLlamaEmbedder, client: AsyncOpenAI
) -> Embedder:
    if request.param == "wordllama":
        return wordllama
    return await OpenAIEmbedder.open(client, "local-model")


async def test_the_name_says_provider_model_and_dimension(embedder: Embedder):
    assert re.fullmatch(rf"[a-z]+/[^/]+:{embedder.dimension}", embedder.name)


async def test_the_model_is_in_the_name(embedder: Embedder):
    assert embedder.name.split("/", 1)[1] == f"{embedder.model}:{embedder.dimension}"


async def test_there_is_one_unit_row_of_single_precision_per_text(embedder: Embedder):
    vectors = await embedder.embed(TEXTS)

    assert vectors.shape == (len(TEXTS), embedder.dimension)
    assert vectors.dtype == np.float32
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(len(TEXTS)), abs=1e-6)


async def test_rows_keep_the_order_of_the_texts_and_do_not_depend_on_the_batch(
    embedder: Embedder,
):
    texts = [*TEXTS, *BLANK, "long " * 900, *TEXTS[::-1]]

    together = await embedder.embed(texts)

    for text, row in zip(texts, together, strict=True):
        [alone] = await embedder.embed([text])
        assert row == pytest.approx(alone, abs=1e-6)


async def test_different_texts_get_different_rows(embedder: Embedder):
    vectors = await embedder.embed(TEXTS[:4])

    likeness = vectors @ vectors.T
    assert likeness[~np.eye(4, dtype=bool)].max() < 0.95


async def test_no_texts_give_no_rows(embedder: Embedder):
    assert (await embedder.embed([])).shape == (0, embedder.dimension)


async def test_a_blank_text_is_like_nothing(embedder: Embedder):
    vectors = await embedder.embed([*BLANK, "green tea"])

    assert not vectors[: len(BLANK)].any()
    assert vectors[-1].any()
    assert not (await embedder.embed([""])).any()


async def test_a_very_long_text_is_taken(embedder: Embedder):
    texts = ["word " * 20_000, "a" * 100_000, "绿茶" * 50_000, "😀" * 100_000]

    vectors = await embedder.embed(texts)

    assert np.linalg.norm(vectors, axis=1) == pytest.approx(np.ones(4), abs=1e-5)


async def test_any_sequence_will_do(embedder: Embedder):
    assert (await embedder.embed(("tea", "coffee"))).shape == (2, embedder.dimension)


async def test_the_caller_owns_the_array(embedder: Embedder):
    before = await embedder.embed(["green tea"])
    before *= 0

    assert (await embedder.embed(["green tea"])).any()


async def test_calls_may_overlap(embedder: Embedder):
    texts = [[f"text {number}"] * (number % 7 + 1) for number in range(50)]

    results = await asyncio.gather(*(embedder.embed(batch) for batch in texts))

    for batch, vectors in zip(texts, results, strict=True):
        [alone] = await embedder.embed(batch[:1])
        assert vectors == pytest.approx(np.tile(alone, (len(batch), 1)), abs=1e-6)


@given(st.lists(st.text(st.characters()), max_size=4))
@settings(
    # The embedder keeps nothing between examples that could matter.
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
async def test_any_text_gives_a_unit_row_or_zeros_and_never_nan(
    embedder: Embedder, texts: list[str]
):
    vectors = await embedder.embed(texts)

    lengths = np.linalg.norm(vectors, axis=1)
    assert all(length == 0 or length == pytest.approx(1, abs=1e-5) for length in lengths)
    assert all(not row.any() for text, row in zip(texts, vectors, strict=True) if not text.strip())
