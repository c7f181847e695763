"""Use cases of checkpoints (make, read, delete, restore) and of approvals."""

from datetime import timedelta
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.checkpoint_store import LONGEST_CALL_ID, AwaitedCall
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import Opened, SessionRepository, open_running
from app.conversation.sessions.state_repository import StateRepository
from app.identity.tenants.access import Principal
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.checkpoints.approval_repository import ApprovalRepository, ApprovalState
from app.prompting.checkpoints.archive_repository import Packed, read_parts
from app.prompting.checkpoints.checkpoint_store import add_automatic, contents_of
from app.prompting.checkpoints.repository import CheckpointDraft, CheckpointRepository, Kept
from app.prompting.checkpoints.schemas import (
    ApprovalDecision,
    ApprovalQuery,
    ApprovalRead,
    CheckpointCreate,
    CheckpointQuery,
    CheckpointRead,
    CheckpointRestored,
    CheckpointShown,
    ContentsRead,
)

log = structlog.get_logger()


class CheckpointService:
    def __init__(self, work: Work, policy: WindowPolicy) -> None:
        """Serve checkpoints.

        Args:
            work: opens the transactions.
            policy: the deployment's window policy, for agents and sessions without their own.

        """
        self._work = work
        self._policy = policy

    async def add(
        self,
        principal: Principal,
        session_id: str,
        body: CheckpointCreate,
        *,
        key: IdempotencyKey | None = None,
    ) -> CheckpointRead:
        """Add a checkpoint of the session as it is, with the contents that the caller adds.

        Pending tool calls of the request become approvals, unless they are known already.

        Raises:
            SessionNotFoundError, SessionEndedError, DisabledError: about the session.
            CheckpointParentNotFoundError: the session and namespace have no such checkpoint.
            MemoryDisabledError: memory is switched off.

        """
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            given = body.contents.model_dump(exclude_none=True)
            if body.contents.pending_tool_calls is None:
                approvals = ApprovalRepository(unit.db, principal.access, session_id)
                given["pending_tool_calls"] = await approvals.waiting()
            else:
                await self._ask(unit.db, principal, opened, body.contents.pending_tool_calls)
            draft = CheckpointDraft(
                reason="manual",
                creator=principal.key_id,
                contents=contents_of(**given),
                **body.model_dump(exclude={"contents"}),
            )
            made = await CheckpointRepository(unit.db, principal.access, session_id).add(draft)
            shown = CheckpointRead.model_validate(made)
            unit.answer(shown, 201, user_id=opened.session.user_id)
        log.info("checkpoint_added", session_id=session_id, checkpoint_id=shown.checkpoint_id)
        return shown

    async def _ask(
        self, db: AsyncSession, principal: Principal, opened: Opened, calls: list[dict[str, Any]]
    ) -> None:
        session = opened.session
        approvals = ApprovalRepository(db, principal.access, session.session_id)
        named = {
            call["id"]: call
            for call in calls
            if isinstance(call.get("id"), str) and 0 < len(call["id"]) <= LONGEST_CALL_ID
        }
        known = await approvals.known(list(named))
        await approvals.ask(
            [
                AwaitedCall(None, session.last_sequence_no, call)
                for tool_call_id, call in named.items()
                if tool_call_id not in known
            ],
            expires_in=timedelta(hours=self._policy_of(opened).approval_hours),
        )

    def _policy_of(self, opened: Opened) -> WindowPolicy:
        return resolve(self._policy, opened.agent.window_policy, opened.session.window_policy)

    async def list_checkpoints(
        self, principal: Principal, session_id: str, query: CheckpointQuery
    ) -> Page[CheckpointRead]:
        """Checkpoints without their contents, newest first.

        Raises:
            SessionNotFoundError: the caller has no such session.
            CheckpointNotFoundError: `before` names no checkpoint of it.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "checkpoints")
        equal = query.model_dump(
            include={"namespace", "source", "step", "reason"}, exclude_none=True
        )
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            rows = await CheckpointRepository(db, principal.access, session_id).list_checkpoints(
                equal=equal,
                before=query.before,
                archived=query.archived,
                start=start,
                limit=query.limit,
            )
        return page(
            "checkpoints",
            rows,
            query.limit,
            show=CheckpointRead.model_validate,
            place=lambda row: (row.create_time, row.checkpoint_id),
        )

    async def get(
        self, principal: Principal, session_id: str, checkpoint_id: str
    ) -> CheckpointShown:
        """A checkpoint with its contents and state, live or archived.

        Raises:
            SessionNotFoundError, CheckpointNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            found = await CheckpointRepository(db, principal.access, session_id).get(checkpoint_id)
        return _shown(found, await read_parts(found))

    async def delete(self, principal: Principal, session_id: str, checkpoint_id: str) -> None:
        """Delete a checkpoint permanently; its successors then follow its parent.

        Raises:
            SessionNotFoundError, CheckpointNotFoundError: there is none for this caller.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            await CheckpointRepository(unit.db, principal.access, session_id).delete(checkpoint_id)
        log.info("checkpoint_deleted", session_id=session_id, checkpoint_id=checkpoint_id)

    async def restore(
        self,
        principal: Principal,
        session_id: str,
        checkpoint_id: str,
        *,
        key: IdempotencyKey | None = None,
    ) -> CheckpointRestored:
        """Restore the window, summaries and working state of a checkpoint.

        Nothing is deleted: later messages are set aside, and a checkpoint of the present state is
        made first, so that the restore can itself be undone.

        Raises:
            SessionNotFoundError, CheckpointNotFoundError: there is none.
            SessionEndedError, DisabledError, MemoryDisabledError: as `add`.

        """
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            session = opened.session
            checkpoints = CheckpointRepository(unit.db, principal.access, session_id)
            wanted = await checkpoints.get(checkpoint_id)
            before = await add_automatic(
                unit.db,
                principal.access,
                session_id,
                reason="before_restore",
                creator=principal.key_id,
                keep=checkpoint_id,
            )
            assert before is not None  # noqa: S101 (every session has one, an empty session too)
            await checkpoints.put_back(session, wanted)
            await WindowRepository(unit.db, principal.access, session).recount(
                self._policy_of(opened)
            )
            state = await StateRepository(unit.db, principal.access).put(
                session_id, (await read_parts(wanted)).state, None
            )
            shown = CheckpointRestored(
                checkpoint_id=checkpoint_id,
                session_id=session_id,
                before_restore_id=before,
                message_seq=wanted.message_seq,
                last_sequence_no=session.last_sequence_no,
                in_context_from=session.in_context_from,
                summary_ids=session.summary_ids,
                window_messages=session.window_messages,
                window_tokens=session.window_tokens,
                state_version=state.version,
            )
            unit.answer(shown, 200, user_id=session.user_id)
        log.info("checkpoint_restored", session_id=session_id, checkpoint_id=checkpoint_id)
        return shown


def _shown(checkpoint: Kept, parts: Packed) -> CheckpointShown:
    return CheckpointShown(
        **CheckpointRead.model_validate(checkpoint).model_dump(),
        contents=ContentsRead(**parts.contents),
        state=parts.state,
        state_version=parts.state_version,
    )


class ApprovalService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def list_approvals(
        self, principal: Principal, session_id: str, query: ApprovalQuery
    ) -> Page[ApprovalRead]:
        """Approvals of a session, newest first.

        Raises:
            SessionNotFoundError: the caller has no such session.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "approvals")
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            rows = await ApprovalRepository(db, principal.access, session_id).list_approvals(
                status=query.status, start=start, limit=query.limit
            )
        return page(
            "approvals",
            rows,
            query.limit,
            show=_approval_shown,
            place=lambda row: (row.approval.create_time, row.approval.approval_id),
        )

    async def get(self, principal: Principal, session_id: str, tool_call_id: str) -> ApprovalRead:
        """The newest approval of a call's id.

        Raises:
            SessionNotFoundError, ApprovalNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            approvals = ApprovalRepository(db, principal.access, session_id)
            return _approval_shown(await approvals.get(tool_call_id))

    async def decide(
        self,
        principal: Principal,
        session_id: str,
        tool_call_id: str,
        body: ApprovalDecision,
        *,
        key: IdempotencyKey | None = None,
    ) -> ApprovalRead:
        """Decide about a waiting call. The first decision counts; repeating it changes nothing.

        Raises:
            SessionNotFoundError, ApprovalNotFoundError: there is none for this caller.
            ApprovalDecidedError: the decision was different, or the approval had expired.
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
            shown = _approval_shown(decided)
            unit.answer(shown, 200, user_id=opened.session.user_id)
        log.info("approval_decided", session_id=session_id, decision=body.decision)
        return shown


def _approval_shown(state: ApprovalState) -> ApprovalRead:
    row = state.approval
    values = {
        name: getattr(row, name) for name in ApprovalRead.model_fields if name in _APPROVAL_COLUMNS
    }
    return ApprovalRead(**values | {"status": state.status, "answered": state.answered})


_APPROVAL_COLUMNS = ApprovalRead.model_fields.keys() - {"status", "answered"}
