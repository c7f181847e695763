"""memory_corrections

Revision ID: memory_corrections
Revises: counted_verdicts
Create Date: 2026-11-27 11:40:00+00:00

The expanding half: an index of the corrections of a bucket, built beside writers. The previous
release does not read it.
"""

from alembic import op

revision = "memory_corrections"
down_revision = "counted_verdicts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # An attempt that was interrupted leaves an invalid one.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS memories_idx_corrections")
        op.execute(
            "CREATE INDEX CONCURRENTLY memories_idx_corrections "
            "ON memories (tenant_id, scope_id, scope) "
            "WHERE status = 'active' AND memory_type = 'correction'"
        )


def downgrade() -> None:
    op.execute("DROP INDEX memories_idx_corrections")
