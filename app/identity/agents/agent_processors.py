"""Which processors serve whom: those that the agent's `config.processors` names, else the
tenant's, of those that the deployment allows.

Where the deployment allows none, nothing is looked up.
"""

from collections.abc import Mapping
from typing import Any

import structlog

from app.identity.tenants.access import Principal
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
