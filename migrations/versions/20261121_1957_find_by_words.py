"""Find by words: the terms of memories, of words that were replaced, and of messages; codes;
how long memories are expected to hold, and when they were looked at again

Revision ID: 0003
Revises: 0002
Create Date: 2026-11-21 19:57:00+00:00

New columns that the previous release neither reads nor has to fill: what it saves meanwhile has
no terms, and what it edits loses them by a trigger; housekeeping gives them. A vector that it
replaces loses its code by another.
"""

from typing import Any

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.platform.database.roles import tenant_policies

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

TABLES = ("memories", "memory_history", "messages")

ID = sa.String(64, collation="C")
TIME = postgresql.TIMESTAMP(timezone=True, precision=6)

_CLEAR_CODE = """
CREATE FUNCTION kemem_clear_code() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.code := NULL;
    RETURN NEW;
END $$
"""

# The previous release edits what a memory says and leaves its terms: words that somebody took out
# would be found for ever. Whoever writes `analyser` in the same statement has read the new words,
# which the first trigger marks by its sign, and the third takes the mark away.
_TURN_ANALYSER = """
CREATE FUNCTION kemem_turn_analyser() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.analyser := -NEW.analyser;
    RETURN NEW;
END $$
"""

_CLEAR_TERMS = """
CREATE FUNCTION kemem_clear_terms() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.terms := NULL;
    NEW.term_count := NULL;
    NEW.word_count := NULL;
    NEW.is_question := NULL;
    NEW.has_time := NULL;
    NEW.analyser := NULL;
    RETURN NEW;
END $$
"""

# PostgreSQL fires them in the order of their names.
_READ = (
    "CREATE TRIGGER memories_read_1 BEFORE UPDATE OF analyser ON memories "
    "FOR EACH ROW EXECUTE FUNCTION kemem_turn_analyser()",
    "CREATE TRIGGER memories_read_2 BEFORE UPDATE OF content, metadata, valid_from ON memories "
    "FOR EACH ROW WHEN (NEW.analyser > 0 AND (OLD.content, OLD.metadata, OLD.valid_from) "
    "IS DISTINCT FROM (NEW.content, NEW.metadata, NEW.valid_from)) "
    "EXECUTE FUNCTION kemem_clear_terms()",
    "CREATE TRIGGER memories_read_3 BEFORE UPDATE OF analyser ON memories "
    "FOR EACH ROW WHEN (NEW.analyser < 0) EXECUTE FUNCTION kemem_turn_analyser()",
)

# New terms and a new code of the same words are no change, as little as a new vector.
_TIMED = """CREATE TRIGGER memories_update_time BEFORE UPDATE ON memories FOR EACH ROW
WHEN (OLD.version <> NEW.version OR (OLD.use_count = NEW.use_count
AND OLD.last_used_at IS NOT DISTINCT FROM NEW.last_used_at
AND OLD.embedding_model = NEW.embedding_model
AND OLD.analyser IS NOT DISTINCT FROM NEW.analyser
AND OLD.code IS NOT DISTINCT FROM NEW.code))
EXECUTE FUNCTION kemem_set_update_time()"""

_TIMED_BEFORE = """CREATE TRIGGER memories_update_time BEFORE UPDATE ON memories FOR EACH ROW
WHEN (OLD.version <> NEW.version OR (OLD.use_count = NEW.use_count
AND OLD.last_used_at IS NOT DISTINCT FROM NEW.last_used_at
AND OLD.embedding_model = NEW.embedding_model))
EXECUTE FUNCTION kemem_set_update_time()"""


def upgrade() -> None:
    for table in TABLES:
        for column in _columns():
            op.add_column(table, column)
    op.add_column("messages", sa.Column("embedding", pgvector.sqlalchemy.Vector()))
    op.add_column("messages", sa.Column("embedding_model", sa.String(255)))
    op.add_column("messages", sa.Column("said_at", TIME))
    _codes()
    _validity()
    for statement in (_TURN_ANALYSER, _CLEAR_TERMS, *_READ):
        op.execute(statement)
    op.execute("DROP TRIGGER memories_update_time ON memories")
    op.execute(_TIMED)


def downgrade() -> None:
    op.execute("DROP TRIGGER memories_update_time ON memories")
    op.execute(_TIMED_BEFORE)
    for number in (1, 2, 3):
        op.execute(f"DROP TRIGGER memories_read_{number} ON memories")
    op.execute("DROP FUNCTION kemem_clear_terms()")
    op.execute("DROP FUNCTION kemem_turn_analyser()")
    for column in ("reviewed_at", "expected_valid_days"):
        op.drop_column("memories", column)
    op.drop_column("extraction_runs", "upkeep")
    op.drop_table("memory_buckets")
    op.execute("DROP TRIGGER memories_code ON memories")
    op.execute("DROP FUNCTION kemem_clear_code()")
    op.drop_column("memories", "code")
    op.drop_column("messages", "said_at")
    op.drop_column("messages", "embedding_model")
    op.drop_column("messages", "embedding")
    for table in TABLES:
        for column in reversed(_columns()):
            op.drop_column(table, column.name)


def _codes() -> None:
    op.add_column("memories", sa.Column("code", postgresql.BIT(varying=True)))
    op.execute(_CLEAR_CODE)
    op.execute(
        "CREATE TRIGGER memories_code BEFORE UPDATE OF embedding, embedding_model ON memories "
        "FOR EACH ROW WHEN (OLD.code IS NOT NULL) EXECUTE FUNCTION kemem_clear_code()"
    )
    op.create_table(
        "memory_buckets",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("scope_id", ID, nullable=False),
        sa.Column("embedding_model", sa.String(255), nullable=False),
        sa.Column("rows", sa.BigInteger(), nullable=False),
        sa.Column("coded_at", TIME, nullable=True),
        sa.Column("sampled_recall", sa.Double(), nullable=True),
        sa.Column("sampled_at", TIME, nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="memory_buckets_fk_tenants"
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "scope", "scope_id", "embedding_model", name="memory_buckets_pkey"
        ),
    )
    for statement in tenant_policies("memory_buckets"):
        op.execute(statement)


def _validity() -> None:
    op.add_column(
        "extraction_runs",
        sa.Column("upkeep", postgresql.JSONB(), server_default=sa.text("'{}'"), nullable=False),
    )
    op.add_column("memories", sa.Column("expected_valid_days", sa.SmallInteger(), nullable=True))
    op.create_check_constraint(
        "memories_ck_expected_valid_days", "memories", "expected_valid_days BETWEEN 1 AND 3650"
    )
    op.add_column("memories", sa.Column("reviewed_at", TIME, nullable=True))


def _columns() -> list[sa.Column[Any]]:
    return [
        sa.Column("terms", pgvector.sqlalchemy.SPARSEVEC()),
        sa.Column("term_count", sa.SmallInteger()),
        sa.Column("word_count", sa.SmallInteger()),
        sa.Column("is_question", sa.Boolean()),
        sa.Column("has_time", sa.Boolean()),
        sa.Column("analyser", sa.SmallInteger()),
    ]
