"""daily_counts

Revision ID: daily_counts
Revises: sign_in_codes
Create Date: 2026-11-26 22:35:00+00:00

The expanding half: a table that the previous release does not know, and two columns that it leaves
empty.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "daily_counts"
down_revision = "sign_in_codes"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE daily_counts (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            day date NOT NULL,
            name varchar(40) COLLATE "C" NOT NULL,
            agent_id varchar(64) COLLATE "C" NOT NULL,
            label varchar(100) COLLATE "C" NOT NULL,
            count bigint NOT NULL,
            CONSTRAINT daily_counts_pkey PRIMARY KEY (tenant_id, day, name, agent_id, label)
        )
        """
    )
    op.execute(
        "ALTER TABLE daily_counts ADD CONSTRAINT daily_counts_fk_tenants "
        "FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)"
    )
    for statement in tenant_policies("daily_counts"):
        op.execute(statement)
    for column in ("used_at", "used_estimated_at"):
        op.execute(
            f"ALTER TABLE context_injections ADD COLUMN IF NOT EXISTS {column} timestamptz(6)"
        )


def downgrade() -> None:
    for column in ("used_at", "used_estimated_at"):
        op.execute(f"ALTER TABLE context_injections DROP COLUMN {column}")
    op.execute("DROP TABLE daily_counts")
