"""Results as a JSON file, for commands that measure."""

from pathlib import Path
from typing import Annotated

import typer

from app.console import UNUSABLE, fail

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
