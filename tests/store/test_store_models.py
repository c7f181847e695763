"""Vectors of a store when the embedder changes."""

from httpx import AsyncClient

from app.cli.maintenance import OTHERS
from app.identity.usage.ledger import EmbeddingLedger
from app.memory.memories.backfill import ReembedService
from app.runtime import Runtime
from tests.support.api import execute, problem
from tests.support.openai_server import openai_server, refusal
from tests.support.service import client_of, service
from tests.support.store import batch, get, put, search
from tests.support.tenants import Caller

OLD = "former/model:3"


async def scores(client: AsyncClient, query: str) -> dict[str, float | None]:
    [found] = await batch(client, search("t", query=query))
    return {item["key"]: item["score"] for item in found["items"]}


async def test_store_moves_to_another_embedder_and_is_found_meanwhile(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    await batch(
        client,
        put("both", {"a": "green tea", "b": "a motorway"}, index=["a", "b"]),
        put("new", {"a": "black tea"}, index=["a"]),
    )
    await execute(
        dsn,
        "UPDATE store_texts SET embedding = '[1,0,0]', embedding_model = $2 "
        "WHERE tenant_id = $1 AND content <> 'black tea'",
        acme.tenant_id, OLD,
    )  # fmt: skip
    await execute(
        dsn,
        "UPDATE tenants SET embedding_models = embedding_models || $2::text WHERE tenant_id = $1",
        acme.tenant_id, OLD,
    )  # fmt: skip
    half = await scores(client, "green tea")

    moved: list[int] = []
    service = ReembedService(
        runtime.database, runtime.catalogue, EmbeddingLedger(runtime.database), (), OTHERS
    )
    plan = await service.plan(acme.tenant_id)
    await service.reembed(acme.tenant_id, plan, batch=1, moved=moved.append)

    # Vectors of a model that this deployment lacks are compared with nothing.
    assert (list(half), half["both"]) == (["new", "both"], None)
    assert (plan.waiting, sum(moved)) == (2, 2)
    whole = await scores(client, "green tea")
    assert list(whole) == ["both", "new"]
    assert (await service.plan(acme.tenant_id)).waiting == 0
    [tenant] = await execute(
        dsn, "SELECT embedding_models FROM tenants WHERE tenant_id = $1", acme.tenant_id
    )
    assert tenant["embedding_models"] == [runtime.catalogue.default.name]


async def test_text_that_was_put_meanwhile_keeps_its_vector(
    client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
) -> None:
    """Read, embed and write are apart: what was put in between is newer."""
    await batch(client, put("k", {"a": "green tea"}, index=["a"]))
    await execute(
        dsn, "UPDATE store_texts SET embedding_model = $2 WHERE tenant_id = $1",
        acme.tenant_id, OLD,
    )  # fmt: skip
    service = ReembedService(
        runtime.database, runtime.catalogue, EmbeddingLedger(runtime.database), (), OTHERS
    )
    in_force = (await service.plan(acme.tenant_id)).in_force
    kind = OTHERS[-1]
    async with runtime.database.begin(acme.tenant_id) as db:
        rows = await kind(db, acme.tenant_id).next_waiting(in_force, after="", limit=10)
    await batch(client, put("k", {"a": "a motorway"}, index=["a"]))

    async with runtime.database.begin(acme.tenant_id) as db:
        written = await kind(db, acme.tenant_id).replace_vectors(rows, [[1.0, 0.0, 0.0]])

    assert written == 0
    assert (await scores(client, "a motorway"))["k"] > 0.99


async def test_nothing_is_put_while_the_embedder_is_down(dsn: str, acme: Caller) -> None:
    with openai_server() as provider:
        settings = {
            "embedding_model": "openai/alpha",
            "openai_base_url": provider.base_url,
            "model_retries": 0,
        }
        async with service(dsn, **settings) as app, client_of(app, acme.key) as client:
            await batch(client, put("k", {"a": "green tea"}, index=["a"]), put("gone"))
            body = {
                "operations": [
                    put("k", {"a": "a motorway"}, index=["a"]),
                    put("new"),
                    {"op": "delete", "namespace": ["t"], "key": "gone"},
                ]
            }
            again = {"Idempotency-Key": "one"}
            provider.otherwise = refusal(500)
            response = await client.post("/store/batch", json=body, headers=again)

            problem(response, 503, "embedding_unavailable")
            assert int(response.headers["Retry-After"]) > 0
            # What needs no vector goes on.
            old, new, gone = await batch(client, get(), get("new"), get("gone"))
            assert (old["item"]["value"], new["item"]) == ({"a": "green tea"}, None)
            assert gone["item"]
            await batch(client, put("plain"))
            provider.reset()
            await batch(client, *body["operations"], **again)
            assert (await scores(client, "a motorway"))["k"] > 0.99
