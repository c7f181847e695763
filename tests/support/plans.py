"""The plan of a hot read, as the service's role gets it."""

import json
from datetime import datetime
from typing import Any

import asyncpg
import numpy as np
from pgvector import SparseVector

from app.database.engine import _FRAME
from app.database.roles import APP


def literal(value: Any) -> str:
    """A value as it stands in EXECUTE."""
    if value is None:
        return "NULL"
    if isinstance(value, bool | int | float):
        return repr(value)
    if isinstance(value, np.ndarray):
        return f"'[{','.join(map(str, value.tolist()))}]'"
    if isinstance(value, SparseVector):
        return f"'{value.to_text()}'"
    if isinstance(value, list):
        return f"ARRAY[{', '.join(map(literal, value))}]"
    if isinstance(value, asyncpg.BitString):
        text = value.as_string().replace(" ", "")
    else:
        text = value.isoformat() if isinstance(value, datetime) else str(value)
    return "'" + text.replace("'", "''") + "'"


async def plan_of(
    dsn: str, tenant_id: str, text: str, values: list[object], *, buffers: bool = False
) -> dict[str, Any]:
    """The generic plan of a statement for `Database.fetch`, run under row-level security."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            f"SET ROLE {APP}; SET jit = off; SET plan_cache_mode = force_generic_plan; "
            f"PREPARE search AS {_FRAME.format(statement=text)}"
        )
        arguments = ", ".join(literal(value) for value in (tenant_id, *values))
        async with connection.transaction():
            rows = await connection.fetch(
                f"EXPLAIN (ANALYZE, BUFFERS {buffers}, FORMAT JSON) EXECUTE search({arguments})"
            )
        return json.loads(rows[0][0])[0]["Plan"]
    finally:
        await connection.close()


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    """Every node of a plan, the outermost first."""
    return [plan, *(node for child in plan.get("Plans", []) for node in nodes(child))]
