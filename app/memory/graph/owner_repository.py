"""SQL for whom graphs belong to: held while their graph is written.

An erasure locks a person, an agent or a project, and then removes its rows. Whoever locked such
rows first and then wrote one more, which refers to the person, would wait in a ring with it.
"""

from collections.abc import Sequence

from sqlalchemy import func, select, union
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.models import Agent
from app.identity.projects.models import Project
from app.identity.users.models import User
from app.memory.graph.models import GraphEntity
from app.memory.graph.statements import GraphOwner
from app.memory.memories.models import Memory
from app.memory.memories.refreshes import Bucket

_OWNERS = ((User, "user_id"), (Project, "project_id"), (Agent, "agent_id"))


class OwnerRepository:
    """Owners of one tenant's graphs. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def hold(self, place: GraphOwner) -> None:
        """Keep those a graph belongs to from being erased before the transaction ends.

        Whoever was erased before is not there to be held: look for them afterwards.
        """
        for table, name in _OWNERS:
            one = getattr(place, name)
            if one is not None:
                await self._hold(table, name, [one])

    async def hold_all(self, bucket: Bucket, memory_ids: Sequence[str]) -> None:
        """Hold everybody who has something in a bucket's graph, or will by these memories."""
        scope, scope_id = bucket
        for table, name in _OWNERS:
            entity, memory = getattr(GraphEntity, name), getattr(Memory, name)
            owners = union(
                select(entity).where(
                    GraphEntity.tenant_id == self._tenant_id,
                    GraphEntity.scope == scope,
                    GraphEntity.scope_id == scope_id,
                    entity.is_not(None),
                ),
                select(memory).where(
                    Memory.tenant_id == self._tenant_id,
                    Memory.memory_id == func.any(list(memory_ids)),
                    memory.is_not(None),
                ),
            )
            await self._hold(table, name, list(await self._db.scalars(owners)))

    async def _hold(
        self, table: type[User | Project | Agent], name: str, ids: Sequence[str]
    ) -> None:
        if not ids:
            return
        key = getattr(table, name)
        await self._db.execute(
            select(key)
            .where(table.tenant_id == self._tenant_id, key == func.any(list(ids)))
            .order_by(key)
            .with_for_update(read=True, key_share=True)
        )
