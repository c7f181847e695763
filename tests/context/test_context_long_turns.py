"""Long turns of an agent: whatever its tools return, a context fits and loses nothing silently."""

import json
import re
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.llm.tokens import EstimatedTokens
from tests.support.api import append, ok, problem
from tests.support.tools import called

ALONE = {"memories": False, "corrections": False, "excerpts": False}
STEP = 100
"""Messages of an append."""


def call(number: int, of: str = "look", **arguments: Any) -> dict[str, Any]:
    function = {"name": of, "arguments": json.dumps(arguments)}
    return {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": f"c{number}", "type": "function", "function": function}],
    }


def result(number: int, content: str) -> dict[str, Any]:
    return {"role": "tool", "content": content, "tool_call_id": f"c{number}"}


def rows(tokens: int, tag: int = 0) -> str:
    """A result of about so many tokens."""
    return "".join(f"Row {tag}-{place} says nothing.\n" for place in range(tokens // 11))


async def work(client: AsyncClient, steps: int, tokens: int) -> None:
    """A request of Ana's, and so many steps with results of so many tokens."""
    messages: list[dict[str, Any]] = [{"role": "user", "content": "Find the code word, please."}]
    for number in range(steps):
        messages += [call(number, page=number), result(number, rows(tokens, number))]
    for start in range(0, len(messages), STEP):
        await append(client, "s1", *messages[start : start + STEP])


async def context(client: AsyncClient, **body: Any) -> Any:
    return ok(await client.post("/sessions/s1/context", json={"include": ALONE} | body))


def check_valid(messages: list[dict[str, Any]]) -> None:
    """As a provider wants it: the user first, results right behind their calls."""
    spoken = [one for one in messages if one["role"] != "system"]
    assert spoken[0]["role"] == "user"
    waiting: list[str] = []
    for one in spoken:
        if one["role"] == "tool":
            waiting.remove(one["tool_call_id"])
        else:
            assert not waiting
            waiting += [made["id"] for made in one.get("tool_calls", ())]
    assert not waiting


def named(answer: dict[str, Any]) -> set[int]:
    """Numbers of the messages that the prompt says are not shown."""
    found = re.search(r"<left_out>\nMessages not shown here: ([^.]*)\.", answer["prompt"])
    numbers: set[int] = set()
    for one in found[1].split(", ") if found else ():
        first, *last = map(int, one.split(" to "))
        numbers |= set(range(first, (last or [first])[0] + 1))
    return numbers


@pytest.mark.parametrize(("steps", "tokens"), [(60, 200), (4, 5_000), (1_000, 50)])
async def test_a_turn_of_many_steps_fits_and_names_what_it_leaves_out(
    client: AsyncClient, steps: int, tokens: int
) -> None:
    await work(client, steps, tokens)

    answer = await context(client)

    check_valid(answer["messages"])
    window = answer["window"]
    assert window["fits"]
    assert answer["tokens"] <= 4000
    contents = [one["content"] for one in answer["messages"] if one["role"] != "system"]
    assert contents[0] == "Find the code word, please."
    # The newest step is there, with the end of its result.
    assert contents[-1].endswith(rows(tokens, steps - 1)[-40:])
    parts = await context(client, render="parts")
    shown = {one["sequence_no"] for one in parts["messages"]}
    assert shown | named(answer) == set(range(1, 2 * steps + 2))
    assert not shown & named(answer)
    assert window["left_out"] == len(named(answer))
    # What is cleared or cut says where the rest is, and there it is.
    for one in window["shortened"]:
        [content] = [
            said["content"] for said in parts["messages"] if said["message_id"] == one["message_id"]
        ]
        assert f'message_read with message_id "{one["message_id"]}"' in content
    # The room is used.
    assert answer["tokens"] > 3000


async def test_older_results_are_cleared_before_steps_are_left_out(client: AsyncClient) -> None:
    await work(client, 20, 400)

    window = (await context(client))["window"]

    assert window["left_out"] == 0
    assert 5 < window["cleared"] < 20
    # The newest are whole.
    assert max(one["sequence_no"] for one in window["shortened"]) < 2 * 20 + 1


@pytest.mark.parametrize("content", ["word " * 30_000, "好的，我明白了。" * 20_000])
async def test_a_result_longer_than_the_window_is_cut_and_read_on(
    client: AsyncClient, content: str
) -> None:
    content = f"The beginning. {content}The end."
    await append(client, "s1", "Look.", call(1), result(1, content))

    answer = await context(client)

    check_valid(answer["messages"])
    said = answer["messages"][-1]["content"]
    assert said.startswith("The beginning.")
    assert said.endswith("The end.")
    assert 3000 < answer["tokens"] <= 4000
    [cut] = answer["window"]["shortened"]
    assert (cut["form"], answer["window"]["left_out"]) == ("cut", 0)
    head, missing, length, message_id, offset, tail = re.fullmatch(
        r"(?s)(.*)\n\[… (\d+) of (\d+) characters left out: message_read with message_id "
        r'"([^"]*)", offset (\d+) reads on …\]\n(.*)',
        said,
    ).groups()  # fmt: skip
    assert int(length) == len(content)
    assert (len(head), int(missing)) == (int(offset), len(content) - len(head) - len(tail))
    # Read on where it was cut, over HTTP and as the model does.
    params = {"offset": offset, "limit": missing}
    read = ok(await client.get(f"/sessions/s1/messages/{message_id}", params=params))
    assert head + read["content"] + tail == content
    told = await called(client, "message_read", {"message_id": message_id, "offset": int(offset)})
    assert told["result"].split("\n", 1)[1][:20] == content[int(offset) :][:20]


@pytest.mark.parametrize("ends_with_reply", [True, False])
async def test_clearing_results_reaches_those_longer_than_the_window(
    client: AsyncClient, ends_with_reply: bool
) -> None:
    await append(client, "s1", "Remember: tangerine.", {"role": "assistant", "content": "Noted."})
    for number in range(3):
        await append(client, "s1", "Look.", call(number), result(number, "word " * 30_000))
        if ends_with_reply:
            await append(client, "s1", {"role": "assistant", "content": "Nothing there."})

    answer = await context(client, clear_tool_results={"keep": 0})

    check_valid(answer["messages"])
    assert answer["window"]["cleared"] == 3
    assert answer["window"]["left_out"] == 0
    assert "tangerine" in str(answer["messages"])
    assert answer["tokens"] < 1000


async def test_an_older_turn_with_a_result_that_never_fits_stays(client: AsyncClient) -> None:
    """Or the answer that the user speaks of would be gone with it."""
    answer = {"role": "assistant", "content": "The code word is tangerine."}
    await append(client, "s1", "Look.", call(1), result(1, "word " * 30_000), answer)
    await append(client, "s1", "Say it again.")

    shown = await context(client)

    check_valid(shown["messages"])
    assert "tangerine" in str(shown["messages"])
    # What room is left is for the ends of it.
    [cut] = shown["window"]["shortened"]
    assert (cut["form"], shown["window"]["left_out"]) == ("cut", 0)
    assert 0.9 * 4_000 < shown["tokens"] <= 4_000


async def test_an_older_result_is_whole_where_everything_fits(client: AsyncClient) -> None:
    """However much of the budget it takes alone."""
    await append(client, "s1", "Look.", call(1), result(1, "word " * 3_200), "Say it again.")

    shown = await context(client)

    assert shown["tokens"] > 0.75 * 4_000
    assert (shown["window"]["shortened"], shown["window"]["left_out"]) == ([], 0)


async def test_each_of_several_results_of_one_call_is_cut(client: AsyncClient) -> None:
    calls = call(0)
    calls["tool_calls"] += call(1)["tool_calls"] + call(2)["tool_calls"]
    await append(
        client, "s1", "Look.", calls, result(0, rows(5_000)), result(1, "short"),
        result(2, rows(9_000)),
    )  # fmt: skip

    answer = await context(client)

    check_valid(answer["messages"])
    cut, short, other = [one["content"] for one in answer["messages"] if one["role"] == "tool"]
    assert short == "short"
    sizes = [EstimatedTokens().count(cut), EstimatedTokens().count(other)]
    assert min(sizes) > 1500
    assert sum(sizes) < 4000


async def test_a_result_in_parts_is_cut_too(client: AsyncClient) -> None:
    """As some tools return them; its text is not read whole."""
    texts = ["The beginning.", *["word " * 12_000] * 16, "The end."]
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    message = result(1, "") | {
        "content_parts": [*({"type": "text", "text": one} for one in texts), image]
    }
    await append(client, "s1", "Look.", call(1), message)

    answer = await context(client, render="parts")

    shown = answer["messages"][-1]
    assert shown["content"].startswith("The beginning.")
    assert shown["content"].endswith("The end.")
    length = len("\n".join(texts))
    assert f"of {length} characters left out" in shown["content"]
    assert shown["content_parts"] == [image]
    assert answer["tokens"] <= 4000


async def test_arguments_far_above_the_budget_are_replaced(client: AsyncClient) -> None:
    await append(client, "s1", "Write.", call(1, "write", text="word " * 12_000), result(1, "ok"))

    answer = await context(client)

    check_valid(answer["messages"])
    [made] = answer["messages"][-2]["tool_calls"]
    assert set(json.loads(made["function"]["arguments"])) == {"left_out"}
    assert answer["messages"][-1]["content"] == "ok"
    assert answer["window"]["left_out"] == 0


async def test_turns_that_a_strategy_leaves_out_are_named(client: AsyncClient) -> None:
    for number in range(10):
        reply = {"role": "assistant", "content": f"Reply {number}."}
        await append(client, "s1", f"Question {number}?", reply)

    few = await context(client, strategy={"name": "last_messages", "count": 2})
    ends = await context(client, strategy={"name": "first_last", "keep": 2})

    assert few["window"]["left_out_ranges"] == [{"from_sequence_no": 1, "to_sequence_no": 18}]
    assert named(few) == set(range(1, 19))
    assert named(ends) == set(range(2, 19))
    assert [one["name"] for one in few["parts"]][-2:] == ["left_out", "window"]


async def test_where_nothing_is_left_out_nothing_is_said(client: AsyncClient) -> None:
    await append(client, "s1", "Hello.")

    answer = await context(client)

    assert "left_out" not in answer["prompt"]
    assert answer["window"]["left_out_ranges"] == []
    assert answer["window"]["shortened"] == []


async def test_at_the_least_that_must_be_shown_it_fits_and_below_it_is_refused(
    client: AsyncClient,
) -> None:
    await append(client, "s1", "Look. " * 500, call(1), result(1, rows(5_000)))
    said = "Be kind. " * 200
    body = {"include": ALONE, "system_prompt": said}

    refused = await client.post("/sessions/s1/context", json=body | {"window_tokens": 100})
    figures = problem(refused, 422, "window_too_small")
    needed = figures["needed_tokens"]
    below = await client.post("/sessions/s1/context", json=body | {"window_tokens": needed - 1})
    at = await context(client, system_prompt=said, window_tokens=needed)

    assert figures["budget_tokens"] == 100
    assert str(needed) in figures["detail"]
    problem(below, 422, "window_too_small")
    assert at["window"]["fits"]
    assert at["tokens"] <= needed


async def test_messages_of_the_request_are_shortened_in_the_same_way(client: AsyncClient) -> None:
    await append(client, "s1", "Hello.")
    given = [{"role": "user", "content": "Look."}]
    for number in range(30):
        given += [call(number), result(number, rows(400))]

    answer = await context(client, messages=given)

    check_valid(answer["messages"])
    assert answer["tokens"] <= 4000
    assert answer["window"]["cleared"] > 5
    # They are stored nowhere.
    assert "message_read" not in str(answer)
    assert "see message 3 of the request" in str(answer["messages"])


async def test_the_trim_of_a_window_shows_the_same(client: AsyncClient) -> None:
    await work(client, 4, 5_000)

    shown = ok(await client.post("/sessions/s1/window/trim", json={"max_tokens": 3_000}))

    assert shown["fits"]
    assert shown["tokens"] <= 3_000
    assert [one["role"] for one in shown["messages"]] == ["user", *["assistant", "tool"] * 4]
    assert len(shown["shortened"]) == 4
    assert "characters left out" in shown["messages"][-1]["content"]
    assert shown["left_out_ranges"] == []
