"""Folders: documents of a user, a project or an agent, and the passages they are cut into."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from kemem.reading import Answer, Listing
from kemem.rendering import escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder(Answer):
    """One folder, with what it holds counted."""

    folder_id: str
    folder_name: str = ""
    description: str | None = None
    scope: str = ""
    scope_id: str = ""
    user_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    agent_ids: tuple[str, ...] = ()
    """Further agents that read it."""
    file_count: int = 0
    passage_count: int = 0
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    def __str__(self) -> str:
        return f"{escape_line(self.folder_name)}: {self.file_count} files"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FolderList(Listing[Folder]):
    """Folders, newest first."""

    results: tuple[Folder, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderFile(Answer):
    """One file, and how far it has been read."""

    file_id: str
    folder_id: str = ""
    file_name: str = ""
    content_type: str = ""
    size: int = 0
    sha256: str = ""
    state: str = ""
    """`pending`, `parsing`, `embedding`, `completed` or `error`."""
    error_code: str | None = None
    error_detail: str | None = None
    parser: str | None = None
    pages: int | None = None
    passage_count: int = 0
    passages_expected: int | None = None
    """None until its text is read."""
    job_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether it has been read, or never will be."""
        return self.state in {"completed", "error"}

    def __str__(self) -> str:
        return f"{escape_line(self.file_name)}: {self.error_code or self.state}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileList(Listing[FolderFile]):
    """Files of a folder, newest first."""

    results: tuple[FolderFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded(Answer):
    """A file that was taken in; a job reads it."""

    outcome: str
    """`created`, `replaced` or `skipped`."""
    job_id: str | None = None
    file: FolderFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(Answer):
    """A piece of a document; of a search with what its place comes from."""

    passage_id: str
    folder_id: str = ""
    file_id: str | None = None
    folder_name: str | None = None
    file_name: str | None = None
    ordinal: int = 0
    start_char: int | None = None
    end_char: int | None = None
    page: int | None = None
    content: str = ""
    tags: tuple[str, ...] = ()
    create_time: datetime | None = None
    score: float | None = None
    similarity: float | None = None
    lexical: float | None = None
    explain: Mapping[str, Any] | None = None

    def __str__(self) -> str:
        return escape_line(self.content)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class PassageList(Listing[Passage]):
    """Passages of a folder or a file."""

    results: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Passages(Listing[Passage]):
    """Passages that a text became, or that a search found, best first."""

    rows_key: ClassVar[str] = "items"

    results: tuple[Passage, ...] = ()
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """Passages whose vectors the search could not compare."""
    searched: int = 0
    left_out: bool = False
    """Whether there are older ones, which the search did not look at."""
    degraded: bool = False
    """Whether an embedder did not answer, so that words decided."""
    mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDeleted(Answer):
    """What went with a folder or a file, or with `dry_run` would go."""

    folder_id: str | None = None
    file_id: str | None = None
    files: int = 0
    passages: int = 0
    memories: int = 0
    """Memories that lose their source; they stay."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOrdered(Answer):
    """Work that was put into the queue."""

    job_id: str
    file_id: str = ""
    passages: int = 0
    extractor: str = ""
