"""memories_fillfactor

Revision ID: memories_fillfactor
Revises: message_copies
Create Date: 2026-11-26 18:45:00+00:00

Room in each page for a new version of one of its rows, so that counting a use makes no index entry.
It locks nothing out, rewrites nothing, and holds for pages that are filled from now on.
"""

from alembic import op

revision = "memories_fillfactor"
down_revision = "message_copies"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE memories SET (fillfactor = 85)")


def downgrade() -> None:
    op.execute("ALTER TABLE memories RESET (fillfactor)")
