"""`memory.forgetting` and `memory.erasures`: the requests they make, and what they read."""

import dataclasses

import pytest

import kemem
from app.governance.forgetting import schemas as forgetting
from app.governance.privacy.schemas import ErasureListQuery, ErasureRead
from kemem.options import ErasureKind, Eviction, ForgettingStep
from tests.support.either_client import ask
from tests.support.flaky_server import says
from tests.support.rows import for_each

POLICY = {"enabled": True, "max_facts": 100, "eviction": "confidence", "message_retention_days": 0}
POLICIES = {
    "policy": POLICY, "agents": {"coach": POLICY | {"max_facts": 5}}, "purge_days": 30,
    "last_runs": [{"job_id": "job_1", "status": "succeeded", "result": {"total": 3}}],
}  # fmt: skip
LOOK = {
    "dry_run": True, "job_id": None,
    "steps": [{
        "step": "over_capacity", "due": 2,
        "sample": [{"id": "mem_1", "reason": "over_capacity"}],
    }],
    "shadow": {
        "eviction": "hybrid", "buckets": 3, "both": 1, "only_policy": ["mem_1"], "only_shadow": [],
        "truncated": True,
    },
}  # fmt: skip
RECEIPT = {
    "erasure_id": "era_1", "kind": "user", "subject_hash": "ab", "deleted": {"memories": 3},
    "actor": "key_1", "create_time": "2026-11-23T02:00:00Z",
}  # fmt: skip


@for_each(
    ("call", "method", "path", "body"),
    [
        (lambda m: m.forgetting.policy(), "GET", "/forgetting", None),
        (lambda m: m.forgetting.preview(), "POST", "/forgetting/run", {"dry_run": True}),
        (lambda m: m.forgetting.preview(["expired"], agent_id="a", eviction="hybrid"), "POST",
         "/forgetting/run",
         {"dry_run": True, "steps": ["expired"], "agent_id": "a", "eviction": "hybrid"}),
        (lambda m: m.forgetting.run(), "POST", "/forgetting/run", {"dry_run": False}),
        (lambda m: m.forgetting.run(("messages",), agent_id="a"), "POST", "/forgetting/run",
         {"dry_run": False, "steps": ["messages"], "agent_id": "a"}),
        (lambda m: m.erasures.list_erasures(limit=5), "GET", "/erasures?limit=5", None),
        (lambda m: m.erasures.list_erasures("user", "ana"), "GET",
         "/erasures?kind=user&id=ana&limit=100", None),
    ],
)  # fmt: skip
async def test_call_sends_its_request(server, memory, call, method, path, body) -> None:
    server.requests.clear()
    server.otherwise = says(POLICIES | LOOK | {"items": [], "next_cursor": None})

    await ask(lambda: call(memory))

    [request] = server.requests
    told, _, query = request.path.partition("?")
    wanted, _, asked = path.partition("?")
    assert (request.method, told) == (method, "/v1" + wanted)
    assert sorted(query.split("&")) == sorted(asked.split("&"))
    assert (request.json if request.body else None) == body
    assert ("Idempotency-Key" in request.headers) is (method == "POST")


async def test_policies_are_read(server, memory) -> None:
    server.otherwise = says(POLICIES)

    seen = await ask(memory.forgetting.policy)

    assert (seen.policy.max_facts, seen.agents["coach"]["max_facts"]) == (100, 5)
    assert [(one.job_id, one.result) for one in seen.last_runs] == [("job_1", {"total": 3})]


async def test_preview_is_read(server, memory) -> None:
    server.otherwise = says(LOOK)

    seen = await ask(memory.forgetting.preview, eviction="hybrid")

    assert (seen.dry_run, seen.job_id, str(seen.steps[0])) == (True, None, "over_capacity: 2")
    assert [(one.id, one.reason) for one in seen.steps[0].sample] == [("mem_1", "over_capacity")]
    assert seen.shadow.only_policy == ("mem_1",)
    assert (seen.shadow.buckets, seen.shadow.truncated) == (3, True)


async def test_forgetting_run_can_be_waited_for(server, memory) -> None:
    server.script(
        says({"dry_run": False, "job_id": "job_1", "steps": [], "shadow": None}, 202),
        says({"job_id": "job_1", "status": "succeeded", "result": {"total": 2}}),
    )

    ordered = await ask(memory.forgetting.run)
    job = await ask(memory.wait, ordered)

    assert (ordered.dry_run, job.result) == (False, {"total": 2})


async def test_receipts_are_read_page_by_page(server, memory) -> None:
    server.script(
        says({"items": [RECEIPT], "next_cursor": "on"}),
        says({"items": [RECEIPT | {"erasure_id": "era_0"}], "next_cursor": None}),
    )

    seen = await ask(memory.erasures.list_erasures, "user", "ana", limit=None)

    assert [one.erasure_id for one in seen] == ["era_1", "era_0"]
    assert (seen[0].deleted, str(seen[0])) == ({"memories": 3}, "era_1: user")
    assert seen[0].create_time.tzinfo is not None


async def test_invalid_arguments_are_refused_before_sending(server, memory) -> None:
    with pytest.raises(ValueError, match="its kind"):
        await ask(lambda: memory.erasures.list_erasures(id="ana"))
    with pytest.raises(TypeError, match="a list"):
        await ask(lambda: memory.forgetting.run("expired"))
    assert server.requests == []


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [
        (kemem.ForgettingPolicies, forgetting.ForgettingRead),
        (kemem.ForgettingPolicy, forgetting.PolicyRead),
        (kemem.ForgettingRun, forgetting.LastRun),
        (kemem.Forgotten, forgetting.ForgettingRunRead),
        (kemem.ForgettingDue, forgetting.StepRead),
        (kemem.ForgettingCandidate, forgetting.Candidate),
        (kemem.ForgettingShadow, forgetting.Shadow),
        (kemem.Erasure, ErasureRead),
    ],
)
def test_answer_type_has_the_fields_of_the_service(ours, theirs) -> None:
    names = {one.name for one in dataclasses.fields(ours)} - {"raw"}
    assert names == set(theirs.model_fields)


def test_literal_types_equal_those_of_the_service() -> None:
    assert ForgettingStep == forgetting.Step
    assert Eviction == forgetting.Eviction
    assert ErasureKind | None == ErasureListQuery.model_fields["kind"].annotation
