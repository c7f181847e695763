"""What people say over months, as memories with sessions, speakers and days, and questions on it.

LoCoMo's turns if they are given, because the cost of a lexical search depends on word frequencies
and lengths of real conversations. Otherwise the sentences of `corpus.py`.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import chain, cycle, islice
from pathlib import Path
from random import Random
from typing import Any, Final

import asyncpg
from pgvector.asyncpg import register_vector

from app.evaluation.dataset import Dataset, DatasetUnit, Question, Store
from app.evaluation.locomo import read_locomo
from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.text.normal_forms import content_hash
from app.memory.memories.searchable import row_terms
from benchmarks.corpus import questions, sentences
from benchmarks.database import AGENT, COLUMNS, TENANT, add_users, records

SESSION_TURNS: Final = 20
_PLACED: Final = ("session_id", "valid_from", "metadata")


def talks(locomo: Path | None) -> list[Store]:
    """Conversations with their questions."""
    dataset = read_locomo(locomo) if locomo else _made_up()
    return [
        replace(store, questions=_counted(dataset, store.questions)) for store in dataset.stores
    ]


def said(stores: Sequence[Store], first: int, size: int) -> list[DatasetUnit]:
    """So many turns, beginning with conversation `first`.

    When all are told they are told again, with a word of each exchanged, in other sessions.
    """
    random = Random(first)
    order = [*stores[first:], *stores[:first]]
    once = [
        replace(unit, session=f"{store.store_id}-{unit.session}")
        for store in order
        for unit in store.units
    ]
    words = [word for unit in once for word in unit.text.split()]
    again = (
        replace(unit, text=_varied(unit.text, words, random), session=f"{unit.session}-again")
        for unit in cycle(once)
    )
    return list(islice(_different(chain(once, again)), size))


def questions_on(stores: Sequence[Store], first: int, size: int) -> list[str]:
    """Questions on what `said` has, as they come."""
    order = [*stores[first:], *stores[:first]]
    asked = [one.text for store in order[: max(1, size // 600)] for one in store.questions]
    Random(first).shuffle(asked)
    return asked


async def fill_talks(
    owner: asyncpg.Connection, spoken: Mapping[str, Sequence[DatasetUnit]]
) -> None:
    """Give each user what was said, as it would be stored by the service."""
    await register_vector(owner)
    # COPY is binary, and the driver's own codec for JSON is not.
    await owner.set_type_codec(
        "jsonb", encoder=_jsonb, decoder=bytes, schema="pg_catalog", format="binary"
    )
    await add_users(owner, list(spoken))
    for user_id, units in spoken.items():
        sessions = list(dict.fromkeys(f"{user_id}-{unit.session}" for unit in units))
        await owner.execute(
            "INSERT INTO sessions (tenant_id, session_id, user_id, agent_id) "
            "SELECT $1, unnest($2::text[]), $3, $4",
            TENANT,
            sessions,
            user_id,
            AGENT,
        )
        rows = await records([user_id] * len(units), [unit.text for unit in units], 7)
        placed = [(*row, *_place(user_id, unit)) for row, unit in zip(rows, units, strict=True)]
        await owner.copy_records_to_table(
            "memories", records=placed, columns=(*COLUMNS, *_PLACED, *WORDS)
        )


def _place(user_id: str, unit: DatasetUnit) -> tuple[Any, ...]:
    speaker = unit.speaker or "Somebody"
    words = row_terms(unit.text, {"name": speaker}, unit.moment)
    return (f"{user_id}-{unit.session}", unit.moment, {"name": speaker}, *words.values())


def _jsonb(value: Any) -> bytes:
    # Its first byte is the version of the format.
    return b"\x01" + json.dumps(value, ensure_ascii=False).encode()


def _different(units: Iterable[DatasetUnit]) -> Iterator[DatasetUnit]:
    """Without what is word for word there already, as the service would not store it again."""
    seen = set()
    for unit in units:
        told = content_hash(unit.text)
        if told not in seen:
            seen.add(told)
            yield unit


def _varied(text: str, words: Sequence[str], random: Random) -> str:
    own = text.split()
    own[random.randrange(len(own))] = random.choice(words)
    return " ".join(own)


def _counted(dataset: Dataset, asked: Sequence[Question]) -> tuple[Question, ...]:
    return tuple(one for one in asked if one.category not in dataset.apart)


def _made_up() -> Dataset:
    texts, began = sentences(7)[:6_000], datetime(2024, 1, 1, tzinfo=UTC)
    units = tuple(
        DatasetUnit(
            unit_id=str(number),
            text=text,
            session=str(number // SESSION_TURNS),
            speaker=("Ana", "Li")[number % 2],
            moment=began + timedelta(hours=8 * (number // SESSION_TURNS)),
        )
        for number, text in enumerate(texts)
    )
    asked = tuple(Question(text, frozenset({"0"})) for text in questions(7, 300))
    return Dataset("made up", (Store("made-up", units, asked),))
