"""injected_contexts

Revision ID: injected_contexts
Revises: store_items
Create Date: 2026-11-26 15:05:00+00:00

The expanding half: a table that the previous release does not know, and two columns that it leaves
empty. That a context was shown is no change of a session: these leave its `update_time` alone.
"""

from alembic import op

from app.platform.database.roles import tenant_policies

revision = "injected_contexts"
down_revision = "store_items"
branch_labels = None
depends_on = None

COLUMNS = ("beside_tokens", "memory_tokens")


def upgrade() -> None:
    for column in COLUMNS:
        op.execute(f"ALTER TABLE sessions ADD COLUMN {column} bigint")
    op.execute("DROP TRIGGER sessions_update_time ON sessions")
    op.execute(
        "CREATE TRIGGER sessions_update_time BEFORE UPDATE ON sessions FOR EACH ROW "
        "WHEN ((OLD.beside_tokens, OLD.memory_tokens) "
        "IS NOT DISTINCT FROM (NEW.beside_tokens, NEW.memory_tokens)) "
        "EXECUTE FUNCTION kemem_set_update_time()"
    )
    op.execute(
        """
        CREATE TABLE injected_contexts (
            tenant_id varchar(64) COLLATE "C" NOT NULL,
            session_id varchar(64) COLLATE "C" NOT NULL,
            content_sha256 varchar(64) COLLATE "C" NOT NULL,
            memory_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
            passage_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
            message_ids varchar(64)[] COLLATE "C" DEFAULT '{}' NOT NULL,
            tokens bigint NOT NULL,
            memory_tokens bigint NOT NULL,
            first_at timestamptz(6) DEFAULT now() NOT NULL,
            last_at timestamptz(6) DEFAULT now() NOT NULL,
            CONSTRAINT injected_contexts_pkey PRIMARY KEY (tenant_id, session_id, content_sha256),
            CONSTRAINT injected_contexts_fk_sessions FOREIGN KEY (tenant_id, session_id)
                REFERENCES sessions (tenant_id, session_id) ON DELETE CASCADE
        )
        """
    )
    op.execute(
        "CREATE INDEX injected_contexts_idx_first_at ON injected_contexts "
        "(tenant_id, session_id, first_at, content_sha256)"
    )
    op.execute(
        "CREATE INDEX injected_contexts_idx_last_at ON injected_contexts (tenant_id, last_at)"
    )
    for statement in tenant_policies("injected_contexts"):
        op.execute(statement)


def downgrade() -> None:
    op.execute("DROP TABLE injected_contexts")
    op.execute("DROP TRIGGER sessions_update_time ON sessions")
    op.execute(
        "CREATE TRIGGER sessions_update_time BEFORE UPDATE ON sessions "
        "FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time()"
    )
    for column in COLUMNS:
        op.execute(f"ALTER TABLE sessions DROP COLUMN {column}")
