"""`kemem import-mem0`: what mem0ai wrote, what its API answers, and its history file, once."""

import asyncio
import json
import os
import sqlite3
from collections.abc import AsyncIterator, Callable, Coroutine
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import asyncpg
import pytest
from fastapi import FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from httpx import AsyncClient
from typer.testing import CliRunner, Result

from app.cli.main import cli
from tests.support.environments import python
from tests.support.mem0 import run_script
from tests.support.service import listening
from tests.support.tenants import Caller

Run = Callable[..., Coroutine[Any, Any, Result]]

SCRIPTS = Path(__file__).parent / "clients"
PAYLOAD = {
    "data": "She drinks green tea.",
    "hash": "b1946ac92492d2347c6235b4d2611184",
    "user_id": "ana",
    "created_at": "2024-03-02T10:00:00.500000+00:00",
    "updated_at": "2024-04-02T10:00:00+00:00",
    "text_lemmatized": "drink green tea",
    "topic": "tea",
    "role": "user",
}


@pytest.fixture
async def address(app: FastAPI) -> AsyncIterator[str]:
    async with listening(app) as port:
        yield f"http://127.0.0.1:{port}"


@pytest.fixture
def run(address: str, acme: Caller) -> Run:
    async def command(*arguments: str | Path) -> Result:
        where = ["--url", address, "--key", acme.key, "--json"]
        kept = {name: None for name in os.environ if name.startswith(("MEMORY_", "MEM0_"))}
        return await asyncio.to_thread(
            CliRunner().invoke, cli, ["import-mem0", *map(str, arguments), *where], env=kept
        )

    return command


@pytest.fixture
async def table(postgres_dsn: str) -> AsyncIterator[str]:
    """A table as mem0's store makes it, in a schema of its own; its name."""
    connection = await asyncpg.connect(postgres_dsn)
    try:
        schema = f"s{uuid4().hex}"
        await connection.execute(f"CREATE SCHEMA {schema}")
        # Vectors are not read.
        await connection.execute(
            f'CREATE TABLE {schema}."my memories" (id UUID PRIMARY KEY, payload JSONB)'
        )
        yield f"{schema}.my memories"
        await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    finally:
        await connection.close()


async def fill(dsn: str, table: str, *, id: str = "", **payload: Any) -> str:  # noqa: A002
    """One more row of a table; its id."""
    connection = await asyncpg.connect(dsn)
    try:
        schema, _, name = table.partition(".")
        memory_id = id or str(uuid4())
        await connection.execute(
            f'INSERT INTO {schema}."{name}" VALUES ($1, $2)',
            memory_id,
            json.dumps({name: value for name, value in (PAYLOAD | payload).items() if value}),
        )
        return memory_id
    finally:
        await connection.close()


def history_of(folder: Path, *rows: tuple[Any, ...]) -> Path:
    file = folder / "history.db"
    with sqlite3.connect(file) as connection:
        connection.execute(
            "CREATE TABLE history (id TEXT PRIMARY KEY, memory_id TEXT, old_memory TEXT, "
            "new_memory TEXT, event TEXT, created_at DATETIME, updated_at DATETIME, "
            "is_deleted INTEGER, actor_id TEXT, role TEXT)"
        )
        connection.executemany(
            "INSERT INTO history VALUES (?, ?, ?, ?, ?, ?, ?, ?, NULL, NULL)", rows
        )
    connection.close()
    return file


def told(result: Result, exit_code: int = 0) -> dict[str, Any]:
    assert result.exit_code == exit_code, f"{result.output}\n{result.exception!r}"
    # The service of the test writes its log to the same stream.
    document: dict[str, Any] = json.loads(result.stdout[result.stdout.index("{\n") :])
    return document


def own_id(mem0_id: str) -> str:
    return f"mem_{UUID(mem0_id).hex}"


async def stored(client: AsyncClient, mem0_id: str) -> dict[str, Any]:
    response = await client.get(f"/memories/{own_id(mem0_id)}")
    assert response.status_code == 200, response.text
    return response.json()


async def changes(client: AsyncClient, mem0_id: str) -> list[dict[str, Any]]:
    """Oldest first."""
    response = await client.get(f"/memories/{own_id(mem0_id)}/history")
    assert response.status_code == 200, response.text
    return sorted(response.json()["items"], key=lambda one: one["create_time"])


AT = "2024-01-02T03:04:05+00:00"


def change(memory_id: str, old: str | None, new: str | None, event: str, time: str) -> tuple:
    """A row of a history file."""
    return str(uuid4()), memory_id, old, new, event, AT, time, int(new is None)


class TestTable:
    async def test_a_memory_keeps_id_dates_owner_and_metadata(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        memory_id = await fill(postgres_dsn, table, agent_id="helper", run_id="trip")

        done = told(await run("--postgres", postgres_dsn, "--table", table))

        assert (done["memories"], done["users"], done["agents"], done["runs"]) == (1, 1, 1, 1)
        assert done["inserted"]["memory"] == 1
        memory = await stored(client, memory_id)
        assert memory["content"] == "She drinks green tea."
        assert (memory["user_id"], memory["agent_id"], memory["session_id"]) == (
            "ana", "helper", "trip",
        )  # fmt: skip
        assert memory["create_time"].startswith("2024-03-02T10:00:00.5")
        assert memory["update_time"].startswith("2024-04-02T10:00:00")
        assert memory["metadata"] == {"topic": "tea", "role": "user"}
        assert memory["source"] == "import"

    async def test_importing_twice_changes_nothing(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str, tmp_path: Path
    ) -> None:
        memory_id = await fill(postgres_dsn, table, run_id="trip", expiration_date="2031-01-31")
        file = history_of(tmp_path, change(memory_id, None, PAYLOAD["data"], "ADD", AT))
        source = ("--postgres", postgres_dsn, "--table", table, "--history", file)
        told(await run(*source))
        before = (await client.get("/export")).content

        again = told(await run(*source))

        assert (again["inserted"], again["skipped"]) == ({}, {})
        assert again["unchanged"]["memory"] == again["unchanged"]["history"] == 1
        assert rows_of((await client.get("/export")).content) == rows_of(before)

    async def test_a_dry_run_counts_and_writes_nothing(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        await fill(postgres_dsn, table)
        secret = await fill(postgres_dsn, table, data="My key is sk-proj-" + "Ab3dE5gH" * 6)
        nobody = await fill(postgres_dsn, table, data="Of nobody.", user_id=None)
        await fill(postgres_dsn, table, data=" ")

        result = await run("--postgres", postgres_dsn, "--table", table, "--dry-run")

        done = told(result, 1)
        assert done["refused"] == {"sensitive": 1, "no_owner": 1}
        assert done["unreadable"] == 1
        assert done["inserted"]["memory"] == done["memories"] == 1
        assert secret in result.stderr
        assert nobody in result.stderr
        assert "--user" in result.stderr
        assert "sk-proj" not in result.output
        assert (await client.get("/memories", params={"user_id": "ana"})).json()["items"] == []

    async def test_the_same_text_of_an_owner_is_imported_once(
        self, run: Run, postgres_dsn: str, table: str
    ) -> None:
        await fill(postgres_dsn, table)
        await fill(postgres_dsn, table, data="she drinks  GREEN tea.")
        await fill(postgres_dsn, table, user_id="ben")

        done = told(await run("--postgres", postgres_dsn, "--table", table), 1)

        assert done["inserted"]["memory"] == 2
        assert done["refused"] == {"duplicate": 1}

    @pytest.mark.parametrize("length", [59, 60, 61, 64])
    async def test_a_run_of_several_with_a_long_id_is_a_session_for_each(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str, length: int
    ) -> None:
        run_id = "r" * length
        ids = [
            await fill(postgres_dsn, table, user_id=one, run_id=run_id) for one in ("ana", "ben")
        ]

        told(await run("--postgres", postgres_dsn, "--table", table))

        sessions = {(await stored(client, one))["session_id"] for one in ids}
        assert len(sessions) == 2
        assert run_id in sessions
        assert any("@" in one for one in sessions) is (length <= 60)

    async def test_a_run_of_two_users_becomes_two_sessions(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        ids = [await fill(postgres_dsn, table, user_id=one, run_id="r") for one in ("ana", "ben")]

        told(await run("--postgres", postgres_dsn, "--table", table))

        sessions = {(await stored(client, one))["session_id"] for one in ids}
        assert len(sessions) == 2
        assert "r" in sessions

    async def test_a_session_of_a_run_stays_that_of_its_first_user(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        source = ("--postgres", postgres_dsn, "--table", table)
        first = await fill(postgres_dsn, table, user_id="ben", run_id="r", agent_id="helper")
        told(await run(*source))
        sooner = [
            await fill(
                postgres_dsn, table,
                id=f"00000000-0000-4000-8000-{number:012}", user_id=user, run_id="r",
                data=f"Fact {number}.",
            )
            for number, user in enumerate(("ana", "ben"))
        ]  # fmt: skip

        done = told(await run(*source))

        assert (done["inserted"]["memory"], done["skipped"]) == (2, {})
        assert [(await stored(client, one))["session_id"] for one in (first, *sooner)] == [
            "r", "r@ana", "r",
        ]  # fmt: skip

    async def test_nothing_is_attached_to_a_session_of_somebody_else(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        for session_id in ("r", "taken", "taken@ana"):
            said = {"user_id": "eve", "messages": [{"role": "user", "content": "Hello."}]}
            assert (await client.post(f"/sessions/{session_id}/messages", json=said)).is_success
        memory_id = await fill(postgres_dsn, table, run_id="r")
        other = await fill(postgres_dsn, table, run_id="taken", data="She has a cat.")
        source = ("--postgres", postgres_dsn, "--table", table)

        result = await run(*source)

        assert told(result, 1)["refused"] == {"session_taken": 1}
        assert other in result.stderr
        assert "--run-prefix" in result.stderr
        assert (await stored(client, memory_id))["session_id"] == "r@ana"
        assert (await client.get(f"/memories/{own_id(other)}")).status_code == 404
        told(await run(*source, "--run-prefix", "mem0-"))
        assert (await stored(client, other))["session_id"] == "mem0-taken"

    async def test_a_table_that_is_not_there_is_told_with_those_that_are(
        self, run: Run, postgres_dsn: str, table: str
    ) -> None:
        result = await run("--postgres", postgres_dsn, "--table", "elsewhere")

        assert result.exit_code != 0
        assert "--table" in str(result.exception)
        assert table in str(result.exception)

    async def test_a_memory_that_was_changed_here_stays_as_it_is(
        self, run: Run, client: AsyncClient, postgres_dsn: str, table: str
    ) -> None:
        memory_id = await fill(postgres_dsn, table)
        source = ("--postgres", postgres_dsn, "--table", table)
        told(await run(*source))
        path = f"/memories/{own_id(memory_id)}"
        assert (await client.patch(path, json={"content": "She drinks coffee."})).is_success

        done = told(await run(*source))

        assert done["skipped"] == {"memory": 1}
        assert (await stored(client, memory_id))["content"] == "She drinks coffee."


def rows_of(export: bytes) -> list[bytes]:
    return export.split(b"\n")[1:-2]


class TestHistoryFile:
    async def test_alone_it_gives_memories_and_their_changes_to_a_user(
        self, run: Run, client: AsyncClient, tmp_path: Path
    ) -> None:
        kept, gone = str(uuid4()), str(uuid4())
        porto, lisbon = "She lives in Porto.", "She lives in Lisbon."
        file = history_of(
            tmp_path,
            change(kept, None, porto, "ADD", AT),
            change(kept, porto, lisbon, "UPDATE", "2024-05-06T07:08:09-07:00"),
            change(gone, None, "She owns a car.", "ADD", AT),
            change(gone, "She owns a car.", None, "DELETE", "2024-01-03T00:00:00+00:00"),
        )

        done = told(await run("--history", file, "--user", "ana"))

        assert (done["memories"], done["history"], done["deleted_in_mem0"]) == (1, 2, 1)
        memory = await stored(client, kept)
        assert (memory["content"], memory["user_id"]) == ("She lives in Lisbon.", "ana")
        first, second = await changes(client, kept)
        assert (first["event"], first["before"]) == ("ADD", None)
        assert first["after"]["content"] == second["before"]["content"] == "She lives in Porto."
        assert second["create_time"].startswith("2024-05-06T14:08:09")
        assert (await client.get(f"/memories/{own_id(gone)}")).status_code == 404
        body = {"history_id": first["history_id"]}
        restored = await client.post(f"/memories/{own_id(kept)}/restore", json=body)
        assert restored.status_code == 200, restored.text
        assert (await stored(client, kept))["content"] == "She lives in Porto."

    async def test_without_a_user_or_of_another_kind_it_is_refused(
        self, run: Run, tmp_path: Path
    ) -> None:
        file = history_of(tmp_path)
        assert "--user" in (await run("--history", file)).stderr
        other = tmp_path / "other.db"
        other.write_text("no database")
        result = await run("--history", other, "--user", "ana")
        assert "history.db" in str(result.exception)

    async def test_what_the_gate_refuses_is_left_out_of_the_history(
        self, run: Run, client: AsyncClient, tmp_path: Path
    ) -> None:
        kept, secret = str(uuid4()), "My key is sk-proj-" + "Ab3dE5gH" * 6
        file = history_of(
            tmp_path,
            change(kept, None, secret, "ADD", AT),
            change(kept, secret, "She has a key.", "UPDATE", "2024-01-03T03:04:05+00:00"),
        )

        done = told(await run("--history", file, "--user", "ana"))

        assert done["history_left_out"] == 2
        assert await changes(client, kept) == []
        assert b"sk-proj" not in (await client.get("/export")).content


def mem0_api(
    memories: list[dict[str, Any]],
    history: dict[str, list[dict[str, Any]]],
    *,
    skipped: int = 0,
    uncounted: int = 0,
    counts: bool = True,
) -> FastAPI:
    """The routes of mem0's API that an import reads, over some memories, two on a page.

    Args:
        skipped: memories that are counted and on no page.
        uncounted: entities that are counted and on no page.
        counts: it takes the filter that counts all memories.

    """
    api = FastAPI()
    api.state.reached = api
    api.state.skipped = skipped

    @api.middleware("http")
    async def _key(request: Request, call_next: Any) -> Any:
        if request.headers.get("Authorization") != "Token m0-key":
            return JSONResponse({"detail": "Invalid API key"}, 401)
        return await call_next(request)

    @api.get("/v1/entities/")
    async def _entities() -> dict[str, Any]:
        names = dict.fromkeys(
            (kind, one[f"{kind}_id"])
            for one in memories
            for kind in ("user", "agent")
            if one.get(f"{kind}_id")
        )
        shown = [{"id": name, "type": kind, "name": name} for kind, name in names]
        return {"count": len(shown) + uncounted, "results": shown, "next": None}

    @api.post("/v3/memories/")
    async def _memories(request: Request, page: int) -> dict[str, Any]:
        filters = (await request.json())["filters"]
        if "OR" in filters:
            if not counts:
                raise HTTPException(400)
            return {"count": len(memories), "results": memories[:1], "next": "more"}
        shown = [one for one in memories if all(one.get(n) == v for n, v in filters.items())]
        at = 2 * (page - 1)
        more = len(shown) > at + 2
        skipped = api.state.skipped if page > 1 else 0
        return {
            "count": len(shown),
            "results": shown[at + skipped : at + 2],
            "next": "more" if more else None,
        }

    @api.get("/v1/memories/{memory_id}/history/")
    async def _history(memory_id: str) -> list[dict[str, Any]]:
        return history.get(memory_id, [])

    return api


class TestApi:
    async def test_every_page_of_every_owner_is_read_once(
        self, run: Run, client: AsyncClient
    ) -> None:
        memories = [
            {
                "id": str(uuid4()), "memory": f"Fact number {number}.", "user_id": "ana",
                "agent_id": "helper" if number == 1 else None, "app_id": "shop",
                "metadata": None, "categories": ["food"], "created_at": "2024-03-02T03:00:00-07:00",
                "updated_at": "2024-03-03T03:00:00-07:00", "expiration_date": None,
            }
            for number in range(5)
        ]  # fmt: skip
        first = memories[0]["id"]
        history = {
            first: [
                {"id": str(uuid4()), "memory_id": first, "event": "ADD", "old_memory": None,
                 "new_memory": "Fact number 0.", "created_at": "2024-03-02T10:00:00Z"}
            ]
        }  # fmt: skip
        async with listening(mem0_api(memories, history)) as port:
            source = ("--mem0-key", "m0-key", "--mem0-url", f"http://127.0.0.1:{port}")
            done = told(await run(*source))
            again = told(await run(*source))

        assert (done["memories"], done["inserted"]["memory"], done["history"]) == (5, 5, 1)
        assert (again["inserted"], again["skipped"]) == ({}, {})
        memory = await stored(client, first)
        assert memory["metadata"] == {"categories": ["food"], "mem0_app_id": "shop"}
        assert memory["create_time"].startswith("2024-03-02T10:00:00")
        assert [one["event"] for one in await changes(client, first)] == ["ADD"]

    @pytest.mark.parametrize("skipped", [0, 1])
    async def test_memories_that_the_pages_skipped_are_told(self, run: Run, skipped: int) -> None:
        memories = [
            {
                "id": str(uuid4()), "memory": f"Fact number {number}.", "user_id": "ana",
                "created_at": AT, "updated_at": AT,
            }
            for number in range(4)
        ]  # fmt: skip
        async with listening(mem0_api(memories, {}, skipped=skipped)) as port:
            source = ("--mem0-key", "m0-key", "--mem0-url", f"http://127.0.0.1:{port}")
            result = await run(*source, "--no-api-history")

        done = told(result)
        assert (done["memories"], done["missed"]) == (4 - skipped, skipped)
        assert ("Warning" in result.stderr) == bool(skipped)

    @pytest.mark.parametrize("missing", [0, 1])
    async def test_entities_that_the_pages_skipped_are_told(self, run: Run, missing: int) -> None:
        # Of two entities with one id; each counts.
        memories = [
            {"id": str(uuid4()), "memory": "A fact.", "user_id": "ana", "agent_id": "ana",
             "created_at": AT, "updated_at": AT}
        ]  # fmt: skip
        async with listening(mem0_api(memories, {}, uncounted=missing)) as port:
            source = ("--mem0-key", "m0-key", "--mem0-url", f"http://127.0.0.1:{port}")
            result = await run(*source, "--no-api-history")

        assert (told(result)["memories"], told(result)["missed"]) == (1, missing)
        assert ("Warning" in result.stderr) == bool(missing)

    async def test_an_api_that_cannot_count_is_read_all_the_same(
        self, run: Run, client: AsyncClient
    ) -> None:
        """What the answer has beside the metadata does not replace what is in it."""
        memory_id = str(uuid4())
        memory = {
            "id": memory_id, "memory": "A fact.", "user_id": "ana", "created_at": AT,
            "updated_at": AT, "role": "user", "actor_id": "a1", "metadata": {"role": "customer"},
        }  # fmt: skip
        async with listening(mem0_api([memory], {}, counts=False)) as port:
            source = ("--mem0-key", "m0-key", "--mem0-url", f"http://127.0.0.1:{port}")
            done = told(await run(*source, "--no-api-history"))

        assert done["inserted"]["memory"] == 1
        found = await stored(client, memory_id)
        assert found["metadata"] == {"role": "customer", "actor_id": "a1"}

    async def test_a_refused_key_is_told(self, run: Run) -> None:
        async with listening(mem0_api([], {})) as port:
            result = await run("--mem0-key", "wrong", "--mem0-url", f"http://127.0.0.1:{port}")
        assert "--mem0-key" in str(result.exception)


@pytest.mark.parametrize(("user", "taken"), [("张" * 64, True), ("张" * 65, False), ("a/b", False)])
async def test_a_user_that_can_be_none_is_refused_before_anything_is_read(
    run: Run, user: str, taken: bool
) -> None:
    result = await run("--postgres", "postgresql://127.0.0.1:9/none", "--user", user)

    assert ("--user must be" in result.stderr) == (not taken)
    assert (result.exit_code == 2) == (not taken)


async def test_without_a_source_the_sources_are_named(run: Run) -> None:
    result = await run()
    assert result.exit_code == 2
    for option in ("--mem0-key", "--postgres", "--history"):
        assert option in result.stderr


@pytest.mark.slow
async def test_what_mem0ai_wrote_into_pgvector_is_imported(
    run: Run, client: AsyncClient, postgres_dsn: str, tmp_path: Path
) -> None:
    interpreter = python("mem0ai-2.2.1-stores", "mem0ai==2.2.1", "psycopg[binary,pool]==3.2.13")
    history = tmp_path / "history.db"
    printed = await run_script(
        interpreter, SCRIPTS / "fill_stores.py", postgres_dsn, str(history), folder=tmp_path
    )
    ids = json.loads(printed)

    done = told(await run("--postgres", postgres_dsn, "--history", history), 1)

    assert done["refused"] == {"sensitive": 1}
    assert done["inserted"]["memory"] == 5
    assert (await stored(client, ids["tea"]))["metadata"] == {
        "topic": "tea",
        "n": 1,
        "role": "user",
    }
    moved = await stored(client, ids["moved"])
    assert (moved["content"], moved["session_id"]) == ("She lives in Lisbon.", "trip")
    assert [one["event"] for one in await changes(client, ids["moved"])] == ["ADD", "UPDATE"]
    assert (await stored(client, ids["agent"]))["scope"] == "agent"
    dated = await stored(client, ids["dated"])
    assert dated["create_time"].startswith("2023-05-04T03:02:01")
    assert dated["content"] == "Sie mag Käse. 她喜欢茶。"
    assert (await stored(client, ids["expiring"]))["expires_at"].startswith("2031-02-01")
    assert (await client.get(f"/memories/{own_id(ids['gone'])}")).status_code == 404
    again = told(await run("--postgres", postgres_dsn, "--history", history), 1)
    assert (again["inserted"], again["skipped"]) == ({}, {})
