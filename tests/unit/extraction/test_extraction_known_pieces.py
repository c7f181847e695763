"""What a model is told besides the messages it reads."""

from datetime import UTC, datetime
from typing import Any

import pytest

from app.language.llm.extractor import ConversationTurn
from app.memory.extraction.known_memories import (
    LONGEST_PIECE,
    MOST_PIECES,
    name_said,
    pieces_of,
)

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("names", "user_id", "name"),
    [
        ([], "ana", None),
        ([None], "ana", None),
        (["Ani"], "ana", "Ani"),
        (["Ani", "Ani"], None, "Ani"),
        (["Ben", "Ana"], "ana", "Ana"),
        (["Ben", "Ani"], "ana", None),
        (["Ben", "Ana"], None, None),
        ([None, "Ben"], "ana", None),
        ([None, "Ana"], "ana", "Ana"),
    ],
)
def test_name_of_the_user_is_the_one_that_messages_bear(
    names: list[str | None], user_id: str | None, name: str | None
) -> None:
    turns = [ConversationTurn("m", "user", "Hi.", NOON, said_by) for said_by in names]
    turns.append(ConversationTurn("m", "assistant", "Hi.", NOON, "Bot"))

    assert name_said(turns, user_id) == name


def said(*contents: str, **members: Any) -> list[ConversationTurn]:
    role = members.pop("role", "user")
    return [ConversationTurn("m", role, content, NOON, **members) for content in contents]


@pytest.mark.parametrize(
    ("turns", "pieces"), [(0, 0), (1, 1), (19, 19), (20, 20), (21, 11), (40, 20), (41, 14)]
)
def test_so_many_pieces_are_compared_and_no_more(turns: int, pieces: int) -> None:
    found = pieces_of(said(*(f"I have {number} cats." for number in range(turns))))

    assert len(found) == pieces <= MOST_PIECES
    assert found[:1] == ["I have 0 cats."][:turns]


@pytest.mark.parametrize(("longer", "pieces"), [(-1, 1), (0, 1), (1, 2)])
def test_long_messages_are_compared_in_pieces(longer: int, pieces: int) -> None:
    text = "字" * (LONGEST_PIECE + longer)

    found = pieces_of(said(text))

    assert len(found) == pieces
    assert "".join(found) == text


def test_only_what_the_user_has_just_said_is_compared() -> None:
    turns = [
        *said("I had a dog.", context=True),
        *said("Lovely dog!", role="assistant"),
        *said("ok", "嗯嗯", "I have a cat."),
    ]

    assert pieces_of(turns) == ["I have a cat."]
