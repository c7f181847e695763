"""What can go wrong with a session."""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class SessionNotFoundError(NotFoundError):
    code = "session_not_found"
    title = "Session not found"

    def __init__(self, session_id: str) -> None:
        super().__init__(f"No session {session_id}.", session_id=session_id)


class SessionEndedError(ConflictError):
    code = "session_ended"
    title = "Session has ended"

    def __init__(self, session_id: str) -> None:
        super().__init__(
            f"The session {session_id} has ended; POST …/reopen to go on with it.",
            session_id=session_id,
        )


class SessionMismatchError(ConflictError):
    code = "session_mismatch"
    title = "Session belongs to another pair"

    def __init__(self, session_id: str, field: str) -> None:
        super().__init__(
            f"The session {session_id} was opened with another {field}; leave it out, or name "
            "another session.",
            session_id=session_id,
            field=field,
        )


class StateTooLargeError(UnprocessableError):
    code = "state_too_large"
    title = "Working state too large"

    def __init__(self, size: int, limit: int) -> None:
        super().__init__(
            f"The working state would take {size} bytes of JSON, and {limit} are kept. What "
            "belongs to the conversation goes into messages.",
            size=size,
            limit=limit,
        )


class SnapshotNotFoundError(NotFoundError):
    code = "snapshot_not_found"
    title = "Snapshot not found"

    def __init__(self, snapshot_id: str) -> None:
        super().__init__(f"No snapshot {snapshot_id}.", snapshot_id=snapshot_id)
