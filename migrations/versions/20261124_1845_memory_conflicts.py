"""memory_conflicts

Revision ID: memory_conflicts
Revises: memory_speaker
Create Date: 2026-11-24 18:45:00+00:00

The expanding half: a column that the previous release does not know and leaves null, and an index
of the few rows that have it.
"""

from alembic import op

revision = "memory_conflicts"
down_revision = "memory_speaker"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        'ALTER TABLE memories ADD COLUMN IF NOT EXISTS conflict_ids varchar(64)[] COLLATE "C"'
    )
    with op.get_context().autocommit_block():
        # An index that was given up half made stays: a second run begins anew.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS memories_idx_conflict_ids")
        op.execute(
            "CREATE INDEX CONCURRENTLY memories_idx_conflict_ids "
            "ON memories (tenant_id, create_time, memory_id) WHERE conflict_ids IS NOT NULL"
        )


def downgrade() -> None:
    op.execute("DROP INDEX memories_idx_conflict_ids")
    op.execute("ALTER TABLE memories DROP COLUMN conflict_ids")
