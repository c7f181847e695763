"""The statements that read a store: searches, lists of namespaces, and the items themselves.

A search is an exact scan of the items at and below a namespace, behind the index on paths. All
searches of a request are one statement; it gives ids and scores, and one more statement gives the
items that are shown.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from app.language.ranking.records import SearchStatement, inner_product
from app.memory.store.filters import Condition, conditions
from app.memory.store.namespaces import Spaces, path_of
from app.memory.store.schemas import StoreListNamespaces, StoreMatch, StoreSearch

_ORDER: Final = {"$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<="}

_ALIVE: Final = "(items.expires_at IS NULL OR items.expires_at > now())"


def search_statement(
    spaces: Spaces,
    searches: Sequence[tuple[StoreSearch, Mapping[str, Any]]],
) -> tuple[str, list[object]]:
    """Rows `search, place, item_id, score` of all searches, in order.

    Args:
        searches: each with its query as a unit vector by model; empty where nothing is ranked.

    """
    statement = SearchStatement()
    parts = [
        f"SELECT {number:d} AS search, hit.place, hit.item_id, hit.score "
        f"FROM ({_search(statement, spaces, search, vectors)}) AS hit"
        for number, (search, vectors) in enumerate(searches)
    ]
    return " UNION ALL ".join(parts) + " ORDER BY search, place", statement.values


def _search(
    statement: SearchStatement, spaces: Spaces, search: StoreSearch, vectors: Mapping[str, Any]
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
        visible(statement, spaces),
        _ALIVE,
        _below(statement, search.namespace),
        *(_met(statement, one) for one in conditions(search.filter)),
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


def items_statement(
    spaces: Spaces, item_ids: Sequence[str], limit_bytes: int
) -> tuple[str, list[object]]:
    """The items with these ids that the caller sees, and `bytes`, which their values have together.

    Where that is more than `limit_bytes`, the values are null.
    """
    statement = SearchStatement()
    ids = statement.bind(list(item_ids), "text[]")
    most = statement.bind(limit_bytes, "int8")
    return (
        f"""
        SELECT item_id, path, key, user_id, ttl_minutes, expires_at, create_time, update_time,
            bytes, CASE WHEN bytes <= {most} THEN value END AS value
        FROM (
            SELECT items.*, sum(octet_length(CAST(items.value AS text))) OVER () AS bytes
            FROM store_items AS items
            WHERE items.tenant_id = tenant.id AND items.item_id = ANY ({ids})
                AND {visible(statement, spaces)} AND {_ALIVE}
        ) AS items
        """,
        statement.values,
    )


def namespaces_statement(
    spaces: Spaces, lists: Sequence[StoreListNamespaces]
) -> tuple[str, list[object]]:
    """Rows `list, labels` of all lists, in order."""
    statement = SearchStatement()
    parts = [
        f"SELECT {number:d} AS list, hit.labels FROM ({_list(statement, spaces, one)}) AS hit"
        for number, one in enumerate(lists)
    ]
    return " UNION ALL ".join(parts) + " ORDER BY list, labels", statement.values


def _list(statement: SearchStatement, spaces: Spaces, wanted: StoreListNamespaces) -> str:
    shown = "labels"
    if wanted.max_depth is not None:
        shown = f"labels[1:{statement.bind(wanted.max_depth, 'int4')}]"
    rows = statement.bind(wanted.limit, "int8")
    skipped = statement.bind(wanted.offset, "int8")
    beginnings = [
        _below(statement, _literal(one.path)) for one in wanted.match if one.type == "prefix"
    ]
    matches = [_matches(statement, one) for one in wanted.match]
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


def visible(statement: SearchStatement, spaces: Spaces) -> str:
    """Whether the caller sees an item."""
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
