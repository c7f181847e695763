"""message_copies

Revision ID: message_copies
Revises: saver_parts
Create Date: 2026-11-26 16:10:00+00:00

An index of the copies in forks, which the previous release does not need.
"""

from alembic import op

revision = "message_copies"
down_revision = "saver_parts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # An index that was given up half made stays: a second run begins anew.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS messages_idx_copied_from")
        op.execute(
            "CREATE INDEX CONCURRENTLY messages_idx_copied_from "
            "ON messages (tenant_id, copied_from, message_id) WHERE copied_from IS NOT NULL"
        )


def downgrade() -> None:
    op.execute("DROP INDEX messages_idx_copied_from")
