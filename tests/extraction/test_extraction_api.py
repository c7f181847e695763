"""Conversations become memories by themselves: what a client sees of it, without a model."""

import asyncio

import pytest
from httpx import AsyncClient

from tests.support.api import append, every_page, execute, listed, ok, problem, save, search
from tests.support.conversations import policy
from tests.support.working import extracted, over, working

MUNICH = "I live in Munich."
REPLY = {"role": "assistant", "content": "Munich is lovely in spring."}


async def texts(client: AsyncClient, **params) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **params)
    return sorted(row["content"] for row in rows)


class TestCapture:
    async def test_an_append_says_when_the_session_is_read(self, client):
        answer = await append(client, "talk", MUNICH, REPLY)

        told = answer["extraction"]
        assert told["scheduled"]
        assert told["job_id"].startswith("job_")
        assert told["reason"] is None

    async def test_without_a_reply_it_waits_longer_and_the_reply_shortens_the_wait(self, client):
        first = (await append(client, "talk", MUNICH))["extraction"]
        second = (await append(client, "talk", REPLY))["extraction"]

        assert (first["scheduled"], first["reason"]) == (True, "awaiting_reply")
        assert second["job_id"] == first["job_id"]
        assert second["due_at"] < first["due_at"]

    @pytest.mark.parametrize(
        ("messages", "reason"),
        [
            ([REPLY], "no_user_message"),
            (["ok", REPLY], "trivial"),
            (["谢谢!", REPLY], "trivial"),
            ([{"role": "user", "content": MUNICH, "metadata": {"hidden": True}}], "hidden"),
        ],
    )
    async def test_what_holds_nothing_to_read_starts_nothing(self, client, messages, reason):
        answer = await append(client, "talk", *messages)

        assert answer["extraction"]["scheduled"] is False
        assert answer["extraction"]["reason"] == reason
        assert ok(await client.get("/jobs"))["items"] == []

    @pytest.mark.parametrize("answer", ["Exactly!", "完全正确！"])
    async def test_reply_that_only_confirms_is_read(self, client, answer):
        told = await append(client, "talk", {"role": "assistant", "content": "You like tea."})
        assert told["extraction"]["reason"] == "no_user_message"
        told = await append(client, "talk", "ok")
        assert told["extraction"]["reason"] == "trivial"

        told = await append(client, "talk", answer)

        assert told["extraction"]["scheduled"] is True
        assert told["extraction"]["signals"] == ["reinforcement"]

    async def test_signals_are_told_and_kept_with_the_job(self, client):
        answer = await append(client, "talk", "No, that's wrong: I live in Hamburg.", REPLY)

        assert "correction" in answer["extraction"]["signals"]

    async def test_the_same_append_again_schedules_nothing(self, client):
        message = {"message_id": "m-1", "role": "user", "content": MUNICH}
        await append(client, "talk", message)
        again = await append(client, "talk", message)

        assert again["extraction"] == {
            "scheduled": False,
            "reason": "nothing_new",
            "job_id": None,
            "due_at": None,
            "signals": [],
        }


class TestReading:
    async def test_what_was_said_is_remembered_with_its_evidence(self, client, worker):
        said = await append(client, "talk", MUNICH, REPLY)
        answer = await extracted(client, "talk")

        assert answer["done"]
        [row] = await every_page(client, "/memories", user_id="ana")
        assert "Munich" in row["content"]
        assert row["source"] == "ai"
        assert row["evidence"] == [said["messages"][0]["message_id"]]
        assert row["attribute"] == "user.residence"
        assert row["metadata"]["extractor"].startswith("rules/")

    async def test_memory_that_was_read_is_found_by_search(self, client, worker):
        await append(client, "talk", "我住在慕尼黑。", REPLY)
        await extracted(client, "talk")

        hits = (await search(client, "慕尼黑", user_id="ana"))["results"]
        assert "慕尼黑" in hits[0]["content"]

    async def test_the_same_conversation_again_adds_nothing(self, client, worker):
        for session in ("first", "second"):
            await append(client, session, MUNICH, REPLY, "I have two dogs.", REPLY)
            await extracted(client, session)
            before = await texts(client)

        assert await texts(client) == before
        decisions = await every_page(client, "/memories/decisions", user_id="ana")
        assert {"duplicate"} == {code for one in decisions for code in one["codes"]}

    async def test_another_value_of_an_attribute_replaces_the_first(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        await extracted(client, "talk")
        await append(client, "talk", "I moved to Hamburg.", REPLY)
        await extracted(client, "talk")

        [row] = await every_page(client, "/memories", user_id="ana")
        assert "Hamburg" in row["content"]
        [old] = await every_page(client, "/memories", user_id="ana", status="superseded")
        assert "Munich" in old["content"]
        assert old["superseded_by"] == row["memory_id"]
        history = await every_page(client, f"/memories/{old['memory_id']}/history")
        assert [line["event"] for line in history] == ["ADD", "SUPERSEDE"]
        assert all(line["job_id"] for line in history)

    async def test_what_a_person_saved_is_not_replaced(self, client, worker):
        saved = await save(client, "The user lives in Munich.", memory_type="fact")
        await append(client, "talk", "I moved to Hamburg.", REPLY)
        await extracted(client, "talk")

        rows = await every_page(client, "/memories", user_id="ana")
        assert saved["memory_id"] in {row["memory_id"] for row in rows}
        assert len(rows) == 2

    async def test_everything_read_once_is_not_read_again(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        await extracted(client, "talk")
        answer = await extracted(client, "talk")

        assert (answer["scheduled"], answer["done"], answer["last_extracted_seq"]) == (
            False,
            True,
            2,
        )
        assert len(ok(await client.get("/extractions"))["items"]) == 1

    async def test_the_run_is_in_the_log_with_its_verdicts(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        result = (await extracted(client, "talk"))["result"]

        run = ok(await client.get(f"/extractions/{result['extraction_id']}"))
        assert (run["status"], run["trigger"], run["outcomes"]) == (
            "committed",
            "explicit",
            {"ADD": 1},
        )
        # The former name has the same value, where it was.
        assert run["run_id"] == run["extraction_id"] == result["run_id"]
        asked = {"extraction_id": result["extraction_id"]}
        decisions = ok(await client.get("/memories/decisions", params=asked))["items"]
        assert [one["event"] for one in decisions] == ["ADD"]
        assert decisions[0]["evidence"]
        [memory_id] = {one["memory_id"] for one in decisions}
        await save(client, "She keeps bees.")
        on_it = await every_page(client, "/memories/decisions", memory_id=memory_id)
        assert on_it == decisions
        assert not await every_page(client, "/memories/decisions", memory_id="mem_none")

    async def test_many_messages_are_read_in_order_to_the_end(self, client, runtime, dsn):
        # A rescue of what leaves the window would read a part of them.
        await policy(client, "talk", automatic=False)
        for start in range(0, 300, 50):
            # All are read, and a few tell something: storing hundreds of memories takes long.
            lines = [f"Train {number} was late again." for number in range(start + 1, start + 50)]
            await append(client, "talk", f"I have a friend called Friend{start}.", *lines)
        # A worker would begin half a minute after the first append.
        async with working(runtime, dsn):
            answer = await extracted(client, "talk")

        assert answer["last_extracted_seq"] == 300
        runs = await every_page(client, "/extractions")
        assert sorted((run["first_sequence_no"], run["last_sequence_no"]) for run in runs) == [
            (1, 200),
            (201, 300),
        ]
        friends = [text for text in await texts(client) if "Friend" in text]
        assert len(friends) == 6

    async def test_an_unknown_session_is_not_found(self, client, stranger):
        await append(client, "talk", MUNICH)

        problem(await client.post("/sessions/none/extract", json={}), 404, "session_not_found")
        problem(await stranger.post("/sessions/talk/extract", json={}), 404, "session_not_found")


class TestPauses:
    @pytest.mark.parametrize("kind", ["sessions", "agents"])
    async def test_what_is_said_while_memory_is_paused_is_never_read(self, client, worker, kind):
        first = await append(client, "talk", MUNICH, REPLY)
        await extracted(client, "talk")
        path = {
            "sessions": "/sessions/talk",
            "agents": f"/agents/{first['messages'][0]['agent_id']}",
        }[kind]
        ok(await client.patch(path, json={"memory_enabled": False}))
        paused = await append(client, "talk", "I am allergic to peanuts.", REPLY)
        ok(await client.patch(path, json={"memory_enabled": True}))
        await append(client, "talk", "I have two dogs.", REPLY)
        await extracted(client, "talk")

        assert paused["extraction"] == {
            "scheduled": False,
            "reason": "memory_paused",
            "job_id": None,
            "due_at": None,
            "signals": [],
        }
        assert not any("peanuts" in text for text in await texts(client))
        assert any("dogs" in text for text in await texts(client))

    async def test_a_paused_session_is_not_read_on_demand(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))

        problem(await client.post("/sessions/talk/extract", json={}), 409, "memory_paused")


class TestTheEnd:
    async def test_the_end_reads_what_is_left(self, client, worker):
        await append(client, "talk", MUNICH)
        ok(await client.post("/sessions/talk/end"))
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]

        assert (await over(client, job["job_id"]))["status"] == "succeeded"
        assert any("Munich" in text for text in await texts(client))

    async def test_the_experience_of_the_session_is_told(self, client, worker):
        await append(client, "talk", "We decided to use PostgreSQL for the project.", REPLY)
        ok(await client.post("/sessions/talk/end"))
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
        await over(client, job["job_id"])

        rows = await every_page(client, "/memories", user_id="ana", memory_type="experience")
        assert len(rows) == 1

    async def test_short_term_memories_of_the_session_expire(self, client, worker):
        await append(client, "talk", MUNICH, REPLY)
        short = await save(
            client, "The train leaves at nine.", tier="short", session_id="talk", scope="session"
        )
        long = await save(client, "She likes trains a lot.", session_id="talk")
        ok(await client.post("/sessions/talk/end"))
        [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
        await over(client, job["job_id"])

        shown = await listed(client, user_id="ana")
        assert short["memory_id"] not in shown
        assert long["memory_id"] in shown

    async def test_a_reopened_session_keeps_them(self, client, runtime, dsn):
        await append(client, "talk", MUNICH, REPLY)
        short = await save(
            client, "The train leaves at nine.", tier="short", session_id="talk", scope="session"
        )
        ok(await client.post("/sessions/talk/end"))
        ok(await client.post("/sessions/talk/reopen"))

        async with working(runtime, dsn):
            [job] = ok(await client.get("/jobs", params={"kind": "extract"}))["items"]
            await over(client, job["job_id"])

        assert short["memory_id"] in await listed(client, user_id="ana")


class TestInference:
    async def test_messages_of_a_request_become_memories(self, client):
        answer = ok(
            await client.post("/memories", json={"messages": MUNICH, "user_id": "ana"}), 201
        )

        [outcome] = answer["results"]
        assert outcome["event"] == "ADD"
        assert outcome["memory"]["attribute"] == "user.residence"
        assert answer["extractor"].startswith("rules/")
        assert answer["extraction_id"].startswith("run_")
        assert answer["run_id"] == answer["extraction_id"]

    async def test_the_same_again_changes_nothing(self, client):
        body = {"messages": MUNICH, "user_id": "ana"}
        first = ok(await client.post("/memories", json=body), 201)
        second = ok(await client.post("/memories", json=body), 200)

        [outcome] = second["results"]
        assert outcome["event"] == "NONE"
        assert outcome["memory_id"] == first["results"][0]["memory_id"]

    async def test_another_value_says_what_it_replaced(self, client):
        await client.post("/memories", json={"messages": MUNICH, "user_id": "ana"})
        answer = ok(
            await client.post(
                "/memories", json={"messages": "I moved to Hamburg.", "user_id": "ana"}
            ),
            201,
        )

        [outcome] = answer["results"]
        assert outcome["event"] == "SUPERSEDE"
        assert "Munich" in outcome["previous"]
        assert len(outcome["replaced"]) == 1

    async def test_talk_without_a_statement_adds_nothing(self, client):
        answer = ok(
            await client.post("/memories", json={"messages": "How are you?", "user_id": "ana"})
        )

        assert [one["event"] for one in answer["results"]] == ["NONE"]

    async def test_a_key_makes_it_happen_once(self, client):
        headers = {"Idempotency-Key": "once"}
        body = {"messages": MUNICH, "user_id": "ana"}
        first = await client.post("/memories", json=body, headers=headers)
        second = await client.post("/memories", json=body, headers=headers)

        assert first.json() == second.json()
        assert (first.status_code, second.status_code) == (201, 201)

    async def test_two_at_once_add_one(self, client):
        body = {"messages": MUNICH, "user_id": "ana"}
        answers = await asyncio.gather(*(client.post("/memories", json=body) for _ in range(8)))

        assert {answer.status_code for answer in answers} <= {200, 201}
        assert len(await texts(client)) == 1

    async def test_async_is_a_job_that_forgets_the_words(self, client, worker, dsn, acme):
        accepted = ok(
            await client.post("/memories?async=true", json={"messages": MUNICH, "user_id": "ana"}),
            202,
        )
        job = await over(client, accepted["job_id"])

        assert job["status"] == "succeeded"
        assert job["result"]["events"] == {"ADD": 1}
        assert len(await texts(client)) == 1
        [row] = await execute(
            dsn, "SELECT payload FROM jobs WHERE tenant_id = $1 AND kind = 'infer'", acme.tenant_id
        )
        assert row["payload"] == "{}"

    async def test_async_saves_as_given_too(self, client, worker):
        body = {"messages": "She drinks green tea.", "user_id": "ana", "infer": False}
        accepted = ok(await client.post("/memories?async=true", json=body), 202)

        assert (await over(client, accepted["job_id"]))["result"]["events"] == {"ADD": 1}
        assert await texts(client) == ["She drinks green tea."]


@pytest.mark.parametrize(
    ("told", "kept"),
    [
        ("I moved to Lisbon last month.", "I moved to Lisbon last month"),
        ("我上个月搬到了深圳。", "我上个月搬到了深圳"),
    ],
)
async def test_old_message_is_remembered_as_of_when_it_was_said(client, worker, told, kept):
    """The client's zone says where its day begins; the statement's day is shown in UTC."""
    said = {"client_time": "2024-06-01T00:30:00+08:00"}
    await append(client, "talk", {"role": "user", "content": told, "metadata": said}, REPLY)
    await extracted(client, "talk")

    [memory] = await every_page(client, "/memories", user_id="ana")
    assert memory["content"].rstrip(".。") == kept
    assert memory["speaker"] == "ana"
    assert memory["said_at"] == "2024-05-31T16:30:00Z"
    assert memory["valid_from"] == "2024-05-01T00:00:00Z"
