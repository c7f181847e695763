"""The part of both clients that is about where an agent at work stands."""

from collections.abc import Mapping
from typing import Any, Unpack

from kemem import session_calls
from kemem.base import listing
from kemem.options import ApprovalStatus, CheckpointListOptions, CheckpointOptions, Decision
from kemem.sending import AsyncSender, Sender
from kemem.states import (
    Approval,
    Approvals,
    Checkpoint,
    CheckpointRestored,
    Checkpoints,
    Snapshot,
    Snapshots,
    State,
)
from kemem.writing import Version


class Checkpointing(Sender):
    """Working state, checkpoints and approvals."""

    def state(self, session_id: str) -> State:
        """The working state of a session: small data of an agent at work, dropped at its end."""
        return self._send(session_calls.state(session_id))

    def set_state(self, session_id: str, state: Mapping[str, Any], *, version: Version) -> State:
        """Replace the working state.

        Args:
            version: the one you read, 0 where none was written yet, or `*` for whatever it is.

        Raises:
            ConflictError: `version_conflict`: it has moved on; read it again.

        """
        return self._send(session_calls.set_state(session_id, state, version))

    def update_state(
        self, session_id: str, changes: Mapping[str, Any], *, version: Version
    ) -> State:
        """Change the working state by a merge patch: None removes a key, lists are replaced.

        `append` does it together with messages.

        Args:
            version: as of `set_state`.

        """
        return self._send(session_calls.update_state(session_id, changes, version))

    def snapshot(self, session_id: str) -> Snapshot:
        """Keep a copy of the working state."""
        return self._send(session_calls.snapshot(session_id))

    def snapshots(self, session_id: str, limit: int | None = 100) -> Snapshots:
        """Up to `limit` copies of the working state, newest first; None means all."""
        call = session_calls.snapshots(session_id, limit=limit)
        return listing(Snapshots, self._collect(call, limit))

    def get_snapshot(self, session_id: str, snapshot_id: str) -> Snapshot:
        """One copy of the working state with the state itself. Raises NotFoundError."""
        return self._send(session_calls.get_snapshot(session_id, snapshot_id))

    def restore_snapshot(
        self, session_id: str, snapshot_id: str, *, version: Version | None = None
    ) -> State:
        """Go back to a copy of the working state; a copy of the present one is kept."""
        return self._send(session_calls.restore_snapshot(session_id, snapshot_id, version))

    def checkpoint(
        self,
        session_id: str,
        contents: Mapping[str, Any] | None = None,
        **options: Unpack[CheckpointOptions],
    ) -> Checkpoint:
        """Keep a session as it is, so that a long task can be resumed after a crash.

        Window, summaries, working state and calls that wait are in it by themselves.

        Args:
            contents: what only your agent has: `agent_state`, `tool_states`, and perhaps
                `messages` and `pending_tool_calls`.
            options: see `CheckpointOptions`.

        """
        return self._send(session_calls.checkpoint(session_id, contents=contents, **options))

    def checkpoints(
        self,
        session_id: str,
        limit: int | None = 100,
        **options: Unpack[CheckpointListOptions],
    ) -> Checkpoints:
        """Up to `limit` checkpoints without their contents, newest first; None means all."""
        call = session_calls.checkpoints(session_id, limit=limit, **options)
        return listing(Checkpoints, self._collect(call, limit))

    def get_checkpoint(self, session_id: str, checkpoint_id: str) -> Checkpoint:
        """One checkpoint with all it holds. Raises NotFoundError."""
        return self._send(session_calls.get_checkpoint(session_id, checkpoint_id))

    def restore_checkpoint(self, session_id: str, checkpoint_id: str) -> CheckpointRestored:
        """Put a session back to a checkpoint; what was said since stays, outside of the window."""
        return self._send(session_calls.restore_checkpoint(session_id, checkpoint_id))

    def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None:
        """Delete a checkpoint for good; the session stays as it is. Raises NotFoundError."""
        return self._send(session_calls.delete_checkpoint(session_id, checkpoint_id))

    def approvals(
        self,
        session_id: str,
        limit: int | None = 100,
        *,
        status: ApprovalStatus | None = None,
    ) -> Approvals:
        """Up to `limit` calls of tools that a human is asked about, newest first; None means all.

        Args:
            status: `pending` for those that wait now.

        """
        call = session_calls.approvals(session_id, limit=limit, status=status)
        return listing(Approvals, self._collect(call, limit))

    def approval(self, session_id: str, tool_call_id: str) -> Approval:
        """What was decided about a call, or that it waits. Raises NotFoundError."""
        return self._send(session_calls.approval(session_id, tool_call_id))

    def decide(
        self,
        session_id: str,
        tool_call_id: str,
        decision: Decision,
        *,
        arguments: Mapping[str, Any] | None = None,
        comment: str | None = None,
    ) -> Approval:
        """Decide about a call that waits; your agent then runs it, or answers it.

        Args:
            arguments: of a call that is `modified`: its arguments from now on.

        Raises:
            ConflictError: it was decided or answered before.

        """
        return self._send(
            session_calls.decide(
                session_id, tool_call_id, decision=decision, arguments=arguments, comment=comment
            )
        )


class AsyncCheckpointing(AsyncSender):
    """`Checkpointing` for asyncio."""

    async def state(self, session_id: str) -> State:
        """As `Memory.state`."""
        return await self._send(session_calls.state(session_id))

    async def set_state(
        self, session_id: str, state: Mapping[str, Any], *, version: Version
    ) -> State:
        """As `Memory.set_state`."""
        return await self._send(session_calls.set_state(session_id, state, version))

    async def update_state(
        self, session_id: str, changes: Mapping[str, Any], *, version: Version
    ) -> State:
        """As `Memory.update_state`."""
        return await self._send(session_calls.update_state(session_id, changes, version))

    async def snapshot(self, session_id: str) -> Snapshot:
        """As `Memory.snapshot`."""
        return await self._send(session_calls.snapshot(session_id))

    async def snapshots(self, session_id: str, limit: int | None = 100) -> Snapshots:
        """As `Memory.snapshots`."""
        call = session_calls.snapshots(session_id, limit=limit)
        return listing(Snapshots, await self._collect(call, limit))

    async def get_snapshot(self, session_id: str, snapshot_id: str) -> Snapshot:
        """As `Memory.get_snapshot`."""
        return await self._send(session_calls.get_snapshot(session_id, snapshot_id))

    async def restore_snapshot(
        self, session_id: str, snapshot_id: str, *, version: Version | None = None
    ) -> State:
        """As `Memory.restore_snapshot`."""
        return await self._send(session_calls.restore_snapshot(session_id, snapshot_id, version))

    async def checkpoint(
        self,
        session_id: str,
        contents: Mapping[str, Any] | None = None,
        **options: Unpack[CheckpointOptions],
    ) -> Checkpoint:
        """As `Memory.checkpoint`."""
        return await self._send(session_calls.checkpoint(session_id, contents=contents, **options))

    async def checkpoints(
        self,
        session_id: str,
        limit: int | None = 100,
        **options: Unpack[CheckpointListOptions],
    ) -> Checkpoints:
        """As `Memory.checkpoints`."""
        call = session_calls.checkpoints(session_id, limit=limit, **options)
        return listing(Checkpoints, await self._collect(call, limit))

    async def get_checkpoint(self, session_id: str, checkpoint_id: str) -> Checkpoint:
        """As `Memory.get_checkpoint`."""
        return await self._send(session_calls.get_checkpoint(session_id, checkpoint_id))

    async def restore_checkpoint(self, session_id: str, checkpoint_id: str) -> CheckpointRestored:
        """As `Memory.restore_checkpoint`."""
        return await self._send(session_calls.restore_checkpoint(session_id, checkpoint_id))

    async def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None:
        """As `Memory.delete_checkpoint`."""
        return await self._send(session_calls.delete_checkpoint(session_id, checkpoint_id))

    async def approvals(
        self,
        session_id: str,
        limit: int | None = 100,
        *,
        status: ApprovalStatus | None = None,
    ) -> Approvals:
        """As `Memory.approvals`."""
        call = session_calls.approvals(session_id, limit=limit, status=status)
        return listing(Approvals, await self._collect(call, limit))

    async def approval(self, session_id: str, tool_call_id: str) -> Approval:
        """As `Memory.approval`."""
        return await self._send(session_calls.approval(session_id, tool_call_id))

    async def decide(
        self,
        session_id: str,
        tool_call_id: str,
        decision: Decision,
        *,
        arguments: Mapping[str, Any] | None = None,
        comment: str | None = None,
    ) -> Approval:
        """As `Memory.decide`."""
        return await self._send(
            session_calls.decide(
                session_id, tool_call_id, decision=decision, arguments=arguments, comment=comment
            )
        )
