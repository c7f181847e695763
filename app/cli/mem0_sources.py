"""Where mem0's memories are read from: its hosted API, a table of pgvector, a history file."""

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any, Final

import asyncpg
import httpx

from app.cli.mem0_records import (
    OWNERS,
    Change,
    MemoryRecord,
    UnreadableRecordError,
    change_of,
    from_answer,
    from_history,
    from_payload,
)
from app.errors import ConfigurationError

PAGE: Final = 100
TRIES: Final = 5
_PASSING: Final = {429, 502, 503, 504}


@dataclass(slots=True)
class SourceContents:
    """What a source has: memories one by one, and what could not be read of it."""

    memories: Iterator[MemoryRecord]
    total: int | None = None
    unreadable: list[str] = field(default_factory=list)
    """Ids, each with the reason."""
    missed: int = 0
    """Memories and entities that the API counted and did not give: it was written to meanwhile."""
    deleted: int = 0
    """Memories of which a history file has only the past."""

    @contextmanager
    def reading(self, record_id: str) -> Iterator[None]:
        """A record that cannot be read is a line in `unreadable`."""
        try:
            yield
        except UnreadableRecordError as error:
            self.unreadable.append(f"{record_id[:64]}: {error}")


class HistoryFile:
    """mem0's `history.db`, opened for reading."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def of(self, memory_id: str) -> tuple[Change, ...]:
        """The changes of a memory. Raises UnreadableRecordError."""
        rows = self._connection.execute(
            "SELECT * FROM history WHERE memory_id = ? ORDER BY rowid", (memory_id,)
        )
        return tuple(change for row in rows if (change := change_of(dict(row))) is not None)

    def memories(self) -> SourceContents:
        """Every memory as its history tells it: without owner and metadata."""
        [total] = self._connection.execute("SELECT count(DISTINCT memory_id) FROM history")
        found = SourceContents(iter(()), total[0])
        found.memories = self._each(found)
        return found

    def _each(self, found: SourceContents) -> Iterator[MemoryRecord]:
        ids = self._connection.execute("SELECT DISTINCT memory_id FROM history ORDER BY memory_id")
        for (memory_id,) in ids.fetchall():
            with found.reading(memory_id):
                history = tuple(sorted(self.of(memory_id), key=lambda change: change.time))
                remembered = from_history(history) if history else None
                if remembered is None:
                    found.deleted += 1
                else:
                    yield remembered


@contextmanager
def history_file(path: Path) -> Iterator[HistoryFile]:
    """Raises ConfigurationError when the file is no history of mem0."""
    uri = f"{path.absolute().as_uri()}?mode=ro"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            connection.row_factory = sqlite3.Row
            columns = {row["name"] for row in connection.execute("PRAGMA table_info(history)")}
            missing = {"id", "memory_id", "old_memory", "new_memory", "event"} - columns
            if missing:
                raise ConfigurationError(
                    f"{path} is no history of mem0: its table `history` lacks "
                    f"{', '.join(sorted(missing))}. mem0 keeps it as ~/.mem0/history.db."
                )
            yield HistoryFile(connection)
    except sqlite3.DatabaseError as error:
        raise ConfigurationError(
            f"{path} cannot be read as SQLite ({error}): give mem0's history.db."
        ) from error


def no_history(_memory_id: str) -> tuple[Change, ...]:
    """Of a source that is read without one."""
    return ()


@contextmanager
def postgres_table(
    dsn: str, table: str, history: Callable[[str], tuple[Change, ...]]
) -> Iterator[SourceContents]:
    """The memories of a table that mem0's store for pgvector wrote, all of one moment.

    Raises:
        ConfigurationError: the database cannot be reached, or has no such table.

    """
    with asyncio.Runner() as runner:
        connection = runner.run(_connect(dsn))
        try:
            runner.run(connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"))
            name = runner.run(_quoted(connection, table))
            total = runner.run(connection.fetchval(f"SELECT count(*) FROM {name}"))
            found = SourceContents(iter(()), total)
            found.memories = _of_rows(found, _pages(runner, connection, name), history)
            yield found
        finally:
            runner.run(connection.close())


def _of_rows(
    found: SourceContents,
    rows: Iterable[tuple[str, str]],
    history: Callable[[str], tuple[Change, ...]],
) -> Iterator[MemoryRecord]:
    for record_id, payload in rows:
        with found.reading(record_id):
            yield from_payload(record_id, json.loads(payload), history(record_id))


def _pages(
    runner: asyncio.Runner, connection: asyncpg.Connection, name: str
) -> Iterator[tuple[str, str]]:
    last = ""
    query = (
        'SELECT * FROM (SELECT CAST(id AS text) COLLATE "C" AS id, '
        f"COALESCE(CAST(payload AS text), '{{}}') AS payload FROM {name}) AS rows "
        "WHERE id > $1 ORDER BY id LIMIT $2"
    )
    while rows := runner.run(connection.fetch(query, last, 10 * PAGE)):
        for row in rows:
            yield row["id"], row["payload"]
        last = rows[-1]["id"]


async def _connect(dsn: str) -> asyncpg.Connection:
    try:
        return await asyncpg.connect(dsn, timeout=30)
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        raise ConfigurationError(
            f"mem0's database cannot be opened ({type(error).__name__}): check --postgres, such "
            "as postgresql://user:password@host:5432/postgres."
        ) from error


async def _quoted(connection: asyncpg.Connection, table: str) -> str:
    """The name of a table as it stands in a statement. Raises ConfigurationError."""
    rows = await connection.fetch(
        "SELECT format('%I.%I', table_schema, table_name) AS quoted, table_name, "
        "table_schema || '.' || table_name AS whole FROM information_schema.columns "
        "WHERE column_name IN ('id', 'payload') AND table_schema NOT IN "
        "('pg_catalog', 'information_schema') "
        "GROUP BY table_schema, table_name HAVING count(*) = 2 ORDER BY table_schema, table_name"
    )
    named = [row["quoted"] for row in rows if table in {row["table_name"], row["whole"]}]
    if len(named) == 1:
        return str(named[0])
    others = ", ".join(row["whole"] for row in rows[:10]) or "none"
    what = "several tables" if named else "no table"
    raise ConfigurationError(
        f"There is {what} {table} with columns id and payload in mem0's database. Name it with "
        f"--table (mem0's collection_name); tables with these columns: {others}."
    )


class Mem0Api:
    """mem0's hosted API, read over HTTP."""

    def __init__(self, url: str, key: str) -> None:
        self._client = httpx.Client(
            base_url=url.rstrip("/"), headers={"Authorization": f"Token {key}"}, timeout=60
        )

    def close(self) -> None:
        """Close the connections."""
        self._client.close()

    def memories(self, *, history: bool) -> SourceContents:
        """Every memory that the key may see, once; with `history` one more request for each.

        Raises:
            ConfigurationError: what the API refuses, and what to do.

        """
        found = SourceContents(iter(()), self._count())
        found.memories = self._each(found, history=history)
        return found

    def _count(self) -> int | None:
        """How many memories there are, for a bar; None where the API cannot tell."""
        body = {"filters": {"OR": [{name: "*"} for name in OWNERS]}, "show_expired": True}
        try:
            answer = self._answer("POST", "/v3/memories/", body, {"page": 1, "page_size": 1})
        except ConfigurationError:
            # If it answers nothing else either, the first request for memories says so.
            return None
        return answer.get("count") if isinstance(answer, Mapping) else None

    def _each(self, found: SourceContents, *, history: bool) -> Iterator[MemoryRecord]:
        seen: set[str] = set()
        for kind, name in self._entities(found):
            filters = {f"{kind}_id": name}
            body = {"filters": filters, "show_expired": True}
            for item in self._paged("POST", "/v3/memories/", body, found):
                record_id = str(item.get("id"))
                if record_id in seen:
                    continue
                seen.add(record_id)
                with found.reading(record_id):
                    yield from_answer(item, self._history(record_id) if history else ())

    def _entities(self, found: SourceContents) -> Iterator[tuple[str, str]]:
        for item in self._paged("GET", "/v1/entities/", None, found):
            yield str(item.get("type")), str(item.get("name"))

    def _history(self, memory_id: str) -> tuple[Change, ...]:
        rows = self._answer("GET", f"/v1/memories/{memory_id}/history/")
        return tuple(change for row in rows or () if (change := change_of(row)) is not None)

    def _paged(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None,
        found: SourceContents,
    ) -> Iterator[Mapping[str, Any]]:
        """What is on all pages; in `found`, how many of those that are counted did not come."""
        page = 1
        given: set[tuple[str, str]] = set()
        while True:
            answer = self._answer(method, path, body, params={"page": page, "page_size": PAGE})
            # Older versions answer everything as a list.
            results = answer if isinstance(answer, list) else answer.get("results", [])
            for item in results:
                # Entities of different types may have the same id.
                given.add((str(item.get("type")), str(item.get("id"))))
                yield item
            if isinstance(answer, list):
                return
            if not results or not answer.get("next"):
                found.missed += max(0, int(answer.get("count") or 0) - len(given))
                return
            page += 1

    def _answer(
        self,
        method: str,
        path: str,
        body: Mapping[str, Any] | None = None,
        params: Mapping[str, int] | None = None,
    ) -> Any:
        for attempt in range(1, TRIES + 1):
            try:
                response = self._client.request(method, path, json=body, params=params)
            except httpx.HTTPError as error:
                if attempt == TRIES or isinstance(error, httpx.UnsupportedProtocol):
                    raise _unreachable(self._client.base_url, type(error).__name__) from error
            else:
                if response.status_code not in _PASSING or attempt == TRIES:
                    return _read(response)
                wait = response.headers.get("Retry-After", "")
                sleep(min(int(wait), 60) if wait.isdecimal() else 2**attempt)
        raise AssertionError  # The last try returns or raises.


def _read(response: httpx.Response) -> Any:
    """Raises ConfigurationError."""
    if response.status_code in {401, 403}:
        raise ConfigurationError(
            f"mem0 refuses the key ({response.status_code}): give a valid one with --mem0-key, or "
            "in MEM0_API_KEY."
        )
    path = response.request.url.path
    if response.is_success:
        try:
            return response.json()
        except ValueError:
            pass
    raise ConfigurationError(
        f"mem0 answers {response.status_code} for {path}: check --mem0-url, which is "
        "https://api.mem0.ai for the hosted service. Run the command again to go on."
    )


def _unreachable(url: httpx.URL, why: str) -> ConfigurationError:
    return ConfigurationError(
        f"mem0 does not answer at {url} ({why}): check --mem0-url and the network, and run the "
        "command again; it goes on where it was."
    )
