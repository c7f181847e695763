"""SQL for memories. Their history is in `record_repository.py`, the search in `search_sql.py`."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    ColumnElement,
    Subquery,
    Text,
    TextClause,
    and_,
    bindparam,
    cast,
    delete,
    false,
    func,
    insert,
    or_,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.text.offload import read_text
from app.memory.memories import validity_sql
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.filters import compile_filters
from app.memory.memories.models import Memory
from app.memory.memories.searchable import NO_TERMS, characters, with_terms
from app.memory.memories.visibility_sql import removable, removable_selection, visible
from app.platform.database.base import after
from app.platform.database.engine import clock_of
from app.platform.database.locks import take_lock


def current() -> ColumnElement[bool]:
    """What counts now: active, not expired, inside its time of validity."""
    return and_(Memory.status == "active", _in_time(Memory.__table__.c, func.now()))


def current_or_coming() -> ColumnElement[bool]:
    """What counts now, and what will from a later time on."""
    columns = Memory.__table__.c
    over = or_(columns.expires_at <= func.now(), columns.valid_to <= func.now())
    return and_(Memory.status == "active", func.coalesce(over, false()).is_(false()))


def valid_at(at: datetime, row: Any = Memory.__table__.c) -> ColumnElement[bool]:
    """What was true at a time; `search_sql.py` has the same as text.

    What was superseded or has expired since still held then; what a caller archived was
    withdrawn.

    Args:
        row: the columns to judge, those of the table unless they are of another time.

    """
    expired = and_(row.status == "archived", row.expires_at <= func.now())
    return and_(or_(row.status.in_(["active", "superseded"]), expired), _in_time(row, at))


def _in_time(row: Any, time: Any) -> ColumnElement[bool]:
    return and_(
        or_(row.expires_at.is_(None), row.expires_at > time),
        or_(row.valid_from.is_(None), row.valid_from <= time),
        or_(row.valid_to.is_(None), row.valid_to > time),
    )


def compiled(filters: Mapping[str, Any]) -> TextClause:
    """The filters of a request as a condition. Raises InvalidFilterError."""
    values: dict[str, Any] = {}

    def bind(value: object, sql_type: str) -> str:
        name = f"filter_{len(values)}"
        values[name] = value
        return f"CAST(:{name} AS {sql_type})"

    condition = compile_filters(filters, bind)
    return text(f"({condition})").bindparams(
        *(bindparam(name, value) for name, value in values.items())
    )


def existing(access: Access) -> ColumnElement[bool]:
    """The condition every read starts from; nothing else may select memories."""
    return and_(Memory.tenant_id == access.tenant_id, Memory.status != "deleted", visible(access))


@dataclass(frozen=True, slots=True)
class SameText:
    """An active memory that keeps its text from being saved again, by the unique hash.

    Args:
        shown: the caller may see it; else its id must not be shown.
        past: it counts no longer, and only waits to be archived.

    """

    row: Memory
    shown: bool
    past: bool


class MemoryRepository:
    """Memories a caller may see, deleted ones never. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    def _mine(self) -> ColumnElement[bool]:
        return existing(self._access)

    async def transaction_time(self) -> datetime:
        """When this transaction began, by the clock of the database."""
        time: datetime = (await self._db.scalars(select(func.now()))).one()
        return time

    async def lock_bucket(self, scope: str, scope_id: str) -> None:
        """One writer per bucket until the transaction ends, so that two near duplicates that
        arrive together see each other.
        """
        await take_lock(self._db, bucket_lock(self._tenant_id, scope, scope_id))

    async def get(self, memory_id: str, *, lock: bool = False, remove: bool = False) -> Memory:
        """A memory that the caller may see; with `remove` also one that it may remove unseen.

        Raises:
            MemoryNotFoundError: there is none for this caller.

        """
        seen = visible(self._access)
        statement = select(Memory).where(
            Memory.tenant_id == self._tenant_id,
            Memory.status != "deleted",
            or_(seen, removable(self._access)) if remove else seen,
            Memory.memory_id == memory_id,
        )
        row = await self._db.scalar(statement.with_for_update() if lock else statement)
        if row is None:
            raise MemoryNotFoundError(memory_id)
        return row

    async def has(self, memory_id: str) -> bool:
        """Whether the caller may see it."""
        statement = select(Memory.memory_id).where(self._mine(), Memory.memory_id == memory_id)
        return await self._db.scalar(statement) is not None

    async def same_hash(
        self, row: Mapping[str, Any], hashes: Iterable[bytes]
    ) -> dict[bytes, SameText]:
        """Active memories of the bucket of `row` with one of these hashes, by hash.

        Hidden ones are among them, since they keep their text from being saved like any other.
        """
        now = func.now()
        past = or_(Memory.expires_at <= now, Memory.valid_to <= now)
        rows = await self._db.execute(
            select(Memory, visible(self._access), func.coalesce(past, false())).where(
                Memory.tenant_id == self._tenant_id,
                Memory.status == "active",
                Memory.content_hash.in_(list(hashes)),
                *bucket(row),
            )
        )
        return {found.content_hash: SameText(found, shown, past) for found, shown, past in rows}

    async def lock_active(self, row: Memory) -> bool:
        """Whether `row`, read before, is still active; then it is locked and up to date."""
        locked = await self._db.scalar(
            select(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.memory_id == row.memory_id,
                Memory.status == "active",
            )
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        return locked is not None

    async def lock_predecessors(self, memory_id: str, at: datetime) -> Sequence[Memory]:
        """What a memory replaced, and what that had replaced before, as far as it still held
        at `at`; locked.
        """
        mine = Memory.tenant_id == self._tenant_id
        links = (
            select(Memory.memory_id)
            .where(mine, Memory.superseded_by == memory_id)
            .cte("links", recursive=True)
        )
        links = links.union(
            select(Memory.memory_id).where(mine, Memory.superseded_by == links.c.memory_id)
        )
        rows = await self._db.scalars(
            select(Memory)
            .where(
                mine,
                Memory.memory_id.in_(select(links.c.memory_id)),
                Memory.status == "superseded",
                Memory.valid_to > at,
            )
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        return rows.all()

    async def archive(self, row: Memory) -> None:
        """Archive a locked row."""
        row.status = "archived"
        row.version += 1
        await self._db.flush()
        await self._db.refresh(row)

    async def get_all(self, memory_ids: Iterable[str]) -> dict[str, Memory]:
        """Memories that the caller may see, by id.

        Raises:
            MemoryNotFoundError: one of them was deleted meanwhile.

        """
        wanted = list(memory_ids)
        if not wanted:
            return {}
        rows = await self._db.scalars(select(Memory).where(self._mine(), self._among(wanted)))
        found = {row.memory_id: row for row in rows}
        for memory_id in wanted:
            if memory_id not in found:
                raise MemoryNotFoundError(memory_id)
        return found

    async def add_all(self, rows: list[dict[str, Any]]) -> list[Memory]:
        """Insert `rows` in one statement and return them in order."""
        rows = await read_text(characters(rows), with_terms, rows)
        statement = insert(Memory).returning(Memory, sort_by_parameter_order=True)
        return list((await self._db.scalars(statement, rows)).all())

    async def list_memories(
        self,
        *,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None,
        start: tuple[datetime, str] | None,
        descending: bool,
        limit: int,
        as_of: datetime | None = None,
        in_conflict: bool | None = None,
    ) -> Sequence[Memory]:
        """By creation, one more than `limit` when another page follows.

        Args:
            equal: column to the value it must have; `status` active means current.
            filters: the grammar of `filters.py`.
            as_of: the time at which it counts, instead of now.
            in_conflict: only those that another contradicts, or only others.

        """
        statement = select(Memory).where(*self._selected(equal, filters, as_of=as_of))
        if in_conflict is not None:
            statement = statement.where(
                validity_sql.in_conflict(self._tenant_id, wanted=in_conflict)
            )
        rows = await self._db.scalars(
            after(
                statement,
                (Memory.create_time, Memory.memory_id),
                start=start,
                descending=descending,
                limit=limit,
            )
        )
        return rows.all()

    def _selected(
        self,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None,
        *,
        knowledge: bool = True,
        removing: bool = False,
        as_of: datetime | None = None,
    ) -> Sequence[ColumnElement[bool] | TextClause]:
        """Conditions; without `knowledge` what all users of an agent share is left out."""
        conditions: list[ColumnElement[bool] | TextClause] = (
            [*removable_selection(self._access, equal, filters)] if removing else [self._mine()]
        )
        for name, value in equal.items():
            if name == "status" and value == "active":
                conditions.append(current() if as_of is None else valid_at(as_of))
            else:
                conditions.append(getattr(Memory, name) == value)
        if not knowledge:
            conditions.append(Memory.scope != "agent")
        if filters:
            conditions.append(compiled(filters))
        return conditions

    async def lock_selected(
        self,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None = None,
        *,
        knowledge: bool = True,
    ) -> Sequence[str]:
        """Ids of what is selected and may be removed, locked until the transaction ends."""
        statement = (
            select(Memory.memory_id)
            .where(*self._selected(equal, filters, knowledge=knowledge, removing=True))
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        return (await self._db.scalars(statement)).all()

    async def count_selected(
        self,
        equal: Mapping[str, Any],
        filters: Mapping[str, Any] | None = None,
        *,
        knowledge: bool = True,
    ) -> int:
        """How many are selected and may be removed."""
        statement = (
            select(func.count())
            .select_from(Memory)
            .where(*self._selected(equal, filters, knowledge=knowledge, removing=True))
        )
        return int(await self._db.scalar(statement) or 0)

    async def delete(self, memory_ids: Sequence[str]) -> None:
        """Hide for good: the rows stay until the purge, with neither vectors nor terms."""
        await self._db.execute(
            update(Memory)
            .where(self._among(memory_ids))
            .values(
                status="deleted",
                embedding=None,
                deleted_at=await clock_of(self._db),
                version=Memory.version + 1,
                **NO_TERMS,
            )
            .execution_options(synchronize_session=False)
        )

    async def purge(self, memory_ids: Sequence[str]) -> None:
        """Remove the rows, and the references of memories that stay to them."""
        await self.clear_superseded_by(self._among(memory_ids))
        await self._db.execute(
            delete(Memory)
            .where(self._among(memory_ids))
            .execution_options(synchronize_session=False)
        )

    async def clear_superseded_by(self, gone: ColumnElement[bool]) -> None:
        """Let no memory that stays name one that goes as its successor.

        The ones that go are locked until the transaction ends, so that nothing refers to them
        anew before they are deleted.
        """
        ids = select(Memory.memory_id).where(Memory.tenant_id == self._tenant_id, gone)
        await self._db.execute(ids.order_by(Memory.memory_id).with_for_update())
        await self._db.execute(
            update(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.superseded_by.in_(ids),
                Memory.memory_id.not_in(ids),
            )
            .values(superseded_by=None)
            .execution_options(synchronize_session=False)
        )

    def _among(self, memory_ids: Sequence[str]) -> ColumnElement[bool]:
        return and_(
            Memory.tenant_id == self._tenant_id,
            Memory.memory_id == func.any(cast(list(memory_ids), ARRAY(Text))),
        )

    async def stats(self, equal: Mapping[str, Any]) -> Sequence[Any]:
        """Counts by status, type, scope, tier, source and model, and the newest creation."""
        keys = (
            Memory.status, Memory.memory_type, Memory.scope, Memory.tier, Memory.source,
            Memory.embedding_model,
        )  # fmt: skip
        conditions = [getattr(Memory, name) == value for name, value in equal.items()]
        rows = await self._db.execute(
            select(*keys, func.count().label("count"), func.max(Memory.create_time).label("last"))
            .where(self._mine(), *conditions)
            .group_by(*keys)
        )
        return rows.all()


def bucket_lock(tenant_id: str, scope: str, scope_id: str) -> str:
    """Name of the lock under which one transaction at a time decides about a bucket."""
    return f"{tenant_id}\x1f{scope}\x1f{scope_id}"


def query_vectors(vectors: Sequence[Any]) -> Subquery:
    """Rows of `vector` and `place`, which counts from 1, to compare memories with.

    Fenced: each is read once, and not once per memory it is compared with.
    """
    texts = (
        func.unnest(cast([str(vector.tolist()) for vector in vectors], ARRAY(Text)))
        .table_valued("vector", with_ordinality="place", name="asked")
        .render_derived()
    )
    return (
        select(cast(texts.c.vector, Vector()).label("vector"), texts.c.place)
        .offset(0)
        .subquery("query")
    )


def bucket(row: Mapping[str, Any]) -> list[ColumnElement[bool]]:
    """The same user, agent and scope, missing ones included."""
    return [
        Memory.scope_id == row["scope_id"],
        Memory.scope == row["scope"],
        Memory.user_id.is_not_distinct_from(row["user_id"]),
        Memory.agent_id.is_not_distinct_from(row["agent_id"]),
    ]
