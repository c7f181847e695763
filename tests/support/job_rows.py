"""Jobs as tests need them: that no worker takes soon, and in any status."""

from datetime import timedelta
from typing import Any, Final

from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository
from app.runtime import Runtime
from tests.support.api import execute
from tests.support.tenants import Caller

LATER: Final = timedelta(hours=1)


async def owe(runtime: Runtime, caller: Caller, key: str, **order: Any) -> str:
    """A job that no worker takes soon; its id."""
    order = {"kind": "extract", "delay": LATER} | order
    async with runtime.database.begin(caller.tenant_id) as db:
        scheduled = await JobRepository(db, caller.tenant_id).schedule(Order(key=key, **order))
    assert scheduled is not None
    return scheduled.job_id


async def become(dsn: str, job_id: str, status: str, **columns: Any) -> None:
    """Put a job into a status, as a worker would have."""
    values = {"finished_at": "now()" if status != "running" else "NULL"} | columns
    assignments = "".join(f", {name} = {value}" for name, value in values.items())
    statement = f"UPDATE jobs SET status = $2{assignments} WHERE job_id = $1"
    await execute(dsn, statement, job_id, status)
