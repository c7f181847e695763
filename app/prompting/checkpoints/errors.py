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
