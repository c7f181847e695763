"""kemem reread: what an older keyless reader made of conversations, made anew."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Annotated

import typer

from app.builders.factory import Factory
from app.cli.maintenance import tenant_ids
from app.cli.opening import open_console_dsn, run
from app.cli.options import DataDirOption, settings_with
from app.console import REFUSED, UNUSABLE, err, fail, print_table, progress
from app.conversation.sessions.schemas import SessionNotFoundError
from app.deployment import COMMAND_WAIT, open_providers
from app.errors import DomainError
from app.language.llm.model_catalogue import RULES
from app.memory.extraction.reread_service import RereadPlan, RereadService, SessionReread
from app.platform.values.fields import composed
from app.runtime import Runtime, open_runtime
from app.settings import Settings

SAMPLES = 10
"""Sessions of which a dry run shows what was and what would be."""

LINES = 3


def reread_command(
    tenant: Annotated[
        str | None, typer.Option(help="Only this tenant; all when left out.", show_default=False)
    ] = None,
    user: Annotated[
        str | None, typer.Option(help="Only sessions of this user of --tenant.", show_default=False)
    ] = None,
    session: Annotated[
        str | None, typer.Option(help="Only this session of --tenant.", show_default=False)
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option("--dry-run", help="Show counts and examples of before and after; store none."),
    ] = False,
    data_dir: DataDirOption = None,
) -> None:
    """Read stored conversations again with the keyless reader of this release.

    What an older keyless reader made of a session is archived, and what this one finds is
    stored, in one transaction. Memories that somebody saved, changed or deleted stay so; what a
    model reads is left alone. Stopped half-way, it goes on where it was when it is run again.
    """
    if tenant is None and (user is not None or session is not None):
        fail("--user and --session need --tenant: ids are a tenant's own.", code=UNUSABLE)
    settings = settings_with(data_dir=data_dir)
    if settings.extraction_model != RULES:
        fail(
            f"Conversations are read by {settings.extraction_model} here, and this command reads "
            "by rules: MEMORY_EXTRACTION_MODEL=rules for this one call reads them by rules.",
            code=REFUSED,
        )
    run(_reread(settings, tenant, user, session, dry_run=dry_run))


async def _reread(
    settings: Settings,
    tenant: str | None,
    user: str | None,
    session: str | None,
    *,
    dry_run: bool,
) -> None:
    async with _open(settings) as runtime:
        service = Factory(runtime).get(RereadService)
        ids = (
            [tenant] if tenant else [tenant_id async for tenant_id in tenant_ids(runtime.database)]
        )
        user, session = user and composed(user), session and composed(session)
        plans = [await service.plan(tenant_id, user, session) for tenant_id in ids]
        counts: dict[str, Counter[str]] = {}
        makers = Counter[str]()
        shown: list[SessionReread] = []
        with progress("sessions") as bar:
            task = bar.add_task("Reading", total=sum(len(plan.sessions) for plan in plans))
            for plan in plans:
                counts[plan.tenant_id] = tally = Counter[str]()
                async for done in _sessions(service, plan, dry_run=dry_run):
                    bar.advance(task)
                    tally.update(_counted(done))
                    makers.update(old.extractor for old in (done.archived if done else ()))
                    if done is not None and len(shown) < SAMPLES and (done.archived or done.found):
                        shown.append(done)
    _report(counts, shown if dry_run else [], dry_run=dry_run)
    _print_readers(service.reader, makers, dry_run=dry_run)


@asynccontextmanager
async def _open(settings: Settings) -> AsyncIterator[Runtime]:
    async with (
        open_console_dsn(settings) as dsn,
        open_providers(settings, longest_wait=COMMAND_WAIT) as providers,
        open_runtime(settings, dsn, providers=providers) as runtime,
    ):
        yield runtime


async def _sessions(
    service: RereadService, plan: RereadPlan, *, dry_run: bool
) -> AsyncIterator[SessionReread | None]:
    for session in plan.sessions:
        try:
            yield await service.reread(plan, session, dry_run=dry_run)
        except SessionNotFoundError:
            yield None
        except DomainError:
            err.print("Not finished. What is done stays done: run the command again.")
            raise


def _counted(done: SessionReread | None) -> dict[str, int]:
    if done is None:
        return {"left": 1}
    return {"sessions": 1, "archived": len(done.archived), "found": len(done.found)}


def _report(counts: dict[str, Counter[str]], shown: list[SessionReread], *, dry_run: bool) -> None:
    rows = [
        (tenant_id, tally["sessions"], tally["archived"], tally["found"], tally["left"])
        for tenant_id, tally in counts.items()
        if tally
    ]
    if not rows:
        print("Every conversation was read by the keyless reader of this release, or by a model.")
        return
    for session in shown:
        print(f"session {session.session_id}")
        for sign, lines in (
            ("-", [old.content for old in session.archived]),
            ("+", [content for content, _ in session.found]),
        ):
            for line in lines[:LINES]:
                print(f"  {sign} {line}")
            if len(lines) > LINES:
                print(f"  {sign} … and {len(lines) - LINES:,} more")
    columns = ("tenant", "sessions", "archived", "stored", "left alone")
    print_table(
        "What would be done" if dry_run else "Conversations read again",
        columns,
        rows,
        right=columns[1:],
    )
    if any(row[-1] for row in rows):
        err.print("Left alone: sessions that a model reads, or whose memory is paused or disabled.")


def _print_readers(reader: str, makers: Counter[str], *, dry_run: bool) -> None:
    read = "would be read" if dry_run else "is read"
    print(f"The keyless reader of this release is {reader}: what an older one read {read} by it.")
    if makers:
        made = ", ".join(f"{count:,} by {name}" for name, count in sorted(makers.items()))
        print(f"What {'would be' if dry_run else 'was'} archived was made {made}.")
