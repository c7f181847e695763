"""Use cases of the working state: read, replace, merge, keep a copy, go back to one."""

from typing import Any

from app.conversation.sessions.repository import SessionRepository, open_running
from app.conversation.sessions.schemas import SnapshotRead, SnapshotShown, StateRead
from app.conversation.sessions.state_repository import StateRepository, WorkingState
from app.identity.tenants.access import Principal
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


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
