"""Tool calls and their results stay together. Pure: no clock, no database."""

from collections.abc import Iterable
from typing import Any, Protocol

from app.conversation.messages.schemas import call_ids


class ToolMessage(Protocol):
    """What pairing needs to know of a message."""

    @property
    def message_id(self) -> Any: ...
    @property
    def tool_call_id(self) -> Any: ...
    @property
    def tool_calls(self) -> Any: ...


def closure(chosen: Iterable[str], traffic: Iterable[ToolMessage]) -> set[str]:
    """`chosen` and everything that may not be left without it.

    A call without its results, or a result without its call, makes a conversation that
    providers refuse; so whoever takes one half takes the other halves of that call too.

    Args:
        chosen: ids of the messages to take out.
        traffic: every message of the session with calls or results.

    """
    owner: dict[str, str] = {}
    group: dict[str, set[str]] = {}
    for message in traffic:
        for call_id in call_ids(message.tool_calls):
            owner[call_id] = message.message_id
            group.setdefault(message.message_id, {message.message_id})
        if message.tool_call_id in owner:
            group[owner[message.tool_call_id]].add(message.message_id)
    taken = set(chosen)
    for members in group.values():
        if members & taken:
            taken |= members
    return taken
