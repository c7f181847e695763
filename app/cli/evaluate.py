"""kemem eval: how much of what should be found is found, measured on a running service; and kemem
calibrate: how similar an embedder finds what it should tell apart.
"""

import asyncio
import secrets
import signal
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal

import typer

from app.cli.evaluation_options import (
    EVERY,
    AnswersOption,
    CacheOption,
    DatasetPart,
    DryRunOption,
    JudgeOption,
    VariantsOption,
    WindowOption,
    YesOption,
    answer_wishes,
    context_wishes,
    depth_of,
    depths,
    listed,
    search_fields,
    settings_of,
)
from app.cli.opening import run
from app.cli.options import DataDirOption, KeyOption, UrlOption, service_meant, settings_with
from app.console import UNUSABLE, fail
from app.evaluation.answer_measurement import Wishes, measure_answers
from app.evaluation.calibration import calibrate
from app.evaluation.conversation_measurement import measure_conversations
from app.evaluation.dataset import for_a_reader
from app.evaluation.measurement import ReportTarget, describe_run, measure_dataset, read_given
from app.evaluation.run import Plan
from app.settings import Settings

JsonFileOption = Annotated[
    Path | None,
    typer.Option(
        "--json",
        dir_okay=False,
        help="Write every figure to this file, with what they were measured on.",
        show_default=False,
    ),
]


def refuse_missing_folder(file: Path | None) -> None:
    """End the command before the work is done, when its result could not be written."""
    if file is not None and not file.absolute().parent.is_dir():
        fail(f"There is no folder {file.absolute().parent} for {file.name}.", code=UNUSABLE)


LEAST_MEMORY_TOKENS: Final = 100
MOST_MEMORY_TOKENS: Final = 8000
"""Of a context, as the service takes them."""

TERMINATED = 128 + signal.SIGTERM

DatasetArgument = Annotated[
    Path | None,
    typer.Argument(
        exists=True,
        dir_okay=False,
        readable=True,
        help="Data set in the JSON shape of docs/evaluation.md.",
        show_default=False,
    ),
]
LocomoOption = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        dir_okay=False,
        readable=True,
        help="Evaluate this file in the format of LoCoMo instead, as it is.",
        show_default=False,
    ),
]
LongMemEvalOption = Annotated[
    Path | None,
    typer.Option(
        "--longmemeval",
        exists=True,
        dir_okay=False,
        readable=True,
        help="Or this file in the format of LongMemEval.",
        show_default=False,
    ),
]
BeamOption = Annotated[
    Path | None,
    typer.Option(
        exists=True,
        file_okay=False,
        readable=True,
        help="Or this folder of BEAM's repository: a size, such as chats/100K, or one chat.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    Literal["semantic", "lexical", "hybrid"] | None,
    typer.Option(help="How to search; the service's default when left out.", show_default=False),
]
SearchOption = Annotated[
    list[str] | None,
    typer.Option(
        "--search",
        metavar="KEY=JSON",
        help="A field for every search, such as --search rerank=false; may be repeated.",
        show_default=False,
    ),
]
DepthsOption = Annotated[str, typer.Option("--k", help="Depths to measure, 1 to 100.")]
CategoriesOption = Annotated[
    str | None, typer.Option(help="Only these, separated by commas.", show_default=False)
]
QuestionsOption = Annotated[
    int | None,
    typer.Option(min=1, help="Only so many, taken evenly over the data set.", show_default=False),
]
SampleOption = Annotated[
    int | None,
    typer.Option(min=1, help="Only so many of each category, at random.", show_default=False),
]
SeedOption = Annotated[int, typer.Option(help="Of --sample: the same one draws the same.")]
StoresOption = Annotated[
    int | None, typer.Option(min=1, help="Only the first so many stores.", show_default=False)
]
MessagesOption = Annotated[
    bool,
    typer.Option(
        "--messages", help="Store units as messages of conversations, and search those instead."
    ),
]
ContextOption = Annotated[
    bool,
    typer.Option(
        "--context",
        help="Store units as messages, and measure how much of the answer a context shows.",
    ),
]
BudgetsOption = Annotated[
    list[int] | None,
    typer.Option(
        "--budget",
        min=LEAST_MEMORY_TOKENS,
        max=MOST_MEMORY_TOKENS,
        help="Tokens of a context; may be repeated. 2000 when left out.",
        show_default=False,
    ),
]
ContextFieldOption = Annotated[
    list[str] | None,
    typer.Option(
        "--context-field",
        metavar="KEY=JSON",
        help="A field for every context, such as --context-field rerank=false; may be repeated.",
        show_default=False,
    ),
]
ExtractOption = Annotated[
    bool,
    typer.Option(
        "--extract",
        help="Read the conversations for memories first, and let contexts show these too.",
    ),
]
ConcurrencyOption = Annotated[int, typer.Option(min=1, max=32, help="Requests at a time.")]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave what it stored, to look around in.")
]

StoreOption = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="NAME",
        help="Let the service keep the figures under this name, to be compared with others.",
        show_default=False,
    ),
]


def evaluate_command(
    dataset: DatasetArgument = None,
    locomo: LocomoOption = None,
    longmemeval: LongMemEvalOption = None,
    beam: BeamOption = None,
    url: UrlOption = None,
    key: KeyOption = None,
    mode: ModeOption = None,
    search: SearchOption = None,
    k: DepthsOption = "5,10,25,50",
    messages: MessagesOption = False,
    context: ContextOption = False,
    budgets: BudgetsOption = None,
    context_field: ContextFieldOption = None,
    extract: ExtractOption = False,
    answers: AnswersOption = None,
    judge: JudgeOption = None,
    variants: VariantsOption = EVERY,
    window: WindowOption = 128_000,
    cache: CacheOption = Path("eval-answers"),
    yes: YesOption = False,
    dry_run: DryRunOption = False,
    categories: CategoriesOption = None,
    limit_questions: QuestionsOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    limit_stores: StoresOption = None,
    concurrency: ConcurrencyOption = 4,
    keep: KeepOption = False,
    store: StoreOption = None,
    json_file: JsonFileOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Measure what a running service finds: recall@k, nDCG@10, MRR, latency and tokens.

    Stores a data set over the public HTTP API under users of its own, asks its questions, compares
    what is found with the labelled answers, and removes everything again, also after Ctrl-C. With
    --answers a model answers from it. Bring your own questions: see docs/evaluation.md.
    """
    refuse_missing_folder(json_file)
    settings = settings_with(data_dir=data_dir)
    reading = answer_wishes(answers, judge, variants, window, cache, yes=yes, dry_run=dry_run)
    wanted = context or (reading is not None and "context" in reading.variants)
    wishes = context_wishes(budgets, context_field, wanted=wanted, extract=extract)
    ks = depths(k)
    plan = Plan(
        run_id=f"eval-{secrets.token_hex(4)}", limit=depth_of(ks, reading), keep=keep,
        search=search_fields(search or [], mode), concurrency=concurrency, **wishes,
    )  # fmt: skip
    part = DatasetPart(listed(categories), limit_stores, limit_questions, sample, seed)
    path, whole = read_given(dataset, locomo=locomo, longmemeval=longmemeval, beam=beam)
    service = service_meant(url, key, settings)
    chosen = part.of(whole if reading is None else for_a_reader(whole))
    about = describe_run(path, chosen, service) | {"settings": settings_of(ks, plan, part, reading)}
    work = _measurement(reading, settings, conversations=messages or context, search=messages)
    to = ReportTarget(json_file, store)
    run(_until_terminated(work(service, chosen, plan, ks, about, to)))


def _measurement(
    reading: Wishes | None, settings: Settings, *, conversations: bool, search: bool
) -> Callable[..., Awaitable[None]]:
    """What measures: answers of a model, conversations, or searches of memories."""
    if reading is not None:
        return partial(measure_answers, wishes=reading, settings=settings)
    if conversations:
        return partial(measure_conversations, search=search)
    return measure_dataset


async def _until_terminated(work: Any) -> None:
    """Do the work; SIGTERM ends it like Ctrl-C, with everything removed."""
    task = asyncio.ensure_future(work)
    stopped = False

    def stop() -> None:
        nonlocal stopped
        stopped = True
        task.cancel()

    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, stop)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
        raise typer.Exit(TERMINATED) from None
    finally:
        loop.remove_signal_handler(signal.SIGTERM)


ModelOption = Annotated[
    str | None,
    typer.Option(
        help="Embedder to measure, such as wordllama or openai/text-embedding-3-small; "
        "MEMORY_EMBEDDING_MODEL when left out.",
        show_default=False,
    ),
]


def calibrate_command(model: ModelOption = None, json_file: JsonFileOption = None) -> None:
    """Measure how similar the embedder finds duplicates, contradictions and strangers.

    Embeds pairs that come with KeMem, in English and Chinese, and derives a duplicate
    threshold and a neighbour floor from their similarities. Needs no database and no service;
    changes nothing.
    """
    refuse_missing_folder(json_file)
    run(calibrate(settings_with(), model, json_file))
