"""Which excerpts fit a budget: what a line takes is counted as it is shown in the end."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime

import pytest

from app.conversation.messages.excerpts import Excerpts, FoundMessage, FoundPiece
from app.language.llm.tokens import EstimatedTokens
from app.prompting.context.excerpts import ExcerptLines

ASKED = "Where should the three of us go walking in June?"
SAID = {1: ASKED, 2: "Around the lake, early in the morning.", 3: "We have booked the hut."}


def piece(number: int) -> FoundPiece:
    """All that was said in one message of the session."""
    text = SAID[number]
    role, read_request = ("assistant", lambda: ASKED) if number == 2 else ("user", None)
    message = FoundMessage(
        place=number,
        message_id=f"m{number}",
        session_id="s",
        role=role,
        name=None,
        sequence_no=number,
        session_messages=len(SAID),
        said_at=datetime(2024, 5, 3, tzinfo=UTC),
        read=lambda: text,
        ends=[len(text)],
        read_request=read_request,
        wish=False,
    )
    return FoundPiece(message, 0, 1.0, None, (), ())


def lines(order: Sequence[int]) -> ExcerptLines:
    return ExcerptLines(Excerpts([piece(n) for n in order], {"s": 1}, 1), "t", EstimatedTokens())


@pytest.mark.parametrize("order", [(2, 1, 3), (1, 2, 3), (3, 1, 2)])
def test_what_a_reply_was_asked_takes_no_room_where_it_has_a_line(order: Sequence[int]) -> None:
    whole = lines(order).chosen(1000, 10).section

    exact = lines(order).chosen(whole.tokens, 10)
    below = lines(order).chosen(whole.tokens - 1, 10)

    assert exact.section == whole
    assert "replying to" not in whole.text
    assert len(below.shown) == 2
    assert below.section.tokens < whole.tokens


def test_a_reply_alone_says_what_it_was_asked() -> None:
    section = lines([2]).chosen(1000, 10).section

    assert f'2 assistant, replying to "{ASKED}": {SAID[2]}' in section.text
    assert lines([2]).chosen(section.tokens - 1, 10).shown == []


@pytest.mark.parametrize(
    "begin",
    [
        "Which hut has beds for the three of us? ",
        "the way around the lake " * 4,
        "我们三个人六月去哪里爬山比较好？" * 3,
        "a.b " * 17,
    ],
)
def test_a_long_request_is_cut_as_its_beginning_is(begin: str) -> None:
    def shown(request: str) -> str:
        message = replace(piece(2).message, read_request=lambda: request)
        found = Excerpts([FoundPiece(message, 0, 1.0, None, (), ())], {"s": 1}, 1)
        return ExcerptLines(found, "t", EstimatedTokens()).chosen(1000, 10).section.text

    assert shown(begin * 9) == shown(begin * 2000)
    assert len(shown(begin * 9)) < len(begin * 9) + 400
