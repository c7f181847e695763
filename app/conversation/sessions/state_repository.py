"""SQL for the working state of sessions and its snapshots."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import String, and_, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import defer

from app.conversation.sessions.models import Session, SessionState, SessionStateSnapshot
from app.conversation.sessions.schemas import (
    STATE_BYTES,
    SnapshotNotFoundError,
    StateReason,
    StateTooLargeError,
)
from app.errors import VersionConflictError
from app.identity.tenants.access import Access
from app.platform.database.base import after, new_id
from app.platform.values.json_objects import json_size, merged, same_json

AUTOMATIC_SNAPSHOTS = 50
"""Automatic snapshots that are kept of a session; snapshots made on request all stay."""


class WorkingState(NamedTuple):
    """A state and its version; `{}` and 0 while nothing was ever written."""

    state: dict[str, Any]
    version: int
    update_time: datetime | None = None


class StateRepository:
    """Working states of one tenant. Never begins or ends a transaction.

    `SessionRepository` checks first whether the caller may see the session; a writer has locked
    the session's row, so there is one writer at a time.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._tenant_id = access.tenant_id

    async def get(self, session_id: str) -> WorkingState:
        """The state as it is; empty in a session that has none."""
        row = (
            await self._db.execute(
                select(SessionState.state, SessionState.version, SessionState.update_time).where(
                    SessionState.tenant_id == self._tenant_id,
                    SessionState.session_id == session_id,
                )
            )
        ).first()
        return WorkingState({}, 0) if row is None else WorkingState(*row)

    async def put(
        self, session_id: str, state: dict[str, Any], expected: int | None
    ) -> WorkingState:
        """Write `state` in the place of the present one; the same once more writes nothing.

        Args:
            session_id: a session that the caller has locked.
            state: all of the new state.
            expected: the version that was read, or None for "whatever it is now".

        Raises:
            VersionConflictError: the state has moved on.
            StateTooLargeError: it is larger than a state may be.

        """
        current = await self.get(session_id)
        return await self._replace(session_id, current, state, expected)

    async def patch(
        self, session_id: str, patch: Mapping[str, Any], expected: int | None
    ) -> WorkingState:
        """Merge `patch` into the state (RFC 7386).

        Raises:
            VersionConflictError, StateTooLargeError: as `put`; nothing was written.

        """
        current = await self.get(session_id)
        state = merged(current.state, dict(patch))
        assert isinstance(state, dict)  # noqa: S101 (an object merged into an object)
        return await self._replace(session_id, current, state, expected)

    async def _replace(
        self, session_id: str, current: WorkingState, state: dict[str, Any], expected: int | None
    ) -> WorkingState:
        """Raises VersionConflictError, StateTooLargeError."""
        if expected is not None and current.version != expected:
            raise VersionConflictError(current.version)
        if same_json(state, current.state):
            return current
        size = json_size(state)
        if size > STATE_BYTES:
            raise StateTooLargeError(size, STATE_BYTES)
        statement = insert(SessionState).values(
            tenant_id=self._tenant_id, session_id=session_id, state=state
        )
        version, update_time = (
            await self._db.execute(
                statement.on_conflict_do_update(
                    index_elements=["tenant_id", "session_id"],
                    set_={"state": statement.excluded.state, "version": SessionState.version + 1},
                ).returning(SessionState.version, SessionState.update_time)
            )
        ).one()
        return WorkingState(state, version, update_time)

    async def drop(self, session_id: str) -> None:
        """Empty the state. Its version rises, so that a caller that read it cannot overwrite a
        later state by mistake.
        """
        await self._db.execute(
            update(SessionState)
            .where(
                SessionState.tenant_id == self._tenant_id,
                SessionState.session_id == session_id,
                SessionState.state != literal({}, JSONB),
            )
            .values(state={}, version=SessionState.version + 1)
            .execution_options(synchronize_session=False)
        )

    async def snapshot(self, session_id: str, reason: StateReason) -> SessionStateSnapshot | None:
        """Keep a copy of the state as it is now.

        Of automatic snapshots only the newest are kept, and none of an empty state: then None
        is returned.
        """
        empty = literal({}, JSONB)
        state = func.coalesce(SessionState.state, empty)
        chosen = (
            select(
                literal(self._tenant_id, String),
                literal(new_id("snp"), String),
                Session.session_id,
                Session.last_sequence_no,
                state,
                func.coalesce(SessionState.version, 0),
                literal(reason, String),
            )
            .outerjoin(
                SessionState,
                and_(
                    SessionState.tenant_id == self._tenant_id,
                    SessionState.session_id == Session.session_id,
                ),
            )
            .where(Session.tenant_id == self._tenant_id, Session.session_id == session_id)
        )
        if reason != "manual":
            chosen = chosen.where(state != empty)
        columns = (
            "tenant_id", "snapshot_id", "session_id", "seq", "state", "state_version", "reason",
        )  # fmt: skip
        made: SessionStateSnapshot | None = await self._db.scalar(
            insert(SessionStateSnapshot)
            .from_select(columns, chosen)
            .returning(SessionStateSnapshot)
        )
        if made is not None and reason != "manual":
            await self._prune(session_id)
        return made

    async def _prune(self, session_id: str) -> None:
        snapshot = SessionStateSnapshot
        old = (
            select(snapshot.snapshot_id)
            .where(
                snapshot.tenant_id == self._tenant_id,
                snapshot.session_id == session_id,
                snapshot.reason != "manual",
            )
            .order_by(snapshot.create_time.desc(), snapshot.snapshot_id.desc())
            .offset(AUTOMATIC_SNAPSHOTS)
        )
        await self._db.execute(
            delete(snapshot)
            .where(snapshot.tenant_id == self._tenant_id, snapshot.snapshot_id.in_(old))
            .execution_options(synchronize_session=False)
        )

    async def get_snapshot(self, session_id: str, snapshot_id: str) -> SessionStateSnapshot:
        """Raises SnapshotNotFoundError."""
        found: SessionStateSnapshot | None = await self._db.scalar(
            select(SessionStateSnapshot).where(
                SessionStateSnapshot.tenant_id == self._tenant_id,
                SessionStateSnapshot.session_id == session_id,
                SessionStateSnapshot.snapshot_id == snapshot_id,
            )
        )
        if found is None:
            raise SnapshotNotFoundError(snapshot_id)
        return found

    async def list_snapshots(
        self, session_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[SessionStateSnapshot]:
        """Newest first and without their states, one more than `limit` when a page follows."""
        snapshot = SessionStateSnapshot
        rows = await self._db.scalars(
            after(
                select(snapshot)
                .where(snapshot.tenant_id == self._tenant_id, snapshot.session_id == session_id)
                .options(defer(snapshot.state)),
                (snapshot.create_time, snapshot.snapshot_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()
