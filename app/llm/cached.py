"""A short memory of query vectors, so that asking twice costs one call.

For embedders over a network: a page of results, then the next, then the context, all carry
the same query. A local embedder answers faster than this could be worth.
"""

import hashlib
import secrets
import time
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import timedelta

from app.llm.embeddings import DuplicateThreshold, Embedder, Vectors


class CachedEmbedder:
    """An embedder that remembers the last single texts for a short while.

    Batches pass through: they are writes, and a write is not repeated. Texts are kept as
    keyed hashes only. The vectors of a text are the same for everybody, so tenants share
    them; all that one could learn of another is, by timing, that the very same text was
    asked in the last minute. Failures are not kept.
    """

    def __init__(
        self,
        embedder: Embedder,
        *,
        entries: int = 1_024,
        keep: timedelta = timedelta(minutes=1),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Wrap `embedder`.

        Args:
            embedder: whose vectors are kept.
            entries: most texts kept; 1,024 of 1,536 dimensions are 6 MB.
            keep: how long a vector is used.
            clock: seconds, never going back.

        """
        self._embedder = embedder
        self._entries = entries
        self._keep = keep.total_seconds()
        self._clock = clock
        self._salt = secrets.token_bytes(16)
        # Oldest use first; each vector with the moment it stops being used.
        self._kept: OrderedDict[bytes, tuple[float, Vectors]] = OrderedDict()

    @property
    def name(self) -> str:
        return self._embedder.name

    @property
    def dimension(self) -> int:
        return self._embedder.dimension

    @property
    def duplicate_threshold(self) -> DuplicateThreshold:
        return self._embedder.duplicate_threshold

    async def embed(self, texts: Sequence[str]) -> Vectors:
        if len(texts) != 1:
            return await self._embedder.embed(texts)
        key = hashlib.blake2b(
            texts[0].encode("utf-8", "surrogatepass"), key=self._salt, digest_size=16
        ).digest()
        kept = self._kept.get(key)
        if kept is not None and self._clock() < kept[0]:
            self._kept.move_to_end(key)
            return kept[1].copy()
        vectors = await self._embedder.embed(texts)
        # A copy each way: the caller owns what it gets, and may change it.
        self._kept[key] = (self._clock() + self._keep, vectors.copy())
        self._kept.move_to_end(key)
        if len(self._kept) > self._entries:
            self._kept.popitem(last=False)
        return vectors
