"""The filter language of search, list and bulk delete, compiled to one SQL condition.

An object names fields; several keys in one object mean AND. The language has two values,
true and false: what is missing is equal to nothing, so `ne`, `nin` and NOT hold for it and
every other operator does not. Nothing a caller wrote becomes SQL text: columns come from
the table below, and values, metadata keys included, go through `bind`.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from decimal import Decimal
from types import MappingProxyType
from typing import Any, Final

from pydantic import JsonValue

from app.errors import UnprocessableError
from app.platform.values.fields import composed

Bind = Callable[[object, str], str]
"""Takes a value and its SQL type, returns its typed placeholder."""

MAX_DEPTH: Final = 5
"""The outermost object is 1; each AND, OR and NOT goes one deeper."""
MAX_LEAVES: Final = 50
MAX_VALUES: Final = 100
"""Longest list of `in` and `nin`."""
MAX_KEY_LENGTH: Final = 64
MAX_PATH: Final = 3
"""Longest dotted path after `metadata.`."""

_INT8 = 2**63
_ORDER = MappingProxyType({"gt": ">", "gte": ">=", "lt": "<", "lte": "<="})
# The same expression as in the SQL function kemem_timestamptz: what is a time here is one there.
_TIME = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]"
    r"(:[0-5][0-9]([.][0-9]{1,6})?)?(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])"
)


class InvalidFilterError(UnprocessableError):
    """The filter is not one; `field` is the path of the part that is wrong."""

    code = "invalid_filter"
    title = "The filter cannot be understood"

    def __init__(self, detail: str, *, field: str) -> None:
        super().__init__(
            detail, field=field, errors=[{"location": ["filters", field], "detail": detail}]
        )


@dataclass(frozen=True, slots=True)
class _Kind:
    """What a column holds: its SQL type, how an operand is read, which operators it knows."""

    sql_type: str
    read: Callable[[JsonValue, str], object]
    operators: tuple[str, ...]
    collation: str = ""


def _string(value: JsonValue, at: str) -> str:
    """A string operand. Raises InvalidFilterError."""
    if not isinstance(value, str):
        raise InvalidFilterError("This field takes a string.", field=at)
    return _storable(value, at)


def _storable(value: str, at: str) -> str:
    """Refuse what no UTF-8 database can hold, before the driver does. Raises InvalidFilterError."""
    if "\0" in value or any("\ud800" <= character <= "\udfff" for character in value):
        raise InvalidFilterError("A string holds NUL or half a surrogate pair.", field=at)
    return value


def _own_id(value: JsonValue, at: str) -> str:
    """The id that a caller chose, in the form in which it is stored. Raises InvalidFilterError."""
    return composed(_string(value, at))


def with_composed_ids(filters: Any, *, ids: bool = False) -> Any:
    """Filters with ids that a caller chose in the form in which they are stored."""
    if isinstance(filters, Mapping):
        return {
            name: with_composed_ids(value, ids=ids or FIELDS.get(name, ("", _ID))[1] is _OWN_ID)
            for name, value in filters.items()
        }
    if isinstance(filters, list):
        return [with_composed_ids(value, ids=ids) for value in filters]
    return composed(filters) if ids and isinstance(filters, str) else filters


def _number(value: JsonValue, at: str) -> int | float:
    """A finite number. Raises InvalidFilterError."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise InvalidFilterError("This field takes a number.", field=at)
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidFilterError("A number must be finite.", field=at)
    if isinstance(value, int) and not -_INT8 <= value < _INT8:
        raise InvalidFilterError("A whole number must fit into 64 bits.", field=at)
    return value


def _real(value: JsonValue, at: str) -> float:
    return float(_number(value, at))


def _whole(value: JsonValue, at: str) -> int:
    """A whole number. Raises InvalidFilterError."""
    number = _number(value, at)
    if number != int(number) or not -_INT8 <= number < _INT8:
        raise InvalidFilterError("This field takes a whole number of 64 bits.", field=at)
    return int(number)


def _time(value: JsonValue, at: str) -> datetime:
    """A time of ISO 8601. Raises InvalidFilterError."""
    if isinstance(value, str):
        time = _as_time(value)
        if time is not None:
            return time
    raise InvalidFilterError(
        "This field takes an ISO 8601 time with a zone, such as 2026-01-31T09:00:00Z.", field=at
    )


def _as_time(text: str) -> datetime | None:
    if not _TIME.fullmatch(text):
        return None
    try:
        # In UTC at once: the driver would do it later, and fail at the ends of the calendar.
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


_COMPARE = ("eq", "ne", "in", "nin", *_ORDER, "exists")
_ID = _Kind("text", _string, (*_COMPARE, "contains"), ' COLLATE "C"')
_OWN_ID = replace(_ID, read=_own_id)
_CONTENT = _Kind("text", _string, ("eq", "ne", "contains", "icontains"))
_REAL = _Kind("double precision", _real, _COMPARE)
_WHOLE = _Kind("bigint", _whole, _COMPARE)
_WHEN = _Kind("timestamptz", _time, _COMPARE)
_LIST = _Kind("text", _string, ("contains", "exists"))

FIELDS: Final[Mapping[str, tuple[str, _Kind]]] = MappingProxyType(
    {
        "memory_id": ("memory_id", _ID),
        "user_id": ("user_id", _OWN_ID),
        "agent_id": ("agent_id", _OWN_ID),
        "session_id": ("session_id", _OWN_ID),
        "run_id": ("session_id", _OWN_ID),
        "project_id": ("project_id", _OWN_ID),
        "scope": ("scope", _ID),
        "scope_id": ("scope_id", _OWN_ID),
        "memory_type": ("memory_type", _ID),
        "category": ("memory_type", _ID),
        "attribute": ("attribute", _ID),
        "tier": ("tier", _ID),
        "source": ("source", _ID),
        "source_id": ("source_id", _ID),
        "visibility": ("visibility", _ID),
        "status": ("status", _ID),
        "creator": ("creator", _ID),
        "speaker": ("speaker", _ID),
        "external_id": ("external_id", _ID),
        "content": ("content", _CONTENT),
        "confidence": ("confidence", _REAL),
        "use_count": ("use_count", _WHOLE),
        "version": ("version", _WHOLE),
        "create_time": ("create_time", _WHEN),
        "update_time": ("update_time", _WHEN),
        "last_used_at": ("last_used_at", _WHEN),
        "said_at": ("said_at", _WHEN),
        "valid_from": ("valid_from", _WHEN),
        "valid_to": ("valid_to", _WHEN),
        "expires_at": ("expires_at", _WHEN),
        "superseded_by": ("superseded_by", _ID),
        "evidence": ("evidence", _LIST),
    }
)
"""Every field a filter may name, with its column; `metadata.<key>` is allowed besides."""


def compile_filters(filters: Mapping[str, JsonValue], bind: Bind) -> str:
    """Turn a filter into a condition over the table `memories`, for a WHERE clause.

    An empty filter is TRUE. The condition may be null where it is not true, which WHERE takes
    as false. `contains` is a case-sensitive substring of a text, or an element of a list;
    `icontains` is a substring of the content, whatever its case. Order of texts is by code point.
    Metadata compares with what has the operand's type: a number never equals a string, and an
    operand that reads as an ISO 8601 time with a zone is a time.
    Times in metadata need the SQL function `kemem_timestamptz(text)`.

    Raises:
        InvalidFilterError: something in it is not allowed; says where and what is.

    """
    if not filters:
        return "TRUE"
    return _Compiler(bind).group(filters, "filters", 1)


class _Compiler:
    """Walks one filter; counts its leaves on the way."""

    def __init__(self, bind: Bind) -> None:
        self._bind = bind
        self._leaves = 0

    def group(self, node: JsonValue | Mapping[str, JsonValue], at: str, depth: int) -> str:
        """A filter object as a condition. Raises InvalidFilterError."""
        if not isinstance(node, Mapping) or not node:
            raise InvalidFilterError("Expected an object with at least one field.", field=at)
        if depth > MAX_DEPTH:
            raise InvalidFilterError(f"At most {MAX_DEPTH} levels are allowed.", field=at)
        parts = [self._member(key, value, at, depth) for key, value in node.items()]
        return _join(parts, "AND")

    def _member(self, key: str, value: JsonValue, at: str, depth: int) -> str:
        """One member of a filter object. Raises InvalidFilterError."""
        here = f"{at}.{_shown(key)}"
        if key in {"AND", "OR"}:
            if not isinstance(value, list) or not value:
                raise InvalidFilterError(f"{key} takes a list of filters.", field=here)
            parts = [
                self.group(part, f"{here}[{index}]", depth + 1) for index, part in enumerate(value)
            ]
            return _join(parts, key)
        if key == "NOT":
            # The one place where null and false would part; elsewhere AND and OR keep null low.
            return f"(({self.group(value, here, depth + 1)}) IS NOT TRUE)"
        operators = value if isinstance(value, dict) else {"eq": value}
        if not operators:
            raise InvalidFilterError("Expected an operator and its value.", field=here)
        parts = [
            self._leaf(key, operator, operand, f"{here}.{_shown(operator)}", here)
            for operator, operand in operators.items()
        ]
        return _join(parts, "AND")

    def _leaf(self, key: str, operator: str, operand: JsonValue, at: str, field_at: str) -> str:
        """One condition on one field. Raises InvalidFilterError."""
        self._leaves += 1
        if self._leaves > MAX_LEAVES:
            raise InvalidFilterError(f"At most {MAX_LEAVES} conditions are allowed.", field=at)
        if key.startswith("metadata."):
            keys = _metadata_keys(key, field_at)
            _check_operator(operator, (*_COMPARE, "contains"), at)
            path = "".join(f" -> {self._bind(part, 'text')}" for part in keys)
            return self._metadata(f"(memories.metadata{path})", operator, operand, at)
        if key not in FIELDS:
            allowed = ", ".join([*FIELDS, "metadata.<key>", "AND", "OR", "NOT"])
            raise InvalidFilterError(f"No such field. Allowed: {allowed}.", field=field_at)
        column, kind = FIELDS[key]
        _check_operator(operator, kind.operators, at)
        return self._column(f"memories.{column}", kind, operator, operand, at)

    def _column(self, column: str, kind: _Kind, operator: str, operand: JsonValue, at: str) -> str:
        if kind is _LIST:
            return self._list(column, operator, operand, at)
        if operator == "exists" or (operator in {"eq", "ne"} and operand is None):
            present = _flag(operand, at) if operator == "exists" else operator == "ne"
            return f"{column} IS {'NOT ' if present else ''}NULL"
        if operator in {"in", "nin"}:
            values = [kind.read(value, f"{at}[{n}]") for n, value in _values(operand, at)]
            found = f"{column} = ANY({self._bind(values, f'{kind.sql_type}[]')})"
            return _negated_unless(operator == "in", found)
        value = self._bind(kind.read(operand, at), kind.sql_type)
        if operator in {"contains", "icontains"}:
            text, part = (
                (column, value)
                if operator == "contains"
                else (f"lower({column})", f"lower({value})")
            )
            return f"strpos({text}, {part}) > 0"
        if operator in _ORDER:
            return f"{column}{kind.collation} {_ORDER[operator]} {value}"
        return f"{column} {'=' if operator == 'eq' else 'IS DISTINCT FROM'} {value}"

    def _list(self, column: str, operator: str, operand: JsonValue, at: str) -> str:
        if operator == "exists":
            return _negated_unless(_flag(operand, at), f"cardinality({column}) > 0")
        # ANY and not @>: it takes varchar[] as well, and @> is not leakproof, so under
        # row-level security no index would serve it anyway.
        return f"{self._bind(_string(operand, at), 'text')} = ANY({column})"

    def _metadata(self, found: str, operator: str, operand: JsonValue, at: str) -> str:
        """Compare what is at a path; CASE guards each cast. Raises InvalidFilterError."""
        missing = f"coalesce(jsonb_typeof({found}), 'null') = 'null'"
        if operator == "exists":
            return _negated_unless(not _flag(operand, at), missing)
        if operator in {"eq", "ne"}:
            same = missing if operand is None else self._equal(found, [_scalar(operand, at)])
            return _negated_unless(operator == "eq", same)
        if operator in {"in", "nin"}:
            values = [_scalar(value, f"{at}[{n}]") for n, value in _values(operand, at)]
            return _negated_unless(operator == "in", self._equal(found, values))
        value = _scalar(operand, at, times=operator != "contains")
        if operator == "contains":
            return self._contains(found, value)
        if isinstance(value, bool):
            raise InvalidFilterError("true and false have no order.", field=at)
        json_type, sql_type, stored = _stored(found, value)
        collation = ' COLLATE "C"' if sql_type == "text" else ""
        compared = f"{stored}{collation} {_ORDER[operator]} {self._bind(value, sql_type)}"
        return f"CASE WHEN jsonb_typeof({found}) = '{json_type}' THEN {compared} END"

    def _equal(self, found: str, values: list["_Scalar"]) -> str:
        """Match any of the values, each against what is stored in its own type."""
        # Without a value the path is still named: PostgreSQL refuses an unused parameter.
        groups: dict[tuple[str, str, str], list[_Scalar]] = (
            {} if values else {_stored(found, ""): []}
        )
        for value in values:
            groups.setdefault(_stored(found, value), []).append(value)
        parts = [
            f"CASE WHEN jsonb_typeof({found}) = '{json_type}'"
            f" THEN {stored} = ANY({self._bind(group, f'{sql_type}[]')}) END"
            for (json_type, sql_type, stored), group in groups.items()
        ]
        return _join(parts, "OR")

    def _contains(self, found: str, value: "_Scalar") -> str:
        operand = self._bind(value, _stored(found, value)[1])
        element = f"WHEN 'array' THEN {found} @> to_jsonb({operand})"
        substring = ""
        if isinstance(value, str):
            substring = f"WHEN 'string' THEN strpos({found} #>> '{{}}', {operand}) > 0 "
        return f"CASE jsonb_typeof({found}) {substring}{element} END"


_Scalar = str | bool | Decimal | datetime


def _stored(found: str, value: _Scalar) -> tuple[str, str, str]:
    """Say which JSON type can match, the SQL type to compare in, and the stored value in it."""
    if isinstance(value, bool):
        return "boolean", "boolean", f"CAST({found} AS boolean)"
    if isinstance(value, Decimal):
        return "number", "numeric", f"CAST({found} AS numeric)"
    if isinstance(value, datetime):
        return "string", "timestamptz", f"kemem_timestamptz({found} #>> '{{}}')"
    return "string", "text", f"({found} #>> '{{}}')"


def _scalar(value: JsonValue, at: str, *, times: bool = True) -> _Scalar:
    """An operand for metadata; its type decides what it can match. Raises InvalidFilterError."""
    if isinstance(value, bool):
        return value
    if isinstance(value, str):
        time = _as_time(value) if times else None
        return _storable(value, at) if time is None else time
    if isinstance(value, int | float):
        # By way of repr, as JSON writes it: 0.1 is stored as 0.1 and not as its binary neighbour.
        return Decimal(repr(_number(value, at)))
    raise InvalidFilterError("Metadata takes a string, a number, true or false.", field=at)


def _values(operand: JsonValue, at: str) -> enumerate[JsonValue]:
    """The operands of a list operator. Raises InvalidFilterError."""
    if not isinstance(operand, list):
        raise InvalidFilterError("This operator takes a list.", field=at)
    if len(operand) > MAX_VALUES:
        raise InvalidFilterError(f"At most {MAX_VALUES} values are allowed.", field=at)
    return enumerate(operand)


def _flag(operand: JsonValue, at: str) -> bool:
    """The operand of `exists`. Raises InvalidFilterError."""
    if not isinstance(operand, bool):
        raise InvalidFilterError("exists takes true or false.", field=at)
    return operand


def _check_operator(operator: str, allowed: tuple[str, ...], at: str) -> None:
    """Check that a field knows an operator. Raises InvalidFilterError."""
    if operator not in allowed:
        raise InvalidFilterError(f"This field knows: {', '.join(allowed)}.", field=at)


def _metadata_keys(key: str, at: str) -> list[str]:
    """The keys of a metadata path. Raises InvalidFilterError."""
    keys = key.split(".")[1:]
    if len(keys) > MAX_PATH or not all(1 <= len(part) <= MAX_KEY_LENGTH for part in keys):
        raise InvalidFilterError(
            f"A metadata path has 1 to {MAX_PATH} keys of 1 to {MAX_KEY_LENGTH} characters,"
            " joined by dots.",
            field=at,
        )
    return [_storable(part, at) for part in keys]


def _negated_unless(wanted: bool, condition: str) -> str:
    return f"({condition})" if wanted else f"(({condition}) IS NOT TRUE)"


def _join(parts: list[str], word: str) -> str:
    return parts[0] if len(parts) == 1 else f"({f' {word} '.join(parts)})"


def _shown(key: str) -> str:
    """Name a key in a path, unless showing it would flood the answer or break a log line."""
    return key if key.isprintable() and len(key) <= (MAX_KEY_LENGTH + 1) * 4 else "?"
