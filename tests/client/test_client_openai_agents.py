"""`KeMemSession` in runs of OpenAI's Agents SDK with scripted models, against the whole service."""

from typing import Any

import pytest
from agents import Agent, ModelResponse, RunConfig, Runner, Usage, function_tool
from agents.memory import Session, SessionSettings
from agents.models.interface import Model
from openai.types.responses import (
    ResponseFunctionToolCall,
    ResponseOutputMessage,
    ResponseOutputText,
    ResponseReasoningItem,
)

from kemem import AsyncMemory, ConflictError
from kemem.openai_agents import KEY_USER, KeMemSession

QUIET = RunConfig(tracing_disabled=True)


def say(text: str) -> ResponseOutputMessage:
    part = ResponseOutputText(text=text, type="output_text", annotations=[])
    return ResponseOutputMessage(
        id="msg", content=[part], role="assistant", status="completed", type="message"
    )


class ScriptedModel(Model):
    """Calls its tool once in a run, then answers; keeps what it was sent."""

    def __init__(self) -> None:
        self.seen: list[tuple[str | None, list[Any]]] = []

    async def get_response(self, **call: Any) -> ModelResponse:
        items = list(call["input"])
        self.seen.append((call["system_instructions"], items))
        last = items[-1]
        if last.get("type") == "function_call_output":
            output = [say(f"It is {last['output']}.")]
        elif "weather" in str(last["content"]):
            reasoning = ResponseReasoningItem(id="rs_1", summary=[], type="reasoning")
            call = ResponseFunctionToolCall(
                arguments="{}", call_id=f"call-{len(items)}", name="weather", type="function_call"
            )
            output = [reasoning, call]
        else:
            output = [say("I see.")]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *_rest: Any, **_options: Any) -> Any:
        raise NotImplementedError


@function_tool
def weather() -> str:
    """The weather."""
    return "sunny"


def types(items: list[Any]) -> list[str]:
    return [item.get("type") or item["role"] for item in items]


CALL = {"type": "function_call", "call_id": "c1", "name": "weather", "arguments": "{}"}
OTHER_CALL = {**CALL, "call_id": "c2"}
OUTPUT = {"type": "function_call_output", "call_id": "c1", "output": "sunny"}
OTHER_OUTPUT = {**OUTPUT, "call_id": "c2"}
HELLO = {"role": "user", "content": "Hello."}


@pytest.fixture
def session(memory_of_acme: AsyncMemory) -> KeMemSession:
    return KeMemSession("chat", memory_of_acme, user_id="ana")


def test_missing_user_or_strange_id_is_said_when_the_session_is_built(
    memory_of_acme: AsyncMemory,
) -> None:
    for nobody in (None, ""):
        with pytest.raises(ValueError, match="whose threads are these"):
            KeMemSession("chat", memory_of_acme, user_id=nobody)
    for strange in ("a b/c 火", "", "x" * 65, "..", " a"):
        with pytest.raises(ValueError, match="cannot be the id of a session"):
            KeMemSession(strange, memory_of_acme, user_id="ana")
    KeMemSession("x" * 64, memory_of_acme, user_id=KEY_USER)
    KeMemSession("chat", memory_of_acme.acting_as("ana"))


async def test_runs_share_a_session(session: KeMemSession, memory_of_acme: AsyncMemory) -> None:
    model = ScriptedModel()
    agent = Agent(name="helper", model=model, tools=[weather])

    first = await Runner.run(agent, "What is the weather?", session=session, run_config=QUIET)
    again = KeMemSession("chat", memory_of_acme, user_id="ana")
    await Runner.run(agent, "Thanks.", session=again, run_config=QUIET)

    assert isinstance(session, Session)
    assert first.final_output == "It is sunny."
    _, sent = model.seen[-1]
    assert types(sent) == [
        "user", "reasoning", "function_call", "function_call_output", "message", "user"
    ]  # fmt: skip
    assert sent[:5] == first.to_input_list()
    rows = await memory_of_acme.messages("chat", None)
    assert [one.role for one in rows] == [
        "user", "assistant", "assistant", "tool", "assistant", "user", "assistant"
    ]  # fmt: skip


async def test_second_session_of_a_user_recalls_the_first(
    session: KeMemSession, memory_of_acme: AsyncMemory
) -> None:
    model = ScriptedModel()
    agent = Agent(name="helper", model=model)
    await Runner.run(agent, "My dog is called Biscuit.", session=session, run_config=QUIET)

    other = KeMemSession("later", memory_of_acme, user_id="ana")

    async def instructions(run: Any, _agent: Any) -> str:
        return f"You are terse.\n\n{await other.recall(run.turn_input)}"

    knowing = Agent(name="helper", model=model, instructions=instructions)
    await Runner.run(knowing, "What is my dog called?", session=other, run_config=QUIET)

    told, sent = model.seen[-1]
    assert told.startswith("You are terse.\n\n")
    assert "Biscuit" in told
    assert len(sent) == 1
    assert "Biscuit" not in await KeMemSession("x", memory_of_acme, user_id="ben").recall("dog?")


@pytest.mark.parametrize(
    ("limit", "kept"), [(None, 5), (0, 0), (1, 1), (4, 4), (5, 5), (6, 5), (-1, 0)]
)
async def test_limit_takes_the_newest_items(
    session: KeMemSession, memory_of_acme: AsyncMemory, limit: int | None, kept: int
) -> None:
    items: list[Any] = [{"role": "user", "content": f"Number {n}."} for n in range(5)]
    await session.add_items(items)
    limited = KeMemSession(
        "chat", memory_of_acme, user_id="ana", session_settings=SessionSettings(limit=limit)
    )

    assert await session.get_items(limit) == items[5 - kept :]
    assert await limited.get_items() == items[5 - kept :]
    assert await limited.get_items(2) == items[3:]


async def test_hundreds_of_items_of_any_size_are_stored_in_order(session: KeMemSession) -> None:
    items: list[Any] = [
        {"role": "user", "content": f"{n} " + "x" * (100_000 if n % 20 == 0 else 1)}
        for n in range(205)
    ]

    await session.add_items(items)

    assert await session.get_items() == items
    assert await session.get_items(150) == items[55:]


@pytest.mark.parametrize(
    "items",
    [
        [HELLO],
        [HELLO, CALL],
        [HELLO, CALL, OUTPUT],
        [HELLO, CALL, OTHER_CALL, OUTPUT, OTHER_OUTPUT],
        [HELLO, CALL, OTHER_CALL, OTHER_OUTPUT, OUTPUT, HELLO],
        [OUTPUT, HELLO, OUTPUT],
    ],
    ids=len,
)
async def test_pop_removes_the_newest_item_and_nothing_else(
    session: KeMemSession, memory_of_acme: AsyncMemory, items: list[Any]
) -> None:
    await session.add_items(items)

    for left in range(len(items) - 1, -1, -1):
        assert await session.pop_item() == items[left]
        assert await session.get_items() == items[:left]
    assert await session.pop_item() is None
    assert len(await memory_of_acme.messages("chat", None)) == 0


async def test_clear_removes_all_items(session: KeMemSession) -> None:
    await session.clear_session()
    assert await session.get_items() == []
    assert await session.pop_item() is None
    await session.add_items([HELLO, CALL, OUTPUT])

    await session.clear_session()

    assert await session.get_items() == []
    await session.add_items([HELLO])
    assert await session.get_items() == [HELLO]


@pytest.mark.parametrize("other", [{"user_id": "ben"}, {"user_id": "ana", "agent_id": "other"}])
@pytest.mark.parametrize(
    ("method", "arguments"),
    [
        ("get_items", []), ("get_items", [1]), ("pop_item", []), ("clear_session", []),
        ("recall", ["What did she say?"]), ("add_items", [[HELLO]]),
    ],
)  # fmt: skip
async def test_session_of_somebody_else_is_refused(
    session: KeMemSession,
    memory_of_acme: AsyncMemory,
    other: dict[str, str],
    method: str,
    arguments: list[Any],
) -> None:
    await session.add_items([HELLO, CALL, OUTPUT])

    with pytest.raises(ConflictError) as refused:
        await getattr(KeMemSession("chat", memory_of_acme, **other), method)(*arguments)

    assert refused.value.code == "session_mismatch"
    assert await session.get_items() == [HELLO, CALL, OUTPUT]


async def test_model_is_not_asked_about_the_session_of_somebody_else(
    session: KeMemSession, memory_of_acme: AsyncMemory
) -> None:
    await session.add_items([HELLO])
    model = ScriptedModel()
    others = KeMemSession("chat", memory_of_acme, user_id="ben")

    with pytest.raises(ConflictError):
        await Runner.run(Agent(name="helper", model=model), "Hi.", session=others, run_config=QUIET)

    assert model.seen == []


async def test_empty_session_of_somebody_else_tells_nothing(
    session: KeMemSession, memory_of_acme: AsyncMemory
) -> None:
    await memory_of_acme.add("Her dog is called Biscuit.", user_id="ana", infer=False)
    assert "Biscuit" in await session.recall("dog")

    with pytest.raises(ConflictError):
        await KeMemSession("chat", memory_of_acme, user_id="ben").recall("dog")
