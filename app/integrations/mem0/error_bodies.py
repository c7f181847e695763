"""Errors as mem0's clients read them, below our paths of their dialects and where they miss those.

An error is one JSON object whose `detail` and `error` say the same; what we answer with 422 is 400.
"""

from collections.abc import Mapping
from http import HTTPStatus
from typing import Any, Final

from app.platform.http.problems import ErrorBody

MOST_FAULTS: Final = 20
"""Of a request that is not valid."""

HOSTED: Final = "/mem0"
SERVER: Final = "/mem0-oss"

_SENTENCES: Final = {
    "memory_not_found": "Memory not found!",
    "path_not_found": "There is no such path.",
    "method_not_allowed": "The path does not take this method.",
}
_SERVED: Final = frozenset({"/memories", "/search"})

Scope = Mapping[str, Any]
Answer = tuple[int, dict[str, Any]]

_MISSED: Final = frozenset({401, 404, 405, 422})
"""What a client is answered that does not know where its dialect is."""


def error_body(scope: Scope) -> ErrorBody | None:
    """How an error of this request is written, if it comes from a client of mem0's.

    A client that calls our own paths is told where its dialect is: it is known by headers that no
    other client sends, or by a path of mem0's server that is none of ours.
    """
    path: str = scope["path"]
    if path.startswith((f"{HOSTED}/", f"{SERVER}/")):
        return _body
    headers = dict(scope["headers"])
    if b"mem0-user-id" in headers or headers.get(b"authorization", b"")[:6].lower() == b"token ":
        return _missed(HOSTED)
    if b"x-api-key" in headers and (path in _SERVED or path.startswith("/memories/")):
        return _missed(SERVER)
    return None


def _missed(served: str) -> ErrorBody:
    hint = (
        f"mem0's clients are served below {served} where MEMORY_MEM0_API is on: end the client's "
        f"host with {served}."
    )

    def body(scope: Scope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
        told = f"{_sentence(detail, members)} {hint}" if status in _MISSED else detail
        return _answer(scope, status, told, members)

    return body


def _body(scope: Scope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
    return _answer(scope, status, _sentence(detail, members), members)


def _answer(scope: Scope, status: int, detail: str, members: Mapping[str, Any]) -> Answer:
    content = {
        **members,
        "detail": detail,
        "error": detail,
        "request_id": scope.get("state", {}).get("request_id", ""),
    }
    return (400 if status == HTTPStatus.UNPROCESSABLE_ENTITY else status), content


def _sentence(detail: str, members: Mapping[str, Any]) -> str:
    """What clients show of an error, which show nothing else of it."""
    code = members["code"]
    if code == "gate_rejected":
        return " ".join(
            ["The gate refused it.", *(reason["detail"] for reason in members["reasons"])]
        )
    if code == "invalid_request" and "errors" in members:
        return "; ".join(
            f"{'.'.join(fault['location'][1:]) or fault['location'][0]}: {fault['detail']}"
            for fault in members["errors"][:MOST_FAULTS]
        )
    return _SENTENCES.get(code, detail)
