"""What can go wrong with the ledger."""

from app.errors import UnprocessableError


class InvalidDaysError(UnprocessableError):
    code = "invalid_request"
    title = "Request is not valid"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"`since` must not lie after `until`, and at most {most} days are shown at once.",
            errors=[{"location": ["query", "since"], "detail": f"0 to {most - 1} days before"}],
        )
