"""Tables of memory items, of what happened to them, where they were shown, and of the gate's
verdicts.
"""

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Double,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    SmallInteger,
    String,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, BIT, JSONB
from sqlalchemy.orm import Mapped, mapped_column, synonym

from app.memory.memories.gate import Obstacle, obstacle
from app.platform.database.base import Base, Id, Searched, TenantOwned, Timed


class Memory(TenantOwned, Timed, Searched, Base):
    """One remembered statement, with the vector that finds it in the same row.

    `scope` and `scope_id` say for whom it counts; together with the tenant they are the
    bucket that a search scans. A deleted item keeps its row until the purge, without its
    vector, and is invisible to everything that starts from `MemoryRepository`.
    """

    __tablename__ = "memories"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
        ),
        ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
        ),
        ForeignKeyConstraint(
            ["tenant_id", "superseded_by"],
            ["memories.tenant_id", "memories.memory_id"],
            name="memories_fk_superseded_by",
        ),
        CheckConstraint(
            "memory_type IN ('preference', 'fact', 'skill', 'habit', 'event', 'context', "
            "'constraint', 'decision', 'goal', 'correction', 'knowledge', 'experience')",
            name="memory_type",
        ),
        CheckConstraint("tier IN ('short', 'long')", name="tier"),
        CheckConstraint(
            "(scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id) OR "
            "(scope = 'session') OR "
            "(scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id) OR "
            "(scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)",
            name="scope",
        ),
        CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence"),
        CheckConstraint("expected_valid_days BETWEEN 1 AND 3650", name="expected_valid_days"),
        CheckConstraint("visibility IN ('public', 'members', 'owner_only')", name="visibility"),
        CheckConstraint("status IN ('active', 'archived', 'superseded', 'deleted')", name="status"),
        CheckConstraint(
            "source IN ('user', 'ai', 'knowledge_base', 'project_resource', 'import')",
            name="source",
        ),
        # The bucket of a search: an exact scan behind it beats any shared ANN index here.
        Index(
            "memories_idx_bucket",
            "tenant_id",
            "scope_id",
            "scope",
            postgresql_where=text("status = 'active'"),
        ),
        # What a search of the past reads beside it. The two hold different rows, so that the
        # search of now has one bucket index to choose from, and a save writes one.
        Index(
            "memories_idx_bucket_past",
            "tenant_id",
            "scope_id",
            "scope",
            postgresql_where=text("status IN ('archived', 'superseded')"),
        ),
        # Of a large bucket all that candidates are chosen by (`large_buckets.py`), so that nothing
        # else of it is read; and what has no short code. A row is in one of the two.
        Index(
            "memories_idx_coded",
            "tenant_id",
            "scope_id",
            "scope",
            postgresql_include=[
                "memory_id",
                "session_id",
                "embedding_model",
                "code",
                "terms",
                "term_count",
            ],
            postgresql_where=text("status = 'active' AND COALESCE(length(code), 768) < 768"),
        ),
        Index(
            "memories_idx_uncoded",
            "tenant_id",
            "scope_id",
            "scope",
            postgresql_where=text("status = 'active' AND COALESCE(length(code), 768) >= 768"),
        ),
        # The few that a context shows whatever their rank.
        Index(
            "memories_idx_corrections",
            "tenant_id",
            "scope_id",
            "scope",
            postgresql_where=text("status = 'active' AND memory_type = 'correction'"),
        ),
        # One statement once: two simultaneous saves of one text cannot both win.
        Index(
            "memories_uk_content_hash",
            "tenant_id",
            "scope_id",
            "scope",
            "content_hash",
            "user_id",
            "agent_id",
            unique=True,
            postgresql_where=text("status = 'active'"),
            postgresql_nulls_not_distinct=True,
        ),
        Index(
            "memories_idx_attribute",
            "tenant_id",
            "scope_id",
            "scope",
            "attribute",
            postgresql_where=text("attribute IS NOT NULL AND status = 'active'"),
        ),
        Index("memories_idx_create_time", "tenant_id", "create_time", "memory_id"),
        Index("memories_idx_user_id", "tenant_id", "user_id", "create_time", "memory_id"),
        Index("memories_idx_agent_id", "tenant_id", "agent_id", "create_time", "memory_id"),
        Index("memories_idx_session_id", "tenant_id", "session_id"),
        Index("memories_idx_project_id", "tenant_id", "project_id"),
        # What was read from a file, for the day that the file goes.
        Index(
            "memories_idx_source_id",
            "tenant_id",
            "source_id",
            postgresql_where=text("source = 'knowledge_base'"),
        ),
        # The few that contradict another, for the list of them.
        Index(
            "memories_idx_conflict_ids",
            "tenant_id",
            "create_time",
            "memory_id",
            postgresql_where=text("conflict_ids IS NOT NULL"),
        ),
        Index("memories_idx_embedding_model", "tenant_id", "embedding_model", "memory_id"),
        Index("memories_idx_analyser", "tenant_id", "analyser"),
        Index(
            "memories_idx_superseded_by",
            "tenant_id",
            "superseded_by",
            postgresql_where=text("superseded_by IS NOT NULL"),
        ),
        Index(
            "memories_idx_deleted_at",
            "tenant_id",
            "deleted_at",
            postgresql_where=text("status = 'deleted'"),
        ),
        Index(
            "memories_idx_expires_at",
            "tenant_id",
            "expires_at",
            postgresql_where=text("expires_at IS NOT NULL AND status = 'active'"),
        ),
    )

    memory_id: Mapped[str] = mapped_column(Id, primary_key=True)
    user_id: Mapped[str | None] = mapped_column(Id)
    agent_id: Mapped[str | None] = mapped_column(Id)
    # The session that it came from. Requests that keep only what did name it `run_id`.
    session_id: Mapped[str | None] = mapped_column(Id)
    run_id: Mapped[str | None] = synonym("session_id")
    project_id: Mapped[str | None] = mapped_column(Id)
    scope: Mapped[str] = mapped_column(String(20))
    scope_id: Mapped[str] = mapped_column(Id)
    content: Mapped[str] = mapped_column(Text)
    content_hash: Mapped[bytes] = mapped_column(LargeBinary)
    memory_type: Mapped[str] = mapped_column(String(20))
    # What it gives the value of, such as `user.residence`, where only one value can hold.
    attribute: Mapped[str | None] = mapped_column(String(100))
    tier: Mapped[str] = mapped_column(String(10))
    source: Mapped[str] = mapped_column(String(20))
    source_id: Mapped[str | None] = mapped_column(Id)
    # When the file or session it was read from was deleted.
    source_deleted_at: Mapped[datetime | None]
    source_error: Mapped[str | None] = mapped_column(Text)
    evidence: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    # Whose words the content is, where it is somebody's own; and when the newest message that
    # says it was said.
    speaker: Mapped[str | None] = mapped_column(Text)
    said_at: Mapped[datetime | None]
    confidence: Mapped[float] = mapped_column(Double)
    visibility: Mapped[str] = mapped_column(String(20))
    status: Mapped[str] = mapped_column(String(20), server_default=text("'active'"))
    superseded_by: Mapped[str | None] = mapped_column(Id)
    # Memories that it may contradict, oldest link first; when one counts, `validity_sql.py` says.
    conflict_ids: Mapped[list[str] | None] = mapped_column(ARRAY(Id))
    valid_from: Mapped[datetime | None]
    valid_to: Mapped[datetime | None]
    # How long it was expected to hold when it was said, if that was known; and when a model
    # last checked that it holds, or it was said again.
    expected_valid_days: Mapped[int | None] = mapped_column(SmallInteger)
    reviewed_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    deleted_at: Mapped[datetime | None]
    external_id: Mapped[str | None] = mapped_column(String(255))
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    # 1 to 6 KB per row that no answer needs; loaded only when asked for. Vectors of several
    # models live side by side, so the column has no dimension; `embedding_model` has.
    embedding: Mapped[Any | None] = mapped_column(Vector(), deferred=True)
    embedding_model: Mapped[str] = mapped_column(String(255))
    # The signs of `embedding`, in quantised buckets; a trigger clears them when it
    # changes. Null compares exactly.
    code: Mapped[Any | None] = mapped_column(BIT(varying=True), deferred=True)
    creator: Mapped[str | None] = mapped_column(Id)
    use_count: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    last_used_at: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class MemoryBucket(TenantOwned, Base):
    """A bucket of vectors of one model that is quantised, or was found unfit for it."""

    __tablename__ = "memory_buckets"

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    scope: Mapped[str] = mapped_column(String(20), primary_key=True)
    scope_id: Mapped[str] = mapped_column(Id, primary_key=True)
    embedding_model: Mapped[str] = mapped_column(String(255), primary_key=True)
    rows: Mapped[int]
    # Grows when rows get codes, so that whoever has read them reads them again.
    version: Mapped[int] = mapped_column(BigInteger, server_default="0")
    # When all rows first had codes; null while they are made, and after they were refused.
    coded_at: Mapped[datetime | None]
    # What part of the nearest ten, or hundred, if that is less, is found with codes; and when.
    sampled_recall: Mapped[float | None] = mapped_column(Double)
    sampled_at: Mapped[datetime | None]


class MemoryHistory(TenantOwned, Searched, Base):
    """One change of one item: what it was, what it became, who did it and why."""

    __tablename__ = "memory_history"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        # Both for the history of an item and for its last entry before a time.
        Index(
            "memory_history_idx_memory_id", "tenant_id", "memory_id", "create_time", "history_id"
        ),
        Index("memory_history_idx_user_id", "tenant_id", "user_id"),
        Index(
            "memory_history_idx_analyser",
            "tenant_id",
            "analyser",
            postgresql_where=text("embedding IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    history_id: Mapped[str] = mapped_column(Id, primary_key=True)
    memory_id: Mapped[str] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    event: Mapped[str] = mapped_column(String(20))
    reason: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    # The job whose run changed it; none when a caller did so directly.
    job_id: Mapped[str | None] = mapped_column(Id)
    before: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    after: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))
    # The vector of the words that a change replaced, and their terms, so that they are still
    # found by `known_at`; null when the words stayed.
    embedding: Mapped[Any | None] = mapped_column(Vector(), deferred=True)
    embedding_model: Mapped[str | None] = mapped_column(String(255))
    version: Mapped[int]
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class GateDecision(TenantOwned, Base):
    """One verdict of the gate, a refusal too; sensitive content is never in it."""

    __tablename__ = "gate_decisions"
    __table_args__ = (
        # With all that statistics count of a verdict.
        Index(
            "gate_decisions_idx_create_time",
            "tenant_id",
            "create_time",
            "decision_id",
            postgresql_include=["agent_id", "verdict", "event", "codes"],
        ),
        Index("gate_decisions_idx_user_id", "tenant_id", "user_id", "create_time", "decision_id"),
        Index(
            "gate_decisions_idx_memory_id",
            "tenant_id",
            "memory_id",
            postgresql_where=text("memory_id IS NOT NULL"),
        ),
        Index(
            "gate_decisions_idx_job_id",
            "tenant_id",
            "job_id",
            postgresql_where=text("job_id IS NOT NULL"),
        ),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    decision_id: Mapped[str] = mapped_column(Id, primary_key=True)
    verdict: Mapped[str] = mapped_column(String(20))
    # Bounded, because an index holds them: a row of it has 2,704 bytes at most.
    codes: Mapped[list[str]] = mapped_column(
        ARRAY(String), server_default=text("'{}'"), info={"most_texts": 32, "most_bytes": 1024}
    )
    reasons: Mapped[list[dict[str, Any]]] = mapped_column(JSONB, server_default=text("'[]'"))
    content: Mapped[str | None] = mapped_column(Text)
    # No foreign keys: a refused save stores its verdict alone, perhaps of an unknown user.
    user_id: Mapped[str | None] = mapped_column(Id)
    agent_id: Mapped[str | None] = mapped_column(Id)
    session_id: Mapped[str | None] = mapped_column(Id)
    run_id: Mapped[str | None] = synonym("session_id")
    project_id: Mapped[str | None] = mapped_column(Id)
    scope: Mapped[str] = mapped_column(String(20))
    memory_id: Mapped[str | None] = mapped_column(Id)
    source: Mapped[str] = mapped_column(String(20))
    # What became of it: ADD, UPDATE, SUPERSEDE, MERGE, DELETE, NONE, REJECT, or STORED where
    # somebody stored a refused text; of a memory that was reviewed: KEEP, EXTEND, REMOVE.
    event: Mapped[str | None] = mapped_column(String(20))
    evidence: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    job_id: Mapped[str | None] = mapped_column(Id)
    extraction_id: Mapped[str | None] = mapped_column("run_id", Id)
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    # What a refused memory would have had besides; null in verdicts of earlier releases.
    request: Mapped[dict[str, Any] | None] = mapped_column(JSONB(none_as_null=True))

    @property
    def storable(self) -> bool:
        """Whether its text was refused and can be stored after all."""
        return self.obstacle is None

    @property
    def obstacle(self) -> Obstacle | None:
        """Why its text cannot be stored after all."""
        return obstacle(
            self.verdict, self.event, self.codes, self.content, self.scope, self.request
        )


class ContextInjection(TenantOwned, Base):
    """A memory that stood in a session's context, so that saying it back is no news."""

    __tablename__ = "context_injections"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            ondelete="CASCADE",
        ),
        Index("context_injections_idx_memory", "tenant_id", "memory_id"),
        # What statistics count of a day.
        Index("context_injections_idx_first_at", "tenant_id", "first_at"),
        *(
            Index(
                f"context_injections_idx_{column}",
                "tenant_id",
                column,
                postgresql_where=text(f"{column} IS NOT NULL"),
            )
            for column in ("used_at", "used_estimated_at")
        ),
    )

    session_id: Mapped[str] = mapped_column(Id, primary_key=True)
    memory_id: Mapped[str] = mapped_column(Id, primary_key=True)
    first_at: Mapped[datetime] = mapped_column(server_default=func.now())
    last_at: Mapped[datetime] = mapped_column(server_default=func.now())
    # When an agent first said that an answer drew on it, and when words of one first did.
    used_at: Mapped[datetime | None]
    used_estimated_at: Mapped[datetime | None]
