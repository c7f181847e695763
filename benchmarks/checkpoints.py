"""Checkpoints of a growing thread: `python -m benchmarks.checkpoints [--quick] [--out F]`.

KeMem's saver over HTTP and LangGraph's own Postgres saver store the same steps in turn, in the
same PostgreSQL. Each step adds one message of some 300 bytes to a list, beside channels that do
not change, and first stores the message as a pending write, as a run does.
"""

import argparse
import asyncio
import os
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

import asyncpg
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver, ChannelVersions, Checkpoint
from langgraph.checkpoint.base.id import uuid6
from langgraph.checkpoint.postgres import PostgresSaver

from benchmarks.corpus import sentences
from benchmarks.database import Cluster, open_cluster
from benchmarks.processes import server
from benchmarks.publishing import load_of, publish
from kemem import Memory
from kemem.langgraph import KeMemSaver

STEPS = 1000
QUICK_STEPS = 200
MESSAGE_BYTES = 300
# The last steps of each stretch are timed.
TIMED = 50
READS = 20
OURS = ("saver_checkpoints", "saver_values", "saver_chunks", "saver_writes")
THEIRS = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
SUBJECTS = ("KeMem", "PostgresSaver")

CONSTANT: dict[str, Any] = {
    "instructions": {"rules": sentences(5)[:20]},
    "profile": {"name": "Ana", "city": "京都", "likes": ["maples", "green tea"]},
    "budget": 4000,
}


@dataclass
class Thread:
    """One growing thread in one saver."""

    saver: BaseCheckpointSaver[str]
    config: RunnableConfig
    messages: list[BaseMessage] = field(default_factory=list)
    versions: ChannelVersions = field(default_factory=dict)
    seconds: list[float] = field(default_factory=list)

    def step(self, message: BaseMessage, number: int) -> None:
        started = time.perf_counter()
        if "checkpoint_id" in self.config["configurable"]:
            self.saver.put_writes(self.config, [("messages", message)], f"task-{number}", "~agent")
        self.messages.append(message)
        changed = {"messages"} if self.versions else {"messages", *CONSTANT}
        new: ChannelVersions = {
            name: self.saver.get_next_version(cast("str | None", self.versions.get(name)), None)
            for name in sorted(changed)
        }
        self.versions |= new
        checkpoint: Checkpoint = {
            "v": 4,
            "id": str(uuid6(clock_seq=number)),
            "ts": "2026-11-21T12:00:00.000000+00:00",
            "channel_values": {**CONSTANT, "messages": list(self.messages)},
            "channel_versions": dict(self.versions),
            "versions_seen": {"agent": {"messages": new["messages"]}, "__input__": {}},
            "updated_channels": sorted(changed),
        }
        metadata: Any = {"source": "loop", "step": number, "parents": {}}
        self.config = self.saver.put(self.config, checkpoint, metadata, new)
        self.seconds.append(time.perf_counter() - started)

    def read(self) -> float:
        started = time.perf_counter()
        found = self.saver.get_tuple(self.config)
        taken = time.perf_counter() - started
        assert found is not None
        assert found.checkpoint["channel_values"]["messages"] == self.messages
        return taken


def said(number: int) -> list[BaseMessage]:
    texts = sentences(21)
    made: list[BaseMessage] = []
    at = 0
    for place in range(number):
        words = ""
        while len(words.encode()) < MESSAGE_BYTES:
            words = f"{words} {texts[at % len(texts)]}".strip()
            at += 1
        kind = AIMessage if place % 2 else HumanMessage
        made.append(kind(words[:MESSAGE_BYTES], id=f"message-{place:05}"))
    return made


async def bytes_of(dsn: str, tables: tuple[str, ...]) -> int:
    """What tables take on the disk, with indexes and what is stored beside them."""
    connection = await asyncpg.connect(dsn)
    try:
        for table in tables:
            await connection.execute(f"VACUUM ANALYZE {table}")
        return int(
            await connection.fetchval(
                "SELECT sum(pg_total_relation_size(name::regclass)) FROM unnest($1::text[]) name",
                list(tables),
            )
        )
    finally:
        await connection.close()


@contextmanager
def threads(cluster: Cluster, port: int, reference: str) -> Iterator[dict[str, Thread]]:
    def config() -> RunnableConfig:
        return {"configurable": {"thread_id": "growing", "checkpoint_ns": ""}}

    with (
        Memory(f"http://127.0.0.1:{port}", cluster.key) as memory,
        PostgresSaver.from_conn_string(reference) as theirs,
    ):
        theirs.setup()
        ours = KeMemSaver(memory, user_id="ana")
        yield {"KeMem": Thread(ours, config()), "PostgresSaver": Thread(theirs, config())}


async def measure(steps: int) -> dict[str, Any]:
    stops = sorted({steps // 10, steps // 3, steps})
    found: dict[str, Any] = {
        "steps": steps,
        "message_bytes": MESSAGE_BYTES,
        "load_before": os.getloadavg()[0],
        "stops": [],
    }
    async with open_cluster() as cluster, server("service", dsn=cluster.dsn) as served:
        reference = await _reference(cluster.owner_dsn)
        sizes: dict[str, Callable[[], Any]] = {
            "KeMem": lambda: bytes_of(cluster.owner_dsn, OURS),
            "PostgresSaver": lambda: bytes_of(reference, THEIRS),
        }
        with threads(cluster, served.port, reference) as both:
            empty = {name: await sizes[name]() for name in SUBJECTS}
            messages = said(steps)
            done = 0
            for stop in stops:
                await asyncio.to_thread(_go_on, both, messages, done, stop)
                done = stop
                row: dict[str, Any] = {"steps": stop}
                for name in SUBJECTS:
                    last = both[name].seconds[-TIMED:]
                    reads = [await asyncio.to_thread(both[name].read) for _ in range(READS)]
                    row[name] = {
                        "bytes": await sizes[name]() - empty[name],
                        "put_p50_ms": statistics.median(last) * 1000,
                        "get_p50_ms": statistics.median(reads) * 1000,
                    }
                found["stops"].append(row)
    # With what the run itself adds: two processes beside the database.
    found["load_after"] = os.getloadavg()[0]
    return found


def _go_on(both: dict[str, Thread], messages: list[BaseMessage], start: int, stop: int) -> None:
    """In turn, so that whatever else the machine does is done to both."""
    for number in range(start, stop):
        order = SUBJECTS if number % 2 else SUBJECTS[::-1]
        for name in order:
            both[name].step(messages[number], number)


async def _reference(dsn: str) -> str:
    """A database of LangGraph's own on the same server."""
    connection = await asyncpg.connect(dsn)
    try:
        name = await connection.fetchval("SELECT current_database()")
        await connection.execute("CREATE DATABASE reference")
    finally:
        await connection.close()
    head, _, tail = dsn.rpartition(f"/{name}")
    return f"{head}/reference{tail}"


def markdown(found: dict[str, Any]) -> str:
    last = found["stops"][-1]
    ratio = last["PostgresSaver"]["bytes"] / last["KeMem"]["bytes"]
    lines = [
        "# Checkpoints of a growing thread",
        "",
        "Each step adds one message of some "
        f"{found['message_bytes']} bytes to a list beside three channels that do not change: one "
        "pending write and one checkpoint, put in turn by KeMem's saver over HTTP and by "
        "LangGraph's Postgres saver into the same PostgreSQL. Bytes are all of the tables with "
        f"their indexes, after VACUUM; a step is the median of the last {TIMED} and both of its "
        f"requests, a read the median of {READS}. Goal: fewer bytes than the Postgres saver.",
        "",
        "| steps | KeMem bytes | Postgres saver bytes | times fewer | KeMem step / read ms "
        "| Postgres saver step / read ms | times slower, step / read |",
        "|--:|--:|--:|--:|--:|--:|--:|",
    ]
    for row in found["stops"]:
        ours, theirs = row["KeMem"], row["PostgresSaver"]
        lines.append(
            f"| {row['steps']:,} | {ours['bytes']:,} | {theirs['bytes']:,} "
            f"| {theirs['bytes'] / ours['bytes']:.1f} "
            f"| {ours['put_p50_ms']:.1f} / {ours['get_p50_ms']:.1f} "
            f"| {theirs['put_p50_ms']:.1f} / {theirs['get_p50_ms']:.1f} "
            f"| {slower(row, 'put_p50_ms'):.1f} / {slower(row, 'get_p50_ms'):.1f} |"
        )
    reached = "reached" if ratio > 1 else "missed"
    lines += [
        "",
        f"Goal {reached}: {ratio:.1f} times fewer bytes at {last['steps']:,} steps. In time KeMem "
        f"is the slower one: there a step takes {slower(last, 'put_p50_ms'):.1f} times and a read "
        f"{slower(last, 'get_p50_ms'):.1f} times as long, for it goes over HTTP to a service that "
        "checks keys, sessions and chunks, while the other asks the database itself.",
        "",
        _load(found),
        "",
    ]
    return "\n".join(lines)


def slower(row: dict[str, Any], figure: str) -> float:
    """How many times as long KeMem takes."""
    return float(row["KeMem"][figure] / row["PostgresSaver"][figure])


def _load(found: dict[str, Any]) -> str:
    if "load_before" not in found:
        return "The load of the machine was not noted."
    return (
        f"{load_of(found)} Milliseconds of a loaded machine are longer than those of a quiet one; "
        "both savers had the same."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help=f"{QUICK_STEPS} steps")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/checkpoints.json"))
    given = parser.parse_args()
    found = asyncio.run(measure(QUICK_STEPS if given.quick else STEPS))
    publish(found, markdown(found), given.out)


if __name__ == "__main__":
    main()
