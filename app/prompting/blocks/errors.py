"""What can go wrong with a block. The details are fit for a model, which must know how to go on."""

from collections.abc import Sequence
from typing import Final

from app.errors import ConflictError, NotFoundError, UnprocessableError

MOST_COUNTED: Final = 20
"""How far the occurrences of a text that must be there once are counted."""


class BlockNotAttachedError(NotFoundError):
    code = "block_not_attached"
    title = "Block not attached"

    def __init__(self, agent_id: str, block_id: str) -> None:
        super().__init__(
            f"The agent {agent_id} does not have the block {block_id}.",
            agent_id=agent_id,
            block_id=block_id,
        )


class LabelNotFoundError(NotFoundError):
    """Nothing in this context bears the label."""

    code = "block_label_not_found"
    title = "No block with that label"

    def __init__(self, label: str, labels: Sequence[str]) -> None:
        listed = ", ".join(labels) or "none"
        super().__init__(
            f"No block {label} here; there are: {listed}.", label=label, labels=list(labels)
        )


class BlockReadOnlyError(ConflictError):
    code = "block_read_only"
    title = "Block is read-only"

    def __init__(self, label: str) -> None:
        super().__init__(
            f"The block {label} is read-only: only a PATCH with an admin key changes it.",
            label=label,
        )


class NothingToUndoError(ConflictError):
    code = "nothing_to_undo"
    title = "Nothing to undo"

    def __init__(self) -> None:
        super().__init__("No earlier text of this block is kept.")


class NothingToRedoError(ConflictError):
    code = "nothing_to_redo"
    title = "Nothing to redo"

    def __init__(self) -> None:
        super().__init__("Nothing was undone since the last change of this block.")


class TextNotFoundError(UnprocessableError):
    code = "text_not_found"
    title = "Text to replace not found"

    def __init__(self) -> None:
        super().__init__(
            "`old` does not occur in the block. It must be there exactly once, letter for letter.",
            occurrences=0,
        )


class TextNotUniqueError(UnprocessableError):
    code = "text_not_unique"
    title = "Text to replace occurs more than once"

    def __init__(self, occurrences: int) -> None:
        super().__init__(
            f"`old` occurs {times(occurrences)} in the block and must occur exactly once: take "
            "some of the text around it in.",
            occurrences=occurrences,
        )


def times(occurrences: int) -> str:
    """How often something was found, which is counted up to MOST_COUNTED."""
    return f"{'at least ' if occurrences >= MOST_COUNTED else ''}{occurrences} times"


class LineOutOfRangeError(UnprocessableError):
    code = "line_out_of_range"
    title = "No such line"

    def __init__(self, lines: int) -> None:
        super().__init__(
            f"`line` must lie between 0, the beginning, and {lines}, the last line.", lines=lines
        )


class LineNumbersError(UnprocessableError):
    """The numbers are shown beside the text and are no part of it."""

    code = "line_numbers"
    title = "Text carries line numbers"

    def __init__(self, field: str) -> None:
        super().__init__(
            f"`{field}` carries the line numbers that are shown beside the text, as in `1→`. "
            "Leave them out.",
            errors=[{"location": ["body", field], "detail": "carries line numbers"}],
        )
