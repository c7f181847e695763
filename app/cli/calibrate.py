"""kemem calibrate"""

from typing import Annotated

import typer

from app.cli.json_file import JsonFileOption, refuse_missing_folder
from app.cli.opening import run
from app.cli.options import settings_with
from app.evaluation.calibration import calibrate

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
