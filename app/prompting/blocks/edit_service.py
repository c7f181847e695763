"""Edits by tools: the session decides which user's block is edited, never the model.

A model names a label, and changes the block that it sees under it: the user's own block, the user's
copy of a template (which the first edit makes), or the block that all users share.
"""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import Participants, SessionRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.language.text.offload import read_text
from app.memory.memories.errors import GateRejectedError
from app.memory.memories.gate import Gate
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import MemoryPausedError, Work
from app.prompting.blocks.block_text import ShownBlock, edit_text, refuse_too_long
from app.prompting.blocks.errors import BlockReadOnlyError, LabelNotFoundError
from app.prompting.blocks.history_repository import BlockAuthor, BlockTimeline
from app.prompting.blocks.models import Block
from app.prompting.blocks.repository import BlockRepository
from app.prompting.blocks.schemas import BlockAppend, BlockInsert, BlockRead, BlockReplace, Edit


class BlockEditService:
    def __init__(self, work: Work, gate: Gate) -> None:
        self._work = work
        self._gate = gate

    async def blocks(self, principal: Principal, session_id: str) -> Sequence[ShownBlock]:
        """The blocks that the model of a session sees, in their order in its context.

        Raises:
            SessionNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            return await _seen(db, principal, session)

    async def edit(
        self,
        principal: Principal,
        session_id: str,
        label: str,
        edit: Edit,
        *,
        key: IdempotencyKey | None = None,
    ) -> BlockRead:
        """Edit the block that the model of this session sees under `label`, and return it.

        An edit that changes nothing writes nothing, and makes no copy of a template.

        Raises:
            SessionNotFoundError: there is none for this caller.
            LabelNotFoundError: its model sees no such block.
            BlockReadOnlyError: it cannot be edited.
            BlockLimitError, LineNumbersError, TextNotFoundError, TextNotUniqueError,
            LineOutOfRangeError: the edit does not fit the text.
            GateRejectedError: what it brings must not be kept.
            KeyRestrictedError: all users share it, and the key is restricted to a user.
            MemoryPausedError, MemoryDisabledError, DisabledError: writing is switched off for
                the session or its agent, everywhere, or for its agent or user.

        """
        brought = _brought(edit)
        reasons = await read_text(
            len(brought), partial(self._gate.check_kept, extracted=False), brought
        )
        if reasons:
            raise GateRejectedError([asdict(reason) for reason in reasons])
        async with self._work.write(principal, key) as unit:
            session = await _open(unit.db, principal, session_id)
            chosen = await _labelled(unit.db, principal, session, label)
            block = await BlockRepository(unit.db, principal.access).get(chosen.block_id, lock=True)
            if not (block.per_user and await _changes_nothing(block, edit)):
                block = await _write(unit.db, principal, session, block, edit)
            answer = BlockRead.model_validate(block)
            return unit.answer(answer, 200, user_id=session.user_id)


def _brought(edit: Edit) -> str:
    """The text that an edit brings into its block."""
    if isinstance(edit, BlockAppend | BlockInsert):
        return edit.text
    return edit.new if isinstance(edit, BlockReplace) else edit.value


async def _open(db: AsyncSession, principal: Principal, session_id: str) -> Session:
    """The session, locked. A paused session may not write blocks either: they outlive it.

    Raises:
        MemoryPausedError: memory is switched off for the session or its agent.

    """
    opened = await SessionRepository(db, principal.access).open_for_append(
        session_id, Participants(), create=False, creator=None
    )
    if not opened.session.memory_enabled:
        raise MemoryPausedError("session", session_id)
    if not opened.agent.memory_enabled:
        raise MemoryPausedError("agent", opened.agent.agent_id)
    return opened.session


async def _seen(db: AsyncSession, principal: Principal, session: Session) -> Sequence[ShownBlock]:
    return await BlockRepository(db, principal.access).in_context(
        session.agent_id, session.user_id, session.session_id
    )


async def _labelled(
    db: AsyncSession, principal: Principal, session: Session, label: str
) -> ShownBlock:
    """Raises LabelNotFoundError, BlockReadOnlyError."""
    seen = await _seen(db, principal, session)
    chosen = next((block for block in seen if block.label == label), None)
    if chosen is None:
        raise LabelNotFoundError(label, [block.label for block in seen])
    if chosen.read_only:
        raise BlockReadOnlyError(label)
    return chosen


async def _changes_nothing(template: Block, edit: Edit) -> bool:
    """Whether no copy is needed. Raises the text errors of `BlockEditService.edit`."""
    value = await edit_text(template.value, edit)
    refuse_too_long(template, value, limit=template.value_limit, current=len(template.value))
    return value == template.value


async def _write(
    db: AsyncSession, principal: Principal, session: Session, block: Block, edit: Edit
) -> Block:
    """The block after the edit; of a template, the copy of the session's user.

    Raises BlockReadOnlyError, KeyRestrictedError.
    """
    author = BlockAuthor(principal.key_id, session.session_id)
    if block.per_user:
        block = await _own(db, principal, block, session.user_id, author)
    elif principal.access.user_id not in {None, block.user_id}:
        raise KeyRestrictedError
    if block.read_only:
        raise BlockReadOnlyError(block.label)
    await BlockTimeline(db, principal.tenant_id).write(
        block,
        {"value": await edit_text(block.value, edit)},
        event=edit.event,
        author=author,
        expected=None,
    )
    return block


async def _own(
    db: AsyncSession, principal: Principal, template: Block, user_id: str, author: BlockAuthor
) -> Block:
    """The user's copy of a locked template; a new one begins with the template's text."""
    own, made = await BlockRepository(db, principal.access).copy(
        template, user_id, creator=principal.key_id
    )
    if made:
        await BlockTimeline(db, principal.tenant_id).open(own, "copy", author)
    return own
