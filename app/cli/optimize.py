"""kemem optimize: codes for large buckets of memories, over all tenants, while the service runs."""

from typing import Annotated

import typer

from app.cli.maintenance import DryRunOption, tenant_ids
from app.cli.opening import open_console_database, run
from app.cli.options import DataDirOption, settings_with
from app.console import print_table, progress
from app.memory.memories.quantisation import QuantisationResult, QuantisationService, refused
from app.settings import Settings


def optimize_command(
    tenant: Annotated[
        str | None,
        typer.Option(help="Only this tenant; all when left out.", show_default=False),
    ] = None,
    dry_run: DryRunOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Give large buckets binary codes, and take them where few are left.

    The worker does so once an hour. A search of more than 1,500 memories is then
    up to several times faster, and every run compares what some of them find with an exact search.
    Stopped half-way, it goes on where it was when it is run again.
    """
    settings = settings_with(data_dir=data_dir)
    run(_optimize(settings, tenant, dry_run=dry_run))


async def _optimize(settings: Settings, tenant: str | None, *, dry_run: bool) -> None:
    async with open_console_database(settings) as database:
        service = QuantisationService(database)
        ids = [tenant] if tenant else [tenant_id async for tenant_id in tenant_ids(database)]
        planned = {
            tenant_id: [QuantisationResult(*planned) for planned in await service.plan(tenant_id)]
            for tenant_id in ids
        }
        done = planned if dry_run else await _work(service, planned)
    lines = [
        (tenant_id, *_line(outcome, dry_run=dry_run))
        for tenant_id, found in done.items()
        for outcome in found
    ]
    if not lines:
        print("Every bucket of memories is small, and compared exactly.")
        return
    print_table(
        "Buckets of memories that are large, or were",
        ("tenant", "scope", "bucket id", "model", "rows", "recall", "codes"),
        lines,
        right=("rows", "recall"),
    )


async def _work(
    service: QuantisationService, planned: dict[str, list[QuantisationResult]]
) -> dict[str, list[QuantisationResult]]:
    waiting = sum(_waiting(result) for found in planned.values() for result in found)
    with progress("memories") as bar:
        task = bar.add_task("Coding", total=waiting)
        return {
            tenant_id: await service.run(tenant_id, moved=lambda count: bar.advance(task, count))
            for tenant_id in planned
        }


def _waiting(outcome: QuantisationResult) -> int:
    """How many rows are to get codes, or to lose them."""
    bucket = outcome.bucket
    of_task = {"encode": bucket.rows - bucket.coded, "clear": bucket.coded, "nothing": 0}
    return of_task[outcome.task]


def _line(outcome: QuantisationResult, *, dry_run: bool) -> tuple[object, ...]:
    bucket = outcome.bucket
    recall = bucket.sampled_recall if outcome.recall is None else outcome.recall
    rows = _waiting(outcome) if dry_run else outcome.rows
    verb = {"encode": "to be made", "clear": "to be cleared"} if dry_run else {
        "encode": "made", "clear": "cleared",
    }  # fmt: skip
    if outcome.task != "nothing":
        codes = f"{rows} {verb[outcome.task]}" if rows else "yes"
    else:
        codes = "no: they found too little" if refused(bucket) else "no: compared exactly"
    return (
        bucket.scope,
        bucket.scope_id,
        bucket.model,
        bucket.rows,
        "" if recall is None else f"{recall:.3f}",
        codes,
    )
