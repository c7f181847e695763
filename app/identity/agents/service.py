"""Use cases of agents."""

from collections.abc import Collection
from typing import Any, Protocol

from app.identity.agents.config import Processing, profile_slots
from app.identity.agents.errors import InvalidConfigError
from app.identity.agents.repository import Agent, AgentRepository
from app.identity.agents.schemas import AgentCreate, AgentEquip, AgentPatch, AgentQuery, AgentRead
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.tenants.schemas import PROMPT_LENGTH, forgetting_fault
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.language.llm.model_catalogue import ModelCatalogue, ProfilerCatalogue, SummariserCatalogue
from app.platform.database.base import new_id
from app.platform.values.fields import ENABLED
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


class AgentService:
    def __init__(
        self,
        work: Work,
        catalogue: EmbedderCatalogue,
        models: ModelCatalogue,
        summarisers: SummariserCatalogue,
        profilers: ProfilerCatalogue,
        processing: Processing,
        tools: Collection[str],
    ) -> None:
        """Build it; `tools` are the names of the tools that there are."""
        self._work = work
        self._catalogue = catalogue
        self._models = models
        self._summarisers = summarisers
        self._profilers = profilers
        self._processing = processing
        self._tools = tools

    async def prepare(self, principal: Principal, body: AgentCreate) -> Agent:
        """The agent that a request describes, checked and not yet stored.

        Raises:
            UnknownEmbedderError: `config.embedding` names no usable model.
            UnknownModelError: `config.model`, `config.summary_model` or `config.profile_model`
                names none.
            InvalidConfigError: `config.extraction_prompt` is no text, or too long;
                `config.profile_slots` are none; `config.system_prompt` is no text;
                `config.tools` names one that there is not.
            InvalidProcessorsError: `config.processors` are not allowed here.
            KeyRestrictedError: the key is a user's, or another agent's.

        """
        _refuse_users(principal)
        own = principal.access.agent_id
        if own is not None and body.agent_id not in {None, own}:
            raise KeyRestrictedError
        await self._check_config(body.config)
        values = _columns(body.model_dump(include=set(AgentCreate.model_fields)))
        values["agent_id"] = body.agent_id or own or new_id("agt")
        return Agent(**values, creator=principal.key_id)

    async def get(self, principal: Principal, agent_id: str) -> AgentRead:
        """The agent.

        Raises:
            AgentNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            agent = await AgentRepository(db, principal.access).get(agent_id)
            return AgentRead.model_validate(agent)

    async def list_agents(self, principal: Principal, query: AgentQuery) -> Page[AgentRead]:
        """A page of agents, newest first."""
        start = decode_time(query.cursor, "agents")
        async with self._work.read(principal) as db:
            rows = await AgentRepository(db, principal.access).list_agents(
                start=start,
                limit=query.limit,
                status=ENABLED.get(query.status or ""),
                agent_type=query.agent_type,
            )
        return page(
            "agents",
            rows,
            query.limit,
            show=AgentRead.model_validate,
            place=lambda agent: (agent.create_time, agent.agent_id),
        )

    async def patch(
        self, principal: Principal, agent_id: str, body: AgentPatch, *, expected: int | None
    ) -> AgentRead:
        """The changed agent; a restricted key may not switch its agent on or off.

        Raises:
            AgentNotFoundError, VersionConflictError, UnknownEmbedderError,
            KeyRestrictedError: nothing was changed.

        """
        _refuse_users(principal)
        if principal.access.restricted and body.status is not None:
            raise KeyRestrictedError
        changes = _columns(body.model_dump(exclude_unset=True))
        await self._check_config(changes.get("config") or {})
        async with self._work.write(principal, while_disabled=True) as unit:
            agent = await AgentRepository(unit.db, principal.access).patch(
                agent_id, changes, expected
            )
            return AgentRead.model_validate(agent)

    async def _check_config(self, config: dict[str, Any]) -> None:
        """Raises InvalidConfigError."""
        handle = config.get("embedding")
        if handle is not None:
            await self._catalogue.resolve(str(handle))
        model = config.get("model")
        if model is not None:
            self._models.resolve(str(model))
        summary_model = config.get("summary_model")
        if summary_model is not None:
            self._summarisers.resolve(str(summary_model))
        profile_model = config.get("profile_model")
        if profile_model is not None:
            self._profilers.resolve(str(profile_model))
        profile_slots(config)
        prompt = config.get("extraction_prompt")
        if prompt is not None and not (isinstance(prompt, str) and len(prompt) <= PROMPT_LENGTH):
            raise InvalidConfigError(
                "extraction_prompt", f"a text of at most {PROMPT_LENGTH} characters"
            )
        if not isinstance(config.get("system_prompt"), str | None):
            raise InvalidConfigError("system_prompt", "a text")
        self._processing.check(config)
        _check_tools(config, self._tools)
        _check_forgetting(config)


def _check_tools(config: dict[str, Any], names: Collection[str]) -> None:
    """Raises InvalidConfigError."""
    tools = config.get("tools")
    if tools is not None and not (
        isinstance(tools, list) and all(isinstance(tool, str) for tool in tools)
    ):
        raise InvalidConfigError("tools", "a list of names of tools, as `GET /v1/tools` has them")
    for place, tool in enumerate(tools or ()):
        if tool not in names:
            # A name that was meant for a tool and is none would take the tool away unnoticed.
            raise InvalidConfigError(f"tools.{place}", f"one of {', '.join(names)}")
    if not isinstance(config.get("enable_memory", True), bool):
        raise InvalidConfigError("enable_memory", "true or false")


def _check_forgetting(config: dict[str, Any]) -> None:
    """Raises InvalidConfigError."""
    fault = forgetting_fault(config)
    if fault is not None:
        raise InvalidConfigError(*fault)


def _refuse_users(principal: Principal) -> None:
    """An agent is shared by its users, so a key of one of them may not change it.

    Raises KeyRestrictedError.
    """
    if principal.access.user_id is not None:
        raise KeyRestrictedError


_NULLABLE = {"agent_type", "description", "window_policy"}


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    """As the table wants them; null means "leave it" where the column has no null."""
    kept = {name: value for name, value in values.items() if value is not None or name in _NULLABLE}
    if "status" in kept:
        kept["status"] = ENABLED[kept["status"]]
    return kept


class AgentCreation(Protocol):
    """Creates an agent with its first blocks: all of it, or nothing."""

    async def add(
        self, principal: Principal, body: AgentEquip, *, key: IdempotencyKey | None = None
    ) -> AgentRead:
        """Create the agent and its blocks."""
