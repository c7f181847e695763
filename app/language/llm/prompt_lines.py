"""Data in a prompt: one JSON object per line, out of which no text can break.

Whoever reads it sees roles apart, as they were, and letters of every script as they
were written. Turns are called t1, t2, … here: a model copies two letters without a
mistake, and costs less than with ids of 36.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Final

from app.language.llm.extractor import ConversationTurn, ExtractionRequest, KnownMemory
from app.language.text.pieces import parts_within

MOST_KNOWN: Final = 40
"""How many memories a model is told not to report again."""

_LONGEST_LINE: Final = 8_000
"""A longer message is shown in several lines of one id, so that nothing of it is left out."""

_LONGEST_EARLIER: Final = 1_000
"""Of what was read before only the drift is needed."""

_CUT: Final = " […] "

_WEEKDAYS: Final = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")

# `<` also opens the marks between roles that many local models read (`<|im_start|>`). The
# last three end a line for some readers.
_ESCAPES: Final = {ord(char): f"\\u{ord(char):04x}" for char in "<>\x85\u2028\u2029"}


@dataclass(frozen=True, slots=True)
class PromptConversation:
    """The lines for a request, and which new turn each short id means, in order."""

    text: str
    turns: Mapping[str, ConversationTurn]


def line(**members: object) -> str:
    """One object on one line; members that are None, False or empty are left out."""
    kept = {name: value for name, value in members.items() if value}
    return json.dumps(kept, ensure_ascii=False).translate(_ESCAPES)


def day(time: datetime | None) -> str | None:
    """The date of a time, without the time of day."""
    return None if time is None else time.date().isoformat()


def last_day(end: datetime | None) -> str | None:
    """The last date on which something holds that holds until `end`."""
    return day(end and end - timedelta(microseconds=1))


def moment(time: datetime) -> str:
    """The date as in all lines, its weekday, which "next Friday" needs and models get wrong, and
    the local time of day.
    """
    return f"{time.date().isoformat()} {_WEEKDAYS[time.weekday()]} {time:%H:%M}"


def conversation(request: ExtractionRequest, *, longest: int | None = None) -> PromptConversation:
    """What a request gives to read; only new turns get an id, so only they can be cited.

    Args:
        request: what to read.
        longest: of a message no more than so many characters is shown; None shows all.

    """
    lines = [line(kind="user", name=request.user_name)] if request.user_name else []
    lines += _known(request)
    turns: dict[str, ConversationTurn] = {}
    for turn in request.turns:
        short = None
        if not turn.context:
            short = f"t{len(turns) + 1}"
            turns[short] = turn
        most = _LONGEST_EARLIER if turn.context and longest is None else longest
        text = turn.content if most is None else cut(turn.content, most)
        text = " ".join((text, *turn.parts))
        lines += [_turn(turn, short, part) for part in parts_within(text, _LONGEST_LINE)]
    return PromptConversation("\n".join(lines), turns)


def _known(request: ExtractionRequest) -> list[str]:
    """What is remembered already: what is near first, then what was recalled besides."""
    memories = {memory.content: memory for memory in request.known}
    memories |= {text: KnownMemory(text) for text in request.recalled if text not in memories}
    lines = [
        line(
            kind="known",
            text=memory.content,
            attribute=memory.attribute,
            valid_from=day(memory.valid_from),
            valid_to=last_day(memory.valid_to),
            said=day(memory.said_at),
        )
        for memory in islice(memories.values(), MOST_KNOWN)
    ]
    if request.attributes:
        lines.append(line(kind="attributes", names=list(request.attributes)))
    return lines


def _turn(turn: ConversationTurn, short: str | None, text: str) -> str:
    return line(
        kind="earlier" if turn.context else "message",
        id=short,
        role=turn.role,
        name=turn.name,
        time=moment(turn.said_at),
        text=text,
    )


def cut(text: str, longest: int) -> str:
    """Beginning and end of a text that is too long; what matters rarely stands in the middle."""
    if len(text) <= longest:
        return text
    kept = longest - len(_CUT)
    tail = kept // 4
    return text[: kept - tail] + _CUT + text[len(text) - tail :]
