"""The port to whatever turns text into vectors, and what every adapter owes its callers.

Adapters: `wordllama_embedder` (in the process, keyless) and `openai_embedder` (any
compatible endpoint). One contract test holds both; `catalogue` chooses between them.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, Protocol

import numpy as np
import numpy.typing as npt

Vectors = npt.NDArray[np.float32]

EmbeddingOperation = Literal["embed", "embed_query", "reembed"]
"""What vectors are for, as the ledger names it: what is stored, what is searched for, and
what moves to another model."""

# Kana, Han with its extensions and compatibility forms, Hangul, half-width kana.
_CJK: Final = re.compile(
    "[\u1100-\u11ff\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uac00-\ud7af\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)


@dataclass(frozen=True, slots=True)
class DuplicateThreshold:
    """Cosine similarity from which a near item is *nominated* as a duplicate.

    It belongs to the embedder, because the same number means different things in different
    spaces. It never decides alone: a guard on numbers, negation and names does.
    """

    latin: float
    cjk: float

    def for_text(self, text: str) -> float:
        """The threshold for `text`; a mixed text counts as CJK, whose threshold is stricter."""
        return self.cjk if _CJK.search(text) else self.latin


@dataclass(frozen=True, slots=True)
class DenseShare:
    """How much of a search by words and vectors is the vectors' (0 to 1), by its script.

    It belongs to the embedder, because one knows single words and another whole sentences.
    """

    latin: float
    cjk: float


NO_SHARE: Final = DenseShare(latin=0.0, cjk=0.0)


@dataclass(slots=True)
class EmbeddingUse:
    """What embedding, or reranking, cost so far; all zero for what needs no provider."""

    calls: int = 0
    """What a client repeats on its own counts as one call."""

    failures: int = 0
    """How many of the calls brought nothing."""

    input_tokens: int = 0
    """As the provider counted them; 0 where it does not say."""

    def add(self, other: "EmbeddingUse") -> None:
        """Add what another call cost."""
        self.calls += other.calls
        self.failures += other.failures
        self.input_tokens += other.input_tokens


class Embedder(Protocol):
    """Turns texts into unit vectors. One instance is shared by the whole process.

    Calls may overlap freely on one event loop; an embedder with network connections belongs
    to the loop it was opened on. A call never blocks the loop for much more than a
    millisecond, unless the adapter says so, and may be cancelled at any time.
    """

    @property
    def name(self) -> str:
        """`provider/model:dimension`; stored beside each vector as `embedding_model`.

        Vectors may be compared exactly when their names are equal.
        """
        ...

    @property
    def model(self) -> str:
        """The model as its provider names it; what the ledger counts it under."""
        ...

    @property
    def dimension(self) -> int:
        """The length of every vector."""
        ...

    @property
    def duplicate_threshold(self) -> DuplicateThreshold:
        """The cosine from which two memories are compared as duplicates."""
        ...

    @property
    def dense_share(self) -> DenseShare:
        """How much of a search the vectors of this embedder deserve."""
        ...

    @property
    def neighbour_floor(self) -> float:
        """Cosine similarity below which a memory is no neighbour of a new statement."""
        ...

    async def embed(self, texts: Sequence[str], use: EmbeddingUse | None = None) -> Vectors:
        """One row per text, in the order of the texts; the caller owns the array.

        Shape `(len(texts), dimension)`, so `(0, dimension)` for no texts. Rows have unit
        length, except that a text with nothing to embed (empty, blank) gives a row of zeros:
        similarity 0 to everything. Every value is finite. A row depends on its own text
        alone, up to rounding, never on the rest of the batch. Safe to repeat.

        Args:
            texts: any number of them.
            use: what is spent is added to it, also by a call that fails or is cancelled.

        Raises:
            EmbeddingUnavailableError: no vectors; safe to retry.

        """
        ...


def encodable(text: str) -> str:
    """`text` with lone surrogates as `?`: JSON may carry them, UTF-8 cannot."""
    if text.isascii():
        return text
    return text.encode("utf-8", "replace").decode("utf-8")


def unit_rows(rows: npt.NDArray[np.float64]) -> Vectors:
    """The rows at unit length; a row of zeros stays one."""
    # In double precision: squares of large 32-bit floats overflow, squares of tiny ones vanish.
    lengths = np.sqrt(np.einsum("ij,ij->i", rows, rows))[:, np.newaxis]
    units = np.zeros(rows.shape, np.float32)
    np.divide(rows, lengths, out=units, where=lengths > 0, casting="same_kind")
    return units
