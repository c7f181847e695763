"""What candidates of large buckets find beside a search of every row, and at what price:
`python -m benchmarks.large_buckets DATA...`.

Each file is LoCoMo's or one of our shape (`kemem eval`). All of its stores become the memories of
one user, and each question is asked both ways: of searches by words and vectors, by vectors alone
and by words alone, the first ten and fifty; of a context, the memories that it shows. One of 20
memories is a correction. With `--sizes` the memories of the first file are copied into further
sessions until there are so many, and both ways are timed.
"""

import argparse
import asyncio
import json
import statistics
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from time import process_time
from typing import Any, Final

import asyncpg
from typing_extensions import override

from app.builders.factory import Factory
from app.evaluation.dataset import Dataset, Question, Store
from app.evaluation.dataset_file import read_dataset
from app.evaluation.locomo import read_locomo
from app.identity.tenants.access import Principal
from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from app.memory.memories.bucket_index import BucketIndex
from app.memory.memories.large_buckets import LargeBuckets
from app.memory.memories.quantisation import QuantisationService
from app.memory.memories.search_schemas import SearchRequest
from app.memory.memories.search_service import SearchService
from app.memory.memories.search_sql import SearchPlan
from app.platform.database.joint_reads import HotReads
from app.prompting.context.schemas import ContextRequest
from app.prompting.context.service import ContextService
from app.runtime import Runtime, open_runtime
from app.settings import Settings
from benchmarks.database import AGENT, TENANT, Cluster, open_cluster
from benchmarks.talk import fill_talks, said

USER: Final = "large"
SESSION: Final = "large-asks"
MODES: Final = ("hybrid", "semantic", "lexical")
DEPTHS: Final = (10, 50)
MEMORY_TOKENS: Final = 2_000
CODED_FROM: Final = 100
"""Smaller sets get codes too, so that both ways can be compared on them."""

TIMED: Final = 20
"""How many questions are timed."""


class EveryRow(LargeBuckets):
    """No bucket is large."""

    @override
    async def indexes(self, plan: SearchPlan) -> Sequence[BucketIndex]:
        return ()


class Candidates(LargeBuckets):
    """Every bucket with codes is large; counts the searches of which candidates could not stand
    for it.
    """

    def __init__(self, reads: HotReads) -> None:
        super().__init__(reads, least=1)
        self.given_up = 0

    @override
    def forget(self, plan: SearchPlan) -> None:
        self.given_up += 1


@dataclass(frozen=True, slots=True)
class Joined:
    """The stores of a data set as one: `gold` of each question names contents."""

    store: Store
    gold: Mapping[str, frozenset[str]]


def joined(dataset: Dataset) -> Joined:
    """One store; what is said twice is one memory."""
    units = said(dataset.stores, 0, dataset.unit_count)
    texts = {
        store.store_id: {unit.unit_id: unit.text for unit in store.units}
        for store in dataset.stores
    }
    asked: dict[str, tuple[Question, frozenset[str]]] = {}
    for store in dataset.stores:
        for one in store.questions:
            if one.category not in dataset.apart:
                texts_of = texts[store.store_id]
                asked[one.text] = (one, frozenset(texts_of[unit] for unit in one.gold))
    once = list({unit.text: unit for unit in units}.values())
    questions = tuple(one for one, _ in asked.values())
    return Joined(
        Store(dataset.name, tuple(once), questions),
        {text: gold for text, (_, gold) in asked.items()},
    )


@dataclass(frozen=True, slots=True)
class Way:
    """The services that search one way."""

    searching: SearchService
    contexts: ContextService
    principal: Principal
    large: LargeBuckets

    @classmethod
    def of(cls, runtime: Runtime, principal: Principal, large: LargeBuckets) -> "Way":
        factory = Factory(replace(runtime, large_buckets=large))
        return cls(factory.get(SearchService), factory.get(ContextService), principal, large)

    async def search(self, query: str, mode: str, limit: int) -> list[str]:
        body = SearchRequest(query=query, user_id=USER, mode=mode, limit=limit, preview=True)
        answer = await self.searching.search(self.principal, body)
        return [hit["content"] for hit in answer["results"]]

    async def context(self, query: str) -> list[str]:
        body = ContextRequest(query=query, max_memory_tokens=MEMORY_TOKENS, preview=True)
        answer = await self.contexts.build(self.principal, SESSION, body)
        return [used["memory_id"] for used in answer["used"]]


_COPIES: Final = """
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, session_id, content,
    content_hash, memory_type, tier, source, confidence, visibility, embedding, embedding_model,
    valid_from, metadata, terms, term_count, word_count, is_question, has_time, analyser)
SELECT tenant_id, memory_id || '-' || n, user_id, scope, scope_id, session_id || '-' || n,
    content || ' ' || n, decode(md5(memory_id || n), 'hex'), memory_type, tier, source, confidence,
    visibility, embedding, embedding_model, valid_from, metadata, terms, term_count, word_count,
    is_question, has_time, analyser
FROM memories CROSS JOIN generate_series(1, $1 / (SELECT count(*) FROM memories)) AS n
LIMIT $1 - (SELECT count(*) FROM memories)
"""


@asynccontextmanager
async def opened(
    units: Sequence[Any], size: int = 0
) -> AsyncIterator[tuple[Cluster, list[Way], dict[str, str]]]:
    """Both ways to search what one user has said, and the content of each memory."""
    async with open_cluster() as cluster:
        owner = await asyncpg.connect(cluster.owner_dsn)
        await fill_talks(owner, {USER: units})
        await owner.execute(
            "UPDATE tenants SET embedding_models = ARRAY[$1]", WordLlamaEmbedder.name
        )
        await owner.execute(
            "UPDATE memories SET confidence = 0.9, memory_type = "
            "CASE WHEN abs(hashtext(content)) % 20 = 0 THEN 'correction' ELSE 'fact' END"
        )
        if size > len(units):
            # Sessions of the copies need not exist.
            await owner.execute("SET session_replication_role = replica")
            await owner.execute(_COPIES, size)
        await owner.execute(
            "INSERT INTO sessions (tenant_id, session_id, user_id, agent_id) "
            "VALUES ($1, $2, $3, $4)",
            TENANT, SESSION, USER, AGENT,
        )  # fmt: skip
        await owner.execute("ANALYZE memories")
        async with open_runtime(Settings(_env_file=None), cluster.dsn) as runtime:
            results = await QuantisationService(runtime.database, CODED_FROM).run(TENANT)
            print([(each.task, each.rows, each.recall) for each in results], file=sys.stderr)
            await owner.execute("VACUUM ANALYZE")
            rows = await owner.fetch("SELECT memory_id, content FROM memories")
            await owner.close()
            principal = await runtime.identification.identify(cluster.key)
            ways = [
                Way.of(runtime, principal, kind(runtime.database))
                for kind in (EveryRow, Candidates)
            ]
            # The first search begins to read what the others choose from.
            await ways[1].search("tea", "lexical", 10)
            await ways[1].large.settled()
            yield cluster, ways, {row["memory_id"]: row["content"] for row in rows}


def recall(found: Sequence[str], gold: frozenset[str]) -> float:
    return len(gold & set(found)) / len(gold)


def shared(one: Sequence[str], other: Sequence[str]) -> float:
    return len(set(one) & set(other)) / max(len(set(one)), 1)


async def agreement(dataset: Dataset, questions: int | None) -> dict[str, Any]:
    """Recall both ways, and the share of what a search of every row finds that both do."""
    whole = joined(dataset)
    asked = list(whole.store.questions)
    Random(1).shuffle(asked)
    asked = asked[:questions]
    table: dict[str, dict[str, list[float]]] = {}

    def note(name: str, found: Sequence[Sequence[str]], gold: frozenset[str]) -> None:
        exact, chosen = found
        row = table.setdefault(name, {"every row": [], "candidates": [], "both": []})
        row["every row"].append(recall(exact, gold))
        row["candidates"].append(recall(chosen, gold))
        row["both"].append(shared(exact, chosen))

    async with opened(whole.store.units) as (_, ways, contents):
        for one in asked:
            gold = whole.gold[one.text]
            for mode in MODES:
                for depth in DEPTHS:
                    found = [await way.search(one.text, mode, depth) for way in ways]
                    note(f"{mode}, {depth}", found, gold)
            shown = [await way.context(one.text) for way in ways]
            note("context", [[contents[each] for each in used] for used in shown], gold)
        given_up = getattr(ways[1].large, "given_up", 0)
    return {
        "name": dataset.name,
        "memories": len(whole.store.units),
        "questions": len(asked),
        "given_up": given_up,
        "table": {
            name: {key: round(statistics.fmean(values), 4) for key, values in row.items()}
            for name, row in table.items()
        },
    }


async def times(dataset: Dataset, size: int) -> dict[str, Any]:
    """CPU of PostgreSQL and of this process for a request, in milliseconds."""
    asked = [one.text for one in joined(dataset).store.questions[::53]][:TIMED]
    table: dict[str, list[dict[str, float]]] = {}
    async with opened(joined(dataset).store.units, size) as (cluster, ways, _):
        requests = {
            f"{mode}, {limit}": (lambda way, text, m=mode, n=limit: way.search(text, m, n))
            for mode in MODES
            for limit in (10, 100)
        } | {"context": lambda way, text: way.context(text)}
        for name, request in requests.items():
            for way in ways:
                some = asked if way is ways[1] else asked[:5]
                await request(way, some[0])
                before = cluster.cpu_seconds(), process_time()
                for text in some:
                    await request(way, text)
                after = cluster.cpu_seconds(), process_time()
                spent = [
                    1000 * (late - early) / len(some)
                    for early, late in zip(before, after, strict=True)
                ]
                table.setdefault(name, []).append(
                    {"postgresql": round(spent[0], 1), "service": round(spent[1], 1)}
                )
                print(size, name, type(way.large).__name__, spent, file=sys.stderr)
    return {"memories": size, "questions": len(asked), "table": table}


def read(path: Path) -> Dataset:
    return read_locomo(path) if "locomo" in path.name else read_dataset(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("data", nargs="+", type=Path)
    parser.add_argument("--questions", type=int, help="about so many of each file")
    parser.add_argument("--sizes", nargs="*", type=int, default=[])
    given = parser.parse_args()
    for path in given.data if not given.sizes else []:
        print(json.dumps(asyncio.run(agreement(read(path), given.questions)), indent=1), flush=True)
    for size in given.sizes:
        print(json.dumps(asyncio.run(times(read(given.data[0]), size)), indent=1), flush=True)


if __name__ == "__main__":
    main()
