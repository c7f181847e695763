"""Conversations of files as they will be appended, and the values of their messages.

Every message gets an id that is the same each time it is read, so that an import can be repeated.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, tzinfo
from hashlib import sha256
from typing import Any, Final

from pydantic import TypeAdapter, ValidationError

from app.cli.conversation_records import UnreadableError
from app.conversation.messages.capture import CLOCKS_APART, FIRST_YEAR
from app.conversation.messages.schemas import MessageCreate
from app.language.llm.content_parts import read_part
from app.platform.values.fields import OwnId, composed

ROLES: Final = {
    "user": "user", "human": "user", "assistant": "assistant", "system": "system",
    "developer": "system", "tool": "tool", "function": "tool",
}  # fmt: skip
TEXTS: Final = {"text", "input_text", "output_text", "audio_transcription"}
"""Types of parts whose text somebody said."""

_ID: Final[TypeAdapter[str]] = TypeAdapter(OwnId)


@dataclass(frozen=True, slots=True)
class Times:
    """Reads the times of a file.

    Args:
        now: nothing was said later.
        zone: where the users were, for times in UTC and times without a zone: the day that
            "yesterday" names depends on it. Without it a time without a zone is refused.

    """

    now: datetime
    zone: tzinfo | None = None

    def read(self, fields: Mapping[str, Any], name: str, place: str) -> datetime | None:
        """A time with its zone: ISO 8601, or seconds since 1970. Raises UnreadableError."""
        value = fields.get(name)
        if value is None:
            return None
        try:
            if isinstance(value, bool):
                raise TypeError
            if isinstance(value, str):
                time = datetime.fromisoformat(value.strip())
                if time.tzinfo is None:
                    if self.zone is None:
                        raise UnreadableError(place, f"{name} has no zone, such as Z or +02:00")
                    time = time.replace(tzinfo=self.zone)
            else:
                time = datetime.fromtimestamp(value, UTC)
            if self.zone is not None and not time.utcoffset():
                time = time.astimezone(self.zone)
            year = time.astimezone(UTC).year
        except (ValueError, TypeError, OverflowError, OSError) as error:
            raise UnreadableError(
                place, f"{name} is no time: ISO 8601, or seconds since 1970"
            ) from error
        if year < FIRST_YEAR or time > self.now + CLOCKS_APART:
            raise UnreadableError(place, f"{name} is before {FIRST_YEAR} or in the future")
        return time


@dataclass(frozen=True, slots=True)
class FileMessage:
    """A message of a file.

    Args:
        content: its text.
        parts: all of it, where it has more than text.
        key: what the file calls it.
        message_id: the id that it is to have, where the file says so.

    """

    role: str
    content: str
    said_at: datetime | None
    key: str | None = None
    name: str | None = None
    message_id: str | None = None
    parts: Sequence[dict[str, Any]] | None = None
    place: str = field(default="", compare=False)


@dataclass(slots=True)
class FileConversation:
    """A conversation of a file.

    Args:
        left_out: messages that are not imported, counted by why.
        start: when it began, for messages that do not say when they were said.
        by_line: each of its messages is a record of its own, in any order.

    """

    session_id: str
    place: str
    user_id: str | None = None
    messages: list[FileMessage] = field(default_factory=list)
    left_out: Counter[str] = field(default_factory=Counter)
    start: datetime | None = None
    by_line: bool = False

    def __post_init__(self) -> None:
        """Ids in two forms are one, as in the service."""
        self.session_id = composed(self.session_id)
        self.user_id = self.user_id and composed(self.user_id)

    @property
    def times(self) -> list[datetime]:
        """When its messages were said, as far as the file says."""
        return [message.said_at for message in self.messages if message.said_at is not None]

    def put_in_order(self) -> None:
        """Sort messages that were lines, and give each a key and a time.

        One without a time gets that of the message before it, else of the conversation. A key is
        made of what the file says of the message alone, so that others before it do not change it.
        """
        if self.by_line and len(self.times) == len(self.messages):
            self.messages.sort(
                key=lambda message: message.said_at or datetime.max.replace(tzinfo=UTC)
            )
        last = self.start
        equals: Counter[str] = Counter()
        for number, message in enumerate(self.messages):
            last = message.said_at or last
            key = message.key
            if key is None:
                time = message.said_at and message.said_at.astimezone(UTC)
                key = f"{time}\0{message.role}\0{message.name}\0{message.content}"
                equals[key] += 1
                key += f"\0{equals[key]}"
            self.messages[number] = replace(message, key=key, said_at=last)

    def to_append(self) -> list[dict[str, Any]]:
        """Its messages as the service takes them.

        Raises:
            UnreadableError: the service would refuse one.

        """
        check(_ID.validate_python, self.session_id, f"{self.place}, session_id")
        if self.user_id is not None:
            check(_ID.validate_python, self.user_id, f"{self.place}, user_id")
        sent: dict[str, dict[str, Any]] = {}
        for spoken in self.messages:
            key = digest(f"{self.session_id}\0{spoken.key}")
            message = {
                "message_id": spoken.message_id or f"imported-{key}",
                "role": spoken.role,
                "content": spoken.parts or spoken.content,
                "name": spoken.name,
                "metadata": {"client_time": spoken.said_at.isoformat()} if spoken.said_at else {},
            }
            check(MessageCreate.model_validate, message, spoken.place)
            if message["message_id"] in sent:
                raise UnreadableError(spoken.place, "its message_id is there twice")
            sent[str(message["message_id"])] = message
        return list(sent.values())


def said(content: Any) -> str:
    """The text of a content, which may be a list with other things between."""
    texts = []
    for piece in content if isinstance(content, list) else [content]:
        kind, text = "text", piece
        if isinstance(piece, dict):
            kind = piece.get("type") or piece.get("content_type") or "text"
            text = piece.get("text")
        if isinstance(text, str) and str(kind) in TEXTS and text.strip():
            texts.append(text)
    return _storable("\n".join(texts))


def parts_of(content: Any) -> list[dict[str, Any]] | None:
    """The parts of a content that has more than text, in order; None where it has not.

    Exports of ChatGPT name a type of their own and say where the data are.
    """
    found = [_part(part) for part in content] if isinstance(content, list) else []
    shown = [part for part in found if not read_part(part).is_for_model]
    return shown if any(not read_part(part).is_said for part in shown) else None


def file_parts(fields: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The files that an export of Claude names beside a message."""
    named = [*(fields.get("attachments") or ()), *(fields.get("files") or ())]
    names = (file.get("file_name") for file in named if isinstance(file, dict))
    return [
        {"type": "file", "filename": _storable(name)} for name in names if isinstance(name, str)
    ]


def _part(part: Any) -> dict[str, Any]:
    if not isinstance(part, dict):
        return {"type": "text", "text": _storable(part if isinstance(part, str) else "")}
    kind = part.get("type") or part.get("content_type") or "text"
    if kind in TEXTS:
        return {"type": "text", "text": _storable(str(part.get("text") or ""))}
    if "type" in part or not _is_text(part.get("asset_pointer")):
        return part
    kind = next((known for known in ("image", "audio") if known in kind), kind)
    return {"type": kind, "file_id": part["asset_pointer"]}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _storable(text: str) -> str:
    """PostgreSQL keeps neither half a surrogate pair nor NUL."""
    return text.encode(errors="replace").decode().replace("\0", "")


def role_of(fields: Mapping[str, Any], name: str, place: str) -> str:
    """Raises UnreadableError."""
    given = fields.get(name)
    role = ROLES.get(given) if isinstance(given, str) else None
    if role is None:
        raise UnreadableError(place, f"{name} is none of {', '.join(ROLES)}")
    return role


def objects(fields: Mapping[str, Any], name: str, place: str) -> list[dict[str, Any]]:
    """Raises UnreadableError."""
    value = fields[name]
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise UnreadableError(place, f"{name} is no list of objects")
    return value


def child(fields: Mapping[str, Any], name: str, place: str) -> dict[str, Any]:
    """An object, empty where there is none. Raises UnreadableError."""
    value = fields.get(name)
    if value is not None and not isinstance(value, dict):
        raise UnreadableError(place, f"{name} is no object")
    return value or {}


def text_of(fields: Mapping[str, Any], name: str, place: str) -> str | None:
    """A text; a number counts as one. Raises UnreadableError."""
    value = fields.get(name)
    if value is not None and (isinstance(value, bool) or not isinstance(value, str | int)):
        raise UnreadableError(place, f"{name} is no text")
    return None if value is None else str(value)


def digest(text: str) -> str:
    """32 hexadecimal digits."""
    return sha256(text.encode(errors="replace")).hexdigest()[:32]


def check(validate: Any, value: Any, place: str) -> None:
    """Refuse what the service would refuse, without quoting it. Raises UnreadableError."""
    try:
        validate(value)
    except ValidationError as error:
        [fault, *_] = error.errors(include_input=False, include_url=False)
        where = " ".join(str(part) for part in fault["loc"])
        reason = fault["msg"].removeprefix("Value error, ")
        raise UnreadableError(place, f"{where} {reason}".strip()) from error
