"""What can go wrong in mem0's dialect besides what the services refuse, and what its clients may
ask for and this service does not have: it is refused, never ignored.
"""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class Mem0ApiOffError(NotFoundError):
    code = "mem0_api_off"
    title = "mem0's API is not served"

    def __init__(self) -> None:
        super().__init__("mem0's API is off here: set MEMORY_MEM0_API=true to serve it.")


class InvalidMem0RequestError(UnprocessableError):
    """A value that the dialect cannot carry out; nothing was written."""

    code = "invalid_request"
    title = "Request is not valid"


class UnknownMem0ProjectError(NotFoundError):
    code = "mem0_project_not_found"
    title = "mem0 project not found"

    def __init__(self) -> None:
        super().__init__(
            "The key belongs to another organization or project: leave org_id and project_id out, "
            "or take those that /v1/ping/ answers."
        )


class Mem0EntityNotFoundError(NotFoundError):
    code = "mem0_entity_not_found"
    title = "Entity not found"

    def __init__(self, kind: str) -> None:
        super().__init__(f"There is no such {kind}.")


class Mem0EventNotFoundError(NotFoundError):
    code = "mem0_event_not_found"
    title = "Event not found"

    def __init__(self) -> None:
        super().__init__("There is no such event for this key, or it is no longer kept.")


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
