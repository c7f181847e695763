"""Use cases of blocks, and of the agents they are attached to."""

from collections.abc import Sequence
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import open_running, refuse_disabled
from app.errors import ConfirmationRequiredError
from app.identity.agents.errors import BlockOfSessionError, LabelTakenError, TemplateBoundError
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.errors import InsufficientScopeError, KeyRestrictedError
from app.identity.users.repository import UserRepository
from app.identity.users.service import resolve_subject
from app.language.llm.tokens import TokenCounter, fitting
from app.platform.database.failures import conflicts
from app.platform.values.pagination import (
    ContentQuery,
    Page,
    PageQuery,
    decode_number,
    decode_time,
    page,
)
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.blocks.block_text import edit_text
from app.prompting.blocks.creation import new_block
from app.prompting.blocks.errors import BlockReadOnlyError
from app.prompting.blocks.history_repository import BlockAuthor, BlockTimeline
from app.prompting.blocks.models import Block, BlockHistory
from app.prompting.blocks.repository import BlockRepository
from app.prompting.blocks.schemas import (
    BlockCreate,
    BlockDeleted,
    BlockDeleteQuery,
    BlockHistoryRead,
    BlockPatch,
    BlockQuery,
    BlockRead,
    Edit,
)

log = structlog.get_logger()

_COLUMNS = {"limit": "value_limit", "metadata": "metadata_"}
_OWN_FILTERS = {"label", "user_id", "session_id", "template_id"}


class BlockService:
    def __init__(self, work: Work, counter: TokenCounter) -> None:
        self._work = work
        self._counter = counter

    async def add(
        self, principal: Principal, body: BlockCreate, *, key: IdempotencyKey | None = None
    ) -> BlockRead:
        """Create a block.

        With a key that is restricted to a user or an agent, the block belongs to that user and is
        attached to that agent.

        Raises:
            IdTakenError: the tenant has a block with that id.
            IdNotAllowedError: the key is bound, and the id is not its to choose.
            UserNotFoundError, AgentNotFoundError, SessionNotFoundError: not for this caller.
            SessionEndedError: the session has ended.
            LabelTakenError: the agent or the session has a block with that label.
            BlockLimitError: the text is longer than the limit.
            DisabledError, MemoryDisabledError: writing is switched off for the user, or
                everywhere.

        """
        self._work.refuse_disabled()
        principal.access.refuse_choice("block_id", body.block_id)
        if body.session_id is not None:
            return await self._add_to_session(principal, body, body.session_id, key)
        user_id, agent_id = resolve_subject(principal.access, body.user_id, body.agent_id)
        block = new_block(body, user_id=user_id, creator=principal.key_id)
        # A key of a user makes no template for all.
        block.per_user = block.per_user and user_id is None
        async with self._work.write(principal, key) as unit:
            if user_id is not None:
                refuse_disabled(None, await UserRepository(unit.db, principal.access).get(user_id))
            if agent_id is not None:
                await AgentRepository(unit.db, principal.access).get(agent_id)
            blocks = BlockRepository(unit.db, principal.access)
            await blocks.add(block)
            await BlockTimeline(unit.db, principal.tenant_id).open(
                block, "create", BlockAuthor(principal.key_id)
            )
            if agent_id is not None:
                await blocks.attach(block, agent_id)
            added = unit.answer(shown(block), 201, user_id=user_id)
        log.info("block_added", block_id=block.block_id, characters=len(block.value))
        return added

    async def _add_to_session(
        self, principal: Principal, body: BlockCreate, session_id: str, key: IdempotencyKey | None
    ) -> BlockRead:
        async with self._work.write(principal, key) as unit:
            opened = await open_running(unit.db, principal.access, session_id)
            user_id = opened.session.user_id
            block = new_block(body, user_id=user_id, creator=principal.key_id)
            block.session_id = session_id
            await BlockRepository(unit.db, principal.access).add(block)
            await BlockTimeline(unit.db, principal.tenant_id).open(
                block, "create", BlockAuthor(principal.key_id)
            )
            added = unit.answer(shown(block), 201, user_id=user_id)
        log.info("block_added", block_id=block.block_id, characters=len(block.value))
        return added

    async def get(self, principal: Principal, block_id: str) -> BlockRead:
        """A block. Raises BlockNotFoundError when there is none for this caller."""
        async with self._work.read(principal) as db:
            return shown(await BlockRepository(db, principal.access).get(block_id))

    async def list_blocks(self, principal: Principal, query: BlockQuery) -> Page[BlockRead]:
        """Blocks that the caller may see, newest first.

        Raises:
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "blocks")
        async with self._work.read(principal) as db:
            rows = await BlockRepository(db, principal.access).list_blocks(
                start=start,
                limit=query.limit,
                equal=query.model_dump(include=_OWN_FILTERS, exclude_none=True),
                agent_id=query.agent_id,
                tag=query.tag,
                query=query.query,
                hidden=query.include_hidden,
            )
        return self._page("blocks", rows, query)

    async def patch(
        self, principal: Principal, block_id: str, body: BlockPatch, *, expected: int | None
    ) -> BlockRead:
        """The changed block; fields that are left out stay as they are, the limit too.

        Users' copies of a template take over its label and flags.

        Raises:
            BlockNotFoundError: there is none for this caller.
            VersionConflictError: the block is no longer at the version `expected`.
            BlockLimitError: the text is longer than the limit.
            InsufficientScopeError: it is read-only, and the key is not an admin's.
            LabelTakenError: an agent that has it has a different block with the new label.
            TemplateBoundError: it is a user's copy, and its label would change.
            KeyRestrictedError: all users share it, and the key is restricted to a user.
            DisabledError, MemoryDisabledError: as in `add`.

        """
        self._work.refuse_disabled()
        changes = _changes(body)
        async with self._work.write(principal) as unit:
            block = await self._writable(unit.db, principal, block_id)
            if block.read_only and not principal.may("admin"):
                raise InsufficientScopeError("admin", acting=principal.acting)
            if block.template_id is not None and changes.get("label", block.label) != block.label:
                raise TemplateBoundError(block.template_id)
            taken = LabelTakenError(changes.get("label", block.label))
            with conflicts({"blocks_uk_session_label": taken}):
                changed = await BlockTimeline(unit.db, principal.tenant_id).write(
                    block,
                    changes,
                    event="update",
                    author=BlockAuthor(principal.key_id),
                    expected=expected,
                )
            if changed:
                await BlockRepository(unit.db, principal.access).carry(block)
            return shown(block)

    async def edit(
        self,
        principal: Principal,
        block_id: str,
        edit: Edit,
        *,
        expected: int | None,
        key: IdempotencyKey | None = None,
    ) -> BlockRead:
        """The block after an edit of its text.

        The edit is made under the lock of the block's row: of two edits at once both take effect,
        so an edit that is relative to the text needs no version.

        Raises:
            BlockNotFoundError, VersionConflictError, BlockLimitError: as in `patch`.
            BlockReadOnlyError: it cannot be edited.
            LineNumbersError, TextNotFoundError, TextNotUniqueError, LineOutOfRangeError: the
                edit does not fit the text.
            KeyRestrictedError, DisabledError, MemoryDisabledError: as in `patch`.

        """
        async with self._work.write(principal, key) as unit:
            block = await self._writable(unit.db, principal, block_id)
            if block.read_only:
                raise BlockReadOnlyError(block.label)
            await BlockTimeline(unit.db, principal.tenant_id).write(
                block,
                {"value": await edit_text(block.value, edit)},
                event=edit.event,
                author=BlockAuthor(principal.key_id),
                expected=expected,
            )
            return unit.answer(shown(block), 200, user_id=block.user_id)

    async def step(
        self,
        principal: Principal,
        block_id: str,
        *,
        back: bool,
        expected: int | None,
        key: IdempotencyKey | None = None,
    ) -> BlockRead:
        """The block as it was before its last change, or with the last undone change again.

        Args:
            principal: the caller.
            block_id: the block.
            back: undo; otherwise redo.
            expected: the version that the block must have; None for any.
            key: makes the request safe to repeat.

        Raises:
            NothingToUndoError, NothingToRedoError: no such text is stored.
            BlockNotFoundError, VersionConflictError, BlockLimitError, BlockReadOnlyError,
            KeyRestrictedError, DisabledError, MemoryDisabledError: as in `edit`.

        """
        async with self._work.write(principal, key) as unit:
            block = await self._writable(unit.db, principal, block_id)
            if block.read_only:
                raise BlockReadOnlyError(block.label)
            timeline = BlockTimeline(unit.db, principal.tenant_id)
            await (timeline.undo if back else timeline.redo)(block, expected)
            return unit.answer(shown(block), 200, user_id=block.user_id)

    async def history(
        self, principal: Principal, block_id: str, query: PageQuery
    ) -> Page[BlockHistoryRead]:
        """The block's texts after each stored change, newest first, undone ones included.

        Raises:
            BlockNotFoundError: there is none for this caller.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_number(query.cursor, "block_history")
        async with self._work.read(principal) as db:
            block = await BlockRepository(db, principal.access).get(block_id)
            rows = await BlockTimeline(db, principal.tenant_id).list_history(
                block, start=start, limit=query.limit
            )

        def show(row: BlockHistory) -> BlockHistoryRead:
            current = row.history_no == block.history_no
            return BlockHistoryRead.model_validate(row).model_copy(update={"current": current})

        return page(
            "block_history",
            rows,
            query.limit,
            show=show,
            place=lambda row: (row.history_no, block_id),
        )

    async def delete(
        self, principal: Principal, block_id: str, query: BlockDeleteQuery
    ) -> BlockDeleted:
        """Delete a block permanently, from every agent, with users' copies of it.

        With `dry_run` nothing is deleted, and the counts say what would be.

        Raises:
            BlockNotFoundError: there is none for this caller.
            ConfirmationRequiredError: users have copies, and `confirm` is not set.
            InsufficientScopeError: it is read-only, and the key is not an admin's.
            KeyRestrictedError: all users share it and the key is restricted to a user, or a
                further agent has it and the key is restricted to an agent.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            blocks = BlockRepository(unit.db, principal.access)
            block = await blocks.get(block_id, lock=True)
            _refuse_shared(principal.access, block)
            if block.read_only and not principal.may("admin"):
                raise InsufficientScopeError("admin", acting=principal.acting)
            agents = await blocks.agents_of(block_id)
            if principal.access.agent_id is not None and {*agents} - {principal.access.agent_id}:
                raise KeyRestrictedError
            copies = await blocks.count_copies(block_id)
            if not query.dry_run:
                if copies and not query.confirm:
                    raise ConfirmationRequiredError("block", {"copies": copies})
                await blocks.delete(block)
        if not query.dry_run:
            log.info("block_deleted", block_id=block_id, agents=len(agents), copies=copies)
        return BlockDeleted(
            block_id=block_id, agents=len(agents), copies=copies, dry_run=query.dry_run
        )

    async def attach(self, principal: Principal, agent_id: str, block_id: str) -> BlockRead:
        """Attach a block to an agent, which then sees it in every context; safe to repeat.

        Raises:
            AgentNotFoundError, BlockNotFoundError: there is none for this caller.
            LabelTakenError: the agent has a different block with that label.
            TemplateBoundError: it is a user's copy.
            KeyRestrictedError: as in `patch`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            block = await self._movable(unit.db, principal, agent_id, block_id)
            await BlockRepository(unit.db, principal.access).attach(block, agent_id)
            return shown(block)

    async def detach(self, principal: Principal, agent_id: str, block_id: str) -> None:
        """Detach a block from an agent; the block and its text stay.

        Raises:
            BlockNotAttachedError: the agent does not have it.
            AgentNotFoundError, BlockNotFoundError, TemplateBoundError, KeyRestrictedError: as
                in `attach`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await self._movable(unit.db, principal, agent_id, block_id)
            await BlockRepository(unit.db, principal.access).detach(agent_id, block_id)

    async def attached(
        self, principal: Principal, agent_id: str, query: ContentQuery
    ) -> Page[BlockRead]:
        """An agent's blocks, hidden ones included, newest first.

        Raises:
            AgentNotFoundError: there is none for this caller.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "agent_blocks")
        async with self._work.read(principal) as db:
            await AgentRepository(db, principal.access).get(agent_id)
            rows = await BlockRepository(db, principal.access).list_blocks(
                start=start, limit=query.limit, equal={}, agent_id=agent_id
            )
        return self._page("agent_blocks", rows, query)

    def _page(self, name: str, rows: Sequence[Block], query: ContentQuery) -> Page[BlockRead]:
        return page(
            name,
            rows,
            query.limit,
            show=shown,
            place=_position,
            fits=lambda items: fitting(
                self._counter, (item.value for item in items), query.max_tokens
            ),
        )

    async def _writable(self, db: AsyncSession, principal: Principal, block_id: str) -> Block:
        """The block, locked, for a caller who may change it."""
        block = await BlockRepository(db, principal.access).get(block_id, lock=True)
        _refuse_shared(principal.access, block)
        if block.user_id is not None:
            # A caller who may see the block may not always see its user, who may be at home with
            # a different agent.
            users = UserRepository(db, Access(principal.tenant_id))
            refuse_disabled(None, await users.find(block.user_id))
        return block

    async def _movable(
        self, db: AsyncSession, principal: Principal, agent_id: str, block_id: str
    ) -> Block:
        """Raises TemplateBoundError, BlockOfSessionError."""
        block = await BlockRepository(db, principal.access).get(block_id, lock=True)
        await AgentRepository(db, principal.access).get(agent_id)
        _refuse_shared(principal.access, block)
        if block.template_id is not None:
            raise TemplateBoundError(block.template_id)
        if block.session_id is not None:
            raise BlockOfSessionError(block.session_id)
        return block


def shown(block: Block) -> BlockRead:
    return BlockRead.model_validate(block)


def _position(block: Block) -> Any:
    return block.create_time, block.block_id


def _refuse_shared(access: Access, block: Block) -> None:
    """Raises KeyRestrictedError: all users share the block, and the key is restricted to a user."""
    if access.user_id is not None and block.user_id != access.user_id:
        raise KeyRestrictedError


def _changes(body: BlockPatch) -> dict[str, Any]:
    """The changes by column; null leaves the value where the column has no null."""
    return {
        _COLUMNS.get(name, name): value
        for name, value in body.model_dump(exclude_unset=True).items()
        if value is not None or name == "description"
    }
