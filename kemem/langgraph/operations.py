"""The operations of the saver. They yield calls and pauses, so that both clients can run them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem.calls import Call, Operation
from kemem.errors import ConflictError, NotFoundError
from kemem.langgraph import calls
from kemem.langgraph.calls import Stored
from kemem.langgraph.checkpoints import Prepared, document_of, value_of, write_of
from kemem.langgraph.chunks import SplitValue, compressed, split_value, text_of
from kemem.langgraph.threads import Address, config_of

CHECKPOINT_WAIT_SECONDS = 15.0
"""How long writes wait for their checkpoint, which LangGraph stores in the background."""
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5

HISTORY_PAGE = 50

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""LangGraph's task id for the writes of a `Command`."""

_MISSING = frozenset({"session_not_found", "saver_checkpoint_not_found"})
_EMPTY = Stored((), {}, None)


class KnownChunks:
    """Digests of chunks that the service had when last seen; `put` handles wrong ones."""

    THREADS = 128
    CHUNKS = 4096

    def __init__(self) -> None:
        self._digests: OrderedDict[str, set[str]] = OrderedDict()
        self._lock = Lock()

    def of_thread(self, thread_id: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._digests.get(thread_id, ()))

    def add(self, thread_id: str, digests: Iterable[str]) -> None:
        new = set(digests)
        with self._lock:
            known = self._digests.pop(thread_id, set()) | new
            self._digests[thread_id] = known if len(known) <= self.CHUNKS else new
            while len(self._digests) > self.THREADS:
                self._digests.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        with self._lock:
            self._digests.pop(thread_id, None)


class FailedPuts:
    """Errors of checkpoints that could not be stored, for the writes that wait for them."""

    KEPT = 128

    def __init__(self) -> None:
        self._errors: OrderedDict[tuple[str, str, str | None], Exception] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def noting(self, address: Address) -> Iterator[None]:
        """Remember whether the checkpoint at `address` is stored."""
        key = (address.thread_id, address.namespace, address.checkpoint_id)
        try:
            yield
        except Exception as error:
            with self._lock:
                self._errors[key] = error
                while len(self._errors) > self.KEPT:
                    self._errors.popitem(last=False)
            raise
        with self._lock:
            self._errors.pop(key, None)

    def raise_for(self, address: Address) -> None:
        """Raise the error with which this checkpoint failed, if it did."""
        with self._lock:
            error = self._errors.get((address.thread_id, address.namespace, address.checkpoint_id))
        if error is not None:
            raise error


def one_call(call: Call[None]) -> Operation[None]:
    """A single call."""
    yield call


def delete(call: Call[None]) -> Operation[None]:
    """A deletion that succeeds if there is nothing to delete."""
    try:
        yield call
    except NotFoundError:
        return


def page(
    thread_id: str | None,
    params: Mapping[str, str | int | None],
    *,
    limit: int,
    cursor: str | None = None,
) -> Operation[Stored]:
    """One page of checkpoints; empty for an unknown thread."""
    try:
        stored: Stored = yield calls.list_checkpoints(
            thread_id, **params, limit=limit, cursor=cursor
        )
    except NotFoundError:
        return _EMPTY
    return stored


def newest(address: Address) -> Operation[Stored]:
    """A page with the checkpoint at `address`, or the newest of its namespace; empty if none."""
    params = {
        "namespace": address.namespace,
        "checkpoint_id": address.checkpoint_id,
        **address.owner,
    }
    return (yield from page(address.thread_id, params, limit=1))


def put(prepared: Prepared, known: KnownChunks) -> Operation[RunnableConfig]:
    """Store a checkpoint, sending only chunks that the service is not known to have."""
    address, values, kept = prepared.address, dict(prepared.values), dict(prepared.kept)
    has = known.of_thread(address.thread_id)
    while True:
        chunks = {
            digest: chunk for value in values.values() for digest, chunk in value.chunks.items()
        }
        body = {
            **prepared.body,
            "values": {name: _reference(value) for name, value in values.items()},
            "kept": sorted(kept),
            "content": compressed(chunks, chunks.keys() - has),
        }
        try:
            yield calls.put(address, body)
        except ConflictError as error:
            if error.code != "saver_content_missing":
                raise
            # They were pruned, or the parent was stored by another process with other values.
            absent = {name for name in error.problem["channels"] if name in kept}
            lost = has.intersection(error.problem["chunks"])
            if not absent and not lost:
                raise
            for name in absent:
                values[name] = split_value(*prepared.serde.dumps_typed(kept.pop(name)))
            has -= lost
            continue
        known.add(address.thread_id, chunks)
        return config_of(address.thread_id, address.namespace, address.checkpoint_id or "")


def _reference(value: SplitValue) -> dict[str, Any]:
    return {"type": value.type, "chunks": value.digests}


def put_writes(
    address: Address,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    serde: SerializerProtocol,
    failed: FailedPuts,
) -> Operation[None]:
    """Store the writes of a task as soon as their checkpoint is stored."""
    if address.checkpoint_id is None:
        raise ValueError("the config of writes names the checkpoint they belong to")
    rows = []
    for number, (channel, value) in enumerate(writes):
        kind, data = serde.dumps_typed(value)
        rows.append(
            {
                "index": WRITES_IDX_MAP.get(channel, number),
                "channel": channel,
                "type": kind,
                "data": text_of(data),
            }
        )
    call = calls.put_writes(address, {"task_id": task_id, "task_path": task_path, "writes": rows})
    waited, pause = 0.0, FIRST_PAUSE_SECONDS
    while True:
        try:
            yield call
        except NotFoundError as error:
            if error.code in _MISSING and task_id == NULL_TASK:
                # A `Command` that starts a thread: its writes are applied at once and belong to
                # no checkpoint that can be read.
                return
            failed.raise_for(address)
            if error.code not in _MISSING or waited >= CHECKPOINT_WAIT_SECONDS:
                raise
        else:
            return
        yield pause
        waited, pause = waited + pause, min(pause * 2, LONGEST_PAUSE_SECONDS)


def history(
    address: Address, channels: Sequence[str], serde: SerializerProtocol
) -> Operation[Mapping[str, DeltaChannelHistory]]:
    """For each channel, the value at the nearest ancestor that has one, and the writes since."""
    writes: dict[str, list[PendingWrite]] = {name: [] for name in channels}
    seeds: dict[str, Any] = {}
    target = (yield from newest(address)) if channels else _EMPTY
    step: Mapping[str, Any] | None = target.items[0] if target.items else None
    near: dict[str, Mapping[str, Any]] = {}
    content: dict[str, bytes] = {}
    while step is not None and step["parent_id"] and len(seeds) < len(writes):
        parent_id = step["parent_id"]
        if parent_id not in near:
            stored = yield from _ancestors(address, step)
            near = {item["checkpoint_id"]: item for item in stored.items}
            content = dict(stored.content)
        step = near.pop(parent_id, None)
        if step is None:
            break
        document = document_of(step, serde)["channel_values"]
        for name in writes.keys() - seeds.keys():
            own = [write_of(write, serde) for write in step["writes"] if write["channel"] == name]
            writes[name].extend(reversed(own))
            if name in step["values"]:
                seeds[name] = value_of(step, name, content, serde)
            elif name in document:
                seeds[name] = document[name]
    return {name: _entry(found, seeds, name) for name, found in writes.items()}


def _ancestors(address: Address, step: Mapping[str, Any]) -> Operation[Stored]:
    """Some checkpoints before `step`, including its parent unless that was deleted."""
    params = {
        "namespace": address.namespace, "before": step["checkpoint_id"], **address.owner,
    }  # fmt: skip
    stored = yield from page(address.thread_id, params, limit=HISTORY_PAGE)
    if any(item["checkpoint_id"] == step["parent_id"] for item in stored.items):
        return stored
    return (yield from newest(replace(address, checkpoint_id=step["parent_id"])))


def _entry(found: list[PendingWrite], seeds: Mapping[str, Any], name: str) -> DeltaChannelHistory:
    entry: DeltaChannelHistory = {"writes": found[::-1]}
    if name in seeds:
        entry["seed"] = seeds[name]
    return entry
