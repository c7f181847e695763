"""The two statements of a save, as the driver sends them: all it reads, and all it writes.

Both are constant texts, prepared once per connection (`docs/decisions/0022`). The bucket's lock is
held before the first of them is sent: the snapshot of a statement is taken before the statement
itself could wait for a lock.
"""

from functools import cache
from typing import Final

from sqlalchemy.dialects.postgresql.base import PGDialect

from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.memory.memories.record_repository import NOT_IN_HISTORY
from app.memory.memories.validity_sql import counts_now
from app.memory.memories.visibility_sql import visible_text
from app.platform.jobs.ordering_sql import order_many
from app.platform.outbox.repository import SUBSCRIBED

KEPT: Final = tuple(
    column.name for column in Memory.__table__.columns if column.name not in NOT_IN_HISTORY
)
"""Columns that the history keeps of a memory: a new one is written as its history has it."""

_BUCKET = """memories.tenant_id = $1 AND memories.status = 'active'
    AND memories.scope_id = $5 AND memories.scope = $4
    AND memories.user_id IS NOT DISTINCT FROM $6 AND memories.agent_id IS NOT DISTINCT FROM $7"""

# The user and the agent are locked as the foreign keys would do it later: jobs are ordered in
# the same statement as the rows are written, and an erasure locks the user before the jobs.
_READ = """
WITH person AS (
    SELECT users.agent_id, users.status FROM users
    WHERE users.tenant_id = $1 AND users.user_id = CAST($6 AS text)
        AND (CAST($2 AS text) IS NULL OR users.agent_id = $2)
        AND (CAST($3 AS text) IS NULL OR users.user_id = $3)
    FOR KEY SHARE
), named AS (
    SELECT agents.status, agents.memory_enabled FROM agents
    WHERE agents.tenant_id = $1 AND agents.agent_id = CAST($7 AS text)
        AND (CAST($2 AS text) IS NULL OR agents.agent_id = $2)
    FOR KEY SHARE
), home AS (
    SELECT agents.status, agents.memory_enabled FROM agents
    WHERE agents.tenant_id = $1 AND agents.agent_id = (SELECT agent_id FROM person)
        AND CAST($7 AS text) IS NULL
), subscribed AS ({subscribed}), asked AS MATERIALIZED (
    SELECT place, floor, vector
    FROM unnest(CAST($9 AS vector[]), CAST($10 AS float8[])) WITH ORDINALITY
        AS given(vector, floor, place)
), near AS (
    SELECT asked.place, nearest.memory_id, nearest.content, nearest.similarity
    FROM asked CROSS JOIN LATERAL (
        SELECT memories.memory_id, memories.content,
            -(memories.embedding <#> asked.vector) AS similarity
        FROM memories
        WHERE {bucket} AND {counts_now} AND ({visible}) AND memories.embedding_model = $11
        ORDER BY similarity DESC LIMIT $12
    ) AS nearest
    WHERE nearest.similarity >= asked.floor
)
SELECT now() AS now,
    (CAST($6 AS text) IS NULL OR EXISTS (SELECT 1 FROM person WHERE status <> 0))
    AND (coalesce($6, $7) IS NULL OR EXISTS (
        SELECT 1 FROM (SELECT * FROM named UNION ALL SELECT * FROM home) AS agent
        WHERE status <> 0 AND memory_enabled)) AS owner_is_there,
    EXISTS (SELECT 1 FROM tenants
        WHERE tenants.tenant_id = $1 AND $11 = ANY (tenants.embedding_models)) AS model_is_noted,
    EXISTS (SELECT 1 FROM memories
        WHERE {bucket} AND memories.content_hash = ANY (CAST($8 AS bytea[]))) AS text_is_known,
    (SELECT json_agg(near ORDER BY place, similarity DESC) FROM near) AS near,
    (SELECT json_agg(subscribed ORDER BY webhook_id) FROM subscribed) AS subscribed
"""


@cache
def _read(visible: str) -> str:
    return _READ.format(
        subscribed=SUBSCRIBED,
        bucket=_BUCKET,
        counts_now=counts_now("memories"),
        visible=visible,
    )


def read_statement(access: Access) -> str:
    """What decides about the statements of a request, in one row.

    `$1` to `$3` are the tenant, agent and user of the key, `$4` to `$7` the scope, its id, the user
    and the agent of the memories, `$8` hashes of texts, `$9` vectors, `$10` the least
    similarity for each, `$11` their model, `$12` how many neighbours each may have.
    """
    return _read(visible_text(access))


_DIALECT: Final = PGDialect()  # type: ignore[no-untyped-call] # not annotated there
_MEMORY = ", ".join(
    f'"{name}" {Memory.__table__.columns[name].type.compile(dialect=_DIALECT)}' for name in KEPT
)
_KEPT = ", ".join(f'"{name}"' for name in KEPT)

BESIDE: Final = {
    "content_hash": "text", "term_count": "smallint", "word_count": "smallint",
    "is_question": "boolean", "has_time": "boolean", "analyser": "smallint", "history_id": "text",
}  # fmt: skip
"""Of each memory what its history does not keep, the hash in hexadecimal digits. As arrays the
driver would look at each value three times."""

_BESIDE: Final = ", ".join(f"{name} {kind}" for name, kind in BESIDE.items())

_VERDICT: Final = {
    "decision_id": "text", "verdict": "text", "codes": "varchar[]", "reasons": "jsonb",
    "content": "text", "user_id": "text", "agent_id": "text", "session_id": "text",
    "project_id": "text", "scope": "text", "memory_id": "text", "source": "text", "event": "text",
    "evidence": "varchar[]", "actor": "text", "request": "jsonb",
}  # fmt: skip

WRITE: Final = f"""
WITH saved AS (
    INSERT INTO memories (tenant_id, {_KEPT}, content_hash, embedding, terms, term_count,
        word_count, is_question, has_time, analyser)
    SELECT CAST($1 AS text), {_KEPT}, decode(content_hash, 'hex'), vector, terms, term_count,
        word_count, is_question, has_time, analyser
    FROM ROWS FROM (
        jsonb_to_recordset(CAST($2 AS jsonb)) AS ({_MEMORY}),
        json_to_recordset(CAST(CAST($3 AS text) AS json)) AS ({_BESIDE}),
        unnest(CAST($4 AS vector[]), CAST($5 AS sparsevec[]))
    ) AS memory({_KEPT}, {", ".join(BESIDE)}, vector, terms)
    RETURNING memory_id, metadata
), noted AS (
    INSERT INTO memory_history (tenant_id, history_id, memory_id, user_id, event, actor, after,
        version)
    SELECT CAST($1 AS text), history_id, after ->> 'memory_id', after ->> 'user_id', 'ADD', $6,
        after, CAST(after ->> 'version' AS bigint)
    FROM ROWS FROM (
        jsonb_array_elements(CAST($2 AS jsonb)),
        json_to_recordset(CAST(CAST($3 AS text) AS json)) AS (history_id text)
    ) AS entry(after, history_id)
), decided AS (
    INSERT INTO gate_decisions (tenant_id, {", ".join(_VERDICT)})
    SELECT CAST($1 AS text), {", ".join(_VERDICT)}
    FROM jsonb_to_recordset(CAST($7 AS jsonb))
        AS verdict({", ".join(f"{name} {kind}" for name, kind in _VERDICT.items())})
), {order_many("$8", "$9")}
SELECT CAST(json_object_agg(memory_id, metadata) AS text) FROM saved WHERE metadata <> '{{}}'
"""
"""Writes memories with their history, the gate's verdicts and orders of jobs.

`$2` are the memories as the history keeps them, `$3` what is `BESIDE` it, `$4` their vectors, `$5`
their terms, `$6` who saves, `$7` the verdicts, `$8` the orders, `$9` when the transaction began.
Answers with metadata as PostgreSQL has them, by id.
"""
