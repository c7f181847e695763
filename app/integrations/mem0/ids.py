"""mem0's ids are UUIDs. Ours are a prefix and a UUID, so that one gives the other."""

from uuid import UUID

from app.integrations.mem0.errors import InvalidMem0RequestError


def shown_id(own: str) -> str:
    """The UUID in an id of ours; an id that has none is shown as it is."""
    try:
        return str(UUID(hex=own.partition("_")[2]))
    except ValueError:
        return own


def own_id(prefix: str, given: str) -> str:
    """The id of ours that a UUID stands for; one of ours is understood too.

    Raises:
        InvalidMem0RequestError: it is neither.

    """
    bare = given.removeprefix(f"{prefix}_")
    try:
        return f"{prefix}_{UUID(bare).hex}"
    except ValueError:
        raise InvalidMem0RequestError("An id must be a UUID.") from None
