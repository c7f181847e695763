"""What an agent says in ways that the service does not store is stored in part."""

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage

from app.conversation.messages.schemas import MessageCreate
from kemem.langgraph.transcript import Transcript, size_of

BODY_BYTES = 2 * 1024 * 1024
IMAGE: dict[str, Any] = {"type": "image_url", "image_url": {"url": "https://example.com/cat.png"}}


def call(call_id: str, **args: Any) -> dict[str, Any]:
    return {"name": "look_up", "args": args, "id": call_id}


def stored(*messages: AnyMessage) -> list[MessageCreate]:
    """What is sent, as the service checks it."""
    forms = list(Transcript("trip", messages).storable(0))
    assert all(size_of(form) < BODY_BYTES for form in forms)
    return [MessageCreate.model_validate(form) for form in forms]


def nested(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"end": 1}
    for _ in range(levels - 1):
        value = {"in": value}
    return value


@pytest.mark.parametrize("text", ["枫", "a"])
@pytest.mark.parametrize("number", [1, 8, 40])
def test_arguments_of_all_calls_fit_into_a_request(text: str, number: int) -> None:
    calls = [call(f"c{place}", text=text * 55_000) for place in range(number)]

    [message] = stored(AIMessage("", tool_calls=calls))

    assert [one["id"] for one in message.tool_calls or []] == [one["id"] for one in calls]
    whole = json.dumps(calls[0]["args"], ensure_ascii=False)
    functions: list[Any] = [one["function"] for one in message.tool_calls or []]
    kept = [function["arguments"] == whole for function in functions]
    assert kept == [text == "a" and number <= 8] * number


@pytest.mark.parametrize("text", ["枫", "a"])
def test_texts_beside_an_image_fit_into_a_request(text: str) -> None:
    parts = [{"type": "text", "text": text * 200_000} for _ in range(20)]

    [message] = stored(HumanMessage([*parts, IMAGE]))

    assert len(message.content_parts or []) == 21
    assert "are not stored" in str(message.content_parts)


@pytest.mark.parametrize(("number", "more"), [(49, 0), (50, 0), (51, 1), (200, 150)])
def test_fifty_calls_are_stored_and_the_others_named(number: int, more: int) -> None:
    ids = [f"c{place}" for place in range(number)]
    results = [ToolMessage("found", tool_call_id=call_id) for call_id in ids]

    message, *answers = stored(AIMessage("", tool_calls=[call(one) for one in ids]), *results)

    assert len(message.tool_calls or []) == number - more
    assert [one.tool_call_id for one in answers] == ids[: number - more]
    assert message.content == (f"[{more} more calls, not stored: look_up]" if more else "")


@pytest.mark.parametrize("call_id", ["c", "c" * 255, "c" * 256, "枫\x00"])
def test_id_that_cannot_be_stored_is_replaced_in_call_and_result(call_id: str) -> None:
    message, answer = stored(
        AIMessage("", tool_calls=[call(call_id)]), ToolMessage("found", tool_call_id=call_id)
    )

    [stored_call] = message.tool_calls or []
    assert stored_call["id"] == answer.tool_call_id
    assert (answer.tool_call_id == call_id) == (len(call_id) in {1, 255})


@pytest.mark.parametrize("ids", [["c", "c"], ["c", ""]])
def test_call_without_an_id_of_its_own_is_named(ids: list[str]) -> None:
    results = [ToolMessage("found", tool_call_id=one) for one in ids]

    message, answer = stored(AIMessage("Look.", tool_calls=[call(one) for one in ids]), *results)

    assert message.content == "Look.\n[1 more calls, not stored: look_up]"
    assert answer.tool_call_id == "c"


@pytest.mark.parametrize(("part", "kept"), [
    (nested(6), True), (nested(7), True), (nested(8), False),
    ({str(key): 1 for key in range(99)}, True), ({str(key): 1 for key in range(100)}, False),
])  # fmt: skip
def test_part_nested_too_deep_is_named(part: dict[str, Any], kept: bool) -> None:
    given = {"type": "image_url", "image_url": IMAGE["image_url"] | part}

    [message] = stored(HumanMessage([{"type": "text", "text": "See."}, given]))

    [_, last] = message.content_parts or []
    assert (last["type"] == "image_url") == kept
