"""Merges and splits of entities, and their undo, which restores every row exactly or refuses."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.language.text.names import name_key
from app.memory.graph.change_repository import (
    ALIASES,
    COLUMNS,
    ENTITIES,
    KEYS,
    MENTIONS,
    RELATIONS,
    ChangeRepository,
    fitting,
)
from app.memory.graph.edit_service import ensure_graph_owner, lock_owner, refuse_strangers, writable
from app.memory.graph.errors import (
    ChangedSinceError,
    ChangeUndoneError,
    DifferentOwnersError,
    EntityTakenError,
    InvalidChangeError,
    NotOfEntityError,
    SameEntityError,
    TooManyRowsError,
)
from app.memory.graph.merge import GraphMerge, Rows, merged, split
from app.memory.graph.models import GraphChange, GraphEntity
from app.memory.graph.repository import EntityRepository, graph_owner
from app.memory.graph.schemas import ChangeListed, ChangeRead, EntityMerge, EntityShort, EntitySplit
from app.memory.graph.service import change_shown
from app.memory.graph.statements import GraphOwner
from app.platform.database.base import new_id
from app.platform.database.failures import conflicts
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

MOST_ROWS: Final = 20_000
"""Rows around the entities of one merge or split; all of them are kept for the undo."""

_NAMING: Final = {
    ENTITIES: ("entity_id",),
    ALIASES: ("entity_id",),
    MENTIONS: ("entity_id",),
    RELATIONS: ("source_id", "destination_id"),
}
"""Columns that name entities."""


class GraphMergeService:
    """Merges and splits entities that a caller may change."""

    def __init__(
        self,
        work: Work,
        now: Callable[[], datetime],
        *,
        most_rows: int = MOST_ROWS,
    ) -> None:
        self._work = work
        self._now = now
        self._most_rows = most_rows

    async def merge(
        self,
        principal: Principal,
        entity_id: str,
        body: EntityMerge,
        *,
        key: IdempotencyKey | None = None,
    ) -> ChangeRead:
        """Make several entities one: their names, relations and mentions become those of the
        first, and duplicates are merged.

        The answer counts the rows that changed, by table. Safe to retry with `key`.

        Raises:
            EntityNotFoundError, EntityMergedError: one of them is not there any more.
            SameEntityError, DifferentOwnersError: these cannot be one.
            TooManyRowsError: too many rows are related to them.
            NotYourGraphError, InsufficientScopeError: they are only shared with the caller.
            MemoryDisabledError and what `ensure_owner` raises: writing is switched off.

        """
        self._work.refuse_disabled()
        ids = list(dict.fromkeys(body.entity_ids))
        if entity_id in ids:
            raise SameEntityError("entity_ids")
        async with self._work.write(principal, key) as unit:
            entities = EntityRepository(unit.db, principal.access)
            target = await writable(unit.db, principal, entities, entity_id)
            # In the order of ids. An older release running beside takes no bucket lock.
            sources = [await entities.get_live(source_id, lock=True) for source_id in sorted(ids)]
            if any(graph_owner(source) != graph_owner(target) for source in sources):
                raise DifferentOwnersError("entity_ids")
            around = await self._around(unit.db, principal, [entity_id, *ids])
            made = merged(
                around, _row(target), [_row(source) for source in sources], now=self._now()
            )
            change = _change("MERGE", target, [entity_id, *ids], made, body.reason, principal)
            if body.dry_run:
                return unit.answer_unkept(_counted(change, made))
            changes = ChangeRepository(unit.db, principal.access)
            await changes.swap(made.before, made.after)
            answer = change_shown(await changes.add(change))
            unit.answer(answer, 200, user_id=target.user_id)
        log.info("entities_merged", entity_id=entity_id, entities=len(ids))
        return answer

    async def split(
        self,
        principal: Principal,
        entity_id: str,
        body: EntitySplit,
        *,
        key: IdempotencyKey | None = None,
    ) -> ChangeRead:
        """Make two entities of one; the new one is the second of `entity_ids`.

        Safe to retry with `key`.

        Raises:
            EntityNotFoundError, EntityMergedError: it is not there any more.
            EntityTakenError: another entity of the same owner has the name.
            NotOfEntityError: an alias, relation or memory is not the entity's.
            TooManyRowsError, NotYourGraphError, InsufficientScopeError, MemoryDisabledError: as
                in `merge`.

        """
        async with self._work.write(principal, key) as unit:
            entities = EntityRepository(unit.db, principal.access)
            old = await writable(unit.db, principal, entities, entity_id)
            new_key = name_key(body.name)
            taken = (await entities.by_keys(graph_owner(old), [new_key])).get(new_key)
            if taken is not None:
                raise EntityTakenError(taken.entity_id)
            around = await self._around(unit.db, principal, [entity_id])
            new = _part(old, body, creator=principal.key_id)
            keys = {name_key(alias) for alias in body.aliases}
            _refuse_others(around, body, keys - {new_key})
            made = split(
                around,
                entity_id,
                new | {"version": 1},
                aliases=keys,
                relation_ids=set(body.relation_ids),
                memory_ids=set(body.memory_ids),
            )
            ids = [entity_id, new["entity_id"]]
            change = _change("SPLIT", old, ids, made, body.reason, principal)
            if body.dry_run:
                return unit.answer_unkept(_counted(change, made))
            await entities.insert([new])
            changes = ChangeRepository(unit.db, principal.access)
            await changes.swap(made.before, made.after)
            answer = change_shown(await changes.add(change))
            unit.answer(answer, 200, user_id=old.user_id)
        log.info("entity_split", entity_id=entity_id)
        return answer

    async def changes(self, principal: Principal, query: PageQuery) -> Page[ChangeListed]:
        """A page of merges and splits that the caller may see, newest first."""
        start = decode_time(query.cursor, "merges")
        async with self._work.read(principal) as db:
            rows = await ChangeRepository(db, principal.access).list_changes(
                start=start, limit=query.limit
            )
            known = await EntityRepository(db, principal.access).get_all(
                {entity_id for row in rows for entity_id in row.entity_ids}
            )
        return page(
            "merges",
            rows,
            query.limit,
            show=lambda row: _listed(row, known),
            place=lambda row: (row.create_time, row.change_id),
        )

    async def undo(
        self, principal: Principal, change_id: str, *, key: IdempotencyKey | None = None
    ) -> ChangeRead:
        """Restore every row that a merge or a split touched, as it was. Safe to retry with `key`.

        Raises:
            ChangeNotFoundError: there is none for this caller.
            ChangeUndoneError: it was undone before.
            ChangedSinceError: rows were changed since; it names them.
            InvalidChangeError: it was imported, and does not fit this graph.
            NotYourGraphError, InsufficientScopeError, MemoryDisabledError: as in `merge`.

        """
        async with self._work.write(principal, key) as unit:
            changes = ChangeRepository(unit.db, principal.access)
            seen = await changes.get(change_id)
            refuse_strangers(principal, seen, change_id)
            await lock_owner(unit.db, principal, graph_owner(seen))
            change = await changes.get(change_id, lock=True)
            if change.undone_at is not None:
                raise ChangeUndoneError(change_id)
            await ensure_graph_owner(unit.db, principal, graph_owner(change))
            with fitting(change_id):
                await _put_back(changes, change)
            change.undone_at = self._now()
            await unit.db.flush()
            answer = change_shown(change)
            unit.answer(answer, 200, user_id=change.user_id)
        log.info("graph_change_undone", change_id=change_id)
        return answer

    async def _around(self, db: AsyncSession, principal: Principal, ids: Sequence[str]) -> Rows:
        """The rows around entities.

        Raises:
            TooManyRowsError: there are too many.

        """
        rows = await ChangeRepository(db, principal.access).around(ids, most=self._most_rows + 1)
        counted = sum(map(len, rows.values()))
        if counted > self._most_rows:
            raise TooManyRowsError(counted, self._most_rows)
        return rows


async def _put_back(changes: ChangeRepository, change: GraphChange) -> None:
    """Restore the rows of a change.

    Raises:
        InvalidChangeError: it does not fit this graph.
        ChangedSinceError: rows were changed since.

    """
    before, after = change.before, change.after
    owner = graph_owner(change)
    if not all(_of_graph(rows, owner) for rows in (before, after)):
        raise InvalidChangeError(change.change_id)
    was = {row["entity_id"] for row in before.get(ENTITIES, [])}
    made = [row["entity_id"] for row in after.get(ENTITIES, []) if row["entity_id"] not in was]
    since = await changes.outside(owner, _entities_in(before) | _entities_in(after))
    since += await changes.different(after)
    since += await changes.there(_without(before, after))
    since += await changes.names_taken(sorted(was))
    if made and not since:
        # Rows added to a new entity since would be deleted with it.
        there = await changes.around(made, most=MOST_ROWS + 1)
        counted = {table: len(rows) for table, rows in there.items()}
        if any(counted[table] > len(after.get(table, ())) for table in counted):
            since = [f"entity {entity_id}" for entity_id in made]
    if since:
        raise ChangedSinceError(list(dict.fromkeys(since)))
    taken = ChangedSinceError([f"entity {entity_id}" for entity_id in change.entity_ids[:1]])
    with conflicts(dict.fromkeys(("graph_relations_uk_current", "graph_aliases_pkey"), taken)):
        await changes.swap(after, before)
    await changes.remove_entities(made)


def _of_graph(rows: Any, owner: GraphOwner) -> bool:
    """Whether rows are such as a merge or a split in this bucket keeps; values aside."""
    return isinstance(rows, dict) and all(
        table in COLUMNS
        and isinstance(each, list)
        and all(_of_table(table, row, owner) for row in each)
        for table, each in rows.items()
    )


def _of_table(table: str, row: Any, owner: GraphOwner) -> bool:
    if not isinstance(row, dict) or not COLUMNS[table].issuperset(row):
        return False
    names = (*KEYS.get(table, ("entity_id",)), *_NAMING[table])
    if not all(isinstance(row.get(name), str | int) for name in names):
        return False
    if not isinstance(row.get("merged_into"), str | None):
        return False
    return table != RELATIONS or asdict(owner).items() <= row.items()


def _entities_in(rows: Rows) -> set[str]:
    """Every entity that rows name."""
    named = {row[name] for table, each in rows.items() for row in each for name in _NAMING[table]}
    into = {row.get("merged_into") for row in rows.get(ENTITIES, [])}
    return {str(entity_id) for entity_id in named | into if entity_id is not None}


def _without(rows: Rows, others: Rows) -> Rows:
    """Rows whose keys are not among those of `others`."""
    left: Rows = {}
    for table, names in KEYS.items():
        there = {tuple(row[name] for name in names) for row in others.get(table, [])}
        left[table] = [
            row for row in rows.get(table, []) if tuple(row[name] for name in names) not in there
        ]
    return left


def _row(entity: GraphEntity) -> dict[str, Any]:
    names = ("entity_id", "name", "name_key", "version")
    return {name: getattr(entity, name) for name in names}


def _part(old: GraphEntity, body: EntitySplit, *, creator: str) -> dict[str, Any]:
    return {
        "entity_id": new_id("ent"),
        "name": body.name,
        "name_key": name_key(body.name),
        "entity_type": body.entity_type or old.entity_type,
        "creator": creator,
        "scope": old.scope,
        "scope_id": old.scope_id,
        "user_id": old.user_id,
        "agent_id": old.agent_id,
        "project_id": old.project_id,
    }


def _refuse_others(around: Rows, body: EntitySplit, keys: set[str]) -> None:
    """Raises NotOfEntityError."""
    wanted = (
        ("aliases", keys, {row["alias_key"] for row in around[ALIASES]}),
        (
            "relation_ids",
            set(body.relation_ids),
            {row["relation_id"] for row in around[RELATIONS]},
        ),
        ("memory_ids", set(body.memory_ids), {row["memory_id"] for row in around[MENTIONS]}),
    )
    for name, asked, there in wanted:
        if missing := sorted(asked - there):
            raise NotOfEntityError(name, missing)


def _change(
    event: str,
    entity: GraphEntity,
    ids: list[str],
    made: GraphMerge,
    reason: str | None,
    principal: Principal,
) -> GraphChange:
    return GraphChange(
        change_id=new_id("gch"),
        event=event,
        entity_ids=ids,
        before=made.before,
        after=made.after,
        reason=reason,
        actor=principal.key_id,
        scope=entity.scope,
        scope_id=entity.scope_id,
        user_id=entity.user_id,
        agent_id=entity.agent_id,
        project_id=entity.project_id,
    )


def _listed(change: GraphChange, known: Mapping[str, GraphEntity]) -> ChangeListed:
    there = [known[entity_id] for entity_id in change.entity_ids if entity_id in known]
    shown = change_shown(change).model_dump()
    return ChangeListed(**shown, entities=[EntityShort.model_validate(row) for row in there])


def _counted(change: GraphChange, made: GraphMerge) -> ChangeRead:
    return ChangeRead(
        change_id=None,
        event=change.event,
        entity_ids=change.entity_ids,
        rows=made.rows,
        reason=change.reason,
        actor=change.actor,
        create_time=None,
        undone_at=None,
        dry_run=True,
    )
