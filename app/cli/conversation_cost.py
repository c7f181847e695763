"""What an import will ask of models, worked out from its conversations before anything is sent.

A conversation is cut into runs as the service cuts it, and each run's extraction prompt is made and
counted. What depends on answers is estimated by what `benchmarks/model_calls.py` measured.
"""

import json
import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from app.cli.conversation_messages import FileConversation
from app.conversation.messages.models import Message
from app.language.llm.chat import ChatAnswer, JsonSchema, Opening
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, ModelUse
from app.language.llm.model_extractor import ModelExtractor
from app.language.llm.prompt_lines import MOST_KNOWN
from app.language.llm.tokens import TokenCounter, message_tokens
from app.language.text.traits import is_trivial
from app.memory.extraction.session_reader import CONTEXT, fitting, turns_of
from app.memory.extraction.snapshot_repository import BESIDES
from app.prompting.compaction.eviction import MOST_MESSAGES
from app.settings import Settings
from kemem.jobs import UsedModel, UsedModels

STATEMENTS: Final = 0.9
"""Statements in a message of the user that is more than an acknowledgement: a careful reader found
86 in 98."""

MOST_FACTS: Final = Settings.model_fields["max_facts"].default
"""Most memories of a user, of which a profile is derived."""

SECONDS_PER_CALL: Final = 5.0
"""How long a model takes for an answer; profiles are derived at intervals."""


@dataclass(frozen=True, slots=True)
class EstimatedCalls:
    """Calls, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "EstimatedCalls") -> "EstimatedCalls":
        return EstimatedCalls(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


# Tokens that the benchmark measured in an import, English and Chinese together.
_REFLECTION: Final = 30
_ENTRY: Final = 122
_MEMORY: Final = 55
"""Of a memory that is shown to a model, with its attribute and times."""
_RECONCILIATION: Final = 950
_STATEMENT: Final = 60
_MOST_NEAR: Final = 9
"""Memories that are near to a statement at the most, those of others apart."""
_DECISION: Final = 40
_PROFILE: Final = 1_300
_VALUES: Final = 450
_MEMORY_OF_PROFILE: Final = 85
_SUMMARY: Final = 110


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is asked, by the kind of work as the service's `models` name it."""

    by_work: Mapping[str, EstimatedCalls]

    @property
    def total(self) -> EstimatedCalls:
        return sum(self.by_work.values(), EstimatedCalls())

    def money(self, models: UsedModels) -> float | None:
        """What it costs; None if one of the models has no price."""
        costs: list[float] = []
        for work, asked in self.by_work.items():
            used: UsedModel | None = getattr(models, work)
            if used is None or used.price is None:
                return None
            price = used.price
            costs.append(price.input * asked.input_tokens + price.output * asked.output_tokens)
        return sum(costs) / 1_000_000


async def estimate_of(
    conversations: Sequence[FileConversation],
    models: UsedModels,
    counter: TokenCounter,
    *,
    tags: Sequence[str],
    window_tokens: float,
    profile_interval: timedelta,
) -> Estimate:
    """What these conversations cost if none of them was imported before.

    Args:
        models: those of the service; what has none costs nothing.
        tags: of blocks that software puts into messages.
        window_tokens: from how many on the older part of a conversation is summarised.
        profile_interval: how often one profile may be derived.

    """
    chat = _CountingChat(counter)
    extractor = ModelExtractor(chat)
    extraction = reconciliation = summary = EstimatedCalls()
    users: defaultdict[str | None, _Remembered] = defaultdict(_Remembered)
    for conversation in conversations:
        messages, user = _stored(conversation), users[conversation.user_id]
        for turns in _runs(messages, tags):
            before = chat.tokens
            await extractor.extract(ExtractionRequest(turns))
            statements = STATEMENTS * sum(map(_tells, turns))
            extraction += user.extraction(chat.tokens - before, statements)
            reconciliation += user.reconciliation(statements)
            user.add(statements)
        shown = sum(
            message_tokens(counter, content=message.content, content_parts=message.content_parts)
            for message in messages
        )
        if shown >= window_tokens:
            calls = math.ceil(len(messages) / MOST_MESSAGES)
            summary += EstimatedCalls(calls, shown, calls * _SUMMARY)
    reading = timedelta(seconds=SECONDS_PER_CALL * (extraction.calls + reconciliation.calls))
    asked = {
        "extraction": extraction,
        "reconciliation": reconciliation,
        "profile": sum(
            (user.profiles(reading, profile_interval) for user in users.values()), EstimatedCalls()
        ),
        "summary": summary,
    }
    return Estimate(
        {
            work: price
            for work, price in asked.items()
            if price.calls and getattr(models, work) is not None
        }
    )


@dataclass(slots=True)
class _Remembered:
    """What is remembered of a user so far, and in how many runs it was said."""

    statements: float = 0.0
    runs: int = 0

    def add(self, statements: float) -> None:
        """Remember what a run has found."""
        self.statements += statements
        self.runs += statements > 0

    def extraction(self, prompt: int, statements: float) -> EstimatedCalls:
        known = _MEMORY * min(self.statements, MOST_KNOWN)
        return EstimatedCalls(1, prompt + round(known), _REFLECTION + round(_ENTRY * statements))

    def reconciliation(self, statements: float) -> EstimatedCalls:
        if not statements:
            return EstimatedCalls()
        # Each once: those near to a statement, and of the others the last.
        shown = min(self.statements, _MOST_NEAR * statements + BESIDES)
        read = _RECONCILIATION + _STATEMENT * statements + _MEMORY * shown
        return EstimatedCalls(1, round(read), round(_DECISION * statements))

    def profiles(self, reading: timedelta, interval: timedelta) -> EstimatedCalls:
        """One for each interval in which memories change, and one at the end."""
        times = min(self.runs, reading // interval + 1) if interval else self.runs
        shown = round(_MEMORY_OF_PROFILE * min(self.statements, MOST_FACTS))
        read = _PROFILE + shown
        return EstimatedCalls(times, times * read, times * _VALUES)


def _stored(conversation: FileConversation) -> list[Message]:
    """Its messages as the service reads them."""
    now = datetime.now().astimezone()
    return [
        Message(
            message_id=message["message_id"],
            role=message["role"],
            content=content if isinstance(content, str) else "",
            content_parts=None if isinstance(content, str) else content,
            name=message["name"],
            metadata_=message["metadata"],
            sequence_no=number,
            captured=True,
            create_time=now,
        )
        for number, message in enumerate(conversation.to_append(), 1)
        for content in [message["content"]]
    ]


def _runs(messages: Sequence[Message], tags: Sequence[str]) -> Iterator[list[ConversationTurn]]:
    """The turns of each run in which the user says something."""
    read = 0
    while fresh := fitting(messages[read:]):
        context = messages[max(0, read - CONTEXT) : read]
        turns, _ = turns_of(context, fresh, tags)
        if any(turn.role == "user" and not turn.context for turn in turns):
            yield turns
        read += len(fresh)


def _tells(turn: ConversationTurn) -> bool:
    return turn.role == "user" and not turn.context and not is_trivial(turn.content)


@dataclass(slots=True)
class _CountingChat:
    """Counts what it is sent and has nothing to say."""

    counter: TokenCounter
    tokens: int = 0
    name: str = field(default="none", init=False)
    model: str = field(default="none", init=False)

    async def answer(
        self,
        system: str,
        user: str,
        *,
        schema: JsonSchema,
        schema_name: str,
        max_output_tokens: int,
        opening: Opening | None = None,
    ) -> ChatAnswer:
        """As the port says."""
        del schema_name, max_output_tokens, opening
        sent = (system, user, json.dumps(schema))
        self.tokens += sum(map(self.counter.count, sent))
        return ChatAnswer({"reflection": "", "memories": []}, ModelUse())
