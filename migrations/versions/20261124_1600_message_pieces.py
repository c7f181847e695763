"""message_pieces

Revision ID: message_pieces
Revises: initial_schema
Create Date: 2026-11-24 16:00:00+00:00

The expanding half: columns that the previous release does not know and leaves null. Messages that
have none of them, also those that the previous release appends meanwhile, are read again by
housekeeping, which finds them by the index; until then a long one is found as a whole.
"""

from alembic import op

revision = "message_pieces"
down_revision = "initial_schema"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        ALTER TABLE messages
            ADD COLUMN IF NOT EXISTS states_wish boolean,
            ADD COLUMN IF NOT EXISTS piece_ends integer[],
            ADD COLUMN IF NOT EXISTS piece_terms sparsevec[],
            ADD COLUMN IF NOT EXISTS piece_term_counts smallint[],
            ADD COLUMN IF NOT EXISTS piece_embeddings vector[],
            -- Numbers that do not compress: trying costs more than it saves.
            ALTER COLUMN piece_embeddings SET STORAGE EXTERNAL
        """
    )
    with op.get_context().autocommit_block():
        # An index that was given up half made stays, and the columns are committed by now: a
        # second run begins anew.
        op.execute("DROP INDEX CONCURRENTLY IF EXISTS messages_idx_without_pieces")
        op.execute(
            "CREATE INDEX CONCURRENTLY messages_idx_without_pieces "
            "ON messages (tenant_id) WHERE terms IS NOT NULL AND states_wish IS NULL"
        )


def downgrade() -> None:
    op.execute("DROP INDEX messages_idx_without_pieces")
    op.execute(
        """
        ALTER TABLE messages DROP COLUMN states_wish, DROP COLUMN piece_ends,
            DROP COLUMN piece_terms, DROP COLUMN piece_term_counts, DROP COLUMN piece_embeddings
        """
    )
