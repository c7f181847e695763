"""`KeMemSaver`: LangGraph's checkpointer interface; a thread is a session of KeMem."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

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
from kemem.calls import Operation
from kemem.langgraph import calls
from kemem.langgraph.calls import PAGE, Stored
from kemem.langgraph.checkpoints import (
    Prepared,
    PreparedWrites,
    chunks_of,
    list_parameters,
    prepare,
    prepare_writes,
    tuple_of,
)
from kemem.langgraph.operations import (
    FailedPuts,
    KnownChunks,
    delete,
    history,
    newest,
    one_call,
    page,
    put,
    put_writes,
)
from kemem.langgraph.runner import Runner
from kemem.langgraph.threads import Address, address_of, thread_of
from kemem.owners import UserChoice, UserSource


class KeMemSaver(BaseCheckpointSaver[str]):
    """A checkpointer for LangGraph and LangChain agents that stores threads in KeMem.

    The `thread_id` of a run is the id of a session, or is mapped to one (`session_id_of`). The
    session is created with the first checkpoint, for the user and the agent given here or in the
    `configurable` of the run. Every later call, reads too, is refused with a ConflictError if the
    session belongs to another user or agent.

    With `Memory`, the async methods run in threads, and threads may share the saver. With
    `AsyncMemory`, they run in its event loop, and the sync methods may be called from other
    threads while the loop runs.

    Args:
        client: a `Memory` or `AsyncMemory`; it is not closed.
        user_id: the user of the threads, unless `configurable` has a `user_id`. `PER_RUN` if
            every run has one, `KEY_USER` if the key is bound to a user. It may be left out if
            `client` acts as a user.
        agent_id: likewise the agent; by default the user's home agent.
        serde: the serializer of values; by default LangGraph's own.

    Raises:
        ValueError: nothing says whose threads they are.

    """

    def __init__(
        self,
        client: Sender | AsyncSender,
        *,
        user_id: str | UserSource | None = None,
        agent_id: str | None = None,
        serde: SerializerProtocol | None = None,
    ) -> None:
        super().__init__(serde=serde)
        self._runner = Runner("KeMemSaver", client)
        self._user = UserChoice("KeMemSaver", user_id, client)
        self._agent_id = agent_id
        self._known = KnownChunks()
        self._failed = FailedPuts()

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the checkpoint that `config` names or the newest of its namespace, else None.

        Raises:
            ConflictError: the thread belongs to another user or agent.
            ValueError: the config names no thread, or an id is too long.
            KememError: the service did not answer, or refused.

        """
        return self._first_tuple(self._runner.run(newest(self._read_address(config))))

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Like `get_tuple`."""
        stored = await self._runner.run_async(newest(self._read_address(config)))
        return await asyncio.to_thread(self._first_tuple, stored)

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
            ValueError, TypeError: the thread id is invalid, the metadata are not JSON, or the
                values that change have more than 48 MiB together, as serialized.
            KememError: the service did not answer, or refused.

        """
        given = (config, checkpoint, metadata, new_versions)
        with self._noting(config, checkpoint):
            return self._runner.run(put(self._prepared(*given), self._known))

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Like `put`."""
        given = (config, checkpoint, metadata, new_versions)
        with self._noting(config, checkpoint):
            prepared = await asyncio.to_thread(self._prepared, *given)
            return await self._runner.run_async(put(prepared, self._known))

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store the writes of a task. Safe to repeat.

        LangGraph stores checkpoints in the background, so this waits some seconds for the one
        that the writes belong to. If storing that failed, they fail with the same error.

        Raises:
            NotFoundError: the checkpoint was deleted, or was not stored in time.
            ConflictError: the thread belongs to another user or agent.
            ValueError: the writes have more than 48 MiB together, as serialized.
            KememError: the service did not answer, or refused.

        """
        prepared = self._prepared_writes(config, writes, task_id, task_path)
        self._runner.run(put_writes(prepared, self._known, self._failed))

    async def aput_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Like `put_writes`."""
        given = (config, writes, task_id, task_path)
        prepared = await asyncio.to_thread(self._prepared_writes, *given)
        await self._runner.run_async(put_writes(prepared, self._known, self._failed))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: Mapping[str, Any] | None = None,  # noqa: A002 (LangGraph's name)
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Iterate over checkpoints, newest first; of all threads of the user if `config` is None.

        Raises:
            ConflictError: the thread belongs to another user or agent.
            KememError: the service did not answer, or refused.

        """
        thread_id, params = list_parameters(config, filter, before, self._owner(config))
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = self._runner.run(page(thread_id, params, limit=rows, cursor=cursor))
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
        thread_id, params = list_parameters(config, filter, before, self._owner(config))
        shown, cursor = 0, None
        while limit is None or shown < limit:
            rows = PAGE if limit is None else min(limit - shown, PAGE)
            stored = await self._runner.run_async(
                page(thread_id, params, limit=rows, cursor=cursor)
            )
            for checkpoint in await asyncio.to_thread(list, self._tuples(stored)):
                yield checkpoint
            shown, cursor = shown + len(stored.items), stored.next_cursor
            if cursor is None:
                return

    def get_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Return the last stored value of channels before a checkpoint, and the writes since."""
        return self._runner.run(history(self._address(config), channels, self.serde))

    async def aget_delta_channel_history(
        self, *, config: RunnableConfig, channels: Sequence[str]
    ) -> Mapping[str, DeltaChannelHistory]:
        """Like `get_delta_channel_history`."""
        return await self._runner.run_async(history(self._address(config), channels, self.serde))

    def delete_thread(self, thread_id: str) -> None:
        """Delete the checkpoints and writes of a thread; its session and messages are kept.

        Raises:
            ConflictError: the thread belongs to another user or agent.

        """
        self._runner.run(self._delete(thread_id))

    async def adelete_thread(self, thread_id: str) -> None:
        """Like `delete_thread`."""
        await self._runner.run_async(self._delete(thread_id))

    def copy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Copy a thread to another one of the same user and agent.

        Raises:
            NotFoundError: there is no such thread.
            ConflictError: one of them belongs to another user or agent.

        """
        self._runner.run(self._copy(source_thread_id, target_thread_id))

    async def acopy_thread(self, source_thread_id: str, target_thread_id: str) -> None:
        """Like `copy_thread`."""
        await self._runner.run_async(self._copy(source_thread_id, target_thread_id))

    def prune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete the older checkpoints of threads, or all with the strategy `delete`.

        `keep_latest` keeps the newest of each namespace, and the earlier ones that a
        `DeltaChannel` needs.

        Raises:
            ValueError: there is no such strategy, or a thread id is invalid.
            ConflictError: a thread belongs to another user or agent; some may be pruned.

        """
        for call in calls.prune(thread_ids, strategy, self._owner()):
            self._runner.run(one_call(call))

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Like `prune`."""
        for call in calls.prune(thread_ids, strategy, self._owner()):
            await self._runner.run_async(one_call(call))

    def delete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Delete the checkpoints and writes of runs, in all threads of the user."""
        for call in calls.delete_runs(run_ids, self._owner()):
            self._runner.run(one_call(call))

    async def adelete_for_runs(self, run_ids: Sequence[str]) -> None:
        """Like `delete_for_runs`."""
        for call in calls.delete_runs(run_ids, self._owner()):
            await self._runner.run_async(one_call(call))

    def get_next_version(self, current: str | int | None, channel: None) -> str:  # noqa: ARG002
        """Return a version above `current` that no other branch of the thread has."""
        number = 0 if current is None else int(str(current).partition(".")[0])
        return f"{number + 1:012}.{random.getrandbits(32):08x}"

    def _owner(self, config: RunnableConfig | None = None) -> dict[str, str]:
        """The user and the agent whose threads they are, as far as they are known.

        Raises:
            ValueError: the run that `config` is of names no user, and nobody else does.

        """
        configurable = {} if config is None else config.get("configurable", {})
        named = {
            "user_id": self._user.user_id if config is None else self._user.of_run(configurable),
            "agent_id": configurable.get("agent_id") or self._agent_id,
        }
        return {name: str(value) for name, value in named.items() if value}

    def _address(self, config: RunnableConfig) -> Address:
        return address_of(config, self._owner(config))

    def _read_address(self, config: RunnableConfig) -> Address:
        """The address of what is read: with that, a run begins."""
        address = self._address(config)
        self._failed.forget(address)
        return address

    def _noting(
        self, config: RunnableConfig, checkpoint: Checkpoint
    ) -> AbstractContextManager[None]:
        return self._failed.noting(replace(self._address(config), checkpoint_id=checkpoint["id"]))

    def _prepared(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> Prepared:
        return prepare(
            config,
            checkpoint,
            metadata,
            new_versions,
            serde=self.serde,
            owner=self._owner(config),
            known=self._known.of_thread,
        )

    def _prepared_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str,
    ) -> PreparedWrites:
        return prepare_writes(
            self._address(config),
            writes,
            task_id,
            task_path,
            serde=self.serde,
            known=self._known.of_thread,
        )

    def _copy(self, source_id: str, target_id: str) -> Operation[None]:
        return one_call(calls.copy_thread(source_id, target_id, self._owner()))

    def _delete(self, thread_id: str) -> Operation[None]:
        named = thread_of(thread_id)
        self._known.forget(named)
        return delete(calls.delete_thread(named, self._owner()))

    def _first_tuple(self, stored: Stored) -> CheckpointTuple | None:
        return next(self._tuples(stored), None)

    def _tuples(self, stored: Stored) -> Iterator[CheckpointTuple]:
        for item in stored.items:
            self._known.add(item["thread_id"], chunks_of(item))
            yield tuple_of(item, stored.content, self.serde)
