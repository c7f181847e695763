"""One effect for one `Idempotency-Key`, however often the request arrives.

The answer is stored in the transaction of the effect, so neither exists without the
other: `Work.write` claims the key when the transaction begins, and stores the answer
before it commits.

A key counts for one caller: the API key, and the user it is bound to or acts for. Two users of
an application may choose the same key, and neither gets the other's answer.
"""

import hashlib
import json
from datetime import datetime, timedelta
from typing import Final

from pydantic import BaseModel
from sqlalchemy import ForeignKey, Index, LargeBinary, SmallInteger, String, text
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.errors import ConflictError, UnprocessableError
from app.platform.database.base import Base, Id, TenantOwned
from app.platform.database.engine import driver_of

KEPT: Final = timedelta(hours=24)
"""How long an answer is kept under its key."""


class StoredAnswer(TenantOwned, Base):
    """The answer that a caller got under a key, until it expires.

    `idempotency_key` is the caller's own text, or for an acting user its `_stored_name`.
    """

    __tablename__ = "idempotency_keys"
    __table_args__ = (
        Index("idempotency_keys_idx_expires_at", "tenant_id", "expires_at"),
        Index("idempotency_keys_idx_user_id", "tenant_id", "user_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    key_id: Mapped[str] = mapped_column(Id, primary_key=True)
    idempotency_key: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    # The user whose content the answer may hold, so that an erasure finds it.
    user_id: Mapped[str | None] = mapped_column(Id)
    request_hash: Mapped[bytes] = mapped_column(LargeBinary)
    status: Mapped[int] = mapped_column(SmallInteger)
    answer: Mapped[bytes] = mapped_column(LargeBinary)
    create_time: Mapped[datetime] = mapped_column(server_default=text("now()"))
    expires_at: Mapped[datetime]


# A statement of its own: the snapshot of one that also looked would be older than the lock.
_LOCK = "SELECT pg_try_advisory_xact_lock(hashtextextended($1, 0))"

_OF_KEY = "WHERE tenant_id = $1 AND key_id = $2 AND idempotency_key = $3"

_FIND = f"""
SELECT request_hash, status, answer, expires_at <= now() AS expired FROM idempotency_keys {_OF_KEY}
"""

_FORGET = f"DELETE FROM idempotency_keys {_OF_KEY}"

_KEEP = """
INSERT INTO idempotency_keys (tenant_id, key_id, idempotency_key, user_id, request_hash, status,
    answer, expires_at)
VALUES ($1, $2, $3, $4, $5, $6, $7, now() + CAST($8 AS interval))
"""


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


class IdempotencyKey:
    """The key that one request carries."""

    def __init__(
        self,
        tenant_id: str,
        key_id: str,
        key: str,
        request_hash: bytes,
        *,
        acting_user: str | None = None,
    ) -> None:
        """A request sent with the API key `key_id`, for `acting_user` if one is named.

        Args:
            key: the text of the header.
            request_hash: digest of method, path, query and body.

        """
        self._tenant_id = tenant_id
        self._key_id = key_id
        self._key = key if acting_user is None else _stored_name(key, acting_user)
        self._hash = request_hash

    async def claim(self, db: AsyncSession) -> None:
        """Claim the key until the transaction ends.

        Raises:
            ReplayedAnswer: the request was answered before.
            IdempotencyKeyReusedError: the key came with another request.
            RequestInProgressError: its first request is still running.

        """
        driver = await driver_of(db)
        same_key = (self._tenant_id, self._key_id, self._key)
        if not await driver.fetchval(_LOCK, json.dumps(same_key)):
            raise RequestInProgressError
        row = await driver.fetchrow(_FIND, *same_key)
        if row is None:
            return
        if row["expired"]:
            await driver.execute(_FORGET, *same_key)
            return
        if row["request_hash"] != self._hash:
            raise IdempotencyKeyReusedError
        raise ReplayedAnswer(row["status"], row["answer"])

    async def keep(
        self, db: AsyncSession, answer: BaseModel, *, status: int, user_id: str | None
    ) -> None:
        """Store the answer in the transaction of its effect, for KEPT.

        Args:
            db: the transaction in which the key was claimed.
            answer: what is sent again.
            status: the HTTP status it goes out with.
            user_id: the user whose content the answer may hold.

        """
        await (await driver_of(db)).execute(
            _KEEP,
            self._tenant_id,
            self._key_id,
            self._key,
            user_id,
            self._hash,
            status,
            answer.model_dump_json(by_alias=True).encode(),
            KEPT,
        )


def _stored_name(key: str, acting_user: str) -> str:
    """How a key of an acting user is stored; no client can send its first character."""
    return f"\x1f{hashlib.sha256(json.dumps([acting_user, key]).encode()).hexdigest()}"
