"""Results as a JSON file, for commands that measure."""

import json
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.console import fail
from app.cli.failures import UNUSABLE

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


def write_json(file: Path, value: Any) -> None:
    """One JSON document, with a line break at its end; what was there is replaced."""
    file.write_text(f"{json.dumps(value, ensure_ascii=False, indent=2)}\n", encoding="utf-8")
