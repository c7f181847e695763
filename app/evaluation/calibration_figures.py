"""The labelled pairs that `kemem calibrate` measures an embedder on, and from the similarities of
such pairs to thresholds.

A threshold only nominates; the guard of `text/distinctions.py` decides. So what a
threshold takes is what is near enough *and* passes the guard.
"""

import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal, get_args

from app.evaluation.metrics import quantile

Kind = Literal["duplicate", "same_topic", "contradiction", "unrelated"]
Language = Literal["english", "chinese"]

KINDS: Final[tuple[Kind, ...]] = get_args(Kind)
LANGUAGES: Final[tuple[Language, ...]] = get_args(Language)


@dataclass(frozen=True, slots=True)
class Pair:
    """Two statements, and how they stand to each other."""

    kind: Kind
    first: str
    second: str


def shipped_pairs(language: Language) -> list[Pair]:
    """The pairs of a language, in the order of the file."""
    text = (files("app.evaluation") / "data" / f"calibration_{language}.jsonl").read_text("utf-8")
    return [
        Pair(line["kind"], line["a"], line["b"])
        for line in map(json.loads, text.strip().split("\n"))
    ]


QUANTILES: Final = (5, 25, 50, 75, 95)

WRONG_SHARE: Final = 0.05
"""How much of each class but the duplicates a duplicate threshold may take."""

MISSED_SHARE: Final = 0.05
"""How many duplicates and contradictions may lie below the neighbour floor."""

THRESHOLD_RULE: Final = (
    "duplicate threshold: the smallest hundredth from the neighbour floor on at which at most 5 % "
    "of the pairs of each other class are near enough and pass the guard"
)
FLOOR_RULE: Final = (
    "neighbour floor: the largest hundredth that keeps 95 % of the duplicates and contradictions"
)


@dataclass(frozen=True, slots=True)
class Measured:
    """A pair as the embedder and the guard see it."""

    kind: Kind
    similarity: float
    passes: bool
    """Whether the guard finds nothing that keeps the two apart."""


@dataclass(frozen=True, slots=True)
class Taken:
    """What one threshold does to one class."""

    pairs: int
    near: int
    """At or above the threshold."""

    merged: int
    """Near, and the guard lets them pass: one of the two would be lost."""


def distribution(measured: Iterable[Measured], kind: Kind) -> dict[str, float]:
    """Quantiles of the similarities of one class, by name (`p5`); at least one pair."""
    values = [pair.similarity for pair in measured if pair.kind == kind]
    return {f"p{share}": round(quantile(values, share / 100), 3) for share in QUANTILES}


def taken(measured: Sequence[Measured], threshold: float) -> dict[Kind, Taken]:
    """What a duplicate threshold takes of each class."""
    found = {}
    for kind in KINDS:
        held = [pair for pair in measured if pair.kind == kind]
        near = [pair for pair in held if pair.similarity >= threshold]
        found[kind] = Taken(len(held), len(near), sum(pair.passes for pair in near))
    return found


def derive_threshold(measured: Sequence[Measured]) -> float:
    """The duplicate threshold by THRESHOLD_RULE, 0 to 1.

    Too low a threshold costs a memory, too high a one costs a second copy; so it is what the
    other classes allow, and not what the duplicates would like.
    """
    for hundredth in range(round(derive_floor(measured) * 100), 101):
        counts = taken(measured, hundredth / 100)
        if all(
            counts[kind].merged <= WRONG_SHARE * counts[kind].pairs
            for kind in KINDS
            if kind != "duplicate"
        ):
            return hundredth / 100
    return 1.0


def derive_floor(measured: Iterable[Measured]) -> float:
    """The neighbour floor by FLOOR_RULE, 0 to 1; at least one duplicate or contradiction."""
    wanted = [pair.similarity for pair in measured if pair.kind in {"duplicate", "contradiction"}]
    missed = math.floor(MISSED_SHARE * len(wanted))
    lowest = sorted(wanted)[missed]
    return max(0, math.floor(lowest * 100)) / 100


def above(measured: Iterable[Measured], kind: Kind, floor: float) -> float:
    """The share of a class that is at or above a floor; at least one pair."""
    values = [pair.similarity >= floor for pair in measured if pair.kind == kind]
    return sum(values) / len(values)
