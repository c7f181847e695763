"""The two statements of a search for passages: what is to be known of each, and the few chosen.

Which folders a caller may search is decided before (`repository.visible`), so that there is one
definition of it; here they are ids. What is searched is an exact scan behind the index of a folder,
of the newest passages alone where there are too many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final, Literal

from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import (
    Column,
    SearchStatement,
    inner_product,
    query_columns,
    record_sql,
)

COLUMNS = (
    "passage_id", "folder_id", "file_id", "ordinal", "start_char", "end_char", "page", "content",
    "tags", "creator", "create_time",
)  # fmt: skip

MOST_PASSAGES: Final = 20_000
"""Most passages that a search compares, as many as of messages."""


@dataclass(frozen=True, slots=True)
class PassagePlan:
    """Everything the statements need to know, resolved and checked.

    Args:
        folder_ids: those that the caller may look into.
        vectors: by model, the query as a unit vector.
        created_from, created_to: both inclusive.
        newest: what was stored after it is left out; None on the first page.
        most: how many passages are looked at.

    """

    folder_ids: Sequence[str]
    vectors: Mapping[str, Any]
    asked: ParsedQuery
    tags: Sequence[str] = ()
    tags_match: Literal["any", "all"] = "any"
    created_from: datetime | None = None
    created_to: datetime | None = None
    newest: datetime | None = None
    most: int = MOST_PASSAGES


def features_statement(plan: PassagePlan) -> tuple[str, list[object], list[Column]]:
    """One row: `ids` of the passages, a record of each, packed as `rows.read` wants, and whether
    others were `left_out`.

    What tags and times leave out is among them, marked: it counts in the statistics of words.
    Where the folders have more than `plan.most` passages, it is the newest of those that tags and
    times let through, alone.
    """
    statement = SearchStatement()
    columns = [
        *query_columns(
            plan.asked,
            statement,
            similarity=_cosine(plan.vectors, statement),
            ranked_similarity=_cosine(plan.asked.vectors, statement),
            words="passages",
        ),
        # No neighbours and no time of their own: what relates the messages of a conversation would
        # only mislead between pages.
        Column("session", "int8", "CAST(0 AS int8)"),
        Column("said", "timestamptz", "CAST('-infinity' AS timestamptz)"),
        Column("created", "timestamptz", "passages.create_time"),
        Column("eligible", "bool", " AND ".join(_narrowed(plan, statement))),
    ]
    found = _found(plan, statement)
    narrowed = " AND ".join(_narrowed(plan, statement))
    # The first is answered by an index alone; the second is not even begun without it.
    return (
        f"""
    WITH crowd AS MATERIALIZED ({_behind(plan, f"FROM passages WHERE {_within(plan, statement)}")}),
    edge AS MATERIALIZED (
        {_behind(plan, f"{found} AND {narrowed} AND EXISTS (SELECT FROM crowd)")}
    )
    SELECT array_agg(seen.passage_id) AS ids, string_agg(seen.record, '') AS records,
        EXISTS (SELECT FROM edge) AS left_out
    FROM (
        SELECT passages.passage_id, {record_sql(columns)} AS record
        {found}
            AND passages.create_time > coalesce((SELECT create_time FROM edge), '-infinity')
            AND (NOT EXISTS (SELECT FROM crowd) OR ({narrowed}))
        OFFSET 0
    ) AS seen
    """,
        statement.values,
        columns,
    )


def hits_statement(plan: PassagePlan, passage_ids: Sequence[str]) -> tuple[str, list[object]]:
    """Every column of `COLUMNS` and the names of folder and file, of what may be found still."""
    statement = SearchStatement()
    columns = ", ".join(f"passages.{name}" for name in COLUMNS)
    chosen = statement.bind(list(passage_ids), "text[]")
    return (
        f"""
    SELECT {columns}, folders.folder_name, files.file_name
    {_found(plan, statement)} AND passages.passage_id = ANY ({chosen})
    """,
        statement.values,
    )


def _found(plan: PassagePlan, statement: SearchStatement) -> str:
    """Passages of the folders that count, as `repository.findable` has it."""
    return f"""FROM passages
        JOIN folders ON folders.tenant_id = tenant.id
            AND folders.folder_id = passages.folder_id
        LEFT JOIN files ON files.tenant_id = tenant.id AND files.file_id = passages.file_id
        WHERE {_within(plan, statement)}
            AND passages.ordinal >= 0"""


def _within(plan: PassagePlan, statement: SearchStatement) -> str:
    folders = statement.bind(list(plan.folder_ids), "text[]")
    within = f"passages.tenant_id = tenant.id AND passages.folder_id = ANY ({folders})"
    if plan.newest is None:
        return within
    return f"{within} AND passages.create_time <= {statement.bind(plan.newest, 'timestamptz')}"


def _behind(plan: PassagePlan, rows: str) -> str:
    """When the first passage after the newest `plan.most` was stored; no row if there is none."""
    return (
        f"SELECT passages.create_time {rows} "
        f"ORDER BY passages.create_time DESC OFFSET {plan.most:d} LIMIT 1"
    )


def _cosine(vectors: Mapping[str, Any], statement: SearchStatement) -> str:
    return inner_product(
        vectors, statement, model="passages.embedding_model", vector="passages.embedding"
    )


def _narrowed(plan: PassagePlan, statement: SearchStatement) -> list[str]:
    """What the request asks of a passage."""
    conditions = ["true"]
    if plan.tags:
        tags = statement.bind(list(plan.tags), "text[]")
        sign = "@>" if plan.tags_match == "all" else "&&"
        conditions.append(f"CAST(passages.tags AS text[]) {sign} {tags}")
    if plan.created_from is not None:
        conditions.append(
            f"passages.create_time >= {statement.bind(plan.created_from, 'timestamptz')}"
        )
    if plan.created_to is not None:
        conditions.append(
            f"passages.create_time <= {statement.bind(plan.created_to, 'timestamptz')}"
        )
    return conditions
