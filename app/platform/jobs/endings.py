"""Stores how runs ended: successes in batches, all others one by one.

One transaction per success, with its flush to disk, would be most of the cost of a short job.
"""

import asyncio
import json
import math
from dataclasses import dataclass
from typing import Any

import asyncpg
import structlog

from app.errors import UnavailableError, UnprocessableError
from app.platform.database.engine import Database
from app.platform.jobs.dispatch import Dispatch
from app.platform.jobs.failures import LeaseLostError, Verdict
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository

log = structlog.get_logger()

PAUSE_SECONDS = 1.0
"""Between tries while the database is unavailable."""

BATCH = 200


MOST_TRIES = 30
"""After so many unexpected failures to store it, a run counts as failed itself."""


@dataclass(slots=True, eq=False)
class _Returned:
    job: ClaimedJob
    result: str | None
    written: "asyncio.Future[bool]"
    tries: int = 0

    def report(self, *, won: bool) -> None:
        if not self.written.done():
            self.written.set_result(won)

    def fail(self, error: Exception) -> None:
        if not self.written.done():
            self.written.set_exception(error)


class Endings:
    """Ends of runs that are still to be stored. Belongs to one event loop."""

    def __init__(
        self, database: Database, dispatch: Dispatch, *, pause_seconds: float = PAUSE_SECONDS
    ) -> None:
        self._database = database
        self._pause_seconds = pause_seconds
        self._dispatch = dispatch
        self._waiting: list[_Returned] = []
        self._any = asyncio.Event()
        self._patience = math.inf
        self._draining_since = self._failing_since = -math.inf

    def give_up_after(self, seconds: float) -> None:
        """The worker stops: fail what cannot be stored once nothing could be for so long from now
        on. Its lease will run out.
        """
        self._patience = seconds
        self._draining_since = asyncio.get_running_loop().time()

    def _stored(self) -> None:
        self._failing_since = -math.inf

    def _is_given_up(self) -> bool:
        """To be asked after each failure."""
        now = asyncio.get_running_loop().time()
        if self._failing_since == -math.inf:
            self._failing_since = now
        return now - max(self._failing_since, self._draining_since) >= self._patience

    async def succeed(self, job: ClaimedJob, result: dict[str, Any] | None) -> bool:
        """End a run whose handler returned; False when the job was lost meanwhile.

        Waits while the database is unavailable, until `give_up_after`; then it raises. The handler
        may have finished the job itself.

        Raises:
            TypeError, ValueError: the result cannot be written as JSON.

        """
        text = None if result is None else json.dumps(result, allow_nan=False)
        written: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Returned(job, text, written))
        self._any.set()
        return await written

    async def record(self, job: ClaimedJob, verdict: Verdict) -> bool:
        """End a run that did not succeed; False when the job was lost meanwhile.

        Waits while the database is unavailable, until `give_up_after`; then it raises.
        """
        tries = 0
        while True:
            try:
                async with self._database.begin(job.tenant_id) as db:
                    await JobRepository(db, job.tenant_id).record(job, verdict)
            except LeaseLostError:
                return False
            except Exception as error:
                # After an unknown outcome the next try finds the job ended, and so lost.
                tries += not isinstance(error, UnavailableError)
                if self._is_given_up() or tries > MOST_TRIES:
                    raise
                await asyncio.sleep(self._pause_seconds)
            else:
                self._stored()
                return True

    async def run(self) -> None:
        """Store the ends of runs until cancelled; those that arrive meanwhile are the next
        batch.
        """
        while True:
            await self._any.wait()
            batch, self._waiting = self._waiting[:BATCH], self._waiting[BATCH:]
            if not self._waiting:
                self._any.clear()
            try:
                await self._write(batch)
            except (UnprocessableError, asyncpg.DataError):
                # One of the results cannot be stored, and must not delay the others.
                await self._write_one_by_one(batch)
            except Exception as error:  # noqa: BLE001 (the loop must not end)
                await self._wait_to_try(batch, error)

    async def _write(self, batch: list[_Returned]) -> None:
        states = await self._dispatch.finish([(ended.job, ended.result) for ended in batch])
        self._stored()
        for ended in batch:
            state = states.get(ended.job.lease_token)
            if state == "held":
                # Ordered again while it ran, or locked by an order that is being made now.
                await self._finish_alone(ended)
            else:
                ended.report(won=state is not None)

    async def _finish_alone(self, ended: _Returned) -> None:
        if ended.written.done():
            return
        result = {} if ended.result is None else json.loads(ended.result)
        try:
            async with self._database.begin(ended.job.tenant_id) as db:
                await JobRepository(db, ended.job.tenant_id).finish(ended.job, result)
        except LeaseLostError:
            ended.report(won=False)
        else:
            ended.report(won=True)

    async def _write_one_by_one(self, batch: list[_Returned]) -> None:
        for ended in batch:
            try:
                await self._finish_alone(ended)
            except (UnprocessableError, asyncpg.DataError) as error:
                ended.fail(error)
            except Exception as error:  # noqa: BLE001 (the others are to be written)
                await self._wait_to_try([ended], error)

    async def _wait_to_try(self, batch: list[_Returned], error: Exception) -> None:
        """Put the batch back; runs that failed unexpectedly too often are failed."""
        if not isinstance(error, UnavailableError):
            log.warning("jobs_not_written", jobs=len(batch), error=type(error).__name__)
        given_up = self._is_given_up()
        for ended in batch:
            ended.tries += not isinstance(error, UnavailableError)
            if given_up or ended.tries > MOST_TRIES:
                ended.fail(error)
        self._waiting = [ended for ended in batch if not ended.written.done()] + self._waiting
        if self._waiting:
            self._any.set()
        await asyncio.sleep(self._pause_seconds)
