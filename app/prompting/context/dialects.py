"""A conversation as a provider's API takes it, from calls as a client appended them. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from app.conversation.messages.message_forms import Spoken
from app.conversation.messages.window import SPEAKERS
from app.language.llm.content_parts import text_with_placeholders
from app.language.llm.tokens import TokenCounter, message_tokens
from app.language.llm.tool_call import ClientToolCall
from app.language.text.prompt_text import escape_line
from app.prompting.context.part_dialects import anthropic_parts, openai_parts

NO_RESULT: Final = "No result was recorded."
"""Replaces the result of a call that the conversation went on without: providers refuse a call
without a result."""


def inserted_tokens(counter: TokenCounter) -> int:
    """What `NO_RESULT` takes, each time."""
    return message_tokens(counter, content=NO_RESULT)


def for_openai(system: str, messages: Sequence[Spoken]) -> list[dict[str, Any]]:
    """Messages of the Chat Completions API, the system section first when there is one."""
    shown: list[dict[str, Any]] = [{"role": "system", "content": system}] if system else []
    shown += [
        {"role": message.role, "content": message.content}
        # Nearly every message.
        if not (message.content_parts or message.tool_calls)
        and message.name is None
        and message.tool_call_id is None
        else _openai(message)
        for message in answered(messages)
    ]
    return shown


def _openai(message: Spoken) -> dict[str, Any]:
    shown: dict[str, Any] = {"role": message.role, "content": message.content}
    if message.content_parts:
        parts = openai_parts(_parts(message), message.role, message.message_id)
        shown["content"] = _with_text(message, parts)
    if message.name is not None and message.role != "tool":
        shown["name"] = message.name
    if message.tool_calls:
        shown["content"] = shown["content"] or None
        shown["tool_calls"] = [
            {
                "id": call.call_id,
                "type": "function",
                "function": {"name": call.name, "arguments": call.text},
            }
            for call in map(ClientToolCall.of, message.tool_calls)
        ]
    if message.tool_call_id is not None:
        shown["tool_call_id"] = message.tool_call_id
    return shown


def _parts(message: Spoken) -> list[Mapping[str, Any]]:
    """Its parts, without the calls that stand among them too."""
    calls = {call.call_id for call in map(ClientToolCall.of, message.tool_calls or ())}
    return [
        part
        for part in message.content_parts or ()
        if part.get("type") != "tool_use" or part.get("id") not in calls
    ]


def _with_text(message: Spoken, parts: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The parts, with the content before them unless a part has the same text."""
    said = [part.get("text") for part in parts if part.get("type") == "text"]
    if not message.content or message.content in said or message.content == "".join(map(str, said)):
        return parts
    return [{"type": "text", "text": message.content}, *parts]


def for_anthropic(system: str, messages: Sequence[Spoken]) -> tuple[str, list[dict[str, Any]]]:
    """The system section and the messages of the Messages API, whose roles alternate.

    That API has no system messages: what the conversation has of them ends the system section,
    in order.
    """
    notices = [
        text_with_placeholders(message.content, message.content_parts, message.message_id)
        for message in messages
        if message.role == "system"
    ]
    turns: list[dict[str, Any]] = []
    for message in answered([message for message in messages if message.role != "system"]):
        role = "assistant" if message.role == "assistant" else "user"
        blocks = _anthropic(message)
        if turns and turns[-1]["role"] == role:
            turns[-1]["content"] += blocks
        else:
            turns.append({"role": role, "content": blocks})
    return "\n\n".join(filter(None, [system, *notices])), turns


def _anthropic(message: Spoken) -> list[dict[str, Any]]:
    parts = anthropic_parts(_parts(message), message.role, message.message_id)
    blocks = _with_text(message, parts) if message.content else parts
    # A text without a letter is refused.
    blocks = [block for block in blocks if block.get("type") != "text" or block["text"].strip()]
    if message.role == "tool":
        result: dict[str, Any] = {"type": "tool_result", "tool_use_id": message.tool_call_id}
        return [result | ({"content": blocks} if blocks else {})]
    for call in map(ClientToolCall.of, message.tool_calls or ()):
        blocks.append(
            {"type": "tool_use", "id": call.call_id, "name": call.name, "input": call.document}
        )
    where = f", message {message.message_id}" if message.message_id else ""
    return blocks or [{"type": "text", "text": f"[empty message{where}]"}]


def as_plain(system: str, messages: Sequence[Spoken]) -> str:
    """One text: the system section, then the conversation, one line per message and call.

    A line begins with its speaker, and no content can begin a line.
    """
    lines = [line for message in messages for line in _plain(message)]
    talk = "\n".join(("<conversation>", *lines, "</conversation>")) if lines else ""
    return "\n\n".join(filter(None, [system, talk]))


def _plain(message: Spoken) -> Iterable[str]:
    said = text_with_placeholders(message.content, _parts(message), message.message_id)
    named = f" ({escape_line(message.name)})" if message.name else ""
    if said:
        yield f"{message.role}{named}: {escape_line(said)}"
    for call in map(ClientToolCall.of, message.tool_calls or ()):
        yield f"{message.role} calls {escape_line(call.name)}: {escape_line(call.text)}"


def as_parts(messages: Sequence[Spoken]) -> list[dict[str, Any]]:
    """Messages as they were appended, with their ids."""
    return [
        {
            "message_id": message.message_id,
            "sequence_no": message.sequence_no,
            "role": message.role,
            "content": message.content,
            "content_parts": message.content_parts,
            "tool_calls": message.tool_calls,
            "tool_call_id": message.tool_call_id,
            "name": message.name,
        }
        for message in messages
    ]


def answered(messages: Sequence[Spoken]) -> list[Spoken]:
    """The messages with every result right behind its call, as providers want them.

    What was said between a call and its result comes after it. A call that the conversation
    went on without gets `NO_RESULT`; one that is still waited for, behind which nobody spoke,
    stays open: a decision about it may come. A result without its call is left out.
    """
    if not [message for message in messages if message.tool_calls or message.role == "tool"]:
        return list(messages)
    # Some number the calls of every turn anew, so results are taken in order.
    waiting: dict[str, list[Spoken]] = {}
    for message in reversed(messages):
        if message.role == "tool" and message.tool_call_id is not None:
            waiting.setdefault(message.tool_call_id, []).append(message)
    last = max(
        (position for position, message in enumerate(messages) if message.role in SPEAKERS),
        default=-1,
    )
    shown: list[Spoken] = []
    for position, message in enumerate(messages):
        if message.role == "tool":
            continue
        shown.append(message)
        for call in map(ClientToolCall.of, message.tool_calls or ()):
            results = waiting.get(call.call_id)
            if results:
                shown.append(results.pop())
            elif position < last:
                shown.append(Spoken("tool", NO_RESULT, tool_call_id=call.call_id))
    return shown
