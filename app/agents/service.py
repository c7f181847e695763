"""Use cases of agents."""

from typing import Any

from app.agents.errors import InvalidConfigError
from app.agents.models import Agent
from app.agents.repository import AgentRepository
from app.agents.schemas import AgentCreate, AgentPatch, AgentQuery, AgentRead
from app.database.engine import Database
from app.database.ids import new_id
from app.llm.catalogue import EmbedderCatalogue
from app.llm.model_catalogue import ModelCatalogue
from app.tenants.access import Principal
from app.tenants.errors import KeyRestrictedError
from app.web.fields import ENABLED
from app.web.idempotency import NEVER, Once
from app.web.pagination import Page, decode_moment, page

PROMPT_LENGTH = 8000


class AgentService:
    def __init__(
        self, database: Database, catalogue: EmbedderCatalogue, models: ModelCatalogue
    ) -> None:
        self._database = database
        self._catalogue = catalogue
        self._models = models

    async def add(
        self, principal: Principal, body: AgentCreate, *, once: Once = NEVER
    ) -> AgentRead:
        """Create an agent.

        Raises:
            IdTakenError: the tenant has one with that id.
            UnknownEmbedderError: `config.embedding` names no usable model.
            UnknownModelError: `config.model` names none.
            InvalidConfigError: `config.extraction_prompt` is no text, or too long.
            KeyRestrictedError: the key is a user's, or another agent's.

        """
        _refuse_users(principal)
        own = principal.access.agent_id
        if own is not None and body.agent_id not in {None, own}:
            raise KeyRestrictedError
        await self._check_config(body.config)
        values = _columns(body.model_dump())
        values["agent_id"] = body.agent_id or own or new_id("agt")
        async with self._database.begin(principal.tenant_id) as db:
            await once.claim(db)
            agent = Agent(**values, creator=principal.key_id)
            await AgentRepository(db, principal.access).add(agent)
            return await once.keep(db, AgentRead.model_validate(agent), status=201)

    async def get(self, principal: Principal, agent_id: str) -> AgentRead:
        """Raises AgentNotFoundError."""
        async with self._database.begin(principal.tenant_id) as db:
            agent = await AgentRepository(db, principal.access).get(agent_id)
            return AgentRead.model_validate(agent)

    async def list(self, principal: Principal, query: AgentQuery) -> Page[AgentRead]:
        """Agents, newest first."""
        start = decode_moment(query.cursor)
        async with self._database.begin(principal.tenant_id) as db:
            rows = await AgentRepository(db, principal.access).list(
                start=start,
                limit=query.limit,
                status=ENABLED.get(query.status or ""),
                agent_type=query.agent_type,
            )
        return page(
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
        async with self._database.begin(principal.tenant_id) as db:
            agent = await AgentRepository(db, principal.access).patch(agent_id, changes, expected)
            return AgentRead.model_validate(agent)

    async def _check_config(self, config: dict[str, Any]) -> None:
        handle = config.get("embedding")
        if handle is not None:
            await self._catalogue.resolve(str(handle))
        model = config.get("model")
        if model is not None:
            self._models.resolve(str(model))
        prompt = config.get("extraction_prompt")
        if prompt is not None and not (isinstance(prompt, str) and len(prompt) <= PROMPT_LENGTH):
            raise InvalidConfigError(
                "extraction_prompt", f"a text of at most {PROMPT_LENGTH} characters"
            )


def _refuse_users(principal: Principal) -> None:
    """An agent is shared by its users, so a key of one of them may not change it."""
    if principal.access.user_id is not None:
        raise KeyRestrictedError


_NULLABLE = {"agent_type", "description"}


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    """As the table wants them; null means "leave it" where the column has no null."""
    kept = {name: value for name, value in values.items() if value is not None or name in _NULLABLE}
    if "status" in kept:
        kept["status"] = ENABLED[kept["status"]]
    return kept
