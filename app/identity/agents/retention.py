"""What is forgotten automatically and when, for a deployment and for one agent. Pure."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import ValidationError

from app.identity.tenants.schemas import ForgettingPatch

Eviction = Literal["confidence", "hybrid"]


@dataclass(frozen=True, slots=True)
class ForgettingPolicy:
    """What the job `forget` does. 0 days mean: keep without limit.

    Args:
        enabled: the off switch.
        max_facts: how many extracted memories a bucket holds; 0 for no bound.
        eviction: by what the first to go beyond it are chosen.
        decay_below: hybrid score below which extracted memories are archived; 0 for never.
        source_deleted_days: how long memories outlive the file they were read from.
        with_session: whether what was extracted in a session goes once that was deleted.
        superseded_days: how long what was superseded can still be searched.
        message_retention_days: how long messages stay that are no longer needed.
        checkpoint_retention_days: how long archived checkpoints, snapshots of the working
            state and steps of threads that are not continued stay.

    """

    enabled: bool = True
    max_facts: int = 100
    eviction: Eviction = "confidence"
    decay_below: float = 0.0
    source_deleted_days: int = 30
    with_session: bool = False
    superseded_days: int = 0
    message_retention_days: int = 0
    checkpoint_retention_days: int = 365


def resolve(deployment: ForgettingPolicy, config: Mapping[str, Any] | None) -> ForgettingPolicy:
    """The deployment's policy with what an agent says on top.

    Args:
        config: `config.forgetting` of the agent. It was checked when it was written; what an
            older release let stand under that name says nothing.

    """
    try:
        said = ForgettingPatch.model_validate(config or {}, strict=True)
    except ValidationError:
        return deployment
    return replace(deployment, **said.model_dump(exclude_none=True))


@dataclass(frozen=True, slots=True)
class Group:
    """What one policy holds for.

    Args:
        agents: ids of these agents alone; None: whatever is of no agent, or of one that is
            not in `but`.

    """

    policy: ForgettingPolicy
    agents: tuple[str, ...] | None
    but: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Policies:
    """The policies of one tenant: its own, and those of agents that say something."""

    tenant: ForgettingPolicy
    agents: Mapping[str, ForgettingPolicy]

    def of(self, agent_id: str | None) -> ForgettingPolicy:
        """The policy for what is of this agent, or of none."""
        return self.agents.get(agent_id or "", self.tenant)

    def groups(self, agent_id: str | None = None) -> list[Group]:
        """Every policy once, with what it holds for; of `agent_id` alone where one is named."""
        if agent_id is not None:
            return [Group(self.of(agent_id), (agent_id,))]
        alike: dict[ForgettingPolicy, list[str]] = {}
        for agent, policy in sorted(self.agents.items()):
            alike.setdefault(policy, []).append(agent)
        special = [Group(policy, tuple(ids)) for policy, ids in alike.items()]
        return [Group(self.tenant, None, tuple(sorted(self.agents))), *special]


def policies(
    deployment: ForgettingPolicy,
    tenant: Mapping[str, Any] | None,
    agents: Mapping[str, Mapping[str, Any]],
) -> Policies:
    """What the deployment says, the tenant on top of it, and each agent on top of both."""
    own = resolve(deployment, tenant)
    return Policies(own, {agent_id: resolve(own, said) for agent_id, said in agents.items()})
