"""Tenants and keys as they cross HTTP, and what every route that erases an agent, a user, a
project or a session says and is answered.

The service behind it reaches over all tables and so lives in `app/governance/privacy`.
"""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal, Protocol, Self

from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from app.identity.tenants.access import Principal
from app.platform.http.problems import LONGEST_NAME
from app.platform.http.rates import POLICIES, RATE_LIMITS
from app.platform.values.fields import (
    ENABLED,
    LARGEST_INTEGER,
    Document,
    Id,
    Name,
    OwnId,
    ReadSchema,
    Schema,
    Timestamp,
    example,
    status_word,
)

FORGETTING: Final = "forgetting"
"""Key of a config for its forgetting policy, which overrides that of the level above."""

Days = Annotated[int, Field(ge=0, le=3650)]


class ForgettingPatch(Schema):
    """What a tenant or an agent says as `config.forgetting`; the rest is said above it."""

    enabled: bool | None = Field(
        default=None, description="False: nothing is forgotten automatically."
    )
    max_facts: Annotated[int, Field(ge=0, le=500)] | None = Field(
        default=None, description="Extracted memories of one user that stay; 0 for no bound."
    )
    eviction: Literal["confidence", "hybrid"] | None = Field(
        default=None, description="What goes first beyond `max_facts`."
    )
    decay_below: Annotated[float, Field(ge=0, le=1)] | None = Field(
        default=None, description="Hybrid score below which extracted memories fade; 0 for never."
    )
    source_deleted_days: Days | None = Field(
        default=None, description="How long memories outlive the file they were read from."
    )
    with_session: bool | None = Field(
        default=None,
        description="True: what was extracted in a session goes when the session is deleted.",
    )
    superseded_days: Days | None = Field(
        default=None, description="How long superseded memories can be searched; 0 without limit."
    )
    message_retention_days: Days | None = Field(
        default=None, description="How long messages are kept after extraction; 0 without limit."
    )
    checkpoint_retention_days: Days | None = Field(
        default=None,
        description="How long archived checkpoints and snapshots stay; 0 without limit.",
    )


def forgetting_fault(config: Mapping[str, Any]) -> tuple[str, str] | None:
    """The key of a config that says of forgetting what cannot be meant, and what it must be."""
    said = config.get(FORGETTING)
    if said is None:
        return None
    if not isinstance(said, dict):
        return FORGETTING, 'an object such as {"max_facts": 50}'
    try:
        ForgettingPatch.model_validate(said, strict=True)
    except ValidationError as error:
        fault = error.errors(include_input=False, include_url=False)[0]
        name = ".".join([FORGETTING, *map(str, fault["loc"])])
        return name, f"as the docs have it: {fault['msg'].removeprefix('Value error, ')}"
    return None


ScopeName = Literal["read", "write", "admin", "operator"]
Status = Annotated[
    Literal["enabled", "disabled"], BeforeValidator(lambda value: status_word(ENABLED, value))
]


SETTINGS: Final = (
    "embedding", "model", "extraction_prompt", "graph", "summary_model", "profile_model",
    "processors", FORGETTING, RATE_LIMITS, "daily_calls", "daily_tokens",
)  # fmt: skip
"""What a tenant's config may have."""

PROMPT_LENGTH: Final = 8000
"""Most characters of `extraction_prompt`, of a tenant or an agent."""


def _known(config: dict[str, Any]) -> dict[str, Any]:
    """A name that was meant for a setting and is none would change nothing unnoticed."""
    unknown = next((name for name in config if name not in SETTINGS), None)
    if unknown is not None:
        name = unknown[:LONGEST_NAME]
        raise ValueError(f"{name} must be a setting of a tenant: {', '.join(SETTINGS)}")
    return config


def _quotas(config: dict[str, Any]) -> dict[str, Any]:
    for name in ("daily_calls", "daily_tokens"):
        value = config.get(name, 0)
        if type(value) is not int or not 0 <= value <= LARGEST_INTEGER:
            raise ValueError(f"{name} must be a whole number, 0 for no limit")
    return config


def _prompt(config: dict[str, Any]) -> dict[str, Any]:
    prompt = config.get("extraction_prompt")
    if prompt is not None and not (isinstance(prompt, str) and len(prompt) <= PROMPT_LENGTH):
        raise ValueError(f"extraction_prompt must be a text of at most {PROMPT_LENGTH} characters")
    return config


def _forgetting(config: dict[str, Any]) -> dict[str, Any]:
    fault = forgetting_fault(config)
    if fault is not None:
        name, wanted = fault
        raise ValueError(f"{name} must be {wanted}")
    return config


def _rates(config: dict[str, Any]) -> dict[str, Any]:
    limits = config.get(RATE_LIMITS, {})
    if not isinstance(limits, dict) or not set(limits) <= set(POLICIES):
        raise ValueError(f"{RATE_LIMITS} must be an object with some of {', '.join(POLICIES)}")
    for name, most in limits.items():
        if type(most) is not int or not 0 <= most <= LARGEST_INTEGER:
            raise ValueError(f"{RATE_LIMITS}.{name} must be a whole number, 0 for no limit")
    return config


Config = Annotated[
    Document,
    AfterValidator(_known),
    AfterValidator(_quotas),
    AfterValidator(_prompt),
    AfterValidator(_rates),
    AfterValidator(_forgetting),
    Field(
        description="`embedding`: handle of the tenant's embedder. `extraction_prompt`: "
        "instructs what extracts memories for agents that say nothing of it. `daily_calls`, "
        "`daily_tokens`: most that chat models may be used in a day, 0 for no limit. "
        "`rate_limits`: requests in a minute, 0 for no limit: `read`, `write` and `model` of the "
        "tenant, `key_read`, `key_write` and `key_model` of each key. "
        "`forgetting`: what is forgotten automatically, as in an agent's. `processors`: those of "
        "agents that name none (`GET /v1/processors`)."
    ),
]


def _unique(scopes: list[ScopeName]) -> list[ScopeName]:
    return sorted(set(scopes))


class KeyCreate(Schema):
    model_config = example(key_name="web backend", scopes=["write"])

    key_name: Name | None = Field(default=None, examples=["web backend"])
    scopes: Annotated[list[ScopeName], AfterValidator(_unique)] = Field(
        default=["write"], min_length=1, max_length=4, validate_default=True
    )
    agent_id: OwnId | None = Field(default=None, description="Restrict the key to one agent.")
    user_id: OwnId | None = Field(default=None, description="Restrict the key to one user.")
    expires_at: Timestamp | None = None

    @model_validator(mode="after")
    def _restricted_keys_serve_data(self) -> Self:
        if (self.agent_id or self.user_id) and {"admin", "operator"} & set(self.scopes):
            raise ValueError("a key restricted to an agent or a user may only read and write")
        return self


class KeyRead(ReadSchema):
    key_id: str
    key_prefix: str = Field(description="Public; identifies the key.")
    key_name: str | None
    scopes: list[ScopeName]
    agent_id: str | None
    user_id: str | None
    id_prefix: str | None = Field(
        description="What ids begin with that the key chooses; null if it is bound to nobody."
    )
    expires_at: Timestamp | None
    revoked_at: Timestamp | None
    last_used_at: Timestamp | None = Field(description="To within some seconds.")
    create_time: Timestamp


class KeyCreated(KeyRead):
    key: str | None = Field(
        description="The key itself, shown once; null when an idempotent request is repeated."
    )


class TenantCreate(Schema):
    model_config = example(tenant_id="acme", tenant_name="Acme")

    tenant_id: Id | None = Field(default=None, examples=["acme"])
    tenant_name: Name = Field(examples=["Acme"])
    config: Config = {}


class TenantPatch(Schema):
    model_config = example(status="disabled")

    tenant_name: Name | None = None
    status: Status | None = None
    config: Config | None = None


class TenantRead(ReadSchema):
    tenant_id: str
    tenant_name: str
    status: Status
    config: dict[str, Any]
    embedding_models: list[str] = Field(description="Models with vectors here.")
    version: int
    create_time: Timestamp
    update_time: Timestamp


class TenantCreated(TenantRead):
    key: KeyCreated = Field(description="The tenant's first key, scope admin.")


ErasureKind = Literal["agent", "user", "project", "session"]


class ErasureQuery(Schema):
    confirm: bool = Field(default=False, description="Required when it holds anything.")
    dry_run: bool = Field(default=False, description="Only count.")


class UserErasureQuery(ErasureQuery):
    hard: bool = Field(
        default=True,
        description="A user is always erased for good; to keep the data and refuse new writes "
        "for the user, set `status` to disabled with PATCH.",
    )

    @field_validator("hard")
    @classmethod
    def _is_for_good(cls, hard: bool) -> bool:
        if not hard:
            raise ValueError("must be true; to only disable a user, PATCH its status")
        return hard


class Receipt(ReadSchema):
    """Receipt of an erasure: numbers of deleted rows, no content."""

    kind: ErasureKind
    id: str
    deleted: dict[str, int] = Field(
        description="Rows deleted, or that would be.",
        examples=[{"sessions": 2, "messages": 41, "memories": 17}],
    )
    dry_run: bool
    erasure_id: str | None = Field(
        default=None, description="Of the receipt that stays; none of a dry run."
    )


class Eraser(Protocol):
    """Erases a subject with all that belongs to it."""

    async def delete(
        self, principal: Principal, kind: ErasureKind, subject_id: str, query: ErasureQuery
    ) -> Receipt:
        """Erase it for good, or only count with `dry_run`."""
