"""The operations of the saver. They yield calls and pauses, so that both clients can run them."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from threading import Lock
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import DeltaChannelHistory, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem.calls import Call, Operation
from kemem.errors import ConflictError, KememError, NotFoundError
from kemem.langgraph import calls
from kemem.langgraph.calls import Stored
from kemem.langgraph.checkpoints import (
    Prepared,
    PreparedWrites,
    chunks_of,
    document_of,
    value_of,
    write_of,
)
from kemem.langgraph.chunks import Chunks, Content, SplitValue, compressed, fits, parts
from kemem.langgraph.threads import Address, config_of

CHECKPOINT_WAIT_SECONDS = 15.0
"""How long writes wait for their checkpoint, which LangGraph stores in the background."""
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5

HISTORY_PAGE = 50
ATTEMPTS = 3
"""How often something is done again that a concurrent deletion got in the way of."""

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""LangGraph's task id for the writes of a `Command`."""

_MISSING = frozenset({"session_not_found", "saver_checkpoint_not_found"})
_EMPTY = Stored((), Content({}), None)


class KnownChunks:
    """Digests of chunks that the service had when last seen; `put` handles wrong ones."""

    THREADS = 128
    CHUNKS = 32 * 1024
    TOTAL = 256 * 1024

    def __init__(self) -> None:
        self._digests: OrderedDict[str, set[str]] = OrderedDict()
        self._sending: set[str] = set()
        self._lock = Lock()

    def of_thread(self, thread_id: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._digests.get(thread_id, ()))

    def add(self, thread_id: str, digests: Iterable[str]) -> None:
        new = set(digests)
        with self._lock:
            known = self._digests.pop(thread_id, set()) | new
            self._digests[thread_id] = known if len(known) <= self.CHUNKS else new
            while len(self._digests) > 1 and (
                len(self._digests) > self.THREADS
                or sum(map(len, self._digests.values())) > self.TOTAL
            ):
                self._digests.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        with self._lock:
            self._digests.pop(thread_id, None)

    def begin_sending(self, thread_id: str) -> bool:
        """Whether nobody is sending chunks of the thread ahead; then the caller is."""
        with self._lock:
            if thread_id in self._sending:
                return False
            self._sending.add(thread_id)
            return True

    def end_sending(self, thread_id: str) -> None:
        with self._lock:
            self._sending.discard(thread_id)


class FailedPuts:
    """Errors of checkpoints that could not be stored, for the writes that wait for them.

    LangGraph stores none behind a checkpoint that was refused, but goes on to write for them. Ids
    of checkpoints rise with time.
    """

    KEPT = 128

    def __init__(self) -> None:
        self._errors: OrderedDict[tuple[str, str], tuple[str, Exception]] = OrderedDict()
        self._lock = Lock()

    @contextmanager
    def noting(self, address: Address) -> Iterator[None]:
        """Remember whether the checkpoint at `address` is stored."""
        key, checkpoint_id = (address.thread_id, address.namespace), address.checkpoint_id or ""
        try:
            yield
        except Exception as error:
            with self._lock:
                self._errors.setdefault(key, (checkpoint_id, error))
                while len(self._errors) > self.KEPT:
                    self._errors.popitem(last=False)
            raise
        self.forget(address)

    def forget(self, address: Address) -> None:
        """Forget what failed in the namespace: a run begins, or a checkpoint was stored."""
        with self._lock:
            self._errors.pop((address.thread_id, address.namespace), None)

    def raise_for(self, address: Address) -> None:
        """Raise the error with which this checkpoint or one before it failed, if one did."""
        with self._lock:
            failed = self._errors.get((address.thread_id, address.namespace))
        if failed is not None and (address.checkpoint_id or "") >= failed[0]:
            raise failed[1]


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
    """One page of checkpoints; empty for an unknown thread.

    A checkpoint that was deleted while it was read is left out.
    """
    owner = {name: str(params[name]) for name in ("user_id", "agent_id") if params.get(name)}
    try:
        stored: Stored = yield calls.list_checkpoints(
            thread_id, **params, limit=limit, cursor=cursor
        )
        # Only a page of one checkpoint lacks chunks.
        for item in stored.items:
            yield from _read_content(item, stored.content, owner)
    except NotFoundError:
        return _EMPTY
    whole = tuple(item for item in stored.items if not stored.content.missing(chunks_of(item)))
    return replace(stored, items=whole, deleted=len(stored.items) - len(whole))


def _read_content(
    item: Mapping[str, Any], content: Content, owner: Mapping[str, str]
) -> Operation[None]:
    """Read the chunks of a checkpoint that its page had no room for."""
    missing = content.missing(chunks_of(item))
    while missing:
        packed, read = yield calls.read_content(item["session_id"], missing, owner)
        content.add(packed)
        missing = missing[max(read, 1) :]


def newest(address: Address) -> Operation[Stored]:
    """A page with the checkpoint at `address`, or the newest of its namespace; empty if none."""
    params = {
        "namespace": address.namespace,
        "checkpoint_id": address.checkpoint_id,
        **address.owner,
    }
    for _ in range(ATTEMPTS):
        stored = yield from page(address.thread_id, params, limit=1)
        if not stored.deleted:
            return stored
    raise KememError("the checkpoint was deleted each time that it was read")


def put(prepared: Prepared, known: KnownChunks) -> Operation[RunnableConfig]:
    """Store a checkpoint, sending only chunks that the service is not known to have."""
    address, values, kept = prepared.address, dict(prepared.values), dict(prepared.kept)
    packed = dict(prepared.packed)
    create = prepared.body["parent_id"] is None
    left = ATTEMPTS
    while True:
        chunks = {
            digest: chunk for value in values.values() for digest, chunk in value.chunks.items()
        }
        references = sum(len(value.digests) for value in values.values())
        packed = yield from _sent_ahead(address, packed, references, known, create=create)
        body = {
            **prepared.body,
            "values": {name: _reference(value) for name, value in values.items()},
            "kept": sorted(kept),
            "content": packed,
        }
        try:
            yield calls.put(address, body)
        except ConflictError as error:
            # They were pruned, or the parent was stored by another process with other values.
            left -= 1
            lost = _lost(error, chunks)
            absent = [name for name in error.problem.get("channels", ()) if name in kept]
            if not left or not (absent or lost):
                raise
            known.forget(address.thread_id)
            again = prepared.of_kept(absent)
            values |= again
            for name, value in again.items():
                del kept[name]
                packed |= compressed(value.chunks, value.digests)
            packed |= compressed(chunks, lost)
        else:
            known.add(address.thread_id, chunks)
            return config_of(address.thread_id, address.namespace, address.checkpoint_id or "")


def _lost(error: ConflictError, chunks: Chunks) -> set[str]:
    """Those of `chunks` that the service does not have after all."""
    if error.code != "saver_content_missing":
        return set()
    return chunks.keys() & set(error.problem["chunks"])


def _sent_ahead(
    address: Address, packed: dict[str, str], references: int, known: KnownChunks, *, create: bool
) -> Operation[dict[str, str]]:
    """Send chunks in parts if they do not fit into one request; return what is left to send.

    A thread sends ahead once at a time: what a task has written is part of the next checkpoint
    too, and is not sent twice.
    """
    if fits(packed, references):
        return packed
    while not known.begin_sending(address.thread_id):
        yield FIRST_PAUSE_SECONDS
    try:
        has = known.of_thread(address.thread_id)
        new = {digest: text for digest, text in packed.items() if digest not in has}
        for part in parts(new):
            yield calls.put_content(address, part, create=create)
            known.add(address.thread_id, part)
    finally:
        known.end_sending(address.thread_id)
    return {}


def _reference(value: SplitValue) -> dict[str, Any]:
    return {"type": value.type, "chunks": value.digests}


def put_writes(prepared: PreparedWrites, known: KnownChunks, failed: FailedPuts) -> Operation[None]:
    """Store the writes of a task as soon as their checkpoint is stored."""
    address, chunks, packed = prepared.address, prepared.chunks, dict(prepared.packed)
    left, waited, pause = ATTEMPTS, 0.0, FIRST_PAUSE_SECONDS
    while True:
        try:
            packed = yield from _sent_ahead(address, packed, len(chunks), known, create=False)
            yield calls.put_writes(address, {**prepared.body, "content": packed})
        except ConflictError as error:
            left -= 1
            lost = _lost(error, chunks)
            if not left or not lost:
                raise
            known.forget(address.thread_id)
            packed |= compressed(chunks, lost)
            continue
        except NotFoundError as error:
            if error.code in _MISSING and prepared.task_id == NULL_TASK:
                # A `Command` that starts a thread: its writes are applied at once and belong to
                # no checkpoint that can be read.
                return
            failed.raise_for(address)
            if error.code not in _MISSING or waited >= CHECKPOINT_WAIT_SECONDS:
                raise
        else:
            known.add(address.thread_id, chunks)
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
    content = Content({})
    while step is not None and step["parent_id"] and len(seeds) < len(writes):
        parent_id = step["parent_id"]
        if parent_id not in near:
            stored = yield from _ancestors(address, step)
            near = {item["checkpoint_id"]: item for item in stored.items}
            content = stored.content
        step = near.pop(parent_id, None)
        if step is None:
            break
        document = document_of(step, serde)["channel_values"]
        for name in writes.keys() - seeds.keys():
            own = [
                write_of(write, content, serde)
                for write in step["writes"]
                if write["channel"] == name
            ]
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
