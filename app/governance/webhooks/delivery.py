"""Sends pending deliveries: at least once, and never inside a transaction.

An attempt has three steps: a transaction claims a delivery and counts the attempt, the request is
sent, and the next transaction stores the result and claims the next delivery. When a worker dies
in between, the delivery is sent again with the same event id.
"""

import json
import random
import ssl
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import groupby
from time import monotonic
from typing import Any, NamedTuple

import structlog

from app.governance.webhooks.repository import (
    ClaimedDelivery,
    DeliveryRepository,
    WebhookDirectory,
    WebhookRepository,
)
from app.governance.webhooks.sender import (
    GIVE_UP_AFTER,
    MOST_ATTEMPTS,
    Result,
    SecretBox,
    Sender,
    next_attempt,
    pause_after,
    signed_headers,
)
from app.governance.webhooks.targets import Targets
from app.platform.database.engine import Database
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.observability.metrics import WEBHOOK_DELIVERIES
from app.platform.outbox.models import Webhook

log = structlog.get_logger()

KIND = "deliver"
"""Of the jobs; their key is the webhook, so that one worker at a time sends to it."""

PRIORITY = 50
"""Below other jobs: a receiver that does not answer must not delay what is remembered."""

LOST_AFTER = timedelta(seconds=30)
"""When an attempt without a result is repeated. Longer than any attempt takes."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long an attempt may take, and after which time a run starts no further attempt."""

    attempt: timedelta = timedelta(seconds=10)
    run: timedelta = timedelta(seconds=10)

    @classmethod
    def within(cls, job_timeout: timedelta) -> "Timeouts":
        """Timeouts that fit into a job's: the last attempt of a run must end in time."""
        return cls(attempt=min(cls().attempt, job_timeout / 3), run=min(cls().run, job_timeout / 3))


class _Ending(NamedTuple):
    """`delivered`, `failed` or `dead`, and whether that disabled the webhook."""

    outcome: str
    disabled: bool = False


class Deliverer:
    """Sends the due deliveries of a webhook; the handler of the jobs `deliver`.

    Args:
        trusted: the certificate authorities.
        chance: a random number from 0 to 1.

    """

    def __init__(
        self,
        database: Database,
        targets: Targets,
        secrets: SecretBox,
        trusted: ssl.SSLContext,
        now: Callable[[], datetime],
        *,
        timeouts: Timeouts = Timeouts(),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._targets = targets
        self._secrets = secrets
        self._trusted = trusted
        self._now = now
        self._timeouts = timeouts
        self._chance = chance

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        """The queue's handler of `deliver`."""
        return await self.deliver(job.tenant_id, job.key)

    async def deliver(self, tenant_id: str, webhook_id: str) -> dict[str, int]:
        """Send what is due to one webhook for `timeouts.run`; numbers of attempts by outcome.

        What remains or fails is due later. Nothing is sent to a webhook that is disabled,
        paused or deleted. Safe to repeat.
        """
        outcomes: Counter[str] = Counter()
        ends = monotonic() + self._timeouts.run.total_seconds()
        seconds = self._timeouts.attempt.total_seconds()
        async with self._database.begin(tenant_id) as db:
            claimed = await self._claim(DeliveryRepository(db, tenant_id, webhook_id))
        async with Sender.opened(self._targets, self._trusted, seconds=seconds) as sender:
            while claimed is not None:
                result = await self._try(sender, claimed)
                # One transaction for this result and for the next claim: half the commits.
                async with self._database.begin(tenant_id) as db:
                    deliveries = DeliveryRepository(db, tenant_id, webhook_id)
                    webhooks = WebhookRepository(db, tenant_id)
                    ending = await self._record(webhooks, deliveries, claimed, result)
                    following = await self._claim(deliveries) if monotonic() < ends else None
                outcomes[ending.outcome] += 1
                _report(webhook_id, claimed, result, ending)
                claimed = following
        return dict(outcomes)

    async def _claim(self, deliveries: DeliveryRepository) -> ClaimedDelivery | None:
        now = self._now()
        return await deliveries.claim(now, lost_at=now + LOST_AFTER)

    async def _try(self, sender: Sender, claimed: ClaimedDelivery) -> Result:
        if claimed.attempts > MOST_ATTEMPTS:
            # No attempt left a result; its worker died each time, and would again.
            return Result("worker_lost")
        if not self._targets.allow_scheme_of(claimed.url):
            return Result("address_refused")
        stored = [secret for secret in (claimed.secret, claimed.old_secret) if secret is not None]
        keys = [key for secret in stored if (key := self._secrets.open(secret)) is not None]
        if not keys:
            return Result("secret_unreadable")
        now, body = self._now(), _body(claimed.payload)
        headers = {
            "content-type": "application/json",
            "user-agent": "KeMem-Webhooks",
            **signed_headers(keys, event_id=claimed.event_id, at=now, body=body),
        }
        return await sender.post(claimed.url, body, headers, at=now)

    async def _record(
        self,
        webhooks: WebhookRepository,
        deliveries: DeliveryRepository,
        claimed: ClaimedDelivery,
        result: Result,
    ) -> _Ending:
        """Store the result of an attempt: the webhook first, in the lock order of a deletion."""
        now = self._now()
        known = {
            "response_status": result.response_status,
            "error_code": result.error_code,
            "duration_ms": result.duration_ms,
        }
        if result.error_code is None:
            if claimed.failing:
                await webhooks.note_success(deliveries.webhook_id)
            await deliveries.close(
                claimed, status="delivered", delivered_at=now, next_attempt_at=None, **known
            )
            return _Ending("delivered")
        webhook = await webhooks.note_failure(deliveries.webhook_id, now)
        disabled = webhook is not None and _restrict(webhook, result, now)
        retry_at = None
        if not result.gone:
            retry_at = next_attempt(
                claimed.attempts, at=now, retry_after=result.retry_after, chance=self._chance()
            )
        status = "dead" if retry_at is None else "pending"
        await deliveries.close(claimed, status=status, next_attempt_at=retry_at, **known)
        return _Ending("dead" if retry_at is None else "failed", disabled)


class DeliverySchedule:
    """Orders jobs for due deliveries; every worker may run it."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def schedule_due(self) -> int:
        """Order a job for every webhook with due deliveries; how many. Safe to repeat."""
        due = await WebhookDirectory(self._database).due(self._now(), KIND)
        for tenant_id, rows in groupby(due, key=lambda row: str(row["tenant_id"])):
            async with self._database.begin(tenant_id) as db:
                jobs = JobRepository(db, tenant_id)
                for row in rows:
                    await jobs.schedule(Order(KIND, row["webhook_id"], priority=PRIORITY))
        return len(due)

    async def tick(self) -> None:
        """`schedule_due`, as a Ticker runs it."""
        await self.schedule_due()


def _body(payload: dict[str, Any]) -> bytes:
    """The same bytes each time: JSONB does not keep the order of keys."""
    ordered = {name: payload[name] for name in ("id", "type", "create_time", "data")}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()


def _report(webhook_id: str, claimed: ClaimedDelivery, result: Result, ending: _Ending) -> None:
    WEBHOOK_DELIVERIES.labels(ending.outcome).inc()
    log.info(
        "webhook_attempted",
        webhook_id=webhook_id,
        delivery_id=claimed.delivery_id,
        outcome=ending.outcome,
        error_code=result.error_code,
        response_status=result.response_status,
        duration_ms=result.duration_ms,
    )
    if ending.disabled:
        log.warning("webhook_disabled", webhook_id=webhook_id, error_code=result.error_code)


def _restrict(webhook: Webhook, result: Result, now: datetime) -> bool:
    """Pause or disable a locked webhook after a failure; whether this disabled it."""
    pause = pause_after(webhook.failures, result.retry_after)
    if pause is not None:
        webhook.paused_until = now + pause
    failing = webhook.failing_since is not None and now - webhook.failing_since >= GIVE_UP_AFTER
    if not webhook.enabled or not (result.gone or failing):
        return False
    webhook.enabled = False
    webhook.disabled_reason = "gone" if result.gone else "failing"
    webhook.version += 1
    return True
