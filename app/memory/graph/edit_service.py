"""Edits of the graph by callers: names of entities, relations and their corrections.

A correction never overwrites: it closes the known version, and adds the next.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import VersionConflictError
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.users.schemas import UserRequiredError
from app.identity.users.service import resolve_subject
from app.language.text.names import name_key
from app.memory.graph.errors import (
    DifferentOwnersError,
    EntityTakenError,
    InvalidPeriodError,
    NotYourGraphError,
    RelationTakenError,
    SameEntityError,
)
from app.memory.graph.models import GraphEntity, GraphRelation
from app.memory.graph.owner_repository import OwnerRepository
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.graph.repository import EntityRepository, graph_owner
from app.memory.graph.schemas import (
    EntityPatch,
    EntityRead,
    RelationCreate,
    RelationPatch,
    RelationRead,
)
from app.memory.graph.service import entities_shown, relations_shown
from app.memory.graph.statements import GraphOwner, NamedEntity, RelationStatement
from app.memory.graph.writer import GraphWriter
from app.memory.memories.errors import MemoryNotFoundError, ScopeRequiresError
from app.memory.memories.owner import MemoryOwner, ensure_owner
from app.memory.memories.repository import MemoryRepository
from app.platform.database.base import apply_changes
from app.platform.database.failures import conflicts
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

_PERIOD = {"valid_from", "valid_to"}


class GraphEditService:
    """Edits entities and relations that a caller may change."""

    def __init__(self, work: Work, now: Callable[[], datetime]) -> None:
        self._work = work
        self._now = now

    async def patch_entity(
        self, principal: Principal, entity_id: str, body: EntityPatch, *, expected: int | None
    ) -> EntityRead:
        """The changed entity; its old name stays as an alias. The same values change nothing.

        Raises:
            EntityNotFoundError, VersionConflictError, EntityMergedError: as their names say.
            EntityTakenError: another entity of the same owner has the name.
            NotYourGraphError, InsufficientScopeError: it is only shared with the caller.
            MemoryDisabledError and what `ensure_owner` raises: writing is switched off.

        """
        self._work.refuse_disabled()
        changes = {
            {"metadata": "metadata_"}.get(name, name): value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None
        }
        async with self._work.write(principal) as unit:
            entities = EntityRepository(unit.db, principal.access)
            row = await writable(unit.db, principal, entities, entity_id)
            old_key, old_name = row.name_key, row.name
            if "name" in changes:
                changes["name_key"] = name_key(changes["name"])
                await _refuse_taken(entities, row, changes["name_key"])
            with conflicts({"graph_entities_uk_name_key": EntityTakenError(entity_id)}):
                await apply_changes(unit.db, row, changes, expected=expected)
            if row.name_key != old_key:
                await entities.note_aliases([(entity_id, old_key, old_name)])
            [shown] = await entities_shown(unit.db, principal.access, [row])
        return shown

    async def add_alias(
        self, principal: Principal, entity_id: str, alias: str, *, key: IdempotencyKey | None = None
    ) -> EntityRead:
        """The entity with one more name; a name that it has already changes nothing.

        Raises:
            EntityTakenError: another entity of the same owner has it as its name.
            EntityNotFoundError, EntityMergedError, NotYourGraphError, InsufficientScopeError,
            MemoryDisabledError and what `ensure_owner` raises: as in `patch_entity`.

        """
        async with self._work.write(principal, key) as unit:
            entities = EntityRepository(unit.db, principal.access)
            row = await writable(unit.db, principal, entities, entity_id)
            alias_key = name_key(alias)
            if alias_key != row.name_key:
                await _refuse_taken(entities, row, alias_key)
                await entities.note_aliases([(entity_id, alias_key, alias.strip())])
            [shown] = await entities_shown(unit.db, principal.access, [row])
            return unit.answer(shown, 200, user_id=row.user_id)

    async def remove_alias(self, principal: Principal, entity_id: str, alias: str) -> None:
        """Remove one of an entity's other names.

        Raises:
            AliasNotFoundError: the entity has no such alias.
            What `add_alias` raises, without EntityTakenError.

        """
        async with self._work.write(principal) as unit:
            entities = EntityRepository(unit.db, principal.access)
            await writable(unit.db, principal, entities, entity_id)
            await entities.remove_alias(entity_id, name_key(alias))

    async def add_relation(
        self, principal: Principal, body: RelationCreate, *, key: IdempotencyKey | None = None
    ) -> RelationRead:
        """The relation, as a run would write it: stated again it is confirmed, and another value
        of a `single` one ends. Safe to retry with `key`.

        Raises:
            EntityNotFoundError, MemoryNotFoundError: an id is none for this caller.
            DifferentOwnersError, SameEntityError: no relation can join these two.
            UserRequiredError, ScopeRequiresError: the owner of the graph is missing.
            InsufficientScopeError, NotYourGraphError: it is only shared with the caller.
            MemoryDisabledError and what `ensure_owner` raises: writing is switched off.

        """
        async with self._work.write(principal, key) as unit:
            entities = EntityRepository(unit.db, principal.access)
            owner = await _relation_owner(principal, entities, body)
            await lock_owner(unit.db, principal, owner)
            await ensure_graph_owner(unit.db, principal, owner)
            source = await _side(entities, body.source_id, body.source, body.source_type, owner)
            destination = await _side(
                entities, body.destination_id, body.destination, body.destination_type, owner
            )
            if name_key(source.name) == name_key(destination.name):
                raise SameEntityError("destination")
            if missing := await entities.missing_memories(body.memory_ids):
                raise MemoryNotFoundError(min(missing))
            row = await self._write_statement(
                unit.db, principal, owner, _statement(body, source, destination)
            )
            [shown] = await relations_shown(unit.db, principal.access, [row])
            answer = unit.answer(shown, 201, user_id=owner.user_id)
        log.info("relation_added", relation_id=answer.relation_id)
        return answer

    async def patch_relation(
        self, principal: Principal, relation_id: str, body: RelationPatch, *, expected: int | None
    ) -> RelationRead:
        """The next version of a relation; the one before can still be read by `known_at`.

        Raises:
            RelationNotFoundError, VersionConflictError, InvalidPeriodError: as their names say.
            EntityNotFoundError, DifferentOwnersError, SameEntityError: of the new destination.
            RelationTakenError: another relation states the same already.
            NotYourGraphError, InsufficientScopeError, MemoryDisabledError and what
            `ensure_owner` raises: as in `add_relation`.

        """
        self._work.refuse_disabled()
        now = self._now()
        async with self._work.write(principal) as unit:
            timeline = RelationTimeline(unit.db, principal.access, now=now, actor=principal.key_id)
            row = await self._writable(unit.db, principal, timeline, relation_id, expected)
            changes = await self._changes(unit.db, principal, row, body)
            changed = {name: new for name, new in changes.items() if new != getattr(row, name)}
            if changed:
                await _refuse_same_relation(timeline, row, changed)
                row = timeline.revise(row, changed, body.reason)
                await timeline.flush()
            [shown] = await relations_shown(unit.db, principal.access, [row])
        return shown

    async def delete_relation(
        self, principal: Principal, relation_id: str, *, expected: int | None
    ) -> None:
        """Withdraw a relation from now on; it stays readable by `known_at` and in its history.

        Raises:
            RelationNotFoundError, VersionConflictError, NotYourGraphError,
            InsufficientScopeError, MemoryDisabledError: as in `patch_relation`.

        """
        async with self._work.write(principal) as unit:
            timeline = RelationTimeline(unit.db, principal.access, now=self._now())
            row = await self._writable(unit.db, principal, timeline, relation_id, expected)
            timeline.withdraw(row)
            await timeline.flush()
        log.info("relation_withdrawn", relation_id=relation_id)

    async def _writable(
        self,
        db: AsyncSession,
        principal: Principal,
        timeline: RelationTimeline,
        relation_id: str,
        expected: int | None,
    ) -> GraphRelation:
        """A relation that the caller may change, locked. Raises what `patch_relation` does."""
        seen = await timeline.get(relation_id)
        refuse_strangers(principal, seen, relation_id)
        await lock_owner(db, principal, graph_owner(seen))
        row = await timeline.get(relation_id, lock=True)
        await ensure_graph_owner(db, principal, graph_owner(row))
        if expected is not None and row.version != expected:
            raise VersionConflictError(row.version)
        return row

    async def _changes(
        self, db: AsyncSession, principal: Principal, row: GraphRelation, body: RelationPatch
    ) -> dict[str, Any]:
        """The columns that a patch changes. Raises what `patch_relation` does."""
        given = body.model_dump(exclude_unset=True)
        changes = {name: given[name] for name in _PERIOD & given.keys()}
        if body.confidence is not None:
            changes["confidence"] = body.confidence
        begins = changes.get("valid_from", row.valid_from)
        ends = changes.get("valid_to", row.valid_to)
        if begins is not None and ends is not None and ends < begins:
            raise InvalidPeriodError
        if body.destination_id is not None or body.destination is not None:
            entities = EntityRepository(db, principal.access)
            owner = graph_owner(row)
            destination = await _side(entities, body.destination_id, body.destination, "", owner)
            writer = GraphWriter(
                db, principal.access, actor=principal.key_id, job_id=None, now=self._now()
            )
            entity = await writer.entity(owner, destination)
            if entity.entity_id == row.source_id:
                raise SameEntityError("destination")
            changes["destination_id"] = entity.entity_id
        return changes

    async def _write_statement(
        self,
        db: AsyncSession,
        principal: Principal,
        owner: GraphOwner,
        statement: RelationStatement,
    ) -> GraphRelation:
        """The relation that states this now. Raises SameEntityError."""
        writer = GraphWriter(
            db, principal.access, actor=principal.key_id, job_id=None, now=self._now()
        )
        stored = await writer.state(owner, statement)
        if stored is None:
            raise SameEntityError("destination")
        return stored


def refuse_strangers(principal: Principal, row: Any, thing_id: str) -> None:
    """Refuse a caller who may read a row but not change it.

    Raises:
        InsufficientScopeError: what all users of an agent share changes with an admin key.
        NotYourGraphError: a user's key changes what is that user's alone.

    """
    if row.scope == "agent" and not principal.may("admin"):
        raise InsufficientScopeError("admin", acting=principal.acting)
    if principal.access.user_id not in {None, row.user_id}:
        raise NotYourGraphError(thing_id)


async def lock_owner(db: AsyncSession, principal: Principal, owner: GraphOwner) -> None:
    """Lock a graph and its owners until the transaction ends, so that no other transaction writes
    it and no owner is erased. Call it before any row of the graph is locked.
    """
    await MemoryRepository(db, principal.access).lock_bucket(owner.scope, owner.scope_id)
    await OwnerRepository(db, principal.tenant_id).hold(owner)


async def ensure_graph_owner(db: AsyncSession, principal: Principal, owner: GraphOwner) -> None:
    """Make sure that every owner of a graph exists and may be written to, as with a memory.

    Raises:
        What `ensure_owner` raises.

    """
    memory_owner = MemoryOwner(
        owner.scope, owner.scope_id, owner.user_id, owner.agent_id, None, owner.project_id
    )
    await ensure_owner(db, principal, memory_owner, create=False)


async def writable(
    db: AsyncSession, principal: Principal, entities: EntityRepository, entity_id: str
) -> GraphEntity:
    """An entity that the caller may change, locked, with its bucket.

    Raises:
        EntityNotFoundError, EntityMergedError: there is none for this caller any more.
        NotYourGraphError, InsufficientScopeError: it is only shared with the caller.
        What `ensure_owner` raises: an owner is gone or switched off.

    """
    seen = await entities.get_live(entity_id)
    refuse_strangers(principal, seen, entity_id)
    await lock_owner(db, principal, graph_owner(seen))
    row = await entities.get_live(entity_id, lock=True)
    await ensure_graph_owner(db, principal, graph_owner(row))
    return row


async def _refuse_taken(entities: EntityRepository, row: GraphEntity, key: str) -> None:
    """Check that no other entity of the owner has a name. Raises EntityTakenError."""
    taken = (await entities.by_keys(graph_owner(row), [key])).get(key)
    if taken is not None and taken.entity_id != row.entity_id:
        raise EntityTakenError(taken.entity_id)


async def _refuse_same_relation(
    timeline: RelationTimeline, row: GraphRelation, changed: dict[str, Any]
) -> None:
    """Check that no other open relation states the same. Raises RelationTakenError."""
    destination_id = changed.get("destination_id", row.destination_id)
    if changed.get("valid_to", row.valid_to) is not None:
        return
    for relation in await timeline.known_of([(row.source_id, row.relation)]):
        if (
            relation.relation_id != row.relation_id
            and relation.destination_id == destination_id
            and relation.valid_to is None
        ):
            raise RelationTakenError(relation.relation_id)


async def _relation_owner(
    principal: Principal, entities: EntityRepository, body: RelationCreate
) -> GraphOwner:
    """The owner of a new relation: that of its entities, else the one that the request names.

    Raises:
        DifferentOwnersError: its two entities have different owners.

    """
    ids = [
        entity_id for entity_id in (body.source_id, body.destination_id) if entity_id is not None
    ]
    if ids:
        rows = [await entities.get_live(entity_id) for entity_id in ids]
        owners = {graph_owner(row) for row in rows}
        if len(owners) > 1:
            raise DifferentOwnersError("destination_id")
        refuse_strangers(principal, rows[0], rows[0].entity_id)
        return graph_owner(rows[0])
    return _requested_owner(principal, body)


def _requested_owner(principal: Principal, body: RelationCreate) -> GraphOwner:
    """The owner that a request names. Raises what `add_relation` does."""
    user_id, agent_id = resolve_subject(principal.access, body.user_id, body.agent_id)
    scope = body.scope or _scope(user_id, body.project_id, agent_id)
    if scope == "agent":
        if not principal.may("admin"):
            raise InsufficientScopeError("admin", acting=principal.acting)
        user_id = None
    if scope == "user" and user_id is None:
        raise UserRequiredError
    scope_id = {"user": user_id, "project": body.project_id, "agent": agent_id}[scope]
    if scope_id is None:
        raise ScopeRequiresError(scope, f"{scope}_id")
    return GraphOwner(
        scope, scope_id, user_id, agent_id, body.project_id if scope == "project" else None
    )


def _scope(user_id: str | None, project_id: str | None, agent_id: str | None) -> str:
    if project_id is not None:
        return "project"
    return "user" if user_id is not None or agent_id is None else "agent"


async def _side(
    entities: EntityRepository,
    entity_id: str | None,
    name: str | None,
    entity_type: str,
    owner: GraphOwner,
) -> NamedEntity:
    """One end of a relation, by its id or by its name.

    Raises:
        EntityNotFoundError, EntityMergedError: the id is none for this caller any more.
        DifferentOwnersError: the entity is in another graph.

    """
    if entity_id is None:
        return NamedEntity(name or "", entity_type)
    row = await entities.get_live(entity_id)
    if graph_owner(row) != owner:
        raise DifferentOwnersError("destination_id")
    return NamedEntity(row.name, row.entity_type)


def _statement(
    body: RelationCreate, source: NamedEntity, destination: NamedEntity
) -> RelationStatement:
    return RelationStatement(
        source,
        body.relation,
        destination,
        confidence=body.confidence,
        evidence=tuple(body.evidence),
        memory_ids=tuple(body.memory_ids),
        valid_from=body.valid_from,
        valid_to=body.valid_to,
        single=body.single,
    )
