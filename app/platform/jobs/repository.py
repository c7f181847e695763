"""SQL for jobs within their tenant: ordering, finishing, listing, cancelling and retrying.

Claiming across tenants is in `dispatch.py`.
"""

import json
from collections.abc import Collection, Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import Select, func, insert, select, text, update
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession

from app.platform.database.base import after, new_id
from app.platform.database.engine import clock_of, driver_of
from app.platform.database.failures import violated_constraint
from app.platform.jobs.failures import (
    JobAlreadyLiveError,
    JobNotCancellableError,
    JobNotFoundError,
    JobNotRetryableError,
    LeaseLostError,
    Verdict,
)
from app.platform.jobs.models import LIVE, Job
from app.platform.jobs.ordering_sql import (
    FINISH,
    FREE_LANE,
    HASTEN,
    HASTEN_DEFERRED,
    ORDER,
    PASS_PLACE_ON,
    POSTPONE,
    parameters_of,
)
from app.platform.jobs.orders import CHANNEL, ClaimedJob, Order, Scheduled
from app.platform.outbox.models import Event
from app.platform.outbox.repository import OutboxRepository

BODY = "body"
CONTENT = {BODY, "prompt"}
"""Members of a payload that hold content; the others hold ids and flags."""

UNPUBLISHED = {"deliver"}
"""Kinds whose death is not published: the delivery itself has failed."""

EMPTIED = {"payload_emptied": True}
"""Result of a cancelled job whose body was deleted: it cannot be retried."""

_NOT_AGAIN: dict[str, Any] = {
    "run_again": False,
    "again_due_at": None,
    "again_since": None,
    "again_signals": [],
    "again_payload": None,
    "again_lane_order": None,
}


class JobRepository:
    """Jobs of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def schedule(self, order: Order) -> Scheduled | None:
        """Order a job, in one statement; workers see it when this transaction commits.

        When `(kind, key)` is live already, the order joins it: signals are united, the wait
        begins again, and a running job runs once more afterwards. None is returned only for
        `postpone_only` when no such job is live.
        """
        driver = await driver_of(self._db)
        job_id = new_id("job")
        now = [await clock_of(self._db)] if order.postpone_only else []
        row = await driver.fetchrow(
            POSTPONE if order.postpone_only else ORDER,
            *parameters_of(order, self._tenant_id, job_id),
            *now,
        )
        if row is None:
            return None
        return Scheduled(
            job_id=row["job_id"],
            status=row["status"],
            due_at=row["due_at"],
            merged=row["job_id"] != job_id,
        )

    async def live_id(self, kind: str, key: str) -> str | None:
        """Id of the pending or running job of this kind and key; None without one."""
        return await self._db.scalar(
            select(Job.job_id).where(
                Job.tenant_id == self._tenant_id, Job.kind == kind, Job.key == key, text(LIVE)
            )
        )

    async def waiting(self, kind: str, key: str | None, *, most: int) -> list[str]:
        """Ids of pending jobs of this kind that are not due yet and wait for further orders alone,
        the next first; with `key` at most its one.
        """
        statement = select(Job.job_id).where(
            Job.tenant_id == self._tenant_id,
            Job.kind == kind,
            Job.status == "pending",
            Job.due_at > func.clock_timestamp(),
            Job.deferred_reason.is_(None),
            Job.attempts == 0,
        )
        if key is not None:
            statement = statement.where(Job.key == key, text(LIVE))
        return list(await self._db.scalars(statement.order_by(Job.due_at).limit(most)))

    async def hasten_deferred(self, reasons: Collection[str]) -> None:
        """Make the pending jobs due that wait for one of these reasons, busy ones too."""
        driver, now = await driver_of(self._db), await clock_of(self._db)
        await driver.execute(HASTEN_DEFERRED, self._tenant_id, list(reasons), now)

    async def hasten(self, job_ids: Sequence[str]) -> None:
        """Make pending jobs due at once, but those that somebody else changes meanwhile."""
        driver = await driver_of(self._db)
        await driver.execute(HASTEN, self._tenant_id, list(job_ids), await clock_of(self._db))

    async def set_lane_order(self, kind: str, key: str, lane_order: datetime) -> None:
        """Give a pending job, if there is one, another place in its lane."""
        await self._db.execute(
            update(Job)
            .where(
                Job.tenant_id == self._tenant_id,
                Job.kind == kind,
                Job.key == key,
                Job.status == "pending",
            )
            .values(lane_order=lane_order)
            .execution_options(synchronize_session=False)
        )

    async def finish(self, job: ClaimedJob, result: dict[str, Any]) -> None:
        """End the run in the transaction of its results, and empty the payload. The job is pending
        again if it was ordered meanwhile.

        Args:
            result: ids, counts and codes; it is shown with the job.

        Raises:
            LeaseLostError: another worker has the job; nothing must be written.

        """
        driver = await driver_of(self._db)
        row = await driver.fetchrow(
            FINISH,
            self._tenant_id,
            job.job_id,
            job.lease_token,
            json.dumps(result),
            await clock_of(self._db),
        )
        if row is None:
            raise LeaseLostError
        await self._free_lane(job.lane)

    async def add_to_payload(self, job: ClaimedJob, values: dict[str, Any]) -> None:
        """Keep something for the next attempt of a running job.

        Raises:
            LeaseLostError: another worker has the job.

        """
        row = await self._db.scalar(
            self._job(job.job_id)
            .where(Job.lease_token == job.lease_token, Job.status == "running")
            .with_for_update()
        )
        if row is None:
            raise LeaseLostError
        await self._change(job.job_id, {"payload": {**row.payload, **values}})

    async def record(self, job: ClaimedJob, verdict: Verdict) -> None:
        """End a run that did not succeed: it is pending again, cancelled, or dead.

        An order made meanwhile is not lost: it joins the job, or becomes a new job when this
        one has ended. A death is published as an event.

        Raises:
            LeaseLostError: another worker has the job.

        """
        await self._lock_session(job.session_id)
        row = await self._db.scalar(
            self._job(job.job_id)
            .where(Job.lease_token == job.lease_token, Job.status == "running")
            .with_for_update()
        )
        if row is None:
            raise LeaseLostError
        now = await clock_of(self._db)
        signals = sorted({*row.signals, *row.again_signals})
        # What was ordered urgently while it ran has not been looked at.
        again = row.again_due_at
        urgent = verdict.outcome == "defer" and again is not None and again <= now
        changes: dict[str, Any] = {
            "status": verdict.status,
            "error_code": verdict.code,
            "error_detail": verdict.detail,
            "deferred_reason": None if urgent else verdict.reason,
            "lease_expires_at": None,
            **_NOT_AGAIN,
        }
        if verdict.status == "pending":
            changes |= {
                "signals": signals,
                "payload": {**row.payload, **(row.again_payload or {})},
                "due_at": now if urgent else verdict.until or now + (verdict.wait or timedelta(0)),
                "attempts": row.attempts - (not verdict.counts),
            }
        else:
            # The last claim only ended the job; it was no attempt.
            attempts = min(row.attempts, row.max_attempts)
            changes |= {"finished_at": now, "attempts": attempts}
            changes |= _emptied(row, verdict.status)
        await self._change(job.job_id, changes)
        await self._free_lane(row.lane)
        if verdict.outcome == "given_back" or urgent:
            await self._wake_workers()
        if verdict.status == "dead" and row.kind not in UNPUBLISHED:
            await self._publish_death(row, verdict)
        if verdict.status != "pending" and row.run_again:
            await self._order_again(row, signals)

    async def _publish_death(self, row: Job, verdict: Verdict) -> None:
        event = Event(
            "job.dead",
            {
                "job_id": row.job_id,
                "kind": row.kind,
                "error_code": verdict.code,
                "attempts": row.attempts,
                "agent_id": row.agent_id,
                "user_id": row.user_id,
                "session_id": row.session_id,
            },
            user_id=row.user_id,
        )
        await OutboxRepository(self._db, self._tenant_id).publish([event])

    async def _order_again(self, row: Job, signals: list[str]) -> None:
        """Make a new job of what was ordered while the ended job ran."""
        await self._db.execute(
            insert(Job).values(
                tenant_id=self._tenant_id,
                job_id=new_id("job"),
                kind=row.kind,
                key=row.key,
                priority=row.priority,
                agent_id=row.agent_id,
                user_id=row.user_id,
                session_id=row.session_id,
                creator=row.creator,
                signals=signals,
                payload=row.again_payload or {},
                lane=row.lane,
                lane_order=row.again_lane_order or row.lane_order,
                due_at=row.again_due_at,
                waiting_since=row.again_since,
                max_attempts=row.max_attempts,
            )
        )

    async def _free_lane(self, lane: str | None, statement: str = FREE_LANE) -> None:
        """Let the next of a lane be claimed; it was no longer looked at."""
        if lane is None:
            return
        driver = await driver_of(self._db)
        await driver.execute(statement, self._tenant_id, lane, await clock_of(self._db))

    async def _change(self, job_id: str, changes: dict[str, Any]) -> None:
        await self._db.execute(
            update(Job)
            .where(Job.tenant_id == self._tenant_id, Job.job_id == job_id)
            .values(**changes)
            .execution_options(synchronize_session=False)
        )

    def _job(self, job_id: str) -> Select[Job]:
        return select(Job).where(Job.tenant_id == self._tenant_id, Job.job_id == job_id)

    async def list_jobs(
        self,
        *,
        kind: str | None = None,
        status: str | None = None,
        user_id: str | None = None,
        agent_id: str | None = None,
        session_id: str | None = None,
        start: tuple[datetime, str] | None = None,
        limit: int = 100,
    ) -> Sequence[Job]:
        """Newest first; one more than `limit` when a page follows."""
        statement = select(Job).where(Job.tenant_id == self._tenant_id)
        for column, value in (
            (Job.kind, kind),
            (Job.status, status),
            (Job.user_id, user_id),
            (Job.agent_id, agent_id),
            (Job.session_id, session_id),
        ):
            if value is not None:
                statement = statement.where(column == value)
        columns = (Job.create_time, Job.job_id)
        rows = await self._db.scalars(
            after(statement, columns, start=start, descending=True, limit=limit)
        )
        return rows.all()

    async def get(self, job_id: str) -> Job:
        """The job.

        Raises:
            JobNotFoundError: the tenant has no such job.

        """
        row = await self._db.scalar(self._job(job_id))
        if row is None:
            raise JobNotFoundError(job_id)
        return row

    async def cancel(self, job_id: str) -> Job:
        """Cancel a job and delete the content in its payload.

        A running job loses its lease: it can commit nothing any more, and its worker stops it
        at the next heartbeat.

        Raises:
            JobNotFoundError: the tenant has no such job.
            JobNotCancellableError: it has ended.

        """
        await self._lock_session((await self.get(job_id)).session_id)
        row = await self._locked(job_id)
        if row.status not in {"pending", "running"}:
            raise JobNotCancellableError(row.status)
        changes = {
            "status": "cancelled",
            "finished_at": await clock_of(self._db),
            "error_code": "cancelled",
            "error_detail": "Somebody cancelled it.",
            "deferred_reason": None,
            "lease_token": None,
            "lease_expires_at": None,
            **_NOT_AGAIN,
            **_emptied(row, "cancelled"),
        }
        await self._change(job_id, changes)
        await self._free_lane(row.lane, FREE_LANE if row.status == "running" else PASS_PLACE_ON)
        if row.run_again:
            # Ordered since it began: this order stays.
            await self._order_again(row, sorted(row.again_signals))
        return await self._read_again(row)

    async def _lock_session(self, session_id: str | None) -> None:
        """Lock the session before its job, as an append does: the other order could deadlock,
        since a new job refers to its session.
        """
        if session_id is not None:
            await self._db.execute(
                text(
                    "SELECT 1 FROM sessions WHERE tenant_id = :tenant_id "
                    "AND session_id = :session_id FOR KEY SHARE"
                ),
                {"tenant_id": self._tenant_id, "session_id": session_id},
            )

    async def retry(self, job_id: str) -> Job:
        """Make a dead or cancelled job pending again, due at once and with all its attempts.

        Raises:
            JobNotFoundError: the tenant has no such job.
            JobNotRetryableError: it has not ended, it succeeded, or its content was deleted.
            JobAlreadyLiveError: another job of its kind and key is live.

        """
        row = await self._locked(job_id)
        if row.status not in {"dead", "cancelled"}:
            raise JobNotRetryableError(row.status)
        if row.result == EMPTIED:
            raise JobNotRetryableError(
                row.status, "What the job was to work on was emptied with it: send it again."
            )
        live = await self._db.scalar(
            select(Job.job_id).where(
                Job.tenant_id == self._tenant_id,
                Job.kind == row.kind,
                Job.key == row.key,
                Job.status.in_(("pending", "running")),
            )
        )
        if live is not None:
            raise JobAlreadyLiveError(live)
        now = await clock_of(self._db)
        changes = {
            "status": "pending",
            "attempts": 0,
            "generation": Job.generation + 1,
            "due_at": now,
            "waiting_since": now,
            "finished_at": None,
            "error_code": None,
            "error_detail": None,
            "lease_token": None,
            "result": None,
        }
        try:
            await self._change(job_id, changes)
        except IntegrityError as error:
            if violated_constraint(error) == "jobs_uk_live":
                # Ordered between the look and the change.
                raise JobAlreadyLiveError(None) from error
            raise
        await self._wake_workers()
        return await self._read_again(row)

    async def _wake_workers(self) -> None:
        await self._db.execute(select(func.pg_notify(CHANNEL, "")))

    async def _locked(self, job_id: str) -> Job:
        """Raises JobNotFoundError."""
        row = await self._db.scalar(self._job(job_id).with_for_update())
        if row is None:
            raise JobNotFoundError(job_id)
        return row

    async def _read_again(self, row: Job) -> Job:
        await self._db.refresh(row)
        return row


def _emptied(row: Job, status: str) -> dict[str, Any]:
    """A cancelled job keeps no content; a dead job does, so that it can be retried."""
    content = CONTENT & row.payload.keys()
    if status != "cancelled" or not content:
        return {}
    left = {name: value for name, value in row.payload.items() if name not in content}
    # Without its body a job cannot run; without a prompt it can.
    return {"payload": left} | ({"result": EMPTIED} if BODY in content else {})
