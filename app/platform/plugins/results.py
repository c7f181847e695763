"""Checks of what a processor returns: the rules of input, and no added items."""

from collections.abc import Callable
from dataclasses import fields, replace
from typing import Any, TypeVar

from app.platform.plugins.points import Item, Point

P = TypeVar("P", bound=Point)

Validate = Callable[[Any], Any]
"""Validates an item by the rules of the calling package: the valid item; raises ValueError."""


class InvalidResultError(ValueError):
    """The result is not allowed. The message holds names of fields and no content."""


def checked_result(before: P, after: object, validate: Validate) -> P:
    """The returned point, checked against the point that was passed; None means unchanged.

    Raises:
        ValueError: a change is not allowed, or a value breaks a rule of the package.

    """
    if after is None:
        return before
    if type(after) is not type(before):
        raise InvalidResultError("it is no point of this kind")
    given = getattr(after, before.ITEMS)
    if not isinstance(given, list | tuple):
        raise InvalidResultError(f"{before.ITEMS} is no list")
    for field in fields(before):
        if field.name != before.ITEMS and getattr(after, field.name) != getattr(before, field.name):
            raise InvalidResultError(f"{field.name} was changed")
    known = {item.id: item for item in before.items}
    items = []
    for item in given:
        if not isinstance(item, Item) or item.id not in known:
            raise InvalidResultError("something was added, or is there twice")
        items.append(_item(known.pop(item.id), item, validate))
    _check_missing(before, [item.id for item in items], known)
    changes: dict[str, Any] = {before.ITEMS: tuple(items)}
    return replace(before, **changes)


def _item(before: Item, after: Item, validate: Validate) -> Item:
    """The checked item.

    Raises:
        InvalidResultError: it is of another kind, or a field that is not changeable differs.

    """
    if type(after) is not type(before):
        raise InvalidResultError("an item is of another kind")
    changed = {
        field.name
        for field in fields(before)
        if getattr(after, field.name) != getattr(before, field.name)
    }
    if not changed:
        return before
    if wrong := sorted(changed - before.CHANGEABLE):
        raise InvalidResultError(f"{', '.join(wrong)} cannot be changed")
    valid: Item = validate(after)
    return valid


def _check_missing(before: Point, kept: list[str], missing: dict[str, Item]) -> None:
    """Check for dropped and reordered items.

    Raises:
        InvalidResultError: the point does not allow it.

    """
    if missing and not before.MAY_DROP:
        raise InvalidResultError("nothing can be dropped here")
    if any(item.bound for item in missing.values()):
        raise InvalidResultError("something was dropped that another needs")
    if not before.MAY_REORDER:
        order = [item.id for item in before.items if item.id not in missing]
        if kept != order:
            raise InvalidResultError("the order was changed")
