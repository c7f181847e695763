"""Which messages are on a branch that was left, once a session is put back. Pure.

Numbers are never used again, so a checkpoint needs no copy of the messages: those up to its
number, but the ones that were set aside before it was made. Putting a session back sets aside
what came after, and takes back in what the checkpoint still had.
"""

from collections.abc import Iterable

from sqlalchemy.dialects.postgresql import Range


def set_aside_after(
    before: Iterable[Range[int]], message_seq: int, last_sequence_no: int
) -> list[Range[int]]:
    """What is set aside in a session that goes back to a checkpoint.

    Args:
        before: what was set aside when the checkpoint was made; all of it up to `message_seq`.
        message_seq: the newest number then.
        last_sequence_no: the newest number now.

    """
    since = [Range(message_seq + 1, last_sequence_no + 1)] if last_sequence_no > message_seq else []
    return [*before, *since]
