"""Which rows of a bucket a hot read looks at, as SQL: by status, by id, by time of validity."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from app.language.ranking.records import SearchStatement, id_hash_sql
from app.memory.memories.comparison_sql import MINIMUM_DIMENSION

OF_BUCKET: Final = "memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope"


def in_bucket(*statuses: str) -> str:
    """Rows of a bucket by status, each kind of status behind the partial index that has it.

    Args:
        statuses: conditions without the column; one that no index has alone reads them all.

    """
    return " UNION ALL ".join(
        "SELECT memories.ctid, memories.* FROM memories WHERE memories.tenant_id = tenant.id "
        f"AND {OF_BUCKET} AND memories.status {status}"
        for status in statuses
    )


def some(memory_ids: Sequence[str] | str, statement: SearchStatement) -> str:
    """Those of `memory_ids`, whatever bucket they are in, each behind the primary key."""
    ids = f"ARRAY({memory_ids})" if isinstance(memory_ids, str) else statement.bind_ids(memory_ids)
    return (
        "SELECT memories.ctid, memories.* FROM memories WHERE memories.tenant_id = tenant.id "
        f"AND memories.memory_id = ANY ({ids})"
    )


def valid_at(at: datetime, statement: SearchStatement) -> str:
    """What was true at a time, as far as `memories` says; `repository.py` has it too.

    What was superseded or has expired since still held then; what a caller archived
    was withdrawn.
    """
    time = statement.bind(at, "timestamptz")
    return f"""(memories.status IN ('active', 'superseded')
            OR (memories.status = 'archived' AND memories.expires_at <= now()))
        AND (memories.expires_at IS NULL OR memories.expires_at > {time})
        AND (memories.valid_from IS NULL OR memories.valid_from <= {time})
        AND (memories.valid_to IS NULL OR memories.valid_to > {time})"""


CODED: Final = f"coalesce(length(memories.code), {MINIMUM_DIMENSION}) < {MINIMUM_DIMENSION}"
"""As the predicate of `memories_idx_coded` has it; `memories_idx_uncoded` has the others."""

STATE: Final = "concat_ws(' ', known.scope, known.scope_id, known.embedding_model, known.version)"
"""Of a row `known` of `memory_buckets`: another one after rows have got codes."""

REGISTERED_BUCKETS: Final = """
SELECT scope, scope_id, rows, coded_at IS NOT NULL AS coded FROM memory_buckets
WHERE tenant_id = tenant.id ORDER BY rows DESC LIMIT CAST($2 AS int8)
"""
"""Buckets that have codes, or get them, or were refused them, the largest first."""

CODED_ROWS: Final = f"""
SELECT now.states, now.models AS names,
    string_agg(row.id, '') AS ids, string_agg(int4send(length(row.id)), '') AS id_sizes,
    string_agg(int4send(coalesce(array_position(now.models, row.model), 0)), '') AS models,
    string_agg(row.code, '') AS codes, string_agg(int4send(length(row.code)), '') AS code_sizes,
    string_agg(row.terms, '') AS terms, string_agg(int4send(length(row.terms)), '') AS term_sizes,
    string_agg(int8send(row.session), '') AS sessions,
    string_agg(int4send(row.term_count), '') AS lengths
FROM (
    SELECT array_agg({STATE}) AS states, array_agg(known.embedding_model) AS models
    FROM memory_buckets AS known
    WHERE known.tenant_id = tenant.id AND known.scope = CAST($2 AS text)
        AND known.scope_id = CAST($3 AS text)
) AS now LEFT JOIN (
    SELECT convert_to(memories.memory_id, 'UTF8') AS id, memories.embedding_model AS model,
        varbit_send(memories.code) AS code, coalesce(memories.term_count, 0) AS term_count,
        coalesce(sparsevec_send(memories.terms), decode('{"00" * 12}', 'hex')) AS terms,
        {id_hash_sql("memories.session_id")} AS session
    FROM memories
    WHERE memories.tenant_id = tenant.id AND memories.scope_id = CAST($3 AS text)
        AND memories.scope = CAST($2 AS text) AND memories.status = 'active' AND {CODED}
    ORDER BY memories.memory_id
) AS row ON true
GROUP BY now.states, now.models
"""
"""One row: what `BucketIndex` keeps of the bucket of a scope and an id, and of which state."""
