"""SQL for messages."""

from collections import Counter
from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Select, delete, func, literal, select, update
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.database.keyset import after
from app.errors import IdTakenError
from app.messages.errors import MessageNotFoundError
from app.messages.models import Message
from app.tenants.access import Access


class MessageRepository:
    """Messages of one session. Never begins or ends a transaction.

    Whether the caller may see the session is `SessionRepository`'s to say, first.
    """

    def __init__(self, db: AsyncSession, access: Access, session_id: str) -> None:
        self._db = db
        self._tenant_id = access.tenant_id
        self._session_id = session_id

    def _mine(self) -> Select[Message]:
        return select(Message).where(
            Message.tenant_id == self._tenant_id, Message.session_id == self._session_id
        )

    async def add_all(self, rows: list[dict[str, Any]]) -> Sequence[Message]:
        """Insert `rows` in one statement and return them in order.

        Raises:
            IdTakenError: one of the ids is a message of another session.

        """
        # An error would not say which id it was: PostgreSQL keeps that to itself under RLS.
        statement = (
            insert(Message)
            .on_conflict_do_nothing(index_elements=["tenant_id", "message_id"])
            .returning(Message)
        )
        added = {message.message_id: message for message in await self._db.scalars(statement, rows)}
        for row in rows:
            if row["message_id"] not in added:
                raise IdTakenError("message_id", row["message_id"])
        return [added[row["message_id"]] for row in rows]

    async def known(self, message_ids: Iterable[str]) -> dict[str, Message]:
        """Messages of the tenant with these ids, by id, whatever their session."""
        wanted = list(message_ids)
        if not wanted:
            return {}
        rows = await self._db.scalars(
            select(Message).where(
                Message.tenant_id == self._tenant_id, Message.message_id.in_(wanted)
            )
        )
        return {row.message_id: row for row in rows}

    async def last_id(self) -> str | None:
        """Id of the newest message, or None in an empty session."""
        return await self._db.scalar(
            select(Message.message_id)
            .where(Message.tenant_id == self._tenant_id, Message.session_id == self._session_id)
            .order_by(Message.sequence_no.desc())
            .limit(1)
        )

    async def get(self, message_id: str) -> Message:
        """Raises MessageNotFoundError."""
        message = await self._db.scalar(self._mine().where(Message.message_id == message_id))
        if message is None:
            raise MessageNotFoundError(message_id)
        return message

    async def list(
        self,
        *,
        after_sequence_no: int | None,
        descending: bool,
        limit: int,
        role: str | None,
        since: datetime | None,
        until: datetime | None,
        branch: str | None,
    ) -> Sequence[Message]:
        """In the order of the conversation, one more than `limit` when a page follows.

        Args:
            branch: only the messages on the way from this leaf to the root.

        """
        statement = self._mine()
        if branch is not None:
            statement = statement.where(Message.message_id.in_(self._path(branch)))
        if role is not None:
            statement = statement.where(Message.role == role)
        if since is not None:
            statement = statement.where(Message.create_time >= since)
        if until is not None:
            statement = statement.where(Message.create_time < until)
        start = None if after_sequence_no is None else (after_sequence_no,)
        rows = await self._db.scalars(
            after(
                statement, (Message.sequence_no,), start=start, descending=descending, limit=limit
            )
        )
        return rows.all()

    def _path(self, leaf: str) -> Select[str]:
        path = (
            select(Message.message_id, Message.parent_message_id)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.message_id == leaf,
            )
            .cte("path", recursive=True)
        )
        parent = aliased(Message)
        path = path.union_all(
            select(parent.message_id, parent.parent_message_id).join(
                path,
                (parent.tenant_id == self._tenant_id)
                & (parent.message_id == path.c.parent_message_id),
            )
        )
        return select(path.c.message_id)

    async def open_calls(self, call_ids: Sequence[str]) -> Counter[str]:
        """How many calls with each of these ids still wait for their result.

        Some providers number the calls of every turn anew, so that an id may be used again.
        """
        if not call_ids:
            return Counter()
        call = func.jsonb_array_elements(Message.tool_calls).table_valued("value").alias("call")
        made = (
            select(call.c.value.cast(JSONB)["id"].astext)
            .select_from(Message)
            .join(call, literal(True))
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                func.jsonb_typeof(Message.tool_calls) == "array",
                call.c.value.cast(JSONB)["id"].astext.in_(call_ids),
            )
        )
        answered = select(Message.tool_call_id).where(
            Message.tenant_id == self._tenant_id,
            Message.session_id == self._session_id,
            Message.tool_call_id.in_(call_ids),
        )
        waiting = Counter((await self._db.scalars(made)).all())
        waiting.subtract(one for one in (await self._db.scalars(answered)).all() if one)
        return +waiting

    async def oldest_ids(self, count: int | None) -> Sequence[str]:
        """Ids in the order of the conversation, at most `count`."""
        statement = (
            select(Message.message_id)
            .where(Message.tenant_id == self._tenant_id, Message.session_id == self._session_id)
            .order_by(Message.sequence_no)
        )
        return list((await self._db.scalars(statement.limit(count))).all())

    async def in_order(self, message_ids: Sequence[str]) -> Sequence[str]:
        """Those of the ids that are here, in the order of the conversation."""
        statement = (
            select(Message.message_id)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.message_id.in_(message_ids),
            )
            .order_by(Message.sequence_no)
        )
        return list((await self._db.scalars(statement)).all())

    async def tool_traffic(self) -> Sequence[Message]:
        """Messages with calls or results, in the order of the conversation."""
        rows = await self._db.scalars(
            self._mine()
            .where(
                Message.tool_call_id.is_not(None)
                | (func.jsonb_typeof(Message.tool_calls) == "array")
            )
            .order_by(Message.sequence_no)
        )
        return rows.all()

    async def delete(self, message_ids: Sequence[str]) -> Sequence[str]:
        """Delete for good; children move up to the nearest ancestor that stays.

        Returns:
            The ids that were there, in the order of the conversation.

        """
        gone = set(message_ids)
        parents = {
            row.message_id: row.parent_message_id
            for row in await self._db.execute(
                select(Message.message_id, Message.parent_message_id, Message.sequence_no)
                .where(
                    Message.tenant_id == self._tenant_id,
                    Message.session_id == self._session_id,
                    Message.message_id.in_(gone),
                )
                .order_by(Message.sequence_no)
            )
        }
        children = await self._db.execute(
            select(Message.message_id, Message.parent_message_id).where(
                Message.tenant_id == self._tenant_id,
                Message.parent_message_id.in_(parents),
                Message.message_id.not_in(gone),
            )
        )
        for child, parent in children:
            while parent in parents:
                parent = parents[parent]  # noqa: PLW2901 (walks up the chain)
            await self._db.execute(
                update(Message)
                .where(Message.tenant_id == self._tenant_id, Message.message_id == child)
                .values(parent_message_id=parent)
            )
        await self._db.execute(
            delete(Message)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.message_id.in_(parents),
            )
            .execution_options(synchronize_session=False)
        )
        return list(parents)
