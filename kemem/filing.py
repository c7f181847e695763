"""`Memory.folders` and `AsyncMemory.folders`: what can be done with documents."""

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypedDict, Unpack

from kemem import folder_calls
from kemem.base import listing
from kemem.block_editing import AsyncCollect, AsyncSend, Collect, Send
from kemem.errors import JobFailedError, TimedOutError
from kemem.folders import (
    ExtractOrdered,
    FileList,
    Folder,
    FolderDeleted,
    FolderFile,
    FolderList,
    PassageList,
    Passages,
    Uploaded,
)
from kemem.writing import Version

WAIT_SECONDS = 300.0
LOOK_SECONDS = 0.25

OnSameName = Literal["suffix", "skip", "reject", "replace"]
Progress = Callable[[FolderFile], object]
"""Told of a file whenever it has got further: `passage_count` of `passages_expected`."""


class FolderOwner(TypedDict, total=False):
    """Whose a folder is: the id of its scope."""

    user_id: str | None
    project_id: str | None
    agent_id: str | None


class PassageSearchOptions(FolderOwner, total=False):
    """What a search of passages can be narrowed by; of several ids any may fit."""

    folder_ids: Sequence[str] | None
    tags: Sequence[str] | None
    tags_match: Literal["any", "all"] | None
    created_from: datetime | None
    created_to: datetime | None
    mode: Literal["hybrid", "semantic", "lexical"] | None
    explain: bool | None


class _Watch:
    """One wait for one file."""

    def __init__(self, timeout: float, progress: Progress | None) -> None:
        self._timeout = timeout
        self._end = time.monotonic() + timeout
        self._progress = progress
        self._told: tuple[str, int] | None = None

    def over(self, file: FolderFile) -> bool:
        """Whether it has been read.

        Raises:
            JobFailedError: it cannot be read; the error's code says why.
            TimedOutError: the time is over; the job goes on.

        """
        if self._told != (file.state, file.passage_count):
            self._told = (file.state, file.passage_count)
            if self._progress is not None:
                self._progress(file)
        if file.state == "error":
            raise JobFailedError(file.job_id or "", "dead", file.error_code, file.error_detail)
        if not file.is_over and time.monotonic() > self._end:
            raise TimedOutError(
                f"The file {file.file_id} is {file.state} after {self._timeout:g} s. It goes on."
            )
        return file.is_over


class Folders:
    """Documents of the tenant, as `memory.folders`."""

    def __init__(self, send: Send, collect: Collect) -> None:
        self._send = send
        self._collect = collect

    def create(
        self,
        name: str,
        scope: Literal["user", "project", "agent"] = "user",
        *,
        folder_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **owner: Unpack[FolderOwner],
    ) -> Folder:
        """Make a folder of a user, a project or an agent; the last takes an admin key."""
        call = folder_calls.create(
            name,
            scope,
            folder_id=folder_id,
            description=description,
            metadata=metadata,
            **owner,
        )
        return self._send(call)

    def list(self, limit: int | None = 100, **owner: Unpack[FolderOwner]) -> FolderList:
        """Up to `limit` folders, newest first; None means all."""
        call = folder_calls.list_folders(limit=limit, **owner)
        return listing(FolderList, self._collect(call, limit))

    def get(self, folder_id: str) -> Folder:
        """One folder. Raises NotFoundError."""
        return self._send(folder_calls.get(folder_id))

    def update(self, folder_id: str, *, version: Version | None = None, **changes: Any) -> Folder:
        """Change `folder_name`, `description` or `metadata`. Raises ConflictError."""
        return self._send(folder_calls.update(folder_id, changes, version))

    def delete(
        self, folder_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> FolderDeleted:
        """Delete a folder with its files and passages.

        Raises:
            ConflictError: it holds something, and `confirm` is not said.

        """
        return self._send(folder_calls.delete(folder_id, confirm=confirm, dry_run=dry_run))

    def attach(self, folder_id: str, agent_id: str) -> Folder:
        """Let a further agent read a folder; takes an admin key."""
        return self._send(folder_calls.attach(folder_id, agent_id))

    def detach(self, folder_id: str, agent_id: str) -> None:
        """Take a folder from an agent that it was attached to."""
        self._send(folder_calls.detach(folder_id, agent_id))

    def upload(
        self,
        folder_id: str,
        file: str | Path | bytes,
        *,
        file_name: str | None = None,
        on_same_name: OnSameName | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        wait: bool = False,
        timeout: float = WAIT_SECONDS,
        progress: Progress | None = None,
    ) -> Uploaded:
        """Upload a file, from a path or as bytes; a job reads it.

        Args:
            file_name: that of the path when left out.
            on_same_name: when the folder has a file of that name; `suffix` when left out.
            wait: return when it has been read; `timeout` is how many seconds that may take.
            progress: told of the file whenever it has got further, while this waits.

        Raises:
            ApiError: with `type_mismatch`, `unsupported_media_type` or `body_too_large`.
            JobFailedError: waiting, it cannot be read; the code says why.
            TimedOutError: waiting, it has not been read yet; that goes on.

        """
        call = folder_calls.upload(
            folder_id,
            file,
            file_name=file_name,
            on_same_name=on_same_name,
            tags=tags,
            metadata=metadata,
        )
        uploaded = self._send(call)
        if not wait:
            return uploaded
        watch = _Watch(timeout, progress)
        while True:
            seen = self.file(folder_id, uploaded.file.file_id)
            if watch.over(seen):
                return replace(uploaded, file=seen)
            time.sleep(LOOK_SECONDS)

    def file(self, folder_id: str, file_id: str) -> FolderFile:
        """One file, and how far it has been read. Raises NotFoundError."""
        return self._send(folder_calls.file(folder_id, file_id))

    def files(
        self, folder_id: str, limit: int | None = 100, *, state: str | None = None
    ) -> FileList:
        """Up to `limit` files of a folder, newest first; None means all."""
        call = folder_calls.files(folder_id, limit=limit, state=state)
        return listing(FileList, self._collect(call, limit))

    def delete_file(self, folder_id: str, file_id: str, *, dry_run: bool = False) -> FolderDeleted:
        """Delete a file with its passages; memories made of it stay, and say so."""
        return self._send(folder_calls.delete_file(folder_id, file_id, dry_run=dry_run))

    def reingest(self, folder_id: str, file_id: str) -> Uploaded:
        """Read a file anew. Raises ConflictError while it is being read."""
        return self._send(folder_calls.reingest(folder_id, file_id))

    def extract(
        self,
        file_id: str,
        *,
        scope: Literal["user", "project", "agent"] | None = None,
        prompt: str | None = None,
        **owner: Unpack[FolderOwner],
    ) -> ExtractOrdered:
        """Turn a file's passages into memories; `wait` takes the answer."""
        call = folder_calls.extract(file_id, scope=scope, prompt=prompt, **owner)
        return self._send(call)

    def add_text(self, folder_id: str, content: str, tags: Sequence[str] = ()) -> Passages:
        """Put a text into a folder; a long one becomes several passages."""
        return self._send(folder_calls.add_text(folder_id, content, tags))

    def passages(
        self, folder_id: str, file_id: str | None = None, limit: int | None = 100
    ) -> PassageList:
        """Up to `limit` passages: of a file in its order, of a folder newest first."""
        call = folder_calls.passages(folder_id, file_id, limit=limit)
        return listing(PassageList, self._collect(call, limit))

    def delete_passage(self, folder_id: str, passage_id: str) -> None:
        """Delete one passage."""
        self._send(folder_calls.delete_passage(folder_id, passage_id))

    def search(
        self, query: str, limit: int | None = None, **options: Unpack[PassageSearchOptions]
    ) -> Passages:
        """The passages that answer a query best, 5 unless `limit` says otherwise."""
        return self._send(folder_calls.search(query, limit=limit, **options))


class AsyncFolders:
    """`Folders` for asyncio."""

    def __init__(self, send: AsyncSend, collect: AsyncCollect) -> None:
        self._send = send
        self._collect = collect

    async def create(
        self,
        name: str,
        scope: Literal["user", "project", "agent"] = "user",
        *,
        folder_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **owner: Unpack[FolderOwner],
    ) -> Folder:
        """Make a folder of a user, a project or an agent; the last takes an admin key."""
        call = folder_calls.create(
            name,
            scope,
            folder_id=folder_id,
            description=description,
            metadata=metadata,
            **owner,
        )
        return await self._send(call)

    async def list(self, limit: int | None = 100, **owner: Unpack[FolderOwner]) -> FolderList:
        """Up to `limit` folders, newest first; None means all."""
        call = folder_calls.list_folders(limit=limit, **owner)
        return listing(FolderList, await self._collect(call, limit))

    async def get(self, folder_id: str) -> Folder:
        """One folder. Raises NotFoundError."""
        return await self._send(folder_calls.get(folder_id))

    async def update(
        self, folder_id: str, *, version: Version | None = None, **changes: Any
    ) -> Folder:
        """Change `folder_name`, `description` or `metadata`. Raises ConflictError."""
        return await self._send(folder_calls.update(folder_id, changes, version))

    async def delete(
        self, folder_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> FolderDeleted:
        """Delete a folder with its files and passages.

        Raises:
            ConflictError: it holds something, and `confirm` is not said.

        """
        return await self._send(folder_calls.delete(folder_id, confirm=confirm, dry_run=dry_run))

    async def attach(self, folder_id: str, agent_id: str) -> Folder:
        """Let a further agent read a folder; takes an admin key."""
        return await self._send(folder_calls.attach(folder_id, agent_id))

    async def detach(self, folder_id: str, agent_id: str) -> None:
        """Take a folder from an agent that it was attached to."""
        await self._send(folder_calls.detach(folder_id, agent_id))

    async def upload(
        self,
        folder_id: str,
        file: str | Path | bytes,
        *,
        file_name: str | None = None,
        on_same_name: OnSameName | None = None,
        tags: Sequence[str] = (),
        metadata: Mapping[str, Any] | None = None,
        wait: bool = False,
        timeout: float = WAIT_SECONDS,  # noqa: ASYNC109 (as `Folders`)
        progress: Progress | None = None,
    ) -> Uploaded:
        """Upload a file, from a path or as bytes; a job reads it.

        Args:
            file_name: that of the path when left out.
            on_same_name: when the folder has a file of that name; `suffix` when left out.
            wait: return when it has been read; `timeout` is how many seconds that may take.
            progress: told of the file whenever it has got further, while this waits.

        Raises:
            ApiError: with `type_mismatch`, `unsupported_media_type` or `body_too_large`.
            JobFailedError: waiting, it cannot be read; the code says why.
            TimedOutError: waiting, it has not been read yet; that goes on.

        """
        call = folder_calls.upload(
            folder_id,
            file,
            file_name=file_name,
            on_same_name=on_same_name,
            tags=tags,
            metadata=metadata,
        )
        uploaded = await self._send(call)
        if not wait:
            return uploaded
        watch = _Watch(timeout, progress)
        while True:
            seen = await self.file(folder_id, uploaded.file.file_id)
            if watch.over(seen):
                return replace(uploaded, file=seen)
            await asyncio.sleep(LOOK_SECONDS)

    async def file(self, folder_id: str, file_id: str) -> FolderFile:
        """One file, and how far it has been read. Raises NotFoundError."""
        return await self._send(folder_calls.file(folder_id, file_id))

    async def files(
        self, folder_id: str, limit: int | None = 100, *, state: str | None = None
    ) -> FileList:
        """Up to `limit` files of a folder, newest first; None means all."""
        call = folder_calls.files(folder_id, limit=limit, state=state)
        return listing(FileList, await self._collect(call, limit))

    async def delete_file(
        self, folder_id: str, file_id: str, *, dry_run: bool = False
    ) -> FolderDeleted:
        """Delete a file with its passages; memories made of it stay, and say so."""
        return await self._send(folder_calls.delete_file(folder_id, file_id, dry_run=dry_run))

    async def reingest(self, folder_id: str, file_id: str) -> Uploaded:
        """Read a file anew. Raises ConflictError while it is being read."""
        return await self._send(folder_calls.reingest(folder_id, file_id))

    async def extract(
        self,
        file_id: str,
        *,
        scope: Literal["user", "project", "agent"] | None = None,
        prompt: str | None = None,
        **owner: Unpack[FolderOwner],
    ) -> ExtractOrdered:
        """Turn a file's passages into memories; `wait` takes the answer."""
        call = folder_calls.extract(file_id, scope=scope, prompt=prompt, **owner)
        return await self._send(call)

    async def add_text(self, folder_id: str, content: str, tags: Sequence[str] = ()) -> Passages:
        """Put a text into a folder; a long one becomes several passages."""
        return await self._send(folder_calls.add_text(folder_id, content, tags))

    async def passages(
        self, folder_id: str, file_id: str | None = None, limit: int | None = 100
    ) -> PassageList:
        """Up to `limit` passages: of a file in its order, of a folder newest first."""
        call = folder_calls.passages(folder_id, file_id, limit=limit)
        return listing(PassageList, await self._collect(call, limit))

    async def delete_passage(self, folder_id: str, passage_id: str) -> None:
        """Delete one passage."""
        await self._send(folder_calls.delete_passage(folder_id, passage_id))

    async def search(
        self, query: str, limit: int | None = None, **options: Unpack[PassageSearchOptions]
    ) -> Passages:
        """The passages that answer a query best, 5 unless `limit` says otherwise."""
        return await self._send(folder_calls.search(query, limit=limit, **options))
