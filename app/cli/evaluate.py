"""kemem eval: how much of what should be found is found, measured on a running service."""

import asyncio
import secrets
import signal
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from app.cli.demo import KeyOption, UrlOption
from app.cli.evaluation_options import depths, search_fields, service_meant
from app.cli.json_file import JsonFileOption, refuse_missing_folder
from app.cli.opening import DataDirOption, run, settings_with
from app.evaluation.dataset import choose
from app.evaluation.measurement import describe_run, measure_dataset, read_given
from app.evaluation.run import Plan

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
ConcurrencyOption = Annotated[int, typer.Option(min=1, max=32, help="Requests at a time.")]
KeepOption = Annotated[
    bool, typer.Option("--keep", help="Leave what it stored, to look around in.")
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
    categories: CategoriesOption = None,
    limit_questions: QuestionsOption = None,
    sample: SampleOption = None,
    seed: SeedOption = 0,
    limit_stores: StoresOption = None,
    concurrency: ConcurrencyOption = 4,
    keep: KeepOption = False,
    json_file: JsonFileOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Measure what a running service finds: recall@k, nDCG@10, MRR, latency and tokens.

    Stores a data set over the public HTTP API under users of its own, asks its questions,
    compares what is found with the labelled answers, and removes everything again, also after
    Ctrl-C. Bring your own questions: docs/evaluation.md shows the file.
    """
    ks = depths(k)
    fields = search_fields(search or [], mode)
    wanted = [one.strip() for one in (categories or "").split(",") if one.strip()]
    refuse_missing_folder(json_file)
    path, whole = read_given(dataset, locomo=locomo, longmemeval=longmemeval, beam=beam)
    chosen = choose(
        whole,
        categories=wanted,
        stores=limit_stores,
        questions=limit_questions,
        sample=sample,
        seed=seed,
    )
    service = service_meant(url, key, settings_with(data_dir=data_dir))
    plan = Plan(
        run_id=f"eval-{secrets.token_hex(4)}",
        limit=ks[-1],
        search=fields,
        concurrency=concurrency,
        keep=keep,
    )
    about = describe_run(path, chosen, service) | {
        "settings": {
            "k": ks,
            "search": fields,
            "categories": wanted or None,
            "limit_questions": limit_questions,
            "sample": sample,
            "seed": seed,
            "limit_stores": limit_stores,
            "concurrency": concurrency,
        }
    }
    run(_until_terminated(measure_dataset(service, chosen, plan, ks, about, json_file)))


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
