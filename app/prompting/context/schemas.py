"""A request for a context, and what goes to the model, as they cross HTTP."""

from typing import Annotated, Any, Literal

from pydantic import ConfigDict, Field, JsonValue, StrictBool, StringConstraints

from app.conversation.messages.schemas import (
    CONTENT_LENGTH,
    LeftOutRange,
    PressureRead,
    SaidMessages,
    WindowStrategy,
)
from app.language.ranking.boosts import Query
from app.memory.memories.schemas import MemoryType, Scope, Tier
from app.memory.memories.search_schemas import AsOf, ScoreExplained
from app.platform.values.fields import (
    Document,
    Id,
    Kind,
    OwnId,
    ReadSchema,
    Schema,
    Storable,
    Timestamp,
    example,
)
from app.platform.values.pagination import PageQuery

LEAST_MEMORY_TOKENS = 100
MOST_MEMORY_TOKENS = 8000
MOST_MESSAGES = 1000

Render = Literal["openai", "anthropic", "plain", "parts"]
PartName = Literal[
    "instructions", "profile", "blocks", "summary", "corrections", "memories", "passages",
    "excerpts", "left_out", "window",
]  # fmt: skip
LeftOut = Literal["budget", "limit", "injection_off", "excluded"]


class Include(Schema):
    """Which parts are wanted."""

    # What can be changed would be copied for each request that leaves it out.
    model_config = ConfigDict(frozen=True)

    profile: bool = True
    blocks: bool = True
    summary: bool = True
    corrections: bool = True
    memories: bool = True
    excerpts: bool = True
    window: bool = True


class MemoryFilter(Schema):
    """Which memories the context may show; fields that are left out do not restrict it."""

    model_config = ConfigDict(frozen=True)

    scopes: list[Scope] | None = Field(default=None, min_length=1, max_length=4)
    memory_types: list[MemoryType] | None = Field(default=None, min_length=1, max_length=12)
    tier: Tier | None = None
    threshold: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Leave out what has a lower `similarity` to the query; corrections stay.",
    )
    filters: dict[str, JsonValue] | None = Field(
        default=None, description="As in a search of memories."
    )


class PassageFilter(Schema):
    """Which passages of documents the context may show."""

    limit: Annotated[int, Field(ge=1, le=50)] = 5
    folder_ids: Annotated[list[Id], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Only of these, of the folders that the session has."
    )
    min_similarity: Annotated[float, Field(ge=0.0, le=1.0)] | None = Field(
        default=None,
        description="Leave out what is less similar to the query; what has no vector to compare "
        "stays, as when no embedder answers.",
    )


class ExcerptFilter(Schema):
    """Which pieces of earlier messages the context may show, and how many."""

    model_config = ConfigDict(frozen=True)

    limit: Annotated[int, Field(ge=1, le=100)] = Field(
        default=100, description="Of at most so many messages."
    )
    tokens: Annotated[int, Field(ge=1, le=MOST_MEMORY_TOKENS)] | None = Field(
        default=None,
        description="At most so many tokens of `max_memory_tokens`; when left out, half of it or, "
        "if that is more, what profile, corrections, memories and passages leave.",
    )
    roles: list[Literal["user", "assistant", "tool"]] = Field(
        default=["user", "assistant"],
        min_length=1,
        max_length=3,
        description="Who said it; `tool` for results of tools. A reply is shown with what the user "
        "had asked in any case.",
    )
    since: Timestamp | None = Field(
        default=None, description="Said from then on: `metadata.client_time`, else `create_time`."
    )
    until: Timestamp | None = Field(default=None, description="Said before then.")
    sessions: Annotated[list[OwnId], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Only of these; of all of the user with this agent if left out."
    )


class ClearToolResults(Schema):
    """Which results of tools need not be shown any more."""

    keep: Annotated[int, Field(ge=0, le=1000)] = Field(
        default=3, description="So many of the newest stay."
    )
    exempt: list[Kind] = Field(
        default=[], max_length=100, description="Names of tools whose results stay."
    )
    above_tokens: Annotated[int, Field(ge=0, le=10_000_000)] | None = Field(
        default=None, description="Only where the messages take more than this."
    )


class ContextRequest(Schema):
    model_config = example(query="What should we cook tonight?", render="openai")

    query: Annotated[Query, Storable] | None = Field(
        default=None,
        description="What the memories should be about; what the user said last when left out.",
    )
    messages: SaidMessages | None = Field(
        default=None,
        max_length=MOST_MESSAGES,
        description="The conversation, instead of what the session has stored; nothing of it is "
        "kept.",
    )
    max_memory_tokens: (
        Annotated[int, Field(ge=LEAST_MEMORY_TOKENS, le=MOST_MEMORY_TOKENS)] | None
    ) = Field(
        default=None,
        description="For profile, corrections, memories, passages and excerpts together; "
        "`MEMORY_MAX_INJECTION_TOKENS` when left out.",
    )
    window_tokens: Annotated[int, Field(ge=100, le=10_000_000)] | None = Field(
        default=None,
        description="For instructions, tools, blocks, summary and messages together; "
        "`budget_tokens` of the window policy when left out.",
    )
    system_prompt: Annotated[str, StringConstraints(max_length=CONTENT_LENGTH), Storable] | None = (
        Field(
            default=None,
            description="Instructions, which come first; `config.system_prompt` of the agent when "
            "left out. `{{ name }}` and `{{ a.b }}` are replaced by what `context`, the working "
            "state or the session's `context` has under that name, the first that has it, escaped; "
            "an unknown name is refused.",
            examples=["You help {{ company }}."],
        )
    )
    system_prompt_mode: Literal["replace", "extend"] = Field(
        default="replace",
        description="`replace`: `system_prompt` stands instead of the agent's, also when it is "
        "empty. `extend`: it follows the agent's.",
    )
    tools: list[dict[str, JsonValue]] | None = Field(
        default=None,
        max_length=1000,
        description="Definitions of the tools that go to the model with this context, in any "
        "provider's form: counted, not shown and not kept.",
    )
    tools_tokens: Annotated[int, Field(ge=0, le=10_000_000)] | None = Field(
        default=None, description="Instead of `tools`: how many tokens they take."
    )
    context: Document = Field(
        default={}, description="Of this run alone: values for the system prompt; never stored."
    )
    render: Render = Field(
        default="openai",
        description="`openai`: the system section as the first message. `anthropic`: `prompt` is "
        "`system`, roles alternate. `plain`: one text in `prompt`. `parts`: messages as they are "
        "stored, and the text of every part.",
    )
    strategy: WindowStrategy = Field(
        default=WindowStrategy(), description="Which messages are chosen from the window."
    )
    clear_tool_results: ClearToolResults | None = Field(
        default=None,
        description="For this call, replace older results of tools by a short line, so "
        "that more of the conversation fits. All of them stay stored.",
    )
    include: Include = Include()
    memories: MemoryFilter = MemoryFilter()
    passages: PassageFilter | None = Field(
        default=None,
        description="Passages of documents too, of the folders of the session's agent, user and "
        "project; none when left out. Of what excerpts leave of the budget 0.3 is theirs first.",
    )
    excerpts: ExcerptFilter = Field(
        default=ExcerptFilter(),
        description="Pieces of what was said before, in this user's other sessions with the agent "
        "and in what the window of this one does not show, chosen for the query; without a query "
        "there are none.",
    )
    as_of: AsOf | None = None
    reference_time: Timestamp | None = Field(
        default=None,
        description="When the query is asked, for `yesterday` and the like; now when left out.",
    )
    rerank: bool = Field(default=True, description="Let the reranker order, when there is one.")
    explain: bool = False
    preview: StrictBool = Field(
        default=False,
        description="For a look at what a model would see: nothing is recorded of it, so that what "
        "it shows does not count as shown.",
    )


class Part(ReadSchema):
    """A part of the context; parts are listed in their order in it."""

    name: PartName
    tokens: int
    budget: int | None = Field(
        description="The most it could take, what others left unused included; null: always whole."
    )
    shown: int = Field(description="Items in it: memories, blocks, summaries, messages.")
    dropped: int = Field(
        description="Items that were found and are not in it, nor in the profile in its place."
    )
    reason: LeftOut | None = Field(description="Why some are not in it, or all.")
    text: str | None = Field(default=None, description="With render parts alone.")


class UsedMemory(ReadSchema):
    """A memory in the context, and why it is there."""

    memory_id: str
    part: Literal["profile", "corrections", "memories"] = Field(
        description="`profile`: a value of the profile says it word for word, so that no line of "
        "its own does."
    )
    memory_type: MemoryType
    scope: Scope
    score: float = Field(description="As in a search; without a query, its confidence.")
    similarity: float | None = Field(description="To the query, 0 to 1; null without one.")
    validity: Literal["current", "upcoming", "ended"] = Field(
        description="`upcoming`: it begins later. `ended`: it held until less than 30 days ago. "
        "Its line says the day. With `as_of`, what held then is `current`."
    )
    tokens: int = Field(description="Of its line; 0 where the profile says it.")
    version: int
    explain: ScoreExplained | None = Field(default=None, description="With `explain` alone.")


class UsedPassage(ReadSchema):
    """A passage in the context, and where it is from."""

    passage_id: str
    folder_id: str
    file_id: str | None
    file_name: str | None
    page: int | None = Field(description="From 1; null without pages.")
    score: float = Field(description="As in a search of passages.")
    similarity: float | None = Field(description="To the query, 0 to 1, where it was compared.")
    tokens: int


class UsedExcerpt(ReadSchema):
    """A message of which pieces are in the context, and why."""

    message_id: str
    session_id: str
    role: Literal["user", "assistant", "tool"]
    sequence_no: int
    said_at: Timestamp = Field(
        description="`metadata.client_time` where that is an ISO 8601 time, else `create_time`."
    )
    pieces: list[int] = Field(description="Which of its pieces are shown, in order, from 0.")
    of_pieces: int = Field(description="How many pieces the message has.")
    score: float = Field(description="0 to 1: of its best piece, by which it was chosen.")
    similarity: float | None = Field(
        description="Of that piece to the query, 0 to 1, where it was compared."
    )
    tokens: int = Field(description="Of its line.")
    explain: dict[str, float] | None = Field(
        default=None, description="What each signal added for that piece, with `explain` alone."
    )


class ExcerptSource(ReadSchema):
    """What excerpts were looked for in."""

    searched: int = Field(description="Messages looked at: the newest 20,000 at most.")
    left_out: bool = Field(description="Whether there are older ones, which were not looked at.")


class ShortenedMessage(ReadSchema):
    """A message that is not shown whole; its text says where the rest is."""

    message_id: str | None
    sequence_no: int = Field(description="Its number; in the request, if that brought it.")
    form: Literal["cut", "cleared"] = Field(
        description="`cut`: its beginning and its end, with a line in between. `cleared`: a line "
        "in place of all of it."
    )
    tokens: int
    whole_tokens: int


class ShownWindow(ReadSchema):
    """Which messages are shown."""

    messages: int
    tokens: int
    from_sequence_no: int | None
    to_sequence_no: int | None
    left_out: int = Field(description="Messages of the window that are not shown; all are stored.")
    left_out_ranges: list[LeftOutRange] = Field(
        description="Which ones, by their numbers, in order; the part `left_out` names them to the "
        "model. Those that a summary covers are not among them."
    )
    fits: bool = Field(
        description="Always true: where not even the shortest form of what must be shown fits, the "
        "answer is 422 `window_too_small`."
    )
    waiting: list[str] = Field(description="Ids of calls shown that have no result.")
    cleared: int = Field(
        description="Results of tools in whose place a line is shown: older ones with "
        "`clear_tool_results`, and those that did not fit."
    )
    shortened: list[ShortenedMessage] = Field(description="Messages that are not shown whole.")


class InjectionState(ReadSchema):
    """Whether what is remembered goes into this context: profile, corrections and memories."""

    enabled: bool
    off_by: Literal["deployment", "agent", "session"] | None


class AskedQuery(ReadSchema):
    source: Literal["request", "last_user_message", "none"] = Field(
        description="Where it came from; with none, memories are in order of their confidence."
    )
    embedding_models: list[str] = Field(description="What embedded it.")
    degraded: bool = Field(
        description="Whether an embedder or the reranker did not answer, so that others decided."
    )
    reranker: str | None


class ContextAnswer(ReadSchema):
    session_id: str
    render: Render
    prompt: str = Field(
        description="The system section: instructions, then profile, blocks, summary, "
        "corrections, memories, passages and excerpts, escaped and marked as data; of plain, the "
        "conversation too."
    )
    messages: list[dict[str, Any]] = Field(description="As `render` says.")
    summary: str | None = Field(
        description="Summary of the messages that left the window; it is in `prompt` as well."
    )
    parts: list[Part]
    used: list[UsedMemory] = Field(description="Which memories are in it, in order.")
    used_passages: list[UsedPassage] = Field(description="Which passages are in it, in order.")
    used_excerpts: list[UsedExcerpt] = Field(
        description="Of which messages pieces are in it, in order."
    )
    excerpt_source: ExcerptSource | None = Field(
        description="Null where none were looked for: excluded, switched off, or without a query."
    )
    window: ShownWindow
    starts_with_user: bool = Field(
        description="Whether the user is the first to speak, as most providers want it."
    )
    pressure: PressureRead
    tokens: int = Field(description="Of all parts together.")
    memory_tokens: int = Field(
        description="Of profile, corrections, memories, passages and excerpts."
    )
    counter: str = Field(description="What counted the tokens.")
    content_sha256: str = Field(
        description="Of `prompt` and `messages`: SHA-256, in hexadecimal, of the JSON object "
        "with these two keys, keys sorted, without spaces, non-ASCII letters as they are, in "
        "UTF-8. The same content has the same hash."
    )
    query: AskedQuery
    injection: InjectionState


class InjectionQuery(PageQuery):
    content_sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] | None = Field(
        default=None, description="Only the content with this hash."
    )


class InjectedContextRead(ReadSchema):
    """A content that contexts of a session had; only ids and counts are kept of it."""

    content_sha256: str = Field(description="As in the answer of the context.")
    memory_ids: list[str] = Field(description="Of the memories in it, in order.")
    passage_ids: list[str] = Field(description="Of the passages in it, in order.")
    message_ids: list[str] = Field(
        description="Of the messages of which it had excerpts, in order."
    )
    tokens: int = Field(description="Of all of it.")
    memory_tokens: int = Field(
        description="Of profile, corrections, memories, passages and excerpts."
    )
    first_at: Timestamp = Field(description="When a context had it first.")
    last_at: Timestamp = Field(description="When a context had it last.")
