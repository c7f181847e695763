"""Summaries over a very long session: few of a level, and a bounded share of the window."""

from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime
from itertools import pairwise

import pytest

from app.conversation.messages.window import Window, WindowMessage, cut
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.extractive_summariser import extract
from app.language.llm.summariser import SummaryLine, SummaryRequest
from app.language.llm.tokens import EstimatedTokens, message_tokens
from app.prompting.compaction.eviction import (
    MERGED_AT_ONCE,
    SUMMARY_SHARE,
    CompactionOptions,
    Eviction,
    SummaryLimits,
    eviction_of,
)
from app.prompting.compaction.repository import SessionSummary
from app.prompting.compaction.summary_writer import SummaryWriter

NOW = datetime(2026, 11, 26, tzinfo=UTC)
COUNTER = EstimatedTokens()
TOPICS = (
    "The blue notebook {n} lies on shelf {n} of the archive near the window.",
    "第{n}号仓库的钥匙放在前台，周末之前请不要忘记归还给王经理。",
    "ok",
    "Please remember that order {n} has to reach Lisbon before the winter festival begins.",
)

Write = Callable[[SummaryRequest], str]


def long(request: SummaryRequest) -> str:
    """More than anybody asked for, whatever it is about."""
    return "The archive has a blue notebook and an order for Lisbon. " * request.words


def as_long_as_before(request: SummaryRequest) -> str:
    """Merges to exactly what was there, and one word more."""
    if request.lines:
        return "Order 12 waits."
    return " ".join(request.earlier) + " Still."


def in_one_sentence(request: SummaryRequest) -> str:
    """Without an end at which it could be cut."""
    return "order and " * request.words


def asking(write: Write) -> Callable[[SummaryRequest], Awaitable[str]]:
    async def ask(request: SummaryRequest) -> str:
        return write(request)

    return ask


def writer(write: Write, policy: WindowPolicy) -> SummaryWriter:
    return SummaryWriter(asking(write), "test", "s", None, COUNTER, policy, CompactionOptions())


class Session:
    """A conversation that is compacted whenever it is due, without a service."""

    def __init__(self, policy: WindowPolicy, write: Write) -> None:
        self._policy, self._writer = policy, writer(write, policy)
        self._window: list[WindowMessage] = []
        self._tokens = 0
        self._texts: dict[int, str] = {}
        self._pointer = 0
        self.present: Sequence[SessionSummary] = ()
        self.written = 0

    async def say(self, role: str, text: str) -> None:
        number = len(self._texts) + 1
        tokens = message_tokens(COUNTER, content=text)
        self._texts[number] = text
        self._window.append(WindowMessage(str(number), number, role, tokens, NOW))
        self._tokens += tokens
        taken = self._tokens + self.summary_tokens
        if self._policy.exceeded(taken, len(self._window)):
            await self._compact()

    async def _compact(self) -> None:
        window = Window(tuple(self._window), self._pointer, len(self._window), NOW, 0)
        eviction = eviction_of(window, cut(window, self._policy, overhead=self.summary_tokens))
        if eviction is None:
            return
        lines = [self._line(one) for one in eviction.messages]
        written = await self._writer.write(eviction, lines, self.present)
        if written is None:
            return
        self.present, self.written = written.present, self.written + 1
        self._pointer = eviction.to_seq
        self._window = [one for one in self._window if one.sequence_no > self._pointer]
        self._tokens = sum(one.tokens for one in self._window)
        self._check()

    def _line(self, message: WindowMessage) -> SummaryLine:
        return SummaryLine(message.role, self._texts[message.sequence_no])  # type: ignore[arg-type]

    @property
    def summary_tokens(self) -> int:
        return sum(one.tokens for one in self.present)

    def _check(self) -> None:
        levels = [one.level for one in self.present]
        assert levels == sorted(levels, reverse=True)
        assert all(levels.count(level) < MERGED_AT_ONCE for level in levels)
        assert self.summary_tokens <= SUMMARY_SHARE * self._policy.budget_tokens
        # They stand for everything, once.
        spans = [(one.from_seq, one.to_seq) for one in self.present]
        assert spans[0][0] == 1
        assert all(later[0] == last[1] + 1 for last, later in pairwise(spans))
        assert spans[-1][1] == self._pointer


@pytest.mark.parametrize("turns", [1500, pytest.param(5000, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    ("write", "budget"),
    [
        (extract, 4000),
        (long, 4000),
        (in_one_sentence, 4000),
        (as_long_as_before, 600),
        pytest.param(extract, 600, marks=pytest.mark.slow),
        pytest.param(long, 600, marks=pytest.mark.slow),
    ],
)
async def test_over_many_turns_summaries_stay_few_and_short(
    write: Write, budget: int, turns: int
) -> None:
    """Merging stopped where a merged one was no shorter, and 47 stood after 1,400 turns."""
    session = Session(WindowPolicy(budget_tokens=budget, keep_messages=6), write)

    for number in range(turns):
        text = TOPICS[number % len(TOPICS)].format(n=number)
        await session.say("user", text)
        await session.say("assistant", "Noted: " + text)

    assert session.written > turns * 20 / budget
    assert len(session.present) <= 3 * (max(one.level for one in session.present) + 1)
    # Levels rise with the logarithm of what they cover, also where all are merged early.
    assert max(one.level for one in session.present) <= 7


class TestMerging:
    """Four summaries become one, whatever is written."""

    @staticmethod
    def parts(text: str, count: int = 3) -> list[SessionSummary]:
        return [
            SessionSummary(
                summary_id=f"sum_{number}", session_id="s", level=0, content=f"{text} {number}.",
                tokens=COUNTER.count(f"{text} {number}."), from_seq=number, to_seq=number,
                evicted_messages=1, evicted_tokens=100,
            )
            for number in range(1, count + 1)
        ]  # fmt: skip

    @staticmethod
    def eviction() -> Eviction:
        messages = tuple(WindowMessage(str(one), one, "user", 100, NOW) for one in range(4, 8))
        return Eviction(messages, 7, more=False)

    async def test_one_that_is_no_shorter_is_the_parts_in_their_own_words(self) -> None:
        policy = WindowPolicy()

        written = await writer(as_long_as_before, policy).write(
            self.eviction(), (SummaryLine("user", "Order 12."),), self.parts("Shelf")
        )

        assert written is not None
        [merged] = written.present
        assert merged.content == "Shelf 1.\nShelf 2.\nShelf 3.\nOrder 12 waits."
        assert (merged.level, merged.from_seq, merged.to_seq) == (1, 1, 7)
        assert merged.tokens == COUNTER.count(merged.content)
        assert merged.shortened is False

    async def test_one_that_is_shorter_is_what_was_written(self) -> None:
        def shorter(request: SummaryRequest) -> str:
            return "Order 12 waits." if request.lines or len(request.earlier) < 4 else "All waits."

        written = await writer(shorter, WindowPolicy()).write(
            self.eviction(), (SummaryLine("user", "Order 12 waits."),), self.parts("Shelf")
        )

        assert written is not None
        assert [one.content for one in written.present] == ["All waits."]

    async def test_parts_that_are_too_long_together_are_not_joined(self) -> None:
        """They would be longer than one summary may be."""
        policy = WindowPolicy(summary_words=10)
        limits = SummaryLimits.of(policy)

        written = await writer(long, policy).write(self.eviction(), (), self.parts("Shelf " * 9))

        assert written is not None
        [merged] = written.present
        assert merged.content.startswith("The archive has")
        assert merged.tokens <= limits.tokens

    @pytest.mark.parametrize(("freed", "stored"), [(-1, False), (0, False), (1, True)])
    async def test_a_summary_that_frees_nothing_is_not_stored(
        self, freed: int, stored: bool
    ) -> None:
        """A request that stays in the context frees nothing."""
        size = COUNTER.count("Order 12 waits.") + freed
        request = WindowMessage("4", 4, "user", 900, NOW)
        step = WindowMessage("5", 5, "assistant", size, NOW)
        eviction = Eviction((request, step), 5, more=False, opening=request)

        written = await writer(as_long_as_before, WindowPolicy()).write(
            eviction, (SummaryLine("user", "Order 12 waits."),), ()
        )

        assert (written is not None) == stored
