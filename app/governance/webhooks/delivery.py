"""Sending what the outbox owes: at least once, and never inside a transaction.

An attempt is three steps: one transaction takes a delivery and counts the attempt, the request
goes out, the next writes down what came of it and takes the one after. Whoever dies in between
leaves a delivery that comes round again, with the same event id.
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

from app.governance.webhooks.backoff import GIVE_UP_AFTER, MOST_ATTEMPTS, next_attempt, pause_after
from app.governance.webhooks.repository import (
    ClaimedDelivery,
    DeliveryRepository,
    WebhookDirectory,
    WebhookRepository,
)
from app.governance.webhooks.sender import Result, Sender, signed_headers
from app.governance.webhooks.targets import Targets
from app.platform.database.engine import Database
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.observability.metrics import WEBHOOK_DELIVERIES
from app.platform.outbox.models import Webhook

log = structlog.get_logger()

KIND = "deliver"
AFTER_OTHERS = 50
"""Its priority in the queue: a receiver that hangs must not hold up what is remembered."""
"""Of the jobs; their key is the webhook, so that one worker at a time sends to it."""

LOST_AFTER = timedelta(seconds=30)
"""When an attempt nobody reported on is made again. Longer than any attempt takes."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long an attempt may take, and how long a run goes on before it lets others work."""

    attempt: timedelta = timedelta(seconds=10)
    run: timedelta = timedelta(seconds=10)

    @classmethod
    def within(cls, job_timeout: timedelta) -> "Timeouts":
        """As much as a job may have: the last attempt of a run must end in time."""
        return cls(attempt=min(cls().attempt, job_timeout / 3), run=min(cls().run, job_timeout / 3))


class _Ending(NamedTuple):
    """`delivered`, `failed` or `dead`, and whether that disabled the webhook."""

    outcome: str
    disabled: bool = False


class Deliverer:
    """Sends to one webhook after another, as jobs of the queue ask for it.

    Args:
        trusted: whose certificates are believed.
        chance: a random number from 0 to 1.

    """

    def __init__(
        self,
        database: Database,
        targets: Targets,
        trusted: ssl.SSLContext,
        now: Callable[[], datetime],
        *,
        patience: Timeouts = Timeouts(),
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._database = database
        self._targets = targets
        self._trusted = trusted
        self._now = now
        self._patience = patience
        self._chance = chance

    async def handle(self, job: ClaimedJob) -> dict[str, Any]:
        """The queue's handler of `deliver`."""
        return await self.deliver(job.tenant_id, job.key)

    async def deliver(self, tenant_id: str, webhook_id: str) -> dict[str, int]:
        """Send what is due to one webhook, for a while; how many attempts ended how.

        What is left then, or fails, is due later. A webhook that is disabled, paused or gone
        is sent nothing.
        """
        outcomes: Counter[str] = Counter()
        ends = monotonic() + self._patience.run.total_seconds()
        seconds = self._patience.attempt.total_seconds()
        async with self._database.begin(tenant_id) as db:
            taken = await self._take(DeliveryRepository(db, tenant_id, webhook_id))
        async with Sender.opened(self._targets, self._trusted, seconds=seconds) as sender:
            while taken is not None:
                result = await self._try(sender, taken)
                # One transaction for what came of this one and for the next: half the commits.
                async with self._database.begin(tenant_id) as db:
                    deliveries = DeliveryRepository(db, tenant_id, webhook_id)
                    webhooks = WebhookRepository(db, tenant_id)
                    ending = await self._record(webhooks, deliveries, taken, result)
                    following = await self._take(deliveries) if monotonic() < ends else None
                outcomes[ending.outcome] += 1
                _tell(webhook_id, taken, result, ending)
                taken = following
        return dict(outcomes)

    async def _take(self, deliveries: DeliveryRepository) -> ClaimedDelivery | None:
        now = self._now()
        return await deliveries.take(now, lost_at=now + LOST_AFTER)

    async def _try(self, sender: Sender, taken: ClaimedDelivery) -> Result:
        if taken.attempts > MOST_ATTEMPTS:
            # Each attempt took its worker along, or its report; one more would too.
            return Result("worker_lost")
        if not self._targets.allow_scheme_of(taken.url):
            return Result("address_refused")
        now, body = self._now(), _body(taken.payload)
        keys = [taken.secret, taken.old_secret] if taken.old_secret else [taken.secret]
        headers = {
            "content-type": "application/json",
            "user-agent": "KeMem-Webhooks",
            **signed_headers(keys, event_id=taken.event_id, at=now, body=body),
        }
        return await sender.post(taken.url, body, headers, at=now)

    async def _record(
        self,
        webhooks: WebhookRepository,
        deliveries: DeliveryRepository,
        taken: ClaimedDelivery,
        result: Result,
    ) -> _Ending:
        """Write down what came of an attempt: the webhook first, as a deletion locks them."""
        now = self._now()
        known = {
            "response_status": result.response_status,
            "error_code": result.error_code,
            "duration_ms": result.duration_ms,
        }
        if result.error_code is None:
            if taken.failing:
                await webhooks.note_success(deliveries.webhook_id)
            await deliveries.close(
                taken, status="delivered", delivered_at=now, next_attempt_at=None, **known
            )
            return _Ending("delivered")
        webhook = await webhooks.note_failure(deliveries.webhook_id, now)
        disabled = webhook is not None and _restrain(webhook, result, now)
        again = None
        if not result.gone:
            again = next_attempt(
                taken.attempts, at=now, retry_after=result.retry_after, chance=self._chance()
            )
        status = "dead" if again is None else "pending"
        await deliveries.close(taken, status=status, next_attempt_at=again, **known)
        return _Ending("dead" if again is None else "failed", disabled)


class DeliverySchedule:
    """Finding what is due; every worker may do it."""

    def __init__(self, database: Database, now: Callable[[], datetime]) -> None:
        self._database = database
        self._now = now

    async def schedule_due(self) -> int:
        """Order a job for every webhook that has something to send; how many it were."""
        due = await WebhookDirectory(self._database).due(self._now(), KIND)
        for tenant_id, rows in groupby(due, key=lambda row: str(row["tenant_id"])):
            async with self._database.begin(tenant_id) as db:
                jobs = JobRepository(db, tenant_id)
                for row in rows:
                    await jobs.schedule(Order(KIND, row["webhook_id"], priority=AFTER_OTHERS))
        return len(due)

    async def tick(self) -> None:
        """`schedule_due`, as a Ticker runs it."""
        await self.schedule_due()


def _body(payload: dict[str, Any]) -> bytes:
    """The same bytes each time; PostgreSQL keeps no order of keys."""
    ordered = {name: payload[name] for name in ("id", "type", "create_time", "data")}
    return json.dumps(ordered, ensure_ascii=False, separators=(",", ":")).encode()


def _tell(webhook_id: str, taken: ClaimedDelivery, result: Result, ending: _Ending) -> None:
    WEBHOOK_DELIVERIES.labels(ending.outcome).inc()
    log.info(
        "webhook_attempted",
        webhook_id=webhook_id,
        delivery_id=taken.delivery_id,
        outcome=ending.outcome,
        error_code=result.error_code,
        response_status=result.response_status,
        duration_ms=result.duration_ms,
    )
    if ending.disabled:
        log.warning("webhook_disabled", webhook_id=webhook_id, error_code=result.error_code)


def _restrain(webhook: Webhook, result: Result, now: datetime) -> bool:
    """Leave a locked webhook alone for a while, or for good; whether it is disabled now."""
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
