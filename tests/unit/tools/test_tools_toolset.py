"""Which tools there are, who may call which, and how a provider is told of them."""

import json

import pytest

from app.prompting.tools.arguments import HEARTBEAT, NOT_OF_THE_MODEL
from app.prompting.tools.toolset import TOOLS, allowed, rendered_tools

ON_MEMORIES = {"memory_save", "memory_search", "memory_update", "memory_delete", "memory_stats"}


def names(config) -> set[str]:
    return {tool.name for tool in allowed(config)}


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ({}, set(TOOLS)),
        ({"tools": None}, set(TOOLS)),
        ({"tools": []}, set()),
        ({"tools": ["memory_search", "no_such_tool", 3]}, {"memory_search"}),
        ({"tools": "memory_search"}, set()),
        ({"tools": {"memory_search": True}}, set()),
        ({"enable_memory": False}, set(TOOLS) - ON_MEMORIES),
        ({"enable_memory": False, "tools": ["memory_save", "conversation_search"]},
         {"conversation_search"}),
        ({"enable_memory": True}, set(TOOLS)),
    ],
)  # fmt: skip
def test_the_settings_of_an_agent_say_what_it_may_call(config, expected: set[str]) -> None:
    assert names(config) == expected


def test_openai_is_told_in_its_shape() -> None:
    told = rendered_tools(TOOLS.values(), "openai", heartbeat=False, labels=None)

    assert [one["function"]["name"] for one in told] == list(TOOLS)
    for one in told:
        assert set(one) == {"type", "function"}
        assert set(one["function"]) == {"name", "description", "parameters"}


def test_anthropic_is_told_the_same_in_another_shape() -> None:
    openai = rendered_tools(TOOLS.values(), "openai", heartbeat=False, labels=None)
    anthropic = rendered_tools(TOOLS.values(), "anthropic", heartbeat=False, labels=None)

    for one, other in zip(openai, anthropic, strict=True):
        assert set(other) == {"name", "description", "input_schema"}
        assert one["function"]["parameters"] == other["input_schema"]


@pytest.mark.parametrize("heartbeat", [False, True])
def test_the_schemas_are_plain_and_ask_for_nobodys_id(heartbeat: bool) -> None:
    for one in rendered_tools(TOOLS.values(), "anthropic", heartbeat=heartbeat, labels=None):
        schema = one["input_schema"]
        text = json.dumps(schema)
        assert "anyOf" not in text
        assert "title" not in text
        assert "$ref" not in text
        assert schema["additionalProperties"] is False
        assert (HEARTBEAT in schema["properties"]) is heartbeat
        assert HEARTBEAT not in schema["required"]
        assert not NOT_OF_THE_MODEL & schema["properties"].keys()
        assert set(schema["required"]) <= schema["properties"].keys()
        for argument in schema["properties"].values():
            # Of a list, what is in it.
            assert argument.get("items", argument)["type"] in {"string", "integer", "boolean"}


def test_labels_are_offered_where_they_are_known() -> None:
    for one in rendered_tools(
        TOOLS.values(), "anthropic", heartbeat=False, labels=["human", "宠物"]
    ):
        label = one["input_schema"]["properties"].get("label")
        if TOOLS[one["name"]].about == "blocks":
            assert label["enum"] == ["human", "宠物"]
        else:
            assert label is None


def test_whoever_changes_something_must_be_allowed_to_write() -> None:
    reading = {name for name, tool in TOOLS.items() if tool.scope == "read"}

    assert reading == {
        "memory_search", "memory_stats", "conversation_search", "message_read", "passage_search",
    }  # fmt: skip
