"""The table of receipts (what kind of subject was erased, and how many rows), and the SQL that
erases all rows of one subject.
"""

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    ForeignKey,
    Index,
    LargeBinary,
    Select,
    String,
    and_,
    delete,
    exists,
    false,
    func,
    null,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.conversation.messages.models import Message
from app.conversation.sessions.models import Session
from app.governance.privacy.holdings_sql import EXTRACTED, READ, Holding
from app.identity.projects.repository import Project
from app.identity.tenants.access import Access
from app.identity.tenants.models import ApiKey
from app.identity.users.repository import User
from app.memory.graph.models import GraphEntity
from app.memory.memories.models import Memory
from app.memory.memories.repository import MemoryRepository
from app.platform.database.base import Base, Id, TenantOwned, after, new_id, subject_hash
from app.platform.database.engine import clock_of
from app.prompting.documents.models import File


class Erasure(TenantOwned, Base):
    """Receipt of an erasure: counts, and a hash by which a caller that knows the id finds it."""

    __tablename__ = "erasures"
    __table_args__ = (
        Index("erasures_idx_create_time", "tenant_id", "create_time", "erasure_id"),
        Index("erasures_idx_subject", "tenant_id", "subject_hash"),
    )

    tenant_id: Mapped[str] = mapped_column(Id, ForeignKey("tenants.tenant_id"), primary_key=True)
    erasure_id: Mapped[str] = mapped_column(Id, primary_key=True)
    kind: Mapped[str] = mapped_column(String(20))
    # Of kind and id, keyed by the tenant: the erased subject is not named here.
    subject_hash: Mapped[bytes] = mapped_column(LargeBinary)
    deleted: Mapped[dict[str, Any]] = mapped_column(JSONB, server_default=text("'{}'"))
    actor: Mapped[str | None] = mapped_column(Id)
    create_time: Mapped[datetime] = mapped_column(server_default=text("clock_timestamp()"))


class ErasureRepository:
    """Holdings of one tenant, counted and deleted. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def users_at_home(self, agent_id: str) -> int:
        """How many users have this agent as their home."""
        return await self._count(User, User.agent_id == agent_id)

    async def count(self, holdings: Sequence[Holding]) -> dict[str, int]:
        """Rows by name; the subject's own row is not counted."""
        return {name: await self._count(table, rows) for name, table, rows in holdings[:-1]}

    async def memory_ids(self, holdings: Sequence[Holding]) -> Sequence[str]:
        """Ids of the memories among the holdings that are not deleted yet."""
        [own] = [rows for _, table, rows in holdings if table is Memory]
        found = await self._db.scalars(
            select(Memory.memory_id).where(
                Memory.tenant_id == self._tenant_id, Memory.status != "deleted", own
            )
        )
        return found.all()

    async def owners_of(self, holdings: Sequence[Holding]) -> list[dict[str, Any]]:
        """Id, scope and scope id of the memories among the holdings, deleted ones too."""
        [own] = [rows for _, table, rows in holdings if table is Memory]
        found = await self._db.execute(
            select(Memory.memory_id, Memory.scope, Memory.scope_id).where(
                Memory.tenant_id == self._tenant_id, own
            )
        )
        return [dict(row) for row in found.mappings()]

    async def orphan(self, holdings: Sequence[Holding]) -> int:
        """Mark memories that stay and whose file or session is erased; how many were marked.

        Files are locked first, so that none is being read; the sessions are locked already.

        """
        files = self._ids(File.file_id, _among(holdings, File))
        await self._db.execute(files.order_by(File.file_id).with_for_update())
        sessions = self._ids(Session.session_id, _among(holdings, Session))
        read = and_(Memory.source == READ, Memory.source_id.in_(files))
        rows = await self._db.scalars(
            update(Memory)
            .where(
                Memory.tenant_id == self._tenant_id,
                Memory.status != "deleted",
                Memory.source_deleted_at.is_(None),
                or_(read, self._extracted_in(sessions)),
                _among(holdings, Memory).is_not(true()),
            )
            .values(source_deleted_at=await clock_of(self._db))
            .returning(Memory.memory_id)
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())

    def _extracted_in(self, sessions: Select[Any]) -> ColumnElement[bool]:
        """Memories extracted from these sessions alone: no message elsewhere is evidence of them.

        A memory that a client saved as a model's has no evidence, or no session of ours.
        """
        elsewhere = exists().where(
            Message.tenant_id == self._tenant_id,
            Message.message_id == func.any(Memory.evidence),
            Message.session_id.not_in(sessions),
        )
        return and_(
            Memory.source == EXTRACTED,
            Memory.session_id.in_(sessions),
            Memory.source_id == Memory.session_id,
            func.cardinality(Memory.evidence) > 0,
            ~elsewhere,
        )

    def _ids(self, key: Any, rows: ColumnElement[bool]) -> Select[Any]:
        return select(key).where(key.class_.tenant_id == self._tenant_id, rows)

    async def delete(self, holdings: Sequence[Holding]) -> dict[str, int]:
        """Delete the holdings, the subject itself last; keys are revoked. Rows deleted, by name."""
        await self._clear_references(holdings)
        gone = {}
        now = await clock_of(self._db)
        for name, table, rows in holdings:
            # A key is only revoked and loses its names: history entries refer to its id.
            statement = (
                update(ApiKey).values(
                    revoked_at=func.coalesce(ApiKey.revoked_at, now),
                    key_name=null(),
                    user_id=null(),
                )
                if table is ApiKey
                else delete(table)
            )
            result = await self._db.execute(
                statement.where(table.tenant_id == self._tenant_id, rows)
                .returning(table.tenant_id)
                .execution_options(synchronize_session=False)
            )
            gone[name] = len(result.all())
        gone.popitem()
        return gone

    async def _clear_references(self, holdings: Sequence[Holding]) -> None:
        """Let rows that stay name none of the rows that go; their own rows are locked first.

        Sessions, projects and entities are under the locks that the deletion began with.
        """
        memories = _among(holdings, Memory)
        await MemoryRepository(self._db, Access(self._tenant_id)).clear_superseded_by(memories)
        references: tuple[tuple[type[TenantOwned], Any, type[TenantOwned], Any], ...] = (
            (Memory, Memory.session_id, Session, Session.session_id),
            (Memory, Memory.project_id, Project, Project.project_id),
            (Session, Session.project_id, Project, Project.project_id),
            (GraphEntity, GraphEntity.merged_into, GraphEntity, GraphEntity.entity_id),
        )
        for child, column, parent, key in references:
            if any(table is parent for _, table, _ in holdings):
                await self._db.execute(
                    update(child)
                    .where(
                        child.tenant_id == self._tenant_id,
                        column.in_(self._ids(key, _among(holdings, parent))),
                        _among(holdings, child).is_not(true()),
                    )
                    .values({column: None})
                    .execution_options(synchronize_session=False)
                )

    async def _count(self, table: type[TenantOwned], rows: ColumnElement[bool]) -> int:
        found: int | None = await self._db.scalar(
            select(func.count())
            .select_from(table)
            .where(
                table.tenant_id == self._tenant_id,
                rows,
            )
        )
        return int(found or 0)

    # --- receipts

    async def add_receipt(
        self, kind: str, subject: str, deleted: dict[str, int], *, actor: str
    ) -> Erasure:
        """Keep that something was erased, and how much."""
        receipt = Erasure(
            tenant_id=self._tenant_id,
            erasure_id=new_id("era"),
            kind=kind,
            subject_hash=subject_hash(self._tenant_id, kind, subject),
            deleted=dict[str, Any](deleted),
            actor=actor,
        )
        self._db.add(receipt)
        await self._db.flush()
        await self._db.refresh(receipt)
        return receipt

    async def receipts(
        self,
        *,
        kind: str | None,
        subject: bytes | None,
        start: tuple[datetime, str] | None,
        limit: int,
    ) -> Sequence[Erasure]:
        """Newest first, one more than `limit` when another page follows."""
        statement = select(Erasure).where(Erasure.tenant_id == self._tenant_id)
        if kind is not None:
            statement = statement.where(Erasure.kind == kind)
        if subject is not None:
            statement = statement.where(Erasure.subject_hash == subject)
        rows = await self._db.scalars(
            after(
                statement,
                (Erasure.create_time, Erasure.erasure_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()


def _among(holdings: Sequence[Holding], table: type[TenantOwned]) -> ColumnElement[bool]:
    """Which rows of a table go; none where it holds nothing that goes."""
    return or_(false(), *(rows for _, held_table, rows in holdings if held_table is table))
