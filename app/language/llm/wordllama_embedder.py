"""Local embeddings: the table of token vectors that comes inside the `wordllama` wheel.

A text's vector is the mean of its tokens' vectors, so it is quick and needs no key, and it
knows words, not sentences. Only wordllama's two files are used: importing the package
configures the root logger, needs a home folder and takes 0.4 s, and looking up and adding
in numpy here is several times faster than its `embed()` with the same result.
"""

import asyncio
import ctypes
import importlib
import json
import mmap
import os
from collections.abc import Iterator, Sequence, Sized
from functools import cache
from importlib.util import find_spec
from itertools import accumulate, chain, pairwise
from pathlib import Path
from string import digits
from typing import TYPE_CHECKING, Final, Self

import numpy as np
import numpy.typing as npt

from app.errors import ConfigurationError
from app.language.llm.embedder import (
    DenseShare,
    DuplicateThreshold,
    EmbeddingUse,
    Vectors,
    encodable,
)

if TYPE_CHECKING:
    from tokenizers import Tokenizer

MODEL: Final = "l2_supercat"
DIMENSION: Final = 256

# UTF-8 bytes that are embedded on the event loop. Bytes, because a token is at least one:
# 1,000 took 0.3 ms of English, 1.2 ms where no word was ever met before, 0.4 ms of Chinese and
# 0.6 ms of the rarest characters, while a thread costs 0.05 to 0.1 ms before it begins.
INLINE_BYTES: Final = 1_000

# What one visit to a thread takes on, some 5 ms of work: a cancelled call stops at the next.
_CHUNK_TEXTS: Final = 64
_CHUNK_CHARACTERS: Final = 20_000

# Tokens added at a time: 3 MB instead of 600 MB for the longest texts, and the interpreter
# is handed back to the event loop in between.
_TOKENS: Final = 2_048

# Words whose tokens are kept, some 2 MB; one that is longer is seldom said twice.
_WORDS: Final = 8_192
_LONGEST_WORD: Final = 24


class WordLlamaEmbedder:
    """`l2_supercat` with 256 dimensions. Read-only after `open`, so any thread may use it."""

    handle: Final = f"wordllama/{MODEL}"
    name: Final = f"wordllama/{MODEL}:{DIMENSION}"
    model: Final = MODEL
    dimension: Final = DIMENSION
    # With the guard behind it, of 20 pairs of each kind that somebody else wrote: English at 0.75
    # merges no contradiction and no other fact. Chinese at 0.75 merged 4 contradictions and 3
    # other facts, at 0.85 two and none.
    duplicate_threshold: Final = DuplicateThreshold(latin=0.75, cjk=0.85)
    # Measured on LoCoMo and on Chinese dialogues (`benchmarks/results/recall.md`): its table
    # knows some 700 Chinese characters.
    dense_share: Final = DenseShare(latin=0.5, cjk=0.2)
    # On the pairs above: keeps all 125 Chinese and 118 of 126 English paraphrases and
    # contradictions, and lets 1 % of unrelated English and 9 % of unrelated Chinese pairs by.
    neighbour_floor: Final = 0.45

    def __init__(self, tokenizer: "Tokenizer", weights: npt.NDArray[np.int16]) -> None:
        self._tokenizer = tokenizer
        self._weights = weights
        self._known: dict[str, Sequence[int]] = {}
        encodings = tokenizer.encode_batch_fast(list(digits), add_special_tokens=False)
        # What a number begins with, and each digit behind it.
        self._digits = {digit: each.ids for digit, each in zip(digits, encodings, strict=True)}

    @classmethod
    async def open(cls) -> Self:
        """Load the model in a thread; it takes 0.1 s and 16 MB.

        Raises:
            ConfigurationError: the package or its files are not there.

        """
        return await asyncio.to_thread(cls.load)

    @classmethod
    def load(cls, package: str = "wordllama") -> Self:
        """As `open`, and blocks; what was read once is shared, also with processes that are forked
        afterwards. `package` holds `weights/` and `tokenizers/`.

        Raises:
            ConfigurationError: the package or its files are not there.

        """
        return cls(*_read(package))

    async def embed(self, texts: Sequence[str], use: EmbeddingUse | None = None) -> Vectors:  # noqa: ARG002 (nobody is paid)
        """As the port says; never fails, costs nothing. Long calls run in a thread, in chunks."""
        if _is_short(texts):
            return self._embed_now(texts)
        vectors = np.empty((len(texts), self.dimension), np.float32)
        for start, stop in _chunks(texts, _CHUNK_CHARACTERS):
            vectors[start:stop] = await asyncio.to_thread(self._embed_now, texts[start:stop])
        return vectors

    def _embed_now(self, texts: Sequence[str]) -> Vectors:
        return self._vectors(self._tokens(texts))

    def _tokens(self, texts: Sequence[str]) -> list[list[int]]:
        """The tokens of each text; those of most words are known, which takes an eighth of the
        time.
        """
        split = [_words(_meant(text)) for text in texts]
        known = self._known
        tokens = {word: known.get(word) for word in chain.from_iterable(split)}
        new = []
        for word in [word for word, found in tokens.items() if found is None]:
            if word.isascii() and word.isdecimal():
                tokens[word] = self._number_tokens(word)
            else:
                new.append(word)
        if len(known) + len(new) > _WORDS:
            # Replaced and not emptied: another thread may be reading it.
            known = self._known = {}
        # The batch call even for one word: `encode` notes where each token stands, which takes as
        # long again, and held the interpreter for 0.36 s on 100,000 emoji.
        encodings = self._tokenizer.encode_batch_fast(new, add_special_tokens=False) if new else []
        for word, encoding in zip(new, encodings, strict=True):
            found = tokens[word] = encoding.ids
            if len(word) <= _LONGEST_WORD:
                known[word] = found
        return [list(chain.from_iterable(tokens[word] or () for word in words)) for words in split]

    def _number_tokens(self, number: str) -> list[int]:
        """A token for each digit: most numbers were never met before."""
        pairs = [self._digits[digit] for digit in number]
        return [pairs[0][0], *(token for _, token in pairs)]

    def _vectors(self, texts: Sequence[Sequence[int]]) -> Vectors:
        """The sum of each text's token vectors at unit length, which is that of their mean."""
        sums = np.zeros((len(texts), self.dimension), np.float32)
        for start, stop in _chunks(texts, _TOKENS):
            tokens = list(chain.from_iterable(texts[start:stop]))
            if len(tokens) > _TOKENS:
                for first in range(0, len(tokens), _TOKENS):
                    sums[start] += self._numbers_of(tokens[first : first + _TOKENS]).sum(axis=0)
                continue
            numbers = self._numbers_of(tokens)
            ends = list(accumulate(map(len, texts[start:stop]), initial=0))
            for row, (begin, end) in enumerate(pairwise(ends), start):
                np.add.reduce(numbers[begin:end], axis=0, out=sums[row])
        lengths = np.sqrt(np.array([row.dot(row) for row in sums], np.float32))
        lengths[lengths == 0.0] = 1.0
        sums /= lengths[:, np.newaxis]
        return sums

    def _numbers_of(self, tokens: Sequence[int]) -> Vectors:
        return _numbers(self._weights.take(tokens, axis=0))


def _meant(text: str) -> str:
    """What is tokenised: a blank text has tokens, too, but they would make it like every other
    blank or one-letter text.
    """
    return encodable(text) if text and not text.isspace() else ""


def _words(text: str) -> list[str]:
    """A text in parts that have the tokens that they have in it. No token reaches over the space
    between two words, which belongs to the second one.
    """
    words = text.split(" ")
    # Several spaces make tokens of their own, a mark is one (`<s>`), and a space is written so.
    return [text] if "" in words or "<" in text or "\u2581" in text else words


def _is_short(texts: Sequence[str]) -> bool:
    # Characters first: counting them is free, and there are never fewer bytes.
    if len(texts) > 8 or sum(map(len, texts)) > INLINE_BYTES:
        return False
    return sum(len(text.encode("utf-8", "replace")) for text in texts) <= INLINE_BYTES


def _chunks(texts: Sequence[Sized], longest: int) -> Iterator[tuple[int, int]]:
    """Bounds of consecutive runs of texts; a text longer than a chunk is one of its own."""
    start = 0
    size = 0
    for position, text in enumerate(texts):
        full = position - start == _CHUNK_TEXTS or size + len(text) > longest
        if full and position > start:
            yield start, position
            start, size = position, 0
        size += len(text)
    if start < len(texts):
        yield start, len(texts)


@cache
def _read(package: str) -> tuple["Tokenizer", npt.NDArray[np.int16]]:
    """Raises ConfigurationError."""
    # Finding a top-level package does not run it.
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ConfigurationError(
            f"The local embedder needs the package {package!r}, which is not installed: "
            "install the service again with `make install`, or set MEMORY_EMBEDDING_MODEL to "
            "openai/<model>."
        )
    folder = Path(spec.submodule_search_locations[0])
    weights = folder / "weights" / f"{MODEL}_{DIMENSION}.safetensors"
    tokenizer = folder / "tokenizers" / f"{MODEL}_tokenizer_config.json"
    if not (weights.is_file() and tokenizer.is_file()):
        raise ConfigurationError(
            f"The installed {package!r} does not carry {weights.name} and {tokenizer.name}: "
            "run `pip install 'wordllama==0.4.*'`."
        )
    return _read_tokenizer(tokenizer), _read_weights(weights)


def _read_tokenizer(path: Path) -> "Tokenizer":
    # Of a batch it would make work for threads of its own, and the event loop would wait until they
    # get a processor: 4 ms on a busy machine, for 0.01 ms of work.
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    # Imported by name: without wordllama there is no tokenizers package either, and this
    # module must still import, so that `load` can say what to do about it.
    tokenizer: Tokenizer = importlib.import_module("tokenizers").Tokenizer.from_file(str(path))
    # The file asks for neither, but both would change vectors silently.
    tokenizer.no_padding()
    tokenizer.no_truncation()
    # Reading leaves 12 MB of freed memory; the C library of glibc gives it back when told.
    if trim := getattr(ctypes.CDLL(None), "malloc_trim", None):
        trim(0)
    return tokenizer


def _read_weights(path: Path) -> npt.NDArray[np.int16]:
    """The bits of the table, one row per token, in half precision: as the file has them, which all
    processes of the machine share. As numbers they would take 33 MB in each.

    Raises:
        ConfigurationError: the file is of another form.

    """
    with path.open("rb") as file:
        held = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    begin = 8 + int.from_bytes(held[:8], "little")
    table = json.loads(held[8:begin])["embedding.weight"]
    if table["dtype"] != "F16" or table["shape"][1] != DIMENSION:
        raise ConfigurationError(
            f"{path.name} is not the table of wordllama 0.4: run `pip install 'wordllama==0.4.*'`."
        )
    start, stop = table["data_offsets"]
    bits = np.frombuffer(held, "<i2", (stop - start) // 2, begin + start)
    return bits.reshape(table["shape"])


_SIGN_AND_VALUE: Final = np.array(0x8FFFE000, np.uint32).astype(np.int32)
_REBIASED: Final = np.float32(2.0**112)


def _numbers(bits: npt.NDArray[np.int16]) -> Vectors:
    """Half precision as single, exactly. Numpy's own conversion takes twice to seven times as
    long.
    """
    wide = bits.astype(np.int32)
    # Exponent and fraction move to where single precision has them, the sign was extended.
    wide <<= 13
    wide &= _SIGN_AND_VALUE
    numbers: Vectors = wide.view(np.float32)
    # The exponents of the two begin 112 apart.
    numbers *= _REBIASED
    return numbers
