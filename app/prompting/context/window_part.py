"""The messages of a context: trimmed to their room, each in its form, and what is left out named.

Pure. Nothing is left out without a word: a message that is shown in a shorter form says where the
rest is, and one that is not shown is named by its number, in one line of the system section.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from app.conversation.messages.message_forms import MessageForms, ShownMessage, Spoken
from app.conversation.messages.window_trim import MessageRange, Pick, Trimmed, trim
from app.language.llm.tokens import TokenCounter
from app.language.llm.tool_call import ClientToolCall
from app.prompting.context.assembly import SEPARATOR, Piece, Section, block_text
from app.prompting.context.scene import SceneConversation
from app.prompting.context.schemas import ClearToolResults, LeftOut

FURTHER: Final = 4
"""Results are read to this many times the budget where older ones are cleared: more will fit."""

MOST_RANGES: Final = 8
"""Ranges of numbers that the line names; the oldest are named together where there are more."""

STORED: Final = "Messages not shown here: {numbers}. message_read with a number shows one."
GIVEN: Final = "Messages of the request not shown here: {numbers}."


@dataclass(frozen=True, slots=True)
class WindowPart:
    """The messages that are shown.

    Args:
        trimmed: as the trimming has it.
        shown: the messages in their forms, in order.
        left_out: the line that names what is not shown, as a part; None where all is.
        room: tokens for messages, without that line.
        cleared_tokens: how many less the window has, since the request clears results.

    """

    trimmed: Trimmed
    shown: Sequence[ShownMessage]
    left_out: Piece | None
    room: int
    cleared_tokens: int = 0

    @property
    def needed(self) -> int:
        """Tokens of the least that can be shown."""
        line = 0 if self.left_out is None else self.left_out.section.tokens
        return self.trimmed.needed + line

    @property
    def spoken(self) -> list[Spoken]:
        return [message.spoken for message in self.shown]

    @property
    def tokens(self) -> int:
        """Of the messages in their forms, and of the results that are inserted."""
        return sum([message.tokens for message in self.shown]) + self.trimmed.inserted

    @property
    def piece(self) -> Piece:
        reason: LeftOut | None = "budget" if self.trimmed.left_out else None
        section = Section("", self.tokens, [message.tokens for message in self.shown])
        return Piece("window", section, self.room, self.trimmed.left_out, reason)

    def excluded(self) -> "WindowPart":
        """The part without any message, where the request wants none."""
        none = replace(self.trimmed, messages=(), waiting=(), left_out=0, ranges=(), inserted=0)
        return WindowPart(none, [], None, self.room, self.cleared_tokens)

    def answer(self) -> dict[str, Any]:
        """As `schemas.ShownWindow` has it."""
        numbers = [spoken.sequence_no for spoken in self.spoken if spoken.sequence_no is not None]
        return {
            "messages": len(self.shown),
            "tokens": self.tokens,
            "from_sequence_no": min(numbers, default=None),
            "to_sequence_no": max(numbers, default=None),
            "left_out": self.trimmed.left_out,
            "left_out_ranges": [
                {"from_sequence_no": hidden.first, "to_sequence_no": hidden.last}
                for hidden in self.trimmed.ranges
            ],
            "fits": self.trimmed.fits,
            "waiting": list(self.trimmed.waiting),
            "cleared": len(
                [
                    message
                    for message in self.shown
                    if message.form == "cleared" and message.message.role == "tool"
                ]
            ),
            "shortened": [
                {
                    "message_id": message.spoken.message_id,
                    "sequence_no": message.message.sequence_no,
                    "form": message.form,
                    "tokens": message.tokens,
                    "whole_tokens": message.message.tokens,
                }
                for message in self.shown
                if message.form != "whole"
            ],
        }


def window_part(
    conversation: SceneConversation,
    pick: Pick,
    room: int,
    counter: TokenCounter,
    clear: ClearToolResults | None,
    result_tokens: int = 0,
) -> WindowPart:
    """What `pick` shows of a conversation within `room`, the line that names the rest included.

    Args:
        conversation: what was read of it.
        pick: the strategy of the window.
        room: tokens for messages and that line.
        counter: counts the tokens.
        clear: which older results the request clears.
        result_tokens: as of `trim`.

    """
    forms = MessageForms(counter, conversation.spoken, conversation.ends)
    fewer = 0
    if clear is not None:
        whole = conversation.window.messages
        conversation = cleared(conversation, clear, forms)
        fewer = sum(
            message.tokens - forms.least(message)
            for message, short in zip(whole, conversation.window.messages, strict=True)
            if message is not short
        )
    window = conversation.window
    line: Piece | None = None
    taken = 0
    trimmed = trim(window, pick, room, forms.least, result_tokens)
    while trimmed.ranges:
        line = _left_out(trimmed.ranges, conversation, counter)
        before, taken = taken, line.section.tokens
        if taken <= max(before, room - trimmed.tokens):
            break
        # With less room other numbers may be left out, which may take more to name.
        trimmed = trim(window, pick, room - taken, forms.least, result_tokens)
    else:
        line, taken = None, 0
    shown = forms.all_shown(trimmed.messages, trimmed.allowed)
    return WindowPart(trimmed, shown, line, max(0, room - taken), fewer)


def cleared(
    conversation: SceneConversation, request: ClearToolResults, forms: MessageForms
) -> SceneConversation:
    """The conversation with older results marked to be shown by the line in their place alone.

    The newest `keep` results stay, results of tools in `exempt`, and results that are no longer
    than that line.
    """
    window = conversation.window
    taken = sum(message.tokens for message in window.messages)
    if request.above_tokens is not None and taken <= request.above_tokens:
        return conversation
    names = _names_of_calls(conversation)
    results = [
        message
        for message in window.messages
        if message.role == "tool" and message.answers is not None
    ]
    shorter = {}
    for message in results[: max(len(results) - request.keep, 0)]:
        name = conversation.spoken[message.message_id].name or names.get(message.answers or "")
        if name not in request.exempt and forms.least(message) < message.tokens:
            shorter[message.message_id] = replace(message, is_read=False)
    messages = tuple(shorter.get(message.message_id, message) for message in window.messages)
    return replace(conversation, window=replace(window, messages=messages))


def _names_of_calls(conversation: SceneConversation) -> dict[str, str]:
    """Names of tools by the id of their call; of two calls with the same id the later counts."""
    calls = (
        ClientToolCall.of(call)
        for message in conversation.window.messages
        for call in conversation.spoken[message.message_id].tool_calls or ()
    )
    return {call.call_id: call.name for call in calls}


def _left_out(
    ranges: Sequence[MessageRange], conversation: SceneConversation, counter: TokenCounter
) -> Piece:
    stored = any(spoken.sequence_no is not None for spoken in conversation.spoken.values())
    named = list(ranges)
    together = named[: len(named) - MOST_RANGES + 1] if len(named) > MOST_RANGES else []
    listed = [f"some of {together[0].first} to {together[-1].last}"] if together else []
    listed += [_numbers(numbers) for numbers in named[len(together) :]]
    line = (STORED if stored else GIVEN).format(numbers=", ".join(listed))
    text = block_text("left_out", line, ())
    # Counted with what parts it from the section before it.
    tokens = counter.count(f"{SEPARATOR}{text}")
    return Piece("left_out", Section(text, tokens, [0] * len(ranges)))


def _numbers(numbers: MessageRange) -> str:
    if numbers.first == numbers.last:
        return f"{numbers.first}"
    return f"{numbers.first} to {numbers.last}"
