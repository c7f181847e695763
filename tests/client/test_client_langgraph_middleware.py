"""`KeMemMiddleware` in agents of `create_agent` with scripted models, against the whole service."""

import logging
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport
from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from app.runtime import Runtime
from kemem import AsyncMemory, ConflictError, ConnectionFailedError, Memory
from kemem.langgraph import KEY_USER, PER_RUN, KeMemMiddleware, session_id_of
from kemem.openai_agents import KeMemSession
from tests.support.tenants import Caller
from tests.support.working import working

Script = Callable[[list[BaseMessage]], AIMessage]


class ScriptedModel(BaseChatModel):
    """Says what its script says to the messages, and keeps what it was sent."""

    script: Script
    seen: list[list[BaseMessage]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_options: Any) -> ChatResult:
        self.seen.append(messages)
        return ChatResult(generations=[ChatGeneration(message=self.script(messages))])


class Switch(ASGITransport):
    """The service, or nothing at all."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app.state.reached, raise_app_exceptions=False)
        self.off = False
        self.sent: list[str] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if self.off:
            raise httpx.ConnectError("refused")
        self.sent.append(f"{request.method} {request.url.path}")
        return await super().handle_async_request(request)


@pytest.fixture
def wire(app: FastAPI) -> Switch:
    return Switch(app)


@pytest.fixture
async def memory(wire: Switch, acme: Caller) -> AsyncIterator[AsyncMemory]:
    http = httpx.AsyncClient(transport=wire)
    async with AsyncMemory("http://test", acme.key, http_client=http, max_retries=0) as opened:
        yield opened


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    size = int(word) if word.isdigit() else 20
    return f"{word}: " + "枫叶 maple " * size


def echo(messages: list[BaseMessage]) -> AIMessage:
    return AIMessage(f"You said: {messages[-1].text}")


def looks_up(messages: list[BaseMessage]) -> AIMessage:
    """Looks one word up, then answers."""
    if isinstance(messages[-1], ToolMessage):
        return AIMessage("It is a tree.")
    call = {"name": "look_up", "args": {"word": "枫"}, "id": f"call-{len(messages)}"}
    return AIMessage("", tool_calls=[call])


def at(thread: str, **more: Any) -> Any:
    return {"configurable": {"thread_id": thread, **more}}


def agent_of(memory: AsyncMemory, model: ScriptedModel, **options: Any) -> Any:
    more = options.pop("middleware", [])
    saver = options.pop("checkpointer", None) or InMemorySaver()
    return create_agent(
        model,
        [look_up],
        system_prompt="You are terse.",
        middleware=[KeMemMiddleware(memory, **({"user_id": "ana"} | options)), *more],
        checkpointer=saver,
    )


async def stored(memory: AsyncMemory, session: str) -> list[tuple[str, str]]:
    return [(one.role, one.content[:40]) for one in await memory.messages(session, None)]


async def test_second_thread_knows_what_the_first_said(
    memory: AsyncMemory, runtime: Runtime, dsn: str
) -> None:
    model = ScriptedModel(script=echo)
    agent = agent_of(memory, model)
    await agent.ainvoke(
        {"messages": [("user", "My dog is called Biscuit. 我住在慕尼黑。")]}, at("one")
    )
    async with working(runtime, dsn):
        assert (await memory.extract("one", wait=True)).done

    await agent.ainvoke({"messages": [("user", "What is my dog called?")]}, at("two"))

    system, *messages = model.seen[-1]
    assert system.text.startswith("You are terse.\n\n")
    assert "Biscuit" in system.text
    assert [one.text for one in messages] == ["What is my dog called?"]
    other = await agent_of(memory, model, user_id="ben").ainvoke(
        {"messages": [("user", "What is my dog called?")]}, at("three")
    )
    assert "Biscuit" not in model.seen[-1][0].text
    assert len(other["messages"]) == 2


async def test_turns_are_appended_once_and_in_order(memory: AsyncMemory, wire: Switch) -> None:
    model = ScriptedModel(script=looks_up)
    agent = agent_of(memory, model)
    for text in ("What is 枫?", "And again?"):
        await agent.ainvoke({"messages": [("user", text)]}, at("trip"))

    said = await stored(memory, "trip")

    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"] * 2
    assert said[0] == ("user", "What is 枫?")
    assert said[3] == ("assistant", "It is a tree.")
    # Two requests for a call of the model, one at the end, and one where nothing was known yet.
    assert wire.sent.count("POST /v1/sessions/trip/messages") == 6
    assert wire.sent.count("POST /v1/sessions/trip/context") == 4
    assert wire.sent.count("GET /v1/sessions/trip/messages") == 2


async def test_service_that_is_away_breaks_nothing_and_loses_nothing(
    memory: AsyncMemory, wire: Switch, caplog: pytest.LogCaptureFixture
) -> None:
    model = ScriptedModel(script=looks_up)
    agent = agent_of(memory, model)
    await agent.ainvoke({"messages": [("user", "What is 枫?")]}, at("trip"))
    wire.off = True
    with caplog.at_level(logging.WARNING, "kemem.langgraph"):
        done = await agent.ainvoke({"messages": [("user", "Are you there?")]}, at("trip"))

    assert done["messages"][-1].text == "It is a tree."
    assert [one.text for one in model.seen[-2]][-1] == "Are you there?"
    told = [one.getMessage() for one in caplog.records]
    assert len(told) == 3
    assert all("connection_failed" in one and "there?" not in one for one in told)

    wire.off = False
    await agent.ainvoke({"messages": [("user", "Back again.")]}, at("trip"))
    said = await stored(memory, "trip")
    assert [role for role, _ in said] == ["user", "assistant", "tool", "assistant"] * 3
    assert said[4] == ("user", "Are you there?")

    wire.off = True
    with pytest.raises(ConnectionFailedError):
        await agent_of(memory, model, required=True).ainvoke(
            {"messages": [("user", "Now?")]}, at("trip")
        )


async def test_human_decision_is_awaited_before_the_call_is_stored(memory: AsyncMemory) -> None:
    model = ScriptedModel(script=looks_up)
    human = HumanInTheLoopMiddleware(interrupt_on={"look_up": True})
    agent = agent_of(memory, model, middleware=[human])
    await agent.ainvoke({"messages": [("user", "What is 枫?")]}, at("trip"))
    assert await stored(memory, "trip") == [("user", "What is 枫?")]

    edit = {"type": "edit", "edited_action": {"name": "look_up", "args": {"word": "7"}}}
    done = await agent.ainvoke(Command(resume={"decisions": [edit]}), at("trip"))

    rows = await memory.messages("trip", None)
    assert [one.role for one in rows] == ["user", "assistant", "tool", "assistant"]
    assert rows[2].tool_call_id == rows[1].tool_calls[0]["id"] == "call-2"
    assert [one.content for one in rows] == [one.text for one in done["messages"]]


async def test_caller_that_sends_the_conversation_each_time_stores_it_once(
    memory: AsyncMemory,
) -> None:
    model = ScriptedModel(script=echo)
    agent = create_agent(model, [], middleware=[KeMemMiddleware(memory, user_id="ana")])
    said: list[tuple[str, str]] = []
    for text in ("ok", "好", "ok", "ok"):
        said.append(("user", text))
        done = await agent.ainvoke({"messages": said}, at("trip"))
        said.append(("assistant", done["messages"][-1].text))
        # A retry.
        await agent.ainvoke({"messages": said[:-1]}, at("trip"))

    assert await stored(memory, "trip") == said
    assert [one.text for one in model.seen[-1]] == [text for _, text in said[:-1]]


async def test_regenerated_reply_replaces_the_other_and_branch_keeps_what_was_said(
    memory: AsyncMemory,
) -> None:
    number = iter(range(100))
    model = ScriptedModel(script=lambda _messages: AIMessage(f"Reply {next(number)}."))
    agent = agent_of(memory, model)
    for text in ("one", "two"):
        await agent.ainvoke({"messages": [("user", text)]}, at("trip"))
    past = [one async for one in agent.aget_state_history(at("trip"))]
    asked = next(one for one in past if one.next == ("model",))

    await agent.ainvoke(None, asked.config)

    assert await stored(memory, "trip") == [
        ("user", "one"), ("assistant", "Reply 0."), ("user", "two"), ("assistant", "Reply 2."),
    ]  # fmt: skip
    after_one = next(one for one in past if one.next == () and len(one.values["messages"]) == 2)
    await agent.ainvoke({"messages": [("user", "three")]}, after_one.config)
    assert [text for _, text in await stored(memory, "trip")] == [
        "one", "Reply 0.", "two", "Reply 2.", "three", "Reply 3.",
    ]  # fmt: skip
    # The model sees its own branch alone.
    assert [one.text for one in model.seen[-1][1:]] == ["one", "Reply 0.", "three"]


@pytest.mark.parametrize("steps", [1, 40])
async def test_steps_that_run_again_replace_the_others(memory: AsyncMemory, steps: int) -> None:
    number = iter(range(1000))

    @tool
    def count() -> str:
        """Count."""
        return f"Number {next(number)}."

    def script(messages: list[BaseMessage]) -> AIMessage:
        done = sum(isinstance(one, ToolMessage) for one in messages)
        if done == steps:
            return AIMessage(f"Seen: {messages[-1].text}")
        return AIMessage("", tool_calls=[{"name": "count", "args": {}, "id": f"c{done}"}])

    agent = create_agent(
        ScriptedModel(script=script),
        [count],
        middleware=[KeMemMiddleware(memory, user_id="ana")],
        checkpointer=InMemorySaver(),
    )
    config = {**at("trip"), "recursion_limit": 1000}
    await agent.ainvoke({"messages": [("user", "Count.")]}, config)
    past = [one async for one in agent.aget_state_history(config)]
    called = [one for one in past if one.next == ("tools",)][-1]

    # As a run that was killed before the result was in a checkpoint, and any step behind it.
    done = await agent.ainvoke(None, {**called.config, "recursion_limit": 1000})

    rows = await memory.messages("trip", None)
    assert [one.content for one in rows] == [one.text for one in done["messages"]]
    assert rows[2].content == f"Number {steps}."
    assert rows[1].tool_calls[0]["id"] == rows[2].tool_call_id == "c0"


async def test_thread_that_another_process_went_on_with_is_stored_once(
    memory: AsyncMemory,
) -> None:
    model, saver = ScriptedModel(script=echo), InMemorySaver()
    first, second = (agent_of(memory, model, checkpointer=saver) for _ in range(2))
    for number, agent in enumerate((first, second, first, first, second)):
        await agent.ainvoke({"messages": [("user", f"Number {number}.")]}, at("trip"))

    kept = (await first.aget_state(at("trip"))).values["messages"]
    assert [text for _, text in await stored(memory, "trip")] == [one.text for one in kept]


async def test_messages_of_the_application_stay_and_are_not_shown_as_the_threads(
    memory: AsyncMemory,
) -> None:
    model = ScriptedModel(script=echo)
    agent = agent_of(memory, model)
    await agent.ainvoke({"messages": [("user", "One.")]}, at("trip"))
    await memory.append("trip", [{"role": "assistant", "content": "Called back by phone."}])

    await agent.ainvoke({"messages": [("user", "Two.")]}, at("trip"))

    assert [text for _, text in await stored(memory, "trip")] == [
        "One.", "You said: One.", "Called back by phone.", "Two.", "You said: Two.",
    ]  # fmt: skip
    assert [one.text for one in model.seen[-1][1:]] == ["One.", "You said: One.", "Two."]


@dataclass
class Who:
    """The context of a run."""

    user_id: str
    thread_id: str


@pytest.mark.parametrize("named", ["configurable", "context", "mapping"])
async def test_user_and_thread_are_those_of_the_run(memory: AsyncMemory, named: str) -> None:
    agent = create_agent(
        ScriptedModel(script=echo),
        [],
        middleware=[KeMemMiddleware(memory, user_id="nobody")],
        context_schema=None if named == "configurable" else Who,
    )
    who = {"user_id": "ana", "thread_id": "trips/枫叶"}
    options: dict[str, Any] = {"config": {"configurable": who}}
    if named != "configurable":
        options = {"context": Who(**who) if named == "context" else who}

    await agent.ainvoke({"messages": [("user", "Hello.")]}, **options)

    rows = await memory.messages(session_id_of("trips/枫叶"), None)
    assert [(one.user_id, one.content) for one in rows] == [
        ("ana", "Hello."), ("ana", "You said: Hello."),
    ]  # fmt: skip


async def test_run_without_a_thread_is_refused(memory: AsyncMemory) -> None:
    ana = KeMemMiddleware(memory, user_id="ana")
    agent = create_agent(ScriptedModel(script=echo), middleware=[ana])

    with pytest.raises(ValueError, match="names no thread"):
        await agent.ainvoke({"messages": [("user", "Hello.")]})


async def test_missing_user_is_said_when_the_middleware_is_built(memory: AsyncMemory) -> None:
    for nobody in (None, ""):
        with pytest.raises(ValueError, match="whose threads are these"):
            KeMemMiddleware(memory, user_id=nobody)
    with pytest.raises(ValueError, match="cannot be the id of a user"):
        KeMemMiddleware(memory, user_id="张/三")
    KeMemMiddleware(memory.acting_as("ana"))
    KeMemMiddleware(memory, user_id=KEY_USER)


@pytest.mark.parametrize(
    ("whose", "named"),
    [
        (PER_RUN, {}),
        (PER_RUN, {"user_id": ""}),
        (PER_RUN, {"user_id": None}),
        (PER_RUN, {"user_id": "张/三"}),
        ("ana", {"user_id": ""}),
        ("ana", {"user_id": None}),
    ],
)
async def test_run_without_its_user_is_refused_before_anything_is_sent(
    memory: AsyncMemory, wire: Switch, whose: Any, named: dict[str, Any]
) -> None:
    model = ScriptedModel(script=echo)
    agent = agent_of(memory, model, user_id=whose)

    with pytest.raises(ValueError, match="user"):
        await agent.ainvoke({"messages": [("user", "Hello.")]}, at("trip", **named))

    assert (wire.sent, model.seen) == ([], [])


async def test_user_of_the_run_is_the_one_with_per_run(memory: AsyncMemory) -> None:
    agent = agent_of(memory, ScriptedModel(script=echo), user_id=PER_RUN)

    await agent.ainvoke({"messages": [("user", "Hello.")]}, at("trip", user_id="ben"))

    assert {row.user_id for row in await memory.messages("trip", None)} == {"ben"}


def test_argument_that_there_is_not_is_refused() -> None:
    wrong: dict[str, Any] = {"window_tokn": 5}

    with pytest.raises(TypeError, match="window_tokn"):
        KeMemMiddleware(Memory("http://test", "key"), user_id="ana", **wrong)


async def test_thread_of_somebody_else_is_neither_shown_nor_changed(memory: AsyncMemory) -> None:
    model = ScriptedModel(script=echo)
    await agent_of(memory, model).ainvoke({"messages": [("user", "Hello.")]}, at("trip"))
    calls = len(model.seen)

    with pytest.raises(ConflictError) as refused:
        await agent_of(memory, model, user_id="ben").ainvoke(
            {"messages": [("user", "Hello.")]}, at("trip")
        )

    assert refused.value.code == "session_mismatch"
    assert len(model.seen) == calls
    assert len(await stored(memory, "trip")) == 2


@pytest.mark.parametrize("other", [{"user_id": "ben"}, {"user_id": "ana", "agent_id": "other"}])
async def test_run_of_another_user_is_refused_by_a_shared_middleware(
    memory: AsyncMemory, other: dict[str, str]
) -> None:
    """Also where the thread is the same, and the first run has failed behind its context."""

    def fails(messages: list[BaseMessage]) -> AIMessage:
        raise RuntimeError("no model")

    await memory.add("Her dog is called Biscuit.", user_id="ana", infer=False)
    model = ScriptedModel(script=fails)
    agent = create_agent(model, [], middleware=[KeMemMiddleware(memory, user_id=PER_RUN)])
    asked = {"messages": [HumanMessage("What is my dog called?", id="1")]}
    with pytest.raises(RuntimeError, match="no model"):
        await agent.ainvoke(asked, at("trip", user_id="ana"))
    assert "Biscuit" in model.seen[-1][0].text

    with pytest.raises(ConflictError) as refused:
        await agent.ainvoke(asked, at("trip", **other))

    assert refused.value.code == "session_mismatch"
    assert len(model.seen) == 1


@pytest.mark.parametrize("said", ["Hello.", ""])
async def test_message_that_says_nothing_does_not_open_the_thread_of_another(
    memory: AsyncMemory, said: str
) -> None:
    await memory.add("Her dog is called Biscuit.", user_id="ana", infer=False)
    await KeMemSession("trip", memory, user_id="ana").recall("dog")
    if said:
        await memory.append("trip", said)
    model = ScriptedModel(script=lambda _messages: AIMessage(""))
    agent = agent_of(memory, model, user_id="ben")

    if said:
        with pytest.raises(ConflictError):
            await agent.ainvoke({"messages": [("user", "")]}, at("trip"))
        assert model.seen == []
    else:
        await agent.ainvoke({"messages": [("user", "")]}, at("trip"))
        assert "Biscuit" not in str(model.seen)


async def test_reply_is_streamed_and_stored(memory: AsyncMemory) -> None:
    agent = agent_of(memory, ScriptedModel(script=looks_up))
    parts = [
        part
        async for part, _ in agent.astream(
            {"messages": [("user", "What is 枫?")]}, at("trip"), stream_mode="messages"
        )
    ]

    assert [one.text for one in parts][-1] == "It is a tree."
    assert [role for role, _ in await stored(memory, "trip")] == [
        "user", "assistant", "tool", "assistant",
    ]  # fmt: skip


async def test_model_reads_a_message_on(memory: AsyncMemory) -> None:
    def script(messages: list[BaseMessage]) -> AIMessage:
        last = messages[-1]
        if not isinstance(last, ToolMessage):
            name, arguments = "look_up", {"word": "500"}
        elif last.name == "look_up":
            name, arguments = "message_read", {"number": 3, "offset": 4400}
        else:
            return AIMessage("Read.")
        call = {"name": name, "args": arguments, "id": f"c{len(messages)}"}
        return AIMessage("", tool_calls=[call])

    model = ScriptedModel(script=script)
    agent = agent_of(memory, model, message_read=True)
    done = await agent.ainvoke({"messages": [("user", "Look it up.")]}, at("trips/枫叶"))

    looked_up, read = (one for one in done["messages"] if isinstance(one, ToolMessage))
    assert looked_up.text[4400:] in read.text
    assert looked_up.text[:100] not in read.text


async def test_model_that_was_called_without_kemem_reads_nothing_of_another_user(
    memory: AsyncMemory, wire: Switch
) -> None:
    await memory.append("trip", "Her dog is called Biscuit.", user_id="ana")

    def reads(messages: list[BaseMessage]) -> AIMessage:
        wire.off = False
        call = {"name": "message_read", "args": {"number": 1}, "id": f"c{len(messages)}"}
        return AIMessage("", tool_calls=[call])

    model = ScriptedModel(script=reads)
    wire.off = True

    with pytest.raises(ConflictError):
        await agent_of(memory, model, user_id="ben", message_read=True).ainvoke(
            {"messages": [("user", "What is her dog called?")]}, at("trip")
        )

    assert len(model.seen) == 1
    assert "Biscuit" not in str(model.seen)


async def test_parallel_calls_and_large_results_stay_valid(memory: AsyncMemory) -> None:
    def script(messages: list[BaseMessage]) -> AIMessage:
        if isinstance(messages[-1], ToolMessage):
            return AIMessage("Done.")
        calls = [
            {"name": "look_up", "args": {"word": word}, "id": f"c{word}"}
            for word in ("9000", "1", "23000", "2")
        ]
        return AIMessage("", tool_calls=calls)

    model = ScriptedModel(script=script)
    agent = agent_of(memory, model, window_tokens=20_000)
    done = await agent.ainvoke({"messages": [("user", "Look them up.")]}, at("trip"))

    system, user, call, *results = model.seen[-1]
    assert (system.type, user.text) == ("system", "Look them up.")
    assert [one.tool_call_id for one in results] == [one["id"] for one in call.tool_calls]
    # The thread keeps what the window has no room for, and what the service does not store.
    whole = [len(one.text) for one in done["messages"][2:6]]
    assert whole == [len(f"{word}: ") + 9 * int(word) for word in ("9000", "1", "23000", "2")]
    assert sum(len(one.text) for one in results) < 100_000 < sum(whole)
    [cut] = [one for one in await memory.messages("trip", None) if one.tool_call_id == "c23000"]
    kept = cut.content.split("\n[… ")
    assert len(cut.content) <= 200_000
    assert int(kept[1].split()[0]) == whole[2] - len(kept[0]) - len(kept[1].split("…]\n")[1])
