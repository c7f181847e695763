"""The statement that makes an automatic checkpoint and deletes those beyond the limit.

One constant text for the driver (`docs/decisions/0022`): every sixth message of a session makes
one, and building the three statements took as long as all else of the append.
"""

from typing import Final

LISTED: Final = 100
"""Most waiting calls that a checkpoint lists, as many as a request may give."""

AUTOMATIC_CHECKPOINTS: Final = 50
"""Most automatic checkpoints of a session; those that a caller asked for are not limited."""

PERIODIC_CHECKPOINTS: Final = 10
"""Of these, most that were made as messages came. A crash goes back to the newest; more of them
would leave no room for those that stand before a compaction or a restore."""

# The parts of one statement do not see what the others write: of those that are there already, one
# fewer stays than may.
ADD_AUTOMATIC: Final = f"""
WITH waiting AS (
    SELECT a.call, a.sequence_no, a.approval_id
    FROM approvals AS a JOIN sessions AS s ON s.tenant_id = $1 AND s.session_id = a.session_id
    WHERE a.tenant_id = $1 AND a.session_id = $2 AND a.status = 'pending' AND a.expires_at > $7
        AND NOT a.sequence_no <@ s.set_aside
        AND NOT EXISTS (
            SELECT 1 FROM messages AS m
            WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.tool_call_id = a.tool_call_id
                AND m.sequence_no > a.sequence_no AND NOT m.sequence_no <@ s.set_aside
        )
    ORDER BY a.sequence_no DESC, a.approval_id DESC LIMIT {LISTED}
), made AS (
    INSERT INTO checkpoints (tenant_id, checkpoint_id, session_id, reason, creator, message_seq,
        set_aside, in_context_from, summary_ids, contents, state, state_version, size_bytes)
    SELECT CAST($1 AS text), CAST($3 AS text), s.session_id, CAST($4 AS text), CAST($5 AS text),
        s.last_sequence_no, s.set_aside, s.in_context_from, s.summary_ids, kept.contents,
        kept.state, kept.version,
        octet_length(CAST(kept.contents AS text)) + octet_length(CAST(kept.state AS text))
    FROM sessions AS s
    LEFT JOIN session_states AS w ON w.tenant_id = $1 AND w.session_id = s.session_id
    CROSS JOIN LATERAL (
        SELECT coalesce(w.state, '{{}}') AS state, coalesce(w.version, 0) AS version,
            CAST($6 AS jsonb) || jsonb_build_object('pending_tool_calls', (
                SELECT coalesce(jsonb_agg(call ORDER BY sequence_no, approval_id), '[]')
                FROM waiting
            )) AS contents
    ) AS kept
    WHERE s.tenant_id = $1 AND s.session_id = $2
        AND (s.last_sequence_no > 0 OR kept.state <> '{{}}' OR $4 = 'before_restore')
    RETURNING checkpoint_id
), old AS (
    SELECT c.checkpoint_id FROM checkpoints AS c
    WHERE c.tenant_id = $1 AND c.session_id = $2 AND c.reason <> 'manual'
        AND (c.reason = 'periodic') = ($4 = 'periodic') AND c.checkpoint_id <> $8
    ORDER BY c.create_time DESC, c.checkpoint_id DESC
    OFFSET CASE $4 WHEN 'periodic' THEN {PERIODIC_CHECKPOINTS} ELSE {AUTOMATIC_CHECKPOINTS} END - 1
), pruned AS (
    DELETE FROM checkpoints AS c
    WHERE c.tenant_id = $1 AND c.session_id = $2 AND EXISTS (SELECT 1 FROM made)
        AND c.checkpoint_id IN (SELECT checkpoint_id FROM old)
        AND NOT EXISTS (
            SELECT 1 FROM checkpoints AS child
            WHERE child.tenant_id = $1 AND child.session_id = $2
                AND child.parent_id = c.checkpoint_id
        )
)
SELECT checkpoint_id FROM made
"""
"""`$1` and `$2` name the session, `$3` the checkpoint, `$4` is its reason, `$5` who made it, `$6`
are its other contents, `$7` is the time, `$8` a checkpoint that stays. Answers with nothing for a
session in which nothing has happened."""
