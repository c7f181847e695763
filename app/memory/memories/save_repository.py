"""What a save reads and writes: two statements, whatever the number of memories, as the driver
sends them.

Both are constant texts, prepared once per connection (`docs/decisions/0022`). The bucket's lock is
held before the first of them is sent: the snapshot of a statement is taken before the statement
itself could wait for a lock.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Final

from pydantic_core import from_json, to_json
from sqlalchemy.dialects.postgresql.base import PGDialect
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.text.offload import read_text
from app.memory.memories.candidates import NEIGHBOURS, Neighbour, SaveCandidate
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.record_repository import KEPT, without_null
from app.memory.memories.searchable import characters, row_terms
from app.memory.memories.validity_sql import counts_now
from app.memory.memories.visibility_sql import visible_text
from app.platform.database.base import new_id, vectors_bytes
from app.platform.database.engine import driver_of
from app.platform.jobs.ordering_sql import order_many
from app.platform.jobs.orders import Order
from app.platform.outbox.repository import SUBSCRIBED, Subscription

_BUCKET = """memories.tenant_id = $1 AND memories.status = 'active'
    AND memories.scope_id = $5 AND memories.scope = $4
    AND memories.user_id IS NOT DISTINCT FROM $6 AND memories.agent_id IS NOT DISTINCT FROM $7"""

_NEAR_ONE = """
    SELECT asked.place, memories.memory_id, memories.content,
        -(memories.embedding <#> asked.vector) AS similarity
    FROM asked CROSS JOIN memories
    WHERE {compared} AND -(memories.embedding <#> asked.vector) >= asked.floor
    ORDER BY similarity DESC LIMIT $12"""

# OFFSET keeps PostgreSQL from reading the bucket once for each text, or from putting it aside. To
# one text it adds half of its price.
_NEAR_MANY = """
    SELECT ranked.place, memories.memory_id, memories.content, ranked.similarity FROM (
        SELECT nearby.place, memories.memory_id, nearby.similarity,
            row_number() OVER (PARTITION BY place ORDER BY similarity DESC) AS rank
        FROM memories CROSS JOIN LATERAL (
            SELECT asked.place, -(memories.embedding <#> asked.vector) AS similarity
            FROM asked WHERE -(memories.embedding <#> asked.vector) >= asked.floor OFFSET 0
        ) AS nearby
        WHERE {compared}
    ) AS ranked
    JOIN memories ON memories.tenant_id = $1 AND memories.memory_id = ranked.memory_id
    WHERE ranked.rank <= $12"""

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
), near AS ({near}
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
def _read(visible: str, near: str) -> str:
    compared = (
        f"{_BUCKET} AND {counts_now('memories')} AND ({visible}) AND memories.embedding_model = $11"
    )
    return _READ.format(subscribed=SUBSCRIBED, bucket=_BUCKET, near=near.format(compared=compared))


def read_statement(access: Access, texts: int) -> str:
    """What decides about the statements of a request, in one row; `texts` are compared.

    `$1` to `$3` are the tenant, agent and user of the key, `$4` to `$7` the scope, its id, the user
    and the agent of the memories, `$8` hashes of texts, `$9` vectors, `$10` the least
    similarity for each, `$11` their model, `$12` how many neighbours each may have.
    """
    return _read(visible_text(access), _NEAR_ONE if texts < 2 else _NEAR_MANY)


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

`$2` are the memories as the history keeps them, without what is null, `$3` what is `BESIDE` it,
`$4` their vectors, `$5` their terms, `$6` who saves, `$7` the verdicts, `$8` the orders, `$9` when
the transaction began.
Answers with metadata as PostgreSQL has them, by id.
"""


_FIRST: Final[dict[str, Any]] = dict.fromkeys(KEPT) | {
    "status": "active",
    "evidence": [],
    "metadata": {},
    "version": 1,
}
"""A new memory where nothing is given."""

_TIMES: Final = ("valid_from", "valid_to", "expires_at", "said_at")
"""Columns of KEPT that a new memory may have a time in, besides those of the row."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored already and decides about the statements of a request.

    Args:
        now: when the transaction began.
        owner_is_there: user and agent exist, are visible to the caller and may be written to;
            sessions and projects are not looked at.
        model_is_noted: the tenant has noted the model of the vectors.
        text_is_known: an active memory of the bucket has one of the texts.
        near: by index of the statement what is near enough to be a duplicate, nearest first.
        subscriptions: enabled webhooks, locked against deletion.

    """

    now: datetime
    owner_is_there: bool
    model_is_noted: bool
    text_is_known: bool
    near: Mapping[int, Sequence[Neighbour]]
    subscriptions: Sequence[Subscription]


class SaveRepository:
    """Memories that are saved. Never begins or ends a transaction; call it under the bucket's
    lock.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def read(
        self,
        owner: MemoryOwner,
        batch: Sequence[SaveCandidate],
        model: str,
        floors: Sequence[float],
    ) -> Stored:
        """What is stored that decides about `batch`, in one statement.

        Args:
            owner: names the bucket; what the caller may not see is never near.
            batch: with vectors of `model`.
            floors: the least similarity for each; none looks for nothing near.

        """
        compared = batch[: len(floors)]
        row = await (await driver_of(self._db)).fetchrow(
            read_statement(self._access, len(compared)),
            self._access.tenant_id,
            self._access.agent_id,
            self._access.user_id,
            owner.scope,
            owner.scope_id,
            owner.user_id,
            owner.agent_id,
            [candidate.content_hash for candidate in batch],
            vectors_bytes([candidate.vector for candidate in compared]),
            list(floors),
            model,
            NEIGHBOURS,
        )
        near: dict[int, list[Neighbour]] = {}
        for each in row["near"] or ():
            found = near.setdefault(compared[each["place"] - 1].index, [])
            found.append((each["memory_id"], each["content"], float(each["similarity"])))
        return Stored(
            row["now"],
            row["owner_is_there"],
            row["model_is_noted"],
            row["text_is_known"],
            near,
            [Subscription(each["webhook_id"], each["events"]) for each in row["subscribed"] or ()],
        )

    async def write(
        self,
        rows: Sequence[Mapping[str, Any]],
        verdicts: Sequence[Mapping[str, Any]],
        orders: Sequence[Order],
        *,
        actor: str,
        now: datetime,
    ) -> list[dict[str, Any]]:
        """Store new memories with their history, verdicts and orders of jobs, in one statement.

        Args:
            rows: values by column, of what the history keeps, and `content_hash`, `embedding`.
            now: when the transaction began.

        Returns:
            The memories as the history keeps them, in order.

        """
        at = _in_utc(now)
        kept = [_kept(row, at) for row in rows]
        beside = await read_text(characters(rows), _beside, rows)
        terms = [each.pop("terms").to_binary() for each in beside]
        found = await (await driver_of(self._db)).fetchval(
            WRITE,
            self._access.tenant_id,
            to_json([without_null(each) for each in kept]).decode(),
            to_json(beside, bytes_mode="hex").decode(),
            vectors_bytes([row["embedding"] for row in rows]),
            terms,
            actor,
            to_json(verdicts).decode(),
            to_json([order.row(new_id("job")) for order in orders]).decode(),
            now,
        )
        metadata = from_json(found or "{}")
        return [one | {"metadata": metadata.get(one["memory_id"], {})} for one in kept]


def _kept(row: Mapping[str, Any], now: str) -> dict[str, Any]:
    values = _FIRST | {name: row[name] for name in KEPT if name in row}
    values |= {"create_time": now, "update_time": now}
    for name in _TIMES:
        if values[name] is not None:
            values[name] = _in_utc(values[name])
    return values


def _in_utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _beside(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is `BESIDE` the memories in the statement, and their terms: all that is read of them."""
    return [
        row_terms(row["content"], row["metadata"], row["valid_from"], row["said_at"])
        | {"content_hash": row["content_hash"], "history_id": new_id("his")}
        for row in rows
    ]
