"""How an answer becomes a dataclass: fields this release does not know stay in `raw`."""

# mypy: disable-error-code="explicit-override"
# `typing.override` came with Python 3.12, and a client is installed with httpx alone.

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from datetime import UTC, date, datetime
from functools import cache
from types import NoneType, UnionType
from typing import Any, ClassVar, TypeVar, get_args, get_origin, overload

Shape = TypeVar("Shape", bound="Answer")
Item = TypeVar("Item")
Converter = Callable[[Any], Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Something the service said; `raw` is its JSON, unknown fields included."""

    raw: Mapping[str, Any] = field(default_factory=dict, repr=False, compare=False)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Listing(Answer, Sequence[Item]):
    """Several of a kind, in order; printed as one line each."""

    rows_key: ClassVar[str] = "results"
    """Under which the service lists them."""

    results: tuple[Item, ...] = ()

    def __len__(self) -> int:
        return len(self.results)

    @overload
    def __getitem__(self, index: int) -> Item: ...

    @overload
    def __getitem__(self, index: slice) -> tuple[Item, ...]: ...

    def __getitem__(self, index: int | slice) -> Item | tuple[Item, ...]:
        return self.results[index]

    def __str__(self) -> str:
        return "\n".join(map(str, self.results))

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self)}>"


def read(kind: type[Shape], data: Any) -> Shape:
    """The JSON object `data` as a `kind`. What is absent or null takes the field's default.

    Raises:
        TypeError, ValueError: it is no such thing.

    """
    if not isinstance(data, Mapping):
        raise TypeError(f"a {kind.__name__} is an object, not {type(data).__name__}")
    values = {
        name: convert(data[key])
        # A class has a hash; mypy looks at that of its instances.
        for name, key, convert in _readers(kind)  # type: ignore[arg-type]
        if data.get(key) is not None
    }
    return kind(raw=data, **values)


@cache
def _readers(kind: Any) -> tuple[tuple[str, str, Converter], ...]:
    """The fields of a dataclass, where each stands in the JSON, and how it is read."""
    return tuple(
        (
            one.name,
            kind.rows_key if one.name == "results" else one.name,
            _converter(one.type),
        )
        for one in fields(kind)
        if one.name != "raw"
    )


def _converter(hint: Any) -> Converter:
    if isinstance(hint, UnionType):
        [hint] = [option for option in get_args(hint) if option is not NoneType]
    if get_origin(hint) is tuple:
        part = _converter(get_args(hint)[0])
        return lambda rows: tuple(part(row) for row in rows)
    if hint is datetime:
        return _moment
    if hint is date:
        return date.fromisoformat
    if isinstance(hint, type) and issubclass(hint, Answer):
        return lambda data: read(hint, data)
    return _as_it_is


def _as_it_is(value: Any) -> Any:
    return value


def _moment(text: str) -> datetime:
    moment = datetime.fromisoformat(text)
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
