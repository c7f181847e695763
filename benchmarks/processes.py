"""Subjects and callers as processes, and the protocol between them."""

import asyncio
import base64
import json
import os
import statistics
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

ROOT = Path(__file__).parent.parent
DSN = "KEMEM_BENCH_DSN"
PATIENCE_SECONDS = 600


_LIKE_THE_COMMAND = {"OPENBLAS_NUM_THREADS": "1", "TOKENIZERS_PARALLELISM": "false"}
"""What `kemem` sets for its service."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One round of one subject."""

    per_second: float
    p50_ms: float
    p95_ms: float
    client_share: float
    server_cpu_ms: float
    database_cpu_ms: float = 0.0


class Child:
    """A module of the benchmarks in a process of its own; jobs and answers are JSON lines."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self.usage = psutil.Process(process.pid)

    async def read(self) -> Any:
        assert self._process.stdout is not None
        line = await asyncio.wait_for(self._process.stdout.readline(), PATIENCE_SECONDS)
        if not line:
            raise RuntimeError(f"a process of the benchmark ended: {self._process.returncode}")
        return json.loads(line)

    async def ask(self, job: Mapping[str, Any]) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(job).encode() + b"\n")
        await self._process.stdin.drain()
        return await self.read()

    def cpu_seconds(self) -> float:
        times = self.usage.cpu_times()
        return float(times.user + times.system)


@asynccontextmanager
async def child(
    module: str,
    *args: str,
    dsn: str = "",
    quiet: bool = False,
    log: Path | None = None,
    python: str = sys.executable,
) -> AsyncIterator[Child]:
    """Run `python -m benchmarks.<module>`; `quiet` writes its log to nowhere, but writes it.

    The DSN goes by the environment: it has a password, and arguments are everybody's to read.
    """
    with (log or Path(os.devnull)).open("ab") as errors:
        process = await asyncio.create_subprocess_exec(
            python,
            "-m",
            f"benchmarks.{module}",
            *args,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=errors if quiet or log else None,
            cwd=ROOT,
            env=os.environ | _LIKE_THE_COMMAND | {"PYTHONUNBUFFERED": "1", DSN: dsn},
            limit=64 * 1024 * 1024,
        )
    try:
        yield Child(process)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()


@dataclass(frozen=True, slots=True)
class Server:
    """A child that listens."""

    child: Child
    port: int


@asynccontextmanager
async def server(
    module: str, *args: str, dsn: str, log: Path | None = None, python: str = sys.executable
) -> AsyncIterator[Server]:
    """A child that serves HTTP and says its port when it is ready; its log to nowhere, or `log`."""
    async with child(module, *args, dsn=dsn, quiet=True, log=log, python=python) as process:
        ready = await process.read()
        yield Server(process, ready["port"])


def post(path: str, body: Mapping[str, Any], key: str | None = None) -> bytes:
    """One request as it goes over the wire."""
    content = json.dumps(body, ensure_ascii=False).encode()
    bearer = f"Authorization: Bearer {key}\r\n" if key else ""
    head = (
        f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{bearer}Content-Type: application/json\r\n"
        f"Content-Length: {len(content)}\r\n\r\n"
    )
    return head.encode() + content


async def fire(
    load: Child,
    served: Server,
    requests: Sequence[bytes],
    *,
    callers: int,
    seconds: float,
    once: bool = False,
) -> Measured:
    """Let `callers` send `requests` in turn, again and again unless `once`."""
    before = served.child.cpu_seconds()
    answer = await load.ask(
        {
            "port": served.port,
            "requests": [base64.b64encode(one).decode() for one in requests],
            "callers": callers,
            "seconds": seconds,
            "once": once,
        }
    )
    if answer["failures"]:
        raise RuntimeError(f"refused: {answer['failures']}, such as {answer['sample'][:500]}")
    return summary(answer, served.child.cpu_seconds() - before)


def summary(answer: Mapping[str, Any], cpu_seconds: float) -> Measured:
    latencies = sorted(answer["latencies"])
    number = len(latencies)
    return Measured(
        per_second=number / answer["seconds"],
        p50_ms=latencies[number // 2] * 1000,
        p95_ms=latencies[min(number - 1, int(number * 0.95))] * 1000,
        client_share=answer["client_share"],
        server_cpu_ms=cpu_seconds / number * 1000,
    )


def median(rounds: Sequence[Measured]) -> Measured:
    """Each figure's median over the rounds."""
    return Measured(
        *(
            statistics.median(getattr(one, name) for one in rounds)
            for name in Measured.__dataclass_fields__
        )
    )
