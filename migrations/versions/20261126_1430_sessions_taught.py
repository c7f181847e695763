"""sessions_taught

Revision ID: sessions_taught
Revises: model_answers
Create Date: 2026-11-26 14:30:00+00:00

The expanding half: what earlier releases have read is not known to have taught nothing.
"""

from alembic import op

revision = "sessions_taught"
down_revision = "model_answers"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE sessions ADD COLUMN taught boolean")


def downgrade() -> None:
    op.execute("ALTER TABLE sessions DROP COLUMN taught")
