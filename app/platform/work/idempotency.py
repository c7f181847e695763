"""One effect for one `Idempotency-Key`, however often the request arrives (B-59).

The key's row is written in the transaction of the effect, so there is no moment in which
one exists without the other. A service calls `claim` first in its transaction and `keep`
last; both do nothing when the request carries no key.

A key counts for one caller: the API key, and the user it is bound to or acts for. Two users of
an application may choose the same words, and neither is answered what the other was.
"""

import hashlib
import json
from datetime import datetime, timedelta
from typing import Any, TypeVar

from pydantic import BaseModel
from sqlalchemy import (
    ForeignKey,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    delete,
    func,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.errors import ConflictError, UnprocessableError
from app.platform.database.base import Base, Id, TenantOwned

Answer = TypeVar("Answer", bound=BaseModel)


class StoredAnswer(TenantOwned, Base):
    """What one key of one caller was answered, until it expires.

    `idempotency_key` is the caller's own text, and for a user `_name_of` it.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        Index("idempotency_keys_idx_expires_at", "tenant_id", "expires_at"),
        Index("idempotency_keys_idx_user_id", "tenant_id", "user_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    key_id: Mapped[str] = mapped_column(Id, primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    # Whose words the answer may hold, so that an erasure finds it.
    user_id: Mapped[str | None] = mapped_column(Id)
    request_hash: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int] = mapped_column(SmallInteger)
    answer: Mapped[bytes] = mapped_column(LargeBinary)
    create_time: Mapped[datetime] = mapped_column(server_default=text("now()"))
    expires_at: Mapped[datetime]


class IdempotencyKeyReusedError(UnprocessableError):
    code = "idempotency_key_reused"
    title = "Idempotency key used for another request"

    def __init__(self) -> None:
        super().__init__(
            "This Idempotency-Key came with another method, path or body before. Use a new key."
        )


class RequestInProgressError(ConflictError):
    code = "request_in_progress"
    title = "The same request is still running"
    headers = {"Retry-After": "1"}

    def __init__(self) -> None:
        super().__init__("A request with this Idempotency-Key has not finished; try again.")


class ReplayedAnswer(Exception):  # noqa: N818 (not an error: it carries an answer out)
    """The request was answered before; the handler in `problems.py` sends that again."""

    def __init__(self, status: int, body: bytes) -> None:
        super().__init__(status)
        self.status = status
        self.body = body


class Once:
    """The idempotency of one request. Without a key every method does nothing."""

    def __init__(
        self,
        tenant_id: str = "",
        key_id: str = "",
        key: str | None = None,
        request_hash: bytes = b"",
        lifetime: timedelta = timedelta(hours=24),
        *,
        acting_user: str | None = None,
    ) -> None:
        """Stand for a request that `key_id` sent under `key`, as `acting_user` if as a user."""
        self._tenant_id = tenant_id
        self._key_id = key_id
        self._key = None if key is None else _name_of(key, acting_user)
        self._hash = request_hash
        self._lifetime = lifetime

    async def claim(self, db: AsyncSession) -> None:
        """Take the key for this transaction.

        Raises:
            ReplayedAnswer: the request was answered before.
            IdempotencyKeyReusedError: the key came with another request.
            RequestInProgressError: its first request is still running.

        """
        if self._key is None:
            return
        name = json.dumps([self._tenant_id, self._key_id, self._key])
        free = await db.scalar(
            select(func.pg_try_advisory_xact_lock(func.hashtextextended(name, 0)))
        )
        if not free:
            raise RequestInProgressError
        row = await db.scalar(
            select(StoredAnswer).where(*self._is_mine(), StoredAnswer.expires_at > func.now())
        )
        if row is None:
            await db.execute(delete(StoredAnswer).where(*self._is_mine()))
            return
        if row.request_hash != self._hash:
            raise IdempotencyKeyReusedError
        raise ReplayedAnswer(row.status, row.answer)

    async def keep(
        self, db: AsyncSession, answer: Answer, *, status: int, user_id: str | None = None
    ) -> Answer:
        """Store `answer` with the effect and return it.

        Args:
            status: the HTTP status it goes out with.
            user_id: the person whose words the answer may hold.

        """
        if self._key is not None:
            body = answer.model_dump_json(by_alias=True).encode()
            await db.flush()
            await db.execute(
                insert(StoredAnswer).values(
                    tenant_id=self._tenant_id,
                    key_id=self._key_id,
                    idempotency_key=self._key,
                    user_id=user_id,
                    request_hash=self._hash,
                    status=status,
                    answer=body,
                    expires_at=func.now() + self._lifetime,
                )
            )
        return answer

    def _is_mine(self) -> tuple[Any, ...]:
        return (
            StoredAnswer.tenant_id == self._tenant_id,
            StoredAnswer.key_id == self._key_id,
            StoredAnswer.idempotency_key == self._key,
        )


def _name_of(key: str, acting_user: str | None) -> str:
    """Under which a key is stored; no client can send the sign that a user's begins with."""
    if acting_user is None:
        return key
    return f"\x1f{hashlib.sha256(json.dumps([acting_user, key]).encode()).hexdigest()}"


NEVER = Once()
"""For requests without a key, and for callers that are no request."""
