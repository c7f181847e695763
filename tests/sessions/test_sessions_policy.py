"""The window's policy: resolved key by key, its bounds, and what agents and sessions keep of it."""

from dataclasses import fields
from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.sessions.policy import WindowPolicy
from app.runtime import Runtime
from tests.support.api import append, ok, problem
from tests.support.api import fields as places
from tests.support.rows import for_each

BOUNDS: dict[str, tuple[float, float, float]] = {
    # the least, the most, and a step
    "budget_tokens": (100, 10_000_000, 1),
    "keep_messages": (1, 10_000, 1),
    "reserved_tokens": (0, 10_000_000, 1),
    "summary_words": (10, 2000, 1),
    "approval_hours": (1, 8760, 1),
    "checkpoint_every": (0, 10_000, 1),
    "evict_fraction": (0.01, 1, 0.01),
    "warn": (0.01, 1, 0.01),
    "flush": (0.01, 1, 0.01),
}


class TestBounds:
    @pytest.mark.parametrize("key", BOUNDS)
    async def test_of_every_key(self, client: AsyncClient, key: str) -> None:
        least, most, step = BOUNDS[key]
        await client.post("/users", json={"user_id": "ana"})
        await client.post("/sessions", json={"user_id": "ana", "session_id": "s"})

        for value in (least, most):
            body = {"window_policy": {key: value}}
            assert ok(await client.patch("/sessions/s", json=body))["window_policy"] == {key: value}
        for value in (least - step, most + step):
            body = {"window_policy": {key: value}}
            refused = problem(await client.patch("/sessions/s", json=body), 422, "invalid_request")
            assert places(refused) == [f"body.window_policy.{key}"]

    @for_each(
        "trigger",
        [
            {}, [], [{}], {"tokens": 0}, {"messages": 0}, {"fraction": 0}, {"fraction": 1.01},
            {"tokens": 10_000_001}, {"messages": 1_000_001}, {"words": 3}, [{"tokens": 5}] * 11,
        ],
    )  # fmt: skip
    async def test_a_trigger_names_something_positive(
        self, client: AsyncClient, trigger: Any
    ) -> None:
        """Values are positive, fractions in (0, 1]; an empty one is an error, not never."""
        body = {"agent_name": "A", "window_policy": {"trigger": trigger}}

        problem(await client.post("/agents", json=body), 422, "invalid_request")

    @pytest.mark.parametrize(
        "trigger",
        [
            {"tokens": 1}, {"messages": 1}, {"fraction": 1}, [{"tokens": 10_000_000}] * 10,
            [{"messages": 1_000_000}, {"tokens": 5, "fraction": 0.01}],
        ],
    )  # fmt: skip
    async def test_at_the_bounds_a_trigger_is_kept_as_it_was_said(
        self, client: AsyncClient, trigger: Any
    ) -> None:
        body = {"agent_name": "A", "window_policy": {"trigger": trigger}}

        assert (
            ok(await client.post("/agents", json=body), 201)["window_policy"]
            == (body["window_policy"])
        )

    async def test_warn_above_flush_is_refused(self, client: AsyncClient) -> None:
        body = {"agent_name": "A", "window_policy": {"warn": 0.8, "flush": 0.7}}

        problem(await client.post("/agents", json=body), 422, "invalid_request")
        body["window_policy"] = {"warn": 0.7, "flush": 0.7}
        ok(await client.post("/agents", json=body), 201)

    async def test_an_unknown_key_is_refused(self, client: AsyncClient) -> None:
        body = {"agent_name": "A", "window_policy": {"budget": 100}}

        refused = problem(await client.post("/agents", json=body), 422, "invalid_request")

        assert places(refused) == ["body.window_policy.budget"]


class TestKeeping:
    async def test_an_agents_policy_holds_for_its_sessions(self, client: AsyncClient) -> None:
        agent = {"agent_id": "a", "agent_name": "A", "window_policy": {"budget_tokens": 500}}
        ok(await client.post("/agents", json=agent), 201)

        told = await append(client, "s", "Hello", agent_id="a")

        assert told["pressure"]["budget_tokens"] == 500
        window = ok(await client.get("/sessions/s/window"))
        assert window["policy"]["budget_tokens"] == 500

    async def test_a_sessions_own_goes_before_it_and_null_ends_that(
        self, client: AsyncClient
    ) -> None:
        agent = {"agent_id": "a", "agent_name": "A", "window_policy": {"budget_tokens": 500}}
        ok(await client.post("/agents", json=agent), 201)
        session = {
            "session_id": "s", "user_id": "ana", "agent_id": "a",
            "window_policy": {"budget_tokens": 900, "keep_messages": 2},
        }  # fmt: skip
        ok(await client.post("/sessions", json=session), 201)

        assert ok(await client.get("/sessions/s/window"))["policy"]["budget_tokens"] == 900
        changed = ok(await client.patch("/sessions/s", json={"window_policy": None}))
        assert changed["window_policy"] is None
        assert changed["version"] == 2
        policy = ok(await client.get("/sessions/s/window"))["policy"]
        assert (policy["budget_tokens"], policy["keep_messages"]) == (500, 20)

    async def test_a_patch_replaces_the_whole_of_it(self, client: AsyncClient) -> None:
        body = {"agent_id": "a", "agent_name": "A", "window_policy": {"budget_tokens": 500}}
        ok(await client.post("/agents", json=body), 201)

        changed = ok(await client.patch("/agents/a", json={"window_policy": {"warn": 0.5}}))

        assert changed["window_policy"] == {"warn": 0.5}
        untouched = ok(await client.patch("/agents/a", json={"agent_name": "B"}))
        assert untouched["window_policy"] == {"warn": 0.5}
        assert (
            ok(await client.patch("/agents/a", json={"window_policy": None}))["window_policy"]
            is None
        )

    async def test_the_deployments_comes_from_the_settings(self, runtime: Runtime) -> None:
        settings, policy = runtime.settings, runtime.window_policy

        assert policy == WindowPolicy(
            budget_tokens=settings.window_tokens,
            warn=settings.pressure_warn,
            flush=settings.pressure_flush,
            evict_fraction=settings.evict_fraction,
            summary_words=settings.summary_word_limit,
        )

    async def test_the_resolved_policy_shows_every_key(self, client: AsyncClient) -> None:
        await append(client, "s", "Hello")

        policy = ok(await client.get("/sessions/s/window"))["policy"]

        assert set(policy) == {one.name for one in fields(WindowPolicy)}
