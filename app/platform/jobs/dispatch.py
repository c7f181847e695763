"""Finding, claiming and keeping jobs across tenants, as `kemem_dispatch`: one statement each.

That role sees when a job is due and who holds it, never its content. The content is read
afterwards, as the job's tenant. A notification only saves waiting: a job that was not notified
is found by the next look.

These statements read the clock themselves: leases of all workers are measured by PostgreSQL's
clock, and asking for it first would cost a round trip each. They go across tenants, so no node of
a cluster could run them alone in any case.
"""

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Literal

import asyncpg
import structlog

from app.platform.database.engine import Database
from app.platform.database.roles import DISPATCH
from app.platform.jobs.models import LANE_BUSY
from app.platform.jobs.orders import CHANNEL, ClaimedJob
from app.platform.observability.spans import CARRIED

log = structlog.get_logger()
CONNECT_SECONDS = 10
PAUSE_SECONDS = 1.0

PROBES = 256
"""Most groups of one tenant and priority that one claim looks at: 2 ms when none is due."""

LANE_LOOK = 100
"""Most due jobs of a lane that one claim looks at; with more, it puts so many behind and looks
again."""

LANE_PAUSE = "5 minutes"
"""How long a job stays behind when nothing ends in its lane, as when the row there was deleted."""

# The walk goes from tenant to tenant by one index probe each, a loose index scan, from the
# one after `$1` around to that one again. It ends when as many groups with due work are found
# as there is room for, so a backlog, of one tenant or of many, is never read as a whole.
# A tenant's own share is read to a depth that leaves something for this worker when others
# hold locks on the first of it. Rows are locked one at a time, in turns: the first of each
# tenant, then the second; leases that ran out go before all others.
#
# A job that has a lane only shows that its lane has due work; the first of the lane is offered in
# its place. The others get LANE_BUSY and a later time, once each, so that of a lane with a long
# backlog the next claims read nothing. They are put behind a job that this claim starts or keeps
# from ending, because the end brings the next one forward. Two claims at once may see different
# jobs first in a free lane: the unique index refuses the second, which then looks again. There,
# `coalesce` hides that the row is in the partial indexes: without statistics, PostgreSQL read all
# pending jobs of the tenant for each row (0.4 s for 100 of 10,000, else 13 ms).
CLAIM = f"""
WITH RECURSIVE walk AS (
    SELECT CAST($1 AS text) COLLATE "C" AS tenant_id, CAST(32767 AS smallint) AS priority,
        CAST(NULL AS timestamptz) AS due_at, false AS wrapped, 0 AS step, 0 AS found
    UNION ALL
    SELECT step.tenant_id, step.priority, step.due_at, step.wrapped, walk.step + 1,
        walk.found + CAST(step.due_at <= now() AND step.tenant_id <> ALL ($7) AS integer)
    FROM walk CROSS JOIN LATERAL (
        (SELECT tenant_id, priority, due_at, walk.wrapped FROM jobs
        WHERE status = 'pending' AND (tenant_id, priority) > (walk.tenant_id, walk.priority)
        ORDER BY tenant_id, priority, due_at LIMIT 1)
        UNION ALL
        (SELECT tenant_id, priority, due_at, true FROM jobs
        WHERE status = 'pending' AND NOT walk.wrapped
        ORDER BY tenant_id, priority, due_at LIMIT 1)
        LIMIT 1
    ) AS step
    WHERE walk.step < {PROBES} AND walk.found < $2
        AND NOT (step.wrapped AND step.tenant_id > $1)
), candidates AS (
    (SELECT tenant_id, job_id, CAST(NULL AS varchar) AS lane, 0 AS turn, 0 AS step FROM jobs
    WHERE status = 'running' AND lease_expires_at < now() AND kind = ANY ($5)
        AND lease_token <> ALL ($9)
    LIMIT 4 * $2 + 8)
    UNION ALL
    SELECT walk.tenant_id, due.job_id, due.lane,
        row_number() OVER (PARTITION BY walk.tenant_id ORDER BY walk.priority, due.due_at),
        walk.step
    FROM walk CROSS JOIN LATERAL (
        SELECT job_id, due_at, lane FROM jobs
        WHERE tenant_id = walk.tenant_id AND priority = walk.priority AND status = 'pending'
            AND due_at <= now() AND kind = ANY ($5)
        ORDER BY due_at LIMIT 4 * $2 + 8
    ) AS due
    WHERE walk.due_at <= now() AND walk.tenant_id <> ALL ($7)
), lanes AS (
    SELECT tenant_id, lane, min(turn) AS turn, min(step) AS step, EXISTS (
        SELECT FROM jobs WHERE tenant_id = candidates.tenant_id AND lane = candidates.lane
            AND status = 'running'
    ) AS busy
    FROM candidates WHERE lane IS NOT NULL GROUP BY tenant_id, lane
), in_lanes AS (
    SELECT lanes.*, due.job_id, due.behind, due.number,
        row_number() OVER (PARTITION BY lanes.tenant_id, lanes.lane
            ORDER BY due.lane_order, due.job_id) AS place,
        max(due.number) OVER (PARTITION BY lanes.tenant_id, lanes.lane) > {LANE_LOOK} AS more
    FROM lanes CROSS JOIN LATERAL (
        (SELECT job_id, lane_order, false AS behind, row_number() OVER (ORDER BY due_at) AS number
        FROM jobs WHERE tenant_id = lanes.tenant_id AND lane = lanes.lane AND status = 'pending'
            AND due_at <= now() AND kind = ANY ($5)
        ORDER BY due_at LIMIT {LANE_LOOK} + 1)
        UNION ALL
        (SELECT job_id, lane_order, true, 0 FROM jobs
        WHERE tenant_id = lanes.tenant_id AND lane = lanes.lane AND status = 'pending'
            AND deferred_reason = '{LANE_BUSY}' AND due_at > now() AND kind = ANY ($5)
        ORDER BY lane_order, job_id LIMIT 1)
    ) AS due
), offered AS (
    SELECT tenant_id, job_id, lane, turn, step FROM candidates WHERE lane IS NULL
    UNION ALL
    SELECT tenant_id, job_id, lane, turn, step FROM in_lanes
    WHERE place = 1 AND NOT busy AND NOT more
), locked AS (
    SELECT one.*, offer.lane, offer.turn, offer.step
    FROM (SELECT * FROM offered ORDER BY turn, step) AS offer CROSS JOIN LATERAL (
        SELECT tenant_id, job_id FROM jobs
        WHERE tenant_id = offer.tenant_id AND job_id = offer.job_id
            AND (status = 'pending' AND (due_at <= now() OR deferred_reason = '{LANE_BUSY}')
                OR status = 'running' AND lease_expires_at < now())
        FOR UPDATE SKIP LOCKED
    ) AS one
    LIMIT $2
), chosen AS (
    SELECT tenant_id, job_id, lane FROM (
        SELECT tenant_id, job_id, lane,
            row_number() OVER (PARTITION BY tenant_id ORDER BY turn, step) AS place
        FROM locked
    ) AS mine
    WHERE place <= $6 - coalesce(CAST(CAST($8 AS jsonb) ->> mine.tenant_id AS integer), 0)
), taken AS (
    UPDATE jobs SET status = 'running', attempts = attempts + 1, worker = $4,
        lease_token = replace(CAST(gen_random_uuid() AS text), '-', ''),
        lease_expires_at = now() + CAST($3 AS interval), started_at = now(),
        deferred_reason = NULL
    FROM chosen WHERE jobs.tenant_id = chosen.tenant_id AND jobs.job_id = chosen.job_id
    RETURNING jobs.tenant_id, jobs.job_id, jobs.lease_token
), ahead AS (
    SELECT tenant_id, lane, job_id FROM chosen WHERE lane IS NOT NULL
    UNION ALL
    SELECT lanes.tenant_id, lanes.lane, running.job_id FROM lanes CROSS JOIN LATERAL (
        SELECT job_id FROM jobs
        WHERE tenant_id = lanes.tenant_id AND lane = lanes.lane AND status = 'running'
        FOR SHARE SKIP LOCKED
    ) AS running
), put_behind AS (
    UPDATE jobs SET due_at = now() + interval '{LANE_PAUSE}', deferred_reason = '{LANE_BUSY}'
    FROM (
        SELECT jobs.tenant_id, jobs.job_id
        FROM in_lanes LEFT JOIN ahead USING (tenant_id, lane) CROSS JOIN LATERAL (
            SELECT tenant_id, job_id FROM jobs
            WHERE tenant_id = in_lanes.tenant_id AND job_id = in_lanes.job_id
                AND coalesce(status, '') = 'pending' AND due_at <= now()
            FOR UPDATE SKIP LOCKED
        ) AS jobs
        WHERE NOT in_lanes.behind AND in_lanes.job_id IS DISTINCT FROM ahead.job_id
            AND (ahead.job_id IS NOT NULL OR in_lanes.more AND in_lanes.number <= {LANE_LOOK})
    ) AS later
    WHERE jobs.tenant_id = later.tenant_id AND jobs.job_id = later.job_id
    RETURNING jobs.job_id
)
SELECT taken.*, place.*
FROM (
    SELECT (SELECT tenant_id FROM walk ORDER BY step DESC LIMIT 1) AS last_tenant,
        (SELECT max(step) FROM walk) AS steps,
        (SELECT max(found) FROM walk) AS found,
        (SELECT extract(epoch FROM min(due_at) - now()) FROM walk WHERE due_at > now())
            AS next_due,
        (SELECT count(*) FROM candidates) AS candidates,
        (SELECT count(*) FROM locked) AS locked,
        (SELECT count(*) FROM put_behind) AS put_behind
) AS place LEFT JOIN taken ON true
"""

# A row that somebody else has locked this moment is left for the next time, not waited for:
# behind it all other leases would run out. The lease is lost when its row is gone, or is
# another's by now; a row that is over but still carries the token was ended by its handler.
EXTEND = """
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[]) AS a(tenant_id, job_id, lease_token)
), extended AS (
    UPDATE jobs SET lease_expires_at = now() + CAST($4 AS interval)
    FROM (
        SELECT jobs.tenant_id, jobs.job_id FROM asked CROSS JOIN LATERAL (
            SELECT tenant_id, job_id FROM jobs
            WHERE tenant_id = asked.tenant_id AND job_id = asked.job_id
                AND lease_token = asked.lease_token AND status = 'running'
            FOR NO KEY UPDATE SKIP LOCKED
        ) AS jobs
    ) AS held
    WHERE jobs.tenant_id = held.tenant_id AND jobs.job_id = held.job_id
)
SELECT asked.lease_token FROM asked
WHERE NOT EXISTS (
    SELECT FROM jobs WHERE jobs.tenant_id = asked.tenant_id AND jobs.job_id = asked.job_id
        AND jobs.lease_token = asked.lease_token
)
"""

# What was ordered again meanwhile is not for this role to read, so such a row is left alone, and
# so is one that has a lane, where the end brings another job forward.
FINISH_MANY = """
WITH asked AS (
    SELECT * FROM unnest($1::text[], $2::text[], $3::text[], $4::jsonb[])
        AS a(tenant_id, job_id, lease_token, result)
), held AS (
    SELECT mine.*, asked.result FROM asked CROSS JOIN LATERAL (
        SELECT tenant_id, job_id FROM jobs
        WHERE tenant_id = asked.tenant_id AND job_id = asked.job_id
            AND lease_token = asked.lease_token AND status = 'running' AND NOT run_again
            AND lane IS NULL
        FOR UPDATE SKIP LOCKED
    ) AS mine
), finished AS (
    UPDATE jobs SET status = 'succeeded', payload = '{}', result = held.result,
        finished_at = now(), lease_expires_at = NULL, error_code = NULL, error_detail = NULL
    FROM held WHERE jobs.tenant_id = held.tenant_id AND jobs.job_id = held.job_id
    RETURNING jobs.lease_token
)
SELECT asked.lease_token, CASE
    WHEN EXISTS (SELECT FROM finished WHERE finished.lease_token = asked.lease_token)
        THEN 'finished'
    ELSE (
        SELECT CASE WHEN jobs.status = 'running' THEN 'held' ELSE 'ended' END
        FROM jobs WHERE jobs.tenant_id = asked.tenant_id AND jobs.job_id = asked.job_id
            AND jobs.lease_token = asked.lease_token
    ) END AS state
FROM asked
"""

_DETAILS = """
SELECT job_id, lease_token, kind, key, agent_id, user_id, session_id, creator, signals, payload,
    attempts, max_attempts, generation, due_at, waiting_since, create_time, started_at, lane
FROM jobs WHERE tenant_id = tenant.id AND job_id = ANY ($2) AND status = 'running'
"""

FinishState = Literal["finished", "held", "ended"]
"""Of a job whose handler returned: over now; still running, to be finished as its tenant; or
ended by its handler already."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A lease, before what it is for was read."""

    tenant_id: str
    job_id: str
    lease_token: str


@dataclass(frozen=True, slots=True)
class Round:
    """What one walk over the tenants brought.

    Args:
        again: whether there may be more that is due right now.
        next_due: how long until the next work seen is due; None when none was seen.

    """

    claims: Sequence[Claim]
    again: bool
    next_due: timedelta | None


class Dispatch:
    """The queue as one worker sees it. Keeps its place in the circle of tenants."""

    def __init__(
        self,
        database: Database,
        *,
        kinds: Sequence[str],
        worker: str,
        lease: timedelta,
        per_tenant: int,
    ) -> None:
        """Args: per_tenant: most jobs of one tenant that this worker runs at a time."""
        self._database = database
        self._kinds = list(kinds)
        self._worker = worker
        self._lease = lease
        self._per_tenant = per_tenant
        self._last_tenant = ""

    async def claim(self, free: int, running: Mapping[str, int], held: Sequence[str] = ()) -> Round:
        """Lease up to `free` due jobs, beginning after the tenant served last.

        An attempt counts from here on, so a job that kills its worker dies too: a claim with
        more attempts than it may have is there to be buried.

        Args:
            running: how many jobs of which tenant this worker runs.
            held: tokens of leases it keeps; while the database was away they ran out, and
                still it must not take over its own work.

        """
        try:
            rows = await self._database.look_up(
                CLAIM,
                self._last_tenant,
                free,
                self._lease,
                self._worker,
                self._kinds,
                self._per_tenant,
                [tenant for tenant, count in running.items() if count >= self._per_tenant],
                json.dumps(dict(running)),
                list(held),
                # Claimed twice, the first leases would lie idle until they run out.
                repeatable=False,
            )
        except asyncpg.UniqueViolationError:
            # Another claim has just started another job of a lane: nothing was leased here.
            return Round((), again=True, next_due=None)
        place = rows[0]
        self._last_tenant = place["last_tenant"]
        claims = [
            Claim(row["tenant_id"], row["job_id"], row["lease_token"])
            for row in rows
            if row["job_id"] is not None
        ]
        broken_off = place["steps"] >= PROBES or place["found"] >= free or place["put_behind"] > 0
        outrun = place["candidates"] > 0 and place["locked"] == 0
        seconds = place["next_due"]
        return Round(
            claims,
            again=len(claims) < free and (broken_off or outrun),
            next_due=None if seconds is None else timedelta(seconds=float(seconds)),
        )

    async def read(self, claims: Sequence[Claim]) -> list[ClaimedJob]:
        """The claimed jobs; without those whose row was deleted meanwhile."""
        by_tenant: dict[str, dict[str, Claim]] = {}
        for claim in claims:
            by_tenant.setdefault(claim.tenant_id, {})[claim.job_id] = claim
        found = await asyncio.gather(
            *(self._read(tenant_id, wanted) for tenant_id, wanted in by_tenant.items())
        )
        return [job for jobs in found for job in jobs]

    async def _read(self, tenant_id: str, wanted: Mapping[str, Claim]) -> list[ClaimedJob]:
        rows = await self._database.fetch(tenant_id, _DETAILS, list(wanted))
        return [
            _claimed(tenant_id, dict(row))
            for row in rows
            if row["lease_token"] == wanted[row["job_id"]].lease_token
        ]

    async def extend(self, jobs: Sequence[ClaimedJob]) -> set[str]:
        """Extend the leases by their length; the tokens of those that are lost."""
        rows = await self._database.look_up(EXTEND, *_names(jobs), self._lease)
        return {row["lease_token"] for row in rows}

    async def finish(
        self, done: Sequence[tuple[ClaimedJob, str | None]]
    ) -> dict[str, FinishState | None]:
        """End the runs whose handlers returned, with their results as JSON.

        Returns:
            The state by token, None when the job was lost.

        """
        names = _names([job for job, _ in done])
        rows = await self._database.look_up(FINISH_MANY, *names, [result for _, result in done])
        return {row["lease_token"]: row["state"] for row in rows}


def _names(jobs: Sequence[ClaimedJob]) -> tuple[list[str], list[str], list[str]]:
    return (
        [job.tenant_id for job in jobs],
        [job.job_id for job in jobs],
        [job.lease_token for job in jobs],
    )


def _claimed(tenant_id: str, row: dict[str, Any]) -> ClaimedJob:
    signals = frozenset(row.pop("signals"))
    payload = dict(row.pop("payload"))
    traceparent = payload.pop(CARRIED, None)
    return ClaimedJob(
        tenant_id=tenant_id, signals=signals, payload=payload, traceparent=traceparent, **row
    )


class Listener:
    """A connection that waits for NOTIFY, opened again whenever it is lost."""

    def __init__(self, dsn: str) -> None:
        self._dsn = dsn

    async def listen(self, wake: Callable[[], None]) -> None:
        """Call `wake` for every notification, and once when some may have been missed. Never
        returns.
        """
        while True:
            try:
                await self._listen(wake)
            except (OSError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
                log.debug("job_listener_failed", error=type(error).__name__)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _listen(self, wake: Callable[[], None]) -> None:
        connection = await asyncpg.connect(
            self._dsn,
            timeout=CONNECT_SECONDS,
            command_timeout=CONNECT_SECONDS,
            server_settings={"application_name": "kemem-listener"},
        )
        gone = asyncio.Event()
        try:
            connection.add_termination_listener(lambda _connection: gone.set())
            await connection.execute(f"SET ROLE {DISPATCH}")
            await connection.add_listener(CHANNEL, lambda *_notification: wake())
            wake()
            await gone.wait()
        finally:
            connection.terminate()
