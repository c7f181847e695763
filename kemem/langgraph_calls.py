"""The requests that keep a graph's thread, and what the service answers; no transport."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from kemem.langgraph_values import unpacked
from kemem.writing import Call

PAGE = 100
"""Most checkpoints that one page of the service holds."""

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Place:
    """One namespace of one thread, and perhaps one checkpoint of it."""

    thread_id: str
    namespace: str
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """Checkpoints as the service has them, and the pieces of their values."""

    items: tuple[Mapping[str, Any], ...]
    content: Mapping[str, bytes]
    next_cursor: str | None


def put(place: Place, body: Mapping[str, Any]) -> Call[None]:
    # By PUT: the same checkpoint put again is the same one.
    return _put(_checkpoint(place), place, body)


def put_writes(place: Place, body: Mapping[str, Any]) -> Call[None]:
    return _put(f"{_checkpoint(place)}/writes", place, body)


def list_checkpoints(thread_id: str | None, **params: str | int | None) -> Call[Stored]:
    """Newest first; of all threads without one."""
    path = "/v1/saver" if thread_id is None else _thread(thread_id)
    told = {name: str(value) for name, value in params.items() if value is not None}
    return Call("GET", f"{path}/checkpoints", _stored, told)


def delete_thread(thread_id: str) -> Call[None]:
    return Call("DELETE", _thread(thread_id), _nothing)


def copy_thread(thread_id: str, target_id: str) -> Call[None]:
    return _post(f"{_thread(thread_id)}/copy", {"target_session_id": target_id})


def prune(thread_ids: Sequence[str], strategy: str) -> Call[None]:
    return _post("/v1/saver/prune", {"session_ids": thread_ids, "strategy": strategy})


def delete_runs(run_ids: Sequence[str]) -> Call[None]:
    return _post("/v1/saver/runs/delete", {"run_ids": run_ids})


def written(value: Any) -> bytes:
    """`value` as JSON.

    Raises:
        TypeError, ValueError: it cannot be JSON.

    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _thread(thread_id: str) -> str:
    return f"/v1/sessions/{quote(thread_id, safe='')}/saver"


def _checkpoint(place: Place) -> str:
    return f"{_thread(place.thread_id)}/checkpoints/{quote(place.checkpoint_id or '', safe='')}"


def _put(path: str, place: Place, body: Mapping[str, Any]) -> Call[None]:
    params = {"namespace": place.namespace}
    return Call("PUT", path, _nothing, params, written(body), _JSON)


def _post(path: str, body: Mapping[str, Any]) -> Call[None]:
    headers = {"Idempotency-Key": uuid4().hex, **_JSON}
    return Call("POST", path, _nothing, {}, written(body), headers)


def _stored(data: Any) -> Stored:
    return Stored(tuple(data["items"]), unpacked(data["content"]), data["next_cursor"])


def _nothing(_data: Any) -> None:
    return None
