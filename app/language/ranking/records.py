"""What a search learns of every row of a bucket: the SQL that asks for it, and the records it
comes in.

Rows as such would cost a microsecond or two each in the driver and again in numpy. Packed by
PostgreSQL into records of a fixed layout, they are one string of bytes and are read all at once.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from app.language.ranking.query import ParsedQuery
from app.platform.database.base import ids_array, joined_ids

# How PostgreSQL writes each type, and how numpy reads it; times are microseconds since 2000.
_WIRE: Final[Mapping[str, tuple[str, str]]] = {
    "float4": ("float4send", ">f4"),
    "float8": ("float8send", ">f8"),
    "int2": ("int2send", ">i2"),
    "int8": ("int8send", ">i8"),
    "timestamptz": ("timestamptz_send", ">i8"),
    "bool": ("boolsend", "?"),
}

EPOCH_2000: Final = 946_684_800
NO_TIME: Final = np.iinfo(np.int64).min
"""What `-infinity` is on the wire."""

Records = npt.NDArray[np.void]


@dataclass(frozen=True, slots=True)
class Column:
    """One field of a record: its name, its type, and SQL that is never null.

    A condition may be null, as those of filters are where there is nothing to compare, and is
    not met then.
    """

    name: str
    sql_type: str
    expression: str


def text_columns(words: str) -> list[Column]:
    """What the analyser says of a row.

    Args:
        words: the table, or its alias, that has the columns of `database/base.py`.

    """
    return [
        Column("length", "int2", f"coalesce({words}.term_count, CAST(0 AS int2))"),
        Column("words", "int2", f"coalesce({words}.word_count, CAST(0 AS int2))"),
        Column("question", "bool", f"coalesce({words}.is_question, false)"),
        Column("timed", "bool", f"coalesce({words}.has_time, false)"),
    ]


def product_sql(terms: str, vector: str) -> str:
    """SQL for the inner product of a row's terms with a sparse vector; 0 without terms."""
    return f"CAST(coalesce(-({terms} <#> {vector}), 0) AS float4)"


def id_hash_sql(expression: str) -> str:
    """SQL for an id as a number; 0 for none."""
    return f"coalesce(hashtextextended({expression}, 0), CAST(0 AS int8))"


def record_sql(columns: Sequence[Column]) -> str:
    """SQL for a row as one record."""
    # A null would take the whole record with it.
    return " || ".join(
        f"boolsend(({column.expression}) IS TRUE)"
        if column.sql_type == "bool"
        else f"{_WIRE[column.sql_type][0]}({column.expression})"
        for column in columns
    )


def read_records(packed: bytes | None, columns: Sequence[Column]) -> Records:
    """The records, one per row, in the order of the rows."""
    layout = np.dtype([(column.name, _WIRE[column.sql_type][1]) for column in columns])
    return np.frombuffer(packed or b"", dtype=layout)


def seconds(times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Times as seconds since 1970; not a number where there is none."""
    since = times / 1e6 + EPOCH_2000
    since[times == NO_TIME] = np.nan
    return since


class SearchStatement:
    """SQL text and its values; `$1` is the tenant, which the frame around it sets."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def bind(self, value: object, sql_type: str) -> str:
        """Add a value; gives the SQL that stands for it."""
        self.values.append(value)
        return f"CAST(${len(self.values) + 1} AS {sql_type})"

    def bind_ids(self, ids: Iterable[str]) -> str:
        """Add ids; gives the SQL of their array."""
        self.values.append(joined_ids(ids))
        return ids_array(f"${len(self.values) + 1}")


def inner_product(
    vectors: Mapping[str, Any], statement: SearchStatement, *, model: str, vector: str
) -> str:
    """SQL for the cosine of a row and a query; null where nothing can be compared.

    Stored and query vectors are unit vectors, so their cosine is their inner product; vectors
    of different models are never compared.

    Args:
        vectors: of the query, by model.
        statement: takes them as its values.
        model: SQL for what made the row's vector.
        vector: SQL for that.

    """
    if not vectors:
        return "CAST(NULL AS float8)"
    cases = " ".join(
        f"WHEN {statement.bind(name, 'text')} THEN "
        f"-({vector} <#> {statement.bind(value, 'vector')})"
        for name, value in vectors.items()
    )
    return f"CASE {model} {cases} END"


def query_columns(
    asked: ParsedQuery,
    statement: SearchStatement,
    *,
    similarity: str,
    ranked_similarity: str,
    words: str,
) -> list[Column]:
    """What the ranking wants to know of a row for a query, and what the row's text is.

    Args:
        asked: what is asked.
        statement: takes its words as values.
        similarity: SQL for the cosine of the row and the query as it stands, null where nothing
            can be compared.
        ranked_similarity: the same for the query as it is ranked.
        words: the table, or its alias, that has the columns of `database/base.py`.

    """
    terms = f"{words}.terms"
    return [
        Column("similarity", "float4", _number(similarity)),
        Column("ranked_similarity", "float4", _number(ranked_similarity)),
        *product_columns(asked, statement, terms=terms),
        Column("named", "float4", product_sql(terms, statement.bind(asked.marks, "sparsevec"))),
        *text_columns(words),
    ]


def product_columns(asked: ParsedQuery, statement: SearchStatement, *, terms: str) -> list[Column]:
    """The products that tell how often a row has each term of a query (`packing.frequencies`).

    Args:
        asked: what is asked.
        statement: takes its terms as values.
        terms: SQL for the row's terms.

    """
    return [
        Column(
            f"product_{number}", "float4", product_sql(terms, statement.bind(vector, "sparsevec"))
        )
        for number, vector in enumerate(asked.packed.vectors)
    ]


def _number(cosine: str) -> str:
    return f"CAST(coalesce({cosine}, 'NaN') AS float4)"
