"""Maintenance over all tenants while the service runs: kemem purge, encrypt-secrets, reembed, and
optimize, which gives codes to large buckets of memories.
"""

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Annotated

import typer

from app.cli.opening import open_console_database, run
from app.cli.options import DataDirOption, settings_with, with_kept_key
from app.console import REFUSED, err, print_table, progress
from app.deployment import COMMAND_WAIT, open_catalogue, stripped_tags
from app.errors import ConfigurationError, DomainError
from app.governance.operations.housekeeping import Housekeeping
from app.governance.operations.repository import Retention
from app.governance.webhooks.sender import SecretBox
from app.governance.webhooks.service import SecretService
from app.identity.tenants.repository import KeyDirectory
from app.identity.usage.ledger import EmbeddingLedger
from app.memory.graph.repository import EntityVectorRepository
from app.memory.memories.backfill import ReembedPlan, ReembedService
from app.memory.memories.quantisation import QuantisationResult, QuantisationService, refused
from app.memory.store.repository import StoreVectorRepository
from app.platform.database.engine import Database
from app.prompting.checkpoints.archive_service import CheckpointArchiving
from app.prompting.documents.passage_repository import PassageVectorRepository
from app.settings import Settings

PAGE = 100

LABELS = {
    "expired": "expired memories, archived",
    "memories": "deleted or expired memories",
    "idempotency_keys": "idempotency keys",
    "verdicts": "refused texts",
    "jobs": "finished jobs",
    "extraction_runs": "extraction runs",
    "webhook_deliveries": "webhook deliveries",
    "usage": "days of usage",
    "model_answers": "unused answers of models",
    "store_items": "expired items of stores",
    "checkpoints_archived": "old checkpoints, archived",
    "approvals_expired": "approvals that nobody gave in time",
    "saver_parts_removed": "pieces of LangGraph checkpoints that never came",
}

OTHERS = (PassageVectorRepository, EntityVectorRepository, StoreVectorRepository)
"""What has vectors besides memories and messages."""

DryRunOption = Annotated[bool, typer.Option("--dry-run", help="Only count; change nothing.")]


async def tenant_ids(database: Database) -> AsyncIterator[str]:
    """Every tenant, newest first."""
    directory = KeyDirectory(database)
    start = None
    while True:
        rows = await directory.tenants(start, PAGE)
        for row in rows[:PAGE]:
            yield row["tenant_id"]
        if len(rows) <= PAGE:
            return
        start = (rows[PAGE - 1]["create_time"], rows[PAGE - 1]["tenant_id"])


def purge_command(
    days: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=3650,
            help="Keep what was deleted, refused or expired within so many days; "
            "MEMORY_PURGE_DAYS when left out.",
            show_default=False,
        ),
    ] = None,
    dry_run: DryRunOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Remove for good what was deleted long ago, with the words that its history keeps.

    Everything else that goes with time goes too, as the worker sees to it once an hour:
    memories that expired are archived, and later removed; old checkpoints are archived, and
    approvals that nobody gave in time are ended; old verdicts on refused texts,
    expired idempotency keys, answers of models that were never used, and old rows about jobs,
    extractions, webhooks and usage are removed. Safe to repeat, and while the service runs.
    """
    settings = settings_with(data_dir=data_dir)
    age = timedelta(days=settings.purge_days if days is None else days)
    run(_purge(settings, age, dry_run=dry_run))


async def _purge(settings: Settings, age: timedelta, *, dry_run: bool) -> None:
    counts: dict[str, dict[str, int]] = {}
    async with open_console_database(settings) as database:
        kept = timedelta(days=settings.checkpoint_ttl_days) or None
        house = Housekeeping(
            database, Retention(deleted=age), checkpoints=CheckpointArchiving(database, kept)
        )
        due = {tenant_id: await house.due(tenant_id) async for tenant_id in tenant_ids(database)}
        if dry_run:
            counts = due
        else:
            with progress("rows") as bar:
                task = bar.add_task(
                    "Purging", total=sum(sum(counted.values()) for counted in due.values())
                )
                for tenant_id in due:
                    counts[tenant_id] = await house.run(
                        tenant_id, removed=lambda count: bar.advance(task, count)
                    )
    rows = [
        (tenant_id, LABELS[name], count)
        for tenant_id, kinds in counts.items()
        for name, count in kinds.items()
        if count
    ]
    if not rows:
        print("Nothing is due.")
        return
    print_table(
        f"{'Due' if dry_run else 'Done'}, with what was deleted at least {age.days} days ago",
        ("tenant", "what", "rows"),
        rows,
        right=("rows",),
    )


def encrypt_secrets_command(data_dir: DataDirOption = None) -> None:
    """Encrypt the secrets of webhooks with the first key of MEMORY_SECRET_KEY.

    Run it once after an update of a release that stored them in clear, and to change the key: put
    the new one before the old one, with a comma between, restart the service, run this, and take
    the old one out. Safe to repeat, and while the service runs.
    """
    settings = settings_with(data_dir=data_dir)
    run(_encrypt_secrets(settings))


async def _encrypt_secrets(settings: Settings) -> None:
    async with open_console_database(settings) as database:
        if settings.embedded:
            settings = with_kept_key(settings)
        if not settings.secret_keys:
            raise ConfigurationError(
                "MEMORY_SECRET_KEY is not set: set it, here and for the service, to what `openssl "
                "rand -base64 32` prints."
            )
        service = SecretService(database, SecretBox(settings.secret_keys))
        counts = [await service.encrypt(tenant_id) async for tenant_id in tenant_ids(database)]
    found, unread = (sum(column) for column in zip(*counts, strict=True)) if counts else (0, 0)
    print(f"Encrypted: {found - unread} of {found} webhooks.")
    if unread:
        err.print(
            f"{unread} have a secret that no key of MEMORY_SECRET_KEY opens, and receive nothing: "
            "add the key that encrypted it, or call rotate-secret for each."
        )
        raise typer.Exit(REFUSED)


def reembed_command(
    tenant: Annotated[
        str | None,
        typer.Option(help="Only this tenant; all when left out.", show_default=False),
    ] = None,
    batch: Annotated[
        int, typer.Option(min=1, max=2000, help="Texts per call of the embedder.")
    ] = 200,
    dry_run: DryRunOption = False,
    data_dir: DataDirOption = None,
) -> None:
    """Give all that is stored vectors of the embedder that is in force for it now.

    That is memories, messages, passages of documents, the names of the graph's entities, and what
    stores have indexed.

    Run it after a change of MEMORY_EMBEDDING_MODEL, or of a tenant's or an agent's
    `embedding`. The service goes on answering, and searches use old and new vectors until it
    is done. Stopped half-way, it goes on where it was when it is run again.
    """
    settings = settings_with(data_dir=data_dir)
    run(_reembed(settings, tenant, batch=batch, dry_run=dry_run))


async def _reembed(settings: Settings, tenant: str | None, *, batch: int, dry_run: bool) -> None:
    async with (
        open_console_database(settings) as database,
        open_catalogue(settings, longest_wait=COMMAND_WAIT) as catalogue,
    ):
        tags = stripped_tags(settings)
        service = ReembedService(database, catalogue, EmbeddingLedger(database), tags, OTHERS)
        ids = [tenant] if tenant else [tenant_id async for tenant_id in tenant_ids(database)]
        plans = {tenant_id: await service.plan(tenant_id) for tenant_id in ids}
        moved = {} if dry_run else await _move(service, plans, batch)
    _report_moves(plans, moved, dry_run=dry_run)
    _report_missing(plans)


def _report_moves(plans: dict[str, ReembedPlan], moved: dict[str, int], *, dry_run: bool) -> None:
    if not any(plan.waiting for plan in plans.values()):
        print("Every memory has a vector of the model in force for it, and so has all else.")
        return
    columns = ("tenant", "waiting", "models in force", "moved")
    print_table(
        "Texts without a vector of the model in force",
        columns[: 3 if dry_run else 4],
        [
            (tenant_id, plan.waiting, ", ".join(sorted(plan.embedders)), moved.get(tenant_id, 0))[
                : 3 if dry_run else 4
            ]
            for tenant_id, plan in plans.items()
            if plan.waiting
        ],
        right=("waiting", "moved"),
    )


async def _move(
    service: ReembedService, plans: dict[str, ReembedPlan], batch: int
) -> dict[str, int]:
    moved: dict[str, int] = {}
    with progress("texts") as bar:
        task = bar.add_task("Embedding", total=sum(plan.waiting for plan in plans.values()))
        try:
            for tenant_id, plan in plans.items():
                moved[tenant_id] = await service.reembed(
                    tenant_id, plan, batch=batch, moved=lambda count: bar.advance(task, count)
                )
        except DomainError:
            err.print("Not finished. What is done stays done: run the command again.")
            raise
    return moved


def _report_missing(plans: dict[str, ReembedPlan]) -> None:
    missing = [
        f"{name} ({tenant_id})" for tenant_id, plan in plans.items() for name in plan.missing
    ]
    if missing:
        err.print(
            "Some name an embedder that this deployment does not have, and their texts stayed "
            f"as they are: {', '.join(missing)}."
        )
        raise typer.Exit(REFUSED)


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
