"""For any conversation and any policy: what is shown and what is kept is valid."""

from collections.abc import Sequence
from itertools import combinations
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.conversation.messages.window import (
    Window,
    WindowMessage,
    cut,
    groups_of,
    leaving_of,
    starts_with_user,
)
from app.conversation.messages.window_service import (
    first_last,
    last_messages,
    last_tokens,
    message_fraction,
)
from app.conversation.messages.window_trim import Pick, trim
from app.conversation.sessions.policy import WindowPolicy
from tests.unit.messages.window_support import LONG_AGO, NOW, said, window

SIZES = st.one_of(st.integers(4, 60), st.integers(4, 3000))


@st.composite
def conversations(draw: st.DrawFn, most: int = 25) -> Window:
    """Turns as they may be stored: several calls per message, answered in any order, later or
    never, ids used again, results whose call is gone, instructions, events, and gaps between.
    """
    messages: list[WindowMessage] = []
    unanswered: list[str] = []
    for _ in range(draw(st.integers(0, most))):
        tokens = draw(SIZES)
        kinds = ["user", "assistant", "call", "system", "event", "orphan"]
        kind = draw(st.sampled_from([*kinds, *["result"] * (3 * len(unanswered))]))
        if kind == "call":
            calls = "".join(draw(st.sets(st.sampled_from("abcdef"), min_size=1, max_size=3)))
            unanswered = [one for one in unanswered if one not in calls] + list(calls)
            moment = draw(st.sampled_from([NOW, LONG_AGO]))
            messages.append(said("assistant", tokens, calls=calls, moment=moment))
        elif kind == "result":
            answered = draw(st.sampled_from(unanswered))
            unanswered.remove(answered)
            messages.append(said("tool", tokens, answers=answered))
        elif kind == "orphan":
            messages.append(said("tool", tokens, answers="z"))
        elif kind == "event":
            messages.append(said("system", tokens, event="login"))
        else:
            messages.append(said(kind, tokens))
    # Instructions and the opening may be from before the window.
    before = bool(messages) and (messages[0].instructs or messages[0].role == "user")
    return window(
        *messages,
        pointer=min(draw(st.integers(0, 3)), int(before)),
        instructions_tokens=draw(st.integers(0, 2000)),
        waiting="".join(draw(st.sets(st.sampled_from("abcdef"), max_size=2))),
    )


PICKS: st.SearchStrategy[Pick] = st.one_of(
    st.just(last_tokens),
    st.builds(last_messages, st.integers(1, 12)),
    st.builds(first_last, st.integers(1, 6)),
    st.builds(message_fraction, st.floats(0, 1)),
    # Somebody's own, that points at anything.
    st.sets(st.sampled_from([str(number) for number in range(1, 30)])).map(
        lambda chosen: lambda _window: chosen
    ),
)

POLICIES = st.builds(
    WindowPolicy,
    budget_tokens=st.integers(100, 6000),
    warn=st.just(0.1),
    flush=st.floats(0.1, 1),
    evict_fraction=st.floats(0.01, 1),
    keep_messages=st.integers(1, 30),
    reserved_tokens=st.integers(0, 3000),
)


def cost(messages: Sequence[WindowMessage]) -> int:
    return sum(one.tokens for one in messages)


def waiting_places(whole: Window) -> set[int]:
    groups = groups_of(whole)
    return groups.closed(groups.open)


def request(whole: Window) -> set[int]:
    asked = [place for place, one in enumerate(whole.messages) if one.role == "user"]
    return set(asked[-1:])


def newest(whole: Window) -> set[int]:
    """The newest message that may be shown, with what belongs to it."""
    groups = groups_of(whole)
    gone = groups.closed(groups.given_up)
    usable = [place for place, group in enumerate(groups.members) if group and place not in gone]
    return set(groups.members[max(usable)]) if usable else set()


def core(whole: Window) -> set[int]:
    """What is always shown, with the request before the first of it."""
    held = waiting_places(whole) | request(whole) | newest(whole)
    return held | request_before(whole, held)


def request_before(whole: Window, places: set[int]) -> set[int]:
    first = [place for place in sorted(places) if whole.messages[place].role != "system"][:1]
    asked = [place for place, one in enumerate(whole.messages) if one.role == "user"]
    return set([place for place in asked if first and place <= first[0]][-1:])


def check_pairs(whole: Window, shown: Sequence[WindowMessage]) -> None:
    """Every call with all the results it has, every result with its call before it."""
    numbers = {one.sequence_no for one in shown}
    members = groups_of(whole).members
    for group in members:
        held = {whole.messages[place].sequence_no in numbers for place in group}
        assert len(held) <= 1
    for one in shown:
        if one.answers is not None and members[whole.messages.index(one)]:
            before = [other for other in shown if other.sequence_no < one.sequence_no]
            assert any(one.answers in other.calls for other in before)


@given(conversations(), PICKS, st.integers(1, 5000))
def test_what_is_shown_is_a_valid_conversation(whole: Window, pick: Pick, most: int) -> None:
    trimmed = trim(whole, pick, most)
    shown = trimmed.messages
    places = {whole.messages.index(one) for one in shown}
    groups = groups_of(whole)

    # In order, each once, and nothing that was not there.
    assert sorted(places) == [whole.messages.index(one) for one in shown]
    check_pairs(whole, shown)
    assert all(groups.members[place] for place in places)
    # A call is shown without its results only while somebody may still answer it.
    assert not places & groups.given_up
    # What must never be left out.
    assert core(whole) <= places
    usable = {place for place, group in enumerate(groups.members) if group}
    if usable - groups.closed(groups.given_up):
        assert shown
    # The numbers tell the truth.
    assert trimmed.tokens == cost(shown)
    assert trimmed.starts_with_user == starts_with_user(shown)
    assert trimmed.left_out == whole.total - sum(one.sequence_no > whole.pointer for one in shown)
    assert trimmed.fits == (trimmed.tokens <= most)


@given(conversations(), PICKS, st.integers(1, 5000))
def test_window_is_within_the_budget_wherever_that_can_be(
    whole: Window, pick: Pick, most: int
) -> None:
    """It cannot only where the current request, waiting calls, and the newest message with what
    belongs to it are longer together.
    """
    trimmed = trim(whole, pick, most)

    must = core(whole)
    needed = cost([whole.messages[place] for place in must])
    if trimmed.fits:
        assert trimmed.tokens <= most
    else:
        assert trimmed.needed == needed > most
        assert {whole.messages.index(one) for one in trimmed.messages} == must


@given(conversations(), PICKS, st.integers(1, 5000))
def test_the_user_speaks_first_wherever_that_can_be(whole: Window, pick: Pick, most: int) -> None:
    """It cannot only where the user said nothing before it."""
    trimmed = trim(whole, pick, most)

    first = next((one for one in trimmed.messages if one.role != "system"), None)
    if first is not None and first.role != "user":
        before = whole.messages[: whole.messages.index(first)]
        assert all(one.role != "user" for one in before)


@given(conversations(), st.integers(1, 5000))
def test_no_whole_turn_is_left_out_that_would_fit(whole: Window, most: int) -> None:
    trimmed = trim(whole, last_tokens, most)

    places = {whole.messages.index(one) for one in trimmed.messages}
    groups = groups_of(whole)
    usable = {place for place, group in enumerate(groups.members) if group}
    usable -= groups.closed(groups.given_up)
    for border in groups.borders()[:-1]:
        if whole.messages[border].role == "user" and border not in places:
            everything = {place for place in usable if place >= border} | places
            assert cost([whole.messages[place] for place in everything]) > most


@given(conversations(), st.integers(1, 12))
def test_no_more_messages_are_shown_than_asked_for(whole: Window, count: int) -> None:
    """Besides requests, instructions, calls that wait, and the newest step."""
    trimmed = trim(whole, last_messages(count), 100_000)

    free = waiting_places(whole)
    free |= request_before(whole, free)
    more = len((core(whole) | request(whole)) - free)
    counted = [
        one
        for one in trimmed.messages
        if not one.instructs and one is not whole.opening and whole.messages.index(one) not in free
    ]
    assert len(counted) <= max(count, more)


@given(
    conversations(), POLICIES, st.integers(0, 2000), st.sampled_from([1.0, 1.1, 1.25]),
    st.booleans(),
)  # fmt: skip
def test_a_cut_parts_nothing_and_loses_nothing(
    whole: Window, policy: WindowPolicy, overhead: int, scale: float, force: bool
) -> None:
    found = cut(whole, policy, overhead=overhead, scale=scale, force=force)

    # What leaves, what is carried along and what stays are all of it, in order.
    start = len(whole.messages) - len(found.kept)
    assert found.kept == whole.messages[start:]
    left = [one for one in whole.messages[:start] if one.sequence_no > whole.pointer]
    gone = {one.sequence_no for one in (*found.evicted, *found.carried)}
    assert {one.sequence_no for one in left} <= gone
    assert len(found.evicted) + len(found.carried) == len(gone)
    # What was before the window is not summarised again.
    assert all(one.sequence_no > whole.pointer for one in found.evicted)
    check_pairs(whole, found.kept)
    check_pairs(whole, whole.messages[:start])
    kept = set(range(start, len(whole.messages)))
    # The request is not taken away: it stays, or it is shown before what stays.
    [*_, current] = [None, *(whole.messages[place] for place in request(whole))]
    assert request(whole) <= kept or found.opening is current
    asked = [one for one in whole.messages[:start] if one.role == "user"]
    begins_inside = bool(asked) and not starts_with_user(found.kept)
    assert found.opening is (asked[-1] if begins_inside else None)
    groups = groups_of(whole)
    assert groups.open <= kept
    # Instructions are never summarised away.
    assert all(one.instructs for one in found.carried)
    assert cost(found.carried) <= whole.instructions_tokens
    if found.reason == "cut":
        # A request alone does not leave: it would be shown as before.
        assert any(one is not found.opening for one in found.evicted)
        assert found.evict_to_seq == left[-1].sequence_no
        assert found.kept
    else:
        assert (found.evict_to_seq, left) == (None, [])


# Where a cut at the request would take nothing that is still there, or has no border.
@example(
    window(
        said("user", 4), said("user", 4), said("assistant", 33), said("assistant", 60), pointer=1
    ),
    WindowPolicy(budget_tokens=100, flush=1.0, evict_fraction=1.0, keep_messages=1),
    0, 1.0,
)  # fmt: skip
@example(
    window(
        said("assistant", 4, calls="a"), *[said("user", 4)] * 14, said("tool", 4, answers="a"),
        said("assistant", 37), instructions_tokens=0,
    ),
    WindowPolicy(budget_tokens=100, flush=1.0, evict_fraction=0.5, keep_messages=3),
    0, 1.0,
)  # fmt: skip
@example(
    window(
        said("user", 43), said("system", 4), *[said("user", 4)] * 4, pointer=1,
        instructions_tokens=4,
    ),
    WindowPolicy(budget_tokens=281, flush=0.75, evict_fraction=0.25, keep_messages=4),
    106, 1.25,
)  # fmt: skip
@given(conversations(), POLICIES, st.integers(0, 2000), st.sampled_from([1.0, 1.25]))
def test_above_the_threshold_a_cut_is_made_wherever_one_can_be(
    whole: Window, policy: WindowPolicy, overhead: int, scale: float
) -> None:
    """No number of messages to keep and no rule of borders stands in its way, and
    what is left is below the threshold unless the current turn or a waiting call is too long.
    """
    found = cut(whole, policy, overhead=overhead, scale=scale)

    groups, kept = groups_of(whole), cost(found.kept)
    limit = int(policy.flush * policy.budget_tokens / scale) - overhead
    if kept > limit and whole.messages:
        start = len(whole.messages) - len(found.kept)
        # Up to the newest step, unless a call before the request waits.
        newest = groups.borders()[-2]
        current = min(request(whole), default=newest)
        ceiling = min([*groups.open, newest])
        if not policy.exceeded(round(scale * (overhead + kept)), len(found.kept)):
            ceiling = min(ceiling, current)
        later = [border for border in groups.borders() if start < border <= ceiling]
        # Further on there is nothing to cut at, or nothing to gain.
        stays = leaving_of(whole, later[-1]).opening if later else None
        further = whole.messages[start : later[-1]] if later else ()
        assert all(
            one.instructs or one is stays or one.sequence_no <= whole.pointer for one in further
        )


def test_the_conversations_hold_what_they_are_meant_to() -> None:
    """A property that nothing exercises is always true."""
    seen: set[str] = set()

    @settings(max_examples=100)
    @given(conversations())
    def look(whole: Window) -> None:
        groups = groups_of(whole)
        features: dict[str, Any] = {
            "open": groups.open,
            "given up": groups.given_up,
            "orphan": any(not group for group in groups.members),
            "several results": any(len(group) > 2 for group in groups.members),
            "interleaved": any(
                set(one) & set(other) == set() and one[0] < other[0] < one[-1]
                for one, other in combinations({g for g in groups.members if g}, 2)
            ),
            "instruction": any(one.instructs for one in whole.messages),
            "opening": whole.opening,
        }
        seen.update(name for name, held in features.items() if held)

    look()

    assert seen == {
        "open", "given up", "orphan", "several results", "interleaved", "instruction",
        "opening",
    }  # fmt: skip
