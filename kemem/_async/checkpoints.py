"""Methods about a running agent: working state, snapshots, checkpoints and approvals."""

from collections.abc import Mapping
from typing import Any, Unpack

from kemem._async.sender import AsyncSender
from kemem.answers import listing
from kemem.calls import Version, change, fetch, fetch_pages, if_match, post, remove
from kemem.checkpoints import (
    Approval,
    Approvals,
    Checkpoint,
    CheckpointRestored,
    Checkpoints,
    Snapshot,
    Snapshots,
    State,
)
from kemem.options import ApprovalStatus, CheckpointListOptions, CheckpointOptions, Decision
from kemem.sessions import SessionForked


class AsyncCheckpointMethods(AsyncSender):
    """Methods about working state, checkpoints and approvals."""

    async def state(self, session_id: str) -> State:
        """Return the working state of a session: small data, deleted when the session ends.

        Raises:
            NotFoundError: there is no such session.

        """
        return await self._send(fetch(State, "sessions", session_id, "state"))

    async def set_state(
        self, session_id: str, state: Mapping[str, Any], *, version: Version
    ) -> State:
        """Replace the working state.

        Args:
            version: the version you read, 0 if there is none yet, or `*` for any version. An
                unanswered request is repeated only with `*`.

        Raises:
            ConflictError: there is a newer version (`version_conflict`); read it again.

        """
        call = change("PUT", State, "sessions", session_id, "state", body=state, version=version)
        return await self._send(call)

    async def update_state(
        self, session_id: str, changes: Mapping[str, Any], *, version: Version
    ) -> State:
        """Change the working state by a merge patch: None removes a key, lists are replaced.

        `append` can do this together with adding messages.

        Args:
            version: as in `set_state`.

        Raises:
            ConflictError: there is a newer version (`version_conflict`); read it again.

        """
        call = change(
            "PATCH", State, "sessions", session_id, "state", body=changes, version=version
        )
        return await self._send(call)

    async def snapshot(self, session_id: str) -> Snapshot:
        """Store a copy of the working state."""
        return await self._send(post(Snapshot, "sessions", session_id, "state", "snapshots"))

    async def snapshots(self, session_id: str, limit: int | None = 100) -> Snapshots:
        """Return up to `limit` copies of the working state, newest first; None means all.

        They come without the state itself; `get_snapshot` has it.
        """
        call = fetch_pages(Snapshot, "sessions", session_id, "state", "snapshots", limit=limit)
        return listing(Snapshots, await self._collect(call, limit))

    async def get_snapshot(self, session_id: str, snapshot_id: str) -> Snapshot:
        """Return one copy of the working state, with the state.

        Raises:
            NotFoundError: there is no such session or copy.

        """
        return await self._send(
            fetch(Snapshot, "sessions", session_id, "state", "snapshots", snapshot_id)
        )

    async def restore_snapshot(
        self, session_id: str, snapshot_id: str, *, version: Version | None = None
    ) -> State:
        """Replace the working state by a stored copy; the replaced state is stored as a copy.

        Raises:
            NotFoundError: there is no such session or copy.
            ConflictError: there is a newer version (`version_conflict`).

        """
        call = post(
            State,
            "sessions",
            session_id,
            "state",
            "snapshots",
            snapshot_id,
            "restore",
            headers=if_match(version),
        )
        return await self._send(call)

    async def checkpoint(
        self,
        session_id: str,
        contents: Mapping[str, Any] | None = None,
        **options: Unpack[CheckpointOptions],
    ) -> Checkpoint:
        """Store the state of a session, so that a long task can resume after a crash.

        Window, summaries, working state and waiting tool calls are included automatically.

        Args:
            contents: what only your agent has: `agent_state`, `tool_states`, and if needed
                `messages` and `pending_tool_calls`.
            options: see `CheckpointOptions`.

        """
        body = {"contents": contents, **options}
        return await self._send(post(Checkpoint, "sessions", session_id, "checkpoints", body=body))

    async def checkpoints(
        self,
        session_id: str,
        limit: int | None = 100,
        **options: Unpack[CheckpointListOptions],
    ) -> Checkpoints:
        """Return up to `limit` checkpoints without contents, newest first; None means all."""
        call = fetch_pages(
            Checkpoint, "sessions", session_id, "checkpoints", limit=limit, **options
        )
        return listing(Checkpoints, await self._collect(call, limit))

    async def get_checkpoint(self, session_id: str, checkpoint_id: str) -> Checkpoint:
        """Return one checkpoint with its contents.

        Raises:
            NotFoundError: there is no such session or checkpoint.

        """
        return await self._send(
            fetch(Checkpoint, "sessions", session_id, "checkpoints", checkpoint_id)
        )

    async def restore_checkpoint(self, session_id: str, checkpoint_id: str) -> CheckpointRestored:
        """Reset a session to a checkpoint; later messages stay stored, outside of the window.

        Raises:
            NotFoundError: there is no such session or checkpoint.

        """
        call = post(
            CheckpointRestored, "sessions", session_id, "checkpoints", checkpoint_id, "restore"
        )
        return await self._send(call)

    async def fork(
        self,
        session_id: str,
        *,
        at_message_id: str | None = None,
        at_sequence_no: int | None = None,
        checkpoint_id: str | None = None,
        new_session_id: str | None = None,
        session_name: str | None = None,
    ) -> SessionForked:
        """Open a new session that goes on from a place in this one, which is not changed.

        Args:
            at_message_id: the last message to copy; the newest if no place is given.
            at_sequence_no: the same, by its number.
            checkpoint_id: copy the session as it was when this checkpoint was made.
            new_session_id: the id of the new session; generated if left out.
            session_name: its name; the same as before if left out.

        Raises:
            NotFoundError: there is no such session, message or checkpoint.
            ConflictError: a tool call has no result at that place, or the message was set aside
                (`invalid_fork_point`); or the id is in use (`id_taken`).

        """
        body = {
            "at_message_id": at_message_id,
            "at_sequence_no": at_sequence_no,
            "checkpoint_id": checkpoint_id,
            "session_id": new_session_id,
            "session_name": session_name,
        }
        return await self._send(post(SessionForked, "sessions", session_id, "fork", body=body))

    async def delete_checkpoint(self, session_id: str, checkpoint_id: str) -> None:
        """Delete a checkpoint for good; the session is not changed.

        Raises:
            NotFoundError: there is no such session or checkpoint.

        """
        return await self._send(remove("sessions", session_id, "checkpoints", checkpoint_id))

    async def approvals(
        self,
        session_id: str,
        limit: int | None = 100,
        *,
        status: ApprovalStatus | None = None,
    ) -> Approvals:
        """Return up to `limit` tool calls that need a human decision, newest first; None means all.

        Args:
            status: `pending` for those without a decision.

        """
        call = fetch_pages(
            Approval, "sessions", session_id, "approvals", limit=limit, status=status
        )
        return listing(Approvals, await self._collect(call, limit))

    async def approval(self, session_id: str, tool_call_id: str) -> Approval:
        """Return the decision about a tool call, or that it is pending.

        Raises:
            NotFoundError: there is no such session or tool call.

        """
        return await self._send(fetch(Approval, "sessions", session_id, "approvals", tool_call_id))

    async def decide(
        self,
        session_id: str,
        tool_call_id: str,
        decision: Decision,
        *,
        arguments: Mapping[str, Any] | None = None,
        comment: str | None = None,
    ) -> Approval:
        """Decide about a pending tool call; your agent then runs it or answers it.

        Args:
            arguments: with the decision `modified`, the new arguments of the call.

        Raises:
            NotFoundError: there is no such session or tool call.
            ConflictError: it was decided or answered before.

        """
        body = {"decision": decision, "arguments": arguments, "comment": comment}
        return await self._send(
            post(Approval, "sessions", session_id, "approvals", tool_call_id, body=body)
        )
