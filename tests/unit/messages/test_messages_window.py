"""Cutting and trimming a window, and the bugs of others that ours must not have."""

from collections.abc import Mapping
from dataclasses import astuple, replace
from datetime import datetime
from typing import Any

import pytest

from app.conversation.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.conversation.messages.schemas import WindowStrategy
from app.conversation.messages.window import Window, WindowMessage, cut
from app.conversation.messages.window_service import (
    first_last,
    installed_strategies,
    last_messages,
    last_tokens,
    message_fraction,
    pick_of,
)
from app.conversation.messages.window_trim import Pick, trim
from app.conversation.sessions.policy import Trigger, WindowPolicy
from app.prompting.compaction.eviction import eviction_of
from tests.unit.messages.window_support import (
    LONG_AGO,
    NOW,
    assistant,
    call,
    ids,
    result,
    system,
    user,
    window,
)

PLENTY = 100_000


def policy(budget: int = 100, **fields: Any) -> WindowPolicy:
    return WindowPolicy(budget_tokens=budget, **fields)


def steps(count: int, tokens: int = 10) -> list[Any]:
    """So many calls, each with its result; the id of a call is used again."""
    return [one for _ in range(count) for one in (call("a"), result("a", tokens))]


def turns(count: int, tokens: int = 10) -> list[Any]:
    return [one for _ in range(count) for one in (user(tokens), assistant(tokens))]


@pytest.mark.parametrize(
    ("whole", "plain"),
    [
        (window(*turns(2)), True),
        (window(*turns(2), user()), True),
        (window(), False),
        (window(assistant(), *turns(2)), False),
        (window(*turns(2), system()), False),
        (window(*turns(2), call("a"), result("a")), False),
        (window(*turns(2), result("a")), False),
        (replace(window(*turns(2)), pointer=1), False),
        (replace(window(*turns(2)), total=5), False),
        (
            replace(
                window(*turns(2)),
                messages=tuple(replace(one, is_read=False) for one in window(*turns(2)).messages),
            ),
            False,
        ),
    ],
)
def test_only_a_window_that_needs_no_mending_is_plain(whole: Window, *, plain: bool) -> None:
    assert whole.is_plain is plain


class TestCut:
    def test_what_fits_is_left_alone(self) -> None:
        found = cut(window(*turns(2)), policy(100))

        assert (found.evict_to_seq, found.reason) == (None, "fits")

    def test_an_empty_window_has_nothing_to_cut(self) -> None:
        """An empty window must not lead to a summary of nothing."""
        assert cut(window(), policy()).reason == "empty"

    @pytest.mark.parametrize(("tokens", "kept"), [(49, 1), (50, 1), (51, 0)])
    def test_the_target_is_what_is_left_over(self, tokens: int, kept: int) -> None:
        found = cut(window(*turns(3, 30), user(tokens - 20), assistant(20)), policy(100))

        assert found.evict_to_seq == 6
        assert len(found.kept) == 2
        assert (sum(one.tokens for one in found.kept) <= 50) == bool(kept)

    def test_the_older_part_goes_and_the_newer_stays(self) -> None:
        """Others wiped all messages, or the newer part, or took the share for its rest."""
        found = cut(window(*turns(10)), policy(200, evict_fraction=0.25))

        # 150 of 200 tokens may stay: seven turns; three go.
        assert found.evict_to_seq == 6
        assert ids(found.evicted) == "1 2 3 4 5 6"
        assert len(found.kept) == 14

    @pytest.mark.parametrize(("keep", "evicted"), [(3, 10), (4, 8), (5, 8), (6, 6), (40, 4)])
    def test_no_more_messages_stay_than_are_to_be_kept(self, keep: int, evicted: int) -> None:
        found = cut(window(*turns(6)), policy(160, keep_messages=keep))

        assert found.evict_to_seq == evicted

    def test_a_few_huge_messages_are_cut_though_more_are_to_be_kept(self) -> None:
        """With keep in messages nothing happened, however far above the trigger."""
        found = cut(window(*turns(2, 4000), user(10)), policy(4000, keep_messages=20))

        assert found.evict_to_seq == 4
        assert ids(found.kept) == "5"

    def test_a_call_and_its_results_are_never_parted(self) -> None:
        """The cut moves to where no pair is split, several results per call included."""
        messages = [user(), call("ab", 10), result("a", 30), result("b", 30), assistant(), user()]

        for budget in range(1, 250):
            found = cut(window(*messages), policy(budget))
            left = {one.message_id for one in found.evicted}
            assert not left & {"2", "3", "4"} or left >= {"2", "3", "4"}

    def test_a_result_that_comes_after_another_request_keeps_its_call(self) -> None:
        """The call is in the turn before, so the turn stays."""
        messages = [*turns(2), user(), call("a", 10), user(), result("a"), assistant()]

        found = cut(window(*messages), policy(60))

        assert found.evict_to_seq == 4
        assert ids(found.kept) == "5 6 7 8 9"

    def test_an_id_that_is_used_again_belongs_to_the_newest_call(self) -> None:
        """Providers number the calls of every turn anew."""
        turn = [user(), call("a"), result("a"), assistant()]

        found = cut(window(*turn, *turn, *turn), policy(100))

        assert found.evict_to_seq == 8

    def test_a_call_that_waits_for_an_approval_is_never_evicted(self) -> None:
        """It keeps its place, whatever comes after it."""
        messages = [*turns(2), user(), call("a"), *turns(8)]

        found = cut(window(*messages, waiting="a"), policy(60))

        # The budget is broken already, so the request leaves the window; it is shown if it fits.
        assert found.evict_to_seq == 5
        assert ids(found.kept).startswith("6 7")
        assert found.opening is not None
        assert found.opening.message_id == "5"

    def test_where_its_request_fits_too_that_stays(self) -> None:
        messages = [*turns(2), user(), call("a"), assistant()]

        found = cut(window(*messages), policy(60))

        assert ids(found.kept) == "5 6 7"

    @pytest.mark.parametrize(
        ("fields", "besides"),
        [
            ({"budget": 180}, {}), ({"budget": 200, "flush": 0.9}, {}),
            ({"budget": 190}, {"overhead": 10}), ({"budget": 225}, {"scale": 1.25}),
        ],
    )  # fmt: skip
    def test_window_stays_up_to_the_threshold_and_not_above_it(
        self, fields: dict[str, Any], besides: dict[str, Any]
    ) -> None:
        """From the request before the call on there are 180 tokens, besides what else there is."""
        whole = window(*turns(2), user(), call("a"), *turns(8), waiting="a")
        less = fields | {"budget": fields["budget"] - 1}

        assert cut(whole, policy(**fields), **besides).evict_to_seq == 4
        assert cut(whole, policy(**less), **besides).evict_to_seq == 5

    def test_a_window_that_begins_with_one_says_why_it_stays(self) -> None:
        found = cut(window(call("a"), *turns(8), waiting="a"), policy(60))

        assert (found.evict_to_seq, found.reason) == (None, "open_call")

    def test_a_call_that_the_user_spoke_after_holds_nothing_up(self) -> None:
        """An agent that crashed must not let its session overflow."""
        messages = [user(), call("a"), *turns(30, 100)]

        found = cut(window(*messages), policy(4000))

        assert found.reason == "cut"
        assert ids(found.evicted).startswith("1 2 3")
        assert sum(one.tokens for one in found.kept) <= 2000

    def test_until_the_user_speaks_a_call_is_waited_for(self) -> None:
        messages = [*turns(2), call("a"), assistant(50)]

        assert cut(window(*messages), policy(60)).evict_to_seq == 4
        assert cut(window(*messages, user()), policy(60)).evict_to_seq == 6

    def test_in_the_current_turn_it_holds_nothing_up_after_a_long_time(self) -> None:
        run = [call("a", moment=LONG_AGO), *steps(8)]

        assert cut(window(user(), *run), policy(60)).evict_to_seq == 16
        assert cut(window(user(), call("a"), *steps(8)), policy(60)).evict_to_seq is None

    def test_one_that_waits_for_an_approval_does_so_however_old_it_is(self) -> None:
        messages = [*turns(1), user(), call("a", moment=LONG_AGO), *turns(8)]

        assert cut(window(*messages, waiting="a"), policy(60)).evict_to_seq == 3

    def test_of_several_calls_one_answer_is_not_enough(self) -> None:
        messages = [*turns(2), user(), call("ab"), result("a"), *turns(8)]

        assert cut(window(*messages, waiting="b"), policy(60)).evict_to_seq == 5

    def test_instructions_are_carried_and_not_summarised(self) -> None:
        """A system message inside the list was summarised away."""
        messages = [system(), *turns(2), system(5), *turns(4)]

        found = cut(window(*messages), policy(60))

        assert ids(found.carried) == "1 6"
        assert "1" not in ids(found.evicted).split()
        assert found.evict_to_seq == 12

    def test_only_as_many_are_carried_as_have_room_and_the_newest_first(self) -> None:
        messages = [system(20), *turns(1), system(20), *turns(4)]

        found = cut(window(*messages, instructions_tokens=39), policy(60))

        assert ids(found.carried) == "4"
        assert "1" in ids(found.evicted).split()

    def test_events_are_told_like_everything_else(self) -> None:
        """A login is no instruction."""
        found = cut(window(system(event="login"), *turns(6)), policy(60))

        assert found.carried == ()
        assert "1" in ids(found.evicted).split()

    def test_instructions_alone_are_no_reason_to_summarise(self) -> None:
        """A summary of nothing that was said would replace nothing."""
        found = cut(window(system(80), user(), assistant()), policy(100))

        assert (found.evict_to_seq, found.evicted) == (None, ())

    def test_a_part_without_the_user_is_evicted_like_any_other(self) -> None:
        """Where no human message was in it, history was lost; here it is all there."""
        messages = [call("a", 40), result("a", 40), assistant(40), user(), assistant()]

        found = cut(window(*messages), policy(100))

        assert ids(found.evicted) == "1 2 3"

    def test_what_is_left_begins_with_the_user(self) -> None:
        """Forward to the next message of the user."""
        found = cut(window(*turns(5)), policy(60, keep_messages=3))

        assert ids(found.kept) == "9 10"
        assert found.starts_with_user

    def test_without_one_there_the_cut_moves_back_to_the_last(self) -> None:
        """The kept range holds no message of the user, so it grows."""
        messages = [*turns(2), user(), call("a"), result("a"), call("b"), result("b")]

        found = cut(window(*messages), policy(100, keep_messages=2))

        assert found.kept[0].role == "user"
        assert ids(found.kept) == "5 6 7 8 9"

    def test_where_nobody_asked_the_pair_stays_and_it_says_so(self) -> None:
        """Never an error."""
        messages = [one for _ in range(6) for one in (call("a"), result("a"))]

        found = cut(window(*messages), policy(60))

        assert ids(found.kept) == "11 12" or found.kept[0].calls
        assert not found.starts_with_user

    def test_summaries_and_what_is_reserved_take_their_room(self) -> None:
        """A window that fits alone does not fit beside them."""
        whole = window(*turns(4))

        assert cut(whole, policy(200)).reason == "fits"
        assert cut(whole, policy(200), overhead=40).evict_to_seq == 2

    def test_a_provider_that_counts_more_makes_room_scarcer(self) -> None:
        whole = window(*turns(5))

        assert cut(whole, policy(200)).reason == "fits"
        assert cut(whole, policy(200), scale=1.25).evict_to_seq == 2

    def test_force_cuts_what_would_fit(self) -> None:
        whole = window(*turns(4))

        assert cut(whole, policy(4000)).reason == "fits"
        assert cut(whole, policy(4000), force=True).evict_to_seq == 4

    @pytest.mark.parametrize(("share", "evicted"), [(0.2, 2), (0.25, 2), (0.3, 4), (0.75, 6)])
    def test_force_evicts_its_share_of_what_is_there(self, share: float, evicted: int) -> None:
        found = cut(window(*turns(4)), policy(4000, evict_fraction=share), force=True)

        assert found.evict_to_seq == evicted

    def test_force_does_not_cut_less_than_must_be_cut(self) -> None:
        whole = window(*turns(10))

        assert cut(whole, policy(60), force=True) == cut(whole, policy(60))

    def test_force_does_not_cut_the_current_request(self) -> None:
        assert cut(window(user(), assistant()), policy(4000), force=True).evict_to_seq is None

    def test_the_target_lies_below_the_threshold_whatever_it_is(self) -> None:
        """Or compaction would run at every append and change nothing."""
        found = cut(window(*turns(5)), policy(200, flush=0.4, evict_fraction=0.1, warn=0.1))

        assert sum(one.tokens for one in found.kept) <= 80


class TestInsideATurn:
    """The current turn alone is over the trigger: its finished steps leave, its request stays."""

    def test_finished_steps_leave_and_the_newest_stay(self) -> None:
        found = cut(window(user(), *steps(30, 50)), policy(400))

        # Beside the request 190 of 200 tokens are left: three steps of 60.
        assert (found.evict_to_seq, found.reason) == (55, "cut")
        assert ids(found.kept) == "56 57 58 59 60 61"
        assert found.opening is not None
        assert ids([found.opening, *found.evicted]).startswith("1 1 2 3")
        assert found.starts_with_user

    @pytest.mark.parametrize(("budget", "evicted"), [(131, None), (130, 3), (129, 3)])
    def test_only_a_turn_at_the_trigger_is_cut(self, budget: int, evicted: int | None) -> None:
        """The turn has 130 tokens; up to here earlier turns make room."""
        assert cut(window(user(), *steps(2, 50)), policy(budget)).evict_to_seq == evicted

    def test_earlier_turns_make_room_first(self) -> None:
        whole = window(*turns(5), user(), *steps(2, 50))

        found = cut(whole, policy(150))

        assert (found.evict_to_seq, found.opening) == (10, None)

    def test_a_turn_over_the_trigger_goes_with_all_before_it(self) -> None:
        found = cut(window(*turns(3), user(), *steps(30, 50)), policy(200))

        assert found.evict_to_seq == 65
        assert found.opening is not None
        assert found.opening.message_id == "7"
        assert ids(found.kept) == "66 67"

    def test_a_trigger_in_messages_cuts_it_too(self) -> None:
        rules = policy(100_000, triggers=(Trigger(messages=50),), keep_messages=20)

        assert cut(window(user(), *steps(24)), rules).evict_to_seq is None
        assert cut(window(user(), *steps(25)), rules).evict_to_seq == 31

    @pytest.mark.parametrize("size", [300, 5000])
    def test_the_newest_step_stays_however_large_it_is(self, size: int) -> None:
        found = cut(window(user(), *steps(4, size)), policy(400))

        assert ids(found.kept) == "8 9"

    def test_of_a_request_and_one_step_nothing_leaves(self) -> None:
        found = cut(window(user(), *steps(1, 5000)), policy(400))

        assert (found.evict_to_seq, found.reason) == (None, "current_turn")

    def test_a_large_request_leaves_its_room_to_itself(self) -> None:
        """It stays whole, and as many steps as fit beside it."""
        found = cut(window(user(140), *steps(10, 20)), policy(400))

        assert found.opening is not None
        assert ids(found.kept) == "18 19 20 21"

    def test_a_call_that_waits_stays_with_all_behind_it(self) -> None:
        found = cut(window(user(), *steps(5, 50), call("a"), *steps(5, 50)), policy(200))

        assert found.evict_to_seq == 11
        assert found.kept[0].calls == ("a",)

    def test_steps_of_several_calls_leave_whole(self) -> None:
        run = [one for _ in range(9) for one in (call("ab"), result("b", 40), result("a", 40))]

        for budget in range(100, 800, 7):
            found = cut(window(user(), *run), policy(budget))
            assert found.evict_to_seq is not None
            assert found.evict_to_seq % 3 == 1

    def test_a_window_that_begins_inside_the_turn_is_cut_again(self) -> None:
        """Its request is before it, is not summarised again, and stays."""
        found = cut(window(user(), *steps(30, 50), pointer=1), policy(400))

        assert ids(found.kept) == "56 57 58 59 60 61"
        assert ids(found.evicted).startswith("2 3 4")
        assert found.opening is not None
        assert found.opening.message_id == "1"

    def test_such_a_window_is_not_cut_below_the_trigger(self) -> None:
        whole = window(user(), *steps(4, 50), pointer=1)

        assert cut(whole, policy(251)).evict_to_seq is None
        assert cut(whole, policy(250)).evict_to_seq == 7

    def test_the_next_turn_lets_its_request_go(self) -> None:
        found = cut(window(user(), *steps(4, 50), assistant(), user(), pointer=1), policy(60))

        assert (found.evict_to_seq, found.opening) == (10, None)
        assert ids(found.evicted) == "2 3 4 5 6 7 8 9 10"

    def test_a_window_that_nobody_asked_in_is_cut_to_its_newest(self) -> None:
        found = cut(window(*steps(30, 50)), policy(400))

        assert ids(found.kept) == "55 56 57 58 59 60"
        assert found.opening is None

    def test_with_force_it_is_cut_where_there_is_nothing_else(self) -> None:
        whole = window(user(), *steps(4, 10))

        assert cut(whole, policy(PLENTY)).evict_to_seq is None
        assert cut(whole, policy(PLENTY), force=True).evict_to_seq == 5
        earlier = window(*turns(1), user(), *steps(4, 10))
        assert cut(earlier, policy(PLENTY), force=True).evict_to_seq == 2

    def test_instructions_inside_it_are_carried(self) -> None:
        found = cut(window(user(), system(5), *steps(30, 50)), policy(400))

        assert ids(found.carried) == "2"
        assert "2" not in ids(found.evicted).split()

    def test_a_request_and_an_instruction_alone_are_nothing_to_evict(self) -> None:
        found = cut(window(user(), system(5), *steps(1, 5000)), policy(400))

        assert (found.evict_to_seq, found.reason) == (None, "current_turn")

    @pytest.mark.parametrize("steps_of_a_turn", [199, 200, 1000])
    def test_of_very_many_steps_the_oldest_leave_first(self, steps_of_a_turn: int) -> None:
        whole = window(user(), *steps(steps_of_a_turn, 50))

        eviction = eviction_of(whole, cut(whole, policy(400)))

        assert eviction is not None
        assert len(eviction.messages) <= 400
        assert eviction.more == (steps_of_a_turn > 202)
        assert eviction.opening is not None
        assert eviction.freed_tokens == eviction.tokens - 10


class Incomparable(WindowMessage):
    """One that must be known by its number: field by field, a long window took half a minute."""

    def __eq__(self, other: object) -> bool:
        raise AssertionError("compared with another message")

    __hash__ = None  # type: ignore[assignment]


class TestLongWindows:
    def test_messages_are_not_compared_with_each_other(self) -> None:
        whole = window(*[system(), user(), assistant()] * 300)
        unlike = replace(
            whole, messages=tuple(Incomparable(*astuple(one)) for one in whole.messages)
        )

        found = cut(unlike, policy(100))
        eviction = eviction_of(unlike, found)

        assert found.evict_to_seq is not None
        assert len(found.carried) == 100
        assert len(found.carried) + len(found.evicted) == found.evict_to_seq
        assert eviction is not None
        assert eviction.more


class TestLastTokens:
    @pytest.mark.parametrize(
        ("most", "shown"), [(60, "1 2 3 4 5 6"), (59, "3 4 5 6"), (40, "3 4 5 6"), (39, "5 6")]
    )
    def test_as_many_whole_turns_as_fit(self, most: int, shown: str) -> None:
        trimmed = trim(window(*turns(3)), last_tokens, most)

        assert ids(trimmed.messages) == shown
        assert (trimmed.fits, trimmed.starts_with_user) == (True, True)

    def test_a_run_of_tools_that_is_too_long_keeps_its_request_and_its_end(self) -> None:
        """The request first, then the newest calls with their results."""
        run = [one for _ in range(5) for one in (call("a"), result("a"))]

        trimmed = trim(window(*turns(2), user(), *run), last_tokens, 55)

        assert ids(trimmed.messages) == "5 12 13 14 15"
        assert trimmed.starts_with_user

    def test_only_a_request_that_is_too_long_itself_does_not_fit(self) -> None:
        whole = window(*turns(2), user(100), assistant())

        assert not trim(whole, last_tokens, 109).fits
        assert ids(trim(whole, last_tokens, 109).messages) == "5 6"
        assert trim(whole, last_tokens, 109).needed == 110
        assert trim(whole, last_tokens, 110).fits

    def test_last_tokens_never_begins_with_a_result_and_is_never_empty(self) -> None:
        """The defaults of others began with a tool message, or returned nothing at all."""
        messages = [user(), call("a"), result("a", 30), assistant(5)]

        for most in range(1, 60):
            shown = trim(window(*messages), last_tokens, most).messages
            assert shown
            assert shown[0].role == "user"

    def test_without_a_user_it_is_not_empty_either(self) -> None:
        """`start_on="human"` returned nothing where there was none."""
        trimmed = trim(window(call("a"), result("a"), assistant()), last_tokens, 12)

        assert ids(trimmed.messages) == "3"
        assert not trimmed.starts_with_user

    def test_instructions_stay_without_being_asked_for(self) -> None:
        """The system message stayed only with `include_system`."""
        trimmed = trim(window(system(5), *turns(9)), last_tokens, 50)

        assert ids(trimmed.messages) == "1 16 17 18 19"
        assert trimmed.starts_with_user

    def test_instructions_from_before_the_window_are_shown_first(self) -> None:
        """What compaction has carried along."""
        trimmed = trim(window(system(5), *turns(1), pointer=1), last_tokens, 50)

        assert ids(trimmed.messages) == "1 2 3"
        assert trimmed.left_out == 0

    def test_a_request_goes_before_instructions(self) -> None:
        trimmed = trim(window(system(20), user(90)), last_tokens, 100)

        assert ids(trimmed.messages) == "2"
        assert trimmed.fits

    def test_a_result_whose_call_is_gone_is_not_shown(self) -> None:
        """An orphan stayed if another result matched."""
        trimmed = trim(window(user(), result("a"), call("a"), result("a")), last_tokens, PLENTY)

        assert ids(trimmed.messages) == "1 3 4"

    def test_a_call_that_waits_is_shown_from_anywhere(self) -> None:
        messages = [user(), call("ab"), result("a"), *turns(9)]

        trimmed = trim(window(*messages, waiting="b"), last_tokens, 60)

        assert ids(trimmed.messages).startswith("1 2 3")
        assert trimmed.waiting == ("b",)

    @pytest.mark.parametrize("moment", [NOW, LONG_AGO])
    def test_a_call_that_the_user_spoke_after_is_not_shown(self, moment: datetime) -> None:
        messages = [user(), call("ab", moment=moment), result("a"), *turns(1)]

        trimmed = trim(window(*messages), last_tokens, PLENTY)

        assert ids(trimmed.messages) == "1 4 5"
        assert trimmed.waiting == ()
        assert [(one.first, one.last) for one in trimmed.ranges] == [(2, 3)]

    def test_until_then_it_is_shown_as_one_that_waits(self) -> None:
        trimmed = trim(window(user(), call("ab"), result("a"), assistant()), last_tokens, PLENTY)

        assert ids(trimmed.messages) == "1 2 3 4"
        assert trimmed.waiting == ("b",)

    def test_a_result_that_comes_after_the_user_spoke_brings_its_call_back(self) -> None:
        whole = window(user(), call("a"), user(), result("a"), assistant())

        assert ids(trim(whole, last_tokens, PLENTY).messages) == "1 2 3 4 5"


def line(message: WindowMessage) -> int:
    """A line of 5 tokens in place of any message that is longer."""
    return min(message.tokens, 5)


class TestOlderResults:
    """A result of an older turn is shown whole while all fits, and then as far as it fits."""

    messages = (user(), call("a"), result("a", 80), assistant(), user(10))

    @pytest.mark.parametrize(
        ("most", "allowed"),
        [(121, {}), (120, {}), (119, {"3": 79}), (46, {"3": 6}), (45, {"3": 5})],
    )
    def test_what_is_left_is_for_the_result(self, most: int, allowed: dict[str, int]) -> None:
        trimmed = trim(window(*self.messages), last_tokens, most, line)

        assert ids(trimmed.messages) == "1 2 3 4 5"
        assert trimmed.allowed == allowed
        assert trimmed.tokens == min(most, 120)

    def test_where_not_even_its_line_fits_its_turn_is_left_out(self) -> None:
        assert ids(trim(window(*self.messages), last_tokens, 44, line).messages) == "5"

    def test_the_newest_get_it_first(self) -> None:
        """The turn that still fits is shown whole, the one before it in part."""
        trimmed = trim(window(*self.messages, *self.messages), last_tokens, 200, line)

        assert ids(trimmed.messages) == "1 2 3 4 5 6 7 8 9 10"
        assert trimmed.allowed == {"3": 40}

    def test_a_turn_before_a_shortened_result_is_shown_too(self) -> None:
        trimmed = trim(window(*turns(1), *self.messages), last_tokens, 100, line)

        assert ids(trimmed.messages) == "1 2 3 4 5 6 7"
        assert trimmed.allowed == {"5": 40}

    def test_steps_of_the_current_turn_leave_nothing_free(self) -> None:
        """The newest stay whole; of the others the newest gets what is left."""
        whole = window(user(), *steps(3, 80))

        trimmed = trim(whole, last_tokens, 200, line)

        assert ids(trimmed.messages) == "1 2 3 4 5 6 7"
        assert trimmed.allowed == {"3": 5, "5": 75}
        assert trimmed.tokens == 200


class TestUnansweredCalls:
    messages = (*turns(2), user(), call("ab"), result("a"), assistant(), user(), assistant())

    def test_the_request_before_one_is_shown_with_it(self) -> None:
        trimmed = trim(window(*self.messages, waiting="b"), last_tokens, 50)

        assert ids(trimmed.messages) == "5 6 7 9 10"
        assert trimmed.starts_with_user

    def test_the_request_is_none_of_the_newest_that_are_asked_for(self) -> None:
        whole = window(*self.messages, waiting="b")

        assert ids(trim(whole, last_messages(2), PLENTY).messages) == "5 6 7 9 10"
        assert ids(trim(whole, last_messages(3), PLENTY).messages) == "5 6 7 8 9 10"

    @pytest.mark.parametrize(("most", "shown"), [(77, "5 6 7 8 9 10"), (76, "5 6 7 9 10")])
    def test_the_result_that_is_inserted_counts(self, most: int, shown: str) -> None:
        whole = window(*self.messages, waiting="b")

        trimmed = trim(whole, last_tokens, most, result_tokens=17)

        assert ids(trimmed.messages) == shown
        assert trimmed.inserted == 17
        assert trimmed.tokens == 17 + 10 * len(trimmed.messages)

    def test_what_is_needed_has_it_too(self) -> None:
        whole = window(*self.messages, waiting="b")

        assert not trim(whole, last_tokens, 66, result_tokens=17).fits
        assert trim(whole, last_tokens, 66, result_tokens=17).needed == 67
        assert trim(whole, last_tokens, 67, result_tokens=17).fits

    def test_none_is_inserted_behind_the_last_who_spoke(self) -> None:
        trimmed = trim(window(user(), call("ab"), result("a")), last_tokens, 30, result_tokens=17)

        assert (trimmed.tokens, trimmed.inserted, trimmed.fits) == (30, 0, True)


class TestOpenings:
    """The window begins inside a turn, whose request is shown before it."""

    @pytest.mark.parametrize(
        "pick", [last_tokens, last_messages(9), first_last(9), message_fraction(1)]
    )
    def test_all_of_the_window_is_shown_behind_it(self, pick: Pick) -> None:
        """Without a request before them these steps were left out when the next turn began."""
        whole = window(user(), *steps(2), assistant(), user(), pointer=1)

        trimmed = trim(whole, pick, PLENTY)

        assert ids(trimmed.messages) == "1 2 3 4 5 6 7"
        assert (trimmed.starts_with_user, trimmed.left_out, trimmed.fits) == (True, 0, True)

    @pytest.mark.parametrize(("most", "shown"), [(70, "1 2 3 4 5 6 7"), (69, "7")])
    def test_where_that_does_not_fit_both_are_left_out(self, most: int, shown: str) -> None:
        whole = window(user(), *steps(2), assistant(), user(), pointer=1)

        assert ids(trim(whole, last_tokens, most).messages) == shown

    def test_opening_is_not_shown_where_the_beginning_is_not(self) -> None:
        whole = window(user(), assistant(), *steps(2), user(), assistant(), pointer=1, total=50)

        assert ids(trim(whole, last_tokens, PLENTY).messages) == "7 8"

    def test_opening_is_none_of_the_newest_messages_that_are_asked_for(self) -> None:
        whole = window(user(), *steps(2), assistant(), user(), pointer=1)

        assert ids(trim(whole, last_messages(6), PLENTY).messages) == "1 2 3 4 5 6 7"
        assert ids(trim(whole, last_messages(5), PLENTY).messages) == "7"

    def test_the_request_of_the_current_turn_is_always_shown(self) -> None:
        whole = window(user(), *steps(30), pointer=1)

        assert ids(trim(whole, last_tokens, 50).messages) == "1 58 59 60 61"


class TestGaps:
    """What is read of a long window is its first message and its newest end."""

    @pytest.mark.parametrize(
        ("pick", "shown"),
        [
            (last_tokens, "2 3"),
            (last_messages(3), "2 3"),
            (message_fraction(1.0), "2 3"),
            (first_last(2), "1 2 3"),
        ],
    )
    def test_the_first_message_stands_before_a_gap_only_where_it_was_asked_for(
        self, pick: Any, shown: str
    ) -> None:
        parts = window(*turns(1)[:1], *turns(1), total=40)

        assert ids(trim(parts, pick, PLENTY).messages) == shown

    @pytest.mark.parametrize(
        ("pick", "shown"),
        [(last_tokens, "5 6 7"), (last_messages(3), "5 6 7"), (message_fraction(1.0), "5 6 7"),
         (first_last(2), "1 2 3 4 5 6 7")],
    )  # fmt: skip
    def test_so_do_its_results(self, pick: Pick, shown: str) -> None:
        """A window that begins inside a turn begins with a call."""
        run = [call("ab"), result("b"), result("a"), user(), *steps(1)]
        parts = window(user(), *run, pointer=1, total=40)

        trimmed = trim(parts, pick, PLENTY)

        assert ids(trimmed.messages) == shown
        assert trimmed.waiting == ()

    def test_without_a_gap_it_is_one_of_them(self) -> None:
        assert ids(trim(window(*turns(2)), last_tokens, PLENTY).messages) == "1 2 3 4"


class TestLastMessages:
    @pytest.mark.parametrize(
        ("count", "shown"), [(6, "1 2 3 4 5 6"), (5, "3 4 5 6"), (2, "5 6"), (1, "5 6")]
    )
    def test_at_most_so_many_from_a_request_on_and_the_newest_in_any_case(
        self, count: int, shown: str
    ) -> None:
        assert ids(trim(window(*turns(3)), last_messages(count), PLENTY).messages) == shown

    def test_a_pair_counts_as_what_it_is(self) -> None:
        messages = [user(), call("ab"), result("a"), result("b"), call("a"), result("a")]

        assert ids(trim(window(*messages), last_messages(4), PLENTY).messages) == "1 5 6"
        assert ids(trim(window(*messages), last_messages(6), PLENTY).messages) == "1 2 3 4 5 6"

    def test_the_budget_holds_too(self) -> None:
        assert ids(trim(window(*turns(3)), last_messages(6), 45).messages) == "3 4 5 6"


class TestFirstLast:
    @pytest.mark.parametrize(
        ("count", "shown"),
        [
            (1, "1"), (2, "1 2"), (3, "1 2 3"),
            # An even number: the last three; an odd one: the last four.
            (4, "1 2 3 4"), (5, "1 2 3 4 5"), (6, "1 4 5 6"), (7, "1 4 5 6 7"), (8, "1 6 7 8"),
        ],
    )  # fmt: skip
    def test_the_example_exactly(self, count: int, shown: str) -> None:
        messages = turns(4)[:count]

        assert ids(trim(window(*messages), first_last(3), PLENTY).messages) == shown

    def test_first_last_counts_the_whole_window_though_only_its_ends_were_read(self) -> None:
        whole = window(user(), *turns(5), total=100)

        assert ids(trim(whole, first_last(3), PLENTY).messages) == "1 9 10 11"
        odd = window(user(), *turns(5), total=101)
        assert ids(trim(odd, first_last(3), PLENTY).messages) == "1 8 9 10 11"

    def test_instructions_from_before_are_not_the_first(self) -> None:
        whole = window(system(), *turns(4), pointer=1)

        assert ids(trim(whole, first_last(3), PLENTY).messages) == "1 2 7 8 9"

    def test_a_pair_at_the_border_comes_whole(self) -> None:
        messages = [user(), assistant(), user(), call("a"), result("a"), assistant()]

        assert ids(trim(window(*messages), first_last(2), PLENTY).messages) == "1 3 4 5 6"


class TestMessageFraction:
    @pytest.mark.parametrize(
        ("kept", "shown"),
        [
            (1, "1 2 3 4 5 6 7 8 9 10"), (0.5, "7 8 9 10"), (0.6, "5 6 7 8 9 10"),
            # round((1 - 0.25) * 10) is 8: from the ninth on.
            (0.25, "9 10"), (0.2, "9 10"), (0, "9 10"),
            # round((1 - 0.53) * 10) is 5: from the sixth on, an answer.
            (0.53, "7 8 9 10"),
        ],
    )  # fmt: skip
    def test_the_formula(self, kept: float, shown: str) -> None:
        """A share that holds no request grows back to it."""
        assert ids(trim(window(*turns(5)), message_fraction(kept), PLENTY).messages) == shown

    @pytest.mark.parametrize(
        ("fraction", "valid"), [(0, True), (1, True), (-0.01, False), (1.01, False)]
    )
    def test_message_fraction_lies_in_0_to_1(self, fraction: float, valid: bool) -> None:
        if valid:
            WindowStrategy(name="message_fraction", fraction=fraction)
        else:
            with pytest.raises(ValueError, match="fraction"):
                WindowStrategy(name="message_fraction", fraction=fraction)


class TestOthers:
    def test_somebodys_own_is_made_valid_like_ours(self) -> None:
        """Whatever it points at, a conversation comes out."""

        def nothing_but_tools(_options: Mapping[str, Any]) -> Pick:
            return lambda whole: [one.message_id for one in whole.messages if one.role == "tool"]

        pick = pick_of(WindowStrategy(name="tools"), {"tools": nothing_but_tools})
        messages = [*turns(1), user(), call("a"), result("a"), assistant()]

        assert ids(trim(window(*messages), pick, PLENTY).messages) == "3 4 5 6"

    def test_strategy_of_a_plugin_is_handed_its_options_and_may_refuse_them(self) -> None:
        def only(options: Mapping[str, Any]) -> Pick:
            wanted = str(options["ids"]).split()
            if not wanted:
                raise ValueError("ids must name some")

            def pick(_whole: Window) -> list[str]:
                return wanted

            return pick

        installed = {"only": only}
        chosen = pick_of(WindowStrategy(name="only", options={"ids": "1 nowhere"}), installed)
        # The current request and the newest message are there without being asked for.
        assert ids(trim(window(*turns(2)), chosen, PLENTY).messages) == "1 3 4"
        with pytest.raises(InvalidStrategyError):
            pick_of(WindowStrategy(name="only", options={"ids": ""}), installed)

    def test_an_unknown_one_is_refused_with_those_that_there_are(self) -> None:
        with pytest.raises(UnknownStrategyError, match="first_last, message_fraction, mine"):
            pick_of(WindowStrategy(name="newest"), {"mine": lambda _options: last_tokens})

    def test_none_is_installed_here(self) -> None:
        assert installed_strategies() == {}

    @pytest.mark.parametrize("counted", [0, 3, 4])
    def test_an_empty_window_shows_nothing(self, counted: int) -> None:
        """Whatever an older release has left of its count."""
        for pick in (last_tokens, last_messages(3), first_last(3), message_fraction(0.5)):
            trimmed = trim(window(total=counted), pick, 100)
            assert (trimmed.messages, trimmed.fits, trimmed.starts_with_user) == ((), True, False)
