"""Rows of messages as a summariser reads them; writing the summary of one eviction, and merging
what there are too many of. Stores nothing.
"""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, cast, get_args

from app.conversation.messages.window import EVENT_TYPE
from app.conversation.sessions.policy import WindowPolicy
from app.language.llm.content_parts import text_with_placeholders
from app.language.llm.model_catalogue import SummariserCatalogue
from app.language.llm.summariser import Speaker, Summariser, SummaryLine, SummaryRequest
from app.language.llm.tokens import TokenCounter
from app.language.llm.tool_call import ClientToolCall, arguments_text
from app.platform.database.base import new_id
from app.prompting.compaction.eviction import CompactionOptions, Eviction, SummaryLimits, next_merge
from app.prompting.compaction.repository import READ, SessionSummary

MERGED_REASON = "fold"
"""Reason of a summary of summaries."""

Ask = Callable[[SummaryRequest], Awaitable[str]]
"""Asks whoever writes for a text; raises ModelUnavailableError when there is none."""


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """New summaries, that of the evicted messages first; and all that are then in the context."""

    added: Sequence[SessionSummary]
    present: Sequence[SessionSummary]


@dataclass(frozen=True, slots=True)
class SummaryWriter:
    """Writes summaries of one session.

    Args:
        ask: whoever writes, called `model` in what it wrote.
        creator: id of the key that asked for it.

    """

    ask: Ask
    model: str
    session_id: str
    creator: str | None
    counter: TokenCounter
    policy: WindowPolicy
    options: CompactionOptions

    async def write(
        self, eviction: Eviction, lines: Sequence[SummaryLine], present: Sequence[SessionSummary]
    ) -> WrittenSummary | None:
        """The summaries to store; None when the summary is no shorter than what it makes free.

        However they are written, at most three of a level are then in the context, and all
        together are no longer than their share of the budget.

        Args:
            lines: the messages that leave.
            present: the summaries in the context, oldest first.

        Raises:
            ModelUnavailableError: no summary was written.

        """
        first = SessionSummary(
            summary_id=new_id("sum"),
            session_id=self.session_id,
            level=0,
            parent_id=present[-1].summary_id if present else None,
            from_seq=eviction.from_seq,
            to_seq=eviction.to_seq,
            evicted_messages=len(eviction.messages),
            evicted_tokens=eviction.tokens,
            reason=self.options.reason,
            creator=self.creator,
        )
        await self._ask_for(first, lines, [summary.content for summary in present])
        if first.tokens >= eviction.freed_tokens:
            return None
        added, present = [first], [*present, first]
        while (merge := next_merge(present, self.policy)) is not None:
            merged = await self._merged(present[merge.start : merge.stop], merge.level)
            added.append(merged)
            present[merge.start : merge.stop] = [merged]
        return WrittenSummary(added, present)

    async def _merged(self, parts: Sequence[SessionSummary], level: int) -> SessionSummary:
        merged = SessionSummary(
            summary_id=new_id("sum"),
            session_id=self.session_id,
            level=level,
            parent_id=None,
            from_seq=min(part.from_seq for part in parts),
            to_seq=max(part.to_seq for part in parts),
            evicted_messages=sum(part.evicted_messages for part in parts),
            evicted_tokens=sum(part.evicted_tokens for part in parts),
            reason=MERGED_REASON,
            creator=self.creator,
        )
        texts = [part.content for part in parts]
        await self._ask_for(merged, (), texts)
        if merged.tokens >= sum(part.tokens for part in parts):
            # It says no less in the words of the parts, and there is one in place of several.
            joined, cut = self._limits.applied("\n".join(texts), self.counter)
            if not cut:
                self._fill(merged, joined, shortened=False)
        return merged

    async def _ask_for(
        self, row: SessionSummary, lines: Sequence[SummaryLine], earlier: Sequence[str]
    ) -> None:
        """Give `row` its text. Raises ModelUnavailableError."""
        request = SummaryRequest(self._limits.words, lines, earlier, self.options.instructions)
        text, shortened = self._limits.applied(await self.ask(request), self.counter)
        self._fill(row, text, shortened=shortened)

    def _fill(self, row: SessionSummary, text: str, *, shortened: bool) -> None:
        row.content, row.shortened = text, shortened
        row.tokens = self.counter.count(text)
        row.model = self.model

    @property
    def _limits(self) -> SummaryLimits:
        return SummaryLimits.of(self.policy)


HANDLE = "summary_model"
"""Its name in the settings of an agent or a tenant."""


def chosen_summariser(
    catalogue: SummariserCatalogue, configs: Sequence[Mapping[str, Any]]
) -> Summariser:
    """The summariser for an agent: the first that `configs` name, else the deployment's.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    handles = (config.get(HANDLE) for config in configs)
    handle = next((handle for handle in handles if isinstance(handle, str) and handle), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)


LONGEST_VALUE: Final = 40
LONGEST_ARGUMENTS: Final = 120
"""Code points of one argument of a call, and of all of them."""


def lines_of(rows: Iterable[Mapping[str, Any]]) -> list[SummaryLine]:
    """A line for each row, in order; results have the name of the tool that was called."""
    names: dict[str, str] = {}
    lines = []
    for row in rows:
        calls = [ClientToolCall.of(call) for call in row["tool_calls"] or ()]
        names |= {call.call_id: _name(call) for call in calls if call.call_id}
        lines.append(
            SummaryLine(
                speaker=_speaker(row["role"]),
                text=text_with_placeholders(row["content"], row["content_parts"])[:READ],
                event_type=row[EVENT_TYPE],
                name=row["name"] or names.get(row["tool_call_id"] or ""),
                calls=tuple(f"{_name(call)}{_arguments(call)}" for call in calls),
                number=row["sequence_no"],
            )
        )
    return lines


def _speaker(role: str) -> Speaker:
    assert role in get_args(Speaker)  # noqa: S101 (a constraint of the table)
    return cast("Speaker", role)


def _name(call: ClientToolCall) -> str:
    return call.name or "tool"


def _arguments(call: ClientToolCall) -> str:
    """The arguments of a call in brackets, long ones cut; nothing where there are none."""
    given = call.arguments
    if isinstance(given, str):
        # What is no JSON, or was cut off, is shown as it is.
        with suppress(ValueError):
            given = json.loads(given[:READ])
    if isinstance(given, Mapping):
        values = [f"{key}={_cut(_value(value), LONGEST_VALUE)}" for key, value in given.items()]
        written = ", ".join(values)
    else:
        written = _value(given) if given else ""
    return f"({_cut(written, LONGEST_ARGUMENTS)})" if written else ""


def _value(value: Any) -> str:
    return " ".join(arguments_text(value).split())


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1] + "…"
