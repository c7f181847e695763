"""Trimming a window for one call: what a strategy points at, valid and within a budget. Pure.

The smallest loss first. Whole turns are shown while they fit. Where the current turn does not,
its older results are cleared to the lines in their place, then its oldest steps are left out, and
what is newest is cut to its ends. The newest message is always in, with what belongs to it, the
current request, and calls that wait. What is left out is named by its numbers.
"""

from bisect import bisect_left
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from app.conversation.messages.window import (
    Window,
    WindowMessage,
    carried_of,
    groups_of,
    starts_with_user,
)
from app.conversation.sessions.policy import CARRIED_SHARE

Pick = Callable[[Window], Collection[str]]
"""Ids of the messages that a strategy would show."""

Least = Callable[[WindowMessage], int]
"""Tokens of a message in its shortest form."""

LARGE_SHARE: Final = 0.75
"""Of the budget: a result of an older turn that takes more is cleared, so that its turn may fit."""

WHOLE_SHARE: Final = 0.5
"""Of the budget: so much is shown whole of the newest steps of a long turn, before older ones are
shown without their results."""

STEPS_SHARE: Final = 0.25
"""Of the budget: so much is for older steps where the newest alone is longer than the budget."""


@dataclass(frozen=True, slots=True)
class MessageRange:
    """Messages that are not shown, by their numbers, first and last included."""

    first: int
    last: int


@dataclass(frozen=True, slots=True)
class Trimmed:
    """What is shown of a window.

    Args:
        messages: in the order of the conversation; instructions from before it come first.
        tokens: what they take at most, in the form in which they are shown.
        starts_with_user: whether the user is the first to speak.
        fits: whether it is within the budget. It is not only where the shortest forms of the
            newest message with what belongs to it, of the current request, and of calls that wait
            are longer than that together.
        waiting: ids of calls in it that have no result.
        left_out: how many messages of the window are not in it.
        ranges: where these are, in order; what instructions from before it have no room, too.
        allowed: by id, what a message may take that is shown in a shorter form.
        needed: tokens of the least that can be shown.

    """

    messages: tuple[WindowMessage, ...]
    tokens: int
    starts_with_user: bool
    fits: bool
    waiting: tuple[str, ...]
    left_out: int
    ranges: tuple[MessageRange, ...] = ()
    allowed: Mapping[str, int] = field(default_factory=dict)
    needed: int = 0

    def among(self, message_ids: Collection[str]) -> "Trimmed":
        """What of it is still there. Calls and results are only deleted together."""
        shown = tuple(one for one in self.messages if one.message_id in message_ids)
        calls = {call for one in shown for call in one.calls}
        return replace(
            self,
            messages=shown,
            tokens=sum(self.allowed.get(one.message_id, one.tokens) for one in shown),
            starts_with_user=starts_with_user(shown),
            waiting=tuple(one for one in self.waiting if one in calls),
        )


def whole_only(message: WindowMessage) -> int:
    """The `least` of messages that are shown whole or not at all."""
    return message.tokens


def trim(window: Window, pick: Pick, max_tokens: int, least: Least = whole_only) -> Trimmed:
    """What `pick` would show, made valid and shortened to `max_tokens`.

    Calls come with all of their results or not at all; results without a call, and calls that
    will not be answered, are left out. The first to speak is the user where one is there.
    """
    trimming = Trimming(window, int(CARRIED_SHARE * max_tokens))
    chosen = trimming.mended(set(pick(window)))
    fitted = _Fitting(trimming, window, least, max_tokens).fitted(chosen)
    places = sorted(fitted)
    shown = tuple(window.messages[place] for place in places)
    allowed = {
        window.messages[place].message_id: tokens
        for place, tokens in fitted.items()
        if tokens < window.messages[place].tokens or not window.messages[place].is_read
    }
    tokens = sum(fitted.values())
    needed = sum(least(window.messages[place]) for place in trimming.core)
    return Trimmed(
        messages=shown,
        tokens=tokens,
        starts_with_user=starts_with_user(shown),
        fits=tokens <= max_tokens,
        waiting=trimming.waiting(places),
        left_out=window.total - sum(one.sequence_no > window.pointer for one in shown),
        ranges=ranges_of(window, shown),
        allowed=allowed,
        needed=needed,
    )


def ranges_of(window: Window, shown: Iterable[WindowMessage]) -> tuple[MessageRange, ...]:
    """Where the messages are that are not shown; none of these numbers is of one that is."""
    numbers = sorted(one.sequence_no for one in shown)
    hidden = {one.sequence_no for one in window.messages}.difference(numbers)
    for before, after in window.unread:
        hidden |= {before, after}
    found: list[MessageRange] = []
    for number in sorted(hidden):
        # The first that is shown behind the range so far.
        place = bisect_left(numbers, found[-1].last) if found else len(numbers)
        if found and (place == len(numbers) or number < numbers[place]):
            found[-1] = MessageRange(found[-1].first, number)
        else:
            found.append(MessageRange(number, number))
    return tuple(found)


class Trimming:
    """One window while it is trimmed; messages are known by their place."""

    def __init__(self, window: Window, instructions_tokens: int) -> None:
        """Prepare to carry instructions of at most so many tokens."""
        self._messages = window.messages
        self.groups = groups_of(window)
        gone = self.groups.closed(self.groups.given_up)
        # Results without a call have no group.
        self._usable = {
            place for place, group in enumerate(self.groups.members) if group and place not in gone
        }
        asked = [place for place, one in enumerate(window.messages) if one.role == "user"]
        self.current = asked[-1] if asked else None
        request = set() if self.current is None else {self.current}
        newest = self.groups.members[max(self._usable)] if self._usable else ()
        self.core = self.groups.closed(self.groups.open) | request | set(newest)
        """What is always shown: the current request, what waits, and the newest step."""
        carried = min(window.instructions_tokens, instructions_tokens)
        instructions = {one.sequence_no for one in carried_of(window.messages, carried)}
        self.instructions = {
            place
            for place, one in enumerate(window.messages)
            if one.sequence_no in instructions and place not in self.core
        }
        opening, pointer = window.opening, window.pointer
        self._opening = {place for place, one in enumerate(window.messages) if one is opening}
        self._first = min(
            (one for one in self._usable if window.messages[one].sequence_no > pointer), default=-1
        )

    def places(self, ids: Collection[str]) -> set[int]:
        """Where those of the messages stand that may be shown."""
        return {place for place in self._usable if self._messages[place].message_id in ids}

    def ids(self, places: Collection[int]) -> list[str]:
        return [self._messages[place].message_id for place in sorted(places)]

    def mended(self, ids: Collection[str]) -> set[int]:
        """The places of what a strategy chose, with whole groups, from a message of the user on.

        A window that begins inside a turn is shown with the request of that turn.
        """
        chosen = self.groups.closed(
            place for place, one in enumerate(self._messages) if one.message_id in ids
        )
        if self._first in chosen:
            chosen |= self._opening
        if self.current is not None:
            asked = [place for place in chosen if self._messages[place].role == "user"]
            if not asked:
                # Back to the last one, with all that followed.
                chosen |= set(range(self.current, len(self._messages)))
            first = min(asked, default=self.current)
            chosen = {
                place for place in chosen if min(self.groups.members[place], default=-1) >= first
            }
        return chosen & self._usable

    def newest(self, among: Collection[int], count: int) -> set[int]:
        """The newest `count` of `among` in whole turns; where the current turn has more, its
        newest steps. What waits and instructions do not count, and the core is always there.
        """
        free = self.groups.closed(self.groups.open) | self.instructions | self._opening
        costs = [0 if place in free else 1 for place in range(len(self._messages))]
        must = self.core | self.instructions
        start = self.turn_that_fits(set(among) | must, must, costs, count)
        if start is not None:
            return {place for place in among if place >= start} | must
        left = count - sum(costs[place] for place in must)
        for step in self.steps(among):
            left -= sum(costs[place] for place in step)
            if left < 0:
                break
            must |= set(step)
        return must

    def steps(self, among: Collection[int]) -> list[tuple[int, ...]]:
        """The groups of `among` in the current turn, newest first, without the core."""
        since = -1 if self.current is None else self.current
        found: dict[int, tuple[int, ...]] = {}
        for place in sorted(among, reverse=True):
            group = self.groups.members[place]
            if place not in self.core and place not in self.instructions and min(group) > since:
                found.setdefault(min(group), group)
        return list(found.values())

    def turn_that_fits(
        self, allowed: Collection[int], must: Collection[int], costs: Sequence[int], limit: int
    ) -> int | None:
        """The oldest message of the user from which all that is allowed fits."""
        borders = set(self.groups.borders())
        total = sum(costs[place] for place in allowed)
        for place in sorted(allowed):
            begins = place in borders and self._messages[place].role == "user"
            if begins and total <= limit:
                return place
            if place not in must:
                total -= costs[place]
        return None

    def waiting(self, places: Iterable[int]) -> tuple[str, ...]:
        """Ids of the calls among `places` that have no result."""
        found = []
        for place in sorted(self.groups.open.intersection(places)):
            answers = {self._messages[one].answers for one in self.groups.members[place]}
            found += [call for call in self._messages[place].calls if call not in answers]
        return tuple(found)


class _Fitting:
    """What of a window's places is shown within a limit, each with its tokens."""

    def __init__(self, trimming: Trimming, window: Window, least: Least, limit: int) -> None:
        self._trimming = trimming
        self._messages = window.messages
        self._shortest = least
        self._limit = limit
        self._costs = [self._cost(place) for place in range(len(window.messages))]

    def _cost(self, place: int) -> int:
        message, current = self._messages[place], self._trimming.current
        older = current is not None and place < current and message.role == "tool"
        if not message.is_read or (older and message.tokens > LARGE_SHARE * self._limit):
            return self._shortest(message)
        return message.tokens

    def fitted(self, chosen: set[int]) -> dict[int, int]:
        """The places that are shown, with the tokens that each may take."""
        core, instructions = self._trimming.core, self._trimming.instructions
        if self._sum(instructions) + self._least_of_core(whole_request=True) > self._limit:
            # The caller repeats instructions; a request is not repeated.
            instructions = set()
        must = core | instructions
        among = (chosen - self._trimming.instructions) | must
        start = self._trimming.turn_that_fits(among, must, self._costs, self._limit)
        if start is not None:
            return {place: self._costs[place] for place in among if place >= start or place in must}
        return {place: self._costs[place] for place in instructions} | self._turn(
            self._trimming.steps(chosen), self._limit - self._sum(instructions)
        )

    def _turn(self, steps: Sequence[tuple[int, ...]], limit: int) -> dict[int, int]:
        """The core, and as many of the turn's other steps as fit beside it."""
        core = self._trimming.core
        taken = self._sum(core)
        if taken <= limit:
            whole = max(0, int(WHOLE_SHARE * limit) - taken)
            older = self._steps(steps, limit - taken, whole)
            return {place: self._costs[place] for place in core} | older
        room = min(int(STEPS_SHARE * limit), limit - self._least_of_core())
        older = self._steps(steps, room, 0)
        left = limit - sum(older.values())
        results = [place for place in core if self._messages[place].role == "tool"]
        others = [place for place in core if self._messages[place].role != "tool"]
        filled = self._filled(others, left - sum(self._least(place) for place in results))
        return older | filled | self._filled(results, left - sum(filled.values()))

    def _steps(
        self, steps: Sequence[tuple[int, ...]], room: int, whole_room: int
    ) -> dict[int, int]:
        """The newest steps within `room`: whole while they fit `whole_room`, or while all fit,
        then without their results.
        """
        whole = [self._sum(step) for step in steps]
        least = [sum(self._without_result(place) for place in step) for step in steps]
        beside = accumulate(whole, initial=0)
        count = sum(1 for taken in list(beside)[1:] if taken <= whole_room)
        total = sum(least)
        for number, (full, short) in enumerate(zip(whole, least, strict=True), 1):
            total += full - short
            if total > room:
                break
            count = max(count, number)
        found: dict[int, int] = {}
        for number, step in enumerate(steps):
            room -= whole[number] if number < count else least[number]
            if room < 0:
                break
            found |= {
                place: self._costs[place] if number < count else self._without_result(place)
                for place in step
            }
        return found

    def _filled(self, places: Collection[int], room: int) -> dict[int, int]:
        """`room` shared among messages: each its shortest form, and of the rest equal parts,
        where it needs no less.
        """
        found = {place: self._least(place) for place in places}
        room -= sum(found.values())
        missing = {place: self._costs[place] - found[place] for place in places}
        for done, place in enumerate(sorted(places, key=lambda one: (missing[one], one))):
            more = min(missing[place], max(0, room) // (len(found) - done))
            found[place] += more
            room -= more
        return found

    def _least(self, place: int) -> int:
        return min(self._shortest(self._messages[place]), self._costs[place])

    def _without_result(self, place: int) -> int:
        return self._least(place) if self._messages[place].role == "tool" else self._costs[place]

    def _least_of_core(self, *, whole_request: bool = False) -> int:
        return sum(
            self._costs[place]
            if whole_request and place == self._trimming.current
            else self._least(place)
            for place in self._trimming.core
        )

    def _sum(self, places: Iterable[int]) -> int:
        return sum(self._costs[place] for place in places)
