"""What is always true of ranking, of candidates and of pairs, whatever the input."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest_asyncio
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.conversation.messages.window import closure
from app.identity.tenants.access import Access
from app.language.text.normal_forms import content_hash
from app.memory.memories.candidates import REMEMBERED_ROLES, among_themselves, candidates
from app.memory.memories.gate import Gate
from app.memory.memories.ranking import RankWeights, ScopeWeights, final_score
from app.memory.memories.schemas import MemoryCreate
from app.memory.memories.search_sql import Bucket, SearchPlan, search_statement
from app.runtime import Runtime
from tests.support.api import execute
from tests.support.tenants import make_tenant

MODEL = "test/plane:2"
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)

shares = st.floats(0, 1).map(lambda number: round(number, 3))
weights = st.tuples(st.integers(0, 10), st.integers(0, 10), st.integers(0, 10)).filter(any)


@dataclass(frozen=True)
class Row:
    """A memory at an angle from the query, so that its similarity is known."""

    degrees: int
    confidence: float
    scope: str
    minute: int


rows = st.builds(
    Row,
    degrees=st.sampled_from([0, 10, 45, 60, 90, 135, 180]),
    confidence=shares,
    scope=st.sampled_from(["session", "project", "user", "agent"]),
    minute=st.integers(0, 3),
)

INSERT = """
INSERT INTO memories (tenant_id, memory_id, user_id, agent_id, project_id, scope, scope_id,
    content, content_hash, memory_type, tier, source, confidence, visibility, embedding,
    embedding_model, update_time)
SELECT $1, row.id, 'ana', CASE row.scope WHEN 'agent' THEN 'a1' END,
    CASE row.scope WHEN 'project' THEN 'p1' END, row.scope,
    CASE row.scope WHEN 'agent' THEN 'a1' WHEN 'project' THEN 'p1' WHEN 'user' THEN 'ana'
        ELSE 's1' END,
    'x', convert_to(row.id, 'UTF8'), 'fact', 'long', 'user', row.confidence, 'members',
    ARRAY[cosd(row.degrees), sind(row.degrees)]::float4[]::vector, 'test/plane:2', row.at
FROM unnest($2::text[], $3::text[], $4::float8[], $5::float8[], $6::timestamptz[])
    AS row(id, scope, confidence, degrees, at)
"""


async def store(dsn: str, tenant_id: str, table: list[Row]) -> None:
    await execute(
        dsn,
        f"""
        WITH agent AS (INSERT INTO agents (tenant_id, agent_id, agent_name)
            VALUES ('{tenant_id}', 'a1', 'A') ON CONFLICT DO NOTHING),
        owner AS (INSERT INTO users (tenant_id, user_id, agent_id)
            VALUES ('{tenant_id}', 'ana', 'a1') ON CONFLICT DO NOTHING),
        project AS (INSERT INTO projects (tenant_id, project_id, project_name)
            VALUES ('{tenant_id}', 'p1', 'P') ON CONFLICT DO NOTHING)
        DELETE FROM memories WHERE tenant_id = $1
        """,
        tenant_id,
    )
    await execute(
        dsn,
        INSERT,
        tenant_id,
        [f"mem{index:02}" for index in range(len(table))],
        [row.scope for row in table],
        [row.confidence for row in table],
        [float(row.degrees) for row in table],
        [NOON + timedelta(minutes=row.minute) for row in table],
    )


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def tenant(runtime: Runtime) -> str:
    """One tenant for all examples; each begins by emptying it."""
    return (await make_tenant(runtime)).tenant_id


@settings(
    max_examples=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    table=st.lists(rows, min_size=1, max_size=12),
    weighed=weights,
    limit=st.integers(1, 12),
    threshold=st.none() | shares,
    rerank=st.booleans(),
)
async def test_postgres_ranks_as_the_formula_says(
    runtime: Runtime, dsn: str, tenant: str, table, weighed, limit, threshold, rerank
) -> None:
    await store(dsn, tenant, table)
    total = sum(weighed)
    parts = RankWeights(*(one / total for one in weighed))
    scopes = ScopeWeights().by_scope
    ids = {"session": "s1", "project": "p1", "user": "ana", "agent": "a1"}
    plan = SearchPlan(
        access=Access(tenant),
        buckets=[Bucket(scope, ids[scope], scopes[scope]) for scope in ids],
        vectors={MODEL: np.array([1, 0], np.float32)},
        user_id="ana",
        agent_id=None,
        weights=(parts.similarity, parts.confidence, parts.scope),
        limit=limit,
        threshold=threshold,
        rerank=rerank,
    )

    text, values = search_statement(plan)
    hits = await runtime.database.fetch(tenant, text, *values)

    # Similarity is what PostgreSQL stored of the angle; all the rest is recomputed.
    cosines = np.cos(np.radians([row.degrees for row in table])).astype(np.float32)
    similarity = np.clip(cosines.astype(float), 0, 1)
    expected = []
    for index, row in enumerate(table):
        score = final_score(similarity[index], row.confidence, scopes[row.scope], parts)
        if threshold is None or similarity[index] >= threshold:
            first = score if rerank else similarity[index]
            expected.append((-round(first, 6), -row.minute, f"mem{index:02}", score))
    expected.sort()
    assert len(hits) == min(limit, len(expected))
    for hit, (first, minute, _, score) in zip(hits, expected, strict=False):
        assert abs(min(hit["score"], 1.0) - score) < 1e-6
        shown = hit["score"] if rerank else hit["similarity"]
        assert abs(shown + first) < 2e-6
        assert hit["update_time"] == NOON + timedelta(minutes=-minute)
    assert len({hit["memory_id"] for hit in hits}) == len(hits)


@dataclass(frozen=True)
class Said:
    message_id: str
    tool_call_id: str | None
    tool_calls: list[dict[str, Any]] | None


@st.composite
def conversations(draw) -> list[Said]:
    """Calls and results as the service lets them in: each result answers an open call."""
    said: list[Said] = []
    open_calls: list[str] = []
    for index in range(draw(st.integers(0, 12))):
        kind = draw(st.sampled_from(["text", "call", "result"]))
        if kind == "call":
            calls = [f"c{index}.{n}" for n in range(draw(st.integers(1, 3)))]
            open_calls += calls
            said.append(Said(f"m{index}", None, [{"id": one} for one in calls]))
        elif kind == "result" and open_calls:
            answered = open_calls.pop(draw(st.integers(0, len(open_calls) - 1)))
            said.append(Said(f"m{index}", answered, None))
        else:
            said.append(Said(f"m{index}", None, None))
    return said


def chosen_from(said: list[Said]) -> st.SearchStrategy[set[str]]:
    return st.sets(st.sampled_from([one.message_id for one in said])) if said else st.just(set())


@given(said=conversations(), data=st.data())
def test_taking_messages_out_never_parts_a_call_from_its_results(said, data) -> None:
    chosen = data.draw(chosen_from(said))

    taken = closure(chosen, said)

    left = [one for one in said if one.message_id not in taken]
    called = {call["id"] for one in said for call in one.tool_calls or []}
    calls_left = {call["id"] for one in left for call in one.tool_calls or []}
    results = {one.tool_call_id for one in said if one.tool_call_id}
    results_left = {one.tool_call_id for one in left if one.tool_call_id}
    assert results <= called
    assert results_left <= calls_left
    assert calls_left & results <= results_left


@given(said=conversations(), data=st.data())
def test_no_more_is_taken_than_must_be(said, data) -> None:
    chosen = data.draw(chosen_from(said))

    taken = closure(chosen, said)

    assert chosen <= taken
    assert closure(taken, said) == taken
    assert taken == chosen.union(*(closure({one}, said) for one in chosen))
    plain = {one.message_id for one in said if not one.tool_calls and not one.tool_call_id}
    assert taken & plain == chosen & plain


messages = st.lists(
    st.fixed_dictionaries(
        {
            "role": st.sampled_from(["user", "assistant", "system", "tool"]),
            "content": st.sampled_from(["茶", "Green tea.", "green TEA.", " Green  tea. "])
            | st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=20),
        }
    ),
    min_size=1,
    max_size=8,
)


@given(messages)
def test_each_message_has_one_fate_decided_before_anything_is_stored(said) -> None:
    judged = candidates(MemoryCreate(messages=said, user_id="ana"), Gate())

    assert [one.index for one in judged] == list(range(len(said)))
    seen: set[bytes] = set()
    for one, message in zip(judged, said, strict=True):
        assert one.content == message["content"].strip()
        skipped = message["role"] not in REMEMBERED_ROLES
        assert (one.event == "SKIP") == skipped
        assert (one.event == "REJECT") == bool(one.reasons)
        if one.event in {None, "NONE"}:
            digest = content_hash(message["content"])
            assert (one.event == "NONE") == (digest in seen)
            seen.add(digest)


@given(
    texts=st.lists(st.sampled_from(["Green tea.", "Tea, green.", "A cat.", "茶。"]), max_size=6),
    floor=st.floats(0, 1),
)
def test_of_one_request_only_an_earlier_new_statement_is_a_twin(texts, floor) -> None:
    fresh = []
    for index, text in enumerate(texts):
        [one] = candidates(MemoryCreate(messages=text, user_id="ana"), Gate(min_length=1))
        one.index, one.memory_id = index, str(index)
        angle = len(text)
        one.vector = np.array([np.cos(angle), np.sin(angle)], np.float32)
        fresh.append(one)

    twins = among_themselves(fresh, lambda _text: floor)

    for index, (first, _, similarity) in twins.items():
        assert int(first) < index
        assert int(first) not in twins
        assert similarity >= floor
