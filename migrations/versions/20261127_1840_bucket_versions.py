"""bucket_versions

Revision ID: bucket_versions
Revises: memory_corrections
Create Date: 2026-11-27 18:40:00+00:00

The expanding half: a version of each registered bucket, which grows when rows get codes, and a
trigger that takes the code of a row that comes back into a bucket with one. Who has read the rows
with codes of a bucket at a version knows all of them. The previous release makes codes without a
new version; what is known of a bucket is read again after five minutes.
"""

from alembic import op

revision = "bucket_versions"
down_revision = "memory_corrections"
branch_labels = None
depends_on = None

MOVED = """
CREATE OR REPLACE TRIGGER memories_code_moved BEFORE UPDATE OF status, scope, scope_id ON memories
FOR EACH ROW WHEN (
    OLD.code IS NOT NULL AND NEW.status = 'active' AND (
        OLD.status <> 'active' OR NEW.scope <> OLD.scope OR NEW.scope_id <> OLD.scope_id
    )
)
EXECUTE FUNCTION kemem_clear_code()
"""


def upgrade() -> None:
    op.execute("ALTER TABLE memory_buckets ADD COLUMN version bigint NOT NULL DEFAULT 0")
    op.execute(MOVED)


def downgrade() -> None:
    op.execute("DROP TRIGGER memories_code_moved ON memories")
    op.execute("ALTER TABLE memory_buckets DROP COLUMN version")
