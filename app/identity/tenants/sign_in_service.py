"""One-time codes, by which whoever started the service on this machine gets a key in a browser."""

import hashlib
import re
import secrets
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Final

import structlog

from app.identity.tenants.errors import (
    ExpiredSignInCodeError,
    UnknownSignInCodeError,
    UsedSignInCodeError,
)
from app.identity.tenants.models import SignInCode
from app.identity.tenants.repository import SignInRepository, TenantRepository
from app.identity.tenants.schemas import KeyCreate, KeyCreated, ScopeName
from app.identity.tenants.service import TenantService
from app.platform.values.fields import ID_PATTERN
from app.platform.work.unit import Work

log = structlog.get_logger()

CODE_LIFE: Final = timedelta(minutes=10)
KEY_LIFE: Final = timedelta(hours=12)

KEY_NAME: Final = "dashboard"

_KEPT: Final = timedelta(days=1)
"""How long after its end a code is known as expired or used, and a key as expired."""


class SignInService:
    """Makes codes and exchanges each for one key."""

    def __init__(self, work: Work, tenants: TenantService, now: Callable[[], datetime]) -> None:
        self._work = work
        self._tenants = tenants
        self._now = now

    async def add_code(self, tenant_id: str, scopes: Sequence[ScopeName]) -> str:
        """A new code for one key with `scopes`; it is good for CODE_LIFE and only its hash is kept.

        Codes that ended a day ago are removed, and keys named KEY_NAME that expired a day ago.
        """
        now = self._now()
        code = f"{tenant_id}!{secrets.token_hex(24)}"
        async with self._work.write(tenant_id, while_disabled=True) as unit:
            repository = SignInRepository(unit.db, tenant_id)
            await repository.delete_expired(before=now - _KEPT)
            await TenantRepository(unit.db, tenant_id).delete_expired_keys(
                KEY_NAME, before=now - _KEPT
            )
            row = SignInCode(code_hash=_hash(code), scopes=list(scopes), expires_at=now + CODE_LIFE)
            await repository.add(row)
        return code

    async def sign_in(self, code: str) -> KeyCreated:
        """A new key for a code, in the transaction that uses the code up; good for KEY_LIFE.

        Not safe to repeat: whoever loses the answer needs another code.

        Raises:
            UnknownSignInCodeError, UsedSignInCodeError, ExpiredSignInCodeError: 401.

        """
        tenant_id, now = code.partition("!")[0], self._now()
        if not re.fullmatch(ID_PATTERN, tenant_id):
            raise UnknownSignInCodeError
        async with self._work.write(tenant_id, while_disabled=True) as unit:
            row = await SignInRepository(unit.db, tenant_id).find(_hash(code))
            if row is None:
                raise UnknownSignInCodeError
            if row.used_at is not None:
                raise UsedSignInCodeError
            if row.expires_at <= now:
                raise ExpiredSignInCodeError
            row.used_at = now
            body = KeyCreate(key_name=KEY_NAME, scopes=list(row.scopes), expires_at=now + KEY_LIFE)
            made = await self._tenants.add_key_within(unit.db, tenant_id, body)
        log.info("browser_signed_in", tenant_id=tenant_id, key_id=made.key_id)
        return made


def _hash(code: str) -> bytes:
    # 192 random bits, as of a key.
    return hashlib.sha256(code.encode()).digest()
