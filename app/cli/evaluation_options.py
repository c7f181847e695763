"""What options of `kemem eval` mean: depths, fields of a search; who reads, who grades, and what
the reader is given.
"""

import json
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from app.console import UNUSABLE, fail
from app.evaluation.answer_measurement import Wishes
from app.evaluation.dataset import Dataset, choose
from app.evaluation.reader import MESSAGES, VARIANTS
from app.evaluation.run import Plan

DEFAULT_BUDGET: Final = 2000
"""Tokens of a context, as of the service when it says nothing else."""

MOST_HITS = 100
"""What one search may return."""

OWN_FIELDS = frozenset({"query", "user_id", "limit"})
CONTEXT_FIELDS = frozenset({"query", "max_memory_tokens", "render"})
"""What an evaluation says of a search and of a context itself."""


def depths(text: str) -> list[int]:
    """Increasing, each once."""
    parts = [part.strip() for part in text.split(",")]
    if not all(part.isascii() and part.isdigit() for part in parts):
        fail(
            f"--k takes numbers separated by commas, such as 5,10, and not {text!r}.", code=UNUSABLE
        )
    depths = sorted({int(part) for part in parts})
    if not 1 <= depths[0] <= depths[-1] <= MOST_HITS:
        fail(f"--k takes numbers from 1 to {MOST_HITS}: a search returns no more.", code=UNUSABLE)
    return depths


def search_fields(given: list[str], mode: str | None) -> dict[str, Any]:
    """What every search says besides its question."""
    known = OWN_FIELDS if mode is None else OWN_FIELDS | {"mode"}
    fields = fields_given("--search", given, known)
    return fields if mode is None else {"mode": mode} | fields


def fields_given(option: str, given: list[str], own: Collection[str]) -> dict[str, Any]:
    """What `option` says as KEY=JSON, once each; none of `own`, which the evaluation says."""
    fields: dict[str, Any] = {}
    for field in given:
        name, _, value = field.partition("=")
        if name in own or name in fields:
            fail(
                f"{option} {name}: the evaluation says that itself, or it is there twice.",
                code=UNUSABLE,
            )
        try:
            fields[name] = json.loads(value)
        except ValueError:
            fail(
                f"{option} {name}: what follows the = is no JSON. Texts need quotes: "
                f"{option} '{name or 'mode'}=\"lexical\"'.",
                code=UNUSABLE,
            )
    return fields


def listed(text: str | None) -> list[str]:
    """What is separated by commas, without what is blank."""
    return [part.strip() for part in (text or "").split(",") if part.strip()]


def context_wishes(
    budgets: list[int] | None, fields: list[str] | None, *, wanted: bool, extract: bool
) -> dict[str, Any]:
    """What a plan says of contexts; nothing when none is wanted."""
    if not wanted:
        if budgets or fields or extract:
            fail("--budget, --context-field and --extract are of --context.", code=UNUSABLE)
        return {}
    return {
        "budgets": tuple(sorted(set(budgets or [DEFAULT_BUDGET]))),
        "context": fields_given("--context-field", fields or [], CONTEXT_FIELDS),
        "extract": extract,
    }


@dataclass(frozen=True, slots=True)
class DatasetPart:
    """Which part of a data set is measured; see `dataset.choose`."""

    categories: list[str]
    stores: int | None
    questions: int | None
    sample: int | None
    seed: int

    def of(self, dataset: Dataset) -> Dataset:
        """Raises ConfigurationError when nothing of it is left."""
        return choose(
            dataset,
            categories=self.categories,
            stores=self.stores,
            questions=self.questions,
            sample=self.sample,
            seed=self.seed,
        )


def depth_of(ks: list[int], reading: Wishes | None) -> int:
    """How many hits a search returns: as many as are measured, or shown to a reader."""
    return ks[-1] if reading is None else max(ks[-1], MESSAGES)


def settings_of(
    ks: list[int], plan: Plan, part: DatasetPart, reading: Wishes | None = None
) -> dict[str, Any]:
    """What a result file says of the options."""
    answers = (
        None
        if reading is None
        else {
            "model": reading.model,
            "judge": reading.judge,
            "variants": reading.variants,
            "window": reading.window,
        }
    )
    return {
        "answers": answers,
        "k": ks,
        "search": plan.search,
        "budgets": plan.budgets,
        "context": plan.context,
        "extract": plan.extract,
        "categories": part.categories or None,
        "limit_questions": part.questions,
        "limit_stores": part.stores,
        "sample": part.sample,
        "seed": part.seed,
        "concurrency": plan.concurrency,
    }


EVERY: Final = ",".join(VARIANTS)

AnswersOption = Annotated[
    str | None,
    typer.Option(
        "--answers",
        metavar="MODEL",
        help="Let this model answer, such as openai/gpt-4.1-mini, of OPENAI_BASE_URL.",
        show_default=False,
    ),
]
JudgeOption = Annotated[
    str | None,
    typer.Option(
        "--judge",
        metavar="MODEL",
        help="Let this model grade the answers; that of --answers when left out.",
        show_default=False,
    ),
]
VariantsOption = Annotated[
    str,
    typer.Option(
        "--variants",
        help="What the model of --answers is given, separated by commas: a context, the ten best "
        "messages, the whole conversation, nothing.",
    ),
]
WindowOption = Annotated[
    int,
    typer.Option(
        "--window", min=1000, help="Tokens that it takes; a longer conversation is not asked."
    ),
]
CacheOption = Annotated[
    Path,
    typer.Option("--cache", file_okay=False, help="Folder in which answers and grades are kept."),
]
YesOption = Annotated[bool, typer.Option("--yes", help="Ask models without asking you first.")]
DryRunOption = Annotated[
    bool, typer.Option("--dry-run", help="Say what models would be asked, and ask none.")
]


def answer_wishes(
    model: str | None,
    judge: str | None,
    variants: str,
    window: int,
    cache: Path,
    *,
    yes: bool,
    dry_run: bool,
) -> Wishes | None:
    """What is wanted of models; None when no answers are."""
    if model is None:
        if judge is not None or yes or dry_run:
            fail("--judge, --yes and --dry-run are of --answers.", code=UNUSABLE)
        return None
    names = tuple(dict.fromkeys(listed(variants)))
    unknown = [name for name in names if name not in VARIANTS]
    if unknown or not names:
        fail(
            f"--variants takes some of {', '.join(VARIANTS)}, and not {variants!r}.", code=UNUSABLE
        )
    return Wishes(
        model=model,
        judge=judge or model,
        variants=names,
        window=window,
        cache=cache,
        yes=yes,
        dry_run=dry_run,
    )
