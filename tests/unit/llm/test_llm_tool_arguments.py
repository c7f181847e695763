"""Arguments of calls that came as a text."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic_core import to_json

from app.language.llm.tool_call import DEEPEST_ARGUMENTS, read_arguments
from app.prompting.context.dialects import Spoken, for_anthropic


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


def refused(name: str) -> Any:
    raise AssertionError(f"{name} is no JSON")


def shown(arguments: str) -> Any:
    """What Anthropic gets as the arguments, after a way through an answer in JSON."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": arguments}}
    _, messages = for_anthropic("", [Spoken("assistant", "", tool_calls=(call,))])
    body = to_json({"context": {"messages": messages}})
    answer = json.loads(body.decode(), parse_constant=refused)
    return answer["context"]["messages"][0]["content"][0]["input"]


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":"\\ud83d"}',
        '{"\\ude00":1}',
        '{"a":NaN}',
        '{"a":[-Infinity]}',
        '{"a":1e999}',
        '{"a":' + "9" * 5000 + "}",
        nested(DEEPEST_ARGUMENTS + 1),
        nested(500),
        "[" * 500 + "]" * 500,
        "[" * 20_000 + "]" * 20_000,
        '{"a":',
    ],
    ids=lambda text: text[:20],
)
def test_arguments_that_no_answer_can_have_are_shown_as_their_text(arguments: str) -> None:
    assert read_arguments(arguments) == arguments
    assert shown(arguments) == {"arguments": arguments}


@pytest.mark.parametrize(
    "arguments",
    [
        '{"a":"\\ud83d\\ude00"}',
        '{"a":"\\u0000"}',
        '{"a":123456789012345678901234567890}',
        '{"城市":"波恩"}',
        "{}",
        nested(DEEPEST_ARGUMENTS - 1),
        nested(DEEPEST_ARGUMENTS),
    ],
    ids=lambda text: text[:20],
)
def test_other_arguments_are_shown_as_an_object(arguments: str) -> None:
    assert shown(arguments) == json.loads(arguments)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters()), inner),
)


@given(st.text() | VALUES.map(json.dumps))
def test_any_arguments_reach_anthropic_as_an_object_of_valid_json(arguments: str) -> None:
    assert isinstance(shown(arguments), dict)
