"""kemem export: everything, or what is one user's, agent's or project's, into a file."""

import gzip
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import IO, Annotated

import typer

from app.cli.demo import KeyOption, UrlOption
from app.cli.evaluation_options import service_meant
from app.cli.import_ import told_failures
from app.cli.mem0_export import as_mem0
from app.cli.options import DataDirOption, settings_with
from app.console import UNUSABLE, err, fail, progress
from kemem import Memory

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
