"""Processors at work, over HTTP: those of the docs, and some that do what they should not."""

import asyncio
import sys
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.api import append, every_page, execute, ok, search
from tests.support.processors import install, install_example
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

CODE = '''
import time
from dataclasses import replace


class Mask:
    """Masks a word in messages before they are stored."""

    def before_append(self, point):
        return replace(point, messages=tuple(
            replace(one, content=one.content.replace("hunter2", "***"),
                    metadata={**one.metadata, "masked": True})
            if "hunter2" in one.content else one
            for one in point.messages))


class Quiet:
    """Nothing of it is read that is said off the record; it is never sure of tea."""

    async def before_extract(self, point):
        return replace(point, turns=tuple(
            one for one in point.turns if "off the record" not in one.content))

    def after_extract(self, point):
        return replace(point, proposals=tuple(
            replace(one, confidence=0.1) if "tea" in one.content else one
            for one in point.proposals))


class Shouting:
    def before_store(self, point):
        return replace(point, memories=tuple(
            replace(one, content=one.content.upper(), metadata={**one.metadata, "loud": True})
            for one in point.memories))


class Sorting:
    def after_search(self, point):
        kept = [one for one in point.hits if "secret garden" not in one.content]
        kept.sort(key=lambda one: one.content)
        return replace(point, hits=tuple(
            replace(one, annotations={"length": len(one.content)}) for one in kept))


class Failing:
    on_error = "refuse"

    def before_append(self, point):
        raise RuntimeError("hunter2")

    before_store = after_search = before_extract = before_append


class Stumbling(Failing):
    on_error = "skip"


class Bold:
    """Breaks the rules of requests and of points."""

    def before_append(self, point):
        return replace(point, messages=tuple(
            replace(one, content="x" * 200_001) for one in point.messages))

    def before_store(self, point):
        return replace(point, about=replace(point.about, user_id="ben"))
'''
TEA = "The user drinks green tea in the morning."
NAMES = ("mask", "quiet", "shouting", "sorting", "failing", "stumbling", "bold")


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def processing(dsn: str, tmp_path_factory) -> AsyncIterator[FastAPI]:
    """A service that allows them all."""
    folder = tmp_path_factory.mktemp("packages")
    names = install_example(folder)
    points = {name: f"acme_code:{name.title()}" for name in NAMES}
    install(folder, "acme_code", CODE, **points)
    sys.path.insert(0, str(folder))
    try:
        async with service(dsn, processors=",".join([*names, *NAMES])) as app:
            yield app
    finally:
        sys.path.remove(str(folder))
        for name in ("acme_processors", "acme_code"):
            sys.modules.pop(name, None)


@pytest.fixture
async def ana(processing: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with client_of(processing, acme.key) as opened:
        yield opened


async def choose(client: AsyncClient, *names: str, agent_id: str = "default") -> None:
    await client.post("/agents", json={"agent_id": agent_id, "agent_name": agent_id})
    body = {"config": {"processors": list(names)}}
    headers = {"If-Match": "*"}
    ok(await client.patch(f"/agents/{agent_id}", json=body, headers=headers))


async def stored(client: AsyncClient, session_id: str = "s1") -> list[str]:
    return [one["content"] for one in await every_page(client, f"/sessions/{session_id}/messages")]


async def save(client: AsyncClient, *texts: str, **fields: Any) -> Any:
    body = {"messages": [{"content": one} for one in texts], "user_id": "ana", "infer": False}
    return await client.post("/memories", json=body | {"agent_id": "default"} | fields)


class TestChoosing:
    async def test_an_unknown_name_is_refused_with_those_there_are(self, ana, client):
        await choose(ana)
        for wrong in (["mask", "msak"], "mask", [1], ["mask", "mask"], [["mask"]], {"mask": 1}):
            answer = await ana.patch(
                "/agents/default",
                json={"config": {"processors": wrong}},
                headers={"If-Match": "*"},
            )
            assert answer.status_code == 422, wrong
            [error] = answer.json()["errors"]
            assert error["location"] == ["body", "config", "processors"]
            assert "mask, quiet" in error["detail"]
        named = {"agent_name": "x", "config": {"processors": ["msak"]}}
        assert (await ana.post("/agents", json=named)).status_code == 422
        # Another process of the same database allows none.
        named["config"]["processors"] = ["mask"]
        assert "none" in (await client.post("/agents", json=named)).json()["detail"]

    async def test_an_agent_that_chooses_nothing_has_the_tenants(self, ana, acme, dsn):
        await execute(
            dsn,
            'UPDATE tenants SET config = \'{"processors": ["mask", "gone"]}\' WHERE tenant_id = $1',
            acme.tenant_id,
        )
        await append(ana, "s1", "It is hunter2.")
        await choose(ana, agent_id="open")
        await append(ana, "s2", "It is hunter2.", agent_id="open")

        assert await stored(ana) == ["It is ***."]
        assert await stored(ana, "s2") == ["It is hunter2."]

    async def test_admins_see_which_there_are(self, ana, client, processing, runtime, acme):
        listed = ok(await ana.get("/processors"))["items"]
        assert [one["name"] for one in listed][-len(NAMES) :] == list(NAMES)
        by_name = {one.pop("name"): one for one in listed}
        assert by_name["quiet"] == {
            "points": ["before_extract", "after_extract"],
            "timeout_seconds": 1.0,
            "on_error": "skip",
        }
        assert by_name["failing"]["on_error"] == "refuse"
        assert ok(await client.get("/processors")) == {"items": []}
        key = await make_key(runtime, acme.tenant_id, "write")
        async with client_of(processing, key.key) as writer:
            assert (await writer.get("/processors")).json()["code"] == "insufficient_scope"

    async def test_a_tenant_chooses_among_them_too(self, processing, runtime, acme):
        key = await make_key(runtime, acme.tenant_id, "operator")
        async with client_of(processing, key.key) as head:
            path = f"/tenants/{acme.tenant_id}"
            for wrong in (["mask", "msak"], "mask", [1], ["mask", "mask"]):
                answers = [
                    await head.patch(path, json={"config": {"processors": wrong}}),
                    await head.post(
                        "/tenants", json={"tenant_name": "x", "config": {"processors": wrong}}
                    ),
                ]
                for answer in answers:
                    assert answer.status_code == 422, wrong
                    [error] = answer.json()["errors"]
                    assert error["location"] == ["body", "config", "processors"]
                    assert "mask, quiet" in error["detail"]
            chosen = {"config": {"processors": ["mask"]}}
            assert ok(await head.patch(path, json=chosen))["config"] == chosen["config"]

    async def test_who_chooses_nothing_is_served_by_none(self, ana):
        await append(ana, "s1", "It is hunter2.")

        assert await stored(ana) == ["It is hunter2."]


class TestBeforeAppend:
    async def test_a_reply_with_a_stop_word_is_not_stored(self, ana):
        """With the package that the docs show."""
        await choose(ana, "stop_words")
        call = {"role": "assistant", "content": "my secret", "tool_calls": [{"id": "c1"}]}
        result = {"role": "tool", "tool_call_id": "c1", "content": "done"}
        reply = {"role": "assistant", "content": "The Password is swordfish.", "message_id": "m2"}

        answer = await append(ana, "s1", "What is the password?", reply, call, result)

        assert (answer["created"], answer["existing"], answer["dropped"]) == (3, 0, 1)
        assert await stored(ana) == ["What is the password?", "my secret", "done"]
        assert (await append(ana, "s1", reply))["dropped"] == 1
        assert (await append(ana, "s1", {"role": "assistant", "content": "好的"}))["created"] == 1

    async def test_what_was_changed_is_recognised_by_what_was_sent(self, ana, client):
        await choose(ana, "mask")
        said = {"role": "user", "content": "It is hunter2.", "message_id": "m1"}
        first = await append(ana, "s1", said)
        assert first["messages"][0]["content"] == "It is ***."
        assert first["messages"][0]["metadata"] == {"masked": True}

        # Also by a process that has no processors.
        for caller in (ana, client):
            again = await append(caller, "s1", said)
            assert (again["created"], again["existing"]) == (0, 1)
            assert again["messages"] == first["messages"]
            for other in ("It is ***.", "It is hunter3."):
                body = {"user_id": "ana", "messages": [said | {"content": other}]}
                answer = await caller.post("/sessions/s1/messages", json=body)
                assert answer.status_code == 409

    async def test_text_in_parts_is_shown_and_changed_and_an_image_stays(self, ana):
        await choose(ana, "mask")
        image = {"type": "image_url", "image_url": {"url": "https://a.b/c.png"}}
        parts = [{"type": "text", "text": "It is"}, image, {"type": "text", "text": "hunter2."}]
        said = {"role": "user", "content": parts, "message_id": "m1"}

        first = await append(ana, "s1", said)
        again = await append(ana, "s1", said)
        other = await append(ana, "s1", {"role": "user", "content": [*parts[:2]]})

        [message] = first["messages"]
        assert (message["content"], message["content_parts"]) == ("It is\n***.", [image])
        assert (again["existing"], again["messages"]) == (1, [message])
        assert other["messages"][0]["content_parts"] == parts[:2]

    async def test_what_was_stored_before_is_not_shown_again(self, ana, client):
        said = {"role": "user", "content": "It is hunter2.", "message_id": "m1"}
        await append(client, "s1", said)
        await choose(ana, "mask", "failing")

        assert (await append(ana, "s1", said))["existing"] == 1
        assert await stored(ana) == ["It is hunter2."]

    async def test_of_two_that_send_the_same_at_once_one_stores_it(self, ana):
        """Two connections."""
        await choose(ana, "mask")
        await append(ana, "s1", "Hello.")
        said = {"role": "user", "content": "It is hunter2.", "message_id": "m1"}

        answers = await asyncio.gather(*(append(ana, "s1", said) for _ in range(4)))

        assert sorted(one["created"] for one in answers) == [0, 0, 0, 1]
        assert await stored(ana) == ["Hello.", "It is ***."]

    async def test_a_failure_is_refused_or_passed_over(self, ana):
        await choose(ana, "failing")
        body = {"user_id": "ana", "messages": [{"role": "user", "content": "Hello."}]}
        answer = await ana.post("/sessions/s1/messages", json=body)
        assert (answer.status_code, answer.json()["code"]) == (503, "processor_failed")
        assert answer.json()["processor"] == "failing"
        assert "hunter2" not in answer.text
        assert (await ana.get("/sessions/s1")).status_code == 404

        await choose(ana, "stumbling", "bold")
        assert (await append(ana, "s1", "Hello."))["created"] == 1
        assert await stored(ana) == ["Hello."]


class TestBeforeStore:
    async def test_the_gate_sees_what_is_left(self, ana):
        card = "The user pays with 4111 1111 1111 1111 on Fridays."
        refused = ok(await save(ana, card))
        assert refused["results"][0]["event"] == "REJECT"

        await choose(ana, "cards")
        [saved] = ok(await save(ana, card, metadata={"by": "form"}))["results"]
        assert saved["memory"]["content"] == "The user pays with [card] on Fridays."
        assert saved["memory"]["metadata"]["by"] == "form"
        body = {"messages": card, "user_id": "ana", "agent_id": "default", "infer": False}
        judged = ok(await ana.post("/memories/validate", json=body))
        assert judged["results"][0]["event"] == "NONE"

    async def test_whose_it_is_cannot_be_changed_and_a_failure_stores_nothing(self, ana):
        await choose(ana, "bold")
        [saved] = ok(await save(ana, TEA))["results"]
        assert saved["memory"]["user_id"] == "ana"

        await choose(ana, "failing")
        answer = await save(ana, "The user has a dog named Rex.")
        assert (answer.status_code, answer.json()["code"]) == (503, "processor_failed")
        assert len(await every_page(ana, "/memories", user_id="ana")) == 1


class TestChanging:
    CARD = "The user pays with 4111 1111 1111 1111 on Fridays."

    async def test_a_new_content_is_shown_and_the_gate_sees_what_is_left(self, ana):
        await choose(ana)
        [saved] = ok(await save(ana, TEA, metadata={"by": "form"}))["results"]
        path = f"/memories/{saved['memory_id']}"
        refused = await ana.patch(path, json={"content": self.CARD})
        assert refused.json()["code"] == "gate_rejected"
        superseding = await ana.post(f"{path}/supersede", json={"content": self.CARD})
        assert superseding.json()["code"] == "gate_rejected"

        await choose(ana, "cards")
        changed = ok(await ana.patch(path, json={"content": self.CARD}))
        assert changed["content"] == "The user pays with [card] on Fridays."
        assert changed["metadata"]["by"] == "form"
        newer = self.CARD.replace("Fridays", "Mondays")
        after = ok(await ana.post(f"{path}/supersede", json={"content": newer}), 201)
        assert after["memory"]["content"] == "The user pays with [card] on Mondays."

    async def test_what_the_request_leaves_alone_stays(self, ana):
        await choose(ana)
        [saved] = ok(await save(ana, "The user keeps his card by the door."))["results"]
        path = f"/memories/{saved['memory_id']}"
        await choose(ana, "shouting")
        changed = ok(await ana.patch(path, json={"metadata": {"a": 1}}))
        assert changed["content"] == "The user keeps his card by the door."
        assert changed["metadata"] == {"a": 1, "loud": True}
        quiet = ok(await ana.patch(path, json={"confidence": 0.9}))
        assert quiet["metadata"] == {"a": 1, "loud": True}
        loud = ok(await ana.patch(path, json={"content": "The user keeps a cat."}))
        assert (loud["content"], loud["metadata"]) == (
            "THE USER KEEPS A CAT.",
            {"a": 1, "loud": True},
        )

    async def test_a_failure_changes_nothing_or_is_passed_over(self, ana):
        await choose(ana)
        [saved] = ok(await save(ana, TEA))["results"]
        path = f"/memories/{saved['memory_id']}"
        await choose(ana, "failing")
        body = {"content": "The user has a dog named Rex."}
        for answer in (
            await ana.patch(path, json=body),
            await ana.post(f"{path}/supersede", json=body),
        ):
            assert (answer.status_code, answer.json()["code"]) == (503, "processor_failed")
        assert ok(await ana.get(path))["version"] == 1
        await choose(ana, "stumbling")
        assert ok(await ana.patch(path, json=body))["content"] == body["content"]


class TestExtraction:
    async def infer(self, client: AsyncClient, *texts: str) -> Any:
        batch = [{"role": "user", "content": one} for one in texts]
        body = {"messages": batch, "user_id": "ana", "agent_id": "default"}
        return await client.post("/memories", json=body)

    async def test_turns_and_proposals_pass_through_it(self, ana):
        await choose(ana, "quiet")

        answer = await self.infer(
            ana, "I live in Munich.", "off the record: I live in Bonn.", "I love green tea."
        )

        results = answer.json()["results"]
        added = [one["memory"]["content"] for one in results if one["event"] == "ADD"]
        assert any("Munich" in one for one in added)
        assert not any("Bonn" in str(one) for one in results)
        [tea] = [one for one in results if one["event"] == "REJECT"]
        assert [one["code"] for one in tea["reasons"]] == ["low_confidence"]

    async def test_nothing_left_to_read_is_no_failure(self, ana):
        await choose(ana, "quiet")

        answer = await self.infer(ana, "off the record: I live in Bonn.")

        assert [one["event"] for one in answer.json()["results"]] == ["NONE"]

    async def test_a_failure_stores_nothing(self, ana):
        await choose(ana, "failing")

        answer = await self.infer(ana, "I live in Munich.")

        assert (answer.status_code, answer.json()["code"]) == (503, "processor_failed")
        assert await every_page(ana, "/memories", user_id="ana") == []


class TestAfterSearch:
    async def test_hits_are_sorted_dropped_and_noted(self, ana, client):
        await choose(ana, "sorting")
        ok(await save(ana, TEA, "A secret garden of tea is his.", "Ana drinks black tea at night."))
        whose = {"user_id": "ana", "agent_id": "default"}

        hits = (await search(ana, "tea", **whose))["results"]
        assert [one["content"] for one in hits] == ["Ana drinks black tea at night.", TEA]
        assert hits[1]["annotations"] == {"length": len(TEA)}
        plain = (await search(client, "tea", **whose))["results"]
        assert len(plain) == 3
        assert {one["annotations"] for one in plain} == {None}

        await append(ana, "s1", "What tea do I drink?")
        seen = ok(await ana.post("/sessions/s1/context", json={}))
        assert TEA in seen["prompt"]
        assert "secret garden" not in seen["prompt"]

    async def test_a_failure_is_refused_or_passed_over(self, ana):
        ok(await save(ana, TEA))
        body = {"query": "tea", "user_id": "ana", "agent_id": "default"}
        await choose(ana, "failing")
        assert (await ana.post("/memories/search", json=body)).json()["code"] == "processor_failed"
        await choose(ana, "stumbling")
        assert len(ok(await ana.post("/memories/search", json=body))["results"]) == 1


async def test_facts_of_an_imported_document_are_asked_as_saves_are(ana):
    await choose(ana, "shouting")
    fact = {"id": "f1", "content": TEA, "category": "preference", "confidence": 0.9,
            "createdAt": "2026-01-01T00:00:00Z", "source": "s"}  # fmt: skip
    ok(await ana.post("/users", json={"user_id": "ana", "agent_id": "default"}), 201)

    told = {"agent_id": "default"}
    ok(await ana.post("/users/ana/memory-document", json={"facts": [fact]}, params=told))

    [kept] = await every_page(ana, "/memories", user_id="ana")
    assert (kept["content"], kept["metadata"]["loud"]) == (TEA.upper(), True)
