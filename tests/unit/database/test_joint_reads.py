"""Statements of two who read side by side are sent as one."""

import asyncio
from collections.abc import Sequence

import pytest

from app.platform.database.joint_reads import HotReads, joined, side_by_side
from tests.support.patience import PATIENCE

TENANT = "acme"


class Recorded:
    """Answers every statement with rows that say what it was sent with; keeps all of them."""

    def __init__(self, *rows: Sequence[dict[str, object]] | Exception) -> None:
        self.sent: list[tuple[str, tuple[object, ...]]] = []
        self._rows = list(rows)

    async def fetch(self, tenant_id: str, statement: str, *args: object) -> Sequence[object]:
        assert tenant_id == TENANT
        self.sent.append((statement, args))
        await asyncio.sleep(0)
        rows = self._rows.pop(0)
        if isinstance(rows, Exception):
            raise rows
        return [Row(row) for row in rows]


class Row(dict[str, object]):
    """A row as the driver gives it: values in order when it is iterated, and by their names."""

    def __iter__(self):
        return iter(self.values())

    def __getitem__(self, key):
        return list(self.values())[key] if isinstance(key, int) else super().__getitem__(key)


def asks(*statements: tuple[str, tuple[object, ...]]):
    async def run(reads: HotReads) -> list[Sequence[object]]:
        return [await reads.fetch(TENANT, text, *args) for text, args in statements]

    return run


async def test_what_both_ask_for_next_is_one_statement() -> None:
    both = [
        {"theirs": None, "is_first": True, "mine": 1},
        {"theirs": 2, "is_first": None, "mine": None},
    ]
    database = Recorded(both, both)

    mine, theirs = await side_by_side(
        database, asks(("SELECT $2", ("a",)), ("SELECT $2", ("b",))),
        asks(("SELECT $1, $2", ("c",)), ("SELECT $2", ("d",))),
    )  # fmt: skip

    assert [args for _, args in database.sent] == [("a", "c"), ("b", "d")]
    assert [[row["mine"] for row in rows] for rows in mine] == [[1], [1]]
    assert theirs == [[{"theirs": 2}], [{"theirs": 2}]]


async def test_who_asks_for_more_than_the_other_goes_on_alone() -> None:
    both = [{"theirs": 2, "is_first": None, "mine": None}]
    alone = [{"mine": 3}]
    database = Recorded(both, alone, alone)

    mine, _ = await side_by_side(
        database,
        asks(("SELECT 1", ()), ("SELECT 2", ()), ("SELECT 3", ("x",))),
        asks(("SELECT 4", ())),
    )

    assert [len(rows) for rows in mine] == [0, 1, 1]
    assert database.sent[1:] == [("SELECT 2", ()), ("SELECT 3", ("x",))]


async def test_who_asks_for_nothing_keeps_nobody_waiting() -> None:
    database = Recorded([{"mine": 3}])

    mine, nothing = await side_by_side(database, asks(("SELECT 1", ())), asks())

    assert (mine, nothing) == ([[{"mine": 3}]], [])
    assert database.sent == [("SELECT 1", ())]


async def test_error_of_a_statement_reaches_both() -> None:
    raised = []

    def failing(reads_statement: str):
        async def run(reads: HotReads) -> None:
            try:
                await reads.fetch(TENANT, reads_statement)
            except ConnectionError as error:
                raised.append(error)
                raise

        return run

    with pytest.raises(ConnectionError):
        await side_by_side(Recorded(ConnectionError()), failing("SELECT 1"), failing("SELECT 2"))
    await asyncio.sleep(0)

    assert len(raised) == 2


async def test_one_who_fails_does_not_keep_the_other_waiting() -> None:
    read = asyncio.Event()

    async def fails(_reads: HotReads) -> None:
        raise KeyError

    async def reads_on(reads: HotReads) -> None:
        await reads.fetch(TENANT, "SELECT 1")
        read.set()

    with pytest.raises(KeyError):
        await side_by_side(Recorded([{"mine": 3}]), reads_on, fails)
    async with asyncio.timeout(PATIENCE):
        await read.wait()


async def test_two_tenants_are_never_in_one_statement() -> None:
    async def of_another(reads: HotReads) -> None:
        await reads.fetch("other", "SELECT 2")

    with pytest.raises(ValueError, match="two tenants"):
        await side_by_side(Recorded(), asks(("SELECT 1", ())), of_another)


def test_parameters_of_the_second_stand_behind_those_of_the_first() -> None:
    text = joined("SELECT $1, $2, $11", "SELECT $1, $2, $12", 10)

    assert "SELECT $1, $2, $11" in text
    assert "SELECT $1, $12, $22" in text


async def test_one_that_fails_ends_the_other() -> None:
    begun, ended = asyncio.Event(), asyncio.Event()

    async def fail(_reads: HotReads) -> None:
        await begun.wait()
        raise LookupError

    async def wait(_reads: HotReads) -> None:
        begun.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    with pytest.raises(LookupError):
        await side_by_side(Recorded(), fail, wait)
    assert ended.is_set()
