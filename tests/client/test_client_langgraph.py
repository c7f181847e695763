"""The saver in LangGraph's own graphs, against the whole service in one process."""

import asyncio
import math
import operator
import random
import re
import time
from collections import Counter
from collections.abc import AsyncIterator
from typing import Annotated, Any, TypedDict
from uuid import uuid4

import httpx
import pytest
from fastapi import FastAPI
from httpx import ASGITransport
from langgraph.channels.delta import DeltaChannel
from langgraph.checkpoint.base import empty_checkpoint
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import START, StateGraph
from langgraph.types import Command, Send, interrupt

from app.runtime import Runtime
from kemem import ApiError, AsyncMemory, ConflictError, NotFoundError
from kemem.langgraph import KEY_USER, PER_RUN, KeMemSaver, session_id_of
from kemem.langgraph.operations import CHECKPOINT_WAIT_SECONDS
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller, make_key

DURABILITIES = ["sync", "async", "exit"]


class Recorded(ASGITransport):
    """The service, and the sizes of the bodies that it was sent."""

    def __init__(self, app: FastAPI) -> None:
        super().__init__(app.state.reached, raise_app_exceptions=False)
        self.sent: list[tuple[str, str, int]] = []

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        self.sent.append((request.method, request.url.path, len(request.content)))
        return await super().handle_async_request(request)


@pytest.fixture
def wire(app: FastAPI) -> Recorded:
    return Recorded(app)


@pytest.fixture
async def memory(wire: Recorded, acme: Caller) -> AsyncIterator[AsyncMemory]:
    http = httpx.AsyncClient(transport=wire)
    async with AsyncMemory("http://test", acme.key, http_client=http) as opened:
        yield opened


@pytest.fixture
async def saver(memory: AsyncMemory) -> KeMemSaver:
    return KeMemSaver(memory, user_id="ana", agent_id="helper")


def at(thread: str = "trip", **more: Any) -> Any:
    return {"configurable": {"thread_id": thread} | more}


class Talk(TypedDict):
    said: Annotated[list[str], operator.add]


def talk_of(saver: KeMemSaver) -> Any:
    """Answers each message; what begins with `ask` waits for a human first."""

    def answer(state: Talk) -> Any:
        last = state["said"][-1]
        if last.startswith("ask"):
            return {"said": [f"human: {interrupt(last)}"]}
        return {"said": [f"heard {last}"]}

    graph = StateGraph(Talk)
    graph.add_node("answer", answer)
    graph.add_edge(START, "answer")
    return graph.compile(checkpointer=saver)


class TestGraphs:
    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_thread_continues_and_interrupt_is_resumed(
        self, saver: KeMemSaver, durability: Any
    ) -> None:
        await talk_of(saver).ainvoke({"said": ["你好"]}, at(), durability=durability)
        await talk_of(saver).ainvoke({"said": ["ask me"]}, at(), durability=durability)
        state = await talk_of(saver).aget_state(at())
        assert [one.value for one in state.interrupts] == ["ask me"]

        done = await talk_of(saver).ainvoke(Command(resume="yes"), at(), durability=durability)

        assert done["said"] == ["你好", "heard 你好", "ask me", "human: yes"]
        assert (await talk_of(saver).aget_state(at())).values == done

    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_parallel_tasks_and_subgraphs_keep_their_own_state(
        self, saver: KeMemSaver, durability: Any
    ) -> None:
        def spread(state: Talk) -> Any:
            return [Send("work", {"said": [one]}) for one in state["said"][0]]

        def inner(state: Talk) -> Any:
            return {"said": [f"{state['said'][-1]} {interrupt('which?')}"]}

        work = StateGraph(Talk)
        work.add_node("inner", inner)
        work.add_edge(START, "inner")
        outer = StateGraph(Talk)
        outer.add_node("work", work.compile())
        outer.add_conditional_edges(START, spread, ["work"])
        graph = outer.compile(checkpointer=saver)

        await graph.ainvoke({"said": ["abc"]}, at(), durability=durability)
        state = await graph.aget_state(at(), subgraphs=True)
        assert len(state.interrupts) == 3
        answers = {one.id: "ok" for one in state.interrupts}
        done = await graph.ainvoke(Command(resume=answers), at(), durability=durability)

        assert sorted(done["said"]) == ["a", "a ok", "abc", "b", "b ok", "c", "c ok"]
        namespaces = {
            one.config["configurable"]["checkpoint_ns"] async for one in saver.alist(at())
        }
        assert len(namespaces) == 4

    async def test_thread_can_continue_from_an_earlier_checkpoint(self, saver: KeMemSaver) -> None:
        talk = talk_of(saver)
        for text in ("one", "two"):
            await talk.ainvoke({"said": [text]}, at())
        past = [one async for one in talk.aget_state_history(at())]
        after_one = next(one for one in past if one.values.get("said") == ["one", "heard one"])

        other = await talk.ainvoke({"said": ["three"]}, after_one.config)
        edited = await talk.aupdate_state(at(), {"said": ["edited"]})

        assert other["said"] == ["one", "heard one", "three", "heard three"]
        assert (await talk.aget_state(edited)).values["said"][-1] == "edited"
        assert (await talk.aget_state(past[0].config)).values["said"][-1] == "heard two"

    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_delta_channel_is_rebuilt_and_survives_pruning(
        self, saver: KeMemSaver, durability: Any
    ) -> None:
        class Log(TypedDict):
            log: Annotated[list[str], DeltaChannel(_extended, snapshot_frequency=5)]

        graph = StateGraph(Log)
        graph.add_node("note", lambda state: {"log": [f"seen {len(state['log'])}"]})
        graph.add_edge(START, "note")
        compiled = graph.compile(checkpointer=saver)
        for number in range(9):
            done = await compiled.ainvoke({"log": [str(number)]}, at(), durability=durability)
        assert len(done["log"]) == 18

        assert (await compiled.aget_state(at())).values == done
        await saver.aprune(["trip"])
        assert (await compiled.aget_state(at())).values == done
        more = await compiled.ainvoke({"log": ["last"]}, at(), durability=durability)
        assert more["log"][:18] == done["log"]
        assert len(more["log"]) == 20

    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_thread_can_start_with_a_command(
        self, saver: KeMemSaver, durability: Any
    ) -> None:
        talk = talk_of(saver)
        command = Command(update={"said": ["first"]}, goto="answer")

        async with asyncio.timeout(PATIENCE):
            done = await talk.ainvoke(command, at(), durability=durability)

        own = talk_of(InMemorySaver())
        assert done == await own.ainvoke(command, at(), durability=durability)
        assert (await talk.aget_state(at())).values == done

    async def test_sync_methods_work_from_other_threads(self, saver: KeMemSaver) -> None:
        """As `Memory` in tests/client/test_client_langgraph_conformance.py, from the other side."""
        done = await asyncio.to_thread(talk_of(saver).invoke, {"said": ["hello"]}, at())

        assert done["said"] == ["hello", "heard hello"]
        with pytest.raises(RuntimeError, match="await the async one"):
            saver.get_tuple(at())

    async def test_sync_method_without_a_loop_is_an_error(self, memory: AsyncMemory) -> None:
        def use() -> None:
            KeMemSaver(memory, user_id="ana").get_tuple(at())

        with pytest.raises(RuntimeError, match="event loop does not run"):
            await asyncio.to_thread(use)


def _extended(state: list[str], writes: list[list[str]]) -> list[str]:
    return [*state, *(one for write in writes for one in write)]


class TestSaver:
    async def put(
        self, saver: KeMemSaver, config: Any, values: dict[str, Any], **metadata: Any
    ) -> Any:
        checkpoint = empty_checkpoint()
        versions = {name: saver.get_next_version(None, None) for name in values}
        checkpoint |= {"channel_values": values, "channel_versions": versions}
        config["configurable"].setdefault("checkpoint_ns", "")
        return await saver.aput(
            config, checkpoint, {"source": "loop", "step": 1} | metadata, versions
        )

    async def test_values_of_every_type_are_restored(self, saver: KeMemSaver) -> None:
        """NUL and what JSON has not, small and large."""
        values = {
            "nul": "a\x00b", "nan": math.nan, "large": 2**60, "bytes": b"\x00\xff",
            "set": {1, 2}, "pattern": re.compile("枫"), "long": "枫叶" * 9000, "none": None,
            "true": True, "empty": [],
        }  # fmt: skip
        stored = await self.put(saver, at(), values)

        found = (await saver.aget_tuple(stored)).checkpoint["channel_values"]

        assert math.isnan(found.pop("nan"))
        values.pop("nan")
        assert found == values
        assert type(found["true"]) is bool

    async def test_nul_is_removed_from_metadata_at_any_depth(self, saver: KeMemSaver) -> None:
        stored = await self.put(saver, at(), {}, name="a\x00b", deep={"a\x00": ["b\x00", (1, 2)]})

        metadata = (await saver.aget_tuple(stored)).metadata

        assert (metadata["name"], metadata["deep"]) == ("ab", {"a": ["b", [1, 2]]})
        with pytest.raises(TypeError, match="a set is not"):
            await self.put(saver, at(), {}, name={"a"})

    async def test_step_sends_only_new_chunks(self, saver: KeMemSaver, wire: Recorded) -> None:
        """On the wire: the thousandth message costs about as much as the tenth."""
        talk = talk_of(saver)
        chance = random.Random(7)
        said = [chance.randbytes(350).hex() for _ in range(300)]
        await talk.aupdate_state(at(), {"said": said})
        wire.sent.clear()

        await talk.aupdate_state(at(), {"said": ["one more"]})

        assert sum(size for _, _, size in wire.sent) < 20_000
        assert sum(len(one) for one in said) > 200_000

    async def test_other_process_sends_chunks_that_the_service_lacks(
        self, saver: KeMemSaver, memory: AsyncMemory
    ) -> None:
        """It knows nothing of what is stored, or takes for stored what was deleted."""
        big = ["x" * 200, "y" * 50_000]
        first = await self.put(saver, at(), {"big": big})
        await KeMemSaver(memory, user_id="ana").adelete_thread("trip")

        again = await self.put(saver, at(), {"big": big})
        assert (await saver.aget_tuple(again)).checkpoint["channel_values"] == {"big": big}
        with pytest.raises(NotFoundError) as raised:
            await self.put(saver, first, {"big": big})
        assert raised.value.code == "saver_checkpoint_not_found"

    async def test_unchanged_channel_that_the_parent_lacks_is_sent(self, saver: KeMemSaver) -> None:
        first = await self.put(saver, at(), {"a": [1]})
        checkpoint = empty_checkpoint() | {"channel_values": {"a": [1], "b": [2]}}

        stored = await saver.aput(first, checkpoint, {"source": "fork", "step": 2}, {})

        found = await saver.aget_tuple(stored)
        assert found.checkpoint["channel_values"] == {"a": [1], "b": [2]}

    async def test_writes_wait_for_their_checkpoint_for_a_limited_time(
        self, saver: KeMemSaver
    ) -> None:
        checkpoint = empty_checkpoint()
        config = at(checkpoint_ns="", checkpoint_id=checkpoint["id"])
        early = asyncio.create_task(saver.aput_writes(config, [("a", 1)], "task"))
        await asyncio.sleep(0.3)
        assert not early.done()

        await saver.aput(at(checkpoint_ns=""), checkpoint, {"source": "loop", "step": 0}, {})
        await early

        assert (await saver.aget_tuple(config)).pending_writes == [("task", "a", 1)]

    async def test_owner_comes_from_config_saver_or_key(
        self, app: FastAPI, runtime: Runtime, acme: Caller, memory: AsyncMemory
    ) -> None:
        nobody = KeMemSaver(memory, user_id=PER_RUN)
        await self.put(nobody, at("bobs", user_id="bob"), {})
        assert (await memory.append("bobs", "Hello.", user_id="bob")).created == 1
        for blank in ({}, {"user_id": ""}, {"user_id": None}, {"user_id": "张/三"}):
            with pytest.raises(ValueError, match="user"):
                await self.put(nobody, at("bobs", **blank), {})
            with pytest.raises(ValueError, match="user"):
                await nobody.aget_tuple(at("bobs", **blank))
        with pytest.raises(ApiError) as raised:
            await self.put(KeMemSaver(memory, user_id=KEY_USER), at("nobodys"), {})
        assert raised.value.code == "user_required"
        with pytest.raises(ConflictError) as refused:
            await self.put(nobody, at("bobs", user_id="ana"), {})
        assert refused.value.code == "session_mismatch"

        key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        http = httpx.AsyncClient(transport=Recorded(app))
        async with AsyncMemory("http://test", key.key, http_client=http) as own:
            anas = KeMemSaver(own, user_id=KEY_USER)
            stored = await self.put(anas, at("ana:trip"), {"a": [1]})
            assert (await anas.aget_tuple(stored)) is not None
            assert [one async for one in anas.alist(at("bobs"))] == []

    async def test_key_of_a_name_that_is_not_ascii_has_threads(
        self, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write", user_id="张三")
        http = httpx.AsyncClient(transport=Recorded(app))
        async with AsyncMemory("http://test", key.key, http_client=http) as own:
            saver = KeMemSaver(own, user_id=KEY_USER)
            thread = f"{key.id_prefix}{uuid4()}"
            stored = await self.put(saver, at(thread), {"a": [1]})

            assert (await saver.aget_tuple(stored)) is not None
            assert (await own.append(thread, "你好。")).created == 1
            for other in ("张三:旅行", "trip"):
                with pytest.raises(ApiError) as refused:
                    await self.put(saver, at(other), {"a": [1]})
                assert refused.value.code == "id_not_allowed"

    async def test_missing_user_is_said_when_the_saver_is_built(self, memory: AsyncMemory) -> None:
        for user_id in (None, ""):
            with pytest.raises(ValueError, match="whose threads are these"):
                KeMemSaver(memory, user_id=user_id)
        acting = KeMemSaver(memory.acting_as("ana"))
        await self.put(acting, at(), {"a": [1]})
        assert (await KeMemSaver(memory, user_id="ana").aget_tuple(at())) is not None

    @pytest.mark.parametrize(
        "thread",
        [
            "trip", "with space", "x" * 64, "x" * 65, "slash/ed?#%2F", "枫叶", ".dot", "..", " ",
            "a\nb", "👩‍🚀" * 85, "x" * 255, "é", "e\u0301", session_id_of("枫叶"), "A", "a",
        ],
    )  # fmt: skip
    async def test_thread_id_and_namespace_are_any_text(
        self, saver: KeMemSaver, memory: AsyncMemory, thread: str
    ) -> None:
        await self.put(saver, at("other"), {"n": ["other"]})
        first = await self.put(saver, at(thread), {"n": [1]}, run_id="r")
        inner = await self.put(saver, at(thread, checkpoint_ns=thread), {"n": [2]})
        await saver.aput_writes(first, [("n", [3])], "task")

        found = await saver.aget_tuple(at(thread))
        assert (found.config, found.pending_writes) == (first, [("task", "n", [3])])
        assert (await saver.aget_tuple(at(thread, checkpoint_ns=thread))).config == inner
        listed = [one.config async for one in saver.alist(at(thread))]
        assert sorted(map(str, listed)) == sorted(map(str, (first, inner)))
        everything = [one.config["configurable"]["thread_id"] async for one in saver.alist(None)]
        assert sorted(everything) == sorted(["other", thread, thread])
        assert (await memory.append(session_id_of(thread), "Hello.")).created == 1

        await saver.acopy_thread(thread, thread[:100] + "的复制")
        copied = [one.config async for one in saver.alist(at(thread[:100] + "的复制"))]
        assert {one["configurable"]["thread_id"] for one in copied} == {thread[:100] + "的复制"}
        await saver.aprune([thread])
        await saver.adelete_thread(thread)
        assert [one async for one in saver.alist(at(thread))] == []
        assert (await saver.aget_tuple(at("other"))) is not None

    @pytest.mark.parametrize(
        ("thread", "why"),
        [("", "at least 1"), ("x" * 256, "255 characters, and this has 256"),
         ("a\x00b", "no NUL"), ("\ud800", "surrogate")],
    )  # fmt: skip
    async def test_invalid_thread_id_is_refused_before_sending(
        self, saver: KeMemSaver, wire: Recorded, thread: str, why: str
    ) -> None:
        for call in (
            saver.aget_tuple(at(thread)), self.put(saver, at(thread), {}),
            saver.adelete_thread(thread), saver.aprune([thread]), saver.acopy_thread("a", thread),
            saver.aput_writes(at(thread, checkpoint_id="c"), [("a", 1)], "t"),
        ):  # fmt: skip
            with pytest.raises(ValueError, match=why):
                await call
        if thread:
            with pytest.raises(ValueError, match=why):
                await saver.aget_tuple(at("trip", checkpoint_ns=thread))
        assert wire.sent == []
        with pytest.raises(ValueError, match="names no thread"):
            await saver.aget_tuple({"configurable": {}})

    async def test_thread_of_another_user_is_neither_read_nor_changed(
        self, memory: AsyncMemory, wire: Recorded
    ) -> None:
        """With the key of the application, which may see both."""
        bob, ana = KeMemSaver(memory, user_id="bob"), KeMemSaver(memory, user_id="ana")
        stored = await self.put(bob, at("bobs"), {"a": ["secret"]}, run_id="r")
        await bob.aput_writes(stored, [("a", "secret")], "task")
        await self.put(ana, at("anas"), {"a": ["hers"]}, run_id="r")

        async def all_of(config: Any) -> list[Any]:
            return [one async for one in ana.alist(config)]

        for call in (
            ana.aget_tuple(at("bobs")), ana.aget_tuple(stored), all_of(at("bobs")),
            KeMemSaver(memory, user_id="bob").aget_tuple(at("bobs", user_id="ana")),
            KeMemSaver(memory, user_id="bob", agent_id="other").aget_tuple(at("bobs")),
            ana.aget_delta_channel_history(config=stored, channels=["a"]),
            self.put(ana, stored, {"a": [1]}), ana.aput_writes(stored, [("a", 1)], "other"),
            ana.acopy_thread("bobs", "copied"), ana.acopy_thread("anas", "bobs"),
            ana.aprune(["bobs"], strategy="delete"), ana.adelete_thread("bobs"),
        ):  # fmt: skip
            with pytest.raises(ConflictError) as raised:
                await call
            assert raised.value.code == "session_mismatch"
        assert len(await all_of(None)) == 1
        await ana.adelete_for_runs(["r"])
        assert await all_of(at("anas")) == []
        found = await bob.aget_tuple(at("bobs"))
        assert found.checkpoint["channel_values"] == {"a": ["secret"]}
        assert found.pending_writes == [("task", "a", "secret")]

    async def test_model_is_not_asked_about_the_thread_of_another_user(
        self, memory: AsyncMemory
    ) -> None:
        asked: list[Any] = []
        graph = StateGraph(Talk)
        graph.add_node("answer", lambda state: asked.append(state) or {"said": ["ok"]})
        graph.add_edge(START, "answer")
        await graph.compile(checkpointer=KeMemSaver(memory, user_id="bob")).ainvoke(
            {"said": ["secret"]}, at()
        )
        asked.clear()

        with pytest.raises(ConflictError):
            await graph.compile(checkpointer=KeMemSaver(memory, user_id="ana")).ainvoke(
                {"said": ["what did bob say?"]}, at()
            )

        assert asked == []

    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_refused_checkpoint_is_raised_without_waiting(
        self, saver: KeMemSaver, memory: AsyncMemory, wire: Recorded, durability: Any
    ) -> None:
        """Writes wait for a checkpoint that comes; not for one that was refused."""
        await memory.append("trip", "Hello.", user_id="ana", agent_id="helper")
        await memory.end("trip")
        wire.sent.clear()
        started = time.monotonic()

        with pytest.raises(ConflictError) as raised:
            await talk_of(saver).ainvoke({"said": ["hi"]}, at(), durability=durability)

        assert raised.value.code == "session_ended"
        assert time.monotonic() - started < CHECKPOINT_WAIT_SECONDS
        assert max(Counter(path for _, path, _ in wire.sent).values()) <= 3

    @pytest.mark.parametrize("durability", DURABILITIES)
    async def test_refused_first_checkpoint_is_raised_without_waiting(
        self, saver: KeMemSaver, durability: Any
    ) -> None:
        """Also by the writes of those that LangGraph then does not store."""
        large = {**at(), "metadata": {"note": "x" * 70_000}}
        started = time.monotonic()

        with pytest.raises(ApiError):
            await talk_of(saver).ainvoke({"said": ["hi"]}, large, durability=durability)
        with pytest.raises(ApiError):
            await asyncio.to_thread(
                talk_of(saver).invoke, {"said": ["hi"]}, large, durability=durability
            )

        assert time.monotonic() - started < CHECKPOINT_WAIT_SECONDS
        done = await talk_of(saver).ainvoke({"said": ["hi"]}, at(), durability=durability)
        assert done["said"] == ["hi", "heard hi"]

    async def test_refusal_is_forgotten_when_the_checkpoint_is_stored(
        self, saver: KeMemSaver
    ) -> None:
        checkpoint = empty_checkpoint()
        config = at(checkpoint_ns="", checkpoint_id=checkpoint["id"])
        source = {"source": "loop", "step": 0}
        with pytest.raises(TypeError):
            await saver.aput(at(checkpoint_ns=""), checkpoint, {"name": {"a"}}, {})
        with pytest.raises(TypeError, match="a set is not"):
            await saver.aput_writes(config, [("a", 1)], "task")

        await saver.aput(at(checkpoint_ns=""), checkpoint, source, {})
        await saver.aput_writes(config, [("a", 1)], "task")
        await saver.adelete_thread("trip")
        waiting = asyncio.create_task(saver.aput_writes(config, [("a", 2)], "task"))
        await saver.aput(at(checkpoint_ns=""), checkpoint, source, {})
        await waiting

        assert (await saver.aget_tuple(config)).pending_writes == [("task", "a", 2)]

    async def test_wrong_arguments_are_refused_by_name(self, saver: KeMemSaver) -> None:
        with pytest.raises(TypeError, match="not one id"):
            await saver.aprune("trip")
        with pytest.raises(TypeError, match="not one id"):
            await saver.adelete_for_runs("run")
        with pytest.raises(ValueError, match="keep_latest, delete"):
            await saver.aprune(["trip"], strategy="keep_all")
        with pytest.raises(ValueError, match="names the checkpoint"):
            await saver.aput_writes(at(), [("a", 1)], "task")

    async def test_list_covers_all_pages_and_all_threads(self, saver: KeMemSaver) -> None:
        config = at()
        for number in range(105):
            config = await self.put(saver, config, {"n": [number]}, run_id="r")
        await self.put(saver, at("other"), {"n": [-1]})

        everything = [one async for one in saver.alist(None)]
        some = [one async for one in saver.alist(at(), limit=102)]

        assert [one.checkpoint["channel_values"]["n"] for one in some] == [
            [number] for number in range(104, 2, -1)
        ]
        assert len(everything) == 106
        assert [one async for one in saver.alist(at(), limit=0)] == []
        found = [one async for one in saver.alist(None, filter={"run_id": "r"}, limit=3)]
        assert len(found) == 3
        await saver.adelete_for_runs(["r"])
        assert [one async for one in saver.alist(at())] == []

    def test_versions_rise_and_differ_between_branches(self) -> None:
        # Without a saver: it asks nothing of one.
        next_version: Any = KeMemSaver.get_next_version
        versions = [next_version(None, None, None)]
        for _ in range(20):
            versions.append(next_version(None, versions[-1], None))

        assert versions == sorted(versions)
        assert next_version(None, versions[0], None) != next_version(None, versions[0], None)
        assert next_version(None, 7, None) > versions[5]
