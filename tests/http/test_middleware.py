"""What the log and the metrics say of requests that end in unusual ways."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient
from prometheus_client import REGISTRY
from structlog.testing import capture_logs

from app.errors import DomainError
from app.platform.database.failures import DatabaseBusyError
from app.platform.http import problems


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
async def test_a_caller_who_hangs_up_is_not_our_error(
    app: FastAPI, client: AsyncClient, header: tuple[bytes, bytes]
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
        "path": "/v1/memories",
        "raw_path": b"/v1/memories",
        "query_string": b"",
        "root_path": "",
        "scheme": "http",
        "server": ("test", 80),
        "headers": [(b"authorization", key), (b"content-type", b"application/json"), header],
    }
    gone, crashed, refused = counted("499"), counted("500"), counted("422")

    await app.state.reached(scope, receive, send)

    assert (counted("499"), counted("500"), counted("422")) == (gone + 1, crashed, refused)


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
