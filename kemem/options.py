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
    part gave to a score.
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
