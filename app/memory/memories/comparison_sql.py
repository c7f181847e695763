"""How rows are compared with a query: by their vectors, or by binary codes, a bit per dimension.

A long vector is stored outside of its row, and reading it costs more than comparing it; its code is
stored inside. A code is enough to choose which rows are compared exactly. The figures are in
`docs/decisions/0012`.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import numpy as np
import numpy.typing as npt

from app.language.ranking.records import SearchStatement, inner_product

MINIMUM_DIMENSION: Final = 768
"""From here on codes stand for the vectors of a search that reads every row. Fewer bits find too
little of the nearest hundred, and such vectors lie within their rows."""

LEAST_DIMENSION: Final = 128
"""Shorter vectors get no codes. From here to `MINIMUM_DIMENSION` codes choose candidates
(`large_buckets.py`)."""

FEWEST: Final = 80
MOST: Final = 400
ROWS_PER_CANDIDATE: Final = 15
"""How many of the nearest by a short code are candidates: one of so many rows, within bounds."""

MOST_TERMS: Final = 128
"""A row of more terms gets no short code: the index that has both would not take it."""

CANDIDATES: Final = 200
PER_HIT: Final = 4

SPREAD: Final = 32
"""How many rows beside the candidates are compared exactly, to learn what a distance means."""

SLACK: Final = 0.05
"""By how much a similarity by code may miss the threshold and still count as reaching it."""

SHORT: Final = 10.0
"""How far a row that seems to miss the threshold falls behind in the order, per cosine: behind all
that seem to reach it, but still compared where these are too few."""

Floats = npt.NDArray[np.float64]


def coded_models(vectors: Mapping[str, Any]) -> list[str]:
    """Models among those that made `vectors` whose rows may have codes."""
    return [name for name, vector in vectors.items() if len(vector) >= MINIMUM_DIMENSION]


def code_of(vector: Any) -> asyncpg.BitString:
    """The code of a vector, as pgvector's `binary_quantize` makes it."""
    bits = np.packbits(np.asarray(vector) > 0)
    return asyncpg.BitString.frombytes(bits.tobytes(), bitlength=len(vector))


def candidates(limit: int) -> int:
    """How many of the nearest by code are compared exactly for `limit` hits."""
    return max(CANDIDATES, PER_HIT * limit)


def nearest(rows: int) -> int:
    """How many of the nearest of a bucket by a short code are candidates."""
    return min(max(rows // ROWS_PER_CANDIDATE, FEWEST), MOST)


def spread(values: Floats, places: npt.NDArray[np.intp]) -> npt.NDArray[np.intp]:
    """Some of `places`, evenly from the greatest of `values` to the least."""
    if len(places) <= SPREAD:
        return places
    order = places[np.argsort(values[places], kind="stable")]
    return order[np.linspace(0, len(order) - 1, SPREAD).astype(np.intp)]


def calibrated(rough: Floats, exact: Floats, known: Collection[int]) -> Floats:
    """Cosines by code, put on the scale of the exact ones.

    The difference depends on the model and on the bucket: vectors of one model often share a
    direction, in which all their codes agree.

    Args:
        rough: of every row.
        exact: of the rows at `known`; the others do not count.
        known: where both are numbers.

    """
    places = np.fromiter(known, np.intp, len(known))
    x, y = rough[places], exact[places]
    apart = x - x.mean() if len(places) else x
    variance = float(apart @ apart)
    if variance <= 0.0:
        return rough
    # Never turned round: the nearer by code stays the nearer.
    slope = max(float(apart @ (y - y.mean())) / variance, 0.0)
    scaled: Floats = (rough - x.mean()) * slope + y.mean()
    return scaled


@dataclass(frozen=True, slots=True)
class Source:
    """What a search ranks: SQL in which `memories` is the state that is judged.

    Args:
        rows: FROM and WHERE.
        place: how a row of `rows` is found again, for `fetched`.
        weight: of the bucket it is in.
        model: what made `vector`.
        words: alias of what has the columns of `database/base.py`.
        came_from: the session it came from, as it is now.
        code: the code of `vector`, where it is read instead; null where there is none.
        fetched: the row at `best.place`, with every stored column of `COLUMNS`.

    """

    rows: str
    words: str = "memories"
    place: str = "memories.ctid"
    weight: str = "bucket.weight"
    model: str = "memories.embedding_model"
    vector: str = "memories.embedding"
    came_from: str = "memories.session_id"
    code: str | None = None
    fetched: str = """
        SELECT * FROM memories
        WHERE memories.tenant_id = tenant.id AND memories.ctid = best.place"""


def similarity(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str:
    """Cosine, 0 to 1, and 0 where nothing can be compared."""
    return f"greatest(0, least(1, coalesce({cosine(vectors, statement, source)}, 0)))"


def is_rough(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str | None:
    """SQL for whether the cosine of a row is taken from its code; None where it never is."""
    models = coded_models(vectors)
    if source.code is None or not models:
        return None
    return (
        f"({source.code} IS NOT NULL AND {source.model} = ANY ({statement.bind(models, 'text[]')}))"
    )


def cosine(vectors: Mapping[str, Any], statement: SearchStatement, source: Source) -> str:
    """As `inner_product`; where there is a code, the angle is estimated from the
    share of bits that differ.
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
