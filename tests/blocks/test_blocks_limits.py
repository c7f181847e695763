"""The limit holds on every way to a block: just below, at, and just above it."""

import asyncpg
import pytest
from httpx import AsyncClient

from tests.support.api import execute, fields, ok, problem
from tests.support.tenants import Caller

ANYWAY = {"If-Match": "*"}
LIMIT = 10


async def make(client: AsyncClient, value: str = "", limit: int = LIMIT) -> str:
    body = {"label": "notes", "value": value, "limit": limit}
    return ok(await client.post("/blocks", json=body), 201)["block_id"]


async def shown(client: AsyncClient, block_id: str) -> dict:
    return ok(await client.get(f"/blocks/{block_id}"))


# Each way begins with `value` and adds a text of so many characters.
WAYS = {
    "append": ("12345", 6, lambda text: ("POST", "/append", {"text": text})),
    "insert at the beginning": (
        "12345", 6, lambda text: ("POST", "/insert", {"text": text, "line": 0})
    ),
    "insert at the end": ("12345", 6, lambda text: ("POST", "/insert", {"text": text})),
    "replace": ("12345", 4, lambda text: ("POST", "/replace", {"old": "3", "new": text})),
    "rewrite": ("12345", 0, lambda text: ("POST", "/rewrite", {"value": text})),
    "patch": ("12345", 0, lambda text: ("PATCH", "", {"value": text})),
}  # fmt: skip


class TestEveryWay:
    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("letter", ["x", "中", "🤖"])
    async def test_up_to_the_limit_and_no_further(
        self, client: AsyncClient, way: str, letter: str
    ) -> None:
        value, taken, request = WAYS[way]
        for length in (LIMIT - 1, LIMIT):
            block_id = await make(client, value)
            method, path, body = request(letter * (length - taken))
            response = await client.request(
                method, f"/blocks/{block_id}{path}", json=body, headers=ANYWAY
            )
            assert ok(response)["chars_current"] == length

        block_id = await make(client, value)
        method, path, body = request(letter * (LIMIT + 1 - taken))
        response = await client.request(
            method, f"/blocks/{block_id}{path}", json=body, headers=ANYWAY
        )

        refused = problem(response, 422, "block_limit_exceeded")
        assert (refused["chars_current"], refused["chars_wanted"]) == (5, LIMIT + 1)
        assert (refused["limit"], refused["label"]) == (LIMIT, "notes")
        kept = await shown(client, block_id)
        assert (kept["value"], kept["version"], kept["limit"]) == (value, 1, LIMIT)

    @pytest.mark.parametrize(("length", "status"), [(9, 201), (10, 201), (11, 422)])
    async def test_a_new_block(self, client: AsyncClient, length: int, status: int) -> None:
        body = {"block_id": "b1", "label": "notes", "value": "x" * length, "limit": LIMIT}

        response = await client.post("/blocks", json=body)

        assert response.status_code == status
        if status == 422:
            assert problem(response, 422, "block_limit_exceeded")["chars_current"] == 0
            problem(await client.get("/blocks/b1"), 404, "block_not_found")

    @pytest.mark.parametrize(("length", "status"), [(9, 201), (10, 201), (11, 422)])
    async def test_a_block_made_with_its_agent(
        self, client: AsyncClient, length: int, status: int
    ) -> None:
        made = {"label": "notes", "value": "x" * length, "limit": LIMIT}
        body = {"agent_id": "a1", "agent_name": "A", "memory_blocks": [made]}

        response = await client.post("/agents", json=body)

        assert response.status_code == status
        if status == 422:
            problem(response, 422, "block_limit_exceeded")
            problem(await client.get("/agents/a1"), 404, "agent_not_found")

    @pytest.mark.parametrize(("limit", "status"), [(6, 200), (5, 200), (4, 422)])
    async def test_lower_limit_than_the_text_is_refused(
        self, client: AsyncClient, limit: int, status: int
    ) -> None:
        block_id = await make(client, "12345")

        response = await client.patch(f"/blocks/{block_id}", json={"limit": limit}, headers=ANYWAY)

        assert response.status_code == status
        assert (await shown(client, block_id))["limit"] == (limit if status == 200 else LIMIT)

    async def test_text_and_limit_may_change_together(self, client: AsyncClient) -> None:
        block_id = await make(client, "x" * LIMIT)

        for changes in ({"limit": 20, "value": "x" * 20}, {"limit": 3, "value": "xxx"}):
            response = await client.patch(f"/blocks/{block_id}", json=changes, headers=ANYWAY)
            assert changes.items() <= ok(response).items()

    @pytest.mark.parametrize(("limit", "fits"), [(11, True), (10, True), (9, False)])
    async def test_undo_to_a_text_over_the_present_limit_is_refused(
        self, client: AsyncClient, limit: int, fits: bool
    ) -> None:
        block_id = await make(client, "x" * 10, limit=20)
        ok(await client.patch(f"/blocks/{block_id}", json={"value": "y"}, headers=ANYWAY))
        ok(await client.patch(f"/blocks/{block_id}", json={"limit": limit}, headers=ANYWAY))

        response = await client.post(f"/blocks/{block_id}/undo", headers=ANYWAY)

        if fits:
            assert (ok(response)["value"], ok(response)["limit"]) == ("x" * 10, limit)
        else:
            problem(response, 422, "block_limit_exceeded")
            assert (await shown(client, block_id))["value"] == "y"

    @pytest.mark.parametrize(("limit", "fits"), [(11, True), (10, True), (9, False)])
    async def test_redo_to_a_text_over_the_present_limit_is_refused(
        self, client: AsyncClient, limit: int, fits: bool
    ) -> None:
        block_id = await make(client, "y", limit=20)
        ok(await client.patch(f"/blocks/{block_id}", json={"value": "x" * 10}, headers=ANYWAY))
        ok(await client.post(f"/blocks/{block_id}/undo", headers=ANYWAY))
        ok(await client.patch(f"/blocks/{block_id}", json={"limit": limit}, headers=ANYWAY))

        response = await client.post(f"/blocks/{block_id}/redo", headers=ANYWAY)

        if fits:
            assert ok(response)["value"] == "x" * 10
        else:
            problem(response, 422, "block_limit_exceeded")


class TestLimit:
    @pytest.mark.parametrize("limit", [1, 2, 99_999, 100_000])
    async def test_limit_may_be_one_to_a_hundred_thousand(
        self, client: AsyncClient, limit: int
    ) -> None:
        block_id = await make(client, "x" * limit, limit)

        assert (await shown(client, block_id))["chars_current"] == limit

    @pytest.mark.parametrize("limit", [0, -1, 100_001, None, "many"])
    async def test_and_nothing_else(self, client: AsyncClient, limit) -> None:
        response = await client.post("/blocks", json={"label": "notes", "limit": limit})

        assert fields(problem(response, 422, "invalid_request")) == ["body.limit"]

    @pytest.mark.parametrize("length", [4999, 5000, 5001])
    async def test_limit_is_five_thousand_by_default(
        self, client: AsyncClient, length: int
    ) -> None:
        response = await client.post("/blocks", json={"label": "notes", "value": "x" * length})

        assert response.status_code == (422 if length > 5000 else 201)

    async def test_change_without_a_limit_keeps_the_limit(self, client: AsyncClient) -> None:
        """Elsewhere such a change set it back to the default, or was held against that."""
        block_id = await make(client, "", limit=6000)

        for changes in ({"value": "x" * 5999}, {"description": "d"}, {"limit": None}, {}):
            response = await client.patch(f"/blocks/{block_id}", json=changes, headers=ANYWAY)
            assert ok(response)["limit"] == 6000
        ok(await client.post(f"/blocks/{block_id}/replace", json={"old": "x" * 5999, "new": "y"}))
        assert (await shown(client, block_id))["limit"] == 6000

    async def test_constraint_of_the_table_holds_the_limit(
        self, client: AsyncClient, dsn: str, acme: Caller
    ) -> None:
        await make(client, "12345")

        async def write(length: int) -> None:
            statement = "UPDATE blocks SET value = repeat('中', $2) WHERE tenant_id = $1"
            await execute(dsn, statement, acme.tenant_id, length)

        await write(LIMIT)
        with pytest.raises(asyncpg.CheckViolationError, match="blocks_ck_value_limit"):
            await write(LIMIT + 1)
