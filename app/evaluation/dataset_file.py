"""Files of data sets: JSON at all, and the shape of `docs/evaluation.md`."""

import json
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn

from app.errors import ConfigurationError
from app.evaluation.dataset import (
    ROLES,
    UNCATEGORISED,
    Dataset,
    DatasetUnit,
    Question,
    Store,
    parse_moment,
)


def read_json(path: Path) -> Any:
    """What a file holds.

    Raises:
        ConfigurationError: it is not there, or no JSON in UTF-8.

    """
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigurationError(f"{path} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigurationError(f"{path.name} is no JSON in UTF-8: {error}.") from error


def read_dataset(path: Path) -> Dataset:
    """The data set in a file of the shape of `docs/evaluation.md`.

    Raises:
        ConfigurationError: it has another shape; the sentence names the store and the unit.

    """
    return _Reader(path.name).dataset(read_json(path))


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
            self._store(store, f"store {number}")
            for number, store in enumerate(self._list(top, "stores", "the file"), 1)
        ]
        if not any((*store.questions, *store.unlabelled) for store in stores):
            self._refuse("the file", "there is no question")
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
            apart=frozenset(str(category) for category in apart),
            unknown_gold=self._unknown_gold,
            without_gold=self._without_gold,
            unread_dates=self._unread_dates,
        )

    def _store(self, value: Any, where: str) -> Store:
        fields = self._object(value, where)
        store_id = self._label(fields.get("id"), where, "id") or where
        where = f"store {store_id!r}"
        units = tuple(
            self._unit(unit, f"{where}, unit {number}")
            for number, unit in enumerate(self._list(fields, "units", where), 1)
        )
        if not units:
            self._refuse(where, "it has no units")
        ids = [unit.unit_id for unit in units]
        known = set(ids)
        if len(known) < len(ids):
            self._refuse(f"{where}, unit {_repeated(ids)!r}", "the id stands there twice")
        asked = (
            self._question(question, f"{where}, question {number}", known)
            for number, question in enumerate(self._list(fields, "questions", where), 1)
        )
        questions = list(asked)
        return Store(
            store_id,
            units,
            tuple(question for question in questions if question.gold),
            tuple(question for question in questions if not question.gold),
        )

    def _unit(self, value: Any, where: str) -> DatasetUnit:
        fields = self._object(value, where)
        unit_id = self._label(fields.get("id"), where, "id")
        if unit_id is None:
            self._refuse(where, "it has no `id`")
        where = f"{where.rpartition(' ')[0]} {unit_id!r}"
        speaker = self._label(fields.get("speaker"), where, "speaker")
        role = fields.get("role") or (speaker if speaker in ROLES else "user")
        if role not in ROLES:
            self._refuse(where, f"`role` is neither of {' and '.join(ROLES)}")
        return DatasetUnit(
            unit_id=unit_id,
            text=self._text(fields, "text", where),
            session=self._label(fields.get("session"), where, "session"),
            speaker=None if speaker in ROLES else speaker,
            moment=self._moment(fields.get("date"), where),
            role=role,
        )

    def _question(self, value: Any, where: str, known: set[str]) -> Question:
        fields = self._object(value, where)
        text = self._text(fields, "question", where)
        named = {
            self._label(label, where, "gold") or "" for label in self._list(fields, "gold", where)
        }
        self._unknown_gold += len(named - known)
        self._without_gold += not named & known
        category = fields.get("category")
        category = fields.get("type") if category is None else category
        return Question(
            text=text,
            gold=frozenset(named & known),
            category=self._label(category, where, "category") or UNCATEGORISED,
            moment=self._moment(fields.get("date"), where),
            answer=self._label(fields.get("answer"), where, "answer"),
            rubric=self._rubric(fields.get("rubric"), where),
        )

    def _rubric(self, value: Any, where: str) -> tuple[str, ...]:
        points = [] if value is None else value
        if not isinstance(points, list):
            self._refuse(where, "`rubric` is no list")
        told = [self._label(point, where, "rubric") for point in points]
        return tuple(point for point in told if point is not None)

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
    for id_ in ids:
        if id_ in seen:
            return id_
        seen.add(id_)
    return ""
