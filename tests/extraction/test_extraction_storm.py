"""Two workers, 200 sessions, 2,000 messages, and SIGKILL at random moments: every sentence
that should become a memory is there exactly once.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

import asyncpg
import pytest
from httpx import AsyncClient

from app.platform.database.migrate import upgrade
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.api import append
from tests.support.application import started
from tests.support.chat_behaviours import by_question, decides, entry, extracts, slowly
from tests.support.databases import new_database, served
from tests.support.openai_server import openai_server
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.worker_processes import WorkerProcess, worker_process

pytestmark = pytest.mark.slow

DEBOUNCE_SECONDS = 1
WORKERS = 2
TALKERS = 4
LEAST_KILLS = 3
"""A worker takes seconds to start, on a busy machine many."""

REPLY = {"role": "assistant", "content": "I see."}

Start = Callable[[], AbstractAsyncContextManager[WorkerProcess]]


def everything(lines):
    """One fact per message of a user, in its own words."""
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


@dataclass(frozen=True)
class Size:
    """How much is said, by whom, and for how long workers die."""

    users: int
    sessions: int
    messages: int
    seconds: float
    patience: float


@dataclass
class Storm:
    """What was said so far: the text of each message of a user, by its id."""

    client: AsyncClient
    owner: asyncpg.Connection
    tenant_id: str
    size: Size
    sentence: Callable[[int, int], str]
    start: Start
    random: random.Random
    said: dict[str, str] = field(default_factory=dict)
    kills: int = 0

    async def blow(self) -> None:
        """Talk and kill at the same time; then let everything be read."""
        end = perf_counter() + self.size.seconds
        turns = {
            (user, session): 0
            for user in range(self.size.users)
            for session in range(self.size.sessions)
        }
        async with asyncio.TaskGroup() as group:
            for _ in range(TALKERS):
                group.create_task(self._talk(turns, end - self.size.seconds * 0.1))
            for _ in range(WORKERS):
                group.create_task(self._work_and_die(end))
        async with AsyncExitStack() as stack:
            for _ in range(WORKERS):
                await stack.enter_async_context(self.start())
            async with asyncio.timeout(self.size.patience):
                while await self._owed():  # noqa: ASYNC110 (only the table says so)
                    await asyncio.sleep(0.2)

    async def _talk(self, turns: dict[tuple[int, int], int], end: float) -> None:
        """Batches of 1 to 5 for whichever session; what all have said so far is in `turns`."""
        while turns:
            turn = self.random.choice(list(turns))
            first = turns.pop(turn)
            number = min(self.random.randint(1, 4), self.size.messages - first)
            # A reply that comes alone, when all before it is read, is owed to nobody.
            number += first + number == self.size.messages - 1
            await self._say(*turn, first, number)
            if first + number < self.size.messages:
                turns[turn] = first + number
            # Some 2.5 messages at a time, so that the talk lasts as long as the storm.
            left = sum(self.size.messages - said for said in turns.values()) / 2.5 / TALKERS
            await asyncio.sleep(max(end - perf_counter(), 0) / max(left, 1))

    async def _say(self, user: int, session: int, first: int, number: int) -> None:
        """Statements and replies in turn: of ten messages five say something."""
        batch: list[Any] = [
            REPLY
            if place % 2
            else {
                "role": "user",
                "content": self.sentence(user, (session * self.size.messages + place) // 2),
            }
            for place in range(first, first + number)
        ]
        answer = await append(self.client, f"u{user}-s{session}", *batch, user_id=f"u{user}")
        for row in answer["messages"]:
            if row["role"] == "user":
                self.said[row["message_id"]] = row["content"]

    async def _work_and_die(self, end: float) -> None:
        """One worker after the other, none of which is asked before it is killed."""
        while perf_counter() < end or self.kills < LEAST_KILLS:
            async with self.start() as worker:
                left = max(end - perf_counter(), 1)
                await asyncio.sleep(min(self.random.uniform(0.2, 6), left))
                await worker.kill()
                self.kills += 1

    async def _owed(self) -> bool:
        return (
            await self._number(
                "SELECT count(*) FROM jobs WHERE tenant_id = $1 AND kind = 'extract' "
                "AND status IN ('pending', 'running')"
            )
            > 0
        )

    async def _number(self, statement: str) -> int:
        return int(await self.owner.fetchval(statement, self.tenant_id))

    async def rows(self, statement: str) -> list[asyncpg.Record]:
        return list(await self.owner.fetch(statement, self.tenant_id))

    async def assert_all_read(self) -> None:
        """Every session to its end, by jobs that succeeded."""
        sessions = await self.rows(
            "SELECT last_extracted_seq AS watermark, last_sequence_no AS last FROM sessions "
            "WHERE tenant_id = $1"
        )
        assert len(sessions) == self.size.users * self.size.sessions
        assert {row["last"] for row in sessions} == {self.size.messages}
        assert {row["watermark"] for row in sessions} == {self.size.messages}
        ended = await self.rows(
            "SELECT status, count(*) FROM jobs WHERE tenant_id = $1 AND kind = 'extract' "
            "GROUP BY status"
        )
        assert {row["status"] for row in ended} == {"succeeded"}

    async def assert_spans_meet(self) -> None:
        """Runs that were committed read each message once, and leave none between them."""
        runs = await self.rows(
            "SELECT session_id, first_sequence_no AS first, last_sequence_no AS last "
            "FROM extraction_runs WHERE tenant_id = $1 AND status = 'committed'"
        )
        read = Counter(
            (run["session_id"], number)
            for run in runs
            for number in range(run["first"], run["last"] + 1)
        )
        assert set(read.values()) == {1}


@asynccontextmanager
async def storm(
    dsn: str, size: Size, sentence: Callable[[int, int], str], start: Start, seed: int
) -> AsyncIterator[Storm]:
    """The API in this process, without a worker, and one tenant of it."""
    settings = Settings(_env_file=None, debounce_seconds=DEBOUNCE_SECONDS)
    async with (
        started(open_runtime(settings, served(dsn))) as application,
        open_runtime(settings, served(dsn)) as runtime,
    ):
        caller = await make_tenant(runtime)
        owner = await asyncpg.connect(dsn)
        await owner.execute("SET ROLE kemem_owner")
        try:
            async with client_of(application, caller.key) as client:
                yield Storm(
                    client, owner, caller.tenant_id, size, sentence, start, random.Random(seed)
                )
        finally:
            await owner.close()


@pytest.fixture
async def storm_dsn(postgres: EmbeddedPostgres, request: pytest.FixtureRequest) -> str:
    """A database without anybody else's jobs."""
    dsn = await new_database(postgres, f"storm_{request.node.name}"[:60])
    await upgrade(dsn)
    return dsn


HOBBIES = ("chess", "fencing", "pottery", "sailing", "archery", "origami", "judo", "karaoke")
CITIES = ("Lyon", "Porto", "Gdansk", "Turin", "Bergen", "Utrecht", "Graz", "Cork", "Brno", "Nice")


def told(user: int, number: int) -> str:
    """A statement nobody else makes, and that is near to others of the same user."""
    hobby, city = HOBBIES[number % 8], CITIES[number // 8 % 10]
    # A day and a time: what differs in one of them alone may contradict another.
    time = f"{number // 60}:{number % 60:02}"
    return f"The user u{user} does {hobby} in {city} on day {number} at {time}."


async def test_what_a_model_finds_is_remembered_once_whoever_is_killed(storm_dsn: str) -> None:
    size = Size(users=20, sessions=10, messages=10, seconds=60, patience=90)
    with openai_server() as server:
        server.chat.otherwise = slowly(
            0.02,
            by_question(
                memories=extracts(everything), decisions=decides(lambda _, _near: {"event": "ADD"})
            ),
        )

        def start() -> AbstractAsyncContextManager[WorkerProcess]:
            return worker_process(
                storm_dsn,
                extraction_model="openai/reader",
                openai_base_url=server.base_url,
                openai_api_key="key",
                max_extractions=1000,
                debounce_seconds=DEBOUNCE_SECONDS,
                lease_seconds=5,
            )

        async with storm(storm_dsn, size, told, start, seed=1) as blown:
            await blown.blow()

            assert blown.kills >= LEAST_KILLS
            assert len(blown.said) == 1000
            await blown.assert_all_read()
            await blown.assert_spans_meet()
            await assert_remembered_once(blown)


async def assert_remembered_once(blown: Storm) -> None:
    """Each sentence is one active memory with one ADD and one accepted verdict, and the
    message that says it is evidence of that memory and of no other.
    """
    memories = await blown.rows(
        "SELECT memory_id, content, status, evidence, version, user_id FROM memories "
        "WHERE tenant_id = $1"
    )
    assert {(row["status"], row["version"]) for row in memories} == {("active", 1)}
    assert Counter(row["content"] for row in memories) == Counter(blown.said.values())
    evidence = Counter(one for row in memories for one in row["evidence"])
    assert evidence == Counter(blown.said.keys())
    for row in memories:
        [message_id] = row["evidence"]
        assert blown.said[message_id] == row["content"]
    history = await blown.rows("SELECT memory_id, event FROM memory_history WHERE tenant_id = $1")
    assert Counter((row["memory_id"], row["event"]) for row in history) == Counter(
        (row["memory_id"], "ADD") for row in memories
    )
    verdicts = await blown.rows(
        "SELECT memory_id, verdict, event FROM gate_decisions WHERE tenant_id = $1"
    )
    assert Counter((row["memory_id"], row["verdict"], row["event"]) for row in verdicts) == (
        Counter((row["memory_id"], "accepted", "ADD") for row in memories)
    )


ALLERGENS: Sequence[str] = (
    "peanuts", "shrimp", "gluten", "soy", "eggs", "sesame", "mustard", "celery", "lupin", "pollen",
)  # fmt: skip


def confided(user: int, number: int) -> str:
    """Something the rules find; the same is said again in other sessions."""
    return f"My daughter is allergic to {ALLERGENS[number % len(ALLERGENS)]}."


async def test_what_the_rules_find_is_remembered_once_whoever_is_killed(storm_dsn: str) -> None:
    """Without a model, and with statements that sessions of one user have in common."""
    size = Size(users=4, sessions=10, messages=10, seconds=15, patience=60)

    def start() -> AbstractAsyncContextManager[WorkerProcess]:
        return worker_process(storm_dsn, debounce_seconds=DEBOUNCE_SECONDS, lease_seconds=5)

    async with storm(storm_dsn, size, confided, start, seed=2) as blown:
        await blown.blow()

        assert blown.kills >= LEAST_KILLS
        await blown.assert_all_read()
        await blown.assert_spans_meet()
        memories = await blown.rows(
            "SELECT user_id, content, status, version FROM memories WHERE tenant_id = $1"
        )
        assert {(row["status"], row["version"]) for row in memories} == {("active", 1)}
        kept = Counter((row["user_id"], row["content"]) for row in memories)
        assert set(kept.values()) == {1}
        assert len(kept) == size.users * len(ALLERGENS)
        assert all(any(one in content for one in ALLERGENS) for _, content in kept)
        verdicts = await blown.rows(
            "SELECT evidence, verdict FROM gate_decisions WHERE tenant_id = $1"
        )
        heard = Counter(one for row in verdicts for one in row["evidence"])
        assert heard == Counter(blown.said.keys())
        accepted = [row for row in verdicts if row["verdict"] == "accepted"]
        assert len(accepted) == len(memories)
