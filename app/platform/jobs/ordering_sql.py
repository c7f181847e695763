"""Pieces of the statements that order work and finish it: constant texts, prepared once."""

import json
import re
from functools import cache

from app.platform.jobs.models import LANE_BUSY, LIVE
from app.platform.jobs.orders import CHANGED, CHANNEL, Order
from app.platform.observability.spans import carried

# `{signals}` to `{order}` are of the order that joins a live job `j`, `{longest}` is its longest
# wait, `{urgent}` whether it is urgent, `{order}` its place in the lane. `{now}` is PostgreSQL's
# clock, since those of servers and workers differ: never later than the time at which a worker
# can first see the row. An INSERT reads it among the values of the new row, and the change of a
# live one takes it from there; everywhere else it is a parameter.
#
# A due job stays due, so later orders do not delay an urgent one, and a job of what changed is not
# delayed by what is new. A job that waits for a quota or after a failure keeps its time.
_JOINED = """
    signals = CASE
        WHEN j.status = 'running' OR {signals} <@ j.signals THEN j.signals
        ELSE ARRAY(SELECT DISTINCT unnest(j.signals || {signals}) ORDER BY 1) END,
    payload = CASE WHEN j.status = 'running' THEN j.payload ELSE j.payload || {payload} END,
    priority = least(j.priority, {priority}),
    agent_id = coalesce({agent_id}, j.agent_id),
    user_id = coalesce({user_id}, j.user_id),
    session_id = coalesce({session_id}, j.session_id),
    creator = coalesce({creator}, j.creator),
    lane = CASE WHEN j.status = 'running' THEN j.lane ELSE coalesce({lane}, j.lane) END,
    lane_order = CASE WHEN j.status = 'running' THEN j.lane_order
        ELSE least(j.lane_order, {order}) END,
    due_at = CASE
        WHEN j.status = 'running' THEN j.due_at
        WHEN {urgent} THEN least(j.due_at, {now})
        WHEN j.deferred_reason IS NOT NULL OR j.due_at <= {now} THEN j.due_at
        WHEN '{changed}' = ANY (j.signals) AND NOT '{changed}' = ANY ({signals}) THEN j.due_at
        ELSE least({now} + {delay}, j.waiting_since + {longest}) END,
    deferred_reason = CASE WHEN j.status = 'running' OR NOT {urgent}
        THEN j.deferred_reason END,
    run_again = j.status = 'running',
    again_since = CASE WHEN j.status = 'running' THEN coalesce(j.again_since, {now}) END,
    again_signals = CASE WHEN j.status = 'running'
        THEN ARRAY(SELECT DISTINCT unnest(j.again_signals || {signals}) ORDER BY 1)
        ELSE j.again_signals END,
    again_payload = CASE WHEN j.status = 'running'
        THEN coalesce(j.again_payload, '{{}}') || {payload} END,
    again_lane_order = CASE WHEN j.status = 'running' THEN least(j.again_lane_order, {order}) END,
    again_due_at = CASE
        WHEN j.status <> 'running' THEN NULL
        WHEN {urgent} THEN least(j.again_due_at, {now})
        WHEN j.again_due_at <= {now} THEN j.again_due_at
        WHEN '{changed}' = ANY (j.again_signals) AND NOT '{changed}' = ANY ({signals})
            THEN j.again_due_at
        ELSE least({now} + {delay}, coalesce(j.again_since, {now}) + {longest}) END
"""

_GIVEN = {
    "changed": CHANGED,
    "signals": "CAST($10 AS varchar[])",
    "payload": "CAST($11 AS jsonb)",
    "priority": "CAST($5 AS smallint)",
    "agent_id": "$6",
    "user_id": "$7",
    "session_id": "$8",
    "creator": "$9",
    "lane": "$16",
    "order": "$17",
    "delay": "CAST($12 AS interval)",
    "longest": "CAST($13 AS interval)",
    "urgent": "CAST($15 AS boolean)",
}

# NOTIFY takes a lock of the whole cluster while its transaction commits, so only urgent
# orders pay for it; other work is found when it is due.
_TOLD = f"""
RETURNING j.job_id, j.status, CASE WHEN j.status = 'running' THEN j.again_due_at ELSE j.due_at END
    AS due_at, CASE WHEN CAST($15 AS boolean) AND j.status = 'pending'
    THEN pg_notify('{CHANNEL}', '') END
"""

ORDER = f"""
INSERT INTO jobs AS j (tenant_id, job_id, kind, key, priority, agent_id, user_id, session_id,
    creator, signals, payload, due_at, waiting_since, max_attempts, lane, lane_order)
VALUES ($1, $2, $3, $4, CAST($5 AS smallint), $6, $7, $8, $9, CAST($10 AS varchar[]),
    CAST($11 AS jsonb), now() + least(CAST($12 AS interval), CAST($13 AS interval)), now(),
    CAST($14 AS smallint), CAST($16 AS varchar), CAST($17 AS timestamptz))
ON CONFLICT (tenant_id, kind, key) WHERE {LIVE}
DO UPDATE SET {_JOINED.format(now="excluded.waiting_since", **_GIVEN)} {_TOLD}
"""
"""Makes a job, or joins the live one; told apart by the id, `$2` being the new one's."""

_OF_ROW = {
    "changed": CHANGED,
    "now": "excluded.waiting_since",
    "signals": "excluded.signals",
    "payload": "excluded.payload",
    "priority": "excluded.priority",
    "agent_id": "excluded.agent_id",
    "user_id": "excluded.user_id",
    "session_id": "excluded.session_id",
    "creator": "excluded.creator",
    "lane": "excluded.lane",
    "order": "excluded.lane_order",
    "delay": "(SELECT asked.delay FROM asked WHERE asked.job_id = excluded.job_id)",
    "longest": "(SELECT asked.longest FROM asked WHERE asked.job_id = excluded.job_id)",
    "urgent": "false",
}


def order_many(orders: str, now: str) -> str:
    """Two parts of a WITH that order what nobody waits for, as ORDER does, sorted by kind and key.

    Args:
        orders: the parameter with a list of `Order.row`, as JSON.
        now: the parameter with the time at which the transaction began.

    """
    return f"""asked AS MATERIALIZED (
    SELECT * FROM jsonb_to_recordset(CAST({orders} AS jsonb)) AS asked(job_id text, kind text,
        key text, priority smallint, agent_id text, user_id text, session_id text, creator text,
        signals varchar[], payload jsonb, delay interval, longest interval, max_attempts smallint,
        lane text, lane_order timestamptz)
), ordered AS (
    INSERT INTO jobs AS j (tenant_id, job_id, kind, key, priority, agent_id, user_id, session_id,
        creator, signals, payload, due_at, waiting_since, max_attempts, lane, lane_order)
    SELECT CAST($1 AS text), job_id, kind, key, priority, agent_id, user_id, session_id, creator,
        signals, payload, CAST({now} AS timestamptz) + least(delay, longest),
        CAST({now} AS timestamptz), max_attempts, lane, lane_order
    FROM asked ORDER BY kind, key
    ON CONFLICT (tenant_id, kind, key) WHERE {LIVE}
    DO UPDATE SET {_JOINED.format(**_OF_ROW)}
)"""


POSTPONE = f"""
UPDATE jobs AS j SET {_JOINED.format(now="CAST($18 AS timestamptz)", **_GIVEN)}
WHERE j.tenant_id = $1 AND j.kind = $3 AND j.key = $4 AND {LIVE}
    AND CAST($2 AS text) IS NOT NULL AND CAST($14 AS smallint) IS NOT NULL {_TOLD}
"""
"""Joins the live job, when there is one; takes what ORDER takes, and the time."""


HASTEN = f"""
UPDATE jobs SET due_at = least(due_at, CAST($3 AS timestamptz))
WHERE tenant_id = $1 AND job_id IN (
    SELECT job_id FROM jobs
    WHERE tenant_id = $1 AND job_id = ANY(CAST($2 AS text[])) AND status = 'pending'
    ORDER BY job_id FOR UPDATE SKIP LOCKED
)
RETURNING pg_notify('{CHANNEL}', '')
"""
"""Makes pending jobs due at once; it waits for nobody who changes one."""


HASTEN_DEFERRED = f"""
WITH deferred AS MATERIALIZED (
    SELECT job_id FROM jobs
    WHERE tenant_id = $1 AND deferred_reason = ANY(CAST($2 AS text[])) AND status = 'pending'
    ORDER BY kind, key FOR UPDATE
)
UPDATE jobs SET due_at = least(due_at, CAST($3 AS timestamptz))
WHERE tenant_id = $1 AND job_id IN (SELECT job_id FROM deferred) AND status = 'pending'
RETURNING pg_notify('{CHANNEL}', '')
"""
"""Makes the pending jobs due that were put off for one of these reasons. Jobs are locked in the
order in which ORDER locks them."""

_BEGUN = """tenant_id = $1 AND started_at <= CAST($3 AS timestamptz) AND (
    status = 'running'
        AND (again_due_at IS NULL OR again_due_at > CAST($3 AS timestamptz))
    OR status = 'pending' AND deferred_reason = ANY(CAST($2 AS text[]))
        AND due_at > CAST($3 AS timestamptz))"""

HASTEN_BEGUN = f"""
WITH begun AS MATERIALIZED (
    SELECT job_id FROM jobs WHERE {_BEGUN}
), free AS MATERIALIZED (
    SELECT job_id FROM jobs WHERE {_BEGUN} FOR UPDATE SKIP LOCKED
), hastened AS (
    UPDATE jobs SET
        due_at = CASE WHEN status = 'pending' THEN CAST($3 AS timestamptz) ELSE due_at END,
        again_due_at = CASE WHEN status = 'running' THEN CAST($3 AS timestamptz) END
    WHERE tenant_id = $1 AND job_id IN (SELECT job_id FROM free)
    RETURNING job_id, CASE WHEN status = 'pending' THEN pg_notify('{CHANNEL}', '') END
)
SELECT count(*) FROM begun WHERE job_id NOT IN (SELECT job_id FROM hastened)
"""
"""Has runs that began by `$3` look again at once if they are put off, of whatever kind they are and
for whatever reason, and makes those due that were put off for one of these reasons meanwhile. How
many of them somebody else changes and are left. It waits for nobody: what ends a run orders other
jobs before it changes its own row, so there is no order in which to wait for both."""


def parameters_of(order: Order, tenant_id: str, job_id: str) -> list[object]:
    """The parameters of ORDER, and all but the time of POSTPONE."""
    return [
        tenant_id,
        job_id,
        order.kind,
        order.key,
        order.priority,
        order.agent_id,
        order.user_id,
        order.session_id,
        order.creator,
        sorted(order.signals),
        json.dumps({**order.payload, **carried()}),
        order.delay,
        order.longest,
        order.max_attempts,
        order.delay.total_seconds() <= 0,
        order.lane,
        order.lane_order,
    ]


@cache
def numbered_from(first: int, statement: str) -> str:
    """A statement with its parameters numbered from `first`, to be a part of a larger one."""
    return re.sub(r"\$(\d+)", lambda number: f"${int(number[1]) + first - 1}", statement)


FINISH = f"""
UPDATE jobs AS j SET
    status = CASE WHEN run_again THEN 'pending' ELSE 'succeeded' END,
    generation = generation + CAST(run_again AS integer),
    attempts = CASE WHEN run_again THEN 0 ELSE attempts END,
    signals = CASE WHEN run_again THEN again_signals ELSE signals END,
    payload = CASE WHEN run_again THEN coalesce(again_payload, '{{}}') ELSE '{{}}' END,
    due_at = CASE WHEN run_again THEN again_due_at ELSE due_at END,
    waiting_since = CASE WHEN run_again THEN again_since ELSE waiting_since END,
    lane_order = CASE WHEN run_again THEN coalesce(again_lane_order, lane_order)
        ELSE lane_order END,
    finished_at = CASE WHEN run_again THEN NULL ELSE CAST($5 AS timestamptz) END,
    run_again = false, again_due_at = NULL, again_since = NULL, again_signals = '{{}}',
    again_payload = NULL, again_lane_order = NULL, deferred_reason = NULL, lease_expires_at = NULL,
    error_code = NULL, error_detail = NULL, result = CAST($4 AS jsonb)
WHERE j.tenant_id = $1 AND j.job_id = $2 AND j.lease_token = $3 AND j.status = 'running'
RETURNING CASE WHEN j.status = 'pending' AND j.due_at <= CAST($5 AS timestamptz)
    THEN pg_notify('{CHANNEL}', '') END
"""
"""Ends a run: over, or pending again when it was ordered meanwhile. Its payload goes either way."""

_FIRST_BEHIND = f"""
UPDATE jobs SET due_at = CAST($3 AS timestamptz), deferred_reason = NULL
WHERE tenant_id = $1 AND job_id = (
    SELECT job_id FROM jobs
    WHERE tenant_id = $1 AND lane = $2 AND status = 'pending' AND deferred_reason = '{LANE_BUSY}'
    ORDER BY lane_order, job_id LIMIT 1 {{lock}}
)
RETURNING pg_notify('{CHANNEL}', '')
"""

FREE_LANE = _FIRST_BEHIND.format(lock="FOR UPDATE")
"""Lets claims see the first that waits for its lane, after the job that ran there has changed: a
claim that put others behind it kept it from ending meanwhile. So it is a statement of its own."""

PASS_PLACE_ON = _FIRST_BEHIND.format(lock="FOR UPDATE SKIP LOCKED")
"""The same for a job that never began: two of a lane may end so at once, and wait for nobody."""
