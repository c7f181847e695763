"""What an agent's `config` says: which processors serve it (else the tenant's, of those that the
deployment allows), the slots it adds to those that every profile has, and what is forgotten
automatically and when.

Where the deployment allows no processors, nothing is looked up.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

import structlog
from pydantic import ValidationError

from app.identity.agents.errors import InvalidConfigError
from app.identity.tenants.access import Principal
from app.identity.tenants.schemas import ForgettingPatch
from app.platform.database.engine import Database
from app.platform.plugins.runner import CONFIG, NO_CHAIN, ProcessorChain, Processors

log = structlog.get_logger()

_OF_AGENT = """
SELECT agents.config->'processors' AS chosen FROM agents
WHERE agents.tenant_id = tenant.id AND agents.agent_id = CAST($2 AS text)
"""

# The session's agent, else who would become it (`SessionRepository.ensure_participants`).
_OF_SESSION = """
SELECT agents.config->'processors' AS chosen FROM agents
WHERE agents.tenant_id = tenant.id AND agents.agent_id = COALESCE(
    (SELECT sessions.agent_id FROM sessions
     WHERE sessions.tenant_id = tenant.id AND sessions.session_id = CAST($2 AS text)),
    CAST($3 AS text),
    (SELECT users.agent_id FROM users
     WHERE users.tenant_id = tenant.id AND users.user_id = CAST($4 AS text)),
    CAST($5 AS text),
    'default')
"""


class Processing:
    """Chooses processors for a caller, of those that are `allowed` here."""

    def __init__(self, database: Database, processors: Processors) -> None:
        self._database = database
        self.allowed = processors
        self._missed: set[str] = set()

    @property
    def names(self) -> tuple[str, ...]:
        """What an agent may choose from."""
        return self.allowed.names

    async def of_agent(self, principal: Principal, agent_id: str | None) -> ProcessorChain:
        """Those of an agent; the tenant's where there is none."""
        if not self.names:
            return NO_CHAIN
        if agent_id is None:
            return self._chain(principal, None)
        rows = await self._database.fetch(principal.tenant_id, _OF_AGENT, agent_id)
        return self._chain(principal, rows[0]["chosen"] if rows else None)

    async def of_session(
        self, principal: Principal, session_id: str, *, agent_id: str | None, user_id: str | None
    ) -> ProcessorChain:
        """Those of a session's agent, or of the one it would get when it is opened."""
        if not self.names:
            return NO_CHAIN
        access = principal.access
        rows = await self._database.fetch(
            principal.tenant_id,
            _OF_SESSION,
            session_id,
            agent_id,
            user_id or access.user_id,
            access.agent_id,
        )
        return self._chain(principal, rows[0]["chosen"] if rows else None)

    def check(self, config: Mapping[str, Any]) -> None:
        """Raises InvalidProcessorsError: `processors` names one that is not allowed here."""
        self.allowed.check(config)

    def _chain(self, principal: Principal, chosen: object) -> ProcessorChain:
        if not isinstance(chosen, list):
            chosen = principal.config.get(CONFIG)
        if not isinstance(chosen, list):
            return NO_CHAIN
        names = [name for name in chosen if isinstance(name, str)]
        for name in {*names} - {*self.names, *self._missed}:
            # Chosen while it was allowed. Once per process: it would be said with every request.
            self._missed.add(name)
            log.warning("processor_not_allowed", processor=name)
        return self.allowed.chain(names)


NAME: Final = "profile_slots"
MOST: Final = 50
LONGEST_ABOUT: Final = 500
LONGEST_VALUE: Final = 2_000
DEFAULT_VALUE: Final = 500

_WORD: Final = re.compile(r"[a-z][a-z0-9_]{0,49}")
_MEMBERS: Final = {"topic", "sub_topic", "description", "max_chars"}
_WANTED: Final = (
    f"a list of at most {MOST} objects with `topic` and `sub_topic` (small letters, digits and _, "
    f"at most 50, each pair once), `description` (1 to {LONGEST_ABOUT} characters) and, if you "
    f"like, `max_chars` (1 to {LONGEST_VALUE})"
)


@dataclass(frozen=True, slots=True)
class ProfileSlot:
    """One topic of an application's own: `diet` / `allergies`."""

    topic: str
    sub_topic: str
    description: str
    max_chars: int = DEFAULT_VALUE

    @property
    def name(self) -> str:
        return f"slots.{self.topic}.{self.sub_topic}"


def profile_slots(config: Mapping[str, Any]) -> list[ProfileSlot]:
    """The slots that a config names; none without the setting.

    Raises:
        InvalidConfigError: the setting is not a list of valid, distinct slots.

    """
    setting = config.get(NAME)
    if setting is None:
        return []
    if not isinstance(setting, list) or len(setting) > MOST:
        raise InvalidConfigError(NAME, _WANTED)
    slots = [_slot(entry) for entry in setting]
    if len({slot.name for slot in slots}) < len(slots):
        raise InvalidConfigError(NAME, _WANTED)
    return slots


def _slot(entry: Any) -> ProfileSlot:
    """Raises InvalidConfigError."""
    if not isinstance(entry, Mapping) or not entry.keys() <= _MEMBERS:
        raise InvalidConfigError(NAME, _WANTED)
    about, longest = entry.get("description"), entry.get("max_chars", DEFAULT_VALUE)
    topics = [entry.get("topic"), entry.get("sub_topic")]
    usable = (
        all(isinstance(word, str) and _WORD.fullmatch(word) for word in topics)
        and isinstance(about, str)
        and 1 <= len(about.strip()) <= LONGEST_ABOUT
        # An exact type: true is an int too.
        and type(longest) is int
        and 1 <= longest <= LONGEST_VALUE
    )
    if not usable:
        raise InvalidConfigError(NAME, _WANTED)
    return ProfileSlot(str(topics[0]), str(topics[1]), str(about).strip(), longest)


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
