"""counted_verdicts

Revision ID: counted_verdicts
Revises: users_by_name
Create Date: 2026-11-27 06:40:00+00:00

An index by time that holds all that statistics count of a verdict takes the place of one that has
the time alone. Built beside writers; what fails is run again from its beginning.

Codes of an imported verdict had no limit, and an index row has: longer ones are cut.
"""

from alembic import op

revision = "counted_verdicts"
down_revision = "users_by_name"
branch_labels = None
depends_on = None

NAME = "gate_decisions_idx_create_time"
COLUMNS = "ON gate_decisions (tenant_id, create_time, decision_id)"
COUNTED = "INCLUDE (agent_id, verdict, event, codes)"

SHORTENED = """
UPDATE gate_decisions SET codes = ARRAY(
    SELECT left(code, 64) FROM unnest(codes) WITH ORDINALITY AS each (code, place)
    ORDER BY place LIMIT 4
)
WHERE cardinality(codes) > 32 OR octet_length(array_to_string(codes, '', '')) > 1024
"""


def upgrade() -> None:
    op.execute(SHORTENED)
    _replace(f"{COLUMNS} {COUNTED}")


def downgrade() -> None:
    _replace(COLUMNS)


def _replace(index: str) -> None:
    with op.get_context().autocommit_block():
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}_made")
        op.execute(f"CREATE INDEX CONCURRENTLY {NAME}_made {index}")
        op.execute(f"DROP INDEX CONCURRENTLY IF EXISTS {NAME}")
        op.execute(f"ALTER INDEX {NAME}_made RENAME TO {NAME}")
