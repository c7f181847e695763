"""model_answers

Revision ID: model_answers
Revises: job_lanes
Create Date: 2026-11-26 12:00:00+00:00

The expanding half: a table that the previous release does not know.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "model_answers"
down_revision = "job_lanes"
branch_labels = None
depends_on = None

# An insert locks them in this order, as an erasure does: the session first.
OWNERS = ("sessions", "users", "agents", "projects")


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE model_answers (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            answer_key bytea NOT NULL,
            operation varchar(40) NOT NULL,
            purpose varchar(255) COLLATE "C" NOT NULL,
            agent_id varchar(64) COLLATE "C",
            user_id varchar(64) COLLATE "C",
            project_id varchar(64) COLLATE "C",
            session_id varchar(64) COLLATE "C",
            answer bytea NOT NULL,
            create_time timestamptz(6) DEFAULT now() NOT NULL,
            CONSTRAINT model_answers_pkey PRIMARY KEY (tenant_id, answer_key),
            CONSTRAINT model_answers_fk_tenants FOREIGN KEY (tenant_id)
                REFERENCES tenants (tenant_id)
        )
        """
    )
    for column in ("purpose", "create_time"):
        op.execute(
            f"CREATE INDEX model_answers_idx_{column} ON model_answers (tenant_id, {column})"
        )
    for table in OWNERS:
        column = f"{table[:-1]}_id"
        op.execute(
            f"CREATE INDEX model_answers_idx_{column} ON model_answers (tenant_id, {column})"
        )
        op.execute(
            f"ALTER TABLE model_answers ADD CONSTRAINT model_answers_fk_{table} "
            f"FOREIGN KEY (tenant_id, {column}) REFERENCES {table} (tenant_id, {column}) "
            "ON DELETE CASCADE"
        )
    for statement in tenant_policies("model_answers"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE model_answers")
