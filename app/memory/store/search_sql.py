"""The statements that read a store: searches, lists of namespaces, and the items themselves.

A search is an exact scan of the items at and below a namespace, behind the index on paths. All
searches of a request are one statement, or few where they have many values; it gives ids and
scores, and one more statement gives the items that are shown.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from app.language.ranking.records import SearchStatement, inner_product
from app.memory.store.json_values import Condition, conditions
from app.memory.store.models import Spaces, path_of
from app.memory.store.schemas import StoreListNamespaces, StoreMatch, StoreSearch

_ORDER: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

VALUES: Final = 20_000
"""Values after which a further statement begins. PostgreSQL takes 32,767 of one; no search or list
has 1,000."""

Statement = tuple[str, list[object]]

_ALIVE: Final = "(items.expires_at IS NULL OR items.expires_at > now())"


def search_statements(
    spaces: Spaces, searches: Sequence[tuple[StoreSearch, Mapping[str, Any]]], limit: int
) -> list[Statement]:
    """Rows `operation, item_id, score, place` of all searches, in order; `limit` of a statement.

    Args:
        spaces: what the caller sees.
        searches: each with its query as a unit vector by model; empty where nothing is ranked.
        limit: most rows of a statement.

    """
    parts = [partial(_search, spaces, search, vectors) for search, vectors in searches]
    return _statements(parts, "place", limit)


def _statements(
    parts: Sequence[Callable[[SearchStatement], str]], order: str, limit: int
) -> list[Statement]:
    """The rows of all parts, with the number of the part as `operation`."""
    groups: list[tuple[SearchStatement, list[str]]] = []
    for number, part in enumerate(parts):
        if not groups or len(groups[-1][0].values) > VALUES:
            groups.append((SearchStatement(), []))
        statement, selects = groups[-1]
        selects.append(f"SELECT {number:d} AS operation, hit.* FROM ({part(statement)}) AS hit")
    return [
        (
            f"SELECT * FROM ({' UNION ALL '.join(selects)} LIMIT {statement.bind(limit, 'int8')}) "
            f"AS hits ORDER BY operation, {order}",
            statement.values,
        )
        for statement, selects in groups
    ]


def _search(
    spaces: Spaces, search: StoreSearch, vectors: Mapping[str, Any], statement: SearchStatement
) -> str:
    score = "CAST(NULL AS float8)"
    if vectors:
        product = inner_product(
            vectors, statement, model="texts.embedding_model", vector="texts.embedding"
        )
        score = f"""(
            SELECT max({product}) FROM store_texts AS texts
            WHERE texts.tenant_id = tenant.id AND texts.item_id = items.item_id
        )"""
    wanted = [
        _shown(statement, spaces),
        _below(statement, search.namespace),
        *(_met(statement, condition) for condition in conditions(search.filter)),
    ]
    rows = statement.bind(search.limit, "int8")
    skipped = statement.bind(search.offset, "int8")
    order = "score DESC NULLS LAST, update_time DESC, item_id"
    return f"""
        SELECT item_id, score, row_number() OVER (ORDER BY {order}) AS place
        FROM (
            SELECT items.item_id, items.update_time, {score} AS score
            FROM store_items AS items
            WHERE items.tenant_id = tenant.id AND {" AND ".join(wanted)}
            ORDER BY {order}
            LIMIT {rows} OFFSET {skipped}
        ) AS found
    """


def items_statement(spaces: Spaces, times: Mapping[str, int], limit_bytes: int) -> Statement:
    """The items with these ids that the caller sees, and `bytes`, which they have together.

    Values are texts. An item counts as often as `times` says. Where they have more than
    `limit_bytes`, the values are null.
    """
    statement = SearchStatement()
    ids = statement.bind(list(times), "text[]")
    counts = statement.bind(list(times.values()), "int8[]")
    most = statement.bind(limit_bytes, "int8")
    return (
        f"""
        SELECT item_id, path, key, user_id, ttl_minutes, expires_at, create_time, update_time,
            bytes, CASE WHEN bytes <= {most} THEN CAST(value AS text) END AS value
        FROM (
            SELECT items.*, CAST(sum(asked.times * (
                octet_length(CAST(items.value AS text)) + octet_length(items.path)
                + octet_length(items.key)
            )) OVER () AS int8) AS bytes
            FROM unnest({ids}, {counts}) AS asked(item_id, times)
            -- OFFSET, so that each is looked up by its id and by nothing else.
            CROSS JOIN LATERAL (
                SELECT * FROM store_items
                WHERE tenant_id = tenant.id AND item_id = asked.item_id OFFSET 0
            ) AS items
            WHERE {_shown(statement, spaces)}
        ) AS items
        """,
        statement.values,
    )


def namespaces_statements(
    spaces: Spaces, lists: Sequence[StoreListNamespaces], limit: int
) -> list[Statement]:
    """Rows `operation, labels` of all lists, in order; `limit` of a statement."""
    return _statements([partial(_list, spaces, listing) for listing in lists], "labels", limit)


def _list(spaces: Spaces, wanted: StoreListNamespaces, statement: SearchStatement) -> str:
    shown = "labels"
    if wanted.max_depth is not None:
        shown = f"labels[1:{statement.bind(wanted.max_depth, 'int4')}]"
    rows = statement.bind(wanted.limit, "int8")
    skipped = statement.bind(wanted.offset, "int8")
    beginnings = [
        _below(statement, _literal(match.path)) for match in wanted.match if match.type == "prefix"
    ]
    matches = [_matches(statement, match) for match in wanted.match]
    return f"""
        SELECT DISTINCT {shown} AS labels
        FROM (
            SELECT string_to_array(path, '.') AS labels
            FROM (
                SELECT DISTINCT items.path
                FROM store_items AS items
                WHERE items.tenant_id = tenant.id AND {visible(statement, spaces)} AND {_ALIVE}
                    AND {" AND ".join(["true", *beginnings])}
            ) AS paths
        ) AS named
        WHERE {" AND ".join(["true", *matches])}
        ORDER BY labels
        LIMIT {rows} OFFSET {skipped}
    """


def _matches(statement: SearchStatement, match: StoreMatch) -> str:
    """Whether `labels` begin or end with a path, in which `*` is any label."""
    length = statement.bind(len(match.path), "int4")
    first = "0" if match.type == "prefix" else f"cardinality(labels) - {length}"
    same = [
        f"labels[{first} + {number:d}] = {statement.bind(label, 'text')}"
        for number, label in enumerate(match.path, 1)
        if label != "*"
    ]
    return " AND ".join([f"cardinality(labels) >= {length}", *same])


def _literal(path: Sequence[str]) -> list[str]:
    """The labels in front of the first `*`."""
    return list(path[: path.index("*")] if "*" in path else path)


def _shown(statement: SearchStatement, spaces: Spaces) -> str:
    """Whether the caller is shown an item: it is alive, and no own one of the name hides it."""
    seen = f"{visible(statement, spaces)} AND {_ALIVE}"
    if spaces.user_id is None:
        return seen
    own = statement.bind(spaces.own, "text")
    return f"""{seen} AND NOT EXISTS (
        SELECT 1 FROM store_items AS own
        WHERE own.tenant_id = tenant.id AND own.item_id = {_item_id(own)}
            AND items.space <> {own}
            AND (own.expires_at IS NULL OR own.expires_at > now())
    )"""


def _item_id(space: str) -> str:
    """The id of an item's name in another space, as `namespaces.item_id` makes it.

    By ids alone it is one look-up per item, however little PostgreSQL knows of the table.
    """
    name = "convert_to(items.path, 'UTF8') || '\\x00' || convert_to(items.key, 'UTF8')"
    hashed = f"sha256(convert_to({space}, 'UTF8') || '\\x00' || {name})"
    return f"('itm_' || left(encode({hashed}, 'hex'), 32))"


def visible(statement: SearchStatement, spaces: Spaces) -> str:
    """Whether an item is the caller's, alive or not."""
    own = statement.bind(spaces.own, "text")
    if spaces.user_id is None:
        return f"items.space = {own}"
    shared = statement.bind(spaces.shared, "text")
    user = statement.bind(spaces.user_id, "text")
    return f"items.space IN ({own}, {shared}) AND items.user_id = {user}"


def _below(statement: SearchStatement, namespace: Sequence[str]) -> str:
    """Whether an item is at or below a namespace; `/` follows the period that separates labels."""
    if not namespace:
        return "true"
    path = path_of(namespace)
    exact = statement.bind(path, "text")
    first = statement.bind(f"{path}.", "text")
    end = statement.bind(f"{path}/", "text")
    # The range alone is what the index is asked for.
    return (
        f"items.path >= {exact} AND items.path < {end} "
        f"AND (items.path = {exact} OR items.path >= {first})"
    )


def _met(statement: SearchStatement, condition: Condition) -> str:
    field = "items.value"
    for name in condition.field:
        field = f"({field} -> {statement.bind(name, 'text')})"
    if condition.operator == "object":
        return f"jsonb_typeof({field}) = 'object'"
    # As text: a None would be bound as SQL's null.
    operand = f"CAST({statement.bind(json.dumps(condition.value), 'text')} AS jsonb)"
    if condition.operator in ("$eq", "$ne"):
        sign = "=" if condition.operator == "$eq" else "<>"
        return f"coalesce({field}, 'null') {sign} {operand}"
    sign = _ORDER[condition.operator]
    # In their order of code points, as Python compares them.
    return f"""CASE
        WHEN jsonb_typeof({field}) <> jsonb_typeof({operand}) THEN false
        WHEN jsonb_typeof({field}) = 'number' THEN {field} {sign} {operand}
        WHEN jsonb_typeof({field}) = 'string'
            THEN ({field} #>> '{{}}') COLLATE "C" {sign} ({operand} #>> '{{}}') COLLATE "C"
        ELSE false
    END"""
