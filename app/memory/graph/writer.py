"""Writes statements into the graph and reads what is near: on PostgreSQL, by recursive queries."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.text.names import name_key
from app.memory.graph.models import GraphEntity, GraphRelation
from app.memory.graph.neighbourhood_repository import GraphNeighbourhood, NearMemory
from app.memory.graph.relation_repository import RelationTimeline
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import (
    MOST_DEPTH,
    NEAR,
    THING,
    GraphOwner,
    NamedEntity,
    RelationPeriod,
    RelationStatement,
    WriteResult,
    cut_by,
    ends_where,
    fits,
    relation_name,
    same_name,
)
from app.platform.database.base import new_id

MOST_EVIDENCE: Final = 100
NEAREST: Final = 5
LONGEST_TYPE: Final = 50

REPLACED = "another value took its place"
ENDED = "said to hold no longer"
CONFIRMED = "said again"


class GraphWriter:
    """The graph in a transaction of the caller's, under the locks of the buckets it holds."""

    def __init__(
        self,
        db: AsyncSession,
        access: Access,
        *,
        actor: str | None,
        job_id: str | None,
        now: datetime,
        embedding_model: str | None = None,
        vectors: Mapping[str, Any] | None = None,
    ) -> None:
        """Prepare for one run; `vectors` are those of names, by `name_key`."""
        self._entities = EntityRepository(db, access)
        self._relations = RelationTimeline(db, access, now=now, actor=actor, job_id=job_id)
        self._near = GraphNeighbourhood(db, access)
        self._actor = actor
        self._now = now
        self._model = embedding_model
        self._vectors = vectors or {}
        self._counted: Counter[str] = Counter()

    async def store(
        self, owner: GraphOwner, statements: Sequence[RelationStatement]
    ) -> WriteResult:
        """Write statements in order; entities are matched or made, relations are added, confirmed
        or closed. To write the same again confirms it.

        A statement that cannot be kept (`statements.fits`, `relation_name`) is left out.
        """
        await self._store(_without_project(owner), statements)
        return self._written()

    async def state(self, owner: GraphOwner, statement: RelationStatement) -> GraphRelation | None:
        """The relation that says one statement now; None where it cannot be kept."""
        return next(iter(await self._store(_without_project(owner), [statement])), None)

    async def entity(self, owner: GraphOwner, named: NamedEntity) -> GraphEntity:
        """The entity of a name, matched or made."""
        return (await self._resolve(_without_project(owner), [named], make=True))[
            name_key(named.name)
        ]

    async def _store(
        self, owner: GraphOwner, statements: Sequence[RelationStatement]
    ) -> list[GraphRelation]:
        kept = [statement for statement in map(_kept, statements) if statement is not None]
        said = [statement for statement in kept if not statement.retracts]
        names = [name for statement in said for name in (statement.source, statement.destination)]
        known = await self._resolve(owner, names, make=True)
        # A retraction makes no entity.
        retracted = [
            name
            for statement in kept
            if statement.retracts
            for name in (statement.source, statement.destination)
        ]
        known = await self._resolve(owner, retracted, make=False) | known
        triples = [
            (
                statement,
                known[name_key(statement.source.name)],
                known[name_key(statement.destination.name)],
            )
            for statement in kept
            if {name_key(statement.source.name), name_key(statement.destination.name)}
            <= known.keys()
        ]
        held = await self._held(triples)
        rows = [
            self._state(owner, held, statement, source, destination)
            for statement, source, destination in triples
        ]
        await self._relations.flush()
        await self._entities.note_mentions(
            (memory_id, entity.entity_id)
            for statement, source, destination in triples
            for memory_id in statement.memory_ids
            for entity in (source, destination)
        )
        return [row for row in rows if row is not None]

    async def mention(
        self, owner: GraphOwner, named: Mapping[NamedEntity, Sequence[str]]
    ) -> WriteResult:
        """Write that memories mention entities, which are matched or made, without a relation.

        Args:
            owner: whose graph it is.
            named: ids of the memories, for each.

        """
        owner = _without_project(owner)
        kept = {name: ids for name, ids in named.items() if fits(name.name)}
        known = await self._resolve(owner, list(kept), make=True)
        await self._entities.note_mentions(
            (memory_id, known[name_key(name.name)].entity_id)
            for name, ids in kept.items()
            for memory_id in ids
        )
        return self._written()

    async def close_of(
        self, memory_ids: Sequence[str], reason: str, *, withdraw: bool = False
    ) -> int:
        """End the relations that only these memories support; returns how many.

        Args:
            memory_ids: memories that were superseded or deleted; their rows are still there.
            reason: kept in the history.
            withdraw: they were never true, rather than true until now.

        """
        closed = 0
        for row in await self._relations.supported_by(list(memory_ids)):
            if withdraw:
                self._relations.withdraw(row)
            elif row.valid_to is not None and row.valid_to <= self._now:
                continue
            else:
                end = max(self._now, row.valid_from or self._now)
                self._relations.revise(row, {"valid_to": end}, reason)
            closed += 1
        await self._relations.flush()
        return closed

    async def near(
        self,
        keys: Sequence[str],
        *,
        depth: int = 1,
        limit: int = 50,
        as_of: datetime | None = None,
    ) -> Sequence[NearMemory]:
        """Memories that speak of the entities with these names or aliases (`name_key`), and of
        their neighbours, the nearest first; of what the caller may see.
        """
        seeds = await self._entities.named(keys, equal={}, limit=limit)
        return await self._near.memories(
            [row.entity_id for row in seeds],
            depth=min(depth, MOST_DEPTH),
            limit=limit,
            as_of=as_of or self._now,
        )

    # Entities.

    async def _resolve(
        self, owner: GraphOwner, names: Sequence[NamedEntity], *, make: bool
    ) -> dict[str, GraphEntity]:
        """The entity of each key: by name, by alias, by nearness; else a new one, if one may be."""
        wanted = _by_key(names)
        if not wanted:
            return {}
        found = await self._entities.by_keys(owner, wanted)
        left = wanted.keys() - found.keys()
        if left:
            found |= await self._by_alias(owner, {key: wanted[key] for key in left})
        for key in sorted(wanted.keys() - found.keys()):
            near = await self._nearest(owner, key, wanted[key])
            if near is not None:
                found[key] = near
        self._counted["entities_matched"] += len(found)
        for key, row in found.items():
            if row.entity_type == THING != wanted[key].entity_type:
                row.entity_type = wanted[key].entity_type
                row.version += 1
        if make:
            found |= await self._make(owner, {k: wanted[k] for k in wanted.keys() - found.keys()})
        return found

    async def _by_alias(
        self, owner: GraphOwner, wanted: Mapping[str, NamedEntity]
    ) -> dict[str, GraphEntity]:
        """Entities whose alias no other entity has, or no other of that type. Of two Sams of one
        type neither is chosen, so that a third is made.
        """
        having: dict[str, list[GraphEntity]] = {}
        for key, row in await self._entities.by_aliases(owner, wanted):
            having.setdefault(key, []).append(row)
        found = {}
        for key, rows in having.items():
            fitting = [row for row in rows if row.entity_type == wanted[key].entity_type]
            chosen = fitting if len(rows) > 1 else rows
            if len(chosen) == 1:
                found[key] = chosen[0]
        return found

    async def _nearest(self, owner: GraphOwner, key: str, named: NamedEntity) -> GraphEntity | None:
        vector = self._vectors.get(key)
        if vector is None or self._model is None:
            return None
        near = await self._entities.nearest(
            owner, named.entity_type, self._model, vector, limit=NEAREST
        )
        for row, distance in near:
            if distance <= NEAR and same_name(row.name, named.name):
                # It is found by this name the next time.
                await self._entities.note_aliases([(row.entity_id, key, named.name.strip())])
                return row
        return None

    async def _make(
        self, owner: GraphOwner, wanted: Mapping[str, NamedEntity]
    ) -> dict[str, GraphEntity]:
        if not wanted:
            return {}
        rows = [self._row(owner, key, wanted[key]) for key in sorted(wanted)]
        made = await self._entities.insert(rows)
        found = await self._entities.by_keys(owner, wanted)
        self._counted["entities_created"] += len(made)
        self._counted["entities_matched"] += len(wanted) - len(made)
        return found

    def _row(self, owner: GraphOwner, key: str, named: NamedEntity) -> dict[str, Any]:
        vector = self._vectors.get(key) if self._model is not None else None
        return {
            "entity_id": new_id("ent"),
            "name": named.name.strip(),
            "name_key": key,
            "entity_type": named.entity_type,
            "embedding": vector,
            "embedding_model": self._model if vector is not None else None,
            "creator": self._actor,
            "scope": owner.scope,
            "scope_id": owner.scope_id,
            "user_id": owner.user_id,
            "agent_id": owner.agent_id,
            "project_id": owner.project_id,
        }

    # Relations.

    async def _held(
        self, triples: Iterable[tuple[RelationStatement, GraphEntity, GraphEntity]]
    ) -> dict[tuple[str, str], list[GraphRelation]]:
        pairs = {(source.entity_id, statement.relation) for statement, source, _ in triples}
        held: dict[tuple[str, str], list[GraphRelation]] = {pair: [] for pair in pairs}
        for row in await self._relations.known_of(sorted(pairs)) if pairs else ():
            held[row.source_id, row.relation].append(row)
        return held

    def _state(
        self,
        owner: GraphOwner,
        held: dict[tuple[str, str], list[GraphRelation]],
        statement: RelationStatement,
        source: GraphEntity,
        destination: GraphEntity,
    ) -> GraphRelation | None:
        """Write one triple beside what is known of its subject and relation, and nothing else.
        Returns what says it now.
        """
        if source.entity_id == destination.entity_id:
            return None
        rows = held[source.entity_id, statement.relation]
        period = RelationPeriod(statement.valid_from, statement.valid_to)
        said_at = min(statement.said_at or self._now, self._now)
        same = [
            row
            for row in rows
            if row.destination_id == destination.entity_id and _meets(row, period, said_at)
        ]
        if statement.retracts:
            for row in same:
                self._replace(rows, row, {"valid_to": _end(row, statement, said_at)}, ENDED)
                self._counted["relations_closed"] += 1
            return None
        others = [row for row in rows if row.destination_id != destination.entity_id]
        if same:
            now_said = self._confirm(rows, same[-1], statement)
            if statement.single:
                period = RelationPeriod(now_said.valid_from, now_said.valid_to)
                self._displace(rows, others, period, said_at)
            return now_said
        if statement.single:
            period = self._displace(rows, others, period, said_at)
        rows.append(self._add(owner, statement, source, destination, period))
        return rows[-1]

    def _displace(
        self,
        rows: list[GraphRelation],
        others: Sequence[GraphRelation],
        period: RelationPeriod,
        said_at: datetime,
    ) -> RelationPeriod:
        """End the values that a new one replaces; returns the period that is left to it."""
        closed = [
            (row, end)
            for row in others
            if (end := ends_where(RelationPeriod(row.valid_from, row.valid_to), period, said_at))
        ]
        for row, end in closed:
            self._replace(rows, row, {"valid_to": end}, REPLACED)
            self._counted["relations_closed"] += 1
        begins = said_at if closed and period.begins is None else period.begins
        later = [RelationPeriod(row.valid_from, row.valid_to) for row in others]
        return RelationPeriod(begins, cut_by(RelationPeriod(begins, period.ends), later))

    def _confirm(
        self, rows: list[GraphRelation], row: GraphRelation, said: RelationStatement
    ) -> GraphRelation:
        changes: dict[str, Any] = {
            "confidence": max(row.confidence, said.confidence),
            "evidence": _united(row.evidence, said.evidence),
            "memory_ids": _united(row.memory_ids, said.memory_ids),
            "valid_from": _begun(row, said),
            "valid_to": row.valid_to if said.valid_to is None else said.valid_to,
        }
        changed = {name: new for name, new in changes.items() if new != getattr(row, name)}
        self._counted["relations_confirmed"] += 1
        return self._replace(rows, row, changed, CONFIRMED) if changed else row

    def _replace(
        self, rows: list[GraphRelation], row: GraphRelation, changes: dict[str, Any], reason: str
    ) -> GraphRelation:
        index = next(number for number, known in enumerate(rows) if known is row)
        rows[index] = self._relations.revise(row, changes, reason)
        return rows[index]

    def _add(
        self,
        owner: GraphOwner,
        statement: RelationStatement,
        source: GraphEntity,
        destination: GraphEntity,
        period: RelationPeriod,
    ) -> GraphRelation:
        self._counted["relations_added"] += 1
        return self._relations.add(
            owner,
            source_id=source.entity_id,
            relation=statement.relation,
            destination_id=destination.entity_id,
            confidence=statement.confidence,
            evidence=_united([], statement.evidence),
            memory_ids=_united([], statement.memory_ids),
            valid_from=period.begins,
            valid_to=period.ends,
        )

    def _written(self) -> WriteResult:
        counted, self._counted = dict(self._counted), Counter()
        return WriteResult(**counted)


def _meets(row: GraphRelation, period: RelationPeriod, said_at: datetime) -> bool:
    """Whether a stored period and that of a statement overlap."""
    if row.valid_to is not None and row.valid_to <= (period.begins or said_at):
        return False
    return period.ends is None or row.valid_from is None or row.valid_from < period.ends


def _end(row: GraphRelation, statement: RelationStatement, said_at: datetime) -> datetime:
    """Where a retracted relation ends: as it says, else when it was said; never before it began."""
    end = statement.valid_to or statement.valid_from or said_at
    return max(end, row.valid_from or end)


def _without_project(owner: GraphOwner) -> GraphOwner:
    """A user's graph must not be deleted with a project that was mentioned."""
    return owner if owner.scope == "project" else replace(owner, project_id=None)


def _kept(statement: RelationStatement) -> RelationStatement | None:
    relation = relation_name(statement.relation)
    since, until = statement.valid_from, statement.valid_to
    period_fits = since is None or until is None or since <= until
    if relation is None or not (fits(statement.source.name) and fits(statement.destination.name)):
        return None
    return replace(statement, relation=relation) if period_fits else None


def _by_key(names: Iterable[NamedEntity]) -> dict[str, NamedEntity]:
    """Each key once, with the first type that says something."""
    found: dict[str, NamedEntity] = {}
    for named in names:
        key = name_key(named.name)
        kind = named.entity_type.strip()[:LONGEST_TYPE] or THING
        if key not in found or found[key].entity_type == THING != kind:
            found[key] = NamedEntity(found[key].name if key in found else named.name, kind)
    return found


def _united(old: Iterable[str], new: Iterable[str]) -> list[str]:
    return list(dict.fromkeys([*old, *new]))[-MOST_EVIDENCE:]


def _begun(row: GraphRelation, said: RelationStatement) -> datetime | None:
    """The earlier of two beginnings; an open one stays, unless the statement is from before it
    was first known, and so adds something.
    """
    if said.valid_from is None:
        return row.valid_from
    if row.valid_from is None:
        return said.valid_from if said.valid_from <= row.known_from else None
    return min(row.valid_from, said.valid_from)
