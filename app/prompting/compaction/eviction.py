"""What a compaction evicts, the options of a request for one, which summaries are merged, and how
long one may be. Pure.

Summaries have levels: each eviction gives a summary of level 0, and four of a level are merged into
one of the next. So a context has at most three of a level, however long the session is, and all
together take no more than a share of the budget.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import takewhile
from typing import Any, Final, Protocol

from app.conversation.messages.window import (
    Window,
    WindowCut,
    WindowMessage,
    cut,
    groups_of,
    leaving_of,
)
from app.conversation.messages.window_trim import Pick
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.tokens import TokenCounter
from app.language.text.pieces import cut_at_sentence, word_count

MOST_MESSAGES: Final = 400
"""Most messages that a summary may cover; of a longer conversation that arrives at once, the rest
follows in the next summary."""


@dataclass(frozen=True, slots=True)
class CompactionOptions:
    """Options of a compaction; None leaves a value to the policy.

    Args:
        force: also when the window is not full.
        evict_fraction: share of the budget to make free.
        reason: a word that is stored with the summary.
        pick: chooses what stays, in the place of `keep_messages`.

    """

    force: bool = False
    dry_run: bool = False
    keep_messages: int | None = None
    evict_fraction: float | None = None
    instructions: str | None = None
    reason: str = "manual"
    pick: Pick | None = None

    def kept_by(self, window: Window, policy: WindowPolicy) -> WindowPolicy:
        """The policy that leaves what `pick` chooses of the window's end."""
        if self.pick is None:
            return policy
        chosen = set(self.pick(window))
        newest = takewhile(lambda message: message.message_id in chosen, reversed(window.messages))
        return replace(policy, keep_messages=max(1, sum(1 for _ in newest)))

    def applied(self, policy: WindowPolicy) -> WindowPolicy:
        """The policy with these options."""
        if self.keep_messages is not None:
            policy = replace(policy, keep_messages=self.keep_messages)
        if self.evict_fraction is not None:
            policy = replace(policy, evict_fraction=self.evict_fraction)
        return policy


@dataclass(frozen=True, slots=True)
class Eviction:
    """Messages that leave the window together.

    Args:
        messages: the messages that a summary must cover, in order; without instructions that stay
            in the context.
        to_seq: everything up to this number leaves the window.
        more: whether still more has to leave it afterwards.
        opening: the message of them that stays in the context, as of a `WindowCut`.

    """

    messages: tuple[WindowMessage, ...]
    to_seq: int
    more: bool
    opening: WindowMessage | None = None

    @property
    def from_seq(self) -> int:
        return self.messages[0].sequence_no

    @property
    def tokens(self) -> int:
        return sum(message.tokens for message in self.messages)

    @property
    def freed_tokens(self) -> int:
        """Of its tokens, those that are no longer in the context."""
        return sum(message.tokens for message in self.messages if message is not self.opening)


def eviction_of(window: Window, found: WindowCut, *, most: int = MOST_MESSAGES) -> Eviction | None:
    """What is to leave now: all that was cut off, or the oldest of it; None when nothing was."""
    if found.evict_to_seq is None:
        return None
    whole = Eviction(found.evicted, found.evict_to_seq, more=False, opening=found.opening)
    cut_off = len(window.messages) - len(found.kept)
    if cut_off <= most:
        return whole
    borders = [position for position in groups_of(window).borders() if 0 < position <= most]
    before_user = [position for position in borders if window.messages[position].role == "user"]
    for position in reversed([*borders[-1:], *before_user[-1:]]):
        leaving = leaving_of(window, position)
        if leaving.frees:
            last = window.messages[position - 1].sequence_no
            return Eviction(leaving.evicted, last, more=True, opening=leaving.opening)
    return whole


def planned(
    window: Window, policy: WindowPolicy, overhead: int, *, scale: float, force: bool
) -> tuple[WindowCut, Eviction | None]:
    """Where to cut, with the arguments of `cut`, and which of the messages before it leave now."""
    found = cut(window, policy, overhead=overhead, scale=scale, force=force)
    return found, eviction_of(window, found)


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
