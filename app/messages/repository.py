"""SQL for messages."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    cast,
    delete,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.database.keyset import after
from app.errors import IdTakenError
from app.messages.errors import MessageNotFoundError
from app.messages.models import Message
from app.tenants.access import Access

FEW = 1000
"""So many messages are found soon enough whatever the plan."""

# What a retried append of these messages would be told again. `position` first: it leaves the
# answers of other sessions unread.
_FORGET_ANSWERS = text("""
DELETE FROM idempotency_keys k USING (
    SELECT DISTINCT a.key_id, a.idempotency_key
    FROM idempotency_keys a CROSS JOIN LATERAL regexp_matches(
        convert_from(a.answer, 'UTF8'), '"message_id":"([^"]+)"', 'g'
    ) AS told(ids)
    WHERE a.tenant_id = CAST(:tenant_id AS text) AND a.user_id = CAST(:user_id AS text)
      AND position(convert_to(CAST(:session AS text), 'UTF8') IN a.answer) > 0
      AND told.ids[1] IN (SELECT unnest(CAST(:message_ids AS text[])))
) AS named
WHERE k.tenant_id = CAST(:tenant_id AS text)
  AND k.key_id = named.key_id AND k.idempotency_key = named.idempotency_key
""")


class Traffic(NamedTuple):
    """A message with calls or results, as far as pairing needs it."""

    message_id: str
    tool_calls: Any
    tool_call_id: str | None


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
        rows = await self._db.scalars(select(Message).where(self._among(wanted)))
        return {row.message_id: row for row in rows}

    async def here(self, message_ids: Iterable[str]) -> set[str]:
        """Those of the ids that are messages of this session."""
        wanted = list(message_ids)
        return set(await self.in_order(wanted)) if wanted else set()

    def _among(self, message_ids: Iterable[str]) -> ColumnElement[bool]:
        # One array, for a statement may have 32,767 parameters. And no word of the session:
        # beside one, an index of sessions may be taken and the whole array read for each row.
        return (Message.tenant_id == self._tenant_id) & (
            Message.message_id == func.any(cast(list(message_ids), ARRAY(Text)))
        )

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
        return list(await self._parents(message_ids))

    async def _parents(self, message_ids: Sequence[str]) -> dict[str, str | None]:
        """Those of the ids that are here, in order, each with its parent."""
        if len(message_ids) > FEW:
            # For the rest of the transaction: a plan for any values, kept from when the table
            # was small, may read all of it for each of the ids.
            await self._db.execute(text("SET LOCAL plan_cache_mode = force_custom_plan"))
        rows = await self._db.execute(
            select(Message.message_id, Message.parent_message_id, Message.session_id)
            .where(self._among(message_ids))
            .order_by(Message.sequence_no)
        )
        return {one: parent for one, parent, session in rows if session == self._session_id}

    async def tool_traffic(self) -> Sequence[Traffic]:
        """Messages with calls or results, in the order of the conversation."""
        rows = await self._db.execute(
            select(Message.message_id, Message.tool_calls, Message.tool_call_id)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.tool_call_id.is_not(None)
                | (func.jsonb_typeof(Message.tool_calls) == "array"),
            )
            .order_by(Message.sequence_no)
        )
        return [Traffic(*row) for row in rows]

    async def delete(self, message_ids: Sequence[str], *, user_id: str) -> Sequence[str]:
        """Delete for good; children move up to the nearest ancestor that stays.

        Args:
            user_id: the person of the session, whose kept answers repeat the messages.

        Returns:
            The ids that were there, in the order of the conversation.

        """
        parents = await self._parents(message_ids)
        gone = list(parents)
        await self._move_children(parents)
        await self._db.execute(
            delete(Message).where(self._among(gone)).execution_options(synchronize_session=False)
        )
        await self._db.execute(
            _FORGET_ANSWERS,
            {
                "tenant_id": self._tenant_id,
                "user_id": user_id,
                "session": f'"session_id":"{self._session_id}"',
                "message_ids": gone,
            },
        )
        return gone

    async def _move_children(self, parents: Mapping[str, str | None]) -> None:
        """Hang what stays on the nearest ancestor that stays.

        Args:
            parents: what goes, each with its parent.

        """
        rows = await self._db.execute(
            select(Message.message_id, Message.parent_message_id).where(
                Message.tenant_id == self._tenant_id,
                Message.parent_message_id == func.any(cast(list(parents), ARRAY(Text))),
            )
        )
        moved: dict[str, str | None] = {}
        for child, parent in rows:
            if child in parents:
                continue
            while parent is not None and parent in parents:
                parent = parents[parent]  # noqa: PLW2901 (walks up the chain)
            moved[child] = parent
        if not moved:
            return
        pairs = (
            func.unnest(cast(list(moved), ARRAY(Text)), cast(list(moved.values()), ARRAY(Text)))
            .table_valued("child", "parent", name="pairs")
            .render_derived()
        )
        await self._db.execute(
            update(Message)
            .where(Message.tenant_id == self._tenant_id, Message.message_id == pairs.c.child)
            .values(parent_message_id=pairs.c.parent)
            .execution_options(synchronize_session=False)
        )
