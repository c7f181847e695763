"""Which processors this deployment allows: entry points of installed packages, by name.

Only those that MEMORY_PROCESSORS names are imported. Each is made once, when the process starts,
and shared by all agents that choose it.
"""

from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from inspect import iscoroutinefunction
from typing import Any, Final, Literal, Protocol

from app.errors import ConfigurationError
from app.platform.plugins.points import POINTS

GROUP: Final = "kemem.processors"

TIMEOUT_SECONDS: Final = 1.0
"""Default timeout of a processor: a request that appends or searches waits for it."""

LONGEST_SECONDS: Final = 60.0

OnError = Literal["skip", "refuse"]


class Processor(Protocol):
    """What an entry point returns: an object with some of the methods named in POINTS.

    Each takes the point of its name and returns a changed copy or None; a plain method runs in a
    thread. `timeout_seconds` and `on_error` may be left out.
    """

    timeout_seconds: float
    on_error: OnError


@dataclass(frozen=True, slots=True)
class LoadedProcessor:
    """A processor ready to be called.

    Args:
        waits: the points whose methods are coroutines.

    """

    name: str
    processor: Any
    points: frozenset[str]
    waits: frozenset[str]
    timeout_seconds: float
    on_error: OnError


def allowed_processors(setting: str) -> list[LoadedProcessor]:
    """The processors that `setting` names, separated by commas, in its order.

    Raises:
        ConfigurationError: a processor is not installed, is named twice, or cannot be used.

    """
    names = [name.strip() for name in setting.split(",") if name.strip()]
    installed: dict[str, list[EntryPoint]] = {}
    if names:
        for point in entry_points(group=GROUP):
            installed.setdefault(point.name, []).append(point)
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"MEMORY_PROCESSORS names {name!r} twice.")
        if name not in installed:
            known = ", ".join(sorted(installed)) or "none"
            raise ConfigurationError(
                f"MEMORY_PROCESSORS names {name!r}, which no installed package offers as an entry "
                f"point of {GROUP}; installed: {known}."
            )
        if len(installed[name]) > 1:
            raise ConfigurationError(
                f"MEMORY_PROCESSORS names {name!r}, which several installed packages offer: "
                "uninstall all but one of them."
            )
    return [_loaded(installed[name][0]) for name in names]


def _loaded(point: EntryPoint) -> LoadedProcessor:
    """The processor of an entry point, ready to be called.

    Raises:
        ConfigurationError: it cannot be loaded, or has invalid attributes.

    """
    try:
        processor = point.load()()
    except Exception as error:
        raise ConfigurationError(
            f"The processor {point.name!r} ({point.value}) cannot be loaded: "
            f"{type(error).__name__}. Mend its package, or take it out of MEMORY_PROCESSORS."
        ) from error
    methods = {name: getattr(processor, name, None) for name in POINTS}
    points = frozenset(name for name, method in methods.items() if callable(method))
    seconds = getattr(processor, "timeout_seconds", TIMEOUT_SECONDS)
    on_error: Any = getattr(processor, "on_error", "skip")
    for wrong, wanted in (
        (not points, f"at least one method of {', '.join(POINTS)}"),
        (not _is_time(seconds), f"timeout_seconds above 0 and up to {LONGEST_SECONDS:g}"),
        (on_error not in {"skip", "refuse"}, 'on_error "skip" or "refuse"'),
    ):
        if wrong:
            raise ConfigurationError(
                f"The processor {point.name!r} ({point.value}) needs {wanted}."
            )
    waits = frozenset(name for name in points if iscoroutinefunction(methods[name]))
    return LoadedProcessor(point.name, processor, points, waits, float(seconds), on_error)


def _is_time(seconds: object) -> bool:
    # Written so that NaN fails too.
    return isinstance(seconds, int | float) and 0 < seconds <= LONGEST_SECONDS
