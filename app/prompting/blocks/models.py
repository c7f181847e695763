"""The tables of blocks, of their agents, and of their earlier texts."""

from datetime import datetime
from typing import Any

from sqlalchemy import (
    CheckConstraint,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    String,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


class Block(TenantOwned, Timed, Base):
    """A text of limited length that its agents always see.

    With a user it is seen in that user's sessions alone, with a session in that one, whose user it
    then has too. With `per_user` it is a template: the
    first edit in a session makes that user's own copy, so that what one user says is never
    shown to a different user.
    """

    __tablename__ = "blocks"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "template_id"], ["blocks.tenant_id", "blocks.block_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "session_id IS NULL OR user_id IS NOT NULL AND template_id IS NULL", name="session_id"
        ),
        CheckConstraint("char_length(value) <= value_limit", name="value_limit"),
        CheckConstraint("user_id IS NULL OR NOT per_user", name="per_user"),
        CheckConstraint("template_id IS NULL OR user_id IS NOT NULL", name="template_id"),
        Index("blocks_idx_create_time", "tenant_id", "create_time", "block_id"),
        Index("blocks_idx_label", "tenant_id", "label"),
        Index("blocks_idx_user_id", "tenant_id", "user_id"),
        Index(
            "blocks_uk_session_label",
            "tenant_id",
            "session_id",
            "label",
            unique=True,
            postgresql_where=text("session_id IS NOT NULL"),
        ),
        # One copy of a template per user.
        Index(
            "blocks_uk_template_user",
            "tenant_id",
            "template_id",
            "user_id",
            unique=True,
            postgresql_where=text("template_id IS NOT NULL"),
        ),
    )  # fmt: skip

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    block_id: Mapped[str] = mapped_column(Id, primary_key=True)
    label: Mapped[str] = mapped_column(String(50))
    value: Mapped[str] = mapped_column(Text, server_default=text("''"), default="")
    # In characters (code points); "limit" is a word of SQL.
    value_limit: Mapped[int] = mapped_column(server_default=text("5000"), default=5000)
    description: Mapped[str | None] = mapped_column(Text)
    tags: Mapped[list[str]] = mapped_column(
        ARRAY(String(50)), server_default=text("'{}'"), default=list
    )
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    read_only: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    hidden: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    user_id: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    per_user: Mapped[bool] = mapped_column(server_default=text("false"), default=False)
    template_id: Mapped[str | None] = mapped_column(Id)
    # The entry of its history that it shows; undo and redo move it.
    history_no: Mapped[int] = mapped_column(server_default=text("1"), default=1)
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class AgentBlock(TenantOwned, Base):
    """A block in the context of an agent; an agent has each label once, and once for each user."""

    __tablename__ = "agent_blocks"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "block_id"], ["blocks.tenant_id", "blocks.block_id"], ondelete="CASCADE"
        ),
        Index(
            "agent_blocks_uk_label",
            "tenant_id",
            "agent_id",
            "label",
            text("coalesce(user_id, '')"),
            unique=True,
        ),
        Index("agent_blocks_idx_block_id", "tenant_id", "block_id"),
    )

    agent_id: Mapped[str] = mapped_column(Id, primary_key=True)
    block_id: Mapped[str] = mapped_column(Id, primary_key=True)
    # Copies of the block's own, so that a unique index can hold them.
    label: Mapped[str] = mapped_column(String(50))
    user_id: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=func.now())


class BlockHistory(TenantOwned, Base):
    """The text of a block after a change, and who made it; read for undo and redo.

    Entries with a number above the block's `history_no` were undone, and can be redone.
    """

    __tablename__ = "block_history"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "block_id"], ["blocks.tenant_id", "blocks.block_id"], ondelete="CASCADE"
        ),
    )

    block_id: Mapped[str] = mapped_column(Id, primary_key=True)
    history_no: Mapped[int] = mapped_column(primary_key=True)
    event: Mapped[str] = mapped_column(String(20))
    value: Mapped[str] = mapped_column(Text)
    description: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=func.clock_timestamp())
