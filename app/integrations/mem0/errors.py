"""What can go wrong in mem0's dialect besides what the services refuse."""

from app.errors import NotFoundError, UnprocessableError


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
