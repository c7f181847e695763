"""SQL for blocks and the agents they are attached to.

`IN_CONTEXT` is the only definition of which blocks a context shows: a second one could show a
user's block to another user.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    CompoundSelect,
    Select,
    delete,
    func,
    or_,
    select,
    text,
    union,
    update,
)
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.models import Session
from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import IdTakenError
from app.identity.agents.errors import AgentNotFoundError, BlockNotFoundError, LabelTakenError
from app.identity.tenants.access import Access
from app.identity.users.repository import User, visible_user_ids
from app.identity.users.schemas import UserNotFoundError
from app.platform.database.base import after, new_id
from app.platform.database.failures import conflicts
from app.platform.work.idempotency import StoredAnswer
from app.prompting.blocks.block_text import ShownBlock, refuse_too_long
from app.prompting.blocks.errors import BlockNotAttachedError
from app.prompting.blocks.models import AgentBlock, Block

IN_CONTEXT = """
SELECT shown.block_id, shown.label, shown.value, shown.value_limit, shown.description,
    shown.read_only, shown.version, shown.user_id, shown.per_user
FROM (
    -- The session's own block replaces the user's, and that the one that all share.
    SELECT DISTINCT ON (attached.label) coalesce(own.block_id, attached.block_id) AS block_id
    FROM (
        SELECT block_id, label, CASE WHEN user_id IS NULL THEN 2 ELSE 1 END AS rank
        FROM agent_blocks
        WHERE tenant_id = {tenant} AND agent_id = CAST({agent} AS text)
            AND (user_id IS NULL OR user_id = CAST({user} AS text))
        UNION ALL
        SELECT block_id, label, 0 FROM blocks
        WHERE tenant_id = {tenant} AND session_id = CAST({session} AS text)
    ) attached
    LEFT JOIN blocks own ON own.tenant_id = {tenant}
        AND own.template_id = attached.block_id AND own.user_id = CAST({user} AS text)
    ORDER BY attached.label, attached.rank
) seen
JOIN blocks shown ON shown.tenant_id = {tenant} AND shown.block_id = seen.block_id
WHERE NOT shown.hidden
ORDER BY shown.label <> 'persona', shown.label <> 'human', shown.label COLLATE "C"
"""
"""Columns are the fields of `ShownBlock`. `{tenant}`, `{agent}`, `{user}`, `{session}`: places
of the surrounding statement; without a user only what all users share. Whether the caller may see
the session, or the agent and the user, must be checked before.
"""


_IN_CONTEXT = text(
    IN_CONTEXT.format(
        tenant=":tenant_id", agent=":agent_id", user=":user_id", session=":session_id"
    )
)

# Of an answer with a block, and of the answer to a tool call.
_BEGINNINGS = (b'{"block_id":', b'{"tool":')

# What users' copies take over from their template as long as they live.
_CARRIED = ("label", "read_only", "hidden")

_COPIED = (
    "tenant_id", "label", "value", "value_limit", "description", "tags", "metadata_", "read_only",
    "hidden",
)  # fmt: skip


class BlockRepository:
    """Blocks a caller may see. Never begins or ends a transaction.

    A key restricted to a user sees that user's blocks, and those that all users of an agent share
    where it is the user's home agent or has a session with the user. A key
    restricted to an agent sees what is attached to that agent; of blocks of a user, those of
    users whose home agent it is or who have a session with it.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _visible(self) -> Select[Block]:
        access = self._access
        statement = select(Block).where(Block.tenant_id == access.tenant_id)
        if access.agent_id is not None:
            attached = self._attached_to(access.agent_id)
            its_sessions = select(Session.session_id).where(
                Session.tenant_id == access.tenant_id, Session.agent_id == access.agent_id
            )
            statement = statement.where(
                or_(
                    Block.block_id.in_(attached),
                    Block.template_id.in_(attached),
                    Block.session_id.in_(its_sessions),
                ),
                or_(
                    Block.user_id.is_(None),
                    Block.user_id.in_(visible_user_ids(access)),
                    Block.user_id.in_(
                        select(Session.user_id).where(
                            Session.tenant_id == access.tenant_id,
                            Session.agent_id == access.agent_id,
                        )
                    ),
                ),
            )
        if access.user_id is not None:
            shared = select(AgentBlock.block_id).where(
                AgentBlock.tenant_id == access.tenant_id,
                AgentBlock.agent_id.in_(self._agents_of(access.user_id)),
            )
            statement = statement.where(
                or_(
                    Block.user_id == access.user_id,
                    Block.user_id.is_(None) & Block.block_id.in_(shared),
                )
            )
        return statement

    def _attached_to(self, agent_id: str) -> Select[str]:
        return select(AgentBlock.block_id).where(
            AgentBlock.tenant_id == self._access.tenant_id, AgentBlock.agent_id == agent_id
        )

    def _agents_of(self, user_id: str) -> CompoundSelect[str]:
        """The user's home agent, and those with whom the user has a session."""
        tenant_id = self._access.tenant_id
        return union(
            select(User.agent_id).where(User.tenant_id == tenant_id, User.user_id == user_id),
            select(Session.agent_id).where(
                Session.tenant_id == tenant_id, Session.user_id == user_id
            ),
        )

    async def add(self, block: Block) -> None:
        """Insert `block` now, so that conflicts are reported here.

        Raises:
            IdTakenError: the tenant has a block with that id.
            UserNotFoundError: its user was deleted.
            BlockLimitError: its text is longer than its limit.

        """
        refuse_too_long(block, block.value, limit=block.value_limit, current=0)
        block.tenant_id = self._access.tenant_id
        self._db.add(block)
        named = {
            "blocks_pkey": IdTakenError("block_id", block.block_id),
            "blocks_fk_users": UserNotFoundError(block.user_id or ""),
            "blocks_fk_sessions": SessionNotFoundError(block.session_id or ""),
            "blocks_uk_session_label": LabelTakenError(block.label),
        }
        with conflicts(named):
            await self._db.flush()
        await self._db.refresh(block)

    async def get(self, block_id: str, *, lock: bool = False) -> Block:
        """A block that the caller may see.

        Args:
            lock: lock its row, and read it as it is after the lock was granted.

        Raises:
            BlockNotFoundError: there is none for this caller.

        """
        statement = self._visible().where(Block.block_id == block_id)
        if lock:
            # The row may have been read before the lock was granted.
            statement = statement.with_for_update(of=Block).execution_options(
                populate_existing=True
            )
        block = await self._db.scalar(statement)
        if block is None:
            raise BlockNotFoundError(block_id)
        return block

    async def list_blocks(
        self,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        equal: Mapping[str, Any],
        agent_id: str | None = None,
        tag: str | None = None,
        query: str | None = None,
        hidden: bool = True,
    ) -> Sequence[Block]:
        """Blocks, newest first; one more than `limit` when a further page follows.

        Args:
            start: creation time and id of the last block of the previous page.
            limit: size of a page.
            equal: column to the value it must have.
            agent_id: only blocks attached to this agent.
            tag: only blocks with this tag.
            query: a text in the label or the description.
            hidden: whether hidden blocks are included.

        """
        statement = self._visible().filter_by(**equal)
        if agent_id is not None:
            statement = statement.where(Block.block_id.in_(self._attached_to(agent_id)))
        if tag is not None:
            statement = statement.where(Block.tags.contains([tag]))
        if query is not None:
            statement = statement.where(
                or_(
                    Block.label.icontains(query, autoescape=True),
                    Block.description.icontains(query, autoescape=True),
                )
            )
        if not hidden:
            statement = statement.where(Block.hidden.is_(False))
        rows = await self._db.scalars(
            after(
                statement,
                (Block.create_time, Block.block_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def in_context(
        self, agent_id: str, user_id: str | None, session_id: str | None
    ) -> Sequence[ShownBlock]:
        """Blocks that the model of this agent sees when it talks to this user in this session.

        In order: persona, human, then by label. Hidden blocks are left out. Whether the caller may
        see the agent and the user must be checked before.
        """
        rows = await self._db.execute(
            _IN_CONTEXT,
            {
                "tenant_id": self._access.tenant_id,
                "agent_id": agent_id,
                "user_id": user_id,
                "session_id": session_id,
            },
        )
        return [ShownBlock(**row) for row in rows.mappings()]

    async def copy(self, template: Block, user_id: str, *, creator: str) -> tuple[Block, bool]:
        """The user's own copy of a locked template, locked, and whether this call made it.

        Of two first edits at once, one makes the copy, and the other waits and finds it.

        Raises:
            UserNotFoundError: the user was erased meanwhile.

        """
        values = {name: getattr(template, name) for name in _COPIED}
        statement = (
            insert(Block)
            .values(
                block_id=new_id("blk"),
                user_id=user_id,
                template_id=template.block_id,
                creator=creator,
                **values,
            )
            .on_conflict_do_nothing(
                index_elements=["tenant_id", "template_id", "user_id"],
                index_where=Block.template_id.is_not(None),
            )
            .returning(Block.block_id)
        )
        with conflicts({"blocks_fk_users": UserNotFoundError(user_id)}):
            made = await self._db.scalar(statement)
        own = await self._db.scalars(
            select(Block)
            .where(
                Block.tenant_id == self._access.tenant_id,
                Block.template_id == template.block_id,
                Block.user_id == user_id,
            )
            .with_for_update()
            .execution_options(populate_existing=True)
        )
        return own.one(), made is not None

    async def carry(self, block: Block) -> None:
        """Copy label and flags of a changed, locked block to its attachments and users' copies.

        Raises:
            LabelTakenError: an agent that has it has a further block with its new label.

        """
        carried = {name: getattr(block, name) for name in _CARRIED}
        tenant_id = self._access.tenant_id
        with conflicts({"agent_blocks_uk_label": LabelTakenError(block.label)}):
            await self._db.execute(
                update(AgentBlock)
                .where(AgentBlock.tenant_id == tenant_id, AgentBlock.block_id == block.block_id)
                .values(label=block.label)
                .execution_options(synchronize_session=False)
            )
        await self._db.execute(
            update(Block)
            .where(
                Block.tenant_id == tenant_id,
                Block.template_id == block.block_id,
                or_(*(getattr(Block, name) != value for name, value in carried.items())),
            )
            .values(**carried, version=Block.version + 1)
            .execution_options(synchronize_session=False)
        )

    async def attach(self, block: Block, agent_id: str) -> None:
        """Attach a locked block to an agent; safe to repeat.

        Raises:
            LabelTakenError: the agent has a different block with that label.
            AgentNotFoundError: the agent was deleted meanwhile.

        """
        row = {
            "tenant_id": self._access.tenant_id,
            "agent_id": agent_id,
            "block_id": block.block_id,
            "label": block.label,
            "user_id": block.user_id,
        }
        named = {
            "agent_blocks_uk_label": LabelTakenError(block.label),
            "agent_blocks_fk_agents": AgentNotFoundError(agent_id),
        }
        with conflicts(named):
            await self._db.execute(
                insert(AgentBlock)
                .values(**row)
                .on_conflict_do_nothing(index_elements=["tenant_id", "agent_id", "block_id"])
            )

    async def detach(self, agent_id: str, block_id: str) -> None:
        """Detach a block from an agent; the block stays.

        Raises:
            BlockNotAttachedError: the agent does not have it.

        """
        gone = await self._db.scalar(
            delete(AgentBlock)
            .where(
                AgentBlock.tenant_id == self._access.tenant_id,
                AgentBlock.agent_id == agent_id,
                AgentBlock.block_id == block_id,
            )
            .returning(AgentBlock.block_id)
        )
        if gone is None:
            raise BlockNotAttachedError(agent_id, block_id)

    async def agents_of(self, block_id: str) -> Sequence[str]:
        """Ids of the agents that a block is attached to, in no order; empty when there are none."""
        rows = await self._db.scalars(
            select(AgentBlock.agent_id).where(
                AgentBlock.tenant_id == self._access.tenant_id, AgentBlock.block_id == block_id
            )
        )
        return rows.all()

    async def count_copies(self, block_id: str) -> int:
        """How many users have a copy of a template."""
        found: int | None = await self._db.scalar(
            select(func.count()).where(
                Block.tenant_id == self._access.tenant_id, Block.template_id == block_id
            )
        )
        return found or 0

    async def delete(self, block: Block) -> None:
        """Delete a locked block with its attachments, its history, users' copies of it, and the
        stored answers to requests about them.
        """
        tenant_id, block_id = self._access.tenant_id, block.block_id
        await self._db.execute(
            delete(Block)
            .where(Block.tenant_id == tenant_id, Block.block_id == block_id)
            .execution_options(synchronize_session=False)
        )
        await self._db.execute(
            delete(StoredAnswer)
            .where(
                StoredAnswer.tenant_id == tenant_id,
                _of_blocks() if block.user_id is None else StoredAnswer.user_id == block.user_id,
                or_(_names("block_id", block_id), _names("template_id", block_id)),
            )
            .execution_options(synchronize_session=False)
        )


def _of_blocks() -> ColumnElement[bool]:
    """Stored answers whose beginning is that of an answer about a block. The others, which may
    be large, are not read.
    """
    return or_(
        *(
            func.substring(StoredAnswer.answer, 1, len(beginning)) == beginning
            for beginning in _BEGINNINGS
        )
    )


def _names(field: str, block_id: str) -> ColumnElement[bool]:
    """Stored answers that have a block's id in a field."""
    shown = func.convert_to(f'"{field}":"{block_id}"', "UTF8")
    return func.pg_catalog.position(StoredAnswer.answer, shown) > 0
