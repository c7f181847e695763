"""What each method of the saver asks of the service, step by step; knows no event loop.

An operation yields the calls to send and the seconds to wait, and is told what came of them.
`ask` and `ask_async` lead it through, the one in a thread and the other in an event loop.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Generator, Iterable, Mapping, Sequence
from threading import Lock
from typing import Any, TypeAlias, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import WRITES_IDX_MAP, DeltaChannelHistory, PendingWrite
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem import langgraph_calls as calls
from kemem.errors import ApiError, ConflictError, NotFoundError
from kemem.langgraph_calls import Place, Stored
from kemem.langgraph_tuples import (
    Prepared,
    config_of,
    document_of,
    value_of,
    write_of,
)
from kemem.langgraph_values import Cut, cut, packed, text_of
from kemem.sending import AsyncSender, Sender
from kemem.writing import Call

Result = TypeVar("Result")
Steps: TypeAlias = Generator[Call[Any] | float, Any, Result]

PATIENCE_SECONDS = 15.0
"""How long writes wait for their checkpoint, which LangGraph puts in the background."""
FIRST_PAUSE_SECONDS = 0.02
LONGEST_PAUSE_SECONDS = 0.5

HISTORY_PAGE = 50

NULL_TASK = "00000000-0000-0000-0000-000000000000"
"""LangGraph's task for what a `Command` brings along."""

_NOT_THERE = frozenset({"session_not_found", "saver_checkpoint_not_found"})
_EMPTY = Stored((), {}, None)


class Known:
    """Which pieces the service has, as far as this process has seen; a guess is mended."""

    THREADS = 128
    PIECES = 4096

    def __init__(self) -> None:
        self._of: OrderedDict[str, set[str]] = OrderedDict()
        self._lock = Lock()

    def among(self, thread_id: str) -> frozenset[str]:
        with self._lock:
            return frozenset(self._of.get(thread_id, ()))

    def note(self, thread_id: str, digests: Iterable[str]) -> None:
        new = set(digests)
        with self._lock:
            known = self._of.pop(thread_id, set()) | new
            self._of[thread_id] = known if len(known) <= self.PIECES else new
            while len(self._of) > self.THREADS:
                self._of.popitem(last=False)

    def forget(self, thread_id: str) -> None:
        with self._lock:
            self._of.pop(thread_id, None)


def ask(steps: Steps[Result], client: Sender, sleep: Callable[[float], None]) -> Result:
    """Lead `steps` to their end in this thread."""
    try:
        asked = next(steps)
        while True:
            if isinstance(asked, float):
                sleep(asked)
                asked = next(steps)
                continue
            try:
                answer = client._send(asked)  # noqa: SLF001 (of this package)
            except ApiError as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


async def ask_async(steps: Steps[Result], client: AsyncSender) -> Result:
    """Lead `steps` to their end in this event loop."""
    try:
        asked = next(steps)
        while True:
            if isinstance(asked, float):
                await asyncio.sleep(asked)
                asked = next(steps)
                continue
            try:
                answer = await client._send(asked)  # noqa: SLF001 (of this package)
            except ApiError as error:
                asked = steps.throw(error)
            else:
                asked = steps.send(answer)
    except StopIteration as end:
        result: Result = end.value
        return result


def quietly(call: Call[None]) -> Steps[None]:
    """A call that is content when there is nothing."""
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
) -> Steps[Stored]:
    """One page of a list; an unknown thread has none."""
    try:
        stored: Stored = yield calls.list_checkpoints(
            thread_id, **params, limit=limit, cursor=cursor
        )
    except NotFoundError:
        return _EMPTY
    return stored


def newest(place: Place) -> Steps[Stored]:
    """The checkpoint at `place`, else the newest there, or nothing."""
    params = {"namespace": place.namespace, "checkpoint_id": place.checkpoint_id}
    return (yield from page(place.thread_id, params, limit=1))


def put(prepared: Prepared, known: Known) -> Steps[RunnableConfig]:
    """Store a checkpoint; the service is sent what it is not known to have."""
    place, values, kept = prepared.place, dict(prepared.values), dict(prepared.kept)
    has = known.among(place.thread_id)
    while True:
        pieces = {digest: one for value in values.values() for digest, one in value.chunks.items()}
        body = {
            **prepared.body,
            "values": {name: _named(value) for name, value in values.items()},
            "kept": sorted(kept),
            "content": packed(pieces, pieces.keys() - has),
        }
        try:
            yield calls.put(place, body)
        except ConflictError as error:
            if error.code != "saver_content_missing":
                raise
            # Pruned meanwhile, or this process has not put what the parent was given.
            absent = {name for name in error.problem["channels"] if name in kept}
            lost = has.intersection(error.problem["chunks"])
            if not absent and not lost:
                raise
            for name in absent:
                values[name] = cut(*prepared.serde.dumps_typed(kept.pop(name)))
            has -= lost
            continue
        known.note(place.thread_id, pieces)
        return config_of(place.thread_id, place.namespace, place.checkpoint_id or "")


def _named(value: Cut) -> dict[str, Any]:
    return {"type": value.type, "chunks": value.digests}


def put_writes(
    place: Place,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    serde: SerializerProtocol,
) -> Steps[None]:
    """Store writes as soon as their checkpoint is there."""
    if place.checkpoint_id is None:
        raise ValueError("the config of writes names the checkpoint they belong to")
    told = []
    for number, (channel, value) in enumerate(writes):
        kind, data = serde.dumps_typed(value)
        told.append(
            {
                "index": WRITES_IDX_MAP.get(channel, number),
                "channel": channel,
                "type": kind,
                "data": text_of(data),
            }
        )
    call = calls.put_writes(place, {"task_id": task_id, "task_path": task_path, "writes": told})
    waited, pause = 0.0, FIRST_PAUSE_SECONDS
    while True:
        try:
            yield call
        except NotFoundError as error:
            if error.code in _NOT_THERE and task_id == NULL_TASK:
                # A `Command` that opens a thread: its writes are applied at once, and belong to
                # no checkpoint that anybody could read.
                return
            if error.code not in _NOT_THERE or waited >= PATIENCE_SECONDS:
                raise
        else:
            return
        yield pause
        waited, pause = waited + pause, min(pause * 2, LONGEST_PAUSE_SECONDS)


def history(
    place: Place, channels: Sequence[str], serde: SerializerProtocol
) -> Steps[Mapping[str, DeltaChannelHistory]]:
    """Of each channel the value at the nearest ancestor that has one, and the writes since."""
    writes: dict[str, list[PendingWrite]] = {name: [] for name in channels}
    seeds: dict[str, Any] = {}
    target = (yield from newest(place)) if channels else _EMPTY
    step: Mapping[str, Any] | None = target.items[0] if target.items else None
    near: dict[str, Mapping[str, Any]] = {}
    content: dict[str, bytes] = {}
    while step is not None and step["parent_id"] and len(seeds) < len(writes):
        parent_id = step["parent_id"]
        if parent_id not in near:
            stored = yield from _ancestors(place, step)
            near = {one["checkpoint_id"]: one for one in stored.items}
            content = dict(stored.content)
        step = near.pop(parent_id, None)
        if step is None:
            break
        document = document_of(step, serde)["channel_values"]
        for name in writes.keys() - seeds.keys():
            own = [write_of(one, serde) for one in step["writes"] if one["channel"] == name]
            writes[name].extend(reversed(own))
            if name in step["values"]:
                seeds[name] = value_of(step, name, content, serde)
            elif name in document:
                seeds[name] = document[name]
    return {name: _entry(found, seeds, name) for name, found in writes.items()}


def _ancestors(place: Place, step: Mapping[str, Any]) -> Steps[Stored]:
    """Some checkpoints before `step`, its parent among them where it is still there."""
    params = {"namespace": place.namespace, "before": step["checkpoint_id"]}
    stored = yield from page(place.thread_id, params, limit=HISTORY_PAGE)
    if any(one["checkpoint_id"] == step["parent_id"] for one in stored.items):
        return stored
    return (yield from newest(Place(place.thread_id, place.namespace, step["parent_id"])))


def _entry(found: list[PendingWrite], seeds: Mapping[str, Any], name: str) -> DeltaChannelHistory:
    entry: DeltaChannelHistory = {"writes": found[::-1]}
    if name in seeds:
        entry["seed"] = seeds[name]
    return entry
