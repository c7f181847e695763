"""Embeddings from any endpoint that speaks OpenAI's `/v1/embeddings`.

The client comes from outside with its key, address, timeout and retries; here is what it
does not do: batches, a cap on calls in flight, the length of texts, and the dimension.
"""

import asyncio
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Self

import numpy as np

from app.errors import ConfigurationError
from app.language.llm.embedder import (
    DenseShare,
    DuplicateThreshold,
    EmbeddingUse,
    Vectors,
    encodable,
)
from app.language.llm.errors import EmbeddingUnavailableError
from app.language.llm.openai_vectors import request_vectors

if TYPE_CHECKING:
    import openai


# What the provider documents: the dimension of each model, and which ones can shorten it.
KNOWN_DIMENSIONS: Final = {
    "text-embedding-3-small": 1536,
    "text-embedding-3-large": 3072,
    "text-embedding-ada-002": 1536,
}
_SHORTENED: Final = frozenset({"text-embedding-3-small", "text-embedding-3-large"})

# 0.85 is the usual number for text-embedding-3-small, for any language; not measured here.
# Other models start from it until somebody measures them: too high a threshold nominates
# too few duplicates, which costs a second copy; too low a one costs a memory.
_THRESHOLDS: Final = {"text-embedding-3-small": DuplicateThreshold(latin=0.85, cjk=0.85)}
_UNMEASURED: Final = DuplicateThreshold(latin=0.85, cjk=0.85)

_MEND: Final = "Check OPENAI_API_KEY, OPENAI_BASE_URL and MEMORY_EMBEDDING_MODEL."


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAILimits:
    """How much one call may carry.

    Sizes are bytes of UTF-8, because a tokenizer that works on bytes never makes more tokens
    than there are bytes: a limit in bytes cannot be exceeded in tokens, in any language.
    """

    texts_per_call: int = 128

    bytes_per_call: int = 300_000
    """The provider takes 300,000 tokens in one call."""

    bytes_per_text: int = 8_191
    """The provider takes 8,192 tokens in one text; what is longer is cut. It is 8,191 letters
    of English and 2,730 of Chinese, more than a memory item may have (2,000)."""

    concurrent_calls: int = 4
    """Calls in flight; further ones wait their turn."""


class OpenAIEmbedder:
    """One model of one endpoint, in one dimension.

    Every call is one unit of work for the provider, so nothing is kept of a batch of which a
    part failed; the parts still under way are cancelled. Belongs to the event loop of its
    client, which it does not close. An answer of 128 long vectors holds the loop for some
    15 ms; a query for 0.2 ms.
    """

    def __init__(
        self,
        client: "openai.AsyncOpenAI",
        model: str,
        dimension: int,
        *,
        native: int | None = None,
        limits: OpenAILimits | None = None,
        slots: asyncio.Semaphore | None = None,
    ) -> None:
        """Make an embedder of known dimension; `open` and `discover` find it out.

        Args:
            client: brings key, address, timeout and retries.
            model: as the provider names it.
            dimension: length of the vectors, at least 1; checked in each answer.
            native: the model's own dimension, if it is known better than here.
            limits: how much one call may carry.
            slots: bounds the calls in flight; embedders of one endpoint share it.

        """
        self._client = client
        self._model = model
        self._dimension = dimension
        self._limits = limits or OpenAILimits()
        self._slots = slots or asyncio.Semaphore(self._limits.concurrent_calls)
        # Only a dimension that is not the model's own is asked for, because strict servers
        # refuse the argument. When the model's own is not known, `_request` learns by trying.
        self._native = KNOWN_DIMENSIONS.get(model) if native is None else native
        self._asked = None if dimension == self._native else dimension

    @classmethod
    async def open(
        cls,
        client: "openai.AsyncOpenAI",
        model: str,
        dimension: int | None = None,
        *,
        limits: OpenAILimits | None = None,
        slots: asyncio.Semaphore | None = None,
    ) -> Self:
        """The embedder that is configured; asks the endpoint only when nothing else tells.

        Raises:
            ConfigurationError: the endpoint did not say the dimension, or the model cannot
                have the one that is given.

        """
        if dimension is not None:
            if not _possible(model, dimension):
                raise ConfigurationError(
                    f"The embedding model {model!r} cannot have {dimension} dimensions. "
                    "Check MEMORY_EMBEDDING_DIM and MEMORY_EMBEDDING_MODEL."
                )
            return cls(client, model, dimension, limits=limits, slots=slots)
        try:
            return await cls.discover(client, model, limits=limits, slots=slots)
        except EmbeddingUnavailableError as error:
            raise ConfigurationError(
                f"The embedding model {model!r} could not be tried: {error.detail} {_MEND}"
            ) from error

    @classmethod
    async def discover(
        cls,
        client: "openai.AsyncOpenAI",
        model: str,
        *,
        limits: OpenAILimits | None = None,
        slots: asyncio.Semaphore | None = None,
    ) -> Self:
        """The embedder for `model` in its own dimension; an unknown model costs one small call.

        Raises:
            EmbeddingUnavailableError: the endpoint did not answer, or not with a vector.

        """
        native = KNOWN_DIMENSIONS.get(model)
        if native is None:
            native = await cls.probe(client, model)
        return cls(client, model, native, native=native, limits=limits, slots=slots)

    @staticmethod
    async def probe(client: "openai.AsyncOpenAI", model: str) -> int:
        """The dimension in which the endpoint answers for `model`, by one small call.

        The whole deployment has it from then on, so the call is counted for no tenant.

        Raises:
            EmbeddingUnavailableError: it did not answer, or not with a vector.

        """
        vectors = await request_vectors(
            client, model, ["dimension"], dimensions=None, use=EmbeddingUse()
        )
        return int(vectors.shape[1])

    @property
    def name(self) -> str:
        return f"openai/{self._model}:{self._dimension}"

    @property
    def model(self) -> str:
        return self._model

    @property
    def dimension(self) -> int:
        return self._dimension

    @property
    def duplicate_threshold(self) -> DuplicateThreshold:
        return _THRESHOLDS.get(self._model, _UNMEASURED)

    @property
    def dense_share(self) -> DenseShare:
        """More than the words have, in any language: it reads sentences. Not measured here."""
        return DenseShare(latin=0.6, cjk=0.6)

    @property
    def neighbour_floor(self) -> float:
        # The usual number for such models; none was measured here.
        return 0.45

    async def embed(self, texts: Sequence[str], use: EmbeddingUse | None = None) -> Vectors:
        """As the port says. Texts past the length limit are cut, silently; blank ones not sent.

        Raises:
            EmbeddingUnavailableError: a vector is missing; the first failure of the calls says why.

        """
        use = EmbeddingUse() if use is None else use
        vectors = np.zeros((len(texts), self._dimension), np.float32)
        prepared = [_cut(encodable(text), self._limits.bytes_per_text) for text in texts]
        # The provider refuses a whole call for one empty text.
        rows = [row for row, text in enumerate(prepared) if text and not text.isspace()]
        calls = list(_calls(rows, prepared, self._limits))
        if len(calls) == 1:
            vectors[calls[0]] = await self._request([prepared[row] for row in calls[0]], use)
            return vectors

        pending = iter(calls)

        async def work() -> None:
            for call in pending:
                vectors[call] = await self._request([prepared[row] for row in call], use)

        # Few workers instead of one task per call, so that a large batch stands in line for a
        # slot with few calls at a time and a query behind it waits for one round, not for all.
        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(len(calls), self._limits.concurrent_calls)):
                    group.create_task(work())
        except ExceptionGroup as failures:
            first = failures.exceptions[0]
            raise first from first.__cause__
        return vectors

    async def _request(self, texts: Sequence[str], use: EmbeddingUse) -> Vectors:
        async with self._slots:
            try:
                return await self._checked(texts, use, asked=self._asked)
            except EmbeddingUnavailableError as error:
                # A server that does not know the argument at all may still have a model
                # of the right length.
                unsure = self._asked is not None and self._native is None
                if error.reason != "refused" or not unsure:
                    raise
            vectors = await self._checked(texts, use, asked=None)
            # Kept only now: the refusal may have been for another reason.
            self._asked = None
            return vectors

    async def _checked(
        self, texts: Sequence[str], use: EmbeddingUse, *, asked: int | None
    ) -> Vectors:
        """The vectors, if they have this embedder's dimension.

        Raises:
            EmbeddingUnavailableError: they have another.

        """
        vectors = await request_vectors(self._client, self._model, texts, dimensions=asked, use=use)
        if vectors.shape[1] != self._dimension:
            use.failures += 1
            raise EmbeddingUnavailableError(
                "bad_answer",
                what=f"The provider sent vectors of {vectors.shape[1]} dimensions; "
                f"{self._dimension} are configured.",
            )
        return vectors


def _possible(model: str, dimension: int) -> bool:
    native = KNOWN_DIMENSIONS.get(model)
    if native is None or dimension == native:
        return dimension >= 1
    return model in _SHORTENED and 1 <= dimension < native


def _cut(text: str, limit: int) -> str:
    """The longest beginning of `text` that has at most `limit` bytes in UTF-8."""
    # Four bytes is the most a character has; nearly every text ends here.
    if len(text) * 4 <= limit:
        return text
    return text.encode("utf-8")[:limit].decode("utf-8", "ignore")


def _calls(rows: Sequence[int], texts: Sequence[str], limits: OpenAILimits) -> Iterator[list[int]]:
    """The rows in runs that fit one call each."""
    call: list[int] = []
    size = 0
    for row in rows:
        bytes_of_text = len(texts[row].encode("utf-8"))
        full = len(call) == limits.texts_per_call or size + bytes_of_text > limits.bytes_per_call
        if call and full:
            yield call
            call, size = [], 0
        call.append(row)
        size += bytes_of_text
    if call:
        yield call
