"""Use cases of tenants and keys: who is calling, and who may call."""

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access, Principal, own_prefix
from app.identity.tenants.errors import (
    ExpiredKeyError,
    ExpiryInPastError,
    InsufficientScopeError,
    OwnTenantError,
    RevokedKeyError,
    TenantDisabledError,
    UnknownKeyError,
)
from app.identity.tenants.models import ApiKey, Tenant
from app.identity.tenants.repository import KeyDirectory, TenantRepository
from app.identity.tenants.schemas import (
    KeyCreate,
    KeyCreated,
    KeyRead,
    ScopeName,
    TenantCreate,
    TenantCreated,
    TenantPatch,
    TenantRead,
)
from app.language.llm.embedder_catalogue import EmbedderCatalogue
from app.platform.database.base import new_id
from app.platform.database.engine import enter_tenant
from app.platform.jobs.begun_jobs import hasten_begun
from app.platform.jobs.repository import JobRepository
from app.platform.plugins.runner import Processors
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

QUOTAS: Final = ("daily_calls", "daily_tokens")
"""Limits in a tenant's config, and the reasons of jobs that wait because one is used up."""

log = structlog.get_logger()

Now = Callable[[], datetime]


class KeyUse:
    """When keys were last used, noted in memory and written in batches.

    A write per request would make every read a write. What is lost when the process dies
    is the last second of it.
    """

    def __init__(self, directory: KeyDirectory) -> None:
        self._directory = directory
        self._uses: dict[tuple[str, str], datetime] = {}

    def note(self, tenant_id: str, key_id: str, at: datetime) -> None:
        self._uses[tenant_id, key_id] = at

    async def flush(self) -> None:
        """Write the noted uses; on failure they are kept for the next time."""
        uses, self._uses = self._uses, {}
        if not uses:
            return
        try:
            await self._directory.touch(uses)
        except BaseException:
            self._uses = uses | self._uses
            raise


class Identification:
    """Key to principal, once per request and never from a cache: revocation is immediate."""

    def __init__(
        self,
        directory: KeyDirectory,
        uses: KeyUse,
        now: Now,
        default_user_id: str | None = None,
    ) -> None:
        """Prepare for requests about the default user where they and their key name nobody."""
        self._directory = directory
        self._uses = uses
        self._now = now
        self._default_user_id = default_user_id

    async def identify(self, key: str) -> Principal:
        """Who holds `key`.

        Raises:
            UnknownKeyError, ExpiredKeyError, RevokedKeyError: 401.
            TenantDisabledError: 403.

        """
        parts = key.split("_")
        if len(parts) != 3 or parts[0] != "kem" or not key.isascii():
            raise UnknownKeyError
        row = await self._directory.find(parts[1])
        if row is None or not hmac.compare_digest(row["key_hash"], _hash(key)):
            raise UnknownKeyError
        if row["revoked"]:
            raise RevokedKeyError
        if row["expired"]:
            raise ExpiredKeyError
        if row["status"] == 0:
            raise TenantDisabledError
        self._uses.note(row["tenant_id"], row["key_id"], self._now())
        agent_id, user_id = row["agent_id"], row["user_id"]
        access = Access(
            row["tenant_id"],
            agent_id,
            user_id,
            self._default_user_id if agent_id is None and user_id is None else None,
            own_prefix(user_id, agent_id),
        )
        return Principal(
            access=access,
            key_id=row["key_id"],
            scopes=frozenset(row["scopes"]),
            config=json.loads(row["config"]),
            embedding_models=tuple(row["embedding_models"]),
        )


class TenantService:
    """What operators do with tenants, and admins with keys."""

    def __init__(
        self,
        work: Work,
        catalogue: EmbedderCatalogue,
        now: Now,
        processors: Processors | None = None,
    ) -> None:
        """Without `processors`, as at the console, none can be chosen."""
        self._work = work
        self._catalogue = catalogue
        self._now = now
        self._processors = processors or Processors()

    async def add(
        self,
        body: TenantCreate,
        *,
        actor: Principal | None = None,
        key: IdempotencyKey | None = None,
        first_scopes: tuple[ScopeName, ...] = ("admin",),
    ) -> TenantCreated:
        """Create a tenant and its first key, which is shown here and never again.

        Args:
            actor: the operator; None for a command at the machine's console.
            first_scopes: what the key may do; only the embedded service's own does more.

        Raises:
            TenantIdTakenError: there is a tenant with that id.
            UnknownEmbedderError: `config.embedding` names no usable model.
            InvalidProcessorsError: `config.processors` are not allowed here.

        """
        await self._check_config(body.config)
        tenant = Tenant(
            tenant_id=body.tenant_id or new_id("tnt"),
            tenant_name=body.tenant_name,
            config=body.config,
        )
        home = actor.tenant_id if actor else tenant.tenant_id
        async with self._work.write(home, key, while_disabled=True) as unit:
            await enter_tenant(unit.db, tenant.tenant_id)
            repository = TenantRepository(unit.db, tenant.tenant_id)
            await repository.add(tenant)
            await unit.db.refresh(tenant)
            first = KeyCreate(key_name="first key", scopes=list(first_scopes))
            made = await self._add_key(repository, first, actor.key_id if actor else None)
            await enter_tenant(unit.db, home)
            created = TenantCreated(**TenantRead.model_validate(tenant).model_dump(), key=made)
            # A secret is shown once: a repeated answer comes without it.
            kept = created.model_copy(update={"key": made.model_copy(update={"key": None})})
            unit.answer(created, 201, kept=kept)
        log.info("tenant_created", tenant_id=tenant.tenant_id)
        return created

    async def get(self, tenant_id: str) -> TenantRead:
        """The tenant.

        Raises:
            TenantNotFoundError: there is no such tenant.

        """
        async with self._work.read(tenant_id) as db:
            return TenantRead.model_validate(await TenantRepository(db, tenant_id).get())

    async def list_tenants(self, *, cursor: str | None, limit: int) -> Page[TenantRead]:
        """A page of tenants, newest first."""
        start = decode_time(cursor, "tenants")
        rows = await KeyDirectory(self._work.database).tenants(start, limit)
        return page(
            "tenants",
            rows,
            limit,
            show=lambda row: TenantRead.model_validate(
                {**dict(row), "config": json.loads(row["config"])}
            ),
            place=lambda row: (row["create_time"], row["tenant_id"]),
        )

    async def patch(
        self,
        tenant_id: str,
        body: TenantPatch,
        *,
        expected: int | None = None,
        actor: Principal | None = None,
    ) -> TenantRead:
        """The changed tenant. Work that waits for its quota goes on, or waits again, at once
        when that has changed.

        Args:
            expected: the version it must have.
            actor: the operator; None for a command at the machine's console.

        Raises:
            TenantNotFoundError, VersionConflictError, UnknownEmbedderError,
            InvalidProcessorsError.
            OwnTenantError: the operator would lock itself out.

        """
        if body.status == "disabled" and actor is not None and actor.tenant_id == tenant_id:
            raise OwnTenantError
        changes: dict[str, Any] = body.model_dump(exclude_unset=True, exclude_none=True)
        if "status" in changes:
            changes["status"] = int(changes["status"] == "enabled")
        await self._check_config(changes.get("config", {}))
        async with self._work.write(tenant_id, while_disabled=True) as unit:
            repository = TenantRepository(unit.db, tenant_id)
            before = (await repository.get(lock=True)).config
            tenant = await repository.patch(changes, expected=expected)
            changed = any(before.get(name) != tenant.config.get(name) for name in QUOTAS)
            if changed:
                await JobRepository(unit.db, tenant_id).hasten_deferred(QUOTAS)
            shown = TenantRead.model_validate(tenant)
        if changed:
            # What has begun before the commit has read the old quota.
            await hasten_begun(self._work.database, tenant_id, QUOTAS)
        return shown

    async def add_key(
        self,
        tenant_id: str,
        body: KeyCreate,
        *,
        actor: Principal | None = None,
        key: IdempotencyKey | None = None,
    ) -> KeyCreated:
        """Create a key; it is shown here and never again.

        Args:
            actor: the caller; None for a command at the machine's console.

        Raises:
            InsufficientScopeError: only an operator makes operator keys.
            ExpiryInPastError: it would have expired already.
            TenantNotFoundError: there is no such tenant.

        """
        if "operator" in body.scopes and actor and not actor.may("operator"):
            raise InsufficientScopeError("operator")
        home = actor.tenant_id if actor else tenant_id
        async with self._work.write(home, key, while_disabled=True) as unit:
            # Behind the claim: a repetition is answered as before, when it has expired too.
            if body.expires_at is not None and body.expires_at <= self._now():
                raise ExpiryInPastError
            await enter_tenant(unit.db, tenant_id)
            repository = TenantRepository(unit.db, tenant_id)
            await repository.get()
            made = await self._add_key(repository, body, actor.key_id if actor else None)
            await enter_tenant(unit.db, home)
            unit.answer(made, 201, kept=made.model_copy(update={"key": None}))
        log.info("key_created", tenant_id=tenant_id, key_id=made.key_id, scopes=made.scopes)
        return made

    async def add_key_within(self, db: AsyncSession, tenant_id: str, body: KeyCreate) -> KeyCreated:
        """Create a key in the caller's transaction, which is in that tenant."""
        return await self._add_key(TenantRepository(db, tenant_id), body, None)

    async def list_keys(self, tenant_id: str, *, cursor: str | None, limit: int) -> Page[KeyRead]:
        """Keys of a tenant, newest first, revoked and expired ones too."""
        start = decode_time(cursor, "keys")
        async with self._work.read(tenant_id) as db:
            repository = TenantRepository(db, tenant_id)
            await repository.get()
            rows = await repository.list_keys(start=start, limit=limit)
        return page(
            "keys",
            rows,
            limit,
            show=KeyRead.model_validate,
            place=lambda key: (key.create_time, key.key_id),
        )

    async def revoke_key(self, tenant_id: str, key_id: str) -> KeyRead:
        """Revoke a key; the next request that carries it is refused. Safe to repeat.

        Raises:
            KeyNotFoundError: the tenant has no such key.

        """
        async with self._work.write(tenant_id, while_disabled=True) as unit:
            key = await TenantRepository(unit.db, tenant_id).revoke_key(key_id, at=self._now())
            shown = KeyRead.model_validate(key)
        log.info("key_revoked", tenant_id=tenant_id, key_id=key_id)
        return shown

    async def _add_key(
        self, repository: TenantRepository, body: KeyCreate, creator: str | None
    ) -> KeyCreated:
        prefix = secrets.token_hex(8)
        secret = f"kem_{prefix}_{secrets.token_hex(24)}"
        row = ApiKey(
            key_id=new_id("key"),
            key_prefix=prefix,
            key_hash=_hash(secret),
            creator=creator,
            **body.model_dump(),
        )
        await repository.add_key(row)
        return KeyCreated(**KeyRead.model_validate(row).model_dump(), key=secret)

    async def _check_config(self, config: dict[str, Any]) -> None:
        handle = config.get("embedding")
        if handle is not None:
            await self._catalogue.resolve(str(handle))
        self._processors.check(config)


def _hash(key: str) -> bytes:
    # The key is 192 random bits, so a plain hash cannot be guessed backwards.
    return hashlib.sha256(key.encode()).digest()
