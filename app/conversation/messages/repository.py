"""SQL for messages."""

import json
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import (
    ColumnElement,
    Select,
    Text,
    case,
    cast,
    delete,
    func,
    literal,
    select,
    text,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, JSONB, Range
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import aliased

from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.messages.models import Message
from app.identity.tenants.access import Access
from app.identity.usage.models import PaidAnswer
from app.platform.database.base import after

FEW = 1000
"""So many messages are found soon enough whatever the plan."""

NEAR = 100
"""So many of the newest messages with calls are looked through first for what a result answers."""

# Kept answers of appends of these messages. `position` first: it leaves the
# answers of other sessions unread.
_FORGET_ANSWERS = text("""
DELETE FROM idempotency_keys k USING (
    SELECT DISTINCT a.key_id, a.idempotency_key
    FROM idempotency_keys a CROSS JOIN LATERAL regexp_matches(
        convert_from(a.answer, 'UTF8'), '"message_id":"([^"]+)"', 'g'
    ) AS answered(ids)
    WHERE a.tenant_id = CAST(:tenant_id AS text) AND a.user_id = CAST(:user_id AS text)
      AND position(convert_to(CAST(:session AS text), 'UTF8') IN a.answer) > 0
      AND answered.ids[1] IN (SELECT unnest(CAST(:message_ids AS text[])))
) AS named
WHERE k.tenant_id = CAST(:tenant_id AS text)
  AND k.key_id = named.key_id AND k.idempotency_key = named.idempotency_key
""")


Aside = Sequence[Range[int]]
"""Numbers of messages on another branch, as `sessions.set_aside` holds them."""


def _outside(aside: Aside) -> list[ColumnElement[bool]]:
    return [
        (Message.sequence_no < omitted.lower) | (Message.sequence_no >= omitted.upper)
        for omitted in aside
    ]


class Traffic(NamedTuple):
    """A message with calls or results, as far as pairing needs it."""

    message_id: str
    tool_calls: Any
    tool_call_id: str | None


class AnyMessageRepository:
    """Messages of whatever session the caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def get(self, message_id: str) -> Message:
        """By its id, which is unique in the tenant. Raises MessageNotFoundError."""
        statement = select(Message).where(
            Message.tenant_id == self._access.tenant_id, Message.message_id == message_id
        )
        # A message has the user and the agent of its session.
        if self._access.user_id is not None:
            statement = statement.where(Message.user_id == self._access.user_id)
        if self._access.agent_id is not None:
            statement = statement.where(Message.agent_id == self._access.agent_id)
        message = await self._db.scalar(statement)
        if message is None:
            raise MessageNotFoundError(message_id)
        return message


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

    async def get(self, message_id: str | int) -> Message:
        """By its id, or by its number in the session. Raises MessageNotFoundError."""
        by = Message.sequence_no if isinstance(message_id, int) else Message.message_id
        message = await self._db.scalar(self._mine().where(by == message_id))
        if message is None:
            raise MessageNotFoundError(str(message_id))
        return message

    async def list_messages(
        self,
        *,
        after_sequence_no: int | None,
        descending: bool,
        limit: int,
        role: str | None,
        since: datetime | None,
        until: datetime | None,
        branch: str | None,
        words: str | None,
        before: int | None,
    ) -> Sequence[Message]:
        """In the order of the conversation, one more than `limit` when a page follows.

        Args:
            branch: only the messages on the way from this leaf to the root.
            words: only messages whose content has this text, in any case.
            before: only messages with a lower number.

        """
        statement = self._mine()
        if branch is not None:
            statement = statement.where(Message.message_id.in_(self._path(branch)))
        if role is not None:
            statement = statement.where(Message.role == role)
        if words is not None:
            statement = statement.where(Message.content.icontains(words, autoescape=True))
        if before is not None:
            statement = statement.where(Message.sequence_no < before)
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

    async def open_calls(self, call_ids: Sequence[str], aside: Aside = ()) -> Counter[str]:
        """How many calls with each of these ids still wait for their result, or at least as many
        as are asked for.

        Some providers restart the numbers of calls with every turn, so an id may be used again.
        What is set `aside` neither calls nor answers.

        Args:
            call_ids: each as often as a result for it is there.

        """
        wanted = Counter(call_ids)
        if not wanted:
            return wanted
        found = await self._open_among(wanted, aside, newest=NEAR)
        lacking = wanted - found
        # A late answer, or a result without a call. Never fewer are open than among the
        # newest: a result before them has its call before them.
        return found | await self._open_among(lacking, aside) if lacking else found

    async def _open_among(
        self, call_ids: Iterable[str], aside: Aside, *, newest: int | None = None
    ) -> Counter[str]:
        """Calls that wait among the `newest` messages with calls, or among all."""
        wanted = cast(list(call_ids), ARRAY(Text))
        calling = (
            select(Message.sequence_no, Message.tool_calls)
            .where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.tool_calls.is_not(None),
                *_outside(aside),
            )
            .order_by(Message.sequence_no.desc())
            .limit(newest)
            .subquery("calling")
        )
        whole = case((func.jsonb_typeof(calling.c.tool_calls) == "array", calling.c.tool_calls))
        call = func.jsonb_array_elements(whole).table_valued("value").alias("call")
        call_id = call.c.value.cast(JSONB)["id"].astext
        rows = await self._db.execute(
            select(calling.c.sequence_no, call_id)
            .select_from(calling)
            .join(call, literal(True))
            .where(call_id == func.any(wanted))
        )
        made = [tuple(row) for row in rows]
        if not made:
            return Counter()
        waiting = Counter(call_id for _, call_id in made)
        since = {call_id: number for number, call_id in sorted(made, reverse=True)}
        answered = await self._db.execute(
            select(Message.sequence_no, Message.tool_call_id).where(
                Message.tenant_id == self._tenant_id,
                Message.session_id == self._session_id,
                Message.tool_call_id == func.any(cast(list(since), ARRAY(Text))),
                Message.sequence_no > min(since.values()),
                *_outside(aside),
            )
        )
        waiting.subtract(call_id for number, call_id in answered if number > since[call_id])
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
        return {
            message_id: parent
            for message_id, parent, session in rows
            if session == self._session_id
        }

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
                "session": f'"session_id":{json.dumps(self._session_id, ensure_ascii=False)}',
                "message_ids": gone,
            },
        )
        # What a model made of them may be kept for a run that has not ended.
        await self._db.execute(
            delete(PaidAnswer)
            .where(
                PaidAnswer.tenant_id == self._tenant_id, PaidAnswer.session_id == self._session_id
            )
            .execution_options(synchronize_session=False)
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
