"""SQL for passages, their rows, and those that wait for a vector of the embedder in force."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from hashlib import sha256
from typing import Any

from sqlalchemy import Select, and_, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import VectorRepository
from app.identity.tenants.access import Access
from app.language.parsing.passages import TextPassage
from app.language.ranking.packing import index_values
from app.platform.database.base import after, new_id
from app.prompting.documents.errors import PassageNotFoundError
from app.prompting.documents.models import File, Folder, Passage
from app.prompting.documents.repository import findable, visible


class PassageRepository:
    """Passages of folders a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _findable(self) -> Select[Passage]:
        return (
            select(Passage)
            .join(
                Folder,
                and_(
                    Folder.tenant_id == self._access.tenant_id,
                    Folder.folder_id == Passage.folder_id,
                ),
            )
            .where(Passage.tenant_id == self._access.tenant_id, visible(self._access), findable())
        )

    async def add_all(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Insert passages; those that exist already stay as they are, so it is safe to repeat."""
        if rows:
            tenant = {"tenant_id": self._access.tenant_id}
            await self._db.execute(
                insert(Passage).on_conflict_do_nothing(), [dict(row) | tenant for row in rows]
            )

    async def get(self, folder_id: str, passage_id: str) -> Passage:
        """A passage of a folder. Raises PassageNotFoundError, also for a different folder's."""
        row = await self._db.scalar(
            self._findable().where(Passage.folder_id == folder_id, Passage.passage_id == passage_id)
        )
        if row is None:
            raise PassageNotFoundError(passage_id)
        return row

    async def of(self, passage_ids: Sequence[str]) -> Sequence[Passage]:
        """Those of the passages that are there, in their order."""
        rows = await self._db.scalars(
            select(Passage)
            .where(Passage.tenant_id == self._access.tenant_id, Passage.passage_id.in_(passage_ids))
            .order_by(Passage.ordinal)
        )
        return rows.all()

    async def list_passages(
        self, folder_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[Passage]:
        """Passages of a folder, newest first; one more than `limit` when a further page follows."""
        statement = self._findable().where(Passage.folder_id == folder_id)
        columns = (Passage.create_time, Passage.passage_id)
        rows = await self._db.scalars(
            after(statement, columns, start=start, descending=True, limit=limit)
        )
        return rows.all()

    async def list_of_file(
        self, file_id: str, *, start: int | None, limit: int
    ) -> Sequence[Passage]:
        """Passages of a file, in its order; one more than `limit` when a further page follows."""
        statement = self._findable().where(Passage.file_id == file_id)
        if start is not None:
            statement = statement.where(Passage.ordinal > start)
        rows = await self._db.scalars(statement.order_by(Passage.ordinal).limit(limit + 1))
        return rows.all()

    async def delete(self, passage: Passage) -> None:
        """Delete a passage. Raises PassageNotFoundError when it was deleted meanwhile."""
        gone = await self._db.execute(
            delete(Passage)
            .where(
                Passage.tenant_id == self._access.tenant_id,
                Passage.passage_id == passage.passage_id,
            )
            .returning(Passage.passage_id)
            .execution_options(synchronize_session=False)
        )
        if gone.first() is None:
            raise PassageNotFoundError(passage.passage_id)
        if passage.file_id is not None:
            await self._db.execute(
                update(File)
                .where(
                    File.tenant_id == self._access.tenant_id,
                    File.file_id == passage.file_id,
                    # While it is read anew these count what is new.
                    File.state.in_(("completed", "error")),
                )
                .values(
                    passage_count=File.passage_count - 1,
                    passages_expected=File.passages_expected - 1,
                )
                .execution_options(synchronize_session=False)
            )

    async def count_new(self, file_id: str) -> int:
        """How many passages the present reading of a file has stored."""
        return await self._db.scalar(select(func.count()).where(*self._new(file_id))) or 0

    async def delete_new(self, file_id: str) -> None:
        """Delete the passages that the present reading of a file has stored."""
        await self._db.execute(
            delete(Passage).where(*self._new(file_id)).execution_options(synchronize_session=False)
        )

    async def publish(self, file_id: str) -> None:
        """Replace the passages of a former reading by those of the present one."""
        await self._db.execute(
            delete(Passage)
            .where(
                Passage.tenant_id == self._access.tenant_id, Passage.file_id == file_id, findable()
            )
            .execution_options(synchronize_session=False)
        )
        ordinal = -1 - Passage.ordinal
        # As `indexing.id_of` makes it.
        identity = func.concat_ws(" ", Passage.file_id, ordinal, Passage.content)
        digest = func.encode(func.sha256(func.convert_to(identity, "UTF8")), "hex")
        await self._db.execute(
            update(Passage)
            .where(*self._new(file_id))
            .values(ordinal=ordinal, passage_id=func.concat("psg_", func.left(digest, 32)))
            .execution_options(synchronize_session=False)
        )

    def _new(self, file_id: str) -> tuple[Any, ...]:
        return (
            Passage.tenant_id == self._access.tenant_id,
            Passage.file_id == file_id,
            Passage.ordinal < 0,
        )

    async def count(self, *, folder_id: str | None = None, file_id: str | None = None) -> int:
        """How many there are to be found."""
        statement = select(func.count()).where(
            Passage.tenant_id == self._access.tenant_id, findable()
        )
        if folder_id is not None:
            statement = statement.where(Passage.folder_id == folder_id)
        if file_id is not None:
            statement = statement.where(Passage.file_id == file_id)
        return await self._db.scalar(statement) or 0


def rows_of(
    pieces: Sequence[TextPassage],
    *,
    folder_id: str,
    file_id: str | None,
    first: int,
    tags: Sequence[str],
    creator: str | None,
) -> list[dict[str, Any]]:
    """Rows of passages without their vectors, `first` being the ordinal of the first.

    Those of a file are numbered from -1 down until all are stored. Read again, an unchanged file
    gives the same ids, so that memories still name the passages they came from.
    """
    return [
        {
            "passage_id": new_id("psg") if file_id is None else id_of(file_id, ordinal, piece),
            "folder_id": folder_id,
            "file_id": file_id,
            "ordinal": ordinal,
            "start_char": piece.start,
            "end_char": piece.end,
            "page": piece.page,
            "content": piece.content,
            "tags": list(tags),
            "creator": creator,
            **index_values(piece.content),
        }
        for ordinal, piece in (
            (number if file_id is None else -1 - number, piece)
            for number, piece in enumerate(pieces, first)
        )
    ]


def id_of(file_id: str, ordinal: int, piece: TextPassage) -> str:
    """The id of a file's passage, from its ordinal and its content."""
    return f"psg_{sha256(f'{file_id} {ordinal} {piece.content}'.encode()).hexdigest()[:32]}"


class PassageVectorRepository(VectorRepository):
    """Vectors of one tenant's passages."""

    # The choice of `Embedders.for_writing`, for many rows at once: the folder's agent's, else the
    # tenant's. `in_force` holds only what this deployment can resolve, so the rest stays as it is.
    WAITING = """
FROM passages p
JOIN folders f ON f.tenant_id = CAST(:tenant_id AS text) AND f.folder_id = p.folder_id
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = f.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.embedding_model IS DISTINCT FROM in_force.model
"""
    KEY = "p.passage_id"
    # A passage's text never changes.
    COLUMNS = (
        "p.passage_id AS id, p.content, '' AS version, "
        "p.embedding_model AS old, in_force.model AS new"
    )
    # A passage that is being deleted is skipped.
    REPLACE = """
WITH locked AS MATERIALIZED (
    SELECT passage_id FROM passages
    WHERE tenant_id = CAST(:tenant_id AS text) AND passage_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE passages p SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:old AS text[]), CAST(:new AS text[]), CAST(:vectors AS text[])
) AS v(passage_id, old, new, vector), locked
WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.passage_id = v.passage_id
  AND locked.passage_id = v.passage_id AND p.embedding_model IS NOT DISTINCT FROM v.old
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM passages p
    WHERE p.tenant_id = CAST(:tenant_id AS text) AND p.embedding_model = listed.model
)
"""
