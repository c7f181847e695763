"""The routes of the store: who sees what, limits, repetitions, time to live."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.memory.store.json_values import DIGITS
from app.memory.store.schemas import (
    KEY_LENGTH,
    LABEL_LENGTH,
    NAMESPACE_BYTES,
    NAMESPACE_DEPTH,
    OPERATIONS,
    PATHS,
    ROWS,
    VALUE_BYTES,
    VALUE_DEPTH,
)
from app.memory.store.service import ANSWER_BYTES, LOOKED_AT, TEXTS
from app.runtime import Runtime
from tests.support.api import execute, fields, ok, problem
from tests.support.rows import for_each
from tests.support.service import client_of, service
from tests.support.store import batch, delete, get, namespaces, put, search, values
from tests.support.tenants import Caller, make_key


async def refused(client: AsyncClient, *operations: Any) -> list[str]:
    """The places that a request is refused for."""
    response = await client.post("/store/batch", json={"operations": operations})
    return fields(problem(response, 422, "invalid_request"))


@pytest.fixture
async def ana(app: FastAPI, client: AsyncClient) -> AsyncIterator[AsyncClient]:
    """The application, acting for ana."""
    async with client_of(app, client.headers["Authorization"].split()[1]) as opened:
        opened.headers["KeMem-User"] = "ana"
        yield opened


@pytest.fixture
async def ben(app: FastAPI, runtime: Runtime, acme: Caller) -> AsyncIterator[AsyncClient]:
    """A key of another user."""
    key = await make_key(runtime, acme.tenant_id, "write", user_id="ben")
    async with client_of(app, key.key) as opened:
        yield opened


class TestWhoSeesWhat:
    async def test_users_have_stores_of_their_own(
        self, client: AsyncClient, ana: AsyncClient, ben: AsyncClient
    ) -> None:
        await batch(client, put("k", {"whose": "application"}))
        await batch(ana, put("k", {"whose": "ana"}))
        await batch(ben, put("k", {"whose": "ben"}))

        for one, name in ((client, "application"), (ana, "ana"), (ben, "ben")):
            assert await values(one) == {"k": {"whose": name}}
            assert (await batch(one, get()))[0]["item"]["value"] == {"whose": name}
            assert (await batch(one, namespaces()))[0]["namespaces"] == [["t"]]
        await batch(ben, delete())
        assert [len(await values(one)) for one in (client, ana, ben)] == [1, 1, 0]

    async def test_user_sees_and_changes_what_the_application_has_of_them(
        self, client: AsyncClient, ana: AsyncClient, ben: AsyncClient
    ) -> None:
        await batch(
            client,
            put("likes", {"n": 1}, "users", "ana", user_id="ana"),
            put("gone", {"n": 1}, "users", "ana", user_id="ana"),
            put("others", {"n": 1}, "users", "ana"),
        )

        assert (await values(ana, "users")).keys() == {"likes", "gone"}
        assert await values(ben, "users") == {}
        await batch(ana, put("likes", {"n": 2}, "users", "ana"), delete("gone", "users", "ana"))
        await batch(ben, put("likes", {"n": 3}, "users", "ana"), delete("others", "users", "ana"))

        assert await values(client, "users") == {"likes": {"n": 2}, "others": {"n": 1}}
        assert await values(ana, "users") == {"likes": {"n": 2}}
        assert await values(ben, "users") == {"likes": {"n": 3}}

    async def test_users_own_item_hides_the_one_that_the_application_has_of_them(
        self, client: AsyncClient, ana: AsyncClient
    ) -> None:
        await batch(ana, put("k", {"n": 1}), put("brief", {"n": 1}))
        await batch(client, put("k", {"n": 2}, user_id="ana"), put("brief", user_id="ana"))
        await batch(ana, put("k", {"n": 3}), put("brief", {"n": 4}, ttl_minutes=0))

        found, none, shown = await batch(ana, get(), search(filter={"n": 2}), search())
        assert found["item"]["value"] == {"n": 3}
        assert none["items"] == []
        # What has expired hides nothing, and is not put again.
        assert [item["value"] for item in shown["items"]] == [{"n": 3}, {"n": 1}]
        assert await values(client) == {"k": {"n": 2}, "brief": {"n": 1}}
        await batch(ana, put("brief", {"n": 5}))
        assert await values(client) == {"k": {"n": 2}, "brief": {"n": 5}}
        await batch(ana, delete(), delete("brief"))
        assert await values(ana) == await values(client) == {}

    async def test_nobody_puts_for_another_user(self, ana: AsyncClient, ben: AsyncClient) -> None:
        for one, other in ((ana, "ben"), (ben, "ana")):
            body = {"operations": [put(user_id=other)]}
            problem(await one.post("/store/batch", json=body), 404, "user_not_found")

    async def test_agents_have_stores_of_their_own(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        ok(await client.post("/agents", json={"agent_id": "helper", "agent_name": "H"}), 201)
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="helper")
        await batch(client, put("k", {"whose": "application"}))
        async with client_of(app, key.key) as helper:
            await batch(helper, put("k", {"whose": "helper"}))

            assert await values(helper) == {"k": {"whose": "helper"}}
            assert await values(client) == {"k": {"whose": "application"}}
            ok(await client.delete("/agents/helper", params={"confirm": True}))
        assert await values(client) == {"k": {"whose": "application"}}

    async def test_tenants_do_not_see_each_other(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await batch(client, put())

        assert await values(stranger) == {}
        await batch(stranger, put("k", {"n": 2}), delete("other"))
        assert await values(client) == {"k": {"n": 1}}

    async def test_key_that_reads_changes_nothing(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        await batch(client, put())
        key = await make_key(runtime, acme.tenant_id, "read")
        async with client_of(app, key.key) as reader:
            assert await values(reader) == {"k": {"n": 1}}
            for operation in (put("k", {"n": 2}), delete()):
                response = await reader.post("/store/batch", json={"operations": [operation]})
                body = problem(response, 403, "insufficient_scope")
                assert body["required_scope"] == "write"
        assert await values(client) == {"k": {"n": 1}}


class TestOwners:
    async def test_erasure_takes_what_is_the_users(
        self, client: AsyncClient, ana: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        whole = {"index": ["$"]}
        await batch(
            client,
            put("likes", {"t": "green tea"}, "users", "ana", user_id="ana", **whole),
            put("kept", {"t": "green tea"}, "docs", **whole),
        )
        await batch(ana, put("own", {"t": "green tea"}, **whole))

        counted = ok(await client.delete("/users/ana", params={"dry_run": True}))["deleted"]
        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))["deleted"]

        assert (receipt["store_items"], receipt["store_texts"]) == (2, 2)
        assert counted == receipt
        assert await values(client) == {"kept": {"t": "green tea"}}
        left = await execute(
            dsn, "SELECT content FROM store_texts WHERE tenant_id = $1", acme.tenant_id
        )
        assert len(left) == 1

    async def test_export_takes_what_is_the_users(
        self, client: AsyncClient, ana: AsyncClient
    ) -> None:
        await batch(client, put("likes", user_id="ana"), put("kept"))
        await batch(ana, put("own"))

        lines = (await client.get("/export", params={"user_id": "ana"})).text.splitlines()

        rows = [json.loads(line) for line in lines]
        keys = {one["row"]["key"] for one in rows if one["type"] == "store_item"}
        assert keys == {"likes", "own"}

    async def test_item_keeps_its_owner_when_a_put_names_none(self, client: AsyncClient) -> None:
        await batch(client, put(user_id="ana"))
        await batch(client, put("k", {"n": 2}))

        assert (await batch(client, get()))[0]["item"]["user_id"] == "ana"

    async def test_disabled_user_is_not_written_for(
        self, client: AsyncClient, ana: AsyncClient
    ) -> None:
        await batch(ana, put())
        ok(await client.patch("/users/ana", json={"status": "disabled"}))

        for one in (ana, client):
            body = {"operations": [put("k", {"n": 2}, user_id="ana")]}
            problem(await one.post("/store/batch", json=body), 409, "disabled")
        assert await values(ana) == {"k": {"n": 1}}

    async def test_user_is_not_made_where_nobody_is(self, dsn: str, acme: Caller) -> None:
        async with service(dsn, auto_create=False) as app, client_of(app, acme.key) as client:
            response = await client.post("/store/batch", json={"operations": [put(user_id="eve")]})
            problem(response, 404, "user_not_found")
            await batch(client, put())

    async def test_nothing_is_stored_while_memory_is_off(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await batch(client, put())
        async with service(dsn, enabled=False) as app, client_of(app, acme.key) as off:
            response = await off.post("/store/batch", json={"operations": [put()]})
            problem(response, 503, "memory_disabled")
            assert await values(off) == {"k": {"n": 1}}


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = [value]
    return {"v": value}


def sized(total: int) -> dict[str, str]:
    """A value of so many bytes of JSON, in Chinese."""
    free = total - len('{"v":""}')
    return {"v": "枫" * (free // 3) + "x" * (free % 3)}


def weighing(total: int, key: str) -> dict[str, Any]:
    """A put of an item that has so many bytes in an answer: value, namespace and key."""
    return put(key, {"v": "x" * (total - len('{"v": ""}') - len("t") - len(key))})


async def too_large(client: AsyncClient, *operations: Any) -> int:
    """The limit that an answer exceeds."""
    response = await client.post(
        "/store/batch", json={"operations": operations}, headers={"Idempotency-Key": "large"}
    )
    return problem(response, 422, "store_answer_too_large")["limit"]


AT_LIMITS = {
    "labels": lambda n: put("k", None, *["a"] * (NAMESPACE_DEPTH + n)),
    "length of a label": lambda n: put("k", None, "x" * (LABEL_LENGTH + n)),
    "bytes of a namespace": lambda n: put(
        "k", None, *["枫" * 80] * 4, "x" * (NAMESPACE_BYTES - 4 * 241 + n)
    ),
    "length of a key": lambda n: put("枫" * (KEY_LENGTH + n)),
    "bytes of a value": lambda n: put("k", sized(VALUE_BYTES + n)),
    "depth of a value": lambda n: put("k", nested(VALUE_DEPTH - 1 + n)),
    "digits of an integer": lambda n: put("k", {"v": 1 - 10 ** (DIGITS + n)}),
    "digits in a filter": lambda n: search(filter={"v": 10 ** (DIGITS + n) - 1}),
    "paths": lambda n: put(index=["a"] * (PATHS + n)),
    "rows of a search": lambda n: search(limit=ROWS + n),
    "namespaces of a list": lambda n: namespaces(limit=ROWS + n),
    "time to live": lambda n: put(ttl_minutes=100 * 366 * 24 * 60 + n),
    "length of a query": lambda n: search(query="x" * (100_000 + n)),
    "conditions": lambda n: search(filter={f"f{i}": i for i in range(50 + n)}),
}


class TestLimits:
    @pytest.mark.parametrize("what", AT_LIMITS)
    async def test_at_below_and_above(self, client: AsyncClient, what: str) -> None:
        for number in (-1, 0):
            await batch(client, AT_LIMITS[what](number))

        assert await refused(client, AT_LIMITS[what](1))

    async def test_operations(self, client: AsyncClient) -> None:
        found = await batch(client, *[get()] * OPERATIONS)

        assert len(found) == OPERATIONS
        assert await refused(client, *[get()] * (OPERATIONS + 1)) == ["body.operations"]

    async def test_texts_of_an_item(self, client: AsyncClient) -> None:
        value = {"v": [str(n) for n in range(TEXTS + 1)]}
        await batch(client, put("k", {"v": value["v"][1:]}, index=["v[*]"]))

        operations = [get(), put("k", value, index=["v[*]"])]
        response = await client.post("/store/batch", json={"operations": operations})

        body = problem(response, 422, "too_many_texts")
        assert fields(body) == ["body.operations.1.index"]
        assert len((await values(client))["k"]["v"]) == TEXTS

    async def test_values_that_paths_lead_over(self, client: AsyncClient) -> None:
        def of_ones(key: str, count: int) -> Any:
            # The whole, the list, and its elements; every path is written in another way.
            return put(key, {"v": [1] * (count - 2)}, index=["v[*]", "v.[*]"] * 25)

        await batch(client, of_ones("k", LOOKED_AT - 1))
        await batch(client, of_ones("k", LOOKED_AT))
        await batch(client, of_ones("a", LOOKED_AT // 2), of_ones("b", LOOKED_AT // 2))

        for operations in (
            [get(), of_ones("k", LOOKED_AT + 1)],
            [of_ones("a", LOOKED_AT // 2), of_ones("b", LOOKED_AT // 2 + 1)],
        ):
            response = await client.post("/store/batch", json={"operations": operations})
            body = problem(response, 422, "too_many_texts")
            assert (body["limit"], fields(body)) == (LOOKED_AT, ["body.operations.1.index"])

    async def test_bytes_of_an_answer(self, client: AsyncClient) -> None:
        fit = ANSWER_BYTES // VALUE_BYTES - 1
        for number in range(fit):
            await batch(client, weighing(VALUE_BYTES, f"k{number}"))
        assert len(await values(client)) == fit
        rest = ANSWER_BYTES - fit * VALUE_BYTES
        await batch(client, weighing(rest, "last"))
        assert len(await values(client)) == fit + 1

        await batch(client, weighing(rest + 1, "last"))
        assert await too_large(client, search(limit=100)) == ANSWER_BYTES
        assert len((await batch(client, search(limit=fit)))[0]["items"]) == fit

    async def test_item_counts_as_often_as_it_is_shown(self, client: AsyncClient) -> None:
        fit = ANSWER_BYTES // VALUE_BYTES
        await batch(client, weighing(VALUE_BYTES, "k"), put("small", None, "other"))
        half = [get()] * (fit // 2)

        for reads in ([get()] * (fit - 1), [get()] * fit, [*half, *[search("t")] * len(half)]):
            found = await batch(client, *reads)
            assert len(found) == len([*filter(None, found)]) == len(reads)
        for reads in (
            [*[get()] * fit, get("small", "other")],
            [*half, *[search("t")] * len(half), search("other")],
        ):
            assert await too_large(client, put("new"), *reads) == ANSWER_BYTES
        assert (await batch(client, get("new")))[0]["item"] is None

    @pytest.mark.parametrize("read", [search, namespaces])
    async def test_rows_of_an_answer(self, client: AsyncClient, read: Any) -> None:
        many = 1000
        await batch(client, *[put("k", None, "a", str(number)) for number in range(many)])
        fit = ROWS // many

        for count in (fit - 1, fit):
            found = await batch(client, *[read(limit=many)] * count, read(limit=0))
            sizes = [len(one["items"] or one["namespaces"] or ()) for one in found]
            assert sizes == [many] * count + [0]
        assert await too_large(client, *[read(limit=many)] * fit, read(limit=1)) == ROWS

    @pytest.mark.parametrize(("count", "names"), [(1000, 14), (500, 30)])
    async def test_searches_with_many_values_are_answered(
        self, client: AsyncClient, count: int, names: int
    ) -> None:
        wanted = {f"f{number}": number for number in range(names)}
        await batch(client, put("k", wanted), put("other", {**wanted, "f0": 1}))

        found = await batch(client, *[search("t", filter=wanted)] * count)

        assert {tuple(item["key"] for item in one["items"]) for one in found} == {("k",)}

    async def test_lists_with_many_values_are_answered(self, client: AsyncClient) -> None:
        labels = [f"l{number}" for number in range(NAMESPACE_DEPTH)]
        await batch(client, put("k", None, *labels), put("k", None, "other"))

        found = await batch(client, *[namespaces(*[("suffix", labels)] * 10)] * 200)

        assert [one["namespaces"] for one in found] == [[labels]] * 200

    @for_each(
        "operation",
        [
            put("a\x00b"), put("k", {"v": "a\x00b"}), put("k", {"a\x00b": 1}),
            put("k", None, "a.b"), put("k", None, ""),
            put("k", None, "a\x00b"), {**put(), "namespace": []}, {**put(), "value": [1]},
            put(ttl_minutes=-1), search(filter={"a": {"$in": [1]}}), search(filter={"a": "\x00"}),
            search(offset=-1), search(limit=-1), namespaces(max_depth=0),
            {"op": "drop", "namespace": []}, put(more=1), put(user_id="枫/叶"),
        ]
    )  # fmt: skip
    async def test_what_cannot_be_stored_is_refused(
        self, client: AsyncClient, operation: Any
    ) -> None:
        assert await refused(client, operation)


@for_each("number", [1e20, -1e22, 1.7976931348623157e308, 5e-324, 0.1, 2**63, -(10**40), 1e-300])
async def test_what_was_read_can_be_put_back(client: AsyncClient, number: float) -> None:
    await batch(client, put("k", {"v": number}))
    first = await values(client)
    await batch(client, put("k", first["k"]))

    assert await values(client) == first
    # JSON has one kind of number: a whole one comes back as an integer.
    assert type(number)(first["k"]["v"]) == number
    assert len((await batch(client, search(filter={"v": number})))[0]["items"]) == 1


class TestTimeToLive:
    async def expires(self, client: AsyncClient) -> str:
        return (await batch(client, get(refresh_ttl=False)))[0]["item"]["expires_at"]

    @pytest.mark.parametrize("read", [get(), search()], ids=["get", "search"])
    async def test_read_puts_the_end_off_unless_it_says_not_to(
        self, client: AsyncClient, read: Any
    ) -> None:
        await batch(client, put(ttl_minutes=10))
        first = (await batch(client, get(refresh_ttl=False)))[0]["item"]

        await batch(client, {**read, "refresh_ttl": False})
        assert await self.expires(client) == first["expires_at"]
        await batch(client, read)

        then = (await batch(client, get(refresh_ttl=False)))[0]["item"]
        assert then["expires_at"] > first["expires_at"]
        assert then["update_time"] == first["update_time"]

    async def test_item_that_expired_is_made_anew(self, client: AsyncClient) -> None:
        await batch(client, put(ttl_minutes=10))
        made = (await batch(client, get()))[0]["item"]["create_time"]
        await batch(client, put(ttl_minutes=0))
        assert (await batch(client, get()))[0]["item"] is None

        await batch(client, put("k", {"n": 2}))

        item = (await batch(client, get()))[0]["item"]
        assert item["expires_at"] is None
        assert item["create_time"] > made

    async def test_sweep_deletes_what_the_caller_sees(
        self, client: AsyncClient, ana: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        for one in (client, ana):
            await batch(one, put(ttl_minutes=0), put("kept", ttl_minutes=1))

        assert ok(await ana.post("/store/sweep")) == {"deleted": 1}
        assert ok(await client.post("/store/sweep")) == {"deleted": 1}

        left = "SELECT key FROM store_items WHERE tenant_id = $1"
        rows = await execute(dsn, left, acme.tenant_id)
        assert [row["key"] for row in rows] == ["kept", "kept"]


class TestRepetitions:
    async def test_repeated_batch_has_one_effect_and_one_answer(self, client: AsyncClient) -> None:
        again = {"Idempotency-Key": "one"}
        await batch(client, put("old"))
        body = [put("new"), search()]
        first = await batch(client, *body, **again)
        await batch(client, delete("new"), delete("old"))

        assert await batch(client, *body, **again) == first
        assert [item["key"] for item in first[1]["items"]] == ["old"]
        assert await values(client) == {}
        response = await client.post("/store/batch", json={"operations": [put()]}, headers=again)
        problem(response, 422, "idempotency_key_reused")

    async def test_refused_batch_changes_nothing(self, client: AsyncClient) -> None:
        await batch(client, put())

        await refused(client, delete(), put("new"), put("bad", None, ""))
        body = {"operations": [delete(), put("new"), put("bad", {"v": ["x"] * 2}, index=["v[*]"])]}
        body["operations"][2]["value"] = {"v": [str(n) for n in range(TEXTS + 1)]}
        problem(await client.post("/store/batch", json=body), 422, "too_many_texts")

        assert await values(client) == {"k": {"n": 1}}
