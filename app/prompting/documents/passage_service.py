"""Use cases of passages: those of files, and texts put into a folder by themselves."""

from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.parsing.passages import text_passages
from app.language.text.offload import read_text
from app.platform.values.pagination import Page, PageQuery, decode_number, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.file_repository import FileRepository
from app.prompting.documents.folder_access import writable_folder
from app.prompting.documents.models import Passage
from app.prompting.documents.passage_repository import PassageRepository
from app.prompting.documents.passage_rows import rows_of
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import PassageCreate, PassageRead, PassagesAdded


class PassageService:
    def __init__(self, work: Work, embedders: Embedders) -> None:
        self._work = work
        self._embedders = embedders

    async def add(
        self,
        principal: Principal,
        folder_id: str,
        body: PassageCreate,
        *,
        key: IdempotencyKey | None = None,
    ) -> PassagesAdded:
        """Put a text into a folder, cut into passages where it is long.

        Raises:
            EmbeddingUnavailableError: nothing was stored; try again.
            UnknownEmbedderError: the embedder in force is gone.
            and what `place.writable_folder` raises.

        """
        async with self._work.read(principal, key) as db:
            folder = await writable_folder(db, principal, folder_id)
        length = 4 * len(body.content)
        cut = await read_text(length, text_passages, body.content)
        embedder = await self._embedders.for_writing(principal, folder.agent_id)
        vectors = await embed(embedder, [piece.content for piece in cut])
        rows = await read_text(
            length,
            rows_of,
            cut,
            folder_id=folder_id,
            file_id=None,
            first=0,
            tags=list(dict.fromkeys(body.tags)),
            creator=principal.key_id,
        )
        for row, vector in zip(rows, vectors, strict=True):
            row |= {"embedding": vector, "embedding_model": embedder.name}
        async with self._work.write(principal, key) as unit:
            folder = await writable_folder(unit.db, principal, folder_id, lock=True)
            await TenantRepository(unit.db, principal.tenant_id).note_model(embedder.name)
            passages = PassageRepository(unit.db, principal.access)
            await passages.add_all(rows)
            stored = await passages.of([row["passage_id"] for row in rows])
            answer = PassagesAdded(
                items=[PassageRead.model_validate(one) for one in stored],
                embedding_model=embedder.name,
            )
            return unit.answer(answer, 201, user_id=folder.user_id)

    async def get(self, principal: Principal, folder_id: str, passage_id: str) -> PassageRead:
        """Raises FolderNotFoundError, PassageNotFoundError."""
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            row = await PassageRepository(db, principal.access).get(folder_id, passage_id)
            return PassageRead.model_validate(row)

    async def list_passages(
        self, principal: Principal, folder_id: str, query: PageQuery
    ) -> Page[PassageRead]:
        """Passages of a folder, newest first. Raises FolderNotFoundError."""
        start = decode_time(query.cursor)
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            rows = await PassageRepository(db, principal.access).list_passages(
                folder_id, start=start, limit=query.limit
            )
        return page(
            rows,
            query.limit,
            show=PassageRead.model_validate,
            place=lambda row: (row.create_time, row.passage_id),
        )

    async def list_of_file(
        self, principal: Principal, folder_id: str, file_id: str, query: PageQuery
    ) -> Page[PassageRead]:
        """Passages of a file, in its order. Raises FileNotFoundInFolderError."""
        start = decode_number(query.cursor)
        async with self._work.read(principal) as db:
            await FileRepository(db, principal.access).get(folder_id, file_id)
            rows = await PassageRepository(db, principal.access).list_of_file(
                file_id, start=start, limit=query.limit
            )

        def place(row: Passage) -> tuple[int, str]:
            return row.ordinal, row.passage_id

        return page(rows, query.limit, show=PassageRead.model_validate, place=place)

    async def delete(self, principal: Principal, folder_id: str, passage_id: str) -> None:
        """Raises FolderNotFoundError, PassageNotFoundError, and as `place.writable_folder`."""
        async with self._work.write(principal, while_disabled=True) as unit:
            await writable_folder(unit.db, principal, folder_id, lock=True)
            passages = PassageRepository(unit.db, principal.access)
            passage = await passages.get(folder_id, passage_id)
            if passage.file_id is not None:
                # The file before its passages, as whoever reads it anew does.
                await FileRepository(unit.db, principal.access).get(
                    folder_id, passage.file_id, lock=True
                )
            await passages.delete(passage)
