"""mem0's filters in our filter language. Pure.

An object names fields, `AND`, `OR` and `NOT`; a field has a value, a list of values, an object of
operators, or `*` for any value that is not null.
"""

import ast
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time, timedelta
from types import MappingProxyType
from typing import Any, Final

from pydantic import ConfigDict, JsonValue, TypeAdapter, ValidationError

from app.integrations.mem0.errors import InvalidMem0RequestError
from app.integrations.mem0.schemas import ENTITY_IDS, own_id
from app.platform.values.fields import WANTED, composed, is_own_id

Filters = Mapping[str, Any]

APP_KEY: Final = "mem0_app_id"
"""The key of metadata that holds `app_id`, for which there is no column."""

QUERY_LENGTH: Final = 8000
"""Longest filter of a query string."""
LEVELS: Final = 32
"""Most objects and lists within each other; what may be asked with them is less."""

_JSON_OBJECT: Final = TypeAdapter(dict[str, JsonValue], config=ConfigDict(allow_inf_nan=False))

_ENTITIES: Final = MappingProxyType(
    {
        "user_id": "user_id",
        "agent_id": "agent_id",
        "run_id": "session_id",
        "session_id": "session_id",
        "app_id": f"metadata.{APP_KEY}",
    }
)
_COMPARING: Final = ("eq", "ne", "in", "nin", "gt", "gte", "lt", "lte")


def translated(filters: Filters | None) -> dict[str, Any]:
    """Our filter for one of mem0's; empty where it asks for nothing.

    Raises:
        InvalidMem0RequestError: a field or an operator is not known here, or it has more than
            `LEVELS` levels.

    """
    _check_levels(filters)
    return _group(filters or {})


def _check_levels(filters: Filters | None) -> None:
    """Raises InvalidMem0RequestError for more than `LEVELS`."""
    inside: list[Any] = [filters or {}]
    for _ in range(LEVELS):
        held = (part.values() if isinstance(part, Mapping) else part for part in inside)
        inside = [part for parts in held for part in parts if isinstance(part, Mapping | list)]
        if not inside:
            return
    raise InvalidMem0RequestError(f"`filters` has at most {LEVELS} levels.")


def _group(filters: Filters) -> dict[str, Any]:
    return _joined("AND", [_member(name, value) for name, value in filters.items()])


def together(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """All of several filters of ours."""
    return _joined("AND", [dict(part) for part in parts])


def named(filters: Filters | None, field: str) -> str | None:
    """The one value that `filters` lets the entity have, if it names one without alternatives."""
    for name, value in (filters or {}).items():
        if name == field and isinstance(value, Mapping):
            value = value.get("eq")  # noqa: PLW2901 (the operand of the same field)
        if name == field and isinstance(value, str) and value != "*":
            return composed(value)
        if name == "AND":
            for part in value if isinstance(value, list) else [value]:
                if isinstance(part, Mapping) and (found := named(part, field)):
                    return found
    return None


def ids_alone(filters: Filters | None) -> dict[str, str]:
    """The ids of the entities to which `filters` of an add says that it belongs.

    Raises:
        InvalidMem0RequestError: something in it does not name one entity, or two differ.

    """
    _check_levels(filters)
    ids: dict[str, str] = {}
    for name, value in _members(filters or {}):
        given = value["eq"] if isinstance(value, Mapping) and set(value) == {"eq"} else value
        if name not in ENTITY_IDS or not isinstance(given, str) or given == "*":
            raise InvalidMem0RequestError(
                f"{name[:100]} in `filters` of an add: it takes {', '.join(ENTITY_IDS)}, each with "
                "one value."
            )
        given = composed(given)
        if not is_own_id(given):
            raise InvalidMem0RequestError(f"{name} in `filters` of an add: {WANTED}.")
        if ids.setdefault(name, given) != given:
            raise InvalidMem0RequestError(f"{name} is named twice, and differently.")
    return ids


def _members(filters: Filters) -> Iterator[tuple[str, Any]]:
    """Fields and what they shall be, those within `AND` too."""
    for name, value in filters.items():
        if name == "AND":
            for part in _parts(name, value):
                yield from _members(part)
        else:
            yield name, value


def of_query(text: str | None) -> dict[str, Any]:
    """The filters of a query string: JSON, or the text that Python prints of a dict.

    Raises:
        InvalidMem0RequestError: it is neither, or empty.

    """
    if text is None:
        return {}
    if len(text) > QUERY_LENGTH:
        raise InvalidMem0RequestError(f"`filters` has at most {QUERY_LENGTH} characters.")
    for parse in (json.loads, ast.literal_eval):
        try:
            found = parse(text)
        except (ValueError, SyntaxError, MemoryError, RecursionError):
            continue
        if isinstance(found, dict) and found:
            return _as_json(found)
    raise InvalidMem0RequestError("`filters` must be an object that names at least one field.")


def _as_json(found: dict[Any, Any]) -> dict[str, Any]:
    """Raises InvalidMem0RequestError for what only Python can write."""
    _check_levels(found)
    try:
        return _JSON_OBJECT.validate_python(found)
    except ValidationError:
        raise InvalidMem0RequestError(
            "`filters` holds texts, finite numbers, true, false, null, lists and objects alone."
        ) from None


def _member(name: str, value: Any) -> dict[str, Any]:
    if name in {"AND", "OR"}:
        return _joined(name, [_group(part) for part in _parts(name, value)])
    if name == "NOT":
        return {"NOT": _joined("OR", [_group(part) for part in _parts(name, value)])}
    if name in _ENTITIES:
        return _field(_ENTITIES[name], value, _entity)
    if name == "metadata":
        return _metadata("metadata", value)
    translate = _FIELDS.get(name)
    if translate is None:
        allowed = ", ".join(["AND", "OR", "NOT", *_ENTITIES, "metadata", *_FIELDS])
        raise InvalidMem0RequestError(
            f"No such field in `filters`: {name[:100]}. Allowed: {allowed}."
        )
    return translate(value)


def _parts(name: str, value: Any) -> list[Filters]:
    parts = value if isinstance(value, list) else [value]
    if not parts or not all(isinstance(part, Mapping) and part for part in parts):
        raise InvalidMem0RequestError(f"{name} takes a list of filters that are not empty.")
    return parts


def _joined(how: str, parts: Sequence[dict[str, Any]]) -> dict[str, Any]:
    asked = [part for part in parts if part]
    return asked[0] if len(asked) == 1 else {how: asked} if asked else {}


def _same(value: Any) -> Any:
    return value


def _entity(value: Any) -> Any:
    return composed(value) if isinstance(value, str) else value


def _field(
    column: str,
    value: Any,
    read: Callable[[Any], Any],
    operators: Sequence[str] = _COMPARING,
) -> dict[str, Any]:
    """A field that compares: with a value, a list, operators, or `*`."""
    if value == "*":
        return {column: {"exists": True}}
    if isinstance(value, list):
        value = {"in": value}
    if not isinstance(value, Mapping):
        return {column: {"eq": read(value)}}
    unknown = [operator for operator in value if operator not in operators]
    if unknown or not value:
        known = ", ".join(operators)
        raise InvalidMem0RequestError(f"Unknown operator in `filters`. Allowed here: {known}.")
    conditions: dict[str, Any] = {}
    for operator, operand in value.items():
        if operator == "ne" and operand == "*":
            conditions["exists"] = False
        elif operator in {"in", "nin"}:
            conditions[operator] = [read(value) for value in _list(operand)]
        else:
            conditions[operator] = read(operand)
    return {column: conditions}


def _list(operand: Any) -> list[Any]:
    return operand if isinstance(operand, list) else [operand]


def _metadata(path: str, value: Any) -> dict[str, Any]:
    if not isinstance(value, Mapping) or not value:
        raise InvalidMem0RequestError("`metadata` in `filters` takes an object of keys and values.")
    known = {*_COMPARING, "contains"}
    parts = []
    for name, asked in value.items():
        here = f"{path}.{name}"
        if isinstance(asked, Mapping) and not known & asked.keys():
            parts.append(_metadata(here, asked))
        else:
            parts.append(_field(here, asked, _same, (*_COMPARING, "contains")))
    return _joined("AND", parts)


def _categories(value: Any) -> dict[str, Any]:
    """What is asked of the one category of a memory, each operator by itself."""
    if value == "*":
        return {"memory_type": {"exists": True}}
    operators = value if isinstance(value, Mapping) else {"in": value}
    asked = [
        {"in" if operator in {"contains", "eq"} else operator: _list(operand)}
        for operator, operand in operators.items()
    ]
    return _joined(
        "AND", [_field("memory_type", wanted, _same, ("in",)) for wanted in asked or [{}]]
    )


def _keywords(value: Any) -> dict[str, Any]:
    asked = value if isinstance(value, Mapping) else {"icontains": value}
    return _field("content", asked, _same, ("contains", "icontains"))


def _memory_ids(value: Any) -> dict[str, Any]:
    return _field("memory_id", value, _memory_id, ("eq", "ne", "in", "nin"))


def _memory_id(value: Any) -> str:
    return own_id("mem", str(value))


def _created(value: Any) -> dict[str, Any]:
    """When it was said, else when it was stored: what answers show as `created_at`."""
    return {
        "OR": [
            _field("said_at", value, moment_text),
            {"said_at": {"exists": False}} | _field("create_time", value, moment_text),
        ]
    }


def _updated(value: Any) -> dict[str, Any]:
    return _field("update_time", value, moment_text)


def _expiration(value: Any) -> dict[str, Any]:
    return _field("expires_at", value, lambda day: text_of(expiry(day)))


_FIELDS: Final[Mapping[str, Callable[[Any], dict[str, Any]]]] = MappingProxyType(
    {
        "categories": _categories,
        "keywords": _keywords,
        "memory_ids": _memory_ids,
        "created_at": _created,
        "timestamp": _created,
        "updated_at": _updated,
        "expiration_date": _expiration,
    }
)


def moment(value: JsonValue) -> datetime:
    """A time as mem0's clients write it: seconds since 1970, a day, or ISO 8601, UTC by default.

    Raises:
        InvalidMem0RequestError: it is none of them.

    """
    try:
        if isinstance(value, int | float) and not isinstance(value, bool):
            return datetime.fromtimestamp(value, UTC)
        found = datetime.fromisoformat(str(value))
        return found.astimezone(UTC) if found.tzinfo else found.replace(tzinfo=UTC)
    except (ValueError, OverflowError, OSError):
        raise InvalidMem0RequestError(
            "A time is a Unix timestamp, YYYY-MM-DD or ISO 8601."
        ) from None


def moment_text(value: JsonValue) -> str:
    return text_of(moment(value))


def text_of(time_: datetime) -> str:
    return time_.astimezone(UTC).isoformat().replace("+00:00", "Z")


def expiry(value: JsonValue) -> datetime:
    """The end of the day that `expiration_date` names, in UTC: the day itself still counts.

    Raises:
        InvalidMem0RequestError: it is no date.

    """
    try:
        day = date.fromisoformat(str(value)[:10])
        return datetime.combine(day + timedelta(days=1), time(), UTC)
    except (ValueError, OverflowError):
        raise InvalidMem0RequestError("expiration_date must be a date: YYYY-MM-DD.") from None


def expiration_date(expires_at: datetime | None) -> str | None:
    """The last day on which something counts that ends at `expires_at`."""
    if expires_at is None:
        return None
    return (expires_at.astimezone(UTC) - timedelta(microseconds=1)).date().isoformat()
