"""Trimming a window for one call: strategies, and what makes their choice valid.
Pure; writes nothing.

A strategy only points at messages. Whatever it points at is mended to a conversation that a
provider takes and shortened until it fits, by the same rules for all of them.
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.metadata import entry_points
from typing import Any, Final

from app.conversation.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.conversation.messages.schemas import WindowStrategy
from app.conversation.messages.window import (
    Window,
    WindowMessage,
    carried_of,
    groups_of,
    starts_with_user,
)
from app.conversation.sessions.policy import CARRIED_SHARE
from app.errors import ConfigurationError

GROUP: Final = "kemem.window_strategies"
BUILT_IN: Final = ("last_tokens", "last_messages", "first_last", "message_fraction")

Pick = Callable[[Window], Collection[str]]
"""Ids of the messages that a strategy would show."""

StrategyFactory = Callable[[Mapping[str, Any]], Pick]
"""What an entry point holds: called with the options of a request; ValueError refuses them."""


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is shown of a window.

    Args:
        messages: in the order of the conversation; instructions from before it come first.
        starts_with_user: whether the user is the first to speak.
        fits: whether it is within the budget. It is not only where the current request and the
            calls that wait for a result are longer than that together, or, without a request,
            the newest message with what belongs to it.
        waiting: ids of calls in it that have no result.
        left_out: how many messages of the window are not in it.

    """

    messages: tuple[WindowMessage, ...]
    tokens: int
    starts_with_user: bool
    fits: bool
    waiting: tuple[str, ...]
    left_out: int

    def among(self, message_ids: Collection[str]) -> "Trimmed":
        """What of it is still there. Calls and results are only deleted together."""
        shown = tuple(one for one in self.messages if one.message_id in message_ids)
        calls = {call for one in shown for call in one.calls}
        return replace(
            self,
            messages=shown,
            tokens=sum(one.tokens for one in shown),
            starts_with_user=starts_with_user(shown),
            waiting=tuple(one for one in self.waiting if one in calls),
        )


def last_tokens(window: Window) -> Collection[str]:
    """Everything without a gap, as far as it fits."""
    return [one.message_id for one in window.newest]


def last_messages(count: int) -> Pick:
    """The newest, at most `count`; instructions and calls that wait are not among them."""

    def pick(window: Window) -> Collection[str]:
        trimming = _Trimming(window, window.instructions_tokens)
        newest = trimming.places({one.message_id for one in window.newest})
        places, _ = trimming.newest(newest, trimming.counts(), count)
        return trimming.ids(places)

    return pick


def first_last(keep: int) -> Pick:
    """No change up to `keep` messages; else the first and the last `keep`, or one more of an
    odd number.
    """

    def pick(window: Window) -> Collection[str]:
        ids = [one.message_id for one in window.inside]
        # A window that an older release has appended to counts more than it shows.
        if window.total <= keep or not ids:
            return ids
        return [ids[0], *ids[-keep if window.total % 2 == 0 else -keep - 1 :]]

    return pick


def message_fraction(kept: float) -> Pick:
    """From place `round((1 - kept) * total)` on; `kept` lies in 0 to 1."""

    def pick(window: Window) -> Collection[str]:
        count = window.total - round((1 - kept) * window.total)
        return [one.message_id for one in window.newest[-count:]] if count else []

    return pick


def pick_of(strategy: WindowStrategy, installed: Mapping[str, StrategyFactory]) -> Pick:
    """What a request asks for.

    Raises:
        UnknownStrategyError: there is no such strategy here.
        InvalidStrategyError: it does not take these options.

    """
    match strategy.name:
        case "last_tokens":
            return last_tokens
        case "last_messages":
            return last_messages(strategy.count)
        case "first_last":
            return first_last(strategy.keep)
        case "message_fraction":
            return message_fraction(strategy.fraction)
    if strategy.name not in installed:
        raise UnknownStrategyError([*BUILT_IN, *sorted(installed)])
    try:
        return installed[strategy.name](strategy.options)
    except ValueError as error:
        raise InvalidStrategyError(strategy.name) from error


def installed_strategies() -> dict[str, StrategyFactory]:
    """What installed packages offer, by name.

    Raises:
        ConfigurationError: one cannot be loaded, or has a name that is ours or another's.

    """
    found: dict[str, StrategyFactory] = {}
    for point in entry_points(group=GROUP):
        if point.name in {*BUILT_IN, *found}:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot have this "
                "name: it is taken."
            )
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot be loaded: "
                f"{type(error).__name__}. Mend or uninstall its package."
            ) from error
    return found


def trim(window: Window, pick: Pick, max_tokens: int) -> Trimmed:
    """What `pick` would show, made valid and shortened to `max_tokens` from its old end.

    Calls come with all of their results or not at all; results without a call, and calls that
    will not be answered, are left out. The first to speak is the user where one is there. The
    current request
    is in it, as are calls that wait for a result and the newest instructions.
    """
    instructions = min(window.instructions_tokens, int(CARRIED_SHARE * max_tokens))
    trimming = _Trimming(window, instructions)
    chosen = trimming.mended(set(pick(window)))
    costs = [one.tokens for one in window.messages]
    places, fits = trimming.newest(chosen, costs, max_tokens)
    shown = tuple(window.messages[place] for place in sorted(places))
    return Trimmed(
        messages=shown,
        tokens=sum(one.tokens for one in shown),
        starts_with_user=starts_with_user(shown),
        fits=fits,
        waiting=trimming.waiting(places),
        left_out=window.total - sum(one.sequence_no > window.pointer for one in shown),
    )


class _Trimming:
    """One window while it is trimmed; messages are known by their place."""

    def __init__(self, window: Window, instructions_tokens: int) -> None:
        self._messages = window.messages
        self._groups = groups_of(window)
        gone = self._groups.closed(self._groups.given_up)
        # Results without a call have no group.
        self._usable = {
            place for place, group in enumerate(self._groups.members) if group and place not in gone
        }
        asked = [place for place, one in enumerate(window.messages) if one.role == "user"]
        self._current = asked[-1] if asked else None
        opening, pointer = window.opening, window.pointer
        self._opening = {place for place, one in enumerate(window.messages) if one is opening}
        self._first = min(
            (one for one in self._usable if window.messages[one].sequence_no > pointer), default=-1
        )
        self._waiting = self._groups.closed(self._groups.open)
        carried = {one.sequence_no for one in carried_of(window.messages, instructions_tokens)}
        self._instructions = {
            place for place, one in enumerate(window.messages) if one.sequence_no in carried
        }

    def places(self, ids: Collection[str]) -> set[int]:
        """Where those of the messages stand that may be shown."""
        return {place for place in self._usable if self._messages[place].message_id in ids}

    def counts(self) -> list[int]:
        """1 for each message that a limit of messages is about."""
        free = self._waiting | self._instructions | self._opening
        return [0 if place in free else 1 for place in range(len(self._messages))]

    def ids(self, places: Collection[int]) -> list[str]:
        return [self._messages[place].message_id for place in sorted(places)]

    def mended(self, ids: Collection[str]) -> set[int]:
        """The places of what a strategy chose, with whole groups, from a message of the user on."""
        chosen = self._groups.closed(
            place for place, one in enumerate(self._messages) if one.message_id in ids
        )
        if self._first in chosen:
            chosen |= self._opening
        if self._current is not None:
            asked = [place for place in chosen if self._messages[place].role == "user"]
            if not asked:
                # Back to the last one, with all that followed.
                chosen |= set(range(self._current, len(self._messages)))
            first = min(asked, default=self._current)
            chosen = {
                place for place in chosen if min(self._groups.members[place], default=-1) >= first
            }
        chosen &= self._usable
        if not chosen and self._current is None and self._usable:
            return set(self._groups.members[max(self._usable)])
        return chosen

    def newest(
        self, among: Collection[int], costs: Sequence[int], limit: int
    ) -> tuple[set[int], bool]:
        """The newest of `among` within `limit`, and whether they are.

        As many whole turns as fit; where the current turn alone is too long, its request and the
        newest groups of it. What waits is always there.
        """
        must = self._waiting | self._instructions
        if self._cost(must | self._request(), costs) > limit:
            # The caller repeats instructions; a request is not repeated.
            must = set(self._waiting)
        start = self._turn_that_fits(set(among) | must | self._request(), must, costs, limit)
        if start is not None:
            later = {place for place in among if place >= start}
            return later | must | self._request(), True
        chosen = must | self._request()
        left = limit - self._cost(chosen, costs)
        since = -1 if self._current is None else self._current
        for place in sorted(among, reverse=True):
            group = self._groups.members[place]
            if place in chosen or min(group) <= since:
                continue
            left -= self._cost(group, costs)
            if left < 0 and chosen:
                left += self._cost(group, costs)
                break
            chosen |= set(group)
        return chosen, left >= 0

    def waiting(self, places: Collection[int]) -> tuple[str, ...]:
        """Ids of the calls among `places` that have no result."""
        found = []
        for place in sorted(self._groups.open.intersection(places)):
            answers = {self._messages[one].answers for one in self._groups.members[place]}
            found += [call for call in self._messages[place].calls if call not in answers]
        return tuple(found)

    def _request(self) -> set[int]:
        return set() if self._current is None else {self._current}

    @staticmethod
    def _cost(places: Collection[int], costs: Sequence[int]) -> int:
        return sum(costs[place] for place in places)

    def _turn_that_fits(
        self, allowed: Collection[int], must: Collection[int], costs: Sequence[int], limit: int
    ) -> int | None:
        """The oldest message of the user from which all that is allowed fits."""
        borders = set(self._groups.borders())
        total = self._cost(allowed, costs)
        for place in sorted(allowed):
            begins = place in borders and self._messages[place].role == "user"
            if begins and total <= limit:
                return place
            if place not in must:
                total -= costs[place]
        return None
