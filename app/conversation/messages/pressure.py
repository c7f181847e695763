"""How full a window is, and what to do about it. Pure.

All that is sent to the model counts: messages, summaries, instructions, tools, blocks, and what is
remembered. An append cannot know what the next context will have besides messages; it takes what
the last one had.
"""

from dataclasses import dataclass
from typing import Any, Final, Protocol

from app.conversation.messages.schemas import Level
from app.conversation.sessions.policy import WindowPolicy

MOST_SCALE: Final = 1.25
"""A provider's own count raises the estimate by this at most."""

STEP: Final = 0.1
"""Of the budget: with each of these that a full window fills it is tried again to compact it."""


class Counted(Protocol):
    """The counts of a session's window: a row of `sessions`, or part of one."""

    @property
    def window_tokens(self) -> int: ...
    @property
    def window_messages(self) -> int: ...
    @property
    def summary_tokens(self) -> int: ...
    @property
    def beside_tokens(self) -> int | None: ...
    @property
    def memory_tokens(self) -> int | None: ...
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
        due: whether the policy wants it compacted.

    """

    level: Level
    tokens: int
    budget_tokens: int
    share: float
    due: bool

    def notice(self, *, compacting: bool = False, left_out: int = 0) -> str | None:
        """A notice for the model from the level warn on; it says what is so, not what may be.

        Args:
            compacting: whether a job to compact the session is there.
            left_out: how many messages of the window this call does not show.

        """
        if self.level == "ok":
            return None
        said = [
            f"Memory pressure: what is sent to you fills {int(100 * self.share)} percent of "
            f"{self.budget_tokens} tokens."
        ]
        if self.level == "flush" and left_out:
            said.append(f"{left_out} older messages are left out of it.")
        if self.level == "flush" and compacting:
            said.append("Older messages are being replaced by a summary.")
        if len(said) > 1:
            said.append("They stay stored and can be searched.")
        else:
            said.append("Save what must not be forgotten to memory now.")
        return " ".join(said)

    def shown(self, *, job_id: str | None = None, left_out: int = 0) -> dict[str, Any]:
        """Its fields in an answer.

        Args:
            job_id: of the live job that compacts the session.
            left_out: as in `notice`.

        """
        return {
            "level": self.level,
            "tokens": self.tokens,
            "budget_tokens": self.budget_tokens,
            "share": self.share,
            "notice": self.notice(compacting=job_id is not None, left_out=left_out),
            "compaction_job_id": job_id,
        }


def beside_tokens(session: Counted, policy: WindowPolicy) -> int:
    """What of the budget is for neither messages nor summaries.

    What a caller reserves is for instructions and tools, and these count in the last context: so
    the larger counts, never both.
    """
    return max(policy.reserved_tokens, session.beside_tokens or 0)


def sent_tokens(session: Counted, policy: WindowPolicy) -> int:
    """All that is sent to the model, as we count it."""
    return _window_tokens(session, policy) + (session.memory_tokens or 0)


def _window_tokens(session: Counted, policy: WindowPolicy) -> int:
    """What counts towards the budget of the window, as we count it."""
    return session.window_tokens + session.summary_tokens + beside_tokens(session, policy)


def pressure_of(session: Counted, policy: WindowPolicy) -> Pressure:
    """The pressure of a session's window under its policy.

    What the model answers does not count before it is appended. What is remembered has a budget of
    its own: it counts for the level, and makes no compaction due, which could not shorten it.
    """
    tokens = round(session.token_scale * sent_tokens(session, policy))
    share = tokens / policy.budget_tokens
    return Pressure(
        level="flush" if share >= policy.flush else "warn" if share >= policy.warn else "ok",
        tokens=tokens,
        budget_tokens=policy.budget_tokens,
        share=round(share, 4),
        due=_is_due(session, policy),
    )


def _is_due(session: Counted, policy: WindowPolicy) -> bool:
    tokens = round(session.token_scale * _window_tokens(session, policy))
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
    steps = [int(pressure.tokens / (STEP * pressure.budget_tokens)) for pressure in (before, now)]
    return asked or not before.due or steps[0] != steps[1]


def learned_scale(reported: int, estimated: int) -> float:
    """How much more a provider counted than we did, for its count of one call's input."""
    if estimated <= 0:
        return 1.0
    return min(max(reported / estimated, 1.0), MOST_SCALE)


def room_for_messages(session: Counted, policy: WindowPolicy) -> int:
    """Tokens that the budget leaves for messages, at least 1."""
    whole = int(policy.budget_tokens / session.token_scale)
    return max(1, whole - session.summary_tokens - beside_tokens(session, policy))
