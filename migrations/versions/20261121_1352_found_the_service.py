"""Found the service: tenants, keys, KeMem's four tables, projects, memories

Revision ID: 0001
Revises:
Create Date: 2026-11-21 13:52:23+00:00

The first schema: columns and indexes of agents, users, sessions and messages are those of
KeMem's metadata tables, translated to PostgreSQL, with the tenant in front of every key.
Roles are cluster-wide and come from `app/platform/database/roles.py`; they outlive a downgrade.
"""

from datetime import datetime
from typing import Any

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.platform.database.roles import DISPATCH, tenant_policies

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

ID = sa.String(64, collation="C")
TIME = postgresql.TIMESTAMP(timezone=True, precision=6)
JSONB = postgresql.JSONB()

TABLES = (
    "tenants",
    "agents",
    "api_keys",
    "gate_decisions",
    "idempotency_keys",
    "projects",
    "users",
    "memory_history",
    "project_members",
    "sessions",
    "memories",
    "messages",
)

TIMED = ("tenants", "agents", "users", "projects", "project_members", "sessions")

SET_UPDATE_TIME = """
CREATE FUNCTION kemem_set_update_time() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.update_time := clock_timestamp();
    RETURN NEW;
END $$
"""

# PostgreSQL 15 cannot ask whether a text is a time without an error, so the text is read
# first; `app/memory/memories/filters.py` has the same expression.
TRY_TIMESTAMPTZ = """
CREATE FUNCTION kemem_timestamptz(value text) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN value !~ ('^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]'
        || '(:[0-5][0-9]([.][0-9]{1,6})?)?(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])$')
        OR value ~ '^0000' THEN NULL
    WHEN CAST(substr(value, 9, 2) AS integer) NOT BETWEEN 1 AND extract(day FROM
        make_date(CAST(substr(value, 1, 4) AS integer), CAST(substr(value, 6, 2) AS integer), 1)
        + INTERVAL '1 month' - INTERVAL '1 day') THEN NULL
    ELSE CAST(value AS timestamptz)
END
"""


def upgrade() -> None:
    _tenants()
    _agents()
    _api_keys()
    _gate_decisions()
    _idempotency_keys()
    _projects()
    _users()
    _memory_history()
    _project_members()
    _sessions()
    _memories()
    _messages()
    _triggers()
    _rights()


def downgrade() -> None:
    for table in reversed(TABLES):
        op.drop_table(table)
    op.execute("DROP FUNCTION kemem_set_update_time()")
    op.execute("DROP FUNCTION kemem_timestamptz(text)")


def _triggers() -> None:
    op.execute(SET_UPDATE_TIME)
    op.execute(TRY_TIMESTAMPTZ)
    for table in TIMED:
        op.execute(
            f"CREATE TRIGGER {table}_update_time BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time()"
        )
    # Being found is not a change, nor is a new vector of the same words: search ties are
    # broken by `update_time`.
    op.execute(
        "CREATE TRIGGER memories_update_time BEFORE UPDATE ON memories FOR EACH ROW "
        "WHEN (OLD.version <> NEW.version OR (OLD.use_count = NEW.use_count "
        "AND OLD.last_used_at IS NOT DISTINCT FROM NEW.last_used_at "
        "AND OLD.embedding_model = NEW.embedding_model)) "
        "EXECUTE FUNCTION kemem_set_update_time()"
    )


def _rights() -> None:
    for table in TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)
    op.execute("GRANT SELECT ON alembic_version TO PUBLIC")
    # Keys are looked up before the tenant is known, and listed for operators.
    op.execute(f"GRANT SELECT ON tenants TO {DISPATCH}")
    op.execute(f"CREATE POLICY tenants_dispatch ON tenants FOR SELECT TO {DISPATCH} USING (true)")
    op.execute(
        f"GRANT SELECT (tenant_id, key_id, key_prefix, key_hash, scopes, agent_id, user_id, "
        f"expires_at, revoked_at), UPDATE (last_used_at) ON api_keys TO {DISPATCH}"
    )
    op.execute(f"CREATE POLICY api_keys_dispatch ON api_keys TO {DISPATCH} USING (true)")


def _id(name: str, *, nullable: bool = False) -> sa.Column[str]:
    return sa.Column(name, ID, nullable=nullable)


def _time(name: str, default: str) -> sa.Column[datetime]:
    return sa.Column(name, TIME, server_default=sa.text(default), nullable=False)


def _json(name: str, default: str) -> sa.Column[Any]:
    return sa.Column(name, JSONB, server_default=sa.text(default), nullable=False)


def _tenants() -> None:
    op.create_table(
        "tenants",
        _id("tenant_id"),
        sa.Column("tenant_name", sa.String(255), nullable=False),
        sa.Column("status", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        _json("config", "'{}'"),
        sa.Column(
            "embedding_models",
            postgresql.ARRAY(sa.String()),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint("status IN (0, 1)", name="tenants_ck_status"),
        sa.PrimaryKeyConstraint("tenant_id", name="tenants_pkey"),
    )


def _agents() -> None:
    op.create_table(
        "agents",
        _id("tenant_id"),
        _id("agent_id"),
        sa.Column("agent_name", sa.String(255), nullable=False),
        sa.Column("agent_type", sa.String(50), nullable=True),
        sa.Column("description", sa.Text(), nullable=True),
        _json("config", "'{}'"),
        sa.Column("status", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("memory_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "injection_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False
        ),
        _id("creator", nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint("status IN (0, 1)", name="agents_ck_status"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="agents_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "agent_id", name="agents_pkey"),
    )
    op.create_index(
        "agents_idx_create_time",
        "agents",
        ["tenant_id", "create_time", "agent_id"],
    )
    op.create_index(
        "agents_idx_status",
        "agents",
        ["tenant_id", "status"],
    )


def _api_keys() -> None:
    op.create_table(
        "api_keys",
        _id("tenant_id"),
        _id("key_id"),
        _id("key_prefix"),
        sa.Column("key_hash", sa.LargeBinary(), nullable=False),
        sa.Column("key_name", sa.String(255), nullable=True),
        sa.Column("scopes", postgresql.ARRAY(sa.String()), nullable=False),
        _id("agent_id", nullable=True),
        _id("user_id", nullable=True),
        sa.Column("expires_at", TIME),
        sa.Column("revoked_at", TIME),
        sa.Column("last_used_at", TIME),
        _id("creator", nullable=True),
        _time("create_time", "now()"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="api_keys_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "key_id", name="api_keys_pkey"),
    )
    op.create_index(
        "api_keys_idx_create_time",
        "api_keys",
        ["tenant_id", "create_time", "key_id"],
    )
    op.create_index("api_keys_uk_key_prefix", "api_keys", ["key_prefix"], unique=True)


def _gate_decisions() -> None:
    op.create_table(
        "gate_decisions",
        _id("tenant_id"),
        _id("decision_id"),
        sa.Column("verdict", sa.String(20), nullable=False),
        sa.Column(
            "codes", postgresql.ARRAY(sa.String()), server_default=sa.text("'{}'"), nullable=False
        ),
        _json("reasons", "'[]'"),
        sa.Column("content", sa.Text(), nullable=True),
        _id("user_id", nullable=True),
        _id("agent_id", nullable=True),
        _id("session_id", nullable=True),
        _id("project_id", nullable=True),
        sa.Column("scope", sa.String(20), nullable=False),
        _id("memory_id", nullable=True),
        sa.Column("source", sa.String(20), nullable=False),
        _id("actor", nullable=True),
        _time("create_time", "clock_timestamp()"),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="gate_decisions_fk_tenants"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "decision_id", name="gate_decisions_pkey"),
    )
    op.create_index(
        "gate_decisions_idx_create_time",
        "gate_decisions",
        ["tenant_id", "create_time", "decision_id"],
    )
    op.create_index(
        "gate_decisions_idx_memory_id",
        "gate_decisions",
        ["tenant_id", "memory_id"],
        postgresql_where=sa.text("memory_id IS NOT NULL"),
    )
    op.create_index(
        "gate_decisions_idx_user_id",
        "gate_decisions",
        ["tenant_id", "user_id", "create_time", "decision_id"],
    )


def _idempotency_keys() -> None:
    op.create_table(
        "idempotency_keys",
        _id("tenant_id"),
        _id("key_id"),
        sa.Column("idempotency_key", sa.String(length=255, collation="C"), nullable=False),
        _id("user_id", nullable=True),
        sa.Column("request_hash", sa.LargeBinary(), nullable=False),
        sa.Column("status", sa.SmallInteger(), nullable=False),
        sa.Column("answer", sa.LargeBinary(), nullable=False),
        _time("create_time", "now()"),
        sa.Column("expires_at", TIME, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="idempotency_keys_fk_tenants"
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "key_id", "idempotency_key", name="idempotency_keys_pkey"
        ),
    )
    op.create_index(
        "idempotency_keys_idx_expires_at",
        "idempotency_keys",
        ["tenant_id", "expires_at"],
    )
    op.create_index(
        "idempotency_keys_idx_user_id",
        "idempotency_keys",
        ["tenant_id", "user_id"],
    )


def _projects() -> None:
    op.create_table(
        "projects",
        _id("tenant_id"),
        _id("project_id"),
        sa.Column("project_name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        _json("metadata", "'{}'"),
        _id("creator", nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="projects_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", name="projects_pkey"),
    )
    op.create_index(
        "projects_idx_create_time",
        "projects",
        ["tenant_id", "create_time", "project_id"],
    )


def _users() -> None:
    op.create_table(
        "users",
        _id("tenant_id"),
        _id("user_id"),
        _id("agent_id"),
        sa.Column("user_name", sa.String(255), nullable=True),
        sa.Column("user_type", sa.String(50), nullable=True),
        sa.Column("external_id", sa.String(255), nullable=True),
        _json("profile", "'{}'"),
        sa.Column("status", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("last_active_time", TIME, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint("status IN (0, 1)", name="users_ck_status"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name="users_fk_agents",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "user_id", name="users_pkey"),
    )
    op.create_index(
        "users_idx_agent_id",
        "users",
        ["tenant_id", "agent_id", "create_time", "user_id"],
    )
    op.create_index(
        "users_idx_agent_status",
        "users",
        ["tenant_id", "agent_id", "status"],
    )
    op.create_index(
        "users_idx_create_time",
        "users",
        ["tenant_id", "create_time", "user_id"],
    )
    op.create_index(
        "users_idx_last_active_time",
        "users",
        ["tenant_id", "last_active_time"],
    )
    op.create_index(
        "users_uk_external_id", "users", ["tenant_id", "agent_id", "external_id"], unique=True
    )


def _memory_history() -> None:
    op.create_table(
        "memory_history",
        _id("tenant_id"),
        _id("history_id"),
        _id("memory_id"),
        _id("user_id", nullable=True),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        _id("actor", nullable=True),
        sa.Column(
            "before", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column(
            "after", postgresql.JSONB(none_as_null=True, astext_type=sa.Text()), nullable=True
        ),
        sa.Column("version", sa.BigInteger(), nullable=False),
        _time("create_time", "clock_timestamp()"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="memory_history_fk_users",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="memory_history_fk_tenants"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "history_id", name="memory_history_pkey"),
    )
    op.create_index(
        "memory_history_idx_memory_id",
        "memory_history",
        ["tenant_id", "memory_id", "history_id"],
    )
    op.create_index(
        "memory_history_idx_user_id",
        "memory_history",
        ["tenant_id", "user_id"],
    )


def _project_members() -> None:
    op.create_table(
        "project_members",
        _id("tenant_id"),
        _id("project_id"),
        _id("user_id"),
        sa.Column("role", sa.String(20), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint(
            "role IN ('owner', 'admin', 'editor', 'viewer')", name="project_members_ck_role"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name="project_members_fk_projects",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="project_members_fk_users",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "project_id", "user_id", name="project_members_pkey"),
    )
    op.create_index(
        "project_members_idx_user_id",
        "project_members",
        ["tenant_id", "user_id"],
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        _id("tenant_id"),
        _id("session_id"),
        _id("agent_id"),
        _id("user_id"),
        _id("project_id", nullable=True),
        sa.Column("session_name", sa.String(255), nullable=True),
        sa.Column("session_type", sa.String(50), nullable=True),
        _json("context", "'{}'"),
        sa.Column("status", sa.SmallInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("end_time", TIME),
        sa.Column("memory_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column(
            "injection_enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False
        ),
        sa.Column("last_sequence_no", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_message_time", TIME, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint("status IN (0, 1)", name="sessions_ck_status"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name="sessions_fk_agents",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name="sessions_fk_projects",
            ondelete="SET NULL (project_id)",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="sessions_fk_users",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "session_id", name="sessions_pkey"),
    )
    op.create_index(
        "sessions_idx_agent_user",
        "sessions",
        ["tenant_id", "agent_id", "user_id"],
    )
    op.create_index(
        "sessions_idx_create_time",
        "sessions",
        ["tenant_id", "create_time", "session_id"],
    )
    op.create_index(
        "sessions_idx_project_id",
        "sessions",
        ["tenant_id", "project_id"],
    )
    op.create_index(
        "sessions_idx_status_create_time",
        "sessions",
        ["tenant_id", "status", "create_time"],
    )
    op.create_index(
        "sessions_idx_user_id",
        "sessions",
        ["tenant_id", "user_id", "create_time", "session_id"],
    )


def _memories() -> None:
    op.create_table(
        "memories",
        _id("tenant_id"),
        _id("memory_id"),
        _id("user_id", nullable=True),
        _id("agent_id", nullable=True),
        _id("session_id", nullable=True),
        _id("project_id", nullable=True),
        sa.Column("scope", sa.String(20), nullable=False),
        _id("scope_id"),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.LargeBinary(), nullable=False),
        sa.Column("memory_type", sa.String(20), nullable=False),
        sa.Column("tier", sa.String(10), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        _id("source_id", nullable=True),
        sa.Column("source_error", sa.Text(), nullable=True),
        sa.Column("evidence", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("visibility", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), server_default=sa.text("'active'"), nullable=False),
        _id("superseded_by", nullable=True),
        sa.Column("valid_from", TIME),
        sa.Column("valid_to", TIME),
        sa.Column("expires_at", TIME),
        sa.Column("deleted_at", TIME),
        sa.Column("external_id", sa.String(255), nullable=True),
        _json("metadata", "'{}'"),
        sa.Column("embedding", pgvector.sqlalchemy.vector.VECTOR(), nullable=True),
        sa.Column("embedding_model", sa.String(255), nullable=False),
        _id("creator", nullable=True),
        sa.Column("use_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("last_used_at", TIME),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        _time("create_time", "now()"),
        _time("update_time", "now()"),
        sa.CheckConstraint(
            "(scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id) OR "
            "(scope = 'session') OR "
            "(scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id) OR "
            "(scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)",
            name="memories_ck_scope",
        ),
        sa.CheckConstraint(
            "memory_type IN ('preference', 'fact', 'skill', 'habit', 'event', 'context', "
            "'constraint', 'decision', 'goal', 'correction', 'knowledge', 'experience')",
            name="memories_ck_memory_type",
        ),
        sa.CheckConstraint(
            "source IN ('user', 'ai', 'knowledge_base', 'project_resource', 'import')",
            name="memories_ck_source",
        ),
        sa.CheckConstraint(
            "status IN ('active', 'archived', 'superseded', 'deleted')", name="memories_ck_status"
        ),
        sa.CheckConstraint("tier IN ('short', 'long')", name="memories_ck_tier"),
        sa.CheckConstraint(
            "visibility IN ('public', 'members', 'owner_only')", name="memories_ck_visibility"
        ),
        sa.CheckConstraint("confidence >= 0 AND confidence <= 1", name="memories_ck_confidence"),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name="memories_fk_agents",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name="memories_fk_projects",
            ondelete="SET NULL (project_id)",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="memories_fk_sessions",
            ondelete="SET NULL (session_id)",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "superseded_by"],
            ["memories.tenant_id", "memories.memory_id"],
            name="memories_fk_superseded_by",
            ondelete="SET NULL (superseded_by)",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="memories_fk_users",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "memory_id", name="memories_pkey"),
    )
    op.create_index(
        "memories_idx_agent_id",
        "memories",
        ["tenant_id", "agent_id", "create_time", "memory_id"],
    )
    op.create_index(
        "memories_idx_bucket",
        "memories",
        ["tenant_id", "scope_id", "scope"],
        postgresql_where=sa.text("status = 'active'"),
    )
    op.create_index(
        "memories_idx_create_time",
        "memories",
        ["tenant_id", "create_time", "memory_id"],
    )
    op.create_index(
        "memories_idx_deleted_at",
        "memories",
        ["tenant_id", "deleted_at"],
        postgresql_where=sa.text("status = 'deleted'"),
    )
    op.create_index(
        "memories_idx_embedding_model",
        "memories",
        ["tenant_id", "embedding_model", "memory_id"],
    )
    op.create_index(
        "memories_idx_expires_at",
        "memories",
        ["tenant_id", "expires_at"],
        postgresql_where=sa.text("expires_at IS NOT NULL AND status = 'active'"),
    )
    op.create_index(
        "memories_idx_project_id",
        "memories",
        ["tenant_id", "project_id"],
    )
    op.create_index(
        "memories_idx_session_id",
        "memories",
        ["tenant_id", "session_id"],
    )
    op.create_index(
        "memories_idx_superseded_by",
        "memories",
        ["tenant_id", "superseded_by"],
        postgresql_where=sa.text("superseded_by IS NOT NULL"),
    )
    op.create_index(
        "memories_idx_user_id",
        "memories",
        ["tenant_id", "user_id", "create_time", "memory_id"],
    )
    op.create_index(
        "memories_uk_content_hash",
        "memories",
        ["tenant_id", "scope_id", "scope", "content_hash", "user_id", "agent_id"],
        unique=True,
        postgresql_where=sa.text("status = 'active'"),
        postgresql_nulls_not_distinct=True,
    )


def _messages() -> None:
    op.create_table(
        "messages",
        _id("tenant_id"),
        _id("message_id"),
        _id("agent_id"),
        _id("user_id"),
        _id("session_id"),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column("content_type", sa.String(50), server_default=sa.text("'text'"), nullable=False),
        sa.Column("content_parts", JSONB, nullable=True),
        sa.Column("tool_calls", JSONB, nullable=True),
        sa.Column("tool_call_id", sa.String(255), nullable=True),
        sa.Column("name", sa.String(255), nullable=True),
        _json("metadata", "'{}'"),
        _id("parent_message_id", nullable=True),
        _time("create_time", "clock_timestamp()"),
        sa.Column("sequence_no", sa.BigInteger(), nullable=False),
        sa.CheckConstraint(
            "role IN ('user', 'assistant', 'system', 'tool')", name="messages_ck_role"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name="messages_fk_agents",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="messages_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="messages_fk_users",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "message_id", name="messages_pkey"),
    )
    op.create_index(
        "messages_idx_create_time",
        "messages",
        ["tenant_id", "create_time"],
    )
    op.create_index(
        "messages_idx_parent",
        "messages",
        ["tenant_id", "parent_message_id"],
        postgresql_where=sa.text("parent_message_id IS NOT NULL"),
    )
    op.create_index(
        "messages_idx_session_create_time",
        "messages",
        ["tenant_id", "session_id", "create_time"],
    )
    op.create_index(
        "messages_idx_session_sequence",
        "messages",
        ["tenant_id", "session_id", "sequence_no"],
        unique=True,
    )
    op.create_index(
        "messages_idx_user_create_time",
        "messages",
        ["tenant_id", "user_id", "create_time"],
    )
    op.create_index(
        "messages_uk_agent_user_session_time",
        "messages",
        ["tenant_id", "agent_id", "user_id", "session_id", "create_time"],
        unique=True,
    )
