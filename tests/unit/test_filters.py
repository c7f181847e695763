"""What a filter may say, what is refused, and that nothing of it becomes SQL text."""

import math
import re
from datetime import UTC, datetime
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.memory.memories.filters import (
    FIELDS,
    MAX_LEAVES,
    MAX_VALUES,
    InvalidFilterError,
    compile_filters,
    with_composed_ids,
)


class Binder:
    """Collects what is bound, as a repository does."""

    def __init__(self):
        self.bound = []

    def __call__(self, value, sql_type):
        self.bound.append((value, sql_type))
        return f"${len(self.bound)}"


def compiled(filters):
    binder = Binder()
    return compile_filters(filters, binder), binder.bound


def refused(filters):
    with pytest.raises(InvalidFilterError) as caught:
        compiled(filters)
    assert caught.value.status == 422
    assert caught.value.code == "invalid_filter"
    return caught.value


NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("filters", "sql", "bound"),
    [
        ({}, "TRUE", []),
        ({"user_id": "anna"}, "memories.user_id = $1", [("anna", "text")]),
        ({"category": {"eq": "goal"}}, "memories.memory_type = $1", [("goal", "text")]),
        ({"agent_id": None}, "memories.agent_id IS NULL", []),
        ({"agent_id": {"ne": None}}, "memories.agent_id IS NOT NULL", []),
        ({"agent_id": {"ne": "a"}}, "memories.agent_id IS DISTINCT FROM $1", [("a", "text")]),
        ({"agent_id": {"exists": False}}, "memories.agent_id IS NULL", []),
        (
            {"status": {"in": ["active", "archived"]}},
            "(memories.status = ANY($1))",
            [(["active", "archived"], "text[]")],
        ),
        (
            {"version": {"nin": [1, 2.0]}},
            "((memories.version = ANY($1)) IS NOT TRUE)",
            [([1, 2], "bigint[]")],
        ),
        ({"user_id": {"gt": "a"}}, 'memories.user_id COLLATE "C" > $1', [("a", "text")]),
        (
            {"metadata.k": {"lte": "a"}},
            (
                "CASE WHEN jsonb_typeof((memories.metadata -> $1)) = 'string' "
                "THEN ((memories.metadata -> $1) #>> '{}') COLLATE \"C\" <= $2 END"
            ),
            [("k", "text"), ("a", "text")],
        ),
        ({"confidence": {"gte": 1}}, "memories.confidence >= $1", [(1.0, "double precision")]),
        ({"content": {"contains": "50%"}}, "strpos(memories.content, $1) > 0", [("50%", "text")]),
        (
            {"content": {"icontains": "Tea"}},
            "strpos(lower(memories.content), lower($1)) > 0",
            [("Tea", "text")],
        ),
        ({"evidence": {"contains": "msg_1"}}, "$1 = ANY(memories.evidence)", [("msg_1", "text")]),
        (
            {"create_time": {"gte": "2026-01-31T13:00:00+01:00", "lt": "2026-01-31 12:00Z"}},
            "(memories.create_time >= $1 AND memories.create_time < $2)",
            [(NOON, "timestamptz"), (NOON, "timestamptz")],
        ),
        (
            {"OR": [{"scope": "user"}, {"tier": "long", "version": 3}]},
            "(memories.scope = $1 OR (memories.tier = $2 AND memories.version = $3))",
            [("user", "text"), ("long", "text"), (3, "bigint")],
        ),
        ({"NOT": {"scope": "user"}}, "((memories.scope = $1) IS NOT TRUE)", [("user", "text")]),
        (
            {"metadata.a.b": {"gt": 1.5}},
            (
                "CASE WHEN jsonb_typeof((memories.metadata -> $1 -> $2)) = 'number' "
                "THEN CAST((memories.metadata -> $1 -> $2) AS numeric) > $3 END"
            ),
            [("a", "text"), ("b", "text"), (Decimal("1.5"), "numeric")],
        ),
    ],
)
def test_a_filter_becomes_one_condition_and_its_values(filters, sql, bound):
    assert compiled(filters) == (sql, bound)


def test_a_placeholder_may_be_any_text_and_no_double_colon_is_added():
    """SQLAlchemy's `text()` would read `::name` as a parameter."""
    filters = {
        "metadata.k": {"in": ["a", 1, True, "2026-01-31T12:00:00Z"], "contains": "x"},
        "create_time": {"gt": "2026-01-31T12:00:00Z"},
        "NOT": {"evidence": {"contains": "m", "exists": True}},
    }
    sql = compile_filters(filters, lambda _value, sql_type: f"CAST(:f0 AS {sql_type})")
    assert "::" not in sql
    assert set(re.findall(r":\w+", sql)) == {":f0"}


@pytest.mark.parametrize(
    ("filters", "field"),
    [
        ({"tenant_id": "t"}, "filters.tenant_id"),
        ({"embedding": {"exists": True}}, "filters.embedding"),
        ({"content_hash": "x"}, "filters.content_hash"),
        ({"": "x"}, "filters."),
        ({"metadata": {"a": 1}}, "filters.metadata"),
        ({"and": [{"scope": "user"}]}, "filters.and"),
        ({"user_id": {}}, "filters.user_id"),
        ({"user_id": {"like": "a%"}}, "filters.user_id.like"),
        ({"user_id": {"EQ": "a"}}, "filters.user_id.EQ"),
        ({"user_id": ["a"]}, "filters.user_id.eq"),
        ({"user_id": 5}, "filters.user_id.eq"),
        ({"user_id": {"gt": None}}, "filters.user_id.gt"),
        ({"user_id": {"in": "a"}}, "filters.user_id.in"),
        ({"user_id": {"in": ["a", None]}}, "filters.user_id.in[1]"),
        ({"user_id": {"eq": {"eq": "a"}}}, "filters.user_id.eq"),
        ({"agent_id": {"exists": "yes"}}, "filters.agent_id.exists"),
        ({"content": {"gt": "a"}}, "filters.content.gt"),
        ({"confidence": "0.5"}, "filters.confidence.eq"),
        ({"confidence": True}, "filters.confidence.eq"),
        ({"confidence": {"lt": math.nan}}, "filters.confidence.lt"),
        ({"confidence": {"lt": math.inf}}, "filters.confidence.lt"),
        ({"confidence": {"lt": 10**400}}, "filters.confidence.lt"),
        ({"confidence": {"contains": 1}}, "filters.confidence.contains"),
        ({"version": 1.5}, "filters.version.eq"),
        ({"version": 2**63}, "filters.version.eq"),
        ({"version": 1e19}, "filters.version.eq"),
        ({"version": math.nan}, "filters.version.eq"),
        ({"evidence": "msg_1"}, "filters.evidence.eq"),
        ({"evidence": {"contains": ["msg_1"]}}, "filters.evidence.contains"),
        ({"AND": {"scope": "user"}}, "filters.AND"),
        ({"AND": []}, "filters.AND"),
        ({"AND": ["scope"]}, "filters.AND[0]"),
        ({"OR": [{}]}, "filters.OR[0]"),
        ({"NOT": {}}, "filters.NOT"),
        ({"NOT": [{"scope": "user"}]}, "filters.NOT"),
        (
            {"AND": [{"scope": "user"}, {"create_time": {"gt": "2026-01-31"}}]},
            "filters.AND[1].create_time.gt",
        ),
        ({"create_time": {"gt": "2026-01-31T12:00:00"}}, "filters.create_time.gt"),
        ({"create_time": {"gt": "2026-02-30T12:00:00Z"}}, "filters.create_time.gt"),
        ({"create_time": {"gt": "0001-01-01T00:00:00+10:00"}}, "filters.create_time.gt"),
        ({"create_time": {"gt": "2026-01-31T12:00:00Z\n"}}, "filters.create_time.gt"),
        ({"create_time": {"gt": 1769860800}}, "filters.create_time.gt"),
        ({"user_id": "a\0"}, "filters.user_id.eq"),
        ({"user_id": "\ud800"}, "filters.user_id.eq"),
        ({"content": {"contains": "\udfff"}}, "filters.content.contains"),
        ({"metadata.a": {"eq": [1]}}, "filters.metadata.a.eq"),
        ({"metadata.a": {"gt": None}}, "filters.metadata.a.gt"),
        ({"metadata.a": {"gt": True}}, "filters.metadata.a.gt"),
        ({"metadata.a": math.inf}, "filters.metadata.a.eq"),
        ({"metadata.a": 2**64}, "filters.metadata.a.eq"),
        ({"metadata.a": "\0"}, "filters.metadata.a.eq"),
        ({"metadata.a": {"in": ["x", "\ud800"]}}, "filters.metadata.a.in[1]"),
        ({"metadata.": 1}, "filters.metadata."),
        ({"metadata.a..b": 1}, "filters.metadata.a..b"),
        ({"metadata.a.b.c.d": 1}, "filters.metadata.a.b.c.d"),
        ({f"metadata.{'k' * 65}": 1}, f"filters.metadata.{'k' * 65}"),
        ({"metadata.a\0": 1}, "filters.?"),
        ({"x" * 5000: 1}, "filters.?"),
        ({"user_id": {"\x1b[31m": 1}}, "filters.user_id.?"),
    ],
)
def test_anything_else_is_refused_with_its_place(filters, field):
    assert refused(filters).members["field"] == field


def nested(levels):
    filters = {"scope": "user"}
    for _ in range(levels - 1):
        filters = {"NOT": filters}
    return filters


@pytest.mark.parametrize(
    ("allowed", "too_much"),
    [
        (nested(5), nested(6)),
        ({"NOT": {"OR": [nested(3)]}}, {"NOT": {"OR": [nested(4)]}}),
        (
            {"OR": [{"version": n} for n in range(MAX_LEAVES)]},
            {"OR": [{"version": n} for n in range(MAX_LEAVES + 1)]},
        ),
        (
            {"OR": [{"version": {"gt": n, "lt": n}} for n in range(25)]},
            {"OR": [*({"version": {"gt": n, "lt": n}} for n in range(25)), {"tier": "long"}]},
        ),
        (
            {"version": {"in": list(range(MAX_VALUES))}},
            {"version": {"in": list(range(MAX_VALUES + 1))}},
        ),
        ({f"metadata.{'k' * 64}": 1}, {f"metadata.{'k' * 65}": 1}),
        ({"metadata.a.b.c": 1}, {"metadata.a.b.c.d": 1}),
        ({"version": 2**63 - 1}, {"version": 2**63}),
        ({"version": -(2**63)}, {"version": -(2**63) - 1}),
    ],
    ids=[
        "depth",
        "depth over OR",
        "leaves",
        "leaves by operators",
        "values",
        "key length",
        "path length",
        "largest whole number",
        "smallest whole number",
    ],
)
def test_a_limit_allows_itself_and_refuses_one_more(allowed, too_much):
    compiled(allowed)
    refused(too_much)


def test_a_filter_of_any_depth_is_refused_without_a_crash():
    refused(nested(100_000))


def test_an_empty_list_matches_nothing_and_its_opposite_everything():
    assert compiled({"scope": {"in": []}})[0] == "(memories.scope = ANY($1))"
    sql, bound = compiled({"metadata.a": {"nin": []}})
    assert sql.endswith(" = ANY($2) END) IS NOT TRUE)")
    assert bound == [("a", "text"), ([], "text[]")]


def test_the_refusal_of_a_field_lists_what_is_allowed():
    detail = refused({"secret_field": "value-of-caller"}).detail
    assert "value-of-caller" not in detail
    assert "secret_field" not in detail
    assert all(name in detail for name in FIELDS)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)
names = st.sampled_from([*FIELDS, "AND", "OR", "NOT", "metadata.k"]) | st.text()
rubbish = st.recursive(
    st.dictionaries(names, values, max_size=4),
    lambda inner: st.dictionaries(names, inner | st.lists(inner, max_size=3), max_size=3),
    max_leaves=10,
)

# Every word, sign and string that may stand in a condition; anything else came from outside.
VOCABULARY = re.compile(
    r"TRUE|FALSE|AND|OR|NOT|IS|NULL|DISTINCT|FROM|ANY|CASE|WHEN|THEN|END|CAST|AS|COLLATE|numeric"
    r"|boolean|strpos|cardinality|coalesce|jsonb_typeof|to_jsonb|kemem_timestamptz|memories\.\w+"
    r"""|'(null|number|string|boolean|array|\{\})'|"C"|->|#>>|@>|[<>]=?|[=(), 0]|\$\d+"""
)


@given(rubbish)
def test_rubbish_is_refused_and_never_crashes_nor_becomes_sql(filters):
    try:
        sql, _ = compiled(filters)
    except InvalidFilterError:
        return
    assert not VOCABULARY.sub("", sql)


@given(rubbish)
def test_every_bound_value_has_its_place_in_the_condition(filters):
    """PostgreSQL cannot tell the type of a parameter that the statement never names."""
    try:
        sql, bound = compiled(filters)
    except InvalidFilterError:
        return
    assert {int(place) for place in re.findall(r"\$(\d+)", sql)} == set(range(1, len(bound) + 1))


@given(st.text(min_size=1, max_size=20).filter(lambda text: text != "k"))
def test_the_text_of_a_caller_is_only_ever_bound(text):
    try:
        sql, bound = compiled({"user_id": text, "metadata.k": {"contains": text}})
    except InvalidFilterError:
        assert "\0" in text
        return
    assert not VOCABULARY.sub("", sql)
    assert [value for value, _ in bound].count(text) == 2


def test_ids_that_callers_chose_are_composed_wherever_they_stand_and_nothing_else_is() -> None:
    typed, stored = "Zoe\u0308", "Zo\u00eb"
    filters = {
        "OR": [
            {"user_id": typed},
            {"NOT": {"session_id": {"in": [typed, "s"]}}},
            {"content": {"contains": typed}, "metadata.name": typed},
        ]
    }

    assert with_composed_ids(filters) == {
        "OR": [
            {"user_id": stored},
            {"NOT": {"session_id": {"in": [stored, "s"]}}},
            {"content": {"contains": typed}, "metadata.name": typed},
        ]
    }
    assert with_composed_ids(None) is None
