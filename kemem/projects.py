"""Answers about projects: groups of users who share memories."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from kemem.answers import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Project(Answer):
    """A group of users who share memories."""

    project_id: str
    project_name: str = ""
    description: str | None = None
    metadata: Mapping[str, Any] = field(default_factory=dict)
    creator: str | None = None
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.project_id}: {self.project_name}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProjectList(Listing[Project]):
    """Projects, newest first."""

    results: tuple[Project, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Member(Answer):
    """A member of a project and its role."""

    project_id: str
    user_id: str
    role: str = "viewer"
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.user_id}: {self.role}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class MemberList(Listing[Member]):
    """Members, oldest first."""

    results: tuple[Member, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectItem(Answer):
    """A memory of a project without its content."""

    memory_id: str
    user_id: str | None = None
    """The author."""
    visibility: str = "members"
    status: str = "active"
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{self.memory_id} {self.user_id or '-'} {self.visibility}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ProjectItemList(Listing[ProjectItem]):
    """Memories of a project without their content, newest first."""

    results: tuple[ProjectItem, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Transferred(Answer):
    """The new owner of a project and the former ones, who are admins now."""

    project_id: str
    owner_id: str
    former_owners: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectDeleted(Answer):
    """Number of rows deleted with a project, or with `dry_run` to be deleted, by kind."""

    id: str
    kind: str = "project"
    deleted: Mapping[str, int] = field(default_factory=dict)
    dry_run: bool = False
    erasure_id: str | None = None
    """Id of the receipt, which is kept; None for a dry run."""
