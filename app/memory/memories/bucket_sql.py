"""Which rows of a bucket a hot read looks at, as SQL: by status, by id, by time of validity."""

from collections.abc import Sequence
from datetime import datetime
from typing import Final

from app.language.ranking.records import SearchStatement

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
    ids = (
        f"ARRAY({memory_ids})"
        if isinstance(memory_ids, str)
        else statement.bind(list(memory_ids), "text[]")
    )
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


LARGE_BUCKETS: Final = """
SELECT scope, scope_id FROM memory_buckets
WHERE tenant_id = tenant.id AND coded_at IS NOT NULL AND rows >= CAST($2 AS int8)
ORDER BY rows DESC LIMIT CAST($3 AS int8)
"""
"""Buckets of at least so many rows that have codes, the largest first."""
