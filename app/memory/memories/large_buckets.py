"""Candidates of a search in large buckets: PostgreSQL chooses some hundred rows, and the service
ranks these.

Where most memories of a bucket have short codes, one index holds all that the choice needs: the
code, the terms, the id. Of the whole bucket nothing else is read. Candidates are what is nearest by
code, what has the rarest words of the query, every row without a code, and the sessions of the
first of them. Their ranking is as ever, with the statistics of the whole bucket
(`docs/decisions/0024`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from app.language.ranking.bm25 import K1
from app.language.ranking.features import BucketStatistics
from app.language.ranking.packing import BASE, DIGIT_BITS, TERMS_PER_VECTOR
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Column, Records, SearchStatement
from app.memory.memories.comparison_sql import (
    FEWEST,
    LEAST_DIMENSION,
    MINIMUM_DIMENSION,
    MOST,
    ROWS_PER_CANDIDATE,
    code_of,
)
from app.memory.memories.search_sql import SearchPlan, bucket_table, current_source, features

LARGE: Final = 1_500
"""From so many rows with codes on candidates are chosen (`docs/decisions/0024`)."""

MOST_UNCODED: Final = 300
"""So many rows without a code are candidates beside; with more a bucket is ranked whole."""

USUAL: Final = 32
"""How many rows at the middle distance tell what the usual cosine is."""

LEADING: Final = 8
"""So many sessions, those with most of the words, are read whole: rows are ranked by what was said
around them, too."""

LONGEST_SESSION: Final = 60
"""A session of more rows is not read. Rows of a session that is not have no neighbours."""

MOST_VECTORS: Final = 4
"""Of the words of a query, six each; a longer one is a conversation and ranks every row."""

DEEPEST: Final = 51
"""A search for more hits ranks every row."""

MOST_KNOWN: Final = 10_000

CODED: Final = f"coalesce(length(memories.code), {MINIMUM_DIMENSION}) < {MINIMUM_DIMENSION}"
"""As the predicate of `memories_idx_coded` has it; `memories_idx_uncoded` has the others."""


class LargeBuckets:
    """Which sets of buckets a process has found large, so that a search need not ask first.

    What has changed since does no harm: either way of a search is right for any bucket.
    """

    def __init__(self) -> None:
        self._known: dict[tuple[str, ...], None] = {}

    def has(self, tenant_id: str, plan: SearchPlan) -> bool:
        return _key(tenant_id, plan) in self._known

    def note(self, tenant_id: str, plan: SearchPlan, *, rows: int, coded: int) -> None:
        """Note how many rows there are, and how many of them have codes."""
        key = _key(tenant_id, plan)
        self._known.pop(key, None)
        if coded >= LARGE and rows - coded <= MOST_UNCODED:
            self._known[key] = None
            if len(self._known) > MOST_KNOWN:
                del self._known[next(iter(self._known))]


def _key(tenant_id: str, plan: SearchPlan) -> tuple[str, ...]:
    places = (part for bucket in plan.buckets for part in (bucket.scope, bucket.scope_id))
    return (tenant_id, *places)


def may_choose(plan: SearchPlan, asked: ParsedQuery) -> bool:
    """Whether candidates stand for all rows in this search.

    What filters leave over need not be near the query, nor what a threshold, a time or a graph
    asks for: such a search ranks every row.
    """
    dimensions = [len(vector) for vector in asked.vectors.values()]
    plain = not (
        plan.filters or plan.run_id or plan.memory_type or plan.memory_types or plan.tier
        or plan.as_of or plan.known_at or plan.newest or plan.names or plan.corrections
        or asked.traits.dates
    )  # fmt: skip
    return (
        plain
        and plan.mode == "hybrid"
        and plan.rerank
        and plan.threshold is None
        and plan.limit <= DEEPEST
        and 1 <= len(asked.packed.vectors) <= MOST_VECTORS
        and len(dimensions) == 1
        and LEAST_DIMENSION <= dimensions[0] < MINIMUM_DIMENSION
        and bool(np.any(next(iter(asked.vectors.values()))))
    )


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a search, and what is known of the whole bucket."""

    ids: Sequence[str]
    records: Records
    statistics: BucketStatistics
    rows: int
    coded: int
    complete: bool
    """Whether they can stand for the bucket: no row without a code was left out, and most of what
    was chosen may be seen and counts now."""

    @classmethod
    def of(cls, seen: Any, records: Records, asked: ParsedQuery) -> "Candidates":
        """Out of the row of `candidates_statement` and its records."""
        terms = asked.packed.terms
        ids: Sequence[str] = seen["ids"] or ()
        middle = set(seen["middle"] or ())
        cosines = records["ranked_similarity"].astype(np.float32)
        usual = [float(cosines[place]) for place, each in enumerate(ids) if each in middle]
        known = [value for value in usual if value == value]  # noqa: PLR0124 (not NaN)
        coded, uncoded = int(seen["coded"]), int(seen["uncoded"])
        return cls(
            ids,
            records,
            BucketStatistics(
                holders=np.array(seen["holders"][: len(terms)], np.int64),
                rows=coded,
                mean_length=float(seen["mean_length"] or 0.0),
                usual_cosine=float(np.median(known)) if known else None,
            ),
            rows=coded + uncoded,
            coded=coded,
            complete=uncoded <= MOST_UNCODED and 2 * len(ids) >= seen["chosen"],
        )


def candidates_statement(
    plan: SearchPlan, asked: ParsedQuery
) -> tuple[str, list[object], list[Column]]:
    """As `features_statement`, of the candidates alone; and what `Candidates.of` wants.

    Args:
        plan, asked: for which `may_choose` is true.

    """
    statement = SearchStatement()
    chosen = _chosen(plan, asked, statement)
    source = replace(
        current_source(plan, statement, narrow=False, only="SELECT memory_id FROM chosen"),
        code=None,
    )
    beside = (
        "(SELECT rows FROM total) AS coded",
        "(SELECT mean_length FROM total) AS mean_length",
        "(SELECT count(*) FROM uncoded) AS uncoded",
        "(SELECT count(*) FROM chosen) AS chosen",
        "(SELECT holders FROM held) AS holders",
        "ARRAY(SELECT memory_id FROM middle) AS middle",
    )
    apart = Column(
        "apart",
        "bool",
        "NOT coalesce(memories.session_id IN (SELECT session_id FROM whole), false)",
    )
    text, values, columns = features(plan, asked, statement, source, beside=beside, further=[apart])
    return chosen + text, values, columns


def _chosen(plan: SearchPlan, asked: ParsedQuery, statement: SearchStatement) -> str:
    """WITH: `chosen` of the buckets, and on the way there what is known of them."""
    ((model, vector),) = asked.vectors.items()
    buckets = bucket_table(plan, statement)
    code = statement.bind(code_of(vector), "bit varying")
    made = statement.bind(model, "text")
    words = _words(asked, statement)
    return f"""
    WITH bucket AS MATERIALIZED (SELECT scope, scope_id FROM {buckets}),
    seen AS MATERIALIZED (
        SELECT item.memory_id, item.session_id, item.term_count,
            CASE WHEN item.embedding_model = {made} THEN item.code <~> {code} END AS distance,
            {words.products}
        FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id, memories.session_id, memories.embedding_model,
                memories.code, memories.terms, memories.term_count
            FROM memories WHERE {_IN_BUCKET} AND {CODED} OFFSET 0) AS item
    ), uncoded AS MATERIALIZED (
        SELECT item.memory_id FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id FROM memories WHERE {_IN_BUCKET} AND NOT {CODED}
            OFFSET 0) AS item
        LIMIT {MOST_UNCODED + 1}
    ), total AS MATERIALIZED (
        SELECT CAST(count(*) AS float8) AS rows, CAST(avg(term_count) AS float8) AS mean_length,
            round(avg(distance)) AS distance,
            least(greatest(count(*) / {ROWS_PER_CANDIDATE}, {FEWEST}), {MOST}) AS wanted
        FROM seen
    ), groups AS MATERIALIZED (
        SELECT {words.names}, count(*) AS rows FROM seen GROUP BY {words.names}
    ), held AS MATERIALIZED (
        SELECT CAST(ARRAY[{words.holders}] AS float8[]) AS holders FROM groups
    ), rated AS MATERIALIZED (
        SELECT groups.*, {words.score} AS score
        FROM groups CROSS JOIN held CROSS JOIN total
        CROSS JOIN (SELECT {words.weights} AS weights) AS asked
    ), best AS MATERIALIZED (
        SELECT * FROM (
            SELECT rated.*, sum(rows) OVER (ORDER BY score DESC ROWS UNBOUNDED PRECEDING) - rows
                AS before
            FROM rated WHERE score > 0
        ) AS counted WHERE before < (SELECT wanted FROM total)
    ), near AS MATERIALIZED (
        SELECT memory_id FROM seen ORDER BY distance, memory_id LIMIT (SELECT wanted FROM total)
    ), worded AS MATERIALIZED (
        SELECT memory_id, session_id, score FROM seen JOIN best USING ({words.names})
        ORDER BY score DESC, distance, memory_id LIMIT (SELECT wanted FROM total)
    ), middle AS MATERIALIZED (
        SELECT memory_id FROM seen JOIN total USING (distance) LIMIT {USUAL}
    ), whole AS MATERIALIZED ({_WHOLE}
    ), chosen AS MATERIALIZED (
        SELECT memory_id FROM near UNION SELECT memory_id FROM worded
        UNION SELECT memory_id FROM middle UNION SELECT memory_id FROM uncoded
        UNION SELECT unnest(memory_ids) FROM whole
    )"""


@dataclass(frozen=True, slots=True)
class _Words:
    """SQL about the words of the query.

    Args:
        products: of a row `item`, as columns that are named `names`.
        holders: from groups of rows with the same products, how many rows hold each word.
        score: of a group, by how rare its words are.
        weights: how much each word is asked for, as `weights`.

    """

    products: str
    names: str
    holders: str
    score: str
    weights: str


def _words(asked: ParsedQuery, statement: SearchStatement) -> _Words:
    vectors = [statement.bind(each, "sparsevec") for each in asked.packed.vectors]
    digits = [_digit(place) for place in range(TERMS_PER_VECTOR * len(vectors))]
    # As many as there are digits, so that statements are few.
    emphasis = np.zeros(len(digits))
    emphasis[: len(asked.traits.term_counts)] = np.sqrt(asked.traits.term_counts)
    return _Words(
        products=", ".join(
            f"CAST(coalesce(-(item.terms <#> {vector}), 0) AS int4) AS product_{number}"
            for number, vector in enumerate(vectors)
        ),
        names=", ".join(f"product_{number}" for number in range(len(vectors))),
        holders=", ".join(f"coalesce(sum(rows) FILTER (WHERE {each} > 0), 0)" for each in digits),
        score=" + ".join(
            f"weights[{place}] * ln(1 + (total.rows - holders[{place}] + 0.5) "
            f"/ (holders[{place}] + 0.5)) * {digit} / ({digit} + {K1})"
            for place, digit in enumerate(digits, start=1)
        ),
        weights=statement.bind(emphasis.tolist(), "float8[]"),
    )


def _digit(place: int) -> str:
    """SQL for how often a row has a term of the query (`packing.frequencies`)."""
    number, digit = divmod(place, TERMS_PER_VECTOR)
    return f"((product_{number} >> {DIGIT_BITS * digit}) & {BASE - 1})"


_IN_BUCKET: Final = """memories.tenant_id = tenant.id
                AND memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope
                AND memories.status = 'active'"""

_WHOLE: Final = f"""
        SELECT of_session.session_id, of_session.memory_ids
        FROM (
            SELECT session_id FROM worded WHERE session_id IS NOT NULL
            GROUP BY session_id ORDER BY sum(DISTINCT score) DESC, session_id LIMIT {LEADING}
        ) AS led
        CROSS JOIN LATERAL (
            SELECT led.session_id, array_agg(few.memory_id) AS memory_ids FROM (
                SELECT memories.memory_id FROM memories
                WHERE memories.tenant_id = tenant.id AND memories.session_id = led.session_id
                    AND memories.status = 'active'
                    AND (memories.scope, memories.scope_id) IN (SELECT scope, scope_id FROM bucket)
                LIMIT {LONGEST_SESSION + 1}
            ) AS few
        ) AS of_session
        WHERE cardinality(of_session.memory_ids) <= {LONGEST_SESSION}"""
