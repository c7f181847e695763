"""What is found, signal by signal: `python -m benchmarks.recall --locomo PATH --madial FOLDER`.

It starts a keyless service with default settings on a fresh embedded database. Each data set is
stored once over the public API and asked at every step of `recall_ladder.py`, so that all figures
of a table are of the same rows. `--weights` also varies each weight, on LoCoMo; `--quick` takes two
conversations of it.
"""

import argparse
import asyncio
import os
import platform
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

import asyncpg

import kemem
from app.evaluation.api import Api, open_api
from app.evaluation.dataset import Dataset, choose
from app.evaluation.dataset_file import read_dataset
from app.evaluation.locomo import read_locomo
from app.evaluation.report import report_of
from app.evaluation.run import Evaluation, Plan
from app.language.ranking.boosts import Boosts
from app.language.text.terms import ANALYSER_VERSION
from app.runtime import utc_now
from benchmarks import recall_report
from benchmarks.database import Cluster, open_cluster
from benchmarks.processes import server
from benchmarks.publishing import publish
from benchmarks.recall_ladder import Step, ladder, weights

DEPTHS: Final = [5, 10, 25, 50]
CONCURRENCY: Final = 4
QUICK_STORES: Final = 2
CHINESE: Final = Path(__file__).parent / "recall_set" / "chinese.json"
RESULT: Final = Path(__file__).parent / "results" / "recall.json"


@dataclass(frozen=True, slots=True)
class Course:
    """A data set, and the steps at which it is asked."""

    key: str
    dataset: Dataset
    steps: Sequence[Step]


def courses(locomo: Path, madial: Path, *, quick: bool, moved: bool) -> list[Course]:
    """What is measured. LoCoMo without its adversarial questions, which ask for nothing stored."""
    whole = read_locomo(locomo)
    counted = [name for name in whole.categories if name not in whole.apart]
    sets = {
        "locomo": choose(whole, categories=counted, stores=QUICK_STORES if quick else None),
        "madial_en": read_dataset(madial / "madial_en.json"),
        "madial_zh": read_dataset(madial / "madial_zh.json"),
        "chinese": read_dataset(CHINESE),
    }
    return [
        Course(key, dataset, ladder() + (weights() if moved and key == "locomo" else []))
        for key, dataset in sets.items()
    ]


async def measure(api: Api, course: Course) -> dict[str, Any]:
    """Store a data set, ask its questions at every step, and remove it."""
    plan = Plan(
        run_id=f"recall-{course.key}",
        limit=DEPTHS[-1],
        search={},
        concurrency=CONCURRENCY,
        keep=False,
    )
    stored = Evaluation(api, course.dataset, plan, utc_now())
    await stored.check()
    steps: list[dict[str, Any]] = []
    async with stored.stored():
        for number, step in enumerate(course.steps, 1):
            print(f"{course.key} {number}/{len(course.steps)}: {step.name}", file=sys.stderr)
            steps.append(await _asked(api, course, replace(plan, search=dict(step.search)), stored))
    reports = zip(course.steps, steps, strict=True)
    return {
        "name": course.dataset.name,
        "questions": course.dataset.question_count,
        "loaded": steps[0]["loaded"],
        "embedding_models": steps[0]["embedding_models"],
        "steps": [{"step": step.name, "part": step.part} | report for step, report in reports],
    }


async def _asked(api: Api, course: Course, plan: Plan, stored: Evaluation) -> dict[str, Any]:
    """What one step finds of what is stored."""
    evaluation = Evaluation(api, course.dataset, plan, utc_now())
    await evaluation.check()
    evaluation.loaded = stored.loaded
    report = report_of(course.dataset, evaluation, await evaluation.ask(), DEPTHS)
    # Per question it would be some hundred thousand lines; `kemem eval --json` has them.
    return {name: value for name, value in report.items() if name != "questions"} | {
        "search": plan.search
    }


async def measure_all(chosen: Sequence[Course]) -> dict[str, Any]:
    began, load = time.perf_counter(), os.getloadavg()[0]
    sets = {}
    async with open_cluster() as cluster:
        about = await about_run(cluster)
        async with (
            server("service", dsn=cluster.dsn) as served,
            open_api(
                f"http://127.0.0.1:{served.port}", cluster.key, connections=CONCURRENCY
            ) as api,
        ):
            for course in chosen:
                sets[course.key] = await measure(api, course)
    return {
        "about": about
        | {
            "load_before": load,
            "load_after": os.getloadavg()[0],
            "minutes": (time.perf_counter() - began) / 60,
        },
        "sets": sets,
    }


async def about_run(cluster: Cluster) -> dict[str, Any]:
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        postgresql = await owner.fetchval("SHOW server_version")
        pgvector = await owner.fetchval(
            "SELECT extversion FROM pg_extension WHERE extname = 'vector'"
        )
    finally:
        await owner.close()
    return {
        "date": utc_now().isoformat(timespec="seconds"),
        "processors": os.cpu_count(),
        "kemem": kemem.__version__,
        "python": platform.python_version(),
        "postgresql": postgresql,
        "pgvector": pgvector,
        "analyser": ANALYSER_VERSION,
        "boosts": {name: getattr(Boosts(), name) for name in Boosts.__dataclass_fields__},
        "concurrency": CONCURRENCY,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--madial", type=Path, required=True, help="folder of madial_*.json")
    parser.add_argument("--quick", action="store_true", help="two conversations of LoCoMo")
    parser.add_argument("--weights", action="store_true", help="move each weight too, on LoCoMo")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    chosen = courses(given.locomo, given.madial, quick=given.quick, moved=given.weights)
    result = asyncio.run(measure_all(chosen))
    publish(result, recall_report.markdown(result), given.out)


if __name__ == "__main__":
    main()
