"""The data set of an evaluation: what is stored, what is asked, and where the answer stands. Pure.

`docs/evaluation.md` describes the file; `locomo_dataset.py` reads another one into the same.
"""

import json
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, NoReturn

from app.errors import ConfigurationError

ROLES: Final = ("user", "assistant")
"""Tool and system messages are never remembered, so no question can find them."""

UNCATEGORISED: Final = "uncategorised"

# Besides ISO 8601: what LoCoMo, LongMemEval and people write.
_DATES: Final = (
    "%I:%M %p on %d %B, %Y",
    "%Y/%m/%d (%a) %H:%M",
    "%Y/%m/%d %H:%M",
    "%Y/%m/%d",
    "%Y-%m",
    "%d %B, %Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%Y年%m月%d日",
)


@dataclass(frozen=True, slots=True)
class DatasetUnit:
    """One thing to store. `moment` is when it was said, `session` the conversation it is of."""

    unit_id: str
    text: str
    session: str | None = None
    speaker: str | None = None
    moment: datetime | None = None
    role: str = "user"


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the units of its store that answer it."""

    text: str
    gold: frozenset[str]
    category: str = UNCATEGORISED
    moment: datetime | None = None


@dataclass(frozen=True, slots=True)
class Store:
    """What one user has said, and what is asked about it."""

    store_id: str
    units: tuple[DatasetUnit, ...]
    questions: tuple[Question, ...]


@dataclass(frozen=True, slots=True)
class Dataset:
    """Stores with their questions; every question here has at least one unit as its answer."""

    name: str
    stores: tuple[Store, ...]
    lang: str | None = None
    apart: frozenset[str] = frozenset()
    """Categories that are reported by themselves and are no part of the total."""

    unknown_gold: int = 0
    """Answers that name no unit of the store; they were left out."""

    without_gold: int = 0
    """Questions that had no answer left; they are not asked."""

    unread_dates: int = 0
    """Dates nobody could read; what they belong to has none."""

    @property
    def unit_count(self) -> int:
        return sum(len(store.units) for store in self.stores)

    @property
    def question_count(self) -> int:
        return sum(len(store.questions) for store in self.stores)

    @property
    def categories(self) -> list[str]:
        """The categories, in the order in which questions first name them."""
        return list(dict.fromkeys(one.category for store in self.stores for one in store.questions))


def parse_moment(text: str) -> datetime | None:
    """The moment that a date means, or None; a date without a zone is one of UTC."""
    text = text.strip()
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        for pattern in _DATES:
            try:
                return datetime.strptime(text, pattern).replace(tzinfo=UTC)
            except ValueError:
                continue
        return None
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def read_dataset(path: Path) -> Dataset:
    """The data set in a file of the shape of `docs/evaluation.md`.

    Raises:
        ConfigurationError: it has another shape; the sentence names the store and the unit.

    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path.name} is no JSON in UTF-8: {error}.") from error
    return _Reader(path.name).dataset(document)


def choose(
    dataset: Dataset,
    *,
    categories: Iterable[str] = (),
    stores: int | None = None,
    questions: int | None = None,
) -> Dataset:
    """A part of a data set, to be quick: the first stores, some categories, some questions.

    Questions are taken evenly over all that is left; a store that keeps none is left out.

    Raises:
        ConfigurationError: nothing is left, or there is no such category.

    """
    wanted = set(categories)
    missing = wanted - set(dataset.categories)
    if missing:
        raise ConfigurationError(
            f"{dataset.name} has no category {', '.join(sorted(missing))}: it has "
            f"{', '.join(dataset.categories)}."
        )
    kept = [
        replace(
            store,
            questions=tuple(one for one in store.questions if not wanted or one.category in wanted),
        )
        for store in dataset.stores[:stores]
    ]
    total = sum(len(store.questions) for store in kept)
    if questions is not None and questions < total:
        numbers = {number * total // questions for number in range(questions)}
        kept = _only(kept, numbers)
    kept = [store for store in kept if store.questions]
    if not kept:
        raise ConfigurationError(f"There is no question to ask of {dataset.name}.")
    return replace(dataset, stores=tuple(kept))


def _only(stores: list[Store], numbers: set[int]) -> list[Store]:
    """The stores with those questions alone, counted over all of them."""
    chosen = []
    start = 0
    for store in stores:
        questions = tuple(
            one for number, one in enumerate(store.questions, start) if number in numbers
        )
        start += len(store.questions)
        chosen.append(replace(store, questions=questions))
    return chosen


class _Reader:
    """Reads one document and says where it is not what it should be."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._unknown_gold = 0
        self._without_gold = 0
        self._unread_dates = 0

    def dataset(self, document: Any) -> Dataset:
        top = self._object(document, "the file")
        stores = [
            self._store(one, f"store {number}")
            for number, one in enumerate(self._list(top, "stores", "the file"), 1)
        ]
        if not any(store.questions for store in stores):
            self._refuse("the file", "there is no question with an answer to find")
        ids = [store.store_id for store in stores]
        if len(set(ids)) < len(ids):
            self._refuse(f"store {_repeated(ids)!r}", "the id stands there twice")
        apart = top.get("apart") or []
        if not isinstance(apart, list):
            self._refuse("the file", "`apart` is no list of categories")
        return Dataset(
            name=self._label(top.get("name"), "the file", "name") or self._file,
            stores=tuple(stores),
            lang=self._label(top.get("lang"), "the file", "lang"),
            apart=frozenset(str(one) for one in apart),
            unknown_gold=self._unknown_gold,
            without_gold=self._without_gold,
            unread_dates=self._unread_dates,
        )

    def _store(self, value: Any, where: str) -> Store:
        fields = self._object(value, where)
        store_id = self._label(fields.get("id"), where, "id") or where
        where = f"store {store_id!r}"
        units = tuple(
            self._unit(one, f"{where}, unit {number}")
            for number, one in enumerate(self._list(fields, "units", where), 1)
        )
        if not units:
            self._refuse(where, "it has no units")
        ids = [unit.unit_id for unit in units]
        known = set(ids)
        if len(known) < len(ids):
            self._refuse(f"{where}, unit {_repeated(ids)!r}", "the id stands there twice")
        asked = (
            self._question(one, f"{where}, question {number}", known)
            for number, one in enumerate(self._list(fields, "questions", where), 1)
        )
        return Store(store_id, units, tuple(one for one in asked if one is not None))

    def _unit(self, value: Any, where: str) -> DatasetUnit:
        fields = self._object(value, where)
        unit_id = self._label(fields.get("id"), where, "id")
        if unit_id is None:
            self._refuse(where, "it has no `id`")
        where = f"{where.rpartition(' ')[0]} {unit_id!r}"
        role = fields.get("role") or "user"
        if role not in ROLES:
            self._refuse(where, f"`role` is neither of {' and '.join(ROLES)}")
        return DatasetUnit(
            unit_id=unit_id,
            text=self._text(fields, "text", where),
            session=self._label(fields.get("session"), where, "session"),
            speaker=self._label(fields.get("speaker"), where, "speaker"),
            moment=self._moment(fields.get("date"), where),
            role=role,
        )

    def _question(self, value: Any, where: str, known: set[str]) -> Question | None:
        fields = self._object(value, where)
        text = self._text(fields, "question", where)
        named = {self._label(one, where, "gold") or "" for one in self._list(fields, "gold", where)}
        self._unknown_gold += len(named - known)
        if not named & known:
            self._without_gold += 1
            return None
        category = fields.get("category")
        category = fields.get("type") if category is None else category
        return Question(
            text=text,
            gold=frozenset(named & known),
            category=self._label(category, where, "category") or UNCATEGORISED,
            moment=self._moment(fields.get("date"), where),
        )

    def _moment(self, value: Any, where: str) -> datetime | None:
        text = self._label(value, where, "date")
        moment = parse_moment(text) if text else None
        self._unread_dates += text is not None and moment is None
        return moment

    def _object(self, value: Any, where: str) -> dict[str, Any]:
        if not isinstance(value, dict):
            self._refuse(where, "it is no JSON object")
        return value

    def _list(self, fields: dict[str, Any], name: str, where: str) -> list[Any]:
        value = fields.get(name)
        if not isinstance(value, list):
            self._refuse(where, f"`{name}` is no list")
        return value

    def _text(self, fields: dict[str, Any], name: str, where: str) -> str:
        value = fields.get(name)
        if not isinstance(value, str) or not value.strip():
            self._refuse(where, f"`{name}` is no text, or an empty one")
        return value

    def _label(self, value: Any, where: str, name: str) -> str | None:
        """A short text; numbers are taken as they are written, and blank ones for none."""
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, str | int):
            self._refuse(where, f"`{name}` is neither a text nor a number")
        return str(value).strip() or None

    def _refuse(self, where: str, what: str) -> NoReturn:
        """Raises ConfigurationError."""
        raise ConfigurationError(f"{self._file}, {where}: {what}.")


def _repeated(ids: list[str]) -> str:
    seen: set[str] = set()
    for one in ids:
        if one in seen:
            return one
        seen.add(one)
    return ""
