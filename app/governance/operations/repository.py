"""SQL of operations: jobs counted, and rows that are old enough to be deleted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from sqlalchemy import ColumnElement, Date, and_, cast, delete, func, literal, or_, select, tuple_
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import InstrumentedAttribute

from app.governance.forgetting.service import KIND as FORGET
from app.governance.operations.schemas import JobStatus
from app.identity.tenants.access import Access
from app.identity.usage.models import DailyCount, PaidAnswer, Usage
from app.identity.usage.repository import KEPT
from app.memory.extraction.models import ExtractionRun
from app.memory.store.models import StoreItem
from app.memory.store.repository import expired
from app.platform.database.base import TenantOwned
from app.platform.database.engine import clock_of
from app.platform.jobs.models import Job
from app.platform.outbox.models import WebhookDelivery
from app.prompting.context.repository import InjectedContext


@dataclass(frozen=True, slots=True)
class Retention:
    """How long each kind of row is kept once it is over.

    Args:
        deleted: memories that were deleted, refused or expired: the setting MEMORY_PURGE_DAYS.
        jobs: jobs that succeeded or were cancelled.
        maintenance: succeeded jobs of maintenance and webhooks, of which there are many.
        dead_jobs: jobs that failed for good.
        extraction_runs: the log of which model read what.
        deliveries: events that webhooks received.
        dead_deliveries: events that could not be delivered.
        usage: the ledger and the daily counts; a year can be compared with the one before.
        answers: of models, that were paid for and never used.
        contexts: which contents contexts had.

    """

    deleted: timedelta
    jobs: timedelta = timedelta(days=7)
    maintenance: timedelta = timedelta(hours=6)
    dead_jobs: timedelta = timedelta(days=30)
    extraction_runs: timedelta = timedelta(days=90)
    deliveries: timedelta = timedelta(days=7)
    dead_deliveries: timedelta = timedelta(days=30)
    usage: timedelta = timedelta(days=400)
    answers: timedelta = KEPT
    contexts: timedelta = timedelta(days=90)


MAINTENANCE_KINDS = ("deliver", "housekeeping")
"""Kinds of job that are frequent and of no interest once they succeeded."""


class ExpiredRows(NamedTuple):
    """Rows of one table that may be deleted.

    Args:
        key: the columns of the primary key beside the tenant.

    """

    table: type[TenantOwned]
    key: tuple[InstrumentedAttribute[Any], ...]
    rows: ColumnElement[bool]


OLD: Final = (
    "jobs", "extraction_runs", "webhook_deliveries", "usage", "daily_counts", "model_answers",
    "store_items", "injected_contexts",
)  # fmt: skip
"""Names of the tables whose old rows are deleted."""


def _old_jobs(retention: Retention, now: Any) -> ColumnElement[bool]:
    return or_(
        and_(Job.status.in_(("succeeded", "cancelled")), Job.finished_at <= now - retention.jobs),
        and_(
            Job.status == "succeeded",
            Job.kind.in_(MAINTENANCE_KINDS),
            Job.finished_at <= now - retention.maintenance,
        ),
        and_(
            Job.status == "succeeded",
            Job.kind == FORGET,
            Job.result["total"].astext == "0",
            Job.finished_at <= now - retention.maintenance,
        ),
        and_(Job.status == "dead", Job.finished_at <= now - retention.dead_jobs),
    )


def _old_deliveries(retention: Retention, now: Any) -> ColumnElement[bool]:
    return or_(
        and_(
            WebhookDelivery.status == "delivered",
            WebhookDelivery.delivered_at <= now - retention.deliveries,
        ),
        and_(
            WebhookDelivery.status == "dead",
            WebhookDelivery.update_time <= now - retention.dead_deliveries,
        ),
        # A webhook that is enabled again after a month is not sent a month of events.
        and_(
            WebhookDelivery.status == "pending",
            WebhookDelivery.create_time <= now - retention.dead_deliveries,
        ),
    )


def _old_rows(retention: Retention, now: Any) -> Mapping[str, ExpiredRows]:
    """Rows that may be deleted, by the names of `OLD`."""
    today = cast(func.timezone("UTC", now), Date)
    return {
        "jobs": ExpiredRows(Job, (Job.job_id,), _old_jobs(retention, now)),
        "extraction_runs": ExpiredRows(
            ExtractionRun,
            (ExtractionRun.extraction_id,),
            ExtractionRun.create_time <= now - retention.extraction_runs,
        ),
        "webhook_deliveries": ExpiredRows(
            WebhookDelivery,
            (WebhookDelivery.delivery_id,),
            _old_deliveries(retention, now),
        ),
        "usage": ExpiredRows(
            Usage,
            (Usage.day, Usage.operation, Usage.model),
            Usage.day < today - literal(retention.usage.days),
        ),
        "daily_counts": ExpiredRows(
            DailyCount,
            (DailyCount.day, DailyCount.name, DailyCount.agent_id, DailyCount.label),
            DailyCount.day < today - literal(retention.usage.days),
        ),
        "model_answers": ExpiredRows(
            PaidAnswer,
            (PaidAnswer.answer_key,),
            PaidAnswer.create_time <= now - retention.answers,
        ),
        "store_items": ExpiredRows(StoreItem, (StoreItem.item_id,), expired(now)),
        "injected_contexts": ExpiredRows(
            InjectedContext,
            (InjectedContext.session_id, InjectedContext.content_sha256),
            InjectedContext.last_at <= now - retention.contexts,
        ),
    }


class JobMaintenanceRepository:
    """Old rows of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def count(self, name: str, retention: Retention) -> int:
        """How many rows of the table `name`, one of `OLD`, are old enough to be deleted."""
        old = _old_rows(retention, func.now())[name]
        statement = (
            select(func.count())
            .select_from(old.table)
            .where(old.table.tenant_id == self._tenant_id, old.rows)
        )
        return int(await self._db.scalar(statement) or 0)

    async def delete(self, name: str, retention: Retention, limit: int) -> int:
        """Delete at most `limit` of these rows, and none that is locked; how many were deleted."""
        old = _old_rows(retention, await clock_of(self._db))[name]
        chosen = (
            select(*old.key)
            .where(old.table.tenant_id == self._tenant_id, old.rows)
            .limit(limit)
            .with_for_update(skip_locked=True)
            .cte("chosen")
        )
        rows = await self._db.scalars(
            delete(old.table)
            .where(
                old.table.tenant_id == self._tenant_id,
                tuple_(*old.key).in_(select(*chosen.c)),
            )
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())


class JobCount(NamedTuple):
    """Jobs of one kind in one status; `due` of them could run now, the first since `oldest`."""

    kind: str
    status: JobStatus
    jobs: int
    due: int
    oldest: datetime | None


class JobStatsRepository:
    """Counts of the jobs that a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def counts(self) -> Sequence[JobCount]:
        """Counts by kind and status, sorted; no entry where there is no job."""
        access = self._access
        conditions = [Job.tenant_id == access.tenant_id]
        if access.user_id is not None:
            conditions.append(Job.user_id == access.user_id)
        if access.agent_id is not None:
            conditions.append(Job.agent_id == access.agent_id)
        due = and_(Job.status == "pending", Job.due_at <= func.now())
        rows: Any = await self._db.execute(
            select(
                Job.kind,
                Job.status,
                func.count(),
                func.count().filter(due),
                func.min(Job.due_at).filter(due),
            )
            .where(*conditions)
            .group_by(Job.kind, Job.status)
            .order_by(Job.kind, Job.status)
        )
        return [JobCount(*row) for row in rows]
