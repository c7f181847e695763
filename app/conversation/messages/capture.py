"""What of a conversation may become memory: the filter from messages to turns. Pure.

Said by the user, or by the assistant as a final reply; not by tools, systems or middleware. Content
that was put before the model by others is returned separately, because a proposal that repeats it
is not new.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any, Final, Literal

from app.language.llm.content_parts import BASE64, placeholders, read_part, without_data_urls
from app.language.text.pieces import parts_within
from app.language.text.signals import confirms, find_signals
from app.language.text.traits import is_trivial
from app.language.text.uploads import strip_blocks
from app.platform.values.fields import in_utc

Unread = Literal["no_user_message", "trivial", "tool_traffic", "hidden", "upload_only"]
"""Why nothing in messages is worth reading; a promise to clients."""

Skipped = Literal["tool_traffic", "system", "hidden", "upload_only", "blank"]

READ_LENGTH: Final[Mapping[str, int]] = {"user": 40_000, "assistant": 1_000}
"""Code points of a message that are read, by its role: what a user says is read whole, unless it is
a book; of a reply the drift is enough to understand the user."""

SIGNAL_LENGTH: Final = 1_000
"""Code points of a message that are searched for signals, which only hint at what to look for."""

HIDDEN_FLAGS: Final = ("hidden", "hide_from_ui", "injected", "is_injected")
"""Metadata by which a client or middleware marks a message that no participant said."""

CLIENT_TIME: Final = "client_time"
"""Key of the metadata that may say when a message was said."""

FIRST_YEAR: Final = 1900
CLOCKS_APART: Final = timedelta(days=1)
"""A message was said in `FIRST_YEAR` or later, and not so long after it was appended."""


@dataclass(frozen=True, slots=True)
class Said:
    """A message, stored or about to be, as far as capture looks at it."""

    message_id: str
    role: str
    content: Any
    content_parts: Sequence[Any] | None
    tool_calls: Sequence[Any] | None
    metadata: Mapping[str, Any]
    name: str | None
    sequence_no: int
    create_time: datetime


@dataclass(frozen=True, slots=True)
class CapturedTurn:
    """What was said in a message: without blocks, trimmed, as far as it is read."""

    message_id: str
    role: Literal["user", "assistant"]
    text: str
    name: str | None
    said_at: datetime
    sequence_no: int
    parts: tuple[str, ...] = ()
    """Placeholders of what was sent with it."""


@dataclass(frozen=True, slots=True)
class CapturedMessages:
    """Messages after the filter.

    Args:
        turns: in the order of the messages.
        said_back: system texts, hidden texts and stripped blocks, whole and each once.
        skipped: how many messages made no turn, by reason.
        cut: ids of messages of users that are longer than what is read of them.

    """

    turns: list[CapturedTurn]
    said_back: list[str]
    skipped: dict[Skipped, int]
    cut: list[str]


def readable(messages: Sequence[Said], tags: Collection[str]) -> CapturedMessages:
    """Read messages in their order; blocks of `tags` are taken out before anything looks.

    A message that was only an upload takes the assistant's next reply with it, though tools may
    have been called in between: the reply is about a file that will be gone. So the
    messages before a reply should be among those read.
    """
    turns: list[CapturedTurn] = []
    said_back: dict[str, None] = {}
    skipped: Counter[Skipped] = Counter()
    cut: list[str] = []
    upload_before = False
    for message in messages:
        reason = _barred(message)
        text = (
            ""
            if reason == "tool_traffic"
            else readable_text(message.content, message.content_parts)
        )
        if reason is not None:
            skipped[reason] += 1
            said_back |= dict.fromkeys([text] if text.strip() else [])
            continue
        stripped = strip_blocks(text, tags)
        said_back |= dict.fromkeys(stripped.blocks)
        only_upload = not stripped.text and (stripped.found or bool(message.content_parts))
        if only_upload or (upload_before and message.role == "assistant"):
            skipped["upload_only"] += 1
            upload_before = message.role == "user"
        elif not stripped.text:
            skipped["blank"] += 1
        else:
            turns.append(_turn(message, stripped.text))
            upload_before = False
            if message.role == "user" and len(stripped.text) > READ_LENGTH["user"]:
                cut.append(message.message_id)
    return CapturedMessages(turns, list(said_back), dict(skipped), cut)


def why_unread(messages: Sequence[Said], reading: CapturedMessages) -> Unread | None:
    """Why these messages, of which `readable` made `reading`, start no extraction, or None when
    they do.

    They do when the user says anything in them that is more than an acknowledgement, or that
    confirms what the assistant said: the first turn follows what is not among them, most often
    a reply.
    """
    if any(_tells(turn, before) for before, turn in pairwise([None, *reading.turns])):
        return None
    by_user = any(turn.role == "user" for turn in reading.turns)
    if by_user:
        return "trivial"
    if any(message.role == "user" and is_hidden(message) for message in messages):
        return "hidden"
    if "upload_only" in reading.skipped:
        return "upload_only"
    if "tool_traffic" in reading.skipped and not reading.turns:
        return "tool_traffic"
    return "no_user_message"


def _tells(turn: CapturedTurn | None, before: CapturedTurn | None) -> bool:
    """Whether the user says something here, if only that the assistant's turn before is so."""
    if turn is None or turn.role != "user":
        return False
    return not is_trivial(turn.text) or (
        (before is None or before.role != "user") and confirms(turn.text)
    )


def signals_of(turns: Sequence[CapturedTurn], window: int) -> frozenset[str]:
    """The signals of the user's turns among the last `window` turns of either side."""
    recent = turns[-window:] if window > 0 else []
    return frozenset[str]().union(
        *(find_signals(turn.text[:SIGNAL_LENGTH]) for turn in recent if turn.role == "user")
    )


def turn_complete(messages: Sequence[Said]) -> bool:
    """Whether the assistant has answered: the last that either side said calls no tool.

    What tools, systems and middleware add after an answer does not undo it.
    """
    for message in reversed(messages):
        if message.role in {"user", "assistant"} and not is_hidden(message):
            return message.role == "assistant" and not message.tool_calls
    return False


def is_hidden(message: Said) -> bool:
    """Whether its metadata says that it was put there and not said."""
    metadata = message.metadata
    return bool(metadata) and any(metadata.get(flag) for flag in HIDDEN_FLAGS)


def said_text(content: object, parts: Sequence[object] | None = None) -> str:
    """The text of a message: its content, and the text among its parts.

    Each may be a text, a block, or a list of both. Blocks are joined by a line end, texts that
    follow each other by nothing, and what is no text is left out. Clients often send the same
    words as content and as part; they count once.
    """
    if isinstance(content, str) and not parts:
        return content
    text, more = _joined(content), _joined(parts)
    if not more or more in text:
        return text
    return more if text in more else f"{text}\n{more}"


def readable_text(content: object, parts: Sequence[object] | None = None) -> str:
    """The text of a message as it is searched and read for memories: a placeholder stands for
    each data URL in it.
    """
    return without_data_urls(said_text(content, parts))


def has_data(content: str, parts: Sequence[object] | None) -> bool:
    """Whether a message may have more than its text to read through."""
    return bool(parts) or BASE64 in content


def searched_text(content: object, parts: Sequence[object] | None, tags: Collection[str]) -> str:
    """What searches read of a message and excerpts show of it: its text without blocks of `tags`,
    then the names of its parts that are no text, so that a file is found by its name.
    """
    if isinstance(content, str) and not (parts or "<" in content or BASE64 in content):
        # Nearly every message: no part, no data URL, no block.
        return content.strip()
    names = placeholders(parts, sized=False)
    return "\n".join(filter(None, (strip_blocks(readable_text(content, parts), tags).text, *names)))


def _joined(content: object) -> str:
    chunks = content if isinstance(content, list | tuple) else [content]
    return "\n".join(text for text in _pieces(chunks) if text)


def _pieces(chunks: Iterable[object]) -> Iterator[str]:
    run: list[str] = []
    for chunk in chunks:
        if isinstance(chunk, str):
            run.append(chunk)
            continue
        yield "".join(run)
        run = []
        part = read_part(chunk)
        yield part.text or "" if part.is_said else ""
    yield "".join(run)


def client_time(metadata: Mapping[str, Any]) -> datetime | None:
    """When the client says that it was said, in the client's own zone; UTC where none is named."""
    given = metadata.get(CLIENT_TIME)
    if not isinstance(given, str):
        return None
    try:
        told = datetime.fromisoformat(given.strip())
        told = told if told.tzinfo else told.replace(tzinfo=UTC)
        in_utc(told)
    except (ValueError, OverflowError):
        return None
    return told


def said_at(message: Said) -> datetime:
    """When a message was said: its `metadata.client_time`, else when it was appended.

    A client time that cannot be is no time: what is remembered from then on, or since the year
    1, would never be found, or always.
    """
    return time_said(message.metadata, message.create_time)


def time_said(metadata: Mapping[str, Any], appended: datetime) -> datetime:
    """`said_at` of a message with this metadata that was appended then."""
    told = client_time(metadata)
    return appended if told is None or not could_be_said(told, appended) else told


def client_time_fault(metadata: Mapping[str, Any], now: datetime) -> str | None:
    """Why memories do not go by the client time of a message of `now`; None where they do."""
    if metadata.get(CLIENT_TIME) is None:
        return None
    told = client_time(metadata)
    if told is None:
        return "It is no ISO 8601 time, so that the message counts as said now."
    if not could_be_said(told, now):
        return (
            f"It lies before {FIRST_YEAR} or more than a day ahead, so that what is remembered "
            "counts as said now."
        )
    return None


def could_be_said(time: datetime, now: datetime) -> bool:
    """Whether a message of `now` may say that it was said then."""
    return time.year >= FIRST_YEAR and time <= now + CLOCKS_APART


def _barred(message: Said) -> Skipped | None:
    """Why a message is not read, whatever its content; None when it is."""
    if message.role == "tool" or (message.role == "assistant" and message.tool_calls):
        return "tool_traffic"
    if is_hidden(message):
        return "hidden"
    return None if message.role in {"user", "assistant"} else "system"


def _turn(message: Said, text: str) -> CapturedTurn:
    role: Literal["user", "assistant"] = "user" if message.role == "user" else "assistant"
    longest = READ_LENGTH[role]
    return CapturedTurn(
        message.message_id,
        role,
        parts_within(text[: longest + 1], longest)[0].rstrip(),
        message.name,
        said_at(message),
        message.sequence_no,
        tuple(placeholders(message.content_parts)),
    )
