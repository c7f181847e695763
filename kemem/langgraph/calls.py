"""The calls of the saver, and reading their answers. Nothing is sent here."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from kemem.calls import Call
from kemem.langgraph.chunks import decompressed

PAGE = 100
"""Most checkpoints in one page of the service."""

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Address:
    """A namespace of a thread, and optionally one checkpoint in it."""

    thread_id: str
    namespace: str
    checkpoint_id: str | None = None


@dataclass(frozen=True, slots=True)
class Stored:
    """A page of checkpoints in JSON, and the chunks of their values."""

    items: tuple[Mapping[str, Any], ...]
    content: Mapping[str, bytes]
    next_cursor: str | None


def put(address: Address, body: Mapping[str, Any]) -> Call[None]:
    # A PUT: storing the same checkpoint again changes nothing.
    return _put(_checkpoint(address), address, body)


def put_writes(address: Address, body: Mapping[str, Any]) -> Call[None]:
    return _put(f"{_checkpoint(address)}/writes", address, body)


def list_checkpoints(thread_id: str | None, **params: str | int | None) -> Call[Stored]:
    """A page of checkpoints, newest first; of all threads if `thread_id` is None."""
    path = "/v1/saver" if thread_id is None else _thread(thread_id)
    given = {name: str(value) for name, value in params.items() if value is not None}
    return Call("GET", f"{path}/checkpoints", _stored, given)


def delete_thread(thread_id: str) -> Call[None]:
    return Call("DELETE", _thread(thread_id), _nothing)


def copy_thread(thread_id: str, target_id: str) -> Call[None]:
    return _post(f"{_thread(thread_id)}/copy", {"target_session_id": target_id})


def prune(thread_ids: Sequence[str], strategy: str) -> Call[None]:
    return _post("/v1/saver/prune", {"session_ids": thread_ids, "strategy": strategy})


def delete_runs(run_ids: Sequence[str]) -> Call[None]:
    return _post("/v1/saver/runs/delete", {"run_ids": run_ids})


def json_bytes(value: Any) -> bytes:
    """`value` as compact JSON.

    Raises:
        TypeError, ValueError: it cannot be JSON.

    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _thread(thread_id: str) -> str:
    return f"/v1/sessions/{quote(thread_id, safe='')}/saver"


def _checkpoint(address: Address) -> str:
    return f"{_thread(address.thread_id)}/checkpoints/{quote(address.checkpoint_id or '', safe='')}"


def _put(path: str, address: Address, body: Mapping[str, Any]) -> Call[None]:
    params = {"namespace": address.namespace}
    return Call("PUT", path, _nothing, params, json_bytes(body), _JSON)


def _post(path: str, body: Mapping[str, Any]) -> Call[None]:
    headers = {"Idempotency-Key": uuid4().hex, **_JSON}
    return Call("POST", path, _nothing, {}, json_bytes(body), headers)


def _stored(data: Any) -> Stored:
    return Stored(tuple(data["items"]), decompressed(data["content"]), data["next_cursor"])


def _nothing(_data: Any) -> None:
    return None
