"""The store in LangChain's agents with LangMem's tools, against the service in one process."""

import asyncio
import json
import warnings
from collections.abc import AsyncIterator, Sequence
from typing import Any

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport
from langchain.agents import create_agent
from langchain_core.messages import ToolMessage
from langgraph.store.base import GetOp, ListNamespacesOp, PutOp, SearchOp

from kemem import ApiError, AsyncMemory
from kemem.langgraph import KeMemStore
from tests.support.scripted_model import Scripted
from tests.support.tenants import Caller

with warnings.catch_warnings():
    # What it imports itself has warnings of LangGraph.
    warnings.simplefilter("ignore")
    from langmem import create_manage_memory_tool, create_search_memory_tool


class Wire(ASGITransport):
    """The service, and the requests that it was sent; the next answers may be lost."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app.state.reached, raise_app_exceptions=False)
        self.sent: list[dict[str, Any]] = []
        self.lost = 0

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append(json.loads(request.content or b"{}"))
        response = await super().handle_async_request(request)
        if self.lost:
            self.lost -= 1
            raise httpx.ReadError("the answer was lost", request=request)
        return response


@pytest.fixture
def wire(app: FastAPI) -> Wire:
    return Wire(app)


@pytest.fixture
async def memory(wire: Wire, acme: Caller) -> AsyncIterator[AsyncMemory]:
    http = httpx.AsyncClient(transport=wire)
    async with AsyncMemory("http://test", acme.key, http_client=http) as opened:
        yield opened


@pytest.fixture
async def store(memory: AsyncMemory) -> KeMemStore:
    return KeMemStore(memory)


NAMESPACE = ("users", "{user_id}", "memories")


def agent_of(store: KeMemStore | None, script: Sequence[Any], tools: Any = None) -> Any:
    tools = tools or [create_manage_memory_tool(NAMESPACE), create_search_memory_tool(NAMESPACE)]
    return create_agent(Scripted(script=list(script)), tools, store=store)


async def say(agent: Any, user_id: str = "ana") -> list[str]:
    """What the tools told the agent."""
    done = await agent.ainvoke(
        {"messages": [("user", "Go on.")]}, {"configurable": {"user_id": user_id}}
    )
    return [one.text for one in done["messages"] if isinstance(one, ToolMessage)]


class TestLangMem:
    async def test_agent_remembers_finds_corrects_and_forgets(self, store: KeMemStore) -> None:
        create = [("manage_memory", {"content": f"She likes {one}."}) for one in ("tea", "bees")]
        [first, _] = await say(agent_of(store, [*create, "Noted."]))
        assert first.startswith("created memory")

        look = ("search_memory", {"query": "what does she drink, tea?", "limit": 1})
        correct = (
            "manage_memory",
            {"action": "update", "id": "{id}", "content": "She likes 咖啡."},
        )
        found = await say(agent_of(store, [look, correct, "Done."]))
        [hit] = json.loads(found[0])
        assert hit["value"] == {"content": "She likes tea."}
        assert hit["namespace"] == ["users", "ana", "memories"]
        assert 0 < hit["score"] <= 1

        again = ("search_memory", {"query": "咖啡", "limit": 1})
        forget = ("manage_memory", {"action": "delete", "id": "{id}"})
        told = await say(agent_of(store, [again, forget, "Done."]))
        assert json.loads(told[0])[0]["value"] == {"content": "She likes 咖啡."}
        assert told[1] == f"Deleted memory {hit['key']}"
        left = await store.asearch(("users", "ana"))
        assert [one.value["content"] for one in left] == ["She likes bees."]

    async def test_users_do_not_find_each_others_memories(self, store: KeMemStore) -> None:
        await say(agent_of(store, [("manage_memory", {"content": "She likes tea."}), "Noted."]))

        look = ("search_memory", {"query": "tea"})
        [found] = await say(agent_of(store, [look, "Nothing."]), user_id="ben")

        assert json.loads(found) == []

    async def test_memories_go_with_their_user(
        self, store: KeMemStore, client: httpx.AsyncClient
    ) -> None:
        for user_id in ("ana", "ben"):
            script = [("manage_memory", {"content": "Likes tea."}), "Noted."]
            await say(agent_of(store, script), user_id=user_id)

        receipt = await client.delete("/users/ana", params={"confirm": True})

        assert receipt.json()["deleted"]["store_items"] == 1
        assert await store.alist_namespaces() == [("users", "ben", "memories")]

    async def test_tools_take_the_store_itself_and_are_called_from_threads(
        self, store: KeMemStore
    ) -> None:
        namespace = ("team",)
        tools = [
            create_manage_memory_tool(namespace, store=store),
            create_search_memory_tool(namespace, store=store),
        ]
        agent = agent_of(
            None,
            [("manage_memory", {"content": "We ship."}), ("search_memory", {"query": "ship"}), "."],
            tools,
        )

        done = await asyncio.to_thread(agent.invoke, {"messages": [("user", "Go on.")]})

        found = [one.text for one in done["messages"] if isinstance(one, ToolMessage)]
        assert json.loads(found[1])[0]["value"] == {"content": "We ship."}


class TestRequests:
    async def test_batch_is_one_request(self, store: KeMemStore, wire: Wire) -> None:
        await store.abatch(
            [
                PutOp(("t",), "k", {"n": 1}),
                GetOp(("t",), "k"),
                SearchOp((), query="tea"),
                ListNamespacesOp(),
                PutOp(("t",), "k", {"n": 2}),
            ]
        )

        [body] = wire.sent
        assert [one["op"] for one in body["operations"]] == [
            "get", "search", "list_namespaces", "put",
        ]  # fmt: skip

    async def test_long_batch_is_sent_in_parts_with_what_reads_first(
        self, store: KeMemStore, wire: Wire
    ) -> None:
        count = 1500
        puts = [PutOp(("t",), str(n), {"n": n}, index=False) for n in range(count)]

        found = await store.abatch([*puts, SearchOp(("t",)), GetOp(("t",), "7")])

        assert (found[-2], found[-1]) == ([], None)
        assert [len(body["operations"]) for body in wire.sent] == [1000, 502]
        got = await store.abatch([GetOp(("t",), str(n)) for n in range(count)])
        assert [one.value["n"] for one in got] == list(range(count))

    async def test_large_values_are_sent_in_parts(self, store: KeMemStore, wire: Wire) -> None:
        values = [{"v": str(n) * 600_000} for n in range(4)]

        await store.abatch(
            [PutOp(("t",), str(n), one, index=False) for n, one in enumerate(values)]
        )

        assert len(wire.sent) == 2
        got = await store.abatch([GetOp(("t",), str(n)) for n in range(4)])
        assert [one.value for one in got] == values

    async def test_answer_that_is_too_large_is_asked_for_in_parts(
        self, store: KeMemStore, wire: Wire
    ) -> None:
        text = "x" * 1_000_000
        await store.aput(("docs",), "k", {"text": text}, index=False)
        del wire.sent[:]

        puts = [PutOp(("docs",), key, {"text": key}) for key in ("k", "new")]
        results = await store.abatch([puts[0], *[GetOp(("docs",), "k")] * 20, puts[1]])

        assert [one.value["text"] == text for one in results[1:-1]] == [True] * 20
        kinds = [[op["op"] for op in body["operations"]] for body in wire.sent]
        # The whole and all that reads are refused; what changes stays together, at the end.
        assert [len(one) for one in kinds] == [22, 20, 10, 10, 2]
        assert kinds[-1] == ["put", "put"]
        assert (await store.aget(("docs",), "k")).value == {"text": "k"}

    async def test_search_that_finds_too_much_is_an_error(self, store: KeMemStore) -> None:
        for number in range(17):
            await store.aput(("docs",), str(number), {"text": "x" * 1_000_000}, index=False)

        with pytest.raises(ApiError) as caught:
            await store.asearch(("docs",), limit=17)

        assert caught.value.code == "store_answer_too_large"

    async def test_answer_that_was_lost_is_asked_for_again(
        self, store: KeMemStore, wire: Wire
    ) -> None:
        wire.lost = 2

        await store.aput(("t",), "k", {"n": 1})
        first = await store.aget(("t",), "k")

        assert len(wire.sent) == 4
        # Sent three times, put once.
        assert first.created_at == first.updated_at

    async def test_refusal_is_an_error_at_once(self, store: KeMemStore, wire: Wire) -> None:
        with pytest.raises(ApiError) as raised:
            await store.aput(("x" * 256,), "k", {})

        assert (raised.value.status, raised.value.code) == (422, "invalid_request")
        assert len(wire.sent) == 1

    @pytest.mark.parametrize("value", [{"v": {1, 2}}, {"v": float("nan")}, {"v": "\ud800"}])
    async def test_what_is_no_json_is_not_sent(
        self, store: KeMemStore, wire: Wire, value: Any
    ) -> None:
        with pytest.raises((TypeError, ValueError)):
            await store.aput(("t",), "k", value)

        assert wire.sent == []

    async def test_sync_method_in_the_event_loop_is_an_error(self, store: KeMemStore) -> None:
        with pytest.raises(RuntimeError, match="await the async one"):
            store.get(("t",), "k")


class TestOwners:
    @pytest.mark.parametrize(
        ("patterns", "namespace", "owner"),
        [
            (None, ("users", "ana"), "ana"),
            (None, ("users", "ana", "likes"), "ana"),
            (None, ("users",), None),
            (None, ("memories", "ana"), None),
            (None, ("users", "枫 叶"), "枫 叶"),
            (None, ("users", "枫/叶"), None),
            ([("memories", "{user_id}")], ("memories", "ana"), "ana"),
            ([("memories", "{user_id}")], ("users", "ana"), None),
            ([("{user_id}", "memories")], ("ana", "memories", "x"), "ana"),
            ([("a", "{user_id}"), ("a", "b", "{user_id}")], ("a", "b", "c"), "b"),
            ([], ("users", "ana"), None),
        ],
    )
    async def test_namespace_names_the_user(
        self, memory: AsyncMemory, wire: Wire, patterns: Any, namespace: Any, owner: Any
    ) -> None:
        named = {} if patterns is None else {"user_namespaces": patterns}
        store = KeMemStore(memory, **named)

        await store.aput(namespace, "k", {})

        assert wire.sent[0]["operations"][0]["user_id"] == owner
        assert (await store.aget(namespace, "k")).value == {}

    async def test_store_of_a_user_is_apart(self, memory: AsyncMemory, store: KeMemStore) -> None:
        mine = KeMemStore(memory, user_id="ana")
        await mine.aput(("notes",), "k", {"n": 1})

        assert await store.aget(("notes",), "k") is None
        assert await KeMemStore(memory, user_id="ben").asearch(()) == []
        assert (await KeMemStore(memory.acting_as("ana")).aget(("notes",), "k")).value == {"n": 1}

    async def test_arguments_are_checked(self, memory: AsyncMemory) -> None:
        for arguments, message in (
            ({"index": {"dims": 3, "embed": len}}, "takes `fields` alone, not dims, embed"),
            ({"user_namespaces": [("users",)]}, "has the label"),
            ({"user_namespaces": ["{user_id}"]}, "has the label"),
            ({"user_id": "an/a"}, "cannot be the id of a user"),
        ):
            with pytest.raises(ValueError, match=message):
                KeMemStore(memory, **arguments)


def test_operators_of_the_client_are_those_of_the_service() -> None:
    from app.memory.store.json_values import OPERATORS as KNOWN
    from kemem.langgraph.store_calls import OPERATORS

    assert OPERATORS == KNOWN
