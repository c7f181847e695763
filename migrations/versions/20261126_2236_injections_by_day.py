"""injections_by_day

Revision ID: injections_by_day
Revises: daily_counts
Create Date: 2026-11-26 22:36:00+00:00

Indexes alone, made while the previous release writes: what fails is run again from its beginning.
"""

from alembic import op

revision = "injections_by_day"
down_revision = "daily_counts"
branch_labels = None
depends_on = None

INDEXES = {
    "context_injections_idx_first_at": "(tenant_id, first_at)",
    "context_injections_idx_used_at": "(tenant_id, used_at) WHERE used_at IS NOT NULL",
    "context_injections_idx_used_estimated_at": "(tenant_id, used_estimated_at) "
    "WHERE used_estimated_at IS NOT NULL",
}


def upgrade() -> None:
    with op.get_context().autocommit_block():
        for name, columns in INDEXES.items():
            # An index that was given up half made stays: a second run begins anew.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} ON context_injections {columns}")


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
