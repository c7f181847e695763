"""What a search learns of every row of a bucket, as one string of bytes.

Rows as such would cost a microsecond or two each in the driver and again in numpy. Packed by
PostgreSQL into records of a fixed layout, they are read by numpy all at once.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

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
        words: the table, or its alias, that has the columns of `database/searched.py`.

    """
    return [
        Column("length", "int2", f"coalesce({words}.term_count, CAST(0 AS int2))"),
        Column("words", "int2", f"coalesce({words}.word_count, CAST(0 AS int2))"),
        Column("question", "bool", f"coalesce({words}.is_question, false)"),
        Column("timed", "bool", f"coalesce({words}.has_time, false)"),
    ]


def product(terms: str, vector: str) -> str:
    """SQL for the inner product of a row's terms with a sparse vector; 0 without terms."""
    return f"CAST(coalesce(-({terms} <#> {vector}), 0) AS float4)"


def id_hash(expression: str) -> str:
    """SQL for an id as a number; 0 for none."""
    return f"coalesce(hashtextextended({expression}, 0), CAST(0 AS int8))"


def record(columns: Sequence[Column]) -> str:
    """SQL for a row as one record."""
    # A null would take the whole record with it.
    return " || ".join(
        f"boolsend(({one.expression}) IS TRUE)"
        if one.sql_type == "bool"
        else f"{_WIRE[one.sql_type][0]}({one.expression})"
        for one in columns
    )


def read(packed: bytes | None, columns: Sequence[Column]) -> Records:
    """The records, one per row, in the order of the rows."""
    layout = np.dtype([(one.name, _WIRE[one.sql_type][1]) for one in columns])
    return np.frombuffer(packed or b"", dtype=layout)


def seconds(times: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """Times as seconds since 1970; not a number where there is none."""
    known = times != NO_TIME
    since = np.full(len(times), np.nan)
    since[known] = times[known] / 1e6 + EPOCH_2000
    return since
