"""What of a conversation a model sees: always a valid conversation. Pure.

The window is trimmed for one call by a strategy, or cut for good by compaction. In both cases
the same holds for the result: calls are kept with their results, calls that still wait for one are
in it, the current request of the user is in it, and it is never empty where there is something.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise
from typing import Any, Final, Literal, Protocol

from app.conversation.messages.schemas import call_ids
from app.conversation.sessions.policy import WindowPolicy

EVENT_TYPE: Final = "event_type"
"""Metadata of a system message that reports an event and is no instruction."""

SPEAKERS: Final = frozenset({"user", "assistant"})
"""Who speaks after a call goes on without its result."""


@dataclass(slots=True)
class WindowMessage:
    """A message, as far as cutting looks at it. Never changed: a frozen class takes ten times as
    long to make, and a context has fifty.

    Args:
        calls: ids of the calls it makes.
        answers: id of the call whose result it is.
        event_type: what its metadata says.
        is_read: whether its text was read; else only its shortest form can be shown.
        is_bare: whether of its parts only the names were read.

    """

    message_id: str
    sequence_no: int
    role: str
    tokens: int
    create_time: datetime
    calls: tuple[str, ...] = ()
    answers: str | None = None
    event_type: str | None = None
    is_read: bool = True
    is_bare: bool = False

    @property
    def instructs(self) -> bool:
        """Whether it is an instruction inside the conversation, which no summary replaces."""
        return self.role == "system" and self.event_type is None


def window_message(row: Mapping[str, Any]) -> WindowMessage:
    """One row of `window_sql.py`."""
    return WindowMessage(
        message_id=row["message_id"],
        sequence_no=row["sequence_no"],
        role=row["role"],
        tokens=row["tokens"],
        create_time=row["create_time"],
        calls=tuple(call_ids(row["tool_calls"])) if row["tool_calls"] else (),
        answers=row["tool_call_id"],
        event_type=row["event_type"],
        is_read="is_read" not in row or row["is_read"],
        is_bare="is_bare" in row and row["is_bare"],
    )


@dataclass(frozen=True, slots=True)
class Window:
    """What was read of a conversation, oldest first.

    Args:
        messages: the newest without a gap, and before them, perhaps with gaps: the window's
            first message with its results, the current request, calls that wait, and
            instructions; instructions and the opening also from before the pointer.
        pointer: the window begins above this number.
        total: how many messages the window has, with those that were not read.
        answerable_since: calls made since then may still be answered, in the current turn.
        instructions_tokens: what instructions may take that no cut leaves out.
        waiting: ids of calls that wait for an approval, however old they are.
        unbroken_from: from this number on every message was read; None where all were, or where
            only the window's first message stands before a gap.

    """

    messages: tuple[WindowMessage, ...]
    pointer: int
    total: int
    answerable_since: datetime
    instructions_tokens: int
    waiting: frozenset[str] = frozenset()
    unbroken_from: int | None = None

    @property
    def inside(self) -> tuple[WindowMessage, ...]:
        """Without what is from before the window."""
        if not self._begins_before:
            return self.messages
        return tuple(message for message in self.messages if message.sequence_no > self.pointer)

    @property
    def _begins_before(self) -> bool:
        return bool(self.messages) and self.messages[0].sequence_no <= self.pointer

    @property
    def is_plain(self) -> bool:
        """Whether all of it was read, from a message of the user on, and nobody calls a tool or
        instructs in it: then it is valid as it stands.
        """
        messages = self.messages
        if len(messages) != self.total or self._begins_before:
            return False
        for message in messages:
            calls = message.calls or message.answers is not None
            if message.role not in SPEAKERS or calls or not message.is_read:
                return False
        return bool(messages) and messages[0].role == "user"

    @property
    def newest(self) -> tuple[WindowMessage, ...]:
        """As `inside`, and with the opening; without the window's first message, its results and
        the opening where they are before a gap: next to the newest they would seem to belong to
        them.
        """
        inside, opening = self.inside, self.opening
        if len(inside) < self.total:
            first = inside[:1]
            return tuple(message for message in inside[1:] if message.answers not in first[0].calls)
        return inside if opening is None else (opening, *inside)

    @property
    def opening(self) -> WindowMessage | None:
        """Where the window begins inside a turn, the request of that turn, which is before it."""
        if not self._begins_before:
            return None
        before = (message for message in self.messages if message.sequence_no <= self.pointer)
        return next((message for message in before if message.role == "user"), None)

    @property
    def unread(self) -> list[tuple[int, int]]:
        """Where messages of the window are that were not read: ranges of numbers, first and last
        included.
        """
        numbers = [message.sequence_no for message in self.inside]
        if len(numbers) >= self.total:
            return []
        end = numbers[1] if self.unbroken_from is None and len(numbers) > 1 else self.unbroken_from
        return [
            (before + 1, after - 1)
            for before, after in pairwise(numbers)
            if after - before > 1 and (end is None or after <= end)
        ]


@dataclass(frozen=True, slots=True)
class Groups:
    """Which messages belong together, by their place.

    Args:
        members: for each place, the places that go with it, itself among them, in order; a
            result whose call is not there has none.
        open: places of calls that wait for a result.
        given_up: places of calls that will not be answered any more.

    """

    members: tuple[tuple[int, ...], ...]
    open: frozenset[int]
    given_up: frozenset[int]

    def closed(self, places: Iterable[int]) -> set[int]:
        """The places, and all that goes with them."""
        return {member for place in places for member in self.members[place]}

    def borders(self) -> list[int]:
        """Places where the conversation can be cut without parting a group, its end too."""
        reach, found = -1, []
        for place, group in enumerate(self.members):
            if place > reach:
                found.append(place)
            # A group is in order.
            reach = max(reach, group[-1]) if group else reach
        return [*found, len(self.members)]


def groups_of(window: Window) -> Groups:
    """Pair calls and results; an id that is used again belongs to the newest call before.

    A call without a result waits for it until the user speaks again, at most as long as the policy
    says; with an approval, until that is decided.
    """
    owner: dict[str, int] = {}
    members: list[tuple[int, ...]] = []
    unanswered: dict[tuple[int, str], WindowMessage] = {}
    for place, message in enumerate(window.messages):
        members.append((place,) if message.answers is None else ())
        for call in message.calls:
            owner[call] = place
            unanswered[place, call] = message
        made_by = owner.get(message.answers or "")
        if message.answers is not None and made_by is not None:
            unanswered.pop((made_by, message.answers), None)
            members[made_by] = (*members[made_by], place)
            for member in members[made_by]:
                members[member] = members[made_by]
    current = max(
        (at for at, message in enumerate(window.messages) if message.role == "user"), default=-1
    )
    waits = {
        place
        for (place, call), message in unanswered.items()
        if call in window.waiting
        or (place > current and message.create_time >= window.answerable_since)
    }
    given_up = {place for place, _ in unanswered} - waits
    return Groups(tuple(members), frozenset(waits), frozenset(given_up))


@dataclass(frozen=True, slots=True)
class WindowCut:
    """Where compaction cuts.

    Args:
        evict_to_seq: everything up to this number leaves the window; None when nothing can.
        reason: `cut`; or why not: `empty`, `fits`, `current_turn` (nothing in it but the current
            request and its newest step), `open_call` (a call before all else waits for its
            result).
        evicted: what a summary must stand for, in order.
        carried: instructions among what leaves, which stay before the model.
        kept: what stays in the window, in order.
        opening: where `kept` begins inside a turn, the request of that turn. It stays before the
            model as long as the window begins there; after that the summary stands for it.

    """

    evict_to_seq: int | None
    reason: Literal["cut", "empty", "fits", "current_turn", "open_call"]
    evicted: tuple[WindowMessage, ...]
    carried: tuple[WindowMessage, ...]
    kept: tuple[WindowMessage, ...]
    opening: WindowMessage | None = None

    @property
    def starts_with_user(self) -> bool:
        return self.opening is not None or starts_with_user(self.kept)


def cut(
    window: Window,
    policy: WindowPolicy,
    *,
    overhead: int = 0,
    scale: float = 1.0,
    force: bool = False,
) -> WindowCut:
    """Where to cut a whole window.

    The newest `keep_messages` stay, shortened from their old end until what is left fits the
    policy's target; but never a call that waits. The cut is before a message of the user, where
    there is one that does not leave the rest above the flush threshold, and never between a call
    and its result.

    The current turn is cut only where it alone is over the trigger, or `force` finds nothing else:
    then its finished steps leave, but never the newest, and its request stays before the model.

    Args:
        overhead: tokens besides the window: summaries, and what the caller reserves.
        scale: how much more a provider counts than we do.
        force: also when everything fits; then the same share of the window itself is evicted.

    """
    messages, groups = window.messages, groups_of(window)
    if not messages:
        return WindowCut(None, "empty", (), (), ())
    after = _costs_from(messages)
    budget = max(0, int(policy.target_tokens / scale) - overhead)
    wanted = _first_fitting(after, max(len(messages) - policy.keep_messages, 0), budget)
    if force and wanted == 0:
        wanted = _first_fitting(after, 0, int((1 - policy.evict_fraction) * after[0]))
    current = _current(messages, groups)
    ceiling = min([current, *groups.open])
    limit = int(policy.flush * policy.budget_tokens / scale) - overhead
    start = _border(messages, groups, min(wanted, ceiling), ceiling, after, limit)
    # Where nothing leaves, as only a request that has left before would, all of it stays.
    left = start if leaving_of(window, start).frees else 0
    over = policy.exceeded(round(scale * (overhead + after[left])), len(messages) - left)
    forced = force and left == 0 and wanted > current
    if ceiling == current and wanted > left and (forced or over):
        beside_request = max(0, budget - messages[current].tokens)
        wanted = max(wanted, _first_fitting(after, 0, beside_request))
        start = _step_border(window, groups, start, wanted)
    leaving = leaving_of(window, start)
    if leaving.frees:
        last = messages[start - 1].sequence_no
        return WindowCut(
            last, "cut", leaving.evicted, leaving.carried, messages[start:], leaving.opening
        )
    if wanted == 0:
        return WindowCut(None, "fits", (), (), messages)
    reason: Literal["open_call", "current_turn"] = (
        "open_call" if ceiling < current else "current_turn"
    )
    return WindowCut(None, reason, (), (), messages)


@dataclass(frozen=True, slots=True)
class Leaving:
    """What leaves where a window is cut before one of its places.

    Args:
        evicted, carried, opening: as of a `WindowCut`.

    """

    evicted: tuple[WindowMessage, ...]
    carried: tuple[WindowMessage, ...]
    opening: WindowMessage | None

    @property
    def frees(self) -> bool:
        """Whether anything of it is then no longer shown."""
        return any(message is not self.opening for message in self.evicted)


def leaving_of(window: Window, start: int) -> Leaving:
    """What leaves before place `start`; what was before the window has left already."""
    before, kept = window.messages[:start], window.messages[start:]
    carried = carried_of(before, window.instructions_tokens)
    evicted = [
        message for message in without(before, carried) if message.sequence_no > window.pointer
    ]
    asked = (message for message in reversed(before) if message.role == "user")
    opening = None if starts_with_user(kept) else next(asked, None)
    return Leaving(tuple(evicted), carried, opening)


def carried_of(messages: Sequence[WindowMessage], most: int) -> tuple[WindowMessage, ...]:
    """The newest instructions that together take at most `most` tokens, in order."""
    found: list[WindowMessage] = []
    for message in reversed(messages):
        if message.instructs:
            most -= message.tokens
            if most < 0:
                break
            found.append(message)
    return tuple(reversed(found))


def without(
    messages: Iterable[WindowMessage], carried: Iterable[WindowMessage]
) -> tuple[WindowMessage, ...]:
    """The messages that are not carried, in order."""
    numbers = {message.sequence_no for message in carried}
    return tuple(message for message in messages if message.sequence_no not in numbers)


def starts_with_user(messages: Iterable[WindowMessage]) -> bool:
    """Whether the first who speaks is the user; instructions stand before everybody."""
    return next((message.role == "user" for message in messages if message.role != "system"), False)


def _costs_from(messages: Sequence[WindowMessage]) -> list[int]:
    """Tokens from each place on; 0 after the last."""
    costs = [0] * (len(messages) + 1)
    for place in range(len(messages) - 1, -1, -1):
        costs[place] = costs[place + 1] + messages[place].tokens
    return costs


def _first_fitting(after: Sequence[int], start: int, budget: int) -> int:
    """The first place from `start` on from which everything fits."""
    return next(place for place in range(start, len(after)) if after[place] <= budget)


def _current(messages: Sequence[WindowMessage], groups: Groups) -> int:
    """Place of the current request; without one, of the newest group."""
    asked = [place for place, message in enumerate(messages) if message.role == "user"]
    return asked[-1] if asked else groups.borders()[-2]


def _border(
    messages: Sequence[WindowMessage],
    groups: Groups,
    wanted: int,
    ceiling: int,
    after: Sequence[int],
    limit: int,
) -> int:
    """The border to cut at: before a message of the user if that can be."""
    borders = [border for border in groups.borders() if border <= ceiling]
    before_user = [border for border in borders if messages[border].role == "user"]
    later = [border for border in before_user if border >= wanted]
    if later:
        return later[0]
    # Further back, as long as the window is then not where it was before.
    if before_user and after[before_user[-1]] <= limit:
        return before_user[-1]
    return next((border for border in borders if border >= wanted), borders[-1])


def _step_border(window: Window, groups: Groups, start: int, wanted: int) -> int:
    """The border to cut at after `start`: something leaves; the newest step and calls that wait
    stay.
    """
    borders = groups.borders()
    ceiling = min([borders[-2], *groups.open])
    within = [border for border in borders if start <= border <= ceiling]
    enough = (border for border in within if border >= wanted)
    return next((border for border in enough if leaving_of(window, border).frees), within[-1])


class ToolMessage(Protocol):
    """What pairing needs to know of a message."""

    @property
    def message_id(self) -> Any: ...
    @property
    def tool_call_id(self) -> Any: ...
    @property
    def tool_calls(self) -> Any: ...


def closure(chosen: Iterable[str], traffic: Iterable[ToolMessage]) -> set[str]:
    """`chosen` and everything that may not be left without it.

    A call without its results, or a result without its call, makes a conversation that
    providers refuse; so a call is always kept or dropped with its results.

    Args:
        chosen: ids of the messages to take out.
        traffic: every message of the session with calls or results.

    """
    owner: dict[str, str] = {}
    group: dict[str, set[str]] = {}
    for message in traffic:
        for call_id in call_ids(message.tool_calls):
            owner[call_id] = message.message_id
            group.setdefault(message.message_id, {message.message_id})
        if message.tool_call_id in owner:
            group[owner[message.tool_call_id]].add(message.message_id)
    taken = set(chosen)
    for members in group.values():
        if members & taken:
            taken |= members
    return taken
