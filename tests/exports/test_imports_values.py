"""Whatever stands in a column of a line, the answer says what is wrong with it: never a crash."""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.governance.exports.scope_sql import NOUNS, TABLE_OF, columns_of
from app.runtime import Runtime
from tests.exports.exports_support import exported, rows_in, send, with_row
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.world import build_world

VALUES: list[Any] = [
    None, True, -1, 2**62, 10**400, 1.5, 1e308, "", "x" * 300, "a\x00b", "nonsense", "[1,5)", "{}",
    "9999-12-31T23:59:59+00:00", "0001-01-01T00:00:00+14:00", "infinity", "AAAA", "1011",
    [], [None], ["a\x00b"], [["a"]], [1e300], [0.5] * 17_000, {}, {"a": "b\x00c"}, {"a": [None]},
]  # fmt: skip
EACH = 1
"""Values that a column is tried with; raise it to look further."""


@pytest.fixture(scope="module")
async def lines(app: FastAPI, runtime: Runtime) -> list[bytes]:
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as client:
        await build_world(runtime, client, owner)
        return await exported(client)


@pytest.mark.parametrize(
    "noun",
    [
        noun if noun == "memory" else pytest.param(noun, marks=pytest.mark.slow)
        for noun in NOUNS.values()
    ],
)
async def test_any_value_is_taken_or_refused(
    stranger: AsyncClient, lines: list[bytes], noun: str
) -> None:
    """Its parents are there; with `skip` a row that is not new is no reason to refuse it."""
    assert noun in {row["type"] for row in rows_in(lines)}
    before = [one for one in lines[1:-1] if f'"type":"{noun}"'.encode() not in one]
    shift = list(NOUNS.values()).index(noun)
    await send(stranger, [lines[0], *before], on_conflict="skip")
    for number, column in enumerate(columns_of(TABLE_OF[noun])):
        for further in range(EACH):
            value = VALUES[(shift * 7 + number * EACH + further) % len(VALUES)]
            changed = with_row(noun, lines, **{column.name: value})

            answer = await send(stranger, changed, on_conflict="skip", restore_erased=True)

            told = (column.name, str(value)[:40], answer.text[:300])
            assert answer.status_code in {200, 409, 422}, told
            if answer.status_code == 422:
                assert answer.json()["code"] == "invalid_import", told
                assert answer.json()["errors"][0]["location"][:2] == ["body", "2"], told


@pytest.mark.parametrize(
    ("texts", "taken"),
    [
        (["張" * 10 + "x" * 2] * 32, True), (["x" * 33, *["x" * 32] * 31], False),
        ([""] * 32, True), ([""] * 33, False), (["張" * 341 + "x"], True), (["張" * 342], False),
    ],
)  # fmt: skip
async def test_codes_of_a_verdict_are_as_long_as_an_index_holds(
    stranger: AsyncClient, lines: list[bytes], texts: list[str], taken: bool
) -> None:
    answer = await send(stranger, with_row("decision", lines, codes=texts), on_conflict="skip")

    assert answer.status_code == (200 if taken else 422), answer.text
    if not taken:
        [fault] = answer.json()["errors"]
        assert fault["detail"].endswith("must have at most 32 texts, of 1024 bytes in all")
