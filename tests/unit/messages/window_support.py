"""Conversations to cut and trim, written down as short as they can be read."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta

from app.conversation.messages.window import Window, WindowMessage

NOW = datetime(2026, 11, 21, 12, tzinfo=UTC)
ANSWERABLE_SINCE = NOW - timedelta(hours=24)
LONG_AGO = NOW - timedelta(days=3)


def said(role: str, tokens: int = 10, *, calls: str = "", answers: str | None = None,
         event: str | None = None, moment: datetime = NOW) -> WindowMessage:  # fmt: skip
    """A message without a place yet; `calls` are ids of one letter each."""
    return WindowMessage("", 0, role, tokens, moment, tuple(calls), answers, event)


def user(tokens: int = 10) -> WindowMessage:
    return said("user", tokens)


def assistant(tokens: int = 10) -> WindowMessage:
    return said("assistant", tokens)


def call(ids: str, tokens: int = 10, moment: datetime = NOW) -> WindowMessage:
    return said("assistant", tokens, calls=ids, moment=moment)


def result(of: str, tokens: int = 10) -> WindowMessage:
    return said("tool", tokens, answers=of)


def system(tokens: int = 10, event: str | None = None) -> WindowMessage:
    return said("system", tokens, event=event)


def placed(messages: Sequence[WindowMessage], first: int = 1) -> tuple[WindowMessage, ...]:
    """The messages with ids `1`, `2`, … and the numbers that go with them."""
    return tuple(
        WindowMessage(
            str(number), number, one.role, one.tokens, one.create_time, one.calls, one.answers,
            one.event_type,
        )
        for number, one in enumerate(messages, first)
    )  # fmt: skip


def window(
    *messages: WindowMessage,
    pointer: int = 0,
    total: int | None = None,
    instructions_tokens: int = 1000,
    waiting: str = "",
) -> Window:
    """A window of these messages, the first of which has number 1."""
    ones = placed(messages)
    inside = sum(one.sequence_no > pointer for one in ones)
    return Window(
        messages=ones,
        pointer=pointer,
        total=inside if total is None else total,
        answerable_since=ANSWERABLE_SINCE,
        instructions_tokens=instructions_tokens,
        waiting=frozenset(waiting),
    )


def ids(messages: Sequence[WindowMessage]) -> str:
    """Their ids, with a space in between."""
    return " ".join(one.message_id for one in messages)
