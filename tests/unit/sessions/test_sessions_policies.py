"""The window's policy: resolved key by key, its bounds, and what agents and sessions keep of it."""

from dataclasses import fields

from app.conversation.sessions.policy import Trigger, WindowPolicy, resolve
from app.identity.agents.schemas import WindowPolicyPatch

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
