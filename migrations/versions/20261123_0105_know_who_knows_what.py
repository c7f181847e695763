"""Know who knows what: the graph, profiles, documents, and receipts of erasures

Revision ID: 0007
Revises: 0006
Create Date: 2026-11-23 01:05:00+00:00

New tables, and one new column that the previous release neither reads nor has to fill.
"""

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.platform.database.roles import tenant_policies

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

ID = sa.String(64, collation="C")
TIME = postgresql.TIMESTAMP(timezone=True, precision=6)
JSONB = postgresql.JSONB()

TABLES = (
    "erasures",
    "folders",
    "graph_changes",
    "graph_entities",
    "profiles",
    "agent_folders",
    "files",
    "graph_aliases",
    "graph_relations",
    "profile_history",
    "profile_values",
    "file_chunks",
    "graph_mentions",
    "passages",
)

# With a time of change that a trigger keeps.
TIMED = ("folders", "graph_entities", "profiles", "files", "profile_values")

# A merge says nothing new of the entity, and leaves no trace when it is undone.
UNTOUCHED = {"graph_entities": "WHEN (OLD.merged_into IS NOT DISTINCT FROM NEW.merged_into)"}


def upgrade() -> None:
    _erasures()
    _folders()
    _graph_changes()
    _graph_entities()
    _profiles()
    _agent_folders()
    _files()
    _graph_aliases()
    _graph_relations()
    _profile_history()
    _profile_values()
    _file_chunks()
    _graph_mentions()
    _passages()
    op.add_column("memories", sa.Column("source_deleted_at", TIME))
    op.add_column("messages", sa.Column("input_hash", sa.LargeBinary()))
    op.create_index(
        "memories_idx_source_id",
        "memories",
        ["tenant_id", "source_id"],
        postgresql_where=sa.text("source = 'knowledge_base'"),
    )
    for table in TIMED:
        op.execute(
            f"CREATE TRIGGER {table}_update_time BEFORE UPDATE ON {table} "
            f"FOR EACH ROW {UNTOUCHED.get(table, '')} EXECUTE FUNCTION kemem_set_update_time()"
        )
    for table in TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)


def downgrade() -> None:
    op.drop_index("memories_idx_source_id", "memories")
    op.drop_column("memories", "source_deleted_at")
    op.drop_column("messages", "input_hash")
    for table in reversed(TABLES):
        op.drop_table(table)


def _erasures() -> None:
    op.create_table(
        "erasures",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("erasure_id", ID, nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("subject_hash", sa.LargeBinary(), nullable=False),
        sa.Column("deleted", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("actor", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name=op.f("erasures_fk_tenants")
        ),
        sa.PrimaryKeyConstraint("tenant_id", "erasure_id", name=op.f("erasures_pkey")),
    )
    op.create_index(
        "erasures_idx_create_time", "erasures", ["tenant_id", "create_time", "erasure_id"]
    )
    op.create_index("erasures_idx_subject", "erasures", ["tenant_id", "subject_hash"])


def _folders() -> None:
    op.create_table(
        "folders",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("folder_name", sa.String(255), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("scope_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "(scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id) OR "
            "(scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id) OR "
            "(scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)",
            name=op.f("folders_ck_scope"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name=op.f("folders_fk_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name=op.f("folders_fk_projects"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("folders_fk_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "folder_id", name=op.f("folders_pkey")),
    )
    op.create_index("folders_idx_agent_id", "folders", ["tenant_id", "agent_id"])
    op.create_index("folders_idx_create_time", "folders", ["tenant_id", "create_time", "folder_id"])
    op.create_index("folders_idx_project_id", "folders", ["tenant_id", "project_id"])
    op.create_index("folders_idx_scope", "folders", ["tenant_id", "scope_id", "scope"])
    op.create_index("folders_idx_user_id", "folders", ["tenant_id", "user_id"])


def _graph_changes() -> None:
    op.create_table(
        "graph_changes",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("change_id", ID, nullable=False),
        sa.Column("event", sa.String(20), nullable=False),
        sa.Column("entity_ids", postgresql.ARRAY(ID), nullable=False),
        sa.Column("before", JSONB, nullable=False),
        sa.Column("after", JSONB, nullable=False),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("undone_at", TIME, nullable=True),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("scope_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.CheckConstraint(
            "event IN ('MERGE', 'SPLIT', 'UPDATE', 'DELETE')", name=op.f("graph_changes_ck_event")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name=op.f("graph_changes_fk_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name=op.f("graph_changes_fk_projects"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("graph_changes_fk_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "change_id", name=op.f("graph_changes_pkey")),
    )
    op.create_index("graph_changes_idx_agent_id", "graph_changes", ["tenant_id", "agent_id"])
    op.create_index(
        "graph_changes_idx_create_time", "graph_changes", ["tenant_id", "create_time", "change_id"]
    )
    op.create_index("graph_changes_idx_project_id", "graph_changes", ["tenant_id", "project_id"])
    op.create_index("graph_changes_idx_user_id", "graph_changes", ["tenant_id", "user_id"])


def _graph_entities() -> None:
    op.create_table(
        "graph_entities",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("entity_id", ID, nullable=False),
        sa.Column("name", sa.String(255), nullable=False),
        sa.Column("name_key", sa.String(length=255, collation="C"), nullable=False),
        sa.Column("entity_type", sa.String(50), nullable=False),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("embedding", pgvector.sqlalchemy.VECTOR(), nullable=True),
        sa.Column("embedding_model", sa.String(255), nullable=True),
        sa.Column("merged_into", ID, nullable=True),
        sa.Column("creator", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("scope_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.CheckConstraint(
            "scope IN ('user', 'project', 'agent')", name=op.f("graph_entities_ck_scope")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name=op.f("graph_entities_fk_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "merged_into"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name="graph_entities_fk_merged_into",
            ondelete="SET NULL (merged_into)",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name=op.f("graph_entities_fk_projects"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("graph_entities_fk_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "entity_id", name=op.f("graph_entities_pkey")),
    )
    op.create_index("graph_entities_idx_agent_id", "graph_entities", ["tenant_id", "agent_id"])
    op.create_index(
        "graph_entities_idx_create_time",
        "graph_entities",
        ["tenant_id", "create_time", "entity_id"],
    )
    op.create_index(
        "graph_entities_idx_merged_into",
        "graph_entities",
        ["tenant_id", "merged_into"],
        postgresql_where=sa.text("merged_into IS NOT NULL"),
    )
    op.create_index("graph_entities_idx_name_key", "graph_entities", ["tenant_id", "name_key"])
    op.create_index("graph_entities_idx_project_id", "graph_entities", ["tenant_id", "project_id"])
    op.create_index("graph_entities_idx_user_id", "graph_entities", ["tenant_id", "user_id"])
    op.create_index(
        "graph_entities_uk_name_key",
        "graph_entities",
        ["tenant_id", "scope_id", "scope", "name_key", "user_id", "agent_id"],
        unique=True,
        postgresql_where=sa.text("merged_into IS NULL"),
        postgresql_nulls_not_distinct=True,
    )


def _profiles() -> None:
    op.create_table(
        "profiles",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("profile_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.Column("instructions", sa.Text(), nullable=True),
        sa.Column("derived_until", TIME, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("num_nonnulls(user_id, project_id) = 1", name=op.f("profiles_ck_owner")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name=op.f("profiles_fk_projects"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("profiles_fk_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "profile_id", name=op.f("profiles_pkey")),
    )
    op.create_index(
        "profiles_uk_project_id",
        "profiles",
        ["tenant_id", "project_id"],
        unique=True,
        postgresql_where=sa.text("project_id IS NOT NULL"),
    )
    op.create_index(
        "profiles_uk_user_id",
        "profiles",
        ["tenant_id", "user_id"],
        unique=True,
        postgresql_where=sa.text("user_id IS NOT NULL"),
    )


def _agent_folders() -> None:
    op.create_table(
        "agent_folders",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("agent_id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name=op.f("agent_folders_fk_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            name=op.f("agent_folders_fk_folders"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "agent_id", "folder_id", name=op.f("agent_folders_pkey")
        ),
    )
    op.create_index("agent_folders_idx_folder_id", "agent_folders", ["tenant_id", "folder_id"])


def _files() -> None:
    op.create_table(
        "files",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("file_id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("file_name", sa.String(255), nullable=False),
        sa.Column("content_type", sa.String(255), nullable=False),
        sa.Column("size", sa.BigInteger(), nullable=False),
        sa.Column("sha256", sa.LargeBinary(), nullable=False),
        sa.Column("state", sa.String(20), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("error_code", sa.String(50), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("parser", sa.String(100), nullable=True),
        sa.Column("pages", sa.BigInteger(), nullable=True),
        sa.Column("passage_count", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("passages_expected", sa.BigInteger(), nullable=True),
        sa.Column("job_id", ID, nullable=True),
        sa.Column(
            "tags", postgresql.ARRAY(sa.String(50)), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("metadata", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "state IN ('pending', 'parsing', 'embedding', 'completed', 'error')",
            name=op.f("files_ck_state"),
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            name=op.f("files_fk_folders"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "file_id", name=op.f("files_pkey")),
    )
    op.create_index(
        "files_idx_create_time", "files", ["tenant_id", "folder_id", "create_time", "file_id"]
    )
    op.create_index("files_uk_name", "files", ["tenant_id", "folder_id", "file_name"], unique=True)


def _graph_aliases() -> None:
    op.create_table(
        "graph_aliases",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("entity_id", ID, nullable=False),
        sa.Column("alias_key", sa.String(length=255, collation="C"), nullable=False),
        sa.Column("alias", sa.String(255), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name=op.f("graph_aliases_fk_graph_entities"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "entity_id", "alias_key", name=op.f("graph_aliases_pkey")
        ),
    )
    op.create_index("graph_aliases_idx_alias_key", "graph_aliases", ["tenant_id", "alias_key"])


def _graph_relations() -> None:
    op.create_table(
        "graph_relations",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("relation_id", ID, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("source_id", ID, nullable=False),
        sa.Column("relation", sa.String(100), nullable=False),
        sa.Column("destination_id", ID, nullable=False),
        sa.Column("confidence", sa.Double(), nullable=False),
        sa.Column("evidence", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False),
        sa.Column(
            "memory_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("valid_from", TIME, nullable=True),
        sa.Column("valid_to", TIME, nullable=True),
        sa.Column("known_from", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("known_to", TIME, nullable=True),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", ID, nullable=True),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("scope", sa.String(20), nullable=False),
        sa.Column("scope_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("project_id", ID, nullable=True),
        sa.CheckConstraint(
            "relation ~ '^[a-z][a-z0-9_]{0,99}$'", name=op.f("graph_relations_ck_relation")
        ),
        sa.CheckConstraint(
            "confidence >= 0 AND confidence <= 1", name=op.f("graph_relations_ck_confidence")
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "agent_id"],
            ["agents.tenant_id", "agents.agent_id"],
            name=op.f("graph_relations_fk_agents"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "destination_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name="graph_relations_fk_destination_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            name=op.f("graph_relations_fk_projects"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "source_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name="graph_relations_fk_source_id",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name=op.f("graph_relations_fk_users"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "relation_id", "version", name=op.f("graph_relations_pkey")
        ),
    )
    op.create_index("graph_relations_idx_agent_id", "graph_relations", ["tenant_id", "agent_id"])
    op.create_index(
        "graph_relations_idx_destination_id",
        "graph_relations",
        ["tenant_id", "destination_id", "relation"],
        postgresql_where=sa.text("known_to IS NULL"),
    )
    op.create_index(
        "graph_relations_idx_destination_past",
        "graph_relations",
        ["tenant_id", "destination_id", "known_from"],
    )
    op.create_index(
        "graph_relations_idx_known_from",
        "graph_relations",
        ["tenant_id", "known_from", "relation_id"],
    )
    op.create_index(
        "graph_relations_idx_project_id", "graph_relations", ["tenant_id", "project_id"]
    )
    op.create_index(
        "graph_relations_idx_source_id",
        "graph_relations",
        ["tenant_id", "source_id", "relation"],
        postgresql_where=sa.text("known_to IS NULL"),
    )
    op.create_index(
        "graph_relations_idx_source_past",
        "graph_relations",
        ["tenant_id", "source_id", "known_from"],
    )
    op.create_index("graph_relations_idx_user_id", "graph_relations", ["tenant_id", "user_id"])
    op.create_index(
        "graph_relations_uk_current",
        "graph_relations",
        ["tenant_id", "source_id", "relation", "destination_id"],
        unique=True,
        postgresql_where=sa.text("known_to IS NULL AND valid_to IS NULL"),
    )


def _profile_history() -> None:
    op.create_table(
        "profile_history",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("history_id", ID, nullable=False),
        sa.Column("profile_id", ID, nullable=False),
        sa.Column("slot", sa.String(length=200, collation="C"), nullable=False),
        sa.Column("event", sa.String(10), nullable=False),
        sa.Column("before", JSONB, nullable=True),
        sa.Column("after", JSONB, nullable=True),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column(
            "memory_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("reason", sa.Text(), nullable=True),
        sa.Column("actor", ID, nullable=True),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint("event IN ('SET', 'REMOVE')", name=op.f("profile_history_ck_event")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "profile_id"],
            ["profiles.tenant_id", "profiles.profile_id"],
            name=op.f("profile_history_fk_profiles"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "history_id", name=op.f("profile_history_pkey")),
    )
    op.create_index(
        "profile_history_idx_profile",
        "profile_history",
        ["tenant_id", "profile_id", "create_time", "history_id"],
    )


def _profile_values() -> None:
    op.create_table(
        "profile_values",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("profile_id", ID, nullable=False),
        sa.Column("slot", sa.String(length=200, collation="C"), nullable=False),
        sa.Column("value", JSONB, nullable=False),
        sa.Column("origin", sa.String(10), nullable=False),
        sa.Column(
            "memory_ids", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("deriver", sa.String(255), nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint("origin IN ('user', 'derived')", name=op.f("profile_values_ck_origin")),
        sa.ForeignKeyConstraint(
            ["tenant_id", "profile_id"],
            ["profiles.tenant_id", "profiles.profile_id"],
            name=op.f("profile_values_fk_profiles"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "profile_id", "slot", name=op.f("profile_values_pkey")
        ),
    )


def _file_chunks() -> None:
    op.create_table(
        "file_chunks",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("file_id", ID, nullable=False),
        sa.Column("number", sa.BigInteger(), nullable=False),
        sa.Column("content", sa.LargeBinary(), nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "file_id"],
            ["files.tenant_id", "files.file_id"],
            name=op.f("file_chunks_fk_files"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "file_id", "number", name=op.f("file_chunks_pkey")),
    )


def _graph_mentions() -> None:
    op.create_table(
        "graph_mentions",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("memory_id", ID, nullable=False),
        sa.Column("entity_id", ID, nullable=False),
        sa.ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name=op.f("graph_mentions_fk_graph_entities"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            name=op.f("graph_mentions_fk_memories"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint(
            "tenant_id", "memory_id", "entity_id", name=op.f("graph_mentions_pkey")
        ),
    )
    op.create_index(
        "graph_mentions_idx_entity_id", "graph_mentions", ["tenant_id", "entity_id", "memory_id"]
    )


def _passages() -> None:
    op.create_table(
        "passages",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("passage_id", ID, nullable=False),
        sa.Column("folder_id", ID, nullable=False),
        sa.Column("file_id", ID, nullable=True),
        sa.Column("ordinal", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("start_char", sa.BigInteger(), nullable=True),
        sa.Column("end_char", sa.BigInteger(), nullable=True),
        sa.Column("page", sa.BigInteger(), nullable=True),
        sa.Column("content", sa.Text(), nullable=False),
        sa.Column(
            "tags", postgresql.ARRAY(sa.String(50)), server_default=sa.text("'{}'"), nullable=False
        ),
        sa.Column("embedding", pgvector.sqlalchemy.VECTOR(), nullable=True),
        sa.Column("embedding_model", sa.String(255), nullable=True),
        sa.Column("creator", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("terms", pgvector.sqlalchemy.SPARSEVEC(), nullable=True),
        sa.Column("term_count", sa.SmallInteger(), nullable=True),
        sa.Column("word_count", sa.SmallInteger(), nullable=True),
        sa.Column("is_question", sa.Boolean(), nullable=True),
        sa.Column("has_time", sa.Boolean(), nullable=True),
        sa.Column("analyser", sa.SmallInteger(), nullable=True),
        sa.ForeignKeyConstraint(
            ["tenant_id", "file_id"],
            ["files.tenant_id", "files.file_id"],
            name=op.f("passages_fk_files"),
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            name=op.f("passages_fk_folders"),
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "passage_id", name=op.f("passages_pkey")),
    )
    op.create_index("passages_idx_analyser", "passages", ["tenant_id", "analyser"])
    op.create_index(
        "passages_idx_embedding_model", "passages", ["tenant_id", "embedding_model", "passage_id"]
    )
    op.create_index(
        "passages_uk_file", "passages", ["tenant_id", "file_id", "ordinal"], unique=True
    )
    op.create_index(
        "passages_idx_folder", "passages", ["tenant_id", "folder_id", "create_time", "passage_id"]
    )
