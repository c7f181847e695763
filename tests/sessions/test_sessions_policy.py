"""The window's policy: resolved key by key, its bounds, and what agents and sessions keep of it."""

from dataclasses import fields
from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.sessions.policy import Trigger, WindowPolicy, resolve
from app.identity.agents.schemas import WindowPolicyPatch
from app.runtime import Runtime
from tests.support.api import append, ok, problem
from tests.support.api import fields as places

DEPLOYMENT = WindowPolicy()


class TestResolving:
    def test_who_says_nothing_has_the_deployments(self) -> None:
        assert resolve(DEPLOYMENT, None, None) is DEPLOYMENT
        assert resolve(DEPLOYMENT, {}, {}) == DEPLOYMENT

    def test_a_session_goes_before_its_agent_and_an_agent_before_the_deployment(self) -> None:
        agent = {"budget_tokens": 8000, "keep_messages": 5}
        session = {"budget_tokens": 1000}

        policy = resolve(DEPLOYMENT, agent, session)

        assert (policy.budget_tokens, policy.keep_messages) == (1000, 5)
        assert policy.flush == DEPLOYMENT.flush

    def test_every_key_of_a_patch_arrives(self) -> None:
        said = {
            "budget_tokens": 500, "warn": 0.1, "flush": 0.2, "evict_fraction": 0.3,
            "keep_messages": 4, "automatic": False, "reserved_tokens": 6, "summary_words": 70,
            "approval_hours": 8, "checkpoint_every": 9, "trigger": {"messages": 10},
        }  # fmt: skip

        policy = resolve(DEPLOYMENT, WindowPolicyPatch(**said).model_dump(mode="json"), None)

        assert set(said) == set(WindowPolicyPatch.model_fields)
        told = {one.name: getattr(policy, one.name) for one in fields(policy)}
        del said["trigger"]
        assert told == said | {"triggers": (Trigger(messages=10),)}

    def test_warn_never_stands_above_flush(self) -> None:
        policy = resolve(DEPLOYMENT, {"flush": 0.5}, None)

        assert (policy.warn, policy.flush) == (0.5, 0.5)

    def test_a_key_of_a_later_release_is_passed_over(self) -> None:
        assert resolve(DEPLOYMENT, {"colour": "red", "keep_messages": 3}, None).keep_messages == 3

    def test_false_and_0_are_said(self) -> None:
        policy = resolve(
            WindowPolicy(reserved_tokens=7, checkpoint_every=7),
            None,
            {"automatic": False, "reserved_tokens": 0, "checkpoint_every": 0},
        )

        assert (policy.automatic, policy.reserved_tokens, policy.checkpoint_every) == (False, 0, 0)


class TestTriggers:
    def test_all_keys_of_one_must_hold(self) -> None:
        trigger = Trigger(tokens=100, messages=10)

        assert trigger.holds(tokens=100, messages=10, budget_tokens=4000)
        assert not trigger.holds(tokens=99, messages=10, budget_tokens=4000)
        assert not trigger.holds(tokens=100, messages=9, budget_tokens=4000)

    def test_a_fraction_is_of_the_budget(self) -> None:
        trigger = Trigger(fraction=0.25)

        assert trigger.holds(tokens=1000, messages=1, budget_tokens=4000)
        assert not trigger.holds(tokens=999, messages=1, budget_tokens=4000)

    def test_a_list_is_any_of_them(self) -> None:
        policy = resolve(DEPLOYMENT, None, {"trigger": [{"tokens": 5}, {"messages": 7}]})

        assert policy.triggers == (Trigger(tokens=5), Trigger(messages=7))

    def test_one_object_is_a_list_of_one(self) -> None:
        policy = resolve(DEPLOYMENT, {"trigger": {"tokens": 5, "messages": 7}}, None)

        assert policy.triggers == (Trigger(tokens=5, messages=7),)


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

    @pytest.mark.parametrize(
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
