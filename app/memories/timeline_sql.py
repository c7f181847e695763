"""The search of what was known at a moment, as one statement: slower than the hot read.

Which memories there are, and who may see them, is asked of the table as it stands; what each
of them said is taken from its history. So what is deleted never comes back, and nobody sees
by way of the past what is closed to them now.
"""

from datetime import datetime

from app.memories.search_sql import (
    COLUMNS,
    SearchPlan,
    Source,
    Statement,
    bucket_table,
    held,
    in_bucket,
    narrowed,
    ranked,
    waiting,
    whose,
)

# How often something was found is not in the history, and is told as it is.
_NOT_OF_THEN = ("use_count", "last_used_at")

STATE = "jsonb_populate_record(CAST(NULL AS memories), {snapshot})"
"""A snapshot of the history as a row of the table; what it does not hold is null."""


def known_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """The columns and the order of `search_statement`, of `plan.known_at`."""
    statement = Statement()
    return ranked(plan, statement, _source(plan, statement)), statement.values


def known_waiting_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """How many of them have words of then in vectors that this search cannot compare."""
    statement = Statement()
    return waiting(plan, statement, _source(plan, statement)), statement.values


def _source(plan: SearchPlan, statement: Statement) -> Source:
    if plan.known_at is None:
        raise ValueError("the plan names no moment")
    moment = statement.bind(plan.known_at, "timestamptz")
    as_of: datetime = plan.as_of or plan.known_at
    seen = ["memories.create_time <= " + moment, *whose(plan, statement)]
    conditions = [held(as_of, statement), *narrowed(plan, statement)]
    # The vector of the words of then was put aside by the first change that replaced them.
    rows = f"""FROM (
            SELECT memories.memory_id, memories.embedding, memories.embedding_model,
                bucket.weight
            FROM {bucket_table(plan, statement)}
            CROSS JOIN LATERAL (
                {in_bucket("= 'active'", "IN ('archived', 'superseded')")}
            ) AS memories
            WHERE {" AND ".join(seen)}
        ) AS present
        CROSS JOIN LATERAL (
            SELECT history.ctid AS place, history.after FROM memory_history AS history
            WHERE history.tenant_id = tenant.id AND history.memory_id = present.memory_id
                AND history.create_time <= {moment}
            ORDER BY history.create_time DESC, history.history_id DESC LIMIT 1
        ) AS known
        CROSS JOIN LATERAL {STATE.format(snapshot="known.after")} AS memories
        LEFT JOIN LATERAL (
            SELECT history.embedding, history.embedding_model FROM memory_history AS history
            WHERE history.tenant_id = tenant.id AND history.memory_id = present.memory_id
                AND history.create_time > {moment} AND history.embedding IS NOT NULL
            ORDER BY history.create_time, history.history_id LIMIT 1
        ) AS replaced ON true
        WHERE {" AND ".join(conditions)}"""
    return Source(
        rows,
        place="known.place",
        weight="present.weight",
        model="coalesce(replaced.embedding_model, present.embedding_model)",
        vector="coalesce(replaced.embedding, present.embedding)",
        fetched=_fetched(),
    )


def _fetched() -> str:
    columns = ", ".join(
        f"{'present' if name in _NOT_OF_THEN else 'state'}.{name}" for name in COLUMNS
    )
    return f"""
        SELECT {columns}
        FROM memory_history AS history
        CROSS JOIN LATERAL {STATE.format(snapshot="history.after")} AS state
        JOIN memories AS present
            ON present.tenant_id = tenant.id AND present.memory_id = history.memory_id
        WHERE history.tenant_id = tenant.id AND history.ctid = best.place"""
