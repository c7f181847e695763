"""What an append leaves for later, so that a search finds it: long texts, vectors that a provider
makes, and messages that an older release stored. The job `index_messages`, and its work.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from app.conversation.messages.maintenance_repository import (
    MessageMaintenanceRepository,
    Unfinished,
)
from app.conversation.messages.message_index import Indexer, embed_each
from app.identity.agents.embedders import Embedders, InForce
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.embedder import Embedder
from app.platform.database.engine import Database
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob

BATCH: Final = 100


def _ignore(_count: int) -> None:
    """No progress is reported."""


class MessageBackfill:
    """Makes messages findable that are stored already."""

    def __init__(self, database: Database, indexer: Indexer, embedders: Embedders) -> None:
        self._database = database
        self._indexer = indexer
        self._embedders = embedders

    async def fill_session(
        self, principal: Principal, session_id: str, agent_id: str
    ) -> dict[str, int]:
        """Read and embed what is left of one session; how many messages of each.

        Raises:
            UnknownEmbedderError: the one in force is gone.
            EmbeddingUnavailableError: what was embedded before stays; safe to retry.

        """
        embedder = await self._embedders.for_writing(principal, agent_id)
        read = embedded = after = 0
        while True:
            async with self._database.begin(principal.tenant_id) as db:
                rows = await MessageMaintenanceRepository(db, principal.tenant_id).of_session(
                    session_id, after=after, limit=BATCH
                )
            if not rows:
                return {"read": read, "embedded": embedded}
            after = rows[-1].said.sequence_no
            fresh = [row for row in rows if not row.read]
            texts = await self._texts([row for row in rows if row.read])
            new, written = await self._read(principal.tenant_id, fresh)
            texts |= new
            read += len(written)
            bare = [row for row in rows if row.said.message_id in texts and row.old is None]
            embedded += await self._embed(principal, bare, texts, embedder)

    async def read(
        self, tenant_id: str, *, most: int | None, finished: Callable[[int], None] = _ignore
    ) -> int:
        """Read messages that no analyser has read, or an older one; how many it were.

        They get their vectors too where that asks no provider.

        Args:
            most: stop after so many; None for all.
            finished: called after each batch with the number of finished messages.

        """
        principal = await self._principal(tenant_id)
        embedder = await self._embedders.at_hand(principal)
        total = 0
        while most is None or total < most:
            limit = BATCH if most is None else min(BATCH, most - total)
            async with self._database.begin(tenant_id) as db:
                rows = await MessageMaintenanceRepository(db, tenant_id).unread(limit)
            texts, written = await self._read(tenant_id, rows)
            if not written:
                # All are indexed, or locked by a deletion.
                break
            bare = [
                row
                for row in rows
                if row.said.message_id in texts and not written.get(row.said.message_id, True)
            ]
            at_hand = [row for row in bare if row.handle is None] if embedder else []
            if embedder is not None:
                await self._embed(principal, at_hand, texts, embedder)
            total += len(rows)
            finished(len(rows) - len(bare) + len(at_hand))
        return total

    async def count_waiting(self, tenant_id: str, in_force: InForce) -> int:
        """How many messages `read` and `move` would work on."""
        async with self._database.begin(tenant_id) as db:
            return await MessageMaintenanceRepository(db, tenant_id).count_waiting(in_force)

    async def move(
        self,
        tenant_id: str,
        in_force: InForce,
        embedders: Mapping[str, Embedder],
        *,
        batch: int,
    ) -> AsyncIterator[int]:
        """Give every message that is read a vector of the model in force for it.

        Yields after each batch how many got theirs.

        Raises:
            EmbeddingUnavailableError: what was embedded before stays; safe to retry.

        """
        principal = await self._principal(tenant_id)
        after = ""
        while True:
            async with self._database.begin(tenant_id) as db:
                rows = await MessageMaintenanceRepository(db, tenant_id).next_waiting(
                    in_force, after=after, limit=batch
                )
            if not rows:
                return
            after = rows[-1].said.message_id
            texts = await self._texts(rows)
            count = 0
            for name in sorted({str(row.new) for row in rows}):
                those = [row for row in rows if row.new == name]
                count += await self._embed(principal, those, texts, embedders[name])
            yield count

    async def _principal(self, tenant_id: str) -> Principal:
        """The tenant itself, with its settings as they are now."""
        async with self._database.begin(tenant_id) as db:
            tenant = await TenantRepository(db, tenant_id).get()
        return Principal(
            Access(tenant_id), "", frozenset(), tenant.config, tuple(tenant.embedding_models)
        )

    async def _texts(self, rows: Sequence[Unfinished]) -> dict[str, list[str]]:
        """What vectors are made of, by id; without those that are never found."""
        return await asyncio.to_thread(self._indexer.texts, [row.said for row in rows])

    async def _read(
        self, tenant_id: str, rows: Sequence[Unfinished]
    ) -> tuple[dict[str, list[str]], dict[str, bool]]:
        """As `_texts`; and whose words were written, with whether they have all vectors."""
        if not rows:
            return {}, {}
        texts, columns = await asyncio.to_thread(self._indexer.read, [row.said for row in rows])
        async with self._database.begin(tenant_id) as db:
            written = await MessageMaintenanceRepository(db, tenant_id).write_words(columns)
        return texts, written

    async def _embed(
        self,
        principal: Principal,
        rows: Sequence[Unfinished],
        texts: Mapping[str, Sequence[str]],
        embedder: Embedder,
    ) -> int:
        if not rows:
            return 0
        # Of what had words under other rules and has none now, the vector is all zeros.
        made = await embed_each(
            embedder,
            {
                message_id: texts.get(message_id, [""])
                for message_id in (row.said.message_id for row in rows)
            },
        )
        async with self._database.begin(principal.tenant_id) as db:
            await TenantRepository(db, principal.tenant_id).note_model(embedder.name)
            return await MessageMaintenanceRepository(db, principal.tenant_id).write_vectors(
                rows, [embedder.name] * len(rows), list(made.values())
            )


DISABLED: Final = timedelta(hours=1)
"""How long the work of a disabled tenant waits before it looks again."""


class MessageJobs:
    """Works off what appends have ordered."""

    def __init__(
        self, database: Database, filling: MessageBackfill, now: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._filling = filling
        self._now = now

    async def index(self, job: ClaimedJob) -> dict[str, Any]:
        """Read and embed what is left of the session; how many messages of each.

        Raises:
            DeferJobError: the tenant is disabled.
            UnknownEmbedderError: the embedder in force is gone.
            EmbeddingUnavailableError: what was embedded before stays; try again.

        """
        async with self._database.begin(job.tenant_id) as db:
            tenant = await TenantRepository(db, job.tenant_id).get()
        if tenant.status == 0:
            raise DeferJobError(self._now() + DISABLED, "tenant_disabled")
        principal = Principal(
            Access(job.tenant_id),
            job.creator or "",
            frozenset(),
            tenant.config,
            tuple(tenant.embedding_models),
        )
        counts = await self._filling.fill_session(principal, job.key, job.agent_id or "")
        return dict(counts)
