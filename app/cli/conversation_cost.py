"""What an import will ask of models, worked out from its conversations before anything is sent.

A conversation is cut into runs as the service cuts it, and each run's extraction prompt is made and
counted. What depends on answers is estimated by what `benchmarks/model_calls.py` measured.
"""

import json
import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final

from app.cli.conversation_messages import Conversation
from app.conversation.messages.models import Message
from app.language.llm.chat import ChatAnswer, JsonSchema, Opening
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, ModelUse
from app.language.llm.model_extractor import ModelExtractor
from app.language.llm.prompt_lines import MOST_KNOWN
from app.language.llm.tokens import TokenCounter, message_tokens
from app.language.text.acknowledgements import is_trivial
from app.memory.extraction.session_reader import CONTEXT, fitting, turns_of
from app.prompting.compaction.eviction import MOST_MESSAGES
from kemem.jobs import UsedModel, UsedModels

STATEMENTS: Final = 0.9
"""Statements in a message of the user that is more than an acknowledgement: a careful reader found
86 in 98."""

SECONDS_PER_CALL: Final = 5.0
"""How long a model takes for an answer; profiles are derived at intervals."""


@dataclass(frozen=True, slots=True)
class Asked:
    """Calls, and their tokens."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    def __add__(self, other: "Asked") -> "Asked":
        return Asked(
            self.calls + other.calls,
            self.input_tokens + other.input_tokens,
            self.output_tokens + other.output_tokens,
        )

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


# Tokens that the benchmark measured: of a call, and of each statement in it.
_REFLECTION: Final = 30
_ENTRY: Final = 130
_RECONCILIATION: Final = Asked(1, 1_200, 10)
_DECISION: Final = Asked(0, 200, 32)
# Of what is remembered already, and stands in the prompt of a later run.
_KNOWN: Final = 60
_PROFILE: Final = Asked(1, 6_000, 450)
_SUMMARY: Final = 110


@dataclass(frozen=True, slots=True)
class Estimate:
    """What is asked, by the kind of work as the service's `models` name it."""

    by_work: Mapping[str, Asked]

    @property
    def total(self) -> Asked:
        return sum(self.by_work.values(), Asked())

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
    conversations: Sequence[Conversation],
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
    extraction = reconciliation = summary = Asked()
    by_user: Counter[str | None] = Counter()
    known: dict[str | None, float] = defaultdict(float)
    for conversation in conversations:
        messages = _stored(conversation)
        for turns in _runs(messages, tags):
            statements = STATEMENTS * sum(map(_tells, turns))
            before = chat.tokens
            await extractor.extract(ExtractionRequest(turns))
            chat.tokens += math.ceil(_KNOWN * min(known[conversation.user_id], MOST_KNOWN))
            known[conversation.user_id] += statements
            written = _REFLECTION + math.ceil(_ENTRY * statements)
            extraction += Asked(1, chat.tokens - before, written)
            if statements:
                reconciliation += _RECONCILIATION + Asked(
                    0,
                    math.ceil(_DECISION.input_tokens * statements),
                    math.ceil(_DECISION.output_tokens * statements),
                )
                by_user[conversation.user_id] += 1
        shown = sum(message_tokens(counter, content=one.content) for one in messages)
        if shown >= window_tokens:
            calls = math.ceil(len(messages) / MOST_MESSAGES)
            summary += Asked(calls, shown, calls * _SUMMARY)
    asked = {"extraction": extraction, "reconciliation": reconciliation, "summary": summary}
    reading = timedelta(seconds=SECONDS_PER_CALL * (extraction.calls + reconciliation.calls))
    asked["profile"] = _profiles(by_user, reading, profile_interval)
    return Estimate(
        {
            work: one
            for work, one in asked.items()
            if one.calls and getattr(models, work) is not None
        }
    )


def _profiles(
    runs_by_user: Mapping[str | None, int], reading: timedelta, interval: timedelta
) -> Asked:
    """One derivation for each interval in which a user's memories change, and one at the end."""
    intervals = reading // interval if interval else max(runs_by_user.values(), default=0)
    times = sum(min(runs, intervals + 1) for runs in runs_by_user.values())
    return Asked(
        times * _PROFILE.calls, times * _PROFILE.input_tokens, times * _PROFILE.output_tokens
    )


def _stored(conversation: Conversation) -> list[Message]:
    """Its messages as the service reads them."""
    now = datetime.now().astimezone()
    return [
        Message(
            message_id=message["message_id"],
            role=message["role"],
            content=message["content"],
            name=message["name"],
            metadata_=message["metadata"],
            sequence_no=number,
            captured=True,
            create_time=now,
        )
        for number, message in enumerate(conversation.to_append(), 1)
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
