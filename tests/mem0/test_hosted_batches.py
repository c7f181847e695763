"""mem0's hosted API over HTTP: batches and feedback."""

from collections.abc import AsyncIterator
from uuid import uuid4

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import every_page, ok
from tests.support.mem0 import mem0_client
from tests.support.tenants import Caller, make_key

TEXTS = ("She drinks green tea.", "He plays the cello.", "They live in Lisbon.")


@pytest.fixture
async def mem0(app: FastAPI, acme: Caller) -> AsyncIterator[AsyncClient]:
    async with mem0_client(app, acme.key) as opened:
        yield opened


async def stored(mem0: AsyncClient, *texts: str) -> list[str]:
    messages = [{"role": "user", "content": text} for text in texts or TEXTS]
    body = {"messages": messages, "infer": False, "user_id": "ana"}
    added = ok(await mem0.post("/v3/memories/add/", json=body))
    return [one["id"] for one in added["results"]]


async def text_of(mem0: AsyncClient, memory_id: str) -> str:
    return ok(await mem0.get(f"/v1/memories/{memory_id}/"))["memory"]


async def delete(mem0: AsyncClient, *memory_ids: str):
    memories = [{"memory_id": one} for one in memory_ids]
    return await mem0.request("DELETE", "/v1/batch/", json={"memories": memories})


def update(*pairs: tuple[str, str]) -> dict:
    return {"memories": [{"memory_id": one, "text": text} for one, text in pairs]}


class TestUpdate:
    async def test_texts_and_metadata_are_changed(self, mem0: AsyncClient) -> None:
        first, second, _ = await stored(mem0)
        body = update((first, "She drinks black tea."))
        body["memories"].append({"memory_id": second, "metadata": {"topic": "music"}})

        shown = ok(await mem0.put("/v1/batch/", json=body))

        assert shown == {"message": "Successfully updated 2 memories"}
        assert await text_of(mem0, first) == "She drinks black tea."
        changed = ok(await mem0.get(f"/v1/memories/{second}/"))
        assert (changed["memory"], changed["metadata"]) == (TEXTS[1], {"topic": "music"})

    async def test_new_metadata_leave_the_app(self, mem0: AsyncClient) -> None:
        body = {"messages": TEXTS[0], "infer": False, "user_id": "ana", "app_id": "shop"}
        [added] = ok(await mem0.post("/v3/memories/add/", json=body))["results"]
        item = {"memory_id": added["id"], "metadata": {"topic": "tea"}}
        ok(await mem0.put("/v1/batch/", json={"memories": [item]}))
        shown = ok(await mem0.get(f"/v1/memories/{added['id']}/"))
        assert (shown["app_id"], shown["metadata"]) == ("shop", {"topic": "tea"})

    async def test_nothing_changes_when_one_is_missing(self, mem0: AsyncClient) -> None:
        first, *_ = await stored(mem0)
        body = update((first, "She drinks black tea."), (str(uuid4()), "He is a pilot."))

        response = await mem0.put("/v1/batch/", json=body)

        assert (response.status_code, response.json()["error"]) == (404, "Memory not found!")
        assert await text_of(mem0, first) == TEXTS[0]

    async def test_a_refused_update_says_how_far_it_came_and_may_be_repeated(
        self, mem0: AsyncClient, client: AsyncClient
    ) -> None:
        first, second, third = await stored(mem0)
        body = update((first, "She drinks black tea."), (second, "ok"), (third, "They left."))

        response = await mem0.put("/v1/batch/", json=body)

        assert response.status_code == 409
        assert response.json()["updated"] == 1
        assert response.json()["memory_id"] == second
        assert [await text_of(mem0, one) for one in (first, second, third)] == [
            "She drinks black tea.", TEXTS[1], TEXTS[2],
        ]  # fmt: skip
        body["memories"][1]["text"] = "He plays the viola."
        ok(await mem0.put("/v1/batch/", json=body))
        history = await every_page(client, f"/memories/mem_{first.replace('-', '')}/history")
        assert [entry["event"] for entry in history] == ["ADD", "UPDATE"]

    async def test_the_first_refusal_is_answered_as_it_is(self, mem0: AsyncClient) -> None:
        first, *_ = await stored(mem0)
        response = await mem0.put("/v1/batch/", json=update((first, "ok")))
        assert (response.status_code, response.json()["code"]) == (400, "gate_rejected")


class TestDelete:
    async def test_all_are_deleted_named_once_or_twice(self, mem0: AsyncClient) -> None:
        first, second, third = await stored(mem0)

        shown = ok(await delete(mem0, first, second, first))

        assert shown == {"message": "Successfully deleted 2 memories"}
        for memory_id, status in ((first, 404), (second, 404), (third, 200)):
            assert (await mem0.get(f"/v1/memories/{memory_id}/")).status_code == status

    async def test_nothing_is_deleted_when_one_is_missing(self, mem0: AsyncClient) -> None:
        first, second, _ = await stored(mem0)
        ok(await delete(mem0, second))

        assert (await delete(mem0, first, second)).status_code == 404
        assert await text_of(mem0, first) == TEXTS[0]

    async def test_a_batch_has_1_to_1000_memories(self, mem0: AsyncClient) -> None:
        ids = [str(uuid4()) for _ in range(1001)]
        for count, status in ((0, 400), (999, 404), (1000, 404), (1001, 400)):
            assert (await delete(mem0, *ids[:count])).status_code == status, count
            body = update(*((one, "He is a pilot.") for one in ids[:count]))
            assert (await mem0.put("/v1/batch/", json=body)).status_code == status, count

    async def test_more_than_a_filter_holds_are_deleted_at_once(self, mem0: AsyncClient) -> None:
        texts = [f"Her locker has the number {number}." for number in range(100, 221)]
        ids = []
        for start in range(0, len(texts), 50):
            ids += await stored(mem0, *texts[start : start + 50])
        assert len(ids) == 121
        shown = ok(await delete(mem0, *ids))
        assert shown == {"message": "Successfully deleted 121 memories"}

    async def test_a_key_of_a_user_reaches_that_users_memories_alone(
        self, app: FastAPI, runtime: Runtime, acme: Caller, mem0: AsyncClient
    ) -> None:
        first, *_ = await stored(mem0)
        bob = await make_key(runtime, acme.tenant_id, "write", user_id="bob")
        async with mem0_client(app, bob.key) as theirs:
            assert (await delete(theirs, first)).status_code == 404
            body = update((first, "She drinks nothing."))
            assert (await theirs.put("/v1/batch/", json=body)).status_code == 404
        assert await text_of(mem0, first) == TEXTS[0]


class TestFeedback:
    async def test_mem0s_words_become_ratings(self, mem0: AsyncClient, client: AsyncClient) -> None:
        first, *_ = await stored(mem0)
        for word, reason in (
            ("POSITIVE", None), ("negative", "She moved."), ("VERY_NEGATIVE", "Not her."),
            ("VERY_NEGATIVE", None),
        ):  # fmt: skip
            body = {"memory_id": first, "feedback": word, "feedback_reason": reason}
            shown = ok(await mem0.post("/v1/feedback/", json=body))
            assert shown["feedback"] == word.upper()
            assert shown["feedback_reason"] == reason

        own = f"mem_{first.replace('-', '')}"
        kept = await every_page(client, f"/memories/{own}/feedback")
        assert [(one["rating"], one["comment"]) for one in reversed(kept)] == [
            ("helpful", None), ("wrong", "She moved."), ("wrong", "VERY_NEGATIVE: Not her."),
            ("wrong", "VERY_NEGATIVE"),
        ]  # fmt: skip

    async def test_what_was_said_is_not_taken_back(self, mem0: AsyncClient) -> None:
        first, *_ = await stored(mem0)
        response = await mem0.post("/v1/feedback/", json={"memory_id": first, "feedback": None})
        assert (response.status_code, response.json()["code"]) == (400, "no_counterpart")

    async def test_a_reason_has_at_most_1980_characters(self, mem0: AsyncClient) -> None:
        first, *_ = await stored(mem0)
        for length, status in ((1979, 200), (1980, 200), (1981, 400)):
            body = {
                "memory_id": first,
                "feedback": "VERY_NEGATIVE",
                "feedback_reason": "嗯" * length,
            }
            assert (await mem0.post("/v1/feedback/", json=body)).status_code == status, length
