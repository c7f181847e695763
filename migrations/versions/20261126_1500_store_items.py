"""store_items

Revision ID: store_items
Revises: session_forks
Create Date: 2026-11-26 15:00:00+00:00

The expanding half: two tables that the previous release does not know.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "store_items"
down_revision = "session_forks"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(
        """
        CREATE TABLE store_items (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            item_id varchar(64) COLLATE "C" NOT NULL,
            space varchar(129) COLLATE "C" NOT NULL,
            path text COLLATE "C" NOT NULL,
            key text COLLATE "C" NOT NULL,
            user_id varchar(64) COLLATE "C",
            agent_id varchar(64) COLLATE "C",
            value jsonb NOT NULL,
            ttl_minutes double precision,
            expires_at timestamptz(6),
            create_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
            update_time timestamptz(6) DEFAULT clock_timestamp() NOT NULL,
            CONSTRAINT store_items_pkey PRIMARY KEY (tenant_id, item_id),
            CONSTRAINT store_items_fk_tenants FOREIGN KEY (tenant_id)
                REFERENCES tenants (tenant_id),
            CONSTRAINT store_items_fk_users FOREIGN KEY (tenant_id, user_id)
                REFERENCES users (tenant_id, user_id) ON DELETE CASCADE,
            CONSTRAINT store_items_fk_agents FOREIGN KEY (tenant_id, agent_id)
                REFERENCES agents (tenant_id, agent_id) ON DELETE CASCADE
        )
        """
    )
    op.execute(
        """
        CREATE TABLE store_texts (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            text_id varchar(64) COLLATE "C" NOT NULL,
            item_id varchar(64) COLLATE "C" NOT NULL,
            content text NOT NULL,
            embedding vector,
            embedding_model varchar(255),
            CONSTRAINT store_texts_pkey PRIMARY KEY (tenant_id, text_id),
            CONSTRAINT store_texts_fk_store_items FOREIGN KEY (tenant_id, item_id)
                REFERENCES store_items (tenant_id, item_id) ON DELETE CASCADE
        )
        """
    )
    for columns in ("user_id", "agent_id"):
        op.execute(f"CREATE INDEX store_items_idx_{columns} ON store_items (tenant_id, {columns})")
    op.execute("CREATE INDEX store_items_idx_path ON store_items (tenant_id, space, path)")
    op.execute(
        "CREATE INDEX store_items_idx_expires_at ON store_items (tenant_id, expires_at) "
        "WHERE expires_at IS NOT NULL"
    )
    op.execute("CREATE INDEX store_texts_idx_item_id ON store_texts (tenant_id, item_id)")
    op.execute(
        "CREATE INDEX store_texts_idx_embedding_model "
        "ON store_texts (tenant_id, embedding_model, text_id)"
    )
    for table in ("store_items", "store_texts"):
        for statement in tenant_policies(table):
            op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE store_texts")
    op.execute("DROP TABLE store_items")
