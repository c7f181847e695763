"""Further keyword parameters of methods; `/docs` of the service describes each one."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict

MessageInput: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text, one message, or several; a message has `role` and `content`."""

Filters: TypeAlias = Mapping[str, Any]
"""Fields or `metadata.<key>` with eq, ne, in, nin, gt, gte, lt, lte, contains, exists; AND, OR,
NOT combine them. Values may be datetimes with a zone."""

Tier = Literal["short", "long"]
Scope = Literal["session", "project", "user", "agent"]
Rating = Literal["helpful", "wrong", "outdated"]
Role = Literal["user", "assistant", "system", "tool"]
Order = Literal["asc", "desc"]
Status = Literal["active", "archived", "superseded"]
Render = Literal["openai", "anthropic", "plain", "parts"]
ToolFormat = Literal["openai", "anthropic"]
Decision = Literal["approved", "rejected", "modified", "timeout"]
ApprovalStatus = Literal["pending", "approved", "rejected", "modified", "timeout"]
ProjectRole = Literal["owner", "admin", "editor", "viewer"]
Visibility = Literal["public", "members", "owner_only"]
OwnerScope = Literal["user", "project", "agent"]
OnSameName = Literal["suffix", "skip", "reject", "replace"]
OnConflict = Literal["fail", "skip"]
ErasureKind = Literal["agent", "user", "project", "session"]
Eviction = Literal["confidence", "hybrid"]
ForgettingStep = Literal[
    "expired", "source_deleted", "session_deleted", "superseded", "over_capacity", "decayed",
    "purged", "messages", "archived_checkpoints", "snapshots", "saver_checkpoints",
]  # fmt: skip


class AddOptions(TypedDict, total=False):
    """Further parameters of `add`."""

    scope: Scope | None
    project_id: str | None
    attribute: str | None
    tier: Tier | None
    confidence: float | None
    source: Literal["user", "ai", "knowledge_base", "project_resource", "import"] | None
    source_id: str | None
    source_error: str | None
    evidence: Sequence[str] | None
    visibility: Visibility | None
    external_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    on_duplicate: Literal["reject", "return", "supersede", "allow"] | None


class SearchOptions(TypedDict, total=False):
    """Further parameters of `search`.

    `scopes`, `memory_type` and `tier` exclude all others; `as_of` finds what was true at a time,
    `known_at` what was known at a time; `mode` defaults to hybrid; `reference_time` is the time of
    the query, default now; `boosts` weighs context signals by name, 0 turns one off; `explain`
    fills `explain` of each hit; `graph` also finds memories about entities that the query names;
    `cursor` is the `next_cursor` of the previous page, with all other parameters unchanged;
    `max_tokens` ends a page before the contents of its hits take more; hits of a `preview` do not
    count as used.
    """

    project_id: str | None
    scopes: Sequence[Scope] | None
    memory_type: str | None
    tier: Tier | None
    as_of: datetime | None
    known_at: datetime | None
    mode: Literal["hybrid", "semantic", "lexical"] | None
    reference_time: datetime | None
    boosts: Mapping[str, float] | None
    explain: bool
    preview: bool
    graph: bool | None
    cursor: str | None
    max_tokens: int | None


class MessageSearchOptions(TypedDict, total=False):
    """Further parameters of `search_messages`.

    `roles` defaults to user and assistant; `since` and `until` are when it was said; `cursor` is
    the `next_cursor` of the previous page, with all other parameters unchanged.
    """

    roles: Sequence[Literal["user", "assistant", "system"]] | None
    since: datetime | None
    until: datetime | None
    mode: Literal["hybrid", "semantic", "lexical"] | None
    reference_time: datetime | None
    boosts: Mapping[str, float] | None
    cursor: str | None
    max_tokens: int | None
    explain: bool


class ListOptions(TypedDict, total=False):
    """Further parameters of `get_all` and `iterate`."""

    project_id: str | None
    scope: Scope | None
    memory_type: str | None
    tier: Tier | None
    source: str | None
    external_id: str | None
    status: Status | None
    order: Order | None
    as_of: datetime | None
    known_at: datetime | None
    in_conflict: bool | None


class DeleteOptions(TypedDict, total=False):
    """Further parameters of `delete_all`."""

    project_id: str | None
    scope: Scope | None
    memory_type: str | None
    hard: bool
    reason: str | None


class MemoryChanges(TypedDict, total=False):
    """What `update` changes besides the content; None clears a field."""

    memory_type: str
    attribute: str | None
    tier: Tier
    confidence: float
    source_error: str | None
    evidence: Sequence[str]
    visibility: Visibility
    status: Literal["active", "archived"]
    metadata: Mapping[str, Any]
    external_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    reason: str


class SupersedeOptions(TypedDict, total=False):
    """Further parameters of `supersede`; the default is the value of the old memory."""

    memory_type: str | None
    attribute: str | None
    confidence: float | None
    source_error: str | None
    evidence: Sequence[str] | None
    metadata: Mapping[str, Any] | None
    valid_from: datetime | None
    valid_to: datetime | None
    reason: str | None


class ContextOptions(TypedDict, total=False):
    """Further parameters of `context`.

    `messages` replace those of the session and are not stored; `window_tokens` is the budget of
    instructions, blocks, summary and messages; `system_prompt_mode` says whether `system_prompt`
    replaces that of the agent (the default) or follows it; `context` has values for the
    `{{ names }}` in the system prompt; `include` turns parts off by name;
    `memories` restricts them, for example `{"memory_types": [...]}`; `strategy` selects messages,
    for example `{"name": "last_messages", "count": 20}`; `clear_tool_results` shows a line
    in place of older tool results, for example `{"keep": 3}`; `tools` are the definitions that
    you send with it, which count, or `tools_tokens` what they take;
    `passages` adds passages of documents, for example `{"limit": 5}`. `excerpts` restricts the
    pieces of earlier messages, for example `{"tokens": 800}`. A `preview` is recorded nowhere.
    """

    messages: Sequence[Mapping[str, Any]] | None
    window_tokens: int | None
    tools: Sequence[Mapping[str, Any]] | None
    tools_tokens: int | None
    system_prompt_mode: Literal["replace", "extend"]
    context: Mapping[str, Any] | None
    strategy: Mapping[str, Any] | None
    clear_tool_results: Mapping[str, Any] | None
    passages: Mapping[str, Any] | None
    excerpts: Mapping[str, Any] | None
    include: Mapping[str, bool] | None
    memories: Mapping[str, Any] | None
    as_of: datetime | None
    reference_time: datetime | None
    rerank: bool
    explain: bool
    preview: bool


class CompactOptions(TypedDict, total=False):
    """Further parameters of `summarize`; the defaults come from the window policy."""

    keep_messages: int | None
    strategy: Mapping[str, Any] | None
    evict_fraction: float | None
    instructions: str | None
    reason: str | None


class CheckpointOptions(TypedDict, total=False):
    """Further parameters of `checkpoint`."""

    namespace: str | None
    parent_id: str | None
    step: int | None
    source: str | None
    metadata: Mapping[str, Any] | None


class CheckpointListOptions(TypedDict, total=False):
    """Filters of `checkpoints`."""

    namespace: str | None
    source: str | None
    step: int | None
    reason: str | None
    before: str | None
    archived: bool


class BlockOptions(TypedDict, total=False):
    """Further parameters of `blocks.create`."""

    description: str | None
    tags: Sequence[str] | None
    metadata: Mapping[str, Any] | None
    read_only: bool
    hidden: bool
    per_user: bool | None
    user_id: str | None
    agent_id: str | None
    session_id: str | None
    block_id: str | None


class BlockChanges(TypedDict, total=False):
    """What `blocks.update` changes; other fields keep their value."""

    label: str
    value: str
    limit: int
    description: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    read_only: bool
    hidden: bool


class BlockListOptions(TypedDict, total=False):
    """Filters of `blocks.list_blocks`."""

    label: str | None
    agent_id: str | None
    user_id: str | None
    session_id: str | None
    template_id: str | None
    tag: str | None
    query: str | None
    include_hidden: bool


class Owner(TypedDict, total=False):
    """The user, project or agent to which folders or a graph belong."""

    user_id: str | None
    agent_id: str | None
    project_id: str | None


class GraphWhen(TypedDict, total=False):
    """What was true at `as_of`, as known at `known_at`; both default to now."""

    as_of: datetime | None
    known_at: datetime | None


class GraphWhere(Owner, GraphWhen, total=False):
    """The owner and the times."""


class EntityOptions(Owner, total=False):
    """Filters of `graph.entities`."""

    type: str | None
    scope: OwnerScope | None


class EntityChanges(TypedDict, total=False):
    """What `graph.update_entity` changes; the old name becomes an alias."""

    name: str
    entity_type: str
    metadata: Mapping[str, Any]


class RelationOptions(GraphWhere, total=False):
    """Filters of `graph.relations`; `include_closed` adds those that ended or have not begun."""

    entity_id: str | None
    source_id: str | None
    destination_id: str | None
    relation: str | None
    include_closed: bool | None


class RelationFields(Owner, total=False):
    """Further parameters of `graph.add_relation`; ids replace names."""

    source_id: str | None
    source_type: str | None
    destination_id: str | None
    destination_type: str | None
    confidence: float | None
    valid_from: datetime | None
    valid_to: datetime | None
    single: bool | None
    scope: OwnerScope | None
    evidence: Sequence[str]
    memory_ids: Sequence[str]


class RelationChanges(TypedDict, total=False):
    """What `graph.update_relation` changes; None removes the start or end of its period."""

    destination: str
    destination_id: str
    confidence: float
    valid_from: datetime | None
    valid_to: datetime | None
    reason: str | None


class SplitOptions(TypedDict, total=False):
    """Further parameters of `graph.split`: what the new entity gets."""

    entity_type: str | None
    aliases: Sequence[str]
    relation_ids: Sequence[str]
    memory_ids: Sequence[str]
    reason: str | None


class PassageSearchOptions(Owner, total=False):
    """Further parameters of `folders.search`; of several ids one must match."""

    folder_ids: Sequence[str] | None
    tags: Sequence[str] | None
    tags_match: Literal["any", "all"] | None
    created_from: datetime | None
    created_to: datetime | None
    mode: Literal["hybrid", "semantic", "lexical"] | None
    cursor: str | None
    max_tokens: int | None
    explain: bool | None


class ProfileChanges(TypedDict, total=False):
    """What `profiles.update` writes; None lets jobs derive the value again."""

    attributes: Mapping[str, Any]
    sections: Mapping[str, Any]
    slots: Mapping[str, Mapping[str, str | None]]
    instructions: str | None
    key_decisions: list[Mapping[str, Any]] | None
