"""How passages are searched over HTTP, and what is found."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.language.ranking.schemas import Mode
from app.platform.values.fields import Id, ReadSchema, Schema, Storable, Timestamp, example
from app.prompting.documents.schemas import PassageRead, Tags


def _distinct(tags: list[str]) -> list[str]:
    return list(dict.fromkeys(tags))


class PassageSearch(Schema):
    model_config = example(query="How long do refunds take?", agent_id="support", limit=5)

    query: Annotated[str, StringConstraints(max_length=10_000), Storable] = Field(
        description="A blank one finds nothing."
    )
    folder_ids: Annotated[list[Id], Field(min_length=1, max_length=100)] | None = Field(
        default=None, description="Only in these, of the folders that the key may see."
    )
    user_id: Id | None = Field(default=None, description="Folders of this user.")
    agent_id: Id | None = Field(
        default=None, description="Folders of this agent, and those attached to it."
    )
    project_id: Id | None = Field(
        default=None, description="Folders of this project. Of several ids any may fit."
    )
    tags: Annotated[Tags, AfterValidator(_distinct)] = []
    tags_match: Literal["any", "all"] = "any"
    created_from: Timestamp | None = Field(default=None, description="Inclusive.")
    created_to: Timestamp | None = Field(default=None, description="Inclusive.")
    limit: Annotated[int, Field(ge=1, le=100)] = 5
    mode: Mode = Field(
        default="hybrid",
        description="`hybrid`: words and vectors. `semantic`: vectors alone. `lexical`: words "
        "alone. Where no embedder answers, words decide.",
    )
    explain: bool = False


class PassageScoreExplained(ReadSchema):
    """How a passage came to its place."""

    cosine: float | None
    lexical: float | None
    fused: float
    boosts: dict[str, float]


class PassageHit(PassageRead):
    folder_name: str
    file_name: str | None
    score: float = Field(description="0 to 1: what the hits are ordered by; the relevance.")
    relevance: float = Field(description="0 to 1, in hybrid mode relative to this search.")
    similarity: float | None = Field(description="Cosine of query and passage, where compared.")
    lexical: float | None = Field(
        description="How well its words fit, 0 to 1; null in semantic mode."
    )
    explain: PassageScoreExplained | None = None


class PassageHits(ReadSchema):
    items: list[PassageHit] = Field(description="Best first.")
    embedding_models: list[str] = Field(description="What embedded the query.")
    waiting: int = Field(description="Passages whose vectors this search could not compare.")
    searched: int = Field(description="How many passages were looked at.")
    left_out: bool = Field(description="Whether there are older ones, which nobody looked at.")
    degraded: bool = Field(description="Whether an embedder did not answer, so words decided.")
    mode: Mode = Field(description="What decided in the end.")
