"""saver_parts

Revision ID: saver_parts
Revises: session_blocks
Create Date: 2026-11-26 15:20:00+00:00

The expanding half: columns that the previous release does not know.
"""

from alembic import op

revision = "saver_parts"
down_revision = "session_blocks"
branch_labels = None
depends_on = None

INDEX = "saver_chunks_idx_staged_at"


def upgrade() -> None:
    op.execute("ALTER TABLE saver_chunks ADD COLUMN IF NOT EXISTS staged_at timestamptz(6)")
    op.execute("ALTER TABLE saver_writes ADD COLUMN IF NOT EXISTS chunks bytea[]")
    with op.get_context().autocommit_block():
        # An index that was given up half made stays: a second run begins anew.
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {INDEX}")
        op.execute(
            f"CREATE INDEX CONCURRENTLY {INDEX} ON saver_chunks (tenant_id, session_id, staged_at) "
            "WHERE staged_at IS NOT NULL"
        )


def downgrade() -> None:
    op.execute(f"DROP INDEX {INDEX}")
    op.execute("ALTER TABLE saver_writes DROP COLUMN chunks")
    op.execute("ALTER TABLE saver_chunks DROP COLUMN staged_at")
