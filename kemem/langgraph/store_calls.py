"""Operations of LangGraph's stores as the service takes them, and its answers. Nothing is sent."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, TypeAlias
from uuid import uuid4

from langgraph.store.base import (
    GetOp,
    InvalidNamespaceError,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
    validate_op_namespace,
)

from kemem.calls import Call, Operation, json_bytes
from kemem.errors import ApiError
from kemem.ids import is_id

OPERATIONS = 1000
"""Most operations of one request."""
REQUEST_BYTES = 1_500_000
"""About the size at which a further request begins; the service takes 2 MiB."""

OPERATORS = frozenset({"$eq", "$ne", "$gt", "$gte", "$lt", "$lte"})
USER = "{user_id}"

Fields: TypeAlias = Sequence[str] | Literal[False]
"""Paths that are indexed; False where the store does not search by meaning."""

_JSON: Mapping[str, str] = {"Content-Type": "application/json"}


def run_batch(
    ops: Iterable[Op], fields: Fields, user_namespaces: Sequence[Sequence[str]]
) -> Operation[list[Result]]:
    """The results of `ops`, in their order; one request, unless they are too many or too large.

    What reads is sent first, so that it sees the store as it was before.
    """
    asked = list(ops)
    results: list[Result] = [None] * len(asked)
    for request in _requests(_encoded(asked, fields, user_namespaces)):
        yield from _send(asked, request, results)
    return results


def _send(
    asked: Sequence[Op], request: tuple[list[int], list[bytes]], results: list[Result]
) -> Operation[None]:
    """Send a request, in parts where its answer would be too large for one.

    Raises:
        ApiError: it was refused, or what one operation reads is too large.

    """
    numbers, bodies = request
    reads = sum(not isinstance(asked[number], PutOp) for number in numbers)
    try:
        answers = yield _batch(bodies, writes=reads < len(numbers))
    except ApiError as error:
        # What changes stays one transaction, after what reads.
        first = reads if reads < len(numbers) else reads // 2
        if error.code != "store_answer_too_large" or not first:
            raise
        yield from _send(asked, (numbers[:first], bodies[:first]), results)
        yield from _send(asked, (numbers[first:], bodies[first:]), results)
        return
    for number, answer in zip(numbers, answers, strict=True):
        results[number] = _result(asked[number], answer)


def sweep() -> Call[int]:
    headers = {"Idempotency-Key": uuid4().hex, **_JSON}
    return Call("POST", "/v1/store/sweep", lambda data: int(data["deleted"]), {}, b"{}", headers)


def _batch(bodies: Sequence[bytes], *, writes: bool) -> Call[Sequence[Mapping[str, Any]]]:
    # A repetition of what only reads may read again.
    headers = {**_JSON, **({"Idempotency-Key": uuid4().hex} if writes else {})}
    body = b'{"operations":[' + b",".join(bodies) + b"]}"
    return Call("POST", "/v1/store/batch", lambda data: data["results"], {}, body, headers)


def _requests(
    encoded: Iterable[tuple[int, bytes]],
) -> Iterator[tuple[list[int], list[bytes]]]:
    """Parts that fit into a request each: places of operations, and their JSON."""
    numbers: list[int] = []
    bodies: list[bytes] = []
    size = 0
    for number, body in encoded:
        if numbers and (len(numbers) == OPERATIONS or size + len(body) > REQUEST_BYTES):
            yield numbers, bodies
            numbers, bodies, size = [], [], 0
        numbers.append(number)
        bodies.append(body)
        size += len(body)
    if numbers:
        yield numbers, bodies


def _encoded(
    asked: Sequence[Op], fields: Fields, user_namespaces: Sequence[Sequence[str]]
) -> list[tuple[int, bytes]]:
    """Places of operations and their JSON: reads, then of each item the last change.

    Raises:
        InvalidNamespaceError, ValueError, TypeError: an operation is none.

    """
    reads: list[tuple[int, bytes]] = []
    changes: dict[tuple[tuple[str, ...], str], tuple[int, bytes]] = {}
    for number, op in enumerate(asked):
        validate_op_namespace(op)
        if isinstance(op, PutOp):
            body = _change(op, fields, user_namespaces)
            changes[tuple(op.namespace), op.key] = number, json_bytes(body)
        else:
            reads.append((number, json_bytes(_read(op, fields))))
    return reads + sorted(changes.values())


def _read(op: Op, fields: Fields) -> dict[str, Any]:
    """Raises ValueError."""
    if isinstance(op, GetOp):
        return {
            "op": "get",
            "namespace": list(op.namespace),
            "key": op.key,
            "refresh_ttl": op.refresh_ttl,
        }
    if isinstance(op, SearchOp):
        _check_filter(op.filter or {})
        return {
            "op": "search",
            "namespace": list(op.namespace_prefix),
            "filter": op.filter or {},
            "query": None if fields is False else op.query,
            "limit": op.limit,
            "offset": op.offset,
            "refresh_ttl": op.refresh_ttl,
        }
    if isinstance(op, ListNamespacesOp):
        return {
            "op": "list_namespaces",
            "match": [
                {"type": condition.match_type, "path": list(condition.path)}
                for condition in op.match_conditions or ()
            ],
            "max_depth": op.max_depth,
            "limit": op.limit,
            "offset": op.offset,
        }
    raise ValueError(f"unknown operation {type(op).__name__}")


def _change(op: PutOp, fields: Fields, user_namespaces: Sequence[Sequence[str]]) -> dict[str, Any]:
    """Raises InvalidNamespaceError."""
    named = {"namespace": list(op.namespace), "key": op.key}
    if op.value is None:
        return {"op": "delete", **named}
    if not op.namespace:
        raise InvalidNamespaceError("Namespace cannot be empty.")
    paths: Fields = False if fields is False else fields if op.index is None else op.index
    return {
        "op": "put",
        **named,
        "value": dict(op.value),
        "index": [] if paths is False else list(paths),
        "ttl_minutes": op.ttl,
        "user_id": user_of(op.namespace, user_namespaces),
    }


def user_of(namespace: Sequence[str], user_namespaces: Sequence[Sequence[str]]) -> str | None:
    """The user that a namespace names, by the first pattern that it begins with."""
    for pattern in user_namespaces:
        matches = len(namespace) >= len(pattern) and all(
            part in (USER, label) for part, label in zip(pattern, namespace, strict=False)
        )
        if matches and is_id(label := namespace[list(pattern).index(USER)]):
            return label
    return None


def _check_filter(wanted: Mapping[str, Any]) -> None:
    """Raises ValueError: it has an operator that stores do not know."""
    for value in wanted.values():
        if not isinstance(value, Mapping):
            continue
        if not any(name.startswith("$") for name in value):
            _check_filter(value)
        elif unknown := value.keys() - OPERATORS:
            raise ValueError(f"Unsupported operator: {', '.join(sorted(unknown))}")


def _result(op: Op, answer: Mapping[str, Any]) -> Result:
    if isinstance(op, GetOp):
        return None if answer["item"] is None else Item(**_fields(answer["item"]))
    if isinstance(op, SearchOp):
        return [SearchItem(**_fields(item), score=item["score"]) for item in answer["items"]]
    if isinstance(op, ListNamespacesOp):
        return [tuple(labels) for labels in answer["namespaces"]]
    return None


def _fields(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "namespace": tuple(item["namespace"]),
        "key": item["key"],
        "value": item["value"],
        "created_at": item["create_time"],
        "updated_at": item["update_time"],
    }
