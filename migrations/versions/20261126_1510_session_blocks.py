"""session_blocks

Revision ID: session_blocks
Revises: searched_text
Create Date: 2026-11-26 15:10:00+00:00

The expanding half: a column that may be null, which the previous release does not write.
"""

from alembic import op

revision = "session_blocks"
down_revision = "searched_text"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute('ALTER TABLE blocks ADD COLUMN IF NOT EXISTS session_id varchar(64) COLLATE "C"')
    op.execute(
        """
        ALTER TABLE blocks
            ADD CONSTRAINT blocks_fk_sessions FOREIGN KEY (tenant_id, session_id)
                REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE,
            ADD CONSTRAINT blocks_ck_session_id CHECK (session_id IS NULL
                OR user_id IS NOT NULL AND template_id IS NULL)
        """
    )
    op.execute(
        "CREATE UNIQUE INDEX blocks_uk_session_label ON blocks (tenant_id, session_id, label) "
        "WHERE session_id IS NOT NULL"
    )


def downgrade() -> None:
    op.execute("ALTER TABLE blocks DROP COLUMN session_id")
