"""What the log and the metrics say of requests that end in unusual ways."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.errors import DomainError
from app.platform.database.failures import DatabaseBusyError
from app.platform.http import problems
from app.platform.http.connections import EXPIRED
from app.platform.http.middleware import RequestMiddleware
from tests.support.api import problem


def counted(status: str) -> float:
    """Requests of POST counted with this status so far."""
    return sum(
        sample.value
        for metric in REGISTRY.collect()
        for sample in metric.samples
        if sample.name == "kemem_requests_total"
        and (sample.labels["method"], sample.labels["status"]) == ("POST", status)
    )


@pytest.mark.parametrize(
    "header", [(b"transfer-encoding", b"chunked"), (b"content-length", b"100")], ids=str
)
@pytest.mark.parametrize("path", ["/v1/memories", "/v1/memories/search"])
async def test_a_caller_who_hangs_up_is_not_our_error(
    app: FastAPI, client: AsyncClient, header: tuple[bytes, bytes], path: str
) -> None:
    key = client.headers["Authorization"].encode()
    messages = [{"type": "http.request", "body": b"{", "more_body": True}]

    async def receive() -> dict[str, Any]:
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(_message: dict[str, Any]) -> None:
        pass

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "path": path,
        "raw_path": path.encode(),
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("test", 80),
        "headers": [(b"authorization", key), (b"content-type", b"application/json"), header],
    }
    gone, crashed, refused = counted("499"), counted("500"), counted("422")

    with capture_logs() as lines:
        await app.state.reached(scope, receive, send)

    assert (counted("499"), counted("500"), counted("422")) == (gone + 1, crashed, refused)
    assert [line["log_level"] for line in lines] == ["info"]


async def test_a_body_of_unknown_fields_is_answered_with_the_first_hundred(
    client: AsyncClient,
) -> None:
    body = {"agent_name": "A"} | {f"f{number}": 0 for number in range(20_000)}
    response = await client.post("/agents", json=body)

    problem = response.json()
    assert response.status_code == 422
    assert len(problem["errors"]) == problems.MOST_FAULTS == 100
    assert "20000" in problem["detail"]
    assert len(response.content) < 20_000


async def test_what_was_not_available_is_in_the_log_with_its_cause() -> None:
    app = FastAPI()
    problems.install(app)
    busy = DatabaseBusyError()
    busy.__cause__ = TimeoutError("secret")
    request: Any = type("Request", (), {"scope": {"path": "/v1/users"}})()

    with capture_logs() as lines:
        await app.exception_handlers[DomainError](request, busy)

    [line] = [one for one in lines if one["event"] == "request_unavailable"]
    assert (line["log_level"], line["code"]) == ("warning", "database_busy")
    assert line["error"] == "TimeoutError"
    assert "secret" not in str(line)


@pytest.mark.parametrize(
    ("authorization", "code"), [("", "missing_key"), ("Bearer kem_no_such", "unknown_key")]
)
@pytest.mark.parametrize(
    ("path", "declared"),
    [("/memories", None), ("/memories/search", 100), ("/import", None), ("/folders/f/files", 100)],
)
async def test_the_key_is_looked_at_before_a_body_is_read(
    client: AsyncClient, path: str, declared: int | None, authorization: str, code: str
) -> None:
    read = 0

    async def chunks() -> AsyncIterator[bytes]:
        nonlocal read
        for _ in range(10):
            read += 1
            yield b"{" * 10

    headers = {"Authorization": authorization, "Content-Type": "application/json"}
    if declared is not None:
        headers["Content-Length"] = str(declared)
    answer = await client.post(path, content=chunks(), headers=headers)

    problem(answer, 401, code)
    assert answer.headers["WWW-Authenticate"] == "Bearer"
    assert read == 0


async def test_an_unknown_path_asks_for_no_key(client: AsyncClient) -> None:
    answer = await client.post("/nothing", json={"a": 1}, headers={"Authorization": ""})

    problem(answer, 404, "path_not_found")


async def test_a_request_that_took_too_long_says_that_it_may_have_been_written(
    client: AsyncClient,
) -> None:
    async def slow(scope: Any, _receive: Any, _send: Any) -> None:
        task = asyncio.current_task()
        assert task is not None
        scope[EXPIRED] = 300.0
        task.cancel()
        await asyncio.sleep(0)

    async def nobody(_request: Any) -> None:
        pass

    app = RequestMiddleware(slow, max_bytes=100, identify=nobody, error_bodies=lambda _scope: None)
    async with AsyncClient(transport=ASGITransport(app), base_url="http://test") as caller:
        answer = await caller.get("/v1/users")

    assert "300 seconds" in problem(answer, 504, "request_expired")["detail"]
