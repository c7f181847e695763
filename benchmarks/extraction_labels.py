"""The labelled set: what people wrote, and which facts about themselves it states."""

import json
from dataclasses import dataclass
from datetime import date, datetime
from pathlib import Path
from typing import Any

from app.language.llm.extractor import ConversationTurn, ExtractionRequest

SET = Path(__file__).parent / "extraction_set"
LANGUAGES = ("english", "chinese")
# Whoever writes the rules may read these, and only these.
SHOWN = ("dev", "more")
HALVES = (*SHOWN, "held_out")


@dataclass(frozen=True, slots=True)
class Expectation:
    """One fact that an utterance states.

    Args:
        kind: finer than the type: identity, relation, remember, ...; several are a `fact`.
        types: memory types that are honest readings, the first one preferred.
        must: words that all occur in a proposal of it.
        any_of: words of which one occurs; empty means no such demand.
        never: words that may not occur.
        attribute: None where it is not judged.
        retracts: None where both readings are honest.
        since: the first and last day that are right as `valid_from`; None where not judged.
        optional: finding it is no merit and no mistake.

    """

    kind: str
    types: tuple[str, ...]
    must: tuple[str, ...] = ()
    any_of: tuple[str, ...] = ()
    never: tuple[str, ...] = ()
    attribute: str | None = None
    retracts: bool | None = False
    since: tuple[date, date] | None = None
    optional: bool = False


@dataclass(frozen=True, slots=True)
class Utterance:
    """What was said, with the turns before it, and every fact in it."""

    id: str
    turns: tuple[ConversationTurn, ...]
    expected: tuple[Expectation, ...]

    @property
    def request(self) -> ExtractionRequest:
        return ExtractionRequest(self.turns)


def path_of(language: str, half: str) -> Path:
    return SET / f"{language}_{half}.jsonl"


def read(path: Path) -> list[Utterance]:
    """Utterances in the order of the file."""
    with path.open(encoding="utf-8") as lines:
        return [_utterance(json.loads(line)) for line in lines]


def _utterance(row: dict[str, Any]) -> Utterance:
    said_at = datetime.fromisoformat(row["said_at"])
    turns = tuple(
        ConversationTurn(f"m{number}", turn["role"], turn["content"], said_at)
        for number, turn in enumerate(row["turns"], start=1)
    )
    return Utterance(row["id"], turns, tuple(_expectation(one) for one in row["expect"]))


def _expectation(row: dict[str, Any]) -> Expectation:
    types = tuple(row.get("types", ())) or (row["memory_type"],)
    if types[0] != row["memory_type"]:
        raise ValueError(f"{types} does not begin with {row['memory_type']}")
    return Expectation(
        kind=row["kind"],
        types=types,
        must=tuple(row["must"]),
        any_of=tuple(row["any"]),
        never=tuple(row.get("not", ())),
        attribute=row["attribute"],
        retracts=row["retracts"],
        since=_days(row["valid_from"]),
        optional=row.get("optional", False),
    )


def _days(written: str | None) -> tuple[date, date] | None:
    """`2026-03-07`, or two such days with a slash between them."""
    if written is None:
        return None
    first, _, last = written.partition("/")
    return date.fromisoformat(first), date.fromisoformat(last or first)
