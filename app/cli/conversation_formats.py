"""Conversations out of records: lines of JSONL, lists of messages as OpenAI's API takes them, and
the exports of ChatGPT and Claude.

A conversation with anything that the service would refuse is left out as a whole.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from app.cli.conversation_messages import (
    FileConversation,
    FileMessage,
    Times,
    child,
    digest,
    file_parts,
    objects,
    parts_of,
    role_of,
    said,
    text_of,
)
from app.cli.conversation_records import Record, UnreadableError
from app.conversation.messages.capture import CLOCKS_APART
from app.platform.values.fields import ID_PATTERN, composed


@dataclass(frozen=True, slots=True)
class FilesRead:
    """What files hold.

    Args:
        conversations: the oldest first, those without a time last.
        unreadable: what is left out as a whole, with place and reason.
        left_out: messages that are not imported, counted by why.

    """

    conversations: list[FileConversation]
    unreadable: list[str]
    left_out: Counter[str]


def read_conversations(
    records: Iterable[Record], *, user_id: str | None, times: Times
) -> FilesRead:
    """Sort records into conversations, and check them.

    Args:
        user_id: whose they are of which no part says so.

    """
    found: dict[str, FileConversation] = {}
    barred: set[str] = set()
    unreadable = []
    for record in records:
        try:
            _put(found, _conversation(record, times))
        except UnreadableError as error:
            unreadable.append(str(error))
            if "session_id" in record.fields:
                barred.add(composed(str(record.fields["session_id"])))
    whole = []
    left_out: Counter[str] = Counter()
    for session_id, conversation in found.items():
        conversation.user_id = conversation.user_id or user_id
        conversation.put_in_order()
        try:
            conversation.to_append()
        except UnreadableError as error:
            unreadable.append(str(error))
            continue
        if session_id not in barred:
            left_out += conversation.left_out
            whole += [conversation] if conversation.messages else []
    whole.sort(key=lambda conversation: min(conversation.times, default=times.now + CLOCKS_APART))
    return FilesRead(whole, unreadable, left_out)


def _put(found: dict[str, FileConversation], conversation: FileConversation) -> None:
    """Raises UnreadableError."""
    before = found.setdefault(conversation.session_id, conversation)
    if before is conversation:
        return
    before.user_id = before.user_id or conversation.user_id
    if conversation.user_id not in {None, before.user_id}:
        raise UnreadableError(
            conversation.place, f"the session is another user's in {before.place}"
        )
    if before.by_line and conversation.by_line:
        before.messages += conversation.messages
        before.left_out += conversation.left_out
    elif before.messages != conversation.messages:
        raise UnreadableError(
            conversation.place, f"the session says something else in {before.place}"
        )


def _conversation(record: Record, times: Times) -> FileConversation:
    """Raises UnreadableError."""
    fields, place = record.fields, record.place
    if "mapping" in fields:
        return _of_chatgpt(record, times)
    if "chat_messages" in fields:
        return _of_claude(record, times)
    if "messages" in fields:
        return _of_list(record, times)
    if "role" not in fields:
        raise UnreadableError(place, "it has none of role, messages, mapping, chat_messages")
    session_id = text_of(fields, "session_id", place)
    if session_id is None:
        raise UnreadableError(place, "session_id is missing")
    conversation = FileConversation(
        session_id, place, text_of(fields, "user_id", place), by_line=True
    )
    _add(conversation, fields, place, times.read(fields, "client_time", place))
    return conversation


def _of_list(record: Record, times: Times) -> FileConversation:
    """A list of messages. Without an id it is named by what was said."""
    fields, place = record.fields, record.place
    session_id, user_id = (text_of(fields, name, place) for name in ("session_id", "user_id"))
    conversation = FileConversation(session_id or "", place, user_id)
    conversation.start = times.read(fields, "client_time", place)
    for number, message in enumerate(objects(fields, "messages", place), 1):
        at = f"{place}, message {number}"
        _add(conversation, message, at, times.read(message, "client_time", at))
    if session_id is None:
        moments = [message.said_at or conversation.start for message in conversation.messages]
        lines = [
            f"{message.role} {time and time.astimezone(UTC)} {message.content}"
            for message, time in zip(conversation.messages, moments, strict=True)
        ]
        conversation.session_id = f"imported-{digest(chr(0).join([user_id or '', *lines]))}"
    return conversation


def _add(
    conversation: FileConversation, message: Mapping[str, Any], place: str, said_at: datetime | None
) -> None:
    """Add what a message says, without its calls of tools. Raises UnreadableError."""
    role, content = role_of(message, "role", place), message.get("content")
    if content is not None and not isinstance(content, str | list):
        raise UnreadableError(place, "content is neither a text nor a list of parts")
    name, message_id = (text_of(message, field, place) for field in ("name", "message_id"))
    text, parts = said(content), parts_of(content)
    if role == "tool" or (message.get("tool_calls") and not text):
        conversation.left_out["tools"] += 1
    elif not text and not parts:
        conversation.left_out["no text"] += 1
    else:
        conversation.messages.append(
            FileMessage(role, text, said_at, None, name, message_id, parts, place)
        )


def _of_chatgpt(record: Record, times: Times) -> FileConversation:
    """The branch that is shown, of a tree of messages."""
    fields, place = record.fields, record.place
    given = fields.get("conversation_id") or fields.get("id")
    conversation = FileConversation(_own_id("chatgpt", given, place), place)
    tree = child(fields, "mapping", place)
    nodes = {name: child(tree, name, place) for name in tree}
    leaf = fields.get("current_node")
    branch = _branch(nodes, leaf if str(leaf) in nodes else next(reversed(nodes), None), "parent")
    start = times.read(fields, "create_time", place)
    said_in = [sum(1 for node in part if node.get("message")) for part in (nodes.values(), branch)]
    conversation.left_out["another branch"] = said_in[0] - said_in[1]
    for message in (child(node, "message", place) for node in branch):
        at = f"{place}, message {message.get('id')}"
        content, metadata = child(message, "content", at), child(message, "metadata", at)
        if not message:
            continue
        role, given = role_of(child(message, "author", at), "role", at), content.get("parts")
        text, parts = said(given), parts_of(given)
        if role == "system" or metadata.get("is_visually_hidden_from_conversation"):
            conversation.left_out["hidden"] += 1
        elif role == "tool" or (message.get("recipient") or "all") != "all":
            conversation.left_out["tools"] += 1
        elif content.get("content_type") not in {"text", "multimodal_text"} or not (text or parts):
            conversation.left_out["no text"] += 1
        else:
            said_at = times.read(message, "create_time", at) or start
            conversation.messages.append(
                FileMessage(role, text, said_at, str(message.get("id")), parts=parts, place=at)
            )
    return conversation


def _of_claude(record: Record, times: Times) -> FileConversation:
    """The branch that is shown where messages name the one before them, else all of them."""
    fields, place = record.fields, record.place
    conversation = FileConversation(_own_id("claude", fields.get("uuid"), place), place)
    given = objects(fields, "chat_messages", place)
    branch: Sequence[Mapping[str, Any]] = given
    if given and all(message.get("parent_message_uuid") for message in given):
        nodes = {message.get("uuid"): message for message in given}
        leaf = fields.get("current_leaf_message_uuid")
        branch = _branch(
            nodes, leaf if str(leaf) in nodes else given[-1].get("uuid"), "parent_message_uuid"
        )
    conversation.left_out["another branch"] = len(given) - len(branch)
    for message in branch:
        at = f"{place}, message {message.get('uuid')}"
        role = role_of(message, "sender", at)
        text = said(message.get("content")) or said(message.get("text"))
        files = file_parts(message)
        if not text and not files:
            conversation.left_out["no text"] += 1
            continue
        parts = [{"type": "text", "text": text}, *files] if text and files else files or None
        said_at = times.read(message, "created_at", at)
        conversation.messages.append(
            FileMessage(role, text, said_at, str(message.get("uuid")), parts=parts, place=at)
        )
    return conversation


def _branch(nodes: Mapping[Any, Any], leaf: Any, parent: str) -> list[Mapping[str, Any]]:
    """From the root to `leaf`."""
    branch: dict[Any, Mapping[str, Any]] = {}
    while isinstance(leaf, str) and leaf in nodes and leaf not in branch:
        branch[leaf] = nodes[leaf]
        leaf = nodes[leaf].get(parent)
    return list(reversed(branch.values()))


def _own_id(source: str, given: Any, place: str) -> str:
    """The id of a session, made of the one in the export. Raises UnreadableError."""
    if not isinstance(given, str) or not given:
        raise UnreadableError(place, "the conversation has no id")
    whole = f"{source}-{given}"
    return whole if re.match(ID_PATTERN, whole) else f"{source}-{digest(given)}"
