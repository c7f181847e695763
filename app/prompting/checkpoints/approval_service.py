"""Use cases of approvals: what waits for a human, and what they decide."""

import structlog

from app.conversation.sessions.repository import SessionRepository, open_running
from app.identity.tenants.access import Principal
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.checkpoints.approval_repository import ApprovalRepository, ApprovalState
from app.prompting.checkpoints.schemas import ApprovalDecision, ApprovalQuery, ApprovalRead

log = structlog.get_logger()


class ApprovalService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def list_approvals(
        self, principal: Principal, session_id: str, query: ApprovalQuery
    ) -> Page[ApprovalRead]:
        """Approvals, newest first. Raises SessionNotFoundError."""
        start = decode_time(query.cursor)
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            rows = await ApprovalRepository(db, principal.access, session_id).list_approvals(
                status=query.status, start=start, limit=query.limit
            )
        return page(
            rows,
            query.limit,
            show=_shown,
            place=lambda row: (row.approval.create_time, row.approval.approval_id),
        )

    async def get(self, principal: Principal, session_id: str, tool_call_id: str) -> ApprovalRead:
        """The newest of a call's id. Raises SessionNotFoundError, ApprovalNotFoundError."""
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            approvals = ApprovalRepository(db, principal.access, session_id)
            return _shown(await approvals.get(tool_call_id))

    async def decide(
        self,
        principal: Principal,
        session_id: str,
        tool_call_id: str,
        body: ApprovalDecision,
        *,
        key: IdempotencyKey | None = None,
    ) -> ApprovalRead:
        """Decide about a call that waits; the first of two wins, and may say it again.

        Raises:
            SessionNotFoundError, ApprovalNotFoundError: there is none.
            ApprovalDecidedError: something else was decided, or its time was over.
            CallAnsweredError: the call's result came without a decision.
            SessionEndedError, DisabledError, MemoryDisabledError: nothing may be written.

        """
        self._work.refuse_disabled()
        decision = {
            "status": body.decision, "arguments": body.arguments, "comment": body.comment,
        }  # fmt: skip
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            approvals = ApprovalRepository(unit.db, principal.access, session_id)
            decided = await approvals.decide(tool_call_id, decision, actor=principal.key_id)
            shown = _shown(decided)
            unit.answer(shown, 200, user_id=opened.session.user_id)
        log.info("approval_decided", session_id=session_id, decision=body.decision)
        return shown


def _shown(standing: ApprovalState) -> ApprovalRead:
    row = standing.approval
    values = {name: getattr(row, name) for name in ApprovalRead.model_fields if name in _COLUMNS}
    return ApprovalRead(**values | {"status": standing.status, "answered": standing.answered})


_COLUMNS = ApprovalRead.model_fields.keys() - {"status", "answered"}
