"""SQL that compares the rows of a search with the query: by their vectors, or by codes of these."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from app.language.ranking.records import SearchStatement, inner_product
from app.memory.memories.quantised_codes import code_of, coded_models


@dataclass(frozen=True, slots=True)
class Source:
    """What a search ranks: SQL in which `memories` stands for the state that is judged.

    Args:
        rows: FROM and WHERE.
        place: where a row of `rows` is to be found again, for `fetched`.
        weight: of the bucket it is in.
        model: what made `vector`.
        words: alias of what has the columns of `database/searched.py`.
        code: the code of `vector`, where it is read instead; null where there is none.
        fetched: the row at `best.place`, with every column of `COLUMNS`.

    """

    rows: str
    words: str = "memories"
    place: str = "memories.ctid"
    weight: str = "bucket.weight"
    model: str = "memories.embedding_model"
    vector: str = "memories.embedding"
    code: str | None = None
    fetched: str = """
        SELECT * FROM memories
        WHERE memories.tenant_id = tenant.id AND memories.ctid = best.place"""


def similarity(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str:
    """Cosine, 0 to 1, and 0 where nothing can be compared."""
    return f"greatest(0, least(1, coalesce({cosine(vectors, statement, source)}, 0)))"


def is_rough(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str | None:
    """SQL for whether a code tells the cosine of a row; None where none ever does."""
    models = coded_models(vectors)
    if source.code is None or not models:
        return None
    return (
        f"({source.code} IS NOT NULL AND {source.model} = ANY ({statement.bind(models, 'text[]')}))"
    )


def cosine(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str:
    """As `inner_product`; where there is a code, the share of bits that differ tells the angle,
    roughly.
    """
    coded = coded_models(vectors) if source.code is not None else ()
    if not coded:
        return inner_product(vectors, statement, model=source.model, vector=source.vector)
    cases = []
    for model, vector in vectors.items():
        made = f"{source.model} = {statement.bind(model, 'text')}"
        if model in coded:
            code = statement.bind(code_of(vector), "bit varying")
            cases.append(
                f"WHEN {made} AND {source.code} IS NOT NULL "
                f"THEN cos(pi() * ({source.code} <~> {code}) / {len(vector)})"
            )
        cases.append(f"WHEN {made} THEN -({source.vector} <#> {statement.bind(vector, 'vector')})")
    return f"CASE {' '.join(cases)} END"
