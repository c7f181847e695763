"""What only the MCP server refuses."""

from app.errors import ForbiddenError, NotFoundError


class OriginNotAllowedError(ForbiddenError):
    """A page of another machine asks, through somebody's browser."""

    code = "origin_not_allowed"
    title = "Origin not allowed"

    def __init__(self) -> None:
        super().__init__(
            "A browser sent this for a page that is not of this machine. Programs send no `Origin`."
        )


class ResourceNotFoundError(NotFoundError):
    code = "resource_not_found"
    title = "Resource not found"

    def __init__(self) -> None:
        super().__init__(
            "There is no such resource: kemem://users/{user_id}/profile and "
            "kemem://blocks/{block_id} are read here."
        )
