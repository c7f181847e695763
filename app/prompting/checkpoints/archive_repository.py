"""SQL for archiving old checkpoints, and their compressed form."""

import asyncio
import json
import zlib
from collections.abc import Sequence
from datetime import timedelta
from typing import Any, NamedTuple

from sqlalchemy import ColumnElement, Text, and_, cast, delete, exists, func, or_, select
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.conversation.sessions.models import Session
from app.prompting.checkpoints.models import Checkpoint, CheckpointArchive


class ArchiveRepository:
    """Old checkpoints of one tenant. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    def _due(self, age: timedelta) -> ColumnElement[bool]:
        """Old enough to archive; of a running session, not the newest of its namespace."""
        newer = aliased(Checkpoint)
        followed = exists().where(
            newer.tenant_id == self._tenant_id,
            newer.session_id == Checkpoint.session_id,
            newer.namespace == Checkpoint.namespace,
            or_(
                newer.create_time > Checkpoint.create_time,
                and_(
                    newer.create_time == Checkpoint.create_time,
                    newer.checkpoint_id > Checkpoint.checkpoint_id,
                ),
            ),
        )
        return and_(
            Checkpoint.tenant_id == self._tenant_id,
            Checkpoint.create_time <= func.now() - age,
            Session.tenant_id == self._tenant_id,
            or_(Session.status == 0, followed),
        )

    async def count(self, age: timedelta) -> int:
        """How many checkpoints older than `age` are due for the archive."""
        statement = select(func.count()).select_from(Checkpoint).join(Session, _ITS_SESSION)
        return int(await self._db.scalar(statement.where(self._due(age))) or 0)

    async def take(self, age: timedelta, *, limit: int) -> Sequence[Checkpoint]:
        """Delete at most `limit` of the due checkpoints from the live table and return them.

        Oldest first. Their sessions cannot be deleted until the transaction ends; sessions that
        are locked are skipped until the next time.
        """
        ids = await self._db.scalars(
            select(Checkpoint.checkpoint_id)
            .join(Session, _ITS_SESSION)
            .where(self._due(age))
            .order_by(Checkpoint.create_time)
            .limit(limit)
            .with_for_update(of=Session, read=True, key_share=True, skip_locked=True)
        )
        rows = await self._db.scalars(
            delete(Checkpoint)
            .where(
                Checkpoint.tenant_id == self._tenant_id,
                Checkpoint.checkpoint_id == func.any(cast(list(ids), ARRAY(Text))),
            )
            .returning(Checkpoint)
            .execution_options(synchronize_session=False)
        )
        return rows.all()

    async def add(self, rows: Sequence[dict[str, Any]]) -> None:
        """Insert rows into the archive; nothing when there are none."""
        if rows:
            await self._db.execute(insert(CheckpointArchive), rows)


_ITS_SESSION = and_(
    Session.tenant_id == Checkpoint.tenant_id, Session.session_id == Checkpoint.session_id
)


class Packed(NamedTuple):
    """The compressed parts of an archived checkpoint; the rest stays readable in its row."""

    contents: dict[str, Any]
    state: dict[str, Any]
    state_version: int


def pack(parts: Packed) -> bytes:
    """`parts`, compressed by zlib, which every Python can read again."""
    text = json.dumps(parts._asdict(), ensure_ascii=False, separators=(",", ":"))
    return zlib.compress(text.encode())


def unpack(compressed: bytes) -> Packed:
    """What `pack` was given."""
    return Packed(**json.loads(zlib.decompress(compressed)))


async def read_parts(checkpoint: Checkpoint | CheckpointArchive) -> Packed:
    """The parts of a checkpoint, live or archived; an archived one is decompressed in a thread."""
    if isinstance(checkpoint, CheckpointArchive):
        return await asyncio.to_thread(unpack, checkpoint.compressed)
    return parts_of(checkpoint)


def parts_of(checkpoint: Checkpoint) -> Packed:
    """The parts of a live checkpoint."""
    return Packed(checkpoint.contents, checkpoint.state, checkpoint.state_version)
