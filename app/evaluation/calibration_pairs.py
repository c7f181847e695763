"""The labelled pairs that `kemem calibrate` measures an embedder on; they come in the package."""

import json
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal, get_args

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
