"""What mem0's clients may ask for and this service does not have. It is refused, never ignored."""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class NoCounterpartError(UnprocessableError):
    """A field, value or operation of mem0's that means nothing here; nothing was written."""

    code = "no_counterpart"
    title = "Not served for mem0's clients"

    def __init__(self, what: str, instead: str) -> None:
        super().__init__(f"{what} is not served here. {instead}", unsupported=what)


class ProfileJobNotFoundError(NotFoundError):
    code = "mem0_profile_job_not_found"
    title = "Job of a profile not found"

    def __init__(self) -> None:
        super().__init__("This key has no such job of a profile, or its user was erased.")


class BatchStoppedError(ConflictError):
    """One update of a batch was refused; those before it stay."""

    code = "mem0_batch_stopped"
    title = "Batch stopped"

    def __init__(self, done: int, total: int, memory_id: str, because: str) -> None:
        super().__init__(
            f"{done} of {total} memories were updated; then {memory_id} was refused: {because} "
            "Correct it and send the batch again: an update that is made already changes nothing.",
            updated=done,
            memory_id=memory_id,
        )
