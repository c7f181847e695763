"""Which constraint a write violated, so that a race becomes a named conflict."""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError

from app.errors import DomainError

# Citus names a constraint of a shard after the table's, followed by the shard's number; none of
# ours ends in a number.
_SHARD = re.compile(r"_[0-9]+\Z")


def violated_constraint(error: IntegrityError) -> str | None:
    """Name of the violated constraint as the schema has it, or None when the driver gave none."""
    cause = getattr(error.orig, "__cause__", None) if error.orig else None
    name: str | None = getattr(cause, "constraint_name", None)
    return name and _SHARD.sub("", name)


@contextmanager
def conflicts(named: Mapping[str, DomainError]) -> Iterator[None]:
    """Raise what is named for a constraint in the place of its violation.

    Raises:
        IntegrityError: another constraint was violated.

    """
    try:
        yield
    except IntegrityError as error:
        conflict = named.get(violated_constraint(error) or "")
        if conflict is None:
            raise
        raise conflict from error
