"""What is derived from stored rows, made anew: search terms after a change of the analyser, vectors
after a change of the embedder.

Reading, computing and writing are apart and go in batches: a run can be stopped anywhere and goes
on where it was. The service keeps answering meanwhile. Neither version nor history change.
"""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.jobs import MessageBackfill
from app.conversation.messages.message_index import Indexer
from app.identity.agents.embedders import CountedEmbedder, Embedders, InForce, Spending, embed
from app.identity.agents.repository import VectorRepository
from app.identity.tenants.repository import TenantRepository
from app.language.llm.embedder import Embedder
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.language.llm.errors import UnknownEmbedderError
from app.memory.memories.maintenance_repository import MaintenanceRepository, MemoryVectorRepository
from app.memory.memories.searchable import row_terms, with_terms
from app.platform.database.engine import Database

BATCH: Final = 200


def _ignore(_count: int) -> None:
    """Progress that is not shown."""


class MemoryBackfill:
    """Makes the search terms of memories that an older analyser read, or none."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def count(self, tenant_id: str) -> int:
        """How many memories and replaced contents wait for their terms."""
        async with self._database.begin(tenant_id) as db:
            repository = MaintenanceRepository(db, tenant_id)
            return await repository.count_unread() + await repository.count_unread_past()

    async def read(
        self, tenant_id: str, *, most: int | None, finished: Callable[[int], None] = _ignore
    ) -> int:
        """Make the terms of waiting memories, then of replaced contents; how many were made.

        Safe to repeat and to run twice at once. A memory that is edited meanwhile is left out:
        the edit makes its terms, too.

        Args:
            most: stop after so many; None for all.
            finished: called after each batch with its size.

        """
        total = 0
        for read in (self._present, self._past):
            while most is None or total < most:
                limit = BATCH if most is None else min(BATCH, most - total)
                written = await read(tenant_id, limit)
                if not written:
                    # None waits, or all of them are being edited or deleted.
                    break
                total += written
                finished(written)
        return total

    async def _present(self, tenant_id: str, limit: int) -> int:
        async with self._database.begin(tenant_id) as db:
            rows = await MaintenanceRepository(db, tenant_id).unread(limit)
        if not rows:
            return 0
        read = await asyncio.to_thread(with_terms, rows)
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).write_terms(read)

    async def _past(self, tenant_id: str, limit: int) -> int:
        async with self._database.begin(tenant_id) as db:
            rows = await MaintenanceRepository(db, tenant_id).unread_past(limit)
        if not rows:
            return 0
        read = await asyncio.to_thread(_with_past_terms, rows)
        async with self._database.begin(tenant_id) as db:
            return await MaintenanceRepository(db, tenant_id).write_past_terms(read)


def _with_past_terms(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Entries of the history, with what the analyser makes of what they keep."""
    read = []
    for row in rows:
        was = row["before"]
        valid_from, said_at = (
            datetime.fromisoformat(was[name]) if was.get(name) else None
            for name in ("valid_from", "said_at")
        )
        terms = row_terms(was["content"], was["metadata"], valid_from, said_at, was.get("speaker"))
        read.append(row | terms)
    return read


log = structlog.get_logger()

DEFAULT_HANDLE = ""
"""The deployment's embedder; no agent or tenant can have this handle."""


Kinds = Sequence[type[VectorRepository]]
"""Repositories of the vectors of other packages."""


@dataclass(frozen=True, slots=True)
class ReembedPlan:
    """What there is to do for a tenant."""

    in_force: InForce
    embedders: dict[str, Embedder]
    """By the name that is stored with a vector."""
    waiting: int
    missing: tuple[str, ...]
    """Handles of agents or the tenant that this deployment lacks; their rows stay as they are."""


class ReembedService:
    """Brings the vectors of one tenant over to the embedders in force."""

    def __init__(
        self,
        database: Database,
        catalogue: EmbedderCatalogue,
        spending: Spending,
        tags: Sequence[str] = (),
        others: Kinds = (),
    ) -> None:
        """Work on `database`; blocks of `tags` are no words of messages."""
        self._database = database
        self._catalogue = catalogue
        self._spending = spending
        self._kinds: Kinds = (MemoryVectorRepository, *others)
        embedders = Embedders(database, catalogue, spending)
        self._memories = MemoryBackfill(database)
        self._messages = MessageBackfill(database, Indexer(embedders, tags), embedders)

    async def plan(self, tenant_id: str) -> ReembedPlan:
        """How many rows wait, and for which embedders.

        Raises:
            TenantNotFoundError: there is no such tenant.
            EmbeddingUnavailableError: an embedder could not be asked; safe to retry.

        """
        async with self._database.begin(tenant_id) as db:
            tenant = await TenantRepository(db, tenant_id).get()
            home = str(tenant.config.get("embedding") or DEFAULT_HANDLE)
            handles = await MaintenanceRepository(db, tenant_id).agent_handles()
        embedders: dict[str, Embedder] = {}
        models: dict[str, str] = {}
        missing = []
        for handle in {home, *handles}:
            try:
                embedder = (
                    await self._catalogue.resolve(handle) if handle else self._catalogue.default
                )
            except UnknownEmbedderError:
                missing.append(handle)
                continue
            embedders[embedder.name] = CountedEmbedder(
                embedder, self._spending, tenant_id, "reembed"
            )
            models[handle] = embedder.name
        in_force = InForce(models, home)
        async with self._database.begin(tenant_id) as db:
            waiting = 0
            for kind in self._kinds:
                waiting += await kind(db, tenant_id).count_waiting(in_force)
        waiting += await self._memories.count(tenant_id)
        waiting += await self._messages.count_waiting(tenant_id, in_force)
        return ReembedPlan(in_force, embedders, waiting, tuple(sorted(missing)))

    async def reembed(
        self, tenant_id: str, plan: ReembedPlan, *, batch: int, moved: Callable[[int], None]
    ) -> int:
        """Give every waiting row its new vector; how many were given.

        Resumable: what is done stays done, so run it again after a failure. A memory that is
        edited meanwhile is left out, and looked at again. Missing search terms are made first.

        Args:
            batch: rows per call of the embedder and per transaction.
            moved: called after each batch with the number of new vectors.

        Raises:
            EmbeddingUnavailableError: an embedder does not answer; safe to run again.

        """
        total = 0
        if plan.waiting:
            total += await self._memories.read(tenant_id, most=None, finished=moved)
            await self._note_models(tenant_id, list(plan.embedders))
            for kind in self._kinds:
                while count := await self._round(tenant_id, plan, kind, batch, moved):
                    total += count
            total += await self._move_messages(tenant_id, plan, batch, moved)
        await self._forget_models(tenant_id, in_force=set(plan.embedders))
        log.info("tenant_reembedded", tenant_id=tenant_id, moved=total)
        return total

    async def _round(
        self,
        tenant_id: str,
        plan: ReembedPlan,
        kind: type[VectorRepository],
        batch: int,
        moved: Callable[[int], None],
    ) -> int:
        """Once over everything that waits; edits that came in between need another round."""
        total = 0
        after = ""
        while True:
            # Read, think and write are apart: no transaction is open while a model works.
            async with self._database.begin(tenant_id) as db:
                rows = await kind(db, tenant_id).next_waiting(
                    plan.in_force, after=after, limit=batch
                )
            if not rows:
                return total
            try:
                vectors = await _vectors(plan, rows)
            finally:
                # Batch by batch: the command may run for hours, and be stopped.
                await self._spending.flush()
            async with self._database.begin(tenant_id) as db:
                count = await kind(db, tenant_id).replace_vectors(rows, vectors)
            total += count
            moved(count)
            after = rows[-1].id

    async def _move_messages(
        self, tenant_id: str, plan: ReembedPlan, batch: int, moved: Callable[[int], None]
    ) -> int:
        total = 0

        def count(finished: int) -> None:
            nonlocal total
            total += finished
            moved(finished)

        await self._messages.read(tenant_id, most=None, finished=count)
        try:
            moving = self._messages.move(tenant_id, plan.in_force, plan.embedders, batch=batch)
            async for finished in moving:
                count(finished)
                await self._spending.flush()
        finally:
            await self._spending.flush()
        return total

    async def _note_models(self, tenant_id: str, models: Sequence[str]) -> None:
        """Before the first row, so that no search overlooks one that moved."""
        async with self._database.begin(tenant_id) as db:
            tenants = TenantRepository(db, tenant_id)
            for model in models:
                await tenants.note_model(model)

    async def _forget_models(self, tenant_id: str, *, in_force: set[str]) -> None:
        """Let queries be embedded no longer for models that have no rows."""
        async with self._database.begin(tenant_id) as db:
            tenant = await TenantRepository(db, tenant_id).get(lock=True)
            others = [name for name in tenant.embedding_models if name not in in_force]
            present = await self._models_with_rows(db, tenant_id, others)
            gone = [name for name in others if name not in present]
            if not gone:
                return
            tenant.embedding_models = [name for name in tenant.embedding_models if name not in gone]
        # A save that found its model listed takes no lock, and may have committed just now.
        async with self._database.begin(tenant_id) as db:
            tenants = TenantRepository(db, tenant_id)
            for name in await self._models_with_rows(db, tenant_id, gone):
                await tenants.note_model(name)

    async def _models_with_rows(
        self, db: AsyncSession, tenant_id: str, models: Sequence[str]
    ) -> set[str]:
        present: set[str] = set()
        for kind in self._kinds:
            present |= await kind(db, tenant_id).models_with_rows(models)
        return present


async def _vectors(plan: ReembedPlan, rows: Sequence[Any]) -> list[Any]:
    """A vector for each row, in order; each model is asked once."""
    vectors: list[Any] = [None] * len(rows)
    for name in {row.new for row in rows}:
        positions = [position for position, row in enumerate(rows) if row.new == name]
        made = await embed(plan.embedders[name], [rows[position].content for position in positions])
        for position, vector in zip(positions, made, strict=True):
            vectors[position] = vector
    return vectors
