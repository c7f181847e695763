"""How many facts keyless extraction finds, and how many of its statements are right.

`python -m benchmarks.extraction_quality`. The author of the rules has not seen the half `held_out`
of the labelled set, and its utterances are never printed; `dev` and `more` were seen.
"""

import argparse
import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from app.language.keyless.extractor import RulesExtractor
from app.language.llm.extractor import Extraction, Extractor
from benchmarks import extraction_report
from benchmarks.extraction_labels import HALVES, LANGUAGES, SHOWN, Utterance, path_of, read
from benchmarks.extraction_matching import Matched, match
from benchmarks.extraction_report import Part, markdown

RESULT = Path(__file__).parent / "results" / "extraction_quality.md"


@dataclass(frozen=True, slots=True)
class Judged:
    """One utterance with what was found in it."""

    utterance: Utterance
    extraction: Extraction
    matched: Matched


async def judge(extractor: Extractor, utterances: Sequence[Utterance]) -> list[Judged]:
    judged = []
    for utterance in utterances:
        extraction = await extractor.extract(utterance.request)
        matched = match(utterance.expected, extraction.proposals)
        judged.append(Judged(utterance, extraction, matched))
    return judged


async def measure(language: str, half: str) -> tuple[Part, list[Judged]]:
    """One half of one language, read twice: a second extractor must answer the same."""
    utterances = read(path_of(language, half))
    judged = await judge(RulesExtractor(), utterances)
    again = await judge(RulesExtractor(), utterances)
    different = sum(
        one.extraction.proposals != other.extraction.proposals
        for one, other in zip(judged, again, strict=True)
    )
    silent = [bool(one.extraction.proposals) for one in judged if not one.utterance.expected]
    part = Part(
        language=language,
        half=half,
        utterances=len(judged),
        matched=tuple(one.matched for one in judged),
        without_facts=len(silent),
        left_alone=silent.count(False),
        proposals=sum(len(one.extraction.proposals) for one in judged),
        without_evidence=sum(map(_without_evidence, judged)),
        answered_differently=different,
    )
    return part, judged


def _without_evidence(judged: Judged) -> int:
    """Proposals that name no turn of the user, or one that does not exist."""
    said = {turn.message_id for turn in judged.utterance.turns}
    own = {turn.message_id for turn in judged.utterance.turns if turn.role == "user"}
    return sum(
        not own.intersection(proposal.evidence) or not said.issuperset(proposal.evidence)
        for proposal in judged.extraction.proposals
    )


def print_failures(judged: Sequence[Judged]) -> None:
    """Every utterance with a fact that was missed or a proposal too many."""
    for one in judged:
        if not one.matched.missed and not one.matched.surplus:
            continue
        print(f"\n{one.utterance.id}")
        for turn in one.utterance.turns:
            print(f"  {turn.role}: {turn.content}")
        for fact in one.matched.missed:
            words = " + ".join(fact.must + (("/".join(fact.any_of),) if fact.any_of else ()))
            print(f"  missed   {'|'.join(fact.types)}: {words}")
        for proposal in one.matched.surplus:
            away = " (retracts)" if proposal.retracts else ""
            print(f"  surplus  {proposal.memory_type}: {proposal.content}{away}")
        _print_details(one.matched)


def _print_details(matched: Matched) -> None:
    for fact, proposal in matched.pairs:
        if extraction_report.attribute_is_wrong(fact, proposal):
            print(f"  attribute {proposal.attribute} instead of {fact.attribute}")
        if extraction_report.date_is_wrong(fact, proposal):
            print(f"  valid_from {proposal.valid_from} instead of {fact.since}")


async def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--half", choices=(*HALVES, "all"), default="all")
    parser.add_argument("--failures", action="store_true", help="show what failed in dev and more")
    given = parser.parse_args()
    if given.failures and given.half == "held_out":
        parser.error(
            "the held-out half stays unseen, or its figures would mean nothing; --failures "
            "shows dev and more only"
        )
    parts = []
    for half in HALVES if given.half == "all" else (given.half,):
        for language in LANGUAGES:
            part, judged = await measure(language, half)
            parts.append(part)
            if given.failures and half in SHOWN:
                print_failures(judged)
    text = markdown(RulesExtractor().name, parts)
    print(text)
    if given.half == "all":
        RESULT.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    asyncio.run(main())
