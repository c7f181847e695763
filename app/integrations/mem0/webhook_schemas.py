"""Webhooks as mem0's clients send and read them, and the events that both products know."""

from typing import Annotated, Any, Final

from pydantic import Field, StringConstraints

from app.governance.webhooks.schemas import Url, WebhookCreate, WebhookPatch, WebhookRead
from app.integrations.mem0.counterpart_errors import NoCounterpartError
from app.platform.outbox.events import EVERY_TYPE
from app.platform.values.fields import Name, ReadSchema, Schema, Timestamp, example

COUNTERPARTS: Final[dict[str, tuple[str, ...]]] = {
    "memory_add": ("memory.added",),
    "memory_update": ("memory.updated", "memory.superseded"),
    "memory_delete": ("memory.deleted",),
}

EventTypes = Annotated[
    list[Annotated[str, StringConstraints(min_length=1, max_length=50)]],
    Field(min_length=1, max_length=20),
]


class Mem0WebhookCreate(Schema):
    model_config = example(
        url="https://example.com/hook", name="Billing", event_types=["memory_add"]
    )

    url: Url
    name: Name
    event_types: EventTypes

    def ours(self) -> WebhookCreate:
        """The webhook to add.

        Raises:
            NoCounterpartError: an event has none here.

        """
        return WebhookCreate(url=self.url, description=self.name, events=wanted(self.event_types))


class Mem0WebhookUpdate(Schema):
    model_config = example(name="Billing", is_active=True)

    url: Url | None = None
    name: Name | None = None
    event_types: EventTypes | None = None
    is_active: bool | None = None

    def ours(self) -> WebhookPatch:
        """The change to make.

        Raises:
            NoCounterpartError: an event has none here.

        """
        given: dict[str, Any] = {"url": self.url, "description": self.name}
        given["enabled"] = self.is_active
        given["events"] = None if self.event_types is None else wanted(self.event_types)
        return WebhookPatch(**{name: value for name, value in given.items() if value is not None})


class Mem0Webhook(ReadSchema):
    webhook_id: str
    name: str
    url: str
    event_types: list[str] = Field(description="Those of its events that mem0 has a name for.")
    is_active: bool
    owner: str | None = None
    project: str
    created_at: Timestamp
    updated_at: Timestamp
    secret: str | None = Field(
        default=None, description="Signs what is sent; in the answer that creates it alone."
    )

    @classmethod
    def of(cls, webhook: WebhookRead, project_id: str, secret: str | None = None) -> "Mem0Webhook":
        """A webhook as mem0's clients read it."""
        return cls(
            webhook_id=webhook.webhook_id,
            name=webhook.description or "",
            url=webhook.url,
            event_types=named(webhook.events),
            is_active=webhook.enabled,
            project=project_id,
            created_at=webhook.create_time,
            updated_at=webhook.update_time,
            secret=secret,
        )


def wanted(event_types: list[str]) -> list[Any]:
    """Our events for mem0's.

    Raises:
        NoCounterpartError: one has none here.

    """
    for event_type in event_types:
        if event_type not in COUNTERPARTS:
            raise NoCounterpartError(
                f"The event {event_type}", f"Choose among {', '.join(COUNTERPARTS)}."
            )
    return [ours for event_type in event_types for ours in COUNTERPARTS[event_type]]


def named(events: list[Any]) -> list[str]:
    """mem0's names of the events that a webhook gets."""
    return [
        name
        for name, ours in COUNTERPARTS.items()
        if EVERY_TYPE in events or not set(ours).isdisjoint(events)
    ]
