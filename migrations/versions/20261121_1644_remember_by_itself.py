"""Remember by itself: jobs, extraction runs, the ledger, feedback, webhooks

Revision ID: 0002
Revises: 0001
Create Date: 2026-11-21 16:44:44+00:00

The first half of an expand and contract, with nothing to contract: new tables, and new columns
that the previous release neither reads nor has to fill.
"""

import pgvector.sqlalchemy
import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

from app.platform.database.roles import DISPATCH, tenant_policies

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

ID = sa.String(64, collation="C")
TIME = postgresql.TIMESTAMP(timezone=True, precision=6)
JSONB = postgresql.JSONB()

TABLES = (
    "usage",
    "webhooks",
    "webhook_deliveries",
    "extraction_runs",
    "jobs",
    "memory_feedback",
)

TIMED = ("jobs", "webhooks", "webhook_deliveries")

# What claiming across tenants may see of a job: neither what is in it nor what came of it.
PROGRESS = (
    "status, priority, due_at, waiting_since, deferred_reason, run_again, again_due_at, "
    "again_since, generation, attempts, max_attempts, lease_token, lease_expires_at, worker, "
    "error_code, error_detail, started_at, finished_at, update_time"
)
SCHEDULING = f"tenant_id, job_id, kind, key, {PROGRESS}"


def upgrade() -> None:
    _usage()
    _webhooks()
    _webhook_deliveries()
    _extraction_runs()
    _jobs()
    _memory_feedback()
    _changes()
    _triggers()
    _rights()


def downgrade() -> None:
    op.drop_column("sessions", "last_extracted_seq")
    op.drop_column("messages", "captured")
    op.drop_index("memory_history_idx_memory_id", table_name="memory_history")
    op.create_index(
        "memory_history_idx_memory_id", "memory_history", ["tenant_id", "memory_id", "history_id"]
    )
    for column in ("embedding_model", "embedding", "job_id"):
        op.drop_column("memory_history", column)
    op.drop_index("memories_idx_bucket_past", table_name="memories")
    op.drop_index("memories_idx_attribute", table_name="memories")
    op.drop_column("memories", "attribute")
    op.drop_index("gate_decisions_idx_job_id", table_name="gate_decisions")
    for column in ("run_id", "job_id", "evidence", "event"):
        op.drop_column("gate_decisions", column)
    for table in reversed(TABLES):
        op.drop_table(table)


def _triggers() -> None:
    for table in TIMED:
        op.execute(
            f"CREATE TRIGGER {table}_update_time BEFORE UPDATE ON {table} "
            "FOR EACH ROW EXECUTE FUNCTION kemem_set_update_time()"
        )


def _rights() -> None:
    for table in TABLES:
        for statement in tenant_policies(table):
            op.execute(statement)
    op.execute(
        f"GRANT SELECT ({SCHEDULING}), INSERT ({SCHEDULING}), UPDATE ({PROGRESS}) "
        f"ON jobs TO {DISPATCH}"
    )
    # Finishing empties and answers what this role cannot read.
    op.execute(f"GRANT UPDATE (payload, result) ON jobs TO {DISPATCH}")
    op.execute(f"CREATE POLICY jobs_dispatch ON jobs TO {DISPATCH} USING (true) WITH CHECK (true)")
    op.execute(
        f"GRANT SELECT (tenant_id, webhook_id, status, next_attempt_at) "
        f"ON webhook_deliveries TO {DISPATCH}"
    )
    op.execute(
        f"GRANT SELECT (tenant_id, webhook_id, enabled, paused_until) ON webhooks TO {DISPATCH}"
    )
    op.execute(f"CREATE POLICY webhooks_dispatch ON webhooks FOR SELECT TO {DISPATCH} USING (true)")
    op.execute(
        f"CREATE POLICY webhook_deliveries_dispatch ON webhook_deliveries FOR SELECT "
        f"TO {DISPATCH} USING (true)"
    )


def _usage() -> None:
    op.create_table(
        "usage",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("operation", sa.String(40), nullable=False),
        sa.Column("model", sa.String(255), nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failures", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="usage_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "day", "operation", "model", name="usage_pkey"),
    )


def _webhooks() -> None:
    op.create_table(
        "webhooks",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("url", sa.Text(), nullable=False),
        sa.Column("secret", sa.Text(), nullable=False),
        sa.Column("old_secret", sa.Text(), nullable=True),
        sa.Column("old_secret_expires_at", TIME, nullable=True),
        sa.Column("events", postgresql.ARRAY(sa.String(40)), nullable=False),
        sa.Column("description", sa.Text(), nullable=True),
        sa.Column("enabled", sa.Boolean(), server_default=sa.text("true"), nullable=False),
        sa.Column("disabled_reason", sa.String(40), nullable=True),
        sa.Column("failures", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("failing_since", TIME, nullable=True),
        sa.Column("last_failure_at", TIME, nullable=True),
        sa.Column("paused_until", TIME, nullable=True),
        sa.Column("creator", ID, nullable=True),
        sa.Column("version", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="webhooks_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "webhook_id", name="webhooks_pkey"),
    )
    op.create_index(
        "webhooks_idx_create_time", "webhooks", ["tenant_id", "create_time", "webhook_id"]
    )


def _webhook_deliveries() -> None:
    op.create_table(
        "webhook_deliveries",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("delivery_id", ID, nullable=False),
        sa.Column("webhook_id", ID, nullable=False),
        sa.Column("event_id", ID, nullable=False),
        sa.Column("event_type", sa.String(40), nullable=False),
        sa.Column("payload", JSONB, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("status", sa.String(20), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("next_attempt_at", TIME, server_default=sa.text("now()"), nullable=True),
        sa.Column("attempted_at", TIME, nullable=True),
        sa.Column("response_status", sa.SmallInteger(), nullable=True),
        sa.Column("error_code", sa.String(50), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("delivered_at", TIME, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'delivered', 'dead')", name="webhook_deliveries_ck_status"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "webhook_id"],
            ["webhooks.tenant_id", "webhooks.webhook_id"],
            name="webhook_deliveries_fk_webhooks",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="webhook_deliveries_fk_tenants"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "delivery_id", name="webhook_deliveries_pkey"),
    )
    op.create_index(
        "webhook_deliveries_idx_due",
        "webhook_deliveries",
        ["tenant_id", "webhook_id", "next_attempt_at", "delivery_id"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "webhook_deliveries_idx_user_id", "webhook_deliveries", ["tenant_id", "user_id"]
    )
    op.create_index(
        "webhook_deliveries_idx_webhook_id",
        "webhook_deliveries",
        ["tenant_id", "webhook_id", "create_time", "delivery_id"],
    )


def _extraction_runs() -> None:
    op.create_table(
        "extraction_runs",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("run_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=True),
        sa.Column("trigger", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("error_code", sa.String(50), nullable=True),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("session_id", ID, nullable=True),
        sa.Column("first_sequence_no", sa.BigInteger(), nullable=True),
        sa.Column("last_sequence_no", sa.BigInteger(), nullable=True),
        sa.Column("messages", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("extractor", sa.String(255), nullable=False),
        sa.Column("model", sa.String(255), nullable=True),
        sa.Column("prompt_version", sa.String(40), nullable=True),
        sa.Column("reached_model", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("calls", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("input_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("output_tokens", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("latency_ms", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("proposals", sa.BigInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("outcomes", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("finish_time", TIME, nullable=True),
        sa.CheckConstraint(
            "status IN ('extracted', 'committed', 'failed')", name="extraction_runs_ck_status"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="extraction_runs_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="extraction_runs_fk_users",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id"], ["tenants.tenant_id"], name="extraction_runs_fk_tenants"
        ),
        sa.PrimaryKeyConstraint("tenant_id", "run_id", name="extraction_runs_pkey"),
    )
    op.create_index(
        "extraction_runs_idx_create_time", "extraction_runs", ["tenant_id", "create_time", "run_id"]
    )
    op.create_index("extraction_runs_idx_job_id", "extraction_runs", ["tenant_id", "job_id"])
    op.create_index(
        "extraction_runs_idx_session_id",
        "extraction_runs",
        ["tenant_id", "session_id", "create_time"],
    )
    op.create_index("extraction_runs_idx_user_id", "extraction_runs", ["tenant_id", "user_id"])


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("job_id", ID, nullable=False),
        sa.Column("kind", sa.String(40), nullable=False),
        sa.Column("key", sa.String(255, collation="C"), nullable=False),
        sa.Column("status", sa.String(20), server_default=sa.text("'pending'"), nullable=False),
        sa.Column("priority", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("agent_id", ID, nullable=True),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("session_id", ID, nullable=True),
        sa.Column(
            "signals",
            postgresql.ARRAY(sa.String(40)),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("payload", JSONB, server_default=sa.text("'{}'"), nullable=False),
        sa.Column("creator", ID, nullable=True),
        sa.Column("due_at", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("waiting_since", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("deferred_reason", sa.String(40), nullable=True),
        sa.Column("run_again", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column("again_due_at", TIME, nullable=True),
        sa.Column("again_since", TIME, nullable=True),
        sa.Column(
            "again_signals",
            postgresql.ARRAY(sa.String(40)),
            server_default=sa.text("'{}'"),
            nullable=False,
        ),
        sa.Column("again_payload", JSONB, nullable=True),
        sa.Column("generation", sa.BigInteger(), server_default=sa.text("1"), nullable=False),
        sa.Column("attempts", sa.SmallInteger(), server_default=sa.text("0"), nullable=False),
        sa.Column("max_attempts", sa.SmallInteger(), server_default=sa.text("8"), nullable=False),
        sa.Column("lease_token", ID, nullable=True),
        sa.Column("lease_expires_at", TIME, nullable=True),
        sa.Column("worker", sa.String(255), nullable=True),
        sa.Column("error_code", sa.String(50), nullable=True),
        sa.Column("error_detail", sa.Text(), nullable=True),
        sa.Column("result", JSONB, nullable=True),
        sa.Column("started_at", TIME, nullable=True),
        sa.Column("finished_at", TIME, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.Column("update_time", TIME, server_default=sa.text("now()"), nullable=False),
        sa.CheckConstraint(
            "status IN ('pending', 'running', 'succeeded', 'dead', 'cancelled')",
            name="jobs_ck_status",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            name="jobs_fk_sessions",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="jobs_fk_users",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(["tenant_id"], ["tenants.tenant_id"], name="jobs_fk_tenants"),
        sa.PrimaryKeyConstraint("tenant_id", "job_id", name="jobs_pkey"),
    )
    op.create_index("jobs_idx_create_time", "jobs", ["tenant_id", "create_time", "job_id"])
    op.create_index(
        "jobs_idx_due",
        "jobs",
        ["tenant_id", "priority", "due_at"],
        postgresql_where=sa.text("status = 'pending'"),
    )
    op.create_index(
        "jobs_idx_finished_at",
        "jobs",
        ["tenant_id", "kind", "finished_at"],
        postgresql_where=sa.text("finished_at IS NOT NULL"),
    )
    op.create_index(
        "jobs_idx_running",
        "jobs",
        ["tenant_id", "job_id"],
        postgresql_where=sa.text("status = 'running'"),
    )
    op.create_index("jobs_idx_session_id", "jobs", ["tenant_id", "session_id"])
    op.create_index("jobs_idx_user_id", "jobs", ["tenant_id", "user_id"])
    op.create_index(
        "jobs_uk_live",
        "jobs",
        ["tenant_id", "kind", "key"],
        unique=True,
        postgresql_where=sa.text("status IN ('pending', 'running')"),
    )


def _memory_feedback() -> None:
    op.create_table(
        "memory_feedback",
        sa.Column("tenant_id", ID, nullable=False),
        sa.Column("feedback_id", ID, nullable=False),
        sa.Column("memory_id", ID, nullable=False),
        sa.Column("user_id", ID, nullable=True),
        sa.Column("author_id", ID, nullable=True),
        sa.Column("rating", sa.String(20), nullable=False),
        sa.Column("comment", sa.Text(), nullable=True),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("actor", ID, nullable=True),
        sa.Column("create_time", TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.CheckConstraint(
            "rating IN ('helpful', 'wrong', 'outdated')", name="memory_feedback_ck_rating"
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            name="memory_feedback_fk_memories",
            ondelete="CASCADE",
        ),
        sa.ForeignKeyConstraint(
            ["tenant_id", "user_id"],
            ["users.tenant_id", "users.user_id"],
            name="memory_feedback_fk_users",
            ondelete="CASCADE",
        ),
        sa.PrimaryKeyConstraint("tenant_id", "feedback_id", name="memory_feedback_pkey"),
    )
    op.create_index(
        "memory_feedback_idx_author_id",
        "memory_feedback",
        ["tenant_id", "author_id"],
        postgresql_where=sa.text("author_id IS NOT NULL"),
    )
    op.create_index(
        "memory_feedback_idx_memory_id",
        "memory_feedback",
        ["tenant_id", "memory_id", "create_time", "feedback_id"],
    )
    op.create_index("memory_feedback_idx_user_id", "memory_feedback", ["tenant_id", "user_id"])


def _changes() -> None:
    op.add_column("gate_decisions", sa.Column("event", sa.String(20), nullable=True))
    op.add_column(
        "gate_decisions",
        sa.Column("evidence", postgresql.ARRAY(ID), server_default=sa.text("'{}'"), nullable=False),
    )
    op.add_column("gate_decisions", sa.Column("job_id", ID, nullable=True))
    op.add_column("gate_decisions", sa.Column("run_id", ID, nullable=True))
    op.create_index(
        "gate_decisions_idx_job_id",
        "gate_decisions",
        ["tenant_id", "job_id"],
        postgresql_where=sa.text("job_id IS NOT NULL"),
    )
    op.add_column("memories", sa.Column("attribute", sa.String(100), nullable=True))
    op.create_index(
        "memories_idx_attribute",
        "memories",
        ["tenant_id", "scope_id", "scope", "attribute"],
        postgresql_where=sa.text("attribute IS NOT NULL AND status = 'active'"),
    )
    op.create_index(
        "memories_idx_bucket_past",
        "memories",
        ["tenant_id", "scope_id", "scope"],
        postgresql_where=sa.text("status IN ('archived', 'superseded')"),
    )
    op.drop_index("memory_history_idx_memory_id", table_name="memory_history")
    op.create_index(
        "memory_history_idx_memory_id",
        "memory_history",
        ["tenant_id", "memory_id", "create_time", "history_id"],
    )
    op.add_column("memory_history", sa.Column("job_id", ID, nullable=True))
    op.add_column(
        "memory_history", sa.Column("embedding", pgvector.sqlalchemy.vector.VECTOR(), nullable=True)
    )
    op.add_column("memory_history", sa.Column("embedding_model", sa.String(255), nullable=True))
    op.add_column(
        "messages",
        sa.Column("captured", sa.Boolean(), server_default=sa.text("true"), nullable=False),
    )
    op.add_column(
        "sessions",
        sa.Column(
            "last_extracted_seq", sa.BigInteger(), server_default=sa.text("0"), nullable=False
        ),
    )
    # What was said before this release is not read by itself: it would go to a model all at
    # once, unasked. On a large table this is one pass over the sessions.
    # Nobody changed them, so `update_time` stays.
    op.execute("ALTER TABLE sessions DISABLE TRIGGER sessions_update_time")
    op.execute("UPDATE sessions SET last_extracted_seq = last_sequence_no")
    op.execute("ALTER TABLE sessions ENABLE TRIGGER sessions_update_time")
