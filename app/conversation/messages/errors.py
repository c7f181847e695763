"""What can go wrong with a message."""

from collections.abc import Sequence

from app.errors import ConflictError, NotFoundError, UnprocessableError


class MessageNotFoundError(NotFoundError):
    code = "message_not_found"
    title = "Message not found"

    def __init__(self, message_id: str) -> None:
        super().__init__(f"No message {message_id}.", message_id=message_id)


class MessageConflictError(ConflictError):
    code = "message_conflict"
    title = "Message id used for another message"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"The message {message_id} exists with other content; a message never changes.",
            message_id=message_id,
        )


class MessageSetAsideError(ConflictError):
    code = "message_set_aside"
    title = "Message is on another branch"

    def __init__(self, message_id: str) -> None:
        super().__init__(
            f"The message {message_id} was set aside when a checkpoint was restored; append what "
            "is said now under another id.",
            message_id=message_id,
        )


class ParentNotFoundError(UnprocessableError):
    code = "parent_not_found"
    title = "Parent message not in this session"

    def __init__(self, index: int, parent_message_id: str) -> None:
        super().__init__(
            f"The parent {parent_message_id} is no message of this session.",
            errors=[
                {
                    "location": ["body", "messages", str(index), "parent_message_id"],
                    "detail": "no message of this session",
                }
            ],
        )


class UnknownToolCallError(UnprocessableError):
    code = "unknown_tool_call"
    title = "Tool result without its call"

    def __init__(self, index: int) -> None:
        super().__init__(
            "A tool message must answer a call, not yet answered, of an assistant message "
            "before it in the session.",
            errors=[
                {
                    "location": ["body", "messages", str(index), "tool_call_id"],
                    "detail": "no open call with this id",
                }
            ],
        )


class OtherSearchError(UnprocessableError):
    code = "invalid_cursor"
    title = "Cursor not valid"

    def __init__(self) -> None:
        super().__init__(
            "`cursor` is not one that this search gave out: start without it.",
            errors=[{"location": ["body", "cursor"], "detail": "not a cursor of this search"}],
        )


class WindowTooSmallError(UnprocessableError):
    code = "window_too_small"
    title = "What is always shown does not fit"

    def __init__(
        self, budget_tokens: int, needed_tokens: int, field: str = "window_tokens"
    ) -> None:
        super().__init__(
            "The newest message with what belongs to it, the current request and calls that wait "
            f"for a result need {needed_tokens} tokens in their shortest forms, with all that is "
            f"always shown; the budget is {budget_tokens}. Raise the budget, or shorten the "
            "instructions and blocks.",
            budget_tokens=budget_tokens,
            needed_tokens=needed_tokens,
            errors=[{"location": ["body", field], "detail": f"less than {needed_tokens}"}],
        )


class UnknownStrategyError(UnprocessableError):
    code = "unknown_strategy"
    title = "Window strategy unknown"

    def __init__(self, available: Sequence[str]) -> None:
        super().__init__(
            f"This deployment has the window strategies {', '.join(available)}.",
            errors=[{"location": ["body", "strategy", "name"], "detail": "no such strategy"}],
        )


class InvalidStrategyError(UnprocessableError):
    code = "invalid_strategy"
    title = "Options not valid for the window strategy"

    def __init__(self, name: str) -> None:
        super().__init__(
            f"The window strategy {name} does not take these options.",
            errors=[{"location": ["body", "strategy", "options"], "detail": "refused by it"}],
        )
