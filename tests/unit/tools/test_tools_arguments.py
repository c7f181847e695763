"""What models send as arguments, and what they are given when it is not what a tool takes."""

import json
from datetime import UTC, datetime

import pytest

from app.prompting.tools.arguments import (
    MOST_HITS,
    ConversationArguments,
    InsertArguments,
    Nothing,
    SaveArguments,
    SearchArguments,
    parsed_arguments,
    validated_arguments,
)
from app.prompting.tools.error_texts import CallRefusedError

NAMES = ["tenant_id", "user_id", "agent_id", "session_id", "project_id", "run_id", "thread_id"]


def refusal(given, kind=None) -> str:
    """What a model is given of arguments that are refused."""
    with pytest.raises(CallRefusedError) as caught:
        validated_arguments(kind, parsed_arguments(given)[0]) if kind else parsed_arguments(given)
    return caught.value.text


@pytest.mark.parametrize(
    "given",
    [
        {"query": "tea", "k": 3},
        '{"query": "tea", "k": 3}',
        ' {"query": "tea", "k": "3", "scope": null}\n',
        {"query": "tea", "k": 3, "cursor": None},
    ],
)
def test_an_object_and_the_text_of_one_are_the_same(given) -> None:
    arguments = validated_arguments(SearchArguments, parsed_arguments(given)[0])

    assert (arguments.query, arguments.k, arguments.scope) == ("tea", 3, None)


@pytest.mark.parametrize("given", [None, "", "  ", "{}", "null", {}])
def test_a_tool_without_arguments_takes_every_way_to_say_none(given) -> None:
    assert validated_arguments(Nothing, parsed_arguments(given)[0]) == Nothing()


@pytest.mark.parametrize(
    "given", ['{"query": "tea"', "query=tea", '{"query": "she said "tea""}', "[" * 100_000]
)
def test_what_is_no_json_is_told_apart(given: str) -> None:
    text = refusal(given)

    assert "not valid JSON" in text
    assert "tea" not in text
    assert len(text) < 300


@pytest.mark.parametrize("given", ["[]", '"tea"', "3", "true"])
def test_json_that_is_no_object_is_told_apart(given: str) -> None:
    assert "must be one JSON object" in refusal(given)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("as_text", [False, True])
def test_whose_memory_it_is_cannot_be_told(name: str, as_text: bool) -> None:
    given = {"query": "tea", name: "ben"}

    text = refusal(json.dumps(given) if as_text else given)

    assert f"Leave out {name}" in text
    assert "ben" not in text


def test_a_heartbeat_among_the_arguments_is_taken_out() -> None:
    assert parsed_arguments({"query": "tea", "request_heartbeat": True}) == ({"query": "tea"}, True)
    assert parsed_arguments({"request_heartbeat": False}) == ({}, False)
    assert parsed_arguments({"query": "tea"}) == ({"query": "tea"}, None)
    assert "true or false" in refusal({"request_heartbeat": "soon"})


def test_wrong_arguments_are_named_with_what_is_taken() -> None:
    text = refusal({"limit": 3, "k": "many"}, SearchArguments)

    assert "limit: there is no such argument" in text
    assert "query: is required" in text
    assert "k: Input should be a valid integer" in text
    assert "query (required), k, memory_type, scope, cursor" in text
    assert "many" not in text


def test_of_many_faults_the_first_are_named() -> None:
    text = refusal({f"word{number}" * 20: 1 for number in range(100)}, Nothing)

    assert text.count("no such argument") == 5
    assert len(text) < 700
    assert "It takes no arguments." in text


@pytest.mark.parametrize(("k", "fits"), [(0, False), (1, True), (MOST_HITS, True), (51, False)])
def test_the_number_of_hits_has_bounds(k: int, fits: bool) -> None:
    given = {"query": "tea", "k": k}

    if fits:
        assert validated_arguments(SearchArguments, given).k == k
    else:
        assert "k: Input should be" in refusal(given, SearchArguments)


@pytest.mark.parametrize("query", ["", "   ", "a\x00b", "\ud800", "x" * 10_001])
def test_a_query_must_be_one(query: str) -> None:
    assert "query: " in refusal({"query": query}, SearchArguments)
    assert "query: " in refusal({"query": query}, ConversationArguments)


@pytest.mark.parametrize(
    ("since", "until", "first", "end"),
    [
        ("2026-11-20", "2026-11-20", (2026, 11, 20), (2026, 11, 21)),
        ("2026-11-20T08:30", "2026-12-31", (2026, 11, 20, 8, 30), (2027, 1, 1)),
        ("2026-11-20T08:30:00Z", "2026-11-20T10:00:00+01:00", (2026, 11, 20, 8, 30),
         (2026, 11, 20, 9)),
    ],
)  # fmt: skip
def test_a_day_counts_as_a_whole_and_a_bare_time_is_utc(since, until, first, end) -> None:
    given = {"query": "tea", "since": since, "until": until}

    arguments = validated_arguments(ConversationArguments, given)

    assert arguments.since == datetime(*first, tzinfo=UTC)
    assert arguments.until == datetime(*end, tzinfo=UTC)


@pytest.mark.parametrize("moment", ["yesterday", "2026-13-01", "9999-12-31", "21.11.2026", ""])
def test_what_is_no_day_is_told_with_an_example(moment: str) -> None:
    text = refusal({"query": "tea", "until": moment}, ConversationArguments)

    assert "until: must be an ISO 8601 day or time, such as 2026-11-21" in text


def test_a_model_cannot_save_for_all_users() -> None:
    text = refusal({"content": "Refunds take five days.", "scope": "agent"}, SaveArguments)

    assert "scope: Input should be 'user', 'session' or 'project'" in text


def test_a_line_lies_in_a_block() -> None:
    given = {"label": "human", "content": "Tea.", "line": -1}

    assert "line: Input should be greater than or equal to 0" in refusal(given, InsertArguments)
