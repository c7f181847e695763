"""Hot reads that are made side by side, each next one of all of them in one statement.

Two searches that each read, think and read again would take four round trips, and a statement costs
the process more than its text is long. Whoever reads asks as if it were alone: its statement
waits until all others have asked as well or have finished, and they are sent as one.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Final, Protocol, TypeVar

Row = Mapping[str, Any]
First = TypeVar("First")
Second = TypeVar("Second")
Read = TypeVar("Read")

_PARAMETER: Final = re.compile(r"\$(\d+)")


class HotReads(Protocol):
    """Who sends hot reads; `Database` sends each by itself."""

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Sequence[Any]:
        """As `Database.fetch` says; rows are read by the names of their columns."""
        ...


async def side_by_side(
    database: HotReads,
    first: Callable[[HotReads], Awaitable[First]],
    second: Callable[[HotReads], Awaitable[Second]],
) -> tuple[First, Second]:
    """What both return, each given a reader whose statements are sent with the other's.

    A statement of the one sees the same moment as the one that it was sent with. An error of a
    statement is raised to both who wait for it.
    """
    pair = _Pair(database)
    one = asyncio.ensure_future(pair.run(0, first))
    other = asyncio.ensure_future(pair.run(1, second))
    try:
        return await asyncio.gather(one, other)
    except BaseException:
        one.cancel()
        other.cancel()
        await asyncio.gather(one, other, return_exceptions=True)
        raise


@dataclass(frozen=True, slots=True)
class _Asked:
    """A statement that waits to be sent; the first's comes first, so that texts are few."""

    place: int
    tenant_id: str
    statement: str
    args: tuple[object, ...]
    rows: "asyncio.Future[Sequence[Any]]"


@dataclass(frozen=True, slots=True)
class _Reader:
    """One of the two, as it sees the pair."""

    pair: "_Pair"
    place: int

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Sequence[Any]:
        rows = asyncio.get_running_loop().create_future()
        return await self.pair.ask(_Asked(self.place, tenant_id, statement, args, rows))


class _Pair:
    """Two who read at a time."""

    def __init__(self, database: HotReads) -> None:
        self._database = database
        self._reading = 2
        self._waiting: list[_Asked] = []

    async def run(self, place: int, reads: Callable[[HotReads], Awaitable[Read]]) -> Read:
        try:
            return await reads(_Reader(self, place))
        finally:
            self._reading -= 1
            await self._send_complete()

    async def ask(self, asked: _Asked) -> Sequence[Any]:
        self._waiting.append(asked)
        await self._send_complete()
        return await asked.rows

    async def _send_complete(self) -> None:
        """Send what waits, if nobody else is still to ask; its errors are those of the askers."""
        if not self._waiting or len(self._waiting) < self._reading:
            return
        waiting = sorted(self._waiting, key=lambda asked: asked.place)
        self._waiting = []
        try:
            for asked, rows in zip(waiting, await self._sent(waiting), strict=True):
                if not asked.rows.done():
                    asked.rows.set_result(rows)
        except Exception as error:  # noqa: BLE001 (raised to those who ask)
            for asked in waiting:
                if not asked.rows.done():
                    asked.rows.set_exception(error)
        except BaseException:
            for asked in waiting:
                asked.rows.cancel()
            raise

    async def _sent(self, waiting: Sequence[_Asked]) -> Sequence[Sequence[Any]]:
        first, *others = waiting
        if not others:
            return [await self._database.fetch(first.tenant_id, first.statement, *first.args)]
        [second] = others
        if first.tenant_id != second.tenant_id:
            raise ValueError("statements of two tenants cannot be sent as one")
        text = joined(first.statement, second.statement, len(first.args))
        rows = await self._database.fetch(first.tenant_id, text, *first.args, *second.args)
        return _parted(rows)


@lru_cache(maxsize=512)
def joined(first: str, second: str, parameters: int) -> str:
    """One statement whose rows are those of the second, then those of the first.

    The column `is_first` parts the columns of the second, before it, from those of the first.

    Args:
        first, second: as `Database.fetch` takes them.
        parameters: of the first, without the tenant; those of the second are numbered behind them.

    """

    def renumbered(match: re.Match[str]) -> str:
        number = int(match[1])
        return f"${number if number == 1 else number + parameters}"

    # Fenced, so that each is planned as if it were sent alone.
    return (
        f"SELECT second.*, first.* FROM (SELECT true AS is_first, one.* FROM ({first}) AS one "
        f"OFFSET 0) AS first FULL JOIN (SELECT other.* FROM "
        f"({_PARAMETER.sub(renumbered, second)}) AS other OFFSET 0) AS second ON false"
    )


def _parted(rows: Sequence[Any]) -> tuple[Sequence[Any], Sequence[Row]]:
    """The rows of each of the two statements of `joined`."""
    if not rows:
        return (), ()
    names = list(rows[0].keys())
    marker = names.index("is_first")
    names = names[:marker]
    # Of a name that both have, a row knows the last.
    first = [row for row in rows if row[marker]]
    second = [dict(zip(names, row, strict=False)) for row in rows if not row[marker]]
    return first, second
