"""What a request says that led to nothing: each message is answered, and has a verdict."""

from httpx import AsyncClient

from app.platform.jobs.worker import Worker
from tests.support.api import every_page, ok
from tests.support.working import over


def told(answer: dict) -> list[tuple[str, list[str]]]:
    return [
        (one["event"], [reason["code"] for reason in one["reasons"]]) for one in answer["results"]
    ]


async def test_a_message_that_says_nothing_is_told_so(client: AsyncClient) -> None:
    body = {"messages": "Thanks a lot!", "user_id": "ana"}

    answer = ok(await client.post("/memories", json=body))

    assert told(answer) == [("NONE", ["nothing_found"])]
    [outcome] = answer["results"]
    assert outcome["reasons"][0]["figures"] == {"message": 0}
    [verdict] = ok(await client.get("/memories/decisions"))["items"]
    assert (verdict["decision_id"], verdict["codes"]) == (
        outcome["decision_id"],
        ["nothing_found"],
    )
    assert not verdict["content"]


async def test_each_message_has_its_own_answer(client: AsyncClient) -> None:
    messages = [
        {"role": "user", "content": "I live in Munich."},
        {"role": "assistant", "content": "Noted."},
        {"role": "tool", "content": "3 rows"},
        {"role": "user", "content": "What is the capital of France?"},
    ]

    answer = ok(await client.post("/memories", json={"messages": messages, "user_id": "ana"}), 201)

    assert told(answer) == [("ADD", []), ("NONE", ["not_read"]), ("NONE", ["nothing_found"])]
    assert [one["index"] for one in answer["results"]] == [0, 1, 2]
    assert [one["reasons"][0]["figures"]["message"] for one in answer["results"][1:]] == [2, 3]


async def test_an_empty_message_of_a_user_is_told_that_it_is_empty(client: AsyncClient) -> None:
    for said in ("", "   ", [{"role": "user", "content": ""}]):
        answer = ok(await client.post("/memories", json={"messages": said, "user_id": "ana"}))

        [outcome] = answer["results"]
        assert [reason["detail"] for reason in outcome["reasons"]] == [
            "The message holds no text to read."
        ]


async def test_a_check_says_the_same(client: AsyncClient) -> None:
    body = {"messages": "Thanks a lot!", "user_id": "ana"}

    checked = ok(await client.post("/memories/validate", json=body))

    assert told(checked) == [("NONE", ["nothing_found"])]
    assert checked["valid"]


async def test_saying_it_again_is_no_silence(client: AsyncClient) -> None:
    body = {"messages": "I live in Munich.", "user_id": "ana"}
    ok(await client.post("/memories", json=body), 201)

    assert told(ok(await client.post("/memories", json=body))) == [("NONE", [])]


async def test_a_job_keeps_the_verdict_too(client: AsyncClient, worker: Worker) -> None:
    body = {"messages": "Thanks a lot!", "user_id": "ana"}
    job = ok(await client.post("/memories?async=true", json=body), 202)

    await over(client, job["job_id"])

    assert [one["codes"] for one in await every_page(client, "/memories/decisions")] == [
        ["nothing_found"]
    ]


async def test_an_assistant_alone_is_not_read(client: AsyncClient) -> None:
    message = {"role": "assistant", "content": "Noted."}

    answer = ok(await client.post("/memories", json={"messages": [message], "user_id": "ana"}))

    assert told(answer) == [("NONE", ["not_read"])]
