"""Items of OpenAI's Responses API as stored messages, and back, each as it came.

A message, a function call and its output are stored as such, so that KeMem reads, searches and
summarises them. Any other item, such as reasoning, is stored as a hidden part in JSON.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

MARK = "openai_item"
"""Key in the metadata of a message: in which form it is stored, and the item's further fields."""

CONTENT_CHARACTERS = 200_000
ARGUMENT_CHARACTERS = 60_000
FURTHER_CHARACTERS = 8_000
MOST_PARTS = 50

_ROLES = {"user": "user", "assistant": "assistant", "system": "system", "developer": "system"}

Item = Mapping[str, Any]


def message_of(item: Item) -> dict[str, Any]:
    """An item as an append takes it."""
    kind = item.get("type") or "message"
    if kind == "message" and item.get("role") in _ROLES and "content" in item:
        form = _form("message", item, "content", item["content"])
        form["role"] = _ROLES[item["role"]]
    elif kind == "function_call" and item.keys() >= {"call_id", "name", "arguments"}:
        form = _call(item)
    elif kind == "function_call_output" and item.keys() >= {"call_id", "output"}:
        form = _form("output", item, "output", item["output"])
        form |= {"role": "tool", "tool_call_id": item["call_id"]}
        del form["metadata"][MARK]["further"]["call_id"]
    else:
        return as_part(item)
    return form if _is_storable(form) else as_part(item)


def as_part(item: Item) -> dict[str, Any]:
    """An item in JSON, which any item fits in. What somebody said is the message's text too."""
    role = _ROLES.get(item.get("role", ""), "assistant")
    text = _clean(_text(item.get("content")))[:CONTENT_CHARACTERS]
    hidden = {} if text else {"hidden": True}
    part = {"type": item.get("type") or "message", "json": json.dumps(item)}
    return {
        "role": role,
        "content": text,
        "content_parts": [part],
        "metadata": {MARK: {"form": "part"}, **hidden},
    }


def items_of(message: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The item that is stored as a message; for a message of others, what it says, as items."""
    mark = message["metadata"].get(MARK)
    if mark is None:
        return list(_items_of_others(message))
    further = mark.get("further", {})
    if mark["form"] == "part":
        item: dict[str, Any] = json.loads(message["content_parts"][-1]["json"])
        return [item]
    if mark["form"] == "call":
        [call] = message["tool_calls"]
        return [{**further, "call_id": call["id"], **call["function"]}]
    content = message["content_parts"] or message["content"]
    if mark.get("is_text") and message["content_parts"]:
        content = message["content_parts"][0]["text"]
    if mark["form"] == "output":
        return [{**further, "call_id": message["tool_call_id"], "output": content}]
    return [{**further, "content": content}]


def call_ids(message: Mapping[str, Any]) -> list[str]:
    """The ids of the calls that a message makes."""
    return [call["id"] for call in message["tool_calls"] or ()]


def _form(form: str, item: Item, name: str, content: Any) -> dict[str, Any]:
    further = {key: value for key, value in item.items() if key != name}
    mark: dict[str, Any] = {"form": form, "further": further}
    if isinstance(content, str):
        mark["is_text"] = True
        if 0 < len(content) <= CONTENT_CHARACTERS or (not content and form == "output"):
            return {"content": content, "metadata": {MARK: mark}}
        content = [{"type": "text", "text": content}]
    return {"content_parts": content, "metadata": {MARK: mark}}


def _call(item: Item) -> dict[str, Any]:
    named = ("call_id", "name", "arguments")
    further = {key: value for key, value in item.items() if key not in named}
    function = {"name": item["name"], "arguments": item["arguments"]}
    call = {"id": item["call_id"], "type": "function", "function": function}
    mark = {"form": "call", "further": further}
    return {"role": "assistant", "tool_calls": [call], "metadata": {MARK: mark}}


def _is_storable(form: Mapping[str, Any]) -> bool:
    """Whether the service takes the form, and gives it back as it is."""
    parts = form.get("content_parts")
    if parts is not None and not (
        isinstance(parts, list)
        and 0 < len(parts) <= MOST_PARTS
        and all(isinstance(part, dict) for part in parts)
    ):
        return False
    further = json.dumps(form["metadata"])
    calls = json.dumps(form.get("tool_calls"))
    if len(further) > FURTHER_CHARACTERS or len(calls) > ARGUMENT_CHARACTERS:
        return False
    try:
        # NUL and halves of characters can only be stored within JSON, where they are escaped.
        text = json.dumps(form, ensure_ascii=False).encode().decode()
    except UnicodeEncodeError:
        return False
    return "\\u0000" not in text


def _items_of_others(message: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    content = message["content_parts"] or message["content"]
    if message["role"] == "tool":
        call_id = message["tool_call_id"]
        output = message["content"]
        yield {"type": "function_call_output", "call_id": call_id, "output": output}
        return
    if content:
        yield {"role": message["role"], "content": content}
    for call in message["tool_calls"] or ():
        function = call.get("function") or call
        yield {
            "type": "function_call",
            "call_id": call["id"],
            "name": function.get("name", ""),
            "arguments": function.get("arguments", "{}"),
        }


def _text(content: Any) -> str:
    if isinstance(content, str):
        return content
    parts: Sequence[Any] = content if isinstance(content, list) else ()
    return "\n".join(
        str(part["text"]) for part in parts if isinstance(part, dict) and "text" in part
    )


def _clean(text: str) -> str:
    return text.replace("\x00", "").encode("utf-8", "replace").decode()
