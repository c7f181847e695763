"""What can go wrong with a user."""

from app.errors import NotFoundError, UnprocessableError


class UserNotFoundError(NotFoundError):
    code = "user_not_found"
    title = "User not found"

    def __init__(self, user_id: str) -> None:
        super().__init__(f"No user {user_id}.", user_id=user_id)


class UserRequiredError(UnprocessableError):
    code = "user_required"
    title = "No user named"

    def __init__(self) -> None:
        super().__init__(
            "Name the user: only a key restricted to one may leave `user_id` out.",
            errors=[{"location": ["body", "user_id"], "detail": "required here"}],
        )
