"""Tables of the store (items, and the texts of them that a search compares), namespaces as they are
stored, and whose store a caller works in.

The application has one store, and so has each agent whose key is restricted to it. A user's own
key, or a request that acts for a user, works in a store of that user, and with what the
application's or the agent's store has of the user.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from hashlib import sha256
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import Float, ForeignKey, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.identity.tenants.access import Access
from app.platform.database.base import Base, Id, TenantOwned


class StoreItem(TenantOwned, Base):
    """A JSON object under a namespace and a key.

    `path` is the namespace, its labels joined by periods. `space` is whose store it is: the
    application's, an agent's, or a user's own (`Spaces`). The id is a hash of the three.
    """

    __tablename__ = "store_items"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"], ondelete="CASCADE"
        ),
        Index("store_items_idx_path", "tenant_id", "space", "path"),
        Index("store_items_idx_user_id", "tenant_id", "user_id"),
        Index("store_items_idx_agent_id", "tenant_id", "agent_id"),
        Index(
            "store_items_idx_expires_at",
            "tenant_id",
            "expires_at",
            postgresql_where=text("expires_at IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    item_id: Mapped[str] = mapped_column(Id, primary_key=True)
    space: Mapped[str] = mapped_column(String(129, collation="C"))
    path: Mapped[str] = mapped_column(Text(collation="C"))
    key: Mapped[str] = mapped_column(Text(collation="C"))
    # Whose the item is, so that an erasure and an export take it along.
    user_id: Mapped[str | None] = mapped_column(Id)
    agent_id: Mapped[str | None] = mapped_column(Id)
    value: Mapped[dict[str, Any]] = mapped_column(JSONB)
    ttl_minutes: Mapped[float | None] = mapped_column(Float)
    expires_at: Mapped[datetime | None]
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    # Set by a put alone: neither a read that puts off the end nor a new vector changes it.
    update_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class StoreText(TenantOwned, Base):
    """A text of an item that is indexed, with the vector that finds it."""

    __tablename__ = "store_texts"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "item_id"],
            ["store_items.tenant_id", "store_items.item_id"],
            ondelete="CASCADE",
        ),
        Index("store_texts_idx_item_id", "tenant_id", "item_id"),
        Index("store_texts_idx_embedding_model", "tenant_id", "embedding_model", "text_id"),
    )

    # The item's id and the number of the text in it.
    text_id: Mapped[str] = mapped_column(Id, primary_key=True)
    item_id: Mapped[str] = mapped_column(Id)
    content: Mapped[str] = mapped_column(Text)
    embedding: Mapped[Any | None] = mapped_column(Vector(), deferred=True)
    embedding_model: Mapped[str | None] = mapped_column(String(255))


def path_of(namespace: Sequence[str]) -> str:
    """The labels joined by periods, which no label has."""
    return ".".join(namespace)


def namespace_of(path: str) -> list[str]:
    return path.split(".")


def item_id(space: str, path: str, key: str) -> str:
    """The same id in every tenant, so that an import meets what is there."""
    named = f"{space}\x00{path}\x00{key}"
    return f"itm_{sha256(named.encode()).hexdigest()[:32]}"


@dataclass(frozen=True, slots=True)
class Spaces:
    """Whose stores a caller sees.

    Args:
        shared: the application's or agent's store; a user sees only what it has of the user.
        own: the user's own store; the same as `shared` for everybody else.

    """

    shared: str
    own: str
    user_id: str | None

    @classmethod
    def of(cls, access: Access) -> "Spaces":
        agent, user = access.agent_id or "", access.user_id
        return cls(f"{agent}/", f"{agent}/{user or ''}", user)

    def ids(self, path: str, key: str) -> tuple[str, ...]:
        """Ids that the item may have, the caller's own first."""
        return tuple(item_id(space, path, key) for space in dict.fromkeys((self.own, self.shared)))
