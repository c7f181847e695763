"""Webhooks and their deliveries as they cross HTTP, and what can go wrong with one."""

from typing import Annotated, Any, Literal

from pydantic import AfterValidator, Field, HttpUrl, UrlConstraints

from app.errors import ConflictError, NotFoundError, UnprocessableError
from app.platform.outbox.models import EventType, PublishedType
from app.platform.values.fields import Description, ReadSchema, Schema, Timestamp, example
from app.platform.values.pagination import PageQuery

WantedType = Literal["*", PublishedType]
DeliveryStatus = Literal["pending", "delivered", "dead"]


def _plain(url: HttpUrl) -> HttpUrl:
    if url.username is not None or url.password is not None:
        raise ValueError("must not hold a user name or a password")
    if url.fragment is not None:
        raise ValueError("must not have a fragment")
    return url


def _unique(types: list[WantedType]) -> list[WantedType]:
    return sorted(set(types))


Url = Annotated[
    HttpUrl,
    UrlConstraints(max_length=2000, allowed_schemes=["https", "http"]),
    AfterValidator(_plain),
    Field(description="Called with POST. https, and on the internet.",
          examples=["https://example.com/kemem"]),
]  # fmt: skip
Wanted = Annotated[
    list[WantedType],
    Field(min_length=1, max_length=20, description="`*` stands for all, later ones too."),
    AfterValidator(_unique),
]


class WebhookCreate(Schema):
    model_config = example(
        url="https://example.com/kemem", events=["memory.added", "memory.deleted"]
    )

    url: Url
    events: Wanted = ["*"]
    description: Description | None = None
    enabled: bool = True


class WebhookPatch(Schema):
    model_config = example(enabled=True)

    url: Url | None = None
    events: Wanted | None = None
    description: Description | None = None
    enabled: bool | None = Field(
        default=None, description="true forgets past failures; what waited is sent."
    )


class WebhookRead(ReadSchema):
    webhook_id: str
    url: str
    events: list[WantedType]
    description: str | None
    enabled: bool
    disabled_reason: Literal["gone", "failing"] | None = Field(
        description="Set when the service disabled it: the receiver answered 410, or nothing "
        "arrived for three days."
    )
    failing_since: Timestamp | None = Field(description="Since when every attempt has failed.")
    paused_until: Timestamp | None = Field(
        description="A receiver that failed several times is left alone until then."
    )
    old_secret_expires_at: Timestamp | None = Field(
        description="Until when the secret before the last rotation signs too."
    )
    version: int
    create_time: Timestamp
    update_time: Timestamp


class WebhookWithSecret(WebhookRead):
    secret: str | None = Field(
        description="Signs what is sent; shown once, null when an idempotent request is repeated."
    )


class DeliveryRead(ReadSchema):
    delivery_id: str
    webhook_id: str
    event_id: str = Field(description="`webhook-id` of the request; the same when sent again.")
    event_type: EventType
    payload: dict[str, Any]
    status: DeliveryStatus
    attempts: int
    response_status: int | None = Field(description="Of the last attempt.")
    error_code: str | None = Field(description="Of the last attempt; null when it succeeded.")
    duration_ms: int | None = Field(description="Of the last attempt.")
    next_attempt_at: Timestamp | None
    attempted_at: Timestamp | None
    delivered_at: Timestamp | None
    create_time: Timestamp


class DeliveryQuery(PageQuery):
    status: DeliveryStatus | None = None
    event_type: EventType | None = None


class WebhookNotFoundError(NotFoundError):
    code = "webhook_not_found"
    title = "Webhook not found"

    def __init__(self, webhook_id: str) -> None:
        super().__init__(f"No webhook {webhook_id}.", webhook_id=webhook_id)


class DeliveryNotFoundError(NotFoundError):
    code = "delivery_not_found"
    title = "Delivery not found"

    def __init__(self, delivery_id: str) -> None:
        super().__init__(f"No delivery {delivery_id}.", delivery_id=delivery_id)


class TooManyWebhooksError(ConflictError):
    code = "too_many_webhooks"
    title = "Too many webhooks"

    def __init__(self, most: int) -> None:
        super().__init__(
            f"This tenant has {most} webhooks, which is the most; delete one first.", most=most
        )


class TargetRefusedError(UnprocessableError):
    """The address of a webhook may not be called; says why, never what it resolved to."""

    code = "target_refused"
    title = "Target refused"

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"`url` {reason}.", errors=[{"location": ["body", "url"], "detail": reason}]
        )


class SecretKeyMissingError(ConflictError):
    code = "secret_key_missing"
    title = "No key for secrets"

    def __init__(self) -> None:
        super().__init__(
            "This deployment stores no secrets of webhooks, because MEMORY_SECRET_KEY is not set. "
            "Whoever runs it can set it, to what `openssl rand -base64 32` prints."
        )
