"""Calls and results that came as blocks of Anthropic's Messages API, as messages have them. Pure.

There a result is a block of the user's message, and a call a block of the assistant's. Here a
result is a message of its own, so that both are found, paired and rendered for every provider.
"""

from collections.abc import Iterator
from typing import Any


def without_tool_blocks(messages: object) -> object:
    """The messages with `tool_use` blocks as `tool_calls`, and one of role `tool` for each
    `tool_result` block, before what else its message says; anything else as it came.

    The last one keeps the message's id; results before it have one made of that and the call's.
    """
    if not isinstance(messages, list):
        return messages
    return [part for message in messages for part in _taken_apart(message)]


def _taken_apart(message: Any) -> Iterator[Any]:
    key = next((key for key in ("content", "content_parts") if _blocks(message, key)), None)
    if key is None:
        yield message
    elif message.get("role") == "assistant":
        yield _calling(message, key)
    elif message.get("role") == "user":
        yield from _answering(message, key)
    else:
        yield message


def _blocks(message: Any, key: str) -> list[Any]:
    found = message.get(key) if isinstance(message, dict) else None
    return found if isinstance(found, list) else []


def _is(block: Any, kind: str, named: str) -> bool:
    return (
        isinstance(block, dict)
        and block.get("type") == kind
        and isinstance(block.get(named), str)
        and bool(block[named])
    )


def _calling(message: dict[str, Any], key: str) -> dict[str, Any]:
    # Whoever gives calls as `tool_calls` too, as LangChain does, has them there already.
    if message.get("tool_calls"):
        return message
    calls = [block for block in message[key] if _is(block, "tool_use", "id")]
    if not calls:
        return message
    others = [block for block in message[key] if block not in calls]
    made = [{name: call.get(name) for name in ("id", "name", "input")} for call in calls]
    return _with_blocks(message, key, others) | {"tool_calls": made}


def _answering(message: dict[str, Any], key: str) -> Iterator[dict[str, Any]]:
    results = [block for block in message[key] if _is(block, "tool_result", "tool_use_id")]
    others = [block for block in message[key] if block not in results]
    if not results:
        yield message
        return
    says_more = bool(others or (key == "content_parts" and message.get("content")))
    for number, block in enumerate(results, start=1):
        result = {
            **{name: value for name, value in message.items() if name != "content_parts"},
            "role": "tool",
            "tool_call_id": block["tool_use_id"],
            "content": block.get("content") or "",
        }
        if number > 1:
            result.pop("parent_message_id", None)
        if message.get("message_id") and (says_more or number < len(results)):
            result["message_id"] = f"{message['message_id']}-{number}"
        yield result
    if says_more:
        last = _with_blocks(message, key, others)
        last.pop("parent_message_id", None)
        yield last


def _with_blocks(message: dict[str, Any], key: str, blocks: list[Any]) -> dict[str, Any]:
    return message | {key: blocks or ("" if key == "content" else None)}
