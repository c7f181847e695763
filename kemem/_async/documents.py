"""Methods of `memory.folders`: folders, their files, and passages."""

import json
from asyncio import sleep
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any, Unpack
from uuid import uuid4

from kemem._async.sender import AsyncResource
from kemem.answers import listing, read
from kemem.calls import Call, Version, change, discard, fetch, fetch_pages, path, post, remove
from kemem.deprecated import OldFolderNames
from kemem.documents import (
    ExtractOrdered,
    FileList,
    Folder,
    FolderDeleted,
    FolderFile,
    FolderList,
    Passage,
    PassageList,
    Passages,
    Uploaded,
)
from kemem.jobs import WAIT_SECONDS, FileWait, Progress
from kemem.options import OnSameName, Owner, OwnerScope, PassageSearchOptions


class AsyncFolders(OldFolderNames, AsyncResource):
    """Folders of documents, and the passages that documents are split into."""

    async def create(
        self,
        name: str,
        scope: OwnerScope = "user",
        *,
        folder_id: str | None = None,
        description: str | None = None,
        metadata: Mapping[str, Any] | None = None,
        **owner: Unpack[Owner],
    ) -> Folder:
        """Create a folder of a user, a project or an agent; for an agent it takes an admin key.

        Raises:
            ConflictError: the `folder_id` is taken.
            ForbiddenError: the key may not create it.

        """
        body = {
            "folder_name": name,
            "scope": scope,
            "folder_id": folder_id,
            "description": description,
            "metadata": metadata,
            **owner,
        }
        return await self._send(post(Folder, "folders", body=body))

    async def list_folders(self, limit: int | None = 100, **owner: Unpack[Owner]) -> FolderList:
        """Return up to `limit` folders, newest first; None means all."""
        call = fetch_pages(Folder, "folders", limit=limit, **owner)
        return listing(FolderList, await self._collect(call, limit))

    async def get(self, folder_id: str) -> Folder:
        """Return one folder.

        Raises:
            NotFoundError: there is no such folder.

        """
        return await self._send(fetch(Folder, "folders", folder_id))

    async def update(
        self, folder_id: str, *, version: Version | None = None, **changes: Any
    ) -> Folder:
        """Change `folder_name`, `description` or `metadata`.

        Args:
            version: the version you read; refused if there is a newer one.

        Raises:
            NotFoundError: there is no such folder.
            ConflictError: there is a newer version (`version_conflict`).

        """
        call = change("PATCH", Folder, "folders", folder_id, body=changes, version=version)
        return await self._send(call)

    async def delete(
        self, folder_id: str, *, confirm: bool = False, dry_run: bool = False
    ) -> FolderDeleted:
        """Delete a folder with its files and passages.

        Raises:
            NotFoundError: there is no such folder.
            ConflictError: the folder is not empty, and `confirm` is missing.

        """
        call = discard(
            FolderDeleted,
            "folders",
            folder_id,
            lost={"folder_id": folder_id},
            confirm=confirm or None,
            dry_run=dry_run or None,
        )
        return await self._send(call)

    async def attach(self, folder_id: str, agent_id: str) -> Folder:
        """Let a further agent read a folder; takes an admin key. Safe to repeat.

        Raises:
            NotFoundError: there is no such folder or agent.
            ForbiddenError: the key is no admin key.

        """
        return await self._send(change("PUT", Folder, "folders", folder_id, "agents", agent_id))

    async def detach(self, folder_id: str, agent_id: str) -> None:
        """Stop an agent from reading a folder that was attached to it.

        Raises:
            NotFoundError: there is no such folder, or it is not attached.

        """
        await self._send(remove("folders", folder_id, "agents", agent_id))

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
        timeout: float = WAIT_SECONDS,
        progress: Progress | None = None,
    ) -> Uploaded:
        """Upload a file, given as a path or as bytes; a job ingests it.

        Args:
            file_name: by default that of the path.
            on_same_name: what to do if the folder has a file of that name; `suffix` by default.
            wait: return when the file has been ingested, within `timeout` seconds.
            progress: called with the file whenever it has progressed, while waiting.

        Raises:
            OSError: the file cannot be read.
            ApiError: `type_mismatch`, `unsupported_media_type` or `body_too_large`.
            JobFailedError: while waiting, the file could not be ingested; the code says why.
            TimedOutError: while waiting, the time is over; ingestion continues.

        """
        call = _upload_call(folder_id, file, file_name, on_same_name, tags, metadata)
        uploaded = await self._send(call)
        if not wait:
            return uploaded
        file_wait = FileWait(timeout, progress)
        while True:
            current = await self.file(folder_id, uploaded.file.file_id)
            pause = file_wait.pause(current)
            if pause is None:
                return replace(uploaded, file=current)
            await sleep(pause)

    async def file(self, folder_id: str, file_id: str) -> FolderFile:
        """Return one file and the progress of its ingestion.

        Raises:
            NotFoundError: there is no such folder or file.

        """
        return await self._send(fetch(FolderFile, "folders", folder_id, "files", file_id))

    async def files(
        self, folder_id: str, limit: int | None = 100, *, state: str | None = None
    ) -> FileList:
        """Return up to `limit` files of a folder, newest first; None means all."""
        call = fetch_pages(FolderFile, "folders", folder_id, "files", limit=limit, state=state)
        return listing(FileList, await self._collect(call, limit))

    async def delete_file(
        self, folder_id: str, file_id: str, *, dry_run: bool = False
    ) -> FolderDeleted:
        """Delete a file with its passages; memories extracted from it are kept and marked.

        Raises:
            NotFoundError: there is no such folder or file.

        """
        call = discard(
            FolderDeleted,
            "folders",
            folder_id,
            "files",
            file_id,
            lost={"file_id": file_id},
            dry_run=dry_run or None,
        )
        return await self._send(call)

    async def reingest(self, folder_id: str, file_id: str) -> Uploaded:
        """Ingest a file again.

        Raises:
            NotFoundError: there is no such folder or file.
            ConflictError: it is being ingested now.

        """
        call = post(Uploaded, "folders", folder_id, "files", file_id, "reingest")
        return await self._send(call)

    async def extract(
        self,
        file_id: str,
        *,
        scope: OwnerScope | None = None,
        prompt: str | None = None,
        **owner: Unpack[Owner],
    ) -> ExtractOrdered:
        """Start a job that extracts memories from a file; `memory.wait` accepts the answer.

        Raises:
            NotFoundError: there is no such file.
            ConflictError: it has not been ingested yet.

        """
        fields = {"scope": scope, "prompt": prompt, **owner}
        # The route takes a body even if it is empty.
        body = {name: value for name, value in fields.items() if value is not None}
        return await self._send(post(ExtractOrdered, "files", file_id, "extract", body=body))

    async def add_text(
        self,
        folder_id: str,
        content: str,
        tags: Sequence[str] = (),
        create_time: datetime | None = None,
    ) -> Passages:
        """Add a text to a folder; a long one becomes several passages.

        Args:
            create_time: when it is from, by which lists and searches with dates go; now by default.

        Raises:
            NotFoundError: there is no such folder.

        """
        body = {"content": content, "tags": list(tags), "create_time": create_time}
        return await self._send(post(Passages, "folders", folder_id, "passages", body=body))

    async def passages(
        self, folder_id: str, file_id: str | None = None, limit: int | None = 100
    ) -> PassageList:
        """Return up to `limit` passages; those of a file in its order, of a folder newest first.

        Raises:
            NotFoundError: there is no such folder or file.

        """
        of_file = () if file_id is None else ("files", file_id)
        call = fetch_pages(Passage, "folders", folder_id, *of_file, "passages", limit=limit)
        return listing(PassageList, await self._collect(call, limit))

    async def delete_passage(self, folder_id: str, passage_id: str) -> None:
        """Delete one passage.

        Raises:
            NotFoundError: there is no such folder or passage.

        """
        await self._send(remove("folders", folder_id, "passages", passage_id))

    async def search(
        self, query: str, limit: int | None = None, **options: Unpack[PassageSearchOptions]
    ) -> Passages:
        """Search passages by keywords and meaning, best first; 5 unless `limit` says otherwise.

        Raises:
            UnprocessableError: nothing says where to search (`selector_required`).

        """
        body = {"query": query, "limit": limit, **options}
        return await self._send(post(Passages, "passages", "search", body=body))


def _upload_call(
    folder_id: str,
    file: str | Path | bytes,
    file_name: str | None,
    on_same_name: str | None,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Call[Uploaded]:
    if isinstance(file, bytes):
        content = file
    else:
        content, file_name = Path(file).read_bytes(), file_name or Path(file).name
    fields: dict[str, Any] = {"file_name": file_name, "on_same_name": on_same_name}
    if metadata is not None:
        fields["metadata"] = json.dumps(dict(metadata), ensure_ascii=False)
    params: dict[str, Any] = {name: value for name, value in fields.items() if value is not None}
    if tags:
        # A list in a query is a repeated parameter.
        params["tags"] = list(tags)
    return Call(
        "POST",
        path("folders", folder_id, "files"),
        lambda data: read(Uploaded, data),
        params,
        content,
        {"Idempotency-Key": uuid4().hex, "Content-Type": "application/octet-stream"},
    )
