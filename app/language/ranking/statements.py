"""Pieces of SQL that every search by words and vectors is made of."""

from collections.abc import Mapping
from typing import Any

from app.language.ranking.query import Asked
from app.language.ranking.rows import Column, product, text_columns


class Statement:
    """SQL text and its values; `$1` is the tenant, which the frame around it sets."""

    def __init__(self) -> None:
        self.values: list[object] = []

    def bind(self, value: object, sql_type: str) -> str:
        self.values.append(value)
        return f"CAST(${len(self.values) + 1} AS {sql_type})"


def inner_product(
    vectors: Mapping[str, Any], statement: Statement, *, model: str, vector: str
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


def asked_columns(
    asked: Asked, statement: Statement, *, similarity: str, ranked_similarity: str, words: str
) -> list[Column]:
    """What the ranking wants to know of a row for a query, and what the row's text is.

    Args:
        asked: what is asked.
        statement: takes its words as values.
        similarity: SQL for the cosine of the row and the query as it stands, null where nothing
            can be compared.
        ranked_similarity: the same for the query as it is ranked.
        words: the table, or its alias, that has the columns of `database/searched.py`.

    """
    terms = f"{words}.terms"
    return [
        Column("similarity", "float4", _number(similarity)),
        Column("ranked_similarity", "float4", _number(ranked_similarity)),
        *(
            Column(f"product_{number}", "float4", product(terms, statement.bind(one, "sparsevec")))
            for number, one in enumerate(asked.packed.vectors)
        ),
        Column("named", "float4", product(terms, statement.bind(asked.marks, "sparsevec"))),
        *text_columns(words),
    ]


def _number(cosine: str) -> str:
    return f"CAST(coalesce({cosine}, 'NaN') AS float4)"
