"""What becomes of the second of two statements when the first is remembered, without a model.

`python -m benchmarks.contradictions pairs.jsonl …` reads lines of `kind`, `a` and `b`, as
`app/evaluation/data/calibration_*.jsonl` has them, and counts per file and kind: what a save takes
for a duplicate, and what the keyless reconciler does. Of contradictions, what is repeated is lost;
of all other kinds, whatever is replaced.
"""

import argparse
import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from app.language.keyless.kinds import memory_type
from app.language.keyless.reconciler import decide
from app.language.llm.extractor import Proposed
from app.language.llm.reconciler import Neighbour, ReconcileQuestion
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.language.text.distinctions import differs

OUTCOMES = ("replaced", "in conflict", "repeated", "beside")


async def measure(name: str, text: str, embedder: WordLlamaEmbedder) -> None:
    pairs = [json.loads(line) for line in text.splitlines() if line.strip()]
    vectors = await embedder.embed([text for pair in pairs for text in (pair["a"], pair["b"])])
    near = np.einsum("ij,ij->i", vectors[0::2], vectors[1::2])
    merged: Counter[str] = Counter()
    became: dict[str, Counter[str]] = {}
    for pair, similarity in zip(pairs, near, strict=True):
        kind, old, new = pair["kind"], pair["a"], pair["b"]
        threshold = embedder.duplicate_threshold.for_text(new)
        merged[kind] += bool(similarity >= threshold and differs(old, new) is None)
        counted = became.setdefault(kind, Counter())
        counted[outcome(old, new, float(similarity), embedder)] += 1
    print(f"\n{name}\n| pairs of | count | merged by a save | {' | '.join(OUTCOMES)} |")
    print("|---" * (3 + len(OUTCOMES)) + "|")
    for kind, counted in became.items():
        cells = (str(counted[each]) for each in OUTCOMES)
        print(f"| {kind} | {counted.total()} | {merged[kind]} | {' | '.join(cells)} |")


def outcome(old: str, new: str, similarity: float, embedder: WordLlamaEmbedder) -> str:
    """What the reconciler makes of a new statement, if the old one is a neighbour at all."""
    if similarity < embedder.neighbour_floor:
        return "beside"
    duplicate = similarity >= embedder.duplicate_threshold.for_text(new)
    near = Neighbour(
        "old", old, memory_type(old), 0.9, min(similarity, 1.0), possible_duplicate=duplicate
    )
    decision = decide(ReconcileQuestion(Proposed(new, memory_type(new), 0.9, ("new",)), [near]))
    if decision.conflicts:
        return "in conflict"
    return {"ADD": "beside", "NONE": "repeated"}.get(decision.event, "replaced")


async def main(files: Mapping[str, str]) -> None:
    embedder = await WordLlamaEmbedder.open()
    for name, text in files.items():
        await measure(name, text, embedder)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pairs", type=Path, nargs="+")
    given = parser.parse_args().pairs
    asyncio.run(main({path.name: path.read_text(encoding="utf-8") for path in given}))
