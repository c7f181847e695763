"""Appending with and without scheduling: `python -m benchmarks.append [--quick] [--out F]`.

Three subjects take the same batches in turn, round after round: a service with ordinary sessions;
the same service with sessions whose memory is paused, for which no job is ordered; and a service
without the scan of the text and without the job. First minus second is the cost of the job, first
minus third the cost of both.
"""

import argparse
import asyncio
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg

from app.conversation.messages import append_service as service
from app.conversation.messages.extraction_schedule import CaptureRules, Noticed, notice
from app.conversation.messages.schemas import MessageCreate
from app.conversation.sessions.jobs import Debounce
from app.main import create_app
from app.platform.observability.logging import configure_logging
from app.runtime import open_runtime
from app.settings import Settings
from benchmarks.corpus import sentences
from benchmarks.database import AGENT, TENANT, Cluster, open_cluster
from benchmarks.processes import DSN, Child, Measured, Server, child, fire, median, post, server
from benchmarks.publishing import publish
from benchmarks.serving import serve

SIZES = (1, 2, 20)
CALLERS = (1, 8)
SESSIONS = 64
GOAL = 0.20
WITHOUT = "--without-scheduling"


@dataclass(frozen=True, slots=True)
class Effort:
    """How long is measured."""

    rounds: int = 24
    seconds: float = 0.3


QUICK = Effort(rounds=7, seconds=0.3)


def batch(texts: Sequence[str]) -> list[dict[str, str]]:
    """What a user says, and replies of about the same length in turn."""
    return [
        {"role": "assistant" if place % 2 else "user", "content": text}
        for place, text in enumerate(texts)
    ]


def batches(size: int) -> list[list[dict[str, str]]]:
    texts = sentences(21)
    return [batch(texts[place * size : (place + 1) * size]) for place in range(4 * SESSIONS)]


def requests(subject: str, size: int, key: str) -> list[bytes]:
    return [
        post(f"/v1/sessions/{subject}{place % SESSIONS}/messages", {"messages": messages}, key)
        for place, messages in enumerate(batches(size))
    ]


async def open_sessions(cluster: Cluster) -> None:
    """As many for each subject, each of a user of its own."""
    owner = await asyncpg.connect(cluster.owner_dsn)
    try:
        for subject in ("ordinary", "paused", "taken"):
            names = [f"{subject}{number}" for number in range(SESSIONS)]
            await owner.execute(
                "INSERT INTO users (tenant_id, user_id, agent_id) "
                "SELECT $1, unnest($2::text[]), $3",
                TENANT, names, AGENT,
            )  # fmt: skip
            await owner.execute(
                "INSERT INTO sessions (tenant_id, session_id, user_id, agent_id, memory_enabled) "
                "SELECT $1, name, name, $3, $4 FROM unnest($2::text[]) AS name",
                TENANT, names, AGENT, subject != "paused",
            )  # fmt: skip
    finally:
        await owner.close()


@asynccontextmanager
async def subjects(cluster: Cluster) -> AsyncIterator[dict[str, Server]]:
    async with AsyncExitStack() as stack:
        as_it_is = await stack.enter_async_context(server("append", "--serve", dsn=cluster.dsn))
        without = await stack.enter_async_context(
            server("append", "--serve", WITHOUT, dsn=cluster.dsn)
        )
        yield {"ordinary": as_it_is, "paused": as_it_is, "taken": without}


async def compare(
    load: Child, served: dict[str, Server], key: str, size: int, callers: int, effort: Effort
) -> dict[str, Any]:
    """All subjects in turn, in an order that moves on each round.

    What one adds to another is the median over the rounds of their shares within a round:
    whatever else this machine does then, it does to all of them.
    """
    asked = {subject: requests(subject, size, key) for subject in served}
    rounds: dict[str, list[Measured]] = {subject: [] for subject in served}
    names = list(served)
    for number in range(effort.rounds):
        for place in range(len(names)):
            subject = names[(number + place) % len(names)]
            rounds[subject].append(
                await fire(
                    load,
                    served[subject],
                    asked[subject],
                    callers=callers,
                    seconds=effort.seconds,
                )
            )
    found = {subject: asdict(median(of_one)) for subject, of_one in rounds.items()}
    added = {
        f"{figure} over {than}": _added(rounds["ordinary"], rounds[than], figure)
        for than in ("paused", "taken")
        for figure in ("p50_ms", "p95_ms")
    }
    return {"size": size, "callers": callers, "added": added, **found}


def _added(ours: Sequence[Measured], theirs: Sequence[Measured], figure: str) -> dict[str, float]:
    """The median of what is added, and between what half of the rounds lie."""
    shares = [
        getattr(one, figure) / getattr(other, figure) - 1
        for one, other in zip(ours, theirs, strict=True)
    ]
    low, middle, high = statistics.quantiles(shares, n=4)
    return {"low": low, "median": middle, "high": high}


async def measure_all(effort: Effort) -> dict[str, Any]:
    async with open_cluster() as cluster:
        await open_sessions(cluster)
        async with subjects(cluster) as served, child("load") as load:
            await compare(load, served, cluster.key, 2, 8, Effort(rounds=2, seconds=1))
            cases = [
                await compare(load, served, cluster.key, size, callers, effort)
                for size in SIZES
                for callers in CALLERS
            ]
    return {
        "effort": asdict(effort),
        "cases": cases,
        "looking_ms": {str(size): looking_ms(size) for size in SIZES},
    }


def looking_ms(size: int) -> float:
    """CPU of the look through one batch."""
    rules = CaptureRules(
        Debounce(timedelta(seconds=30)), Settings(_env_file=None).stripped_tags.split(","), 6
    )
    prepared = [[MessageCreate.model_validate(one) for one in lot] for lot in batches(size)]
    for lot in prepared:
        notice(lot, rules)
    began = time.process_time()
    for lot in prepared:
        notice(lot, rules)
    return (time.process_time() - began) / len(prepared) * 1000


def markdown(result: dict[str, Any]) -> str:
    lines = [
        "# Appending with and without scheduling",
        "",
        "The same batches over HTTP into sessions that are read for memory (with), into sessions "
        "whose memory is paused (no job is ordered), and into a service without the look through "
        "the text and without the order (without); in turn, medians of "
        f"{result['effort']['rounds']} rounds, with what is added compared within each round "
        "(in brackets between what half of them lie). Half the messages are the user's. Goal: "
        f"scheduling adds under {GOAL:.0%}.",
        "",
        "| messages | callers | with p50 / p95 ms | no order p50 / p95 ms "
        "| without p50 / p95 ms | order adds to p50 | scheduling adds to p50 | to p95 "
        "| service CPU ms with / without |",
        "|--:|--:|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for case in result["cases"]:
        times = " | ".join(
            f"{case[one]['p50_ms']:.1f} / {case[one]['p95_ms']:.1f}"
            for one in ("ordinary", "paused", "taken")
        )
        shares = " | ".join(
            "{median:+.0%} ({low:+.0%} to {high:+.0%})".format(**case["added"][one])
            for one in ("p50_ms over paused", "p50_ms over taken", "p95_ms over taken")
        )
        lines.append(
            f"| {case['size']} | {case['callers']} | {times} | {shares} "
            f"| {case['ordinary']['server_cpu_ms']:.1f} / {case['taken']['server_cpu_ms']:.1f} |"
        )
    looks = ", ".join(
        f"{size} messages {spent:.2f} ms" for size, spent in result["looking_ms"].items()
    )
    return "\n".join([*lines, "", f"The look through the text alone, CPU: {looks}.", ""])


def _no_order(*_given: object, **_named: object) -> None:
    return None


def _nothing_noticed(*_given: object) -> Noticed:
    return Noticed(None, frozenset(), complete=True)


def _serve(*, scheduling: bool) -> None:
    """A service as it is, or one that neither looks nor orders; no setting switches it off."""
    configure_logging("info")
    if not scheduling:
        vars(service).update(notice=_nothing_noticed, reading_order=_no_order)
    serve(create_app(open_runtime(Settings(_env_file=None), os.environ[DSN])))


def main() -> None:
    if "--serve" in sys.argv:
        _serve(scheduling=WITHOUT not in sys.argv)
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer and shorter rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/append.json"))
    given = parser.parse_args()
    result = asyncio.run(measure_all(QUICK if given.quick else Effort()))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
