"""What can go wrong with a profile."""

from collections.abc import Sequence

from app.errors import UnprocessableError


class UnknownSlotError(UnprocessableError):
    """A slot that no agent of the user has named."""

    code = "unknown_profile_slot"
    title = "No such slot"

    def __init__(self, names: Sequence[str], known: Sequence[str]) -> None:
        super().__init__(
            "The user's home agent names no such slot in `config.profile_slots`.",
            errors=[
                {"location": ["body", *name.split(".")], "detail": "no slot of the home agent"}
                for name in names
            ],
            available=list(known),
        )


class SlotTooLongError(UnprocessableError):
    """More than the agent allows in one of its slots."""

    code = "profile_slot_too_long"
    title = "Longer than its slot"

    def __init__(self, name: str, most: int) -> None:
        super().__init__(
            f"`{name}` holds at most {most} characters.",
            errors=[
                {"location": ["body", *name.split(".")], "detail": f"at most {most} characters"}
            ],
        )
