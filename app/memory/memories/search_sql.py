"""The hot reads of a search, each one statement over every bucket that it names.

`search_statement` scores and cuts in PostgreSQL, by vectors alone. `features_statement` gives what
is to be known of every row, and `hits_statement` the few that ranking chose.

A statement is text, prepared once per connection. Its shape depends on how many models made
vectors, on whether the key is restricted and on the filters, never on values.

Each bucket is a scan behind `memories_idx_bucket`: for users of up to some 10,000 memories that is
faster than a shared ANN index and loses no row. Where rows have codes, these tell whose vectors are
compared (`docs/decisions/0012`). A search `as_of` a time reads what was superseded since as well.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from app.identity.tenants.access import Access
from app.language.llm.embedder import NO_SHARE, DenseShare
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import (
    Column,
    SearchStatement,
    id_hash_sql,
    query_columns,
    record_sql,
)
from app.memory.memories.bucket_sql import in_bucket, some, valid_at
from app.memory.memories.comparison_sql import (
    SHORT,
    SLACK,
    Source,
    candidates,
    cosine,
    is_rough,
    similarity,
)
from app.memory.memories.filters import compile_filters
from app.memory.memories.graph_sql import NamedMention, linked
from app.memory.memories.validity_sql import (
    COMPUTED,
    counts_around_now,
    counts_now,
    has_ended,
    shown_columns,
)

COLUMNS = (
    "memory_id", "content", "memory_type", "attribute", "tier", "scope", "scope_id", "user_id",
    "agent_id", "session_id", "project_id", "source", "source_id", "source_deleted_at",
    "source_error", "evidence", "speaker", "said_at", "confidence", "visibility", "status",
    "superseded_by", "valid_from", "valid_to", "expected_valid_days", "reviewed_at", "expires_at",
    "external_id", "metadata", "embedding_model", "creator", "use_count", "last_used_at", "version",
    "create_time", "update_time", *COMPUTED,
)  # fmt: skip

LOOKED_AT = "clock_timestamp() AS looked_at"
"""Nothing that a statement sees was stored later, by the clock of the database."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """One scope of a search and what a hit in it weighs."""

    scope: str
    scope_id: str
    weight: float


@dataclass(frozen=True, slots=True)
class SearchPlan:
    """Everything the statement needs to know, resolved and checked.

    Args:
        vectors: by model, the query as a unit vector.
        weights: of similarity, confidence and scope; they sum to 1.
        asked: the query's words and what else it asks for; None compares vectors alone.
        mode: `semantic`, `lexical` or `hybrid`.
        as_of: what held then, by its time of validity; None is what counts now.
        around: with neither of the two times, what begins later too, and behind everything else
            what has just ended; `validity` says which, where it is among the columns.
        known_at: by what the records said then; only `timeline_sql.py` asks for it.
        memory_types: only these; all when there are none.
        corrections: how many of these are found besides, whatever their rank.
        newest: what was stored after it is left out; None on the first page.
        columns: what is to be known of a hit, of `COLUMNS`.
        run_id: only what came from this session.
        member: whether the user is a member of the project; else only what is public is found.
        names: pieces of the query that the graph is asked for; none asks nothing of it.
        dense_share: of the embedders behind the vectors; ranking asks for it, no statement does.
        explain: whether it is told what each part of the context added; no statement asks for it.

    """

    access: Access
    buckets: Sequence[Bucket]
    vectors: Mapping[str, Any]
    user_id: str | None
    agent_id: str | None
    weights: tuple[float, float, float]
    limit: int
    asked: ParsedQuery | None = None
    degraded: bool = False
    threshold: float | None = None
    rerank: bool = True
    mode: str = "semantic"
    memory_type: str | None = None
    memory_types: Sequence[str] = ()
    corrections: int = 0
    columns: Sequence[str] = COLUMNS
    tier: str | None = None
    filters: Mapping[str, Any] | None = None
    as_of: datetime | None = None
    known_at: datetime | None = None
    around: bool = False
    run_id: str | None = None
    dense_share: DenseShare = NO_SHARE
    member: bool = True
    names: Sequence[str] = ()
    newest: datetime | None = None
    explain: bool = False


def features_statement(
    plan: SearchPlan, asked: ParsedQuery
) -> tuple[str, list[object], list[Column]]:
    """One row: `ids` of the bucket's memories, and a record of each, packed as `rows.read` wants.

    What the filters leave out is among them, marked: it counts in the statistics of words, and
    counts as a neighbour of what was said before and after it.
    """
    statement = SearchStatement()
    source = current_source(plan, statement, narrow=False)
    return features(plan, asked, statement, source)


def hits_statement(plan: SearchPlan, memory_ids: Sequence[str]) -> tuple[str, list[object]]:
    """The plan's columns of those of `memory_ids` that this search may find."""
    statement = SearchStatement()
    source = current_source(plan, statement, only=memory_ids)
    return f"SELECT {shown_columns(plan.columns)}, {LOOKED_AT} {source.rows}", statement.values


def exact_statement(
    plan: SearchPlan, asked: ParsedQuery, memory_ids: Sequence[str]
) -> tuple[str, list[object]]:
    """As `hits_statement`, with the cosines that codes left open: `exact`, `exact_ranked`.

    What the filters leave out is among them, unless `fits`.
    """
    statement = SearchStatement()
    source = current_source(plan, statement, narrow=False, only=memory_ids)
    exact = replace(source, code=None)
    return (
        f"SELECT {shown_columns(plan.columns)}, {LOOKED_AT}, "
        f"coalesce({cosine(plan.vectors, statement, exact)}, 'NaN') AS exact, "
        f"coalesce({cosine(asked.vectors, statement, exact)}, 'NaN') AS exact_ranked, "
        f"{' AND '.join(narrowed(plan, statement)) or 'true'} AS fits {source.rows}",
        statement.values,
    )


def search_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """Hits, best first: the plan's columns, then scope_weight, similarity, score.

    Ties are broken by `update_time`, newest first, then by id.
    """
    statement = SearchStatement()
    return ranked(plan, statement, current_source(plan, statement)), statement.values


def waiting_statement(plan: SearchPlan) -> tuple[str, list[object]]:
    """How many memories of these buckets another model made, so that nothing compares them."""
    statement = SearchStatement()
    return waiting(plan, statement, current_source(plan, statement)), statement.values


def ranked(
    plan: SearchPlan, statement: SearchStatement, source: Source, *, beside: Sequence[str] = ()
) -> str:
    """The text of a search in `source`.

    Args:
        plan, statement, source: what is asked, and of what.
        beside: further columns of a hit; `visible`, how many rows `source` has, is one then.

    """
    formula = _formula(plan, statement)
    kept = (
        f"WHERE candidate.similarity >= {statement.bind(plan.threshold, 'float8')}"
        if plan.threshold is not None
        else ""
    )
    order = "score" if plan.rerank else "similarity"
    columns = shown_columns(plan.columns, now=plan.known_at is None)
    # What is sorted is narrow, not whole rows: 1.0 ms instead of 1.5 for a bucket of 1,000.
    # The few that are left are fetched by their ctid.
    # OFFSET 0 is a fence: the distance is computed once per row, not once per mention, and
    # the fetching is never turned into a scan of the table.
    counted = ", count(*) OVER () AS visible" if beside else ""
    more = "".join(f", {column}" for column in ("best.visible", *beside)) if beside else ""
    return f"""
    SELECT {columns}, {LOOKED_AT}, best.scope_weight, best.similarity, best.score{more}
    FROM (
        SELECT candidate.*, {formula.format(row="candidate")} AS score{counted}
        FROM ({_compared(plan, statement, source, formula)}
            OFFSET 0
        ) AS candidate
        {kept}
        ORDER BY {_ended_last(plan)}{order} DESC, update_time DESC, memory_id
        LIMIT {statement.bind(plan.limit, "int8")}
    ) AS best
    CROSS JOIN LATERAL ({source.fetched}
        OFFSET 0
    ) AS memories
    ORDER BY {_ended_last(plan)}best.{order} DESC, best.update_time DESC, best.memory_id
    """


def _ended_last(plan: SearchPlan) -> str:
    return "ended, " if plan.around else ""


def _formula(plan: SearchPlan, statement: SearchStatement) -> str:
    """The score of a `{row}`."""
    similarity, confidence, scope = (statement.bind(weight, "float8") for weight in plan.weights)
    return (
        f"{similarity} * {{row}}.similarity + {confidence} * {{row}}.confidence "
        f"+ {scope} * {{row}}.scope_weight"
    )


def _compared(plan: SearchPlan, statement: SearchStatement, source: Source, formula: str) -> str:
    """Rows with their exact similarity: all of them, or those that are nearest by their codes."""
    rough = is_rough(plan.vectors, statement, source)
    ended = f",\n                {has_ended('memories')} AS ended" if plan.around else ""
    seen = f"""
            SELECT {source.place} AS place, memories.memory_id, memories.update_time,
                memories.confidence, {source.weight} AS scope_weight,
                {similarity(plan.vectors, statement, source)} AS similarity{ended}"""
    if rough is None:
        return f"""{seen}
            {source.rows}"""
    exact = similarity(plan.vectors, statement, replace(source, code=None))
    order, kept = (formula if plan.rerank else "{row}.similarity").format(row="seen"), ""
    if plan.threshold is not None:
        threshold = statement.bind(plan.threshold, "float8")
        kept = f"WHERE seen.rough OR seen.similarity >= {threshold}"
        # What seems to miss it comes last, and not at all only if others are enough.
        order += f" - {SHORT} * greatest({threshold} - {SLACK} - seen.similarity, 0)"
    return f"""
            SELECT few.place, few.memory_id, few.update_time, few.confidence, few.scope_weight,
                CASE WHEN few.rough THEN (
                    SELECT {exact} FROM memories
                    WHERE memories.tenant_id = tenant.id AND memories.ctid = few.place
                ) ELSE few.similarity END AS similarity{", few.ended" if plan.around else ""}
            FROM (
                SELECT seen.* FROM ({seen}, {rough} AS rough
                    {source.rows}
                    OFFSET 0
                ) AS seen
                {kept}
                ORDER BY {_ended_last(plan)}{order} DESC, seen.update_time DESC, seen.memory_id
                LIMIT {statement.bind(candidates(plan.limit), "int8")}
            ) AS few"""


def waiting(plan: SearchPlan, statement: SearchStatement, source: Source) -> str:
    """The text that counts what no vector of the plan compares."""
    models = statement.bind(list(plan.vectors), "text[]")
    return f"SELECT count(*) AS waiting {source.rows} AND {source.model} <> ALL ({models})"


def features(
    plan: SearchPlan,
    asked: ParsedQuery,
    statement: SearchStatement,
    source: Source,
    *,
    beside: Sequence[str] = (),
    further: Sequence[Column] = (),
) -> tuple[str, list[object], list[Column]]:
    """The text of `features_statement` for any source.

    Args:
        plan, asked, statement, source: what is asked, and of what.
        beside: further columns of the one row.
        further: what else is to be known of a row.

    """
    columns = [*_columns(plan, asked, statement, source), *further]
    more = list(beside)
    if plan.names:
        more.append(f"{linked(_named(plan), statement)} AS links")
    return (
        f"""
    SELECT array_agg(seen.memory_id) FILTER (WHERE seen.record IS NOT NULL) AS ids,
        string_agg(seen.record, '') AS records{"".join(f", {column}" for column in more)}
    FROM (
        SELECT memories.memory_id, {record_sql(columns)} AS record {source.rows} OFFSET 0
    ) AS seen
    """,
        statement.values,
        columns,
    )


def _columns(
    plan: SearchPlan, asked: ParsedQuery, statement: SearchStatement, source: Source
) -> list[Column]:
    """What ranking is told of a row."""
    columns = [
        *query_columns(
            asked,
            statement,
            similarity=cosine(plan.vectors, statement, source),
            ranked_similarity=cosine(asked.vectors, statement, source),
            words=source.words,
        ),
        Column("session", "int8", id_hash_sql("memories.session_id")),
        Column(
            "said",
            "timestamptz",
            "coalesce(memories.valid_from, memories.said_at, memories.create_time)",
        ),
        Column("created", "timestamptz", "memories.create_time"),
        Column("updated", "timestamptz", "memories.update_time"),
        Column("confidence", "float8", "memories.confidence"),
        Column("scope_weight", "float8", source.weight),
        Column(
            "eligible", "bool", " AND ".join(narrowed(plan, statement, source.came_from)) or "true"
        ),
    ]
    if plan.around:
        columns.append(Column("ended", "bool", has_ended("memories")))
    if plan.corrections:
        columns.append(Column("correction", "bool", "memories.memory_type = 'correction'"))
    rough = is_rough(plan.vectors, statement, source)
    if rough is not None:
        columns.append(Column("rough", "bool", rough))
    return columns


def _named(plan: SearchPlan) -> NamedMention:
    """What is asked of the graph: in a project of others nothing, where little is public."""
    places = [
        (bucket.scope, bucket.scope_id)
        for bucket in plan.buckets
        if bucket.scope != "session" and (plan.member or bucket.scope != "project")
    ]
    agent_id = plan.agent_id or plan.access.agent_id
    return NamedMention(plan.names, places, agent_id, plan.as_of, plan.known_at)


def current_source(
    plan: SearchPlan,
    statement: SearchStatement,
    *,
    narrow: bool = True,
    only: Sequence[str] | str | None = None,
) -> Source:
    """Memories of the buckets that the caller may see: those that count now, or then.

    Args:
        narrow: leave out what the request's filters leave out.
        only: nothing but these ids, or those of a query.

    """
    buckets = bucket_table(plan, statement)
    if only is not None:
        # Looked up once, and not once for each bucket.
        rows = f"""FROM ({some(only, statement)} OFFSET 0) AS memories
        JOIN {buckets} ON bucket.scope_id = memories.scope_id AND bucket.scope = memories.scope"""
    else:
        statuses = ["= 'active'"]
        if plan.as_of is not None:
            statuses.append("IN ('archived', 'superseded')")
        rows = f"""FROM {buckets}
        CROSS JOIN LATERAL ({in_bucket(*statuses)} OFFSET 0) AS memories"""
    if plan.as_of is not None:
        conditions = [valid_at(plan.as_of, statement)]
    else:
        conditions = [(counts_around_now if plan.around else counts_now)("memories")]
    conditions += whose(plan, statement)
    if narrow:
        conditions += narrowed(plan, statement)
    return Source(f"{rows}\n        WHERE {' AND '.join(conditions)}", code="memories.code")


def bucket_table(plan: SearchPlan, statement: SearchStatement) -> str:
    """The buckets of the plan as the table `bucket`."""
    scopes = statement.bind([bucket.scope for bucket in plan.buckets], "text[]")
    ids = statement.bind([bucket.scope_id for bucket in plan.buckets], "text[]")
    weights = statement.bind([bucket.weight for bucket in plan.buckets], "float8[]")
    return f"unnest({scopes}, {ids}, {weights}) AS bucket(scope, scope_id, weight)"


def narrowed(
    plan: SearchPlan, statement: SearchStatement, came_from: str = "memories.session_id"
) -> list[str]:
    """What the request asks of a memory; `came_from` is the column of its session."""
    conditions = []
    if plan.run_id is not None:
        conditions.append(f"{came_from} = {statement.bind(plan.run_id, 'text')}")
    if plan.memory_type is not None:
        conditions.append(f"memories.memory_type = {statement.bind(plan.memory_type, 'text')}")
    if plan.memory_types:
        types = statement.bind(list(plan.memory_types), "text[]")
        conditions.append(f"memories.memory_type = ANY ({types})")
    if plan.tier is not None:
        conditions.append(f"memories.tier = {statement.bind(plan.tier, 'text')}")
    if plan.filters:
        conditions.append(f"({compile_filters(plan.filters, statement.bind)})")
    return conditions


def whose(plan: SearchPlan, statement: SearchStatement) -> list[str]:
    """Who may see what, as text; `visibility_sql.py` says the same to SQLAlchemy.

    It leaves out what is newer than the first page, too.
    """
    conditions = []
    if plan.newest is not None:
        conditions.append(f"memories.create_time <= {statement.bind(plan.newest, 'timestamptz')}")
    # A session is one person's; a project shows an owner's own items to the owner alone.
    owned = {
        "session": "memories.scope <> 'session'",
        "project": "memories.scope <> 'project' OR memories.visibility <> 'owner_only'",
    }
    scopes = dict.fromkeys(bucket.scope for bucket in plan.buckets)
    asked = [owned[scope] for scope in scopes if scope in owned]
    if plan.user_id is not None and asked:
        user = statement.bind(plan.user_id, "text")
        conditions += [f"({open_to_all} OR memories.user_id = {user})" for open_to_all in asked]
    if not plan.member:
        conditions.append("(memories.scope <> 'project' OR memories.visibility = 'public')")
    if plan.agent_id is not None:
        agent = statement.bind(plan.agent_id, "text")
        conditions.append(f"(memories.agent_id IS NULL OR memories.agent_id = {agent})")
    if plan.access.agent_id is not None:
        home = statement.bind(plan.access.agent_id, "text")
        conditions.append(
            "(memories.scope = 'agent' "
            "OR (memories.scope = 'project' AND memories.visibility <> 'owner_only') "
            "OR EXISTS (SELECT 1 FROM users WHERE "
            "users.tenant_id = tenant.id AND users.user_id = memories.user_id "
            f"AND users.agent_id = {home}))"
        )
    return conditions
