"""Bringing stored memories over to the embedder that is in force for them (`design.md` 13).

The service goes on answering: a query is embedded with every model that still has rows. A
row's vector changes and nothing else of it, so neither version nor history move.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import structlog

from app.database.engine import Database
from app.llm.catalogue import EmbedderCatalogue
from app.llm.embeddings import Embedder
from app.llm.errors import UnknownEmbedderError
from app.memories.embedding import embed
from app.memories.maintenance_repository import InForce, MaintenanceRepository
from app.tenants.repository import TenantRepository

log = structlog.get_logger()

DEFAULT_HANDLE = ""
"""Stands for the deployment's embedder; nobody can write it."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What there is to do for a tenant."""

    in_force: InForce
    embedders: dict[str, Embedder]
    """By the name that stands beside a vector."""
    waiting: int
    missing: tuple[str, ...]
    """Handles that somebody named and this deployment does not have; their rows stay."""


class ReembedService:
    def __init__(self, database: Database, catalogue: EmbedderCatalogue) -> None:
        self._database = database
        self._catalogue = catalogue

    async def plan(self, tenant_id: str) -> Plan:
        """How many memories wait, and for which embedders.

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
            embedders[embedder.name] = embedder
            models[handle] = embedder.name
        in_force = InForce(models, home)
        async with self._database.begin(tenant_id) as db:
            waiting = await MaintenanceRepository(db, tenant_id).count_waiting(in_force)
        return Plan(in_force, embedders, waiting, tuple(sorted(missing)))

    async def reembed(
        self, tenant_id: str, plan: Plan, *, batch: int, moved: Callable[[int], None]
    ) -> int:
        """Give every waiting memory its new vector; how many it were.

        Resumable: what is done stays done, so run it again after a failure. A memory that
        somebody edits meanwhile is left to them, and looked at again.

        Args:
            batch: memories per call of the embedder and per transaction.
            moved: told after each batch how many got their vector.

        Raises:
            EmbeddingUnavailableError: an embedder does not answer; safe to run again.

        """
        total = 0
        if plan.waiting:
            await self._note_models(tenant_id, list(plan.embedders))
            while count := await self._round(tenant_id, plan, batch, moved):
                total += count
        await self._forget_models(tenant_id, in_force=set(plan.embedders))
        log.info("tenant_reembedded", tenant_id=tenant_id, memories=total)
        return total

    async def _round(
        self, tenant_id: str, plan: Plan, batch: int, moved: Callable[[int], None]
    ) -> int:
        """Once over everything that waits; edits that came in between need another round."""
        total = 0
        after = ""
        while True:
            # Read, think and write are apart: no transaction is open while a model works.
            async with self._database.begin(tenant_id) as db:
                repository = MaintenanceRepository(db, tenant_id)
                rows = await repository.next_waiting(plan.in_force, after=after, limit=batch)
            if not rows:
                return total
            vectors = await _vectors(plan, rows)
            async with self._database.begin(tenant_id) as db:
                count = await MaintenanceRepository(db, tenant_id).replace_vectors(rows, vectors)
            total += count
            moved(count)
            after = rows[-1].memory_id

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
            present = await MaintenanceRepository(db, tenant_id).models_with_rows(others)
            gone = [name for name in others if name not in present]
            if not gone:
                return
            tenant.embedding_models = [name for name in tenant.embedding_models if name not in gone]
        # A save that found its model listed takes no lock, and may have committed just now.
        async with self._database.begin(tenant_id) as db:
            tenants = TenantRepository(db, tenant_id)
            for name in await MaintenanceRepository(db, tenant_id).models_with_rows(gone):
                await tenants.note_model(name)


async def _vectors(plan: Plan, rows: Sequence[Any]) -> list[Any]:
    """A vector for each row, in order; each model is asked once."""
    vectors: list[Any] = [None] * len(rows)
    for name in {row.new for row in rows}:
        places = [place for place, row in enumerate(rows) if row.new == name]
        made = await embed(plan.embedders[name], [rows[place].content for place in places])
        for place, vector in zip(places, made, strict=True):
            vectors[place] = vector
    return vectors
