"""What can go wrong with the checkpoints of a LangGraph thread."""

from collections.abc import Iterable

from app.errors import ConflictError, NotFoundError, UnprocessableError


class SaverCheckpointNotFoundError(NotFoundError):
    code = "saver_checkpoint_not_found"
    title = "Checkpoint of the thread not found"

    def __init__(self, session_id: str, checkpoint_id: str) -> None:
        super().__init__(
            f"The session {session_id} has no LangGraph checkpoint {checkpoint_id} in this "
            "namespace: it was deleted, or it has not been put yet.",
            session_id=session_id,
            checkpoint_id=checkpoint_id,
        )


class SaverContentMissingError(ConflictError):
    """A put that leaves out what it takes for stored; nothing was written."""

    code = "saver_content_missing"
    title = "Content not stored here"

    def __init__(self, *, channels: Iterable[str] = (), chunks: Iterable[bytes] = ()) -> None:
        names, digests = sorted(channels), sorted(chunk.hex() for chunk in chunks)
        super().__init__(
            "The checkpoint refers to content that is not stored: put it again with `values` for "
            "the `channels` and with `content` for the `chunks` that are listed.",
            channels=[*names],
            chunks=[*digests],
        )


class SaverStepTooLargeError(UnprocessableError):
    code = "saver_step_too_large"
    title = "Step too large"

    def __init__(self, what: str, *, size: int, limit: int) -> None:
        super().__init__(
            f"{what} take {size} bytes compressed, and at most {limit} are stored; nothing was "
            "written.",
            bytes=size,
            limit=limit,
        )


class InvalidChunkError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, digest: str, why: str) -> None:
        super().__init__(
            f"The content of the chunk {digest} {why}; nothing was stored.",
            errors=[{"location": ["body", "content", digest], "detail": why}],
        )


class InvalidSaverFilterError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "`filter` must be a JSON object that can be stored as metadata.",
            errors=[{"location": ["query", "filter"], "detail": "not a JSON object"}],
        )
