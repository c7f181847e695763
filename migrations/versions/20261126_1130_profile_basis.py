"""profile_basis

Revision ID: profile_basis
Revises: memory_conflicts
Create Date: 2026-11-26 11:30:00+00:00

The expanding half: columns that the previous release does not know and leaves null.
"""

from alembic import op

revision = "profile_basis"
down_revision = "memory_conflicts"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE profiles ADD COLUMN IF NOT EXISTS model_asked_at timestamptz")
    op.execute("ALTER TABLE profiles ADD COLUMN IF NOT EXISTS derived_from varchar(64)")


def downgrade() -> None:
    op.execute("ALTER TABLE profiles DROP COLUMN derived_from")
    op.execute("ALTER TABLE profiles DROP COLUMN model_asked_at")
