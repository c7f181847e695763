"""Which threshold a text gets, what share vectors have, and where the numbers stand."""

import pytest
from openai import AsyncOpenAI

from app.language.llm.embedder import DenseShare, DuplicateThreshold
from app.language.llm.openai_embedder import OpenAIEmbedder
from app.language.llm.wordllama_embedder import WordLlamaEmbedder

THRESHOLD = DuplicateThreshold(latin=0.75, cjk=0.85)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("drinks green tea", 0.75),
        ("Löwenbräu, naïve, Ελλάδα, Москва 🍵", 0.75),
        ("", 0.75),
        ("喝绿茶", 0.85),
        ("lives in 北京", 0.85),
        ("東京に住む", 0.85),
        ("カタカナ", 0.85),
        ("ｶﾀｶﾅ", 0.85),
        ("서울에 산다", 0.85),
        ("𠮷野家", 0.85),
    ],
)
def test_a_text_with_any_cjk_character_gets_the_threshold_for_cjk(text: str, expected: float):
    assert THRESHOLD.for_text(text) == expected


@pytest.mark.parametrize("model", ["text-embedding-3-small", "somebody/else"])
async def test_openai_models_start_at_the_seeds_number(client: AsyncOpenAI, model: str):
    embedder = OpenAIEmbedder(client, model, 8)

    assert embedder.duplicate_threshold == DuplicateThreshold(latin=0.85, cjk=0.85)


async def test_vectors_of_openai_models_have_more_than_the_words(client: AsyncOpenAI):
    assert OpenAIEmbedder(client, "m", 8).dense_share == DenseShare(latin=0.6, cjk=0.6)


def test_wordllama_has_its_measured_numbers(wordllama: WordLlamaEmbedder):
    assert wordllama.dense_share == DenseShare(latin=0.5, cjk=0.2)
    assert wordllama.duplicate_threshold == DuplicateThreshold(latin=0.75, cjk=0.85)
