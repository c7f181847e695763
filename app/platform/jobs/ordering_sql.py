"""Pieces of the statements that order work and finish it: constant texts, prepared once."""

from app.platform.jobs.models import LANE_BUSY, LIVE
from app.platform.jobs.orders import CHANNEL

# `$10` are the signals, `$11` the payload, `$12` the delay, `$13` the longest wait, `$15`
# whether the order is urgent, `$16` the lane, `$17` the place in it. `{now}` is PostgreSQL's
# clock, since those of servers and workers differ: never later than the time at which a worker
# can first see the row. An INSERT reads it among the values of the new row, and the change of a
# live one takes it from there; everywhere else it is a parameter.
#
# A due job stays due, so later orders do not delay an urgent one. A job that waits for a quota or
# after a failure keeps its time.
_JOINED = """
    signals = CASE
        WHEN j.status = 'running' OR CAST($10 AS varchar[]) <@ j.signals THEN j.signals
        ELSE ARRAY(SELECT DISTINCT unnest(j.signals || CAST($10 AS varchar[])) ORDER BY 1) END,
    payload = CASE WHEN j.status = 'running' THEN j.payload
        ELSE j.payload || CAST($11 AS jsonb) END,
    priority = least(j.priority, CAST($5 AS smallint)),
    agent_id = coalesce($6, j.agent_id),
    user_id = coalesce($7, j.user_id),
    session_id = coalesce($8, j.session_id),
    creator = coalesce($9, j.creator),
    lane = CASE WHEN j.status = 'running' THEN j.lane ELSE coalesce($16, j.lane) END,
    lane_order = CASE WHEN j.status = 'running' THEN j.lane_order
        ELSE least(j.lane_order, $17) END,
    due_at = CASE
        WHEN j.status = 'running' THEN j.due_at
        WHEN CAST($15 AS boolean) THEN least(j.due_at, {now})
        WHEN j.deferred_reason IS NOT NULL OR j.due_at <= {now} THEN j.due_at
        ELSE least({now} + CAST($12 AS interval), j.waiting_since + CAST($13 AS interval)) END,
    deferred_reason = CASE WHEN j.status = 'running' OR NOT CAST($15 AS boolean)
        THEN j.deferred_reason END,
    run_again = j.status = 'running',
    again_since = CASE WHEN j.status = 'running' THEN coalesce(j.again_since, {now}) END,
    again_signals = CASE WHEN j.status = 'running'
        THEN ARRAY(SELECT DISTINCT unnest(j.again_signals || CAST($10 AS varchar[])) ORDER BY 1)
        ELSE j.again_signals END,
    again_payload = CASE WHEN j.status = 'running'
        THEN coalesce(j.again_payload, '{{}}') || CAST($11 AS jsonb) END,
    again_lane_order = CASE WHEN j.status = 'running' THEN least(j.again_lane_order, $17) END,
    again_due_at = CASE
        WHEN j.status <> 'running' THEN NULL
        WHEN CAST($15 AS boolean) THEN least(j.again_due_at, {now})
        WHEN j.again_due_at <= {now} THEN j.again_due_at
        ELSE least({now} + CAST($12 AS interval),
            coalesce(j.again_since, {now}) + CAST($13 AS interval)) END
"""

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
DO UPDATE SET {_JOINED.format(now="excluded.waiting_since")} {_TOLD}
"""
"""Makes a job, or joins the live one; told apart by the id, `$2` being the new one's."""

POSTPONE = f"""
UPDATE jobs AS j SET {_JOINED.format(now="CAST($18 AS timestamptz)")}
WHERE j.tenant_id = $1 AND j.kind = $3 AND j.key = $4 AND {LIVE}
    AND CAST($2 AS text) IS NOT NULL AND CAST($14 AS smallint) IS NOT NULL {_TOLD}
"""
"""Joins the live job, when there is one; takes what ORDER takes, and the time."""

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
