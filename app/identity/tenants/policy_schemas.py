"""What a tenant or an agent says of forgetting, as it crosses HTTP."""

from collections.abc import Mapping
from typing import Annotated, Any, Final, Literal

from pydantic import Field, ValidationError

from app.platform.values.fields import Schema

FORGETTING: Final = "forgetting"
"""Where a config says what differs from what stands above it."""

Days = Annotated[int, Field(ge=0, le=3650)]


class ForgettingPatch(Schema):
    """What a tenant or an agent says as `config.forgetting`; the rest is said above it."""

    enabled: bool | None = Field(
        default=None, description="False: nothing of theirs is forgotten by itself."
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
        default=None, description="How long what was superseded can be searched; 0 for ever."
    )
    message_retention_days: Days | None = Field(
        default=None, description="How long messages are kept once they were read; 0 for ever."
    )
    checkpoint_retention_days: Days | None = Field(
        default=None, description="How long archived checkpoints and snapshots stay; 0 for ever."
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
        return name, f"as the docs have it: {fault['msg']}"
    return None
