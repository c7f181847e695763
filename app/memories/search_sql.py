"""The hot read: every bucket of a search in one statement, scored and cut by PostgreSQL.

The statement is text, prepared once per connection and run over the driver (`Database.fetch`
in `database/engine.py` frames it with the tenant). Its shape depends on how many models made
vectors, on whether the key is restricted and on the filters, never on values.

Each bucket is an exact scan behind `memories_idx_bucket`: for users of up to some 10,000
memories that is faster than a shared ANN index and loses no row (`design.md` 7). A search
`as_of` a moment reads what was superseded since as well; `timeline_sql.py` has `known_at`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from app.memories.filters import compile_filters
from app.tenants.access import Access

COLUMNS = (
    "memory_id", "content", "memory_type", "attribute", "tier", "scope", "scope_id", "user_id",
    "agent_id", "session_id", "project_id", "source", "source_id", "source_error", "evidence",
    "confidence", "visibility", "status", "superseded_by", "valid_from", "valid_to",
    "expires_at", "external_id", "metadata", "embedding_model", "creator", "use_count",
    "last_used_at", "version", "create_time", "update_time",
)  # fmt: skip

_CURRENT = """memories.status = 'active'
        AND (memories.expires_at IS NULL OR memories.expires_at > now())
        AND (memories.valid_from IS NULL OR memories.valid_from <= now())
        AND (memories.valid_to IS NULL OR memories.valid_to > now())"""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One scope of a search and what a hit in it weighs."""

    scope: str
    scope_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Everything the statement needs to know, resolved and checked.

    Args:
        vectors: by model, the query as a unit vector.
        weights: of similarity, confidence and scope; they sum to 1.
        as_of: what held then, by its time of validity; None is what counts now.
        known_at: by what the records said then; only `timeline_sql.py` asks for it.

    """

    access: Access
    buckets: Sequence[Bucket]
    vectors: Mapping[str, Any]
    user_id: str | None
    agent_id: str | None
    weights: tuple[float, float, float]
    limit: int
    degraded: bool = False
    threshold: float | None = None
    rerank: bool = True
    memory_type: str | None = None
    tier: str | None = None
    filters: Mapping[str, Any] | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """What a search ranks: SQL in which `memories` stands for the state that is judged.

    Args:
        rows: FROM and WHERE.
        place: where a row of `rows` is to be found again, for `fetched`.
        weight: of the bucket it is in.
        model: what made `vector`.
        fetched: the row at `best.place`, with every column of `COLUMNS`.

    """

    rows: str
    place: str = "memories.ctid"
    weight: str = "bucket.weight"
    model: str = "memories.embedding_model"
    vector: str = "memories.embedding"
    fetched: str = """
        SELECT * FROM memories
        WHERE memories.tenant_id = tenant.id AND memories.ctid = best.place"""


class Statement:
    """SQL text and its values; `$1` is the tenant, which the frame around it sets."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def bind(self, value: object, sql_type: str) -> str:
        self.values.append(value)
        return f"CAST(${len(self.values) + 1} AS {sql_type})"


def search_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """Hits, best first: every column of `COLUMNS`, then scope_weight, similarity, score.

    Ties are broken by `update_time`, newest first, then by id.
    """
    statement = Statement()
    return ranked(plan, statement, _source(plan, statement)), statement.values


def waiting_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """How many memories of these buckets another model made, so that nothing compares them."""
    statement = Statement()
    return waiting(plan, statement, _source(plan, statement)), statement.values


def ranked(plan: SearchPlan, statement: Statement, source: Source) -> str:
    """The text of a search in `source`."""
    similarity = _similarity(plan.vectors, statement, source)
    w_similarity, w_confidence, w_scope = (
        statement.bind(weight, "float8") for weight in plan.weights
    )
    kept = (
        f"WHERE candidate.similarity >= {statement.bind(plan.threshold, 'float8')}"
        if plan.threshold is not None
        else ""
    )
    order = "score" if plan.rerank else "similarity"
    columns = ", ".join(f"memories.{name}" for name in COLUMNS)
    # What is sorted is narrow, not whole rows: 1.0 ms instead of 1.5 for a bucket of 1,000.
    # The few that are left are fetched by their place, one by one.
    # OFFSET 0 is a fence: the distance is computed once per row, not once per mention, and
    # the fetching is never turned into a scan of the table.
    return f"""
    SELECT {columns}, best.scope_weight, best.similarity, best.score
    FROM (
        SELECT candidate.*, {w_similarity} * candidate.similarity
            + {w_confidence} * candidate.confidence
            + {w_scope} * candidate.scope_weight AS score
        FROM (
            SELECT {source.place} AS place, memories.memory_id, memories.update_time,
                memories.confidence, {source.weight} AS scope_weight, {similarity} AS similarity
            {source.rows}
            OFFSET 0
        ) AS candidate
        {kept}
        ORDER BY {order} DESC, update_time DESC, memory_id
        LIMIT {statement.bind(plan.limit, "int8")}
    ) AS best
    CROSS JOIN LATERAL ({source.fetched}
        OFFSET 0
    ) AS memories
    ORDER BY best.{order} DESC, best.update_time DESC, best.memory_id
    """


def waiting(plan: SearchPlan, statement: Statement, source: Source) -> str:
    """The text that counts what no vector of the plan compares."""
    models = statement.bind(list(plan.vectors), "text[]")
    return f"SELECT count(*) AS waiting {source.rows} AND {source.model} <> ALL ({models})"


def _source(plan: SearchPlan, statement: Statement) -> Source:
    """Memories of the buckets that the caller may see: those that count now, or then."""
    buckets = bucket_table(plan, statement)
    if plan.as_of is None:
        rows = f"""FROM {buckets}
        JOIN memories ON memories.tenant_id = tenant.id
            AND memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope"""
        conditions = [_CURRENT]
    else:
        once = in_bucket("= 'active'", "IN ('archived', 'superseded')")
        rows = f"""FROM {buckets}
        CROSS JOIN LATERAL ({once}) AS memories"""
        conditions = [held(plan.as_of, statement)]
    conditions += [*whose(plan, statement), *narrowed(plan, statement)]
    return Source(f"{rows}\n        WHERE {' AND '.join(conditions)}")


def bucket_table(plan: SearchPlan, statement: Statement) -> str:
    """The buckets of the plan as the table `bucket`."""
    scopes = statement.bind([bucket.scope for bucket in plan.buckets], "text[]")
    ids = statement.bind([bucket.scope_id for bucket in plan.buckets], "text[]")
    weights = statement.bind([bucket.weight for bucket in plan.buckets], "float8[]")
    return f"unnest({scopes}, {ids}, {weights}) AS bucket(scope, scope_id, weight)"


def in_bucket(*statuses: str) -> str:
    """Rows of a bucket by status, each kind of status behind the partial index that has it.

    Args:
        statuses: conditions without the column; one that no index has alone reads them all.

    """
    return " UNION ALL ".join(
        "SELECT memories.ctid, memories.* FROM memories WHERE memories.tenant_id = tenant.id "
        "AND memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope "
        f"AND memories.status {status}"
        for status in statuses
    )


def held(at: datetime, statement: Statement) -> str:
    """What was true at a moment, as far as `memories` says; `repository.py` has it too.

    What was superseded since still held then, and what has expired since; what somebody
    archived was withdrawn.
    """
    moment = statement.bind(at, "timestamptz")
    return f"""(memories.status IN ('active', 'superseded')
            OR (memories.status = 'archived' AND memories.expires_at <= now()))
        AND (memories.expires_at IS NULL OR memories.expires_at > {moment})
        AND (memories.valid_from IS NULL OR memories.valid_from <= {moment})
        AND (memories.valid_to IS NULL OR memories.valid_to > {moment})"""


def narrowed(plan: SearchPlan, statement: Statement) -> list[str]:
    """What the request asks of a memory."""
    conditions = []
    if plan.memory_type is not None:
        conditions.append(f"memories.memory_type = {statement.bind(plan.memory_type, 'text')}")
    if plan.tier is not None:
        conditions.append(f"memories.tier = {statement.bind(plan.tier, 'text')}")
    if plan.filters:
        conditions.append(f"({compile_filters(plan.filters, statement.bind)})")
    return conditions


def whose(plan: SearchPlan, statement: Statement) -> list[str]:
    """Who may see what, as text; `visibility.py` says the same to SQLAlchemy."""
    conditions = []
    # A session is one person's; a project shows an owner's own items to the owner alone.
    owned = {
        "session": "memories.scope <> 'session'",
        "project": "memories.scope <> 'project' OR memories.visibility <> 'owner_only'",
    }
    asked = [owned[bucket.scope] for bucket in plan.buckets if bucket.scope in owned]
    if plan.user_id is not None and asked:
        user = statement.bind(plan.user_id, "text")
        conditions += [f"({open_to_all} OR memories.user_id = {user})" for open_to_all in asked]
    if plan.agent_id is not None:
        agent = statement.bind(plan.agent_id, "text")
        conditions.append(f"(memories.agent_id IS NULL OR memories.agent_id = {agent})")
    if plan.access.agent_id is not None:
        home = statement.bind(plan.access.agent_id, "text")
        conditions.append(
            "(memories.scope = 'agent' "
            "OR (memories.scope = 'project' AND memories.visibility <> 'owner_only') "
            "OR EXISTS (SELECT 1 FROM users WHERE "
            "users.tenant_id = tenant.id AND users.user_id = memories.user_id "
            f"AND users.agent_id = {home}))"
        )
    return conditions


def _similarity(vectors: Mapping[str, Any], statement: Statement, source: Source) -> str:
    """Cosine, 0 to 1 (B-20b). Stored and query vectors are unit vectors, so it is their
    inner product; vectors of different models are never compared.
    """
    if not vectors:
        return "CAST(0 AS float8)"
    cases = " ".join(
        f"WHEN {statement.bind(model, 'text')} THEN "
        f"-({source.vector} <#> {statement.bind(vector, 'vector')})"
        for model, vector in vectors.items()
    )
    return f"greatest(0, least(1, coalesce(CASE {source.model} {cases} END, 0)))"
