"""The statement that a context begins with: all that belongs to the session.

Session, agent and user, profiles, working state, summaries and blocks, and as much of the window
as the budget can hold; `Database.fetch` frames it with the tenant. Its cost follows from the budget
and never from the length of the session.
"""

from typing import Final

from app.conversation.messages.window_sql import recount, tail_rows, waiting_calls
from app.conversation.sessions.jobs import COMPACT
from app.conversation.sessions.policy import CARRIED_SHARE
from app.memory.profiles.repository import SHOWN
from app.platform.database.base import ids_array
from app.platform.jobs.models import LIVE
from app.prompting.blocks.repository import IN_CONTEXT

_BUDGET: Final = "size.budget"
_HERE: Final = {"tenant": "tenant.id", "session": "session"}
_INSTRUCTIONS: Final = "size.instructions"

_BLOCKS: Final = IN_CONTEXT.format(
    tenant="tenant.id",
    agent="session.agent_id",
    user="session.user_id",
    session="session.session_id",
)
_TAIL: Final = tail_rows(
    **_HERE,
    budget=_BUDGET,
    instructions=_INSTRUCTIONS,
    held="size.held",
)

_USER: Final = SHOWN.format(
    tenant="tenant.id", agent="session.agent_id", column="user_id", owner="session.user_id"
)
_PROJECT: Final = SHOWN.format(
    tenant="tenant.id", agent="session.agent_id", column="project_id", owner="session.project_id"
)

# OFFSET 0 is a fence: no table is read before the row that sets the tenant, since row-level
# security shows nothing until then.
CONTEXT: Final = f"""
SELECT session.session_id, session.agent_id, session.user_id, session.project_id,
    session.context, session.window_policy AS session_policy, session.forked_from,
    session.injection_enabled AS session_injects, session.in_context_from, session.last_user_seq,
    session.window_tokens, session.window_messages, session.token_scale, session.summary_tokens,
    agent.window_policy AS agent_policy, agent.injection_enabled AS agent_injects,
    -- Older releases took anything under this name.
    CASE WHEN jsonb_typeof(agent.config->'system_prompt') = 'string'
    THEN agent.config->>'system_prompt' END AS agent_prompt,
    person.user_name, person.profile,
    -- An agent's key sees what is known of those users that it is the home of.
    CASE WHEN CAST($3 AS text) IS NULL OR person.agent_id = CAST($3 AS text)
    THEN ({_USER}) END AS user_profile,
    ({_PROJECT}) AS project_profile,
    -- An older release has appended without counting.
    CASE WHEN session.window_seq < session.last_sequence_no THEN (
        SELECT to_jsonb(counted) FROM ({recount(**_HERE, instructions=_INSTRUCTIONS)}) AS counted
    ) END AS counted,
    (SELECT kept.state FROM session_states AS kept
     WHERE kept.tenant_id = tenant.id AND kept.session_id = session.session_id) AS state,
    -- The user is a member, and an agent's key sees those members that it is the home of.
    EXISTS (
        SELECT 1 FROM project_members AS member
        WHERE member.tenant_id = tenant.id AND member.project_id = session.project_id
            AND member.user_id = session.user_id
    ) AND (CAST($3 AS text) IS NULL OR person.agent_id = CAST($3 AS text)) AS in_project,
    ARRAY(
        SELECT summary.content
        FROM unnest(session.summary_ids) WITH ORDINALITY AS present(summary_id, ordinal)
        JOIN session_summaries AS summary ON summary.tenant_id = tenant.id
            AND summary.summary_id = present.summary_id
        ORDER BY present.ordinal
    ) AS summaries,
    (SELECT jobs.job_id FROM jobs
     WHERE jobs.tenant_id = tenant.id AND jobs.kind = '{COMPACT}'
        AND jobs.key = session.session_id AND {LIVE}) AS compaction_job,
    (SELECT json_agg(block) FROM ({_BLOCKS}) AS block) AS blocks,
    (SELECT json_agg(tail) FROM ({_TAIL}) AS tail) AS tail,
    {waiting_calls(**_HERE)} AS waiting
FROM (
    SELECT * FROM sessions
    WHERE sessions.tenant_id = tenant.id AND sessions.session_id = CAST($2 AS text)
        AND (CAST($3 AS text) IS NULL OR sessions.agent_id = CAST($3 AS text))
        AND (CAST($4 AS text) IS NULL OR sessions.user_id = CAST($4 AS text))
    OFFSET 0
) AS session
CROSS JOIN LATERAL (
    SELECT * FROM agents
    WHERE agents.tenant_id = tenant.id AND agents.agent_id = session.agent_id OFFSET 0
) AS agent
CROSS JOIN LATERAL (
    SELECT * FROM users
    WHERE users.tenant_id = tenant.id AND users.user_id = session.user_id OFFSET 0
) AS person
CROSS JOIN LATERAL (
    SELECT said.budget, said.budget * CAST($7 AS int8) AS held,
        CAST(floor({CARRIED_SHARE} * said.budget) AS int8) AS instructions
    FROM (SELECT coalesce(CAST($5 AS int8),
        CAST(session.window_policy->>'budget_tokens' AS int8),
        CAST(agent.window_policy->>'budget_tokens' AS int8), CAST($6 AS int8)) AS budget) AS said
    OFFSET 0
) AS size
"""
"""`$2` the session, `$3` and `$4` the agent and the user whose key it is, `$5` the budget of the
request and `$6` that of the deployment, `$7` to how many times the budget results
of tools are read.
"""

_SESSIONS: Final = ids_array("$2")
_MEMORIES: Final = ids_array("$3")


def _note_shown(passing: str) -> str:
    """What was shown before is written again after a while only: a conversation shows much the same
    memories at every turn. Ended sessions and memories may be gone by now.

    Args:
        passing: over locked rows. Whoever holds one may want a memory that is held here.

    """
    return f"""
WITH shown AS (
    SELECT * FROM unnest({_SESSIONS}, {_MEMORIES}, CAST({ids_array("$4")} AS timestamptz[]))
        AS shown(session_id, memory_id, at)
), held_sessions AS MATERIALIZED (
    SELECT sessions.session_id FROM sessions
    WHERE sessions.tenant_id = $1 AND sessions.session_id = ANY ({_SESSIONS})
    ORDER BY sessions.session_id FOR KEY SHARE {passing}
), held_memories AS MATERIALIZED (
    SELECT memories.memory_id FROM memories
    WHERE memories.tenant_id = $1 AND memories.memory_id = ANY ({_MEMORIES})
        AND memories.status <> 'deleted'
    ORDER BY memories.memory_id FOR KEY SHARE {passing}
), noted AS (
    INSERT INTO context_injections AS known (tenant_id, session_id, memory_id, first_at, last_at)
    SELECT $1, shown.session_id, shown.memory_id, shown.at, shown.at
    FROM shown
    JOIN held_sessions ON held_sessions.session_id = shown.session_id
    JOIN held_memories ON held_memories.memory_id = shown.memory_id
    ORDER BY shown.session_id, shown.memory_id
    ON CONFLICT (tenant_id, session_id, memory_id) DO UPDATE SET last_at = excluded.last_at
    WHERE known.last_at < excluded.last_at - interval '1 hour'
)
SELECT shown.session_id, shown.memory_id
FROM shown
JOIN sessions ON sessions.tenant_id = $1 AND sessions.session_id = shown.session_id
JOIN memories ON memories.tenant_id = $1 AND memories.memory_id = shown.memory_id
    AND memories.status <> 'deleted'
WHERE NOT EXISTS (SELECT FROM held_sessions AS held WHERE held.session_id = shown.session_id)
    OR NOT EXISTS (SELECT FROM held_memories AS held WHERE held.memory_id = shown.memory_id)
"""


NOTE_SHOWN: Final = _note_shown("SKIP LOCKED")
"""Notes which memories a context shows in which session: `$2` the sessions, `$3` the memories, `$4`
when, each as `joined_ids`, of the tenant `$1`. Answers the pairs that somebody changes just now:
they are not noted.
"""

NOTE_SHOWN_AT_LAST: Final = _note_shown("")
"""The same, waiting for those who change them."""

_CONTEXTS: Final = """
    jsonb_to_recordset(CAST(CAST($2 AS text) AS jsonb)) AS shown(
        session_id text, content_sha256 text, memory_ids text[], passage_ids text[],
        message_ids text[], tokens int8, memory_tokens int8, beside_tokens int8, at timestamptz,
        first_at timestamptz
    )
"""

# A session that is being changed is passed over: its next context says it again.
NOTE_CONTEXTS: Final = f"""
WITH noted AS (
    INSERT INTO injected_contexts AS known (tenant_id, session_id, content_sha256, memory_ids,
        passage_ids, message_ids, tokens, memory_tokens, first_at, last_at)
    SELECT $1, shown.session_id, shown.content_sha256, shown.memory_ids,
        shown.passage_ids, shown.message_ids, shown.tokens, shown.memory_tokens,
        coalesce(shown.first_at, shown.at), shown.at
    FROM {_CONTEXTS}
    JOIN sessions ON sessions.tenant_id = $1 AND sessions.session_id = shown.session_id
    ORDER BY shown.session_id, shown.content_sha256
    ON CONFLICT (tenant_id, session_id, content_sha256) DO UPDATE SET last_at = excluded.last_at
    WHERE known.last_at < excluded.last_at
)
UPDATE sessions SET beside_tokens = sent.beside_tokens, memory_tokens = sent.memory_tokens
FROM (
    SELECT known.session_id, last.beside_tokens, last.memory_tokens
    FROM sessions AS known
    JOIN (
        SELECT DISTINCT ON (shown.session_id) shown.*
        FROM {_CONTEXTS} ORDER BY shown.session_id, shown.at DESC
    ) AS last ON last.session_id = known.session_id
    WHERE known.tenant_id = $1 AND (known.beside_tokens, known.memory_tokens)
        IS DISTINCT FROM (last.beside_tokens, last.memory_tokens)
    ORDER BY known.session_id FOR NO KEY UPDATE OF known SKIP LOCKED
) AS sent
WHERE sessions.tenant_id = $1 AND sessions.session_id = sent.session_id
"""
"""Notes which contents contexts had, what was put into them, and what the last context of each
session had besides messages and summaries: `$2` the contexts as JSON, of the tenant `$1`.
"""
