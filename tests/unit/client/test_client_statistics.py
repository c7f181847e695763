"""`memory.statistics`: the requests it makes, and what it reads."""

from datetime import date

import pytest

import kemem
from app.governance.evaluations.schemas import EvaluationRead
from app.governance.statistics import schemas
from app.memory.feedback.schemas import UseReported
from kemem import statistics
from tests.support.either_client import ask
from tests.support.flaky_server import says

DAYS = {"since": "2026-11-01", "until": "2026-11-02"}
SEARCHES = {"count": 4, "queries": 4, "hits": 2, "hit_rate": 0.5, "p50_ms": 3.5, "p95_ms": 9.0}
ITEMS = {"injected": 4, "used": 1, "used_estimated": 2, "use_rate": 0.25}
FIGURES = {"searches": SEARCHES, "contexts": SEARCHES, "items": ITEMS}
EFFECT = DAYS | {"items": [FIGURES | {"day": "2026-11-01"}], "totals": FIGURES}
NOW = {"day": "2026-11-02", "total": 3, "duplicates": {"day": "2026-11-02", "sampled": 9}}


@pytest.mark.parametrize("name", ["effect", "refusals", "extraction"])
async def test_figures_are_asked_for_by_their_name(server, memory, name) -> None:
    server.otherwise = says(DAYS | {"items": [], "totals": {}})

    await ask(
        getattr(memory.statistics, name),
        since=date(2026, 11, 1), until=date(2026, 11, 2), agent_id="a", group_by="agent",
    )  # fmt: skip

    [request] = server.requests
    told, _, query = request.path.partition("?")
    assert (request.method, told) == ("GET", f"/v1/stats/{name}")
    assert sorted(query.split("&")) == [
        "agent_id=a", "group_by=agent", "since=2026-11-01", "until=2026-11-02",
    ]  # fmt: skip


async def test_effect_is_read(server, memory) -> None:
    server.otherwise = says(EFFECT)

    seen = await ask(memory.statistics.effect)

    assert (seen[0].day, seen[0].agent_id) == (date(2026, 11, 1), None)
    assert (seen.totals.searches.hit_rate, seen.totals.items.use_rate) == (0.5, 0.25)


async def test_memories_are_read(server, memory) -> None:
    server.otherwise = says(DAYS | {"items": [NOW], "now": NOW})

    seen = await ask(memory.statistics.memories, agent_id="a")

    assert server.requests[0].path == "/v1/stats/memories?agent_id=a"
    assert (seen.now.total, seen.now.duplicates.sampled, len(seen)) == (3, 9, 1)


@pytest.mark.parametrize(
    ("answer", "schema"),
    [
        (kemem.SearchFigures, schemas.SearchFigures),
        (kemem.ItemFigures, schemas.ItemFigures),
        (kemem.EffectItem, schemas.EffectItem),
        (kemem.RefusalItem, schemas.RefusalItem),
        (kemem.ExtractionItem, schemas.ExtractionItem),
        (kemem.MemoryFigures, schemas.MemoryFiguresNow),
        (kemem.DuplicateFigures, schemas.DuplicateFigures),
        (kemem.UseReported, UseReported),
        (kemem.EvaluationResult, EvaluationRead),
    ],
)
def test_answers_have_the_fields_of_the_service(answer, schema) -> None:
    assert set(answer.__dataclass_fields__) - {"raw"} == set(schema.model_fields)


async def test_a_report_of_used_memories_is_sent_and_read(server, memory) -> None:
    server.otherwise = says({"session_id": "s", "used": 1, "repeated": 0, "not_shown": ["mem_2"]})

    seen = await ask(memory.report_use, "s", ("mem_1", "mem_2"))

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/feedback/used")
    assert request.json == {"session_id": "s", "memory_ids": ["mem_1", "mem_2"]}
    assert "Idempotency-Key" in request.headers
    assert (seen.used, seen.not_shown) == (1, ("mem_2",))


RESULT = {
    "evaluation_id": "evl_1", "name": "n", "dataset": "d", "metrics": {"recall": 0.5},
    "create_time": "2026-11-26T12:00:00Z",
}  # fmt: skip


async def test_evaluations_are_kept_listed_and_deleted(server, memory) -> None:
    server.otherwise = says(RESULT | {"items": [RESULT], "next_cursor": None})

    kept = await ask(memory.statistics.keep_evaluation, "n", "d", {"recall": 0.5})
    listed = await ask(memory.statistics.evaluations, name="n", limit=5)
    read = await ask(memory.statistics.evaluation, "evl_1")
    await ask(memory.statistics.delete_evaluation, "evl_1")

    assert kept.metrics == read.metrics == listed[0].metrics == {"recall": 0.5}
    assert [(one.method, one.path.partition("?")[0]) for one in server.requests] == [
        ("POST", "/v1/evaluations"), ("GET", "/v1/evaluations"), ("GET", "/v1/evaluations/evl_1"),
        ("DELETE", "/v1/evaluations/evl_1"),
    ]  # fmt: skip
    assert server.requests[0].json == {"name": "n", "dataset": "d", "metrics": {"recall": 0.5}}


async def test_a_refused_text_is_stored(server, memory) -> None:
    item = {"memory_id": "mem_1", "content": "Ok"}
    server.otherwise = says({"decision_id": "gat_1", "memory": item}, status=201)

    stored = await ask(memory.store_refused, "gat_1", memory_type="habit")

    [request] = server.requests
    assert (request.method, request.path) == ("POST", "/v1/memories/decisions/gat_1/store")
    assert request.json == {"memory_type": "habit"}
    assert (stored.decision_id, stored.memory.memory_id) == ("gat_1", "mem_1")


def test_groups_are_those_of_the_service() -> None:
    assert statistics.GroupBy.__args__ == schemas.GroupBy.__args__
