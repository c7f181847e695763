"""Where the next page of a search begins. Pure.

A ranking has no key that a page could start after: scores are relative to the search. So a
cursor says how far its reader has come and past which messages, which search it belongs to, and
what that search looked at, so that nothing said meanwhile moves the hits.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import blake2b
from typing import Any, Final
from zlib import crc32

from app.conversation.messages.errors import OtherSearchError
from app.platform.values.fields import in_utc

KEPT: Final = 16
"""How many of the last hits a cursor remembers, so that it holds when some are deleted."""

LARGEST: Final = 2**32 - 1


@dataclass(frozen=True, slots=True)
class MessageSearchPosition:
    """How far a reader has come.

    Args:
        count: hits seen.
        last: marks of the last of them, in their order.
        newest: when the newest message that the search looked at was stored.
        reference: when the query was asked.

    """

    count: int
    last: tuple[int, ...]
    newest: datetime
    reference: datetime

    def place_in(self, order: Sequence[str]) -> int:
        """Where the next page begins: after the last hit seen that is still there.

        Args:
            order: ids of all hits, best first.

        """
        places = {mark(message_id): place for place, message_id in enumerate(order)}
        for one in reversed(self.last):
            if one in places:
                return places[one] + 1
        return min(max(self.count - len(self.last), 0), len(order))


def mark(message_id: str) -> int:
    """A number that few ids share."""
    return crc32(message_id.encode())


def marks(before: MessageSearchPosition | None, message_ids: Sequence[str]) -> tuple[int, ...]:
    """What `MessageSearchPosition.last` is when these have been shown too."""
    return (*(before.last if before else ()), *map(mark, message_ids))[-KEPT:]


def fingerprint(search: Mapping[str, Any]) -> str:
    """What two searches share exactly when a cursor of one is good for the other.

    Args:
        search: everything that decides about hits and their order, as JSON has it.

    """
    told = json.dumps(search, sort_keys=True, separators=(",", ":"))
    return blake2b(told.encode(), digest_size=12).hexdigest()


def encode(reached: MessageSearchPosition, search: str) -> str:
    """The cursor, for a search with this fingerprint."""
    times = (reached.newest.isoformat(), reached.reference.isoformat())
    raw = json.dumps([search, reached.count, reached.last, *times], separators=(",", ":"))
    return base64.urlsafe_b64encode(raw.encode()).decode().rstrip("=")


def decode(cursor: str, search: str) -> MessageSearchPosition:
    """What a cursor says.

    Raises:
        OtherSearchError: it is none, or one of another search.

    """
    try:
        padded = cursor + "=" * (-len(cursor) % 4)
        told = json.loads(base64.b64decode(padded, altchars=b"-_", validate=True))
        theirs, count, last, *times = told
        newest, reference = (in_utc(datetime.fromisoformat(one)) for one in times)
        reached = MessageSearchPosition(count, tuple(last), newest, reference)
    except (ValueError, TypeError, RecursionError):
        raise OtherSearchError from None
    numbers = (reached.count, *reached.last)
    # Nobody is served by a forged one, but nobody must be able to break anything with it.
    sound = len(numbers) <= KEPT + 1 and all(
        type(one) is int and 0 <= one <= LARGEST for one in numbers
    )
    if theirs != search or not sound:
        raise OtherSearchError
    return reached
