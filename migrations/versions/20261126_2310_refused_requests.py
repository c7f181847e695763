"""refused_requests

Revision ID: refused_requests
Revises: memories_candidates
Create Date: 2026-11-26 23:10:00+00:00

The expanding half: a column that may be null, which the previous release neither writes nor reads.
"""

from alembic import op

revision = "refused_requests"
down_revision = "memories_candidates"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute("ALTER TABLE gate_decisions ADD COLUMN IF NOT EXISTS request jsonb")


def downgrade() -> None:
    op.execute("ALTER TABLE gate_decisions DROP COLUMN request")
