"""A data set measured on a running service: stored, asked, compared, reported and removed."""

import asyncio
import hashlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import typer

from app.console import REFUSED, err, out, write_json
from app.errors import ConfigurationError
from app.evaluation.api import open_api
from app.evaluation.dataset import Dataset
from app.evaluation.dataset_file import read_dataset
from app.evaluation.locomo import read_locomo
from app.evaluation.published_datasets import read_beam, read_longmemeval
from app.evaluation.report import figures_of, print_report, report_of
from app.evaluation.run import Evaluation, Plan
from app.platform.version import VERSION
from app.runtime import utc_now
from kemem.address import Service


def read_given(
    dataset: Path | None,
    *,
    locomo: Path | None = None,
    longmemeval: Path | None = None,
    beam: Path | None = None,
) -> tuple[Path, Dataset]:
    """What was given, in one format or another, and what it holds.

    Raises:
        ConfigurationError: none was given, or two, or it is no data set.

    """
    formats = (
        (dataset, read_dataset),
        (locomo, read_locomo),
        (longmemeval, read_longmemeval),
        (beam, read_beam),
    )
    given = [(path, read) for path, read in formats if path is not None]
    if len(given) != 1:
        raise ConfigurationError(
            "Give a data set, or one with --locomo PATH, --longmemeval PATH or --beam FOLDER: one "
            "of them."
        )
    [(path, read)] = given
    return path, read(path)


@dataclass(frozen=True, slots=True)
class ReportTarget:
    """Where the figures go besides the terminal.

    Args:
        json_file: all of them, if it is given.
        name: under which the service keeps the figures without those of single questions.

    """

    json_file: Path | None = None
    name: str | None = None


async def measure_dataset(
    service: Service,
    dataset: Dataset,
    plan: Plan,
    ks: list[int],
    about: dict[str, Any],
    target: ReportTarget,
) -> None:
    """Measure searches of memories for `dataset` on `service`, and print the report.

    Args:
        ks: depths of recall, from small to large.
        about: what a result file says of what was measured.
        target: where the figures go besides.

    Raises:
        typer.Exit: a search failed, or something could not be removed; all is reported before.

    """
    async with open_api(service.base_url, service.key, connections=plan.concurrency) as api:
        evaluation = Evaluation(api, dataset, plan, utc_now())
        await evaluation.check()
        async with evaluation.stored():
            asked = await evaluation.ask()
        say_kept(evaluation, plan)
    report = report_of(dataset, evaluation, asked, ks)
    print_search_report(dataset, report, ks)
    await keep_report(about | report, target, service)
    if report["asked"]["failed"] or evaluation.left:
        raise typer.Exit(REFUSED)


def say_kept(evaluation: Evaluation, plan: Plan) -> None:
    """Name what was left in place, where that was wanted."""
    if plan.keep:
        users = ", ".join(loaded.user_id for loaded in evaluation.loaded.values())
        err.print(f"Kept the agent {plan.run_id} and the users {users}.", markup=False)


def print_search_report(dataset: Dataset, report: dict[str, Any], ks: list[int]) -> None:
    """The table of searches under a title that says of what."""
    print_report(
        f"{dataset.name}: {dataset.unit_count} units, {report['asked']['questions']} questions; "
        f"embedded by {', '.join(report['embedding_models']) or 'nothing'}",
        report,
        ks,
    )


async def keep_report(report: dict[str, Any], target: ReportTarget, service: Service) -> None:
    """Write the result file and store the figures with the service, where that is wanted."""
    if target.json_file is not None:
        await asyncio.to_thread(write_json, target.json_file, report)
        out.print(f"Written to {target.json_file}.", markup=False)
    if target.name is not None:
        about = {"settings": report["settings"], "data": report["data"]}
        body = {
            "name": target.name,
            "dataset": report["data"]["name"],
            "settings": about,
            "metrics": figures_of(report),
        }
        async with open_api(service.base_url, service.key) as api:
            kept = (await api.post("/evaluations", body)).body
        out.print(f"Stored as {kept['evaluation_id']}.", markup=False)


def describe_run(path: Path, dataset: Dataset, service: Service) -> dict[str, Any]:
    """What a result file says about itself."""
    return {
        "kemem": VERSION,
        "date": utc_now().isoformat(timespec="seconds"),
        "service": service.base_url,
        "processors": os.cpu_count(),
        "data": {
            "name": dataset.name,
            "lang": dataset.lang,
            "file": path.name,
            "sha256": _sha256(path),
            "stores": len(dataset.stores),
        },
    }


def _sha256(path: Path) -> str:
    """Of a file; of a folder, of its JSON files in the order of their paths."""
    digest = hashlib.sha256()
    for file in sorted(path.rglob("*.json")) if path.is_dir() else [path]:
        digest.update(file.read_bytes())
    return digest.hexdigest()
