"""`memory.profiles`: the requests it makes, and what it reads."""

import pytest

from tests.support.either_client import ask
from tests.support.flaky_server import says
from tests.support.rows import for_each

VALUE = {"value": "nurse", "origin": "derived", "memory_ids": ["mem_1"], "deriver": "rules/1"}
PROFILE = {
    "user_id": "ana", "version": 3, "attributes": {"profession": VALUE},
    "sections": {"work_context": VALUE | {"value": "A clinic."}},
    "slots": {"diet": {"allergies": VALUE | {"value": "nuts"}}},
}  # fmt: skip


@for_each(
    ("call", "method", "path", "body", "version"),
    [
        (lambda p: p.get("ana"), "GET", "/users/ana/profile", None, None),
        (lambda p: p.get(project_id="a"), "GET", "/projects/a/profile", None, None),
        (lambda p: p.update("ana", version=0, attributes={"username": None}), "PATCH",
         "/users/ana/profile", {"attributes": {"username": None}}, "0"),
        (lambda p: p.update("ana", version="*", whole=True, instructions=None), "PUT",
         "/users/ana/profile", {"instructions": None}, "*"),
        (lambda p: p.history("ana", limit=5), "GET", "/users/ana/profile/history?limit=5", None,
         None),
        (lambda p: p.derive(project_id="a"), "POST", "/projects/a/profile/derive", None, None),
        (lambda p: p.document("ana", agent_id="x"), "GET",
         "/users/ana/memory-document?agent_id=x", None, None),
        (lambda p: p.import_document("ana", {"version": "1.0"}, dry_run=True), "POST",
         "/users/ana/memory-document?dry_run=true", {"version": "1.0"}, None),
    ],
)  # fmt: skip
async def test_call_sends_its_request(server, memory, call, method, path, body, version) -> None:
    server.requests.clear()
    server.otherwise = says(
        PROFILE | {"items": [], "next_cursor": None, "job_id": "j", "status": "pending"}
    )

    await ask(lambda: call(memory.profiles))

    [request] = server.requests
    assert (request.method, request.path) == (method, "/v1" + path)
    assert (request.json if request.body else None) == body
    assert request.headers.get("If-Match") == version


async def test_values_are_read_by_name(server, memory) -> None:
    server.otherwise = says(PROFILE)

    profile = await ask(memory.profiles.get, "ana")

    assert profile.value_of("profession") == "nurse"
    assert profile.value_of("work_context") == "A clinic."
    assert profile.value_of("diet.allergies") == "nuts"
    assert profile.value_of("username") is None


@pytest.mark.parametrize("whose", [{}, {"user_id": "ana", "project_id": "a"}])
async def test_exactly_one_owner_must_be_given(memory, whose) -> None:
    with pytest.raises(ValueError, match="one of the two"):
        await ask(lambda: memory.profiles.get(**whose))
