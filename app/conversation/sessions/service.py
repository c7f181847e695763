"""Use cases of sessions, and of their working state: read, replace, merge, keep a copy, go back to
one.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.checkpoint_store import CheckpointStore
from app.conversation.sessions.jobs import read_now
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import Participants, SessionRepository, open_running
from app.conversation.sessions.schemas import (
    SessionCreate,
    SessionEnded,
    SessionPatch,
    SessionQuery,
    SessionRead,
    SnapshotRead,
    SnapshotShown,
    StateRead,
)
from app.conversation.sessions.state_repository import StateRepository, WorkingState
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.platform.database.base import new_id
from app.platform.jobs.repository import JobRepository
from app.platform.values.fields import RUNNING
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


class SessionService:
    def __init__(
        self,
        work: Work,
        checkpoint_store: CheckpointStore,
        *,
        auto_create: bool,
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._checkpoint_store = checkpoint_store
        self._auto_create = auto_create
        self._now = now

    async def add(
        self, principal: Principal, body: SessionCreate, *, key: IdempotencyKey | None = None
    ) -> SessionRead:
        """Open a session; an unknown user or agent is made on first use.

        Raises:
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: one is missing and
                may not be made.
            UserRequiredError: neither the request nor the key names a user.
            IdTakenError: the tenant has a session or a user with that id already.
            IdNotAllowedError: the key is bound, and an id is not its to choose.
            DisabledError: the agent or the user is disabled.

        """
        principal.access.refuse_choice("session_id", body.session_id)
        named = Participants(body.user_id, body.agent_id, body.project_id)
        values = body.model_dump(exclude={"session_id", "user_id", "agent_id"})
        async with self._work.write(principal, key, while_disabled=True) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            agent, user = await sessions.ensure_participants(
                named, create=self._auto_create, creator=principal.key_id
            )
            session = Session(
                session_id=body.session_id or new_id("ses"),
                agent_id=agent.agent_id,
                user_id=user.user_id,
                **values,
            )
            await sessions.add(session)
            shown = SessionRead.model_validate(session)
            return unit.answer(shown, 201, user_id=user.user_id)

    async def get(self, principal: Principal, session_id: str) -> SessionRead:
        """Raises SessionNotFoundError."""
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            return SessionRead.model_validate(session)

    async def list_sessions(self, principal: Principal, query: SessionQuery) -> Page[SessionRead]:
        """Sessions, newest first."""
        start = decode_time(query.cursor, "sessions")
        filters = query.model_dump(exclude={"limit", "cursor"}, exclude_none=True)
        if "status" in filters:
            filters["status"] = RUNNING[filters["status"]]
        async with self._work.read(principal) as db:
            rows = await SessionRepository(db, principal.access).list_sessions(
                start=start, limit=query.limit, filters=filters
            )
        return page(
            "sessions",
            rows,
            query.limit,
            show=SessionRead.model_validate,
            place=lambda session: (session.create_time, session.session_id),
        )

    async def patch(
        self, principal: Principal, session_id: str, body: SessionPatch, *, expected: int | None
    ) -> SessionRead:
        """Raises SessionNotFoundError, ProjectNotFoundError, VersionConflictError."""
        nullable = {"project_id", "session_name", "session_type", "window_policy"}
        changes: dict[str, Any] = {
            name: value
            for name, value in body.model_dump(exclude_unset=True).items()
            if value is not None or name in nullable
        }
        async with self._work.write(principal, while_disabled=True) as unit:
            if changes.get("project_id") is not None:
                await ProjectRepository(unit.db, principal.access).get(changes["project_id"])
            sessions = SessionRepository(unit.db, principal.access)
            session = await sessions.patch(session_id, changes, expected)
            if changes.get("memory_enabled") and session.last_extracted_seq < (
                session.last_sequence_no
            ):
                # What was said before a pause has waited for its end.
                since = await sessions.unread_since(session)
                order = read_now(session, since=since, creator=principal.key_id, payload={})
                await JobRepository(unit.db, principal.tenant_id).schedule(order)
            return SessionRead.model_validate(session)

    async def end(
        self, principal: Principal, session_id: str, *, key: IdempotencyKey | None = None
    ) -> SessionEnded:
        """End a session; an ended one stays as it is.

        Its unread messages are extracted in the background, its experience is summarised, and
        its short-term memories expire. Its working state is dropped, after a copy
        and a checkpoint were made. Ending it again orders the reading again when something
        was left unread.

        Raises:
            SessionNotFoundError: the caller has no such session.

        """
        async with self._work.write(principal, key, while_disabled=True) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            session = await sessions.get(session_id, lock=True)
            running = session.status == 1
            if running:
                await self._keep(unit.db, principal, session_id)
                changes = {"status": 0, "end_time": self._now()}
                session = await sessions.patch(session_id, changes, None)
            shown = SessionEnded.model_validate(session)
            if running or session.last_extracted_seq < session.last_sequence_no:
                since = await sessions.unread_since(session)
                payload = {"end": True}
                order = read_now(session, since=since, creator=principal.key_id, payload=payload)
                scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(order)
                shown.job_id = None if scheduled is None else scheduled.job_id
            return unit.answer(shown, 200, user_id=session.user_id)

    async def _keep(self, db: AsyncSession, principal: Principal, session_id: str) -> None:
        """Keep what an end drops, and drop it."""
        states = StateRepository(db, principal.access)
        await states.snapshot(session_id, "end")
        await self._checkpoint_store.checkpoint(
            db, principal.access, session_id, reason="end", creator=principal.key_id
        )
        await states.drop(session_id)

    async def reopen(
        self, principal: Principal, session_id: str, *, key: IdempotencyKey | None = None
    ) -> SessionRead:
        """Let an ended session go on; a running one stays as it is.

        Raises:
            SessionNotFoundError: the caller has no such session.

        """
        async with self._work.write(principal, key, while_disabled=True) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            session = await sessions.get(session_id, lock=True)
            if session.status == 0:
                changes = {"status": 1, "end_time": None}
                session = await sessions.patch(session_id, changes, None)
            shown = SessionRead.model_validate(session)
            return unit.answer(shown, 200, user_id=session.user_id)


class StateService:
    def __init__(self, work: Work) -> None:
        self._work = work

    async def get(self, principal: Principal, session_id: str) -> StateRead:
        """The state, empty where nothing was written. Raises SessionNotFoundError."""
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            return _shown(session_id, await StateRepository(db, principal.access).get(session_id))

    async def put(
        self, principal: Principal, session_id: str, state: dict[str, Any], *, expected: int | None
    ) -> StateRead:
        """Write `state` in the place of the present one.

        Raises:
            SessionNotFoundError, SessionEndedError, DisabledError: about the session.
            VersionConflictError: the state has moved on.
            MemoryDisabledError: memory is switched off.

        """
        async with self._work.write(principal) as unit:
            await open_running(unit.db, principal.access, session_id)
            written = await StateRepository(unit.db, principal.access).put(
                session_id, state, expected
            )
            return _shown(session_id, written)

    async def patch(
        self, principal: Principal, session_id: str, patch: dict[str, Any], *, expected: int | None
    ) -> StateRead:
        """Merge `patch` into the state.

        Raises:
            StateTooLargeError: it would grow beyond what is kept; otherwise as `put`.

        """
        async with self._work.write(principal) as unit:
            await open_running(unit.db, principal.access, session_id)
            written = await StateRepository(unit.db, principal.access).patch(
                session_id, patch, expected
            )
            return _shown(session_id, written)

    async def snapshot(
        self, principal: Principal, session_id: str, *, key: IdempotencyKey | None = None
    ) -> SnapshotRead:
        """Keep a copy of the state, also of an empty one.

        Raises:
            SessionNotFoundError, SessionEndedError, DisabledError, MemoryDisabledError:
            as `put`.

        """
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            made = await StateRepository(unit.db, principal.access).snapshot(session_id, "manual")
            shown = SnapshotRead.model_validate(made)
            return unit.answer(shown, 201, user_id=opened.session.user_id)

    async def list_snapshots(
        self, principal: Principal, session_id: str, query: PageQuery
    ) -> Page[SnapshotRead]:
        """Snapshots, newest first. Raises SessionNotFoundError."""
        start = decode_time(query.cursor, "snapshots")
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            rows = await StateRepository(db, principal.access).list_snapshots(
                session_id, start=start, limit=query.limit
            )
        return page(
            "snapshots",
            rows,
            query.limit,
            show=SnapshotRead.model_validate,
            place=lambda row: (row.create_time, row.snapshot_id),
        )

    async def get_snapshot(
        self, principal: Principal, session_id: str, snapshot_id: str
    ) -> SnapshotShown:
        """Raises SessionNotFoundError, SnapshotNotFoundError."""
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            states = StateRepository(db, principal.access)
            return SnapshotShown.model_validate(await states.get_snapshot(session_id, snapshot_id))

    async def restore(
        self,
        principal: Principal,
        session_id: str,
        snapshot_id: str,
        *,
        expected: int | None,
        key: IdempotencyKey | None = None,
    ) -> StateRead:
        """Write a snapshot's state in the place of the present one, of which a copy is kept.

        Raises:
            SessionNotFoundError, SnapshotNotFoundError: there is none.
            SessionEndedError, DisabledError, VersionConflictError, MemoryDisabledError:
            as `put`.

        """
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            states = StateRepository(unit.db, principal.access)
            chosen = await states.get_snapshot(session_id, snapshot_id)
            # Read before the copy is made, which may be one too many and push this one out.
            wanted = chosen.state
            await states.snapshot(session_id, "before_restore")
            shown = _shown(session_id, await states.put(session_id, wanted, expected))
            return unit.answer(shown, 200, user_id=opened.session.user_id)


def _shown(session_id: str, state: WorkingState) -> StateRead:
    return StateRead(
        session_id=session_id,
        state=state.state,
        version=state.version,
        update_time=state.update_time,
    )
