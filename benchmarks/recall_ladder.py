"""The steps of `benchmarks.recall`: what each asks a search to do. Pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Any, Final

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.ranking.boosts import Boosts

SIGNALS: Final[Mapping[str, tuple[str, ...]]] = {
    "words of the neighbours": ("near", "far"),
    "scores of the neighbours": ("adjacent", "answer"),
    "session": ("session",),
    "speaker": ("speaker",),
    "date": ("date",),
    "when": ("when",),
    "question": ("question",),
}
"""What the context says, and the weights that switch it off."""

LEXICAL: Final = "lexical"
ARMS: Final = "hybrid: the two arms alone"
FULL: Final = "hybrid: everything"

MODES: Final = "Modes"
ADDED: Final = "Each signal added"
TAKEN_OUT: Final = "Each signal taken out"
RANKS: Final = "Reciprocal ranks instead of scores"
WEIGHTS: Final = "Each weight a third less, and a third more"


@dataclass(frozen=True, slots=True)
class Step:
    """One configuration: the fields that its searches have besides question and user."""

    name: str
    part: str
    search: Mapping[str, Any]


def ladder() -> list[Step]:
    """Every step, each configuration once."""
    names = tuple(SIGNALS)
    # With the last signal it is everything, which stands among the modes.
    growing = list(accumulate((name,) for name in names))[:-1]
    return [
        Step("semantic", MODES, {"mode": "semantic"}),
        Step(LEXICAL, MODES, {"mode": "lexical"}),
        Step(FULL, MODES, {"mode": "hybrid"}),
        Step(ARMS, ADDED, hybrid(_without(names))),
        *(
            Step(f"+ {kept[-1]}", ADDED, hybrid(_without([n for n in names if n not in kept])))
            for kept in growing
        ),
        *(Step(f"without {name}", TAKEN_OUT, hybrid(_without([name]))) for name in names),
        Step("the two arms alone", RANKS, hybrid(_without(names) | {"rrf": 1.0})),
        Step("everything", RANKS, hybrid({"rrf": 1.0})),
    ]


def weights() -> list[Step]:
    """Each weight a third less and a third more than it is, the others as they are."""
    own = WordLlamaEmbedder.dense_share
    usual = Boosts().with_dense(latin=own.latin, cjk=own.cjk)
    moved = ("dense_latin", *(name for names in SIGNALS.values() for name in names))
    return [
        Step(f"{name} {value:.2f}", WEIGHTS, hybrid({name: value}))
        for name in moved
        for value in (getattr(usual, name) * 2 / 3, min(getattr(usual, name) * 4 / 3, 1.0))
    ]


def hybrid(boosts: Mapping[str, float]) -> dict[str, Any]:
    return {"mode": "hybrid", "boosts": dict(boosts)}


def _without(names: Sequence[str]) -> dict[str, float]:
    return {weight: 0.0 for name in names for weight in SIGNALS[name]}
