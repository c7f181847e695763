"""saver_threads

Revision ID: saver_threads
Revises: sessions_taught
Create Date: 2026-11-26 14:40:00+00:00

The expanding half: a column that the previous release does not know.
"""

from alembic import op

revision = "saver_threads"
down_revision = "sessions_taught"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE saver_checkpoints ADD COLUMN thread_id varchar(255)")


def downgrade() -> None:
    op.execute("ALTER TABLE saver_checkpoints DROP COLUMN thread_id")
