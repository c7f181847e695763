"""SQL for the user of a run in the graph: one entity in a bucket, whatever they are called.

Until a name is known the entity has the user's id for its name. Then it takes the name, and the
id stays behind as an alias, by which it is found again.
"""

from sqlalchemy import ColumnElement, false, func, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.identity.users.models import User
from app.language.keyless.attributes import attribute_of
from app.language.text.names import name_key
from app.memory.graph.models import GraphEntity
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import GraphOwner, fits
from app.memory.graph.triples import Speaker
from app.memory.memories.models import Memory

NAME = "user.name"


class SpeakerRepository:
    """The users of one tenant in its graphs. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._tenant_id = access.tenant_id
        self._entities = EntityRepository(db, access)

    async def name_of(self, owner: GraphOwner, user_id: str) -> str:
        """What the user is called: as they said last, else as the caller wrote, else their id.

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

    async def ensured(self, owner: GraphOwner, user_id: str) -> Speaker:
        """The user as statements of this place must name them, so that they stay one entity.

        Somebody who has the user's name in the graph already, while the user is there by their
        id, stays somebody else; a merge by hand makes them one.
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
    """The memories in which a user may have said something that this graph may tell."""
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
