"""`memory.projects` and acting users: the requests they make, and both against the service."""

import pytest

import kemem
from kemem import AsyncMemory, ConflictError, ForbiddenError, NotFoundError
from tests.client.conftest import ask
from tests.support.flaky_server import says

ANSWER = {
    "project_id": "p/1", "project_name": "Apollo", "user_id": "ana", "role": "owner",
    "owner_id": "bob", "former_owners": ["ana"], "id": "p/1", "deleted": {"memories": 3},
    "items": [], "next_cursor": None,
}  # fmt: skip


@pytest.mark.parametrize(
    ("call", "method", "path", "body"),
    [
        (lambda p: p.create("Apollo", project_id="p/1", owner_id="ana"), "POST", "/projects",
         {"project_name": "Apollo", "project_id": "p/1", "owner_id": "ana"}),
        (lambda p: p.list_projects(5, user_id="ana"), "GET", "/projects?user_id=ana&limit=5", None),
        (lambda p: p.get("p/1"), "GET", "/projects/p%2F1", None),
        (lambda p: p.update("p/1", description=None), "PATCH", "/projects/p%2F1",
         {"description": None}),
        (lambda p: p.delete("p/1", dry_run=True), "DELETE", "/projects/p%2F1?dry_run=true", None),
        (lambda p: p.members("p/1"), "GET", "/projects/p%2F1/members?limit=100", None),
        (lambda p: p.put_member("p/1", "ana", "viewer"), "PUT", "/projects/p%2F1/members/ana",
         {"role": "viewer"}),
        (lambda p: p.remove_member("p/1", "ana"), "DELETE", "/projects/p%2F1/members/ana", None),
        (lambda p: p.transfer("p/1", "bob"), "POST", "/projects/p%2F1/transfer",
         {"to_user_id": "bob"}),
        (lambda p: p.items("p/1", visibility="owner_only"), "GET",
         "/projects/p%2F1/memories?visibility=owner_only&limit=100", None),
    ],
)  # fmt: skip
async def test_call_sends_its_request(server, memory, call, method, path, body) -> None:
    server.otherwise = says(ANSWER)

    await ask(lambda: call(memory.projects))

    [request] = server.requests
    assert (request.method, sorted(request.path.split("?")[-1].split("&"))) == (
        method, sorted(("/v1" + path).split("?")[-1].split("&")),
    )  # fmt: skip
    assert request.path.split("?")[0] == ("/v1" + path).split("?")[0]
    assert (request.json if request.body else None) == body


async def test_acting_user_is_sent_with_every_request(server, open_memory) -> None:
    server.otherwise = says(ANSWER)
    memory = open_memory(acting_user="ana")
    ben = memory.acting_as("ben")

    for one in (memory, ben, memory):
        await ask(one.projects.get, "p1")
    await ask(open_memory().projects.get, "p1")

    named = [request.headers.get("KeMem-User") for request in server.requests]
    assert named == ["ana", "ben", "ana", None]
    assert (memory.acting_user, ben.acting_user) == ("ana", "ben")
    assert "acting as ben" in repr(ben)


async def test_client_of_an_acting_user_shares_connections_and_closes_none(server, memory) -> None:
    server.otherwise = says(ANSWER)
    view = memory.acting_as("ana")

    await ask(view.close)

    await ask(memory.projects.get, "p1")
    await ask(view.projects.get, "p1")
    assert len(server.requests) == 2


@pytest.mark.parametrize("name", ["", "a b", "a\nX-Other: b", "安娜"])
def test_malformed_acting_user_is_refused(open_memory, name) -> None:
    with pytest.raises(ValueError, match="acting user"):
        open_memory().acting_as(name)
    with pytest.raises(ValueError, match="acting user"):
        open_memory(acting_user=name)


async def test_team_shares_what_its_roles_allow(memory_of_acme: AsyncMemory) -> None:
    ana, ben = memory_of_acme.acting_as("ana"), memory_of_acme.acting_as("ben")
    made = await ana.projects.create("Apollo", project_id="apollo")
    shared = {"infer": False, "scope": "project", "project_id": "apollo"}
    secret = await ana.add("Ana's draft says April.", visibility="owner_only", **shared)
    with pytest.raises(NotFoundError):
        await ana.projects.put_member("apollo", "ben")
    await ben.add("Ben keeps bees.", infer=False)
    assert (await ana.projects.put_member("apollo", "ben", "viewer")).role == "viewer"

    assert [one.project_id for one in await ben.projects.list_projects()] == [made.project_id]
    with pytest.raises(ForbiddenError) as viewer:
        await ben.add("The release is in March.", **shared)
    assert viewer.value.code == "read_only_member"
    with pytest.raises(ConflictError) as last:
        await ana.projects.remove_member("apollo", "ana")
    assert last.value.code == "last_owner"

    told = await ana.projects.transfer("apollo", "ben")
    assert (told.owner_id, told.former_owners) == ("ben", ("ana",))
    members = {one.user_id: one.role for one in await ana.projects.members("apollo")}
    assert members == {"ana": "admin", "ben": "owner"}
    [item] = await ben.projects.items("apollo")
    assert (item.user_id, item.visibility) == ("ana", "owner_only")
    assert item.memory_id == secret.results[0].memory_id
    with pytest.raises(NotFoundError):
        await ben.get(item.memory_id)
    await ben.delete(item.memory_id)
    assert len(await ben.projects.items("apollo")) == 0
    assert (await ben.projects.update("apollo", description="Done.")).description == "Done."
    assert (await ben.projects.delete("apollo", confirm=True)).deleted["members"] == 2


def test_project_and_member_print_as_one_line() -> None:
    assert str(kemem.Project(project_id="p", project_name="Apollo")) == "p: Apollo"
    assert str(kemem.Member(project_id="p", user_id="ana", role="viewer")) == "ana: viewer"
