"""How full a window is, and what to do about it. Pure."""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from app.conversation.messages.schemas import Level
from app.conversation.sessions.policy import WindowPolicy

MOST_SCALE: Final = 1.25
"""A provider's own count raises the estimate by this at most."""

STEP: Final = 0.1
"""Of the budget: with each of these that a full window fills it is tried again to compact it."""

_NOTICES: Final = {
    "warn": (
        "Memory pressure: this conversation fills {percent} percent of the window. Save what "
        "must not be forgotten to memory now; older messages will soon be replaced by a summary."
    ),
    "flush": (
        "Memory pressure: this conversation fills {percent} percent of the window. Its older "
        "messages are being replaced by a summary; they stay stored and can be searched."
    ),
}


class Counted(Protocol):
    """The counts of a session's window: a row of `sessions`, or part of one."""

    @property
    def window_tokens(self) -> int: ...
    @property
    def window_messages(self) -> int: ...
    @property
    def summary_tokens(self) -> int: ...
    @property
    def token_scale(self) -> float: ...
    @property
    def in_context_from(self) -> int: ...
    @property
    def last_user_seq(self) -> int: ...


@dataclass(frozen=True, slots=True)
class Pressure:
    """How full a window is.

    Args:
        tokens: of the input, as near to the provider's count as is known.
        share: of the budget.
        notice: a notice for the model, or None.
        due: whether the policy wants it compacted.

    """

    level: Level
    tokens: int
    budget_tokens: int
    share: float
    notice: str | None
    due: bool

    def shown(self) -> dict[str, Any]:
        """Its fields in an answer."""
        return {
            "level": self.level,
            "tokens": self.tokens,
            "budget_tokens": self.budget_tokens,
            "share": self.share,
            "notice": self.notice,
        }


def pressure_of(session: Counted, policy: WindowPolicy) -> Pressure:
    """The pressure of a session's window under its policy.

    Summaries and what the caller reserves count; what the model answers does not
    before it is appended.
    """
    counted = session.window_tokens + session.summary_tokens + policy.reserved_tokens
    tokens = round(session.token_scale * counted)
    share = tokens / policy.budget_tokens
    level: Level = "flush" if share >= policy.flush else "warn" if share >= policy.warn else "ok"
    notice = _NOTICES[level].format(percent=int(100 * share)) if level in _NOTICES else None
    return Pressure(
        level=level,
        tokens=tokens,
        budget_tokens=policy.budget_tokens,
        share=round(share, 4),
        notice=notice,
        due=_is_due(session, policy, tokens),
    )


def _is_due(session: Counted, policy: WindowPolicy, tokens: int) -> bool:
    # A message alone is never evicted.
    return (
        policy.automatic
        and session.window_messages > 1
        and policy.exceeded(tokens, session.window_messages)
    )


def is_to_order(before: Pressure, now: Pressure, *, asked: bool) -> bool:
    """Whether an append is to order a compaction.

    A window that could not be made shorter stays due. It is tried again when it has grown by a
    further part of the budget, or when a new request lets the one before it go; not with every
    step of a long turn, each of which would read all of it and may cost a model's call.

    Args:
        before: of the window without what is appended.
        asked: whether the user said something with it.

    """
    if not now.due:
        return False
    steps = [int(one.tokens / (STEP * one.budget_tokens)) for one in (before, now)]
    return asked or not before.due or steps[0] != steps[1]


def learned_scale(reported: int, estimated: int) -> float:
    """How much more a provider counted than we did, for its count of one call's input."""
    if estimated <= 0:
        return 1.0
    return min(max(reported / estimated, 1.0), MOST_SCALE)


def room_for_messages(session: Counted, policy: WindowPolicy) -> int:
    """Tokens that the budget leaves for messages, at least 1."""
    whole = int(policy.budget_tokens / session.token_scale)
    return max(1, whole - session.summary_tokens - policy.reserved_tokens)
