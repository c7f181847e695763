"""The local model: the same vectors as its package, without the package's habits."""

import asyncio
import subprocess
import sys
import time
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from test_embedder_contract import TEXTS

from app.errors import ConfigurationError
from app.language.llm.embedder import EmbeddingUse
from app.language.llm.wordllama_embedder import (
    _WORDS,
    INLINE_BYTES,
    WordLlamaEmbedder,
    _numbers,
)
from tests.support.patience import PATIENCE

OWN_ANSWERS = """
import sys, pathlib, numpy, wordllama
folder = pathlib.Path(wordllama.__file__).parent
model = wordllama.WordLlama.load(cache_dir=folder, disable_download=True)
texts = pathlib.Path(sys.argv[1]).read_text(encoding="utf-8").split("\\x1e")
numpy.save(sys.argv[2], model.embed(texts, norm=True))
"""

LOADING_TOUCHES_NOTHING = """
import logging, os, sys
os.environ.pop("TOKENIZERS_PARALLELISM", None)
import app.language.llm.embedder_catalogue
assert not {"wordllama", "tokenizers", "safetensors"} & set(sys.modules)
if sys.argv[1:]:
    os.environ["TOKENIZERS_PARALLELISM"] = sys.argv[1]
app.language.llm.embedder_catalogue.WordLlamaEmbedder.load()
assert not logging.getLogger().handlers
assert logging.getLogger().level == logging.WARNING
assert "wordllama" not in sys.modules
assert os.environ["TOKENIZERS_PARALLELISM"] == (sys.argv[1:] or ["false"])[0]
"""


def python(*arguments: str) -> None:
    subprocess.run([sys.executable, "-c", *arguments], check=True, timeout=PATIENCE)


async def test_vectors_are_those_of_the_package(wordllama: WordLlamaEmbedder, tmp_path: Path):
    # In a process of its own: importing the package changes the root logger of this one.
    texts = [text for text in TEXTS if text.isprintable() or text.isascii()]
    texts += ["tea", "The user moved to Berlin in 2019. " * 40, "一二三" * 700]
    assert len(texts) > 7
    (tmp_path / "texts").write_text("\x1e".join(texts), encoding="utf-8")
    python(OWN_ANSWERS, str(tmp_path / "texts"), str(tmp_path / "vectors.npy"))

    vectors = await wordllama.embed(texts)

    assert vectors == pytest.approx(np.load(tmp_path / "vectors.npy"), abs=1e-5)


@pytest.mark.parametrize("said", [[], ["true"]])
def test_loading_touches_neither_logging_nor_the_package_nor_a_choice_of_threads(said: list[str]):
    python(LOADING_TOUCHES_NOTHING, *said)


async def test_meaning_brings_texts_together(wordllama: WordLlamaEmbedder):
    query, near, far = await wordllama.embed(
        ["What does she drink?", "She drinks green tea.", "The server runs PostgreSQL 18."]
    )

    assert query @ near > query @ far + 0.2


async def test_a_chunked_batch_is_the_same_as_one_by_one(wordllama: WordLlamaEmbedder):
    # Around both bounds of a chunk (64 texts, 20,000 characters), and one longer than it.
    texts = [f"memory number {number}" for number in range(65)]
    texts += ["x" * 19_990, "short", "y " * 15_000, "last"]

    together = await wordllama.embed(texts)

    alone = np.concatenate([await wordllama.embed([text]) for text in texts])
    assert together == pytest.approx(alone, abs=1e-6)


def test_every_number_of_half_precision_is_read_exactly():
    bits = np.arange(-(2**15), 2**15, dtype=np.int16)
    exact = bits.view(np.float16).astype(np.float32)
    finite = np.isfinite(exact)

    assert np.array_equal(_numbers(bits[finite]), exact[finite])


def test_a_table_of_another_form_is_refused(tmp_path: Path, sys_path: list[str]):
    folder = tmp_path / "other_wordllama"
    (folder / "weights").mkdir(parents=True)
    (folder / "tokenizers").mkdir()
    (folder / "__init__.py").touch()
    source = Path(find_spec("wordllama").submodule_search_locations[0])
    tokenizer = "tokenizers/l2_supercat_tokenizer_config.json"
    (folder / tokenizer).symlink_to(source / tokenizer)
    header = b'{"embedding.weight":{"dtype":"F32","shape":[2,256],"data_offsets":[0,2048]}}'
    (folder / "weights/l2_supercat_256.safetensors").write_bytes(
        len(header).to_bytes(8, "little") + header + bytes(2048)
    )
    sys_path.append(str(tmp_path))

    with pytest.raises(ConfigurationError, match=r"not the table of wordllama 0\.4"):
        WordLlamaEmbedder.load("other_wordllama")


@pytest.fixture
def sys_path() -> Iterator[list[str]]:
    before = list(sys.path)
    yield sys.path
    sys.path[:] = before


def test_a_missing_package_says_how_to_mend_it():
    with pytest.raises(ConfigurationError, match=r"with `make install`.*openai/<model>"):
        WordLlamaEmbedder.load("wordllama_that_is_not_there")


def test_a_package_without_the_files_says_how_to_mend_it():
    # Any package without weights stands for a wordllama older than 0.4.
    with pytest.raises(ConfigurationError, match=r"wordllama==0\.4"):
        WordLlamaEmbedder.load("pytest")


async def longest_gap(work: asyncio.Task) -> float:
    """How long the loop was kept from a task that only wants to tick while `work` ran, as a part
    of the whole.
    """
    longest = 0.0
    began = last = time.perf_counter()
    while not work.done():
        await asyncio.sleep(0.0005)
        now = time.perf_counter()
        longest, last = max(longest, now - last), now
    await work
    return longest / (last - began)


@pytest.mark.parametrize(
    "texts",
    [
        [f"The user moved to town {number} and likes it. " * 8 for number in range(2_000)],
        ["用户喜欢早上喝绿茶。" * 200] * 400,
        ["😀" * 200_000],
    ],
    ids=["2,000 texts", "400 long texts", "one huge text"],
)
async def test_a_large_batch_leaves_the_loop_to_others(
    wordllama: WordLlamaEmbedder, texts: list[str]
):
    gaps = []
    # 2 to 10 ms of 150 or more, mostly the interpreter's own switching interval of 5 ms; on the
    # loop it is nearly the whole. The best of three, as the machine may stand still meanwhile.
    while not gaps or (min(gaps) >= 0.5 and len(gaps) < 3):
        gaps.append(await longest_gap(asyncio.create_task(wordllama.embed(texts))))

    assert min(gaps) < 0.5


async def test_a_short_text_does_not_pay_for_a_thread(wordllama: WordLlamaEmbedder):
    # A coroutine that never waits is done after one step; one that uses a thread is not.
    short = wordllama.embed(["Which tea?"])
    with pytest.raises(StopIteration):
        short.send(None)

    long = asyncio.create_task(wordllama.embed(["x" * (INLINE_BYTES + 1)]))
    await asyncio.sleep(0)
    assert not long.done()
    await long


async def test_a_short_query_is_quick(wordllama: WordLlamaEmbedder):
    async def microseconds(number: int) -> float:
        started = time.thread_time()
        await wordllama.embed([f"What does user {number} drink in the morning?"])
        return (time.thread_time() - started) * 1e6

    times = [await microseconds(number) for number in range(500)]

    # 25 to 40 measured; 100 is the requirement. The best of many, as others use the machine too.
    assert min(times) < 100


async def test_a_cancelled_batch_stops_working(wordllama: WordLlamaEmbedder):
    # Two seconds of work.
    work = asyncio.create_task(wordllama.embed(["some words in a row " * 20] * 20_000))
    await asyncio.sleep(0.05)

    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work

    # The await ends at once in any case; what counts is whether the thread goes on.
    worked = time.process_time()
    await asyncio.sleep(0.4)
    assert time.process_time() - worked < 0.2


async def test_nothing_is_spent(wordllama: WordLlamaEmbedder):
    use = EmbeddingUse()

    await wordllama.embed(["green tea", "long " * 900], use)

    assert use == EmbeddingUse()


@pytest.mark.parametrize(
    "text",
    [
        "tea and tea",
        " tea",
        "tea ",
        "two  spaces",
        "a\n b",
        "<s> b",
        "a </s> b",
        "a \u2581b",
        "用户 茶",
    ],
)
async def test_text_has_the_vector_of_all_its_tokens(wordllama: WordLlamaEmbedder, text: str):
    whole = wordllama._tokenizer.encode_batch_fast([text], add_special_tokens=False)[0].ids

    # A second time, when its words are known.
    assert wordllama._tokens([text]) == wordllama._tokens([text, "tea"])[:1] == [whole]


async def test_number_has_a_token_for_each_digit(wordllama: WordLlamaEmbedder):
    numbers = [*map(str, range(2_000)), "007", "19991231", "1" * 30]
    whole = wordllama._tokenizer.encode_batch_fast(numbers, add_special_tokens=False)

    assert wordllama._tokens(numbers) == [encoding.ids for encoding in whole]


def test_only_so_many_words_are_kept_and_no_long_ones():
    embedder = WordLlamaEmbedder.load()
    for start in range(0, 3 * _WORDS, 2_000):
        embedder._tokens([" ".join(f"x{number}" for number in range(start, start + 2_000))])

    assert 0 < len(embedder._known) <= _WORDS
    embedder._tokens(["x" * 1_000])
    assert "x" * 1_000 not in embedder._known
