"""How full a window is: counted with every append and deletion, told in every answer."""

from typing import Any

import pytest

from app.conversation.messages.pressure import learned_scale, pressure_of
from app.conversation.messages.window_repository import WindowCounters
from app.conversation.sessions.policy import Trigger, WindowPolicy


def counted(window_tokens: int = 0, messages: int = 50, **fields: Any) -> WindowCounters:
    given = {"last_user_seq": 40, "summary_tokens": 0, "token_scale": 1.0, "in_context_from": 0}
    return WindowCounters(window_tokens=window_tokens, window_messages=messages, **(given | fields))


class TestLevels:
    @pytest.mark.parametrize(
        ("there", "level"),
        [(0, "ok"), (699, "ok"), (700, "warn"), (701, "warn"), (999, "warn"), (1000, "flush"),
         (1001, "flush"), (90_000, "flush")],
    )  # fmt: skip
    def test_begin_at_their_thresholds(self, there: int, level: str) -> None:
        pressure = pressure_of(counted(there), WindowPolicy(budget_tokens=1000))

        assert pressure.level == level
        assert (pressure.notice() is None) == (level == "ok")
        assert pressure.due == (level == "flush")

    def test_summaries_and_what_is_reserved_count(self) -> None:
        """System prompt and tools were ignored, and the window overflowed unseen."""
        policy = WindowPolicy(budget_tokens=1000, reserved_tokens=300)

        assert pressure_of(counted(400, summary_tokens=300), policy).level == "flush"
        assert pressure_of(counted(400, summary_tokens=300), policy).tokens == 1000

    def test_what_a_provider_counted_more_counts(self) -> None:
        found = pressure_of(counted(800, token_scale=1.25), WindowPolicy(budget_tokens=1000))

        assert (found.level, found.tokens) == ("flush", 1000)

    def test_a_notice_says_how_full_it_is_and_what_to_do(self) -> None:
        found = pressure_of(counted(705), WindowPolicy(budget_tokens=1000))

        notice = found.notice() or ""
        assert "70 percent of 1000 tokens" in notice
        assert "Save" in notice

    @pytest.mark.parametrize(
        ("there", "left_out", "compacting", "says"),
        [
            (999, 3, True, "Save what"),
            (1000, 0, False, "Save what"),
            (1000, 3, False, "3 older messages are left out"),
            (1000, 0, True, "being replaced by a summary"),
            (1000, 3, True, "left out of it. Older messages are being replaced by a summary."),
        ],
    )
    def test_a_notice_says_what_is_so(
        self, there: int, left_out: int, compacting: bool, says: str
    ) -> None:
        found = pressure_of(counted(there), WindowPolicy(budget_tokens=1000))

        notice = found.notice(compacting=compacting, left_out=left_out) or ""

        assert says in notice
        full = there == 1000
        assert ("summary" in notice) == (full and compacting)
        assert ("left out" in notice) == (full and left_out > 0)
        assert ("Save" in notice) == ("stay stored" not in notice)

    @pytest.mark.parametrize(
        ("fields", "tokens", "due"),
        [
            ({}, 400, False),
            ({"beside_tokens": 299}, 700, False),
            ({"beside_tokens": 300}, 700, False),
            ({"beside_tokens": 301}, 701, False),
            ({"beside_tokens": 600}, 1000, True),
            ({"memory_tokens": 500}, 1200, False),
            ({"beside_tokens": 599, "memory_tokens": 1}, 1000, False),
        ],
    )
    def test_what_the_last_context_had_counts(
        self, fields: dict[str, int], tokens: int, due: bool
    ) -> None:
        """What is reserved is for the same, so the larger counts; memories make nothing due."""
        reserved = 300 if fields else 0
        policy = WindowPolicy(budget_tokens=1000, reserved_tokens=reserved)

        found = pressure_of(counted(400, **fields), policy)

        assert (found.tokens, found.due) == (tokens, due)
        assert found.level == ("flush" if tokens >= 1000 else "warn" if tokens >= 700 else "ok")

    def test_without_automatic_nothing_is_due(self) -> None:
        found = pressure_of(counted(5000), WindowPolicy(budget_tokens=1000, automatic=False))

        assert (found.level, found.due) == ("flush", False)

    @pytest.mark.parametrize(("messages", "due"), [(1, False), (2, True)])
    def test_a_message_alone_is_not_due(self, messages: int, due: bool) -> None:
        """It is never evicted. The steps of the current turn are, so with one it is due."""
        only = counted(5000, messages, last_user_seq=40, in_context_from=39)

        assert pressure_of(only, WindowPolicy(budget_tokens=1000)).due == due

    @pytest.mark.parametrize("last_user", [20, 39, 40])
    def test_a_window_that_begins_inside_a_turn_is_due_again(self, last_user: int) -> None:
        grown = counted(1000, last_user_seq=last_user, in_context_from=39)

        assert pressure_of(grown, WindowPolicy(budget_tokens=1000)).due

    @pytest.mark.parametrize(
        ("trigger", "due"),
        [
            (Trigger(tokens=600), True), (Trigger(tokens=601), False),
            (Trigger(messages=50), True), (Trigger(messages=51), False),
            (Trigger(fraction=0.6), True), (Trigger(fraction=0.601), False),
            (Trigger(tokens=600, messages=51), False), (Trigger(tokens=600, messages=50), True),
        ],
    )  # fmt: skip
    def test_a_trigger_is_a_further_reason(self, trigger: Trigger, due: bool) -> None:
        policy = WindowPolicy(budget_tokens=1000, triggers=(Trigger(tokens=10**6), trigger))

        assert pressure_of(counted(600), policy).due == due

    @pytest.mark.parametrize(
        ("messages", "there", "due"),
        [(20, 100, False), (21, 100, True), (20, 500, False), (20, 501, True)],
    )
    def test_but_none_to_cut_what_is_to_be_kept(self, messages: int, there: int, due: bool) -> None:
        """The window fits its target and has no more messages than stay."""
        policy = WindowPolicy(budget_tokens=1000, triggers=(Trigger(messages=5),))

        assert pressure_of(counted(there, messages), policy).due == due

    @pytest.mark.parametrize(
        ("reported", "scale"),
        [(1, 1.0), (999, 1.0), (1000, 1.0), (1100, 1.1), (1250, 1.25), (9000, 1.25)],
    )
    def test_a_report_scales_by_a_quarter_at_most(self, reported: int, scale: float) -> None:
        assert learned_scale(reported, 1000) == scale
        assert learned_scale(reported, 0) == 1.0
