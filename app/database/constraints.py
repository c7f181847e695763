"""Which constraint a write violated, so that a race becomes a named conflict."""

from sqlalchemy.exc import IntegrityError


def violated_constraint(error: IntegrityError) -> str | None:
    """Name of the violated constraint, or None when the driver gave none."""
    cause = getattr(error.orig, "__cause__", None) if error.orig else None
    return getattr(cause, "constraint_name", None)
