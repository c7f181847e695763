"""What counts as the same statement, and what becomes of the second one."""

import asyncio
from typing import Any

import pytest
from httpx import AsyncClient

from app.governance.tables import TABLES
from tests.support.api import (
    counts,
    every_page,
    execute,
    found,
    listed,
    ok,
    problem,
    save,
)
from tests.support.tenants import Caller

TEA = "She drinks green tea in the morning."
SAME = "In the morning she drinks green tea."
"""The same in other words; the local embedder puts them at 0.98."""

CHINESE = ("她每天早上喝绿茶。", "每天早上她都喝绿茶。")


async def try_saving(client: AsyncClient, text: Any, **fields):
    body = {"messages": text, "user_id": "ana", "infer": False} | fields
    return await client.post("/memories", json=body)


class TestExact:
    @pytest.mark.parametrize(
        ("first", "again"),
        [
            ("She drinks green tea.", "she DRINKS green tea."),
            ("She drinks green tea.", " She  drinks\tgreen\n tea. "),
            ("She drinks green tea.", "Ｓｈｅ drinks green tea."),
            ("她早上喝绿茶", "她早上喝绿茶　"),
            ("Ｗｅｃｈａｔ 用户很多", "wechat 用户很多"),
            ("She is a fiancée.", "She is a fiance\u0301e."),
        ],
        ids=["case", "spaces", "width", "ideographic space", "mixed", "combining accent"],
    )
    async def test_the_same_text_again_changes_nothing(
        self, client: AsyncClient, first: str, again: str
    ) -> None:
        stored = await save(client, first)

        for on_duplicate in ("reject", "return", "supersede", "allow"):
            response = await try_saving(client, again, on_duplicate=on_duplicate)
            outcome = ok(response)["results"][0]
            assert (outcome["event"], outcome["memory_id"]) == ("NONE", stored["memory_id"])
            assert (outcome["memory"], outcome["similarity"]) == (stored["memory"], 1.0)

        path = f"/memories/{stored['memory_id']}"
        assert len(await every_page(client, f"{path}/history")) == 1
        assert await listed(client) == [stored["memory_id"]]

    async def test_punctuation_and_digits_keep_texts_apart(self, client: AsyncClient) -> None:
        for text in ("It runs on v1.2", "It runs on v12", "It runs on v1.3"):
            assert (await save(client, text))["event"] == "ADD"

    async def test_one_text_twice_in_a_request_is_one_memory(self, client: AsyncClient) -> None:
        messages = [{"content": TEA}, {"content": "她有两只猫。"}, {"content": TEA.upper()}]

        results = ok(await try_saving(client, messages))["results"]

        assert [one["event"] for one in results] == ["ADD", "ADD", "NONE"]
        assert results[2]["memory_id"] == results[0]["memory_id"]
        assert len(await listed(client)) == 2

    @pytest.mark.parametrize(
        "past", [{"expires_at": "2026-01-01T00:00:00Z"}, {"valid_to": "2026-01-01T00:00:00Z"}]
    )
    async def test_expired_memory_does_not_block_its_text(
        self, client: AsyncClient, past: dict
    ) -> None:
        old = await save(client, TEA, **past)
        body = {"messages": TEA, "user_id": "ana", "infer": False}
        checked = ok(await client.post("/memories/validate", json=body))["results"][0]

        new = await save(client, TEA)

        assert (checked["event"], checked["similarity"]) == ("ADD", None)
        lines = await every_page(client, f"/memories/{old['memory_id']}/history")
        assert [(line["event"], line["reason"], line["version"]) for line in lines] == [
            ("ADD", None, 1),
            ("ARCHIVE", "expired", 2),
        ]
        assert (lines[1]["before"]["status"], lines[1]["after"]["status"]) == ("active", "archived")

        assert new["event"] == "ADD"
        assert await listed(client) == [new["memory_id"]]
        assert await listed(client, status="archived") == [old["memory_id"]]

    @pytest.mark.parametrize("hard", [False, True])
    async def test_a_deleted_text_may_be_said_again(self, client: AsyncClient, hard: bool) -> None:
        old = await save(client, TEA)
        ok(await client.delete(f"/memories/{old['memory_id']}", params={"hard": hard}), 204)

        new = await save(client, TEA)

        assert new["event"] == "ADD"
        assert await found(client) == [new["memory_id"]]


class TestNear:
    @pytest.mark.parametrize(("first", "again"), [(TEA, SAME), CHINESE], ids=["English", "Chinese"])
    async def test_the_same_in_other_words_is_refused_with_its_twin(
        self, client: AsyncClient, first: str, again: str
    ) -> None:
        stored = await save(client, first)

        document = problem(await try_saving(client, again), 409, "duplicate")

        assert document["memory_id"] == stored["memory_id"]
        assert 0.85 <= document["similarity"] < 1
        assert await listed(client) == [stored["memory_id"]]
        [decision] = await every_page(client, "/memories/decisions", code="duplicate")
        assert decision["decision_id"] == document["decision_id"]
        assert (decision["content"], decision["memory_id"]) == (again, stored["memory_id"])

    @pytest.mark.parametrize(
        ("first", "again"),
        [
            ("The user lives in Berlin.", "The user lives in Munich."),
            ("She has two cats.", "She has three cats."),
            ("The meeting is at 3 pm.", "The meeting is at 4 pm."),
            ("She likes coffee.", "She does not like coffee."),
            ("Ana prefers tea over coffee.", "Ana prefers coffee over tea."),
            ("她住在北京", "她住在上海"),
            ("他有两只猫", "他有三只猫"),
            ("他喜欢咖啡", "他不喜欢咖啡"),
        ],
    )
    async def test_a_contradiction_is_no_duplicate(
        self, client: AsyncClient, first: str, again: str
    ) -> None:
        for text in (first, again):
            assert (await save(client, text))["event"] == "ADD"

        assert len(await listed(client)) == 2

    async def test_the_caller_may_ask_for_the_twin(self, client: AsyncClient) -> None:
        stored = await save(client, TEA)

        response = await try_saving(client, SAME, on_duplicate="return")

        outcome = ok(response)["results"][0]
        assert (outcome["event"], outcome["memory"]) == ("NONE", stored["memory"])
        assert 0.85 <= outcome["similarity"] < 1

    async def test_the_caller_may_replace_the_twin(self, client: AsyncClient) -> None:
        old = await save(client, TEA)

        response = await try_saving(client, SAME, on_duplicate="supersede")

        outcome = ok(response, 201)["results"][0]
        assert (outcome["event"], outcome["previous"]) == ("SUPERSEDE", TEA)
        before = ok(await client.get(f"/memories/{old['memory_id']}"))
        assert (before["status"], before["superseded_by"]) == ("superseded", outcome["memory_id"])
        assert before["valid_to"] is not None
        assert await found(client) == await listed(client) == [outcome["memory_id"]]
        history = await every_page(client, f"/memories/{old['memory_id']}/history")
        assert [line["event"] for line in history] == ["ADD", "SUPERSEDE"]

    async def test_the_caller_may_keep_both(self, client: AsyncClient) -> None:
        await save(client, TEA)

        response = await try_saving(client, SAME, on_duplicate="allow")

        assert ok(response, 201)["results"][0]["event"] == "ADD"
        assert len(await listed(client)) == 2

    @pytest.mark.parametrize(
        ("on_duplicate", "event", "memories"), [("reject", "REJECT", 1), ("return", "NONE", 1),
                                                ("allow", "ADD", 2)],
    )  # fmt: skip
    async def test_the_same_in_other_words_inside_one_request(
        self, client: AsyncClient, on_duplicate: str, event: str, memories: int
    ) -> None:
        messages = [{"content": TEA}, {"content": SAME}]

        response = await try_saving(client, messages, on_duplicate=on_duplicate)

        first, second = ok(response)["results"]
        assert (first["event"], second["event"]) == ("ADD", event)
        assert len(await listed(client)) == memories
        if event == "NONE":
            assert second["memory_id"] == first["memory_id"]

    async def test_one_memory_is_replaced_once_in_a_request(self, client: AsyncClient) -> None:
        old = await save(client, TEA)
        messages = [{"content": SAME}, {"content": "She drinks green tea, in the morning!"}]

        response = await try_saving(client, messages, on_duplicate="supersede")

        results = ok(response)["results"]
        assert [one["event"] for one in results] == ["SUPERSEDE", "ADD"]
        history = await every_page(client, f"/memories/{old['memory_id']}/history")
        assert [line["event"] for line in history] == ["ADD", "SUPERSEDE"]
        before = ok(await client.get(f"/memories/{old['memory_id']}"))
        assert before["superseded_by"] == results[0]["memory_id"]

    async def test_expired_memory_is_no_duplicate(self, client: AsyncClient) -> None:
        await save(client, TEA, expires_at="2026-01-01T00:00:00Z")
        archived = await save(client, TEA)
        path = f"/memories/{archived['memory_id']}"
        ok(await client.patch(path, json={"status": "archived"}))

        assert (await save(client, SAME))["event"] == "ADD"


class TestNeverCompared:
    """Another's text is never met: the answer would say that it exists."""

    @pytest.mark.parametrize("again", [TEA, SAME], ids=["exact", "near"])
    @pytest.mark.parametrize(
        "elsewhere",
        [
            {"user_id": "bob"},
            {"agent_id": "a1"},
            {"scope": "session", "session_id": "s1"},
            {"scope": "project", "project_id": "p1"},
            {"scope": "agent", "agent_id": "a1", "user_id": None},
        ],
        ids=["user", "agent", "session", "project", "knowledge"],
    )
    async def test_two_buckets_never_meet(
        self, client: AsyncClient, elsewhere: dict, again: str
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        body = {"project_id": "p1", "project_name": "P", "owner_id": "ana"}
        ok(await client.post("/projects", json=body), 201)

        for first, second in (({}, elsewhere), (elsewhere, {})):
            made = await save(client, TEA, **first)
            outcome = await save(client, again, **second)
            assert (made["event"], outcome["event"]) == ("ADD", "ADD")
            for one in (made, outcome):
                ok(await client.delete(f"/memories/{one['memory_id']}"), 204)

    async def test_members_of_a_project_never_meet(self, client: AsyncClient) -> None:
        ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
        place = {"scope": "project", "project_id": "p1"}
        for user_id in ("ana", "bob"):
            ok(await client.post("/users", json={"user_id": user_id}), 201)
            ok(await client.put(f"/projects/p1/members/{user_id}", json={}))
            assert (await save(client, TEA, user_id=user_id, **place))["event"] == "ADD"

    async def test_tenants_never_meet(self, client: AsyncClient, stranger: AsyncClient) -> None:
        await save(client, TEA)

        assert (await save(stranger, TEA))["event"] == "ADD"
        assert (await save(stranger, SAME, user_id="bob"))["event"] == "ADD"


class TestRaces:
    """Saves that meet; each has a connection of its own, so commits are real."""

    async def test_one_text_saved_by_many_at_once_is_one_memory(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        responses = await asyncio.gather(*(try_saving(client, TEA) for _ in range(8)))

        outcomes = [response.json()["results"][0] for response in responses]
        assert sorted(response.status_code for response in responses) == [200] * 7 + [201]
        assert sorted(one["event"] for one in outcomes) == ["ADD"] + ["NONE"] * 7
        assert len({one["memory_id"] for one in outcomes}) == 1
        rows = await execute(dsn, "SELECT 1 FROM memories WHERE tenant_id = $1", acme.tenant_id)
        assert len(rows) == 1
        assert (await counts(dsn, acme.tenant_id))["memory_history"] == 1

    async def test_one_statement_in_many_words_at_once_is_one_memory(
        self, client: AsyncClient
    ) -> None:
        words = (
            TEA,
            SAME,
            "She drinks green tea, in the morning!",
            "In the morning she drinks green tea?",
        )

        responses = await asyncio.gather(*(try_saving(client, text) for text in words * 2))

        statuses = sorted(response.status_code for response in responses)
        assert statuses.count(201) == 1
        assert set(statuses) <= {200, 201, 409}
        assert len(await listed(client)) == 1

    async def test_lists_with_the_same_texts_in_opposite_order_do_not_block(
        self, client: AsyncClient
    ) -> None:
        texts = [{"content": f"Her locker has the number {number}."} for number in range(20)]

        responses = await asyncio.gather(
            *(try_saving(client, texts if turn % 2 else texts[::-1]) for turn in range(6))
        )

        events = [one["event"] for response in responses for one in ok(response)["results"]]
        assert sorted(events) == ["ADD"] * 20 + ["NONE"] * 100
        assert len(await listed(client)) == 20

    async def test_many_edits_of_one_version_have_one_winner(self, client: AsyncClient) -> None:
        memory = await save(client, TEA)
        path = f"/memories/{memory['memory_id']}"

        responses = await asyncio.gather(
            *(
                client.patch(path, json={"metadata": {"by": n}}, headers={"If-Match": "1"})
                for n in range(6)
            )
        )

        assert sorted(response.status_code for response in responses) == [200] + [409] * 5
        assert len(await every_page(client, f"{path}/history")) == 2

    async def test_a_memory_replaced_by_many_at_once_has_one_successor(
        self, client: AsyncClient
    ) -> None:
        memory = await save(client, TEA)
        path = f"/memories/{memory['memory_id']}/supersede"

        responses = await asyncio.gather(
            *(client.post(path, json={"content": f"She drinks {n} cups."}) for n in range(6))
        )

        assert sorted(response.status_code for response in responses) == [201] + [409] * 5
        assert len(await listed(client)) == 1


def test_every_table_of_a_tenant_is_counted() -> None:
    assert {"memories", "memory_history", "gate_decisions"} <= {
        table.__tablename__ for table in TABLES
    }


async def test_the_same_refused_text_twice_in_a_request_is_refused_twice(
    client: AsyncClient,
) -> None:
    await client.post(
        "/memories",
        json={"messages": "He plays the old violin on Sundays.", "user_id": "u", "infer": False},
    )
    again = {"role": "user", "content": "He plays the old violin on Sundays!"}

    answer = await client.post(
        "/memories", json={"messages": [again, again], "user_id": "u", "infer": False}
    )

    outcomes = answer.json()["results"]
    assert [one["event"] for one in outcomes] == ["REJECT", "REJECT"]
    assert [one["reasons"][0]["code"] for one in outcomes] == ["duplicate", "duplicate"]
