"""LangChain's retriever and chat history in its chains, against the whole service."""

import pytest
from langchain_core.chat_history import BaseChatMessageHistory
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.runnables.history import RunnableWithMessageHistory

from kemem import AsyncMemory, ConflictError
from kemem.langchain import KeMemChatMessageHistory, KeMemRetriever


class Repeater(BaseChatModel):
    """Says how many messages it was sent, and the first of them."""

    @property
    def _llm_type(self) -> str:
        return "repeater"

    def _generate(self, messages: list[BaseMessage], *_rest: object, **_options: object):
        said = AIMessage(f"{len(messages)}: {messages[0].text}")
        return ChatResult(generations=[ChatGeneration(message=said)])


CONVERSATION = [
    SystemMessage("Be brief."),
    HumanMessage("What is the weather?"),
    AIMessage("", tool_calls=[{"name": "weather", "args": {"city": "上海"}, "id": "c1"}]),
    ToolMessage("sunny", tool_call_id="c1"),
    AIMessage("It is sunny."),
    HumanMessage([{"type": "text", "text": "And here?"},
                  {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}]),
]  # fmt: skip


def shape(message: BaseMessage) -> tuple[object, ...]:
    calls = [(one["name"], one["args"], one["id"]) for one in getattr(message, "tool_calls", [])]
    return message.type, message.content, calls, getattr(message, "tool_call_id", None)


@pytest.fixture
def history(memory_of_acme: AsyncMemory) -> KeMemChatMessageHistory:
    return KeMemChatMessageHistory("chat", memory_of_acme, user_id="ana")


async def test_messages_come_back_as_they_were(history) -> None:
    assert isinstance(history, BaseChatMessageHistory)
    assert await history.aget_messages() == []

    await history.aadd_messages(CONVERSATION[:2])
    await history.aadd_messages([*CONVERSATION[2:], AIMessage("")])

    assert list(map(shape, await history.aget_messages())) == list(map(shape, CONVERSATION))


@pytest.mark.parametrize(("limit", "found"), [(1, ["7"]), (2, ["6", "7"]), (8, list("01234567"))])
async def test_limit_keeps_the_newest(memory_of_acme, limit, found) -> None:
    history = KeMemChatMessageHistory("chat", memory_of_acme, user_id="ana", limit=limit)
    await history.aadd_messages([HumanMessage(str(number)) for number in range(8)])

    assert [message.text for message in await history.aget_messages()] == found


@pytest.mark.filterwarnings("ignore:RunnableWithMessageHistory is deprecated")
async def test_chain_with_history_goes_on_where_it_ended(memory_of_acme) -> None:
    def of(session_id: str) -> KeMemChatMessageHistory:
        return KeMemChatMessageHistory(session_id, memory_of_acme, user_id="ana")

    config = {"configurable": {"session_id": "monday"}}
    for number, answer in ((1, "1: My dog is Biscuit."), (2, "3: My dog is Biscuit.")):
        chat = RunnableWithMessageHistory(Repeater(), of)
        text = "My dog is Biscuit." if number == 1 else "And?"
        assert (await chat.ainvoke([HumanMessage(text)], config)).text == answer
    assert len(await of("monday").aget_messages()) == 4
    assert await of("tuesday").aget_messages() == []


async def test_cleared_history_is_empty_and_can_go_on(history) -> None:
    await history.aclear()
    await history.aadd_messages(CONVERSATION[:2])
    await history.aclear()
    assert await history.aget_messages() == []
    await history.aadd_messages([HumanMessage("Again.")])
    assert [message.text for message in await history.aget_messages()] == ["Again."]


async def test_history_of_another_user_is_refused(history, memory_of_acme) -> None:
    await history.aadd_messages(CONVERSATION[:2])
    other = KeMemChatMessageHistory("chat", memory_of_acme, user_id="bob")

    for call in (other.aget_messages(), other.aclear(), other.aadd_messages(CONVERSATION[:1])):
        with pytest.raises(ConflictError):
            await call
    assert len(await history.aget_messages()) == 2


def test_missing_user_and_strange_ids_are_said_at_once(memory_of_acme) -> None:
    with pytest.raises(ValueError, match="whose"):
        KeMemChatMessageHistory("chat", memory_of_acme)
    with pytest.raises(ValueError, match="cannot be the id"):
        KeMemChatMessageHistory("no/id", memory_of_acme, user_id="ana")


def test_sync_methods_of_an_async_client_are_an_error(history, memory_of_acme) -> None:
    with pytest.raises(TypeError, match="AsyncMemory"):
        _ = history.messages
    with pytest.raises(TypeError, match="AsyncMemory"):
        KeMemRetriever(client=memory_of_acme, user_id="ana").invoke("What?")


async def test_retriever_finds_memories_of_the_user_best_first(memory_of_acme) -> None:
    for text in ("Her dog is called Biscuit.", "She works as a baker in Ghent."):
        await memory_of_acme.add(text, user_id="ana", infer=False)
    await memory_of_acme.add("His dog is called Rex.", user_id="bob", infer=False)
    query = "What is the dog called?"

    retriever = KeMemRetriever(client=memory_of_acme, user_id="ana")
    found = await retriever.ainvoke(query)

    assert found[0].page_content == "Her dog is called Biscuit."
    assert {one.metadata["user_id"] for one in found} == {"ana"}
    assert found[0].id == found[0].metadata["memory_id"]
    assert (await memory_of_acme.get(found[0].id)).content == found[0].page_content
    assert len(await retriever.model_copy(update={"k": 1}).ainvoke(query)) == 1
    assert await retriever.ainvoke("  ") == []
    assert await retriever.ainvoke("dog " * 1000)


async def test_retriever_hands_options_on_and_acts_as_the_clients_user(memory_of_acme) -> None:
    await memory_of_acme.add("Her dog is called Biscuit.", user_id="ana", infer=False)
    ana = memory_of_acme.acting_as("ana")

    assert len(await KeMemRetriever(client=ana).ainvoke("dog")) == 1
    none = KeMemRetriever(client=ana, options={"run_id": "another-session"})
    assert await none.ainvoke("dog") == []
