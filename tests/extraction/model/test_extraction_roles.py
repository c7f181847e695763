"""A role lost while a model thinks: what was said does not become memory of the project."""

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import append, every_page, ok, save
from tests.support.chat_behaviours import (
    by_question,
    decides,
    entry,
    extracts,
    held,
    schema_name_of,
)
from tests.support.openai_server import Behaviour
from tests.support.working import over, until

OURS = "We decided to ship in March."
MINE = "她搬到慕尼黑了。"


@pytest.fixture(scope="module")
def model_settings() -> dict[str, Any]:
    return {"max_extractions": 1000}


@pytest.fixture
async def client(client: AsyncClient) -> AsyncClient:
    """Zoe edits in Ana's project."""
    for user in ("ana", "zoe"):
        ok(await client.post("/users", json={"user_id": user}), 201)
    body = {"project_id": "apollo", "project_name": "Apollo", "owner_id": "ana"}
    ok(await client.post("/projects", json=body), 201)
    ok(await client.put("/projects/apollo/members/zoe", json={"role": "editor"}))
    return client


def both(lines: list[Any]) -> list[dict[str, Any]]:
    """One statement for the project and one of the user's own."""
    [said] = [line["id"] for line in lines if line["role"] == "user"]
    return [
        entry(OURS, said, scope="project", type="decision"),
        entry(MINE, said, scope="user"),
    ]


async def nothing(client: AsyncClient) -> None:
    """She stays an editor."""


async def removed(client: AsyncClient) -> None:
    ok(await client.delete("/projects/apollo/members/zoe"), 204)


async def demoted(client: AsyncClient) -> None:
    ok(await client.put("/projects/apollo/members/zoe", json={"role": "viewer"}))


async def promoted(client: AsyncClient) -> None:
    ok(await client.put("/projects/apollo/members/zoe", json={"role": "admin"}))


async def erased(client: AsyncClient) -> None:
    ok(await client.delete("/projects/apollo", params={"confirm": True}))


async def contents(client: AsyncClient, **place: str) -> list[str]:
    return [row["content"] for row in await every_page(client, "/memories", **place)]


async def told(client: AsyncClient) -> str:
    """Zoe's session in the project, with something said; the id of the job that reads it."""
    body = {"session_id": "talk", "user_id": "zoe", "project_id": "apollo"}
    ok(await client.post("/sessions", json=body), 201)
    reply = {"role": "assistant", "content": "I see."}
    await append(client, "talk", f"{OURS} {MINE}", reply, user_id="zoe")
    return str(ok(await client.post("/sessions/talk/extract", json={}), 202)["job_id"])


@pytest.mark.usefixtures("worker")
class TestWhileAModelThinks:
    @pytest.mark.parametrize(
        ("happens", "kept"),
        [(nothing, True), (promoted, True), (removed, False), (demoted, False), (erased, False)],
    )
    async def test_what_it_read_goes_where_the_role_still_allows(
        self, client: AsyncClient, chat: Any, happens: Any, kept: bool
    ) -> None:
        release = threading.Event()
        chat.script(held(release, extracts(both)))
        # Of a project that is gone the session is read again.
        chat.otherwise = extracts(both)
        job_id = await told(client)
        await until(lambda: len(chat.requests) == 1)

        await happens(client)
        release.set()
        job = await over(client, job_id)

        assert job["status"] == "succeeded"
        assert job["attempts"] == (2 if happens is erased else 1)
        await stored(client, kept)
        assert job["result"]["events"] == ({"ADD": 2} if kept else {"ADD": 1, "REJECT": 1})
        session = ok(await client.get("/sessions/talk"))
        assert session["last_extracted_seq"] == session["last_sequence_no"] == 2

    @pytest.mark.parametrize(("happens", "kept"), [(nothing, True), (demoted, False)])
    async def test_what_it_decided_about_the_projects_memories_too(
        self, client: AsyncClient, chat: Any, happens: Any, kept: bool
    ) -> None:
        """The role goes while the reconciler replaces what she said there before."""
        place = {"user_id": "zoe", "project_id": "apollo", "scope": "project"}
        # What a person saved, no model may end.
        old = await save(client, "We decided to ship in April.", source="ai", **place)
        release = threading.Event()

        def ends(_statement: Any, near: list[Any]) -> dict[str, Any]:
            return {"event": "SUPERSEDE", "memories": [near[0]["id"]]}

        chat.otherwise = by_question(
            memories=extracts(both), decisions=held(release, decides(ends))
        )
        job_id = await told(client)
        await until(lambda: "decisions" in map(schema_name_of, chat.requests))

        await happens(client)
        release.set()
        await over(client, job_id)

        await stored(client, kept, [] if kept else ["We decided to ship in April."])
        row = ok(await client.get(f"/memories/{old['memory_id']}"))
        assert row["status"] == ("superseded" if kept else "active")

    async def test_a_request_that_reads_is_held_to_it_too(
        self, client: AsyncClient, chat: Any
    ) -> None:
        release = threading.Event()
        chat.script(held(release, named(OURS)))
        body = {
            "messages": OURS, "user_id": "zoe", "project_id": "apollo", "scope": "project",
        }  # fmt: skip
        asking = asyncio.create_task(client.post("/memories", json=body))
        await until(lambda: len(chat.requests) == 1)

        await removed(client)
        release.set()
        answer = ok(await asking)

        assert [one["event"] for one in answer["results"]] == ["REJECT"]
        assert await contents(client, project_id="apollo") == []


def named(content: str) -> Behaviour:
    """Says it for the project, whatever was read."""
    return extracts(lambda lines: [entry(content, lines[0]["id"], scope="project")])


async def stored(client: AsyncClient, kept: bool, before: Sequence[str] = ()) -> None:
    """What is remembered of both statements beside what was before, and why not."""
    assert await contents(client, user_id="zoe", scope="user") == [MINE]
    shared = await contents(client, user_id="zoe", scope="project")
    assert shared == [*([OURS] if kept else []), *before]
    verdicts = await every_page(client, "/memories/decisions")
    assert [code for one in verdicts for code in one["codes"]] == (
        [] if kept else ["scope_not_allowed"]
    )
