"""Kept evaluations as they cross HTTP, and what can go wrong with them."""

from typing import Annotated, Final

from pydantic import Field, JsonValue, StringConstraints

from app.errors import NotFoundError
from app.platform.values.fields import ReadSchema, Schema, Storable, Timestamp, example
from app.platform.values.json_objects import large_object
from app.platform.values.pagination import PageQuery

SETTINGS_BYTES: Final = 16 * 1024
METRICS_BYTES: Final = 64 * 1024

Label = Annotated[
    str, StringConstraints(min_length=1, max_length=255, strip_whitespace=True), Storable
]


class EvaluationCreate(Schema):
    model_config = example(
        name="before the new embedder",
        dataset="questions",
        settings={"k": [5, 10]},
        metrics={"total": {"recall": {"10": 0.71}}},
    )

    name: Label = Field(description="What the result is called in comparisons.")
    dataset: Label = Field(description="What it was measured on.")
    settings: Annotated[dict[str, JsonValue], large_object(SETTINGS_BYTES)] = Field(
        default_factory=dict, description="How it was measured; at most 16 KiB."
    )
    metrics: Annotated[dict[str, JsonValue], large_object(METRICS_BYTES)] = Field(
        description="What was measured, such as figures in total and by category; at most 64 KiB."
    )


class EvaluationQuery(PageQuery):
    name: Label | None = None
    dataset: Label | None = None


class EvaluationRead(ReadSchema):
    evaluation_id: str
    name: str
    dataset: str
    release: str = Field(description="Of the service that kept it.")
    settings: dict[str, JsonValue]
    fingerprint: str = Field(
        description="Of data set and settings, in hexadecimal: results with the same one were "
        "measured in the same way."
    )
    metrics: dict[str, JsonValue]
    actor: str | None = Field(description="Id of the key that stored it.")
    create_time: Timestamp


class EvaluationNotFoundError(NotFoundError):
    code = "evaluation_not_found"
    title = "Evaluation not found"

    def __init__(self, evaluation_id: str) -> None:
        super().__init__(f"No evaluation {evaluation_id}.", evaluation_id=evaluation_id)
