"""The search of what was known at a time, as one statement: slower than the plain search.

Which memories exist and who may see them is read from the current table; what each of them said is
read from its history. So a deleted memory never comes back, and a caller
reads nothing of the past that it may not read now.
"""

from collections.abc import Sequence
from datetime import datetime

from app.language.ranking.packing import INDEX_COLUMNS as WORDS
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Column, SearchStatement
from app.memory.memories.bucket_sql import OF_BUCKET, in_bucket, some, valid_at
from app.memory.memories.comparison_sql import Source
from app.memory.memories.search_sql import (
    COLUMNS,
    LOOKED_AT,
    SearchPlan,
    bucket_table,
    features,
    narrowed,
    ranked,
    waiting,
    whose,
)
from app.memory.memories.validity_sql import COMPUTED, shown_columns

# How often a memory was found is not in the history; the present value is shown.
_NOT_OF_THEN = ("use_count", "last_used_at")

_STORED = tuple(name for name in COLUMNS if name not in COMPUTED)

_LISTED = ", ".join(f"history.{name}" for name in WORDS)
_OF_THEN = ", ".join(
    f"CASE WHEN replaced.embedding_model IS NULL THEN present.{name} "
    f"ELSE replaced.{name} END AS {name}"
    for name in WORDS
)

STATE = "jsonb_populate_record(CAST(NULL AS memories), {snapshot})"
"""A snapshot of the history as a row of the table; what it does not hold is null."""


def known_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """The columns and the order of `search_statement`, of `plan.known_at`."""
    statement = SearchStatement()
    return ranked(plan, statement, _source(plan, statement)), statement.values


def known_features_statement(
    plan: SearchPlan, asked: ParsedQuery
) -> tuple[str, list[object], list[Column]]:
    """As `features_statement`, of `plan.known_at`."""
    statement = SearchStatement()
    return features(plan, asked, statement, _source(plan, statement, narrow=False))


def known_hits_statement(plan: SearchPlan, memory_ids: Sequence[str]) -> tuple[str, list[object]]:
    """As `hits_statement`, of `plan.known_at`."""
    statement = SearchStatement()
    source = _source(plan, statement, only=memory_ids)
    columns = ", ".join(
        f"{'present' if name in _NOT_OF_THEN else 'memories'}.{name}" for name in _STORED
    )
    computed = shown_columns(COMPUTED, now=False)
    return f"SELECT {columns}, {computed}, {LOOKED_AT} {source.rows}", statement.values


def known_waiting_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """How many of them have words of then in vectors that this search cannot compare."""
    statement = SearchStatement()
    return waiting(plan, statement, _source(plan, statement)), statement.values


def _source(
    plan: SearchPlan,
    statement: SearchStatement,
    *,
    narrow: bool = True,
    only: Sequence[str] | None = None,
) -> Source:
    if plan.known_at is None:
        raise ValueError("the plan names no time")
    time = statement.bind(plan.known_at, "timestamptz")
    as_of: datetime = plan.as_of or plan.known_at
    seen = ["memories.create_time <= " + time, *whose(plan, statement)]
    conditions = [
        valid_at(as_of, statement),
        *(narrowed(plan, statement, "present.session_id") if narrow else ()),
    ]
    if plan.user_id is not None and any(bucket.scope == "project" for bucket in plan.buckets):
        # Shared with others now, and private when it said that.
        conditions.append(
            "(present.scope <> 'project' OR memories.visibility IS DISTINCT FROM 'owner_only' "
            f"OR present.user_id = {statement.bind(plan.user_id, 'text')})"
        )
    within = (
        in_bucket("= 'active'", "IN ('archived', 'superseded')")
        if only is None
        else f"{some(only, statement)} AND memories.status <> 'deleted' AND {OF_BUCKET}"
    )
    # The vector and terms of then were kept by the first change that replaced them.
    rows = f"""FROM (
            SELECT memories.*, bucket.weight
            FROM {bucket_table(plan, statement)}
            CROSS JOIN LATERAL ({within} OFFSET 0) AS memories
            WHERE {" AND ".join(seen)}
        ) AS present
        CROSS JOIN LATERAL (
            SELECT history.ctid AS place, history.after FROM memory_history AS history
            WHERE history.tenant_id = tenant.id AND history.memory_id = present.memory_id
                AND history.create_time <= {time}
            ORDER BY history.create_time DESC, history.history_id DESC LIMIT 1
        ) AS known
        CROSS JOIN LATERAL {STATE.format(snapshot="known.after")} AS memories
        LEFT JOIN LATERAL (
            SELECT history.embedding, history.embedding_model, {_LISTED}
            FROM memory_history AS history
            WHERE history.tenant_id = tenant.id AND history.memory_id = present.memory_id
                AND history.create_time > {time} AND history.embedding IS NOT NULL
            ORDER BY history.create_time, history.history_id LIMIT 1
        ) AS replaced ON true
        CROSS JOIN LATERAL (SELECT {_OF_THEN}) AS words
        WHERE {" AND ".join(conditions)}"""
    return Source(
        rows,
        words="words",
        place="known.place",
        weight="present.weight",
        model="coalesce(replaced.embedding_model, present.embedding_model)",
        vector="coalesce(replaced.embedding, present.embedding)",
        came_from="present.session_id",
        fetched=_fetched(),
    )


def _fetched() -> str:
    columns = ", ".join(
        f"{'present' if name in _NOT_OF_THEN else 'state'}.{name}" for name in _STORED
    )
    return f"""
        SELECT {columns}
        FROM memory_history AS history
        CROSS JOIN LATERAL {STATE.format(snapshot="history.after")} AS state
        JOIN memories AS present
            ON present.tenant_id = tenant.id AND present.memory_id = history.memory_id
        WHERE history.tenant_id = tenant.id AND history.ctid = best.place"""
