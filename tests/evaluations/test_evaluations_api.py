"""Results of evaluations are kept, listed and deleted, through the public routes."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.evaluations.schemas import (
    METRICS_BYTES,
    SETTINGS_BYTES,
    EvaluationCreate,
    EvaluationQuery,
)
from app.governance.evaluations.service import EvaluationService
from app.platform.version import VERSION
from app.platform.work.unit import Work
from app.runtime import Runtime
from tests.support.api import every_page, fields, ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

METRICS = {"total": {"recall": {"10": 0.71}}, "milliseconds": {"p50": 12.5}}


def body_of(name: str = "before", **rest: Any) -> dict[str, Any]:
    return {"name": name, "dataset": "questions", "metrics": METRICS} | rest


async def keep(client: AsyncClient, **rest: Any) -> dict[str, Any]:
    kept: dict[str, Any] = ok(await client.post("/evaluations", json=body_of(**rest)), 201)
    return kept


async def test_a_kept_result_is_read_again(client: AsyncClient, acme: Caller) -> None:
    kept = await keep(client, settings={"k": [5, 10]})

    assert kept["evaluation_id"].startswith("evl_")
    assert (kept["name"], kept["dataset"], kept["release"]) == ("before", "questions", VERSION)
    assert (kept["settings"], kept["metrics"], kept["actor"]) == (
        {"k": [5, 10]}, METRICS, acme.key_id,
    )  # fmt: skip
    assert ok(await client.get(f"/evaluations/{kept['evaluation_id']}")) == kept


async def test_results_are_listed_newest_first_and_narrowed(client: AsyncClient) -> None:
    names = ["one", "two", "three"]
    for name in names:
        await keep(client, name=name, dataset=f"set of {name}")

    rows = await every_page(client, "/evaluations", limit=2)

    assert [row["name"] for row in rows] == names[::-1]
    assert [row["name"] for row in await every_page(client, "/evaluations", name="two")] == ["two"]
    [row] = await every_page(client, "/evaluations", dataset="set of one")
    assert row["name"] == "one"


async def test_the_fingerprint_is_that_of_data_set_and_settings(client: AsyncClient) -> None:
    first = await keep(client, settings={"k": 5, "mode": "hybrid"})
    again = await keep(client, name="after", settings={"mode": "hybrid", "k": 5}, metrics={"m": 1})
    other = await keep(client, settings={"k": 10, "mode": "hybrid"})
    elsewhere = await keep(client, dataset="others", settings={"k": 5, "mode": "hybrid"})

    assert first["fingerprint"] == again["fingerprint"]
    assert len({one["fingerprint"] for one in (first, other, elsewhere)}) == 3


async def test_a_repeated_request_keeps_one_result(client: AsyncClient) -> None:
    key = {"Idempotency-Key": "one"}
    answers = [await client.post("/evaluations", json=body_of(), headers=key) for _ in range(2)]

    assert ok(answers[0], 201) == ok(answers[1], 201)
    assert len(await every_page(client, "/evaluations")) == 1


async def test_a_deleted_result_is_gone(client: AsyncClient) -> None:
    path = f"/evaluations/{(await keep(client))['evaluation_id']}"

    ok(await client.delete(path), 204)

    problem(await client.get(path), 404, "evaluation_not_found")
    problem(await client.delete(path), 404, "evaluation_not_found")


async def test_the_oldest_result_makes_room(runtime: Runtime, acme: Caller) -> None:
    """At the limit nothing goes; one above it the oldest does."""
    service = EvaluationService(Work(runtime.database, enabled=True), most=2)
    principal = await runtime.identification.identify(acme.key)

    async def names() -> list[str]:
        page = await service.list_results(principal, EvaluationQuery())
        return [row.name for row in page.items]

    for name in ("one", "two"):
        await service.add(principal, EvaluationCreate(**body_of(name)))
    assert await names() == ["two", "one"]

    await service.add(principal, EvaluationCreate(**body_of("three")))

    assert await names() == ["three", "two"]


@pytest.mark.parametrize(
    ("field", "limit"), [("settings", SETTINGS_BYTES), ("metrics", METRICS_BYTES)]
)
async def test_objects_have_bounds(client: AsyncClient, field: str, limit: int) -> None:
    """`{"a":"…"}` has eight bytes beside its text."""
    for size, status in ((limit, 201), (limit + 1, 422)):
        response = await client.post(
            "/evaluations", json=body_of(**{field: {"a": "x" * (size - len('{"a":""}'))}})
        )
        assert response.status_code == status, (size, response.text)
        if status == 422:
            assert fields(problem(response, 422, "invalid_request")) == [f"body.{field}"]


@pytest.mark.parametrize(("length", "status"), [(0, 422), (1, 201), (255, 201), (256, 422)])
async def test_names_have_bounds(client: AsyncClient, length: int, status: int) -> None:
    for field in ("name", "dataset"):
        response = await client.post("/evaluations", json=body_of(**{field: "x" * length}))
        assert response.status_code == status, (field, response.text)


async def test_keys_of_others_see_none(
    client: AsyncClient, stranger: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    path = f"/evaluations/{(await keep(client))['evaluation_id']}"
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ana")

    problem(await stranger.get(path), 404, "evaluation_not_found")
    assert await every_page(stranger, "/evaluations") == []
    async with client_of(app, key.key) as ana:
        problem(await ana.get(path), 404, "evaluation_not_found")
        problem(await ana.get("/evaluations"), 403, "key_restricted")
        problem(await ana.post("/evaluations", json=body_of()), 403, "key_restricted")
