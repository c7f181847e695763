"""A run that is repeated asks no question twice that was answered, and one that a model leaves
undecided is decided by rules. A kill of the process is in `test_extraction_crashes.py`.
"""

import asyncio
import json
from collections import Counter
from typing import Any

import pytest
import structlog
from httpx import AsyncClient

from tests.support.api import append, every_page, execute, ok, save
from tests.support.chat_behaviours import (
    by_question,
    cut_off,
    decides,
    entry,
    extracts,
    lines_of,
    says,
    schema_name_of,
)
from tests.support.openai_server import Endpoint, refusal
from tests.support.patience import PATIENCE
from tests.support.working import make_due, over

REPLY = {"role": "assistant", "content": "I see."}
TEA = "The user drinks green tea in the morning."
COFFEE = "The user drinks black coffee in the morning."


@pytest.fixture(scope="module")
def model_settings() -> dict[str, Any]:
    return {"debounce_seconds": 300}


@pytest.fixture
async def client(client: AsyncClient) -> AsyncClient:
    """Its user drinks tea, which what she says about coffee is compared with."""
    await save(client, TEA, source="ai")
    return client


def everything(lines):
    """One fact per message of a user, in its own words."""
    return [entry(line["text"], line["id"]) for line in lines if line["role"] == "user"]


ADDS = decides(lambda *_: {"event": "ADD"})
NO_LIST = says({"decisions": "I would keep both of them, if you ask me."})


@pytest.fixture
def chat(chat: Endpoint) -> Endpoint:
    """The scripted endpoint, which reads everything and keeps both."""
    deciding(chat)
    return chat


def deciding(chat: Endpoint, *decisions: Any) -> None:
    """Read everything, and answer questions for decisions with these, the last one for good."""
    waiting = list(decisions or [ADDS])

    async def decide(request):
        return await (waiting.pop(0) if len(waiting) > 1 else waiting[0])(request)

    chat.otherwise = by_question(memories=extracts(everything), decisions=decide)


def questions(chat: Endpoint, name: str) -> list[str]:
    """What was asked under this name, whole."""
    return [
        json.dumps(request.body["messages"], ensure_ascii=False)
        for request in chat.requests
        if schema_name_of(request) == name
    ]


def asked(chat: Endpoint, name: str) -> int:
    """How often; no question twice."""
    found = Counter(questions(chat, name))
    assert set(found.values()) <= {1}
    return len(found)


async def order(client: AsyncClient) -> str:
    """Have the session read now; the id of the job."""
    return ok(await client.post("/sessions/talk/extract", json={}), 202)["job_id"]


async def attempted(client: AsyncClient, job_id: str, attempts: int = 1) -> dict[str, Any]:
    """A job, once so many attempts have failed."""
    async with asyncio.timeout(PATIENCE):
        while True:
            job = ok(await client.get(f"/jobs/{job_id}"))
            assert job["status"] not in {"succeeded", "dead"}, job
            if (job["status"], job["attempts"]) == ("pending", attempts):
                return job
            await asyncio.sleep(0.02)


async def tried_again(client: AsyncClient, job_id: str) -> dict[str, Any]:
    """A failed job after its next attempt, which is not waited for, has ended it."""
    await make_due(client.dsn, "job_id = $1", job_id)
    return await over(client, job_id)


async def kept(client: AsyncClient) -> list[str]:
    """For what answers are kept, by operation."""
    rows = await execute(
        client.dsn,
        "SELECT operation FROM model_answers WHERE tenant_id = $1 ORDER BY create_time",
        client.tenant_id,
    )
    return [row["operation"] for row in rows]


async def texts(client: AsyncClient, **params: Any) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **params)
    return sorted(row["content"] for row in rows)


async def usage(client: AsyncClient) -> dict[str, int]:
    return {row["operation"]: row["calls"] for row in ok(await client.get("/usage"))["items"]}


class TestRepeatedRuns:
    async def test_a_failed_decision_does_not_repeat_the_reading(self, client, worker, chat):
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        assert await kept(client) == ["extract"]
        await tried_again(client, job_id)

        assert asked(chat, "memories") == 1
        assert len(questions(chat, "decisions")) == 2
        assert await texts(client) == [COFFEE, TEA]
        assert await kept(client) == []
        assert (await usage(client))["extract"] == 1
        runs = await every_page(client, "/extractions")
        # The second run pays for the decision alone.
        assert sorted((run["status"], run["calls"]) for run in runs) == [
            ("committed", 1),
            ("extracted", 1),
        ]

    async def test_what_was_said_since_is_read_afterwards(self, client, worker, chat):
        """Else the first messages would be paid for again, with the new ones."""
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        await append(client, "talk", "不对，我住在慕尼黑。", REPLY)
        await tried_again(client, job_id)
        await until_read(client)

        assert asked(chat, "memories") == 2
        first, second = [r for r in chat.requests if schema_name_of(r) == "memories"]
        assert COFFEE in [line["text"] for line in lines_of(first, "message")]
        assert COFFEE in [line["text"] for line in lines_of(second, "earlier")]
        assert await texts(client) == [COFFEE, TEA, "不对，我住在慕尼黑。"]

    async def test_a_deleted_message_makes_another_question(self, client, worker, chat):
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, "The user owns a boat.", REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        said = await every_page(client, "/sessions/talk/messages")
        ok(await client.delete(f"/sessions/talk/messages/{said[0]['message_id']}"))
        assert await kept(client) == []
        await tried_again(client, job_id)

        assert asked(chat, "memories") == 2
        assert COFFEE not in questions(chat, "memories")[1]
        assert await texts(client) == [TEA, "The user owns a boat."]

    async def test_another_model_is_asked_itself(self, client, worker, chat):
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        session = ok(await client.get("/sessions/talk"))
        config = {"model": "openai/other"}
        ok(await client.patch(f"/agents/{session['agent_id']}", json={"config": config}))
        await tried_again(client, job_id)

        models = [r.body["model"] for r in chat.requests if schema_name_of(r) == "memories"]
        assert models == ["reader", "other"]

    async def test_other_instructions_make_another_question(self, client, worker, chat):
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        ok(await client.post("/sessions/talk/extract", json={"prompt": "Drinks alone."}), 202)
        await tried_again(client, job_id)

        assert asked(chat, "memories") == 2

    async def test_a_chunk_that_other_instructions_make_unreadable_is_halved(
        self, client, worker, chat
    ):
        """What was paid for with the former instructions does not say how much is read."""
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, "The user owns a boat.")
        job_id = await order(client)
        await attempted(client, job_id)

        async def read(request):
            many = len(lines_of(request, "message")) > 1
            return await (cut_off('{"memories": [') if many else extracts(everything))(request)

        chat.otherwise = by_question(memories=read, decisions=ADDS)
        ok(await client.post("/sessions/talk/extract", json={"prompt": "Drinks alone."}), 202)
        await until_read(client)

        assert await texts(client) == [COFFEE, TEA, "The user owns a boat."]
        assert await kept(client) == []

    async def test_a_request_that_is_sent_again_pays_for_the_decisions_alone(self, client, chat):
        deciding(chat, refusal(500), ADDS)
        body = {"messages": COFFEE, "user_id": "ana"}
        assert (await client.post("/memories", json=body)).status_code == 503
        ok(await client.post("/memories", json=body), 201)

        assert asked(chat, "memories") == 1
        assert await kept(client) == []

    async def test_the_same_words_of_somebody_else_are_another_request(self, client, chat):
        deciding(chat, refusal(500), ADDS)
        hers, his = ({"messages": COFFEE, "user_id": user} for user in ("ana", "ben"))
        assert (await client.post("/memories", json=hers)).status_code == 503
        ok(await client.post("/memories", json=his), 201)
        assert await kept(client) == ["extract"]
        ok(await client.post("/memories", json=hers), 201)

        assert len(questions(chat, "memories")) == 2
        assert await kept(client) == []

    async def test_a_preview_keeps_nothing_and_uses_nothing(self, client, chat):
        body = {"messages": COFFEE, "user_id": "ana"}
        for _ in range(2):
            ok(await client.post("/memories/validate", json=body))

        assert len(questions(chat, "memories")) == 2
        assert await kept(client) == []

    async def test_no_word_of_an_answer_is_logged(self, client, worker, chat):
        deciding(chat, refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        with structlog.testing.capture_logs() as lines:
            job_id = await order(client)
            await attempted(client, job_id)
            await tried_again(client, job_id)

        assert "kept_answer_used" in {line["event"] for line in lines}
        assert "coffee" not in str(lines)


async def until_read(client: AsyncClient) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            session = ok(await client.get("/sessions/talk"))
            if session["last_extracted_seq"] == session["last_sequence_no"]:
                return
            await make_due(client.dsn, "tenant_id = $1", client.tenant_id)
            await asyncio.sleep(0.05)


class TestUndecided:
    @pytest.mark.parametrize(
        "answer",
        [NO_LIST, cut_off('{"decisions": ['), refusal(413)],
        ids=["no_list", "cut", "too_long"],
    )
    async def test_rules_decide_at_the_second_attempt(self, client, worker, chat, answer):
        deciding(chat, answer)
        await append(client, "talk", COFFEE)
        with structlog.testing.capture_logs() as lines:
            job_id = await order(client)
            failed = await attempted(client, job_id)
            # One message that the model has read is not passed over.
            session = ok(await client.get("/sessions/talk"))
            job = await tried_again(client, job_id)

        assert (failed["error_code"], session["last_extracted_seq"]) == ("model_unavailable", 0)
        assert job["status"] == "succeeded"
        assert job["result"]["decided_by_rules"] in {"unreadable", "truncated", "too_long"}
        [line] = [line for line in lines if line["event"] == "run_decided_by_rules"]
        assert (line["log_level"], line["fault"]) == ("warning", job["result"]["decided_by_rules"])
        assert asked(chat, "memories") == 1
        assert len(questions(chat, "decisions")) == 2
        assert await texts(client) == [COFFEE, TEA]
        session = ok(await client.get("/sessions/talk"))
        assert session["last_extracted_seq"] == session["last_sequence_no"]

    async def test_rules_do_not_decide_for_a_model_that_cannot_be_reached(
        self, client, worker, chat
    ):
        deciding(chat, refusal(500), refusal(500), ADDS)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        await make_due(client.dsn, "job_id = $1", job_id)
        await attempted(client, job_id, 2)
        assert await texts(client) == [TEA]
        job = await tried_again(client, job_id)

        assert "decided_by_rules" not in job["result"]
        assert asked(chat, "memories") == 1
        assert await texts(client) == [COFFEE, TEA]

    async def test_decisions_that_can_be_used_are_the_models_own(self, client, worker, chat):
        known = decides(lambda _, near: {"event": "NONE", "memories": [near[0]["id"]]})
        deciding(chat, NO_LIST, known)
        await append(client, "talk", COFFEE, REPLY)
        job_id = await order(client)
        await attempted(client, job_id)
        job = await tried_again(client, job_id)

        assert job["result"]["events"] == {"NONE": 1}
        assert "decided_by_rules" not in job["result"]
