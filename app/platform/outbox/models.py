"""The outbox: the types of events that the service publishes, what an event may carry, and the
tables of webhooks and of their deliveries.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from pydantic import JsonValue
from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed
from app.platform.values.fields import is_own_id

PublishedType = Literal[
    "memory.added",
    "memory.updated",
    "memory.superseded",
    "memory.deleted",
    "memory.rejected",
    "extraction.failed",
    "session.compacted",
    "job.dead",
]
"""Types that a webhook can subscribe to."""

EventType = Literal[PublishedType, "webhook.test"]

EVERY_TYPE = "*"
"""In a webhook's list: all types, those of later releases too."""

OWN_IDS = frozenset({"user_id", "agent_id", "project_id", "session_id", "scope_id"})
"""What an event names by an id that a caller chose, in any script."""

# Ids of ours, codes, model names and times match; a sentence does not, in any language.
_CODE = re.compile(r"[A-Za-z0-9._:@|+=~/-]{1,255}\Z")


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened, as receivers get it.

    Args:
        data: ids, codes and numbers. Never content: a receiver that may read it fetches the
            memory, so content that was deleted meanwhile is not sent.
        user_id: the user it is about, so that an erasure finds pending deliveries.

    """

    type: EventType
    data: Mapping[str, JsonValue]
    user_id: str | None = None

    def __post_init__(self) -> None:
        if not all(_may_carry(name, value) for name, value in self.data.items()):
            raise ValueError(f"an event {self.type} may carry ids, codes and numbers alone")
        if self.data.get("user_id") not in {None, self.user_id}:
            raise ValueError(f"an event {self.type} names a user and hides it from erasures")


def _may_carry(name: str, value: JsonValue) -> bool:
    if name in OWN_IDS and isinstance(value, str):
        return is_own_id(value)
    return _is_code(value)


def _is_code(value: JsonValue) -> bool:
    if isinstance(value, str):
        return _CODE.match(value) is not None
    if isinstance(value, list):
        return all(_is_code(item) for item in value)
    if isinstance(value, dict):
        return all(_is_code(part) for pair in value.items() for part in pair)
    return True


class Webhook(TenantOwned, Timed, Base):
    """An address that receives some types of event. The secret is shown once.

    It is stored encrypted (`app/governance/webhooks/sender.py`), since a signature cannot be
    made from a hash.
    """

    __tablename__ = "webhooks"
    __table_args__ = (Index("webhooks_idx_create_time", "tenant_id", "create_time", "webhook_id"),)

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    webhook_id: Mapped[str] = mapped_column(Id, primary_key=True)
    url: Mapped[str] = mapped_column(Text)
    secret: Mapped[str] = mapped_column(Text)
    # After a rotation both sign for a while, so that the receiver can change over.
    old_secret: Mapped[str | None] = mapped_column(Text)
    old_secret_expires_at: Mapped[datetime | None]
    events: Mapped[list[str]] = mapped_column(ARRAY(String(40)))
    description: Mapped[str | None] = mapped_column(Text)
    enabled: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    # Why the service itself disabled it; null when a caller did, or when it is enabled.
    disabled_reason: Mapped[str | None] = mapped_column(String(40))
    # Attempts that failed in a row, since when, and until when nothing more is tried.
    failures: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    failing_since: Mapped[datetime | None]
    last_failure_at: Mapped[datetime | None]
    paused_until: Mapped[datetime | None]
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class WebhookDelivery(TenantOwned, Timed, Base):
    """One event for one webhook, written in the transaction of the change.

    The payload has ids, never content: content that was deleted meanwhile is not sent.
    """

    __tablename__ = "webhook_deliveries"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.webhook_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("status IN ('pending', 'delivered', 'dead')", name="status"),
        Index(
            "webhook_deliveries_idx_due",
            "tenant_id",
            "webhook_id",
            "next_attempt_at",
            "delivery_id",
            postgresql_where=text("status = 'pending'"),
        ),
        Index(
            "webhook_deliveries_idx_webhook_id",
            "tenant_id",
            "webhook_id",
            "create_time",
            "delivery_id",
        ),
        Index("webhook_deliveries_idx_user_id", "tenant_id", "user_id"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    delivery_id: Mapped[str] = mapped_column(Id, primary_key=True)
    webhook_id: Mapped[str] = mapped_column(Id)
    # The same for all webhooks that receive the event, and for a repeated delivery.
    event_id: Mapped[str] = mapped_column(Id)
    event_type: Mapped[str] = mapped_column(String(40))
    payload: Mapped[dict[str, Any]] = mapped_column(JSONB)
    user_id: Mapped[str | None] = mapped_column(Id)
    status: Mapped[str] = mapped_column(String(20), server_default=text("'pending'"))
    attempts: Mapped[int] = mapped_column(SmallInteger, server_default=text("0"))
    # While an attempt runs: when it counts as lost.
    next_attempt_at: Mapped[datetime | None] = mapped_column(server_default=text("now()"))
    attempted_at: Mapped[datetime | None]
    response_status: Mapped[int | None] = mapped_column(SmallInteger)
    error_code: Mapped[str | None] = mapped_column(String(50))
    duration_ms: Mapped[int | None]
    delivered_at: Mapped[datetime | None]
