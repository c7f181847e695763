"""Tenants and keys through the public routes: who may call, from when and until when."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from time import perf_counter
from typing import Any

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.platform.database.roles import OWNER
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import execute, ok, problem
from tests.support.patience import PATIENCE
from tests.support.service import USAGE_FLUSH, client_of
from tests.support.tenants import Caller, make_key


@pytest.fixture
async def operator(app: FastAPI, runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """The API as an operator sees it."""
    caller = await make_key(runtime, acme.tenant_id, "operator")
    async with client_of(app, caller.key) as opened:
        yield opened


async def status_of(app: FastAPI, key: str, path: str = "/users") -> tuple[int, str | None]:
    async with client_of(app, key) as client:
        response = await client.get(path)
        return response.status_code, response.json().get("code")


async def add_key(client: AsyncClient, **fields: Any) -> dict[str, Any]:
    response = await client.post("/keys", json=fields)
    assert response.status_code == 201, response.text
    return response.json()


class TestTenants:
    async def test_a_new_one_comes_with_an_admin_key_that_works(
        self, app: FastAPI, operator: AsyncClient
    ) -> None:
        response = await operator.post("/tenants", json={"tenant_name": "名"})

        tenant = response.json()
        assert response.status_code == 201
        assert (tenant["tenant_name"], tenant["status"], tenant["version"]) == ("名", "enabled", 1)
        assert tenant["key"]["scopes"] == ["admin"]
        assert await status_of(app, tenant["key"]["key"]) == (200, None)
        assert await status_of(app, tenant["key"]["key"], "/tenants") == (403, "insufficient_scope")

    async def test_an_id_of_ones_own_is_taken_once(self, operator: AsyncClient) -> None:
        wanted = f"acme@{datetime.now(UTC).timestamp()}+x=y|z~"
        body = {"tenant_name": "Acme", "tenant_id": wanted}

        first = await operator.post("/tenants", json=body)
        second = await operator.post("/tenants", json=body)

        assert (first.status_code, first.json()["tenant_id"]) == (201, wanted)
        assert (second.status_code, second.json()["code"]) == (409, "id_taken")
        assert (await operator.get(f"/tenants/{wanted}")).json()["tenant_name"] == "Acme"

    async def test_they_are_listed_newest_first_page_by_page(self, operator: AsyncClient) -> None:
        made = [
            (await operator.post("/tenants", json={"tenant_name": str(number)})).json()["tenant_id"]
            for number in range(3)
        ]

        first = (await operator.get("/tenants?limit=2")).json()
        second = (await operator.get("/tenants", params={"cursor": first["next_cursor"]})).json()

        assert [one["tenant_id"] for one in first["items"]] == made[:0:-1]
        assert second["items"][0]["tenant_id"] == made[0]

    async def test_a_stale_version_is_refused(self, operator: AsyncClient, other: Caller) -> None:
        path = f"/tenants/{other.tenant_id}"
        first = await operator.patch(path, json={"tenant_name": "B"}, headers={"If-Match": "1"})
        second = await operator.patch(path, json={"tenant_name": "C"}, headers={"If-Match": "1"})
        third = await operator.patch(path, json={"tenant_name": "D"}, headers={"If-Match": '"2"'})
        fourth = await operator.patch(path, json={"tenant_name": "D"})

        assert (first.status_code, first.json()["version"]) == (200, 2)
        assert (second.status_code, second.json()["code"]) == (409, "version_conflict")
        assert second.json()["current_version"] == 2
        assert (third.status_code, third.json()["version"]) == (200, 3)
        # What changes nothing writes nothing.
        assert (fourth.json()["version"], fourth.json()["tenant_name"]) == (3, "D")

    async def test_a_disabled_one_is_shut_out_until_it_is_enabled_again(
        self, app: FastAPI, operator: AsyncClient, other: Caller
    ) -> None:
        path = f"/tenants/{other.tenant_id}"
        assert await status_of(app, other.key) == (200, None)

        await operator.patch(path, json={"status": "disabled"})
        assert await status_of(app, other.key) == (403, "tenant_disabled")
        await operator.patch(path, json={"status": 1})

        assert await status_of(app, other.key) == (200, None)

    async def test_nobody_locks_themselves_out(
        self, app: FastAPI, operator: AsyncClient, acme: Caller
    ) -> None:
        path = f"/tenants/{acme.tenant_id}"
        refused = await operator.patch(path, json={"tenant_name": "A", "status": "disabled"})

        assert (refused.status_code, refused.json()["code"]) == (409, "own_tenant")
        assert (await operator.get(path)).json()["tenant_name"] == "Acme"
        assert (await operator.patch(path, json={"status": "enabled"})).status_code == 200
        assert await status_of(app, acme.key) == (200, None)

    async def test_a_missing_one_is_not_found(self, operator: AsyncClient) -> None:
        for method, path, body in (
            ("GET", "/tenants/nobody", None),
            ("PATCH", "/tenants/nobody", {"tenant_name": "A"}),
            ("POST", "/tenants/nobody/keys", {}),
            ("GET", "/tenants/nobody/keys", None),
        ):
            response = await operator.request(method, path, json=body)

            assert (response.status_code, response.json()["code"]) == (404, "tenant_not_found")

    async def test_an_unknown_embedder_is_refused(self, operator: AsyncClient) -> None:
        body = {"tenant_name": "A", "config": {"embedding": "nobody/nothing"}}
        response = await operator.post("/tenants", json=body)

        assert (response.status_code, response.json()["code"]) == (422, "unknown_embedder")

    async def test_an_admin_is_no_operator(self, client: AsyncClient, acme: Caller) -> None:
        for method, path in (("GET", "/tenants"), ("GET", f"/tenants/{acme.tenant_id}")):
            response = await client.request(method, path)

            assert (response.status_code, response.json()["required_scope"]) == (403, "operator")

    async def test_an_operator_reads_no_data(self, operator: AsyncClient) -> None:
        for path in ("/users", "/memories", "/keys"):
            assert (await operator.get(path)).status_code == 403

    @pytest.mark.parametrize(
        ("said", "name"),
        [
            ({"max_facts": 501}, "forgetting.max_facts"),
            ({"max_fact": 3}, "forgetting.max_fact"),
            ({"eviction": "oldest"}, "forgetting.eviction"),
            ({"message_retention_days": -1}, "forgetting.message_retention_days"),
            ([], "forgetting"),
        ],
    )
    async def test_what_it_says_of_forgetting_is_checked_by_name(
        self, operator: AsyncClient, said: Any, name: str
    ) -> None:
        made = (await operator.post("/tenants", json={"tenant_name": "Acme"})).json()
        place = f"/tenants/{made['tenant_id']}"
        fine = {"forgetting": {"max_facts": 500, "message_retention_days": 0}}
        assert (await operator.patch(place, json={"config": fine})).status_code == 200
        config = {"config": {"forgetting": said}}

        refused = [
            await operator.patch(place, json=config),
            await operator.post("/tenants", json={"tenant_name": "Acme"} | config),
        ]

        for response in refused:
            assert (response.status_code, response.json()["code"]) == (422, "invalid_request")
            [fault] = response.json()["errors"]
            assert fault["location"] == ["body", "config"]
            assert f"{name} must be" in fault["detail"]
        assert (await operator.get(place)).json()["config"] == fine

    async def test_a_setting_that_there_is_none_of_is_refused_by_name(
        self, operator: AsyncClient
    ) -> None:
        """`rate_limit` would limit nothing, unnoticed."""
        made = (await operator.post("/tenants", json={"tenant_name": "Acme"})).json()
        place = f"/tenants/{made['tenant_id']}"
        known = {
            "embedding": "wordllama", "model": "rules", "graph": False, "processors": [],
            "summary_model": "extractive", "profile_model": "rules", "forgetting": {},
            "rate_limits": {}, "daily_calls": 0, "daily_tokens": 0,
            "extraction_prompt": "Colours alone.",
        }  # fmt: skip
        assert ok(await operator.patch(place, json={"config": known}))["config"] == known

        for config in ({"rate_limit": {"read": 5}}, known | {"x" * 500: 1}):
            for response in (
                await operator.patch(place, json={"config": config}),
                await operator.post("/tenants", json={"tenant_name": "Acme", "config": config}),
            ):
                [fault] = problem(response, 422, "invalid_request")["errors"]
                name = next(one for one in config if one not in known)[:100]
                assert fault["location"] == ["body", "config"]
                assert f"{name} must be a setting" in fault["detail"]
        assert ok(await operator.get(place))["config"] == known

    async def test_a_prompt_for_extraction_may_have_8000_characters(
        self, operator: AsyncClient
    ) -> None:
        made = (await operator.post("/tenants", json={"tenant_name": "Acme"})).json()
        place = f"/tenants/{made['tenant_id']}"
        for prompt in ("记" * 8000, "a" * 7999):
            config = {"extraction_prompt": prompt}
            assert ok(await operator.patch(place, json={"config": config}))["config"] == config
        for wrong in ("a" * 8001, 5, ["a"]):
            response = await operator.patch(place, json={"config": {"extraction_prompt": wrong}})
            [fault] = problem(response, 422, "invalid_request")["errors"]
            assert fault["location"] == ["body", "config"]
            assert "extraction_prompt must be" in fault["detail"]


class TestKeys:
    async def test_a_key_that_has_expired_already_is_not_made(
        self, client: AsyncClient, operator: AsyncClient, acme: Caller
    ) -> None:
        now = datetime.now(UTC)
        for path, caller in (("/keys", client), (f"/tenants/{acme.tenant_id}/keys", operator)):
            for past in (now - timedelta(days=1), now):
                body = {"expires_at": past.isoformat()}
                [fault] = problem(await caller.post(path, json=body), 422, "expiry_in_past")[
                    "errors"
                ]
                assert fault["location"] == ["body", "expires_at"]
        assert all(one["expires_at"] is None for one in ok(await client.get("/keys"))["items"])

    async def test_key_may_be_bound_to_a_user_who_is_made_on_first_use(
        self, app: FastAPI, client: AsyncClient
    ) -> None:
        made = await add_key(client, user_id="eva")
        body = {"messages": "She drinks green tea.", "user_id": "eva", "infer": False}
        async with client_of(app, made["key"]) as eva:
            problem(await eva.get("/users/eva"), 404, "user_not_found")
            ok(await eva.post("/memories", json=body), 201)
            assert ok(await eva.get("/users/eva"))["user_id"] == "eva"

    async def test_key_may_be_bound_to_an_agent_that_is_made_on_first_use(
        self, app: FastAPI, client: AsyncClient
    ) -> None:
        made = await add_key(client, agent_id="coach")
        body = {"messages": "She drinks tea.", "user_id": "coach~eva", "infer": False}
        async with client_of(app, made["key"]) as coach:
            problem(await coach.get("/agents/coach"), 404, "agent_not_found")
            ok(await coach.post("/memories", json=body), 201)
            assert ok(await coach.get("/agents/coach"))["agent_id"] == "coach"

    async def test_repetition_is_answered_when_its_key_has_expired(
        self, client: AsyncClient
    ) -> None:
        once = {"Idempotency-Key": "expiring"}
        for seconds in (1, 10, 100):
            soon = datetime.now(UTC) + timedelta(seconds=seconds)
            body = {"expires_at": soon.isoformat()}
            made = await client.post("/keys", json=body, headers=once)
            # A machine that stood still for so long has another try.
            if made.status_code == 201:
                break
        first = ok(made, 201)
        await asyncio.sleep((soon - datetime.now(UTC)).total_seconds() + 0.01)

        again = ok(await client.post("/keys", json=body, headers=once), 201)

        assert again == first | {"key": None}

    async def test_a_key_is_shown_once(self, client: AsyncClient, dsn: str) -> None:
        made = await add_key(client, key_name="backend", scopes=["write", "read", "read"])

        listed = (await client.get("/keys")).json()["items"]
        [shown] = [one for one in listed if one["key_id"] == made["key_id"]]
        assert made.pop("key").startswith(f"kem_{made['key_prefix']}_")
        assert shown == made
        assert made["scopes"] == ["read", "write"]
        assert "key" not in shown

    async def test_only_its_hash_is_kept(self, client: AsyncClient, dsn: str) -> None:
        made = await add_key(client)

        connection = await asyncpg.connect(dsn)
        await connection.execute(f"SET ROLE {OWNER}")
        row = await connection.fetchval(
            "SELECT to_jsonb(api_keys)::text FROM api_keys WHERE key_id = $1", made["key_id"]
        )
        await connection.close()
        assert made["key"] not in row
        assert made["key"].split("_")[2] not in row

    async def test_revocation_takes_effect_at_once(self, app: FastAPI, client: AsyncClient) -> None:
        made = await add_key(client)
        assert await status_of(app, made["key"]) == (200, None)

        first = await client.delete(f"/keys/{made['key_id']}")
        assert await status_of(app, made["key"]) == (401, "revoked_key")
        second = await client.delete(f"/keys/{made['key_id']}")

        assert first.json()["revoked_at"] == second.json()["revoked_at"]

    async def test_a_key_expires(self, app: FastAPI, client: AsyncClient, dsn: str) -> None:
        later = (datetime.now(UTC) + timedelta(hours=1)).isoformat()
        made, lasting = [await add_key(client, expires_at=later) for _ in range(2)]
        assert await status_of(app, made["key"]) == (200, None)

        passed = "UPDATE api_keys SET expires_at = now() WHERE key_id = $1"
        await execute(dsn, passed, made["key_id"])

        assert await status_of(app, made["key"]) == (401, "expired_key")
        assert await status_of(app, lasting["key"]) == (200, None)

    async def test_a_key_that_was_used_says_when_and_is_not_written_each_time(
        self, app: FastAPI, client: AsyncClient, dsn: str, settings: Settings
    ) -> None:
        made = await add_key(client)
        connection = await asyncpg.connect(dsn)
        await connection.execute(f"SET ROLE {OWNER}")

        async def used() -> tuple[datetime | None, int]:
            row = await connection.fetchrow(
                "SELECT last_used_at, xmin::text::bigint AS writer FROM api_keys WHERE key_id = $1",
                made["key_id"],
            )
            return row["last_used_at"], row["writer"]

        assert (await used())[0] is None
        began, writers = datetime.now(UTC), set()
        started = perf_counter()
        for _ in range(40):
            assert await status_of(app, made["key"]) == (200, None)
            writers.add((await used())[1])
        flushes = (perf_counter() - started) / USAGE_FLUSH.total_seconds()
        async with asyncio.timeout(PATIENCE):
            while (await used())[0] is None:  # noqa: ASYNC110 (only the table says so)
                await asyncio.sleep(0.02)

        moment, _ = await used()
        await connection.close()
        assert began <= moment <= datetime.now(UTC)
        assert len(writers) <= flushes + 2

    async def test_a_forged_key_with_a_real_prefix_is_unknown(
        self, app: FastAPI, acme: Caller
    ) -> None:
        _, prefix, secret = acme.key.split("_")
        for forged in (
            f"kem_{prefix}_{secret[::-1]}", f"kem_{prefix}_", f"kem_{prefix}", prefix,
            f"KEM_{prefix}_{secret}", f"kem_{prefix}_{secret}_", f"kem__{prefix}_{secret}",
        ):  # fmt: skip
            assert await status_of(app, forged) == (401, "unknown_key")

    async def test_other_ways_to_send_a_key_are_none(self, app: FastAPI, acme: Caller) -> None:
        async with client_of(app, None) as client:
            for headers in (
                {}, {"Authorization": acme.key}, {"Authorization": f"Basic {acme.key}"},
                {"Authorization": "Bearer"}, {"X-API-Key": acme.key},
            ):  # fmt: skip
                response = await client.get("/users", headers=headers)

                assert (response.status_code, response.json()["code"]) == (401, "missing_key")
            assert (await client.get(f"/users?key={acme.key}")).status_code == 401

    @pytest.mark.parametrize("scope", ["admin", "operator"])
    @pytest.mark.parametrize("restriction", [{"user_id": "ana"}, {"agent_id": "helper"}])
    async def test_a_restricted_key_governs_nothing(
        self, client: AsyncClient, scope: str, restriction: dict[str, str]
    ) -> None:
        response = await client.post("/keys", json={"scopes": [scope]} | restriction)

        assert (response.status_code, response.json()["code"]) == (422, "invalid_request")

    async def test_an_admin_makes_no_operator(self, client: AsyncClient) -> None:
        response = await client.post("/keys", json={"scopes": ["admin", "operator"]})

        assert (response.status_code, response.json()["code"]) == (403, "insufficient_scope")

    async def test_a_write_key_makes_no_keys(
        self, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        caller = await make_key(runtime, acme.tenant_id, "write")

        async with client_of(app, caller.key) as client:
            assert (await client.post("/keys", json={})).status_code == 403
            assert (await client.get("/keys")).status_code == 403
            assert (await client.delete(f"/keys/{caller.key_id}")).status_code == 403

    async def test_keys_are_listed_newest_first_page_by_page(
        self, client: AsyncClient, acme: Caller
    ) -> None:
        made = [(await add_key(client))["key_id"] for _ in range(3)]

        first = (await client.get("/keys?limit=2")).json()
        second = (await client.get("/keys", params={"cursor": first["next_cursor"]})).json()

        assert [one["key_id"] for one in first["items"]] == made[:0:-1]
        # The tenant's first key is the oldest.
        assert [one["key_id"] for one in second["items"]] == [made[0], acme.key_id]
        assert second["next_cursor"] is None

    async def test_an_operator_makes_lists_and_revokes_keys_of_any_tenant(
        self, app: FastAPI, operator: AsyncClient, other: Caller
    ) -> None:
        path = f"/tenants/{other.tenant_id}/keys"
        made = (await operator.post(path, json={"scopes": ["read"]})).json()
        assert await status_of(app, made["key"]) == (200, None)
        listed = (await operator.get(path)).json()["items"]
        assert [one["key_id"] for one in listed] == [made["key_id"], other.key_id]

        assert (await operator.delete(f"{path}/{made['key_id']}")).status_code == 200

        assert await status_of(app, made["key"]) == (401, "revoked_key")

    async def test_a_key_of_another_tenant_is_not_found_under_this_one(
        self, operator: AsyncClient, acme: Caller, other: Caller
    ) -> None:
        response = await operator.delete(f"/tenants/{acme.tenant_id}/keys/{other.key_id}")

        assert (response.status_code, response.json()["code"]) == (404, "key_not_found")


class TestRestrictedKeys:
    """What a key of one user or one agent may change about them."""

    @pytest.fixture(autouse=True)
    async def rows(self, client: AsyncClient) -> None:
        for agent, user in (("helper", "ana"), ("rival", "ben")):
            await client.post("/agents", json={"agent_id": agent, "agent_name": agent})
            await client.post("/users", json={"user_id": user, "agent_id": agent})

    async def test_a_users_key_may_not_change_an_agent_or_free_its_user(
        self, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        caller = await make_key(runtime, acme.tenant_id, "write", user_id="ana")
        async with client_of(app, caller.key) as ana:
            renamed = await ana.patch("/users/ana", json={"user_name": "Ana"})
            refused = [
                await ana.patch("/agents/helper", json={"memory_enabled": False}),
                await ana.post("/agents", json={"agent_id": "mine", "agent_name": "Mine"}),
                await ana.patch("/users/ana", json={"status": "enabled"}),
                await ana.patch("/users/ana", json={"agent_id": "rival"}),
            ]

        assert renamed.status_code == 200
        assert [one.status_code for one in refused] == [403] * 4
        assert {one.json()["code"] for one in refused} == {"key_restricted"}

    async def test_an_agents_key_may_change_itself_but_not_switch_itself_on(
        self, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        caller = await make_key(runtime, acme.tenant_id, "write", agent_id="helper")
        async with client_of(app, caller.key) as helper:
            renamed = await helper.patch("/agents/helper", json={"agent_name": "Helper"})
            refused = [
                await helper.patch("/agents/helper", json={"status": "enabled"}),
                await helper.post("/agents", json={"agent_id": "mine", "agent_name": "Mine"}),
            ]
            foreign = await helper.patch("/agents/rival", json={"agent_name": "Mine"})

        assert renamed.status_code == 200
        assert [one.json()["code"] for one in refused] == ["key_restricted"] * 2
        assert foreign.status_code == 404
