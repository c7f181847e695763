"""Messages as processors see them before they are stored, and what may come back.

Only new messages are shown: one that is stored already is answered as it is.
"""

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from app.conversation.messages.capture import said_text
from app.conversation.messages.schemas import MessageAppend, MessageCreate
from app.identity.agents.config import Processing
from app.identity.tenants.access import Principal
from app.language.llm.content_parts import read_part
from app.platform.database.engine import Database
from app.platform.plugins.points import BEFORE_APPEND, About, AppendedMessage, BeforeAppend

_KNOWN = """
SELECT messages.message_id FROM messages
WHERE messages.tenant_id = tenant.id AND messages.message_id = ANY(CAST($2 AS text[]))
"""


@dataclass(frozen=True, slots=True)
class Processed:
    """A batch as processors left it.

    Args:
        given: by place in `messages`, what the request said of those that were changed.
        dropped: how many are not to be stored.

    """

    messages: list[MessageCreate]
    given: Mapping[int, MessageCreate] = field(default_factory=dict)
    dropped: int = 0


async def processed(
    processing: Processing,
    database: Database,
    principal: Principal,
    session_id: str,
    body: MessageAppend,
) -> Processed:
    """The batch of a request, after its processors.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    chain = await processing.of_session(
        principal, session_id, agent_id=body.agent_id, user_id=body.user_id
    )
    if not chain.at(BEFORE_APPEND):
        return Processed(body.messages)
    ids = [message.message_id for message in body.messages if message.message_id is not None]
    known: set[str] = set()
    if ids:
        rows = await database.fetch(principal.tenant_id, _KNOWN, ids)
        known = {row["message_id"] for row in rows}
    about = About(
        principal.tenant_id,
        body.user_id or principal.access.user_id,
        body.agent_id or principal.access.agent_id,
        session_id,
    )
    shown = _shown(body.messages, known)
    given = {item.id: body.messages[int(item.id)] for item in shown}

    def checked(item: AppendedMessage) -> AppendedMessage:
        # A new object, so that no processor holds a reference to what is stored.
        valid = _message(given[item.id], item)
        return AppendedMessage(
            item.id, item.role, _text(valid), item.name, valid.metadata, bound=item.bound
        )

    after = await chain.ask(BeforeAppend(about, shown), checked) if shown else None
    return Processed(body.messages) if after is None else _taken(body.messages, shown, after)


def _shown(
    messages: Sequence[MessageCreate], known: Collection[str]
) -> tuple[AppendedMessage, ...]:
    parents = {message.parent_message_id for message in messages} - {None}
    return tuple(
        AppendedMessage(
            str(place),
            message.role,
            _text(message),
            message.name,
            message.metadata,
            bound=bool(message.tool_calls or message.tool_call_id or message.message_id in parents),
        )
        for place, message in enumerate(messages)
        if message.message_id not in known
    )


def _taken(
    messages: Sequence[MessageCreate], shown: Sequence[AppendedMessage], after: BeforeAppend
) -> Processed:
    before = {item.id: item for item in shown}
    left = {item.id: item for item in after.messages}
    kept: list[MessageCreate] = []
    given: dict[int, MessageCreate] = {}
    for place, message in enumerate(messages):
        item = left.get(str(place))
        if item is None:
            if str(place) not in before:
                kept.append(message)
        elif item == before[str(place)]:
            kept.append(message)
        else:
            given[len(kept)] = message
            kept.append(_message(message, item))
    return Processed(kept, given, len(messages) - len(kept))


def _message(message: MessageCreate, item: AppendedMessage) -> MessageCreate:
    """The message with what a processor made of it, by the rules of requests."""
    given = message.model_dump(exclude_unset=True) | {"metadata": dict(item.metadata)}
    if item.content != _text(message):
        # All of its text: what it was must not stay among the parts.
        others = [part for part in message.content_parts or () if not read_part(part).is_said]
        given |= {"content": item.content, "content_parts": others or None}
    return MessageCreate.model_validate(given)


def _text(message: MessageCreate) -> str:
    """What it says, in its parts too."""
    return said_text(message.content, message.content_parts)


def input_hash(columns: Mapping[str, Any]) -> bytes:
    """What a message is recognised by when it is sent again, though it was stored otherwise."""
    sent = {name: value for name, value in columns.items() if name != "parent_message_id"}
    text = json.dumps(sent, sort_keys=True, ensure_ascii=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).digest()
