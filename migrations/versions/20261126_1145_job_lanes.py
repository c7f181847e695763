"""job_lanes

Revision ID: job_lanes
Revises: profile_basis
Create Date: 2026-11-26 11:45:00+00:00

The expanding half: columns that the previous release does not know and leaves null. What it orders
meanwhile has no lane, and its workers pass over the lanes of others.
"""

from alembic import op

revision = "job_lanes"
down_revision = "profile_basis"
branch_labels = None
depends_on = None

INDEXES = {
    "jobs_uk_lane_running": "(tenant_id, lane) WHERE status = 'running'",
    "jobs_idx_lane_due": "(tenant_id, lane, due_at) WHERE status = 'pending' AND lane IS NOT NULL",
    "jobs_idx_lane_busy": "(tenant_id, lane, lane_order, job_id) "
    "WHERE status = 'pending' AND deferred_reason = 'lane_busy'",
}


def upgrade() -> None:
    op.execute(
        'ALTER TABLE jobs ADD COLUMN IF NOT EXISTS lane varchar(255) COLLATE "C", '
        "ADD COLUMN IF NOT EXISTS lane_order timestamptz, "
        "ADD COLUMN IF NOT EXISTS again_lane_order timestamptz"
    )
    op.execute("GRANT SELECT (lane, lane_order) ON jobs TO kemem_dispatch")
    with op.get_context().autocommit_block():
        for name, columns in INDEXES.items():
            # An index that was given up half made stays: a second run begins anew.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            unique = "UNIQUE " if "_uk_" in name else ""
            op.execute(f"CREATE {unique}INDEX CONCURRENTLY {name} ON jobs {columns}")


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX {name}")
    op.execute(
        "ALTER TABLE jobs DROP COLUMN lane, DROP COLUMN lane_order, DROP COLUMN again_lane_order"
    )
