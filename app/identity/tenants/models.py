"""Tables of tenants and their keys."""

from datetime import datetime
from typing import Any

from sqlalchemy import CheckConstraint, ForeignKey, Index, LargeBinary, SmallInteger, String, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.identity.tenants.access import own_prefix, plain_prefix
from app.platform.database.base import Base, Id, TenantOwned, Timed


class Tenant(TenantOwned, Timed, Base):
    """The owner of data and keys; the outermost border of every query."""

    __tablename__ = "tenants"
    __table_args__ = (CheckConstraint("status IN (0, 1)", name="status"),)

    tenant_name: Mapped[str] = mapped_column(String(255))
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    config: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"), default=dict)
    # Models that made a vector of this tenant: a query is embedded with each of them.
    embedding_models: Mapped[list[str]] = mapped_column(
        ARRAY(String), server_default=text("'{}'"), default=list
    )
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class ApiKey(TenantOwned, Base):
    """One key. Only its hash is kept; `key_prefix` is public and finds the row."""

    __tablename__ = "api_keys"
    __table_args__ = (
        # The tenant comes last, because a key is looked up before its tenant is known.
        Index("api_keys_uk_key_prefix", "key_prefix", "tenant_id", unique=True),
        Index("api_keys_idx_create_time", "tenant_id", "create_time", "key_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    key_id: Mapped[str] = mapped_column(Id, primary_key=True)
    key_prefix: Mapped[str] = mapped_column(Id)
    key_hash: Mapped[bytes] = mapped_column(LargeBinary)
    key_name: Mapped[str | None] = mapped_column(String(255))
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    # The restriction names ids, not rows: a key may be made before its user.
    agent_id: Mapped[str | None] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    expires_at: Mapped[datetime | None]
    revoked_at: Mapped[datetime | None]
    last_used_at: Mapped[datetime | None]
    creator: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("now()"))

    @property
    def id_prefix(self) -> str | None:
        """What ids begin with that the key chooses; None if it may choose any."""
        named = own_prefix(self.user_id, self.agent_id)
        return None if named is None else plain_prefix(named)


class SignInCode(TenantOwned, Base):
    """A one-time code for a key, of which only the hash is kept."""

    __tablename__ = "sign_in_codes"

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    code_hash: Mapped[bytes] = mapped_column(LargeBinary, primary_key=True)
    scopes: Mapped[list[str]] = mapped_column(ARRAY(String))
    expires_at: Mapped[datetime]
    used_at: Mapped[datetime | None]
