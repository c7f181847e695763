"""Ways to find texts by their words in PostgreSQL, each in tables of its own behind the policies.

Each says what it stores of a text, how the transaction that saves the text writes it, and which
statement returns the ids of the ten best. None needs more than pgvector.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

import asyncpg
import numpy as np
from pgvector import SparseVector
from typing_extensions import override

from app.language.ranking.packing import (
    DIMENSION,
    K1,
    B,
    bm25,
    frequencies,
    packed_query,
    rarity,
    stored_terms,
)
from app.language.ranking.records import (
    Column,
    SearchStatement,
    product_sql,
    read_records,
    record_sql,
)
from app.language.text.terms import term_key, terms
from app.platform.database.base import new_id
from app.platform.database.engine import Database
from benchmarks.database import TENANT

HITS: Final = 10

_BASE = (
    'tenant_id varchar(64) COLLATE "C" NOT NULL, doc_id varchar(64) COLLATE "C" NOT NULL, '
    'user_id varchar(64) COLLATE "C" NOT NULL, content text NOT NULL'
)
_OWN = "tenant_id = tenant.id AND user_id = CAST($2 AS text)"
_SATURATED = f"{K1 + 1} * often / (often + {K1} * ({1 - B} + {B} * length / total.mean))"


@dataclass(frozen=True, slots=True)
class Doc:
    """A text to store, under an id that every arm shares."""

    doc_id: str
    text: str

    @classmethod
    def of(cls, text: str) -> "Doc":
        return cls(new_id("mem"), text)


class Arm:
    """Stores the text and nothing to find it by: what every other one costs besides."""

    name = "the text alone"
    table = "lexical_nothing"
    columns = ""
    values = ""
    more: Sequence[str] = ()
    """Tables besides the first, each with its name before its columns, and indexes."""

    def schema(self) -> list[str]:
        return [
            f"CREATE TABLE {self.table} ({_BASE}{self.columns}, PRIMARY KEY (tenant_id, doc_id))",
            f"CREATE INDEX ON {self.table} (tenant_id, user_id)",
            *self.more,
        ]

    def tables(self) -> list[str]:
        created = [one.split() for one in self.schema()]
        return [words[2] for words in created if words[1] == "TABLE"]

    def kept(self, text: str) -> tuple[Any, ...]:
        """Values of the columns of its own."""
        del text
        return ()

    async def write(self, connection: asyncpg.Connection, user: str, doc: Doc) -> None:
        """Inside of a transaction of the tenant."""
        kept = self.kept(doc.text)
        await connection.execute(self._insert, TENANT, doc.doc_id, user, doc.text, *kept)

    async def fill(self, connection: asyncpg.Connection, user: str, docs: Sequence[Doc]) -> None:
        """As if they had been written one after the other."""
        rows = [(TENANT, one.doc_id, user, one.text, *self.kept(one.text)) for one in docs]
        await connection.executemany(self._insert, rows)

    async def find(self, database: Database, user: str, query: str) -> list[str]:
        """Ids of the best `HITS`, best first."""
        raise NotImplementedError

    @property
    def _insert(self) -> str:
        return f"INSERT INTO {self.table} VALUES ($1, $2, $3, $4{self.values})"


class Frequencies(Arm):
    """Ours: plain frequencies, read out of inner products; numpy ranks."""

    name = "frequencies as `sparsevec`, BM25 in numpy (ours)"
    table = "lexical_frequencies"
    columns = ", terms sparsevec NOT NULL, length smallint NOT NULL"
    values = ", $5, $6"

    @override
    def kept(self, text: str) -> tuple[Any, ...]:
        stored = stored_terms(terms(text))
        return stored.vector, stored.count

    @override
    async def find(self, database: Database, user: str, query: str) -> list[str]:
        asked = Counter(terms(query))
        packed = packed_query(list(asked))
        statement = SearchStatement()
        whose = statement.bind(user, "text")
        products = [
            product_sql("kept.terms", statement.bind(one, "sparsevec")) for one in packed.vectors
        ]
        columns = [
            Column("length", "int2", "kept.length"),
            *(Column(f"product_{n}", "float4", one) for n, one in enumerate(products)),
        ]
        text = f"""
            SELECT array_agg(seen.doc_id) AS ids, string_agg(seen.record, '') AS records
            FROM (SELECT kept.doc_id, {record_sql(columns)} AS record FROM {self.table} AS kept
                WHERE kept.tenant_id = tenant.id AND kept.user_id = {whose} OFFSET 0) AS seen
        """
        [row] = await database.fetch(TENANT, text, *statement.values)
        records = read_records(row["records"], columns)
        sums = [records[f"product_{n}"].astype(np.float32) for n in range(len(products))]
        counts = frequencies(np.column_stack(sums), len(packed.terms))
        lengths = records["length"].astype(np.float32)
        weights = rarity(np.count_nonzero(counts, axis=0), len(lengths))
        weights *= np.sqrt(np.array([asked[term] for term in packed.terms], np.float32))
        counted = np.ascontiguousarray(counts.T, dtype=np.float32)
        scores = bm25(counted, lengths, weights, float(lengths.mean()))
        return [row["ids"][place] for place in np.argsort(-scores)[:HITS] if scores[place] > 0]


class Ranked(Arm):
    """A `tsvector` of our own terms with their places, any of them, and a GIN index."""

    name = "`tsvector` of our terms, any of them, `ts_rank_cd`, GIN"
    table = "lexical_tsvector"
    columns = ", words tsvector NOT NULL"
    values = ", CAST(CAST($5 AS text) AS tsvector)"
    more = ("CREATE INDEX lexical_tsvector_words ON lexical_tsvector USING gin (words)",)

    @override
    def kept(self, text: str) -> tuple[Any, ...]:
        places: dict[str, list[str]] = {}
        for place, term in enumerate(terms(text), 1):
            places.setdefault(term, []).append(str(place))
        return (" ".join(f"{_quoted(term)}:{','.join(at)}" for term, at in places.items()),)

    @override
    async def find(self, database: Database, user: str, query: str) -> list[str]:
        text = f"""
            SELECT doc_id FROM {self.table}, CAST(CAST($3 AS text) AS tsquery) AS query
            WHERE {_OWN} AND words @@ query
            ORDER BY ts_rank_cd(words, query, 1) DESC, doc_id LIMIT {HITS}
        """
        asked = " | ".join(_quoted(term) for term in dict.fromkeys(terms(query)))
        return [row["doc_id"] for row in await database.fetch(TENANT, text, user, asked)]


class Websearch(Arm):
    """What most services do: PostgreSQL's own English, all words of the query."""

    name = "`to_tsvector`, `websearch_to_tsquery`, `ts_rank`, GIN"
    table = "lexical_websearch"
    columns = ", words tsvector NOT NULL"
    values = ", to_tsvector('english', $4)"
    more = ("CREATE INDEX lexical_websearch_words ON lexical_websearch USING gin (words)",)

    @override
    async def find(self, database: Database, user: str, query: str) -> list[str]:
        text = f"""
            SELECT doc_id FROM {self.table},
                websearch_to_tsquery('english', CAST($3 AS text)) AS query
            WHERE {_OWN} AND words @@ query
            ORDER BY ts_rank(words, query) DESC, doc_id LIMIT {HITS}
        """
        return [row["doc_id"] for row in await database.fetch(TENANT, text, user, query)]


class Counted(Arm):
    """The document's part of BM25 stored, by the mean length of that day; holders are counted."""

    name = "stored BM25 as `sparsevec`, counters"
    table = "lexical_weights"
    columns = ", weights sparsevec NOT NULL"
    values = ", $5"
    more = (
        "CREATE TABLE lexical_totals (tenant_id text, user_id text, rows bigint NOT NULL, "
        "length bigint NOT NULL, PRIMARY KEY (tenant_id, user_id))",
        "CREATE TABLE lexical_holders (tenant_id text, user_id text, key int, "
        "holders bigint NOT NULL, PRIMARY KEY (tenant_id, user_id, key))",
    )

    @override
    async def write(self, connection: asyncpg.Connection, user: str, doc: Doc) -> None:
        counts = _keys(doc.text)
        total = await connection.fetchrow(
            "INSERT INTO lexical_totals AS kept VALUES ($1, $2, 1, $3) "
            "ON CONFLICT (tenant_id, user_id) DO UPDATE SET rows = kept.rows + 1, "
            "length = kept.length + excluded.length RETURNING rows, length",
            TENANT,
            user,
            counts.total(),
        )
        await connection.execute(
            "INSERT INTO lexical_holders AS kept SELECT $1, $2, one, 1 FROM unnest($3::int[]) one "
            "ON CONFLICT (tenant_id, user_id, key) DO UPDATE SET holders = kept.holders + 1",
            TENANT,
            user,
            # In one order, or two saves would wait for each other.
            sorted(counts),
        )
        weights = _weights(counts, total["length"] / total["rows"])
        await connection.execute(self._insert, TENANT, doc.doc_id, user, doc.text, weights)

    @override
    async def fill(self, connection: asyncpg.Connection, user: str, docs: Sequence[Doc]) -> None:
        length, rows = 0, []
        holders: Counter[int] = Counter()
        for number, doc in enumerate(docs, 1):
            counts = _keys(doc.text)
            length += counts.total()
            holders.update(counts.keys())
            rows.append((TENANT, doc.doc_id, user, doc.text, _weights(counts, length / number)))
        await connection.executemany(self._insert, rows)
        await connection.execute(
            "INSERT INTO lexical_totals VALUES ($1, $2, $3, $4)", TENANT, user, len(docs), length
        )
        await connection.copy_records_to_table(
            "lexical_holders", records=[(TENANT, user, *one) for one in holders.items()]
        )

    @override
    async def find(self, database: Database, user: str, query: str) -> list[str]:
        text = f"""
            SELECT doc_id FROM {self.table}, (
                SELECT CAST('{{' || string_agg((key + 1) || ':' || often * ln(
                        1 + (total.rows - holders + 0.5) / (holders + 0.5)), ',' ORDER BY key)
                    || '}}/{DIMENSION}' AS sparsevec) AS vector
                FROM lexical_totals AS total JOIN lexical_holders AS held
                    USING (tenant_id, user_id)
                JOIN unnest(CAST($3 AS int[]), CAST($4 AS float8[])) AS asked(key, often)
                    USING (key)
                WHERE {_OWN}
            ) AS query
            WHERE {_OWN} AND weights <#> query.vector < 0
            ORDER BY weights <#> query.vector, doc_id LIMIT {HITS}
        """
        rows = await database.fetch(TENANT, text, user, *_asked(query))
        return [row["doc_id"] for row in rows]


class Postings(Arm):
    """A row per text and term."""

    name = "a table of postings, BM25 in SQL"
    table = "lexical_posted"
    columns = ", length smallint NOT NULL"
    values = ", $5"
    more = (
        "CREATE INDEX ON lexical_posted (tenant_id, user_id) INCLUDE (length)",
        'CREATE TABLE lexical_postings (tenant_id varchar(64) COLLATE "C", '
        'user_id varchar(64) COLLATE "C", key int, doc_id varchar(64) COLLATE "C", '
        "often smallint NOT NULL, length smallint NOT NULL, "
        "PRIMARY KEY (tenant_id, user_id, key, doc_id))",
    )

    @override
    def kept(self, text: str) -> tuple[Any, ...]:
        return (_keys(text).total(),)

    @override
    async def write(self, connection: asyncpg.Connection, user: str, doc: Doc) -> None:
        counts = _keys(doc.text)
        await connection.execute(self._insert, TENANT, doc.doc_id, user, doc.text, counts.total())
        await connection.execute(
            "INSERT INTO lexical_postings SELECT $1, $2, key, $3, often, $4 "
            "FROM unnest($5::int[], $6::smallint[]) AS one(key, often)",
            TENANT,
            user,
            doc.doc_id,
            counts.total(),
            list(counts),
            list(counts.values()),
        )

    @override
    async def fill(self, connection: asyncpg.Connection, user: str, docs: Sequence[Doc]) -> None:
        await super().fill(connection, user, docs)
        rows = [
            (TENANT, user, key, doc.doc_id, often, counts.total())
            for doc in docs
            for counts in (_keys(doc.text),)
            for key, often in counts.items()
        ]
        await connection.copy_records_to_table("lexical_postings", records=rows)

    @override
    async def find(self, database: Database, user: str, query: str) -> list[str]:
        text = f"""
            WITH total AS MATERIALIZED (
                SELECT count(*) AS rows, CAST(avg(length) AS float8) AS mean
                FROM {self.table} WHERE {_OWN}
            ), hits AS MATERIALIZED (
                SELECT key, doc_id, often, length FROM lexical_postings
                WHERE {_OWN} AND key = ANY (CAST($3 AS int[]))
            ), rare AS MATERIALIZED (
                SELECT key, asked.often * ln(1 + (total.rows - count(*) + 0.5) / (count(*) + 0.5))
                    AS worth
                FROM hits JOIN unnest(CAST($3 AS int[]), CAST($4 AS float8[])) AS asked(key, often)
                    USING (key), total
                GROUP BY key, asked.often, total.rows
            )
            SELECT doc_id FROM hits JOIN rare USING (key), total GROUP BY doc_id
            ORDER BY sum(worth * {_SATURATED}) DESC, doc_id LIMIT {HITS}
        """
        rows = await database.fetch(TENANT, text, user, *_asked(query))
        return [row["doc_id"] for row in rows]


ARMS: Final[tuple[Arm, ...]] = (Frequencies(), Ranked(), Websearch(), Counted(), Postings())
"""What can find something; `Arm` itself cannot."""


def _keys(text: str) -> Counter[int]:
    return Counter(map(term_key, terms(text)))


def _asked(query: str) -> tuple[list[int], list[float]]:
    """Keys of a query's terms, and what being said several times makes each worth."""
    counts = _keys(query)
    return list(counts), [often**0.5 for often in counts.values()]


def _weights(counts: Counter[int], mean_length: float) -> SparseVector:
    saturation = K1 * (1 - B + B * counts.total() / mean_length)
    parts = {key: (K1 + 1) * often / (often + saturation) for key, often in counts.items()}
    return SparseVector(parts, DIMENSION)


def _quoted(term: str) -> str:
    escaped = term.replace("\\", "\\\\").replace("'", "''")
    return f"'{escaped}'"
