"""Tables of documents: folders, files, and the passages of files."""

from datetime import datetime
from typing import Any

from pgvector.sqlalchemy import Vector
from sqlalchemy import (
    CheckConstraint,
    ForeignKeyConstraint,
    Index,
    LargeBinary,
    String,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB
from sqlalchemy.orm import Mapped, mapped_column

from app.platform.database.base import Base, Id, Searched, TenantOwned, Timed


class Folder(TenantOwned, Timed, Base):
    """Documents of a user, of a project, or of an agent's field."""

    __tablename__ = "folders"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "user_id"], ["users.tenant_id", "users.user_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "project_id"],
            ["projects.tenant_id", "projects.project_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "(scope = 'user' AND user_id IS NOT NULL AND scope_id = user_id) OR "
            "(scope = 'project' AND project_id IS NOT NULL AND scope_id = project_id) OR "
            "(scope = 'agent' AND agent_id IS NOT NULL AND scope_id = agent_id)",
            name="scope",
        ),
        Index("folders_idx_create_time", "tenant_id", "create_time", "folder_id"),
        Index("folders_idx_scope", "tenant_id", "scope_id", "scope"),
        Index("folders_idx_user_id", "tenant_id", "user_id"),
        Index("folders_idx_agent_id", "tenant_id", "agent_id"),
        Index("folders_idx_project_id", "tenant_id", "project_id"),
    )

    folder_id: Mapped[str] = mapped_column(Id, primary_key=True)
    folder_name: Mapped[str] = mapped_column(String(255))
    description: Mapped[str | None] = mapped_column(Text)
    scope: Mapped[str] = mapped_column(String(20))
    scope_id: Mapped[str] = mapped_column(Id)
    user_id: Mapped[str | None] = mapped_column(Id)
    agent_id: Mapped[str | None] = mapped_column(Id)
    project_id: Mapped[str | None] = mapped_column(Id)
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class AgentFolder(TenantOwned, Base):
    """A folder that a further agent reads too."""

    __tablename__ = "agent_folders"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"], ondelete="CASCADE"
        ),
        ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            ondelete="CASCADE",
        ),
        Index("agent_folders_idx_folder_id", "tenant_id", "folder_id"),
    )

    agent_id: Mapped[str] = mapped_column(Id, primary_key=True)
    folder_id: Mapped[str] = mapped_column(Id, primary_key=True)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class File(TenantOwned, Timed, Base):
    """One uploaded document and how far its ingestion is."""

    __tablename__ = "files"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            ondelete="CASCADE",
        ),
        CheckConstraint(
            "state IN ('pending', 'parsing', 'embedding', 'completed', 'error')", name="state"
        ),
        Index("files_uk_name", "tenant_id", "folder_id", "file_name", unique=True),
        Index("files_idx_create_time", "tenant_id", "folder_id", "create_time", "file_id"),
    )

    file_id: Mapped[str] = mapped_column(Id, primary_key=True)
    folder_id: Mapped[str] = mapped_column(Id)
    file_name: Mapped[str] = mapped_column(String(255))
    # As found in the bytes, not as claimed.
    content_type: Mapped[str] = mapped_column(String(255))
    size: Mapped[int]
    sha256: Mapped[bytes] = mapped_column(LargeBinary)
    state: Mapped[str] = mapped_column(String(20), server_default=text("'pending'"))
    error_code: Mapped[str | None] = mapped_column(String(50))
    error_detail: Mapped[str | None] = mapped_column(Text)
    parser: Mapped[str | None] = mapped_column(String(100))
    pages: Mapped[int | None]
    passage_count: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    # How many passages the text has, once that is known; progress is `passage_count` of these.
    passages_expected: Mapped[int | None]
    job_id: Mapped[str | None] = mapped_column(Id)
    tags: Mapped[list[str]] = mapped_column(
        ARRAY(String(50)), server_default=text("'{}'"), default=list
    )
    metadata_: Mapped[dict[str, Any]] = mapped_column(
        "metadata", JSONB, server_default=text("'{}'"), default=dict
    )
    creator: Mapped[str | None] = mapped_column(Id)
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


class FileChunk(TenantOwned, Base):
    """A mebibyte of an uploaded file as it came, so that it can be read again."""

    __tablename__ = "file_chunks"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "file_id"], ["files.tenant_id", "files.file_id"], ondelete="CASCADE"
        ),
    )

    file_id: Mapped[str] = mapped_column(Id, primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True)
    content: Mapped[bytes] = mapped_column(LargeBinary)


class Passage(TenantOwned, Searched, Base):
    """A piece of a file, or a text put into a folder by itself, with the vector that finds it."""

    __tablename__ = "passages"
    __table_args__ = (
        ForeignKeyConstraint(
            ["tenant_id", "folder_id"],
            ["folders.tenant_id", "folders.folder_id"],
            ondelete="CASCADE",
        ),
        ForeignKeyConstraint(
            ["tenant_id", "file_id"], ["files.tenant_id", "files.file_id"], ondelete="CASCADE"
        ),
        Index("passages_idx_folder", "tenant_id", "folder_id", "create_time", "passage_id"),
        # Each of a file's passages once, however often they are written.
        Index("passages_uk_file", "tenant_id", "file_id", "ordinal", unique=True),
        Index("passages_idx_embedding_model", "tenant_id", "embedding_model", "passage_id"),
        Index("passages_idx_analyser", "tenant_id", "analyser"),
    )

    passage_id: Mapped[str] = mapped_column(Id, primary_key=True)
    folder_id: Mapped[str] = mapped_column(Id)
    file_id: Mapped[str | None] = mapped_column(Id)
    # Its number in the file, from 0; its range there, in characters; its page, from 1.
    # While its file is being read the numbers go from -1 down, and searches do not find it.
    ordinal: Mapped[int] = mapped_column(server_default=text("0"), default=0)
    start_char: Mapped[int | None]
    end_char: Mapped[int | None]
    page: Mapped[int | None]
    content: Mapped[str] = mapped_column(Text)
    tags: Mapped[list[str]] = mapped_column(
        ARRAY(String(50)), server_default=text("'{}'"), default=list
    )
    embedding: Mapped[Any | None] = mapped_column(Vector(), deferred=True)
    embedding_model: Mapped[str | None] = mapped_column(String(255))
    creator: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))
