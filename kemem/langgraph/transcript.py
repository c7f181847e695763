"""An agent's messages as the service stores them, and what a context shows of them as messages.

A stored message has an id that is derived from the thread, the id of the agent's message, and its
content. A repeated append therefore stores nothing twice, and a message that was edited in the
thread, or that another attempt of the same step has written, is told apart from it.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any

from langchain_core.messages import (
    AIMessage,
    AnyMessage,
    BaseMessage,
    ToolCall,
    ToolMessage,
    convert_to_messages,
    convert_to_openai_messages,
)

CONTENT_CHARACTERS = 200_000
"""Most characters of a text, as the service takes it."""
ARGUMENT_BYTES = 60_000
"""Of one call."""
ALL_ARGUMENT_BYTES = 480_000
"""Of all calls of a message together: with its parts they fit into a request of 2 MiB."""
PART_BYTES = 1_000_000
"""Of all parts of a message together."""
MOST_PARTS = 50
MOST_CALLS = 50
PART_DEPTH, PART_KEYS = 8, 100
ID_CHARACTERS = 255
NO_RESULT = "No result was recorded."
"""Stands for the result of a call that the thread went on without: providers refuse such a call."""

_ROLES = {"human": "user", "ai": "assistant", "tool": "tool", "system": "system"}
_OURS = "lc"
_SAID_PARTS = frozenset({"text", "image_url", "file", "input_audio", "audio", "video"})
"""Of a reply. Its reasoning and a provider's own blocks stay in the thread alone."""


class Transcript:
    """The messages of a thread, each with the form in which it is stored. Forms are made once."""

    def __init__(self, session_id: str, messages: Sequence[AnyMessage]) -> None:
        self.session_id = session_id
        self.messages = messages
        self._keys = [
            _digest(session_id, message.id or f"#{place}") for place, message in enumerate(messages)
        ]
        self._places = {key: place for place, key in enumerate(self._keys)}
        self._forms: dict[int, Mapping[str, Any] | None] = {}

    def key(self, place: int) -> str:
        return self._keys[place]

    def place(self, key: str | None) -> int | None:
        """Where the message with this key stands; None if the thread has none."""
        return None if key is None else self._places.get(key)

    def place_of(self, message_id: str | None) -> int | None:
        """Where the message stands that is stored under this id."""
        return self.place(key_of(message_id))

    def twin(self, message_id: str, *, after: int) -> int | None:
        """The first place behind `after` with the content that is stored under this id."""
        if key_of(message_id) is None:
            return None
        for place in range(after + 1, len(self.messages)):
            form = self.form(place)
            if form is not None and digest_of(form["message_id"]) == digest_of(message_id):
                return place
        return None

    def form(self, place: int) -> Mapping[str, Any] | None:
        """The message as it is stored; None if it says nothing that can be."""
        if place not in self._forms:
            form = form_of(self.messages[place])
            if form is not None:
                message_id = f"{_OURS}-{self._keys[place]}-{content_digest(form)}"
                form = {"message_id": message_id, **form}
            self._forms[place] = form
        return self._forms[place]

    def storable(self, start: int) -> Iterator[Mapping[str, Any]]:
        """What is to be stored from a place on: results of calls that the thread has, each once."""
        for place in range(start, len(self.messages)):
            form = self.form(place)
            if form is not None and self._answers_a_call(place):
                yield form

    def _answers_a_call(self, place: int) -> bool:
        message = self.messages[place]
        if not isinstance(message, ToolMessage):
            return True
        for earlier in reversed(self.messages[:place]):
            if isinstance(earlier, ToolMessage) and earlier.tool_call_id == message.tool_call_id:
                return False
            if isinstance(earlier, AIMessage) and message.tool_call_id in _call_ids(earlier):
                return True
        return False


def key_of(message_id: str | None) -> str | None:
    """The part of a stored id that names the agent's message; None if others gave the id."""
    parts = (message_id or "").split("-")
    return parts[1] if len(parts) == 3 and parts[0] == _OURS else None


def digest_of(message_id: str) -> str:
    """The part of a stored id that stands for the content."""
    return message_id.rpartition("-")[2]


def content_digest(form: Mapping[str, Any]) -> str:
    said = {name: value for name, value in form.items() if name != "message_id"}
    return _digest(json.dumps(said, sort_keys=True))


def size_of(form: Mapping[str, Any]) -> int:
    """Its bytes as JSON."""
    return len(json.dumps(form, ensure_ascii=False).encode())


def form_of(message: BaseMessage) -> dict[str, Any] | None:
    """A message as an append takes it; None if there is nothing to store.

    What is too large for the service is stored in part, with a line that says so. The thread keeps
    all of it.
    """
    role = _ROLES.get(message.type)
    if role is None:
        return None
    text, parts = _content(message)
    form: dict[str, Any] = {"role": role, "content": text}
    if parts:
        form["content_parts"] = parts
    if isinstance(message, AIMessage):
        calls = _stored_calls(message)
        if calls:
            most = min(ARGUMENT_BYTES, ALL_ARGUMENT_BYTES // len(calls))
            form["tool_calls"] = [_call(call, most) for call in calls]
            form |= _with_more_named(form, message, calls)
    if isinstance(message, ToolMessage):
        form["tool_call_id"] = _call_id(message.tool_call_id)
    elif not (text or parts or form.get("tool_calls")):
        return None
    if message.name:
        form["name"] = _storable(message.name)[:255]
    if message.additional_kwargs.get("lc_source") == "summarization":
        # LangChain's summary of earlier messages: nobody said it.
        form["metadata"] = {"hidden": True}
    return form


def _content(message: BaseMessage) -> tuple[str, list[dict[str, Any]]]:
    """The text alone, or parts."""
    if isinstance(message.content, str):
        return _within(_storable(message.content), CONTENT_CHARACTERS), []
    try:
        [converted] = convert_to_openai_messages([message], text_format="string")
    except ValueError:
        # A block of a provider's own.
        return _within(_storable(message.text), CONTENT_CHARACTERS), []
    content = converted.get("content") or ""
    if isinstance(content, str):
        return _within(_storable(content), CONTENT_CHARACTERS), []
    if isinstance(message, AIMessage):
        content = [part for part in content if part.get("type") in _SAID_PARTS]
    if all(part.get("type") == "text" for part in content):
        text = "".join(part["text"] for part in content)
        return _within(_storable(text), CONTENT_CHARACTERS), []
    return "", _parts(content)


def _parts(content: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = []
    left = PART_BYTES
    for number, part in enumerate(content):
        if number == MOST_PARTS - 1 < len(content) - 1:
            more = len(content) - number
            return [*parts, {"type": "text", "text": f"[{more} more parts, not stored]"}]
        size = len(json.dumps(part))
        if part.get("type") == "text":
            most = min(CONTENT_CHARACTERS, max(left // 4, 200))
            text = _within(_storable(part["text"]), most)
            parts.append({"type": "text", "text": text})
            left -= len(text.encode())
        elif size > left or not _is_flat(part, PART_DEPTH):
            named = f"[{part.get('type')} of {size} characters, not stored]"
            parts.append({"type": "text", "text": named})
        else:
            parts.append(dict(part))
            left -= size
    return parts


def _is_flat(value: Any, levels: int) -> bool:
    """Whether it is nested by at most so many levels, and no object has too many keys."""
    if not isinstance(value, dict | list):
        return levels >= 0
    if isinstance(value, dict) and len(value) > PART_KEYS:
        return False
    inner = value.values() if isinstance(value, dict) else value
    return levels >= 0 and all(_is_flat(item, levels - 1) for item in inner)


def _stored_calls(message: AIMessage) -> list[ToolCall]:
    """The first calls, each id once: the service takes no more."""
    calls: dict[str, ToolCall] = {}
    for call in message.tool_calls:
        if call["id"]:
            calls.setdefault(_call_id(call["id"]), call)
    return list(calls.values())[:MOST_CALLS]


def _with_more_named(
    form: Mapping[str, Any], message: AIMessage, stored: Sequence[ToolCall]
) -> dict[str, Any]:
    """The content with a line that names the calls which are not stored."""
    more = [
        call
        for call in message.tool_calls
        if not any(call is stored_call for stored_call in stored)
    ]
    if not more:
        return {}
    names = ", ".join(dict.fromkeys(call["name"] for call in more))
    line = _within(_storable(f"[{len(more)} more calls, not stored: {names}]"), 1000)
    if "content_parts" in form:
        return {
            "content_parts": [*form["content_parts"], {"type": "text", "text": line}][-MOST_PARTS:]
        }
    return {"content": _within(f"{form['content']}\n{line}".strip(), CONTENT_CHARACTERS)}


def _call_id(call_id: str) -> str:
    """The id as the service takes it; a digest of one that it does not."""
    if 0 < len(call_id) <= ID_CHARACTERS and _storable(call_id) == call_id:
        return call_id
    return f"{_OURS}-{_digest(call_id)}"


def _call(call: Mapping[str, Any], most: int) -> dict[str, Any]:
    arguments = json.dumps(call["args"], ensure_ascii=False)
    if len(arguments.encode("utf-8", "replace")) > most:
        arguments = json.dumps({"cut": _within(arguments, most // 4)}, ensure_ascii=False)
    function = {"name": call["name"], "arguments": _storable(arguments)}
    return {"id": _call_id(call["id"]), "type": "function", "function": function}


def _within(text: str, characters: int) -> str:
    """`text`, or its beginning and end with a line between them."""
    if len(text) <= characters:
        return text
    kept = (characters - 100) // 2
    left_out = len(text) - 2 * kept
    return f"{text[:kept]}\n[… {left_out} characters are not stored …]\n{text[-kept:]}"


def _storable(text: str) -> str:
    """`text` without NUL and halves of characters, which no database takes."""
    if text.isascii() and "\x00" not in text:
        return text
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def shown_message(own: AnyMessage, form: Mapping[str, Any], shown: Mapping[str, Any]) -> AnyMessage:
    """The agent's own message, or a copy with what the service shows of it instead.

    The service shows less of a large result, and what a processor has made of a message.
    """
    same = all(
        (shown.get(name) or None) == (form.get(name) or None)
        for name in ("content", "content_parts", "tool_calls")
    )
    if same:
        return own
    if isinstance(own, AIMessage):
        [fresh] = messages_of([shown])
        return fresh.model_copy(update={"id": own.id, "name": own.name})
    return own.model_copy(update={"content": _shown_content(shown)})


def messages_of(shown: Iterable[Mapping[str, Any]]) -> list[AnyMessage]:
    """Messages for what a context shows beside those of the thread."""
    converted = convert_to_messages(
        [
            {
                "role": message["role"],
                "content": _shown_content(message),
                **{
                    name: message[name]
                    for name in ("tool_calls", "tool_call_id", "name")
                    if message.get(name)
                },
            }
            for message in shown
        ]
    )
    return list(converted)  # type: ignore[arg-type]  # They are of the kinds of AnyMessage.


def _shown_content(shown: Mapping[str, Any]) -> Any:
    text, parts = shown.get("content") or "", shown.get("content_parts")
    if not parts:
        return text
    return [{"type": "text", "text": text}, *parts] if text else [*parts]


def answered(messages: Sequence[AnyMessage]) -> list[AnyMessage]:
    """The messages with a result for every call, right behind it, and no result without a call."""
    # Some models number the calls of every turn anew, so results are taken in order.
    results: dict[str, list[ToolMessage]] = {}
    for message in reversed(messages):
        if isinstance(message, ToolMessage):
            results.setdefault(message.tool_call_id, []).append(message)
    valid: list[AnyMessage] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            continue
        valid.append(message)
        if isinstance(message, AIMessage):
            valid += (_result(call, results) for call in message.tool_calls)
    return valid


def _result(call: ToolCall, results: Mapping[str, list[ToolMessage]]) -> ToolMessage:
    call_id = call["id"] or ""
    if results.get(call_id):
        return results[call_id].pop()
    return ToolMessage(NO_RESULT, tool_call_id=call_id, name=call["name"])


def _call_ids(message: AIMessage) -> set[str | None]:
    return {call["id"] for call in _stored_calls(message)}


def _digest(*texts: str) -> str:
    digest = blake2b(digest_size=12)
    for text in texts:
        digest.update(text.encode("utf-8", "replace"))
        digest.update(b"\x00")
    return digest.hexdigest()
