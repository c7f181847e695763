"""PostgreSQL answers a filter as a plain reading of its rules does, whatever the rows hold.

The reference below walks the filter over Python rows and shares no code with the compiler.
"""

import json
import re
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import uuid4

import asyncpg
import pytest
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.memory.memories.filters import compile_filters

KEMEM_TIMESTAMPTZ = r"""
CREATE FUNCTION kemem_timestamptz(value text) RETURNS timestamptz
LANGUAGE sql STABLE STRICT PARALLEL SAFE
RETURN CASE
    WHEN value !~ ('^[0-9]{4}-(0[1-9]|1[0-2])-[0-9]{2}[T ]([01][0-9]|2[0-3]):[0-5][0-9]'
        || '(:[0-5][0-9]([.][0-9]{1,6})?)?(Z|[+-](0[0-9]|1[0-5]):?[0-5][0-9])$')
        OR value ~ '^0000' THEN NULL
    WHEN CAST(substr(value, 9, 2) AS integer) NOT BETWEEN 1 AND extract(day FROM
        make_date(CAST(substr(value, 1, 4) AS integer), CAST(substr(value, 6, 2) AS integer), 1)
        + INTERVAL '1 month' - INTERVAL '1 day') THEN NULL
    ELSE CAST(value AS timestamptz)
END
"""
TEXTS = {
    "user_id": 'varchar(64) COLLATE "C"',
    "agent_id": 'varchar(64) COLLATE "C"',
    "scope": "varchar(20)",
    "content": "text",
}
NUMBERS = {"confidence": "double precision", "use_count": "bigint", "version": "integer"}
TIMES = ("create_time", "valid_to")
TABLE = f"""
CREATE TABLE memories (
    row_number integer NOT NULL,
    {", ".join(f"{name} {sql_type}" for name, sql_type in (TEXTS | NUMBERS).items())},
    {", ".join(f"{name} timestamptz" for name in TIMES)},
    evidence varchar[],
    metadata jsonb
)
"""
COLUMNS = (*TEXTS, *NUMBERS, *TIMES, "evidence", "metadata")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def db(postgres_dsn):
    """Give a connection whose search path is a schema of its own, with the table and function."""
    connection = await asyncpg.connect(postgres_dsn)
    schema = f"filters_{uuid4().hex}"
    await connection.execute(f"CREATE SCHEMA {schema}; SET search_path = {schema}")
    await connection.execute("SET synchronous_commit = off")
    # Far from UTC, so that a time read in the session's zone would show.
    await connection.execute("SET TimeZone = 'Asia/Kathmandu'")
    await connection.execute(KEMEM_TIMESTAMPTZ)
    await connection.execute(TABLE)
    yield connection
    await connection.execute(f"DROP SCHEMA {schema} CASCADE")
    await connection.close()


async def store(db, rows):
    numbered = [{"row_number": number, **row} for number, row in enumerate(rows)]
    async with db.transaction():
        await db.execute("DELETE FROM memories")
        await db.execute(
            "INSERT INTO memories SELECT * FROM jsonb_populate_recordset(NULL::memories, $1)",
            json.dumps(numbered, default=datetime.isoformat),
        )


async def found(db, filters):
    return (await found_by_each(db, [filters]))[0]


async def found_by_each(db, asked):
    """Ask all filters in one statement, each as WHERE would take it."""
    bound = []

    def bind(value, sql_type):
        bound.append(value)
        return f"${len(bound)}::{sql_type}"

    conditions = [f"({compile_filters(filters, bind)}) IS TRUE" for filters in asked]
    records = await db.fetch(f"SELECT row_number, {', '.join(conditions)} FROM memories", *bound)
    return [{each[0] for each in records if each[n + 1]} for n in range(len(asked))]


# The reference.

ZONED = re.compile(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d{1,6})?)?(Z|[+-]\d\d:?\d\d)", re.ASCII)


def moment(value):
    if isinstance(value, datetime):
        return value
    if isinstance(value, str) and ZONED.fullmatch(value):
        try:
            return datetime.fromisoformat(value)
        except ValueError:
            return None
    return None


def same_kind(stored, operand):
    """Give both in the type of the operand, or None when the stored value has another."""
    if isinstance(operand, bool) or isinstance(stored, bool):
        both = isinstance(operand, bool) and isinstance(stored, bool)
        return (stored, operand) if both else None
    if isinstance(operand, int | float):
        number = isinstance(stored, int | float)
        return (Decimal(repr(stored)), Decimal(repr(operand))) if number else None
    if moment(operand) is not None:
        return None if moment(stored) is None else (moment(stored), moment(operand))
    return (stored, operand) if isinstance(stored, str) else None


def equal(stored, operand):
    if operand is None:
        return stored is None
    pair = same_kind(stored, operand)
    return pair is not None and pair[0] == pair[1]


def ordered(stored, operator, operand):
    pair = same_kind(stored, operand)
    if pair is None:
        return False
    left, right = pair
    return {"gt": left > right, "gte": left >= right, "lt": left < right, "lte": left <= right}[
        operator
    ]


def contains(stored, operand):
    if isinstance(stored, list):
        return any(
            type(item) is type(operand) and item == operand
            if isinstance(operand, bool | str) or isinstance(item, bool | str)
            else isinstance(item, int | float) and item == operand
            for item in stored
        )
    return isinstance(stored, str) and isinstance(operand, str) and operand in stored


def leaf(stored, operator, operand, *, is_list):
    if operator == "exists":
        present = bool(stored) if is_list else stored is not None
        return present is operand
    if operator in {"eq", "ne"}:
        return equal(stored, operand) is (operator == "eq")
    if operator in {"in", "nin"}:
        return any(equal(stored, value) for value in operand) is (operator == "in")
    if operator == "contains":
        return contains(stored, operand)
    return ordered(stored, operator, operand)


def stored_at(row, field):
    if not field.startswith("metadata."):
        return row[field]
    value = row["metadata"]
    for key in field.split(".")[1:]:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def holds(filters, row):
    for key, value in filters.items():
        if key in {"AND", "OR"}:
            verdict = (all if key == "AND" else any)(holds(part, row) for part in value)
        elif key == "NOT":
            verdict = not holds(value, row)
        else:
            operators = value if isinstance(value, dict) else {"eq": value}
            verdict = all(
                leaf(stored_at(row, key), operator, operand, is_list=key == "evidence")
                for operator, operand in operators.items()
            )
        if not verdict:
            return False
    return True


# Few values, near each other, so that a generated row and a generated filter often meet.

WORDS = (
    "",
    "a",
    "A",
    "ab",
    "b%",
    "_",
    "\\",
    "é",
    "喜欢茶",
    "茶",
    "😀",
    "\uffee",
    "1",
    "true",
    "null",
)
WHEN = datetime(2026, 1, 31, 12, tzinfo=UTC)
ZONES = (UTC, timezone(timedelta(hours=8)), timezone(-timedelta(hours=3, minutes=30)))
moments = st.builds(
    lambda seconds, micros, zone: (
        WHEN + timedelta(seconds=seconds, microseconds=micros)
    ).astimezone(zone),
    st.integers(-1, 1),
    st.sampled_from([0, 1, 500_000]),
    st.sampled_from(ZONES),
)
moment_texts = moments.map(datetime.isoformat)
NOT_MOMENTS = (
    "2026-01-31",
    "2026-01-31T12:00:00",
    "2026-02-30T12:00:00Z",
    "2026-01-00T12:00:00Z",
    "2026-13-01T12:00:00Z",
    "0000-01-01T00:00:00Z",
    "2026-01-31T24:00:00Z",
    "2026-01-31T12:00:60Z",
    "2026-01-31T12:00:00Z\n",
    "today",
    "infinity",
    "now",
)
words = st.sampled_from(WORDS)
NUMERIC = (0, 1, -1, 2, 0.5, 0.1, 1.0, 1e300, -1e300, 5e-324, 2**53 + 1, 2**62)
numbers = st.sampled_from(NUMERIC)
scalars = st.one_of(words, numbers, st.booleans(), moment_texts, st.sampled_from(NOT_MOMENTS))
json_values = st.recursive(
    scalars | st.none(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("kab0"), inner, max_size=3)
    ),
    max_leaves=6,
)
reals = st.sampled_from([0, 0.1, 0.5, 0.7, 1, 1.0, -0.0])
wholes = st.sampled_from([0, 1, 2, -1, 2**31 - 1])

rows = st.fixed_dictionaries(
    {
        **dict.fromkeys(TEXTS, st.none() | words),
        "confidence": st.none() | reals.map(float),
        "use_count": st.none() | wholes,
        "version": st.none() | wholes,
        **dict.fromkeys(TIMES, st.none() | moments),
        "evidence": st.none() | st.lists(words, max_size=3),
        "metadata": st.none()
        | json_values
        | st.dictionaries(st.sampled_from("kab0"), json_values, max_size=4),
    }
)
only_metadata = st.fixed_dictionaries(
    {
        **dict.fromkeys(COLUMNS[:-1], st.none()),
        "metadata": st.fixed_dictionaries({"k": scalars | st.lists(scalars, max_size=2)})
        | st.fixed_dictionaries({"k": st.fixed_dictionaries({"a": json_values})}),
    }
)
KINDS = {
    **dict.fromkeys(TEXTS, words),
    "confidence": reals,
    "use_count": wholes | st.sampled_from([2**63 - 1, -(2**63)]),
    "version": wholes,
    **dict.fromkeys(TIMES, moment_texts),
}


def conditions(operands, *, order=True, within=None):
    """Build the strategy of what may stand to the right of a field."""
    operators = {
        "eq": operands | st.none(),
        "ne": operands | st.none(),
        "in": st.lists(operands, max_size=3),
        "nin": st.lists(operands, max_size=3),
        "exists": st.booleans(),
    }
    if order is not None:
        unordered = operands.filter(lambda value: not isinstance(value, bool))
        operators |= dict.fromkeys(("gt", "gte", "lt", "lte"), unordered)
    if within is not None:
        operators["contains"] = within
    choices = st.lists(st.sampled_from(sorted(operators)), min_size=1, max_size=2, unique=True)
    return (
        choices.flatmap(lambda names: st.fixed_dictionaries({n: operators[n] for n in names}))
        | operands
    )


@st.composite
def leaves(draw):
    field = draw(
        st.sampled_from([*KINDS, "evidence"])
        | st.sampled_from(["metadata.k", "metadata.a", "metadata.k.a", "metadata.k.0.b"])
    )
    if field == "evidence":
        return {field: draw(st.sampled_from([{"exists": True}, {"exists": False}]))} | (
            draw(st.just({}) | words.map(lambda word: {field: {"contains": word}}))
        )
    if field.startswith("metadata."):
        return draw(metadata_leaves(field))
    if field == "content":
        simple = {"eq": words | st.none(), "ne": words | st.none(), "contains": words}
        operator = draw(st.sampled_from(sorted(simple)))
        return {field: {operator: draw(simple[operator])}}
    return {field: draw(conditions(KINDS[field], within=words if field in TEXTS else None))}


def metadata_leaves(field):
    return conditions(scalars, within=scalars).map(lambda condition: {field: condition})


def grow(inner):
    several = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        several.map(lambda parts: {"AND": parts}),
        several.map(lambda parts: {"OR": parts}),
        inner.map(lambda part: {"NOT": part}),
        st.tuples(leaves(), inner).map(lambda pair: pair[0] | {"NOT": pair[1]}),
    )


def depth(filters):
    inner = [0]
    for key, value in filters.items():
        if key in {"AND", "OR"}:
            inner += [depth(part) for part in value]
        elif key == "NOT":
            inner.append(depth(value))
    return 1 + max(inner)


trees = st.recursive(leaves(), grow, max_leaves=8).filter(lambda tree: depth(tree) <= 5)

# The connection and its table are shared by the examples on purpose; each one empties the table.
on_the_server = settings(
    deadline=None,
    suppress_health_check=[
        HealthCheck.function_scoped_fixture,
        HealthCheck.too_slow,
        HealthCheck.data_too_large,
        HealthCheck.large_base_example,
    ],
)


async def agree(db, table, asked):
    await store(db, table)
    answers = await found_by_each(db, asked)
    for filters, answer in zip(asked, answers, strict=True):
        expected = {number for number, row in enumerate(table) if holds(filters, row)}
        assert answer == expected, filters


@on_the_server
@given(table=st.lists(rows, min_size=5, max_size=15), asked=st.lists(trees, min_size=3, max_size=8))
async def test_postgres_and_the_plain_reading_agree(db, table, asked):
    await agree(db, table, asked)


@on_the_server
@given(
    table=st.lists(only_metadata, min_size=15, max_size=30),
    asked=st.lists(
        metadata_leaves("metadata.k") | metadata_leaves("metadata.k.a"), min_size=8, max_size=20
    ),
)
async def test_postgres_and_the_plain_reading_agree_on_metadata(db, table, asked):
    """Alone, because among all fields a number seldom meets a stored number."""
    await agree(db, table, asked)


TIMED = ("2026-01-31T12:00:00Z", "2026-01-31 20:00:00+08:00", "2026-01-31T12:00:00.500000+0000")
SCALARS = (*WORDS, *NUMERIC, True, False, *TIMED, *NOT_MOMENTS)


@pytest.mark.parametrize(
    "operator", ["eq", "ne", "in", "nin", "gt", "gte", "lt", "lte", "contains"]
)
async def test_every_value_of_metadata_meets_every_operand(db, operator):
    """In full, because generated values seldom meet their equals."""
    stored = [*SCALARS, None, {}, [], {"k": 1}, *([value] for value in SCALARS), [[1]]]
    table = [dict.fromkeys(COLUMNS) | {"metadata": {"k": value}} for value in stored]
    many, order = operator in {"in", "nin"}, operator in {"gt", "gte", "lt", "lte"}
    operands = [value for value in SCALARS if not (order and isinstance(value, bool))]
    await agree(
        db, table, [{"metadata.k": {operator: [each] if many else each}} for each in operands]
    )


@on_the_server
@given(table=st.lists(rows, min_size=1, max_size=15), asked=st.lists(trees, min_size=1, max_size=8))
async def test_a_filter_and_its_opposite_share_the_rows_out(db, table, asked):
    asked = [filters for filters in asked if depth(filters) < 5] or [{"user_id": "a"}]
    await store(db, table)
    held = await found_by_each(db, asked)
    opposite = await found_by_each(db, [{"NOT": filters} for filters in asked])
    for one, other in zip(held, opposite, strict=True):
        assert not one & other
        assert one | other == set(range(len(table)))


@on_the_server
@given(text=moment_texts | st.sampled_from(NOT_MOMENTS) | st.text(max_size=30))
async def test_the_sql_function_reads_the_same_times_and_never_fails(db, text):
    if "\0" in text:
        return
    read = await db.fetchval("SELECT kemem_timestamptz($1::text)", text)
    assert read == moment(text)


@pytest.mark.parametrize("year", [1, 1900, 1999, 2000, 2024, 2026, 9999])
async def test_the_sql_function_knows_the_length_of_every_month(db, year):
    texts = [
        f"{year:04}-{month:02}-{day:02}T23:59:59.999999-15:59"
        for month in range(14)
        for day in range(34)
    ]
    read = await db.fetch(
        "SELECT value, kemem_timestamptz(value) IS NOT NULL AS ok FROM unnest($1::text[]) AS value",
        texts,
    )
    for record in read:
        assert record["ok"] is (moment(record["value"]) is not None), record["value"]


ROW = {
    **dict.fromkeys(COLUMNS),
    "user_id": "anna",
    "content": "pays 100% of it",
    "version": 1,
    "metadata": {"k": "v", "when": "2026-01-31T20:00:00+08:00", "n": 1.0},
}
ATTACKS = (
    "' OR TRUE --",
    "'; DROP TABLE memories; --",
    "a' UNION SELECT 1 --",
    "$1",
    "$1::text) OR (TRUE",
    ":f0",
    "%s %(x)s {}",
    "\\' OR 1=1",
    "k') IS NULL OR ('a' = 'a",
    "\"}'",
    "*/ OR /*",
)


@pytest.mark.parametrize("attack", ATTACKS)
async def test_an_attack_is_a_string_like_any_other(db, attack):
    await store(db, [ROW, ROW | {"user_id": attack, "metadata": {attack: attack, "k": [attack]}}])
    for filters in (
        {"user_id": attack},
        {"user_id": {"in": [attack]}},
        {"user_id": {"contains": attack}},
        {"metadata.k": {"contains": attack}},
    ):
        assert await found(db, filters) == {1}
    if "." not in attack:
        assert await found(db, {f"metadata.{attack}": attack}) == {1}
        assert await found(db, {f"metadata.{attack}": {"exists": True}}) == {1}


@pytest.mark.parametrize(
    ("filters", "matches"),
    [
        ({"content": {"contains": "100%"}}, True),
        ({"content": {"contains": "1%t"}}, False),
        ({"content": {"contains": "_"}}, False),
        ({"content": {"contains": "PAYS"}}, False),
        ({"agent_id": {"ne": "x"}}, True),
        ({"agent_id": {"nin": ["x"]}}, True),
        ({"NOT": {"agent_id": "x"}}, True),
        ({"NOT": {"confidence": {"gt": 0}}}, True),
        ({"confidence": {"gt": 0}}, False),
        ({"metadata.when": "2026-01-31T12:00:00Z"}, True),
        ({"metadata.when": {"lt": "2026-01-31T12:00:01Z"}}, True),
        ({"metadata.k": {"gt": "2026-01-31T12:00:01Z"}}, False),
        ({"metadata.n": 1}, True),
        ({"metadata.n": "1.0"}, False),
        ({"metadata.n": True}, False),
        ({"metadata.none": None}, True),
        ({"metadata.none": {"ne": 5}}, True),
        ({"metadata.k.deeper": {"exists": False}}, True),
        ({"evidence": {"contains": "msg_1"}}, False),
    ],
)
async def test_a_rule_by_example(db, filters, matches):
    await store(db, [ROW])
    assert bool(await found(db, filters)) is matches
