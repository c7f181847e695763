"""The table of messages."""

from datetime import datetime
from typing import Any, Final

from pgvector.sqlalchemy import SPARSEVEC
from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    Integer,
    SmallInteger,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, QuickVector, Searched, TenantOwned

WITHOUT_VECTORS: Final = "piece_ends IS NOT NULL AND piece_embeddings IS NULL"
"""Cut into pieces that have no vectors."""

WITHOUT_PIECES: Final = "terms IS NOT NULL AND states_wish IS NULL"
"""Read by a release that knew no pieces."""

WAITING: Final = "analyser IS NULL OR (terms IS NOT NULL AND embedding_model IS NULL)"
"""Messages that searches cannot find yet, or not by meaning. Those with an analyser and no terms
are never found."""

INSTRUCTS: Final = "role = 'system' AND (metadata ->> 'event_type') IS NULL"
"""Instructions inside a conversation; messages with an event only report it."""


CALLS: Final = "tool_calls IS NOT NULL"
ANSWERS: Final = "tool_call_id IS NOT NULL"


class Message(TenantOwned, Searched, Base):
    """One entry of a session, ordered by `sequence_no`.

    `create_time` is set by the service and strictly increases inside a session; a
    client's own time goes into `metadata.client_time`. The parent is a message of the same
    session, which the session's lock holds to; a foreign key to the same table would make
    clearing a long session cost a statement per message (15 s for 33,000, now under 1 s).
    """

    __tablename__ = "messages"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"]),
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "session_id"],
            ["sessions.tenant_id", "sessions.session_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint("role IN ('user', 'assistant', 'system', 'tool')", name="role"),
        Index(
            "messages_uk_agent_user_session_time",
            "tenant_id",
            "agent_id",
            "user_id",
            "session_id",
            "create_time",
            unique=True,
        ),
        Index("messages_idx_session_create_time", "tenant_id", "session_id", "create_time"),
        Index(
            "messages_idx_session_sequence", "tenant_id", "session_id", "sequence_no", unique=True
        ),
        Index("messages_idx_user_create_time", "tenant_id", "user_id", "create_time"),
        Index("messages_idx_create_time", "tenant_id", "create_time"),
        # The newest of an agent, which a search of it stops at.
        Index("messages_idx_agent_create_time", "tenant_id", "agent_id", "create_time"),
        Index("messages_idx_analyser", "tenant_id", "analyser"),
        Index(
            "messages_idx_waiting",
            "tenant_id",
            "session_id",
            "sequence_no",
            postgresql_where=text(WAITING),
        ),
        Index("messages_idx_without_pieces", "tenant_id", postgresql_where=text(WITHOUT_PIECES)),
        Index(
            "messages_idx_instructions",
            "tenant_id",
            "session_id",
            "sequence_no",
            postgresql_where=text(INSTRUCTS),
        ),
        # Few in most sessions: what a result answers is not looked for among all the rest.
        Index(
            "messages_idx_calls",
            "tenant_id",
            "session_id",
            "sequence_no",
            postgresql_where=text(CALLS),
        ),
        Index(
            "messages_idx_results",
            "tenant_id",
            "session_id",
            "tool_call_id",
            "sequence_no",
            postgresql_where=text(ANSWERS),
        ),
        Index(
            "messages_idx_parent",
            "tenant_id",
            "parent_message_id",
            postgresql_where=text("parent_message_id IS NOT NULL"),
        ),
        Index(
            "messages_idx_copied_from",
            "tenant_id",
            "copied_from",
            "message_id",
            postgresql_where=text("copied_from IS NOT NULL"),
        ),
    )

    message_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id)
    user_id: Mapped[str] = mapped_column(Id)
    session_id: Mapped[str] = mapped_column(Id)
    role: Mapped[str] = mapped_column(String(20))
    content: Mapped[str] = mapped_column(Text)
    content_type: Mapped[str] = mapped_column(String(50), server_default=text("'text'"))
    content_parts: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    tool_calls: Mapped[list[dict[str, Any]] | None] = mapped_column(JSONB(none_as_null=True))
    tool_call_id: Mapped[str | None] = mapped_column(String(255))
    name: Mapped[str | None] = mapped_column(String(255))
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    # False: said while memory was paused, so it is never read for memories.
    captured: Mapped[bool] = mapped_column(server_default=text("true"), default=True)
    parent_message_id: Mapped[str | None] = mapped_column(Id)
    # Of a copy in a fork: the message that was said first, whose text is not searched twice.
    copied_from: Mapped[str | None] = mapped_column(Id, deferred=True)
    # Of what the request said, where a processor made this of it: so it may be sent again.
    input_hash: Mapped[bytes | None]
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
    sequence_no: Mapped[int]
    # By the deployment's counter when it was appended; null in rows of an older release.
    token_count: Mapped[int | None]
    # What `metadata.client_time` says, as far as it is a time; searches go by it.
    said_at: Mapped[datetime | None] = mapped_column(deferred=True)
    # What searches read of a message that has parts or Base64, so that an excerpt reads no image.
    # Null also in rows of an older release.
    searched_text: Mapped[str | None] = mapped_column(Text, deferred=True)
    # Whether it says how something is to be done from now on, or what is liked better.
    states_wish: Mapped[bool | None] = mapped_column(deferred=True)
    # Null until it is embedded: with the append where that takes no call, else by a job.
    embedding: Mapped[Any | None] = mapped_column(QuickVector(), deferred=True)
    embedding_model: Mapped[str | None] = mapped_column(String(255), deferred=True)
    # Of a text of several pieces (`language/text/pieces.py`): where each ends in the text that is
    # searched, and its terms, how many they are, and its vector, by the same model.
    piece_ends: Mapped[list[int] | None] = mapped_column(ARRAY(Integer), deferred=True)
    piece_terms: Mapped[list[Any] | None] = mapped_column(ARRAY(SPARSEVEC()), deferred=True)
    piece_term_counts: Mapped[list[int] | None] = mapped_column(ARRAY(SmallInteger), deferred=True)
    piece_embeddings: Mapped[list[Any] | None] = mapped_column(ARRAY(QuickVector()), deferred=True)
