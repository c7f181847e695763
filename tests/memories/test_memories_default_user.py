"""Requests that name nobody: of the default user, where the deployment has one, never of all."""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import fields, ok, problem
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea."


@pytest_asyncio.fixture(loop_scope="session")
async def plain(dsn: str, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with service(dsn, default_user_id="solo") as app, client_of(app, acme.key) as opened:
        yield opened


async def test_a_statement_belongs_to_the_default_user(plain: AsyncClient) -> None:
    saved = ok(await plain.post("/memories", json={"messages": TEA, "infer": False}), 201)

    assert saved["results"][0]["memory"]["user_id"] == "solo"
    found = ok(await plain.post("/memories/search", json={"query": "tea"}))["results"]
    assert [one["content"] for one in found] == [TEA]


async def test_others_are_not_found_by_a_request_that_names_nobody(plain: AsyncClient) -> None:
    ok(await plain.post("/memories", json={"messages": TEA, "user_id": "ana", "infer": False}), 201)
    said = {"messages": [{"role": "user", "content": TEA}], "user_id": "ana"}
    ok(await plain.post("/sessions/s1/messages", json=said), 201)

    assert ok(await plain.post("/memories/search", json={"query": "tea"}))["results"] == []
    assert ok(await plain.post("/messages/search", json={"query": "tea"}))["items"] == []


async def test_a_filter_that_names_somebody_is_no_request_about_the_default_user(
    plain: AsyncClient,
) -> None:
    for filters in ({"user_id": "bob"}, {"OR": [{"user_id": "bob"}]}):
        asked = {"query": "tea", "filters": filters}
        problem(await plain.post("/memories/search", json=asked), 422, "selector_required")


async def test_a_new_session_is_the_default_users(plain: AsyncClient) -> None:
    said = {"messages": [{"role": "user", "content": TEA}]}

    ok(await plain.post("/sessions/s1/messages", json=said), 201)
    opened = ok(await plain.post("/sessions", json={}), 201)

    assert ok(await plain.get("/sessions/s1"))["user_id"] == "solo"
    assert opened["user_id"] == "solo"
    found = ok(await plain.post("/messages/search", json={"query": "tea"}))["items"]
    assert [one["session_id"] for one in found] == ["s1"]


async def test_who_is_named_counts(plain: AsyncClient) -> None:
    body = {"messages": TEA, "infer": False, "scope": "agent", "agent_id": "a1"}

    shared = ok(await plain.post("/memories", json=body), 201)["results"][0]["memory"]
    own = {"messages": TEA, "infer": False, "user_id": "ana"}
    saved = ok(await plain.post("/memories", json=own), 201)["results"][0]["memory"]

    assert shared["user_id"] is None
    assert saved["user_id"] == "ana"


@pytest.mark.parametrize("bound", [{"user_id": "ana"}, {"agent_id": "a1"}])
async def test_a_bound_key_never_means_the_default_user(
    dsn: str, runtime: Runtime, acme: Caller, bound: dict[str, str]
) -> None:
    key = await make_key(runtime, acme.tenant_id, "write", **bound)
    async with service(dsn, default_user_id="solo") as app, client_of(app, key.key) as client:
        answer = await client.post("/memories", json={"messages": TEA, "infer": False})

    if "user_id" in bound:
        assert ok(answer, 201)["results"][0]["memory"]["user_id"] == "ana"
    else:
        problem(answer, 422, "user_required")


async def test_without_a_default_user_somebody_must_be_named(client: AsyncClient) -> None:
    said = {"messages": [{"role": "user", "content": TEA}]}

    refused = await client.post("/sessions/s1/messages", json=said)

    assert fields(problem(refused, 422, "user_required")) == ["body.user_id"]


class TestContentOfParts:
    PARTS = ({"type": "text", "text": "I live in Munich."}, {"type": "image_url", "image_url": "x"})

    async def test_their_text_is_what_a_message_says(self, client: AsyncClient) -> None:
        message = {"role": "user", "content": list(self.PARTS)}
        body = {"messages": [message], "user_id": "ana", "infer": False}

        saved = ok(await client.post("/memories", json=body))["results"][0]

        assert saved["memory"]["content"] == "I live in Munich."

    @pytest.mark.parametrize("infer", [False, True])
    async def test_what_is_not_remembered_of_a_message_is_told(
        self, client: AsyncClient, infer: bool
    ) -> None:
        said = [{"content": "I like tea."}, {"role": "user", "content": list(self.PARTS)}]
        body = {"messages": said, "user_id": "ana", "infer": infer}

        told = ok(await client.post("/memories", json=body), 201 if infer else 200)["warnings"]

        assert told == [
            {
                "code": "parts_left_out",
                "location": ["body", "messages", "1", "content"],
                "detail": "Only text is remembered, so that these are not: [image].",
            }
        ]

    async def test_a_message_keeps_all_parts(self, client: AsyncClient) -> None:
        said = {"messages": [{"role": "user", "content": list(self.PARTS)}], "user_id": "ana"}

        stored = ok(await client.post("/sessions/s1/messages", json=said), 201)["messages"][0]

        assert (stored["content"], stored["content_parts"]) == ("", list(self.PARTS))
        found = ok(
            await client.post("/messages/search", json={"query": "Munich", "user_id": "ana"})
        )
        assert [one["message_id"] for one in found["items"]] == [stored["message_id"]]

    async def test_parts_are_given_once(self, client: AsyncClient) -> None:
        parts = list(self.PARTS)
        message = {"role": "user", "content": parts, "content_parts": parts}

        refused = await client.post(
            "/sessions/s1/messages", json={"messages": [message], "user_id": "ana"}
        )

        assert fields(problem(refused, 422, "invalid_request")) == ["body.messages.0"]


async def test_a_request_is_numbers_where_numbers_are_asked(client: AsyncClient) -> None:
    body = {"messages": TEA, "user_id": "ana", "infer": False, "confidence": True}

    refused = await client.post("/memories", json=body)

    assert fields(problem(refused, 422, "invalid_request")) == ["body.confidence"]


async def test_metadata_of_the_caller_is_kept(client: AsyncClient) -> None:
    message = {"role": "user", "content": TEA, "name": "Ana"}
    body = {"messages": [message], "user_id": "ana", "infer": False, "metadata": {"role": "chef"}}

    saved = ok(await client.post("/memories", json=body))["results"][0]["memory"]

    assert saved["metadata"] == {"role": "chef", "name": "Ana"}


async def test_a_repeated_append_creates_nothing_and_says_so(client: AsyncClient) -> None:
    message = {"message_id": "m1", "role": "user", "content": TEA}
    said = {"messages": [message], "user_id": "ana"}

    first = await client.post("/sessions/s1/messages", json=said)
    again = await client.post("/sessions/s1/messages", json=said)

    assert (first.status_code, again.status_code) == (201, 200)
    assert ok(again)["created"] == 0


async def test_scores_show_no_trace_of_rounding(client: AsyncClient) -> None:
    body = {"messages": TEA, "user_id": "ana", "infer": False, "confidence": 0.7}
    ok(await client.post("/memories", json=body), 201)
    asked = {"query": "what does she drink", "user_id": "ana", "explain": True}

    hit = ok(await client.post("/memories/search", json=asked))["results"][0]

    shown = [hit["score"], hit["explain"]["confidence"], hit["explain"]["scope"]]
    assert shown == [round(one, 12) for one in shown]
