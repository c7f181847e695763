"""What a model is asked: `python -m benchmarks.model_calls --data FOLDER [--label NAME] [--out F]`.

The service with a worker of its own reads conversations by a scripted model (`scripted_model.py`)
behind an HTTP endpoint, which counts calls and tokens. The talk is that of BEAM and MADial-Bench in
FOLDER, as if one user had said it; nothing of it is kept. The result has a part for each label, so
that two states of the code can be compared.
"""

import argparse
import asyncio
import json
import os
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import asyncpg

from app.evaluation.dataset_file import read_dataset
from app.memory.memories.refreshes import REQUESTED
from benchmarks.database import AGENT, open_cluster
from benchmarks.processes import ROOT, server
from benchmarks.publishing import publish
from benchmarks.scripted_model import ScriptedModel, served
from kemem import AsyncMemory

FILES: Final = {"en": Path("beam/beam100k_dev.json"), "zh": Path("madial/madial_zh.json")}
NAMES: Final = {"en": "English", "zh": "Chinese"}
REPLY: Final = "好的，我知道了。"
"""What the assistant says where a data set has the user alone."""

USER: Final = "ana"
LATENCY: Final = 0.3
SETTINGS: Final = {
    "OPENAI_API_KEY": "none",
    "MEMORY_EXTRACTION_MODEL": "openai/scripted",
    "MEMORY_SUMMARY_MODEL": "openai/scripted",
    "MEMORY_DEBOUNCE_SECONDS": "1",
    "MEMORY_MAX_EXTRACTIONS": "1000",
    "MEMORY_LOG_LEVEL": "error",
}
OPERATIONS: Final = {
    "memories": "extract",
    "decisions": "reconcile",
    "experience": "experience",
    "profile": "profile",
    "summary": "summary",
}
PATIENCE_SECONDS: Final = 900

Said = tuple[str, str]
"""Role and text of a message."""


@dataclass(frozen=True, slots=True)
class Desk:
    """The running service, the model behind it, and its database."""

    memory: AsyncMemory
    model: ScriptedModel
    owner: asyncpg.Connection
    environment: dict[str, str]

    async def append(self, session_id: str, messages: Sequence[Said]) -> None:
        """Turn by turn: what the user says, then the reply."""
        for role, text in messages:
            message = {"role": role, "content": text}
            await self.memory.append(session_id, [message], USER, agent_id=AGENT)

    async def read(self, *, everything: bool = False) -> None:
        """Wait until all that was said is read; with `everything` until no job is left."""
        until = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < until:
            if everything:
                # Profiles wait for further changes. There are none: somebody asks for them.
                await self.owner.execute(
                    "UPDATE jobs SET due_at = now(), "
                    "signals = CASE kind WHEN 'profile' THEN ARRAY[$1] ELSE signals END "
                    "WHERE status = 'pending'",
                    REQUESTED,
                )
                left = "SELECT count(*) FROM jobs WHERE status IN ('pending', 'running')"
            else:
                left = "SELECT count(*) FROM sessions WHERE last_extracted_seq < last_sequence_no"
            if not await self.owner.fetchval(left):
                return
            await asyncio.sleep(0.2)
        raise RuntimeError("the service does not come to an end")


async def one_session(desk: Desk, said: Iterator[Said]) -> int:
    """100 messages with four silences, and the end of the session; pieces of ten messages."""
    for _ in range(4):
        await desk.append("long", list(islice(said, 25)))
        await desk.read()
    await desk.memory.end("long")
    return 10


async def ten_at_once(desk: Desk, said: Iterator[Said]) -> int:
    """Ten sessions of twelve messages, all talking at the same time."""
    parts = [list(islice(said, 12)) for _ in range(10)]
    sessions = enumerate(parts)
    await asyncio.gather(*(desk.append(f"part-{number}", part) for number, part in sessions))
    return len(parts)


async def ten_ended(desk: Desk, said: Iterator[Said]) -> int:
    """The same, and each session is ended once it is read."""
    pieces = await ten_at_once(desk, said)
    await desk.read()
    await asyncio.gather(*(desk.memory.end(f"part-{number}") for number in range(pieces)))
    return pieces


async def year(desk: Desk, said: Iterator[Said]) -> int:
    """At most fifty sessions of twelve messages, a week apart, imported with --wait."""
    parts = [part for _ in range(50) if len(part := list(islice(said, 12))) == 12]
    start = datetime(2024, 1, 1, 18, tzinfo=UTC)
    with TemporaryDirectory() as folder:
        file = Path(folder) / "year.jsonl"
        file.write_text(
            "\n".join(
                json.dumps(
                    {
                        "session_id": f"week-{week}",
                        "user_id": USER,
                        "messages": [
                            {
                                "role": role,
                                "content": text,
                                "client_time": (
                                    start + timedelta(weeks=week, minutes=place)
                                ).isoformat(),
                            }
                            for place, (role, text) in enumerate(part)
                        ],
                    }
                )
                for week, part in enumerate(parts)
            ),
            encoding="utf-8",
        )
        command = ("import-conversations", str(file), "--wait")
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "app.cli.main", *command, cwd=ROOT, env=desk.environment
        )
        if await process.wait():
            raise RuntimeError("the import did not end well")
    return len(parts)


Scenario = Callable[[Desk, Iterator[Said]], Awaitable[int]]
"""Says something and returns how many pieces it was."""

SCENARIOS: Final[dict[str, tuple[str, Scenario]]] = {
    "one session": ("one session of 100 messages, four silences, ended", one_session),
    "ten at once": ("ten sessions of one user at once", ten_at_once),
    "ten ended": ("the same, each ended", ten_ended),
    "year": ("an import of a year", year),
}


def said_in(data: Path, language: str) -> list[Said]:
    """The talk of a data set in its order; where the user alone speaks, with a short reply."""
    units = [unit for store in read_dataset(data / FILES[language]).stores for unit in store.units]
    alone = all(unit.role == "user" for unit in units)
    return [
        message
        for unit in units
        for message in ((unit.role, unit.text), *([("assistant", REPLY)] if alone else []))
    ]


@asynccontextmanager
async def open_desk(language: str, latency: float) -> AsyncIterator[Desk]:
    model = ScriptedModel(latency, language)
    with served(model) as base_url, environment(SETTINGS | {"OPENAI_BASE_URL": base_url}):
        async with (
            open_cluster() as cluster,
            server("service", dsn=cluster.dsn) as service,
            working(cluster.dsn),
        ):
            address = f"http://127.0.0.1:{service.port}"
            owner = await asyncpg.connect(cluster.owner_dsn)
            try:
                async with AsyncMemory(address, cluster.key) as memory:
                    given = {"KEMEM_URL": address, "KEMEM_API_KEY": cluster.key}
                    yield Desk(memory, model, owner, dict(os.environ) | given)
            finally:
                await owner.close()


@contextmanager
def environment(variables: dict[str, str]) -> Iterator[None]:
    """These variables for processes that are started in the block."""
    before = dict(os.environ)
    os.environ.update(variables)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@asynccontextmanager
async def working(dsn: str) -> AsyncIterator[None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "app.cli.main",
        "worker",
        cwd=ROOT,
        env=os.environ | {"DATABASE_URL": dsn},
        stdout=asyncio.subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        await process.wait()


async def measure(
    data: Path, latency: float, languages: Sequence[str], names: Sequence[str]
) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for language in languages:
        talk = said_in(data, language)
        for name in names:
            async with open_desk(language, latency) as desk:
                start = time.monotonic()
                pieces = await SCENARIOS[name][1](desk, iter(talk))
                await desk.read()
                await desk.read(everything=True)
                messages = await desk.owner.fetchval("SELECT count(*) FROM messages")
                spent = desk.model.spent
                found.setdefault(name, {})[language] = {
                    "messages": messages,
                    "pieces": pieces,
                    "calls": named(spent.calls),
                    "input_tokens": named(spent.input_tokens),
                    "output_tokens": named(spent.output_tokens),
                    "statements": spent.statements,
                    "entry_tokens": spent.entry_tokens,
                    "repeated": spent.repeated.total(),
                    "seconds": round(time.monotonic() - start),
                }
                print(name, language, json.dumps(found[name][language]), flush=True)
    return found


def named(counts: dict[str, int]) -> dict[str, int]:
    return {OPERATIONS.get(name, name): count for name, count in counts.items()}


def markdown(results: dict[str, Any]) -> str:
    """Every label, one row per scenario and language."""
    lines = [
        "# What a model is asked",
        "",
        "The service with its worker reads talk of BEAM (English, long replies of an assistant) "
        "and MADial-Bench (Chinese, short statements) as that of one user. A scripted model behind "
        f"an HTTP endpoint answers after {LATENCY} s: the first sentence of each longer message of "
        "the user is a statement, every second one with an attribute; a reconciliation replaces "
        "what has the same attribute and adds the rest; about every second reading is said "
        "to have taught something (before, nobody asked); a profile repeats memories. The debounce "
        "is 1 s; no session is read too often in a day. Tokens are the service's own estimate of "
        "instructions, data and schema, and of the answer. A *piece* is a session of 12 messages; "
        "of the long session it is 10 messages. Profiles that wait are derived at the end. "
        "Summaries of what leaves the window are asked of the model here, which is no default; "
        "*of memory* are the calls without them. *Repeated* are calls with a prompt that was "
        "answered before.",
    ]
    for label, result in results.items():
        operations = list(OPERATIONS.values())
        lines += [
            "",
            f"## {label}",
            "",
            "| | messages | statements a piece | calls a piece | of memory | "
            f"{' | '.join(operations)} | calls per 1,000 messages | tokens in per 1,000 | out "
            "| repeated |",
            "|---|--:|--:|--:|--:|" + "--:|" * (len(operations) + 4),
        ]
        for name, (title, _) in SCENARIOS.items():
            for language, one in result.get(name, {}).items():
                lines.append(_row(f"{title}, {NAMES[language]}", one, operations))
    return "\n".join([*lines, ""])


def _row(title: str, one: dict[str, Any], operations: Sequence[str]) -> str:
    calls, thousands = sum(one["calls"].values()), one["messages"] / 1_000
    memory = calls - one["calls"].get("summary", 0)
    by_operation = " | ".join(
        f"{one['calls'].get(operation, 0) / one['pieces']:.1f}" for operation in operations
    )
    tokens = (
        f"{sum(one[name].values()) / thousands:,.0f}" for name in ("input_tokens", "output_tokens")
    )
    return (
        f"| {title} | {one['messages']:,} | {one['statements'] / one['pieces']:.1f} "
        f"| {calls / one['pieces']:.1f} | **{memory / one['pieces']:.1f}** | {by_operation} "
        f"| {calls / thousands:,.0f} "
        f"| {' | '.join(tokens)} | {one['repeated']} |"
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data sets")
    parser.add_argument("--label", default="now", help="the part of the result that this replaces")
    parser.add_argument("--only", action="append", choices=list(SCENARIOS), help="these alone")
    parser.add_argument("--language", action="append", choices=list(FILES), help="this alone")
    parser.add_argument("--out", type=Path, default=Path("benchmarks/results/model_calls.json"))
    given = parser.parse_args()
    results = json.loads(given.out.read_text(encoding="utf-8")) if given.out.exists() else {}
    languages = given.language or list(FILES)
    found = asyncio.run(measure(given.data, LATENCY, languages, given.only or list(SCENARIOS)))
    kept = results.setdefault(given.label, {})
    for name, by_language in found.items():
        kept[name] = kept.get(name, {}) | by_language
    publish(results, markdown(results), given.out)


if __name__ == "__main__":
    main()
