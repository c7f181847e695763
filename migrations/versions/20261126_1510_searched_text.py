"""searched_text

Revision ID: searched_text
Revises: injected_contexts
Create Date: 2026-11-26 15:10:00+00:00

The expanding half: a column that may be null, which the previous release neither writes nor reads.
"""

from alembic import op

revision = "searched_text"
down_revision = "injected_contexts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE messages ADD COLUMN IF NOT EXISTS searched_text text")


def downgrade() -> None:
    op.execute("ALTER TABLE messages DROP COLUMN searched_text")
