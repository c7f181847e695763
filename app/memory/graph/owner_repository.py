"""SQL for the owners of graphs, locked while their graph is written, and for users' own entities.

An erasure locks a user, an agent or a project, and then removes its rows. A writer that locked such
rows first and then inserted one that refers to the user would deadlock with it.
"""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, false, func, or_, select, union
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import Agent
from app.identity.projects.repository import Project
from app.identity.tenants.access import Access
from app.identity.users.repository import User
from app.language.keyless.attributes import attribute_of
from app.language.text.names import name_key
from app.memory.graph.models import GraphEntity
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import GraphOwner, Speaker, fits
from app.memory.memories.models import Memory
from app.memory.memories.refreshes import Bucket

_OWNERS = ((User, "user_id"), (Project, "project_id"), (Agent, "agent_id"))


class OwnerRepository:
    """Owners of one tenant's graphs. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def hold(self, owner: GraphOwner) -> None:
        """Keep the owners of a graph from being erased before the transaction ends.

        Owners that were erased before cannot be locked: check afterwards that they exist.
        """
        for table, name in _OWNERS:
            owner_id = getattr(owner, name)
            if owner_id is not None:
                await self._hold(table, name, [owner_id])

    async def hold_all(self, bucket: Bucket, memory_ids: Sequence[str]) -> None:
        """Lock every owner that has rows in a bucket's graph, or will have by these memories."""
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


NAME = "user.name"


class SpeakerRepository:
    """The users of one tenant in its graphs. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._tenant_id = access.tenant_id
        self._entities = EntityRepository(db, access)

    async def name_of(self, owner: GraphOwner, user_id: str) -> str:
        """The user's name: as they said last, else as the caller wrote, else their id.

        What they said counts only where all who read this graph may know it: said to no agent
        alone, or to this one, and of a project's graph in that project.
        """
        said = await self._db.scalar(
            select(Memory.content)
            .where(
                Memory.tenant_id == self._tenant_id,
                *_said_in(owner, user_id),
                Memory.status == "active",
                Memory.attribute == NAME,
                or_(Memory.expires_at.is_(None), Memory.expires_at > func.now()),
            )
            .order_by(Memory.update_time.desc(), Memory.memory_id)
            .limit(1)
        )
        given = attribute_of(said) if said is not None else None
        if given is not None and given[0] == NAME and fits(given[1]):
            return given[1]
        written = await self._db.scalar(
            select(User.user_name).where(User.tenant_id == self._tenant_id, User.user_id == user_id)
        )
        return written.strip() if written is not None and fits(written) else user_id

    async def ensure(self, owner: GraphOwner, user_id: str) -> Speaker:
        """The user as statements of this owner must name them, so that they stay one entity.

        An entity that has the user's name already, while the user is in the graph by their id,
        stays another entity; a caller may merge them.
        """
        name = await self.name_of(owner, user_id)
        key, own = name_key(name), name_key(user_id)
        found = await self._entities.by_keys(owner, {key, own})
        aliased = dict(await self._entities.by_aliases(owner, {key, own}))
        mine = found.get(own) or aliased.get(own)
        if mine is None or key == own:
            return Speaker(user_id, name if mine is None else mine.name)
        if mine.name_key == key or key in found or key in aliased:
            return Speaker(user_id, mine.name)
        if mine.name_key == own:
            mine.name, mine.name_key = name, key
            mine.version += 1
            await self._db.flush()
            await self._call(mine, user_id)
        else:
            await self._call(mine, name)
        return Speaker(user_id, mine.name)

    async def remember(self, owner: GraphOwner, speaker: Speaker) -> None:
        """Let the entity of a user who has a name be found by their id too; safe to repeat."""
        key, own = name_key(speaker.name), name_key(speaker.user_id)
        if key == own or await self._entities.by_aliases(owner, [own]):
            return
        found = await self._entities.by_keys(owner, [key])
        if key in found:
            await self._call(found[key], speaker.user_id)

    async def _call(self, entity: GraphEntity, alias: str) -> None:
        await self._entities.note_aliases([(entity.entity_id, name_key(alias), alias)])


def _said_in(owner: GraphOwner, user_id: str) -> tuple[ColumnElement[bool], ...]:
    """Memories of a user whose content this graph may show."""
    known = or_(Memory.agent_id.is_(None), Memory.agent_id == owner.agent_id)
    if owner.scope == "user":
        return (Memory.scope == "user", Memory.scope_id == user_id, known)
    if owner.scope == "project":
        return (
            Memory.scope == "project",
            Memory.scope_id == owner.scope_id,
            Memory.user_id == user_id,
            Memory.visibility != "owner_only",
            known,
        )
    return (false(),)
