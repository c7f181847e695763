"""Tables of the knowledge graph: entities, their names, relations through time."""

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import CheckConstraint, Double, ForeignKeyConstraint, Index, String, Text, text
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, TenantOwned, Timed


def _owners() -> tuple[ForeignKeyConstraint, ...]:
    """Foreign keys to the owners of a row, with which it is deleted."""
    return tuple(
        ForeignKeyConstraint(
            ["tenant_id", f"{kind}_id"], [f"{kind}s.tenant_id", f"{kind}s.{kind}_id"],
            ondelete="CASCADE",
        )
        for kind in ("user", "agent", "project")
    )  # fmt: skip


class _Owned:
    """The bucket, as that of a memory; session-scoped statements make no graph."""

    scope: Mapped[str] = mapped_column(String(20))
    scope_id: Mapped[str] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    agent_id: Mapped[str | None] = mapped_column(Id)
    project_id: Mapped[str | None] = mapped_column(Id)


class GraphEntity(TenantOwned, Timed, _Owned, Base):
    """A person or thing that statements name, once in its bucket.

    A merged one keeps its row, with `merged_into`, so that the merge can be undone.
    """

    __tablename__ = "graph_entities"
    __table_args__ = (
        *_owners(),
        ForeignKeyConstraint(
            ["tenant_id", "merged_into"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            name="graph_entities_fk_merged_into",
        ),
        CheckConstraint("scope IN ('user', 'project', 'agent')", name="scope"),
        # Two simultaneous runs cannot both make the same entity .
        Index(
            "graph_entities_uk_name_key",
            "tenant_id",
            "scope_id",
            "scope",
            "name_key",
            "user_id",
            "agent_id",
            unique=True,
            postgresql_where=text("merged_into IS NULL"),
            postgresql_nulls_not_distinct=True,
        ),
        Index("graph_entities_idx_create_time", "tenant_id", "create_time", "entity_id"),
        # For the names that a query may hold, in all buckets at once.
        Index("graph_entities_idx_name_key", "tenant_id", "name_key"),
        Index("graph_entities_idx_user_id", "tenant_id", "user_id"),
        Index("graph_entities_idx_agent_id", "tenant_id", "agent_id"),
        Index("graph_entities_idx_project_id", "tenant_id", "project_id"),
        Index(
            "graph_entities_idx_merged_into",
            "tenant_id",
            "merged_into",
            postgresql_where=text("merged_into IS NOT NULL"),
        ),
    )

    entity_id: Mapped[str] = mapped_column(Id, primary_key=True)
    name: Mapped[str] = mapped_column(String(255))
    # What makes two names one: `text/names.py`.
    name_key: Mapped[str] = mapped_column(String(255, collation="C"))
    entity_type: Mapped[str] = mapped_column(String(50))
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    embedding: Mapped[Any | None] = mapped_column(Vector(), deferred=True)
    embedding_model: Mapped[str | None] = mapped_column(String(255))
    merged_into: Mapped[str | None] = mapped_column(Id)
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class GraphAlias(TenantOwned, Base):
    """Another name of an entity."""

    __tablename__ = "graph_aliases"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            ondelete="CASCADE",
        ),
        Index("graph_aliases_idx_alias_key", "tenant_id", "alias_key"),
    )

    entity_id: Mapped[str] = mapped_column(Id, primary_key=True)
    alias_key: Mapped[str] = mapped_column(String(255, collation="C"), primary_key=True)
    alias: Mapped[str] = mapped_column(String(255))
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class GraphRelation(TenantOwned, _Owned, Base):
    """One version of one relation: what was thought to hold, when, and while we thought so.

    Rows are never changed but in `known_to`: a correction closes the version and adds the next,
    so that what was known at any time of any other time can be read.
    """

    __tablename__ = "graph_relations"
    __table_args__ = (
        *_owners(),
        ForeignKeyConstraint(
            ["tenant_id", "source_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            ondelete="CASCADE",
            name="graph_relations_fk_source_id",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "destination_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            ondelete="CASCADE",
            name="graph_relations_fk_destination_id",
        ),
        CheckConstraint("relation ~ '^[a-z][a-z0-9_]{0,99}$'", name="relation"),
        CheckConstraint("confidence >= 0 AND confidence <= 1", name="confidence"),
        # What holds, and is known, once.
        Index(
            "graph_relations_uk_current",
            "tenant_id",
            "source_id",
            "relation",
            "destination_id",
            unique=True,
            postgresql_where=text("known_to IS NULL AND valid_to IS NULL"),
        ),
        Index(
            "graph_relations_idx_source_id",
            "tenant_id",
            "source_id",
            "relation",
            postgresql_where=text("known_to IS NULL"),
        ),
        Index(
            "graph_relations_idx_destination_id",
            "tenant_id",
            "destination_id",
            "relation",
            postgresql_where=text("known_to IS NULL"),
        ),
        # For times in the past.
        Index("graph_relations_idx_source_past", "tenant_id", "source_id", "known_from"),
        Index("graph_relations_idx_destination_past", "tenant_id", "destination_id", "known_from"),
        Index("graph_relations_idx_known_from", "tenant_id", "known_from", "relation_id"),
        Index("graph_relations_idx_user_id", "tenant_id", "user_id"),
        Index("graph_relations_idx_agent_id", "tenant_id", "agent_id"),
        Index("graph_relations_idx_project_id", "tenant_id", "project_id"),
    )

    relation_id: Mapped[str] = mapped_column(Id, primary_key=True)
    version: Mapped[int] = mapped_column(primary_key=True)
    source_id: Mapped[str] = mapped_column(Id)
    relation: Mapped[str] = mapped_column(String(100))
    destination_id: Mapped[str] = mapped_column(Id)
    confidence: Mapped[float] = mapped_column(Double)
    # Messages that say so, and memories that were made of them in the same run.
    evidence: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    memory_ids: Mapped[list[str]] = mapped_column(
        ARRAY(Id), server_default=text("'{}'"), default=list
    )
    valid_from: Mapped[datetime | None]
    valid_to: Mapped[datetime | None]
    known_from: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    known_to: Mapped[datetime | None]
    reason: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    job_id: Mapped[str | None] = mapped_column(Id)


class GraphMention(TenantOwned, Base):
    """A memory that speaks of an entity."""

    __tablename__ = "graph_mentions"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "memory_id"],
            ["memories.tenant_id", "memories.memory_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "entity_id"],
            ["graph_entities.tenant_id", "graph_entities.entity_id"],
            ondelete="CASCADE",
        ),
        Index("graph_mentions_idx_entity_id", "tenant_id", "entity_id", "memory_id"),
    )

    memory_id: Mapped[str] = mapped_column(Id, primary_key=True)
    entity_id: Mapped[str] = mapped_column(Id, primary_key=True)


class GraphChange(TenantOwned, _Owned, Base):
    """A merge or a split by hand: all rows it touched as they were, so that it can be undone."""

    __tablename__ = "graph_changes"
    __table_args__ = (
        *_owners(),
        CheckConstraint("event IN ('MERGE', 'SPLIT', 'UPDATE', 'DELETE')", name="event"),
        Index("graph_changes_idx_create_time", "tenant_id", "create_time", "change_id"),
        Index("graph_changes_idx_user_id", "tenant_id", "user_id"),
        Index("graph_changes_idx_agent_id", "tenant_id", "agent_id"),
        Index("graph_changes_idx_project_id", "tenant_id", "project_id"),
    )

    change_id: Mapped[str] = mapped_column(Id, primary_key=True)
    event: Mapped[str] = mapped_column(String(20))
    entity_ids: Mapped[list[str]] = mapped_column(ARRAY(Id))
    before: Mapped[dict[str, Any]] = mapped_column(JSONB)
    after: Mapped[dict[str, Any]] = mapped_column(JSONB)
    reason: Mapped[str | None] = mapped_column(Text)
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    undone_at: Mapped[datetime | None]
