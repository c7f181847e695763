"""What the value of an item must have. Pure.

A filter is a JSON object; here it becomes conditions on single fields, which `search_sql.py`
translates.
"""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Final, Literal, NamedTuple, cast, get_args

from pydantic import BeforeValidator

from app.memory.store.json_values import check_json

Operator = Literal["$eq", "$ne", "$gt", "$gte", "$lt", "$lte", "object"]

OPERATORS: Final = frozenset(get_args(Operator)) - {"object"}
CONDITIONS: Final = 50
DEPTH: Final = 10


class Condition(NamedTuple):
    """A field, given by its path from the value down, compared with a JSON value.

    `object` only says that the field is an object.
    """

    field: tuple[str, ...]
    operator: Operator
    value: Any = None


def conditions(wanted: Mapping[str, Any]) -> list[Condition]:
    """All of them must hold.

    Raises:
        ValueError: an operator is unknown, or the filter is too large.

    """
    found: list[Condition] = []
    for condition in _conditions(wanted, ()):
        found.append(condition)
        if len(found) > CONDITIONS:
            raise ValueError(f"must not have more than {CONDITIONS} conditions")
    return found


def _conditions(wanted: Mapping[str, Any], above: tuple[str, ...]) -> Iterator[Condition]:
    """Raises ValueError."""
    for name, value in wanted.items():
        field = (*above, name)
        if len(field) > DEPTH:
            raise ValueError(f"must not be nested deeper than {DEPTH} levels")
        if not isinstance(value, dict):
            yield Condition(field, "$eq", value)
        elif any(key.startswith("$") for key in value):
            for operator, operand in value.items():
                if operator not in OPERATORS:
                    raise ValueError("has an unknown operator: " + ", ".join(sorted(OPERATORS)))
                yield Condition(field, cast("Operator", operator), operand)
        else:
            yield Condition(field, "object")
            yield from _conditions(value, field)


def _checked(wanted: Any) -> Any:
    """Raises ValueError."""
    if isinstance(wanted, dict):
        conditions(wanted)
        check_json(wanted, deepest=2 * DEPTH)
    return wanted


Filter = Annotated[dict[str, Any], BeforeValidator(_checked)]
