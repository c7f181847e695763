"""Find what is unread: indexes of what searches cannot find yet, or not by meaning

Revision ID: 0004
Revises: 0003
Create Date: 2026-11-21 20:30:00+00:00

Built while the previous release appends, and in a revision of its own: what is interrupted is
simply run again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


INDEXES = (
    "memories_idx_analyser",
    "messages_idx_analyser",
    "memory_history_idx_analyser",
    "messages_idx_agent_create_time",
    "messages_idx_waiting",
)


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # An index whose building was interrupted is there, and not valid.
        for name in INDEXES:
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        _build("memories_idx_analyser", "memories", "analyser")
        _build("messages_idx_analyser", "messages", "analyser")
        _build(
            "memory_history_idx_analyser",
            "memory_history",
            "analyser",
            where="embedding IS NOT NULL",
        )
        _build("messages_idx_agent_create_time", "messages", "agent_id", "create_time")
        _build(
            "messages_idx_waiting",
            "messages",
            "session_id",
            "sequence_no",
            where="analyser IS NULL OR (terms IS NOT NULL AND embedding_model IS NULL)",
        )


def downgrade() -> None:
    for name in reversed(INDEXES):
        op.execute(f"DROP INDEX {name}")


def _build(name: str, table: str, *columns: str, where: str | None = None) -> None:
    op.create_index(
        name,
        table,
        ["tenant_id", *columns],
        postgresql_where=None if where is None else sa.text(where),
        postgresql_concurrently=True,
    )
