"""`memory.projects` and acting users: the requests they make, and both against the service."""

import pytest

import kemem
from tests.support.either_client import ask
from tests.support.flaky_server import says
from tests.support.rows import for_each

ANSWER = {
    "project_id": "p/1", "project_name": "Apollo", "user_id": "ana", "role": "owner",
    "owner_id": "bob", "former_owners": ["ana"], "id": "p/1", "deleted": {"memories": 3},
    "items": [], "next_cursor": None,
}  # fmt: skip


@for_each(
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
    server.requests.clear()
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


@pytest.mark.parametrize(
    ("name", "sent"),
    [("ana:1@b", "ana:1@b"), ("张三", "%E5%BC%A0%E4%B8%89"), ("Zoe\u0308", "Zo%C3%AB"),
     ("a%b, c", "a%25b%2C%20c")],
)  # fmt: skip
async def test_an_acting_user_is_sent_as_encoded_utf_8(server, memory, name, sent) -> None:
    server.otherwise = says(ANSWER)

    await ask(memory.acting_as(name).projects.get, "p1")

    assert server.requests[-1].headers["KeMem-User"] == sent


@pytest.mark.parametrize("name", ["", "a/b", "..", "a\nX-Other: b", "安" * 65])
def test_malformed_acting_user_is_refused(open_memory, name) -> None:
    with pytest.raises(ValueError, match="cannot be the id of a user"):
        open_memory().acting_as(name)
    with pytest.raises(ValueError, match="cannot be the id of a user"):
        open_memory(acting_user=name)


def test_project_and_member_print_as_one_line() -> None:
    assert str(kemem.Project(project_id="p", project_name="Apollo")) == "p: Apollo"
    assert str(kemem.Member(project_id="p", user_id="ana", role="viewer")) == "ana: viewer"
