"""Candidates of a search in large buckets: some hundred rows are chosen, and these are ranked.

Most are chosen in memory out of the rows with codes (`bucket_index.py`). Every row without a code
is one, too, and so are the corrections that a context wants. Their ranking is as ever, with the
statistics of the whole bucket (`docs/decisions/0024`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

import numpy as np

from app.language.ranking.features import BucketStatistics, word_weights
from app.language.ranking.packing import BASE, DIGIT_BITS, K1, TERMS_PER_VECTOR
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Column, Records, SearchStatement, id_hash_sql
from app.memory.memories.bucket_index import BucketIndex, CandidateNumbers, ChosenCandidates, choose
from app.memory.memories.bucket_sql import CODED, STATE
from app.memory.memories.comparison_sql import Source, code_of
from app.memory.memories.search_sql import (
    SearchPlan,
    bucket_table,
    current_source,
    features,
    ranked,
)

LEAST_UNCODED: Final = 300
UNCODED_SHARE: Final = 10
"""So many rows without a code are candidates beside, or one of so many rows with one, if that is
more; with more of them a bucket is ranked whole."""

PER_HIT: Final = 4
"""How many candidates of a kind there are for each hit, if that is more than `comparison_sql` has
for the bucket."""

LEAST_CORRECTIONS: Final = 100
"""So many corrections of a kind are candidates of a context, or `PER_HIT` for each that is wanted,
if that is more."""

LEADING: Final = 40
HITS_PER_SESSION: Final = 2
"""So many sessions, those with most of the words, are read whole, or one for so many hits, if that
is more: rows are ranked by what was said around them, too."""

DEEP: Final = 51
"""A search for more hits has `PER_HIT` candidates of a kind for each."""


def chosen_in(parts: Sequence[BucketIndex], plan: SearchPlan) -> ChosenCandidates:
    """The candidates among the rows with codes, for a plan for which `may_choose` is true."""
    vectors = plan.vectors if plan.asked is None else plan.asked.vectors
    wanted = CandidateNumbers(
        PER_HIT * plan.limit if plan.limit > DEEP else 0,
        max(LEADING, plan.limit // HITS_PER_SESSION) if plan.mode == "hybrid" else 0,
    )
    return choose(parts, vectors, plan.asked, wanted)


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a search, and what is known of the whole bucket."""

    ids: Sequence[str]
    records: Records
    statistics: BucketStatistics

    @classmethod
    def of(cls, seen: Any, records: Records, chosen: ChosenCandidates) -> "Candidates":
        """Out of the row of `candidates_statement` and its records."""
        ids: Sequence[str] = seen["ids"] or ()
        cosines = records["ranked_similarity"].astype(np.float32)
        usual = [float(cosines[place]) for place, each in enumerate(ids) if each in chosen.middle]
        known = [value for value in usual if value == value]  # noqa: PLR0124 (not NaN)
        cosine = median(known) if known else None
        return cls(ids, records, replace(chosen.statistics, usual_cosine=cosine))


def is_current(seen: Any, chosen: ChosenCandidates) -> bool:
    """Whether no row has got a code since the rows were read that were chosen from.

    Args:
        seen: has the columns `_beside`.
        chosen: what it was chosen for.

    """
    return frozenset(seen["states"] or ()) == chosen.states


def is_complete(seen: Any, chosen: ChosenCandidates, visible: int) -> bool:
    """Whether candidates can stand for the bucket: no row without a code was left out, and most of
    what was chosen may be seen and counts now.

    Args:
        seen: has the columns `_beside`.
        chosen: what it was chosen for.
        visible: how many of those chosen may be seen.

    """
    uncoded, number = int(seen["uncoded"]), int(seen["chosen"])
    return uncoded <= _most_uncoded(chosen.rows) and 2 * visible >= number


def _most_uncoded(rows: int) -> int:
    return max(LEAST_UNCODED, rows // UNCODED_SHARE)


def candidates_statement(
    plan: SearchPlan, asked: ParsedQuery, chosen: ChosenCandidates
) -> tuple[str, list[object], list[Column]]:
    """As `features_statement`, of the candidates alone; and what `Candidates.of` wants."""
    statement = SearchStatement()
    begin = _candidates(plan, chosen, statement)
    session = id_hash_sql("memories.session_id")
    whole = statement.bind(list(chosen.whole), "int8[]")
    text, values, columns = features(
        plan, asked, statement, _of_chosen(plan, statement), beside=_BESIDE,
        further=[Column("apart", "bool", f"NOT {session} = ANY ({whole})")],
    )  # fmt: skip
    return begin + text, values, columns


def nearest_statement(plan: SearchPlan, chosen: ChosenCandidates) -> tuple[str, list[object]]:
    """As `search_statement`, of the candidates alone; each hit with `_BESIDE`, and in `visible` how
    many candidates may be seen.
    """
    statement = SearchStatement()
    begin = _candidates(plan, chosen, statement)
    text = ranked(plan, statement, _of_chosen(plan, statement), beside=_BESIDE)
    return begin + text, statement.values


_BESIDE: Final = (
    "(SELECT count(*) FROM uncoded) AS uncoded",
    "(SELECT count(*) FROM chosen) AS chosen",
    "(SELECT states FROM now) AS states",
)


def _of_chosen(plan: SearchPlan, statement: SearchStatement) -> Source:
    """The chosen rows, compared by their vectors."""
    narrow = plan.asked is None
    source = current_source(plan, statement, narrow=narrow, only="SELECT memory_id FROM chosen")
    return replace(source, code=None)


def _candidates(plan: SearchPlan, chosen: ChosenCandidates, statement: SearchStatement) -> str:
    """SQL that begins a statement with `chosen`, their ids."""
    corrections, kinds = "", ["SELECT memory_id FROM uncoded"]
    if plan.corrections and plan.asked is not None:
        corrections = _corrections(plan, plan.asked, chosen, statement)
        kinds.append("SELECT memory_id FROM corrections")
    ids = statement.bind_ids(chosen.ids)
    most = statement.bind(_most_uncoded(chosen.rows) + 1, "int8")
    return f"""
    WITH bucket AS MATERIALIZED (SELECT scope, scope_id FROM {bucket_table(plan, statement)}),
    now AS MATERIALIZED (
        SELECT array_agg({STATE}) AS states FROM bucket JOIN memory_buckets AS known
            ON known.tenant_id = tenant.id AND known.scope = bucket.scope
            AND known.scope_id = bucket.scope_id
    ), uncoded AS MATERIALIZED (
        SELECT item.memory_id FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id FROM memories WHERE {_IN_BUCKET} AND NOT {CODED}
            OFFSET 0) AS item
        LIMIT {most}
    ), {corrections}chosen AS MATERIALIZED (
        {" UNION ".join([f"SELECT unnest({ids}) AS memory_id", *kinds])}
    )"""


def _corrections(
    plan: SearchPlan, asked: ParsedQuery, chosen: ChosenCandidates, statement: SearchStatement
) -> str:
    """The nearest and those with the rarest words; all are looked at: there are few."""
    distance = "CAST(NULL AS float8)"
    for model, vector in asked.vectors.items():
        code = statement.bind(code_of(vector), "bit varying")
        made = statement.bind(model, "text")
        distance = f"CASE WHEN item.embedding_model = {made} THEN item.code <~> {code} END"
    products, score = _words(asked, chosen.statistics, statement)
    most = statement.bind(max(LEAST_CORRECTIONS, PER_HIT * plan.corrections), "int8")
    return f"""corrected AS MATERIALIZED (
        SELECT item.memory_id, {distance} AS distance, {score} AS score
        FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id, memories.embedding_model, memories.code, {products}
            FROM memories WHERE {_IN_BUCKET} AND memories.memory_type = 'correction'
            OFFSET 0) AS item
    ), corrections AS MATERIALIZED (
        (SELECT memory_id FROM corrected ORDER BY distance, memory_id LIMIT {most})
        UNION
        (SELECT memory_id FROM corrected WHERE score > 0
        ORDER BY score DESC, distance, memory_id LIMIT {most})
    ), """


def _words(
    asked: ParsedQuery, bucket: BucketStatistics, statement: SearchStatement
) -> tuple[str, str]:
    """The products of a row's terms with those of the query, and BM25 out of them, however long
    the row is.
    """
    vectors = asked.packed.vectors
    products = ", ".join(
        f"CAST(coalesce(-(memories.terms <#> {statement.bind(vector, 'sparsevec')}), 0) AS int4) "
        f"AS product_{number}"
        for number, vector in enumerate(vectors)
    )
    # As many as there are digits, so that statements are few.
    weights = np.zeros(TERMS_PER_VECTOR * len(vectors))
    weights[: len(asked.packed.terms)] = word_weights(bucket, asked.traits)
    bound = statement.bind(weights.tolist(), "float8[]")
    score = " + ".join(
        f"({bound})[{place}] * {digit} / ({digit} + {K1})"
        for place, digit in enumerate(map(_digit, range(len(weights))), start=1)
    )
    return products, score


def _digit(place: int) -> str:
    """SQL for how often a row has a term of the query (`packing.frequencies`)."""
    number, digit = divmod(place, TERMS_PER_VECTOR)
    return f"((item.product_{number} >> {DIGIT_BITS * digit}) & {BASE - 1})"


_IN_BUCKET: Final = """memories.tenant_id = tenant.id
                AND memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope
                AND memories.status = 'active'"""
