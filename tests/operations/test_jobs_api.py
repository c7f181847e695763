"""Jobs through the public routes."""

from collections.abc import AsyncIterator
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient, Response

from app.runtime import Runtime
from tests.support.api import every_page, execute, fields, ok, problem
from tests.support.job_rows import become, owe
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key


async def people(client: AsyncClient, *names: str) -> None:
    for name in names:
        ok(await client.post("/users", json={"user_id": name}), 201)


async def ids(client: AsyncClient, **params: Any) -> list[str]:
    return [row["job_id"] for row in await every_page(client, "/jobs", **params)]


class TestReading:
    async def test_a_job_shows_how_it_stands_and_never_what_it_works_on(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await people(client, "ana")
        job_id = await owe(
            runtime, acme, "k", user_id="ana", agent_id="helper", creator=acme.key_id,
            signals=frozenset({"correction"}), payload={"words": "Blue elephants."},
        )  # fmt: skip

        response = await client.get(f"/jobs/{job_id}")
        listed = await client.get("/jobs")

        job = ok(response)
        assert job["job_id"] == job_id
        assert job["status"] == "pending"
        assert (job["kind"], job["user_id"], job["agent_id"]) == ("extract", "ana", "helper")
        assert job["creator"] == acme.key_id
        assert job["signals"] == ["correction"]
        assert (job["attempts"], job["max_attempts"], job["result"]) == (0, 8, None)
        assert ok(listed)["items"] == [job]
        assert "elephants" not in response.text + listed.text

        result = """'{"deleted": 3}'"""
        await become(dsn, job_id, "succeeded", result=result)
        assert ok(await client.get(f"/jobs/{job_id}"))["result"] == {"deleted": 3}

    async def test_a_list_is_newest_first_and_each_row_is_on_one_page(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        made = [await owe(runtime, acme, f"k{number}") for number in range(5)]

        assert await ids(client, limit=2) == made[::-1]

        await execute(
            dsn, "UPDATE jobs SET create_time = '2026-01-01Z' WHERE tenant_id = $1", acme.tenant_id
        )
        assert await ids(client, limit=2) == made[::-1]

    async def test_a_list_is_narrowed_by_kind_status_and_whom_it_is_about(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await people(client, "ana", "ben")
        ok(await client.post("/sessions", json={"session_id": "s", "user_id": "ana"}), 201)
        one = await owe(runtime, acme, "1", user_id="ana", session_id="s")
        two = await owe(runtime, acme, "2", user_id="ben", agent_id="helper")
        three = await owe(runtime, acme, "3", kind="housekeeping")
        await become(dsn, two, "dead")

        assert await ids(client) == [three, two, one]
        assert await ids(client, kind="extract") == [two, one]
        assert await ids(client, status="dead") == [two]
        assert await ids(client, user_id="ana") == [one]
        assert await ids(client, agent_id="helper") == [two]
        assert await ids(client, session_id="s") == [one]
        assert await ids(client, session_id="s", status="dead") == []

    @for_each(
        ("name", "value"),
        [("status", "lost"), ("kind", ""), ("kind", "x" * 41), ("user_id", "a/b"), ("limit", "101"),
         ("key", "k")],
    )  # fmt: skip
    async def test_what_cannot_be_asked_is_named(
        self, client: AsyncClient, name: str, value: str
    ) -> None:
        response = await client.get("/jobs", params={name: value})

        assert fields(problem(response, 422, "invalid_request")) == [f"query.{name}"]

    async def test_a_cursor_of_nobody_is_refused(self, client: AsyncClient) -> None:
        problem(await client.get("/jobs", params={"cursor": "x"}), 422, "invalid_cursor")

    async def test_counts_are_by_kind_and_status_and_say_what_waits(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        empty = ok(await client.get("/jobs/stats"))
        made = [await owe(runtime, acme, f"k{number}") for number in range(4)]
        await owe(runtime, acme, "house", kind="housekeeping")
        await become(dsn, made[0], "dead")
        await become(dsn, made[1], "succeeded")
        for job_id, minutes in ((made[2], 10), (made[3], 5)):
            await execute(
                dsn,
                "UPDATE jobs SET due_at = now() - make_interval(mins => $2) WHERE job_id = $1",
                job_id,
                minutes,
            )

        stats = ok(await client.get("/jobs/stats"))

        assert (empty["total"], empty["oldest_due"], empty["by_kind"]) == (0, None, {})
        assert stats["total"] == 5
        assert stats["by_status"] == {
            "pending": 3, "running": 0, "succeeded": 1, "dead": 1, "cancelled": 0,
        }  # fmt: skip
        assert stats["by_kind"] == {
            "extract": {"pending": 2, "succeeded": 1, "dead": 1}, "housekeeping": {"pending": 1},
        }  # fmt: skip
        assert (stats["due"], stats["dead"]) == (2, 1)
        assert stats["oldest_due"] == ok(await client.get(f"/jobs/{made[2]}"))["due_at"]


class TestChanging:
    async def test_a_dead_job_is_tried_again_at_once(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        job_id = await owe(runtime, acme, "k", kind="nobody-does-this")
        await become(dsn, job_id, "dead", attempts=8, error_code="'timed_out'")

        job = ok(await client.post(f"/jobs/{job_id}/retry"))

        assert (job["status"], job["attempts"], job["error_code"]) == ("pending", 0, None)
        assert job["finished_at"] is None
        assert ok(await client.get("/jobs/stats"))["due"] == 1

    @pytest.mark.parametrize("status", ["pending", "running", "succeeded"])
    async def test_what_is_not_over_or_went_well_is_not_tried_again(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str, status: str
    ) -> None:
        job_id = await owe(runtime, acme, "k")
        await become(dsn, job_id, status)
        before = ok(await client.get(f"/jobs/{job_id}"))

        problem(await client.post(f"/jobs/{job_id}/retry"), 409, "job_not_retryable")

        assert ok(await client.get(f"/jobs/{job_id}")) == before

    async def test_work_that_is_owed_by_another_job_is_not_owed_twice(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        old = await owe(runtime, acme, "k")
        await become(dsn, old, "dead")
        live = await owe(runtime, acme, "k")
        assert live != old

        problem(await client.post(f"/jobs/{old}/retry"), 409, "job_already_live")

    async def test_a_job_that_is_called_off_is_over(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        waiting = await owe(runtime, acme, "1")
        running = await owe(runtime, acme, "2")
        await become(dsn, running, "running", lease_token="'lease'")

        for job_id in (waiting, running):
            job = ok(await client.post(f"/jobs/{job_id}/cancel"))
            assert (job["status"], job["error_code"]) == ("cancelled", "cancelled")
            assert job["finished_at"]
            problem(await client.post(f"/jobs/{job_id}/cancel"), 409, "job_not_cancellable")

    async def test_a_repeated_request_has_one_effect_and_one_answer(
        self, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        job_id = await owe(runtime, acme, "k", kind="nobody-does-this")

        for act in ("cancel", "retry"):
            headers = {"Idempotency-Key": act}
            first = await client.post(f"/jobs/{job_id}/{act}", headers=headers)
            again = await client.post(f"/jobs/{job_id}/{act}", headers=headers)
            assert ok(first) == ok(again)
            assert again.headers["Idempotency-Replayed"] == "true"


@pytest.fixture
async def bound(
    app: FastAPI, runtime: Runtime, client: AsyncClient, acme: Caller
) -> AsyncIterator[dict[str, AsyncClient]]:
    """Keys of one tenant, restricted to a user, an agent or both, and one that only reads."""
    clients = {}
    for name, scope, restriction in (
        ("ana", "write", {"user_id": "ana"}),
        ("helper", "write", {"agent_id": "helper"}),
        ("both", "write", {"agent_id": "helper", "user_id": "ana"}),
        ("ben", "write", {"user_id": "ben"}),
        ("rival", "write", {"agent_id": "rival"}),
        ("reader", "read", {}),
    ):
        caller = await make_key(runtime, acme.tenant_id, scope, **restriction)
        clients[name] = client_of(app, caller.key)
    await people(client, "ana", "ben")
    yield clients
    for one in clients.values():
        await one.aclose()


async def every_act(client: AsyncClient, job_id: str) -> list[Response]:
    return [
        await client.get(f"/jobs/{job_id}"),
        await client.post(f"/jobs/{job_id}/retry"),
        await client.post(f"/jobs/{job_id}/cancel"),
    ]


class TestOthers:
    async def test_another_tenants_job_reads_like_a_missing_one(
        self, client: AsyncClient, stranger: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        job_id = await owe(runtime, acme, "k")
        before = ok(await client.get(f"/jobs/{job_id}"))

        for foreign, missing in zip(
            await every_act(stranger, job_id), await every_act(stranger, "job_none"), strict=True
        ):
            problem(foreign, 404, "job_not_found")
            problem(missing, 404, "job_not_found")
        assert await ids(stranger) == []
        assert ok(await stranger.get("/jobs/stats"))["total"] == 0
        assert ok(await client.get(f"/jobs/{job_id}")) == before

    async def test_a_restricted_key_sees_the_jobs_of_its_user_and_its_agent(
        self, bound: dict[str, AsyncClient], runtime: Runtime, acme: Caller
    ) -> None:
        hers = await owe(runtime, acme, "1", user_id="ana")
        both = await owe(runtime, acme, "2", user_id="ana", agent_id="helper")
        agents = await owe(runtime, acme, "3", user_id="ben", agent_id="helper")
        nobodys = await owe(runtime, acme, "4", kind="housekeeping")
        seen = {
            "ana": [both, hers], "helper": [agents, both], "both": [both], "ben": [agents],
            "rival": [], "reader": [nobodys, agents, both, hers],
        }  # fmt: skip

        for name, expected in seen.items():
            assert await ids(bound[name]) == expected, name
            assert ok(await bound[name].get("/jobs/stats"))["total"] == len(expected)
            for job_id in (hers, both, agents, nobodys):
                response = await bound[name].get(f"/jobs/{job_id}")
                if job_id in expected:
                    ok(response)
                else:
                    problem(response, 404, "job_not_found")

    async def test_a_filter_never_widens_what_a_key_sees(
        self, bound: dict[str, AsyncClient], runtime: Runtime, acme: Caller
    ) -> None:
        job_id = await owe(runtime, acme, "1", user_id="ana", agent_id="helper")

        assert await ids(bound["ben"], user_id="ana") == []
        assert await ids(bound["rival"], agent_id="helper") == []
        assert await ids(bound["ana"], user_id="ana", agent_id="helper") == [job_id]
        assert await ids(bound["ana"], user_id="ben") == []

    async def test_jobs_of_others_are_not_changed(
        self, bound: dict[str, AsyncClient], client: AsyncClient, runtime: Runtime, acme: Caller,
        dsn: str,
    ) -> None:  # fmt: skip
        job_id = await owe(runtime, acme, "1", user_id="ana", agent_id="helper")
        for status in ("pending", "dead"):
            await become(dsn, job_id, status)
            before = ok(await client.get(f"/jobs/{job_id}"))
            for name in ("ben", "rival"):
                for response in await every_act(bound[name], job_id):
                    problem(response, 404, "job_not_found")
            assert ok(await client.get(f"/jobs/{job_id}")) == before

    async def test_a_key_may_change_the_jobs_it_sees_when_it_may_write(
        self, bound: dict[str, AsyncClient], runtime: Runtime, acme: Caller
    ) -> None:
        job_id = await owe(runtime, acme, "1", user_id="ana", agent_id="helper", kind="nobodys")

        for act in ("cancel", "retry"):
            response = await bound["reader"].post(f"/jobs/{job_id}/{act}")
            problem(response, 403, "insufficient_scope")
            ok(await bound["both"].post(f"/jobs/{job_id}/{act}"))
