"""When a conversation is too long for its window, and what becomes of it then. Pure.

One object, resolved key by key: what the session says, else what its agent says, else the
deployment. Everything is counted in tokens of the input; what a model answers is counted when it
is appended.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Final

CARRIED_SHARE: Final = 0.25
"""Of the budget: what instructions inside the conversation may take when it is cut."""


@dataclass(frozen=True, slots=True)
class Trigger:
    """When to compact: all that it names must hold.

    Args:
        fraction: of the budget.

    """

    tokens: int | None = None
    messages: int | None = None
    fraction: float | None = None

    def holds(self, *, tokens: int, messages: int, budget_tokens: int) -> bool:
        """Whether a window of `tokens` and `messages` has come this far."""
        return (
            (self.tokens is None or tokens >= self.tokens)
            and (self.messages is None or messages >= self.messages)
            and (self.fraction is None or tokens >= self.fraction * budget_tokens)
        )


@dataclass(frozen=True, slots=True)
class WindowPolicy:
    """The policy of one session, complete.

    Args:
        budget_tokens: what the window may hold.
        warn: share of the budget at which the model is asked to save what matters.
        flush: share of the budget at which the session is compacted.
        evict_fraction: share of what is there at `flush` that compaction makes free.
        keep_messages: how many of the newest it leaves, as far as they fit.
        triggers: further reasons to compact, any of which will do.
        automatic: whether it is compacted automatically.
        reserved_tokens: what the caller adds that is stored nowhere: system prompt, tools.
        summary_words: how long a summary may be.
        approval_hours: how long an approval, or in the current turn a call without a result, is
            waited for.
        checkpoint_every: messages between two checkpoints; 0 for none. A turn has two or more.

    """

    budget_tokens: int = 4000
    warn: float = 0.7
    flush: float = 1.0
    evict_fraction: float = 0.5
    keep_messages: int = 20
    triggers: tuple[Trigger, ...] = ()
    automatic: bool = True
    reserved_tokens: int = 0
    summary_words: int = 100
    approval_hours: int = 24
    checkpoint_every: int = 6

    @property
    def target_tokens(self) -> int:
        """What compaction leaves at most, if it can; always below where it begins."""
        return int((1 - self.evict_fraction) * self.flush * self.budget_tokens)

    def exceeded(self, tokens: int, messages: int) -> bool:
        """Whether a window of so many `tokens`, as a provider counts them, is to be compacted."""
        if tokens / self.budget_tokens >= self.flush:
            return True
        # A trigger that leaves nothing to cut would fire with every append.
        has_excess = messages > self.keep_messages or tokens > self.target_tokens
        return has_excess and any(
            trigger.holds(tokens=tokens, messages=messages, budget_tokens=self.budget_tokens)
            for trigger in self.triggers
        )

    @property
    def carried_tokens(self) -> int:
        """What system messages before the window may take of it."""
        return int(CARRIED_SHARE * self.budget_tokens)


_KEYS: Final = frozenset(field.name for field in fields(WindowPolicy)) - {"triggers"}


def resolve(
    deployment: WindowPolicy,
    of_agent: Mapping[str, Any] | None,
    of_session: Mapping[str, Any] | None,
) -> WindowPolicy:
    """The policy that holds: session over agent over deployment, key by key.

    `warn` gives way where the keys of two owners cross, so that it is never above `flush`.

    Args:
        of_agent, of_session: as `WindowPolicyPatch` is kept; other keys are ignored.

    """
    if not of_agent and not of_session:
        return deployment
    said = {**(of_agent or {}), **(of_session or {})}
    values = {field.name: getattr(deployment, field.name) for field in fields(deployment)}
    values |= {key: value for key, value in said.items() if key in _KEYS}
    if said.get("trigger"):
        values["triggers"] = _triggers(said["trigger"])
    values["warn"] = min(values["warn"], values["flush"])
    return WindowPolicy(**values)


def _triggers(said: Mapping[str, Any] | list[Mapping[str, Any]]) -> tuple[Trigger, ...]:
    rules = said if isinstance(said, list) else [said]
    return tuple(
        Trigger(rule.get("tokens"), rule.get("messages"), rule.get("fraction")) for rule in rules
    )
