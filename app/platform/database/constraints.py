"""Which constraint a write violated, so that a race becomes a named conflict."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager

from sqlalchemy.exc import IntegrityError

from app.errors import DomainError


def violated_constraint(error: IntegrityError) -> str | None:
    """Name of the violated constraint, or None when the driver gave none."""
    cause = getattr(error.orig, "__cause__", None) if error.orig else None
    return getattr(cause, "constraint_name", None)


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
