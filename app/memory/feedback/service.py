"""Use cases of feedback: it is recorded and counted, and changes no memory."""

from typing import Literal, get_args

import structlog

from app.conversation.sessions.repository import SessionRepository
from app.identity.tenants.access import Principal
from app.language.text.sensitive import Kind, find_sensitive, redact
from app.memory.feedback.repository import FeedbackRepository, MemoryFeedback
from app.memory.feedback.schemas import (
    FeedbackAdded,
    FeedbackCreate,
    FeedbackRead,
    FeedbackStats,
    FeedbackStatsQuery,
    Rating,
    SensitiveCommentError,
    UseReport,
    UseReported,
)
from app.memory.memories.injection_repository import InjectionUseRepository
from app.memory.memories.owner import refuse_switched_off
from app.memory.memories.repository import MemoryRepository
from app.platform.database.base import new_id
from app.platform.database.engine import clock_of
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

Action = Literal["reject", "redact", "allow"]


class FeedbackService:
    """Records and counts feedback on memories."""

    def __init__(self, work: Work, *, secrets: Action, identifiers: Action) -> None:
        """Treat sensitive comments as the deployment says.

        Args:
            secrets: what becomes of keys and passwords in a comment, as in a memory.
            identifiers: what becomes of card, identity and account numbers in one.

        """
        self._work = work
        self._actions: dict[Kind, Action] = {"secret": secrets, "identifier": identifiers}

    async def add(
        self,
        principal: Principal,
        memory_id: str,
        body: FeedbackCreate,
        *,
        key: IdempotencyKey | None = None,
    ) -> FeedbackAdded:
        """Record what the caller thinks of a memory it may read; the memory stays as it is.

        The answer leaves the comment out. Safe to retry with `key`; without one each call adds
        an entry.

        Raises:
            MemoryNotFoundError: there is none for this caller, or it is deleted.
            SensitiveCommentError: the comment holds what is not kept; nothing was stored.
            DisabledError, MemoryDisabledError: writing is switched off here or everywhere.

        """
        async with self._work.write(principal, key) as unit:
            memory = await MemoryRepository(unit.db, principal.access).get(memory_id)
            await refuse_switched_off(unit.db, principal, memory, remembering=False)
            row = MemoryFeedback(
                feedback_id=new_id("fbk"),
                memory_id=memory_id,
                user_id=memory.user_id,
                author_id=principal.access.user_id,
                rating=body.rating,
                comment=self._clean(body.comment),
                version=memory.version,
                actor=principal.key_id,
            )
            await FeedbackRepository(unit.db, principal.access).add(row)
            added = FeedbackAdded.model_validate(row)
            unit.answer(added, 201, user_id=memory.user_id)
        log.info("feedback_added", memory_id=memory_id, rating=body.rating)
        return added

    async def report_use(
        self, principal: Principal, body: UseReport, *, key: IdempotencyKey | None = None
    ) -> UseReported:
        """Record which memories of a session's contexts an answer drew on.

        It changes no memory. Safe to retry: each memory of a session is noted once.

        Raises:
            SessionNotFoundError: there is none for this caller.
            MemoryDisabledError: writing is switched off everywhere.

        """
        memory_ids = list(dict.fromkeys(body.memory_ids))
        async with self._work.write(principal, key) as unit:
            session = await SessionRepository(unit.db, principal.access).get(body.session_id)
            uses = InjectionUseRepository(unit.db, principal.tenant_id)
            at = await clock_of(unit.db)
            used = await uses.note(session.session_id, memory_ids, at)
            shown = await uses.shown(session.session_id, memory_ids)
            reported = UseReported(
                session_id=session.session_id,
                used=len(used),
                repeated=len(shown) - len(used),
                not_shown=[each for each in memory_ids if each not in shown],
            )
            unit.answer(reported, user_id=session.user_id)
        log.info("memory_use_reported", session_id=body.session_id, used=len(used))
        return reported

    def _clean(self, comment: str | None) -> str | None:
        """The comment as it is stored.

        Raises:
            SensitiveCommentError: it holds what is not kept.

        """
        if comment is None:
            return None
        # At most 2,000 characters: a millisecond.
        refused = {
            finding.detector
            for finding in find_sensitive(comment)
            if self._actions[finding.kind] == "reject"
        }
        if refused:
            raise SensitiveCommentError(sorted(refused))
        return redact(
            comment, [kind for kind, action in self._actions.items() if action == "redact"]
        )

    async def list_feedback(
        self, principal: Principal, memory_id: str, query: PageQuery
    ) -> Page[FeedbackRead]:
        """A page of feedback on a memory, newest first.

        Raises:
            MemoryNotFoundError: there is none for this caller.

        """
        start = decode_time(query.cursor, "feedback")
        async with self._work.read(principal) as db:
            await MemoryRepository(db, principal.access).get(memory_id)
            rows = await FeedbackRepository(db, principal.access).list_feedback(
                memory_id, start=start, limit=query.limit
            )
        return page(
            "feedback",
            rows,
            query.limit,
            show=FeedbackRead.model_validate,
            place=lambda row: (row.create_time, row.feedback_id),
        )

    async def stats(self, principal: Principal, query: FeedbackStatsQuery) -> FeedbackStats:
        """Counts over all feedback the caller may see; zeros when there is none."""
        async with self._work.read(principal) as db:
            counts, memories = await FeedbackRepository(db, principal.access).counts(
                query.model_dump(exclude_none=True)
            )
        by_rating = {rating: counts.get(rating, 0) for rating in get_args(Rating)}
        return FeedbackStats(total=sum(by_rating.values()), by_rating=by_rating, memories=memories)
