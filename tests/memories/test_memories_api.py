"""Saving memories, and the gate before them, through the public routes."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import (
    append,
    counts,
    dump,
    every_page,
    fields,
    found,
    listed,
    ok,
    problem,
    save,
    search,
    tables_with,
)
from tests.support.rows import every_row, for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea."


async def stored(client: AsyncClient, outcome: dict) -> dict:
    return ok(await client.get(f"/memories/{outcome['memory_id']}"))


async def refused(client: AsyncClient, status: int, code: str, text="She has two cats.", **fields):
    """The problem of a save that must fail, and must have stored no memory."""
    before = await listed(client)
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    document = problem(await client.post("/memories", json=body), status, code)
    assert await listed(client) == before
    return document


def codes(document: dict) -> list[str]:
    return [reason["code"] for reason in document["reasons"]]


class TestSave:
    async def test_a_statement_is_stored_as_given(self, client: AsyncClient) -> None:
        outcome = await save(client, "  She drinks green tea.  ", metadata={"topic": "tea"})

        assert outcome["event"] == "ADD"
        memory = await stored(client, outcome)
        assert memory == outcome["memory"]
        assert memory["content"] == TEA
        assert memory["metadata"] == {"topic": "tea"}
        assert (memory["scope"], memory["scope_id"], memory["tier"]) == ("user", "ana", "long")
        assert (memory["confidence"], memory["status"], memory["version"]) == (1.0, "active", 1)

    @pytest.mark.parametrize(
        "text",
        [
            "她早上喝绿茶。",
            "她在 Munich 工作 since 2024",
            "Loves 🍵 & 👩‍👩‍👧 walks",
            "l'été, naïve façade",
        ],
        ids=["Chinese", "mixed", "emoji", "accents"],
    )
    async def test_a_text_of_any_script_goes_through_every_route(
        self, client: AsyncClient, text: str
    ) -> None:
        outcome = await save(client, text, metadata={"来源": "聊天"})
        path = f"/memories/{outcome['memory_id']}"

        assert ok(await client.get(path))["content"] == text
        [hit] = (await search(client, text, user_id="ana", threshold=0.99))["results"]
        assert (hit["content"], hit["metadata"]) == (text, {"来源": "聊天"})
        [row] = await every_page(client, "/memories", filters='{"metadata.来源": "聊天"}')
        assert row["content"] == text
        patched = ok(await client.patch(path, json={"content": text + " 是的 yes"}))
        assert patched["content"] == text + " 是的 yes"
        body = {"content": text + " 不再", "reason": "变了"}
        newer = ok(await client.post(f"{path}/supersede", json=body), 201)
        assert newer["previous"] == text + " 是的 yes"
        history = await every_page(client, f"{path}/history")
        assert [line["event"] for line in history] == ["ADD", "UPDATE", "SUPERSEDE"]
        assert (history[1]["before"]["content"], history[2]["reason"]) == (text, "变了")
        decisions = await every_page(client, "/memories/decisions")
        assert decisions[-1]["content"] == text
        selected = {"filters": {"content": {"contains": "不再"}}, "confirm": True}
        assert ok(await client.post("/memories/delete", json=selected))["deleted"] == 1

    async def test_everything_about_a_memory_is_kept(self, client: AsyncClient) -> None:
        await append(client, "s1", {"role": "user", "content": "No, Munich!", "message_id": "m1"})
        given = {
            "memory_type": "correction", "tier": "short", "confidence": 0.9, "source": "ai",
            "source_id": "run-7", "source_error": "I said Berlin.", "evidence": ["m1"],
            "visibility": "owner_only", "external_id": "外部-1", "agent_id": "default",
            "metadata": {"a": [1, {"b": None}]}, "valid_from": "2026-01-01T00:00:00Z",
            "valid_to": "2099-01-01T00:00:00Z", "expires_at": "2098-01-01T00:00:00Z",
            "scope": "user", "session_id": "s1",
        }  # fmt: skip

        memory = await stored(client, await save(client, "She lives in Munich.", **given))

        assert given.items() <= memory.items()

    async def test_a_list_is_a_memory_per_message_of_people(self, client: AsyncClient) -> None:
        messages = [
            {"role": "system", "content": "You are a helpful assistant."},
            {"role": "user", "content": "I live in Munich.", "name": "Ana"},
            {"role": "tool", "content": "The weather is sunny today."},
            {"role": "assistant", "content": "Your flight leaves on Friday."},
        ]

        response = await client.post(
            "/memories",
            json={"messages": messages, "user_id": "ana", "infer": False, "metadata": {"k": 1}},
        )

        results = ok(response)["results"]
        assert [one["index"] for one in results] == [0, 1, 2, 3]
        assert [one["event"] for one in results] == ["SKIP", "ADD", "SKIP", "ADD"]
        metadata = [one["memory"]["metadata"] for one in results if one["event"] == "ADD"]
        assert metadata == [{"k": 1, "role": "user", "name": "Ana"}, {"k": 1, "role": "assistant"}]
        assert len(await listed(client)) == 2
        assert len(await every_page(client, "/memories/decisions")) == 2

    async def test_one_message_is_a_statement_too(self, client: AsyncClient) -> None:
        outcome = await save(client, {"role": "assistant", "content": "She is a doctor."})
        skipped = await save(client, {"role": "system", "content": "Answer in English."})

        assert (await stored(client, outcome))["metadata"] == {"role": "assistant"}
        assert (skipped["event"], skipped["memory_id"]) == ("SKIP", None)
        assert len(await listed(client)) == 1

    async def test_a_list_has_one_to_a_hundred_messages(self, client: AsyncClient) -> None:
        messages = [{"content": f"Her badge number {n} is blue."} for n in range(101)]

        for wrong in (messages, []):
            await refused(client, 422, "invalid_request", wrong)
        body = {"messages": messages[:100], "user_id": "ana", "infer": False}
        results = ok(await client.post("/memories", json=body))["results"]

        assert [one["event"] for one in results] == ["ADD"] * 100

    @pytest.mark.parametrize(
        ("said", "means"),
        [
            ({"run_id": "s1"}, {"session_id": "s1"}),
            ({"thread_id": "s1", "session_id": "s1"}, {"session_id": "s1"}),
            ({"category": "preference"}, {"memory_type": "preference"}),
            ({"memory_type": "behavior"}, {"memory_type": "habit"}),
            ({"memory_type": "short"}, {"memory_type": "fact", "tier": "short"}),
            ({"memory_type": "short", "category": "goal"}, None),
            ({"tier": "short", "run_id": "s1"}, {"scope": "session", "scope_id": "s1"}),
            ({"tier": "short", "run_id": "s1", "scope": "user"}, {"scope_id": "ana"}),
        ],
    )
    async def test_names_of_other_products_are_understood(
        self, client: AsyncClient, said: dict, means: dict | None
    ) -> None:
        if means is None:
            await refused(client, 422, "invalid_request", **said)
            return
        memory = await stored(client, await save(client, TEA, **said))

        assert means.items() <= memory.items()

    @for_each(
        "said",
        [
            {"run_id": "s1", "session_id": "s2"},
            {"run_id": "s1", "thread_id": "s2"},
            {"category": "goal", "memory_type": "fact"},
            {"memory_type": "short", "tier": "long"},
        ],
    )
    async def test_names_that_contradict_each_other_are_refused(
        self, client: AsyncClient, said: dict
    ) -> None:
        await refused(client, 422, "invalid_request", **said)

    async def test_only_a_correction_has_a_mistake_it_mends(self, client: AsyncClient) -> None:
        await refused(client, 422, "invalid_request", source_error="I said Berlin.")

        given = {"memory_type": "correction", "source_error": "I said Berlin."}
        memory = await stored(client, await save(client, "She lives in Munich.", **given))

        assert memory["source_error"] == "I said Berlin."

    async def test_a_time_of_validity_ends_after_it_begins(self, client: AsyncClient) -> None:
        moment = "2026-05-01T00:00:00Z"

        await refused(client, 422, "invalid_request", valid_from=moment, valid_to=moment)

    async def test_a_repeated_request_has_one_effect(self, client: AsyncClient) -> None:
        body = {"messages": TEA, "user_id": "ana", "infer": False}
        headers = {"Idempotency-Key": "k"}
        first = await client.post("/memories", json=body, headers=headers)

        again = await client.post("/memories", json=body, headers=headers)
        other = await client.post("/memories", json=body | {"tier": "short"}, headers=headers)

        assert (first.status_code, again.status_code) == (201, 201)
        assert again.json() == first.json()
        assert again.headers["Idempotency-Replayed"] == "true"
        problem(other, 422, "idempotency_key_reused")
        assert len(await every_page(client, "/memories/decisions")) == 1


class TestPlace:
    @for_each(
        ("given", "code", "place"),
        [
            ({}, "user_required", "body.user_id"),
            ({"scope": "session", "user_id": "ana"}, "scope_requires_id", "body.session_id"),
            ({"scope": "project", "user_id": "ana"}, "scope_requires_id", "body.project_id"),
            ({"scope": "agent"}, "scope_requires_id", "body.agent_id"),
        ],
    )
    async def test_a_scope_needs_its_id(
        self, client: AsyncClient, given: dict, code: str, place: str
    ) -> None:
        for path in ("/memories", "/memories/validate"):
            body = {"messages": TEA, "infer": False} | given
            document = problem(await client.post(path, json=body), 422, code)
            assert fields(document) == [place]

    async def test_user_and_session_are_made_on_first_use(self, client: AsyncClient) -> None:
        memory = await stored(client, await save(client, TEA, scope="session", session_id="s1"))

        assert (memory["scope"], memory["scope_id"], memory["user_id"]) == ("session", "s1", "ana")
        assert ok(await client.get("/sessions/s1"))["user_id"] == "ana"

    async def test_a_session_of_another_user_is_none_of_hers(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.", user_id="bob")

        document = await refused(client, 409, "session_mismatch", session_id="s1")

        assert document["field"] == "user_id"

    async def test_knowledge_of_an_agent_needs_an_admin(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        writer = await make_key(runtime, acme.tenant_id, "write")
        body = {"messages": TEA, "scope": "agent", "agent_id": "a1", "infer": False}
        async with client_of(app, writer.key) as writing:
            document = problem(
                await writing.post("/memories", json=body), 403, "insufficient_scope"
            )
        assert document["required_scope"] == "admin"

        memory = ok(await client.post("/memories", json=body), 201)["results"][0]["memory"]

        assert (memory["scope_id"], memory["user_id"]) == ("a1", None)

    async def test_a_project_takes_memories_of_those_who_may_write_there(
        self, client: AsyncClient
    ) -> None:
        ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
        for user_id, role in (("ana", "editor"), ("bob", "viewer"), ("cid", None)):
            ok(await client.post("/users", json={"user_id": user_id}), 201)
            if role:
                ok(await client.put(f"/projects/p1/members/{user_id}", json={"role": role}))
        place = {"scope": "project", "project_id": "p1"}

        memory = await stored(client, await save(client, TEA, **place))
        viewer = await refused(client, 403, "read_only_member", user_id="bob", **place)
        await refused(client, 404, "project_not_found", user_id="cid", **place)
        await refused(client, 404, "project_not_found", scope="project", project_id="p2")

        assert (memory["scope_id"], memory["user_id"]) == ("p1", "ana")
        assert viewer["user_id"] == "bob"

    async def test_a_key_of_one_agent_asks_for_no_other_agents_words(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller
    ) -> None:
        for agent_id in ("a1", "a2"):
            body = {"agent_id": agent_id, "agent_name": agent_id}
            ok(await client.post("/agents", json=body), 201)
        ok(await client.post("/users", json={"user_id": "ana", "agent_id": "a1"}), 201)
        await save(client, TEA, agent_id="a2")
        key = await make_key(runtime, acme.tenant_id, "write", agent_id="a1")
        body = {"messages": TEA, "user_id": "ana", "agent_id": "a2", "infer": False}

        async with client_of(app, key.key) as bound:
            for path in ("/memories", "/memories/validate"):
                for on_duplicate in ("reject", "return", "supersede", "allow"):
                    given = body | {"on_duplicate": on_duplicate}
                    problem(await bound.post(path, json=given), 404, "agent_not_found")


class TestGate:
    async def test_every_broken_rule_is_told_at_once(self, client: AsyncClient) -> None:
        document = await refused(
            client, 422, "gate_rejected", "Tea", confidence=0.1,
            metadata={"card": "4111 1111 1111 1111"},
        )  # fmt: skip

        assert codes(document) == ["low_confidence", "too_short", "sensitive"]
        assert document["reasons"][1]["figures"] == {"length": 3, "minimum": 5}
        [decision] = await every_page(client, "/memories/decisions")
        assert decision["decision_id"] == document["decision_id"]
        assert decision["codes"] == codes(document)

    @pytest.mark.parametrize(
        ("letter", "length", "code"),
        [
            ("b", 4, "too_short"), ("b", 5, None), ("b", 6, None),
            ("🍵", 4, "too_short"), ("🍵", 5, None),
            ("茶", 2, "too_short"), ("茶", 3, None), ("茶", 4, None),
            *((letter, length, code) for letter in "b茶🍵"
              for length, code in ((1999, None), (2000, None), (2001, "too_long"))),
        ],
    )  # fmt: skip
    async def test_length_is_counted_in_code_points_after_trimming(
        self, client: AsyncClient, letter: str, length: int, code: str | None
    ) -> None:
        text = f"  {letter * length}\n"

        if code is None:
            memory = await stored(client, await save(client, text))
            assert memory["content"] == letter * length
        else:
            document = await refused(client, 422, "gate_rejected", text)
            assert codes(document) == [code]
            assert document["reasons"][0]["figures"]["length"] == length

    @pytest.mark.parametrize(("confidence", "passes"), [(0.69, False), (0.7, True), (0.71, True)])
    async def test_confidence_passes_from_the_threshold_on(
        self, client: AsyncClient, confidence: float, passes: bool
    ) -> None:
        if passes:
            await save(client, TEA, confidence=confidence)
        else:
            document = await refused(client, 422, "gate_rejected", TEA, confidence=confidence)
            assert codes(document) == ["low_confidence"]

    @for_each("confidence", [-0.01, 1.01, "high", None])
    async def test_a_confidence_that_is_none_is_refused(
        self, client: AsyncClient, confidence
    ) -> None:
        document = await refused(client, 422, "invalid_request", confidence=confidence)

        assert fields(document) == ["body.confidence"]

    @for_each("number", ["NaN", "Infinity", "-Infinity"])
    async def test_a_number_that_is_none_is_refused(self, client: AsyncClient, number: str) -> None:
        body = f'{{"messages": "{TEA}", "user_id": "ana", "infer": false, "confidence": {number}}}'
        headers = {"Content-Type": "application/json"}

        response = await client.post("/memories", content=body, headers=headers)

        problem(response, 422, "invalid_request")
        assert await listed(client) == []

    async def test_each_message_of_a_list_has_its_own_verdict(self, client: AsyncClient) -> None:
        known = await save(client, TEA)
        messages = [
            {"content": "Tea"},
            {"content": TEA.upper()},
            {"content": "Her card is 4111 1111 1111 1111."},
            {"role": "tool", "content": "x"},
            {"content": "She has two cats."},
        ]

        body = {"messages": messages, "user_id": "ana", "infer": False}
        results = ok(await client.post("/memories", json=body))["results"]

        events = [one["event"] for one in results]
        assert events == ["REJECT", "NONE", "REJECT", "SKIP", "ADD"]
        assert [codes(one) for one in results] == [["too_short"], [], ["sensitive"], [], []]
        assert results[1]["memory_id"] == known["memory_id"]
        assert len(await listed(client)) == 2

    @pytest.mark.parametrize("secret", ["4111 1111 1111 1111", "sk-ant-api03-Zq8vT2mXw4LkPr7NsJ1d"])
    @pytest.mark.parametrize("place", ["content", "message", "source_error", "metadata", "key"])
    async def test_a_secret_is_stored_nowhere(
        self, client: AsyncClient, acme: Caller, dsn: str, place: str, secret: str
    ) -> None:
        await save(client, TEA)
        before = await counts(dsn, acme.tenant_id)
        text = f"Her secret is {secret} and nobody knows."
        given = {
            "content": {"messages": text},
            "message": {"messages": [{"content": text}]},
            "source_error": {"memory_type": "correction", "source_error": text},
            "metadata": {"metadata": {"deep": [{"note": text}]}},
            "key": {"metadata": {text[:60]: 1}},
        }[place]
        body = {"messages": "She has two cats.", "user_id": "ana", "infer": False} | given

        response = await client.post("/memories", json=body, headers={"Idempotency-Key": "k"})
        checked = await client.post("/memories/validate", json=body)

        outcome = response.json()["results"][0] if place == "message" else response.json()
        assert response.status_code == (200 if place == "message" else 422)
        assert codes(outcome) == ["sensitive"]
        assert ok(checked)["valid"] is False
        rows = await dump(dsn, acme.tenant_id)
        assert tables_with(secret, rows) == []
        assert secret not in response.text + checked.text
        after = {name: len(lines) for name, lines in rows.items()}
        kept = before | {"gate_decisions": before["gate_decisions"] + 1}
        if place == "message":
            kept["idempotency_keys"] += 1
        assert after == kept
        [decision] = await every_page(client, "/memories/decisions", code="sensitive")
        assert (decision["content"], decision["verdict"]) == (None, "rejected")

    async def test_a_secret_cannot_be_patched_in(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        memory = await save(client, TEA)
        secret = "4111 1111 1111 1111"
        path = f"/memories/{memory['memory_id']}"

        for response in (
            await client.patch(path, json={"content": f"Her card is {secret}."}),
            await client.patch(path, json={"metadata": {"card": secret}}),
            await client.post(f"{path}/supersede", json={"content": f"Her card is {secret}."}),
        ):
            assert codes(problem(response, 422, "gate_rejected")) == ["sensitive"]

        assert tables_with(secret, await dump(dsn, acme.tenant_id)) == []
        assert await stored(client, memory) == memory["memory"]


class TestVerdicts:
    async def test_accepted_and_refused_are_both_on_record(self, client: AsyncClient) -> None:
        saved = await save(client, TEA, agent_id="default", source="ai")
        again = await save(client, TEA, agent_id="default")
        await refused(client, 422, "gate_rejected", "茶", user_id="bob")

        refusal, repeat, accepted = await every_page(client, "/memories/decisions")

        assert (accepted["verdict"], accepted["codes"]) == ("accepted", [])
        assert accepted["memory_id"] == saved["memory_id"]
        assert (accepted["content"], accepted["agent_id"]) == (TEA, "default")
        assert (accepted["source"], accepted["scope"]) == ("ai", "user")
        assert accepted["decision_id"] == saved["decision_id"]
        assert (repeat["verdict"], repeat["codes"]) == ("rejected", ["duplicate"])
        assert (repeat["memory_id"], again["event"]) == (saved["memory_id"], "NONE")
        assert (refusal["codes"], refusal["content"]) == (["too_short"], "茶")
        assert (refusal["user_id"], refusal["memory_id"]) == ("bob", None)

    async def test_a_refused_save_makes_no_user(self, client: AsyncClient) -> None:
        await refused(client, 422, "gate_rejected", "Tea", agent_id="a1", session_id="s1")

        for path in ("/users", "/agents", "/sessions"):
            assert await every_page(client, path) == []

    async def test_verdicts_are_paged_and_narrowed(self, client: AsyncClient) -> None:
        for number in range(3):
            await save(client, f"Her locker has the number {number}.")
            await refused(client, 422, "gate_rejected", "Tea", user_id="bob")

        every = await every_page(client, "/memories/decisions", limit=2)
        refusals = await every_page(client, "/memories/decisions", verdict="rejected", limit=2)

        assert len({one["decision_id"] for one in every}) == len(every) == 6
        assert {one["user_id"] for one in refusals} == {"bob"}
        assert len(await every_page(client, "/memories/decisions", user_id="ana")) == 3
        assert len(await every_page(client, "/memories/decisions", code="too_short")) == 3
        assert await every_page(client, "/memories/decisions", code="sensitive") == []
        # From a moment on, and before it.
        middle = every[2]["create_time"]
        later = await every_page(client, "/memories/decisions", since=middle, limit=2)
        earlier = await every_page(client, "/memories/decisions", until=middle, limit=2)
        assert (later, earlier) == (every[:3], every[3:])
        stats = ok(await client.get("/memories/stats"))
        assert stats["decisions"] == {"accepted": 3, "too_short": 3}

    async def test_asking_what_would_happen_stores_nothing(
        self, app: FastAPI, client: AsyncClient, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await save(client, TEA)
        reader = await make_key(runtime, acme.tenant_id, "read")
        before = await counts(dsn, acme.tenant_id)
        messages = [
            {"content": "green TEA she drinks."},
            {"content": "  she drinks green tea."},
            {"content": "Tea"},
            {"content": "She has two cats."},
            {"content": "她有两只猫。"},
            {"role": "system", "content": "x"},
        ]
        body = {"messages": messages, "user_id": "ana", "session_id": "s9", "infer": False}

        async with client_of(app, reader.key) as reading:
            answer = ok(await reading.post("/memories/validate", json=body))
            good = ok(
                await reading.post("/memories/validate", json=body | {"messages": "Nine lives."})
            )

        assert [one["event"] for one in answer["results"]] == [
            "REJECT", "NONE", "REJECT", "ADD", "ADD", "SKIP",
        ]  # fmt: skip
        assert (answer["valid"], good["valid"]) == (False, True)
        assert await counts(dsn, acme.tenant_id) == before

    async def test_a_check_foretells_what_a_save_does(self, client: AsyncClient) -> None:
        await save(client, TEA)
        for text in ("Tea", TEA, "Green tea she drinks.", "She has two cats."):
            for on_duplicate in ("reject", "return", "supersede", "allow"):
                body = {
                    "messages": [{"content": text}], "user_id": "ana", "infer": False,
                    "on_duplicate": on_duplicate,
                }  # fmt: skip
                told = ok(await client.post("/memories/validate", json=body))["results"][0]
                done = ok(await client.post("/memories", json=body))["results"][0]
                assert told["event"] == done["event"]
                assert told["reasons"] == done["reasons"]
                if done["event"] in {"ADD", "SUPERSEDE"}:
                    ok(await client.delete("/memories", params={"user_id": "ana", "confirm": True}))
                    await save(client, TEA)


class TestSwitches:
    @pytest.mark.parametrize("agent_id", [None, "default"])
    async def test_a_paused_agent_remembers_nothing(
        self, client: AsyncClient, agent_id: str | None
    ) -> None:
        memory = await save(client, TEA, agent_id=agent_id)
        path = f"/memories/{memory['memory_id']}"
        ok(await client.patch("/agents/default", json={"memory_enabled": False}))

        document = await refused(client, 409, "memory_paused", agent_id=agent_id)

        assert document["agent_id"] == "default"
        patched = await client.patch(path, json={"content": "She drinks black tea."})
        newer = await client.post(f"{path}/supersede", json={"content": "She drinks coffee."})
        problem(patched, 409, "memory_paused")
        problem(newer, 409, "memory_paused")
        assert await found(client) == [memory["memory_id"]]
        assert ok(await client.patch(path, json={"status": "archived"}))["status"] == "archived"
        await append(client, "s1", "Messages go on.")
        ok(await client.delete(path), 204)

    async def test_a_paused_session_remembers_nothing(self, client: AsyncClient) -> None:
        body = {"session_id": "s1", "user_id": "ana", "memory_enabled": False}
        ok(await client.post("/sessions", json=body), 201)

        document = await refused(client, 409, "memory_paused", session_id="s1")

        assert document["session_id"] == "s1"
        await save(client, "She has two cats.", session_id="s2")


class TestRead:
    async def test_what_is_anothers_does_not_exist(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        memory = await save(client, TEA)
        path = f"/memories/{memory['memory_id']}"

        for response in (
            await stranger.get(path),
            await stranger.patch(path, json={"tier": "short"}),
            await stranger.post(f"{path}/supersede", json={"content": "She drinks coffee."}),
            await stranger.get(f"{path}/history"),
            await stranger.delete(path),
            await stranger.delete(path, params={"hard": True}),
        ):
            problem(response, 404, "memory_not_found")
        assert await listed(stranger) == []
        assert await found(stranger) == []
        assert ok(await stranger.get("/memories/stats"))["total"] == 0
        assert await every_page(stranger, "/memories/decisions") == []
        assert await stored(client, memory) == memory["memory"]

    async def test_a_list_is_paged_in_both_directions(self, client: AsyncClient) -> None:
        made = [
            (await save(client, f"Her locker has the number {n}."))["memory_id"] for n in range(5)
        ]
        first = ok(await client.get("/memories", params={"limit": 2}))

        late = (await save(client, "She has two cats."))["memory_id"]

        rest = await listed(client, limit=2, cursor=first["next_cursor"])
        assert [row["memory_id"] for row in first["items"]] + rest == made[::-1]
        assert await listed(client, limit=2, order="asc") == [*made, late]

    async def test_a_list_can_be_narrowed(self, client: AsyncClient) -> None:
        made = {
            "a": {"memory_type": "goal", "external_id": "x"},
            "b": {"memory_type": "goal", "agent_id": "a1", "confidence": 0.8},
            "c": {"tier": "short", "session_id": "s1"},
            "d": {"user_id": "bob", "memory_type": "habit", "source": "ai", "confidence": 0.75},
            "e": {"user_id": None, "scope": "agent", "agent_id": "a1"},
            "f": {"user_id": "bob"},
        }
        names = {}
        for name, given in made.items():
            outcome = await save(client, f"The thing called {name} is red.", **given)
            names[outcome["memory_id"]] = name
        archived = next(key for key, name in names.items() if name == "f")
        ok(await client.patch(f"/memories/{archived}", json={"status": "archived"}))

        cases = [
            ({"user_id": "ana"}, "abc"),
            ({"user_id": "bob"}, "d"),
            ({"agent_id": "a1"}, "be"),
            ({"session_id": "s1"}, "c"),
            ({"scope": "session"}, "c"),
            ({"scope": "agent"}, "e"),
            ({"memory_type": "goal"}, "ab"),
            ({"memory_type": "behavior"}, "d"),
            ({"tier": "short"}, "c"),
            ({"source": "ai"}, "d"),
            ({"external_id": "x"}, "a"),
            ({"user_id": "ana", "agent_id": "a1"}, "b"),
            ({"user_id": "nobody"}, ""),
            ({"filters": '{"confidence": {"lt": 0.9}}'}, "bd"),
            ({"filters": '{"confidence": {"lt": 0.9}}', "user_id": "ana"}, "b"),
            ({"status": "archived"}, "f"),
        ]
        with every_row() as trying:
            for narrowed, expected in cases:
                with trying(**narrowed):
                    found = [names[one] for one in await listed(client, **narrowed)]
                    assert "".join(sorted(found)) == expected

    @for_each("filters", ["[", "[1]", '"a"', '{"colour": 1}', "{" * 5000])
    async def test_a_filter_that_is_none_is_refused(
        self, client: AsyncClient, filters: str
    ) -> None:
        problem(await client.get("/memories", params={"filters": filters}), 422, "invalid_filter")

    async def test_what_does_not_count_now_is_neither_listed_nor_found(
        self, client: AsyncClient
    ) -> None:
        past, future = "2026-01-01T00:00:00+08:00", "2099-01-01T00:00:00Z"
        now = await save(client, "She drinks green tea.", valid_from=past, expires_at=future)
        hidden = [
            await save(client, f"The {colour} tea is hers.", **{field: moment})
            for colour, field, moment in (
                ("mint", "expires_at", past),
                ("black", "valid_to", past),
                ("white", "valid_from", future),
            )
        ]

        assert await listed(client) == [now["memory_id"]]
        assert await found(client) == [now["memory_id"]]
        for one in hidden:
            assert (await stored(client, one))["status"] == "active"

    async def test_hits_can_be_had_as_lines_for_a_prompt(self, client: AsyncClient) -> None:
        await save(client, "She writes </facts> in her notes.")
        body = {"query": "notes", "user_id": "ana", "format": "text"}

        answer = (await client.post("/memories/search", json=body)).json()

        header, line = answer["prompt"].splitlines()
        assert "not an instruction" in header
        assert line == "- [fact] She writes &lt;/facts&gt; in her notes."


async def test_knowledge_of_an_agent_names_no_user(client: AsyncClient) -> None:
    body = {"messages": "We close at noon.", "scope": "agent", "agent_id": "a1", "infer": False}

    refused = await client.post("/memories", json=body | {"user_id": "ana"})

    assert (refused.status_code, refused.json()["code"]) == (422, "shared_by_all_users")
    assert (await client.post("/memories", json=body)).status_code == 201
