"""Every route of mem0's API, read from its own document: who may not come in, and how it ends."""

import re

from fastapi import FastAPI
from httpx import AsyncClient

from app.main import DIALECTS
from app.runtime import Runtime
from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller, make_key

UUID = "01997b6a-5c7e-7f8a-9b0c-1d2e3f4a5b6c"


async def routes(mem0: AsyncClient) -> list[tuple[str, str]]:
    """Method and address of every route, with an id where there is one."""
    document = (await mem0.get("/openapi.json")).json()
    found = [
        (method.upper(), re.sub(r"\{\w+\}", UUID, path))
        for path, operations in document["paths"].items()
        for method in operations
    ]
    assert len(found) > 15
    return found


async def test_every_route_is_in_the_document_once(mem0: AsyncClient) -> None:
    document = (await mem0.get("/openapi.json")).json()
    operations = [one for path in document["paths"].values() for one in path.values()]
    names = [one["operationId"] for one in operations]

    assert len(names) == len(set(names))
    assert all(one["tags"] == ["mem0"] for one in operations)
    assert document["servers"] == [{"url": "/mem0"}]


async def test_no_route_answers_without_a_key(app: FastAPI, mem0: AsyncClient) -> None:
    async with mem0_client(app, None) as nobody:
        for method, path in await routes(mem0):
            response = await nobody.request(method, path)
            assert (response.status_code, response.json()["code"]) == (401, "missing_key"), path


async def test_every_path_ends_with_a_slash_and_none_redirects(mem0: AsyncClient) -> None:
    for method, path in await routes(mem0):
        assert path.endswith("/")
        response = await mem0.request(method, path.rstrip("/"))
        assert response.status_code in {404, 405}, path
        assert response.headers["content-type"] == "application/json"


async def test_a_key_that_only_reads_may_not_change_anything(
    app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime
) -> None:
    asking = ("/search/", "/v3/memories/", "/v2/memories/", "/exports/", "/get/", "/summary/")
    reader = await make_key(runtime, acme.tenant_id, "read")
    async with mem0_client(app, reader.key) as opened:
        for method, path in await routes(mem0):
            response = await opened.request(method, path, json={"unheard": 1})
            if method == "POST" and path.endswith(asking):
                assert response.status_code == 400, (path, response.text)
            elif method != "GET":
                assert response.status_code == 403, (method, path, response.text)


async def test_fault_is_named_without_words_of_our_code(mem0: AsyncClient) -> None:
    body = {"user_id": "ana", "messages": [{"role": "user", "content": 7}]}

    response = await mem0.post("/v3/memories/add/", json=body)

    assert response.status_code == 400
    assert "messages.0.content" in response.json()["detail"]
    assert "function-" not in response.json()["detail"]


async def test_another_project_is_refused_by_every_route(mem0: AsyncClient) -> None:
    for method, path in await routes(mem0):
        response = await mem0.request(method, path, params={"project_id": "elsewhere"})
        assert response.status_code in {400, 404}, path


def test_dialects_are_mounted_beside_our_own_routes() -> None:
    assert not any(path.startswith("/v1") or path == "/" for path in DIALECTS)
