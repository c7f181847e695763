"""The forms in which a message can be shown: whole, cut to its ends, or one line in its place.

Whatever is missing is said where it is missing, with where to read it. A call stays a call: its
arguments are replaced only where even the line in place of its text does not fit. Pure.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from app.conversation.messages.capture import said_text
from app.conversation.messages.window import WindowMessage
from app.language.llm.content_parts import without_media
from app.language.llm.tokens import TokenCounter, message_tokens
from app.language.llm.tool_call import arguments_text, with_arguments

Form = Literal["whole", "cut", "cleared"]

HEAD_SHARE: Final = 2 / 3
"""Of what is shown of a cut text; the rest is its end."""

FEWEST_CHARACTERS: Final = 40
"""Less of a text says nothing."""

SAMPLE: Final = 2_000
"""Characters by which is estimated how many a number of tokens can hold."""

LONG_ARGUMENTS: Final = 200
"""Characters of a call's arguments that are replaced where there is no room for them."""


@dataclass(slots=True)
class Spoken:
    """A message as it goes to the model; stored messages have `message_id` and `sequence_no`. Never
    changed, as a `WindowMessage`.
    """

    role: str
    content: str
    content_parts: Sequence[Mapping[str, Any]] | None = None
    tool_calls: Sequence[Mapping[str, Any]] | None = None
    tool_call_id: str | None = None
    name: str | None = None
    message_id: str | None = None
    sequence_no: int | None = None


@dataclass(frozen=True, slots=True)
class TextEnds:
    """A text, or its ends where it is too long to be read whole.

    Args:
        head, tail: its beginning and its end; both the whole text where that was read.
        length: characters of the whole.

    """

    head: str
    tail: str
    length: int

    def shortened(self, size: int, mark: "Mark") -> str:
        """`size` characters of it, with a line between them for the rest."""
        head = min(round(HEAD_SHARE * size), len(self.head))
        tail = min(size - head, len(self.tail))
        line = mark.between(self.length - head - tail, self.length, head)
        return "\n".join(filter(None, (self.head[:head], line, self.tail[len(self.tail) - tail :])))


def spoken_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, Spoken]:
    """The messages in rows of `window_sql.tail_rows`, by id."""
    return {
        row["message_id"]: Spoken(
            row["role"],
            row["content"],
            row["content_parts"],
            row["tool_calls"],
            row["tool_call_id"],
            row["name"],
            row["message_id"],
            row["sequence_no"],
        )
        for row in rows
    }


def ends_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, TextEnds]:
    """The ends of those that are too long to be shown whole."""
    return {
        row["message_id"]: TextEnds(row["content"], row["text_end"], row["length"])
        for row in rows
        if row["length"] is not None
    }


@dataclass(frozen=True, slots=True)
class Mark:
    """What stands for text that is not shown.

    Args:
        message_id: of a stored message; None where the request brought it.
        number: of the message in the session, or in the request.

    """

    message_id: str | None
    number: int

    def between(self, missing: int, length: int, offset: int) -> str:
        """Between the ends of a text."""
        if self.message_id is None:
            where = f"see message {self.number} of the request"
        else:
            where = f'message_read with message_id "{self.message_id}", offset {offset} reads on'
        return f"[… {missing} of {length} characters left out: {where} …]"

    def instead(self, tokens: int) -> str:
        """In place of a whole message of so many tokens."""
        if self.message_id is None:
            where = f"see message {self.number} of the request"
        else:
            where = f'message_read with message_id "{self.message_id}" shows them'
        return f"[{tokens} tokens left out: {where}.]"


@dataclass(slots=True)
class ShownMessage:
    """A message in the form in which it is shown, with its tokens in that form. Never changed, as a
    `WindowMessage`.
    """

    message: WindowMessage
    spoken: Spoken
    tokens: int
    form: Form


class MessageForms:
    """The forms of the messages of one window."""

    def __init__(
        self,
        counter: TokenCounter,
        spoken: Mapping[str, Spoken],
        ends: Mapping[str, TextEnds] | None = None,
    ) -> None:
        """Prepare for messages by id, with `ends` of those that were not read whole."""
        self._counter = counter
        self._spoken = spoken
        self._ends = ends or {}
        self._least: dict[str, ShownMessage] = {}

    def least(self, message: WindowMessage) -> int:
        """Tokens of its shortest form."""
        return self._least_form(message).tokens

    def _least_form(self, message: WindowMessage) -> ShownMessage:
        shown = self._least.get(message.message_id)
        # A message that is cleared by request has another shortest form.
        if shown is None or shown.message is not message:
            shown = self._least[message.message_id] = self._shortest(message)
        return shown

    def all_shown(
        self, messages: Iterable[WindowMessage], allowed: Mapping[str, int]
    ) -> list[ShownMessage]:
        """Each message as `shown` gives it, with what it is `allowed` by its id."""
        spoken = self._spoken
        return [
            # Nearly every message.
            ShownMessage(message, spoken[message.message_id], message.tokens, "whole")
            if message.is_read and not message.is_bare and message.message_id not in allowed
            else self.shown(message, allowed.get(message.message_id))
            for message in messages
        ]

    def shown(self, message: WindowMessage, allowed: int | None) -> ShownMessage:
        """As much of a message as fits `allowed` tokens, all of it where that is None; its
        shortest form where nothing fits. Its images and files become names before its text is cut.
        """
        said = self._spoken[message.message_id]
        if message.is_read and (allowed is None or message.tokens <= allowed):
            if message.is_bare:
                return ShownMessage(message, said, self._tokens(said), "cut")
            return ShownMessage(message, said, message.tokens, "whole")
        least = self._least_form(message)
        if message.is_read and allowed is not None and least.form != "whole":
            named = self._named(said)
            # Of a text that was not read whole the content is its beginning alone.
            if named != said and message.message_id not in self._ends:
                tokens = self._tokens(named)
                if tokens <= allowed:
                    return ShownMessage(message, named, tokens, "cut")
            if allowed <= least.tokens:
                # No cut is shorter than the line alone.
                return least
            others = [part for part in said.content_parts or () if not said_text("", [part])]
            beside = replace(said, content_parts=others or None)
            for base in (beside, self._named(beside), least.spoken):
                found = self._cut(message, base, allowed)
                if found is not None:
                    return found
        return least

    def _named(self, said: Spoken) -> Spoken:
        """The message with a name in place of each image, audio and file."""
        stored = None if said.sequence_no is None else said.message_id
        parts = said.content_parts and without_media(said.content_parts, stored)
        return replace(said, content_parts=parts)

    def _cut(self, message: WindowMessage, base: Spoken, allowed: int) -> ShownMessage | None:
        """The ends of its text, as much of them as fits beside the rest of `base`."""
        text, mark = self._text(message), self._mark(message)
        line = mark.between(text.length, text.length, text.length)
        left = allowed - self._tokens(replace(base, content=line))
        sample = text.head[:SAMPLE]
        each = max(self._counter.count(sample), 1) / max(len(sample), 1)
        size = min(int(left / each), text.length - 1, len(text.head) + len(text.tail))
        while size >= FEWEST_CHARACTERS:
            said = replace(base, content=text.shortened(size, mark))
            tokens = self._tokens(said)
            if tokens <= allowed:
                return ShownMessage(message, said, tokens, "cut")
            size = int(size * min(0.95, left / (tokens - allowed + left)))
        return None

    def _shortest(self, message: WindowMessage) -> ShownMessage:
        """A line in place of its text, and of long arguments of its calls; or all of it, where
        that is no longer.
        """
        said = self._spoken[message.message_id]
        line = self._mark(message).instead(message.tokens)
        # A message that only calls has no text to replace.
        content = line if said.content or said.content_parts or not message.is_read else ""
        calls = said.tool_calls and [
            with_arguments(call, lambda given: _shorter(given, line)) for call in said.tool_calls
        ]
        short = replace(said, content=content, content_parts=None, tool_calls=calls)
        tokens = self._tokens(short)
        if message.is_read and tokens >= message.tokens:
            return ShownMessage(message, said, message.tokens, "whole")
        return ShownMessage(message, short, tokens, "cleared")

    def _text(self, message: WindowMessage) -> TextEnds:
        found = self._ends.get(message.message_id)
        if found is None:
            said = self._spoken[message.message_id]
            text = said_text(said.content, said.content_parts)
            found = TextEnds(text, text, len(text))
        return found

    def _mark(self, message: WindowMessage) -> Mark:
        said = self._spoken[message.message_id]
        stored = said.sequence_no is not None
        return Mark(message.message_id if stored else None, message.sequence_no)

    def _tokens(self, said: Spoken) -> int:
        return message_tokens(
            self._counter,
            content=said.content,
            tool_calls=said.tool_calls,
            content_parts=said.content_parts,
            name=said.name,
        )


def _shorter(arguments: Any, line: str) -> Any:
    """The line in place of long arguments, as a text or an object as they are."""
    if len(arguments_text(arguments)) <= LONG_ARGUMENTS:
        return arguments
    instead = {"left_out": line}
    return json.dumps(instead) if isinstance(arguments, str) else instead
