"""SQL for files (bytes, state, what was derived from them), and the names a folder gives them."""

import re
from collections.abc import Collection, Iterable, Sequence
from datetime import datetime
from pathlib import PurePosixPath
from typing import Any, Final, NamedTuple
from unicodedata import category, normalize

from sqlalchemy import Select, and_, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.memories.models import Memory
from app.platform.database.base import after
from app.platform.database.engine import clock_of
from app.platform.jobs.failures import LeaseLostError
from app.platform.jobs.models import Job
from app.platform.jobs.orders import ClaimedJob
from app.prompting.documents.errors import FileNotFoundInFolderError
from app.prompting.documents.models import File, FileChunk, Folder
from app.prompting.documents.repository import visible

LONGEST: Final = 255
_SEPARATORS = re.compile(r"[/\\]+")


def clean_name(given: str) -> str:
    """The last part of a path, without control characters; `file` when nothing is left."""
    name = _SEPARATORS.split(normalize("NFC", given))[-1]
    name = "".join(character for character in name if category(character)[0] != "C").strip(" .")
    return _cut(name, "") or "file"


def suffixed(name: str, number: int) -> str:
    """`name` with a number before its ending: `plan (1).pdf`."""
    return _cut(name, f" ({number})")


def free_name(name: str, taken: Collection[str]) -> str:
    """The name itself, or its first numbered form that is free."""
    number = 0
    found = name
    while found in taken:
        number += 1
        found = suffixed(name, number)
    return found


def _cut(name: str, addition: str) -> str:
    """The name with an addition before its ending, as long as a name may be."""
    ending = PurePosixPath(name).suffix
    ending = ending if len(ending) <= 20 else ""
    stem = name.removesuffix(ending) if ending else name
    return stem[: LONGEST - len(ending) - len(addition)] + addition + ending


CANDIDATES = 1_000
"""Numbered forms of a name that are looked up together."""


class FileRow(NamedTuple):
    """A file with the state of the job that reads it; None when the job is gone."""

    file: File
    job_status: str | None
    job_code: str | None
    job_detail: str | None


class FileRepository:
    """Files of folders a caller may see. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _rows(self) -> Select[File, str | None, str | None, str | None]:
        tenant_id = self._access.tenant_id
        return (
            select(File, Job.status, Job.error_code, Job.error_detail)
            .join(Folder, and_(Folder.tenant_id == tenant_id, Folder.folder_id == File.folder_id))
            .outerjoin(Job, and_(Job.tenant_id == tenant_id, Job.job_id == File.job_id))
            .where(File.tenant_id == tenant_id, visible(self._access))
        )

    async def get(self, folder_id: str | None, file_id: str, *, lock: bool = False) -> FileRow:
        """A file of a folder, or of any.

        Raises:
            FileNotFoundInFolderError: there is none for this caller.

        """
        statement = self._rows().where(File.file_id == file_id)
        if folder_id is not None:
            statement = statement.where(File.folder_id == folder_id)
        if lock:
            statement = statement.with_for_update(of=File)
        row = (await self._db.execute(statement.execution_options(populate_existing=True))).first()
        if row is None:
            raise FileNotFoundInFolderError(file_id)
        return FileRow(*row)

    async def named(self, folder_id: str, file_name: str, *, lock: bool = False) -> FileRow | None:
        """The file of a folder with a name; None when there is none."""
        statement = self._rows().where(File.folder_id == folder_id, File.file_name == file_name)
        if lock:
            statement = statement.with_for_update(of=File)
        row = (await self._db.execute(statement)).first()
        return None if row is None else FileRow(*row)

    async def taken(self, folder_id: str, file_name: str) -> set[str]:
        """Which of a name and its numbered forms the folder has."""
        names = [file_name, *(suffixed(file_name, number) for number in range(1, CANDIDATES))]
        rows = await self._db.scalars(
            select(File.file_name).where(
                File.tenant_id == self._access.tenant_id,
                File.folder_id == folder_id,
                File.file_name.in_(names),
            )
        )
        return set(rows)

    async def list_files(
        self,
        folder_id: str,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        state: str | None,
    ) -> Sequence[FileRow]:
        """Files of a folder, newest first; one more than `limit` when a further page follows."""
        statement: Any = self._rows().where(File.folder_id == folder_id)
        if state is not None:
            statement = statement.where(File.state == state)
        columns = (File.create_time, File.file_id)
        wanted: Select[Any] = after(statement, columns, start=start, descending=True, limit=limit)
        return [FileRow(*row) for row in await self._db.execute(wanted)]

    async def add(self, file: File, chunks: Iterable[bytes]) -> None:
        """Store a file and its bytes, a mebibyte at a time."""
        file.tenant_id = self._access.tenant_id
        self._db.add(file)
        await self._db.flush()
        for number, chunk in enumerate(chunks):
            await self._db.execute(
                insert(FileChunk).values(
                    tenant_id=self._access.tenant_id,
                    file_id=file.file_id,
                    number=number,
                    content=chunk,
                )
            )
        await self._db.refresh(file)

    async def chunk(self, file_id: str, number: int) -> bytes | None:
        """A mebibyte of the bytes as they came; None behind the last."""
        return await self._db.scalar(
            select(FileChunk.content).where(
                FileChunk.tenant_id == self._access.tenant_id,
                FileChunk.file_id == file_id,
                FileChunk.number == number,
            )
        )

    async def claimed(self, job: ClaimedJob, file_id: str) -> File:
        """The file of a job, locked until the transaction ends.

        Raises:
            LeaseLostError: the job is not this worker's any more; nothing must be written.
            FileNotFoundInFolderError: the file was deleted meanwhile.

        """
        held = await self._db.scalar(
            select(Job.job_id)
            .where(
                Job.tenant_id == job.tenant_id,
                Job.job_id == job.job_id,
                Job.lease_token == job.lease_token,
                Job.status == "running",
            )
            .with_for_update(key_share=True)
        )
        if held is None:
            raise LeaseLostError
        return (await self.get(None, file_id, lock=True)).file

    async def change(self, file: File, **values: Any) -> None:
        for name, value in values.items():
            setattr(file, name, value)
        await self._db.flush()

    async def delete(self, file_id: str) -> None:
        """With its bytes and its passages."""
        await self._db.execute(
            delete(File)
            .where(File.tenant_id == self._access.tenant_id, File.file_id == file_id)
            .execution_options(synchronize_session=False)
        )

    async def ids_of(self, folder_id: str, *, lock: bool = False) -> Sequence[str]:
        statement = (
            select(File.file_id)
            .where(File.tenant_id == self._access.tenant_id, File.folder_id == folder_id)
            .order_by(File.file_id)
        )
        return (await self._db.scalars(statement.with_for_update() if lock else statement)).all()

    async def count_derived(self, file_ids: Collection[str]) -> int:
        """How many present memories came from these files."""
        return (
            await self._db.scalar(
                select(func.count()).select_from(Memory).where(*self._derived(file_ids))
            )
        ) or 0

    async def orphan(self, file_ids: Collection[str]) -> int:
        """Mark the memories from these files as orphaned; how many were marked.

        The files must be locked: a run that extracts from a file locks it until its end.
        """
        rows = await self._db.scalars(
            update(Memory)
            .where(*self._derived(file_ids))
            .values(source_deleted_at=await clock_of(self._db))
            .returning(Memory.memory_id)
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())

    def _derived(self, file_ids: Collection[str]) -> tuple[Any, ...]:
        return (
            Memory.tenant_id == self._access.tenant_id,
            Memory.source == "knowledge_base",
            Memory.source_id.in_(file_ids),
            Memory.status != "deleted",
            Memory.source_deleted_at.is_(None),
        )
