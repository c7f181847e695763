"""Candidates of a search in large buckets: PostgreSQL chooses some hundred rows, and these are
ranked.

The choice reads one index, `memories_idx_coded`. Candidates are what is nearest by code, what has
the rarest words of the query, every row without a code, the sessions of the first of them, and the
corrections that a context wants. Their ranking is as ever, with the statistics of the whole bucket
(`docs/decisions/0024`).
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

import numpy as np

from app.language.ranking.features import BucketStatistics
from app.language.ranking.packing import BASE, DIGIT_BITS, K1, TERMS_PER_VECTOR, B
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import Column, Records, SearchStatement
from app.memory.memories.comparison_sql import (
    FEWEST,
    MINIMUM_DIMENSION,
    MOST,
    ROWS_PER_CANDIDATE,
    Source,
    code_of,
)
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

USUAL: Final = 32
"""How many rows at the middle distance tell what the usual cosine is."""

LEADING: Final = 40
HITS_PER_SESSION: Final = 2
"""So many sessions, those with most of the words, are read whole, or one for so many hits, if that
is more: rows are ranked by what was said around them, too."""

LONGEST_SESSION: Final = 60
"""A session of more rows is not read. Rows of a session that is not have no neighbours."""

CODED: Final = f"coalesce(length(memories.code), {MINIMUM_DIMENSION}) < {MINIMUM_DIMENSION}"
"""As the predicate of `memories_idx_coded` has it; `memories_idx_uncoded` has the others."""

DEEP: Final = 51
"""A search for more hits has `PER_HIT` candidates of a kind for each."""


@dataclass(frozen=True, slots=True)
class Candidates:
    """The candidates of a search, and what is known of the whole bucket."""

    ids: Sequence[str]
    records: Records
    statistics: BucketStatistics
    coded: int
    complete: bool
    """As `complete` has it."""

    @classmethod
    def of(cls, seen: Any, records: Records, asked: ParsedQuery) -> "Candidates":
        """Out of the row of `candidates_statement` and its records."""
        terms = asked.packed.terms
        ids: Sequence[str] = seen["ids"] or ()
        middle = set(seen["middle"] or ())
        cosines = records["ranked_similarity"].astype(np.float32)
        usual = [float(cosines[place]) for place, each in enumerate(ids) if each in middle]
        known = [value for value in usual if value == value]  # noqa: PLR0124 (not NaN)
        coded = int(seen["coded"])
        return cls(
            ids,
            records,
            BucketStatistics(
                holders=np.array(seen["holders"][: len(terms)], np.int64),
                rows=coded,
                mean_length=float(seen["mean_length"] or 0.0),
                usual_cosine=float(np.median(known)) if known else None,
                sessions=BucketStatistics(
                    holders=np.array(seen["session_holders"][: len(terms)], np.int64),
                    rows=int(seen["sessions"]),
                    mean_length=float(seen["session_length"]),
                ),
            ),
            coded=coded,
            complete=complete(seen, len(ids)),
        )


def complete(seen: Any, visible: int) -> bool:
    """Whether candidates can stand for the bucket: no row without a code was left out, and most of
    what was chosen may be seen and counts now.

    Args:
        seen: has the columns `_COUNTS`.
        visible: how many of those chosen may be seen.

    """
    coded, uncoded = int(seen["coded"]), int(seen["uncoded"])
    return uncoded <= max(LEAST_UNCODED, coded // UNCODED_SHARE) and 2 * visible >= seen["chosen"]


def candidates_statement(
    plan: SearchPlan, asked: ParsedQuery
) -> tuple[str, list[object], list[Column]]:
    """As `features_statement`, of the candidates alone; and what `Candidates.of` wants.

    Args:
        plan, asked: for which `may_choose` is true.

    """
    statement = SearchStatement()
    chosen = _Choice.of(plan, statement).text()
    beside = (
        *_COUNTS,
        "(SELECT mean_length FROM total) AS mean_length",
        "(SELECT holders FROM held) AS holders",
        "(SELECT rows FROM of_sessions) AS sessions",
        "(SELECT mean_length FROM of_sessions) AS session_length",
        "(SELECT holders FROM of_sessions) AS session_holders",
        "ARRAY(SELECT memory_id FROM middle) AS middle",
    )
    apart = Column(
        "apart",
        "bool",
        "NOT coalesce(memories.session_id IN (SELECT session_id FROM whole), false)",
    )
    text, values, columns = features(
        plan, asked, statement, _of_chosen(plan, statement), beside=beside, further=[apart]
    )
    return chosen + text, values, columns


def nearest_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """As `search_statement`, of the candidates alone; each hit with `_COUNTS`, and in `visible` how
    many candidates may be seen.
    """
    statement = SearchStatement()
    chosen = _Choice.of(plan, statement).text()
    text = ranked(plan, statement, _of_chosen(plan, statement), beside=_COUNTS)
    return chosen + text, statement.values


_COUNTS: Final = (
    "(SELECT rows FROM total) AS coded",
    "(SELECT count(*) FROM uncoded) AS uncoded",
    "(SELECT count(*) FROM chosen) AS chosen",
)


def _of_chosen(plan: SearchPlan, statement: SearchStatement) -> Source:
    """The chosen rows, compared by their vectors."""
    narrow = plan.asked is None
    source = current_source(plan, statement, narrow=narrow, only="SELECT memory_id FROM chosen")
    return replace(source, code=None)


@dataclass(frozen=True, slots=True)
class _Choice:
    """SQL that chooses: WITH and its parts, the last of them `chosen`.

    Args:
        buckets: the table of them.
        distance: of a row `item` and the query by code; null where it has no vector.
        words: of the query; None where it is compared by its vector alone.
        wanted: how many of each kind are chosen at least.
        sessions: how many are read whole.
        corrections: how many of each kind are chosen of them.

    """

    buckets: str
    distance: str
    words: "_Words | None"
    wanted: str
    sessions: int
    corrections: str | None

    @classmethod
    def of(cls, plan: SearchPlan, statement: SearchStatement) -> "_Choice":
        vectors = plan.vectors if plan.asked is None else plan.asked.vectors
        distance = "CAST(NULL AS float8)"
        for model, vector in vectors.items():
            code = statement.bind(code_of(vector), "bit varying")
            made = statement.bind(model, "text")
            distance = f"CASE WHEN item.embedding_model = {made} THEN item.code <~> {code} END"
        most = max(LEAST_CORRECTIONS, PER_HIT * plan.corrections) if plan.corrections else 0
        return cls(
            bucket_table(plan, statement),
            distance,
            None if plan.asked is None else _words(plan.asked, statement),
            statement.bind(PER_HIT * plan.limit if plan.limit > DEEP else 0, "int8"),
            max(LEADING, plan.limit // HITS_PER_SESSION) if plan.mode == "hybrid" else 0,
            str(most) if most else None,
        )

    def text(self) -> str:
        compared = "" if self.words is None else f", {self.words.products}"
        return f"""
    WITH bucket AS MATERIALIZED (SELECT scope, scope_id FROM {self.buckets}),
    seen AS MATERIALIZED (
        SELECT item.memory_id, item.session_id, item.term_count,
            {self.distance} AS distance{compared}
        FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id, memories.session_id, memories.embedding_model,
                memories.code, memories.terms, memories.term_count
            FROM memories WHERE {_IN_BUCKET} AND {CODED} OFFSET 0) AS item
    ), total AS MATERIALIZED (
        SELECT CAST(count(*) AS float8) AS rows, CAST(avg(term_count) AS float8) AS mean_length,
            round(avg(distance)) AS distance, greatest(
                least(greatest(count(*) / {ROWS_PER_CANDIDATE}, {FEWEST}), {MOST}), {self.wanted}
            ) AS wanted,
            greatest(count(*) / {UNCODED_SHARE}, {LEAST_UNCODED}) AS uncoded
        FROM seen
    ), uncoded AS MATERIALIZED (
        SELECT item.memory_id FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id FROM memories WHERE {_IN_BUCKET} AND NOT {CODED}
            OFFSET 0) AS item
        LIMIT (SELECT uncoded + 1 FROM total)
    ), near AS MATERIALIZED (
        SELECT memory_id FROM seen WHERE distance IS NOT NULL
        ORDER BY distance, memory_id LIMIT (SELECT wanted FROM total)
    ), {self._by_words()}{self._corrected()}chosen AS MATERIALIZED (
        {" UNION ".join(f"SELECT {each}" for each in self._kinds())}
    )"""

    def _by_words(self) -> str:
        """The parts that know words; empty ones stand for them in a search without."""
        if self.words is None:
            return ""
        names = self.words.names
        return f"""groups AS MATERIALIZED (
        SELECT {names}, count(*) AS rows FROM seen GROUP BY {names}
    ), held AS MATERIALIZED (
        SELECT CAST(ARRAY[{self.words.holders}] AS float8[]) AS holders,
            (SELECT rows FROM total) AS rows FROM groups
    ), rated AS MATERIALIZED (
        SELECT groups.*, {self.words.score("held", str(K1))} AS score
        FROM groups CROSS JOIN held CROSS JOIN (SELECT {self.words.weights} AS weights) AS asked
    ), best AS MATERIALIZED (
        SELECT * FROM (
            SELECT rated.*, sum(rows) OVER (ORDER BY score DESC ROWS UNBOUNDED PRECEDING) - rows
                AS before
            FROM rated WHERE score > 0
        ) AS counted WHERE before < (SELECT wanted FROM total)
    ), worded AS MATERIALIZED (
        SELECT memory_id, session_id, score FROM seen JOIN best USING ({names})
        ORDER BY score DESC, distance, term_count, memory_id LIMIT (SELECT wanted FROM total)
    ), middle AS MATERIALIZED (
        SELECT memory_id FROM seen JOIN total USING (distance) LIMIT {USUAL}
    ), {self._sessions(self.words)}, """

    def _sessions(self, words: "_Words") -> str:
        """Each session as one text, and which of them are read whole."""
        if not self.sessions:
            return _NO_SESSIONS
        products = ", ".join(f"bit_or({name}) AS {name}" for name in words.names.split(", "))
        held = ", ".join(f"count(*) FILTER (WHERE {digit} > 0)" for digit in words.digits)
        length = f"{K1} * ({1 - B} + {B} * length / held.mean_length)"
        return f"""sessions AS MATERIALIZED (
        SELECT session_id, CAST(sum(term_count) AS float8) AS length, {products}
        FROM seen WHERE session_id IS NOT NULL GROUP BY session_id
    ), of_sessions AS MATERIALIZED (
        SELECT CAST(count(*) AS float8) AS rows, CAST(ARRAY[{held}] AS float8[]) AS holders,
            greatest(avg(length), 1) AS mean_length
        FROM sessions
    ), led AS MATERIALIZED (
        SELECT session_id FROM (
            SELECT session_id, {words.score("held", length)} AS score
            FROM sessions CROSS JOIN of_sessions AS held
            CROSS JOIN (SELECT {words.weights} AS weights) AS asked
        ) AS each WHERE score > 0 ORDER BY score DESC, session_id LIMIT {self.sessions}
    ), whole AS MATERIALIZED ({_WHOLE}
    )"""

    def _corrected(self) -> str:
        """All of them are looked at: there are few beside the others."""
        if self.words is None or self.corrections is None:
            return ""
        return f"""corrected AS MATERIALIZED (
        SELECT item.memory_id, {self.distance} AS distance, {self.words.products}
        FROM bucket CROSS JOIN LATERAL (
            SELECT memories.memory_id, memories.embedding_model, memories.code, memories.terms
            FROM memories WHERE {_IN_BUCKET} AND memories.memory_type = 'correction'
            OFFSET 0) AS item
    ), corrections AS MATERIALIZED (
        (SELECT memory_id FROM corrected ORDER BY distance, memory_id LIMIT {self.corrections})
        UNION
        (SELECT memory_id FROM corrected JOIN rated USING ({self.words.names})
        ORDER BY score DESC, distance, memory_id LIMIT {self.corrections})
    ), """

    def _kinds(self) -> Sequence[str]:
        """What the candidates are selected from."""
        kinds = ["memory_id FROM near", "memory_id FROM uncoded"]
        if self.words is not None:
            kinds += [
                "memory_id FROM worded",
                "memory_id FROM middle",
                "unnest(memory_ids) FROM whole",
            ]
            if self.corrections is not None:
                kinds.append("memory_id FROM corrections")
        return kinds


@dataclass(frozen=True, slots=True)
class _Words:
    """SQL about the words of the query.

    Args:
        products: of a row `item`, as columns that are named `names`.
        digits: how often a row has each word, by its products.
        holders: from groups of rows with the same products, how many rows hold each word.
        weights: how much each word is asked for, as `weights`.

    """

    products: str
    names: str
    digits: Sequence[str]
    holders: str
    weights: str

    def score(self, of: str, saturation: str) -> str:
        """BM25 of a row or session: by `holders` and `rows` of `of`, and by `weights`."""
        return " + ".join(
            f"weights[{place}] * ln(1 + ({of}.rows - {of}.holders[{place}] + 0.5) "
            f"/ ({of}.holders[{place}] + 0.5)) * {digit} / ({digit} + {saturation})"
            for place, digit in enumerate(self.digits, start=1)
        )


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
        digits=digits,
        holders=", ".join(f"coalesce(sum(rows) FILTER (WHERE {each} > 0), 0)" for each in digits),
        weights=statement.bind(emphasis.tolist(), "float8[]"),
    )


def _digit(place: int) -> str:
    """SQL for how often a row has a term of the query (`packing.frequencies`)."""
    number, digit = divmod(place, TERMS_PER_VECTOR)
    return f"((product_{number} >> {DIGIT_BITS * digit}) & {BASE - 1})"


_IN_BUCKET: Final = """memories.tenant_id = tenant.id
                AND memories.scope_id = bucket.scope_id AND memories.scope = bucket.scope
                AND memories.status = 'active'"""

_NO_SESSIONS: Final = """of_sessions AS (
        SELECT 0 AS rows, 0 AS mean_length, CAST('{}' AS float8[]) AS holders
    ), whole AS (
        SELECT CAST(NULL AS text) AS session_id, CAST(NULL AS text[]) AS memory_ids WHERE false
    )"""

_WHOLE: Final = f"""
        SELECT of_session.session_id, of_session.memory_ids
        FROM led CROSS JOIN LATERAL (
            SELECT led.session_id, array_agg(few.memory_id) AS memory_ids FROM (
                SELECT memories.memory_id FROM memories
                WHERE memories.tenant_id = tenant.id AND memories.session_id = led.session_id
                    AND memories.status = 'active'
                    AND (memories.scope, memories.scope_id) IN (SELECT scope, scope_id FROM bucket)
                LIMIT {LONGEST_SESSION + 1}
            ) AS few
        ) AS of_session
        WHERE cardinality(of_session.memory_ids) <= {LONGEST_SESSION}"""
