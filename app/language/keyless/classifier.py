"""How sure it is that a clause is worth remembering: logistic regression on cues and n-grams.

The weights of a language are one file that `benchmarks/keyless_training.py` writes. Words and
runs of characters are hashed, so the file holds numbers, and no word of the texts it was made
from. What comes out is calibrated: of clauses with 0.9 nine in ten are right.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final
from zlib import crc32

import numpy as np
import numpy.typing as npt

from app.language.keyless.clauses import Clause
from app.language.text.lazy_pattern import lazy_pattern

BUCKETS: Final = 1 << 15
"""Of hashed n-grams; 64 KB of numbers a language."""

PLAIN: Final = ""
"""The name of what every clause counts more or less among people."""

WEIGHTS: Final = Path(__file__).parent / "weights"

_WORD: Final = lazy_pattern(r"[a-zà-ÿ]+(?:['’][a-z]+)?|\d+|[\u3400-\u9fff]|[^\s\w]")
_HAN: Final = lazy_pattern(r"[\u3400-\u9fff]")


@dataclass(frozen=True, slots=True)
class Classifier:
    """The weights of one language.

    Args:
        bias: of a clause without any cue.
        cues: by name; a cue without a weight counts nothing.
        grams: one for each bucket.
        among_people: what a cue counts more or less where several people talk.

    """

    bias: float
    cues: Mapping[str, float]
    grams: npt.NDArray[np.float32]
    among_people: Mapping[str, float] = field(default_factory=dict)

    def probability(self, clause: Clause, *, among_people: bool = False) -> float:
        """From 0 to 1, of the clause without its lead."""
        margin = self.bias + sum(
            value * self.cues.get(name, 0.0) for name, value in clause.cues.items()
        )
        if among_people:
            more = self.among_people
            margin += sum(value * more.get(name, 0.0) for name, value in clause.cues.items())
            margin += more.get(PLAIN, 0.0)
        found = buckets(clause.text)
        if found:
            margin += float(self.grams[found].sum()) / math.sqrt(len(found))
        return 1 / (1 + math.exp(-max(min(margin, 30.0), -30.0)))


def buckets(text: str) -> list[int]:
    """The bucket of each n-gram, once each, in order."""
    return sorted({bucket(each) for each in grams(text)})


def bucket(gram: str) -> int:
    return crc32(gram.encode()) % BUCKETS


def grams(text: str) -> Iterator[str]:
    """Words and pairs of them, with every number as one; of Chinese also threes."""
    words = [
        "0" if each.isdigit() else each for each in _WORD.findall(text.lower().replace("’", "'"))
    ]
    before, second = "^", ""
    for each in words:
        yield each
        yield f"{before} {each}"
        if second and _HAN.match(each):
            yield f"{second} {before} {each}"
        second, before = before, each
    yield f"{before} $"


@cache
def classifier(language: str) -> Classifier:
    """The weights that ship, read once: `english` or `chinese`.

    Raises:
        FileNotFoundError: there are none for the language.

    """
    return load(WEIGHTS / f"{language}.npz")


def load(path: Path) -> Classifier:
    """What `save` of the training wrote."""
    with np.load(path, allow_pickle=False) as stored:
        cues, among = (
            dict(
                zip(map(str, stored[f"{of}_names"]), stored[f"{of}_weights"].tolist(), strict=True)
            )
            for of in ("cue", "among")
        )
        return Classifier(float(stored["bias"]), cues, stored["grams"].astype(np.float32), among)
