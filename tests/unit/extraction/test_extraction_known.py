"""What a model is told besides the messages it reads."""

from datetime import UTC, datetime

import pytest

from app.language.llm.extractor import ConversationTurn
from app.memory.extraction.known_memories import name_said

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
