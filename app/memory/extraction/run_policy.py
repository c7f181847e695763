"""What an agent, its tenant and the deployment say of a run: which model reads, with which
instructions, how often in a day, and who may write where.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.repository import TenantRepository
from app.identity.usage.quota import Quota, exhausted
from app.identity.usage.repository import UsageRepository
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.memory.extraction.repository import DAY, ExtractionRepository
from app.memory.extraction.run_state import Trigger
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob

COUNTED: tuple[Trigger, ...] = ("automatic", "explicit")
"""Runs that share the limit of a session's day."""

EXEMPT_RUNS = 20
"""Runs of a day beside those: at the end of a session."""

DISABLED = timedelta(hours=1)
"""How long work of who is disabled waits before it looks again."""

SWITCHED_OFF = timedelta(minutes=5)
"""How long work waits before it looks whether MEMORY_ENABLED is true again."""

WRITING_ROLES = {"owner", "admin", "editor"}

HANDLE = "model"
"""Its name in the settings of an agent or a tenant."""


def model_for(catalogue: ModelCatalogue, *configs: Mapping[str, Any]) -> ExtractionModel:
    """The model that the first of `configs` names which names one.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    named = (config.get(HANDLE) for config in configs)
    handle = next((name for name in named if isinstance(name, str) and name), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)


def instructions(given: str | None, *configs: Mapping[str, Any]) -> str | None:
    """The caller's own instructions to the extractor, else those of the first of `configs` that
    has some.
    """
    if given is not None:
        return given
    prompts = (config.get("extraction_prompt") for config in configs)
    return next((text for text in prompts if isinstance(text, str) and text.strip()), None)


async def principal_of(db: AsyncSession, job: ClaimedJob) -> Principal:
    """Whoever asked for the work, with the tenant's settings as they are now.

    Raises:
        DeferJobError: the tenant is disabled.

    """
    tenant = await TenantRepository(db, job.tenant_id).get()
    if tenant.status == 0:
        raise DeferJobError(datetime.now(UTC) + DISABLED, "tenant_disabled")
    return Principal(
        Access(job.tenant_id),
        job.creator or "",
        frozenset({"write"}),
        tenant.config,
        tuple(tenant.embedding_models),
    )


async def writable_project(
    db: AsyncSession, access: Access, project_id: str | None, user_id: str | None
) -> str | None:
    """The project, when the user may write there."""
    if project_id is None or user_id is None:
        return None
    role = await ProjectRepository(db, access).role_of(project_id, user_id)
    return project_id if role in WRITING_ROLES else None


@dataclass(frozen=True, slots=True)
class RunLimits:
    """What a day allows: runs per session, calls and tokens per tenant."""

    session_runs: int
    quota: Quota

    async def check(
        self,
        db: AsyncSession,
        principal: Principal,
        session_id: str,
        trigger: Trigger,
        now: Callable[[], datetime],
    ) -> None:
        """Whether a model may read now.

        Raises:
            DeferJobError: not before some time; the watermark keeps what is unread.

        """
        await self.check_quota(db, principal)
        until = await self.reached_until(db, principal.access, session_id, trigger, now)
        if until is not None:
            raise DeferJobError(until, "rate_limited")

    async def reached_until(
        self,
        db: AsyncSession,
        access: Access,
        session_id: str,
        trigger: Trigger,
        now: Callable[[], datetime],
    ) -> datetime | None:
        """Until when a model may not read the session again; None when it may now.

        What is asked for counts with what happens automatically.
        """
        if trigger in COUNTED:
            triggers, most = COUNTED, self.session_runs
        elif trigger == "end":
            triggers, most = ("end",), EXEMPT_RUNS
        else:
            return None
        count, first = await ExtractionRepository(db, access).model_runs(session_id, triggers)
        return (first or now()) + DAY if count >= most else None

    async def check_quota(self, db: AsyncSession, principal: Principal) -> None:
        """Whether the tenant's day has calls and tokens left.

        Raises:
            DeferJobError: it has none, until some time.

        """
        totals = await UsageRepository(db, principal.tenant_id).today()
        used_up = exhausted(totals, self.quota.overridden(principal.config))
        if used_up is not None:
            raise DeferJobError(used_up.until, used_up.reason)
