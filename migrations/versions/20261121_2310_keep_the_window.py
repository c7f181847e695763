"""Keep the window: the pointer and its counters, summaries, checkpoints, blocks, working state

Revision ID: 0005
Revises: 0004
Create Date: 2026-11-21 23:10:00+00:00

New tables, and new columns that the previous release neither reads nor has to fill: what it
appends has no token count, and its sessions are counted again when this release writes to them.
"""

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.platform.database.roles import tenant_policies

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

ID = sa.String(64, collation="C")
KEY = sa.String(255, collation="C")
TIME = postgresql.TIMESTAMP(timezone=True, precision=6)
JSONB = postgresql.JSONB()

TABLES = (
    "session_states",
    "session_state_snapshot",
    "session_summaries",
    "checkpoints",
    "checkpoint_archive",
    "approvals",
    "saver_checkpoints",
    "saver_values",
    "saver_chunks",
    "saver_writes",
    "blocks",
    "agent_blocks",
    "block_history",
    "context_injections",
)

# With a time of change that a trigger keeps.
TIMED = ("session_states", "blocks")


def upgrade() -> None:
    _columns()
    _session_states()
    _session_state_snapshot()
    _session_summaries()
    _checkpoints()
    _checkpoint_archive()
    _approvals()
    _saver_checkpoints()
    _saver_values()
    _saver_chunks()
    _saver_writes()
    _blocks()
    _agent_blocks()
    _block_history()
    _context_injections()
    for table in TIMED:
        op.execute(
            f"CREATE TRIGGER {table}_update_time BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time()"
        )
    for table in TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    for column in reversed(_session_columns()):
        op.drop_column("sessions", column.name)
    op.drop_column("messages", "token_count")
    op.drop_column("agents", "window_policy")


def _columns() -> None:
    op.add_column("agents", sa.Column("window_policy", JSONB))
    op.add_column("messages", sa.Column("token_count", sa.BigInteger()))
    for column in _session_columns():
        op.add_column("sessions", column)


def _session_columns() -> list[sa.Column[Any]]:
    zero = sa.text("0")
    return [
        sa.Column("in_context_from", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column(
            "set_aside", postgresql.INT8MULTIRANGE(), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("window_tokens", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column("window_messages", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column("window_seq", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column("last_user_seq", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column("token_scale", sa.Double(), server_default=sa.text("1"), nullable=False),
        sa.Column(
            "summary_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("summary_tokens", sa.BigInteger(), server_default=zero, nullable=False),
        sa.Column("window_policy", JSONB),
    ]


def _session_states() -> None:
    op.create_table(
        "session_states",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("state", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="session_states_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", name="session_states_pkey"),
    )


def _session_state_snapshot() -> None:
    op.create_table(
        "session_state_snapshot",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("snapshot_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("seq", sa.BigInteger(), nullable=False),
        sa.Column("state", JSONB, nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("reason", sa.String(20), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint(
            "reason IN ('manual', 'periodic', 'end', 'before_compact', 'before_restore')",
            name="session_state_snapshot_ck_reason",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="session_state_snapshot_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "snapshot_id", name="session_state_snapshot_pkey"),
    )
    op.create_index(
        "session_state_snapshot_idx_session",
        "session_state_snapshot",
        ["tenant_id", "session_id", "create_time", "snapshot_id"],
    )


def _session_summaries() -> None:
    op.create_table(
        "session_summaries",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("summary_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("level", sa.SmallInteger(), nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("from_seq", sa.BigInteger(), nullable=False),
        sa.Column("to_seq", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("tokens", sa.BigInteger(), nullable=False),
        sa.Column("evicted_messages", sa.BigInteger(), nullable=False),
        sa.Column("evicted_tokens", sa.BigInteger(), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("shortened", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("reason", sa.String(20), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint("from_seq <= to_seq", name="session_summaries_ck_range"),
        sa.CheckConstraint("level >= 0", name="session_summaries_ck_level"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="session_summaries_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "summary_id", name="session_summaries_pkey"),
    )
    op.create_index(
        "session_summaries_idx_session",
        "session_summaries",
        ["tenant_id", "session_id", "create_time", "summary_id"],
    )


def _checkpoints() -> None:
    op.create_table(
        "checkpoints",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("contents", JSONB, nullable=False),
        sa.Column("state", JSONB, nullable=False),
        sa.Column("state_version", sa.BigInteger(), nullable=False),
        sa.Column("checkpoint_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("namespace", sa.String(255), server_default=sa.text("''"), nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(50), nullable=True),
        sa.Column("reason", sa.String(20), server_default=sa.text("'manual'"), nullable=False),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("message_seq", sa.BigInteger(), nullable=False),
        sa.Column(
            "set_aside", postgresql.INT8MULTIRANGE(), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("in_context_from", sa.BigInteger(), nullable=False),
        sa.Column(
            "summary_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint(
            "reason IN ('manual', 'periodic', 'end', 'before_compact', 'before_restore')",
            name="checkpoints_ck_reason",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="checkpoints_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "checkpoint_id", name="checkpoints_pkey"),
    )
    op.create_index("checkpoints_idx_create_time", "checkpoints", ["tenant_id", "create_time"])
    op.create_index(
        "checkpoints_idx_session",
        "checkpoints",
        ["tenant_id", "session_id", "create_time", "checkpoint_id"],
    )


def _checkpoint_archive() -> None:
    op.create_table(
        "checkpoint_archive",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("compressed", sa.LargeBinary(), nullable=False),
        sa.Column("archived_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("checkpoint_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("namespace", sa.String(255), server_default=sa.text("''"), nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("step", sa.BigInteger(), nullable=True),
        sa.Column("source", sa.String(50), nullable=True),
        sa.Column("reason", sa.String(20), server_default=sa.text("'manual'"), nullable=False),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("message_seq", sa.BigInteger(), nullable=False),
        sa.Column(
            "set_aside", postgresql.INT8MULTIRANGE(), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("in_context_from", sa.BigInteger(), nullable=False),
        sa.Column(
            "summary_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("size_bytes", sa.BigInteger(), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="checkpoint_archive_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "checkpoint_id", name="checkpoint_archive_pkey"),
    )
    op.create_index(
        "checkpoint_archive_idx_session",
        "checkpoint_archive",
        ["tenant_id", "session_id", "create_time", "checkpoint_id"],
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("approval_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("tool_call_id", sa.String(255), nullable=False),
        sa.Column("message_id", ID, nullable=True),
        sa.Column("sequence_no", sa.BigInteger(), nullable=False),
        sa.Column("status", sa.String(20), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("call", JSONB, nullable=False),
        sa.Column("arguments", JSONB, nullable=True),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("actor", ID, nullable=True),
        sa.Column("expires_at", TIME, nullable=False),
        sa.Column("decided_at", TIME, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'approved', 'rejected', 'modified', 'timeout')",
            name="approvals_ck_status",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="approvals_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "approval_id", name="approvals_pkey"),
    )
    op.create_index(
        "approvals_idx_expires_at",
        "approvals",
        ["tenant_id", "expires_at"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "approvals_idx_session",
        "approvals",
        ["tenant_id", "session_id", "create_time", "approval_id"],
    )
    op.create_index(
        "approvals_uk_call",
        "approvals",
        ["tenant_id", "session_id", "tool_call_id", "sequence_no"],
        unique=True,
    )


def _saver_checkpoints() -> None:
    op.create_table(
        "saver_checkpoints",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("namespace", KEY, nullable=False),
        sa.Column("checkpoint_id", ID, nullable=False),
        sa.Column("parent_id", ID, nullable=True),
        sa.Column("run_id", KEY, nullable=True),
        sa.Column("metadata", JSONB, nullable=False),
        sa.Column("channels", JSONB, nullable=False),
        sa.Column("type", sa.String(100), nullable=False),
        sa.Column("checkpoint", sa.LargeBinary(), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="saver_checkpoints_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "session_id", "namespace", "checkpoint_id", name="saver_checkpoints_pkey"
        ),
    )
    op.create_index(
        "saver_checkpoints_idx_run_id",
        "saver_checkpoints",
        ["tenant_id", "run_id"],
        postgresql_where=sa.text("run_id IS NOT NULL"),
    )
    op.create_index(
        "saver_checkpoints_idx_checkpoint_id",
        "saver_checkpoints",
        ["tenant_id", "checkpoint_id", "session_id", "namespace"],
    )


def _saver_values() -> None:
    op.create_table(
        "saver_values",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("type", sa.String(100), nullable=False),
        sa.Column("chunks", postgresql.ARRAY(sa.LargeBinary()), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="saver_values_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "digest", name="saver_values_pkey"),
    )


def _saver_chunks() -> None:
    op.create_table(
        "saver_chunks",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("digest", sa.LargeBinary(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="saver_chunks_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", "digest", name="saver_chunks_pkey"),
    )


def _saver_writes() -> None:
    op.create_table(
        "saver_writes",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("namespace", KEY, nullable=False),
        sa.Column("checkpoint_id", ID, nullable=False),
        sa.Column("task_id", KEY, nullable=False),
        sa.Column("idx", sa.BigInteger(), nullable=False),
        sa.Column("task_path", sa.Text(), nullable=False),
        sa.Column("channel", KEY, nullable=False),
        sa.Column("type", sa.String(100), nullable=False),
        sa.Column("value", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id", "namespace", "checkpoint_id"],
            [
                f"saver_checkpoints.{column}"
                for column in ("tenant_id", "session_id", "namespace", "checkpoint_id")
            ],
            name="saver_writes_fk_saver_checkpoints",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id",
            "session_id",
            "namespace",
            "checkpoint_id",
            "task_id",
            "idx",
            name="saver_writes_pkey",
        ),
    )


def _blocks() -> None:
    op.create_table(
        "blocks",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("block_id", ID, nullable=False),
        sa.Column("label", sa.String(50), nullable=False),
        sa.Column("value", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("value_limit", sa.BigInteger(), server_default=sa.text("5000"), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column(
            "tags", postgresql.ARRAY(sa.String(50)), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("read_only", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("hidden", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("per_user", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("template_id", ID, nullable=True),
        sa.Column("history_no", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("char_length(value) <= value_limit", name="blocks_ck_value_limit"),
        sa.CheckConstraint("user_id IS NULL OR NOT per_user", name="blocks_ck_per_user"),
        sa.CheckConstraint(
            "template_id IS NULL OR user_id IS NOT NULL", name="blocks_ck_template_id"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="blocks_fk_users",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "template_id"],
            ["blocks.tenant_id", "blocks.block_id"],
            name="blocks_fk_blocks",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="blocks_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "block_id", name="blocks_pkey"),
    )
    op.create_index("blocks_idx_create_time", "blocks", ["tenant_id", "create_time", "block_id"])
    op.create_index("blocks_idx_label", "blocks", ["tenant_id", "label"])
    op.create_index("blocks_idx_user_id", "blocks", ["tenant_id", "user_id"])
    op.create_index(
        "blocks_uk_template_user",
        "blocks",
        ["tenant_id", "template_id", "user_id"],
        unique=True,
        postgresql_where=sa.text("template_id IS NOT NULL"),
    )


def _agent_blocks() -> None:
    op.create_table(
        "agent_blocks",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("block_id", ID, nullable=False),
        sa.Column("label", sa.String(50), nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name="agent_blocks_fk_agents",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "block_id"],
            ["blocks.tenant_id", "blocks.block_id"],
            name="agent_blocks_fk_blocks",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "agent_id", "block_id", name="agent_blocks_pkey"),
    )
    op.create_index("agent_blocks_idx_block_id", "agent_blocks", ["tenant_id", "block_id"])
    op.create_index(
        "agent_blocks_uk_label",
        "agent_blocks",
        ["tenant_id", "agent_id", "label", sa.literal_column("coalesce(user_id, '')")],
        unique=True,
    )


def _block_history() -> None:
    op.create_table(
        "block_history",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("block_id", ID, nullable=False),
        sa.Column("history_no", sa.BigInteger(), nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("actor", ID, nullable=True),
        sa.Column("session_id", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "block_id"],
            ["blocks.tenant_id", "blocks.block_id"],
            name="block_history_fk_blocks",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "block_id", "history_no", name="block_history_pkey"),
    )


def _context_injections() -> None:
    op.create_table(
        "context_injections",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("session_id", ID, nullable=False),
        sa.Column("memory_id", ID, nullable=False),
        sa.Column("first_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("last_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            name="context_injections_fk_memories",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="context_injections_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "session_id", "memory_id", name="context_injections_pkey"
        ),
    )
    op.create_index(
        "context_injections_idx_memory", "context_injections", ["tenant_id", "memory_id"]
    )
