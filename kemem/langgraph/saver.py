"""`KeMemSaver`: LangGraph's checkpointer interface; a thread is a session of KeMem."""

import asyncio
import json
import random
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

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Call, Operation
from kemem.langgraph import calls
from kemem.langgraph.calls import PAGE, Stored
from kemem.langgraph.checkpoints import Prepared, address_of, prepare, thread_of, tuple_of
from kemem.langgraph.operations import (
    KnownChunks,
    delete,
    history,
    newest,
    one_call,
    page,
    put,
    put_writes,
)

Result = TypeVar("Result")

BATCH = 1000
"""Most threads or runs that one request names."""
STRATEGIES = ("keep_latest", "delete")


class KeMemSaver(BaseCheckpointSaver[str]):
    """A checkpointer for LangGraph and LangChain agents that stores threads in KeMem.

    The `thread_id` of a run is the id of a session. The session is created with the first
    checkpoint, for the user and the agent given here or in the `configurable` of the run.

    With `Memory`, the async methods run in threads, and threads may share the saver. With
    `AsyncMemory`, they run in its event loop, and the sync methods may be called from other
    threads while the loop runs.

    Args:
        client: a `Memory` or `AsyncMemory`; it is not closed.
        user_id: the user of the threads, unless `configurable` has a `user_id`. A key that is
            bound to a user needs none.
        agent_id: likewise the agent; by default the user's home agent.
        serde: the serializer of values; by default LangGraph's own.

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
        self._known = KnownChunks()
        self._loop: asyncio.AbstractEventLoop | None = None
        try:
            self._loop = asyncio.get_running_loop()
        except RuntimeError:
            # Set by the first async method.
            return

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names or the newest of its namespace, else None."""
        return self._first_tuple(self._run(newest(address_of(config))))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Like `get_tuple`."""
        return self._first_tuple(await self._run_async(newest(address_of(config))))

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint completely or not at all; return the config that names it.

        Safe to repeat.

        Raises:
            NotFoundError: the parent checkpoint or the session was deleted.
            ConflictError: the session has ended, or belongs to another user or agent.
            ValueError, TypeError: the thread id is invalid, or the metadata are not JSON.
            KememError: the service did not answer, or refused.

        """
        prepared = self._prepared(config, checkpoint, metadata, new_versions)
        return self._run(put(prepared, self._known))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Like `put`."""
        prepared = await asyncio.to_thread(
            self._prepared, config, checkpoint, metadata, new_versions
        )
        return await self._run_async(put(prepared, self._known))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task. Safe to repeat.

        LangGraph stores checkpoints in the background, so this waits some seconds for the one
        that the writes belong to.

        Raises:
            NotFoundError: the checkpoint was deleted, or was not stored in time.
            KememError: the service did not answer, or refused.

        """
        self._run(put_writes(address_of(config), writes, task_id, task_path, self.serde))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Like `put_writes`."""
        await self._run_async(
            put_writes(address_of(config), writes, task_id, task_path, self.serde)
        )

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over checkpoints, newest first; of all threads if `config` is None."""
        thread_id, params = _list_parameters(config, filter, before)
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = self._run(page(thread_id, params, limit=rows, cursor=cursor))
            yield from self._tuples(stored)
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
        """Like `list`."""
        thread_id, params = _list_parameters(config, filter, before)
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = await self._run_async(page(thread_id, params, limit=rows, cursor=cursor))
            for checkpoint in self._tuples(stored):
                yield checkpoint
            shown, cursor = shown + len(stored.items), stored.next_cursor
            if cursor is None:
                return

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the last stored value of channels before a checkpoint, and the writes since."""
        return self._run(history(address_of(config), channels, self.serde))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`."""
        return await self._run_async(history(address_of(config), channels, self.serde))

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints and writes of a thread; its session and messages are kept."""
        self._known.forget(thread_id)
        self._run(delete(calls.delete_thread(thread_of(thread_id))))

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`."""
        self._known.forget(thread_id)
        await self._run_async(delete(calls.delete_thread(thread_of(thread_id))))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to another one of the same user and agent.

        Raises:
            NotFoundError: there is no such thread.

        """
        self._run(one_call(_copy_call(source_thread_id, target_thread_id)))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`."""
        await self._run_async(one_call(_copy_call(source_thread_id, target_thread_id)))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the older checkpoints of threads, or all with the strategy `delete`.

        `keep_latest` keeps the newest of each namespace, and the earlier ones that a
        `DeltaChannel` needs.

        Raises:
            ValueError: there is no such strategy, or a thread id is invalid.

        """
        for call in _prune_calls(thread_ids, strategy):
            self._run(one_call(call))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Like `prune`."""
        for call in _prune_calls(thread_ids, strategy):
            await self._run_async(one_call(call))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints and writes of runs, in all threads that the key can access."""
        for call in _delete_run_calls(run_ids):
            self._run(one_call(call))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`."""
        for call in _delete_run_calls(run_ids):
            await self._run_async(one_call(call))

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """Return a version above `current` that no other branch of the thread has."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:012}.{random.getrandbits(32):08x}"

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

    def _first_tuple(self, stored: Stored) -> CheckpointTuple | None:
        return next(self._tuples(stored), None)

    def _tuples(self, stored: Stored) -> Iterator[CheckpointTuple]:
        for item in stored.items:
            self._known.add(
                item["session_id"],
                (digest for value in item["values"].values() for digest in value["chunks"]),
            )
            yield tuple_of(item, stored.content, self.serde)

    def _run(self, operation: Operation[Result]) -> Result:
        if isinstance(self._client, Sender):
            return self._client._run(operation)  # noqa: SLF001 (of this package)
        if self._loop is None or not self._loop.is_running():
            raise RuntimeError(
                "This KeMemSaver has an AsyncMemory, whose event loop does not run: await its "
                "async methods, or give it a Memory."
            )
        if _current_loop() is self._loop:
            raise RuntimeError(
                "A sync method of KeMemSaver would wait for the event loop in which it is "
                "called: await the async one, or give it a Memory."
            )
        coroutine = self._client._run(operation)  # noqa: SLF001 (of this package)
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop).result()

    async def _run_async(self, operation: Operation[Result]) -> Result:
        if isinstance(self._client, Sender):
            return await asyncio.to_thread(self._client._run, operation)  # noqa: SLF001 (of this package)
        self._loop = asyncio.get_running_loop()
        return await self._client._run(operation)  # noqa: SLF001 (of this package)


def _current_loop() -> asyncio.AbstractEventLoop | None:
    try:
        return asyncio.get_running_loop()
    except RuntimeError:
        return None


def _list_parameters(
    config: RunnableConfig | None,
    metadata: Mapping[str, Any] | None,
    before: RunnableConfig | None,
) -> tuple[str | None, dict[str, str | int | None]]:
    """The thread to list, and the filters."""
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


def _copy_call(source_id: str, target_id: str) -> Call[None]:
    return calls.copy_thread(thread_of(source_id), thread_of(target_id))


def _prune_calls(thread_ids: Sequence[str], strategy: str) -> Iterator[Call[None]]:
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids is a sequence of ids, not one id")
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    named = [thread_of(thread_id) for thread_id in thread_ids]
    for start in range(0, len(named), BATCH):
        yield calls.prune(named[start : start + BATCH], strategy)


def _delete_run_calls(run_ids: Sequence[str]) -> Iterator[Call[None]]:
    if isinstance(run_ids, str):
        raise TypeError("run_ids is a sequence of ids, not one id")
    named = [str(run_id) for run_id in run_ids]
    for start in range(0, len(named), BATCH):
        yield calls.delete_runs(named[start : start + BATCH])
