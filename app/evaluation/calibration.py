"""What near means to an embedder, in English and Chinese: from the similarities of labelled pairs
to thresholds; measured, printed, and as a document.

A threshold only nominates; the guard of `text/distinctions.py` decides. So what a threshold takes
is what is near enough *and* passes the guard.
"""

import asyncio
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Final, Literal, get_args

import numpy as np

from app.console import out, print_table, write_json
from app.deployment import COMMAND_WAIT, open_catalogue
from app.evaluation.metrics import quantile
from app.language.llm.embedder import Embedder
from app.language.text.distinctions import differs
from app.platform.version import VERSION
from app.runtime import utc_now
from app.settings import Settings

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


SCRIPTS: Final[Mapping[Language, str]] = {"english": "latin", "chinese": "cjk"}

# Where the numbers come from that an embedder brings along, by the beginning of its name.
SOURCES: Final = {
    "wordllama/l2_supercat:": "measured by this command and on 120 pairs before it",
    "openai/text-embedding-3-small:": "0.85 and 0.45 by specification, not measured by us",
}
UNMEASURED: Final = "taken over from text-embedding-3-small, not measured by us"


@dataclass(frozen=True, slots=True)
class Calibration:
    """What was measured in one language, and what follows from it."""

    measured: Sequence[Measured]
    threshold: float
    floor: float
    default: float
    """The duplicate threshold that the embedder brings along, for this script."""


async def calibrate(settings: Settings, model: str | None, json_file: Path | None) -> None:
    """Measure an embedder on the pairs that come with KeMem, and print what follows.

    Args:
        model: its handle; None for the one in force.
        json_file: where the figures go besides.

    """
    async with open_catalogue(settings, longest_wait=COMMAND_WAIT) as catalogue:
        embedder = catalogue.default if model is None else await catalogue.resolve(model)
        found = {name: await _measure(embedder, name) for name in LANGUAGES}
    _print(embedder, found, settings)
    if json_file is not None:
        await asyncio.to_thread(write_json, json_file, _document(embedder, found))
        out.print(f"Written to {json_file}.", markup=False)


async def _measure(embedder: Embedder, language: Language) -> Calibration:
    pairs = shipped_pairs(language)
    vectors = await embedder.embed([text for pair in pairs for text in (pair.first, pair.second)])
    similarities = np.einsum("ij,ij->i", vectors[0::2], vectors[1::2])
    measured = [
        Measured(pair.kind, float(similarity), passes=differs(pair.first, pair.second) is None)
        for pair, similarity in zip(pairs, similarities, strict=True)
    ]
    own = embedder.duplicate_threshold
    default = own.cjk if SCRIPTS[language] == "cjk" else own.latin
    return Calibration(measured, derive_threshold(measured), derive_floor(measured), default)


def _floor(found: Mapping[Language, Calibration]) -> float:
    """One for all languages, so the lowest: a neighbour below it is never looked at."""
    return min(calibration.floor for calibration in found.values())


def _print(embedder: Embedder, found: Mapping[Language, Calibration], settings: Settings) -> None:
    quantiles = [f"p{share}" for share in QUANTILES]
    print_table(
        f"Cosine similarity by {embedder.name}",
        ("language", "pairs of", "count", *quantiles),
        [
            (language, kind.replace("_", " "), _count(calibration, kind), *_row(calibration, kind))
            for language, calibration in found.items()
            for kind in KINDS
        ],
        right=("count", *quantiles),
    )
    out.print()
    kinds = [kind.replace("_", " ") for kind in KINDS]
    print_table(
        "What a duplicate threshold takes: near and past the guard (near at all)",
        ("language", "threshold", "at", *kinds),
        [
            (
                language,
                name,
                f"{threshold:.2f}",
                *map(_shown, taken(calibration.measured, threshold).values()),
            )
            for language, calibration in found.items()
            for name, threshold in (
                ("derived", calibration.threshold),
                ("default", calibration.default),
            )
        ],
        right=("at", *kinds),
    )
    out.print()
    print_table(
        "Share of the pairs that a neighbour floor lets through, in percent",
        ("language", "floor", "at", *kinds),
        [
            (language, name, f"{floor:.2f}", *_let_through(calibration, floor))
            for language, calibration in found.items()
            for name, floor in (
                ("derived", calibration.floor),
                ("default", embedder.neighbour_floor),
            )
        ],
        right=("at", *kinds),
    )
    for sentence in _advice(embedder, found, settings):
        out.print(sentence, markup=False, soft_wrap=True)


def _count(calibration: Calibration, kind: Kind) -> int:
    return sum(pair.kind == kind for pair in calibration.measured)


def _row(calibration: Calibration, kind: Kind) -> list[str]:
    return [f"{value:.2f}" for value in distribution(calibration.measured, kind).values()]


def _shown(counted: Taken) -> str:
    return f"{counted.merged} ({counted.near}) of {counted.pairs}"


def _let_through(calibration: Calibration, floor: float) -> list[str]:
    return [f"{above(calibration.measured, kind, floor) * 100:.0f}" for kind in KINDS]


def _advice(
    embedder: Embedder, found: Mapping[Language, Calibration], settings: Settings
) -> list[str]:
    latin, cjk = (found[language].threshold for language in LANGUAGES)
    default = embedder.duplicate_threshold
    set_to = settings.duplicate_threshold
    in_force = (
        f"In force: {set_to:g} for every language, by MEMORY_DUPLICATE_THRESHOLD."
        if set_to is not None
        else f"In force: {default.latin:g} (Latin) and {default.cjk:g} (CJK) of the embedder."
    )
    return [
        "",
        f"Derived: duplicate threshold {latin:.2f} (Latin) and {cjk:.2f} (CJK), neighbour floor "
        f"{_floor(found):.2f}.",
        f"Default: {default.latin:.2f}, {default.cjk:.2f} and {embedder.neighbour_floor:.2f}; "
        f"{_source(embedder)}.",
        in_force,
        f"  {THRESHOLD_RULE}",
        f"  {FLOOR_RULE}; one for all languages, so the lower one",
        f"To use what was derived, set MEMORY_DUPLICATE_THRESHOLD={max(latin, cjk):.2f}, the "
        "higher one: it is one number for every language. Left out, the embedder's own two apply.",
        "There are 30 pairs to a class, so one of them moves a derived number by some hundredths: "
        "a default that is that near is no reason to change anything.",
    ]


def _source(embedder: Embedder) -> str:
    told = (source for name, source in SOURCES.items() if embedder.name.startswith(name))
    return next(told, UNMEASURED)


def _document(embedder: Embedder, found: Mapping[Language, Calibration]) -> dict[str, Any]:
    """Everything that is printed, for machines; shares are 0 to 1."""
    default = embedder.duplicate_threshold
    return {
        "kemem": VERSION,
        "date": utc_now().isoformat(timespec="seconds"),
        "embedding_model": embedder.name,
        "rules": [THRESHOLD_RULE, FLOOR_RULE],
        "derived": {
            "duplicate_threshold": {
                SCRIPTS[name]: calibration.threshold for name, calibration in found.items()
            },
            "neighbour_floor": _floor(found),
        },
        "default": {
            "duplicate_threshold": {"latin": default.latin, "cjk": default.cjk},
            "neighbour_floor": embedder.neighbour_floor,
            "source": _source(embedder),
        },
        "languages": {name: _figures(calibration, embedder) for name, calibration in found.items()},
    }


def _figures(calibration: Calibration, embedder: Embedder) -> dict[str, Any]:
    return {
        "similarity": {kind: distribution(calibration.measured, kind) for kind in KINDS},
        "duplicate_threshold": {
            name: {
                "at": threshold,
                "taken": {
                    kind: asdict(counted)
                    for kind, counted in taken(calibration.measured, threshold).items()
                },
            }
            for name, threshold in (
                ("derived", calibration.threshold),
                ("default", calibration.default),
            )
        },
        "neighbour_floor": {
            name: {
                "at": floor,
                "above": {kind: above(calibration.measured, kind, floor) for kind in KINDS},
            }
            for name, floor in (
                ("derived", calibration.floor),
                ("default", embedder.neighbour_floor),
            )
        },
    }
