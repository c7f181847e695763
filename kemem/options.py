"""What a call may be told besides its first parameters, each described at the service's /docs."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Literal, TypeAlias, TypedDict

Said: TypeAlias = str | Mapping[str, Any] | Sequence[Mapping[str, Any]]
"""A text, one message, or several; a message has `role` and `content`."""

Filters: TypeAlias = Mapping[str, Any]
"""Fields or `metadata.<key>` with eq, ne, in, nin, gt, gte, lt, lte, contains, exists; AND, OR,
NOT around them. Values may be aware datetimes."""

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
    visibility: Literal["public", "members", "owner_only"] | None
    external_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    on_duplicate: Literal["reject", "return", "supersede", "allow"] | None


class SearchOptions(TypedDict, total=False):
    """Further parameters of `search`.

    `scopes` and the types leave out all others; `as_of` asks what was true at a moment, and
    `known_at` what was known then; `mode` is hybrid when left out; `reference_time` is when the
    query is asked; `boosts` weighs signals by name, 0 switches one off; `explain` says what each
    part gave to a score; `graph` lets what the query names bring what speaks of it.
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
    graph: bool | None


class MessageSearchOptions(TypedDict, total=False):
    """Further parameters of `search_messages`.

    `roles` are those found, user and assistant when left out; `since` and `until` are when it
    was said; `cursor` is the `next_cursor` of the page before, with all else as it was.
    """

    roles: Sequence[Literal["user", "assistant", "system"]] | None
    since: datetime | None
    until: datetime | None
    mode: Literal["hybrid", "semantic", "lexical"] | None
    reference_time: datetime | None
    boosts: Mapping[str, float] | None
    cursor: str | None
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


class DeleteOptions(TypedDict, total=False):
    """Further parameters of `delete_all`."""

    project_id: str | None
    scope: Scope | None
    memory_type: str | None
    hard: bool
    reason: str | None


class MemoryChanges(TypedDict, total=False):
    """What `update` changes besides the content; None empties what may be empty."""

    memory_type: str
    attribute: str | None
    tier: Tier
    confidence: float
    source_error: str | None
    evidence: Sequence[str]
    visibility: Literal["public", "members", "owner_only"]
    status: Literal["active", "archived"]
    metadata: Mapping[str, Any]
    external_id: str | None
    valid_from: datetime | None
    valid_to: datetime | None
    expires_at: datetime | None
    reason: str


class SupersedeOptions(TypedDict, total=False):
    """Further parameters of `supersede`; what is left out is that of the old memory."""

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

    `messages` stand in for the session's own and are not kept; `window_tokens` is the budget of
    instructions, blocks, summary and messages; `context` has values for the `{{ names }}` of the
    system prompt; `include` switches parts off by name; `memories` narrows them as
    `{"memory_types": [...]}`; `strategy` chooses from the window as `{"name": "last_messages",
    "count": 20}`; `clear_tool_results` leaves older results of tools out, as `{"keep": 3}`;
    `passages` takes in passages of documents, as `{"limit": 5}`.
    """

    messages: Sequence[Mapping[str, Any]] | None
    window_tokens: int | None
    context: Mapping[str, Any] | None
    strategy: Mapping[str, Any] | None
    clear_tool_results: Mapping[str, Any] | None
    passages: Mapping[str, Any] | None
    include: Mapping[str, bool] | None
    memories: Mapping[str, Any] | None
    as_of: datetime | None
    reference_time: datetime | None
    rerank: bool
    explain: bool


class CompactOptions(TypedDict, total=False):
    """Further parameters of `summarize`; what is left out is as the window's policy says."""

    keep_messages: int | None
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
    """What `checkpoints` can be narrowed by."""

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
    block_id: str | None


class BlockChanges(TypedDict, total=False):
    """What `blocks.update` changes; what is left out stays, its limit too."""

    label: str
    value: str
    limit: int
    description: str | None
    tags: Sequence[str]
    metadata: Mapping[str, Any]
    read_only: bool
    hidden: bool


class BlockListOptions(TypedDict, total=False):
    """What `blocks.list` can be narrowed by."""

    label: str | None
    agent_id: str | None
    user_id: str | None
    template_id: str | None
    tag: str | None
    query: str | None
    include_hidden: bool
