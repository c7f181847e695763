"""Strategies that choose what of a window a call shows. Pure; writes nothing.

A strategy only points at messages. Whatever it points at is mended to a conversation that a
provider takes and shortened until it fits, by the same rules for all of them (`window_trim.py`).
"""

from collections.abc import Callable, Collection, Mapping
from importlib.metadata import entry_points
from typing import Any, Final

from app.conversation.messages.errors import InvalidStrategyError, UnknownStrategyError
from app.conversation.messages.schemas import WindowStrategy
from app.conversation.messages.window import Window
from app.conversation.messages.window_trim import Pick, Trimming
from app.errors import ConfigurationError

GROUP: Final = "kemem.window_strategies"
BUILT_IN: Final = ("last_tokens", "last_messages", "first_last", "message_fraction")

StrategyFactory = Callable[[Mapping[str, Any]], Pick]
"""What an entry point holds: called with the options of a request; ValueError refuses them."""


def last_tokens(window: Window) -> Collection[str]:
    """Everything without a gap, as far as it fits."""
    return [message.message_id for message in window.newest]


def last_messages(count: int) -> Pick:
    """The newest, at most `count`; instructions and calls that wait are not among them, and the
    current request and the newest message are there in any case.
    """

    def pick(window: Window) -> Collection[str]:
        trimming = Trimming(window, window.instructions_tokens)
        newest = trimming.places({message.message_id for message in window.newest})
        return trimming.ids(trimming.newest(newest, count))

    return pick


def first_last(keep: int) -> Pick:
    """No change up to `keep` messages; else the first and the last `keep`, or one more of an
    odd number.
    """

    def pick(window: Window) -> Collection[str]:
        ids = [message.message_id for message in window.inside]
        # A window that an older release has appended to counts more than it shows.
        if window.total <= keep or not ids:
            return ids
        return [ids[0], *ids[-keep if window.total % 2 == 0 else -keep - 1 :]]

    return pick


def message_fraction(kept: float) -> Pick:
    """From place `round((1 - kept) * total)` on; `kept` lies in 0 to 1."""

    def pick(window: Window) -> Collection[str]:
        count = window.total - round((1 - kept) * window.total)
        return [message.message_id for message in window.newest[-count:]] if count else []

    return pick


def pick_of(strategy: WindowStrategy, installed: Mapping[str, StrategyFactory]) -> Pick:
    """What a request asks for.

    Raises:
        UnknownStrategyError: there is no such strategy here.
        InvalidStrategyError: it does not take these options.

    """
    match strategy.name:
        case "last_tokens":
            return last_tokens
        case "last_messages":
            return last_messages(strategy.count)
        case "first_last":
            return first_last(strategy.keep)
        case "message_fraction":
            return message_fraction(strategy.fraction)
    if strategy.name not in installed:
        raise UnknownStrategyError([*BUILT_IN, *sorted(installed)])
    try:
        return installed[strategy.name](strategy.options)
    except ValueError as error:
        raise InvalidStrategyError(strategy.name) from error


def installed_strategies() -> dict[str, StrategyFactory]:
    """What installed packages offer, by name.

    Raises:
        ConfigurationError: one cannot be loaded, or has a name that is ours or another's.

    """
    found: dict[str, StrategyFactory] = {}
    for point in entry_points(group=GROUP):
        if point.name in {*BUILT_IN, *found}:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot have this "
                "name: it is taken."
            )
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot be loaded: "
                f"{type(error).__name__}. Mend or uninstall its package."
            ) from error
    return found
