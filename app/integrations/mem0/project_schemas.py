"""mem0's projects as they cross HTTP. The project of a key is its tenant, and so is the
organisation.
"""

from typing import Annotated, Any, Final

from pydantic import Field, JsonValue, StringConstraints

from app.identity.tenants.access import Principal
from app.identity.tenants.schemas import PROMPT_LENGTH
from app.integrations.mem0.counterpart_errors import NoCounterpartError
from app.integrations.mem0.errors import UnknownMem0ProjectError
from app.platform.values.fields import ReadSchema, Schema, Storable, example

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
