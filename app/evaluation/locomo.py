"""Conversations in the format of LoCoMo, read into what the demo loads, and as a data set of an
evaluation: a conversation is a store, a turn a unit. Pure.
"""

import json
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.errors import ConfigurationError
from app.evaluation.dataset import (
    NEVER_SAID,
    Dataset,
    DatasetUnit,
    Question,
    Store,
    parse_moment,
)

CATEGORIES = {1: "multi-hop", 2: "temporal", 3: "open-domain", 4: "single-hop"}
"""The fifth asks for what was never said, so no turn is its evidence."""

ADVERSARIAL = "adversarial"
"""The name of the fifth; its labels name turns that look like an answer."""

# The labels hold "D8:6; D9:17" in one string, "D:11:26", and "D" alone.
_EVIDENCE = re.compile(r"D:?(\d+):(\d+)")
_SESSION = re.compile(r"session_(\d+)\Z")


@dataclass(frozen=True, slots=True)
class LocomoTurn:
    """One thing said. `dia_id` is the data set's own id, such as D3:11."""

    dia_id: str
    speaker: str
    role: str
    text: str
    caption: str | None

    @property
    def content(self) -> str:
        """What was said, and what the picture shows."""
        shown = f"[shows {self.caption}]" if self.caption else ""
        return f"{self.text} {shown}".strip()

    @property
    def statement(self) -> str:
        """The turn as a memory by itself, with who said it."""
        return f"{self.speaker}: {self.content}"


@dataclass(frozen=True, slots=True)
class Sitting:
    """One session of the conversation."""

    number: int
    date: str
    turns: tuple[LocomoTurn, ...]


@dataclass(frozen=True, slots=True)
class LocomoQuestion:
    """A question whose answer stands in the turns of `evidence`."""

    text: str
    answer: str
    category: int
    evidence: frozenset[str]


@dataclass(frozen=True, slots=True)
class LocomoConversation:
    """Two people over months, and questions about what they said."""

    name: str
    speakers: tuple[str, str]
    sittings: tuple[Sitting, ...]
    questions: tuple[LocomoQuestion, ...]

    @property
    def user_id(self) -> str:
        return f"locomo-{self.name}"

    @property
    def turn_count(self) -> int:
        return sum(len(sitting.turns) for sitting in self.sittings)


def read_conversation(path: Path, number: int) -> LocomoConversation:
    """Conversation `number` of the file, from 0.

    Raises:
        ConfigurationError: the file is no such data set, or has fewer conversations.

    """
    talks = read_conversations(path)
    if not 0 <= number < len(talks):
        raise ConfigurationError(
            f"{path.name} has {len(talks)} conversations: choose 0 to {len(talks) - 1}."
        )
    return talks[number]


def read_conversations(path: Path) -> list[LocomoConversation]:
    """Every conversation of the file, in its order.

    Raises:
        ConfigurationError: the file is no such data set.

    """
    try:
        return [
            _conversation(conversation)
            for conversation in json.loads(path.read_text(encoding="utf-8"))
        ]
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        raise ConfigurationError(
            f"{path.name} is no data set in the format of LoCoMo ({type(error).__name__})."
        ) from error


def _conversation(sample: dict[str, Any]) -> LocomoConversation:
    talk = sample["conversation"]
    speakers = (talk["speaker_a"], talk["speaker_b"])
    numbers = sorted(int(found[1]) for key in talk if (found := _SESSION.match(key)))
    sittings = tuple(
        Sitting(
            number,
            talk[f"session_{number}_date_time"],
            tuple(_turn(turn, speakers[0]) for turn in talk[f"session_{number}"]),
        )
        for number in numbers
    )
    known = {turn.dia_id for sitting in sittings for turn in sitting.turns}
    questions = tuple(
        LocomoQuestion(
            question["question"],
            str(question.get("answer", "")),
            question["category"],
            evidence_of(question["evidence"], known),
        )
        for question in sample["qa"]
    )
    return LocomoConversation(sample["sample_id"], speakers, sittings, questions)


def _turn(turn: dict[str, Any], first_speaker: str) -> LocomoTurn:
    role = "user" if turn["speaker"] == first_speaker else "assistant"
    return LocomoTurn(turn["dia_id"], turn["speaker"], role, turn["text"], turn.get("blip_caption"))


def evidence_of(labels: list[str], known: set[str]) -> frozenset[str]:
    """The turns that the labels mean; those that do not exist are left out."""
    ids = {
        f"D{int(sitting)}:{int(turn)}"
        for label in labels
        for sitting, turn in _EVIDENCE.findall(label)
    }
    return frozenset(ids & known)


def read_locomo(path: Path) -> Dataset:
    """The whole file. Who spoke is the unit's speaker and no part of its text.

    Categories 1 to 4 make the total; the fifth, which asks for what was never said, is apart.

    Raises:
        ConfigurationError: the file is no such data set.

    """
    talks = read_conversations(path)
    stores = tuple(_store(talk) for talk in talks)
    if not any(store.questions for store in stores):
        raise ConfigurationError(f"{path.name} has no question with evidence.")
    return Dataset(
        name="LoCoMo",
        stores=stores,
        lang="en",
        apart=frozenset({ADVERSARIAL}),
        without_gold=sum(not question.evidence for talk in talks for question in talk.questions),
        unread_dates=sum(
            bool(sitting.date) and parse_moment(sitting.date) is None
            for talk in talks
            for sitting in talk.sittings
        ),
    )


def _store(talk: LocomoConversation) -> Store:
    questions = [_question(question) for question in talk.questions]
    return Store(
        store_id=talk.name,
        units=tuple(unit for sitting in talk.sittings for unit in _units(sitting)),
        questions=tuple(question for question in questions if question.gold),
        unlabelled=tuple(question for question in questions if not question.gold),
    )


def _question(asked: LocomoQuestion) -> Question:
    category = CATEGORIES.get(asked.category, ADVERSARIAL)
    # What the file calls the answer to an adversarial question is the wrong one.
    answer = NEVER_SAID if category == ADVERSARIAL else asked.answer.strip() or None
    return Question(asked.text, asked.evidence, category, answer=answer)


def _units(sitting: Sitting) -> list[DatasetUnit]:
    moment = parse_moment(sitting.date)
    return [
        DatasetUnit(turn.dia_id, turn.content, str(sitting.number), turn.speaker, moment, turn.role)
        for turn in sitting.turns
    ]
