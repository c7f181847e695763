"""Packed records: what PostgreSQL writes is what numpy reads, type by type."""

import math
from datetime import UTC, datetime

import asyncpg
import numpy as np
import pytest

from app.language.ranking.packing import any_of, stored_terms
from app.language.ranking.records import (
    EPOCH_2000,
    NO_TIME,
    Column,
    Records,
    id_hash_sql,
    product_sql,
    read_records,
    record_sql,
    seconds,
    text_columns,
)


async def packed(dsn: str, columns: list[Column], rows: str = "generate_series(1, 1) AS n"):
    """The records of some rows, as a search asks for them."""
    connection = await asyncpg.connect(dsn)
    try:
        found = await connection.fetchval(
            f"SELECT string_agg({record_sql(columns)}, '') FROM {rows}"
        )
    finally:
        await connection.close()
    return read_records(found, columns)


async def read_back(dsn: str, sql_type: str, expression: str) -> Records:
    return (await packed(dsn, [Column("one", sql_type, expression)]))["one"][0]


class TestTypes:
    @pytest.mark.parametrize(
        ("sql_type", "expression", "expected"),
        [
            ("float4", "CAST(-1.5 AS float4)", -1.5),
            ("float4", "CAST(16777215 AS float4)", 16777215.0),
            ("float4", "CAST('Infinity' AS float4)", math.inf),
            ("int2", "CAST(-32768 AS int2)", -32768),
            ("int2", "CAST(32767 AS int2)", 32767),
            ("int8", "CAST(-9223372036854775808 AS int8)", -(2**63)),
            ("int8", "CAST(9223372036854775807 AS int8)", 2**63 - 1),
            ("bool", "true", True),
            ("bool", "false", False),
            ("timestamptz", "CAST('2000-01-01T00:00:00.000001Z' AS timestamptz)", 1),
            ("timestamptz", "CAST('1999-12-31T23:59:59Z' AS timestamptz)", -1_000_000),
            ("timestamptz", "CAST('-infinity' AS timestamptz)", NO_TIME),
        ],
    )
    async def test_a_value_comes_back(
        self, postgres_dsn: str, sql_type: str, expression: str, expected: object
    ) -> None:
        assert await read_back(postgres_dsn, sql_type, expression) == expected

    async def test_no_number_comes_back_as_none(self, postgres_dsn: str) -> None:
        found = await read_back(postgres_dsn, "float4", "CAST('NaN' AS float4)")

        assert math.isnan(found)

    async def test_a_condition_that_is_null_is_not_met(self, postgres_dsn: str) -> None:
        columns = [
            Column("met", "bool", "n > NULL OR n = 2"),
            Column("number", "int8", "CAST(n AS int8)"),
        ]

        rows = await packed(postgres_dsn, columns, "generate_series(1, 3) AS n")

        assert rows["met"].tolist() == [False, True, False]
        assert rows["number"].tolist() == [1, 2, 3]

    async def test_a_record_has_every_type_side_by_side(self, postgres_dsn: str) -> None:
        columns = [
            Column("yes", "bool", "n % 2 = 0"),
            Column("small", "int2", "CAST(n AS int2)"),
            Column("part", "float4", "CAST(n / 4.0 AS float4)"),
            Column("big", "int8", "CAST(n AS int8) * 10000000000"),
            Column("at", "timestamptz", "to_timestamp(n)"),
            Column("no", "bool", "n % 2 = 1"),
        ]

        rows = await packed(postgres_dsn, columns, "generate_series(1, 1000) AS n")

        numbers = np.arange(1, 1001)
        assert rows["yes"].tolist() == (numbers % 2 == 0).tolist()
        assert rows["no"].tolist() == (numbers % 2 == 1).tolist()
        assert rows["small"].tolist() == numbers.tolist()
        assert rows["part"].tolist() == (numbers / 4).tolist()
        assert rows["big"].tolist() == (numbers * 10**10).tolist()
        assert seconds(rows["at"].astype(np.int64)).tolist() == numbers.tolist()

    async def test_no_rows_are_no_records(self, postgres_dsn: str) -> None:
        columns = [Column("one", "int8", "CAST(n AS int8)")]

        assert len(await packed(postgres_dsn, columns, "generate_series(1, 0) AS n")) == 0
        assert len(read_records(b"", columns)) == 0


class TestTimes:
    def test_times_are_seconds_of_the_epoch_or_none(self) -> None:
        moment = datetime(2023, 5, 8, 13, 56, 1, 500_000, tzinfo=UTC)
        wire = int((moment.timestamp() - EPOCH_2000) * 1e6)

        found = seconds(np.array([wire, NO_TIME, 0], np.int64))

        assert found[[0, 2]].tolist() == [moment.timestamp(), EPOCH_2000]
        assert math.isnan(found[1])


class TestExpressions:
    async def test_a_row_nobody_has_analysed_says_nothing(self, postgres_dsn: str) -> None:
        rows = """(SELECT CAST(NULL AS sparsevec) AS terms, CAST(NULL AS int2) AS term_count,
            CAST(NULL AS int2) AS word_count, CAST(NULL AS bool) AS is_question,
            CAST(NULL AS bool) AS has_time) AS said"""
        asked = any_of(["a"]).to_text()
        columns = [
            *text_columns("said"),
            Column("found", "float4", product_sql("said.terms", f"CAST('{asked}' AS sparsevec)")),
            Column("session", "int8", id_hash_sql("CAST(NULL AS text)")),
        ]

        [row] = await packed(postgres_dsn, columns, rows)

        assert row.tolist() == (0, 0, False, False, 0.0, 0)

    async def test_what_the_analyser_said_is_read(self, postgres_dsn: str) -> None:
        vector = stored_terms(["a", "a", "b"], marks=["c"]).vector.to_text()
        rows = f"""(SELECT CAST('{vector}' AS sparsevec) AS terms, CAST(3 AS int2) AS term_count,
            CAST(7 AS int2) AS word_count, true AS is_question, true AS has_time) AS said"""
        asked = any_of(["a", "c", "d"]).to_text()
        columns = [
            *text_columns("said"),
            Column("found", "float4", product_sql("said.terms", f"CAST('{asked}' AS sparsevec)")),
        ]

        [row] = await packed(postgres_dsn, columns, rows)

        assert row.tolist() == (3, 7, True, True, 3.0)

    async def test_an_id_has_one_number_and_another_id_another(self, postgres_dsn: str) -> None:
        ids = [await read_back(postgres_dsn, "int8", id_hash_sql(f"'{one}'")) for one in "aab茶"]

        assert ids[0] == ids[1]
        assert len(set(ids)) == 3
        assert 0 not in ids
