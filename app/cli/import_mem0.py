"""kemem import-mem0: what mem0 remembers, into the tenant of a key."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer

from app.cli.import_export import told_failures
from app.cli.mem0_rows import Conversion, Stored, Tally
from app.cli.mem0_sources import Mem0Api, SourceContents, history_file, no_history, postgres_table
from app.cli.options import (
    DataDirOption,
    JsonOption,
    KeyOption,
    UrlOption,
    service_meant,
    settings_with,
)
from app.console import REFUSED, UNUSABLE, err, fail, print_json, progress
from app.deployment import saving_rules
from app.identity.agents.repository import DEFAULT_AGENT_ID
from app.platform.values.fields import WANTED, composed, is_own_id
from kemem import Memory
from kemem.calls import fetch
from kemem.errors import ConflictError, NotFoundError
from kemem.exports import Imported
from kemem.sessions import Session

HOSTED = "https://api.mem0.ai"

Mem0KeyOption = Annotated[
    str | None,
    typer.Option(
        "--mem0-key",
        envvar="MEM0_API_KEY",
        help="Read mem0's hosted API with this key of it.",
        show_default=False,
    ),
]
Mem0UrlOption = Annotated[
    str, typer.Option("--mem0-url", envvar="MEM0_BASE_URL", help="Address of that API.")
]
PostgresOption = Annotated[
    str | None,
    typer.Option(
        "--postgres",
        help="Read the table of mem0's pgvector store in this database: postgresql://…",
        show_default=False,
    ),
]
HistoryOption = Annotated[
    Path | None,
    typer.Option(
        "--history",
        exists=True,
        dir_okay=False,
        readable=True,
        help="mem0's history.db, with --postgres for the history of its memories; alone, what "
        "it says is remembered, of the user of --user.",
        show_default=False,
    ),
]


def import_mem0_command(
    mem0_key: Mem0KeyOption = None,
    mem0_url: Mem0UrlOption = HOSTED,
    postgres: PostgresOption = None,
    table: Annotated[str, typer.Option(help="Its collection_name.")] = "mem0",
    history: HistoryOption = None,
    with_history: Annotated[
        bool,
        typer.Option("--api-history/--no-api-history", help="Ask the API for each history too."),
    ] = True,
    user: Annotated[
        str | None,
        typer.Option("--user", help="Whose memories without user and agent are."),
    ] = None,
    run_prefix: Annotated[
        str, typer.Option(help="Put before each run_id, where KeMem has sessions of such ids.")
    ] = "",
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Read, check and count; write nothing.")
    ] = False,
    restore_erased: Annotated[
        bool, typer.Option("--restore-erased", help="Also bring back users who were erased here.")
    ] = False,
    url: UrlOption = None,
    key: KeyOption = None,
    data_dir: DataDirOption = None,
    json: JsonOption = False,
) -> None:
    """Import memories of mem0 with their ids, dates, metadata and history.

    Name one source: mem0's API (--mem0-key), the table of its pgvector store (--postgres), or its
    history.db (--history). Run it again after an interruption: what is there stays as it is.
    Afterwards `kemem reembed` makes the vectors.
    """
    _refuse_unclear(mem0_key, postgres, history, user)
    settings = settings_with(data_dir=data_dir)
    service = service_meant(url, key, settings)
    gate = saving_rules(settings).gate.for_imports
    done = Imported(dry_run=dry_run)
    with (
        told_failures(),
        _found(mem0_key, mem0_url, postgres, table, history, with_history) as found,
        Memory(service.base_url, service.key) as memory,
        progress("memories") as bar,
    ):
        conversion = Conversion(gate, _stored(memory), user_id=user, run_prefix=run_prefix)
        memories = bar.track(found.memories, total=found.total, description="Importing")
        for lines in conversion.batches(memories):
            with _own_sessions():
                done += memory.import_(
                    lines, on_conflict="skip", dry_run=dry_run, restore_erased=restore_erased
                )
    _tell(conversion.tally, found, done, as_json=json)


def _refuse_unclear(
    mem0_key: str | None, postgres: str | None, history: Path | None, user: str | None
) -> None:
    if user is not None and not is_own_id(composed(user)):
        fail(f"--user must be an id: {WANTED}", code=UNUSABLE)
    if mem0_key is None and postgres is None and history is None:
        fail(
            "Name where mem0's memories are: --mem0-key KEY, --postgres postgresql://…, or "
            "--history history.db.",
            code=UNUSABLE,
        )
    if postgres is None and history is not None and user is None:
        fail(
            "A history file does not say whose the memories are: give --user, or --postgres too.",
            code=UNUSABLE,
        )


@contextmanager
def _found(
    mem0_key: str | None,
    mem0_url: str,
    postgres: str | None,
    table: str,
    history: Path | None,
    with_history: bool,
) -> Iterator[SourceContents]:
    # A key in the environment does not count beside a database that somebody names.
    if postgres is not None and history is not None:
        with history_file(history) as file, postgres_table(postgres, table, file.of) as found:
            yield found
    elif postgres is not None:
        with postgres_table(postgres, table, no_history) as found:
            yield found
    elif history is not None:
        with history_file(history) as file:
            yield file.memories()
    else:
        with closing(Mem0Api(mem0_url, mem0_key or "")) as api:
            yield api.memories(history=with_history)


def _stored(memory: Memory) -> Stored:
    def stored(session_id: str) -> tuple[str | None, str] | None:
        try:
            # The client has no method that reads one session.
            there = memory._send(fetch(Session, "sessions", session_id))  # noqa: SLF001
        except NotFoundError:
            return None
        return there.user_id, there.agent_id or DEFAULT_AGENT_ID

    return stored


@contextmanager
def _own_sessions() -> Iterator[None]:
    """Ends the command when a run has the id of somebody else's session."""
    try:
        yield
    except ConflictError as error:
        problem = error.problem if isinstance(error.problem, dict) else {}
        taken = [
            conflict["key"]["session_id"]
            for conflict in problem.get("conflicts") or ()
            if conflict["type"] == "session"
        ]
        if not taken:
            raise
        fail(
            f"Somebody else has a session {taken[0]} here, and a run_id becomes a session. Nothing "
            "of this part was written: run the command again with --run-prefix, such as mem0-.",
            code=REFUSED,
        )


def _tell(tally: Tally, found: SourceContents, done: Imported, *, as_json: bool) -> None:
    refused = sum(tally.refused.values()) + len(found.unreadable)
    told: dict[str, Any] = {
        "memories": tally.memories,
        "history": tally.history,
        "users": len(tally.users),
        "agents": len(tally.agents),
        "runs": len(tally.runs),
        "oldest": tally.oldest and tally.oldest.isoformat(),
        "newest": tally.newest and tally.newest.isoformat(),
        "refused": dict(tally.refused),
        "unreadable": len(found.unreadable),
        "history_left_out": tally.history_left_out,
        "deleted_in_mem0": found.deleted,
        "missed": found.missed,
        "inserted": dict(done.inserted),
        "unchanged": dict(done.unchanged),
        "skipped": dict(done.skipped),
        "dry_run": done.dry_run,
    }
    if as_json:
        print_json(told)
    else:
        _tell_person(told, done)
    if found.missed:
        err.print(
            f"Warning: mem0 counts {found.missed:,} more memories or entities than its pages "
            "gave; it was written to meanwhile. Run the command again."
        )
    for line in [*tally.refusals, *found.unreadable[:20]]:
        err.print(f"  {line}", markup=False)
    if refused:
        raise typer.Exit(REFUSED)


def _tell_person(told: dict[str, Any], done: Imported) -> None:
    would = "would be " if done.dry_run else ""
    new, same, left = (
        counts.get("memory", 0) for counts in (done.inserted, done.unchanged, done.skipped)
    )
    err.print(
        f"{told['memories']:,} memories of {told['users']:,} users, {told['agents']:,} agents and "
        f"{told['runs']:,} runs, with {told['history']:,} changes, from {told['oldest'] or '-'} to "
        f"{told['newest'] or '-'}."
    )
    err.print(f"{new:,} {would}written, {same:,} were there, {left:,} left as they are.")
    for conflict in done.conflicts[:10]:
        name = " ".join(map(str, conflict["key"].values()))
        err.print(f"  {conflict['type']} {name}: {conflict['detail']}", markup=False)
    left_out = {**told["refused"], "unreadable": told["unreadable"]}
    for code, count in sorted(left_out.items()):
        if count:
            err.print(f"{count:,} {would}left out: {code}.")
    if told["history_left_out"]:
        err.print(f"{told['history_left_out']:,} changes {would}left out: the gate refuses them.")
    if told["deleted_in_mem0"]:
        err.print(f"{told['deleted_in_mem0']:,} were deleted in mem0.")
    if new and not done.dry_run:
        err.print("Now run `kemem reembed`, which makes their vectors and search terms.")
