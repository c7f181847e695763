"""Memories as they cross HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    AliasChoices,
    BeforeValidator,
    Field,
    JsonValue,
    StringConstraints,
    model_validator,
)

from app.web.fields import (
    METADATA_BYTES,
    Description,
    Id,
    Kind,
    Metadata,
    Moment,
    Schema,
    Shown,
    Storable,
    example,
    metadata_size,
)
from app.web.pagination import Order, PageQuery

MemoryType = Annotated[
    Literal[
        "preference", "fact", "skill", "habit", "event", "context",
        "constraint", "decision", "goal", "correction", "knowledge", "experience",
    ],
    BeforeValidator(lambda value: "habit" if value == "behavior" else value),
]  # fmt: skip
Tier = Literal["short", "long"]
Scope = Literal["session", "project", "user", "agent"]
Source = Literal["user", "ai", "knowledge_base", "project_resource", "import"]
Visibility = Literal["public", "members", "owner_only"]
Status = Literal["active", "archived", "superseded"]
OnDuplicate = Literal["reject", "return", "supersede", "allow"]
Event = Literal["ADD", "SUPERSEDE", "NONE", "REJECT", "SKIP"]

BATCH = 100
CONTENT_LENGTH = 200_000
"""Far above the gate's limit, so that the gate can say `too_long` and keep its verdict."""

Content = Annotated[str, StringConstraints(max_length=CONTENT_LENGTH), Storable]
Confidence = Annotated[float, Field(ge=0.0, le=1.0)]
ShortText = Annotated[str, StringConstraints(min_length=1, max_length=255), Storable]
Evidence = Annotated[
    list[Id], Field(max_length=100, description="Ids of the messages that support it.")
]


class Aliases(Schema):
    """Names other products use are understood, and contradictions refused (B-03, B-05)."""

    @model_validator(mode="before")
    @classmethod
    def _understand(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        told = dict(value)
        for alias, name in (
            ("run_id", "session_id"),
            ("thread_id", "session_id"),
            ("category", "memory_type"),
        ):
            if alias in told and name in cls.model_fields:
                other = told.pop(alias)
                if told.setdefault(name, other) != other:
                    raise ValueError(f"{alias} and {name} name different things")
        # A tuple: what has no hash is refused with a sentence later.
        if told.get("memory_type") in ("short", "long") and "tier" in cls.model_fields:
            tier = told.pop("memory_type")
            if told.setdefault("tier", tier) != tier:
                raise ValueError("memory_type and tier name different things")
        return told


class SaidMessage(Schema):
    """One message whose text is to be remembered."""

    role: Literal["user", "assistant", "system", "tool"] = "user"
    content: Content
    name: ShortText | None = None
    metadata: Metadata = Field(default={}, description="Added to the metadata of the request.")


class MemoryCreate(Aliases):
    model_config = example(
        messages="She drinks green tea in the morning.", user_id="ana", infer=False
    )

    messages: (
        Content | SaidMessage | Annotated[list[SaidMessage], Field(min_length=1, max_length=BATCH)]
    ) = Field(
        description="A text, one message, or up to 100 of them.",
        examples=["She drinks green tea in the morning."],
    )
    user_id: Id | None = None
    agent_id: Id | None = Field(
        default=None, description="Private to this agent; every agent of the user when left out."
    )
    session_id: Id | None = Field(default=None, description="Alias: run_id, thread_id.")
    project_id: Id | None = None
    scope: Scope | None = Field(
        default=None,
        description="For whom it counts; `session` for tier short with a session, else `user`.",
    )
    memory_type: MemoryType = "fact"
    tier: Tier = "long"
    confidence: Confidence = 1.0
    source: Source = "user"
    source_id: Id | None = None
    source_error: (
        Annotated[Content, Field(description="The mistake that a correction mends.")] | None
    ) = None
    evidence: Evidence = []
    visibility: Visibility = "members"
    metadata: Metadata = {}
    external_id: ShortText | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires_at: Moment | None = None
    infer: bool = Field(
        default=True, description="False stores the text as given; true needs the write pipeline."
    )
    on_duplicate: OnDuplicate = "reject"

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.source_error is not None and self.memory_type != "correction":
            raise ValueError("source_error goes with memory_type correction only")
        said = self.messages if isinstance(self.messages, list) else [self.messages]
        for one in said:
            if (
                isinstance(one, SaidMessage)
                and metadata_size(self.metadata | one.metadata) > METADATA_BYTES
            ):
                raise ValueError("metadata of the request and of a message together are too large")
        if self.valid_from and self.valid_to and self.valid_from >= self.valid_to:
            raise ValueError("valid_from must lie before valid_to")
        return self


class MemoryPatch(Aliases):
    model_config = example(content="She drinks black tea in the morning.", reason="She said so.")

    content: Content | None = None
    memory_type: MemoryType | None = None
    tier: Tier | None = None
    confidence: Confidence | None = None
    source_error: Content | None = None
    evidence: Evidence | None = None
    visibility: Visibility | None = None
    status: Literal["active", "archived"] | None = None
    metadata: Metadata | None = None
    external_id: ShortText | None = None
    valid_from: Moment | None = None
    valid_to: Moment | None = None
    expires_at: Moment | None = None
    reason: Description | None = Field(default=None, description="Kept in the history.")


class MemorySupersede(Aliases):
    model_config = example(content="She drinks black tea now.")

    content: Content
    memory_type: MemoryType | None = None
    confidence: Confidence = 1.0
    source_error: Content | None = None
    evidence: Evidence = []
    metadata: Metadata | None = None
    reason: Description | None = Field(default=None, description="Kept in the history.")


class MemoryRead(Shown):
    memory_id: str
    content: str
    memory_type: MemoryType
    tier: Tier
    scope: Scope
    scope_id: str
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None
    source: Source
    source_id: str | None
    source_error: str | None
    evidence: list[str]
    confidence: float
    visibility: Visibility
    status: Status
    superseded_by: str | None
    valid_from: Moment | None
    valid_to: Moment | None
    expires_at: Moment | None
    external_id: str | None
    metadata: dict[str, Any] = Field(
        validation_alias=AliasChoices("metadata_", "metadata"),
    )
    embedding_model: str
    creator: str | None
    use_count: int
    last_used_at: Moment | None
    version: int
    create_time: Moment
    update_time: Moment


class Reason(Shown):
    """One rule that was broken."""

    code: str = Field(examples=["too_short"])
    detail: str
    figures: dict[str, JsonValue] = {}


class Outcome(Shown):
    """What became of one statement."""

    index: int = Field(description="Which message of the request.")
    event: Event
    memory_id: str | None = None
    memory: MemoryRead | None = None
    previous: str | None = Field(default=None, description="The text it replaced.")
    similarity: float | None = Field(default=None, description="To the nearest duplicate.")
    reasons: list[Reason] = []
    decision_id: str | None = Field(default=None, description="The gate's verdict.")


class MemoryAdded(Shown):
    results: list[Outcome] = Field(description="One per message, in order.")


class MemoryValidated(Shown):
    valid: bool = Field(description="Whether every statement would be stored.")
    results: list[Outcome]


class HistoryRead(Shown):
    history_id: str
    memory_id: str
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "ARCHIVE", "RESTORE", "DELETE"]
    reason: str | None
    actor: str | None = Field(description="Id of the key that did it.")
    before: dict[str, Any] | None
    after: dict[str, Any] | None
    version: int
    create_time: Moment


class DecisionRead(Shown):
    decision_id: str
    verdict: Literal["accepted", "rejected"]
    codes: list[str]
    reasons: list[Reason]
    content: str | None = Field(description="Null when it was sensitive.")
    scope: Scope
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None
    memory_id: str | None
    source: Source
    actor: str | None
    create_time: Moment


class DecisionQuery(PageQuery):
    user_id: Id | None = None
    verdict: Literal["accepted", "rejected"] | None = None
    code: Kind | None = None


class Selection(PageQuery):
    """What every list of memories can be narrowed by."""

    user_id: Id | None = None
    agent_id: Id | None = None
    session_id: Id | None = None
    project_id: Id | None = None
    scope: Scope | None = None
    memory_type: MemoryType | None = None
    tier: Tier | None = None
    source: Source | None = None
    external_id: ShortText | None = None


class MemoryQuery(Selection):
    status: Status = "active"
    order: Order = "desc"
    filters: Annotated[str, StringConstraints(max_length=8000), Storable] | None = Field(
        default=None, description="The filter object of a search, as JSON."
    )


class StatsQuery(Schema):
    user_id: Id | None = None
    agent_id: Id | None = None
    project_id: Id | None = None


class MemoryStats(Shown):
    total: int = Field(description="Active memories.")
    by_status: dict[str, int]
    by_memory_type: dict[str, int] = Field(description="Active ones.")
    by_scope: dict[str, int] = Field(description="Active ones.")
    by_tier: dict[str, int] = Field(description="Active ones.")
    by_source: dict[str, int] = Field(description="Active ones.")
    by_embedding_model: dict[str, int] = Field(description="Active ones.")
    decisions: dict[str, int] = Field(description="Verdicts of the gate: accepted, and by code.")
    last_saved: Moment | None


class DeleteQuery(Schema):
    hard: bool = Field(default=False, description="Purge at once instead of after some days.")


class BulkDeleteQuery(Schema):
    user_id: Id | None = None
    agent_id: Id | None = None
    session_id: Id | None = None
    project_id: Id | None = None
    scope: Scope | None = None
    memory_type: MemoryType | None = None
    hard: bool = False
    confirm: bool = Field(default=False, description="Required, unless it is a dry run.")
    dry_run: bool = Field(default=False, description="Only count.")


class BulkDelete(BulkDeleteQuery):
    model_config = example(user_id="ana", filters={"memory_type": "event"}, dry_run=True)

    filters: dict[str, JsonValue] | None = Field(
        default=None, description="As in a search.", examples=[{"memory_type": "event"}]
    )
    reason: Description | None = None


class MemoriesDeleted(Shown):
    deleted: int = Field(description="Memories deleted, or that would be.")
    dry_run: bool


class SearchRequest(Aliases):
    model_config = example(query="What does she drink?", user_id="ana", limit=5)

    query: Annotated[str, StringConstraints(min_length=1, max_length=10_000), Storable] = Field(
        examples=["What does she drink?"]
    )
    user_id: Id | None = None
    agent_id: Id | None = None
    session_id: Id | None = Field(default=None, description="Alias: run_id, thread_id.")
    project_id: Id | None = None
    scopes: list[Scope] | None = Field(
        default=None, min_length=1, max_length=4, description="Only these; all named when left out."
    )
    memory_type: MemoryType | None = None
    tier: Tier | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        default=None, description="Leave out what is less similar; inclusive."
    )
    filters: dict[str, JsonValue] | None = Field(
        default=None,
        examples=[{"AND": [{"confidence": {"gte": 0.8}}, {"metadata.topic": "tea"}]}],
    )
    rerank: bool = Field(
        default=True, description="Order by score; false orders by similarity alone."
    )
    explain: bool = False
    format: Literal["json", "text"] = Field(
        default="json", description="text: the hits as lines for a prompt too, escaped."
    )


class ScoreExplained(Shown):
    """What each part contributed, its weight applied."""

    similarity: float
    confidence: float
    scope: float


class Hit(MemoryRead):
    score: float = Field(description="0 to 1: what the hits are ordered by.")
    similarity: float = Field(description="Cosine of query and memory, 0 to 1.")
    explain: ScoreExplained | None = None


class SearchAnswer(Shown):
    results: list[Hit] = Field(description="Best first.")
    embedding_models: list[str] = Field(description="What embedded the query.")
    waiting: int = Field(
        description="Memories of other models that this search could not compare; see "
        "`kemem reembed`."
    )
    degraded: bool = Field(description="Whether an embedder did not answer.")
    prompt: str | None = Field(
        default=None, description="With format text: one line per hit, under a header."
    )
