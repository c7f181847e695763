"""The unit of work of a request: one transaction, refused (where memory is switched off, by the
operator or for an agent or a user), claimed and answered in one place.

`write` refuses while memory is switched off, begins, claims the request's `Idempotency-Key`, and
stores the answer with the effect before it commits. A service cannot forget one of these steps.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Protocol, TypeVar

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import ConflictError, UnavailableError
from app.platform.database.engine import Database
from app.platform.database.locks import lock_statement, take_lock
from app.platform.work.idempotency import IdempotencyKey


class MemoryDisabledError(UnavailableError):
    code = "memory_disabled"
    title = "Memory is switched off"

    def __init__(self) -> None:
        super().__init__(
            "The operator has switched memory off (MEMORY_ENABLED=false): nothing new is "
            "remembered. What is stored can be read and deleted, and users, agents, sessions and "
            "projects can be managed."
        )


class MemoryPausedError(ConflictError):
    code = "memory_paused"
    title = "Memory is switched off here"

    def __init__(self, kind: str, value: str) -> None:
        super().__init__(
            f"The {kind} {value} has `memory_enabled` set to false: nothing is remembered for it.",
            **{f"{kind}_id": value},
        )


Answer = TypeVar("Answer", bound=BaseModel)


class Caller(Protocol):
    """A principal or a job: it works in a tenant."""

    @property
    def tenant_id(self) -> str: ...


class Unit:
    """A transaction that writes, and the answer of the request."""

    def __init__(self, db: AsyncSession) -> None:
        self.db = db
        self._kept: tuple[BaseModel, int, str | None] | None = None
        self._unkept = False

    def answer(
        self,
        shown: Answer,
        status: int = 200,
        *,
        user_id: str | None = None,
        kept: BaseModel | None = None,
    ) -> Answer:
        """Answer the request with `shown`, and every repetition of it too.

        Args:
            shown: the caller's answer; returned unchanged.
            status: the HTTP status it goes out with.
            user_id: the user whose content it may hold, so that an erasure finds it.
            kept: the answer to a repetition, where `shown` holds a secret.

        """
        self._kept = (shown if kept is None else kept, status, user_id)
        return shown

    def answer_unkept(self, shown: Answer) -> Answer:
        """Answer this request alone, such as a dry run: a repetition is computed again."""
        self._unkept = True
        return shown

    async def store(self, key: IdempotencyKey) -> None:
        """Store the answer under the request's key.

        Raises:
            RuntimeError: the service gave none, and a repetition would have its effect again.

        """
        if self._kept is not None:
            answer, status, user_id = self._kept
            await key.keep(self.db, answer, status=status, user_id=user_id)
        elif not self._unkept:
            raise RuntimeError("a request with an Idempotency-Key was left without an answer")


class Work:
    """Opens the units of work of a process; services have one."""

    def __init__(self, database: Database, *, enabled: bool) -> None:
        """Work on `database`; `enabled` is the master switch (MEMORY_ENABLED)."""
        self.database = database
        self.enabled = enabled

    def refuse_disabled(self) -> None:
        """For work that begins before its transaction, such as a call of a model.

        Raises:
            MemoryDisabledError: the master switch is off.
            DatabaseDiskFullError: there is little room left for what it would store.

        """
        if not self.enabled:
            raise MemoryDisabledError
        self.database.refuse_full()

    async def refuse_repeated(self, caller: Caller | str, key: IdempotencyKey | None) -> None:
        """For a request whose effect comes later, or in several transactions.

        Raises:
            ReplayedAnswer: the request was answered before.
            IdempotencyKeyReusedError: the key came with another request.
            RequestInProgressError: the first request with the key is still running.

        """
        if key is not None:
            async with self.read(caller, key):
                pass

    @asynccontextmanager
    async def read(
        self, caller: Caller | str, key: IdempotencyKey | None = None
    ) -> AsyncIterator[AsyncSession]:
        """A transaction that reads.

        Args:
            caller: whose tenant is seen, or the tenant's id.
            key: of a request that writes in a later transaction; answered before, it ends here.

        Raises:
            ReplayedAnswer: the request was answered before.
            IdempotencyKeyReusedError: the key came with another request.
            RequestInProgressError: the first request with the key is still running.

        """
        async with self.database.begin(_tenant_id(caller)) as db:
            if key is not None:
                await key.claim(db)
            yield db

    @asynccontextmanager
    async def write(
        self,
        caller: Caller | str,
        key: IdempotencyKey | None = None,
        *,
        while_disabled: bool = False,
        hot: bool = False,
        lock: str | None = None,
    ) -> AsyncIterator[Unit]:
        """A transaction that writes: commits at the end of the block, rolls back on any error.

        Args:
            caller: whose tenant is seen, or the tenant's id.
            key: the request's idempotency key, if it has one; the block must answer.
            while_disabled: write while memory is switched off too: for what remembers nothing,
                such as deletions, keys and tenants.
            hot: as `Database.begin` takes it.
            lock: name of a lock that the block holds from its beginning; it is waited for after
                the key is claimed, so that a repetition is answered at once.

        Raises:
            MemoryDisabledError: the master switch is off.
            DatabaseDiskFullError: there is little room left for what it would store.
            ReplayedAnswer: the request was answered before.
            IdempotencyKeyReusedError: the key came with another request.
            RequestInProgressError: the first request with the key is still running.

        """
        if not while_disabled:
            self.refuse_disabled()
        first = lock_statement(lock) if lock is not None and key is None else None
        async with (
            self.database.begin(_tenant_id(caller), hot=hot, first=first) as db,
            answering(db, key) as unit,
        ):
            if lock is not None and first is None:
                await take_lock(db, lock)
            yield unit


@asynccontextmanager
async def answering(db: AsyncSession, key: IdempotencyKey | None) -> AsyncIterator[Unit]:
    """A unit of work within a transaction that the caller has opened and commits.

    Raises:
        ReplayedAnswer: the request was answered before.
        IdempotencyKeyReusedError: the key came with another request.
        RequestInProgressError: the first request with the key is still running.

    """
    if key is not None:
        await key.claim(db)
    unit = Unit(db)
    yield unit
    if key is not None:
        await unit.store(key)


def _tenant_id(caller: Caller | str) -> str:
    return caller if isinstance(caller, str) else caller.tenant_id
