"""memory_speaker

Revision ID: memory_speaker
Revises: message_pieces
Create Date: 2026-11-24 18:30:00+00:00

The expanding half: columns that the previous release does not know and leaves null. What is stored
already stays as it is: nobody's own words, said at a time that is not known.
"""

from alembic import op

revision = "memory_speaker"
down_revision = "message_pieces"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        "ALTER TABLE memories ADD COLUMN IF NOT EXISTS speaker text, "
        "ADD COLUMN IF NOT EXISTS said_at timestamptz"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE memories DROP COLUMN speaker, DROP COLUMN said_at")
