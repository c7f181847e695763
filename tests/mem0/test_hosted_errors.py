"""Errors in the shape that mem0's clients read, and what they are told who miss the dialect."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import ASGITransport, AsyncClient, Response

from app.integrations.mem0.dialect_router import error_body
from app.platform.http.middleware import RequestMiddleware
from app.runtime import Runtime
from tests.support.api import ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

LARGE = b" " * (2 * 1024 * 1024 + 1)
HINT = "end the client's host with "


def told(response: Response, status: int, code: str) -> str:
    """The sentence of an error of mem0's shape."""
    assert (response.status_code, response.headers["content-type"]) == (status, "application/json")
    body = response.json()
    assert body["code"] == code
    assert body["detail"] == body["error"] != ""
    assert body["request_id"] == response.headers["x-request-id"]
    sentence: str = body["detail"]
    return sentence


async def chunks() -> AsyncIterator[bytes]:
    yield LARGE


class TestShape:
    @pytest.mark.parametrize("whole", [True, False])
    async def test_a_body_that_is_too_large(self, mem0: AsyncClient, whole: bool) -> None:
        content = LARGE if whole else chunks()

        response = await mem0.post("/v3/memories/add/", content=content)

        told(response, 413, "body_too_large")

    async def test_a_limit_of_requests(
        self, app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime
    ) -> None:
        caller = await make_key(runtime, acme.tenant_id, "operator")
        async with client_of(app, caller.key) as operator:
            limits = {"config": {"rate_limits": {"read": 1}}}
            ok(await operator.patch(f"/tenants/{acme.tenant_id}", json=limits))
        ok(await mem0.get("/v1/ping/"))

        response = await mem0.get("/v1/ping/")

        told(response, 429, "rate_limited")
        assert int(response.headers["Retry-After"]) > 0
        assert response.headers["RateLimit"].startswith('"read";r=0')

    @pytest.mark.parametrize(
        ("error", "status", "code"),
        [
            (ConnectionRefusedError(), 503, "database_unavailable"),
            (KeyError("x"), 500, "internal_error"),
        ],
    )
    async def test_what_fails_on_our_side(self, error: Exception, status: int, code: str) -> None:
        async def failing(_scope: Any, _receive: Any, _send: Any) -> None:
            raise error

        async def nobody(_request: Any) -> None:
            pass

        served = RequestMiddleware(failing, max_bytes=9, identify=nobody, error_bodies=error_body)
        async with AsyncClient(transport=ASGITransport(served), base_url="http://test") as caller:
            theirs = await caller.get("/mem0-oss/memories")
            ours = await caller.get("/v1/memories")

        told(theirs, status, code)
        problem(ours, status, code)
        assert theirs.headers.get("Retry-After") == ours.headers.get("Retry-After")


class TestMissedDialect:
    """A client whose host lacks `/mem0` calls paths of our own, or paths that there are not."""

    @pytest.mark.parametrize(
        ("method", "path", "status", "code"),
        [
            ("GET", "/v1/ping/", 404, "path_not_found"),
            ("POST", "/v3/memories/add/", 404, "path_not_found"),
            ("GET", "/v1/memories", 401, "missing_key"),
            ("PATCH", "/v1/memories", 405, "method_not_allowed"),
        ],
    )
    async def test_a_client_of_the_hosted_api(
        self, client: AsyncClient, acme: Caller, method: str, path: str, status: int, code: str
    ) -> None:
        headers = {"Authorization": f"Token {acme.key}"}

        response = await client.request(method, f"http://test{path}", headers=headers)

        assert told(response, status, code).endswith(f"{HINT}/mem0.")

    async def test_a_client_that_sends_our_scheme_is_known_by_its_own_header(
        self, client: AsyncClient
    ) -> None:
        response = await client.post("/memories", json={}, headers={"Mem0-User-ID": "5d41"})

        assert told(response, 400, "invalid_request").endswith(f"{HINT}/mem0.")

    @pytest.mark.parametrize("path", ["/memories", "/memories/m1", "/search"])
    async def test_a_client_of_the_self_hosted_server(
        self, client: AsyncClient, acme: Caller, path: str
    ) -> None:
        response = await client.get(f"http://test{path}", headers={"X-API-Key": acme.key})

        assert told(response, 404, "path_not_found").endswith(f"{HINT}/mem0-oss.")

    async def test_a_refusal_of_another_kind_names_no_path(self, client: AsyncClient) -> None:
        response = await client.get("/memories/mem_no", headers={"Mem0-User-ID": "5d41"})
        large = await client.post("/memories", content=LARGE, headers={"Mem0-User-ID": "5d41"})

        assert HINT in told(response, 404, "memory_not_found")
        assert HINT not in told(large, 413, "body_too_large")

    @pytest.mark.parametrize(
        ("path", "headers"),
        [
            ("/nothing", {}),
            ("/memories", {}),
            ("/memoriesque", {"X-API-Key": "k"}),
            ("/v1/nothing", {"X-API-Key": "k"}),
            ("//", {"X-API-Key": "k"}),
            ("/mem0ry/", {}),
        ],
    )
    async def test_other_clients_get_a_problem(self, client: AsyncClient, path, headers) -> None:
        response = await client.get(f"http://test{path}", headers=headers)

        assert "mem0" not in problem(response, 404, "path_not_found")["detail"]
