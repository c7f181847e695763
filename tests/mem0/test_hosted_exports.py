"""mem0's hosted API over HTTP: exports and summaries."""

import base64
import json
from collections.abc import AsyncIterator

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.builders.factory import Factory
from app.integrations.mem0.errors import InvalidMem0RequestError
from app.integrations.mem0.export_schemas import ExportGet
from app.integrations.mem0.export_service import Mem0ExportService
from app.memory.memories.service import MemoryService
from app.memory.profiles.service import ProfileService
from app.runtime import Runtime
from tests.support.api import ok
from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller, make_key

SCHEMA = {
    "type": "object",
    "properties": {"profession": {"type": "string"}, "shoe_size": {"type": "number"}},
}


@pytest.fixture
async def mem0(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with mem0_client(app, acme.key) as opened:
        yield opened


@pytest.fixture
async def known(client: AsyncClient, mem0: AsyncClient) -> None:
    """Two memories of Ana, whose profession is known, and one of Bo."""
    for user, texts in (("ana", ("She drinks tea.", "她住在里斯本。")), ("bo", ("He sails.",))):
        for text in texts:
            body = {"messages": text, "infer": False, "user_id": user}
            ok(await mem0.post("/v3/memories/add/", json=body))
    ok(
        await client.patch(
            "/users/ana/profile",
            json={"attributes": {"profession": "nurse", "programming_languages": ["C", "Go"]}},
            headers={"If-Match": "*"},
        )
    )


def texts(export: dict) -> list[str]:
    return [one["memory"] for one in export["memories"]]


@pytest.mark.usefixtures("known")
class TestExports:
    async def test_a_schema_is_filled_as_far_as_the_profile_goes(self, mem0: AsyncClient) -> None:
        filters = {"AND": [{"user_id": "ana"}]}
        for schema in (SCHEMA, json.dumps(SCHEMA)):
            made = ok(
                await mem0.post("/v1/exports/", json={"schema": schema, "filters": filters}), 201
            )
            assert "shoe_size" in made["message"]
            assert "profession" not in made["message"]
            export = ok(await mem0.post("/v1/exports/get/", json={"memory_export_id": made["id"]}))
            assert (export["profession"], export["shoe_size"]) == ("nurse", None)
            assert export["unfilled"] == ["shoe_size"]
            assert texts(export) == ["她住在里斯本。", "She drinks tea."]
            assert {"id", "user_id", "created_at", "metadata"} <= export["memories"][0].keys()

    async def test_an_export_holds_what_is_remembered_when_it_is_fetched(
        self, mem0: AsyncClient
    ) -> None:
        body = {"schema": SCHEMA, "user_id": "bo"}
        made = ok(await mem0.post("/v1/exports/", json=body), 201)
        later = {"messages": "He likes maps.", "infer": False, "user_id": "bo"}
        ok(await mem0.post("/v3/memories/add/", json=later))
        export = ok(await mem0.post("/v1/exports/get/", json={"memory_export_id": made["id"]}))
        assert texts(export) == ["He likes maps.", "He sails."]

    async def test_filters_fetch_without_an_order(self, mem0: AsyncClient) -> None:
        for body in ({"user_id": "bo"}, {"filters": {"user_id": "bo"}}):
            assert texts(ok(await mem0.post("/v1/exports/get/", json=body))) == ["He sails."]
        both = {"user_id": "bo", "filters": {"user_id": "ana"}}
        assert texts(ok(await mem0.post("/v1/exports/get/", json=both))) == []

    async def test_an_id_gives_nobody_more_than_may_be_read(
        self, app: FastAPI, runtime: Runtime, acme: Caller, mem0: AsyncClient
    ) -> None:
        made = ok(await mem0.post("/v1/exports/", json={"schema": SCHEMA, "user_id": "ana"}), 201)
        asked = {"memory_export_id": made["id"]}
        bo = await make_key(runtime, acme.tenant_id, "read", user_id="bo")
        async with mem0_client(app, bo.key) as theirs:
            export = ok(await theirs.post("/v1/exports/get/", json=asked))
        assert (export["memories"], export["profession"]) == ([], None)

    async def test_what_cannot_be_understood_is_refused(self, mem0: AsyncClient) -> None:
        for schema in ("no JSON", "[]", {}, {"properties": {}}, {"properties": []}):
            response = await mem0.post("/v1/exports/", json={"schema": schema, "user_id": "ana"})
            assert response.status_code == 400, schema
        guided = {"schema": SCHEMA, "user_id": "ana", "export_instructions": "In French."}
        response = await mem0.post("/v1/exports/", json=guided)
        assert response.json()["code"] == "no_counterpart"
        unknown = {"schema": SCHEMA, "filters": {"shoe": 1}}
        assert (await mem0.post("/v1/exports/", json=unknown)).status_code == 400
        forged = [b"{}", b"[[], []]", b"[{}, [1]]", b"[" * 5000, b'[{"shoe": 1}, []]', b"\xff"]
        written = [base64.urlsafe_b64encode(text).decode().rstrip("=") for text in forged]
        for export_id in ("x", "!", *written):
            asked = {"memory_export_id": export_id}
            assert (await mem0.post("/v1/exports/get/", json=asked)).status_code == 400, export_id
        assert (await mem0.post("/v1/exports/get/", json={})).status_code == 400

    async def test_a_schema_has_at_most_100_properties(self, mem0: AsyncClient) -> None:
        for count, status in ((99, 201), (100, 201), (101, 400)):
            properties = {f"field_{number}": {} for number in range(count)}
            schema = json.dumps({"properties": properties})
            body = {"schema": schema, "user_id": "ana"}
            assert (await mem0.post("/v1/exports/", json=body)).status_code == status, count

    async def test_more_memories_than_one_answer_holds_are_refused(
        self, runtime: Runtime, acme: Caller
    ) -> None:
        services = Factory(runtime)
        principal = await runtime.identification.identify(acme.key)
        body = ExportGet(user_id="ana")
        for most in (3, 2):
            service = Mem0ExportService(
                runtime.work, services.get(MemoryService), services.get(ProfileService), most=most
            )
            assert len((await service.get(principal, body))["memories"]) == 2
        service = Mem0ExportService(
            runtime.work, services.get(MemoryService), services.get(ProfileService), most=1
        )
        with pytest.raises(InvalidMem0RequestError, match="2 memories"):
            await service.get(principal, body)


@pytest.mark.usefixtures("known")
class TestSummary:
    async def test_a_user_is_summarised_by_the_profile(self, mem0: AsyncClient) -> None:
        for filters in ({"user_id": "ana"}, {"AND": [{"user_id": "ana"}]}):
            shown = ok(await mem0.post("/v1/summary/", json={"filters": filters}))
            assert shown["summary"] == "profession: nurse\nprogramming languages: C, Go"
            assert (shown["total_memories"], shown["memory_types"]) == (2, {"fact": 2})

    async def test_without_a_user_it_counts(self, mem0: AsyncClient) -> None:
        shown = ok(await mem0.post("/v1/summary/", json={}))
        assert (shown["summary"], shown["total_memories"]) == (None, 3)

    async def test_what_cannot_be_counted_is_refused(self, mem0: AsyncClient) -> None:
        for filters in (
            {"categories": {"in": ["fact"]}}, {"OR": [{"user_id": "ana"}, {"user_id": "bo"}]},
            {"user_id": "*"}, {"user_id": "ana", "app_id": "shop"}, {"user_id": "a/b"},
            {"run_id": ""},
        ):  # fmt: skip
            response = await mem0.post("/v1/summary/", json={"filters": filters})
            assert response.status_code == 400, filters
