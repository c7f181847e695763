"""mem0's projects as they cross HTTP (the project of a key is its tenant, and so is the
organisation), their webhooks, and the events that both products know.
"""

from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, StringConstraints

from app.governance.webhooks.schemas import Url, WebhookCreate, WebhookPatch, WebhookRead
from app.identity.tenants.access import Principal
from app.identity.tenants.schemas import PROMPT_LENGTH
from app.integrations.mem0.errors import NoCounterpartError, UnknownMem0ProjectError
from app.platform.outbox.models import EVERY_TYPE
from app.platform.values.fields import Name, ReadSchema, Schema, Storable, Timestamp, example

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


INSTRUCTIONS: Final = "extraction_prompt"
"""Of a tenant: our setting for mem0's `custom_instructions`."""

_ALWAYS: Final[dict[str, JsonValue]] = {"multilingual": True, "decay": False}
"""How it is here whatever a client says: what is remembered stays in its language, and a search
takes nothing off memories that were not used for long.
"""

_INSTEAD: Final = {
    "agent_custom_instructions": "An agent has its own: `config.extraction_prompt` "
    "(PATCH /v1/agents/{agent_id}).",
    "custom_categories": "Memories have the types of docs/memories.md, and your metadata.",
    "memory_depth": "What is worth remembering is said in `custom_instructions`.",
    "usecase_setting": "What is worth remembering is said in `custom_instructions`.",
    "version": "There is one version of the dialect.",
}
_OPERATORS: Final = "An operator makes, renames and deletes tenants (`kemem tenants`)."
_KEYS: Final = "Who may call has a key (POST /v1/keys); there are no members."


Instructions = Annotated[str, StringConstraints(max_length=PROMPT_LENGTH), Storable]


class Mem0ProjectUpdate(Schema):
    """Null and what is left out stay."""

    model_config = example(custom_instructions="Remember what the user eats.")

    custom_instructions: Instructions | None = Field(
        default=None, description="`extraction_prompt` of the tenant; an empty text removes it."
    )
    multilingual: bool | None = None
    decay: bool | None = None
    agent_custom_instructions: JsonValue = None
    custom_categories: JsonValue = None
    memory_depth: JsonValue = None
    usecase_setting: JsonValue = None
    version: JsonValue = None
    # Python's client repeats the ids of the path.
    org_id: str | None = None
    project_id: str | None = None

    def refuse_unserved(self) -> None:
        """Refuse what would change nothing.

        Raises:
            NoCounterpartError: a field has no counterpart, or not with this value.

        """
        for name, instead in _INSTEAD.items():
            if getattr(self, name) is not None:
                raise NoCounterpartError(f"`{name}`", instead)
        for name, fixed in _ALWAYS.items():
            if getattr(self, name) not in {None, fixed}:
                raise NoCounterpartError(f"`{name}` {not fixed}", f"It is always {fixed}.")


class Mem0Message(ReadSchema):
    message: str


class Mem0Members(ReadSchema):
    members: list[dict[str, Any]] = []


def refuse_other_project(principal: Principal, *ids: str) -> None:
    """Refuse ids of an organisation or a project that are not the caller's.

    Raises:
        UnknownMem0ProjectError: one is another's.

    """
    for named in ids:
        if named != principal.tenant_id:
            raise UnknownMem0ProjectError


def no_project_management() -> NoCounterpartError:
    """Making and deleting projects."""
    return NoCounterpartError("Making or deleting projects", _OPERATORS)


def no_members() -> NoCounterpartError:
    """Changing the members of a project."""
    return NoCounterpartError("Changing members", _KEYS)


def shown_project(
    tenant_id: str, name: str, config: dict[str, Any], fields: list[str]
) -> dict[str, JsonValue]:
    """The fields of a project that were asked for, all without names.

    Raises:
        NoCounterpartError: a field has no counterpart.

    """
    shown: dict[str, JsonValue] = {
        "id": tenant_id,
        "name": name,
        "org_id": tenant_id,
        "custom_instructions": config.get(INSTRUCTIONS),
        "custom_categories": None,
        **_ALWAYS,
    }
    for field in fields:
        if field not in shown and field not in _INSTEAD:
            raise NoCounterpartError(f"The field {field[:50]}", f"There are {', '.join(shown)}.")
    return {field: shown.get(field) for field in fields or shown}
