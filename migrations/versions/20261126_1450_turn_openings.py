"""turn_openings

Revision ID: turn_openings
Revises: saver_threads
Create Date: 2026-11-26 14:50:00+00:00

The previous release does not write the column; what it leaves there when it moves the beginning of
a window is corrected when that window is counted next.
"""

from alembic import op

revision = "turn_openings"
down_revision = "saver_threads"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE sessions ADD COLUMN opening_seq bigint NOT NULL DEFAULT 0")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN opening_seq")
