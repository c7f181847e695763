"""users_by_name

Revision ID: users_by_name
Revises: refused_requests
Create Date: 2026-11-27 06:30:00+00:00

The expanding half: an index that the previous release does not read, built beside writers.
"""

from alembic import op

revision = "users_by_name"
down_revision = "refused_requests"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.get_context().autocommit_block():
        # An attempt that was interrupted leaves an invalid one.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS users_idx_user_name")
        op.execute(
            "CREATE INDEX CONCURRENTLY users_idx_user_name "
            "ON users (tenant_id, user_name varchar_pattern_ops)"
        )


def downgrade() -> None:
    op.execute("DROP INDEX IF EXISTS users_idx_user_name")
