"""SQL for pages of LangGraph's checkpoints and for the content of their values."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    LargeBinary,
    Subquery,
    and_,
    any_,
    bindparam,
    func,
    or_,
    select,
    true,
    tuple_,
)
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import Participants
from app.identity.tenants.access import Access
from app.integrations.langgraph.pages import PAGE_BYTES, Position, Values
from app.prompting.checkpoints.models import (
    SaverCheckpoint,
    SaverChunk,
    SaverValue,
    SaverWrite,
)

ANYONE = Participants()


class Wanted(NamedTuple):
    """Which checkpoints a list shows; None means any."""

    session_id: str | None = None
    namespace: str | None = None
    checkpoint_id: str | None = None
    before: str | None = None
    metadata: Mapping[str, Any] | None = None


class SaverLists:
    """Checkpoints over all sessions that a caller may see."""

    def __init__(self, db: AsyncSession, access: Access, named: Participants = ANYONE) -> None:
        """Read what `access` may see of the sessions of `named`."""
        self._db = db
        self._access = access
        self._named = named

    def _visible(self) -> ColumnElement[bool]:
        mine = SaverCheckpoint.tenant_id == self._access.tenant_id
        agents = {self._access.agent_id, self._named.agent_id} - {None}
        users = {self._access.user_id, self._named.user_id} - {None}
        if not agents and not users:
            return mine
        sessions = select(Session.session_id).where(
            Session.tenant_id == self._access.tenant_id,
            *(Session.agent_id == agent_id for agent_id in agents),
            *(Session.user_id == user_id for user_id in users),
        )
        return and_(mine, SaverCheckpoint.session_id.in_(sessions))

    async def list_checkpoints(
        self, wanted: Wanted, *, start: Position | None, limit: int
    ) -> tuple[Sequence[SaverCheckpoint], bool]:
        """Checkpoints, newest first, and whether more follow.

        Fewer than `limit` when more would exceed PAGE_BYTES, but at least one if any exists. The
        chunks of their values are not counted here: checkpoints share most of them.
        """
        page = self._page(wanted, start, limit + 1)
        step = aliased(SaverCheckpoint, page)
        order = [column.desc() for column in (step.checkpoint_id, step.session_id, step.namespace)]
        size = _own_bytes(self._access.tenant_id, page)
        sized = select(
            page,
            func.row_number().over(order_by=order).label("ordinal"),
            func.sum(size).over(order_by=order).label("so_far"),
            func.count().over().label("found"),
        ).subquery()
        rows = (
            await self._db.execute(
                select(aliased(SaverCheckpoint, sized), sized.c.found)
                .where(
                    sized.c.ordinal <= limit,
                    or_(sized.c.ordinal == 1, sized.c.so_far <= PAGE_BYTES),
                )
                .order_by(sized.c.ordinal)
            )
        ).all()
        return [row[0] for row in rows], bool(rows) and rows[0].found > len(rows)

    def _page(self, wanted: Wanted, start: Position | None, rows: int) -> Subquery:
        order = (
            SaverCheckpoint.checkpoint_id,
            SaverCheckpoint.session_id,
            SaverCheckpoint.namespace,
        )
        statement = select(SaverCheckpoint).where(self._visible())
        for name in ("session_id", "namespace", "checkpoint_id"):
            value = getattr(wanted, name)
            if value is not None:
                statement = statement.where(getattr(SaverCheckpoint, name) == value)
        if wanted.before is not None:
            statement = statement.where(SaverCheckpoint.checkpoint_id < wanted.before)
        if wanted.metadata:
            statement = statement.where(SaverCheckpoint.metadata_.contains(dict(wanted.metadata)))
        if start is not None:
            # The first is for the index of one namespace, which does not have the second's order.
            statement = statement.where(
                SaverCheckpoint.checkpoint_id <= start[0], tuple_(*order) < tuple_(*start)
            )
        return statement.order_by(*(column.desc() for column in order)).limit(rows).subquery()

    async def writes(self, steps: Sequence[SaverCheckpoint]) -> Sequence[SaverWrite]:
        """The writes of `steps`, in the order in which LangGraph applies them."""
        keys = [(step.session_id, step.namespace, step.checkpoint_id) for step in steps]
        if not keys:
            return []
        rows = await self._db.scalars(
            select(SaverWrite)
            .where(
                SaverWrite.tenant_id == self._access.tenant_id,
                tuple_(SaverWrite.session_id, SaverWrite.namespace, SaverWrite.checkpoint_id).in_(
                    keys
                ),
            )
            .order_by(SaverWrite.task_path.collate("C"), SaverWrite.task_id, SaverWrite.idx)
        )
        return rows.all()

    async def values(self, steps: Sequence[SaverCheckpoint]) -> Values:
        """Types and chunks of the values of `steps`, by their digest."""
        digests = {bytes.fromhex(digest) for step in steps for digest in step.channels.values()}
        if not digests:
            return {}
        rows = await self._db.execute(
            select(SaverValue.digest, SaverValue.type, SaverValue.chunks).where(
                SaverValue.tenant_id == self._access.tenant_id,
                SaverValue.session_id.in_({step.session_id for step in steps}),
                SaverValue.digest == any_(_digests(digests)),
            )
        )
        return {digest.hex(): (kind, parts) for digest, kind, parts in rows}

    async def chunk_bytes(
        self, sessions: Collection[str], chunks: Collection[bytes]
    ) -> dict[bytes, int]:
        """Bytes of the given chunks of `sessions`, by digest; missing chunks are left out."""
        return await self._chunks(sessions, chunks, func.octet_length(SaverChunk.content))

    async def content(
        self, sessions: Collection[str], chunks: Collection[bytes]
    ) -> dict[bytes, bytes]:
        """The given chunks of `sessions`, by digest; missing chunks are left out."""
        return await self._chunks(sessions, chunks, SaverChunk.content)

    async def _chunks(
        self, sessions: Collection[str], chunks: Collection[bytes], column: Any
    ) -> dict[bytes, Any]:
        if not chunks:
            return {}
        rows = await self._db.execute(
            select(SaverChunk.digest, column.label("held"))
            .ext(distinct_on(SaverChunk.digest))
            .where(
                SaverChunk.tenant_id == self._access.tenant_id,
                SaverChunk.session_id.in_(sessions),
                SaverChunk.digest == any_(_digests(chunks)),
            )
        )
        return {row.digest: row.held for row in rows}

    async def sessions_of_runs(self, run_ids: Collection[str]) -> Sequence[str]:
        """Ids of the visible sessions with checkpoints of any of `run_ids`, in order."""
        rows = await self._db.scalars(
            select(SaverCheckpoint.session_id)
            .distinct()
            .where(self._visible(), SaverCheckpoint.run_id.in_(run_ids))
            .order_by(SaverCheckpoint.session_id)
        )
        return rows.all()


def _own_bytes(tenant_id: str, page: Subquery) -> ColumnElement[int]:
    """Stored bytes of a checkpoint of `page`, without the content of its values."""
    here = (
        SaverWrite.tenant_id == tenant_id,
        page.c.session_id == SaverWrite.session_id,
        page.c.namespace == SaverWrite.namespace,
        page.c.checkpoint_id == SaverWrite.checkpoint_id,
    )
    written = func.octet_length(SaverWrite.value) + func.coalesce(
        func.pg_column_size(SaverWrite.chunks), 0
    )
    writes = select(func.sum(written)).where(*here)
    channel = func.jsonb_each_text(page.c.channels).table_valued("key", "value")
    # Every step names each chunk of a long list.
    names = (
        select(func.sum(func.pg_column_size(SaverValue.chunks)))
        .select_from(channel)
        .join(SaverValue, true())
        .where(
            SaverValue.tenant_id == tenant_id,
            SaverValue.session_id == page.c.session_id,
            SaverValue.digest == func.decode(channel.c.value, "hex"),
        )
    )
    size: ColumnElement[int] = (
        func.octet_length(page.c.checkpoint)
        + func.pg_column_size(page.c.metadata)
        + func.pg_column_size(page.c.channels)
        + func.coalesce(writes.scalar_subquery(), 0)
        + func.coalesce(names.scalar_subquery(), 0)
    )
    return size


def _digests(digests: Collection[bytes]) -> Any:
    return bindparam(None, list(digests), type_=ARRAY(LargeBinary))
