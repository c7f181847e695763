"""Chunks of a session: as much as one run reads, cut between turns."""

import pytest

from app.conversation.messages.capture import READ_LENGTH
from app.conversation.messages.models import Message
from app.memory.extraction.session_reader import CHARACTERS, MESSAGES, fitting

NAMES = {"u": "user", "a": "assistant", "t": "tool", "s": "system", "h": "user"}
LENGTH = READ_LENGTH["assistant"]
FULL = CHARACTERS // LENGTH


def session(letters: str, length: int = 1) -> list[Message]:
    """One message per letter, of the role it begins; `h` is hidden."""
    return [
        Message(
            message_id=str(number),
            role=NAMES[letter],
            content="x" * length,
            metadata_={"hidden": True} if letter == "h" else {},
            sequence_no=number,
        )
        for number, letter in enumerate(letters, 1)
    ]


@pytest.mark.parametrize(
    ("letters", "most", "fits"),
    [
        ("uaua", 5, 4),
        ("uaua", 4, 4),
        ("uaua", 3, 2),
        ("uaua", 2, 2),
        # A turn that is longer than a chunk is cut.
        ("uaua", 1, 1),
        ("uatata", 4, 4),
        ("uauatata", 5, 2),
        ("uauatata", 7, 2),
        ("uauatata", 8, 8),
        # Whatever a session begins with belongs to the first turn.
        ("saua", 3, 2),
        ("aaaau", 4, 4),
        # A user who sends several messages says one thing.
        ("uauua", 4, 2),
        ("uuuu", 3, 3),
        # What somebody put between a question and its answer begins no turn.
        ("uauha", 4, 2),
        ("uaha", 3, 3),
    ],
)
def test_chunk_ends_before_a_turn_begins(letters: str, most: int, fits: int) -> None:
    assert len(fitting(session(letters), most)) == fits


@pytest.mark.parametrize(
    ("messages", "fits"),
    [(MESSAGES - 1, MESSAGES - 1), (MESSAGES, MESSAGES), (MESSAGES + 1, MESSAGES)],
)
def test_chunk_has_two_hundred_messages_at_the_most(messages: int, fits: int) -> None:
    assert len(fitting(session("ua" * (messages // 2) + "u" * (messages % 2)))) == fits


@pytest.mark.parametrize(("over", "fits"), [(-1, FULL + 1), (0, FULL + 1), (1, FULL)])
def test_chunk_has_forty_thousand_characters_at_the_most(over: int, fits: int) -> None:
    """What is cut off of a reply does not count."""
    found = session("ua" * (FULL // 2) + "u", length=LENGTH)
    found[0].content = "x" * (LENGTH + over - 1)
    found[1].content = "x" * (LENGTH * 9)
    found[-1].content = "x"

    assert len(fitting(found)) == fits


def test_characters_of_a_turn_that_fits_no_longer_go_to_the_next_chunk() -> None:
    found = session("ua" * (FULL // 2 - 1) + "uaaua", length=LENGTH)

    assert len(fitting(found)) == FULL - 2
    assert len(fitting(found[FULL - 2 :])) == 5


def test_longer_turn_than_a_chunk_is_read_in_pieces_to_its_end() -> None:
    found = session("u" + "a" * (2 * MESSAGES), length=3)
    sizes = []
    while found:
        sizes.append(len(fitting(found)))
        found = found[sizes[-1] :]

    assert sizes == [MESSAGES, MESSAGES, 1]
