"""kemem import: a file that `kemem export` wrote, into the tenant of a key."""

import gzip
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from app.cli.demo import KeyOption, UrlOption
from app.cli.evaluation_options import service_meant
from app.cli.options import DataDirOption, JsonOption, settings_with
from app.console import REFUSED, UNUSABLE, err, fail, print_json, progress
from kemem import Memory
from kemem.errors import ApiError, KememError
from kemem.exports import BrokenExportError, ExportCheck, Imported, checked_lines

FileArgument = Annotated[
    Path,
    typer.Argument(
        exists=True, dir_okay=False, readable=True, help="The file; .gz is read as it is."
    ),
]


class OnConflict(StrEnum):
    fail = "fail"
    skip = "skip"


def import_command(
    file: FileArgument,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Check and count; write nothing.")
    ] = False,
    on_conflict: Annotated[
        OnConflict,
        typer.Option(help="When a row is there with another content: stop, or leave it as it is."),
    ] = OnConflict.fail,
    restore_erased: Annotated[
        bool,
        typer.Option(
            "--restore-erased", help="Also bring back users who were erased since the export."
        ),
    ] = False,
    url: UrlOption = None,
    key: KeyOption = None,
    data_dir: DataDirOption = None,
    json: JsonOption = False,
) -> None:
    """Read a file of `kemem export` into the tenant of the key, as it was.

    The whole file is checked before anything is written. What is there already stays as it is,
    so run it again after an interruption. Rows without vectors get them by `kemem reembed`.
    """
    service = service_meant(url, key, settings_with(data_dir=data_dir))
    with told_failures(), progress("rows") as bar:
        rows = checked(file)
        task = bar.add_task("Importing", total=rows)
        with Memory(service.base_url, service.key) as memory, _lines(file) as lines:
            done = memory.import_(
                lines,
                on_conflict=on_conflict.value,
                dry_run=dry_run,
                restore_erased=restore_erased,
                sent=lambda count: bar.advance(task, count),
            )
    _tell(done, as_json=json)


@contextmanager
def told_failures() -> Iterator[None]:
    """What the service or the file refuses, as a sentence."""
    try:
        yield
    except ApiError as error:
        fail(f"{error.status} {error.code}: {error.detail}{_details(error)}", code=REFUSED)
    except KememError as error:
        fail(str(error), code=REFUSED)


def _details(error: ApiError) -> str:
    """The first lines that are wrong, without what they say."""
    problem = error.problem if isinstance(error.problem, dict) else {}
    told = [
        f"{' '.join(fault['location'][1:])}: {fault['detail']}"
        for fault in problem.get("errors") or ()
    ] + [
        f"{conflict['type']} {' '.join(map(str, conflict['key'].values()))}: {conflict['detail']}"
        for conflict in problem.get("conflicts") or ()
    ]
    return "".join(f"\n  {line}" for line in told[:10])


def checked(file: Path) -> int:
    """How many rows a file has, when it is whole.

    Raises:
        BrokenExportError: it is cut off or altered.

    """
    check = ExportCheck()
    with _lines(file) as lines:
        for _ in checked_lines(lines, check):
            pass
    return check.rows


@contextmanager
def _lines(file: Path) -> Iterator[Iterator[bytes]]:
    """Raises BrokenExportError."""
    try:
        with file.open("rb") as raw:
            packed = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            # A name may lie about what is inside.
            yield iter(gzip.GzipFile(fileobj=raw)) if packed else iter(raw)
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise BrokenExportError(f"{file} is cut off or altered: it cannot be unpacked.") from error
    except PermissionError:
        fail(f"{file} cannot be read.", code=UNUSABLE)


def _tell(done: Imported, *, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "inserted": dict(done.inserted),
                "unchanged": dict(done.unchanged),
                "skipped": dict(done.skipped),
                "dry_run": done.dry_run,
            }
        )
        return
    new, same, left = (
        sum(counts.values()) for counts in (done.inserted, done.unchanged, done.skipped)
    )
    would = "would be " if done.dry_run else ""
    err.print(f"{new:,} rows {would}written, {same:,} were there, {left:,} left as they are.")
    for conflict in done.conflicts[:10]:
        key = " ".join(map(str, conflict["key"].values()))
        told = f"{conflict['type']} {key}: {conflict['detail']}"
        err.print(f"  {told}", markup=False)
