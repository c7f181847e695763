"""Options of `kemem eval` about answers: who reads, who grades, and what the reader is given."""

from pathlib import Path
from typing import Annotated, Final

import typer

from app.cli.evaluation_options import listed
from app.console import UNUSABLE, fail
from app.evaluation.answer_measurement import Wishes
from app.evaluation.reader import VARIANTS

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
