"""Which summaries are merged, and how long one may be. Pure.

Summaries have levels: each eviction gives a summary of level 0, and four of a level are merged into
one of the next. So a context has at most three of a level, however long the session is, and all
together take no more than a share of the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol

from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import TokenCounter
from app.language.text.pieces import cut_at_sentence, word_count

MERGED_AT_ONCE: Final = 4
"""How many summaries of a level become one of the next."""

SUMMARY_SHARE: Final = 0.25
"""Share of the budget that all summaries together may take before they are merged early. A window
full of summaries could not be compacted any more."""

TOKENS_PER_WORD: Final = 5
"""In any script; a summary with more tokens for each allowed word is cut."""

FEWEST_WORDS: Final = 10


@dataclass(frozen=True, slots=True)
class SummaryLimits:
    """How long a summary may be, in words and in tokens."""

    words: int
    tokens: int

    @classmethod
    def of(cls, policy: WindowPolicy) -> "SummaryLimits":
        """As the policy says, and never more than a share of a small budget."""
        room = int(SUMMARY_SHARE * policy.budget_tokens)
        words = min(policy.summary_words, max(room // 2, FEWEST_WORDS))
        return cls(words, min(TOKENS_PER_WORD * words, room))

    def applied(self, text: str, counter: TokenCounter) -> tuple[str, bool]:
        """The text, cut at the end of a sentence where it is too long, and whether it was."""
        return cut_at_sentence(
            text,
            lambda part: word_count(part) <= self.words and counter.count(part) <= self.tokens,
        )


class PresentSummary(Protocol):
    """A summary that is in the context."""

    @property
    def level(self) -> Any: ...
    @property
    def tokens(self) -> Any: ...


@dataclass(frozen=True, slots=True)
class SummaryMerge:
    """A merge: summaries from index `start` to before `stop` become one of `level`."""

    start: int
    stop: int
    level: int


def next_merge(present: Sequence[PresentSummary], policy: WindowPolicy) -> SummaryMerge | None:
    """The next merge among the present summaries, oldest first; None when there is none.

    All of them become one where together they are longer than their share. That one is of the
    highest level that any of them has, or levels would rise with every compaction.
    """
    for start in range(len(present) - MERGED_AT_ONCE + 1):
        levels = {summary.level for summary in present[start : start + MERGED_AT_ONCE]}
        if len(levels) == 1:
            return SummaryMerge(start, start + MERGED_AT_ONCE, levels.pop() + 1)
    tokens = sum(summary.tokens for summary in present)
    if len(present) > 1 and tokens > SUMMARY_SHARE * policy.budget_tokens:
        return SummaryMerge(0, len(present), max(1, *(summary.level for summary in present)))
    return None
