"""Sessions through the public routes."""

import pytest
from httpx import AsyncClient

from tests.support.api import append, every_page, fields, ok, problem
from tests.support.crud_contract import CrudContract
from tests.support.rows import every_row


class TestSessions(CrudContract):
    path = "/sessions"
    id_field = "session_id"
    prefix = "ses_"
    body = {"user_id": "ana"}
    full = {
        "session_name": "京都之行 trip to Kyoto ⛩",
        "session_type": "task",
        "context": {"goal": "看枫叶", "days": 3},
        "memory_enabled": False,
        "injection_enabled": False,
    }
    nullable = {"session_name", "session_type"}

    async def test_a_list_can_be_narrowed(self, client: AsyncClient) -> None:
        ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
        await self.make(client, "x1", project_id="p1")
        await self.make(client, "x2", user_id="bob", agent_id="a1", session_type="chat")
        await self.make(client, "x3", agent_id="a1")
        ok(await client.post("/sessions/x3/end"))

        cases = [
            ({"user_id": "ana"}, ["x3", "x1"]),
            ({"agent_id": "a1"}, ["x3", "x2"]),
            ({"project_id": "p1"}, ["x1"]),
            ({"session_type": "chat"}, ["x2"]),
            ({"status": "ended"}, ["x3"]),
            ({"status": 0}, ["x3"]),
            ({"status": 1}, ["x2", "x1"]),
            ({"status": "running", "user_id": "ana"}, ["x1"]),
            ({"user_id": "nobody"}, []),
        ]
        with every_row() as trying:
            for narrowed, expected in cases:
                with trying(**narrowed):
                    assert self.ids(await every_page(client, "/sessions", **narrowed)) == expected


class TestOpening:
    async def test_a_session_begins_with_its_first_message(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.", agent_id="a1")

        session = ok(await client.get("/sessions/s1"))
        assert (session["user_id"], session["agent_id"], session["status"]) == (
            "ana",
            "a1",
            "running",
        )
        assert ok(await client.get("/users/ana"))["agent_id"] == "a1"
        assert ok(await client.get("/agents/a1"))["agent_name"] == "a1"

    async def test_the_agent_is_the_users_home_agent_when_none_is_named(
        self, client: AsyncClient
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "a1"}), 201)

        await append(client, "s1", "Hello.")

        assert ok(await client.get("/sessions/s1"))["agent_id"] == "a1"

    async def test_a_session_without_a_user_is_not_begun(self, client: AsyncClient) -> None:
        said = {"messages": [{"role": "user", "content": "Hello."}]}

        appended = await client.post("/sessions/s1/messages", json=said)
        opened = await client.post("/sessions", json={})

        assert fields(problem(appended, 422, "user_required")) == ["body.user_id"]
        assert fields(problem(opened, 422, "user_required")) == ["body.user_id"]

    @pytest.mark.parametrize(
        ("field", "value"), [("user_id", "bob"), ("agent_id", "a2"), ("project_id", "p2")]
    )
    async def test_a_session_belongs_to_those_it_was_opened_with(
        self, client: AsyncClient, field: str, value: str
    ) -> None:
        for project_id in ("p1", "p2"):
            body = {"project_id": project_id, "project_name": "P"}
            ok(await client.post("/projects", json=body), 201)
        pair = {"user_id": "ana", "agent_id": "a1", "project_id": "p1"}
        await append(client, "s1", "Hello.", **pair)
        await append(client, "s1", "Hello again.", **pair)

        body = {"messages": [{"role": "user", "content": "Hi."}], field: value}
        response = await client.post("/sessions/s1/messages", json=body)

        assert problem(response, 409, "session_mismatch")["field"] == field
        assert len(await every_page(client, "/sessions/s1/messages")) == 2
        assert (await client.get("/users/bob")).status_code == 404

    async def test_a_project_is_attached_and_taken_off(self, client: AsyncClient) -> None:
        ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
        ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)

        attached = ok(await client.patch("/sessions/s1", json={"project_id": "p1"}))
        missing = await client.patch("/sessions/s1", json={"project_id": "p2"})
        off = ok(await client.patch("/sessions/s1", json={"project_id": None}))

        assert (attached["project_id"], off["project_id"]) == ("p1", None)
        problem(missing, 404, "project_not_found")
        opened = await client.post("/sessions", json={"user_id": "ana", "project_id": "p2"})
        problem(opened, 404, "project_not_found")


class TestEnding:
    async def test_an_ended_session_is_read_and_takes_nothing_more(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", "Hello.")

        ended = ok(await client.post("/sessions/s1/end"))

        assert ended["status"] == "ended"
        assert ended["end_time"] is not None
        body = {"messages": [{"role": "user", "content": "More."}]}
        response = await client.post("/sessions/s1/messages", json=body)
        assert problem(response, 409, "session_ended")["session_id"] == "s1"
        assert len(await every_page(client, "/sessions/s1/messages")) == 1

    async def test_ending_twice_is_ending_once(self, client: AsyncClient) -> None:
        ok(await client.post("/sessions", json={"session_id": "s1", "user_id": "ana"}), 201)

        first = ok(await client.post("/sessions/s1/end"))

        again = ok(await client.post("/sessions/s1/end"))

        assert first.pop("job_id").startswith("job_")
        assert again.pop("job_id") is None
        assert again == first

    async def test_a_reopened_session_goes_on_with_the_next_number(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", "One.", "Two.")
        ok(await client.post("/sessions/s1/end"))

        reopened = ok(await client.post("/sessions/s1/reopen"))

        assert (reopened["status"], reopened["end_time"]) == ("running", None)
        assert ok(await client.post("/sessions/s1/reopen")) == reopened
        said = await append(client, "s1", "Three.")
        assert said["messages"][0]["sequence_no"] == 3

    async def test_a_batch_sent_again_after_the_end_is_answered_as_before(
        self, client: AsyncClient
    ) -> None:
        message = {"role": "user", "content": "Hello.", "message_id": "m1"}
        first = await append(client, "s1", message)
        ok(await client.post("/sessions/s1/end"))

        again = await append(client, "s1", message)

        assert again["messages"] == first["messages"]
        assert (again["created"], again["existing"]) == (0, 1)

    async def test_a_missing_session_cannot_be_turned(self, client: AsyncClient) -> None:
        problem(await client.post("/sessions/none/end"), 404, "session_not_found")
        problem(await client.post("/sessions/none/reopen"), 404, "session_not_found")
