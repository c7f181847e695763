"""initial_schema

Revision ID: initial_schema
Revises:
Create Date: 2026-11-24 12:00:00+00:00

Every table as SQL in `migrations/initial_schema`: tables first, foreign keys after. Roles are
cluster-wide and come from `app/platform/database/roles.py`; they outlive a downgrade.
"""

from alembic import op

from app.platform.database.roles import tenant_policies
from migrations.initial_schema import TABLE_FILES, statements

revision = "initial_schema"
down_revision = None
branch_labels = None
depends_on = None

TABLES = (
    "tenants", "api_keys", "agents", "users", "projects", "project_members", "usage",
    "sessions", "session_states", "session_state_snapshot", "messages",
    "memories", "memory_history", "memory_buckets", "gate_decisions", "memory_feedback",
    "context_injections", "extraction_runs",
    "graph_entities", "graph_aliases", "graph_relations", "graph_mentions", "graph_changes",
    "profiles", "profile_values", "profile_history",
    "session_summaries", "blocks", "agent_blocks", "block_history",
    "checkpoints", "checkpoint_archive", "approvals",
    "saver_checkpoints", "saver_values", "saver_chunks", "saver_writes",
    "folders", "agent_folders", "files", "file_chunks", "passages",
    "idempotency_keys", "jobs", "webhooks", "webhook_deliveries", "erasures",
)  # fmt: skip

# A trigger keeps their `update_time`; those of memories and entities have conditions.
TIMED = (
    "tenants", "agents", "users", "projects", "project_members", "sessions", "session_states",
    "blocks", "profiles", "profile_values", "folders", "files", "jobs", "webhooks",
    "webhook_deliveries",
)  # fmt: skip

FUNCTIONS = (
    "kemem_set_update_time()", "kemem_timestamptz(text)", "kemem_clear_code()",
    "kemem_turn_analyser()", "kemem_clear_terms()",
)  # fmt: skip


def upgrade() -> None:
    for name in (*TABLE_FILES, "foreign_keys", "triggers"):
        _run(name)
    for table in TIMED:
        op.execute(
            f"CREATE TRIGGER {table}_update_time BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time()"
        )
    for table in TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)
    _run("dispatch_rights")
    op.execute("GRANT SELECT ON alembic_version TO PUBLIC")


def downgrade() -> None:
    # All at once, so that their foreign keys stand in nobody's way.
    op.execute(f"DROP TABLE {', '.join(TABLES)}")
    for function in FUNCTIONS:
        op.execute(f"DROP FUNCTION {function}")


def _run(name: str) -> None:
    for statement in statements(name):
        op.get_bind().exec_driver_sql(statement)
