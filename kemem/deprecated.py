"""Former names of methods and fields. They work, warn, and will be removed in a later release."""

import warnings
from collections.abc import Callable
from typing import Any


def _renamed(old: str, new: str) -> Callable[..., Any]:
    """A method `old` that warns and calls the method `new` of the same object.

    It serves both clients: of an async one it returns what is to be awaited.
    """

    def method(self: object, /, *arguments: Any, **named: Any) -> Any:
        warnings.warn(f"{old}() is deprecated: use {new}()", DeprecationWarning, stacklevel=2)
        return getattr(self, new)(*arguments, **named)

    method.__name__ = old
    method.__qualname__ = old
    method.__doc__ = f"Deprecated: use `{new}`, which has the same parameters."
    return method


def _renamed_field(old: str, new: str) -> Any:
    """A read-only property `old` that warns and has the value of the field `new`."""

    def value(self: object) -> Any:
        warnings.warn(f"{old} is deprecated: use {new}", DeprecationWarning, stacklevel=2)
        return getattr(self, new)

    return property(value, doc=f"Deprecated: use `{new}`.")


class OldExtractionName:
    """The former name of `extraction_id`."""

    __slots__ = ()
    run_id = _renamed_field("run_id", "extraction_id")


class OldMemoryNames:
    """Former names of methods of `Memory` and `AsyncMemory`."""

    write = _renamed("write", "add")
    retrieve = _renamed("retrieve", "search")
    forget = _renamed("forget", "delete")
    compact = _renamed("compact", "summarize")


class OldBlockNames:
    """Former names of methods of `memory.blocks`."""

    list = _renamed("list", "list_blocks")


class OldFolderNames:
    """Former names of methods of `memory.folders`."""

    list = _renamed("list", "list_folders")


class OldProjectNames:
    """Former names of methods of `memory.projects`."""

    list = _renamed("list", "list_projects")


class OldErasureNames:
    """Former names of methods of `memory.erasures`."""

    list = _renamed("list", "list_erasures")
