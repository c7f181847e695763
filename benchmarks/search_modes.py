"""Hybrid search compared with semantic search and with its own statements.

A part of `benchmarks.search`. Four subjects take turns over the same questions and rows: the
service in hybrid mode with every signal, in semantic mode, and the statements of each alone. The
service's own time is that in its log line of each request.
"""

import json
import os
import statistics
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any, Final

import asyncpg

from app.language.llm.wordllama_embedder import WordLlamaEmbedder
from benchmarks import breakdown
from benchmarks.database import Cluster
from benchmarks.processes import Child, Measured, Server, child, fire, median, post, server, summary
from benchmarks.talk import fill_talks, questions_on, said, talks

USERS: Final = {600: 8, 10_000: 2}
"""How many users there are of each size."""

QUESTIONS: Final = 120
CALLERS: Final = (1, 16)
HYBRID, SEMANTIC = "hybrid", "semantic"
PATH: Final = "/v1/memories/search"


@dataclass(frozen=True, slots=True)
class Timed:
    """One round of one subject; the service's own time where there is one."""

    client: Measured
    server_p50_ms: float | None = None
    server_p95_ms: float | None = None


Round = Callable[[int, float], Awaitable[Timed]]


def users_of(size: int) -> list[str]:
    return [f"talk{size}-{number}" for number in range(USERS[size])]


async def fill(cluster: Cluster, locomo: Path | None) -> dict[int, list[tuple[str, str]]]:
    """Store what the users have said; by size, who is asked what."""
    stores = talks(locomo)
    spoken = {
        user: said(stores, place % len(stores), size)
        for size in USERS
        for place, user in enumerate(users_of(size))
    }
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        await fill_talks(owner, spoken)
        await owner.execute(
            "UPDATE tenants SET embedding_models = ARRAY[$1]", WordLlamaEmbedder.name
        )
        await owner.execute("VACUUM ANALYZE")
    finally:
        await owner.close()
    return {size: _asked(stores, size) for size in USERS}


def _asked(stores: Sequence[Any], size: int) -> list[tuple[str, str]]:
    """Questions about users of that size, in turn, each on what that user has said."""
    users = users_of(size)
    own = [questions_on(stores, place % len(stores), size) for place in range(len(users))]
    return [
        (users[number % len(users)], texts[(number // len(users)) % len(texts)])
        for number in range(QUESTIONS)
        for texts in (own[number % len(users)],)
    ]


def served_ms(lines: Sequence[str]) -> list[float]:
    """What a log says of the searches in it, sorted."""
    entries = (json.loads(line) for line in lines if '"request_served"' in line)
    return sorted(one["milliseconds"] for one in entries if one["route"] == PATH)


def rounds_of(
    load: Child,
    raw: Child,
    kemem: Server,
    written: IO[str],
    key: str,
    asked: Sequence[tuple[str, str]],
) -> dict[str, Round]:
    """What is measured, by name; `written` is the log of the service."""

    def bodies(mode: str) -> list[dict[str, Any]]:
        return [{"user_id": u, "query": text, "limit": 10, "mode": mode} for u, text in asked]

    def through_api(mode: str) -> Round:
        requests = [post(PATH, body, key) for body in bodies(mode)]

        async def measure(callers: int, seconds: float) -> Timed:
            written.seek(0, os.SEEK_END)
            one = await fire(load, kemem, requests, callers=callers, seconds=seconds)
            own = served_ms(written.readlines())
            return Timed(one, own[len(own) // 2], own[min(len(own) - 1, int(len(own) * 0.95))])

        return measure

    def by_itself(mode: str) -> Round:
        job = {"name": f"{mode} {asked[0][0]}", "key": key, "bodies": bodies(mode)}

        async def measure(callers: int, seconds: float) -> Timed:
            before = raw.cpu_seconds()
            answer = await raw.ask(job | {"callers": callers, "seconds": seconds})
            return Timed(summary(answer, raw.cpu_seconds() - before))

        return measure

    return {
        HYBRID: through_api(HYBRID),
        SEMANTIC: through_api(SEMANTIC),
        "raw_hybrid": by_itself(HYBRID),
        "raw_semantic": by_itself(SEMANTIC),
    }


async def _in_turn(
    named: Mapping[str, Round], callers: int, rounds: int, seconds: float
) -> dict[str, Any]:
    """Round after round, every subject once per round; medians, and hybrid's multiples.

    A multiple is the median over the rounds of the multiples within a round: whatever else the
    machine does then weighs on all.
    """
    kept: dict[str, list[Timed]] = {name: [] for name in named}
    for _ in range(rounds):
        for name, measure in named.items():
            kept[name].append(await measure(callers, seconds))
    shown = {}
    for name, timed in kept.items():
        shown[name] = asdict(median([one.client for one in timed]))
        for figure in ("server_p50_ms", "server_p95_ms"):
            own = [value for one in timed if (value := getattr(one, figure)) is not None]
            shown[name][figure] = statistics.median(own) if own else None
    times = {
        name: statistics.median(
            ours.client.p50_ms / theirs.client.p50_ms
            for ours, theirs in zip(kept[HYBRID], kept[name], strict=True)
        )
        for name in named
        if name != HYBRID
    }
    at_server = [
        (ours.server_p50_ms or 0.0) / (theirs.server_p50_ms or 1.0)
        for ours, theirs in zip(kept[HYBRID], kept[SEMANTIC], strict=True)
    ]
    return {
        "subjects": shown,
        "hybrid_is_times": times,
        "hybrid_is_times_at_server": statistics.median(at_server),
    }


async def measure(
    cluster: Cluster, locomo: Path | None, *, rounds: int, seconds: float
) -> dict[str, Any]:
    """By size and number of callers; and where the time of one hybrid search goes."""
    by_size = await fill(cluster, locomo)
    sizes: dict[str, Any] = {}
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as written:
        async with (
            child("load") as load,
            child("raw_modes", dsn=cluster.dsn, quiet=True) as raw,
            server("service", dsn=cluster.dsn, log=Path(written.name)) as kemem,
        ):
            for size, asked in by_size.items():
                named = rounds_of(load, raw, kemem, written, cluster.key, asked)
                for warm_up in named.values():
                    await warm_up(4, max(1.0, seconds))
                sizes[str(size)] = {
                    str(callers): await _in_turn(named, callers, rounds, seconds)
                    for callers in CALLERS
                }
    pieces = {
        str(size): await breakdown.measure(cluster.dsn, cluster.key, *asked[0], mode=HYBRID)
        for size, asked in by_size.items()
    }
    return {
        "texts": "LoCoMo" if locomo else "made up",
        "rounds": rounds,
        "seconds": seconds,
        "sizes": sizes,
        "pieces": pieces,
    }
