"""What a request may say about how a search ranks, the same wherever something is searched."""

from typing import Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints

from app.language.ranking.boosts import BOOSTS

Mode = Literal["semantic", "lexical", "hybrid"]


def _is_asked(query: str) -> str:
    """The query itself.

    Raises:
        ValueError: it is blank.

    """
    if not query.strip():
        raise ValueError("must not be blank")
    return query


# A blank turn of a conversation would be told whatever is surest, which answers nothing.
Query = Annotated[
    str, StringConstraints(min_length=1, max_length=10_000), AfterValidator(_is_asked)
]


def _are_known(weights: dict[str, float]) -> dict[str, float]:
    """The weights themselves.

    Raises:
        ValueError: a name is unknown.

    """
    unknown = sorted(set(weights) - set(BOOSTS))
    if unknown:
        raise ValueError(f"unknown: {', '.join(unknown)}; known: {', '.join(BOOSTS)}")
    return weights


BoostWeights = Annotated[
    dict[str, Annotated[float, Field(ge=0.0, le=1.0)]],
    AfterValidator(_are_known),
    Field(
        examples=[{"speaker": 0.0}],
        description="Weights of this search by name, in place of the built-in ones; "
        "0 switches a signal off. Hybrid mode only. Names: "
        + ", ".join(f"`{name}`" for name in BOOSTS)
        + ".",
    ),
]
