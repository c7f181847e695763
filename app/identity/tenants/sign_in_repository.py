"""SQL for one-time codes, of one tenant."""

from datetime import datetime

from sqlalchemy import delete, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.models import SignInCode


class SignInRepository:
    """Codes of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def add(self, code: SignInCode) -> None:
        code.tenant_id = self._tenant_id
        self._db.add(code)
        await self._db.flush()

    async def find(self, code_hash: bytes) -> SignInCode | None:
        """The code, locked until the transaction ends: a second use waits for the first."""
        found: SignInCode | None = await self._db.scalar(
            select(SignInCode)
            .where(SignInCode.tenant_id == self._tenant_id, SignInCode.code_hash == code_hash)
            .with_for_update()
        )
        return found

    async def delete_expired(self, *, before: datetime) -> None:
        await self._db.execute(
            delete(SignInCode).where(
                SignInCode.tenant_id == self._tenant_id, SignInCode.expires_at < before
            )
        )
