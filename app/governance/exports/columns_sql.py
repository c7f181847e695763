"""How a column is written to a line and read back, without any loss.

PostgreSQL writes the lines. Times are UTC with microseconds, bytes are base64, vectors are
lists of numbers; types without a JSON form (sparse vectors, bits, ranges, bytes in lists) are
the text that PostgreSQL prints.
"""

import binascii
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final

from pgvector.sqlalchemy import SPARSEVEC, VECTOR
from sqlalchemy import (
    BigInteger,
    Boolean,
    Column,
    ColumnElement,
    Double,
    Integer,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    cast,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSON, JSONB, TIMESTAMP

from app.language.ranking.packing import DIMENSION
from app.platform.values.fields import WANTED, is_own_id

OWN_IDS: Final = frozenset({"user_id", "agent_id", "project_id", "session_id", "scope_id"})
"""Columns with ids that a caller chose: in another form no path would name them."""

_SMALL, _BIG = 2**15, 2**63


def written(column: Column[Any]) -> ColumnElement[Any]:
    """The expression for a column in a line."""
    if isinstance(column.type, LargeBinary):
        # PostgreSQL breaks base64 into lines of 76.
        return func.translate(func.encode(column, "base64"), "\n", "")
    if isinstance(column.type, VECTOR):
        return cast(cast(column, Text), JSON)
    return column


def as_stored(column: Column[Any], given: ColumnElement[Any]) -> ColumnElement[Any]:
    """The expression to store, from what `json_populate_recordset` made of a line."""
    if isinstance(column.type, LargeBinary):
        # It takes base64 for bytes as they are.
        return func.decode(func.encode(given, "escape"), "base64")
    if isinstance(column.type, JSONB) and not column.nullable:
        # A null of JSON is a value, which it takes for none.
        return func.coalesce(given, text("CAST('null' AS jsonb)"))
    return given


def fault(column: Column[Any], value: Any) -> str | None:
    """What is wrong with a value, or None; PostgreSQL checks the rest."""
    if value is None:
        if column.nullable or not isinstance(column.type, _NEVER_NULL):
            return None
        return "must not be null"
    for kind, check in _CHECKS:
        if isinstance(column.type, kind):
            return check(column, value)
    return None


def _text(column: Column[Any], value: Any) -> str | None:
    if not isinstance(value, str):
        return "must be a text"
    length = getattr(column.type, "length", None)
    if length is not None and len(value) > length:
        return f"must have at most {length} characters"
    if "\x00" in value:
        return "must not contain NUL characters"
    if "\n" in value and column.name.endswith("_id") and column.primary_key:
        return "must not contain the end of a line"
    if column.name in OWN_IDS and not is_own_id(value):
        return f"must be an id in NFC: {WANTED}"
    return None


def _integer(limit: int) -> Callable[[Column[Any], Any], str | None]:
    def check(_column: Column[Any], value: Any) -> str | None:
        fits = type(value) is int and -limit <= value < limit
        return None if fits else "must be a whole number that fits"

    return check


def _boolean(_column: Column[Any], value: Any) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _number(_column: Column[Any], value: Any) -> str | None:
    return None if type(value) in (int, float) else "must be a number"


def _time(_column: Column[Any], value: Any) -> str | None:
    try:
        aware = isinstance(value, str) and datetime.fromisoformat(value).tzinfo is not None
    except ValueError:
        aware = False
    return None if aware else "must be a time with its offset"


def _bytes(_column: Column[Any], value: Any) -> str | None:
    try:
        if isinstance(value, str):
            binascii.a2b_base64(value, strict_mode=True)
            return None
    except ValueError:
        pass
    return "must be bytes in base64"


def _vector(_column: Column[Any], value: Any) -> str | None:
    fits = (
        isinstance(value, list) and value and all(type(number) in (int, float) for number in value)
    )
    return None if fits else "must be a list of numbers"


def _sparse_vector(_column: Column[Any], value: Any) -> str | None:
    # A query has no product with one of another dimension: its search would fail.
    fits = isinstance(value, str) and value.endswith(f"}}/{DIMENSION}")
    return None if fits else f"must be a sparse vector of {DIMENSION} dimensions"


def _list(column: Column[Any], value: Any) -> str | None:
    # PostgreSQL writes a list of vectors as one of texts.
    kind = getattr(column.type, "item_type", None)
    if isinstance(kind, SPARSEVEC):
        fits = isinstance(value, list) and not any(_sparse_vector(column, item) for item in value)
        return None if fits else f"must be a list of sparse vectors of {DIMENSION} dimensions"
    numbers = isinstance(kind, Integer)
    fits = isinstance(value, list) and all(
        type(item) is (int if numbers else str) for item in value
    )
    if not fits:
        return f"must be a list of {'whole numbers' if numbers else 'texts'}"
    return _too_much(column.info, value) if "most_bytes" in column.info else None


def _too_much(most: Mapping[Any, Any], texts: list[str]) -> str | None:
    """Of a list that an index holds."""
    size = sum(len(item.encode(errors="surrogatepass")) for item in texts)
    if len(texts) <= most["most_texts"] and size <= most["most_bytes"]:
        return None
    return f"must have at most {most['most_texts']} texts, of {most['most_bytes']} bytes in all"


# Text is a String, and a SmallInteger is no BigInteger.
_CHECKS: Final = (
    (String, _text),
    (SmallInteger, _integer(_SMALL)),
    (BigInteger, _integer(_BIG)),
    (Boolean, _boolean),
    (Double, _number),
    (TIMESTAMP, _time),
    (LargeBinary, _bytes),
    (VECTOR, _vector),
    (SPARSEVEC, _sparse_vector),
    (ARRAY, _list),
)
# JSON has a null of its own.
_NEVER_NULL: Final = (
    String, SmallInteger, BigInteger, Boolean, Double, TIMESTAMP, LargeBinary, ARRAY,
)  # fmt: skip
