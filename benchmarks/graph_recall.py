"""What the graph adds to search: `python -m benchmarks.graph_recall --locomo PATH`.

LoCoMo is stored once as `kemem eval` stores it, one memory per turn, and asked with the graph
signal off and at several weights, in the same run. Three graphs, each with the content of the one
before: what a worker extracts from the stored turns; what the keyless extractor reads in the
sessions, with each speaker in turn as the user; and every name that was said, related to its
speaker. The last one is not made by KeMem: it shows what search does with a full graph.
"""

import argparse
import asyncio
import os
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from pathlib import Path
from typing import Any, Final, Literal

import asyncpg

from app.builders.factory import Factory
from app.evaluation.api import Api, open_api
from app.evaluation.dataset import Dataset, DatasetUnit, Store, choose
from app.evaluation.locomo import read_locomo
from app.evaluation.report import report_of
from app.evaluation.run import AskedQuestion, Evaluation, Loaded, Plan
from app.identity.tenants.access import Access
from app.language.keyless.extractor import propose
from app.language.llm.extractor import ConversationTurn, ExtractionRequest
from app.language.text.names import name_candidates, name_key
from app.memory.graph.memory_reader import note_mentions
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import (
    GraphOwner,
    NamedEntity,
    RelationStatement,
    Speaker,
    triples_of,
)
from app.memory.graph.writer import GraphWriter
from app.memory.memories.refreshes import GRAPH_REFRESH
from app.runtime import Runtime, open_runtime, utc_now
from app.settings import Settings
from app.worker import handlers_of, worker_of
from benchmarks.database import TENANT, Cluster, open_cluster
from benchmarks.processes import server
from benchmarks.publishing import publish
from benchmarks.recall import CONCURRENCY, about_run

WEIGHTS: Final = (0.0, 0.1, 0.3, 0.6)
DEPTHS: Final = [5, 10, 50]
QUICK_STORES: Final = 2
PATIENCE_SECONDS: Final = 600
MOST_ATTEMPTS: Final = 3
RESULT: Final = Path(__file__).parent / "results" / "graph_recall.json"

STORED: Final = "as stored"
EXTRACTED: Final = "as extracted"
NAMES: Final = "every name"

_SIZES: Final = """
SELECT (SELECT count(*) FROM graph_entities WHERE merged_into IS NULL) AS entities,
    (SELECT count(*) FROM graph_relations WHERE known_to IS NULL) AS relations,
    (SELECT count(*) FROM graph_mentions) AS mentions
"""
_PENDING: Final = """
SELECT attempts, error_code, error_detail FROM jobs
WHERE kind = $1 AND status IN ('pending', 'running', 'dead')
"""

Drawing = Callable[
    [Store, Loaded], tuple[list[RelationStatement], Mapping[NamedEntity, Sequence[str]]]
]
"""What a graph says of a store: relations, and who is mentioned by which memories."""


@dataclass(frozen=True, slots=True)
class Running:
    """The service that is asked, and the runtime beside it that draws its graph."""

    api: Api
    cluster: Cluster
    runtime: Runtime


def extracted(
    store: Store, loaded: Loaded
) -> tuple[list[RelationStatement], Mapping[NamedEntity, Sequence[str]]]:
    """The triples of what the rules propose of a store's sessions."""
    held = _memories(loaded)
    found: list[RelationStatement] = []
    for speaker in dict.fromkeys(unit.speaker or "user" for unit in store.units):
        user = Speaker(speaker, speaker)
        for units in _sittings(store):
            turns = [_turn(unit, speaker) for unit in units]
            said = "\n".join(name_key(turn.content) for turn in turns)
            for proposed in propose(ExtractionRequest(turns=turns)):
                ids = [held[one] for one in proposed.evidence if one in held]
                found += triples_of(
                    proposed, user, said, evidence=proposed.evidence, memory_ids=ids
                )
    return found, {}


def every_name(
    store: Store, loaded: Loaded
) -> tuple[list[RelationStatement], Mapping[NamedEntity, Sequence[str]]]:
    """Whoever said a name, joined to it, and the name to the memory that says it."""
    held = _memories(loaded)
    mentioned: dict[NamedEntity, list[str]] = {}
    triples: dict[tuple[str, str], list[str]] = {}
    for unit in store.units:
        if unit.text != unit.text.lower() and unit.unit_id in held:
            for name in name_candidates(unit.text):
                mentioned.setdefault(NamedEntity(name), []).append(held[unit.unit_id])
                triples.setdefault((unit.speaker or "user", name), []).append(held[unit.unit_id])
    return [
        RelationStatement(
            NamedEntity(who, "person"), "speaks_of", NamedEntity(name), memory_ids=tuple(ids)
        )
        for (who, name), ids in triples.items()
        if name_key(who) != name_key(name)
    ], mentioned


def _memories(loaded: Loaded) -> dict[str, str]:
    """The memory of each unit."""
    return {unit: memory_id for memory_id, units in loaded.units.items() for unit in units}


def _sittings(store: Store) -> Iterator[list[DatasetUnit]]:
    for session in dict.fromkeys(unit.session for unit in store.units):
        yield [unit for unit in store.units if unit.session == session]


def _turn(unit: DatasetUnit, speaker: str) -> ConversationTurn:
    role: Literal["user", "assistant"] = "user" if unit.speaker == speaker else "assistant"
    return ConversationTurn(
        unit.unit_id, role, unit.text, unit.moment or utc_now(), name=unit.speaker
    )


GRAPHS: Final[Sequence[tuple[str, Drawing | None]]] = (
    (STORED, None),
    (EXTRACTED, extracted),
    (NAMES, every_name),
)


async def measure(running: Running, dataset: Dataset) -> dict[str, Any]:
    """Store the data set, draw each graph and ask every question at every weight of it."""
    plan = Plan(
        run_id="graph-recall",
        limit=DEPTHS[-1],
        search={},
        concurrency=CONCURRENCY,
        keep=False,
    )
    stored = Evaluation(running.api, dataset, plan, utc_now())
    await stored.check()
    graphs = []
    async with stored.stored():
        for name, drawing in GRAPHS:
            if drawing is None:
                await _refreshed(running)
            else:
                await _drawn(running.runtime, dataset, stored.loaded, drawing)
            sizes = await _sizes(running.cluster)
            print(f"{name}: {sizes}", file=sys.stderr)
            graphs.append(
                {
                    "graph": name,
                    **sizes,
                    "weights": await _asked(running.api, dataset, stored, plan),
                }
            )
    return {"questions": dataset.question_count, "graphs": graphs}


async def _refreshed(running: Running) -> None:
    """Let a worker refresh the graphs of the saves, until no job is pending."""
    runtime = running.runtime
    others = set(handlers_of(Factory(runtime))) - {GRAPH_REFRESH}
    worker = worker_of(runtime, running.cluster.dsn, tickers=[], without=others)
    owner = await asyncpg.connect(running.cluster.owner_dsn)
    working = asyncio.create_task(worker.run())
    try:
        pending = await owner.fetch(_PENDING, GRAPH_REFRESH)
        for _ in range(PATIENCE_SECONDS):
            if not pending or any(job["attempts"] >= MOST_ATTEMPTS for job in pending):
                break
            await asyncio.sleep(1)
            pending = await owner.fetch(_PENDING, GRAPH_REFRESH)
        if pending:
            raise RuntimeError(f"the graph is not drawn: {[dict(job) for job in pending]}")
    finally:
        await worker.drain(timedelta(seconds=10))
        with suppress(asyncio.CancelledError):
            await working
        await owner.close()


async def _drawn(
    runtime: Runtime, dataset: Dataset, loaded: Mapping[str, Loaded], drawing: Drawing
) -> None:
    access = Access(TENANT)
    for store in dataset.stores:
        held = loaded[store.store_id]
        owner = GraphOwner("user", held.user_id, held.user_id, None, None)
        statements, mentioned = drawing(store, held)
        texts = {unit.unit_id: unit.text for unit in store.units}
        async with runtime.database.begin(TENANT) as db:
            writer = GraphWriter(db, access, actor=None, job_id=None, now=utc_now())
            await writer.store(owner, statements)
            await writer.mention(owner, mentioned)
            await note_mentions(
                EntityRepository(db, access),
                owner,
                [(memory_id, texts[unit]) for unit, memory_id in _memories(held).items()],
            )


async def _sizes(cluster: Cluster) -> dict[str, int]:
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        await owner.execute("ANALYZE")
        return dict(await owner.fetchrow(_SIZES))
    finally:
        await owner.close()


async def _asked(
    api: Api, dataset: Dataset, stored: Evaluation, plan: Plan
) -> list[dict[str, Any]]:
    """What each weight finds, and of how many questions the first ten are others than without."""
    without: list[AskedQuestion] = []
    weights = []
    for weight in WEIGHTS:
        search = {"mode": "hybrid", "boosts": {"graph": weight}}
        evaluation = Evaluation(api, dataset, replace(plan, search=search), utc_now())
        evaluation.loaded = stored.loaded
        asked = await evaluation.ask()
        without = without or asked
        report = report_of(dataset, evaluation, asked, DEPTHS)
        weights.append(
            {name: report[name] for name in ("total", "categories", "milliseconds", "asked")}
            | {
                "weight": weight,
                "moved": sum(
                    one.hits[:10] != two.hits[:10] for one, two in zip(asked, without, strict=True)
                ),
            }
        )
        print(f"{weight}: {report['total']['recall']}", file=sys.stderr)
    return weights


async def measure_all(dataset: Dataset) -> dict[str, Any]:
    began, load = time.perf_counter(), os.getloadavg()[0]
    async with open_cluster() as cluster:
        about = await about_run(cluster)
        async with (
            server("service", dsn=cluster.dsn) as served,
            open_api(
                f"http://127.0.0.1:{served.port}", cluster.key, connections=CONCURRENCY
            ) as api,
            open_runtime(Settings(_env_file=None), cluster.dsn) as runtime,
        ):
            found = await measure(Running(api, cluster, runtime), dataset)
    return found | {
        "about": about
        | {
            "conversations": len(dataset.stores),
            "load_before": load,
            "load_after": os.getloadavg()[0],
            "minutes": (time.perf_counter() - began) / 60,
        }
    }


def markdown(result: Mapping[str, Any]) -> str:
    about = result["about"]
    lines = [
        "# What the graph finds",
        "",
        f"LoCoMo, {about['conversations']} conversations, {result['questions']:,} questions of "
        "categories 1 to 4, through the HTTP API of a keyless service on the embedded database: "
        "stored once, one memory per turn, and asked with the graph off and at several weights "
        "(`boosts.graph`) in the same run. Percent; latency is the client's with "
        f"{about['concurrency']} searches of {DEPTHS[-1]} hits under way. *Moved* are the "
        "questions whose first ten hits are others than without the graph.",
        "",
        f"- *{STORED}*: what a worker draws of the turns as they stand, in the first person.",
        f"- *{EXTRACTED}*: besides, what the keyless extractor reads of each session, with each "
        "speaker in turn as the user.",
        f"- *{NAMES}*: besides, each name that was said, joined to whoever said it. No product "
        "of extraction: it shows what the search does with a full graph.",
        "",
        f"{about['date']}, KeMem {about['kemem']}, PostgreSQL {about['postgresql']}, "
        f"{about['processors']} processors, load of the machine {about['load_before']:.1f} before "
        f"and {about['load_after']:.1f} after {about['minutes']:.0f} minutes.",
        "",
    ]
    for graph in result["graphs"]:
        lines += _table(graph)
    return "\n".join(lines)


def _table(graph: Mapping[str, Any]) -> list[str]:
    first = graph["weights"][0]
    categories = list(first["categories"])
    names = ["total", *categories]
    lines = [
        f"## {graph['graph'].capitalize()}",
        "",
        f"{graph['entities']:,} entities, {graph['relations']:,} relations, "
        f"{graph['mentions']:,} mentions.",
        "",
        f"| weight | {' | '.join(f'{name} @5 / @10' for name in names)} "
        "| total @10 against 0 | moved | p50 ms | failed |",
        "|--:|" + "--:|" * (len(names) + 4),
    ]
    for row in graph["weights"]:
        figures = [row["total"], *(row["categories"][name] for name in categories)]
        shown = " | ".join(f"{_at(one, 5):.1f} / {_at(one, 10):.1f}" for one in figures)
        apart = _at(row["total"], 10) - _at(first["total"], 10)
        lines.append(
            f"| {row['weight']} | {shown} | {apart:+.2f} | {row['moved']} "
            f"| {row['milliseconds']['p50']:.0f} "
            f"| {row['asked']['failed'] + row['asked']['degraded']} |"
        )
    return [*lines, ""]


def _at(figures: Mapping[str, Any], depth: int) -> float:
    return float(figures["recall"][str(depth)]) * 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--locomo", type=Path, required=True, help="locomo10.json")
    parser.add_argument("--conversations", type=int, help="the first so many; all without")
    parser.add_argument("--quick", action="store_true", help="two conversations")
    parser.add_argument("--out", type=Path, default=RESULT)
    given = parser.parse_args()
    whole = read_locomo(given.locomo)
    counted = [name for name in whole.categories if name not in whole.apart]
    stores = QUICK_STORES if given.quick else given.conversations
    result = asyncio.run(measure_all(choose(whole, categories=counted, stores=stores)))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
