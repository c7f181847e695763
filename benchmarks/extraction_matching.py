"""Which proposal matches which labelled fact; every other proposal is a false positive."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC

from app.language.llm.extractor import Proposed
from app.language.text.normal_forms import normalise
from benchmarks.extraction_labels import Expectation


@dataclass(frozen=True, slots=True)
class Matched:
    """One utterance judged. Optional facts are in none of the three."""

    pairs: tuple[tuple[Expectation, Proposed], ...]
    missed: tuple[Expectation, ...]
    surplus: tuple[Proposed, ...]


def match(expected: Sequence[Expectation], proposals: Sequence[Proposed]) -> Matched:
    """Give each fact the first proposal that says it and says no other fact already.

    Facts that must be found choose before optional ones, those with more words first, so that
    a proposal goes to the most particular fact it states. A fact proposed twice counts once:
    the second proposal is surplus.
    """
    left = list(proposals)
    pairs, missed = [], []
    for one in sorted(expected, key=lambda fact: (fact.optional, -_demands(fact))):
        found = next((proposal for proposal in left if states(proposal, one)), None)
        if found is not None:
            left.remove(found)
        if one.optional:
            continue
        if found is None:
            missed.append(one)
        else:
            pairs.append((one, found))
    return Matched(tuple(pairs), tuple(missed), tuple(left))


def states(proposal: Proposed, fact: Expectation) -> bool:
    """Whether the proposal is of an honest type and has the words, whatever their case."""
    content = normalise(proposal.content)

    def has(words: str) -> bool:
        return normalise(words) in content

    return (
        proposal.memory_type in fact.types
        and fact.retracts in {None, proposal.retracts}
        and all(map(has, fact.must))
        and (not fact.any_of or any(map(has, fact.any_of)))
        and not any(map(has, fact.never))
    )


def dated(proposal: Proposed, fact: Expectation) -> bool:
    """Whether `valid_from` is a day that the label allows."""
    if fact.since is None or proposal.valid_from is None:
        return fact.since is None
    first, last = fact.since
    return first <= proposal.valid_from.astimezone(UTC).date() <= last


def _demands(fact: Expectation) -> int:
    return len(fact.must) + bool(fact.any_of)
