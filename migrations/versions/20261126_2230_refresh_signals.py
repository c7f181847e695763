"""refresh_signals

Revision ID: refresh_signals
Revises: sign_in_codes
Create Date: 2026-11-26 22:30:00+00:00

Refreshes of graphs and profiles look for what lost its support only when a signal says that
memories have changed: those that were ordered before are given it.
"""

from alembic import op

revision = "refresh_signals"
down_revision = "sign_in_codes"
branch_labels = None
depends_on = None


# Dead ones too: somebody may have them tried again.
MARK = """
UPDATE jobs SET signals = array_append(signals, 'changed'),
    again_signals = CASE WHEN run_again THEN array_append(again_signals, 'changed')
        ELSE again_signals END
WHERE kind IN ('graph_tidy', 'profile') AND status <> 'succeeded'
    AND NOT 'changed' = ANY (signals)
"""


def upgrade() -> None:
    op.execute(MARK)


def downgrade() -> None:
    """The previous release does not look at the signal."""
