"""What the service says to PostgreSQL, as a socket between the two hears it."""

import asyncio
import contextlib
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit, urlunsplit

from pglast import ast
from pglast.enums import TransactionStmtKind as Kind

from app.platform.database.roles import TENANT_SETTING
from tests.support.statements import parsed, sets_tenant

_BEGINS = (Kind.TRANS_STMT_BEGIN, Kind.TRANS_STMT_START)
_ENDS = (Kind.TRANS_STMT_COMMIT, Kind.TRANS_STMT_ROLLBACK)


@dataclass(frozen=True)
class Sent:
    """One statement, and what the server knew when it came.

    Args:
        text: as it was sent.
        role: the role that the connection had taken, or "".
        tenant_known: whether the transaction had set its tenant before.

    """

    text: str
    role: str
    tenant_known: bool


class Transcript:
    """What was said on each connection, in order."""

    def __init__(self) -> None:
        self._spoken: list[list[str]] = []

    def connection(self) -> list[str]:
        """A place for what is said on a further connection."""
        self._spoken.append([])
        return self._spoken[-1]

    def sent(self) -> Counter[Sent]:
        """Every statement by how often it was sent."""
        sent: Counter[Sent] = Counter()
        for texts in self._spoken:
            sent.update(_understood(texts))
        return sent


def _understood(texts: Sequence[str]) -> Iterator[Sent]:
    """The statements of one connection, with its role and its transactions followed."""
    role, opened, tenant_known = "", False, False
    for text in texts:
        yield Sent(text, role, tenant_known)
        for statement in parsed(text):
            if isinstance(statement, ast.TransactionStmt):
                if statement.kind in _BEGINS:
                    opened, tenant_known = True, False
                elif statement.kind in _ENDS:
                    opened = tenant_known = False
            elif isinstance(statement, ast.VariableSetStmt) and statement.name == "role":
                role = statement.args[0].val.sval
            elif opened and sets_tenant(statement, TENANT_SETTING):
                tenant_known = True


class _Ear:
    """Takes one connection's messages apart; keeps the text of each statement that is run."""

    def __init__(self, said: list[str]) -> None:
        self._said = said
        self._prepared: dict[bytes, str] = {}
        self._rest = b""
        self._started = False

    def hear(self, data: bytes) -> None:
        """Take what the client sent; messages may come in parts."""
        self._rest += data
        if not self._started:
            # The first message has a length and no kind.
            length = int.from_bytes(self._rest[:4], "big")
            if len(self._rest) < max(length, 4):
                return
            self._rest, self._started = self._rest[length:], True
        while len(self._rest) >= 5:
            length = 1 + int.from_bytes(self._rest[1:5], "big")
            if len(self._rest) < length:
                return
            self._take(self._rest[:1], self._rest[5:length])
            self._rest = self._rest[length:]

    def _take(self, kind: bytes, body: bytes) -> None:
        if kind == b"Q":
            self._said.append(body[:-1].decode())
        elif kind == b"P":
            name, text, _ = body.split(b"\0", 2)
            self._prepared[name] = text.decode()
        elif kind == b"B":
            _, name, _ = body.split(b"\0", 2)
            self._said.append(self._prepared[name])


@asynccontextmanager
async def overheard(dsn: str) -> AsyncIterator[tuple[Transcript, str]]:
    """A socket before the server of `dsn`; yields what is said there and the way through it."""
    parts = urlsplit(dsn)
    options = parse_qs(parts.query)
    port = options["port"][0]
    target = f"{options['host'][0]}/.s.PGSQL.{port}"
    transcript = Transcript()
    pumps: set[asyncio.Task[None]] = set()

    async def pump(
        reader: asyncio.StreamReader, writer: asyncio.StreamWriter, ear: _Ear | None
    ) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                if ear is not None:
                    ear.hear(data)
                await writer.drain()
        writer.close()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        back, forth = await asyncio.open_unix_connection(target)
        for way in (pump(reader, forth, _Ear(transcript.connection())), pump(back, writer, None)):
            task = asyncio.create_task(way)
            pumps.add(task)
            task.add_done_callback(pumps.discard)

    with tempfile.TemporaryDirectory(prefix="kemem-wire-", dir="/tmp") as folder:
        server = await asyncio.start_unix_server(connected, str(Path(folder) / f".s.PGSQL.{port}"))
        query = f"host={quote(folder, safe='')}&port={port}"
        try:
            yield transcript, urlunsplit(parts._replace(query=query))
        finally:
            server.close()
            await asyncio.gather(*pumps, return_exceptions=True)
            await server.wait_closed()
