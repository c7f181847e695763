"""Running `kemem` as people do: processes of their own, and services to stop and to kill."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import psutil

from tests.support.flaky_server import Behaviour, Seen, sends
from tests.support.patience import PATIENCE

KEMEM = [sys.executable, "-m", "app.cli.main"]


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without anybody's own settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("MEMORY_", "OPENAI_", "DATABASE_", "KEMEM_"))
    }
    return kept | dict(extra or {})


def kemem(
    *arguments: str | Path, cwd: Path, env: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run(
        [*KEMEM, *map(str, arguments)],
        cwd=cwd,
        env=environment(env),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def is_running(pid: int) -> bool:
    """Whether the process runs; one that its parent has not waited for does not."""
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def eventually(condition: Callable[[], object], *, seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it did not happen in time"
        time.sleep(0.05)


@dataclass
class Service:
    """A running `kemem serve`."""

    process: subprocess.Popen[bytes]
    data_dir: Path
    greeting: str
    errors: Path

    @property
    def address(self) -> str:
        return re.search(r"Address +(\S+)", self.greeting)[1]

    @property
    def key(self) -> str:
        return re.search(r"Key +(\S+)", self.greeting)[1]

    def client(self, key: str | None = None) -> httpx.Client:
        return httpx.Client(
            base_url=f"{self.address}/v1",
            headers={"Authorization": f"Bearer {key or self.key}"},
            timeout=PATIENCE,
            trust_env=False,
        )

    def is_ready(self) -> bool:
        try:
            return (
                httpx.get(f"{self.address}/readyz", timeout=PATIENCE, trust_env=False).status_code
                == 200
            )
        except httpx.TransportError:
            return False

    def postgres(self) -> list[int]:
        """Pids of the embedded PostgreSQL, the postmaster first."""
        children = psutil.Process(self.process.pid).children()
        return [
            one.pid
            for child in children
            if child.name() == "postgres"
            for one in (child, *child.children())
        ]

    def log(self, event: str) -> list[dict[str, Any]]:
        """The log lines of one event, so far."""
        lines = (json.loads(line) for line in self.errors.read_text().splitlines())
        return [line for line in lines if line["event"] == event]

    def processes(self) -> dict[str, int]:
        """Pids of the processes that the fork server keeps running, by name."""
        return {line["process"]: line["pid"] for line in self.log("process_started")}

    def fork_server(self) -> int:
        children = psutil.Process(self.process.pid).children()
        (pid,) = (one.pid for one in children if one.name() != "postgres")
        return pid

    def everything(self) -> list[int]:
        """Pids of all processes but the first."""
        return [one.pid for one in psutil.Process(self.process.pid).children(recursive=True)]

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop it in good order; the exit code."""
        self.process.send_signal(number)
        return self.process.wait(PATIENCE)


@contextmanager
def serving(
    data_dir: Path, *arguments: str, env: Mapping[str, str] | None = None
) -> Iterator[Service]:
    """`kemem serve` on a free port, stopped at the end."""
    output, errors = data_dir.with_suffix(".out"), data_dir.with_suffix(".err")
    with output.open("wb") as out, errors.open("ab") as err:
        process = subprocess.Popen(
            [*KEMEM, "serve", "--port", "0", *arguments],
            cwd=data_dir.parent,
            env=environment(env),
            stdout=out,
            stderr=err,
        )
    try:
        eventually(lambda: b"is ready" in output.read_bytes() or process.poll() is not None)
        assert process.poll() is None, errors.read_text()
        yield Service(process, data_dir, output.read_text(), errors)
    finally:
        if process.poll() is None:
            process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(PATIENCE)
        if process.poll() is None:
            process.kill()
            process.wait()


@contextmanager
def embedded(data_dir: Path, *arguments: str, **options: Mapping[str, str]) -> Iterator[Service]:
    """`serving` with the PostgreSQL of `data_dir`."""
    with serving(data_dir, "--data-dir", str(data_dir), *arguments, **options) as service:
        yield service


def handed_on(request: Seen, service: Service) -> Behaviour:
    """The service's answer to a request that came to another server."""
    names = ("Authorization", "Content-Type", "Idempotency-Key")
    answer = httpx.request(
        request.method,
        service.address + request.path,
        headers={name: request.headers[name] for name in names if name in request.headers},
        content=request.body,
        timeout=PATIENCE,
        trust_env=False,
    )
    return sends(answer.content, answer.status_code, Content_Type=answer.headers["Content-Type"])


def assert_counted_together(service: Service) -> None:
    """Whichever process is asked, /metrics counts the requests of all."""

    def asked() -> list[float]:
        return [
            float(line.rsplit(" ", 1)[1])
            for line in httpx.get(
                f"{service.address}/metrics", timeout=PATIENCE, trust_env=False
            ).text.splitlines()
            if line.startswith("kemem_requests_total{") and '"/livez"' in line
        ]

    for _ in range(40):
        assert (
            httpx.get(f"{service.address}/livez", timeout=PATIENCE, trust_env=False).status_code
            == 200
        )
    # The last may be counted a moment after it was answered.
    eventually(lambda: [asked() for _ in range(8)] == [[40.0]] * 8)
    text = httpx.get(f"{service.address}/metrics", timeout=PATIENCE, trust_env=False).text
    found = re.search(r"^process_resident_memory_bytes (\S+)$", text, re.MULTILINE)
    pids = [service.process.pid, *service.processes().values()]
    assert float(found[1]) > max(psutil.Process(pid).memory_info().rss for pid in pids)
