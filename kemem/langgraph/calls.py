"""The calls of the saver, and reading their answers. Nothing is sent here."""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote
from uuid import uuid4

from kemem.calls import Call
from kemem.langgraph.chunks import Content
from kemem.langgraph.threads import Address, session_id_of, thread_of

PAGE = 100
"""Most checkpoints in one page of the service."""
BATCH = 1000
"""Most threads or runs that one request names."""
MOST_READ = 4096
"""Most chunks that one request names."""
STRATEGIES = ("keep_latest", "delete")

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


@dataclass(frozen=True, slots=True)
class Stored:
    """A page of checkpoints in JSON, and the chunks of their values and writes.

    Args:
        deleted: checkpoints that were left out because they were deleted meanwhile.

    """

    items: tuple[Mapping[str, Any], ...]
    content: Content
    next_cursor: str | None
    deleted: int = 0


def put(address: Address, body: Mapping[str, Any]) -> Call[None]:
    # A PUT: storing the same checkpoint again changes nothing.
    return _put(_checkpoint(address), address, body)


def put_content(address: Address, content: Mapping[str, str], *, create: bool) -> Call[None]:
    """Store chunks ahead of what will have them."""
    body = {**address.owner, "create": create, "content": content}
    path = f"{_thread(address.thread_id)}/content"
    return Call("PUT", path, _nothing, {}, json_bytes(body), _JSON)


def read_content(
    session_id: str, digests: Sequence[str], owner: Mapping[str, str]
) -> Call[tuple[Mapping[str, str], int]]:
    """Some of these chunks, and how many of the digests were looked up."""
    body = json_bytes({"chunks": digests[:MOST_READ], **owner})
    path = f"/v1/sessions/{quote(session_id, safe='')}/saver/content/read"
    return Call("POST", path, lambda data: (data["content"], int(data["read"])), {}, body, _JSON)


def put_writes(address: Address, body: Mapping[str, Any]) -> Call[None]:
    return _put(f"{_checkpoint(address)}/writes", address, {**address.owner, **body})


def list_checkpoints(thread_id: str | None, **params: str | int | None) -> Call[Stored]:
    """A page of checkpoints, newest first; of all threads if `thread_id` is None."""
    path = "/v1/saver" if thread_id is None else _thread(thread_id)
    given = {name: str(value) for name, value in params.items() if value is not None}
    return Call("GET", f"{path}/checkpoints", _stored, given)


def delete_thread(thread_id: str, owner: Mapping[str, str]) -> Call[None]:
    return Call("DELETE", _thread(thread_id), _nothing, owner)


def copy_thread(thread_id: str, target_id: str, owner: Mapping[str, str]) -> Call[None]:
    target_id = thread_of(target_id)
    target = {"target_session_id": session_id_of(target_id)}
    if target["target_session_id"] != target_id:
        target["target_thread_id"] = target_id
    return _post(f"{_thread(thread_id)}/copy", {**target, **owner})


def prune(thread_ids: Sequence[str], strategy: str, owner: Mapping[str, str]) -> list[Call[None]]:
    """Calls that prune these threads.

    Raises:
        ValueError, TypeError: there is no such strategy, or the ids are none.

    """
    if isinstance(thread_ids, str):
        raise TypeError("thread_ids is a sequence of ids, not one id")
    if strategy not in STRATEGIES:
        raise ValueError(f"the strategy is one of {', '.join(STRATEGIES)}, not {strategy!r}")
    named = [session_id_of(thread_id) for thread_id in thread_ids]
    return [
        _post("/v1/saver/prune", {"session_ids": batch, "strategy": strategy, **owner})
        for batch in _batches(named)
    ]


def delete_runs(run_ids: Sequence[str], owner: Mapping[str, str]) -> list[Call[None]]:
    """Calls that delete what these runs have stored. Raises TypeError."""
    if isinstance(run_ids, str):
        raise TypeError("run_ids is a sequence of ids, not one id")
    return [
        _post("/v1/saver/runs/delete", {"run_ids": batch, **owner})
        for batch in _batches([str(run_id) for run_id in run_ids])
    ]


def _batches(ids: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(ids), BATCH):
        yield ids[start : start + BATCH]


def json_bytes(value: Any) -> bytes:
    """`value` as compact JSON.

    Raises:
        TypeError, ValueError: it cannot be JSON.

    """
    return json.dumps(value, allow_nan=False, separators=(",", ":")).encode()


def _thread(thread_id: str) -> str:
    return f"/v1/sessions/{quote(session_id_of(thread_id), safe='')}/saver"


def _checkpoint(address: Address) -> str:
    return f"{_thread(address.thread_id)}/checkpoints/{quote(address.checkpoint_id or '', safe='')}"


def _put(path: str, address: Address, body: Mapping[str, Any]) -> Call[None]:
    params = {"namespace": address.namespace}
    return Call("PUT", path, _nothing, params, json_bytes(body), _JSON)


def _post(path: str, body: Mapping[str, Any]) -> Call[None]:
    headers = {"Idempotency-Key": uuid4().hex, **_JSON}
    return Call("POST", path, _nothing, {}, json_bytes(body), headers)


def _stored(data: Any) -> Stored:
    return Stored(tuple(data["items"]), Content(data["content"]), data["next_cursor"])


def _nothing(_data: Any) -> None:
    return None
