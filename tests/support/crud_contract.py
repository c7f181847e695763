"""What agents, users, projects and sessions owe their callers alike, as tests to inherit."""

import json
from typing import Any, ClassVar

from httpx import AsyncClient

from tests.support.api import every_page, execute, fields, ok, problem
from tests.support.tenants import Caller


class CrudContract:
    """Create, get, list and change one kind of resource; a subclass says what it looks like."""

    path: ClassVar[str]
    id_field: ClassVar[str]
    prefix: ClassVar[str]
    body: ClassVar[dict[str, Any]]
    """Enough to create one."""
    full: ClassVar[dict[str, Any]]
    """Every field that can be changed, each with a value; texts in two scripts."""
    nullable: ClassVar[set[str]]
    """Those that null empties; elsewhere null leaves what is there."""

    async def make(self, client: AsyncClient, thing_id: str, **fields: Any) -> dict[str, Any]:
        body = self.body | {self.id_field: thing_id} | fields
        return ok(await client.post(self.path, json=body), 201)

    async def test_an_id_is_the_callers_own_or_generated(self, client: AsyncClient) -> None:
        own = await self.make(client, "Mine.1@x")
        generated = ok(await client.post(self.path, json=self.body), 201)

        assert own[self.id_field] == "Mine.1@x"
        assert generated[self.id_field].startswith(self.prefix)
        assert ok(await client.get(f"{self.path}/{own[self.id_field]}")) == own
        assert ok(await client.get(f"{self.path}/{generated[self.id_field]}")) == generated

    async def test_every_field_comes_back_as_it_was_given(self, client: AsyncClient) -> None:
        made = await self.make(client, "x1", **self.full)

        assert self.full.items() <= made.items()
        assert made["version"] == 1
        assert made["create_time"].endswith("Z")
        assert ok(await client.get(f"{self.path}/x1")) == made

    async def test_an_id_is_taken_once_in_a_tenant(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await self.make(client, "x1")

        again = await client.post(self.path, json=self.body | {self.id_field: "x1"})

        assert problem(again, 409, "id_taken")[self.id_field] == "x1"
        await self.make(stranger, "x1")

    async def test_a_foreign_thing_reads_like_a_missing_one(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await self.make(client, "x1")

        for foreign, missing in (
            (await stranger.get(f"{self.path}/x1"), await stranger.get(f"{self.path}/x2")),
            (
                await stranger.patch(f"{self.path}/x1", json=self.full),
                await stranger.patch(f"{self.path}/x2", json=self.full),
            ),
        ):
            assert foreign.status_code == missing.status_code == 404
            texts = []
            for answer, thing_id in ((foreign, "x1"), (missing, "x2")):
                document = answer.json()
                del document["request_id"]
                texts.append(json.dumps(document).replace(thing_id, "ID"))
            assert texts[0] == texts[1]
        assert ok(await stranger.get(self.path))["items"] == []

    async def test_an_unknown_field_is_refused_and_nothing_is_made(
        self, client: AsyncClient
    ) -> None:
        body = self.body | {self.id_field: "x1", "colour": "red"}

        response = await client.post(self.path, json=body)

        assert fields(problem(response, 422, "invalid_request")) == ["body.colour"]
        assert (await client.get(f"{self.path}/x1")).status_code == 404

    async def test_a_list_is_newest_first(self, client: AsyncClient) -> None:
        for number in range(3):
            await self.make(client, f"x{number}")

        rows = await every_page(client, self.path)

        assert self.ids(rows) == ["x2", "x1", "x0"]

    async def test_a_row_made_while_paging_moves_no_other(self, client: AsyncClient) -> None:
        for number in range(5):
            await self.make(client, f"x{number}")
        first = ok(await client.get(self.path, params={"limit": 2}))

        await self.make(client, "late")

        params = {"limit": 2, "cursor": first["next_cursor"]}
        second = ok(await client.get(self.path, params=params))
        params["cursor"] = second["next_cursor"]
        third = ok(await client.get(self.path, params=params))
        seen = self.ids(first["items"] + second["items"] + third["items"])
        assert seen == ["x4", "x3", "x2", "x1", "x0"]
        assert third["next_cursor"] is None

    async def test_rows_of_one_moment_are_each_listed_once(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        made = {f"x{number}" for number in range(7)}
        for thing_id in sorted(made):
            await self.make(client, thing_id)
        await execute(
            dsn,
            f"UPDATE {self.path.strip('/')} SET create_time = '2026-01-01Z' WHERE tenant_id = $1",
            acme.tenant_id,
        )

        seen = self.ids(await every_page(client, self.path, limit=2))

        assert len(seen) == 7
        assert set(seen) == made

    async def test_a_cursor_of_nobody_is_refused(self, client: AsyncClient) -> None:
        response = await client.get(self.path, params={"cursor": "WzEsMl0"})

        problem(response, 422, "invalid_cursor")

    async def test_a_page_has_one_to_a_hundred_rows(self, client: AsyncClient) -> None:
        for limit in (0, 101):
            response = await client.get(self.path, params={"limit": limit})
            assert fields(problem(response, 422, "invalid_request")) == ["query.limit"]
        assert (await client.get(self.path, params={"limit": 100})).status_code == 200

    async def test_a_change_leaves_alone_what_it_leaves_out(self, client: AsyncClient) -> None:
        made = await self.make(client, "x1")

        for number, (field, value) in enumerate(self.full.items(), start=2):
            changed = ok(await client.patch(f"{self.path}/x1", json={field: value}))
            assert changed[field] == value
            assert changed["version"] == number
            made |= {field: value, "version": number, "update_time": changed["update_time"]}
            assert changed == made

    async def test_null_empties_what_may_be_empty_and_leaves_the_rest(
        self, client: AsyncClient
    ) -> None:
        made = await self.make(client, "x1", **self.full)

        nulls = dict.fromkeys(self.full)
        changed = ok(await client.patch(f"{self.path}/x1", json=nulls))

        for field in self.full:
            assert changed[field] == (None if field in self.nullable else made[field]), field

    async def test_a_change_of_nothing_raises_no_version(self, client: AsyncClient) -> None:
        made = await self.make(client, "x1", **self.full)

        for body in ({}, self.full):
            assert ok(await client.patch(f"{self.path}/x1", json=body)) == made

    async def test_a_change_by_a_stale_version_is_refused(self, client: AsyncClient) -> None:
        await self.make(client, "x1")
        field, value = next(iter(self.full.items()))
        current = ok(
            await client.patch(f"{self.path}/x1", json={field: value}, headers={"If-Match": "1"})
        )

        for stale in ("1", '"1"', 'W/"1"', "3"):
            response = await client.patch(
                f"{self.path}/x1", json={field: "other"}, headers={"If-Match": stale}
            )
            assert problem(response, 409, "version_conflict")["current_version"] == 2
        assert ok(await client.get(f"{self.path}/x1")) == current
        response = await client.patch(
            f"{self.path}/x1", json={field: "other"}, headers={"If-Match": '"2"'}
        )
        assert ok(response)["version"] == 3

    async def test_a_version_that_is_no_number_is_refused(self, client: AsyncClient) -> None:
        await self.make(client, "x1")

        response = await client.patch(f"{self.path}/x1", json={}, headers={"If-Match": '"abc"'})

        assert fields(problem(response, 422, "invalid_request")) == ["header.If-Match"]

    async def test_a_repeated_request_has_one_effect_and_one_answer(
        self, client: AsyncClient
    ) -> None:
        headers = {"Idempotency-Key": "one"}
        first = await client.post(self.path, json=self.body, headers=headers)

        again = await client.post(self.path, json=self.body, headers=headers)
        other = await client.post(
            self.path, json=self.body | {self.id_field: "x9"}, headers=headers
        )

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == first.json()
        assert again.headers["Idempotency-Replayed"] == "true"
        problem(other, 422, "idempotency_key_reused")
        assert len(await every_page(client, self.path)) == 1

    def ids(self, rows: list[dict[str, Any]]) -> list[str]:
        return [row[self.id_field] for row in rows]
