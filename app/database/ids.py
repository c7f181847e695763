"""New ids: a prefix that says what it is, and a time-ordered UUID (version 7)."""

from uuid_utils import uuid7


def new_id(prefix: str) -> str:
    """An id such as `mem_0197…`; later ones sort after earlier ones."""
    return f"{prefix}_{uuid7().hex}"
