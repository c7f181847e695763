"""SQL for the texts of blocks, present and past.

Every change of a text goes through this module, so that none forgets the limit, the version or the
history. A constraint of the table holds the limit once more.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import delete, or_, select
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import VersionConflictError
from app.platform.database.base import apply_changes
from app.prompting.blocks.block_text import refuse_too_long
from app.prompting.blocks.errors import NothingToRedoError, NothingToUndoError
from app.prompting.blocks.models import Block, BlockHistory
from app.prompting.blocks.schemas import Event

KEPT = 100
"""Stored texts of a block. Without a limit a model that adds a word a hundred times a day would
store the whole block as often, permanently."""

_TEXTS = ("value", "description")


@dataclass(frozen=True, slots=True)
class BlockAuthor:
    """The author of a change: a key, and for tools the session in which it happens."""

    actor: str
    session_id: str | None = None


class BlockTimeline:
    """The texts of blocks the caller has found and locked. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str) -> None:
        self._db = db
        self._tenant_id = tenant_id

    async def open(self, block: Block, event: Event, author: BlockAuthor) -> None:
        """Write the first entry of a new block."""
        await self._note(block, event, author)

    async def write(
        self,
        block: Block,
        changes: Mapping[str, Any],
        *,
        event: Event,
        author: BlockAuthor,
        expected: int | None,
    ) -> bool:
        """Write changes, with a history entry when text or description change.

        Earlier undone changes can then no longer be redone.

        Returns:
            Whether anything changed.

        Raises:
            VersionConflictError: the block is no longer at the version `expected`.
            BlockLimitError: the text is longer than the limit, whichever of the two changes.

        """
        if expected is not None and block.version != expected:
            raise VersionConflictError(block.version)
        refuse_too_long(
            block,
            changes.get("value", block.value),
            limit=changes.get("value_limit", block.value_limit),
            current=len(block.value),
        )
        if all(changes.get(name, getattr(block, name)) == getattr(block, name) for name in _TEXTS):
            return await apply_changes(self._db, block, changes, expected=None)
        number = block.history_no + 1
        await self._db.execute(
            delete(BlockHistory)
            .where(
                *self._of(block),
                or_(BlockHistory.history_no >= number, BlockHistory.history_no <= number - KEPT),
            )
            .execution_options(synchronize_session=False)
        )
        await apply_changes(self._db, block, {**changes, "history_no": number}, expected=None)
        await self._note(block, event, author)
        return True

    async def undo(self, block: Block, expected: int | None) -> None:
        """Put back the text from before the block's last change; its limit stays as it is.

        Raises:
            VersionConflictError, BlockLimitError: as in `write`.
            NothingToUndoError: the present text is the oldest that is stored.

        """
        await self._show(block, block.history_no - 1, expected, NothingToUndoError())

    async def redo(self, block: Block, expected: int | None) -> None:
        """Take back an undo.

        Raises:
            VersionConflictError, BlockLimitError: as in `write`.
            NothingToRedoError: nothing was undone since the last change.

        """
        await self._show(block, block.history_no + 1, expected, NothingToRedoError())

    async def _show(
        self,
        block: Block,
        number: int,
        expected: int | None,
        nothing: NothingToUndoError | NothingToRedoError,
    ) -> None:
        """Raises VersionConflictError."""
        if expected is not None and block.version != expected:
            raise VersionConflictError(block.version)
        entry = await self._db.scalar(
            select(BlockHistory).where(*self._of(block), BlockHistory.history_no == number)
        )
        if entry is None:
            raise nothing
        refuse_too_long(block, entry.value, limit=block.value_limit, current=len(block.value))
        shown = {name: getattr(entry, name) for name in _TEXTS}
        await apply_changes(self._db, block, {**shown, "history_no": number}, expected=None)

    async def list_history(
        self, block: Block, *, start: int | None, limit: int
    ) -> Sequence[BlockHistory]:
        """Entries, newest first; one more than `limit` when a further page follows.

        Args:
            block: the block.
            start: the number of the last entry of the previous page.
            limit: size of a page.

        """
        statement = select(BlockHistory).where(*self._of(block))
        if start is not None:
            statement = statement.where(BlockHistory.history_no < start)
        rows = await self._db.scalars(
            statement.order_by(BlockHistory.history_no.desc()).limit(limit + 1)
        )
        return rows.all()

    async def _note(self, block: Block, event: Event, author: BlockAuthor) -> None:
        self._db.add(
            BlockHistory(
                tenant_id=self._tenant_id,
                block_id=block.block_id,
                history_no=block.history_no,
                event=event,
                value=block.value,
                description=block.description,
                actor=author.actor,
                session_id=author.session_id,
            )
        )
        await self._db.flush()

    def _of(self, block: Block) -> tuple[Any, ...]:
        return (
            BlockHistory.tenant_id == self._tenant_id,
            BlockHistory.block_id == block.block_id,
        )
