"""mem0's hosted API over HTTP: keys, paths, adding, searching, getting."""

from uuid import UUID

from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.mem0 import mem0_client
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea in the morning."


async def store(mem0: AsyncClient, text: str = TEA, **fields) -> dict:
    body = {"messages": [{"role": "user", "content": text}], "infer": False, "user_id": "ana"}
    response = await mem0.post("/v3/memories/add/", json=body | fields)
    assert response.status_code == 200, response.text
    return response.json()


async def search(mem0: AsyncClient, query: str = "What does she drink?", **fields) -> list[dict]:
    response = await mem0.post(
        "/v3/memories/search/", json={"query": query, "filters": {"user_id": "ana"}} | fields
    )
    assert response.status_code == 200, response.text
    return response.json()["results"]


class TestPing:
    async def test_ping_names_the_tenant_as_organization_and_project(
        self, mem0: AsyncClient, acme: Caller
    ) -> None:
        shown = (await mem0.get("/v1/ping/")).json()

        assert shown["status"] == "ok"
        assert (shown["org_id"], shown["project_id"]) == (acme.tenant_id, acme.tenant_id)

    async def test_ids_of_another_project_are_refused(
        self, mem0: AsyncClient, acme: Caller
    ) -> None:
        own = {"org_id": acme.tenant_id, "project_id": acme.tenant_id}
        assert (await mem0.get("/v1/ping/", params=own)).status_code == 200
        for name in own:
            response = await mem0.get("/v1/ping/", params=own | {name: "elsewhere"})
            assert response.status_code == 404
            body = {"messages": TEA, "infer": False, "user_id": "ana"} | own | {name: "elsewhere"}
            assert (await mem0.post("/v1/memories/", json=body)).status_code == 404
        assert await search(mem0) == []

    async def test_a_missing_or_unknown_key_is_refused_with_a_detail(self, app: FastAPI) -> None:
        for key in (None, "kem_unknown"):
            async with mem0_client(app, key) as nobody:
                response = await nobody.get("/v1/ping/")
            assert response.status_code == 401
            assert response.headers["content-type"] == "application/json"
            assert response.json()["detail"] == response.json()["error"] != ""

    async def test_a_body_is_not_read_without_a_key(self, app: FastAPI) -> None:
        async with mem0_client(app, None) as nobody:
            response = await nobody.post("/v3/memories/add/", content=b"{not json")
        assert response.status_code == 401

    async def test_nothing_redirects(self, mem0: AsyncClient) -> None:
        for path in ("/v1/ping", "/v3/memories/add", "/v1/memories//", "/v1/nowhere/"):
            response = await mem0.get(path)
            assert response.status_code in {404, 405}, path
            assert "location" not in response.headers

    async def test_our_own_routes_do_not_take_the_scheme(self, app: FastAPI, acme: Caller) -> None:
        async with client_of(app, None) as ours:
            response = await ours.get("/memories", headers={"Authorization": f"Token {acme.key}"})
        assert (response.status_code, response.json()["code"]) == (401, "missing_key")

    async def test_the_api_is_off_where_the_setting_says_so(self, dsn: str, acme: Caller) -> None:
        async with (
            service(dsn, mem0_api=False) as app,
            mem0_client(app, acme.key) as opened,
        ):
            response = await opened.get("/v1/ping/")
        assert (response.status_code, response.json()["code"]) == (404, "mem0_api_off")


class TestAdd:
    async def test_a_text_is_stored_as_it_is_and_found(self, mem0: AsyncClient) -> None:
        added = await store(mem0, metadata={"topic": "tea"}, run_id="chat-1", agent_id="helper")

        [result] = added["results"]
        assert added["status"] == "SUCCEEDED"
        assert (result["event"], result["data"]) == ("ADD", {"memory": TEA})
        UUID(result["id"])
        UUID(added["event_id"])
        [hit] = await search(mem0)
        assert (hit["id"], hit["memory"], hit["metadata"]) == (result["id"], TEA, {"topic": "tea"})
        assert (hit["user_id"], hit["agent_id"], hit["run_id"]) == ("ana", "helper", "chat-1")
        assert 0 < hit["score"] <= 1

    async def test_ids_may_be_in_filters(self, mem0: AsyncClient) -> None:
        body = {"messages": [{"role": "user", "content": TEA}], "infer": False}
        await mem0.post("/v3/memories/add/", json=body | {"filters": {"user_id": "ana"}})
        nested = {"filters": {"AND": [{"user_id": "ana"}, {"app_id": "shop"}]}}
        await mem0.post(
            "/v3/memories/add/",
            json=nested | {"messages": "He collects old stamps.", "infer": False},
        )

        assert {hit["app_id"] for hit in await search(mem0)} == {None, "shop"}

    async def test_filters_of_an_add_that_name_no_one_id_are_refused(
        self, mem0: AsyncClient
    ) -> None:
        for filters, named in (
            ({"user_id": {"in": ["ana"]}}, "user_id"),
            ({"user_id": ["ana"]}, "user_id"),
            ({"user_id": "*"}, "user_id"),
            ({"user_id": {"eq": "*"}}, "user_id"),
            ({"user_id": {"eq": "ana", "ne": "bo"}}, "user_id"),
            ({"run_id": None}, "run_id"),
            ({"AND": [{"user_id": "ana"}, {"metadata": {"topic": "tea"}}]}, "metadata"),
            ({"AND": [{"OR": [{"user_id": "ana"}, {"user_id": "bo"}]}]}, "OR"),
            ({"AND": [{"user_id": "ana"}, {"user_id": "bo"}]}, "user_id"),
            ({"AND": []}, "AND"),
            ({"created_at": "2026-01-01"}, "created_at"),
        ):
            for infer in (False, True):
                body = {"messages": TEA, "infer": infer, "filters": filters}
                response = await mem0.post("/v3/memories/add/", json=body)
                assert response.status_code == 400, filters
                assert named in response.json()["detail"].split(), filters
        everything = (await mem0.post("/v3/memories/", json={"filters": {}})).json()
        assert everything["count"] == 0

    async def test_an_add_takes_an_id_as_an_operand(self, mem0: AsyncClient) -> None:
        filters = {"AND": [{"AND": {"user_id": {"eq": "ana"}}}, {"user_id": "ana"}]}
        body = {"messages": TEA, "infer": False, "filters": filters}
        assert (await mem0.post("/v3/memories/add/", json=body)).status_code == 200
        assert len(await search(mem0)) == 1

    async def test_an_id_named_twice_and_differently_is_refused(self, mem0: AsyncClient) -> None:
        body = {"messages": TEA, "infer": False, "user_id": "ana", "filters": {"user_id": "bo"}}
        response = await mem0.post("/v3/memories/add/", json=body)
        assert response.status_code == 400

    async def test_adding_in_the_background_answers_with_an_event(self, mem0: AsyncClient) -> None:
        body = {"messages": [{"role": "user", "content": "I live in Lisbon."}], "user_id": "ana"}
        newer = (await mem0.post("/v3/memories/add/", json=body)).json()
        older = (await mem0.post("/v1/memories/", json=body | {"async_mode": True})).json()

        assert newer["status"] == older["results"][0]["status"] == "PENDING"
        UUID(newer["event_id"])
        UUID(older["results"][0]["event_id"])

    async def test_infer_inside_of_the_request_answers_what_was_remembered(
        self, mem0: AsyncClient
    ) -> None:
        body = {
            "messages": [{"role": "user", "content": "I live in Lisbon."}],
            "user_id": "ana", "async_mode": False,
        }  # fmt: skip
        shown = (await mem0.post("/v1/memories/", json=body)).json()

        assert [one["event"] for one in shown["results"]] == ["ADD"]
        assert "Lisbon" in shown["results"][0]["memory"]

    async def test_what_only_an_agent_is_named_for_is_its_knowledge(
        self, mem0: AsyncClient
    ) -> None:
        body = {
            "messages": [{"role": "user", "content": "I live in Lisbon."}],
            "agent_id": "helper", "async_mode": False,
        }  # fmt: skip
        shown = (await mem0.post("/v3/memories/add/", json=body)).json()
        [hit] = await search(mem0, "Where?", filters={"agent_id": "helper"})

        assert [one["id"] for one in shown["results"]] == [hit["id"]]
        assert (hit["user_id"], hit["agent_id"]) == (None, "helper")

    async def test_what_the_gate_refuses_is_named(self, mem0: AsyncClient) -> None:
        both = [{"role": "user", "content": text} for text in ("ok", TEA)]
        added = await store(mem0, messages=both)
        alone = await mem0.post(
            "/v3/memories/add/", json={"messages": "ok", "infer": False, "user_id": "ana"}
        )

        assert [one["event"] for one in added["results"]] == ["ADD"]
        assert added["rejected"][0]["reasons"][0]["code"] == "too_short"
        assert (alone.status_code, alone.json()["code"]) == (400, "gate_rejected")
        assert alone.json()["reasons"][0]["code"] == "too_short"
        assert alone.json()["reasons"][0]["detail"] in alone.json()["detail"]

    async def test_fields_without_counterpart_are_refused_or_named(self, mem0: AsyncClient) -> None:
        added = await store(mem0, custom_categories=[{"food": "what they eat"}])
        assert "custom_categories" in added["warnings"][0]
        for field in ({"immutable": True}, {"structured_data_schema": {"a": 1}}, {"unheard": 1}):
            body = {"messages": "He is a pilot.", "infer": False, "user_id": "ana"}
            response = await mem0.post("/v3/memories/add/", json=body | field)
            assert response.status_code == 400
            assert next(iter(field)) in response.json()["detail"]

    async def test_time_and_expiration_date_are_kept(self, mem0: AsyncClient) -> None:
        added = await store(mem0, timestamp=1700000000, expiration_date="2999-12-31")
        shown = (await mem0.get(f"/v1/memories/{added['results'][0]['id']}/")).json()

        assert shown["created_at"] == "2023-11-14T22:13:20Z"
        assert shown["expiration_date"] == "2999-12-31"

    async def test_a_text_that_is_there_is_not_stored_again(self, mem0: AsyncClient) -> None:
        first = (await store(mem0))["results"][0]
        again = (await store(mem0))["results"][0]
        near = (await store(mem0, "She drinks green tea in the mornings."))["results"][0]

        assert (again["id"], again["event"], again["memory"]) == (first["id"], "NONE", TEA)
        assert near["event"] == "ADD"

    async def test_a_key_without_admin_adds_no_knowledge_of_an_agent(
        self, app: FastAPI, acme: Caller, runtime: Runtime
    ) -> None:
        writer = await make_key(runtime, acme.tenant_id, "write")
        body = {"messages": TEA, "infer": False}
        async with mem0_client(app, writer.key) as opened:
            for ids, status in (
                ({"agent_id": "helper"}, 403), ({"user_id": "ana", "agent_id": "helper"}, 200),
                ({"run_id": "chat-1"}, 400), ({"user_id": "张/三"}, 400),
            ):  # fmt: skip
                response = await opened.post("/v3/memories/add/", json=body | ids)
                assert response.status_code == status, (ids, response.text)

    async def test_a_request_is_repeated_under_its_idempotency_key(self, mem0: AsyncClient) -> None:
        body = {"messages": TEA, "infer": False, "user_id": "ana"}
        headers = {"Idempotency-Key": "once"}
        first, again = [
            (await mem0.post("/v3/memories/add/", json=body, headers=headers)).json()
            for _ in range(2)
        ]
        assert first == again


class TestSearch:
    async def test_ids_beside_filters_are_for_older_clients(self, mem0: AsyncClient) -> None:
        await store(mem0)
        query = {"query": "What does she drink?", "user_id": "ana"}

        newer = await mem0.post("/v3/memories/search/", json=query)
        assert newer.status_code == 400
        for version in ("v1", "v2"):
            [hit] = (await mem0.post(f"/{version}/memories/search/", json=query)).json()
            assert hit["memory"] == TEA

    async def test_a_search_without_a_user_goes_through_all_that_fit(
        self, mem0: AsyncClient
    ) -> None:
        await store(mem0)
        await store(mem0, "He drinks black coffee.", user_id="bo")
        await store(mem0, "Everybody here drinks water.", user_id=None, agent_id="helper")

        every = await search(mem0, "Who drinks what?", filters={"user_id": "*"})
        some = await search(
            mem0, "Who drinks what?", filters={"OR": [{"user_id": "bo"}, {"agent_id": "helper"}]}
        )

        assert {hit["user_id"] for hit in every} == {"ana", "bo"}
        assert {hit["user_id"] for hit in some} == {None, "bo"}

    async def test_limits(self, mem0: AsyncClient) -> None:
        for number in range(11):
            await store(mem0, f"She has visited museum number {number}.")

        assert len(await search(mem0, "museums")) == 10
        assert len(await search(mem0, "museums", top_k=11)) == 11
        assert len(await search(mem0, "museums", top_k=100)) == 11
        for wrong in (0, 101):
            body = {"query": "museums", "filters": {"user_id": "ana"}, "top_k": wrong}
            assert (await mem0.post("/v3/memories/search/", json=body)).status_code == 400

    async def test_threshold_is_compared_with_the_score_that_is_shown(
        self, mem0: AsyncClient
    ) -> None:
        await store(mem0)
        await store(mem0, "The bicycle needs a new chain.")
        scores = sorted(hit["score"] for hit in await search(mem0, "green tea"))

        at = await search(mem0, "green tea", threshold=scores[1])
        above = await search(mem0, "green tea", threshold=min(1, scores[1] + 0.001))
        below = await search(mem0, "green tea", threshold=0.3)

        assert [hit["score"] for hit in at] == scores[1:]
        assert above == []
        assert [hit["score"] for hit in below] == scores[::-1]

    async def test_only_the_named_fields_are_shown(self, mem0: AsyncClient) -> None:
        await store(mem0)
        [hit] = await search(mem0, fields=["memory", "score"])
        assert hit.keys() == {"id", "memory", "score"}


class TestGet:
    async def test_a_missing_memory_and_a_wrong_id(self, mem0: AsyncClient) -> None:
        missing = await mem0.get("/v1/memories/01997b6a-5c7e-7f8a-9b0c-1d2e3f4a5b6c/")
        wrong = await mem0.get("/v1/memories/not-a-uuid/")

        assert (missing.status_code, missing.json()["error"]) == (404, "Memory not found!")
        assert (wrong.status_code, wrong.json()["error"]) == (400, "An id must be a UUID.")

    async def test_a_bound_key_stays_with_its_user(
        self, app: FastAPI, mem0: AsyncClient, acme: Caller, runtime: Runtime
    ) -> None:
        added = await store(mem0, user_id="bo")
        bound = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with mem0_client(app, bound.key) as ana:
            shown = await ana.get(f"/v1/memories/{added['results'][0]['id']}/")
            found = await ana.post(
                "/v3/memories/search/", json={"query": "tea", "filters": {"user_id": "bo"}}
            )
            every = await search(ana, filters={"user_id": "*"})

        assert shown.status_code == 404
        assert found.status_code == 404
        assert every == []

    async def test_another_tenant_sees_nothing(
        self, app: FastAPI, mem0: AsyncClient, other: Caller
    ) -> None:
        added = await store(mem0)
        async with mem0_client(app, other.key) as theirs:
            shown = await theirs.get(f"/v1/memories/{added['results'][0]['id']}/")
            assert shown.status_code == 404
            assert await search(theirs, filters={"user_id": "*"}) == []
