"""What can go wrong with a session."""

from app.errors import ConflictError, NotFoundError


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
