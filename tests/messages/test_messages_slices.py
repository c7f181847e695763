"""GET /v1/sessions/{id}/messages/{id}?offset=&limit=: a long text is read stretch by stretch.

And GET /v1/messages/{id}, without the session.
"""

from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import append, fields, ok, problem
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEXT = "你好，world! " * 1_000


async def read(client: AsyncClient, message_id: str, **params: Any) -> Any:
    return ok(await client.get(f"/sessions/s1/messages/{message_id}", params=params))


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """The API, with a long message m1 of Ana's, and one in parts, m2."""
    image = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
    await append(
        client,
        "s1",
        {"message_id": "m1", "role": "user", "content": TEXT},
        {"message_id": "m2", "role": "user", "content": "abc",
         "content_parts": [{"type": "text", "text": "defg"}, image]},
    )  # fmt: skip
    return client


async def test_the_whole_is_shown_as_it_was_appended(talk: AsyncClient) -> None:
    whole, parts = await read(talk, "m1"), await read(talk, "m2")

    assert (whole["content"], whole["content_parts"]) == (TEXT, None)
    assert (whole["offset"], whole["total_length"], whole["next_offset"]) == (0, len(TEXT), None)
    assert (parts["content"], len(parts["content_parts"])) == ("abc", 2)
    assert parts["total_length"] == len("abc\ndefg")


@pytest.mark.parametrize("limit", [1_999, len(TEXT) - 1, len(TEXT), len(TEXT) + 1])
async def test_following_the_next_offset_reads_all_of_it_once(
    talk: AsyncClient, limit: int
) -> None:
    read_so_far, offset = "", 0
    while offset is not None:
        stretch = await read(talk, "m1", offset=offset, limit=limit)
        assert (stretch["offset"], stretch["total_length"]) == (offset, len(TEXT))
        assert 0 < len(stretch["content"]) <= limit
        read_so_far += stretch["content"]
        offset = stretch["next_offset"]

    assert read_so_far == TEXT


@pytest.mark.parametrize(
    ("offset", "content"), [(len(TEXT) - 1, TEXT[-1]), (len(TEXT), ""), (len(TEXT) + 1, "")]
)
async def test_at_and_behind_the_end(talk: AsyncClient, offset: int, content: str) -> None:
    stretch = await read(talk, "m1", offset=offset)

    assert (stretch["content"], stretch["next_offset"]) == (content, None)


async def test_the_text_of_parts_counts_and_what_is_no_text_stays_a_part(
    talk: AsyncClient,
) -> None:
    stretch = await read(talk, "m2", offset=2, limit=4)

    assert (stretch["content"], stretch["next_offset"]) == ("c\nde", 6)
    assert [part["type"] for part in stretch["content_parts"]] == ["image_url"]


@pytest.mark.parametrize(
    ("field", "good", "bad"), [("offset", [0, 10**8], [-1, 10**8 + 1, "x"]),
                               ("limit", [1, 10**8], [0, -1, 10**8 + 1])],
)  # fmt: skip
async def test_what_is_out_of_bounds_is_refused_by_name(
    talk: AsyncClient, field: str, good: list[Any], bad: list[Any]
) -> None:
    for value in good:
        await read(talk, "m1", **{field: value})
    for value in bad:
        response = await talk.get("/sessions/s1/messages/m1", params={field: value})
        assert fields(problem(response, 422, "invalid_request")) == [f"query.{field}"]


async def test_a_message_is_read_without_its_session(talk: AsyncClient) -> None:
    whole = ok(await talk.get("/messages/m1"))
    stretch = ok(await talk.get("/messages/m1", params={"offset": 3, "limit": 5}))

    assert whole == await read(talk, "m1")
    assert (stretch["session_id"], stretch["content"]) == ("s1", TEXT[3:8])
    problem(await talk.get("/messages/m3"), 404, "message_not_found")


async def test_a_bound_key_reads_only_messages_of_its_user_and_its_agent(
    talk: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    session = ok(await talk.get("/sessions/s1"))
    await append(talk, "s2", {"message_id": "m9", "role": "user", "content": "Hi."}, user_id="ben")
    for bound, seen in (
        ({"user_id": session["user_id"]}, ["m1"]),
        ({"user_id": "ben"}, ["m9"]),
        ({"agent_id": session["agent_id"]}, ["m1", "m9"]),
        ({"user_id": "ben", "agent_id": session["agent_id"]}, ["m9"]),
    ):
        caller = await make_key(runtime, acme.tenant_id, "read", **bound)
        async with client_of(app, caller.key) as client:
            answers = {one: await client.get(f"/messages/{one}") for one in ("m1", "m9")}
        assert [one for one, answer in answers.items() if answer.status_code == 200] == seen
        for one in answers.keys() - seen:
            problem(answers[one], 404, "message_not_found")


async def test_a_key_of_another_agent_reads_none(
    talk: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
) -> None:
    ok(await talk.post("/agents", json={"agent_id": "rival", "agent_name": "Rival"}), 201)
    caller = await make_key(runtime, acme.tenant_id, "read", agent_id="rival")
    async with client_of(app, caller.key) as client:
        problem(await client.get("/messages/m1"), 404, "message_not_found")
