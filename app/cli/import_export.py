"""kemem export (everything, or what is one user's, agent's or project's, into a file, as it is or
as arguments of mem0's `add(infer=False)`: one JSON object for each memory), and kemem import, which
reads such a file into the tenant of a key.
"""

import gzip
import json
import os
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import UTC, datetime
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated, Any, Final

import typer

from app.cli.options import (
    DataDirOption,
    JsonOption,
    KeyOption,
    UrlOption,
    service_meant,
    settings_with,
)
from app.console import REFUSED, UNUSABLE, err, fail, print_json, progress
from app.integrations.mem0.filters import expiration_date, moment
from app.integrations.mem0.schemas import shown_id
from kemem import Memory
from kemem.errors import ApiError, KememError
from kemem.exports import BrokenExportError, ExportCheck, Imported, checked_lines

OutOption = Annotated[
    Path,
    typer.Option(
        "--out", "-o", dir_okay=False, help="The file; one that ends with .gz is compressed."
    ),
]
UserOption = Annotated[
    str | None, typer.Option("--user", help="Only what is this user's.", show_default=False)
]
AgentOption = Annotated[
    str | None, typer.Option("--agent", help="Only what is this agent's.", show_default=False)
]
ProjectOption = Annotated[
    str | None,
    typer.Option("--project", help="Only what is shared in this project.", show_default=False),
]


class ExportFormat(StrEnum):
    kemem = "kemem"
    mem0 = "mem0"


def export_command(
    out: OutOption = Path("kemem-export.ndjson.gz"),
    user: UserOption = None,
    agent: AgentOption = None,
    project: ProjectOption = None,
    vectors: Annotated[
        bool, typer.Option("--vectors/--no-vectors", help="Whether vectors are in.")
    ] = True,
    format_: Annotated[
        ExportFormat,
        typer.Option(
            "--as", help="mem0: a line for each memory, with the arguments of mem0's add()."
        ),
    ] = ExportFormat.kemem,
    force: Annotated[bool, typer.Option(help="Replace the file if it is there.")] = False,
    url: UrlOption = None,
    key: KeyOption = None,
    data_dir: DataDirOption = None,
) -> None:
    """Write everything the key's tenant holds to a file, as it is at this moment.

    The file is there when it is whole, and not before. It holds what people said: keep it safe.
    """
    if sum(owner is not None for owner in (user, agent, project)) > 1:
        fail("Name a user, an agent or a project, or none of them for everything.", code=UNUSABLE)
    if out.exists() and not force:
        fail(f"{out} is there already: name another file, or add --force.", code=UNUSABLE)
    if not out.absolute().parent.is_dir():
        fail(f"There is no folder {out.absolute().parent} for {out.name}.", code=UNUSABLE)
    service = service_meant(url, key, settings_with(data_dir=data_dir))
    rows = 0
    left_out: Counter[str] = Counter()
    with (
        told_failures(),
        Memory(service.base_url, service.key) as memory,
        progress("rows") as bar,
        _whole(out) as file,
    ):
        task = bar.add_task("Exporting", total=None)
        lines = _lines(memory, user, agent, project, vectors=vectors)
        if format_ is ExportFormat.mem0:
            lines = as_mem0(lines, left_out)
        for line in lines:
            file.write(line)
            rows += 1
            bar.advance(task)
    # The manifest and the end are no rows.
    rows -= 0 if format_ is ExportFormat.mem0 else 2
    err.print(f"{rows:,} rows in {out}, {out.stat().st_size:,} bytes.")
    for reason, count in sorted(left_out.items()):
        err.print(f"{count:,} memories left out: {reason}.")


def _lines(
    memory: Memory, user: str | None, agent: str | None, project: str | None, *, vectors: bool
) -> Iterator[bytes]:
    return memory.export(user_id=user, agent_id=agent, project_id=project, vectors=vectors)


@contextmanager
def _whole(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes its name when all of it is on the disk; nobody else may read it."""
    part = path.with_name(f".{path.name}.{os.getpid()}.part")
    try:
        with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as raw:
            if path.suffix == ".gz":
                # Without a name and a time in it: the same rows are the same file.
                with gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
                    yield packed  # type: ignore[misc] # it writes bytes
            else:
                yield raw
            raw.flush()
            os.fsync(raw.fileno())
        part.replace(path)
    finally:
        part.unlink(missing_ok=True)


ROLES: Final = ("user", "assistant", "system")


def as_mem0(lines: Iterable[bytes], left_out: Counter[str]) -> Iterator[bytes]:
    """A line for each memory that counts now; others are counted in `left_out`.

    Args:
        lines: of an export of ours.
        left_out: how many memories mem0 has no place for, by the reason.

    """
    now = datetime.now(UTC)
    for line in lines:
        value = json.loads(line)
        if value["type"] != "memory":
            continue
        row = value["row"]
        if row["status"] != "active":
            left_out[f"{row['status']}"] += 1
        elif row["scope"] == "project":
            left_out["of a project"] += 1
        elif row["expires_at"] is not None and moment(row["expires_at"]) <= now:
            left_out["expired"] += 1
        else:
            arguments = _arguments(row)
            yield json.dumps(arguments, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _arguments(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = dict(row["metadata"])
    role = metadata.pop("role") if metadata.get("role") in ROLES else "user"
    # mem0 keeps a date of its own in metadata where it is given one.
    metadata["created_at"] = row["said_at"] or row["create_time"]
    metadata["kemem_id"] = shown_id(row["memory_id"])
    metadata["memory_type"] = row["memory_type"]
    expires = row["expires_at"]
    arguments = {
        "messages": [{"role": role, "content": row["content"]}],
        "user_id": row["user_id"],
        "agent_id": row["agent_id"],
        "run_id": row["session_id"],
        "metadata": metadata,
        "expiration_date": None if expires is None else expiration_date(moment(expires)),
        "infer": False,
    }
    return {name: value for name, value in arguments.items() if value is not None}


FileArgument = Annotated[
    Path,
    typer.Argument(
        exists=True, dir_okay=False, readable=True, help="The file; .gz is read as it is."
    ),
]


AS_OPTIONS: Final = {
    "restore_erased=true": "--restore-erased",
    "on_conflict=skip": "--on-conflict skip",
}
"""What the service's answers advise, as options of the command."""


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
        with Memory(service.base_url, service.key) as memory, _lines_of_file(file) as lines:
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
        detail = error.detail or ""
        for parameter, option in AS_OPTIONS.items():
            detail = detail.replace(parameter, option)
        fail(f"{error.status} {error.code}: {detail}{_details(error)}", code=REFUSED)
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
    with _lines_of_file(file) as lines:
        for _ in checked_lines(lines, check):
            pass
    return check.rows


@contextmanager
def _lines_of_file(file: Path) -> Iterator[Iterator[bytes]]:
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
