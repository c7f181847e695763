"""Writing down how runs ended: those that succeeded many at a time, all others one by one.

One transaction and its flush to disk per job would be what an empty job costs.
"""

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import asyncpg
import structlog

from app.errors import UnavailableError, UnprocessableError
from app.platform.database.engine import Database
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.errors import LeaseLostError
from app.platform.jobs.failures import Verdict
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository

log = structlog.get_logger()

PAUSE_SECONDS = 1.0
"""Between tries while the database is away. The lease is kept meanwhile, or lost."""

BATCH = 200


MOST_TRIES = 30
"""After so many failures that nobody can explain, a run counts as failed itself."""


@dataclass(slots=True, eq=False)
class _Returned:
    job: ClaimedJob
    result: str | None
    written: "asyncio.Future[bool]"
    tries: int = 0

    def tell(self, *, won: bool) -> None:
        if not self.written.done():
            self.written.set_result(won)

    def blame(self, error: Exception) -> None:
        if not self.written.done():
            self.written.set_exception(error)


class Endings:
    """Ends of runs on their way to the database. Belongs to one event loop."""

    def __init__(self, database: Database, dispatch: Dispatch) -> None:
        self._database = database
        self._dispatch = dispatch
        self._waiting: list[_Returned] = []
        self._any = asyncio.Event()

    async def succeed(self, job: ClaimedJob, result: dict[str, Any] | None) -> bool:
        """End a run whose handler returned; False when the job was lost meanwhile.

        Waits while the database is away. A handler may have finished the job itself.

        Raises:
            TypeError, ValueError: the result is no JSON.

        """
        text = None if result is None else json.dumps(result, allow_nan=False)
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Returned(job, text, written))
        self._any.set()
        return await written

    async def settle(self, job: ClaimedJob, verdict: Verdict) -> bool:
        """End a run that did not succeed; False when the job was lost meanwhile."""
        tries = 0
        while True:
            try:
                async with self._database.begin(job.tenant_id) as db:
                    await JobRepository(db, job.tenant_id).settle(job, verdict)
            except LeaseLostError:
                return False
            except Exception as error:
                # After an unknown outcome the next try finds the job settled, and so lost.
                tries += not isinstance(error, UnavailableError)
                if tries > MOST_TRIES:
                    raise
                await asyncio.sleep(PAUSE_SECONDS)
            else:
                return True

    async def write_for_ever(self) -> None:
        """Write what returned, as fast as the database takes it; what comes in meanwhile
        makes the next batch.
        """
        while True:
            await self._any.wait()
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            if not self._waiting:
                self._any.clear()
            try:
                await self._write(batch)
            except (UnprocessableError, asyncpg.DataError):
                # One of the results cannot be stored, and must not hold up the others.
                await self._write_one_by_one(batch)
            except Exception as error:  # noqa: BLE001 (the loop must not end)
                await self._wait_to_try(batch, error)

    async def _write(self, batch: list[_Returned]) -> None:
        states = await self._dispatch.finish([(one.job, one.result) for one in batch])
        for one in batch:
            state = states.get(one.job.lease_token)
            if state == "held":
                # Ordered again while it ran, or locked by whoever is ordering it now.
                await self._finish_alone(one)
            else:
                one.tell(won=state is not None)

    async def _finish_alone(self, one: _Returned) -> None:
        if one.written.done():
            return
        result = {} if one.result is None else json.loads(one.result)
        try:
            async with self._database.begin(one.job.tenant_id) as db:
                await JobRepository(db, one.job.tenant_id).finish(one.job, result)
        except LeaseLostError:
            one.tell(won=False)
        else:
            one.tell(won=True)

    async def _write_one_by_one(self, batch: list[_Returned]) -> None:
        for one in batch:
            try:
                await self._finish_alone(one)
            except (UnprocessableError, asyncpg.DataError) as error:
                one.blame(error)
            except Exception as error:  # noqa: BLE001 (the others are to be written)
                await self._wait_to_try([one], error)

    async def _wait_to_try(self, batch: list[_Returned], error: Exception) -> None:
        """Write the batch again in a while; give up on what fails for ever, inexplicably."""
        if not isinstance(error, UnavailableError):
            log.warning("jobs_not_written", jobs=len(batch), error=type(error).__name__)
        for one in batch:
            one.tries += not isinstance(error, UnavailableError)
            if one.tries > MOST_TRIES:
                one.blame(error)
        self._waiting = [one for one in batch if not one.written.done()] + self._waiting
        if self._waiting:
            self._any.set()
        await asyncio.sleep(PAUSE_SECONDS)
