"""memories_candidates

Revision ID: memories_candidates
Revises: evaluation_results
Create Date: 2026-11-26 22:50:00+00:00

The expanding half: two indexes that the previous release does not read, built beside writers, and a
trigger that takes the code of a row whose terms would not fit beside it in the first of them.
"""

from alembic import op

revision = "memories_candidates"
down_revision = "evaluation_results"
branch_labels = None
depends_on = None

BUCKET = "ON memories (tenant_id, scope_id, scope)"
INDEXES = {
    "memories_idx_coded": f"{BUCKET} "
    "INCLUDE (memory_id, session_id, embedding_model, code, terms, term_count) "
    "WHERE status = 'active' AND COALESCE(length(code), 768) < 768",
    "memories_idx_uncoded": f"{BUCKET} "
    "WHERE status = 'active' AND COALESCE(length(code), 768) >= 768",
}

LENGTH = """
CREATE OR REPLACE TRIGGER memories_code_length BEFORE UPDATE OF term_count ON memories
FOR EACH ROW WHEN (OLD.code IS NOT NULL AND length(OLD.code) < 768 AND NEW.term_count > 128)
EXECUTE FUNCTION kemem_clear_code()
"""


def upgrade() -> None:
    op.execute(LENGTH)
    with op.get_context().autocommit_block():
        for name, rest in INDEXES.items():
            # An attempt that was interrupted leaves an invalid one.
            op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {name}")
            op.execute(f"CREATE INDEX CONCURRENTLY {name} {rest}")


def downgrade() -> None:
    for name in INDEXES:
        op.execute(f"DROP INDEX IF EXISTS {name}")
    op.execute("DROP TRIGGER memories_code_length ON memories")
