"""message_pieces

Revision ID: message_pieces
Revises: initial_schema
Create Date: 2026-11-24 16:00:00+00:00

The expanding half: columns that the previous release does not know and leaves null. What the user
said, for the wishes in it, and what is long enough to have several pieces is read again in the
background, as what no analyser has read. Until then a long text is found as a whole, by its words.
"""

from alembic import op

revision = "message_pieces"
down_revision = "initial_schema"
branch_labels = None
depends_on = None

# Characters below which a text has one piece in any script: 45 words of one letter and a space.
_SHORT = 89


def upgrade() -> None:
    op.execute(
        """
        ALTER TABLE messages
            ADD COLUMN states_wish boolean,
            ADD COLUMN piece_ends integer[],
            ADD COLUMN piece_terms sparsevec[],
            ADD COLUMN piece_term_counts smallint[],
            ADD COLUMN piece_embeddings vector[],
            -- Numbers that do not compress: trying costs more than it saves.
            ALTER COLUMN piece_embeddings SET STORAGE EXTERNAL
        """
    )
    # Text among the parts may be of any length.
    several = f"(length(content) > {_SHORT} OR content_parts IS NOT NULL)"
    op.execute(
        "UPDATE messages SET analyser = NULL, "
        f"embedding_model = CASE WHEN NOT {several} THEN embedding_model END "
        f"WHERE terms IS NOT NULL AND (role = 'user' OR {several})"
    )


def downgrade() -> None:
    op.execute(
        """
        ALTER TABLE messages DROP COLUMN states_wish, DROP COLUMN piece_ends,
            DROP COLUMN piece_terms, DROP COLUMN piece_term_counts, DROP COLUMN piece_embeddings
        """
    )
