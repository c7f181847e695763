"""What contexts have shown, collected and written after the answers.

A context never writes. What it showed is collected here and written in batches: which memories, so
that an echo of them is no news; its hash with what was put into it, for audits; and its tokens, for
the pressure of the appends that follow. When the process dies, at most about a second of it is
lost; then an echo of such a memory may be extracted again.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import datetime
from math import inf
from time import monotonic
from typing import Any, Final, Generic, Protocol, TypeVar

from pydantic_core import to_json

from app.platform.database.base import joined_ids
from app.platform.database.engine import Database, driver_of
from app.platform.observability.metrics import INJECTIONS_DROPPED
from app.prompting.context.context_sql import NOTE_CONTEXTS, NOTE_SHOWN, NOTE_SHOWN_AT_LAST

ROWS_PER_FLUSH: Final = 1_000

FLUSH_SECONDS: Final = 0.8
"""Longest time of a flush, which comes every second: an extraction that follows at once should know
what was shown."""

WAITING: Final = 50_000
"""Most pairs that wait to be written; further ones are dropped, so that memory stays bounded."""

CONTEXTS_WAITING: Final = 5_000
"""The same of contexts, each of which names up to some hundred things."""

_Pair = tuple[str, str]
"""A session, and a memory or the hash of a content."""

Noted = TypeVar("Noted")
_Written_contra = TypeVar("_Written_contra", contravariant=True)


@dataclass(frozen=True, slots=True)
class ShownContext:
    """What one context had.

    Args:
        memory_ids, passage_ids, message_ids: what was put into it; the last of excerpts.
        tokens: of all of it.
        memory_tokens: of what is remembered.
        beside_tokens: of all but that, messages and summaries.
        first_at: of the first context with the same content that waits; `at` where that is it.

    """

    memory_ids: list[str]
    passage_ids: list[str]
    message_ids: list[str]
    tokens: int
    memory_tokens: int
    beside_tokens: int
    at: datetime
    first_at: datetime | None = None


_SHOWN: Final = tuple(field.name for field in fields(ShownContext))


def _newest(_before: datetime, now: datetime) -> datetime:
    return now


def _since_first(before: ShownContext, now: ShownContext) -> ShownContext:
    return replace(now, first_at=before.first_at or before.at)


class Injections:
    """Collects what contexts show. Use it from one event loop only."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._memories = _Waiting[datetime](WAITING, self._write_memories, _newest)
        self._contexts = _Waiting[ShownContext](
            CONTEXTS_WAITING, self._write_contexts, _since_first
        )

    def note(
        self, tenant_id: str, session_id: str, memory_ids: Iterable[str], at: datetime
    ) -> None:
        """Note that a session's model sees these memories; waits for nothing."""
        for memory_id in memory_ids:
            self._memories.note(tenant_id, (session_id, memory_id), at)

    def note_context(
        self, tenant_id: str, session_id: str, content_sha256: str, shown: ShownContext
    ) -> None:
        """Note a context and the memories in it; waits for nothing."""
        self.note(tenant_id, session_id, shown.memory_ids, shown.at)
        self._contexts.note(tenant_id, (session_id, content_sha256), shown)

    async def flush(self, *, everything: bool = False) -> None:
        """Write what was noted, oldest first, for at most FLUSH_SECONDS.

        A batch has a single tenant, as row-level security demands. What could not be written
        stays noted, and the error is raised. What somebody is changing stays noted too.

        Args:
            everything: write all of it, however long it takes; for the end of the process.

        """
        until = inf if everything else monotonic() + FLUSH_SECONDS
        await self._memories.flush(until)
        if everything:
            # Few are left, of which each may be waited for.
            await self._memories.flush(until, last=True)
        await self._contexts.flush(until)

    async def _write_memories(
        self, tenant_id: str, batch: Mapping[_Pair, datetime], *, last: bool
    ) -> Sequence[_Pair]:
        sessions = joined_ids([session_id for session_id, _ in batch])
        memories = joined_ids([memory_id for _, memory_id in batch])
        times = joined_ids([at.isoformat() for at in batch.values()])
        statement = NOTE_SHOWN_AT_LAST if last else NOTE_SHOWN
        return await self._send(tenant_id, statement, sessions, memories, times)

    async def _write_contexts(
        self, tenant_id: str, batch: Mapping[_Pair, ShownContext], *, last: bool
    ) -> Sequence[_Pair]:
        del last  # Whoever changes a session is waited for each time.
        rows: list[dict[str, Any]] = [
            {"session_id": session_id, "content_sha256": content_sha256}
            | {name: getattr(shown, name) for name in _SHOWN}
            for (session_id, content_sha256), shown in batch.items()
        ]
        return await self._send(tenant_id, NOTE_CONTEXTS, to_json(rows).decode())

    async def _send(self, tenant_id: str, statement: str, *values: object) -> Sequence[_Pair]:
        async with self._database.begin(tenant_id, hot=True) as db:
            rows = await (await driver_of(db)).fetch(statement, tenant_id, *values)
        return [(row["session_id"], row["memory_id"]) for row in rows]


class _Write(Protocol[_Written_contra]):
    """Writes a batch of a tenant, and answers what it passed over; nothing if it is the `last`."""

    async def __call__(
        self, tenant_id: str, batch: Mapping[_Pair, _Written_contra], /, *, last: bool
    ) -> Sequence[_Pair]: ...


class _Waiting(Generic[Noted]):
    """What waits to be written, by tenant; of the same pair one, as `merge` makes it of two."""

    def __init__(
        self,
        most: int,
        write: _Write[Noted],
        merge: Callable[[Noted, Noted], Noted],
    ) -> None:
        self._noted: dict[str, dict[_Pair, Noted]] = {}
        self._count = 0
        self._most = most
        self._write = write
        self._merge = merge

    def note(self, tenant_id: str, pair: _Pair, what: Noted) -> None:
        noted = self._noted.setdefault(tenant_id, {})
        if pair not in noted:
            if self._count >= self._most:
                INJECTIONS_DROPPED.inc()
                return
            self._count += 1
            noted[pair] = what
        else:
            noted[pair] = self._merge(noted[pair], what)

    async def flush(self, until: float, *, last: bool = False) -> None:
        passed_over: list[tuple[str, dict[_Pair, Noted]]] = []
        try:
            while self._noted and monotonic() < until:
                tenant_id, noted = next(iter(self._noted.items()))
                # Removed before it is written: what is noted meanwhile is written the next time.
                batch = {pair: noted.pop(pair) for pair in list(noted)[:ROWS_PER_FLUSH]}
                # The next tenant comes first the next time.
                del self._noted[tenant_id]
                if noted:
                    self._noted[tenant_id] = noted
                if not batch:
                    continue
                try:
                    left = await self._write(tenant_id, batch, last=last)
                except BaseException:
                    passed_over.append((tenant_id, batch))
                    raise
                self._count -= len(batch) - len(left)
                passed_over.append((tenant_id, {pair: batch[pair] for pair in left}))
        finally:
            for tenant_id, batch in passed_over:
                self._put_back(tenant_id, batch)

    def _put_back(self, tenant_id: str, batch: Mapping[_Pair, Noted]) -> None:
        if not batch:
            return
        since = self._noted.setdefault(tenant_id, {})
        self._count -= len(batch.keys() & since.keys())
        both = {
            pair: self._merge(batch[pair], now) if pair in batch else now
            for pair, now in since.items()
        }
        self._noted[tenant_id] = {**batch, **both}
