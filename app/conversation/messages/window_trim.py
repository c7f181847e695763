"""Trimming a window for one call: what a strategy points at, valid and within a budget. Pure.

The smallest loss first. From the newest back, turns are shown while they fit: whole, or else with
their results shortened. Where the current turn alone does not fit, its older results are shortened,
then its oldest steps are left out, and what is newest is cut to its ends. What was shortened gets
the tokens that are left, the newest first. The newest message is always in, with what belongs to
it, the current request, and calls that wait with their request. What is left out is named by its
numbers.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Collection, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Final

from app.conversation.messages.window import (
    SPEAKERS,
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
        tokens: what they take at most, in the form in which they are shown, and `inserted`.
        inserted: tokens of the results that are inserted for calls without one.
        starts_with_user: whether the user is the first to speak.
        fits: whether it is within the budget. It is not only where the shortest forms of what is
            always shown are longer than that together.
        waiting: ids of calls in it that have no result.
        left_out: how many messages of the window are not in it.
        ranges: where these are, in order; what instructions from before it have no room, too.
        allowed: by id, what a message may take that is shown in a shorter form.
        needed: tokens of the least that can be shown, where that does not fit; else 0.

    """

    messages: tuple[WindowMessage, ...]
    tokens: int
    inserted: int
    starts_with_user: bool
    fits: bool
    waiting: tuple[str, ...]
    left_out: int
    ranges: tuple[MessageRange, ...] = ()
    allowed: Mapping[str, int] = field(default_factory=dict)
    needed: int = 0

    def among(self, message_ids: Collection[str]) -> "Trimmed":
        """What of it is still there. Calls and results are only deleted together."""
        shown = tuple(message for message in self.messages if message.message_id in message_ids)
        calls = {call for message in shown for call in message.calls}
        tokens = (self.allowed.get(message.message_id, message.tokens) for message in shown)
        return replace(
            self,
            messages=shown,
            tokens=sum(tokens) + self.inserted,
            starts_with_user=starts_with_user(shown),
            waiting=tuple(call for call in self.waiting if call in calls),
        )


def whole_only(message: WindowMessage) -> int:
    """The `least` of messages that are shown whole or not at all."""
    return message.tokens


def trim(
    window: Window,
    pick: Pick,
    max_tokens: int,
    least: Least = whole_only,
    result_tokens: int = 0,
) -> Trimmed:
    """What `pick` would show, made valid and shortened to `max_tokens`.

    Calls come with all of their results or not at all; results without a call, and calls that
    will not be answered, are left out. The first to speak is the user where one is there.

    Args:
        window: what was read of the conversation.
        pick: the strategy.
        max_tokens: the budget.
        least: tokens of a message in its shortest form.
        result_tokens: what a result takes that is inserted for a call that the conversation went
            on without; 0 where none is.

    """
    wanted = set(pick(window))
    if (whole := _whole(window, wanted, max_tokens)) is not None:
        return whole
    trimming = Trimming(window, int(CARRIED_SHARE * max_tokens))
    chosen = trimming.mended(wanted)
    # Calls that wait are always shown, so what they take is known before.
    reserved = result_tokens * trimming.unanswered(trimming.usable)
    fitted = _Fitting(trimming, window, least, max_tokens - reserved).fitted(chosen)
    places = sorted(fitted)
    shown = tuple(window.messages[place] for place in places)
    allowed = {
        window.messages[place].message_id: tokens
        for place, tokens in fitted.items()
        if tokens < window.messages[place].tokens or not window.messages[place].is_read
    }
    inserted = result_tokens * trimming.unanswered(places)
    tokens = sum(fitted.values()) + inserted
    needed = 0
    if tokens > max_tokens:
        needed = sum(least(window.messages[place]) for place in trimming.core)
        needed += result_tokens * trimming.unanswered(trimming.core)
    return Trimmed(
        messages=shown,
        tokens=tokens,
        inserted=inserted,
        starts_with_user=starts_with_user(shown),
        fits=tokens <= max_tokens,
        waiting=trimming.waiting(places),
        left_out=window.total - sum(message.sequence_no > window.pointer for message in shown),
        ranges=ranges_of(window, shown),
        allowed=allowed,
        needed=needed,
    )


def _whole(window: Window, wanted: Collection[str], max_tokens: int) -> Trimmed | None:
    """All of a window that is wanted whole, fits and needs no mending; None of any other."""
    messages = window.messages
    tokens = sum([message.tokens for message in messages])
    if tokens > max_tokens or len(wanted) < len(messages) or not window.is_plain:
        return None
    if not {message.message_id for message in messages}.issubset(wanted):
        return None
    return Trimmed(messages, tokens, 0, starts_with_user=True, fits=True, waiting=(), left_out=0)


def ranges_of(window: Window, shown: Iterable[WindowMessage]) -> tuple[MessageRange, ...]:
    """Where the messages are that are not shown; none of these numbers is of one that is."""
    numbers = sorted(message.sequence_no for message in shown)
    hidden = {message.sequence_no for message in window.messages}.difference(numbers)
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
        self.usable = {
            place for place, group in enumerate(self.groups.members) if group and place not in gone
        }
        asked = [place for place, message in enumerate(window.messages) if message.role == "user"]
        self.current = asked[-1] if asked else None
        newest = set(self.groups.members[max(self.usable)]) if self.usable else set()
        self._waiting = self.groups.closed(self.groups.open)
        core = self._waiting | newest | set(asked[-1:])
        first = min((place for place in core if not self._is(place, "system")), default=0)
        request = set(asked[: bisect_right(asked, first)][-1:])
        if first in self._waiting:
            self._waiting |= request
        self.core = core | request
        """What is always shown: the current request, what waits, the newest step, and before the
        first of these its request."""
        carried = min(window.instructions_tokens, instructions_tokens)
        instructions = {message.sequence_no for message in carried_of(window.messages, carried)}
        self.instructions = {
            place
            for place, message in enumerate(window.messages)
            if message.sequence_no in instructions and place not in self.core
        }
        opening, pointer = window.opening, window.pointer
        self._opening = {
            place for place, message in enumerate(window.messages) if message is opening
        }
        inside = (place for place in self.usable if window.messages[place].sequence_no > pointer)
        self._first = min(inside, default=-1)

    def places(self, ids: Collection[str]) -> set[int]:
        """Where those of the messages stand that may be shown."""
        return {place for place in self.usable if self._messages[place].message_id in ids}

    def ids(self, places: Collection[int]) -> list[str]:
        return [self._messages[place].message_id for place in sorted(places)]

    def mended(self, ids: Collection[str]) -> set[int]:
        """The places of what a strategy chose, with whole groups, from a message of the user on.

        A window that begins inside a turn is shown with the request of that turn.
        """
        chosen = self.groups.closed(
            place for place, message in enumerate(self._messages) if message.message_id in ids
        )
        if self._first in chosen:
            chosen |= self._opening
        if self.current is not None:
            asked = [place for place in chosen if self._is(place, "user")]
            if not asked:
                # Back to the last one, with all that followed.
                chosen |= set(range(self.current, len(self._messages)))
            first = min(asked, default=self.current)
            chosen = {
                place for place in chosen if min(self.groups.members[place], default=-1) >= first
            }
        return chosen & self.usable

    def newest(self, among: Collection[int], count: int) -> set[int]:
        """The newest `count` of `among` in whole turns; where the current turn has more, its
        newest steps. What waits and instructions do not count, and the core is always there.
        """
        free = self._waiting | self.instructions | self._opening
        found = self.core | self.instructions
        left = count - len(found - free)
        turns = self.turns(set(among) | found)
        if not turns or len(set(turns[0]) - free - found) > left:
            turns = [list(step) for step in self.steps(among)]
        for turn in turns:
            left -= len(set(turn) - free - found)
            if left < 0:
                break
            found |= set(turn)
        return found

    def turns(self, among: Collection[int]) -> list[list[int]]:
        """The turns of `among`, newest first: each from a message of the user on that parts no
        call from its results.
        """
        borders = set(self.groups.borders())
        found: list[list[int]] = []
        turn: list[int] = []
        for place in sorted(among, reverse=True):
            turn.append(place)
            if place in borders and self._is(place, "user"):
                found.append(turn)
                turn = []
        return found

    def steps(self, among: Collection[int]) -> list[tuple[int, ...]]:
        """The groups of `among` in the current turn, newest first, without the core."""
        since = -1 if self.current is None else self.current
        found: dict[int, tuple[int, ...]] = {}
        for place in sorted(among, reverse=True):
            group = self.groups.members[place]
            if place not in self.core and place not in self.instructions and min(group) > since:
                found.setdefault(min(group), group)
        return list(found.values())

    def waiting(self, places: Iterable[int]) -> tuple[str, ...]:
        """Ids of the calls among `places` that have no result."""
        open_places = sorted(self.groups.open.intersection(places))
        return tuple(call for place in open_places for call in self._unanswered(place))

    def unanswered(self, places: Collection[int]) -> int:
        """How many of the calls among `places` have no result though somebody speaks after them."""
        if not self.groups.open:
            return 0
        spoken = (place for place in places if self._messages[place].role in SPEAKERS)
        last = max(spoken, default=0)
        return sum(len(self._unanswered(place)) for place in places if place < last)

    def _unanswered(self, place: int) -> list[str]:
        if place not in self.groups.open:
            return []
        answers = {self._messages[member].answers for member in self.groups.members[place]}
        return [call for call in self._messages[place].calls if call not in answers]

    def _is(self, place: int, role: str) -> bool:
        return self._messages[place].role == role


class _Fitting:
    """What of a window's places is shown within a limit, each with its tokens."""

    def __init__(self, trimming: Trimming, window: Window, least: Least, limit: int) -> None:
        self._trimming = trimming
        self._messages = window.messages
        self._shortest = least
        self._limit = limit
        self._costs = [
            message.tokens if message.is_read else least(message) for message in window.messages
        ]

    def fitted(self, chosen: set[int]) -> dict[int, int]:
        """The places that are shown, with the tokens that each may take."""
        core, instructions = self._trimming.core, self._trimming.instructions
        if self._sum(instructions) + self._least_of_core(whole_request=True) > self._limit:
            # The caller repeats instructions; a request is not repeated.
            instructions = set()
        must = core | instructions
        among = (chosen - self._trimming.instructions) | must
        turns = [
            [place for place in turn if place not in must] for turn in self._trimming.turns(among)
        ]
        if turns and self._sum(must) + self._sum(turns[0]) > self._limit:
            for place in core:
                self._costs[place] = self._without_older_result(place)
        found = {place: self._costs[place] for place in must} | self._turns(
            turns, self._limit - self._sum(must)
        )
        if not turns or not set(turns[0]) <= found.keys() or self._sum(must) > self._limit:
            found = {place: self._costs[place] for place in instructions} | self._turn(
                self._trimming.steps(chosen), self._limit - self._sum(instructions)
            )
        self._fill(found)
        return found

    def _turns(self, turns: Iterable[Sequence[int]], room: int) -> dict[int, int]:
        """The newest turns within `room`: each whole, or where it does not fit so, with results
        in their shortest form.
        """
        found: dict[int, int] = {}
        for turn in turns:
            costs = {place: self._costs[place] for place in turn}
            if sum(costs.values()) > room:
                costs = {place: self._without_older_result(place) for place in turn}
            room -= sum(costs.values())
            if room < 0:
                break
            found |= costs
        return found

    def _fill(self, found: MutableMapping[int, int]) -> None:
        """Give what was shortened the tokens that are left, the newest first."""
        room = self._limit - sum(found.values())
        for place in sorted(found, reverse=True):
            message = self._messages[place]
            if message.is_read and room > 0:
                more = min(message.tokens - found[place], room)
                found[place] += more
                room -= more

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
        for done, place in enumerate(sorted(places, key=lambda place: (missing[place], place))):
            more = min(missing[place], max(0, room) // (len(found) - done))
            found[place] += more
            room -= more
        return found

    def _least(self, place: int) -> int:
        return min(self._shortest(self._messages[place]), self._costs[place])

    def _without_result(self, place: int) -> int:
        return self._least(place) if self._messages[place].role == "tool" else self._costs[place]

    def _without_older_result(self, place: int) -> int:
        current = self._trimming.current
        if current is None or place > current:
            return self._costs[place]
        return self._without_result(place)

    def _least_of_core(self, *, whole_request: bool = False) -> int:
        return sum(
            self._costs[place]
            if whole_request and place == self._trimming.current
            else self._least(place)
            for place in self._trimming.core
        )

    def _sum(self, places: Iterable[int]) -> int:
        return sum(self._costs[place] for place in places)
