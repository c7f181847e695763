"""evaluation_results

Revision ID: evaluation_results
Revises: injections_by_day
Create Date: 2026-11-26 22:45:00+00:00

The expanding half: a table that the previous release does not know.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "evaluation_results"
down_revision = "injections_by_day"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE evaluation_results (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            evaluation_id varchar(64) COLLATE "C" NOT NULL,
            name varchar(255) NOT NULL,
            dataset varchar(255) NOT NULL,
            release varchar(40) NOT NULL,
            settings jsonb NOT NULL,
            fingerprint bytea NOT NULL,
            metrics jsonb NOT NULL,
            actor varchar(64) COLLATE "C",
            create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT evaluation_results_pkey PRIMARY KEY (tenant_id, evaluation_id)
        )
        """
    )
    op.execute(
        "ALTER TABLE evaluation_results ADD CONSTRAINT evaluation_results_fk_tenants "
        "FOREIGN KEY (tenant_id) REFERENCES tenants (tenant_id)"
    )
    op.execute(
        "CREATE INDEX evaluation_results_idx_create_time ON evaluation_results "
        "(tenant_id, create_time, evaluation_id)"
    )
    for statement in tenant_policies("evaluation_results"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE evaluation_results")
