"""Use cases of LangGraph's saver for whole threads: deleted, copied, pruned."""

from collections.abc import Sequence

import structlog

from app.conversation.sessions.repository import (
    Participants,
    SessionRepository,
    refuse_mismatch,
)
from app.conversation.sessions.schemas import SessionEndedError, SessionNotFoundError
from app.identity.tenants.access import Principal
from app.integrations.langgraph.list_repository import SaverLists
from app.integrations.langgraph.schemas import (
    SaverCopied,
    SaverCopy,
    SaverPrune,
    SaverRemoved,
    SaverRunsDelete,
)
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.checkpoints.saver_thread_repository import SaverThreadRepository, kept

log = structlog.get_logger()


class SaverThreadService:
    def __init__(self, work: Work, *, auto_create: bool) -> None:
        self._work = work
        self._auto_create = auto_create

    async def delete(self, principal: Principal, session_id: str, named: Participants) -> None:
        """Delete all checkpoints and writes of a session; it and its messages stay.

        Raises:
            SessionNotFoundError: the caller has no such session.
            SessionMismatchError: it is not that of those who are named.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            refuse_mismatch(await sessions.get(session_id, lock=True), named)
            removed = await SaverThreadRepository(unit.db, principal.tenant_id, session_id).clear()
        log.info("saver_thread_deleted", session_id=session_id, checkpoints=removed)

    async def copy(
        self,
        principal: Principal,
        session_id: str,
        body: SaverCopy,
        *,
        key: IdempotencyKey | None = None,
    ) -> SaverCopied:
        """Copy checkpoints and writes to a different session of the same user and agent.

        Checkpoints that the target has already stay as they are.

        Raises:
            SessionNotFoundError, SessionMismatchError, SessionEndedError, DisabledError,
            IdTakenError: about either of the two sessions.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        target_id = body.target_session_id
        async with self._work.write(principal, key) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            # In a fixed order, so that opposite copies do not wait for each other. And before a
            # target is made, which locks the user: an erasure locks sessions first.
            for locked_id in sorted({session_id, target_id}):
                try:
                    await sessions.get(locked_id, lock=True)
                except SessionNotFoundError:
                    if locked_id == session_id:
                        raise
            source = await sessions.get(session_id)
            refuse_mismatch(source, Participants(body.user_id, body.agent_id))
            opened = await sessions.open_for_append(
                target_id,
                Participants(source.user_id, source.agent_id),
                create=self._auto_create,
                creator=principal.key_id,
            )
            if opened.session.status == 0:
                raise SessionEndedError(target_id)
            thread = SaverThreadRepository(unit.db, principal.tenant_id, session_id)
            copied = await thread.copy_to(target_id, body.target_thread_id)
            # Values of a checkpoint that the target has with different values.
            await SaverThreadRepository(unit.db, principal.tenant_id, target_id).sweep()
            shown = SaverCopied(checkpoints=copied)
            return unit.answer(shown, 200, user_id=source.user_id)

    async def prune(
        self, principal: Principal, body: SaverPrune, *, key: IdempotencyKey | None = None
    ) -> SaverRemoved:
        """Delete older checkpoints of sessions, or all; unknown sessions are skipped.

        Each session has its own transaction. After a failure the request can be repeated: it goes
        on with the rest, and counts only that.

        Raises:
            SessionMismatchError: a session is that of another user or agent than the body names;
                those that sort before it are done.

        """
        await self._work.refuse_repeated(principal, key)
        removed = 0
        for session_id in sorted(set(body.session_ids)):
            removed += await self._prune(principal, session_id, body)
        log.info("saver_threads_pruned", sessions=len(body.session_ids), checkpoints=removed)
        return await self._keep(principal, SaverRemoved(checkpoints=removed), key)

    async def _prune(self, principal: Principal, session_id: str, body: SaverPrune) -> int:
        async with self._work.write(principal, while_disabled=True) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            try:
                session = await sessions.get(session_id, lock=True)
            except SessionNotFoundError:
                return 0
            refuse_mismatch(session, Participants(body.user_id, body.agent_id))
            thread = SaverThreadRepository(unit.db, principal.tenant_id, session_id)
            if body.strategy == "delete":
                return await thread.clear()
            steps = await thread.steps()
            here = {(step.namespace, step.checkpoint_id) for step in steps}
            return await thread.remove(here - kept(steps))

    async def delete_runs(
        self, principal: Principal, body: SaverRunsDelete, *, key: IdempotencyKey | None = None
    ) -> SaverRemoved:
        """Delete the checkpoints of runs, in every session that the caller may see.

        Each session has its own transaction, as in `prune`.
        """
        async with self._work.read(principal, key) as db:
            named = Participants(body.user_id, body.agent_id)
            found = await SaverLists(db, principal.access, named).sessions_of_runs(body.run_ids)
        removed = 0
        for session_id in found:
            removed += await self._delete_runs(principal, session_id, body.run_ids)
        log.info("saver_runs_deleted", runs=len(body.run_ids), checkpoints=removed)
        return await self._keep(principal, SaverRemoved(checkpoints=removed), key)

    async def _delete_runs(
        self, principal: Principal, session_id: str, run_ids: Sequence[str]
    ) -> int:
        async with self._work.write(principal, while_disabled=True) as unit:
            try:
                await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            except SessionNotFoundError:
                return 0
            thread = SaverThreadRepository(unit.db, principal.tenant_id, session_id)
            return await thread.remove_runs(run_ids)

    async def _keep(
        self, principal: Principal, shown: SaverRemoved, key: IdempotencyKey | None
    ) -> SaverRemoved:
        """Store the answer, unless the same request has stored it meanwhile."""
        async with self._work.write(principal, key, while_disabled=True) as unit:
            return unit.answer(shown)
