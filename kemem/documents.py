"""Answers about documents: folders, their files, and the passages that files are split into."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, ClassVar

from kemem.answers import Answer, Listing, escape_line


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder(Answer):
    """One folder and the number of its files and passages."""

    folder_id: str
    folder_name: str = ""
    description: str | None = None
    scope: str = ""
    scope_id: str = ""
    user_id: str | None = None
    project_id: str | None = None
    agent_id: str | None = None
    agent_ids: tuple[str, ...] = ()
    """Further agents that may read it."""
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
    """One file and the progress of its ingestion."""

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
    """None until the text is parsed."""
    job_id: str | None = None
    tags: tuple[str, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    version: int = 1
    create_time: datetime | None = None
    update_time: datetime | None = None

    @property
    def is_over(self) -> bool:
        """Whether ingestion has finished or failed."""
        return self.state in {"completed", "error"}

    def __str__(self) -> str:
        return f"{escape_line(self.file_name)}: {self.error_code or self.state}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class FileList(Listing[FolderFile]):
    """Files of a folder, newest first."""

    results: tuple[FolderFile, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Uploaded(Answer):
    """A file that was uploaded; a job ingests it."""

    outcome: str
    """`created`, `replaced` or `skipped`."""
    job_id: str | None = None
    file: FolderFile


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage(Answer):
    """A piece of a document. Search results also have scores."""

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
    """Passages of a file in its order, or of a folder newest first."""

    results: tuple[Passage, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Passages(Listing[Passage]):
    """The passages of an added text, or those that a search found, best first."""

    rows_key: ClassVar[str] = "items"

    results: tuple[Passage, ...] = ()
    next_cursor: str | None = None
    """Fetches the next page of a search; None on the last one."""
    embedding_models: tuple[str, ...] = ()
    waiting: int = 0
    """How many passages could not be compared yet: they have no vector of this embedder."""
    searched: int = 0
    """How many passages were compared."""
    left_out: bool = False
    """Whether there are older passages that were not compared."""
    degraded: bool = False
    """Whether an embedder failed, so that only keywords were compared."""
    mode: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderDeleted(Answer):
    """What was deleted with a folder or a file, or with `dry_run` would be."""

    folder_id: str | None = None
    file_id: str | None = None
    files: int = 0
    passages: int = 0
    memories: int = 0
    """Memories that were extracted from it; they are kept without their source."""
    dry_run: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ExtractOrdered(Answer):
    """A job that extracts memories from a file; `wait` accepts this answer."""

    job_id: str
    file_id: str = ""
    passages: int = 0
    extractor: str = ""
