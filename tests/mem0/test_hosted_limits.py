"""What requests of mem0's clients that do the work of many count for, against a tenant's limits."""

from collections.abc import Awaitable, Callable

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import ok
from tests.support.mem0 import store_text
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

Limit = Callable[[str, int], Awaitable[None]]


@pytest.fixture
async def limit(app: FastAPI, acme: Caller, runtime: Runtime) -> Limit:
    caller = await make_key(runtime, acme.tenant_id, "operator")

    async def limit(kind: str, most: int) -> None:
        body = {"config": {"rate_limits": {kind: most}}}
        async with client_of(app, caller.key) as operator:
            ok(await operator.patch(f"/tenants/{acme.tenant_id}", json=body))

    return limit


async def test_a_batch_of_updates_counts_as_its_updates(mem0: AsyncClient, limit: Limit) -> None:
    ids = [await store_text(mem0, f"Her locker is {n}.", user_id="ana") for n in (11, 27, 53)]
    await limit("write", 5)
    changes = [{"memory_id": one, "metadata": {"seen": True}} for one in ids]

    first = await mem0.put("/v1/batch/", json={"memories": changes})
    second = await mem0.put(
        "/v1/batch/", json={"memories": [one | {"metadata": {"seen": False}} for one in changes]}
    )

    assert (first.status_code, second.status_code) == (200, 429)
    assert first.headers["RateLimit"].startswith('"write";r=2;')
    assert int(second.headers["Retry-After"]) > 0
    for one in ids:
        assert (await mem0.get(f"/v1/memories/{one}/")).json()["metadata"] == {"seen": True}


@pytest.mark.parametrize(
    "path", ["/v3/memories/search/", "/v2/memories/search/", "/v1/memories/search/"]
)
async def test_a_search_counts_as_the_places_that_it_goes_through(
    mem0: AsyncClient, limit: Limit, path: str
) -> None:
    for user in ("ana", "ben", "eva"):
        await store_text(mem0, f"{user} drinks tea.", user_id=user)
    await limit("read", 9)

    def asked(user: str) -> dict[str, object]:
        return {"query": "tea", "filters": {"user_id": user}}

    one = await mem0.post(path, json=asked("ana"))
    nobody = await mem0.post(path, json={"query": "tea", "filters": {"agent_id": "none"}})
    every = await mem0.post(path, json=asked("*"))
    again = await mem0.post(path, json=asked("*"))
    refused = await mem0.post(path, json=asked("*"))

    rests = [answer.headers["RateLimit"][:11] for answer in (one, nobody, every, again)]
    assert rests == [f'"read";r={left};t'[:11] for left in (8, 7, 4, 1)]
    assert (again.status_code, refused.status_code) == (200, 429)
