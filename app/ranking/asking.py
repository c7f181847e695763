"""What a request may say about how a search ranks, the same wherever something is searched."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from app.ranking.boosts import BOOSTS

Mode = Literal["semantic", "lexical", "hybrid"]


def _are_known(weights: dict[str, float]) -> dict[str, float]:
    unknown = sorted(set(weights) - set(BOOSTS))
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(BOOSTS)}")
    return weights


BoostWeights = Annotated[
    dict[str, Annotated[float, Field(ge=0.0, le=1.0)]],
    AfterValidator(_are_known),
    Field(
        examples=[{"speaker": 0.0}],
        description="Weights of this search by name, in place of the deployment's "
        "(`MEMORY_SEARCH_BOOSTS`); 0 switches a signal off. Hybrid mode only. Names: "
        + ", ".join(f"`{name}`" for name in BOOSTS)
        + ".",
    ),
]
