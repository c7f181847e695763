"""Lists, searches, history, counts and bulk deletes of memories as they cross HTTP."""

from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    JsonValue,
    StrictBool,
    StringConstraints,
    ValidationInfo,
    field_validator,
    model_validator,
)

from app.language.ranking.boosts import BoostWeights, Mode, Query
from app.memory.memories.schemas import (
    Aliases,
    MemoryRead,
    MemoryType,
    OldExtractionId,
    Reason,
    Scope,
    ShortText,
    Source,
    Status,
    Tier,
    Visibility,
)
from app.platform.values.fields import (
    ZONED,
    Description,
    Id,
    Kind,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import ContentQuery, CursorText, MaxTokens, Order, PageQuery

RunId = Annotated[
    OwnId,
    Field(
        description="Only what came from this session: what was saved with its id, or extracted "
        "from its messages, whatever its scope. Nothing when there is no such session.",
        examples=["chat-1"],
    ),
]


class Selection(ContentQuery):
    """What every list of memories can be narrowed by."""

    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    session_id: OwnId | None = Field(default=None, description="As `run_id`.")
    run_id: RunId | None = None
    project_id: OwnId | None = None
    scope: Scope | None = None
    memory_type: MemoryType | None = None
    tier: Tier | None = None
    source: Source | None = None
    external_id: ShortText | None = None


AsOf = Annotated[
    Timestamp,
    Field(
        description="What was true at this time, by what is known now: `valid_from` had come, "
        "`valid_to` and `expires_at` had not. What was superseded since is among it; what was "
        "archived or deleted is not. It may lie ahead. Left out: `known_at`, else now. " + ZONED
    ),
]


KnownAt = Annotated[
    Timestamp,
    Field(
        description="By the records of this time: what was stored then, as it read then, and "
        "nothing that came later. Deleted memories never come back, and who may see what is as "
        "it is now. " + ZONED
    ),
]


class MemoryQuery(Selection):
    status: Status = Field(
        default="active", description="`active`: what counts, now or at the requested time."
    )
    order: Order = "desc"
    as_of: AsOf | None = None
    known_at: KnownAt | None = None
    in_conflict: bool | None = Field(
        default=None,
        description="True: only memories that another one may contradict, see `conflicts_with`; "
        "false: only others. It asks for what counts now, without `status` and times.",
    )
    filters: Annotated[str, StringConstraints(max_length=8000), Storable] | None = Field(
        default=None, description="The filter object of a search, as JSON."
    )

    @model_validator(mode="after")
    def _agree(self) -> Self:
        if self.as_of is not None and self.status != "active":
            raise ValueError("as_of asks for what was true: leave status out")
        if self.in_conflict is not None and (
            self.status != "active" or self.as_of is not None or self.known_at is not None
        ):
            raise ValueError("in_conflict asks for now: leave status, as_of and known_at out")
        return self


class SearchRequest(Aliases):
    model_config = example(query="What does she drink?", user_id="ana", limit=5)

    query: Annotated[Query, Storable] = Field(examples=["What does she drink?"])
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    session_id: OwnId | None = Field(
        default=None,
        description="The conversation that asks: what counts in it alone is found too, and ranks "
        "highest. It leaves nothing out. Alias: thread_id.",
    )
    run_id: RunId | None = Field(
        default=None,
        description="Only what came from this session, whatever its scope. Without `user_id` "
        "the session's user is searched.",
    )
    project_id: OwnId | None = None
    scopes: list[Scope] | None = Field(
        default=None, min_length=1, max_length=4, description="Only these; all named when left out."
    )
    memory_type: MemoryType | None = None
    tier: Tier | None = None
    as_of: AsOf | None = None
    known_at: KnownAt | None = None
    limit: Annotated[int, Field(ge=1, le=100)] = 100
    cursor: CursorText | None = Field(
        default=None,
        description="`next_cursor` of the page before, with all else of the request unchanged.",
    )
    max_tokens: MaxTokens | None = None
    mode: Mode = Field(
        default="hybrid",
        description="`hybrid`: words, vectors and context. `semantic`: vectors alone. "
        "`lexical`: words alone, and nothing that has none of them.",
    )
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Leave out what has a lower `similarity`, in lexical mode a lower "
        "`lexical` score; inclusive.",
    )
    reference_time: Timestamp | None = Field(
        default=None,
        description="When the query is asked, for `yesterday` and the like; now when left out.",
    )
    boosts: BoostWeights | None = None
    graph: bool | None = Field(
        default=None,
        description="True: entities that the query names bring the memories that speak of them, "
        "and of what is one relation away. Hybrid mode only. Left out: as the deployment's weight "
        "`graph` says, which is 0.",
    )
    filters: dict[str, JsonValue] | None = Field(
        default=None,
        examples=[{"AND": [{"confidence": {"gte": 0.8}}, {"metadata.topic": "tea"}]}],
    )
    rerank: bool = Field(
        default=True,
        description="Order by score, and by the reranker when there is one; false orders by "
        "similarity alone, in lexical mode by the lexical score.",
    )
    explain: bool = False
    preview: StrictBool = Field(
        default=False,
        description="For a look at what is found: its hits do not count as used.",
    )
    format: Literal["json", "text"] = Field(
        default="json", description="text: the hits as lines for a prompt too, escaped."
    )


class ScoreExplained(ReadSchema):
    """How a hit came to its place. The first three are shares of `score`, weights applied."""

    relevance: float
    confidence: float
    scope: float
    cosine: float | None = Field(description="Of query and memory, 0 to 1; null in lexical mode.")
    lexical: float | None = Field(
        description="How well its words fit, 0 to 1; null in semantic mode."
    )
    fused: float = Field(description="Words, vectors and context together, 0 to 1.")
    boosts: dict[str, float] = Field(
        description="What each signal added, in hybrid mode, before the sum was scaled to 0 to 1."
    )
    rerank: float | None = Field(description="The reranker's score, 0 to 1, where it was asked.")
    path: str | None = Field(
        default=None,
        description="How it is related to what the query names, if the graph was asked.",
    )


class Hit(MemoryRead):
    score: float = Field(
        description="0 to 1: what the hits are ordered by, unless a reranker ordered them, whose "
        "score is in `explain`. Of hits in conflict the newer comes first."
    )
    similarity: float | None = Field(
        description="Cosine of query and memory, 0 to 1; null in lexical mode, for which "
        "nothing is embedded."
    )
    relevance: float = Field(
        description="0 to 1: the cosine in semantic mode, the lexical score in lexical mode, and "
        "in hybrid mode both with what the context adds, relative to the rest of this search."
    )
    explain: ScoreExplained | None = None
    annotations: dict[str, JsonValue] | None = Field(
        default=None, description="What processors noted on this hit; stored nowhere."
    )


class SearchAnswer(ReadSchema):
    results: list[Hit] = Field(description="Best first.")
    next_cursor: str | None = Field(
        description="For the hits after these; null on the last page. A page is ranked anew."
    )
    embedding_models: list[str] = Field(description="What embedded the query.")
    waiting: int = Field(
        description="Memories of other models that this search could not compare; see "
        "`kemem reembed`."
    )
    degraded: bool = Field(
        description="Whether an embedder or the reranker did not answer, so that others decided."
    )
    mode: Mode
    reranker: str | None = Field(description="What reordered the hits, if anything did.")
    prompt: str | None = Field(
        default=None, description="With format text: one line per hit, under a header."
    )


class HistoryRead(ReadSchema):
    history_id: str
    memory_id: str
    event: Literal["ADD", "UPDATE", "SUPERSEDE", "MERGE", "ARCHIVE", "RESTORE", "DELETE"]
    reason: str | None
    actor: str | None = Field(description="Id of the key that did it.")
    job_id: str | None = Field(description="The job that did it, when it was one.")
    before: dict[str, Any] | None = Field(
        description="Null for what was `owner_only` then, unless it was yours; so is `after`."
    )
    after: dict[str, Any] | None
    version: int
    create_time: Timestamp


class DecisionRead(ReadSchema):
    decision_id: str
    verdict: Literal["accepted", "rejected"]
    codes: list[str]
    reasons: list[Reason]
    content: str | None = Field(
        description="Null when it was sensitive. Of a longer text the first 2,000 characters and "
        "an ellipsis."
    )
    scope: Scope
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    project_id: str | None
    memory_id: str | None
    source: Source
    event: str | None = Field(
        description="What became of it, such as ADD or REJECT; STORED where a refused text was "
        "stored by hand."
    )
    storable: bool = Field(description="Whether a refused text can be stored after all.")
    evidence: list[str] = Field(description="Ids of the messages that support it.")
    job_id: str | None
    extraction_id: str | None = Field(description="The run that proposed it, if one did.")
    run_id: OldExtractionId
    actor: str | None
    create_time: Timestamp


class RefusedStore(Schema):
    model_config = example(memory_type="preference")

    memory_type: MemoryType = "fact"


class RefusedStored(ReadSchema):
    decision_id: str
    memory: MemoryRead


class DecisionQuery(PageQuery):
    user_id: OwnId | None = None
    memory_id: Id | None = Field(default=None, description="Only verdicts on this memory.")
    verdict: Literal["accepted", "rejected"] | None = None
    code: Kind | None = None
    since: Timestamp | None = Field(default=None, description="Only verdicts from then on.")
    until: Timestamp | None = Field(default=None, description="Only verdicts before then.")
    job_id: Id | None = None
    # Before the name that it gives its value to.
    run_id: Id | None = Field(
        default=None, description="Deprecated: use `extraction_id`.", deprecated=True
    )
    extraction_id: Id | None = Field(
        default=None, description="Only verdicts of this run.", validate_default=True
    )

    @field_validator("extraction_id")
    @classmethod
    def _understand(cls, value: str | None, info: ValidationInfo) -> str | None:
        former = info.data.get("run_id")
        if former is not None and value not in {None, former}:
            raise ValueError("run_id and extraction_id name different runs")
        return value or former


class StatsQuery(Schema):
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    run_id: RunId | None = None
    project_id: OwnId | None = None


class MemoryStats(ReadSchema):
    total: int = Field(description="Active memories.")
    by_status: dict[str, int]
    by_memory_type: dict[str, int] = Field(description="Active ones.")
    by_scope: dict[str, int] = Field(description="Active ones.")
    by_tier: dict[str, int] = Field(description="Active ones.")
    by_source: dict[str, int] = Field(description="Active ones.")
    by_embedding_model: dict[str, int] = Field(description="Active ones.")
    decisions: dict[str, int] = Field(description="Verdicts of the gate: accepted, and by code.")
    last_saved: Timestamp | None


class ProjectItemQuery(PageQuery):
    user_id: OwnId | None = Field(default=None, description="Only those of this author.")
    visibility: Visibility | None = None


class ProjectItemRead(ReadSchema):
    """What owners and admins see of every item, whatever its visibility: never what it says."""

    memory_id: str
    user_id: str | None = Field(description="The author.")
    visibility: Visibility
    status: Status
    create_time: Timestamp
    update_time: Timestamp


class MemoryDeleteQuery(Schema):
    hard: bool = Field(default=False, description="Purge at once instead of after some days.")


class BulkDeleteQuery(Schema):
    user_id: OwnId | None = None
    agent_id: OwnId | None = None
    session_id: OwnId | None = Field(default=None, description="As `run_id`.")
    run_id: RunId | None = None
    project_id: OwnId | None = None
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


class MemoriesDeleted(ReadSchema):
    deleted: int = Field(description="Memories deleted, or that would be.")
    dry_run: bool


class DeletionScheduled(ReadSchema):
    """More than one transaction should hold: a job deletes them."""

    selected: int = Field(description="Memories that were selected.")
    job_id: str = Field(description="`GET /v1/jobs/{job_id}` says how far it is.")
