"""The handler of jobs `ingest_file`: a file is read, cut, embedded and stored in batches.

It may be killed at any point: the stored passages are always the first ones in order, so the next
run reads the file again and goes on after them. Searches find the passages once all are stored, and
until then those of the former reading.
"""

from collections.abc import AsyncIterator, Callable, Sequence
from datetime import datetime
from typing import Any, Final

import structlog

from app.errors import DomainError, NotFoundError
from app.identity.agents.embedders import Embedders, embed
from app.identity.tenants.access import Principal
from app.identity.tenants.repository import TenantRepository
from app.language.parsing.documents import ParseError
from app.language.parsing.file_kinds import KINDS
from app.language.parsing.parser_pool import ParsedDocument, ParserPool
from app.language.parsing.passages import TextPassage
from app.language.text.offload import read_text
from app.memory.extraction.run_policy import SWITCHED_OFF, principal_of
from app.platform.jobs.failures import DeferJobError, GiveUpJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work
from app.prompting.documents.file_repository import FileRepository
from app.prompting.documents.models import File
from app.prompting.documents.passage_repository import PassageRepository, rows_of
from app.prompting.documents.repository import FolderRepository

log = structlog.get_logger()

BATCH: Final = 64
"""Passages that are embedded and stored together, some 16,000 tokens."""


class FileJobs:
    def __init__(
        self,
        work: Work,
        embedders: Embedders,
        parsers: ParserPool,
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._embedders = embedders
        self._parsers = parsers
        self._now = now

    async def ingest(self, job: ClaimedJob) -> dict[str, Any] | None:
        """Read the file that is the job's key.

        Raises:
            GiveUpJobError: it cannot be read; the file has the error, and the passages of a former
                reading.
            FileNotFoundInFolderError: it was deleted meanwhile.
            DeferJobError: memory is switched off, or the tenant is disabled.
            EmbeddingUnavailableError: the stored batches stay; try again.
            LeaseLostError: a different worker goes on.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        try:
            await self._ingest(job)
        except ParseError as error:
            await self._fail(job, error.code, error.detail)
            raise GiveUpJobError(error.code, error.detail) from None
        except NotFoundError:
            raise
        except DomainError as error:
            # A passing failure is tried again, and is final at the last attempt.
            if error.status != 503 or job.attempts >= job.max_attempts:
                await self._fail(job, error.code, error.detail)
            raise
        return None

    async def _ingest(self, job: ClaimedJob) -> None:
        principal, agent_id, file = await self._begin(job)
        content = self._content(principal, file)
        parsed = await self._parsers.read(KINDS[file.content_type], content)
        done = await self._stored_count(job, principal, parsed)
        embedder = await self._embedders.for_writing(principal, agent_id)
        while done < len(parsed.pieces):
            batch = parsed.pieces[done : done + BATCH]
            vectors = await embed(embedder, [piece.content for piece in batch])
            rows = await self._rows(file, batch, done)
            for row, vector in zip(rows, vectors, strict=True):
                row |= {"embedding": vector, "embedding_model": embedder.name}
            done = await self._store(job, principal, rows, done, embedder.name)
        await self._complete(job, principal, parsed)

    async def _begin(self, job: ClaimedJob) -> tuple[Principal, str | None, File]:
        async with self._work.write(job, while_disabled=True) as unit:
            principal = await principal_of(unit.db, job)
            files = FileRepository(unit.db, principal.access)
            file = await files.claimed(job, job.key)
            folder = await FolderRepository(unit.db, principal.access).get(file.folder_id)
            if file.state in {"pending", "error"}:
                await files.change(file, state="parsing")
        return principal, folder.agent_id, file

    async def _content(self, principal: Principal, file: File) -> AsyncIterator[bytes]:
        """The bytes of a file, a mebibyte at a time.

        If the file is deleted meanwhile they end early, and the next statement reports it.
        """
        number = 0
        while True:
            async with self._work.read(principal) as db:
                chunk = await FileRepository(db, principal.access).chunk(file.file_id, number)
            if chunk is None:
                return
            yield chunk
            number += 1

    async def _stored_count(
        self, job: ClaimedJob, principal: Principal, parsed: ParsedDocument
    ) -> int:
        """How many passages are stored already; those of a different parser or cut are deleted."""
        async with self._work.write(job, while_disabled=True) as unit:
            files = FileRepository(unit.db, principal.access)
            file = await files.claimed(job, job.key)
            passages = PassageRepository(unit.db, principal.access)
            same = (file.parser, file.passages_expected) == (parsed.parser, len(parsed.pieces))
            done = await passages.count_new(file.file_id) if same else 0
            if not done:
                await passages.delete_new(file.file_id)
            await files.change(
                file,
                state="embedding",
                parser=parsed.parser,
                pages=parsed.pages,
                passage_count=done,
                passages_expected=len(parsed.pieces),
                error_code=None,
                error_detail=None,
            )
        return done

    async def _rows(
        self, file: File, batch: Sequence[TextPassage], first: int
    ) -> list[dict[str, Any]]:
        return await read_text(
            sum(len(piece.content) for piece in batch),
            rows_of,
            batch,
            folder_id=file.folder_id,
            file_id=file.file_id,
            first=first,
            tags=file.tags,
            creator=file.creator,
        )

    async def _store(
        self,
        job: ClaimedJob,
        principal: Principal,
        rows: Sequence[dict[str, Any]],
        first: int,
        model: str,
    ) -> int:
        """Store a batch in a transaction under the job's lease; how many passages are stored."""
        async with self._work.write(job, while_disabled=True) as unit:
            files = FileRepository(unit.db, principal.access)
            file = await files.claimed(job, job.key)
            await PassageRepository(unit.db, principal.access).add_all(rows)
            await files.change(file, passage_count=first + len(rows))
            await TenantRepository(unit.db, job.tenant_id).note_model(model)
        return first + len(rows)

    async def _complete(
        self, job: ClaimedJob, principal: Principal, parsed: ParsedDocument
    ) -> None:
        async with self._work.write(job, while_disabled=True) as unit:
            files = FileRepository(unit.db, principal.access)
            file = await files.claimed(job, job.key)
            await PassageRepository(unit.db, principal.access).publish(file.file_id)
            await files.change(file, state="completed", passage_count=len(parsed.pieces))
            result = {
                "file_id": file.file_id,
                "passages": len(parsed.pieces),
                "pages": parsed.pages,
                "characters": parsed.characters,
                "parser": parsed.parser,
            }
            await JobRepository(unit.db, job.tenant_id).finish(job, result)
        log.info("file_ingested", **result)

    async def _fail(self, job: ClaimedJob, code: str, detail: str) -> None:
        """Delete the passages of the failed reading, and store the error with the file."""
        async with self._work.write(job, while_disabled=True) as unit:
            principal = await principal_of(unit.db, job)
            files = FileRepository(unit.db, principal.access)
            file = await files.claimed(job, job.key)
            passages = PassageRepository(unit.db, principal.access)
            await passages.delete_new(file.file_id)
            await files.change(
                file,
                state="error",
                error_code=code,
                error_detail=detail,
                passage_count=await passages.count(file_id=file.file_id),
                passages_expected=None,
            )
        log.info("file_ingestion_failed", file_id=job.key, code=code)
