"""Which messages of a thread are sent along where the session has others."""

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from kemem.langgraph.transcript import Transcript, size_of
from kemem.langgraph.view import GIVEN_BYTES, GIVEN_MESSAGES, given_messages


def thread(steps: int, characters: int) -> list[AnyMessage]:
    found: list[AnyMessage] = [HumanMessage("Hello."), AIMessage("Hi."), HumanMessage("Count.")]
    for number in range(steps):
        call = {"name": "count", "args": {}, "id": f"c{number}"}
        found.append(AIMessage("", tool_calls=[call]))
        found.append(ToolMessage(f"{number} " + "x" * characters, tool_call_id=f"c{number}"))
    return found


@pytest.mark.parametrize(("steps", "characters"), [(1, 10), (200, 50_000), (600, 10)])
def test_the_newest_that_fit_are_sent_behind_their_request(steps: int, characters: int) -> None:
    transcript = Transcript("trip", thread(steps, characters))

    given = given_messages(transcript)

    assert sum(map(size_of, given)) <= GIVEN_BYTES
    assert len(given) <= GIVEN_MESSAGES
    assert [form["content"] for form in given if form["role"] == "user"][-1:] == ["Count."]
    assert given[0]["role"] == "user"
    assert given[-1]["content"].startswith(f"{steps - 1} ")


def test_a_conversation_that_fits_is_sent_whole() -> None:
    transcript = Transcript("trip", thread(3, 10))

    assert given_messages(transcript) == list(transcript.storable(0))
