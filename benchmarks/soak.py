"""KeMem under a mixed load for a while: `python -m benchmarks.soak [--minutes N] [--out F]`.

`kemem serve` with its own PostgreSQL and its own background work, as a user starts it, and no
model: rules extract, summaries are extractive. A hundred tenants append, search, save, list and ask
for contexts, so that windows fill up and are summarised. The result has for each minute the calls,
the errors, p50 and p99 and the resident memory, and at the end whether all jobs were worked off.
Ends with 1 if there was an error, a dead job, or one that was left over.
"""

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import httpx
import psutil

from benchmarks.corpus import questions, sentences
from benchmarks.processes import ROOT
from benchmarks.publishing import publish

TENANTS: Final = 100
CALLERS: Final = 16
USERS: Final = 3
"""Of each tenant, with one session each at a time."""
SESSION_MESSAGES: Final = 200
"""Then the user begins another session."""
PAUSE_SECONDS: Final = 0.05
"""Of a caller between two calls: the machine is busy and not drowned."""
DRAIN_SECONDS: Final = 600
SETTINGS: Final = {
    "MEMORY_DEBOUNCE_SECONDS": "5",
    "MEMORY_WINDOW_TOKENS": "1500",
    "MEMORY_PROFILE_INTERVAL_SECONDS": "20",
    "MEMORY_LOG_LEVEL": "warning",
}
"""Work comes soon, so that also a short run has all of it."""
MIX: Final = {"append": 40, "search": 25, "context": 20, "save": 10, "list": 5}


@dataclass(slots=True)
class Minute:
    """What happened in one minute."""

    seconds: list[float] = field(default_factory=list)
    errors: Counter[str] = field(default_factory=Counter)
    resident_mb: float = 0.0

    def shown(self, number: int) -> dict[str, Any]:
        ranked = sorted(self.seconds)
        return {
            "minute": number,
            "calls": len(ranked),
            "errors": dict(self.errors),
            "p50_ms": _quantile(ranked, 0.5),
            "p99_ms": _quantile(ranked, 0.99),
            "resident_mb": self.resident_mb,
        }


def _quantile(ranked: list[float], share: float) -> float:
    return ranked[min(len(ranked) - 1, int(len(ranked) * share))] * 1000 if ranked else 0.0


@dataclass(frozen=True, slots=True)
class Service:
    """`kemem serve`, running."""

    process: psutil.Process
    address: str
    key: str

    def resident_mb(self) -> float:
        """Of all its processes but PostgreSQL's."""
        total = 0
        for one in (self.process, *self.process.children(recursive=True)):
            with suppress(psutil.Error):
                if "postgres" not in one.name():
                    total += one.memory_info().rss
        return total / 1e6


@asynccontextmanager
async def serving(log: Path) -> AsyncIterator[Service]:
    """The service on a folder of its own, stopped and removed at the end."""
    folder = Path(tempfile.mkdtemp(prefix="kemem-soak-", dir="/tmp"))
    # PostgreSQL does not run as root; the account it gets must reach its folder.
    folder.chmod(0o755)  # noqa: ASYNC240 (nobody waits)
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MEMORY_")}
    kept.pop("DATABASE_URL", None)
    with log.open("wb") as errors:
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "app.cli.main", "serve", "--port", "0", "--data-dir",
            str(folder / "data"), "--log-format", "json",
            stdout=asyncio.subprocess.PIPE, stderr=errors, cwd=folder,
            env=kept | SETTINGS | {"PYTHONUNBUFFERED": "1", "PYTHONPATH": str(ROOT)},
        )  # fmt: skip
    try:
        assert process.stdout is not None
        said = ""
        while "Stop with Ctrl-C" not in said:
            line = await asyncio.wait_for(process.stdout.readline(), 180)
            if not line:
                raise RuntimeError(f"the service did not start; it says why in {log}")
            said += line.decode()
        address, key = (
            re.search(rf"{name}\s+(\S+)", said)[1]  # type: ignore[index]
            for name in ("Address", "Key")
        )
        yield Service(psutil.Process(process.pid), address, key)
    finally:
        if process.returncode is None:
            process.terminate()
        await process.wait()
        shutil.rmtree(folder, ignore_errors=True)


class Soak:
    """The load and what is counted of it."""

    def __init__(self, service: Service, client: httpx.AsyncClient, minutes: float) -> None:
        self._service = service
        self._client = client
        self._began = time.monotonic()
        self._ends = self._began + minutes * 60
        self._keys: list[str] = []
        self._said: Counter[tuple[int, int]] = Counter()
        self._texts, self._asked = sentences(23), questions(23, 500)
        self.minutes: list[Minute] = []

    async def prepare(self) -> None:
        """Make the tenants."""
        for number in range(TENANTS):
            body = {"tenant_id": f"soak-{number}", "tenant_name": f"Soak {number}"}
            made = await self._client.post(
                "/v1/tenants", json=body, headers=_bearer(self._service.key)
            )
            made.raise_for_status()
            self._keys.append(made.json()["key"]["key"])
        self._ends += time.monotonic() - self._began
        self._began = time.monotonic()

    async def run(self) -> None:
        """Call until the time is over."""
        watching = asyncio.create_task(self._watch())
        await asyncio.gather(*(self._call_on(Random(seed)) for seed in range(CALLERS)))
        watching.cancel()
        with suppress(asyncio.CancelledError):
            await watching

    async def _watch(self) -> None:
        while True:
            minute = self._minute()
            minute.resident_mb = max(minute.resident_mb, self._service.resident_mb())
            await asyncio.sleep(1)

    def _minute(self) -> Minute:
        number = int((time.monotonic() - self._began) // 60)
        while len(self.minutes) <= number:
            self.minutes.append(Minute())
        return self.minutes[number]

    async def _call_on(self, random: Random) -> None:
        kinds, weights = list(MIX), list(MIX.values())
        while time.monotonic() < self._ends:
            [kind] = random.choices(kinds, weights)
            tenant, user = random.randrange(TENANTS), random.randrange(USERS)
            minute, sent = self._minute(), time.perf_counter()
            try:
                answer = await self._ask(kind, tenant, user, random)
                if not answer.is_success:
                    minute.errors[f"{kind} {answer.status_code}"] += 1
            except httpx.HTTPError as error:
                minute.errors[f"{kind} {type(error).__name__}"] += 1
            minute.seconds.append(time.perf_counter() - sent)
            await asyncio.sleep(PAUSE_SECONDS)

    async def _ask(self, kind: str, tenant: int, user: int, random: Random) -> httpx.Response:
        headers = _bearer(self._keys[tenant])
        whose: dict[str, Any] = {"user_id": f"user-{user}"}
        said = self._said[tenant, user]
        session = f"/v1/sessions/talk-{user}-{said // SESSION_MESSAGES}"
        if kind == "append" or not said:
            texts = [random.choice(self._texts) for _ in range(2)]
            messages = [
                {"role": "user", "content": f"I am sure of it: {texts[0]}"},
                {"role": "assistant", "content": texts[1]},
            ]
            body: dict[str, Any] = whose | {"messages": messages}
            answer = await self._client.post(f"{session}/messages", json=body, headers=headers)
            # Not before: another caller would ask for the context of a session that is not there.
            self._said[tenant, user] += 2
            return answer
        asked = random.choice(self._asked)
        if kind == "search":
            body = whose | {"query": asked}
            return await self._client.post("/v1/memories/search", json=body, headers=headers)
        if kind == "context":
            # A new session is there with its first message.
            session = f"/v1/sessions/talk-{user}-{max(0, said - 2) // SESSION_MESSAGES}"
            return await self._client.post(
                f"{session}/context", json={"query": asked}, headers=headers
            )
        if kind == "save":
            number = random.randrange(10**6)
            body = whose | {"messages": f"{random.choice(self._texts)}, {number}", "infer": False}
            return await self._client.post("/v1/memories", json=body, headers=headers)
        return await self._client.get("/v1/memories", params=whose | {"limit": 20}, headers=headers)

    async def drain(self) -> dict[str, Any]:
        """Wait until nothing is left to do; what jobs there were and what is left of them."""
        began = time.monotonic()
        while True:
            statuses: Counter[str] = Counter()
            left: Counter[str] = Counter()
            for key in self._keys:
                answer = await self._client.get("/v1/jobs/stats", headers=_bearer(key))
                for kind, counts in answer.raise_for_status().json()["by_kind"].items():
                    statuses.update(counts)
                    left[kind] += counts.get("pending", 0) + counts.get("running", 0)
            waited = time.monotonic() - began
            if not left.total() or waited > DRAIN_SECONDS:
                return {"seconds": waited, "by_status": dict(statuses), "left": dict(+left)}
            await asyncio.sleep(2)


def _bearer(key: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {key}"}


async def measure(minutes: float, log: Path) -> dict[str, Any]:
    limits = httpx.Limits(max_connections=CALLERS)
    async with (
        serving(log) as service,
        httpx.AsyncClient(base_url=service.address, timeout=60, limits=limits) as client,
    ):
        soak = Soak(service, client, minutes)
        idle = service.resident_mb()
        await soak.prepare()
        await soak.run()
        jobs = await soak.drain()
        return {
            "minutes": minutes,
            "tenants": TENANTS,
            "callers": CALLERS,
            "cores": os.cpu_count(),
            "idle_mb": idle,
            "by_minute": [
                one.shown(place + 1) for place, one in enumerate(soak.minutes) if one.seconds
            ],
            "jobs": jobs,
            "after_mb": service.resident_mb(),
        }


def passed(result: Mapping[str, Any]) -> bool:
    """No error, no dead job, none left over."""
    errors = sum(sum(one["errors"].values()) for one in result["by_minute"])
    jobs = result["jobs"]
    return not (errors or jobs["left"] or jobs["by_status"].get("dead"))


def markdown(result: Mapping[str, Any]) -> str:
    jobs = result["jobs"]
    done = ", ".join(f"{count} {status}" for status, count in jobs["by_status"].items())
    left = ", ".join(f"{count} {kind}" for kind, count in jobs["left"].items()) or "none"
    return "\n".join(
        [
            "# Soak",
            "",
            f"{result['tenants']} tenants, {result['callers']} callers, {result['minutes']:g} "
            f"minutes, {result['cores']} cores for service, client and PostgreSQL. Resident memory "
            f"is that of the service's processes: {result['idle_mb']:.0f} MB before, "
            f"{result['after_mb']:.0f} MB after.",
            "",
            "| minute | calls | errors | p50 ms | p99 ms | resident MB |",
            "|--:|--:|--:|--:|--:|--:|",
            *(
                f"| {one['minute']} | {one['calls']:,} | {sum(one['errors'].values())} "
                f"| {one['p50_ms']:.1f} | {one['p99_ms']:.0f} | {one['resident_mb']:.0f} |"
                for one in result["by_minute"]
            ),
            "",
            f"Jobs: {done}; left after {jobs['seconds']:.0f} s: {left}. "
            f"{'Passed' if passed(result) else 'FAILED'}.",
            "",
        ]
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/soak.json"))
    given = parser.parse_args()
    given.out.parent.mkdir(parents=True, exist_ok=True)
    result = asyncio.run(measure(given.minutes, given.out.with_suffix(".log")))
    publish(result, markdown(result), given.out)
    sys.exit(0 if passed(result) else 1)


if __name__ == "__main__":
    main()
