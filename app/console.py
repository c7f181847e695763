"""How commands speak: results on standard output, progress and refusals on standard error."""

import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn

import typer
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    SpinnerColumn,
    Task,
    TextColumn,
    TimeElapsedColumn,
)
from rich.table import Table
from rich.text import Text
from typing_extensions import override

# A file or a pipe has no width; ids must not be broken there.
_WIDTH = None if sys.stdout.isatty() else 160

REFUSED = 1
"""Exit code: the request was understood and cannot be met."""

UNUSABLE = 2
"""Exit code: the command cannot run here as configured."""

out = Console(highlight=False, width=_WIDTH)
err = Console(stderr=True, highlight=False, soft_wrap=True)


def fail(sentence: str, *, code: int) -> NoReturn:
    """End the command with one sentence on standard error."""
    print(f"kemem: {sentence}", file=sys.stderr)
    raise typer.Exit(code)


def print_json(value: Any) -> None:
    """One JSON document, for machines."""
    print(json.dumps(value, ensure_ascii=False, indent=2, default=str))


def print_table(
    title: str, columns: Sequence[str], rows: Sequence[Sequence[Any]], *, right: Sequence[str] = ()
) -> None:
    """A table for people; `right` names columns of numbers. Ids are never broken."""
    table = Table(
        title=Text(title) if title else None,
        title_justify="left",
        title_style="bold",
        header_style="bold",
    )
    for column in columns:
        number = column in right
        table.add_column(
            column,
            justify="right" if number else "left",
            no_wrap=number or column.endswith(" id"),
            overflow="fold",
        )
    for row in rows:
        # Text, not markup: what people wrote may hold square brackets.
        table.add_row(*(Text("" if cell is None else str(cell)) for cell in row))
    out.print(table)


def print_record(fields: Mapping[str, Any]) -> None:
    """One thing, a line per field."""
    width = max(len(name) for name in fields)
    for name, value in fields.items():
        print(f"{name:<{width}}  {'' if value is None else value}")


class _Rate(ProgressColumn):
    """Steps per second, so far."""

    def __init__(self, unit: str) -> None:
        super().__init__()
        self._unit = unit

    @override
    def render(self, task: Task) -> Text:
        speed = task.finished_speed or task.speed
        return Text("" if speed is None else f"{speed:,.0f} {self._unit}/s")


@contextmanager
def progress(unit: str) -> Iterator[Progress]:
    """A progress bar on standard error; nothing when that is no terminal."""
    bar = Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        _Rate(unit),
        TimeElapsedColumn(),
        console=err,
        disable=not err.is_terminal,
    )
    with bar:
        yield bar


def write_json(file: Path, value: Any) -> None:
    """One JSON document, with a line break at its end; what was there is replaced."""
    file.write_text(f"{json.dumps(value, ensure_ascii=False, indent=2)}\n", encoding="utf-8")
