"""Folders, files, passages and searches of passages as they cross HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import AfterValidator, Field, StringConstraints, model_validator

from app.language.ranking.boosts import Mode
from app.platform.values.fields import (
    Description,
    Id,
    Kind,
    Metadata,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import CursorText, MaxTokens, PageQuery

FolderScope = Literal["user", "project", "agent"]
State = Literal["pending", "parsing", "embedding", "completed", "error"]
OnSameName = Literal["suffix", "skip", "reject", "replace"]

LONGEST_TEXT = 200_000
MOST_TAGS = 20

Tags = Annotated[
    list[Kind],
    Field(max_length=MOST_TAGS, description="At most 20; upper and lower case differ."),
]


ARCHIVE_PREFIX = "fld_archive_"
"""How the ids of archives begin, which only the service makes."""


def _free(folder_id: str) -> str:
    if folder_id.startswith(ARCHIVE_PREFIX):
        raise ValueError(f"ids that begin with {ARCHIVE_PREFIX} are those of archives")
    return folder_id


class FolderCreate(Schema):
    model_config = example(folder_name="Manuals", scope="agent", agent_id="support")

    folder_id: Annotated[Id, AfterValidator(_free)] | None = Field(
        default=None,
        description=f"Generated when left out. It may not begin with `{ARCHIVE_PREFIX}`.",
    )
    folder_name: Name = Field(examples=["Manuals"])
    description: Description | None = None
    scope: FolderScope = Field(
        description="Whose: one `user`'s, a `project`'s, or the knowledge of an `agent`, which "
        "needs an admin key."
    )
    user_id: OwnId | None = None
    project_id: OwnId | None = None
    agent_id: OwnId | None = None
    metadata: Metadata = {}

    @model_validator(mode="after")
    def _one_owner(self) -> Self:
        ids = {"user": self.user_id, "project": self.project_id, "agent": self.agent_id}
        others = [f"{name}_id" for name, value in ids.items() if value and name != self.scope]
        if others:
            raise ValueError(f"a folder of scope {self.scope} takes no {' and no '.join(others)}")
        return self


class FolderPatch(Schema):
    model_config = example(folder_name="Handbooks")

    folder_name: Name | None = None
    description: Description | None = None
    metadata: Metadata | None = None


class FolderRead(ReadSchema):
    folder_id: str
    folder_name: str
    description: str | None
    scope: FolderScope
    scope_id: str
    user_id: str | None
    project_id: str | None
    agent_id: str | None
    agent_ids: list[str] = Field(default=[], description="Further agents that read it.")
    file_count: int = 0
    passage_count: int = Field(default=0, description="Passages that a search can find.")
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    creator: str | None
    version: int
    create_time: Timestamp
    update_time: Timestamp


class FolderQuery(PageQuery):
    scope: FolderScope | None = None
    user_id: OwnId | None = Field(default=None, description="Folders of this user.")
    project_id: OwnId | None = Field(default=None, description="Folders of this project.")
    agent_id: OwnId | None = Field(
        default=None, description="Folders of this agent, and those attached to it."
    )


class FileDeleteQuery(Schema):
    confirm: bool = Field(default=False, description="Required when it holds anything.")
    dry_run: bool = Field(default=False, description="Only count.")


class FolderDeleted(ReadSchema):
    folder_id: str
    files: int
    passages: int
    memories: int = Field(description="Memories that lose their source; they stay.")
    dry_run: bool


class FileRead(ReadSchema):
    file_id: str
    folder_id: str
    file_name: str
    content_type: str = Field(description="As found in the bytes.")
    size: int = Field(description="Bytes.")
    sha256: str
    state: State
    error_code: str | None = Field(
        description="Why it cannot be read: `encrypted`, `no_text`, `malformed`, `encoding`, "
        "`too_long`, `too_many_pages`, `too_large`, `timed_out`, `parser_failed`; or that of a "
        "job that gave up."
    )
    error_detail: str | None
    parser: str | None = Field(description="What read it, with versions.")
    pages: int | None
    passage_count: int = Field(
        description="Passages that it has; while it is being read, stored so far."
    )
    passages_expected: int | None = Field(
        description="How many there will be; null until the text is read."
    )
    job_id: str | None
    tags: list[str]
    metadata: dict[str, Any] = Field(validation_alias="metadata_")
    creator: str | None
    version: int
    create_time: Timestamp
    update_time: Timestamp


class FileAccepted(ReadSchema):
    """A file that was taken in; a job reads it."""

    outcome: Literal["created", "replaced", "skipped"]
    job_id: str | None = Field(description="The job that reads it; its state is in the file.")
    file: FileRead


class UploadOptions(Schema):
    """What may be said of an upload: as query parameters, or as fields of the form."""

    file_name: Annotated[str, StringConstraints(min_length=1, max_length=1000), Storable] | None = (
        Field(
            default=None,
            description="That of the form when left out, else `file` with the ending of its type.",
        )
    )
    on_same_name: OnSameName = Field(
        default="suffix",
        description="When the folder has a file of that name: give this one a number, skip it, "
        "reject it, or replace the other.",
    )
    tags: Tags = []
    metadata: Annotated[str, StringConstraints(max_length=64 * 1024), Storable] | None = Field(
        default=None, description="A JSON object as text; at most 16 KiB."
    )


class FileDeleted(ReadSchema):
    file_id: str
    passages: int
    memories: int = Field(description="Memories that lose their source; they stay.")
    dry_run: bool


class FileQuery(PageQuery):
    state: State | None = None


class PassageCreate(Schema):
    model_config = example(content="Refunds take five working days.", tags=["refunds"])

    content: Annotated[str, StringConstraints(min_length=1, max_length=LONGEST_TEXT), Storable] = (
        Field(description="A long text is cut into several passages.")
    )
    tags: Tags = []
    create_time: Timestamp | None = Field(
        default=None,
        description="When it is from, by which lists and searches with dates go; now if left out.",
    )

    @model_validator(mode="after")
    def _says_something(self) -> Self:
        if not self.content.strip():
            raise ValueError("content must not be blank")
        return self


class PassageRead(ReadSchema):
    passage_id: str
    folder_id: str
    file_id: str | None
    ordinal: int = Field(description="Its number in its file or text, from 0.")
    start_char: int | None
    end_char: int | None
    page: int | None = Field(description="From 1, the one it stands on; null without pages.")
    content: str
    tags: list[str]
    creator: str | None
    create_time: Timestamp


class PassagesAdded(ReadSchema):
    """The passages that a text became, in its order."""

    items: list[PassageRead]
    embedding_model: str


class FileExtract(Schema):
    model_config = example(scope="user", user_id="ana")

    scope: FolderScope | None = Field(
        default=None, description="For whom the memories count; as the folder when left out."
    )
    user_id: OwnId | None = None
    project_id: OwnId | None = None
    agent_id: OwnId | None = None
    prompt: Annotated[str, StringConstraints(max_length=10_000), Storable] | None = Field(
        default=None, description="Your own instructions to the extractor."
    )


class ExtractOrdered(ReadSchema):
    """Work that was put into the queue."""

    job_id: str
    file_id: str
    passages: int
    extractor: str = Field(
        description="What will read it. `rules/…` is made for conversations and finds little in "
        "documents: name a model in the agent's settings for more."
    )


def _distinct(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


class PassageSearch(Schema):
    model_config = example(query="How long do refunds take?", agent_id="support", limit=5)

    query: Annotated[str, StringConstraints(max_length=10_000), Storable] = Field(
        description="A blank query finds nothing."
    )
    folder_ids: Annotated[list[Id], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Only in these, of the folders that the key may see."
    )
    user_id: OwnId | None = Field(default=None, description="Folders of this user.")
    agent_id: OwnId | None = Field(
        default=None, description="Folders of this agent, and those attached to it."
    )
    project_id: OwnId | None = Field(
        default=None, description="Folders of this project. Of several ids any may fit."
    )
    tags: Annotated[Tags, AfterValidator(_distinct)] = []
    tags_match: Literal["any", "all"] = "any"
    created_from: Timestamp | None = Field(default=None, description="Inclusive.")
    created_to: Timestamp | None = Field(default=None, description="Inclusive.")
    limit: Annotated[int, Field(ge=1, le=100)] = 5
    cursor: CursorText | None = Field(
        default=None,
        description="`next_cursor` of the page before, with all else of the request unchanged.",
    )
    max_tokens: MaxTokens | None = None
    mode: Mode = Field(
        default="hybrid",
        description="`hybrid`: words and vectors. `semantic`: vectors alone. `lexical`: words "
        "alone. Where no embedder answers, words decide.",
    )
    explain: bool = False


class PassageScoreExplained(ReadSchema):
    """Why a passage has its rank."""

    cosine: float | None
    lexical: float | None
    fused: float
    boosts: dict[str, float]


class PassageHit(PassageRead):
    folder_name: str
    file_name: str | None
    score: float = Field(description="0 to 1: what the hits are ordered by; the relevance.")
    relevance: float = Field(description="0 to 1, in hybrid mode relative to this search.")
    similarity: float | None = Field(description="Cosine of query and passage, where compared.")
    lexical: float | None = Field(
        description="How well its words fit, 0 to 1; null in semantic mode."
    )
    explain: PassageScoreExplained | None = None


class PassageHits(ReadSchema):
    items: list[PassageHit] = Field(description="Best first.")
    next_cursor: str | None = Field(
        default=None, description="For the hits after these; null on the last page."
    )
    embedding_models: list[str] = Field(description="What embedded the query.")
    waiting: int = Field(description="Passages whose vectors this search could not compare.")
    searched: int = Field(description="How many passages were looked at.")
    left_out: bool = Field(description="Whether there are older passages, which were not searched.")
    degraded: bool = Field(description="Whether an embedder did not answer, so words decided.")
    mode: Mode = Field(description="What decided in the end.")
