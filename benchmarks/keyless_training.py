"""Trains what decides which clauses the keyless reader keeps, and writes its weights.

`python -m benchmarks.keyless_training english` reads `benchmarks/training_set/english*.jsonl` and
the halves of `benchmarks/extraction_set` that may be seen, all of them written for this project.
A clause is right if somebody judged it so. The probabilities are calibrated on clauses of
messages that the weights were not made from. The same lines give the same file.

English words that mean alike (by the vectors of the local embedder) get like weights, also those
that no line has. Vectors only shape the weights; nothing reads them later.
"""

import argparse
import asyncio
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import numpy.typing as npt

from app.language.keyless.chinese_clauses import chinese_clauses
from app.language.keyless.classifier import (
    BUCKETS,
    PLAIN,
    WEIGHTS,
    Classifier,
    bucket,
    buckets,
    grams,
)
from app.language.keyless.clauses import Clause
from app.language.keyless.english_clauses import english_clauses
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from benchmarks.extraction_labels import SHOWN, path_of, read
from benchmarks.extraction_matching import is_same, states

TRAINING_SET: Final = Path(__file__).parent / "training_set"
READERS: Final[dict[str, Callable[[str, str | None], list[Clause]]]] = {
    "english": english_clauses,
    "chinese": chinese_clauses,
}
FOLDS: Final = 6
STEPS: Final = 300
RATE: Final = 0.05
# Ridge of cues and of n-grams: there are few cues, and each was seen often.
CUE_RIDGE: Final = 2.0
GRAM_RIDGE: Final = 0.5
# How much the meaning of a word counts beside the word itself.
MEANING: Final = 0.3
# Lines that count less than the others: adults' talk is judged so strictly that what children tell
# of their day was no longer found.
LESS: Final = {"chinese_talk": 0.6}
# In English these talk among people, and so does who answers somebody's name.
PEOPLE: Final = re.compile("english_(?:friends|chats)")
NAMED: Final = re.compile(r"[\w .'-]{1,20}: ")
# A message of the older set is short and says one thing, unlike most that are written.
LABELLED_WEIGHT: Final = 0.4

# What makes of the probability on unseen lines of ours the one on what others wrote, which is less
# plain: slope and offset, such that the floors of what is chosen are as right as they say.
ON_OTHERS: Final = {"english": (0.7, 0.37), "chinese": (1.0, 0.89)}
# Besides, the offset among people: of what was 0.6 sure there, four in five are right by marks.
ON_PEOPLE: Final = 0.5

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Example:
    """A clause, whether it states a fact of its message, which message it is of, what it counts,
    and whether it was said among people.
    """

    clause: Clause
    right: bool
    message: int
    weight: float = 1.0
    among_people: bool = False


def judged(language: str, first: int) -> Iterator[Example]:
    """Clauses of the messages whose right clauses are told."""
    clauses_of = READERS[language]
    number = first
    for path in sorted(TRAINING_SET.glob(f"{language}*.jsonl")):
        for line in path.read_text(encoding="utf-8").splitlines():
            row = json.loads(line)
            number += 1
            named = language == "english" and NAMED.match(row["before"] or "")
            among = bool(named or PEOPLE.match(path.stem))
            for clause in clauses_of(row["text"], row["before"]):
                right = any(is_same(clause.text, each) for each in row["right"])
                yield Example(clause, right, number, LESS.get(path.stem, 1.0), among)


def labelled(language: str, first: int) -> Iterator[Example]:
    """Clauses of the set whose facts are marked by words that a statement must have."""
    clauses_of = READERS[language]
    number = first
    for utterance in (each for half in SHOWN for each in read(path_of(language, half))):
        turn, *earlier = reversed(utterance.turns)
        number += 1
        if turn.role != "user" or sum(each.role == "user" for each in earlier):
            continue
        found = clauses_of(turn.content, earlier[0].content if earlier else None)
        met: set[int] = set()
        for clause in found:
            facts = [at for at, fact in enumerate(utterance.expected) if states(clause.text, fact)]
            met.update(facts)
            if facts:
                if not all(utterance.expected[at].optional for at in facts):
                    yield Example(clause, True, number, LABELLED_WEIGHT)
            elif len(met) == len(utterance.expected):
                yield Example(clause, False, number, LABELLED_WEIGHT)


def meanings(examples: Sequence[Example]) -> dict[str, Floats]:
    """The vectors of the words of the examples, and of all that the embedder knows."""
    embedder = WordLlamaEmbedder.load()
    known = (each.lstrip("▁").lower() for each in embedder._tokenizer.get_vocab())  # noqa: SLF001
    said = (gram for each in examples for gram in grams(each.clause.text))
    words = sorted({each for each in (*known, *said) if re.fullmatch("[a-z']{2,}", each)})
    vectors = asyncio.run(embedder.embed(words))
    return dict(zip(words, MEANING * vectors.astype(np.float64), strict=True))


def cues_of(example: Example) -> dict[tuple[bool, str], float]:
    """The cues of a clause by name; among people each twice, the second time as said there."""
    said = example.clause.cues
    cues = {(False, name): value for name, value in said.items()}
    if example.among_people:
        cues |= {(True, name): value for name, value in said.items()} | {(True, PLAIN): 1.0}
    return cues


class Features:
    """The examples as numbers: for each its cues and n-grams, as a sparse matrix, and the sum of
    the vectors of its words.
    """

    def __init__(self, examples: Sequence[Example], vectors: Mapping[str, Floats]) -> None:
        self.names = sorted({name for each in examples for name in cues_of(each)})
        at = {name: place for place, name in enumerate(self.names, start=1)}
        rows: list[int] = []
        columns: list[int] = []
        values: list[float] = []
        for row, each in enumerate(examples):
            found = buckets(each.clause.text)
            cells = [(0, 1.0), *((at[name], value) for name, value in cues_of(each).items())]
            cells += [(1 + len(at) + place, len(found) ** -0.5) for place in found]
            rows += [row] * len(cells)
            columns += [column for column, _ in cells]
            values += [value for _, value in cells]
        self.rows = np.array(rows)
        self.columns = np.array(columns)
        self.values = np.array(values)
        self.right = np.array([each.right for each in examples], dtype=np.float64)
        self.weight = np.array([each.weight for each in examples])
        self.meaning = np.array([_meaning(each.clause.text, vectors) for each in examples])
        self.width = 1 + len(at) + BUCKETS
        self.ridge = np.full(self.width + self.meaning.shape[1], GRAM_RIDGE)
        self.ridge[: 1 + len(at)] = CUE_RIDGE
        self.ridge[0] = 0.0

    def margins(self, weights: Floats) -> Floats:
        cells = weights[self.columns] * self.values
        sums: Floats = np.bincount(self.rows, cells, len(self.right)).astype(np.float64)
        return sums + self.meaning @ weights[self.width :]

    def fitted(self, used: Floats) -> Floats:
        """Weights by the examples, each as often as it is used. Nothing is drawn by chance."""
        weights, mean, spread = (np.zeros(len(self.ridge)) for _ in range(3))
        for step in range(1, STEPS + 1):
            error = (_sigmoid(self.margins(weights)) - self.right) * used
            sparse = np.bincount(self.columns, error[self.rows] * self.values, minlength=self.width)
            slope = np.concatenate([sparse, self.meaning.T @ error]) + self.ridge * weights
            mean = 0.9 * mean + 0.1 * slope
            spread = 0.99 * spread + 0.01 * slope**2
            rate = RATE * (1 - step / (STEPS + 1))
            weights -= rate * (mean / (1 - 0.9**step)) / (np.sqrt(spread / (1 - 0.99**step)) + 1e-8)
        return weights


def _meaning(text: str, vectors: Mapping[str, Floats]) -> Floats:
    found = [vectors[each] for each in sorted(set(grams(text))) if each in vectors]
    length = len(next(iter(vectors.values()))) if vectors else 0
    result: Floats = (np.zeros(length) + sum(found)) / max(len(buckets(text)), 1) ** 0.5
    return result


def with_meaning(
    weights: Floats, ofs: Floats, vectors: Mapping[str, Floats], examples: Sequence[Example]
) -> Floats:
    """The weights of the buckets with what words mean in them; of unseen words if nobody has it."""
    seen = {gram for each in examples for gram in grams(each.clause.text)}
    taken = {bucket(each) for each in seen}
    result = weights.copy()
    for word, vector in vectors.items():
        if word in seen or bucket(word) not in taken:
            result[bucket(word)] += vector @ ofs
            taken.add(bucket(word))
    return result


def _sigmoid(margins: Floats) -> Floats:
    result: Floats = 1 / (1 + np.exp(-margins))
    return result


def calibration(margins: Floats, right: Floats, weight: Floats) -> tuple[float, float]:
    """Slope and offset that make margins of unseen clauses probabilities: Newton's method."""
    line = np.array([1.0, 0.0])
    points = np.stack([margins, np.ones_like(margins)], axis=1)
    for _ in range(50):
        found = _sigmoid(points @ line)
        curve = (points * (weight * found * (1 - found))[:, None]).T @ points + 1e-6 * np.eye(2)
        line -= np.linalg.solve(curve, points.T @ (weight * (found - right)))
    return float(line[0]), float(line[1])


def trained(examples: Sequence[Example], language: str = "english") -> tuple[Classifier, Floats]:
    """The classifier, and the probability of each example by weights that have not seen it."""
    vectors = meanings(examples) if language == "english" else {}
    features = Features(examples, vectors)
    folds = np.array([each.message % FOLDS for each in examples])
    unseen = np.zeros(len(examples))
    for fold in range(FOLDS):
        weights = features.fitted(features.weight * (folds != fold))
        unseen[folds == fold] = features.margins(weights)[folds == fold]
    slope, offset = calibration(unseen, features.right, features.weight)
    steeper, higher = ON_OTHERS[language]
    slope, offset = slope * steeper, offset * steeper + higher
    weights = features.fitted(features.weight) * slope
    named = list(zip(features.names, map(float, weights[1:]), strict=False))
    cues, among = ({name: x for (of, name), x in named if of == each} for each in (False, True))
    if among:
        among[PLAIN] += ON_PEOPLE
    told = weights[1 + len(features.names) : features.width]
    told = with_meaning(told, weights[features.width :], vectors, examples)
    made = Classifier(float(weights[0]) + offset, cues, told.astype(np.float32), among)
    people = ON_PEOPLE * np.array([each.among_people for each in examples])
    return made, _sigmoid(unseen * slope + offset + people)


def save(path: Path, weights: Classifier) -> None:
    """The same weights give the same bytes."""
    cues, among = (sorted(each.items()) for each in (weights.cues, weights.among_people))
    np.savez(
        path,
        bias=np.float64(weights.bias),
        cue_names=np.array([name for name, _ in cues], dtype=np.str_),
        cue_weights=np.array([weight for _, weight in cues], dtype=np.float32),
        among_names=np.array([name for name, _ in among], dtype=np.str_),
        among_weights=np.array([weight for _, weight in among], dtype=np.float32),
        grams=weights.grams.astype(np.float16),
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("language", choices=sorted(READERS))
    parser.add_argument("--cues", action="store_true", help="print the weight of each cue")
    given = parser.parse_args()
    examples = list(judged(given.language, 0))
    examples += labelled(given.language, examples[-1].message + 1 if examples else 0)
    weights, unseen = trained(examples, given.language)
    WEIGHTS.mkdir(exist_ok=True)
    save(WEIGHTS / f"{given.language}.npz", weights)
    right = np.array([each.right for each in examples])
    print(f"{len(examples)} clauses, {right.sum()} state a fact")
    print("at least | precision | recall | bin: right of n")
    for least in (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9):
        kept = unseen >= least
        bin_ = kept & (unseen < least + 0.1)
        print(
            f"{least:8} | {right[kept].mean():9.3f} | {right[kept].sum() / right.sum():6.3f} | "
            f"{right[bin_].mean():.2f} of {bin_.sum()}"
        )
    if given.cues:
        for name, weight in sorted(weights.cues.items(), key=lambda item: item[1]):
            print(f"{weight:8.2f} {name}")


if __name__ == "__main__":
    main()
