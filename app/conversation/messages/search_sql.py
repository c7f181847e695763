"""The two statements of a search: what is to be known of every message, and the few chosen.

Each is text, prepared once per connection and run over the driver (`Database.fetch` in
`database/engine.py` frames it with the tenant). Its shape depends on which ids and bounds a
request has, never on values. What is searched is an exact scan behind the index of a session,
a user or an agent (`docs/decisions/0004`, `0010`), of the newest messages alone where there are
too many.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

from app.identity.tenants.access import Access
from app.language.ranking.query import ParsedQuery
from app.language.ranking.records import (
    Column,
    SearchStatement,
    id_hash_sql,
    inner_product,
    product_columns,
    query_columns,
    record_sql,
)

COLUMNS = (
    "message_id", "session_id", "agent_id", "user_id", "role", "content", "content_type",
    "content_parts", "tool_calls", "tool_call_id", "name", "metadata", "parent_message_id",
    "sequence_no", "create_time",
)  # fmt: skip

MOST_MESSAGES: Final = 20_000
"""What one search looks at; these take about half a second."""

_SAID = "coalesce(messages.said_at, messages.create_time)"
_FINDABLE = "messages.terms IS NOT NULL"
_NO_RESULT = "messages.role <> 'tool'"


@dataclass(frozen=True, slots=True)
class MessagePlan:
    """Everything the statements need to know, resolved and checked.

    Args:
        vectors: by model, the query as a unit vector.
        asked: the query's words and what else it asks for.
        newest: what was stored after it is left out; None on the first page.
        most: how many messages are looked at.
        sessions: only of these; None for all.
        remembered: leave out what was said while memory was paused.
        beside: the session that the results are shown beside, which shows its own messages.
        lineage: sessions that it has copies of, each with the last number: left out, with what
            was said there afterwards.

    """

    access: Access
    vectors: Mapping[str, Any]
    asked: ParsedQuery
    session_id: str | None
    user_id: str | None
    agent_id: str | None
    roles: Sequence[str]
    since: datetime | None = None
    until: datetime | None = None
    newest: datetime | None = None
    most: int = MOST_MESSAGES
    sessions: Sequence[str] | None = None
    remembered: bool = False
    beside: str | None = None
    lineage: Sequence[tuple[str, int]] = ()


def features_statement(plan: MessagePlan) -> tuple[str, list[object], list[Column]]:
    """One row: `ids` of the messages, a record of each, packed as `rows.read` wants, and whether
    others were `left_out`.

    What roles and times leave out is among them, marked: it counts in the statistics of words,
    and is shown with what was said before and after it. Where the named users or sessions have more
    than
    `plan.most` messages, it is the newest of those that roles and times let through, alone.
    """
    statement = SearchStatement()
    columns = [
        *query_columns(
            plan.asked,
            statement,
            similarity=_cosine(plan.vectors, statement),
            ranked_similarity=_cosine(plan.asked.vectors, statement),
            words="messages",
        ),
        Column("session", "int8", id_hash_sql("messages.session_id")),
        Column("said", "timestamptz", _SAID),
        Column("created", "timestamptz", "messages.create_time"),
        Column("by_user", "bool", "messages.role = 'user'"),
        Column("wish", "bool", "messages.states_wish AND messages.role = 'user'"),
        Column("eligible", "bool", " AND ".join(_narrowed(plan, statement))),
    ]
    whose = " AND ".join(_whose(plan, statement))
    found = " AND ".join([whose, _FINDABLE, *_said_once(plan, statement)])
    if "tool" not in plan.roles:
        # Their words are of pages and tables, and say nothing of how people here speak.
        found = f"{found} AND {_NO_RESULT}"
    narrowed = " AND ".join(_narrowed(plan, statement))
    # The first is answered by an index alone, in any order; the second is not even begun
    # without it.
    return (
        f"""
    WITH crowd AS MATERIALIZED (
        SELECT FROM messages WHERE {whose} OFFSET {plan.most:d} LIMIT 1
    ),
    edge AS MATERIALIZED (
        SELECT messages.create_time FROM messages
        WHERE {found} AND {narrowed} AND EXISTS (SELECT FROM crowd)
        ORDER BY messages.create_time DESC OFFSET {plan.most:d} LIMIT 1
    )
    SELECT array_agg(seen.message_id) AS ids, string_agg(seen.record, '') AS records,
        EXISTS (SELECT FROM edge) AS left_out
    FROM (
        SELECT messages.message_id, {record_sql(columns)} AS record FROM messages
        WHERE {found}
            AND messages.create_time > coalesce((SELECT create_time FROM edge), '-infinity')
            AND (NOT EXISTS (SELECT FROM crowd) OR ({narrowed}))
        OFFSET 0
    ) AS seen
    """,
        statement.values,
        columns,
    )


def hits_statement(plan: MessagePlan, message_ids: Sequence[str]) -> tuple[str, list[object]]:
    """Every column of `COLUMNS` and `said_at` of those of `message_ids` that may be found."""
    statement = SearchStatement()
    chosen = f"messages.message_id = ANY ({statement.bind_ids(message_ids)})"
    where = " AND ".join([chosen, *_whose(plan, statement), _FINDABLE])
    columns = ", ".join(f"messages.{name}" for name in COLUMNS)
    return f"SELECT {columns}, {_SAID} AS said_at FROM messages WHERE {where}", statement.values


def pieces_statement(
    plan: MessagePlan, message_ids: Sequence[str]
) -> tuple[str, list[object], list[Column]]:
    """Those of `message_ids` that may be shown in pieces, with what excerpts show of a message.

    `records` has one record per piece, in their order, and is null for a message of one piece. The
    request is the user's message right before an assistant's; `session_messages` the number of
    the session's last message.
    """
    statement = SearchStatement()
    columns = _piece_columns(plan, statement)
    chosen = f"messages.message_id = ANY ({statement.bind_ids(message_ids)})"
    conditions = [*_whose(plan, statement), *_narrowed(plan, statement), _FINDABLE]
    if plan.remembered:
        # Of a way that was left by a return to a checkpoint.
        conditions.append("NOT sessions.set_aside @> messages.sequence_no")
    where = " AND ".join(conditions)
    # Fenced, or all messages of the user are read, of whom a plan expects no more than of others;
    # and a difference in a join is no condition of an index where row-level security holds.
    return (
        f"""
    SELECT messages.message_id, messages.session_id, messages.role, messages.name,
        messages.sequence_no, messages.piece_ends,
        {_searched("messages")}, {_searched("request", "request")},
        {_SAID} AS said_at, sessions.last_sequence_no AS session_messages, messages.metadata,
        coalesce(messages.states_wish, false) AND messages.role = 'user' AS wish,
        (SELECT string_agg({record_sql(columns)}, '' ORDER BY piece.number)
         FROM unnest(messages.piece_terms, messages.piece_term_counts, messages.piece_embeddings)
            WITH ORDINALITY AS piece(terms, term_count, embedding, number)) AS records
    FROM (
        SELECT *, messages.sequence_no - 1 AS before FROM messages
        WHERE messages.tenant_id = tenant.id AND {chosen} OFFSET 0
    ) AS messages
    JOIN sessions ON sessions.tenant_id = tenant.id AND sessions.session_id = messages.session_id
    LEFT JOIN LATERAL (
        SELECT asked.content, asked.content_parts, asked.searched_text FROM messages AS asked
        WHERE messages.role = 'assistant' AND asked.tenant_id = tenant.id
            AND asked.session_id = messages.session_id
            AND asked.sequence_no = messages.before AND asked.role = 'user'
            AND asked.terms IS NOT NULL AND (asked.captured OR NOT {plan.remembered})
            AND {_asked_since(plan, statement)}
    ) AS request ON true
    WHERE {where}
    """,
        statement.values,
        columns,
    )


def _searched(row: str, name: str = "content") -> str:
    """What is searched of a message, or what that is made of where it is not known."""
    return (
        f"coalesce({row}.searched_text, {row}.content) AS {name}, "
        f"CASE WHEN {row}.searched_text IS NULL THEN {row}.content_parts END AS {name}_parts"
    )


def _piece_columns(plan: MessagePlan, statement: SearchStatement) -> list[Column]:
    cosine = inner_product(
        plan.asked.vectors, statement, model="messages.embedding_model", vector="piece.embedding"
    )
    return [
        Column("similarity", "float4", f"CAST(coalesce({cosine}, 'NaN') AS float4)"),
        *product_columns(plan.asked, statement, terms="piece.terms"),
        Column("length", "int2", "piece.term_count"),
    ]


def _asked_since(plan: MessagePlan, statement: SearchStatement) -> str:
    """Whether the request `asked` is of the time that is searched."""
    if plan.since is None:
        return "true"
    moment = statement.bind(plan.since, "timestamptz")
    return f"coalesce(asked.said_at, asked.create_time) >= {moment}"


def _whose(plan: MessagePlan, statement: SearchStatement) -> list[str]:
    """Whose messages, and what the caller may see of them."""
    conditions = ["messages.tenant_id = tenant.id"]
    named = {"session_id": plan.session_id, "user_id": plan.user_id, "agent_id": plan.agent_id}
    conditions += [
        f"messages.{column} = {statement.bind(value, 'text')}"
        for column, value in named.items()
        if value is not None
    ]
    # The plan names them too; a search that forgets to must not be a leak.
    restriction = {"user_id": plan.access.user_id, "agent_id": plan.access.agent_id}
    conditions += [
        f"messages.{column} = {statement.bind(value, 'text')}"
        for column, value in restriction.items()
        if value is not None
    ]
    if plan.newest is not None:
        conditions.append(f"messages.create_time <= {statement.bind(plan.newest, 'timestamptz')}")
    return conditions


def _said_once(plan: MessagePlan, statement: SearchStatement) -> list[str]:
    """What leaves out all but one of a message and its copies in forks.

    Where it may be found itself, they are the copies, else all copies but the one with the first
    id; beside a fork, the fork's own copy is the one.
    """
    other = ["other.tenant_id = tenant.id"]
    if plan.session_id is not None:
        other.append(f"other.session_id = {statement.bind(plan.session_id, 'text')}")
    if plan.sessions is not None:
        chosen = statement.bind(list(plan.sessions), "text[]")
        other.append(f"other.session_id = ANY ({chosen})")
    beside, first = "false", "other.message_id < messages.message_id"
    if plan.beside is not None:
        fork = statement.bind(plan.beside, "text")
        beside, first = f"messages.session_id = {fork}", f"({first} OR other.session_id = {fork})"
    found = f"SELECT FROM messages AS other WHERE {' AND '.join(other)}"
    # Fenced, or all messages of the tenant are read into a table of their ids for a single copy.
    conditions = [
        f"(messages.copied_from IS NULL OR {beside} OR NOT ("
        f"EXISTS ({found} AND other.message_id = messages.copied_from OFFSET 0) "
        f"OR EXISTS ({found} AND other.copied_from = messages.copied_from AND {first} OFFSET 0)))"
    ]
    if plan.lineage:
        copied = statement.bind([session_id for session_id, _ in plan.lineage], "text[]")
        conditions.append(f"messages.session_id <> ALL ({copied})")
    return conditions


def _cosine(vectors: Mapping[str, Any], statement: SearchStatement) -> str:
    return inner_product(
        vectors, statement, model="messages.embedding_model", vector="messages.embedding"
    )


def _narrowed(plan: MessagePlan, statement: SearchStatement) -> list[str]:
    """What the request asks of a message."""
    conditions = [f"messages.role = ANY ({statement.bind(list(plan.roles), 'text[]')})"]
    if plan.since is not None:
        conditions.append(f"{_SAID} >= {statement.bind(plan.since, 'timestamptz')}")
    if plan.until is not None:
        conditions.append(f"{_SAID} < {statement.bind(plan.until, 'timestamptz')}")
    if plan.sessions is not None:
        chosen = statement.bind(list(plan.sessions), "text[]")
        conditions.append(f"messages.session_id = ANY ({chosen})")
    if plan.remembered:
        conditions.append("messages.captured")
    return conditions
