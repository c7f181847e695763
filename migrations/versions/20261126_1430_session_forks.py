"""session_forks

Revision ID: session_forks
Revises: turn_openings
Create Date: 2026-11-26 14:30:00+00:00

The expanding half: two columns that may be null, which the previous release does not write.
"""

from alembic import op

revision = "session_forks"
down_revision = "turn_openings"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE sessions ADD COLUMN IF NOT EXISTS forked_from jsonb")
    op.execute('ALTER TABLE messages ADD COLUMN IF NOT EXISTS copied_from varchar(64) COLLATE "C"')


def downgrade() -> None:
    op.execute("ALTER TABLE messages DROP COLUMN copied_from")
    op.execute("ALTER TABLE sessions DROP COLUMN forked_from")
