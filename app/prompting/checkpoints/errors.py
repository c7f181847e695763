"""What can go wrong with a checkpoint or an approval."""

from app.errors import ConflictError, NotFoundError, UnprocessableError


class CheckpointNotFoundError(NotFoundError):
    code = "checkpoint_not_found"
    title = "Checkpoint not found"

    def __init__(self, checkpoint_id: str) -> None:
        super().__init__(f"No checkpoint {checkpoint_id}.", checkpoint_id=checkpoint_id)


class CheckpointParentNotFoundError(UnprocessableError):
    code = "parent_not_found"
    title = "Parent not in this session and namespace"

    def __init__(self, parent_id: str) -> None:
        super().__init__(
            f"The parent {parent_id} is no checkpoint of this session and namespace.",
            errors=[
                {
                    "location": ["body", "parent_id"],
                    "detail": "no checkpoint of this session and namespace",
                }
            ],
        )


class ForkPointError(ConflictError):
    """`reason`: `open_tool_call`, or `set_aside`."""

    code = "invalid_fork_point"
    title = "Session cannot be forked there"

    @classmethod
    def set_aside(cls, sequence_no: int) -> "ForkPointError":
        """The message is outside of the window since a checkpoint was restored."""
        return cls(
            f"The message {sequence_no} was set aside when a checkpoint was restored. Fork at a "
            "checkpoint that was made while it was in the window.",
            reason="set_aside",
            sequence_no=sequence_no,
        )

    @classmethod
    def open_call(cls, sequence_no: int, tool_call_ids: list[str]) -> "ForkPointError":
        """Message `sequence_no` makes calls whose results come later, or never."""
        return cls(
            f"The message {sequence_no} makes calls of tools that have no result by then, and no "
            "model takes a new request behind such a call. Fork before it, or behind its results.",
            reason="open_tool_call",
            sequence_no=sequence_no,
            tool_call_ids=list(tool_call_ids),
        )


class ForkTooLargeError(UnprocessableError):
    code = "fork_too_large"
    title = "Too many messages to copy"

    def __init__(self, messages: int, limit: int) -> None:
        super().__init__(
            f"{messages} messages would be copied, and at most {limit} are.",
            messages=messages,
            limit=limit,
        )


class ApprovalNotFoundError(NotFoundError):
    code = "approval_not_found"
    title = "Approval not found"

    def __init__(self, tool_call_id: str) -> None:
        super().__init__(f"No call {tool_call_id} waits here.", tool_call_id=tool_call_id)


class ApprovalDecidedError(ConflictError):
    code = "approval_decided"
    title = "Already decided"

    def __init__(self, tool_call_id: str, status: str) -> None:
        super().__init__(
            f"The call {tool_call_id} waits no longer; what was decided stays.",
            tool_call_id=tool_call_id,
            decision=status,
        )


class CallAnsweredError(ConflictError):
    code = "call_answered"
    title = "Call has its result"

    def __init__(self, tool_call_id: str) -> None:
        super().__init__(
            f"The call {tool_call_id} was answered by a tool message without waiting for a "
            "decision.",
            tool_call_id=tool_call_id,
        )
