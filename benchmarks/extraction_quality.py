"""How many facts keyless extraction finds, and how many of its statements are right.

`python -m benchmarks.extraction_quality [--data FOLDER]`. Two measures: on messages of public data
sets that nobody here wrote, whose facts others marked (`unseen_labels`; needs the folder of the
data sets), and on the labelled set of this repository, which is a regression test.
"""

import argparse
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Final

from app.language.keyless.extractor import RulesExtractor, propose
from app.language.llm.extractor import ConversationTurn, ExtractionRequest, Proposed
from benchmarks.extraction_labels import HALVES, LANGUAGES, path_of, read
from benchmarks.extraction_matching import covers, is_right, states
from benchmarks.unseen_labels import LABELS, Marked, read_marked, texts_of

RESULT: Final = Path(__file__).parent / "results" / "extraction_quality.md"
SAID_AT: Final = datetime(2024, 6, 1, 12, tzinfo=UTC)
BINS: Final = (0.7, 0.8, 0.9, 1.01)


@dataclass(frozen=True, slots=True)
class Judged:
    """One message.

    Args:
        facts: how many it states.
        found: how many of them a statement states.
        statements: confidence of each, and whether it is right.

    """

    facts: int
    found: int
    statements: tuple[tuple[float, bool], ...]


def judged_marked(message: Marked) -> Judged:
    said = _turn("said", "user", message.text)
    if message.among_people:
        said = replace(said, name="speaker")
    turns = [said] if message.before is None else [_before(message, message.before), said]
    proposals = propose(ExtractionRequest(turns))
    found = sum(any(covers(one.content, quote) for one in proposals) for quote in message.quotes)
    statements = [(each.confidence, is_right(each.content, message.quotes)) for each in proposals]
    return Judged(len(message.quotes), found, tuple(statements))


def _before(message: Marked, text: str) -> ConversationTurn:
    if message.among_people:
        return replace(_turn("before", "user", text), name="other", context=True)
    return _turn("before", "assistant", text)


def _turn(message_id: str, role: str, text: str) -> ConversationTurn:
    return ConversationTurn(message_id, "user" if role == "user" else "assistant", text, SAID_AT)


def judged_labelled(path: Path) -> list[Judged]:
    """Utterances of the labelled set; optional facts count neither as found nor as missed."""
    judged = []
    for utterance in read(path):
        proposals: list[Proposed] = propose(utterance.request)
        wanted = [fact for fact in utterance.expected if not fact.optional]
        found = sum(any(states(one.content, fact) for one in proposals) for fact in wanted)
        statements = [
            (one.confidence, any(states(one.content, fact) for fact in utterance.expected))
            for one in proposals
        ]
        judged.append(Judged(len(wanted), found, tuple(statements)))
    return judged


def row(title: str, judged: Sequence[Judged]) -> str:
    """One line of the table: of the statements, how many are right by their confidence."""
    facts, found = sum(each.facts for each in judged), sum(each.found for each in judged)
    statements = [each for one in judged for each in one.statements]
    right = sum(is_so for _, is_so in statements)
    bins = [
        [is_so for sure, is_so in statements if low <= sure < high] for low, high in pairwise(BINS)
    ]
    shares = " | ".join(f"{sum(each)} of {len(each)}" for each in bins)
    return (
        f"| {title} | {len(judged)} | {facts} | {len(statements)} | {_share(right, statements)} "
        f"| {found / max(facts, 1):.2f} | {shares} |"
    )


def _share(right: int, statements: Sequence[object]) -> str:
    return f"{right / len(statements):.2f}" if statements else "-"


HEAD: Final = (
    "| part | messages | facts | statements | precision | recall | right at 0.7 | at 0.8 "
    "| at 0.9 |\n|---|--:|--:|--:|--:|--:|--:|--:|--:|"
)


def report(unseen: Iterable[str], labelled: Iterable[str]) -> str:
    lines = [f"# Keyless extraction, `{RulesExtractor.name}`", ""]
    lines += [
        "A fact is found if a statement has four fifths of its words. A statement is right if it "
        "states a marked fact, or has three fifths of its own words from one.",
        "", "## Messages that nobody here wrote", "", HEAD, *unseen, "",
        "## The labelled set of this repository, a regression test", "",
        "Its messages are short, and facts that were true in the past alone are none there.",
        "", HEAD, *labelled, "",
    ]  # fmt: skip
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="the folder of the public data sets")
    given = parser.parse_args()
    unseen = []
    for path in sorted(LABELS.glob("*.jsonl")) if given.data else []:
        name, _, half = path.stem.rpartition("_")
        texts = texts_of("madial_zh" if name == "madial" else name, given.data)
        judged = [judged_marked(each) for each in read_marked(path, texts)]
        unseen.append(row(f"{name}, {half}", judged))
    labelled = [
        row(f"{language}, {half.replace('_', '-')}", judged_labelled(path_of(language, half)))
        for half in HALVES
        for language in LANGUAGES
    ]
    text = report(unseen, labelled)
    print(text)
    if given.data:
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
