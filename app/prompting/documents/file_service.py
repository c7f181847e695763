"""Use cases of files: add, show, read anew and delete them."""

from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from typing import Any, BinaryIO, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.language.parsing.file_kinds import CONTENT_TYPES, ENDINGS, FileKind, RefusedFile, kind_of
from app.language.text.offload import read_text
from app.platform.database.base import new_id
from app.platform.jobs.orders import Order
from app.platform.jobs.repository import JobRepository
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.errors import (
    EmptyFileError,
    FileBusyError,
    FileNameTakenError,
    TypeMismatchError,
    UnsupportedMediaTypeError,
)
from app.prompting.documents.file_repository import FileRepository, FileRow, clean_name, free_name
from app.prompting.documents.models import File, Folder
from app.prompting.documents.passage_repository import PassageRepository
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import (
    FileAccepted,
    FileDeleted,
    FileDeleteQuery,
    FileQuery,
    FileRead,
    OnSameName,
)
from app.prompting.documents.service import writable_folder

log = structlog.get_logger()

INGEST: Final = "ingest_file"
CHUNK_BYTES: Final = 1024 * 1024
UNFINISHED: Final = {"pending", "parsing", "embedding"}
_OVER: Final = {"dead", "cancelled", None}


@dataclass(frozen=True, slots=True)
class Upload:
    """A received file, which is not held in memory.

    Args:
        size: in bytes.
        sha256: digest of the content.
        content_type: the type that the sender claims.

    """

    content: BinaryIO
    size: int
    sha256: bytes
    file_name: str | None
    content_type: str | None
    on_same_name: OnSameName = "suffix"
    tags: tuple[str, ...] = ()
    metadata: dict[str, Any] | None = None


class FileService:
    def __init__(self, work: Work, *, upload_max_bytes: int) -> None:
        """Serve files; `upload_max_bytes` is the largest that a route may receive."""
        self._work = work
        self.upload_max_bytes = upload_max_bytes

    async def refuse_early(self, principal: Principal, folder_id: str) -> None:
        """Refuse an upload before its body is read.

        Raises:
            MemoryDisabledError: writing is switched off.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal) as unit:
            await writable_folder(unit.db, principal, folder_id)

    async def add(
        self,
        principal: Principal,
        folder_id: str,
        upload: Upload,
        *,
        key: IdempotencyKey | None = None,
    ) -> tuple[FileAccepted, int]:
        """Store a file, and order the job that reads it.

        Uploads to a folder take turns, so that two files cannot get the same name.

        Returns:
            The outcome, and the HTTP status for it: 202, or 200 when the file was skipped.

        Raises:
            EmptyFileError, UnsupportedMediaTypeError, TypeMismatchError: its bytes are refused.
            FileNameTakenError: the folder has a file with its name, and `on_same_name` is `reject`.
            MemoryDisabledError: writing is switched off.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        self._work.refuse_disabled()
        name = clean_name(upload.file_name) if upload.file_name else ""
        # In a thread: of an archive it may read the whole directory.
        kind = await read_text(CHUNK_BYTES, _looked_at, upload, name)
        name = name or f"file{ENDINGS[kind]}"
        async with self._work.write(principal, key) as unit:
            folder = await writable_folder(unit.db, principal, folder_id, lock=True)
            files = FileRepository(unit.db, principal.access)
            replaces = upload.on_same_name == "replace"
            same = await files.named(folder_id, name, lock=replaces)
            if same is not None and upload.on_same_name == "skip":
                answer = FileAccepted(outcome="skipped", job_id=same.file.job_id, file=shown(same))
                return unit.answer(answer, 200, user_id=folder.user_id), 200
            if same is not None and upload.on_same_name == "reject":
                raise FileNameTakenError(same.file.file_id)
            if same is not None and replaces:
                await files.orphan([same.file.file_id])
                await files.delete(same.file.file_id)
            elif same is not None:
                name = free_name(name, await files.taken(folder_id, name))
            file = _new_file(folder_id, name, kind, upload, principal.key_id)
            await files.add(file, _chunks(upload.content))
            await self._order(unit.db, principal, folder, file)
            answer = FileAccepted(
                outcome="replaced" if same is not None and replaces else "created",
                job_id=file.job_id,
                file=shown(FileRow(file, "pending", None, None)),
            )
            unit.answer(answer, 202, user_id=folder.user_id)
        log.info("file_accepted", file_id=file.file_id, bytes=upload.size, kind=kind)
        return answer, 202

    async def get(self, principal: Principal, folder_id: str, file_id: str) -> FileRead:
        """A file and the state of its reading.

        Raises:
            FolderNotFoundError, FileNotFoundInFolderError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            return shown(await FileRepository(db, principal.access).get(folder_id, file_id))

    async def list_files(
        self, principal: Principal, folder_id: str, query: FileQuery
    ) -> Page[FileRead]:
        """Files of a folder, newest first.

        Raises:
            FolderNotFoundError: there is none for this caller.
            InvalidCursorError: the cursor is none that a page returned.

        """
        start = decode_time(query.cursor, "files")
        async with self._work.read(principal) as db:
            await FolderRepository(db, principal.access).get(folder_id)
            rows = await FileRepository(db, principal.access).list_files(
                folder_id, start=start, limit=query.limit, state=query.state
            )
        return page(
            "files",
            rows,
            query.limit,
            show=shown,
            place=lambda row: (row.file.create_time, row.file.file_id),
        )

    async def content(
        self, principal: Principal, folder_id: str, file_id: str
    ) -> AsyncIterator[bytes]:
        """The file's original bytes, a mebibyte at a time, each in its own transaction.

        Raises:
            FileNotFoundInFolderError: there is none for this caller, or it was deleted meanwhile.

        """
        number = 0
        while True:
            async with self._work.read(principal) as db:
                files = FileRepository(db, principal.access)
                await files.get(folder_id, file_id)
                chunk = await files.chunk(file_id, number)
            if chunk is None:
                return
            yield chunk
            number += 1

    async def reingest(
        self,
        principal: Principal,
        folder_id: str,
        file_id: str,
        *,
        key: IdempotencyKey | None = None,
    ) -> FileAccepted:
        """Order the job that reads a file anew; until it is done the old passages are found.

        Raises:
            FileNotFoundInFolderError: there is none for this caller.
            FileBusyError: it is being read now.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal, key) as unit:
            folder = await writable_folder(unit.db, principal, folder_id, lock=True)
            files = FileRepository(unit.db, principal.access)
            row = await files.get(folder_id, file_id, lock=True)
            if row.file.state in UNFINISHED and row.job_status not in _OVER:
                raise FileBusyError(file_id, row.file.job_id)
            await files.change(
                row.file,
                state="pending",
                error_code=None,
                error_detail=None,
                parser=None,
                pages=None,
                passage_count=0,
                passages_expected=None,
                version=row.file.version + 1,
            )
            await self._order(unit.db, principal, folder, row.file)
            answer = FileAccepted(
                outcome="replaced",
                job_id=row.file.job_id,
                file=shown(FileRow(row.file, "pending", None, None)),
            )
            return unit.answer(answer, 202, user_id=folder.user_id)

    async def delete(
        self, principal: Principal, folder_id: str, file_id: str, query: FileDeleteQuery
    ) -> FileDeleted:
        """Delete a file with its passages; memories from it stay, marked as orphaned.

        With `dry_run` nothing is deleted, and the counts say what would be.

        Raises:
            FileNotFoundInFolderError: there is none for this caller.
            FolderNotFoundError, KeyRestrictedError, InsufficientScopeError, ReadOnlyMemberError,
            DisabledError: as in `writable_folder`.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            await writable_folder(unit.db, principal, folder_id, lock=True)
            files = FileRepository(unit.db, principal.access)
            await files.get(folder_id, file_id, lock=not query.dry_run)
            passages = await PassageRepository(unit.db, principal.access).count(file_id=file_id)
            if query.dry_run:
                memories = await files.count_derived([file_id])
            else:
                memories = await files.orphan([file_id])
                await files.delete(file_id)
        return FileDeleted(
            file_id=file_id, passages=passages, memories=memories, dry_run=query.dry_run
        )

    async def _order(
        self, db: AsyncSession, principal: Principal, folder: Folder, file: File
    ) -> None:
        order = Order(
            kind=INGEST,
            key=file.file_id,
            agent_id=folder.agent_id,
            user_id=folder.user_id,
            creator=principal.key_id,
        )
        scheduled = await JobRepository(db, principal.tenant_id).schedule(order)
        assert scheduled is not None  # noqa: S101 (the order is no postponement)
        file.job_id = scheduled.job_id
        await db.flush()
        await db.refresh(file)


def shown(row: FileRow) -> FileRead:
    """A file as a client sees it: when its job gave up, its state is `error`."""
    file = row.file
    values = {name: getattr(file, name) for name in FileRead.model_fields if name != "metadata"}
    values |= {"metadata_": file.metadata_, "sha256": file.sha256.hex()}
    if file.state in UNFINISHED and row.job_status in _OVER:
        values |= {
            "state": "error",
            "error_code": row.job_code or "job_gone",
            "error_detail": row.job_detail or "The job that was to read it is gone.",
            "passage_count": 0,
        }
    return FileRead.model_validate(values)


def _new_file(folder_id: str, name: str, kind: FileKind, upload: Upload, creator: str) -> File:
    return File(
        file_id=new_id("fil"),
        folder_id=folder_id,
        file_name=name,
        content_type=CONTENT_TYPES[kind],
        size=upload.size,
        sha256=upload.sha256,
        state="pending",
        passage_count=0,
        tags=list(dict.fromkeys(upload.tags)),
        metadata_=upload.metadata or {},
        creator=creator,
    )


def _looked_at(upload: Upload, name: str) -> FileKind:
    """The kind of a file.

    Raises:
        EmptyFileError, UnsupportedMediaTypeError, TypeMismatchError: it is refused.

    """
    if not upload.size:
        raise EmptyFileError
    kind = kind_of(upload.content, name, upload.content_type)
    if isinstance(kind, RefusedFile):
        if kind.code == "type_mismatch":
            raise TypeMismatchError(kind.found, kind.claimed or "")
        raise UnsupportedMediaTypeError(kind.found)
    return kind


def _chunks(content: BinaryIO) -> Iterator[bytes]:
    content.seek(0)
    while chunk := content.read(CHUNK_BYTES):
        yield chunk
