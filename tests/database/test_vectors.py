"""Vectors that the driver sends in binary, and those that SQLAlchemy has written as text."""

import numpy as np
import pytest
from pgvector import SparseVector

from app.platform.database.base import vector_bytes, vector_text
from app.platform.database.engine import driver_of, open_database
from tests.support.databases import served

NUMBERS = [0.25, -1.5, 3.0]
TERMS = SparseVector({3: 2.0, 999_999_999: 15.0}, 1_000_000_000)


@pytest.mark.parametrize("numbers", [NUMBERS, np.array(NUMBERS), np.array(NUMBERS, np.float32)])
async def test_vector_arrives_in_binary_as_it_does_as_text(dsn: str, numbers: object) -> None:
    asked = "SELECT CAST(vector AS text) FROM unnest(CAST($1 AS vector[])) AS vector"
    async with open_database(served(dsn), pool_size=1) as database, database.begin("t") as db:
        rows = await (await driver_of(db)).fetch(
            asked, [vector_bytes(numbers), vector_text(numbers), None]
        )

    assert [row[0] for row in rows] == ["[0.25,-1.5,3]"] * 2 + [None]


async def test_terms_arrive_in_binary_as_they_do_as_text(dsn: str) -> None:
    asked = "SELECT unnest(CAST($1 AS sparsevec[]))"
    async with open_database(served(dsn), pool_size=1) as database, database.begin("t") as db:
        rows = await (await driver_of(db)).fetch(asked, [TERMS.to_binary(), TERMS.to_text(), None])

    assert [row[0] for row in rows] == [TERMS, TERMS, None]
