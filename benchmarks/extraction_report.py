"""The report of `benchmarks.extraction_quality` as Markdown: the goal first."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from app.language.llm.extractor import Proposed
from benchmarks.extraction_labels import Expectation
from benchmarks.extraction_matching import Matched, dated

GOAL_PRECISION = 0.95
GOAL_RECALL = 0.70


@dataclass(frozen=True, slots=True)
class Part:
    """One half of one language."""

    language: str
    half: str
    utterances: int
    matched: tuple[Matched, ...]
    without_facts: int
    left_alone: int
    proposals: int
    without_evidence: int
    answered_differently: int

    @property
    def pairs(self) -> list[tuple[Expectation, Proposed]]:
        return [pair for one in self.matched for pair in one.pairs]

    @property
    def missed(self) -> list[Expectation]:
        return [fact for one in self.matched for fact in one.missed]

    @property
    def surplus(self) -> list[Proposed]:
        return [proposal for one in self.matched for proposal in one.surplus]

    @property
    def precision(self) -> float | None:
        return _ratio(len(self.pairs), len(self.pairs) + len(self.surplus))

    @property
    def recall(self) -> float | None:
        return _ratio(len(self.pairs), len(self.pairs) + len(self.missed))

    @property
    def title(self) -> str:
        return f"{self.language.capitalize()}, {self.half.replace('_', '-')}"


def attribute_is_wrong(fact: Expectation, proposal: Proposed) -> bool:
    return fact.attribute is not None and proposal.attribute != fact.attribute


def date_is_wrong(fact: Expectation, proposal: Proposed) -> bool:
    return not dated(proposal, fact)


def markdown(extractor: str, parts: Sequence[Part]) -> str:
    lines = [
        f"# Keyless extraction, `{extractor}`",
        "",
        "Labelled by hand, see `benchmarks/extraction_set/README.md`. Each proposal counts for "
        "one fact at most; one that states no labelled fact, or states it again, is a false "
        "positive. The rules were written without sight of the held-out half. Goal, on that "
        f"half: precision ≥ {GOAL_PRECISION:.2f}, recall ≥ {GOAL_RECALL:.2f}.",
        "",
        *_overall(parts),
    ]
    for part in parts:
        lines += _by_type(part)
    lines += _by_kind(parts)
    return "\n".join(lines)


def _overall(parts: Sequence[Part]) -> list[str]:
    lines = [
        "| part | utterances | expected | found | true | false | precision | recall "
        "| talk without facts left alone | attribute right | date right |",
        "|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for part in parts:
        pairs, missed, surplus = len(part.pairs), len(part.missed), len(part.surplus)
        lines.append(
            f"| {part.title} | {part.utterances} | {pairs + missed} | {pairs + surplus} | {pairs} "
            f"| {surplus} | {_share(part.precision)} | {_share(part.recall)} "
            f"| {part.left_alone} of {part.without_facts} "
            f"| {_attributes(part)} | {_dates(part)} |"
        )
    goals = [f"- {part.title}: {_verdict(part)}" for part in parts if part.half == "held_out"]
    different = sum(part.answered_differently for part in parts)
    without = sum(part.without_evidence for part in parts)
    return [
        *lines,
        "",
        *goals,
        f"- Read twice by two extractors: {different or 'no'} utterances answered differently.",
        f"- Of {sum(part.proposals for part in parts)} proposals, {without or 'none'} without a "
        "message of the user as evidence.",
        "",
    ]


def _attributes(part: Part) -> str:
    judged = [pair for pair in part.pairs if pair[0].attribute is not None]
    return f"{sum(not attribute_is_wrong(*pair) for pair in judged)} of {len(judged)}"


def _dates(part: Part) -> str:
    judged = [pair for pair in part.pairs if pair[0].since is not None]
    return f"{sum(not date_is_wrong(*pair) for pair in judged)} of {len(judged)}"


def _verdict(part: Part) -> str:
    reached = (part.precision or 0) >= GOAL_PRECISION and (part.recall or 0) >= GOAL_RECALL
    return "goal reached." if reached else "goal missed."


def _by_type(part: Part) -> list[str]:
    true = Counter(fact.types[0] for fact, _ in part.pairs)
    missed = Counter(fact.types[0] for fact in part.missed)
    false = Counter(proposal.memory_type for proposal in part.surplus)
    lines = [
        f"## {part.title}",
        "",
        "| type | expected | found | true | false | precision | recall |",
        "|---|--:|--:|--:|--:|--:|--:|",
    ]
    for name in sorted(true | missed | false):
        expected, found = true[name] + missed[name], true[name] + false[name]
        precision, recall = _ratio(true[name], found), _ratio(true[name], expected)
        lines.append(
            f"| {name} | {expected} | {found} | {true[name]} | {false[name]} "
            f"| {_share(precision)} | {_share(recall)} |"
        )
    return [*lines, ""]


def _by_kind(parts: Sequence[Part]) -> list[str]:
    """What the type `fact` hides: identity, relations and what was to be remembered."""
    lines = [
        "## Recall per kind",
        "",
        "| kind | " + " | ".join(part.title for part in parts) + " |",
        "|---|" + "--:|" * len(parts),
    ]
    found = [Counter(fact.kind for fact, _ in part.pairs) for part in parts]
    missed = [Counter(fact.kind for fact in part.missed) for part in parts]
    for kind in sorted(set().union(*found, *missed)):
        cells = [
            f"{yes[kind]} of {yes[kind] + no[kind]}" for yes, no in zip(found, missed, strict=True)
        ]
        lines.append(f"| {kind} | " + " | ".join(cells) + " |")
    return [*lines, ""]


def _ratio(part: int, whole: int) -> float | None:
    return part / whole if whole else None


def _share(value: float | None) -> str:
    return "" if value is None else f"{value:.3f}"
