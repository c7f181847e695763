"""Results in pages that a model can hold: short cursors, and as much as a budget lets in. Pure."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final
from zlib import crc32

from app.language.llm.tokens import TokenCounter
from app.prompting.tools.errors import CallRefusedError

CHARACTERS_PER_TOKEN: Final = 12
"""Words are shorter: what is longer than this need not be counted to be too long."""

CUT: Final = " … (cut: too long to show whole)"

_EPOCH: Final = datetime(2020, 1, 1, tzinfo=UTC)


def digest(search: Mapping[str, Any]) -> int:
    """What two searches share when a cursor of one is good for the other."""
    return crc32(json.dumps(search, sort_keys=True, default=str).encode())


def mark(item_id: str) -> int:
    return crc32(item_id.encode())


@dataclass(frozen=True, slots=True)
class SearchPosition:
    """How far a model has read in a ranking.

    Short, because a model must copy it letter by letter.

    Args:
        count: items seen.
        last: a mark of the last of them.
        asked: when the first page was asked for; the ranking is made as of then again.

    """

    count: int
    last: int
    asked: datetime

    def place_in(self, order: Sequence[str]) -> int:
        """Where the next page begins: behind the last item seen, if that is still there."""
        for place, item_id in enumerate(order):
            if mark(item_id) == self.last:
                return place + 1
        # It was deleted, so that the next one has moved up to its place.
        return min(self.count - 1, len(order))

    def encoded(self, search: int) -> str:
        moment = (self.asked - _EPOCH) // timedelta(microseconds=1)
        return f"{self.count}-{moment:x}-{search:x}-{self.last:x}"


def reached(cursor: str, search: int) -> SearchPosition:
    """Raises CallRefusedError: the cursor is not one that this search gave out."""
    try:
        count, moment, whose, last = (
            int(part, 16 if place else 10) for place, part in enumerate(cursor.split("-"))
        )
        asked = _EPOCH + timedelta(microseconds=moment)
    except (ValueError, OverflowError):
        count, whose, last, asked = 0, -1, 0, _EPOCH
    if whose != search or count < 1:
        raise CallRefusedError(
            "This cursor belongs to another search. For the next page repeat all other arguments "
            "to the letter; for a new search leave the cursor out."
        )
    return SearchPosition(count, last, asked)


@dataclass(frozen=True, slots=True)
class Budget:
    """How much one answer may put before the model."""

    counter: TokenCounter
    tokens: int

    @property
    def characters(self) -> int:
        return CHARACTERS_PER_TOKEN * self.tokens

    def holds(self, text: str) -> bool:
        return len(text) <= self.characters and self.counter.count(text) <= self.tokens

    def fill(
        self, items: Sequence[str], compose: Callable[[Sequence[str]], str]
    ) -> tuple[str, int]:
        """As many whole items, from the first on, as fit into the text that `compose` makes of
        them, and their count. There is always one: alone too long, it is cut.
        """
        whole = compose(items)
        if self.holds(whole):
            return whole, len(items)
        if not self.holds(compose(items[:1])):
            return compose([self._cut(items[0], lambda part: compose([part]))]), 1
        low, high = 1, len(items) - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.holds(compose(items[:middle])):
                low = middle
            else:
                high = middle - 1
        return compose(items[:low]), low

    def cut(self, text: str) -> str:
        """The text, or as much of its beginning as fits."""
        return text if self.holds(text) else self._cut(text, lambda part: part)

    def _cut(self, text: str, around: Callable[[str], str]) -> str:
        """The longest beginning that fits, marked as cut; the mark alone if nothing does."""
        low, high = 0, min(len(text), self.characters)
        while low < high:
            middle = (low + high + 1) // 2
            if self.holds(around(text[:middle] + CUT)):
                low = middle
            else:
                high = middle - 1
        return text[:low].rstrip() + CUT
