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


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # An index whose building was interrupted is there, and not valid.
        for name in ("memories_idx_analyser", "messages_idx_analyser", "messages_idx_waiting"):
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
        for table in ("memories", "messages"):
            op.create_index(
                f"{table}_idx_analyser",
                table,
                ["tenant_id", "analyser"],
                postgresql_concurrently=True,
            )
        op.create_index(
            "messages_idx_waiting",
            "messages",
            ["tenant_id", "session_id", "sequence_no"],
            postgresql_where=sa.text(
                "analyser IS NULL OR (terms IS NOT NULL AND embedding_model IS NULL)"
            ),
            postgresql_concurrently=True,
        )


def downgrade() -> None:
    op.drop_index("messages_idx_waiting", "messages")
    for table in ("messages", "memories"):
        op.drop_index(f"{table}_idx_analyser", table)
