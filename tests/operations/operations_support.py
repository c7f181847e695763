"""A worker that takes one job and says nothing more."""

import json

from app.platform.jobs.orders import ClaimedJob
from tests.support.api import execute
from tests.support.tenants import Caller


async def claim(dsn: str, caller: Caller, job_id: str) -> ClaimedJob:
    """The job, in the hands of a worker whose lease nobody watches."""
    [row] = await execute(
        dsn,
        "UPDATE jobs SET status = 'running', lease_token = 'lease', attempts = attempts + 1 "
        "WHERE tenant_id = $1 AND job_id = $2 RETURNING *",
        caller.tenant_id,
        job_id,
    )
    # A trace is carried in the payload, not in a column.
    names = ClaimedJob.__dataclass_fields__.keys() - {"traceparent"}
    values = {name: row[name] for name in names}
    values |= {"signals": frozenset(row["signals"]), "payload": json.loads(row["payload"])}
    return ClaimedJob(**values)
