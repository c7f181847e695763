"""Reads, lists, counts and single or bulk deletes of stored memories.

`MemoryCreation` is what `POST /v1/memories` needs; extraction implements it, since the messages of
a request may be inferred.
"""

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any, Protocol

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import ConfirmationRequiredError, SelectorRequiredError
from app.identity.projects.repository import ProjectRepository
from app.identity.projects.schemas import ReadOnlyMemberError
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.users.schemas import UserNotFoundError
from app.language.llm.tokens import TokenCounter, fitting
from app.memory.memories.amendments import history_entry
from app.memory.memories.conflict_repository import shown_memories
from app.memory.memories.deletion_service import MOST_AT_ONCE, DeleteSelection
from app.memory.memories.filters import InvalidFilterError
from app.memory.memories.list_repository import (
    DecisionRepository,
    ProjectItemRepository,
    TimelineRepository,
)
from app.memory.memories.owner import permit
from app.memory.memories.record_repository import RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.schemas import (
    AddAccepted,
    MemoryAdded,
    MemoryCreate,
    MemoryRead,
    MemoryValidated,
)
from app.memory.memories.search_schemas import (
    BulkDelete,
    BulkDeleteQuery,
    DecisionQuery,
    DecisionRead,
    DeletionScheduled,
    HistoryRead,
    MemoriesDeleted,
    MemoryQuery,
    MemoryStats,
    ProjectItemQuery,
    ProjectItemRead,
    StatsQuery,
)
from app.platform.jobs.repository import JobRepository
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

SELECTORS = ("user_id", "agent_id", "session_id", "run_id", "project_id", "scope", "memory_type")


class MemoryService:
    """Stored memories as a caller may see them."""

    def __init__(
        self, work: Work, counter: TokenCounter, *, most_at_once: int = MOST_AT_ONCE
    ) -> None:
        """A selection of more than `most_at_once` memories is deleted by a job."""
        self._work = work
        self._counter = counter
        self._most_at_once = most_at_once

    async def get(self, principal: Principal, memory_id: str) -> MemoryRead:
        """One memory, whatever its status; a deleted one is not found.

        Raises:
            MemoryNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            row = await MemoryRepository(db, principal.access).get(memory_id)
            [shown] = await shown_memories(db, principal.access, [row])
            return shown

    async def list_memories(self, principal: Principal, query: MemoryQuery) -> Page[MemoryRead]:
        """A page of memories by creation time; with status active only those that count now.

        With `as_of` those that counted then, by what is known now. With `known_at` what the
        records said then, and what counted at that time unless `as_of` names another. Empty
        when nothing matches.

        Raises:
            InvalidFilterError: `filters` is no JSON object, or not in our grammar.

        """
        places = {
            "limit", "cursor", "max_tokens", "order", "filters", "as_of", "known_at", "in_conflict",
        }  # fmt: skip
        asked: dict[str, Any] = {
            "equal": query.model_dump(exclude=places, exclude_none=True),
            "filters": _parsed(query.filters),
            "start": decode_time(query.cursor, "memories"),
            "descending": query.order == "desc",
            "limit": query.limit,
            "as_of": query.as_of,
        }
        async with self._work.read(principal) as db:
            if query.known_at is None:
                rows = await MemoryRepository(db, principal.access).list_memories(
                    **asked, in_conflict=query.in_conflict
                )
                shown = await shown_memories(db, principal.access, rows)
            else:
                states = await TimelineRepository(db, principal.access).list_memories_then(
                    query.known_at, **asked
                )
                shown = [MemoryRead.model_validate(state) for state in states]
        return page(
            "memories",
            shown,
            query.limit,
            show=lambda memory: memory,
            place=lambda memory: (memory.create_time, memory.memory_id),
            fits=lambda items: fitting(
                self._counter, (one.content for one in items), query.max_tokens
            ),
        )

    async def history(
        self, principal: Principal, memory_id: str, query: PageQuery
    ) -> Page[HistoryRead]:
        """A page of a memory's changes, oldest first.

        A state that was its author's alone is shown as null to other users.

        Raises:
            MemoryNotFoundError: there is none for this caller.

        """
        access = principal.access
        start = decode_time(query.cursor, "memory_history")
        async with self._work.read(principal) as db:
            memory = await MemoryRepository(db, principal.access).get(memory_id)
            rows = await RecordRepository(db, principal.access).history(
                memory_id, start=start, limit=query.limit
            )

        return page(
            "memory_history",
            rows,
            query.limit,
            show=lambda row: history_entry(access, memory, row),
            place=lambda row: (row.create_time, row.history_id),
        )

    async def list_project_items(
        self, principal: Principal, project_id: str, query: ProjectItemQuery
    ) -> Page[ProjectItemRead]:
        """A page of a project's items without their content, newest first.

        A caller who may remove an item may not always read it.

        Raises:
            ProjectNotFoundError: missing, or the caller is no member.
            InsufficientRoleError: the caller is neither owner nor admin.

        """
        start = decode_time(query.cursor, "project_items")
        equal = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
        async with self._work.read(principal) as db:
            await ProjectRepository(db, principal.access).managed(project_id, "list_items")
            rows = await ProjectItemRepository(db, principal.access).list_items(
                project_id, equal=equal, start=start, limit=query.limit
            )
        return page(
            "project_items",
            rows,
            query.limit,
            show=ProjectItemRead.model_validate,
            place=lambda row: (row.create_time, row.memory_id),
        )

    async def delete(
        self, principal: Principal, memory_id: str, *, hard: bool, key: IdempotencyKey | None = None
    ) -> MemoriesDeleted:
        """Hide a memory from everything and everyone, or with `hard` remove it at once.

        Safe to retry with `key`.

        Raises:
            MemoryNotFoundError: there is none for this caller, or it is deleted already.
            InsufficientScopeError, NotYourMemoryError, ReadOnlyMemberError: the caller may only
                read it.

        """
        async with self._work.write(principal, key, while_disabled=True) as unit:
            memories = MemoryRepository(unit.db, principal.access)
            row = await memories.get(memory_id, lock=True, remove=True)
            await permit(unit.db, principal, row, "purge" if hard else "delete")
            await _remove(
                db_memories=memories,
                records=RecordRepository(unit.db, principal.access),
                ids=[memory_id],
                hard=hard,
                actor=principal.key_id,
                reason=None,
            )
            answer = unit.answer(MemoriesDeleted(deleted=1, dry_run=False), user_id=row.user_id)
        log.info("memory_deleted", memory_id=memory_id, hard=hard)
        return answer

    async def delete_many(
        self,
        principal: Principal,
        body: BulkDelete | BulkDeleteQuery,
        *,
        location: str,
        key: IdempotencyKey | None = None,
    ) -> MemoriesDeleted | DeletionScheduled:
        """Delete all selected memories in one transaction, or only count them.

        A selection too large for one transaction is left to a job, which deletes what is
        selected now and nothing that comes later. Safe to retry with `key`: a kept answer is
        returned again.

        Args:
            location: where the selectors are, `query` or `body`.

        Raises:
            SelectorRequiredError: nothing narrows the selection.
            InvalidFilterError: the filter is not in our grammar.
            UserNotFoundError: the key is restricted to another user.
            InsufficientScopeError: an agent's shared knowledge needs an admin key.
            ReadOnlyMemberError: the user may only read in the project.
            ConfirmationRequiredError: `confirm` is not set, and it is no dry run.

        """
        selection = _selection(principal, body, location)
        equal, filters, knowledge = selection.equal, selection.filters, selection.knowledge
        async with self._work.write(principal, key, while_disabled=True) as unit:
            await _refuse_viewer(unit.db, principal, equal)
            memories = MemoryRepository(unit.db, principal.access)
            count = await memories.count_selected(equal, filters, knowledge=knowledge)
            if body.dry_run:
                return unit.answer_unkept(MemoriesDeleted(deleted=count, dry_run=True))
            if not body.confirm:
                raise ConfirmationRequiredError("selection", {"memories": count})
            if count > self._most_at_once:
                answer = await _leave_to_job(unit.db, principal, selection, count)
                return unit.answer(answer, 202)
            ids = await memories.lock_selected(equal, filters, knowledge=knowledge)
            await _remove(
                db_memories=memories,
                records=RecordRepository(unit.db, principal.access),
                ids=list(ids),
                hard=body.hard,
                actor=principal.key_id,
                reason=selection.reason,
            )
            deleted = MemoriesDeleted(deleted=len(ids), dry_run=False)
            unit.answer(deleted, 200)
        log.info("memories_deleted", count=len(ids), hard=body.hard)
        return deleted

    async def stats(self, principal: Principal, query: StatsQuery) -> MemoryStats:
        """Counts over everything the caller may see; zeros and null when there is nothing.

        All but `by_status`, `decisions` and `last_saved` count active memories alone.
        """
        equal = query.model_dump(exclude_none=True)
        async with self._work.read(principal) as db:
            rows = await MemoryRepository(db, principal.access).stats(equal)
            decisions = await DecisionRepository(db, principal.access).decision_counts(equal)
        active = [row for row in rows if row.status == "active"]

        def by(name: str, among: list[Any]) -> dict[str, int]:
            counts: Counter[str] = Counter()
            for row in among:
                counts[getattr(row, name)] += row.count
            return dict(sorted(counts.items()))

        return MemoryStats(
            total=sum(row.count for row in active),
            by_status=by("status", list(rows)),
            by_memory_type=by("memory_type", active),
            by_scope=by("scope", active),
            by_tier=by("tier", active),
            by_source=by("source", active),
            by_embedding_model=by("embedding_model", active),
            decisions=decisions,
            last_saved=max((row.last for row in rows), default=None),
        )

    async def decisions(self, principal: Principal, query: DecisionQuery) -> Page[DecisionRead]:
        """A page of the gate's decisions that the caller may see, newest first."""
        start = decode_time(query.cursor, "decisions")
        async with self._work.read(principal) as db:
            rows = await DecisionRepository(db, principal.access).decisions(
                user_id=query.user_id,
                verdict=query.verdict,
                code=query.code,
                since=query.since,
                until=query.until,
                memory_id=query.memory_id,
                job_id=query.job_id,
                extraction_id=query.extraction_id,
                start=start,
                limit=query.limit,
            )
        return page(
            "decisions",
            rows,
            query.limit,
            show=DecisionRead.model_validate,
            place=lambda row: (row.create_time, row.decision_id),
        )


def _selection(
    principal: Principal, body: BulkDelete | BulkDeleteQuery, location: str
) -> DeleteSelection:
    """What a bulk delete selects.

    Raises:
        SelectorRequiredError: nothing narrows the selection.
        UserNotFoundError, InsufficientScopeError: as in `_own_rows`.

    """
    equal = {name: getattr(body, name) for name in SELECTORS if getattr(body, name) is not None}
    filters = body.filters if isinstance(body, BulkDelete) else None
    if not equal and not filters:
        raise SelectorRequiredError(location, SELECTORS)
    return DeleteSelection(
        principal.access,
        equal | _own_rows(principal, equal),
        filters,
        # What all users of an agent share is only ever deleted by an admin.
        knowledge=principal.may("admin"),
        hard=body.hard,
        reason=body.reason if isinstance(body, BulkDelete) else None,
    )


def _own_rows(principal: Principal, equal: dict[str, Any]) -> dict[str, Any]:
    """What narrows a selection further: a user deletes that user's rows alone.

    In a project that is named the role decides, row by row (`visibility_sql.py`).

    Raises:
        UserNotFoundError: the key is restricted to another user.
        InsufficientScopeError: an agent's shared knowledge needs an admin key.

    """
    user_id = principal.access.user_id
    if user_id is not None:
        if "project_id" in equal:
            return {}
        if equal.get("user_id", user_id) != user_id:
            raise UserNotFoundError(str(equal["user_id"]))
        return {"user_id": user_id}
    if equal.get("scope") == "agent" and not principal.may("admin"):
        raise InsufficientScopeError("admin", acting=principal.acting)
    return {}


async def _refuse_viewer(db: AsyncSession, principal: Principal, equal: Mapping[str, Any]) -> None:
    """Refuse a caller who may only read what is selected, instead of deleting nothing.

    Raises:
        ReadOnlyMemberError: the caller is a viewer of the project.

    """
    access, project_id = principal.access, equal.get("project_id")
    if access.user_id is None or project_id is None or equal.get("scope", "project") != "project":
        return
    if await ProjectRepository(db, access).membership(project_id) == "viewer":
        raise ReadOnlyMemberError(project_id, access.user_id)


async def _leave_to_job(
    db: AsyncSession, principal: Principal, selection: DeleteSelection, count: int
) -> DeletionScheduled:
    scheduled = await JobRepository(db, principal.tenant_id).schedule(
        selection.order(principal.key_id)
    )
    if scheduled is None:
        raise RuntimeError("an order that may make a job made none")
    return DeletionScheduled(selected=count, job_id=scheduled.job_id)


async def _remove(
    *,
    db_memories: MemoryRepository,
    records: RecordRepository,
    ids: list[str],
    hard: bool,
    actor: str | None,
    reason: str | None,
) -> None:
    if not ids:
        return
    await records.note_deletion(ids, hard=hard, actor=actor, reason=reason)
    await (db_memories.purge(ids) if hard else db_memories.delete(ids))


def _parsed(filters: str | None) -> dict[str, Any] | None:
    """The filters of a query string.

    Raises:
        InvalidFilterError: they are no JSON object.

    """
    if filters is None:
        return None
    try:
        parsed = json.loads(filters)
    except (ValueError, RecursionError):
        raise InvalidFilterError("This is not JSON.", field="filters") from None
    if not isinstance(parsed, dict):
        raise InvalidFilterError("A filter is an object.", field="filters")
    return parsed


class MemoryCreation(Protocol):
    """Makes memories from the messages of a request, inferred or as they are."""

    async def add(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> tuple[MemoryAdded, int]:
        """Remember what the messages say; the outcomes in their order, and the HTTP status."""

    async def validate(self, principal: Principal, body: MemoryCreate) -> MemoryValidated:
        """What `add` would do; nothing is stored."""

    async def order(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> AddAccepted:
        """Leave the same to a job, and return that job."""
