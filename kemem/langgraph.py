"""`KeMemSaver` keeps LangGraph's threads in KeMem: a thread is a session.

Needs the extra: `pip install "kemem-client[langgraph]"`.
"""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

import asyncio
import json
import random
import time
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    DeltaChannelHistory,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem import langgraph_calls as calls
from kemem.langgraph_calls import PAGE, Stored
from kemem.langgraph_steps import (
    Known,
    Steps,
    ask,
    ask_async,
    history,
    newest,
    page,
    put,
    put_writes,
    quietly,
)
from kemem.langgraph_tuples import Prepared, place_of, prepare, thread_of, tuple_of
from kemem.sending import AsyncSender, Sender
from kemem.writing import Call

Result = TypeVar("Result")

BATCH = 1000
"""Most threads or runs that one request names."""
STRATEGIES = ("keep_latest", "delete")


class KeMemSaver(BaseCheckpointSaver[str]):
    """A checkpointer for LangGraph and LangChain agents that keeps threads in KeMem.

    The `thread_id` of a run is the id of a session, which is opened with the first checkpoint,
    for the user and the agent that are named here or in the run's `configurable`.

    With `Memory` its async methods work in threads, and any number of threads may share it. With
    `AsyncMemory` they work in the event loop of that, and its sync methods may be called from
    other threads while the loop runs.

    Args:
        client: `Memory` or `AsyncMemory`; it stays the caller's to close.
        user_id: whose threads they are, unless `configurable` has a `user_id`. A key that is
            bound to a user needs none.
        agent_id: the same for the agent; without one it is the user's home agent.
        serde: what turns values into bytes; LangGraph's own when left out.

    """

    def __init__(
        self,
        client: Sender | AsyncSender,
        *,
        user_id: str | None = None,
        agent_id: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._client = client
        self._user_id = user_id
        self._agent_id = agent_id
        self._known = Known()
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            # Seen with the first call that is awaited.
            return

    # --- one checkpoint

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """The checkpoint that `config` names, else the newest of its namespace, or None."""
        return self._loaded_one(self._ask(newest(place_of(config))))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """As `get_tuple`."""
        return self._loaded_one(await self._ask_async(newest(place_of(config))))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, all of it or nothing; the config that names it.

        Raises:
            NotFoundError: the checkpoint it follows was deleted, or the session was.
            ConflictError: the session has ended, or belongs to another user or agent.
            ValueError, TypeError: the thread's id is none, or metadata are not JSON.
            KememError: the service did not answer, or refused.

        """
        prepared = self._prepared(config, checkpoint, metadata, new_versions)
        return self._ask(put(prepared, self._known))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """As `put`."""
        prepared = await asyncio.to_thread(
            self._prepared, config, checkpoint, metadata, new_versions
        )
        return await self._ask_async(put(prepared, self._known))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task has written in a step.

        LangGraph puts checkpoints in the background, so this waits some seconds for its own.

        Raises:
            NotFoundError: the checkpoint was deleted, or never came.
            KememError: the service did not answer, or refused.

        """
        self._ask(put_writes(place_of(config), writes, task_id, task_path, self.serde))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """As `put_writes`."""
        await self._ask_async(put_writes(place_of(config), writes, task_id, task_path, self.serde))

    # --- several

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Checkpoints, newest first, page by page; of all threads without a config."""
        thread_id, params = _wanted(config, filter, before)
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = self._ask(page(thread_id, params, limit=rows, cursor=cursor))
            yield from self._loaded(stored)
            shown, cursor = shown + len(stored.items), stored.next_cursor
            if cursor is None:
                return

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """As `list`."""
        thread_id, params = _wanted(config, filter, before)
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = await self._ask_async(page(thread_id, params, limit=rows, cursor=cursor))
            for one in self._loaded(stored):
                yield one
            shown, cursor = shown + len(stored.items), stored.next_cursor
            if cursor is None:
                return

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Writes and last stored value of channels before a checkpoint, some steps at a time."""
        return self._ask(history(place_of(config), channels, self.serde))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """As `get_delta_channel_history`."""
        return await self._ask_async(history(place_of(config), channels, self.serde))

    # --- threads and runs

    def delete_thread(self, thread_id: str) -> None:
        """Delete checkpoints and writes of a thread; its session and the messages in it stay."""
        self._known.forget(thread_id)
        self._ask(quietly(calls.delete_thread(thread_of(thread_id))))

    async def adelete_thread(self, thread_id: str) -> None:
        """As `delete_thread`."""
        self._known.forget(thread_id)
        await self._ask_async(quietly(calls.delete_thread(thread_of(thread_id))))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a whole thread to another of the same user and agent.

        Raises:
            NotFoundError: there is no such thread.

        """
        self._ask(_one(_copying(source_thread_id, target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """As `copy_thread`."""
        await self._ask_async(_one(_copying(source_thread_id, target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the older checkpoints of threads, or all with the strategy `delete`.

        `keep_latest` keeps the newest of each namespace, and the earlier ones from which a
        `DeltaChannel` of it is rebuilt.
        """
        for call in _pruning(thread_ids, strategy):
            self._ask(_one(call))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """As `prune`."""
        for call in _pruning(thread_ids, strategy):
            await self._ask_async(_one(call))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete what runs have put, in all threads that the key may see."""
        for call in _forgetting(run_ids):
            self._ask(_one(call))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """As `delete_for_runs`."""
        for call in _forgetting(run_ids):
            await self._ask_async(_one(call))

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """A version above `current` that no other branch of the thread has."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:012}.{random.getrandbits(32):08x}"

    # --- how

    def _prepared(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Prepared:
        configurable = config.get("configurable", {})
        owner = {
            "user_id": configurable.get("user_id") or self._user_id,
            "agent_id": configurable.get("agent_id") or self._agent_id,
        }
        return prepare(config, checkpoint, metadata, new_versions, serde=self.serde, owner=owner)

    def _loaded_one(self, stored: Stored) -> CheckpointTuple | None:
        return next(self._loaded(stored), None)

    def _loaded(self, stored: Stored) -> Iterator[CheckpointTuple]:
        for item in stored.items:
            self._known.note(
                item["session_id"],
                (one for value in item["values"].values() for one in value["chunks"]),
            )
            yield tuple_of(item, stored.content, self.serde)

    def _ask(self, steps: Steps[Result]) -> Result:
        if isinstance(self._client, Sender):
            return ask(steps, self._client, time.sleep)
        if self._loop is None or not self._loop.is_running():
            raise RuntimeError(
                "This KeMemSaver has an AsyncMemory, whose event loop does not run: await its "
                "async methods, or give it a Memory."
            )
        if _here() is self._loop:
            raise RuntimeError(
                "A sync method of KeMemSaver would wait for the event loop in which it is "
                "called: await the async one, or give it a Memory."
            )
        return asyncio.run_coroutine_threadsafe(ask_async(steps, self._client), self._loop).result()

    async def _ask_async(self, steps: Steps[Result]) -> Result:
        if isinstance(self._client, Sender):
            return await asyncio.to_thread(ask, steps, self._client, time.sleep)
        self._loop = asyncio.get_running_loop()
        return await ask_async(steps, self._client)


def _here() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _wanted(
    config: RunnableConfig | None,
    metadata: Mapping[str, Any] | None,
    before: RunnableConfig | None,
) -> tuple[str | None, dict[str, str | int | None]]:
    """The thread to list, and what narrows it."""
    configurable = {} if config is None else config["configurable"]
    return (
        None if config is None else thread_of(configurable["thread_id"]),
        {
            "namespace": configurable.get("checkpoint_ns"),
            "checkpoint_id": configurable.get("checkpoint_id"),
            "before": None if before is None else before["configurable"].get("checkpoint_id"),
            "filter": json.dumps(dict(metadata)) if metadata else None,
        },
    )


def _copying(source_id: str, target_id: str) -> Call[None]:
    return calls.copy_thread(thread_of(source_id), thread_of(target_id))


def _one(call: Call[None]) -> Steps[None]:
    yield call


def _pruning(thread_ids: Sequence[str], strategy: str) -> Iterator[Call[None]]:
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids is a sequence of ids, not one id")
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    named = [thread_of(one) for one in thread_ids]
    for start in range(0, len(named), BATCH):
        yield calls.prune(named[start : start + BATCH], strategy)


def _forgetting(run_ids: Sequence[str]) -> Iterator[Call[None]]:
    if isinstance(run_ids, str):
        raise TypeError("run_ids is a sequence of ids, not one id")
    named = [str(one) for one in run_ids]
    for start in range(0, len(named), BATCH):
        yield calls.delete_runs(named[start : start + BATCH])
