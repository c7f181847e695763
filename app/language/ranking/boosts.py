"""How much each part of a relevance counts: the weights, their names, how they are written, and
what a request may say of them, the same wherever something is searched.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import lru_cache
from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, StringConstraints


class InvalidWeightsError(ValueError):
    """Weights that are no shares of one whole, or out of bounds; a fault of the configuration."""


_EVEN: Final = 0.5


@dataclass(frozen=True, slots=True)
class Boosts:
    """How much each part counts, beside arms that are scaled to 1. Each is 0 to 1; 0 is off.

    `dense_latin` and `dense_cjk` are the shares of the vectors in a query of either script, the
    words have the rest; None leaves them to the embedder (`with_dense`).
    """

    dense_latin: float | None = None
    dense_cjk: float | None = None
    rrf: float = 0.0
    """How far an arm counts by the reciprocal ranks of its rows and not by their scores: 1 is
    reciprocal rank fusion, here with weights."""
    near: float = 0.5
    """Terms of the rows before and after in the session, as if so much of them stood here."""
    far: float = 0.25
    """As `near`, two rows away."""
    adjacent: float = 0.1
    """The fused score of the rows before and after."""
    answer: float = 0.2
    """The fused score of a short question, for the row that follows it."""
    session: float = 0.4
    """The session as one document."""
    speaker: float = 0.6
    """Who the query names has said it, or it is about them."""
    role: float = 0.6
    """Whom the query asks about has said it: the user, or the assistant; messages alone have it,
    and where the query names a speaker that decides."""
    date: float = 0.4
    """Nearness to a date in the query."""
    when: float = 0.15
    """A time expression, when the query asks for a time."""
    question: float = 0.2
    """Taken off a short question."""
    graph: float = 0.0
    """It speaks of what the query names, or of what is one relation away."""

    def __post_init__(self) -> None:
        """Check the weights.

        Raises:
            InvalidWeightsError: one is not 0 to 1.

        """
        for each in fields(self):
            value = getattr(self, each.name)
            # Written so that NaN fails too.
            if value is not None and not 0.0 <= value <= 1.0:
                raise InvalidWeightsError(f"The weight {each.name} must be 0 to 1.")

    def with_changes(self, weights: Mapping[str, float]) -> "Boosts":
        """These weights, some of them replaced, by name."""
        return replace(self, **weights) if weights else self

    def with_dense(self, *, latin: float, cjk: float) -> "Boosts":
        """These weights, with the embedder's shares where nobody has said another."""
        return _with_dense(self, latin, cjk)

    def dense_share(self, cjk: float) -> float:
        """Return the share of the vectors in a query of which `cjk` (0 to 1) is CJK.

        Where neither anybody nor an embedder has said one, vectors have as much as words.
        """
        latin = _EVEN if self.dense_latin is None else self.dense_latin
        chinese = _EVEN if self.dense_cjk is None else self.dense_cjk
        return latin + (chinese - latin) * min(max(cjk, 0.0), 1.0)


@lru_cache(64)
def _with_dense(boosts: Boosts, latin: float, cjk: float) -> Boosts:
    """Kept, since an embedder's shares are the same in every search."""
    return replace(
        boosts,
        dense_latin=latin if boosts.dense_latin is None else boosts.dense_latin,
        dense_cjk=cjk if boosts.dense_cjk is None else boosts.dense_cjk,
    )


BOOSTS: Final = tuple(each.name for each in fields(Boosts))


def parsed_weights(text: str, names: Sequence[str] = BOOSTS) -> dict[str, float]:
    """Weights by name out of `speaker=0.6, date=0`.

    Raises:
        InvalidWeightsError: it is written otherwise, or a name is unknown or there twice.

    """
    weights: dict[str, float] = {}
    for part in filter(None, (item.strip() for item in text.split(","))):
        name, _, value = (side.strip() for side in part.partition("="))
        if name not in names:
            raise InvalidWeightsError(f"{name} is no weight; they are {', '.join(names)}.")
        if name in weights:
            raise InvalidWeightsError(f"{name} is there twice: which is meant?")
        try:
            weights[name] = float(value)
        except ValueError:
            raise InvalidWeightsError(f"Write {name}=0.5, a number from 0 to 1.") from None
    return weights


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
