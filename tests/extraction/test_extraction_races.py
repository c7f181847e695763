"""Runs that meet: other runs, appends, people who edit, and erasures; over real connections."""

import asyncio
import threading
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager

import asyncpg
import pytest
from httpx import AsyncClient

from app.platform.embedded.server import EmbeddedPostgres
from app.platform.jobs.worker import Worker
from app.runtime import Runtime, open_runtime
from tests.support.api import append, dump, every_page, execute, ok, save, tables_with
from tests.support.chat_behaviours import (
    by_question,
    decides,
    entry,
    extracts,
    held,
    lines_of,
    says,
    schema_name_of,
)
from tests.support.databases import migrated_database, served
from tests.support.model_service import app_of, asking
from tests.support.openai_server import OpenAIServer, Request, openai_server
from tests.support.patience import PATIENCE
from tests.support.service import client_of
from tests.support.tenants import Caller, make_tenant
from tests.support.working import ended_work, extracted, make_due, over, working

REPLY = {"role": "assistant", "content": "I see."}
TEA = "The user drinks green tea in the morning."
COFFEE = "The user drinks black coffee in the morning."
COCOA = "The user drinks hot cocoa in the morning."


@pytest.fixture(scope="module")
def running_server():
    with openai_server() as server:
        yield server


@pytest.fixture
def chat(running_server: OpenAIServer):
    """Remembers every message of a user in its own words; nothing replaces anything."""
    running_server.reset()
    running_server.chat.otherwise = asked(decides(lambda _, _near: {"event": "ADD"}))
    return running_server.chat


@pytest.fixture(scope="module")
async def races_dsn(postgres: EmbeddedPostgres) -> str:
    """A database without anybody else's jobs."""
    return await migrated_database(postgres, "races")


@pytest.fixture(scope="module")
async def runtimes(races_dsn: str, running_server: OpenAIServer) -> AsyncIterator[list[Runtime]]:
    """Two processes' worth: each has connections of its own."""
    settings = asking(
        running_server,
        extraction_model="openai/reader",
        max_extractions=1000,
        lease_seconds=5,
    )
    async with (
        open_runtime(settings, served(races_dsn)) as one,
        open_runtime(settings, served(races_dsn)) as two,
    ):
        yield [one, two]


@pytest.fixture(scope="module")
async def races_app(runtimes: list[Runtime]):
    async with app_of(runtimes[0]) as application:
        yield application


@pytest.fixture
async def tenant(runtimes: list[Runtime]) -> Caller:
    return await make_tenant(runtimes[0])


@pytest.fixture
async def client(races_app, tenant: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(races_app, tenant.key) as opened:
        yield opened


@pytest.fixture
async def workers(runtimes: list[Runtime], races_dsn: str) -> AsyncIterator[list[Worker]]:
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(working(runtime, races_dsn, profiles=False))
            for runtime in runtimes
        ]


def everything(lines):
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


def asked(deciding):
    return by_question(memories=extracts(everything), decisions=deciding)


def questions(chat, name: str) -> list[Request]:
    return [request for request in chat.requests if schema_name_of(request) == name]


def shown(request: Request) -> list[str]:
    """The memories that a decision was made among."""
    return sorted(line["text"] for line in lines_of(request, "memory"))


async def until(
    condition: Callable[[], Awaitable[object] | object], seconds: float = PATIENCE
) -> None:
    async with asyncio.timeout(seconds):
        while True:
            answer = condition()
            if await answer if isinstance(answer, Awaitable) else answer:
                return
            await asyncio.sleep(0.02)


async def order(client: AsyncClient, session_id: str) -> str:
    """Have a session read now; the id of the job."""
    answer = await client.post(f"/sessions/{session_id}/extract", json={})
    return ok(answer, 202)["job_id"]


async def texts(client: AsyncClient, **params) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **params)
    return sorted(row["content"] for row in rows)


async def events(client: AsyncClient, session_id: str | None = None) -> list[str]:
    """What became of each proposal."""
    params = {} if session_id is None else {"session_id": session_id}
    runs = await every_page(client, "/extractions", status="committed", **params)
    return sorted(event for run in runs for event in run["outcomes"].items())


@asynccontextmanager
async def in_transaction(dsn: str, *statements: str) -> AsyncIterator[asyncpg.Connection]:
    """What somebody else has done, and commits at the end of the block."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("SET ROLE kemem_owner")
        async with connection.transaction():
            for statement in statements:
                await connection.fetch(statement)
            yield connection
    finally:
        await connection.close()


def bucket_lock(tenant: Caller) -> str:
    """Somebody else writes to Ana's bucket."""
    name = f"'{tenant.tenant_id}' || chr(31) || 'user' || chr(31) || 'ana'"
    return f"SELECT pg_advisory_xact_lock(hashtextextended({name}, 1))"


async def waiting(dsn: str) -> int:
    """How many connections wait for a lock."""
    [row] = await execute(
        dsn,
        "SELECT count(*) FROM pg_locks JOIN pg_stat_activity USING (pid) "
        "WHERE datname = current_database() AND NOT granted",
    )
    return int(row[0])


async def until_waiting(dsn: str, number: int) -> None:
    async def reached() -> bool:
        return await waiting(dsn) >= number

    await until(reached)


class TestOneSession:
    async def test_two_workers_and_many_orders_make_one_run(self, client, workers, chat):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY)
        job_ids = {await order(client, "talk")}
        await until(lambda: chat.requests)
        for _ in range(5):
            job_ids.add(await order(client, "talk"))
        await asyncio.sleep(0.3)
        assert len(chat.requests) == 1
        release.set()
        [job_id] = job_ids
        await over(client, job_id)

        assert await texts(client) == [TEA]
        assert len(chat.requests) == 1
        [run] = await every_page(client, "/extractions")
        assert (run["first_sequence_no"], run["last_sequence_no"]) == (1, 2)

    async def test_what_is_appended_while_a_run_reads_is_read_once_by_the_next(
        self, client, workers, chat
    ):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY)
        job_id = await order(client, "talk")
        await until(lambda: chat.requests)
        await append(client, "talk", "The user owns a dog called Rex.", REPLY)
        assert await order(client, "talk") == job_id
        release.set()
        await over(client, job_id)

        assert await texts(client) == [TEA, "The user owns a dog called Rex."]
        second = questions(chat, "memories")[1]
        assert [line["text"] for line in lines_of(second, "message")] == [
            "The user owns a dog called Rex.",
            "I see.",
        ]
        assert [line["text"] for line in lines_of(second, "earlier")] == [TEA, "I see."]
        runs = await every_page(client, "/extractions")
        spans = sorted((run["first_sequence_no"], run["last_sequence_no"]) for run in runs)
        assert spans == [(1, 2), (3, 4)]

    async def test_what_is_appended_between_two_looks_of_a_reader_is_read_once(
        self, client, workers, chat, races_dsn, tenant
    ):
        """The session is looked at first, and its messages after an append has committed."""
        job_id = (await append(client, "talk", TEA, REPLY))["extraction"]["job_id"]
        late = '{"message_id": "late", "sequence_no": 3, "content": "The user plays the cello."}'
        async with in_transaction(races_dsn, "LOCK TABLE messages IN ACCESS EXCLUSIVE MODE") as db:
            await make_due(races_dsn, "job_id = $1", job_id)
            await until_waiting(races_dsn, 1)
            await db.execute(
                f"INSERT INTO messages SELECT (jsonb_populate_record(m, '{late}' || "
                "jsonb_build_object('create_time', create_time + interval '1 ms'))).* "
                "FROM messages m WHERE tenant_id = $1 AND sequence_no = 1",
                tenant.tenant_id,
            )
            await db.execute(
                "UPDATE sessions SET last_sequence_no = 3 WHERE tenant_id = $1", tenant.tenant_id
            )
        await over(client, job_id)
        await append(client, "talk", COFFEE, REPLY)
        await extracted(client, "talk")

        shown_once = [
            line["text"]
            for request in questions(chat, "memories")
            for line in lines_of(request, "message")
            if line["role"] == "user"
        ]
        assert sorted(shown_once) == sorted([TEA, COFFEE, "The user plays the cello."])

    async def test_a_cancelled_run_stores_nothing_and_the_next_reads_it_all(
        self, client, workers, chat
    ):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY)
        job_id = await order(client, "talk")
        await until(lambda: chat.requests)
        ok(await client.post(f"/jobs/{job_id}/cancel"))
        await append(client, "talk", COFFEE, REPLY)
        second = await order(client, "talk")
        assert second != job_id
        await over(client, second)
        release.set()
        await ended_work(*workers)

        assert await texts(client) == sorted([TEA, COFFEE])
        assert ok(await client.get(f"/jobs/{job_id}"))["status"] == "cancelled"
        [run] = await every_page(client, "/extractions", status="committed")
        assert (run["first_sequence_no"], run["last_sequence_no"]) == (1, 4)

    async def test_an_end_while_a_run_reads_has_its_turn_afterwards(self, client, workers, chat):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY)
        job_id = await order(client, "talk")
        await until(lambda: chat.requests)
        chat.otherwise = says({"reflection": "", "experience": None})
        ok(await client.post("/sessions/talk/end"))
        release.set()
        await over(client, job_id)

        assert [schema_name_of(request) for request in chat.requests] == ["memories", "experience"]
        assert await texts(client) == [TEA]


class TestASessionAndARequest:
    """A request reads at once, beside the one session of its user that is being read."""

    async def both_read(self, client, chat, dsn, tenant, first: str, second: str) -> None:
        """Both have looked before either stores."""
        await append(client, "one", first, REPLY)
        async with in_transaction(dsn, bucket_lock(tenant)):
            job_id = await order(client, "one")
            await until_waiting(dsn, 1)
            body = {"messages": second, "user_id": "ana"}
            saying = asyncio.create_task(client.post("/memories", json=body))
            await until_waiting(dsn, 2)
        assert (await saying).status_code in {200, 201}
        assert (await over(client, job_id))["status"] == "succeeded"

    async def test_the_same_statement_at_the_same_moment_is_one_memory(
        self, client, workers, chat, races_dsn, tenant
    ):
        await self.both_read(client, chat, races_dsn, tenant, TEA, TEA)

        [row] = await every_page(client, "/memories", user_id="ana")
        assert (row["content"], row["version"]) == (TEA, 1)
        assert await events(client) == [("ADD", 1), ("NONE", 1)]
        decisions = await every_page(client, "/memories/decisions", user_id="ana")
        assert {one["memory_id"] for one in decisions} == {row["memory_id"]}
        assert sorted(one["verdict"] for one in decisions) == ["accepted", "rejected"]

    async def test_a_contradiction_at_the_same_moment_makes_a_chain(
        self, client, workers, chat, races_dsn, tenant
    ):
        await append(client, "before", TEA, REPLY)
        await extracted(client, "before")
        chat.otherwise = asked(
            decides(lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]})
        )
        await self.both_read(client, chat, races_dsn, tenant, COFFEE, COCOA)

        rows = {
            row["memory_id"]: row
            for status in ("active", "superseded")
            for row in await every_page(client, "/memories", user_id="ana", status=status)
        }
        [link] = [row for row in rows.values() if row["content"] == TEA]
        chain = [link["content"]]
        while link["superseded_by"]:
            successor = rows[link["superseded_by"]]
            assert link["status"] == "superseded"
            assert link["valid_to"] == successor["valid_from"]
            link = successor
            chain.append(link["content"])
        assert link["status"] == "active"
        assert sorted(chain) == sorted([TEA, COFFEE, COCOA])
        assert len(questions(chat, "decisions")) == 3

    async def test_other_statements_at_the_same_moment_both_stand(
        self, client, workers, chat, races_dsn, tenant
    ):
        await self.both_read(client, chat, races_dsn, tenant, TEA, COFFEE)

        assert await texts(client) == sorted([TEA, COFFEE])
        assert await events(client) == [("ADD", 1), ("ADD", 1)]


class TestNeighbours:
    """Somebody changes what a run has seen, before it stores what it decided."""

    @pytest.fixture
    async def tea(self, client, workers, chat) -> str:
        """A memory that a run is deciding about when the test begins."""
        await append(client, "before", TEA, REPLY)
        [memory_id] = (await extracted(client, "before"))["result"]["memory_ids"]
        return memory_id

    async def decided_meanwhile(self, client, chat, action, then) -> dict:
        """Read a second session; `action` happens while its first decision is thought over.

        Args:
            then: what is decided, the first time and afterwards.

        """
        release = threading.Event()
        chat.requests.clear()
        chat.script(extracts(everything), held(release, decides(then)))
        chat.otherwise = asked(decides(then))
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client, "talk")
        await until(lambda: questions(chat, "decisions"))
        await action()
        release.set()
        return await over(client, job_id)

    async def test_a_patched_neighbour_is_decided_about_as_it_is_now(self, client, chat, tea):
        async def patch():
            ok(await client.patch(f"/memories/{tea}", json={"content": COCOA}))

        job = await self.decided_meanwhile(
            client, chat, patch, lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]}
        )

        assert job["status"] == "succeeded"
        assert [shown(one) for one in questions(chat, "decisions")] == [[TEA], [COCOA]]
        assert await texts(client) == [COFFEE]
        assert await texts(client, status="superseded") == [COCOA]

    async def test_a_deleted_neighbour_is_not_decided_about(self, client, chat, tea):
        async def delete():
            ok(await client.delete(f"/memories/{tea}"), 204)

        job = await self.decided_meanwhile(
            client,
            chat,
            delete,
            lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]},
        )

        assert job["result"]["events"] == {"ADD": 1}
        assert len(questions(chat, "decisions")) == 1
        assert await texts(client) == [COFFEE]

    async def test_of_a_superseded_neighbour_the_successor_is_decided_about(
        self, client, chat, tea
    ):
        async def supersede():
            ok(await client.post(f"/memories/{tea}/supersede", json={"content": COCOA}), 201)

        job = await self.decided_meanwhile(
            client, chat, supersede, lambda _, near: {"event": "NONE", "memories": [near[0]["id"]]}
        )

        assert job["result"]["events"] == {"NONE": 1}
        assert [shown(one) for one in questions(chat, "decisions")] == [[TEA], [COCOA]]
        assert await texts(client) == [COCOA]

    async def test_what_a_person_saves_meanwhile_is_not_said_twice(self, client, chat, tea):
        async def say_so():
            await save(client, COFFEE, on_duplicate="allow")

        job = await self.decided_meanwhile(client, chat, say_so, lambda _, _near: {"event": "ADD"})

        assert job["result"]["events"] == {"NONE": 1}
        assert len(questions(chat, "decisions")) == 1
        assert await texts(client) == sorted([TEA, COFFEE])

    async def test_only_what_concerns_a_changed_neighbour_is_asked_about_again(
        self, client, chat, tea
    ):
        trip = "用户下个月要去敦煌看壁画。"
        await save(client, trip)
        release = threading.Event()
        chat.requests.clear()
        replacing = decides(lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]})
        chat.script(extracts(everything), held(release, replacing))
        chat.otherwise = asked(decides(lambda _, _near: {"event": "ADD"}))
        await append(client, "talk", COFFEE, "用户下个月不去敦煌看壁画了。", REPLY)
        job_id = await order(client, "talk")
        await until(lambda: questions(chat, "decisions"))
        [found] = [
            row
            for row in await every_page(client, "/memories", user_id="ana")
            if row["content"] == trip
        ]
        ok(await client.patch(f"/memories/{found['memory_id']}", json={"confidence": 0.8}))
        release.set()
        await over(client, job_id)

        first, second = questions(chat, "decisions")
        assert len(lines_of(first, "statement")) == 2
        [again] = lines_of(second, "statement")
        assert again["text"] == "用户下个月不去敦煌看壁画了。"
        assert await texts(client, status="superseded") == [TEA]
        assert COFFEE in await texts(client)

    async def test_when_they_never_rest_the_rules_decide_and_nothing_is_lost(
        self, client, chat, tea
    ):
        async def patching(request: Request):
            number = len(questions(chat, "decisions"))
            release = threading.Event()
            pending.append((number, release))
            return await held(
                release, decides(lambda _, near: {"event": "NONE", "memories": [near[0]["id"]]})
            )(request)

        pending: list[tuple[int, threading.Event]] = []
        chat.requests.clear()
        chat.otherwise = asked(patching)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client, "talk")
        for number in (1, 2):
            await until(lambda number=number: len(pending) == number)
            changed = {"content": f"{TEA[:-1]} of day {number}."}
            ok(await client.patch(f"/memories/{tea}", json=changed))
            pending[-1][1].set()
        job = await over(client, job_id)

        assert job["status"] == "succeeded"
        assert len(questions(chat, "decisions")) == 2
        assert COFFEE in await texts(client)

    async def test_words_of_a_decision_that_was_dropped_leave_no_trace(self, client, chat, tea):
        """First the two become one, in words of the model; then they are told apart."""
        wanted = [
            {"event": "UPDATE", "content": "Rex the dog barks at the postman every single day."},
            {"event": "ADD"},
        ]

        def then(_, near):
            decision = wanted.pop(0)
            return decision | {"memories": [near[0]["id"]] if "content" in decision else []}

        async def patch():
            ok(await client.patch(f"/memories/{tea}", json={"content": COCOA}))

        job = await self.decided_meanwhile(client, chat, patch, then)

        assert job["result"]["events"] == {"ADD": 1}
        assert [shown(one) for one in questions(chat, "decisions")] == [[TEA], [COCOA]]
        assert await texts(client) == sorted([COCOA, COFFEE])
        best = ok(await client.post("/memories/search", json={"query": COFFEE, "user_id": "ana"}))[
            "results"
        ][0]
        assert best["content"] == COFFEE
        assert best["similarity"] == pytest.approx(1, abs=0.001)

    async def test_new_words_are_no_change_of_the_neighbours(self, client, chat, tea):
        """What the model worded has other neighbours than what was said; nobody else moved."""
        await save(client, "The dog barks at the postman every single day.")
        again = "Rex the dog barks at the postman every single day; the user drinks black coffee."

        async def nothing():
            pass

        job = await self.decided_meanwhile(
            client,
            chat,
            nothing,
            lambda _, near: {"event": "UPDATE", "memories": [near[0]["id"]], "content": again},
        )

        assert job["result"]["events"] == {"UPDATE": 1}
        assert [shown(one) for one in questions(chat, "decisions")] == [[TEA]]

    @pytest.mark.parametrize(
        ("change", "left"),
        [
            ("status = 'deleted'", [COFFEE]),
            ("content = 'The user drinks nothing at all.', version = version + 1", None),
        ],
    )
    async def test_a_neighbour_that_changes_under_the_locks_costs_no_message(
        self, client, chat, tea, races_dsn, change, left
    ):
        """A deletion takes no lock of the bucket: it may commit between a look and a write."""
        release = threading.Event()
        chat.script(
            extracts(everything),
            held(
                release,
                decides(lambda _, near: {"event": "SUPERSEDE", "memories": [near[0]["id"]]}),
            ),
        )
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client, "talk")
        await until(lambda: len(questions(chat, "decisions")) == 1)
        statement = f"UPDATE memories SET {change} WHERE memory_id = '{tea}'"
        async with in_transaction(races_dsn, statement):
            release.set()
            await until_waiting(races_dsn, 1)
        job = await over(client, job_id)

        assert job["status"] == "succeeded"
        session = ok(await client.get("/sessions/talk"))
        assert session["last_extracted_seq"] == 2
        if left is not None:
            assert await texts(client) == left
        else:
            history = await every_page(client, f"/memories/{tea}/history")
            assert history[-1]["before"]["content"] == "The user drinks nothing at all."


class TestWhatGoesAway:
    @pytest.mark.parametrize("moment", ["while the model reads", "before it is stored"])
    @pytest.mark.parametrize("path", ["/users/ana", "/sessions/talk"])
    async def test_nothing_of_what_is_erased_comes_back(
        self, client, workers, chat, races_dsn, tenant, moment, path
    ):
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY)
        await order(client, "talk")
        await until(lambda: chat.requests)
        if moment == "while the model reads":
            ok(await client.delete(path, params={"confirm": True}))
            release.set()
        else:
            async with in_transaction(races_dsn, bucket_lock(tenant)):
                release.set()
                await until_waiting(races_dsn, 1)
                ok(await client.delete(path, params={"confirm": True}))
        await ended_work(*workers)

        assert ok(await client.get("/jobs", params={"kind": "extract"}))["items"] == []
        rows = await dump(races_dsn, tenant.tenant_id)
        assert tables_with("green tea", rows) == []
        assert tables_with("talk", rows) == []
        if path == "/users/ana":
            assert tables_with("ana", rows) == []

    async def test_two_erasures_and_two_runs_hinder_nobody(
        self, client, workers, chat, races_dsn, tenant
    ):
        for turn in range(4):
            for number in range(4):
                await append(client, f"s{number}", f"{TEA} {turn}", REPLY)
                await order(client, f"s{number}")
            await asyncio.sleep(0.03 * turn)
            erased = await client.delete("/users/ana", params={"confirm": True})
            assert erased.status_code == 200, erased.text
        await ended_work(*workers)

        rows = await dump(races_dsn, tenant.tenant_id)
        assert tables_with("ana", rows) == []

    @pytest.mark.parametrize("path", ["/agents/helper", "/sessions/talk"])
    async def test_what_was_being_read_when_memory_was_paused_is_said_once(
        self, client, workers, chat, path
    ):
        """What was said before the pause may be kept; what is said during it never is."""
        release = threading.Event()
        chat.script(held(release, extracts(everything)))
        await append(client, "talk", TEA, REPLY, agent_id="helper")
        job_id = await order(client, "talk")
        await until(lambda: chat.requests)
        ok(await client.patch(path, json={"memory_enabled": False}))
        paused = await append(client, "talk", COFFEE, REPLY)
        assert paused["extraction"]["reason"] == "memory_paused"
        release.set()
        await over(client, job_id)
        ok(await client.patch(path, json={"memory_enabled": True}))
        await append(client, "talk", COCOA, REPLY)
        await extracted(client, "talk")

        assert COFFEE not in await texts(client)
        assert await texts(client) == sorted([TEA, COCOA])
        session = ok(await client.get("/sessions/talk"))
        assert session["last_extracted_seq"] == session["last_sequence_no"] == 6
