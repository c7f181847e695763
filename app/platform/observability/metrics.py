"""What Prometheus can scrape; names and labels are bounded, and none holds an id."""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Metric,
    disable_created_metrics,
    generate_latest,
)
from prometheus_client.metrics_core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.multiprocess import MultiProcessCollector
from prometheus_client.registry import Collector
from typing_extensions import override

# When each series began: a third of the answer, and nothing reads it.
disable_created_metrics()  # type: ignore[no-untyped-call]  # theirs

REQUESTS = Counter("kemem_requests_total", "Requests answered.", ["method", "route", "status"])
DURATION = Histogram(
    "kemem_request_seconds",
    "Time to answer.",
    ["method", "route"],
    # Times the number of routes, so few.
    buckets=(0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 1, 5),
)
IN_FLIGHT = Gauge(
    "kemem_requests_in_flight", "Requests being answered now.", multiprocess_mode="livesum"
)
CONNECTIONS = Gauge("kemem_connections", "Connections of callers.", multiprocess_mode="livesum")
# Reasons are named in the code, so bounded.
CONNECTIONS_CLOSED = Counter(
    "kemem_connections_closed_total", "Connections that a limit closed, by which.", ["reason"]
)
RATE_LIMITED = Counter(
    "kemem_rate_limited_total", "Requests that a limit of a tenant or key refused.", ["policy"]
)
WAITING = Gauge(
    "kemem_database_waiting", "What waits for a connection to the database.", ["pool"],
    multiprocess_mode="livesum",
)  # fmt: skip
OVERLOADS = Counter(
    "kemem_overloads_total", "What was refused because too much waits for a connection.", ["pool"]
)
GATE_DECISIONS = Counter("kemem_gate_decisions_total", "Decisions of the gate.", ["code"])
MEMORY_EVENTS = Counter("kemem_memory_events_total", "Changes of memories.", ["event"])
SEARCHES = Counter("kemem_searches_total", "Searches of memories.", ["outcome"])
MESSAGE_SEARCHES = Counter("kemem_message_searches_total", "Searches of messages.", ["outcome"])
MESSAGES = Counter("kemem_messages_total", "Messages stored.")
EXTRACTION_RUNS = Counter(
    "kemem_extraction_runs_total", "Runs of extraction.", ["trigger", "outcome"]
)
MODEL_TOKENS = Counter(
    "kemem_model_tokens_total", "Tokens that providers' models took.", ["operation", "kind"]
)
EMBEDDED_TEXTS = Counter("kemem_embedded_texts_total", "Texts embedded.", ["model"])
EMBEDDING_SECONDS = Histogram(
    "kemem_embedding_seconds",
    "Time to embed one batch.",
    ["model"],
    buckets=(0.0001, 0.0005, 0.001, 0.005, 0.025, 0.1, 0.5, 1, 5, 30),
)
TOOL_SECONDS = Histogram(
    "kemem_tool_seconds",
    "Time of one call of a tool, refusals included.",
    ["tool"],
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10),
)
PROCESSOR_CALLS = Counter(
    "kemem_processor_calls_total",
    "Calls of processors; ok, or how they failed: error, timeout, invalid, stuck.",
    ["processor", "point", "outcome"],
)
PROCESSOR_SECONDS = Histogram(
    "kemem_processor_seconds",
    "Time of one call of a processor.",
    ["processor", "point"],
    buckets=(0.0005, 0.001, 0.005, 0.025, 0.1, 0.25, 0.5, 1, 2.5, 10, 60),
)
INJECTIONS_DROPPED = Counter(
    "kemem_injections_dropped_total",
    "Memories shown in a context that could not be recorded; they may be extracted again.",
)
RERANKS = Counter(
    "kemem_reranks_total", "Calls of the reranker; ok, or why there were no scores.",
    ["model", "outcome"],
)  # fmt: skip
RERANK_SECONDS = Histogram(
    "kemem_rerank_seconds",
    "Time to rerank the candidates of one search, failures counted.",
    ["model"],
    buckets=(0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60),
)
CODE_EVENTS = Counter(
    "kemem_codes_total",
    "Buckets of memories whose index was quantised, dropped or refused.",
    ["model", "event"],
)
CODE_RECALL = Histogram(
    "kemem_codes_recall",
    "Recall at 10 of quantised indexes, in samples of their buckets.",
    ["model"],
    buckets=(0.5, 0.8, 0.9, 0.95, 0.97, 0.98, 0.99, 0.995, 1),
)
# Kinds are those that have a handler, so bounded.
JOB_RUNS = Counter("kemem_jobs_total", "Runs of jobs that ended, by how.", ["kind", "outcome"])
JOB_SECONDS = Histogram(
    "kemem_job_seconds",
    "Time a handler took.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600),
)
JOB_LAG = Histogram(
    "kemem_job_lag_seconds",
    "Time from when a job was due to when it began.",
    ["kind"],
    buckets=(0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 900, 3600),
)
JOBS_RUNNING = Gauge(
    "kemem_jobs_running", "Jobs running now.", ["kind"], multiprocess_mode="livesum"
)
TICKS = Counter("kemem_ticks_total", "Runs of periodic work.", ["name", "outcome"])
WEBHOOK_DELIVERIES = Counter(
    "kemem_webhook_deliveries_total", "Attempts to send an event to a webhook.", ["outcome"]
)


class BoundedNames:
    """Label values that come from callers: the first few as they are, all others as one.

    Args:
        most: how many are kept.

    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._kept: set[str] = set()

    def __call__(self, name: str) -> str:
        if name not in self._kept:
            if len(self._kept) >= self._most:
                return "other"
            self._kept.add(name)
        return name


embedding_model = BoundedNames(10)
"""The label `model`: some endpoints answer to any name, and a tenant may name one."""


def exposition(folder: Path | None) -> bytes:
    """All metrics, summed over the processes that share `folder`; of this process when it is
    None.
    """
    if folder is None:
        return generate_latest()
    for path in folder.glob("gauge_live*_*.db"):
        # Requests of a process that died are no longer in flight.
        if not psutil.pid_exists(_pid(path)):
            path.unlink(missing_ok=True)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(folder))  # type: ignore[no-untyped-call]  # theirs
    registry.register(_Processes({_pid(path) for path in folder.glob("*.db")}))
    return generate_latest(registry)


def _pid(path: Path) -> int:
    """The process that writes the file."""
    return int(path.stem.rsplit("_", 1)[1])


class _Processes(Collector):
    """CPU and memory of several processes, under the names that one alone has for its own."""

    def __init__(self, pids: Iterable[int]) -> None:
        self._pids = pids

    @override
    def collect(self) -> Iterator[Metric]:
        cpu, resident = 0.0, 0
        for pid in self._pids:
            with suppress(psutil.NoSuchProcess):
                process = psutil.Process(pid)
                times = process.cpu_times()
                cpu += times.user + times.system
                resident += process.memory_info().rss
        yield CounterMetricFamily("process_cpu_seconds", "CPU time of all processes.", value=cpu)
        yield GaugeMetricFamily(
            "process_resident_memory_bytes", "Resident memory, summed over processes.",
            value=resident,
        )  # fmt: skip
