"""The handler of jobs `index_messages`: what an append has left for a session's searches."""

from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any, Final

from app.conversation.messages.backfill import MessageBackfill
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.repository import TenantRepository
from app.platform.database.engine import Database
from app.platform.jobs.errors import DeferJobError
from app.platform.jobs.orders import ClaimedJob

DISABLED: Final = timedelta(hours=1)
"""How long the work of a disabled tenant waits before it looks again."""


class MessageJobs:
    """Works off what appends have ordered."""

    def __init__(
        self, database: Database, filling: MessageBackfill, now: Callable[[], datetime]
    ) -> None:
        self._database = database
        self._filling = filling
        self._now = now

    async def index(self, job: ClaimedJob) -> dict[str, Any]:
        """Read and embed what is left of the session; how many messages of each.

        Raises:
            DeferJobError: the tenant is disabled.
            UnknownEmbedderError: the embedder in force is gone.
            EmbeddingUnavailableError: what was embedded before stays; try again.

        """
        async with self._database.begin(job.tenant_id) as db:
            tenant = await TenantRepository(db, job.tenant_id).get()
        if tenant.status == 0:
            raise DeferJobError(self._now() + DISABLED, "tenant_disabled")
        principal = Principal(
            Access(job.tenant_id),
            job.creator or "",
            frozenset(),
            tenant.config,
            tuple(tenant.embedding_models),
        )
        counts = await self._filling.fill_session(principal, job.key, job.agent_id or "")
        return dict(counts)
