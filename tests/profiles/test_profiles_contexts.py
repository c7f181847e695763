"""A profile in a context: what it says of the memories it was derived from stands there once."""

from typing import Any

import pytest_asyncio
from httpx import AsyncClient

from tests.profiles.profiles_support import derive
from tests.support.api import append, execute, ok, save

NURSE = "The user works as a nurse."
NUTS = "The user must not eat nuts."
BIKES = "The user bikes to work."


@pytest_asyncio.fixture(autouse=True, loop_scope="session")
async def talk(client: AsyncClient) -> None:
    ok(await client.post("/users", json={"user_id": "ana"}), 201)
    await append(client, "talk", "What do you know of my work?")


async def context(client: AsyncClient, **body: Any) -> dict[str, Any]:
    answer = await client.post("/sessions/talk/context", json={"render": "parts"} | body)
    return ok(answer)


def part(answer: dict[str, Any], name: str) -> str:
    return next(one["text"] for one in answer["parts"] if one["name"] == name) or ""


def used(answer: dict[str, Any]) -> dict[str, str]:
    return {one["memory_id"]: one["part"] for one in answer["used"]}


async def test_fact_is_shown_once_and_reported_as_used(client, worker) -> None:
    nurse = (await save(client, NURSE))["memory_id"]
    nuts = (await save(client, NUTS, memory_type="constraint"))["memory_id"]
    await derive(client)

    answer = await context(client)

    assert f"- work context: {NURSE}" in part(answer, "profile")
    assert answer["prompt"].count(NUTS) == 1
    assert NURSE not in part(answer, "memories")
    # The rules put no constraint into a user's profile.
    assert f"- [constraint] {NUTS}" in part(answer, "memories")
    assert used(answer) == {nurse: "profile", nuts: "memories"}


async def test_fact_is_shown_as_memory_when_the_profile_is_not(client, worker) -> None:
    nurse = (await save(client, NURSE))["memory_id"]
    await derive(client)

    for body in ({"include": {"profile": False}}, {"as_of": "2090-01-01T00:00:00Z"}):
        answer = await context(client, **body)

        assert f"- [fact] {NURSE}" in part(answer, "memories")
        assert used(answer) == {nurse: "memories"}


async def test_user_written_value_leaves_no_memory_out(client, worker) -> None:
    """It stands on none, and may be equal by chance."""
    bikes = (await save(client, BIKES))["memory_id"]
    body = {"sections": {"personal_context": BIKES}}
    ok(await client.patch("/users/ana/profile", json=body, headers={"If-Match": "*"}))

    answer = await context(client)

    assert used(answer) == {bikes: "memories"}


async def test_own_words_stand_once_with_their_speaker(client, worker, dsn) -> None:
    moved = (await save(client, "My team moved last month", memory_type="context"))["memory_id"]
    await execute(
        dsn,
        "UPDATE memories SET speaker = 'Ana', said_at = '2025-05-03T10:00:00Z'"
        " WHERE memory_id = $1",
        moved,
    )
    await derive(client)

    answer = await context(client)

    said = "In Ana's own words: 3 May 2025: My team moved last month."
    assert f"- work context: {said}" in part(answer, "profile")
    assert answer["prompt"].count("My team moved") == 1
    assert used(answer) == {moved: "profile"}


async def test_changed_memory_is_shown_again(client, worker) -> None:
    nurse = (await save(client, NURSE))["memory_id"]
    await derive(client)
    surgeon = "The user works as a surgeon."
    ok(await client.patch(f"/memories/{nurse}", json={"content": surgeon}))

    answer = await context(client)

    # The profile is derived anew only after a while; until then both stand there.
    assert f"- [fact] {surgeon}" in part(answer, "memories")
