"""Find what a window needs: indexes of instructions, of calls and of their results

Revision ID: 0006
Revises: 0005
Create Date: 2026-11-21 23:55:00+00:00

Built while the previous release appends, and in a revision of its own: what is interrupted is
simply run again.
"""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

INDEXES = {
    "messages_idx_instructions": (
        ["tenant_id", "session_id", "sequence_no"],
        "role = 'system' AND (metadata ->> 'event_type') IS NULL",
    ),
    "messages_idx_calls": (
        ["tenant_id", "session_id", "sequence_no"],
        "tool_calls IS NOT NULL",
    ),
    "messages_idx_results": (
        ["tenant_id", "session_id", "tool_call_id", "sequence_no"],
        "tool_call_id IS NOT NULL",
    ),
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for name, (columns, condition) in INDEXES.items():
            # An index whose building was interrupted is there, and not valid.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.create_index(
                name,
                "messages",
                columns,
                postgresql_where=sa.text(condition),
                postgresql_concurrently=True,
            )


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
