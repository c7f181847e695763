"""Terms as sparse vectors: what PostgreSQL's products say is what stood in the text."""

import random
from collections import Counter

import asyncpg
import numpy as np
from pgvector import SparseVector

from app.language.ranking.packing import (
    DIMENSION,
    MOST_OFTEN,
    MOST_TERMS,
    frequencies,
    packed_query,
    stored_terms,
)


def words(number: int, prefix: str = "w") -> list[str]:
    return [f"{prefix}{one}" for one in range(number)]


class TestPostgres:
    """What pgvector itself answers."""

    async def test_products_have_exact_digits(self, postgres_dsn: str) -> None:
        seed = random.Random(4)
        vocabulary = words(200)
        texts = [
            [term for term in seed.sample(vocabulary, 60) for _ in range(seed.randint(1, 20))]
            for _ in range(20)
        ]
        texts += [[], vocabulary * MOST_OFTEN, words(MOST_TERMS, "other")]
        packed = packed_query(vocabulary)

        connection = await asyncpg.connect(postgres_dsn)
        try:
            rows = [
                await connection.fetchrow(
                    "SELECT array_agg(CAST(-(CAST($1::text AS sparsevec) "
                    "<#> CAST(one AS sparsevec)) AS float4) ORDER BY place) AS products "
                    "FROM unnest($2::text[]) WITH ORDINALITY AS asked(one, place)",
                    stored_terms(text).vector.to_text(),
                    [one.to_text() for one in packed.vectors],
                )
                for text in texts
            ]
        finally:
            await connection.close()

        found = frequencies(
            np.array([row["products"] for row in rows], np.float32), len(packed.terms)
        )
        expected = [[min(Counter(text)[term], MOST_OFTEN) for term in vocabulary] for text in texts]
        assert found.tolist() == expected

    async def test_the_largest_text_and_the_last_key_are_stored(self, postgres_dsn: str) -> None:
        largest = stored_terms(words(MOST_TERMS), marks=words(1_000, "mark")).vector
        last = SparseVector({0: 1.0, DIMENSION - 1: 2.0}, DIMENSION)

        connection = await asyncpg.connect(postgres_dsn)
        try:
            for vector in (largest, last, stored_terms([]).vector):
                back = await connection.fetchval(
                    "SELECT CAST(CAST($1::text AS sparsevec) AS text)", vector.to_text()
                )
                assert SparseVector.from_text(back) == vector
        finally:
            await connection.close()
