"""The calls about folders, their files and passages."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any
from uuid import uuid4

from kemem.folders import (
    ExtractOrdered,
    Folder,
    FolderDeleted,
    FolderFile,
    Passage,
    Passages,
    Uploaded,
)
from kemem.reading import read
from kemem.writing import (
    Call,
    Page,
    Version,
    change,
    discard,
    fetch,
    fetch_pages,
    path,
    post,
    remove,
)


def create(name: str, scope: str, **fields: Any) -> Call[Folder]:
    return post(Folder, "folders", body={"folder_name": name, "scope": scope, **fields})


def list_folders(*, limit: int | None, **params: Any) -> Call[Page[Folder]]:
    return fetch_pages(Folder, "folders", limit=limit, **params)


def get(folder_id: str) -> Call[Folder]:
    return fetch(Folder, "folders", folder_id)


def update(folder_id: str, changes: Mapping[str, Any], version: Version | None) -> Call[Folder]:
    return change("PATCH", Folder, "folders", folder_id, body=changes, version=version)


def delete(folder_id: str, *, confirm: bool, dry_run: bool) -> Call[FolderDeleted]:
    return discard(
        FolderDeleted,
        "folders",
        folder_id,
        lost={"folder_id": folder_id},
        confirm=confirm or None,
        dry_run=dry_run or None,
    )


def attach(folder_id: str, agent_id: str) -> Call[Folder]:
    return change("PUT", Folder, "folders", folder_id, "agents", agent_id)


def detach(folder_id: str, agent_id: str) -> Call[None]:
    return remove("folders", folder_id, "agents", agent_id)


def upload(
    folder_id: str,
    file: str | Path | bytes,
    *,
    file_name: str | None,
    on_same_name: str | None,
    tags: Sequence[str],
    metadata: Mapping[str, Any] | None,
) -> Call[Uploaded]:
    """A file, from a path or as it is.

    Raises:
        OSError: there is no such file.

    """
    if isinstance(file, bytes):
        content = file
    else:
        content, file_name = Path(file).read_bytes(), file_name or Path(file).name
    said: dict[str, Any] = {"file_name": file_name, "on_same_name": on_same_name}
    if metadata is not None:
        said["metadata"] = json.dumps(dict(metadata), ensure_ascii=False)
    params: dict[str, Any] = {name: value for name, value in said.items() if value is not None}
    if tags:
        # Said several times, as lists are in a query.
        params["tags"] = list(tags)
    return Call(
        "POST",
        path("folders", folder_id, "files"),
        lambda data: read(Uploaded, data),
        params,
        content,
        {"Idempotency-Key": uuid4().hex, "Content-Type": "application/octet-stream"},
    )


def file(folder_id: str, file_id: str) -> Call[FolderFile]:
    return fetch(FolderFile, "folders", folder_id, "files", file_id)


def files(folder_id: str, *, limit: int | None, **params: Any) -> Call[Page[FolderFile]]:
    return fetch_pages(FolderFile, "folders", folder_id, "files", limit=limit, **params)


def delete_file(folder_id: str, file_id: str, *, dry_run: bool) -> Call[FolderDeleted]:
    return discard(
        FolderDeleted,
        "folders",
        folder_id,
        "files",
        file_id,
        lost={"file_id": file_id},
        dry_run=dry_run or None,
    )


def reingest(folder_id: str, file_id: str) -> Call[Uploaded]:
    return post(Uploaded, "folders", folder_id, "files", file_id, "reingest")


def extract(file_id: str, **fields: Any) -> Call[ExtractOrdered]:
    said = {name: value for name, value in fields.items() if value is not None}
    # An empty object is a body, too.
    return post(ExtractOrdered, "files", file_id, "extract", body=said)


def add_text(folder_id: str, content: str, tags: Sequence[str]) -> Call[Passages]:
    body = {"content": content, "tags": list(tags)}
    return post(Passages, "folders", folder_id, "passages", body=body)


def passages(folder_id: str, file_id: str | None, *, limit: int | None) -> Call[Page[Passage]]:
    of_file = () if file_id is None else ("files", file_id)
    return fetch_pages(Passage, "folders", folder_id, *of_file, "passages", limit=limit)


def delete_passage(folder_id: str, passage_id: str) -> Call[None]:
    return remove("folders", folder_id, "passages", passage_id)


def search(query: str, **fields: Any) -> Call[Passages]:
    said = {name: value for name, value in fields.items() if value is not None}
    return post(Passages, "passages", "search", body={"query": query, **said})
