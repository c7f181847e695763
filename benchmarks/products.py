"""KeMem beside a minimal service, LangGraph's store and mem0, in turn, through the same HTTP.

`python -m benchmarks.products [--quick] [--out F]`. Every subject is one process with the same
embedder on a database of its own in one PostgreSQL. In each round all subjects answer the same
requests one after the other, and each round begins with another; figures are medians over the
rounds. mem0 is installed into `build/others`, an environment of its own, at the first run. KeMem's
background work does not run here: `benchmarks.soak` has it.
"""

import argparse
import asyncio
import os
import site
import subprocess
import sys
import venv
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field
from itertools import count, cycle, islice
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import psutil

from benchmarks.corpus import questions, sentences
from benchmarks.database import Cluster, add_users, encode, fill, open_cluster
from benchmarks.processes import ROOT, Child, Measured, Server, child, fire, median, post, server
from benchmarks.products_report import markdown
from benchmarks.publishing import publish

OTHERS = ROOT / "build" / "others"
MEM0 = "mem0ai==2.2.*"
CALLERS = (1, 16)
SESSIONS = 8
SAID = 50
"""Messages of each session of which a context is made."""
FILL = 500


@dataclass(frozen=True, slots=True)
class Effort:
    """How much is measured: rows of the large users, seconds of a search, writes of a round."""

    rounds: int = 5
    seconds: float = 3.0
    small: int = 50
    middle: int = 2_000
    large: int = 10_000
    writes: int = 200
    batches: int = 10


QUICK = Effort(rounds=2, seconds=0.5, small=20, middle=200, large=500, writes=20, batches=2)


@dataclass(slots=True)
class Texts:
    """Sentences that nobody has said yet; a number keeps each from repeating another."""

    _numbers: Iterator[int] = field(default_factory=count)
    _sentences: Iterator[str] = field(default_factory=lambda: cycle(sentences(17)))

    def take(self, number: int) -> list[str]:
        return [
            f"{text}, entry {place}"
            for text, place in zip(islice(self._sentences, number), self._numbers, strict=False)
        ]


@dataclass(frozen=True, slots=True)
class Call:
    """What is asked: a kind, of whom, and with which texts."""

    kind: str
    user_id: str
    session_id: str = ""
    texts: tuple[str, ...] = ()


SMALL = tuple(f"small{n}" for n in range(20))


@dataclass(frozen=True, slots=True)
class Row:
    """A row of the table: a kind of call, of which users, with how many texts."""

    label: str
    kind: str
    users: tuple[str, ...] = ()
    texts: int = 1

    @property
    def writes(self) -> bool:
        return self.kind in {"save", "append"}


ROWS = (
    Row("search, small user", "search", SMALL),
    Row("search, middle user", "search", ("middle",)),
    Row("search, large user", "search", ("large",)),
    Row("save one", "save"),
    Row("save a hundred", "save", texts=100),
    Row("append one message", "append"),
    Row("append twenty", "append", texts=20),
    Row("context, 50 messages", "context"),
)


@dataclass(frozen=True, slots=True)
class Subject:
    """A product: where it listens, how it is asked, and which kinds of calls it has not."""

    name: str
    served: Server
    request: Callable[[Call], bytes]
    lacks: frozenset[str] = frozenset()


def of_kemem(key: str, **search: Any) -> Callable[[Call], bytes]:
    """Requests of KeMem's own API; `search` are members of searches."""

    def request(call: Call) -> bytes:
        texts, owner = call.texts, {"user_id": call.user_id}
        session = f"/v1/sessions/{call.session_id}"
        if call.kind == "search":
            return post(
                "/v1/memories/search", owner | {"query": texts[0], "limit": 10} | search, key
            )
        if call.kind == "context":
            return post(f"{session}/context", {"query": texts[0]}, key)
        if call.kind == "append":
            said = [{"role": role, "content": text} for role, text in zip(_roles(), texts)]  # noqa: B905
            return post(f"{session}/messages", owner | {"messages": said}, key)
        saved: Any = texts[0] if len(texts) == 1 else [{"content": text} for text in texts]
        return post("/v1/memories", owner | {"messages": saved, "infer": False}, key)

    return request


def of_others(call: Call) -> bytes:
    """Requests of the services in `references.py` and `others.py`."""
    body: dict[str, Any] = {"user_id": call.user_id}
    if call.kind in {"search", "context"}:
        body |= {"query": call.texts[0], "session_id": call.session_id}
    elif call.kind == "append":
        roles = list(islice(_roles(), len(call.texts)))
        body |= {"session_id": call.session_id, "roles": roles, "contents": call.texts}
    else:
        body["texts"] = call.texts
    return post(f"/{call.kind}", body)


def _roles() -> Iterator[str]:
    return cycle(("user", "assistant"))


def environment() -> str:
    """The Python of an environment that has mem0, and all else from that of this process."""
    python = OTHERS / "bin" / "python"
    if not python.exists():
        venv.create(OTHERS, with_pip=True)
        [packages] = (OTHERS / "lib").glob("python*/site-packages")
        (packages / "kemem.pth").write_text("\n".join(site.getsitepackages()) + "\n")
        subprocess.run([python, "-m", "pip", "install", "--quiet", MEM0], check=True)
    return str(python)


@asynccontextmanager
async def subjects(cluster: Cluster) -> AsyncIterator[list[Subject]]:
    """All of them, started."""
    dsns = {name: await _database(cluster, name) for name in ("minimal", "langgraph", "mem0")}
    python = environment()
    async with AsyncExitStack() as stack:
        opened = stack.enter_async_context
        kemem = await opened(server("service", dsn=cluster.dsn, log=OTHERS / "kemem.log"))
        minimal = await opened(
            server("references", "minimal", dsn=dsns["minimal"], log=OTHERS / "minimal.log")
        )
        langgraph = await opened(
            server("others", "langgraph", dsn=dsns["langgraph"], log=OTHERS / "langgraph.log")
        )
        mem0 = await opened(
            server("others", "mem0", dsn=dsns["mem0"], log=OTHERS / "mem0.log", python=python)
        )
        yield [
            Subject("minimal", minimal, of_others),
            Subject("KeMem", kemem, of_kemem(cluster.key)),
            Subject(
                "KeMem semantic",
                kemem,
                of_kemem(cluster.key, mode="semantic"),
                frozenset({"save", "append", "context"}),
            ),
            Subject("LangGraph store", langgraph, of_others),
            Subject("mem0", mem0, of_others, frozenset({"append", "context"})),
        ]


async def _database(cluster: Cluster, name: str) -> str:
    """The DSN of a new database with pgvector."""
    dsn = urlunsplit(urlsplit(cluster.owner_dsn)._replace(path=f"/{name}"))
    owner = await asyncpg.connect(cluster.owner_dsn)
    await owner.execute(f'CREATE DATABASE "{name}"')
    await owner.close()
    made = await asyncpg.connect(dsn)
    await made.execute("CREATE EXTENSION vector")
    await made.close()
    return dsn


@dataclass(frozen=True, slots=True)
class Bench:
    """What is up while the products are measured."""

    effort: Effort
    cluster: Cluster
    load: Child
    subjects: Sequence[Subject]
    texts: Texts
    asked: Sequence[str]

    async def fill(self) -> None:
        """The same users, memories and conversations for everybody."""
        effort = self.effort
        users = dict.fromkeys(SMALL, effort.small)
        users |= {"middle": effort.middle, "large": effort.large}
        await fill(self.cluster, users)
        await encode(self.cluster)
        owner = await asyncpg.connect(self.cluster.owner_dsn)
        await add_users(owner, [f"writer{n}" for n in range(50)])
        await owner.close()
        memories = [
            Call("save", user, texts=tuple(texts[start : start + FILL]))
            for user, number in users.items()
            for texts in [self.texts.take(number)]
            for start in range(0, number, FILL)
        ]
        said = [
            Call("append", SMALL[0], f"said{n}", tuple(self.texts.take(SAID)))
            for n in range(SESSIONS)
        ]
        for subject in self.subjects:
            if subject.name == "KeMem semantic":
                continue
            stored = [] if subject.name == "KeMem" else memories
            talked = [] if "append" in subject.lacks else said
            await self.fire(subject, [*stored, *talked], callers=1, once=True)
        await self._clean()

    async def fire(
        self, subject: Subject, calls: Sequence[Call], *, callers: int, once: bool
    ) -> Measured:
        requests = [subject.request(call) for call in calls]
        seconds = 600.0 if once else self.effort.seconds
        return await fire(
            self.load, subject.served, requests, callers=callers, seconds=seconds, once=once
        )

    def calls(self, row: Row) -> list[Call]:
        """The calls of a round; those that write are sent once."""
        if row.kind == "search":
            return [
                Call(row.kind, user, texts=(text,))
                for user, text in zip(cycle(row.users), self.asked, strict=False)
            ]
        if row.kind == "context":
            return [
                Call(row.kind, SMALL[0], f"said{place % SESSIONS}", (text,))
                for place, text in enumerate(self.asked)
            ]
        number = self.effort.writes if row.texts == 1 else self.effort.batches
        return [
            Call(row.kind, f"writer{n % 50}", f"new{n % 50}", tuple(self.texts.take(row.texts)))
            for n in range(number)
        ]

    async def row(self, row: Row, callers: int) -> dict[str, Any]:
        """One row: every subject in each round, another first each time."""
        able = [one for one in self.subjects if row.kind not in one.lacks]
        measured: dict[str, list[Measured]] = {one.name: [] for one in able}
        for number in range(self.effort.rounds):
            first = number % len(able)
            calls = self.calls(row)
            for subject in [*able[first:], *able[:first]]:
                measured[subject.name].append(
                    await self.fire(subject, calls, callers=callers, once=row.writes)
                )
            if row.writes:
                await self._clean()
        return {name: asdict(median(rounds)) for name, rounds in measured.items()}

    async def warm(self, row: Row) -> None:
        """Let everybody load what is loaded at first use."""
        for subject in self.subjects:
            if row.kind not in subject.lacks:
                await self.fire(subject, self.calls(row)[:8], callers=4, once=True)

    async def _clean(self) -> None:
        """Delete what writing left in the minimal service, whose searches read whole users."""
        dsn = urlunsplit(urlsplit(self.cluster.owner_dsn)._replace(path="/minimal"))
        owner = await asyncpg.connect(dsn)
        await owner.execute("DELETE FROM memories WHERE user_id LIKE 'writer%'")
        await owner.execute("DELETE FROM messages WHERE session_id LIKE 'new%'")
        await owner.execute("VACUUM ANALYZE")
        await owner.close()

    def resident_mb(self) -> dict[str, float]:
        return {
            one.name: one.served.child.usage.memory_info().rss / 1e6
            for one in self.subjects
            if one.name != "KeMem semantic"
        }


async def measure_all(effort: Effort) -> dict[str, Any]:
    async with (
        open_cluster() as cluster,
        child("load") as load,
        subjects(cluster) as opened,
    ):
        bench = Bench(effort, cluster, load, opened, Texts(), questions(3, 200))
        idle = bench.resident_mb()
        await bench.fill()
        for row in ROWS:
            await bench.warm(row)
        rows: Mapping[str, Any] = {
            f"{row.label}, {callers} caller{'s' * (callers > 1)}": await bench.row(row, callers)
            for row in ROWS
            for callers in CALLERS
        }
        return {
            "effort": asdict(effort),
            "machine": {"cores": os.cpu_count(), "memory_gb": psutil.virtual_memory().total / 1e9},
            "python": sys.version.split()[0],
            "resident_mb": {"idle": idle, "loaded": bench.resident_mb()},
            "rows": rows,
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="small users, few rounds")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/products.json"))
    given = parser.parse_args()
    result = asyncio.run(measure_all(QUICK if given.quick else Effort()))
    publish(result, markdown(result), given.out)


if __name__ == "__main__":
    main()
