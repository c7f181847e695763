"""What can go wrong with a memory."""

from collections.abc import Sequence
from typing import ClassVar

from pydantic import JsonValue

from app.errors import (
    ConflictError,
    ForbiddenError,
    NotFoundError,
    UnprocessableError,
)
from app.memory.memories.gate import Obstacle


class MemoryNotFoundError(NotFoundError):
    code = "memory_not_found"
    title = "Memory not found"

    def __init__(self, memory_id: str) -> None:
        super().__init__(f"No memory {memory_id}.", memory_id=memory_id)


class HistoryNotFoundError(NotFoundError):
    code = "history_not_found"
    title = "History entry not found"

    def __init__(self, memory_id: str, history_id: str) -> None:
        super().__init__(
            f"The history of {memory_id} has no entry {history_id} with a state to restore.",
            memory_id=memory_id,
            history_id=history_id,
        )


class GateRejectedError(UnprocessableError):
    code = "gate_rejected"
    title = "The gate refused the memory"

    def __init__(self, reasons: list[JsonValue], decision_id: str | None = None) -> None:
        super().__init__(
            "Nothing was stored but this verdict; `reasons` lists every rule that was broken.",
            reasons=reasons,
            decision_id=decision_id,
        )


class DecisionNotFoundError(NotFoundError):
    code = "decision_not_found"
    title = "Verdict not found"

    def __init__(self, decision_id: str) -> None:
        super().__init__(f"No verdict {decision_id}.", decision_id=decision_id)


class NotStorableError(ConflictError):
    """The text of a verdict cannot be stored; `reason` says why."""

    code = "not_storable"
    title = "The text cannot be stored"

    _DETAILS: ClassVar = {
        "accepted": "It was accepted: nothing was refused.",
        "stored": "It was stored already.",
        "sensitive": "It held something sensitive, so its text was not kept.",
        "too_long": "It is too long for a memory; a longer text belongs into documents.",
        "not_kept": "Its text was not kept whole, or not who may see it in the project.",
    }

    def __init__(self, decision_id: str, reason: Obstacle) -> None:
        super().__init__(self._DETAILS[reason], decision_id=decision_id, reason=reason)


class DuplicateMemoryError(ConflictError):
    code = "duplicate"
    title = "Says what is remembered already"

    def __init__(
        self, memory_id: str | None, similarity: float | None, decision_id: str | None
    ) -> None:
        known = f"The memory {memory_id}" if memory_id else "Another memory"
        super().__init__(
            f"{known} says the same or nearly so. Send `on_duplicate` as return, "
            "supersede or allow to decide otherwise.",
            memory_id=memory_id,
            similarity=similarity,
            decision_id=decision_id,
        )


class ScopeRequiresError(UnprocessableError):
    code = "scope_requires_id"
    title = "Scope without its id"

    def __init__(self, scope: str, field: str) -> None:
        super().__init__(
            f"The scope {scope} needs {field}.",
            errors=[{"location": ["body", field], "detail": f"required for scope {scope}"}],
        )


class InvalidValidityError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self) -> None:
        super().__init__(
            "The memory would end before it begins.",
            errors=[{"location": ["body", "valid_to"], "detail": "must lie after valid_from"}],
        )


class ImpossibleTimeError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, *location: str | int) -> None:
        super().__init__(
            "Nothing was said before 1900, or will be said later than a day from now.",
            errors=[
                {
                    "location": ["body", *map(str, location)],
                    "detail": "must lie between 1900 and a day from now",
                }
            ],
        )


class SharedByAllUsersError(UnprocessableError):
    code = "shared_by_all_users"
    title = "Knowledge of an agent has no user"

    def __init__(self) -> None:
        super().__init__(
            "The scope agent is what all users of an agent share: leave `user_id` out, or no "
            "deletion of that person would find it.",
            errors=[{"location": ["body", "user_id"], "detail": "not with scope agent"}],
        )


class NotYourMemoryError(ForbiddenError):
    code = "not_your_memory"
    title = "Another user's memory"

    def __init__(self, memory_id: str) -> None:
        super().__init__(
            "You may read this memory, and not change it: it is another user's.",
            memory_id=memory_id,
        )


class NotChangeableError(ConflictError):
    code = "not_changeable"
    title = "Only the current statement can change"

    def __init__(self, memory_id: str, status: str) -> None:
        super().__init__(
            f"The memory {memory_id} is {status}; only an active or archived one can be changed.",
            memory_id=memory_id,
            memory_status=status,
        )


class NotInferredError(UnprocessableError):
    """Fields of one statement, while `infer` is to find out how many there are."""

    code = "needs_infer_false"
    title = "Only with infer false"

    def __init__(self, fields: Sequence[str]) -> None:
        super().__init__(
            f"With infer true the service decides about {', '.join(fields)}. Leave that out, or "
            "send infer false to store the text as it stands.",
            errors=[{"location": ["body", name], "detail": "needs infer false"} for name in fields],
        )
