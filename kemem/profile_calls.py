"""The calls about profiles and memory documents."""

from collections.abc import Mapping
from typing import Any

from kemem.conversations import Job
from kemem.profiles import DocumentImported, MemoryDocument, Profile, ProfileChange
from kemem.writing import Call, Page, Version, change, fetch, fetch_pages, post


def whose(user_id: str | None, project_id: str | None) -> tuple[str, str]:
    """Raises ValueError unless exactly one is named."""
    if (user_id is None) == (project_id is None):
        raise ValueError("name the user or the project whose profile it is, one of the two")
    return ("users", user_id) if user_id is not None else ("projects", str(project_id))


def get(owner: tuple[str, str]) -> Call[Profile]:
    return fetch(Profile, *owner, "profile")


def update(
    owner: tuple[str, str], changes: Mapping[str, Any], version: Version, *, whole: bool
) -> Call[Profile]:
    return change(
        "PUT" if whole else "PATCH", Profile, *owner, "profile", body=changes, version=version
    )


def history(owner: tuple[str, str], *, limit: int | None) -> Call[Page[ProfileChange]]:
    return fetch_pages(ProfileChange, *owner, "profile", "history", limit=limit)


def derive(owner: tuple[str, str]) -> Call[Job]:
    return post(Job, *owner, "profile", "derive")


def document(user_id: str, *, agent_id: str | None) -> Call[MemoryDocument]:
    return fetch(MemoryDocument, "users", user_id, "memory-document", agent_id=agent_id)


def take_in(
    user_id: str, told: Mapping[str, Any], *, agent_id: str | None, dry_run: bool
) -> Call[DocumentImported]:
    params = {} if agent_id is None else {"agent_id": agent_id}
    if dry_run:
        params["dry_run"] = "true"
    return post(DocumentImported, "users", user_id, "memory-document", body=told, params=params)
