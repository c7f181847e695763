"""sign_in_codes

Revision ID: sign_in_codes
Revises: memories_fillfactor
Create Date: 2026-11-26 22:00:00+00:00

The expanding half: a table that the previous release does not know.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "sign_in_codes"
down_revision = "memories_fillfactor"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE sign_in_codes (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            code_hash bytea NOT NULL,
            scopes varchar[] NOT NULL,
            expires_at timestamptz(6) NOT NULL,
            used_at timestamptz(6),
            CONSTRAINT sign_in_codes_pkey PRIMARY KEY (tenant_id, code_hash),
            CONSTRAINT sign_in_codes_fk_tenants FOREIGN KEY (tenant_id)
                REFERENCES tenants (tenant_id)
        )
        """
    )
    for statement in tenant_policies("sign_in_codes"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE sign_in_codes")
