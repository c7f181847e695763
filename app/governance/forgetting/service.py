"""Use cases of forgetting: show the policies and the last runs, preview a run, order a run."""

import hashlib
import json
from dataclasses import asdict
from typing import Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.forgetting.schemas import (
    STEPS,
    ForgettingRead,
    ForgettingRunCreate,
    ForgettingRunRead,
    LastRun,
    PolicyRead,
)
from app.governance.forgetting.steps import Forgetting
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

KIND: Final = "forget"
SHOWN_RUNS: Final = 10


class ForgettingService:
    """Works on whole tenants, so a restricted key may use none of it."""

    def __init__(self, work: Work, forgetting: Forgetting, purge_days: int) -> None:
        self._work = work
        self._forgetting = forgetting
        self._purge_days = purge_days

    async def get(self, principal: Principal) -> ForgettingRead:
        """The policies in force, and the last runs, newest first.

        Raises:
            KeyRestrictedError: the key is restricted to an agent or a user.

        """
        _refuse_restricted(principal)
        policies = await self._forgetting.policies(principal.tenant_id)
        async with self._work.read(principal) as db:
            runs = await JobRepository(db, principal.tenant_id).list_jobs(
                kind=KIND, limit=SHOWN_RUNS
            )
        return ForgettingRead(
            policy=PolicyRead(**asdict(policies.tenant)),
            agents={
                agent_id: PolicyRead(**asdict(policy))
                for agent_id, policy in policies.agents.items()
            },
            purge_days=self._purge_days,
            last_runs=[LastRun.model_validate(run) for run in runs[:SHOWN_RUNS]],
        )

    async def preview(
        self, principal: Principal, body: ForgettingRunCreate, *, key: IdempotencyKey | None = None
    ) -> ForgettingRunRead:
        """What a run would do now; changes nothing.

        Raises:
            KeyRestrictedError: the key is restricted to an agent or a user.
            AgentNotFoundError: there is no such agent.

        """
        _refuse_restricted(principal)
        async with self._work.read(principal, key) as db:
            await _refuse_missing(db, principal, body.agent_id)
        tenant_id, steps = principal.tenant_id, body.steps or STEPS
        shown = ForgettingRunRead(
            dry_run=True, steps=await self._forgetting.due(tenant_id, steps, body.agent_id)
        )
        if body.eviction is not None:
            shown.shadow = await self._forgetting.compare(tenant_id, body.eviction, body.agent_id)
        async with self._work.write(principal, key, while_disabled=True) as unit:
            return unit.answer(shown, 200)

    async def order(
        self, principal: Principal, body: ForgettingRunCreate, *, key: IdempotencyKey | None = None
    ) -> ForgettingRunRead:
        """Order a run, due at once; joins the same run when it is pending already.

        Raises:
            KeyRestrictedError: the key is restricted to an agent or a user.
            AgentNotFoundError: there is no such agent.

        """
        _refuse_restricted(principal)
        async with self._work.write(principal, key, while_disabled=True) as unit:
            await _refuse_missing(unit.db, principal, body.agent_id)
            scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(
                _order(principal, body)
            )
            job_id = None if scheduled is None else scheduled.job_id
            shown = ForgettingRunRead(dry_run=False, job_id=job_id)
            return unit.answer(shown, 202)


def _order(principal: Principal, body: ForgettingRunCreate) -> Order:
    """A whole run has the key of the recurring job; a part of it has a key of its own."""
    payload: dict[str, object] = {}
    if body.steps is not None:
        payload["steps"] = [step for step in STEPS if step in body.steps]
    if body.agent_id is not None:
        payload["agent_id"] = body.agent_id
    key = KIND
    if payload:
        digest = hashlib.sha256(json.dumps(payload, sort_keys=True).encode()).hexdigest()
        key = f"{KIND}:{digest[:32]}"
    return Order(kind=KIND, key=key, creator=principal.key_id, payload=payload)


async def _refuse_missing(db: AsyncSession, principal: Principal, agent_id: str | None) -> None:
    """Raises AgentNotFoundError."""
    if agent_id is not None:
        await AgentRepository(db, principal.access).get(agent_id)


def _refuse_restricted(principal: Principal) -> None:
    """Raises KeyRestrictedError."""
    if principal.access.restricted:
        raise KeyRestrictedError
