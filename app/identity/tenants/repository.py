"""SQL for tenants, keys and one-time codes; the only repository that also reads before a tenant
is known.
"""

import asyncio
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import asyncpg
from sqlalchemy import delete, func, literal, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.errors import (
    KeyNotFoundError,
    TenantIdTakenError,
    TenantNotFoundError,
)
from app.identity.tenants.models import ApiKey, SignInCode, Tenant
from app.platform.database.base import after, apply_changes
from app.platform.database.engine import Database
from app.platform.database.failures import conflicts

_FIND_KEYS = """
SELECT k.key_prefix, k.tenant_id, k.key_id, k.key_hash, k.scopes, k.agent_id, k.user_id,
       k.expires_at < now() AS expired, k.revoked_at IS NOT NULL AS revoked,
       t.status, t.config, t.embedding_models
FROM api_keys k JOIN tenants t ON t.tenant_id = k.tenant_id
WHERE k.key_prefix = ANY($1)
"""

_TOUCH_KEYS = """
UPDATE api_keys k SET last_used_at = used.at
FROM unnest($1::text[], $2::text[], $3::timestamptz[]) AS used(tenant_id, key_id, at)
WHERE k.tenant_id = used.tenant_id AND k.key_id = used.key_id
"""

_LIST_TENANTS = """
SELECT * FROM tenants
WHERE $1::timestamptz IS NULL OR (create_time, tenant_id) < ($1, $2)
ORDER BY create_time DESC, tenant_id DESC LIMIT $3
"""

_OTHER_MODELS = """
SELECT count(*) AS count FROM tenants
WHERE embedding_models && array_remove(embedding_models, $1) AND NOT config ? 'embedding'
"""


class KeyDirectory:
    """Reads across tenants as `kemem_dispatch`: keys, and the list of tenants."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._one_at_a_time = asyncio.Lock()
        self._wanted: set[str] = set()
        self._next: asyncio.Task[dict[str, asyncpg.Record]] | None = None

    async def find(self, key_prefix: str) -> asyncpg.Record | None:
        """The key with this public prefix and its tenant's settings, as they are now.

        Look-ups that come while one is under way share the next, so that a busy process
        asks once for many requests. Nothing is remembered: the statement that answers
        always begins after the question, so a revoked key is refused at once.
        """
        if self._next is None and not self._one_at_a_time.locked():
            # Nobody is asking: without a task of its own, which costs as much as the statement.
            async with self._one_at_a_time:
                rows = await self._database.look_up(_FIND_KEYS, [key_prefix])
            return rows[0] if rows else None
        if self._next is None:
            self._next = asyncio.create_task(self._find_wanted())
        self._wanted.add(key_prefix)
        # Shielded, because a caller that disconnects must not cancel the answer for the others.
        return (await asyncio.shield(self._next)).get(key_prefix)

    async def _find_wanted(self) -> dict[str, asyncpg.Record]:
        async with self._one_at_a_time:
            wanted, self._wanted, self._next = self._wanted, set(), None
            rows = await self._database.look_up(_FIND_KEYS, list(wanted))
        return {row["key_prefix"]: row for row in rows}

    async def touch(self, uses: dict[tuple[str, str], datetime]) -> None:
        """Note when keys were last used; `uses` maps (tenant, key) to the time."""
        tenants = [tenant_id for tenant_id, _ in uses]
        keys = [key_id for _, key_id in uses]
        await self._database.look_up(_TOUCH_KEYS, tenants, keys, list(uses.values()))

    async def tenants(self, start: tuple[datetime, str] | None, limit: int) -> list[asyncpg.Record]:
        """Tenants, newest first, one more than `limit` when another page follows."""
        create_time, tenant_id = start or (None, None)
        return await self._database.look_up(_LIST_TENANTS, create_time, tenant_id, limit + 1)

    async def tenants_with_other_models(self, model: str) -> int:
        """How many tenants have vectors of another model, and name no embedder themselves."""
        rows = await self._database.look_up(_OTHER_MODELS, model)
        return int(rows[0]["count"])


class TenantRepository:
    """One tenant and its keys. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def add(self, tenant: Tenant) -> None:
        """Insert `tenant` now, so that a taken id is reported here.

        Raises:
            TenantIdTakenError: there is one with that id.

        """
        self._db.add(tenant)
        with conflicts({"tenants_pkey": TenantIdTakenError(tenant.tenant_id)}):
            await self._db.flush()

    async def get(self, *, lock: bool = False) -> Tenant:
        """The tenant.

        Raises:
            TenantNotFoundError: there is no such tenant.

        """
        statement = select(Tenant).where(Tenant.tenant_id == self._tenant_id)
        tenant = await self._db.scalar(statement.with_for_update() if lock else statement)
        if tenant is None:
            raise TenantNotFoundError(self._tenant_id)
        return tenant

    async def patch(self, changes: dict[str, Any], *, expected: int | None) -> Tenant:
        """The changed tenant.

        Raises:
            TenantNotFoundError: there is no such tenant.
            VersionConflictError: its version is not `expected`.

        """
        tenant = await self.get(lock=True)
        await apply_changes(self._db, tenant, changes, expected=expected)
        return tenant

    async def note_model(self, model: str) -> None:
        """Remember that a vector of this tenant was made by `model`."""
        await self._db.execute(
            update(Tenant)
            .where(
                Tenant.tenant_id == self._tenant_id,
                literal(model) != func.all(Tenant.embedding_models),
            )
            .values(embedding_models=Tenant.embedding_models.op("||")([model]))
            .execution_options(synchronize_session=False)
        )

    async def add_key(self, key: ApiKey) -> None:
        key.tenant_id = self._tenant_id
        self._db.add(key)
        await self._db.flush()
        await self._db.refresh(key)

    async def list_keys(
        self, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[ApiKey]:
        """Keys, newest first, revoked ones too."""
        statement = select(ApiKey).where(ApiKey.tenant_id == self._tenant_id)
        rows = await self._db.scalars(
            after(
                statement,
                (ApiKey.create_time, ApiKey.key_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def delete_expired_keys(self, name: str, *, before: datetime) -> None:
        """Delete keys of this name that expired before `before`."""
        await self._db.execute(
            delete(ApiKey).where(
                ApiKey.tenant_id == self._tenant_id,
                ApiKey.key_name == name,
                ApiKey.expires_at < before,
            )
        )

    async def revoke_key(self, key_id: str, *, at: datetime) -> ApiKey:
        """The key, revoked; a second revocation keeps the first time.

        Raises:
            KeyNotFoundError: the tenant has no such key.

        """
        key = await self._db.scalar(
            select(ApiKey)
            .where(ApiKey.tenant_id == self._tenant_id, ApiKey.key_id == key_id)
            .with_for_update()
        )
        if key is None:
            raise KeyNotFoundError(key_id)
        key.revoked_at = key.revoked_at or at
        await self._db.flush()
        return key


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
