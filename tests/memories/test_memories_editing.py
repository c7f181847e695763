"""Changing, ending and deleting memories, and what stays on record."""

import asyncio
import json
from itertools import pairwise

import asyncpg
import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.memory.memories.record_repository import KEPT
from app.runtime import Runtime
from tests.support.api import (
    append,
    dump,
    every_page,
    execute,
    fields,
    found,
    listed,
    ok,
    problem,
    save,
    search,
    tables_with,
)
from tests.support.locks import until_somebody_waits
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

TEA = "She drinks green tea."


@pytest.fixture
async def path(client: AsyncClient) -> str:
    """Of a memory about tea."""
    return f"/memories/{(await save(client, TEA))['memory_id']}"


async def events(client: AsyncClient, path: str) -> list[str]:
    return [line["event"] for line in await every_page(client, f"{path}/history")]


class TestPatch:
    async def test_a_new_content_is_found_and_the_old_one_is_not(
        self, client: AsyncClient, path: str
    ) -> None:
        text = "The cat sleeps on the sofa."

        changed = ok(await client.patch(path, json={"content": f" {text} "}))

        assert (changed["content"], changed["version"]) == (text, 2)
        assert await found(client, text, user_id="ana", threshold=0.99) == [changed["memory_id"]]
        assert await found(client, TEA, user_id="ana", threshold=0.5) == []
        # The old text is free again, and the new one taken.
        assert (await save(client, TEA))["event"] == "ADD"
        assert (await save(client, text))["event"] == "NONE"

    async def test_a_change_leaves_alone_what_it_leaves_out(
        self, client: AsyncClient, path: str
    ) -> None:
        memory = ok(await client.get(path))
        changes = {
            "memory_type": "preference", "tier": "short", "confidence": 0.8, "evidence": ["m1"],
            "visibility": "owner_only", "metadata": {"茶": 1}, "external_id": "x",
            "valid_from": "2020-01-01T00:00:00Z", "valid_to": "2090-01-01T00:00:00Z",
            "expires_at": "2091-01-01T00:00:00Z", "content": "她喝绿茶，每天两杯",
        }  # fmt: skip
        for version, (field, value) in enumerate(changes.items(), start=2):
            changed = ok(await client.patch(path, json={field: value}))
            memory |= {field: value, "version": version, "update_time": changed["update_time"]}
            assert changed == memory
        cleared = dict.fromkeys(changes)

        after = ok(await client.patch(path, json=cleared))

        emptied = {"external_id", "valid_from", "valid_to", "expires_at"}
        for field in changes:
            assert after[field] == (None if field in emptied else memory[field]), field

    async def test_a_change_of_nothing_leaves_no_trace(
        self, client: AsyncClient, path: str
    ) -> None:
        memory = ok(await client.get(path))

        for body in ({}, {"content": f"{TEA} "}, {"confidence": 1, "status": "active"}):
            assert ok(await client.patch(path, json=body)) == memory

        assert await events(client, path) == ["ADD"]

    async def test_a_stale_version_is_refused(self, client: AsyncClient, path: str) -> None:
        ok(await client.patch(path, json={"tier": "short"}, headers={"If-Match": "1"}))

        response = await client.patch(path, json={"tier": "long"}, headers={"If-Match": "1"})

        assert problem(response, 409, "version_conflict")["current_version"] == 2
        assert ok(await client.get(path))["tier"] == "short"

    async def test_what_changed_while_it_was_judged_is_judged_anew(
        self, client: AsyncClient, path: str, dsn: str
    ) -> None:
        ok(await client.patch(path, json={"memory_type": "correction"}))
        connection = await asyncpg.connect(dsn)
        try:
            async with connection.transaction():
                await connection.execute(
                    "UPDATE memories SET memory_type = 'fact', version = version + 1 "
                    "WHERE memory_id = $1",
                    path.removeprefix("/memories/"),
                )
                change = asyncio.create_task(client.patch(path, json={"source_error": "Coffee."}))
                # Until it has read the memory, and waits for its lock.
                await until_somebody_waits(dsn, connection.get_server_pid())
            response = await change
        finally:
            await connection.close()

        [reason] = problem(response, 422, "gate_rejected")["reasons"]
        assert reason["code"] == "source_error_not_allowed"
        memory = ok(await client.get(path))
        assert (memory["memory_type"], memory["source_error"]) == ("fact", None)

    @pytest.mark.parametrize(
        ("change", "code"),
        [
            ({"content": "茶"}, "too_short"),
            ({"content": "茶" * 2001}, "too_long"),
            ({"source_error": "茶" * 2001, "memory_type": "correction"}, "too_long"),
            ({"confidence": 0.69}, "low_confidence"),
        ],
    )
    async def test_the_gate_stands_before_a_change_too(
        self, client: AsyncClient, path: str, change: dict, code: str
    ) -> None:
        document = problem(await client.patch(path, json=change), 422, "gate_rejected")

        assert [reason["code"] for reason in document["reasons"]] == [code]
        assert ok(await client.get(path))["version"] == 1

    async def test_another_memorys_text_cannot_be_taken(
        self, client: AsyncClient, path: str
    ) -> None:
        cat = await save(client, "The cat sleeps on the sofa.")

        response = await client.patch(path, json={"content": "the CAT sleeps on the sofa."})

        assert problem(response, 409, "duplicate")["memory_id"] == cat["memory_id"]
        assert ok(await client.get(path))["content"] == TEA

    async def test_a_mistake_goes_with_a_correction_alone(
        self, client: AsyncClient, path: str
    ) -> None:
        alone = await client.patch(path, json={"source_error": "I said coffee."})
        both = {"source_error": "I said coffee.", "memory_type": "correction"}
        changed = ok(await client.patch(path, json=both))
        back = await client.patch(path, json={"memory_type": "fact"})
        cleared = ok(await client.patch(path, json={"memory_type": "fact", "source_error": None}))

        for response in (alone, back):
            reasons = problem(response, 422, "gate_rejected")["reasons"]
            assert [reason["code"] for reason in reasons] == ["source_error_not_allowed"]
        assert changed["source_error"] == "I said coffee."
        assert (cleared["memory_type"], cleared["source_error"]) == ("fact", None)

    async def test_a_time_of_validity_ends_after_it_begins(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"valid_from": "2026-05-01T00:00:00Z"}))

        for change in (
            {"valid_to": "2026-05-01T02:00:00+02:00"},
            {"valid_to": "2026-01-01T00:00:00Z"},
            {"valid_from": "2026-09-01T00:00:00Z", "valid_to": "2026-06-01T00:00:00Z"},
        ):
            document = problem(await client.patch(path, json=change), 422, "invalid_request")
            assert fields(document) == ["body.valid_to"]

        both = {"valid_from": None, "valid_to": "2026-01-01T00:00:00Z"}
        assert ok(await client.patch(path, json=both))["valid_from"] is None

    async def test_an_archived_memory_is_found_again_after_its_return(
        self, client: AsyncClient, path: str
    ) -> None:
        memory_id = path.rsplit("/", 1)[1]

        archived = ok(await client.patch(path, json={"status": "archived", "reason": "旧的"}))
        hidden = await found(client), await listed(client)
        restored = ok(await client.patch(path, json={"status": "active"}))

        assert (archived["status"], hidden) == ("archived", ([], []))
        assert restored["status"] == "active"
        assert await found(client) == await listed(client) == [memory_id]
        history = await every_page(client, f"{path}/history")
        assert [line["event"] for line in history] == ["ADD", "ARCHIVE", "RESTORE"]
        assert history[1]["reason"] == "旧的"
        assert (history[1]["before"]["status"], history[1]["after"]["status"]) == (
            "active",
            "archived",
        )

    async def test_a_memory_does_not_return_beside_its_twin(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"status": "archived"}))
        twin = await save(client, TEA)

        response = await client.patch(path, json={"status": "active"})

        assert problem(response, 409, "duplicate")["memory_id"] == twin["memory_id"]

    @pytest.mark.parametrize("status", ["deleted", "superseded", "gone"])
    async def test_other_statuses_have_routes_of_their_own(
        self, client: AsyncClient, path: str, status: str
    ) -> None:
        response = await client.patch(path, json={"status": status})

        assert fields(problem(response, 422, "invalid_request")) == ["body.status"]


class TestSupersede:
    async def test_the_old_statement_ends_and_keeps_its_text(
        self, client: AsyncClient, path: str
    ) -> None:
        body = {"content": "She drinks coffee now.", "reason": "改了"}

        outcome = ok(await client.post(f"{path}/supersede", json=body), 201)

        new = outcome["memory"]
        assert (outcome["event"], outcome["previous"]) == ("SUPERSEDE", TEA)
        old = ok(await client.get(path))
        assert (old["content"], old["status"]) == (TEA, "superseded")
        assert old["superseded_by"] == new["memory_id"]
        assert old["valid_to"] is not None
        assert await found(client, TEA, user_id="ana") == [new["memory_id"]]
        assert await listed(client) == [new["memory_id"]]
        assert await listed(client, status="superseded") == [old["memory_id"]]
        assert await events(client, path) == ["ADD", "SUPERSEDE"]
        assert await events(client, f"/memories/{new['memory_id']}") == ["ADD"]

    async def test_the_new_statement_takes_the_place_of_the_old(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.", agent_id="a1")
        given = {
            "scope": "session", "session_id": "s1", "agent_id": "a1", "memory_type": "goal",
            "metadata": {"k": 1}, "visibility": "owner_only", "expires_at": "2099-01-01T00:00:00Z",
        }  # fmt: skip
        old = await save(client, TEA, **given)

        outcome = ok(
            await client.post(
                f"/memories/{old['memory_id']}/supersede", json={"content": "She drinks coffee."}
            ),
            201,
        )

        assert given.items() <= outcome["memory"].items()
        assert outcome["memory"]["user_id"] == "ana"

    async def test_a_chain_is_followed_link_by_link(self, client: AsyncClient, path: str) -> None:
        chain = [path]
        for number in range(3):
            body = {"content": f"She drinks {number} cups of coffee."}
            outcome = ok(await client.post(f"{chain[-1]}/supersede", json=body), 201)
            chain.append(f"/memories/{outcome['memory_id']}")

        for link, following in pairwise(chain):
            successor = ok(await client.get(link))["superseded_by"]
            assert f"/memories/{successor}" == following
            asked = {"status": "superseded", "filters": json.dumps({"superseded_by": successor})}
            assert [f"/memories/{one}" for one in await listed(client, **asked)] == [link]
        assert len(await found(client)) == 1

    async def test_what_has_ended_ends_no_more(self, client: AsyncClient, path: str) -> None:
        ok(await client.post(f"{path}/supersede", json={"content": "She drinks coffee."}), 201)

        again = await client.post(f"{path}/supersede", json={"content": "She drinks water."})
        changed = await client.patch(path, json={"content": "She drinks water."})

        assert problem(again, 409, "not_changeable")["memory_status"] == "superseded"
        problem(changed, 409, "not_changeable")
        assert ok(await client.get(path))["content"] == TEA

    async def test_an_archived_memory_has_no_successor(
        self, client: AsyncClient, path: str
    ) -> None:
        ok(await client.patch(path, json={"status": "archived"}))

        response = await client.post(f"{path}/supersede", json={"content": "She drinks coffee."})

        problem(response, 409, "not_changeable")

    async def test_a_repeated_request_has_one_successor(
        self, client: AsyncClient, path: str
    ) -> None:
        body, headers = {"content": "She drinks coffee."}, {"Idempotency-Key": "k"}
        first = await client.post(f"{path}/supersede", json=body, headers=headers)

        again = await client.post(f"{path}/supersede", json=body, headers=headers)

        assert (again.status_code, again.json()) == (201, first.json())
        assert len(await listed(client)) == 1

    async def test_a_twin_and_the_gate_stop_it(self, client: AsyncClient, path: str) -> None:
        cat = await save(client, "The cat sleeps on the sofa.")

        twin = await client.post(f"{path}/supersede", json={"content": cat["memory"]["content"]})
        short = await client.post(f"{path}/supersede", json={"content": "Tea"})

        assert problem(twin, 409, "duplicate")["memory_id"] == cat["memory_id"]
        problem(short, 422, "gate_rejected")
        assert ok(await client.get(path))["status"] == "active"

    @pytest.mark.parametrize("text", [TEA, TEA.upper(), f"  {TEA.replace(' ', '  ')} "])
    async def test_its_own_words_are_no_successor(
        self, client: AsyncClient, path: str, text: str
    ) -> None:
        memory = ok(await client.get(path))

        response = await client.post(f"{path}/supersede", json={"content": text})

        assert problem(response, 409, "duplicate")["memory_id"] == memory["memory_id"]
        assert ok(await client.get(path)) == memory

    async def test_what_makes_room_for_its_text_says_so_in_its_history(
        self, client: AsyncClient, path: str
    ) -> None:
        text = "The cat sleeps on the sofa."
        old = await save(client, text, expires_at="2026-01-01T00:00:00Z")

        ok(await client.post(f"{path}/supersede", json={"content": text}), 201)

        lines = await every_page(client, f"/memories/{old['memory_id']}/history")
        assert [(line["event"], line["reason"]) for line in lines] == [
            ("ADD", None),
            ("ARCHIVE", "expired"),
        ]


class TestHistory:
    async def test_history_is_paged_oldest_first(self, client: AsyncClient, path: str) -> None:
        for number in range(4):
            ok(await client.patch(path, json={"metadata": {"n": number}}))

        lines = await every_page(client, f"{path}/history", limit=2)

        assert [line["version"] for line in lines] == [1, 2, 3, 4, 5]
        assert [line["after"]["metadata"] for line in lines[1:]] == [{"n": n} for n in range(4)]
        assert lines[1]["before"]["metadata"] == {}
        assert {line["actor"] for line in lines} == {ok(await client.get(path))["creator"]}
        for line in lines:
            assert not {"embedding", "content_hash"} & line["after"].keys()

    async def test_states_have_every_field_and_are_stored_without_what_is_null(
        self, client: AsyncClient, path: str, acme: Caller, dsn: str
    ) -> None:
        memory = ok(await client.patch(path, json={"metadata": {"n": None}}))

        added, changed = await every_page(client, f"{path}/history")

        fields = memory.keys() & KEPT
        states = (added["after"], changed["before"], changed["after"])
        assert [state.keys() for state in states] == [set(KEPT)] * 3
        assert {name: changed["after"][name] for name in fields if not name.endswith("_time")} == {
            name: memory[name] for name in fields if not name.endswith("_time")
        }
        rows = await execute(
            dsn, "SELECT before, after FROM memory_history WHERE tenant_id = $1", acme.tenant_id
        )
        stored = [json.loads(state) for row in rows for state in row if state]
        assert len(stored) == 3
        assert all(None not in state.values() for state in stored)


class TestDelete:
    async def test_a_deleted_memory_is_nowhere(self, client: AsyncClient, path: str) -> None:
        ok(await client.delete(path), 204)

        for response in (
            await client.get(path),
            await client.get(f"{path}/history"),
            await client.patch(path, json={"tier": "short"}),
            await client.patch(path, json={"status": "active"}),
            await client.post(f"{path}/supersede", json={"content": "She drinks coffee."}),
            await client.delete(path),
            await client.delete(path, params={"hard": True}),
        ):
            problem(response, 404, "memory_not_found")
        assert await found(client) == []
        for status in ("active", "archived", "superseded"):
            assert await listed(client, status=status) == []
        assert await listed(client, filters='{"status": "deleted"}') == []
        stats = ok(await client.get("/memories/stats"))
        assert (stats["total"], stats["by_status"]) == (0, {})

    async def test_deleting_gently_keeps_the_row_without_its_vector(
        self, client: AsyncClient, path: str, acme: Caller, dsn: str
    ) -> None:
        ok(await client.delete(path), 204)

        [row] = await execute(
            dsn,
            "SELECT status, embedding, deleted_at FROM memories WHERE tenant_id = $1",
            acme.tenant_id,
        )
        assert (row["status"], row["embedding"]) == ("deleted", None)
        assert row["deleted_at"] is not None

    async def test_deleting_hard_leaves_no_word_in_any_table(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        word = "zanzibar"
        headers = {"Idempotency-Key": "k"}
        body = {"messages": f"She saw {word} once.", "user_id": "ana", "infer": False}
        saved = ok(await client.post("/memories", json=body, headers=headers), 201)
        path = f"/memories/{saved['results'][0]['memory_id']}"
        ok(await client.patch(path, json={"content": f"She saw {word} twice."}))
        problem(
            await client.post("/memories", json=body | {"messages": f"Twice she saw {word}."}),
            409, "duplicate",
        )  # fmt: skip
        other = await save(client, "She drinks green tea.")
        assert tables_with(word, await dump(dsn, acme.tenant_id))

        ok(await client.delete(path, params={"hard": True}), 204)

        rows = await dump(dsn, acme.tenant_id)
        assert tables_with(word, rows) == []
        assert len(rows["memories"]) == 1
        assert await found(client) == [other["memory_id"]]
        problem(await client.get(path), 404, "memory_not_found")

    async def test_deleting_hard_keeps_the_successor(self, client: AsyncClient, path: str) -> None:
        body = {"content": "She drinks coffee."}
        new = ok(await client.post(f"{path}/supersede", json=body), 201)["memory"]

        ok(await client.delete(path, params={"hard": True}), 204)

        assert ok(await client.get(f"/memories/{new['memory_id']}")) == new

    async def test_deleting_the_successor_hard_frees_the_old_one_of_it(
        self, client: AsyncClient, path: str
    ) -> None:
        body = {"content": "She drinks coffee."}
        new = ok(await client.post(f"{path}/supersede", json=body), 201)["memory"]

        ok(await client.delete(f"/memories/{new['memory_id']}", params={"hard": True}), 204)

        old = ok(await client.get(path))
        assert (old["status"], old["superseded_by"]) == ("superseded", None)


class TestDeleteMany:
    @pytest.fixture
    async def crowd(self, client: AsyncClient) -> None:
        """Three memories of Ana's, two of Bob's, one of an agent."""
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        body = {"project_id": "p1", "project_name": "P", "owner_id": "ana"}
        ok(await client.post("/projects", json=body), 201)
        await save(client, "Locker number one.", memory_type="event", confidence=0.9)
        await save(client, "Locker number two.", session_id="s1", scope="session")
        await save(client, "Locker number three.", project_id="p1", scope="project")
        await save(client, "Locker number four.", user_id="bob", memory_type="event")
        await save(client, "Locker number five.", user_id="bob", agent_id="a1")
        await save(client, "Locker number six.", user_id=None, scope="agent", agent_id="a1")

    async def left(self, client: AsyncClient) -> str:
        names = ("one", "two", "three", "four", "five", "six")
        rows = [
            row["content"].split()[-1].strip(".") for row in await every_page(client, "/memories")
        ]
        return " ".join(name for name in names if name in rows)

    async def test_a_key_without_admin_may_write_the_same_filters(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient, crowd: None
    ) -> None:
        key = await make_key(runtime, acme.tenant_id, "write")
        deep: dict = {"NOT": {"NOT": {"NOT": {"NOT": {"memory_type": "event"}}}}}
        wide: dict = {"AND": [{"confidence": {"lte": 1}}] * 49 + [{"memory_type": "fact"}]}
        wrong = {"filters": {"AND": [{"nonsense": 1}]}}
        async with client_of(app, key.key) as writer:
            for filters, count in ((deep, 2), (wide, 3)):
                body = {"filters": filters, "dry_run": True}
                assert ok(await writer.post("/memories/delete", json=body))["deleted"] == count
            refused = [await one.post("/memories/delete", json=wrong) for one in (client, writer)]
            ok(await writer.post("/memories/delete", json={"filters": wide, "confirm": True}))

        first, second = (problem(one, 422, "invalid_filter") for one in refused)
        assert fields(first) == fields(second)
        assert await self.left(client) == "one four six"

    @pytest.mark.parametrize("hard", [False, True])
    @pytest.mark.parametrize(
        ("selected", "left"),
        [
            ({"user_id": "ana"}, "four five six"),
            ({"user_id": "bob"}, "one two three six"),
            ({"agent_id": "a1"}, "one two three four"),
            ({"session_id": "s1"}, "one three four five six"),
            ({"project_id": "p1"}, "one two four five six"),
            ({"scope": "agent"}, "one two three four five"),
            ({"memory_type": "event"}, "two three five six"),
            ({"user_id": "bob", "memory_type": "event"}, "one two three five six"),
            ({"user_id": "nobody"}, "one two three four five six"),
        ],
    )
    async def test_what_is_selected_goes_and_nothing_else(
        self, client: AsyncClient, crowd: None, selected: dict, left: str, hard: bool
    ) -> None:
        counted = ok(await client.delete("/memories", params=selected | {"dry_run": True}))
        asked = await client.delete("/memories", params=selected)
        assert await self.left(client) == "one two three four five six"

        gone = ok(
            await client.delete("/memories", params=selected | {"confirm": True, "hard": hard})
        )

        assert await self.left(client) == left
        assert gone["deleted"] == counted["deleted"] == 6 - len(left.split())
        assert (counted["dry_run"], gone["dry_run"]) == (True, False)
        holds = problem(asked, 409, "confirmation_required")["holds"]
        assert holds == {"memories": counted["deleted"]}

    @pytest.mark.parametrize(
        ("body", "left"),
        [
            ({"filters": {"confidence": {"lt": 1}}}, "two three four five six"),
            ({"filters": {"content": {"contains": "t"}}}, "one four five six"),
            (
                {"user_id": "bob", "filters": {"agent_id": {"exists": False}}},
                "one two three five six",
            ),
            ({"filters": {"NOT": {"scope": "user"}}}, "one four five"),
        ],
    )
    async def test_a_filter_selects_too(
        self, client: AsyncClient, crowd: None, body: dict, left: str
    ) -> None:
        counted = ok(await client.post("/memories/delete", json=body | {"dry_run": True}))

        gone = ok(await client.post("/memories/delete", json=body | {"confirm": True}))

        assert await self.left(client) == left
        assert gone["deleted"] == counted["deleted"] == 6 - len(left.split())

    @pytest.mark.parametrize("extra", [{}, {"hard": True}, {"confirm": True}, {"dry_run": True}])
    async def test_nothing_selected_deletes_nothing(
        self, client: AsyncClient, crowd: None, extra: dict
    ) -> None:
        queried = await client.delete("/memories", params=extra)
        posted = await client.post("/memories/delete", json=extra)
        empty = await client.post("/memories/delete", json=extra | {"filters": {}})

        assert fields(problem(queried, 422, "selector_required")) == ["query.user_id"]
        assert fields(problem(posted, 422, "selector_required")) == ["body.user_id"]
        problem(empty, 422, "selector_required")
        assert await self.left(client) == "one two three four five six"

    async def test_a_wildcard_selects_nothing(self, client: AsyncClient, crowd: None) -> None:
        for value in ("*", ""):
            params = {"user_id": value, "confirm": True}
            problem(await client.delete("/memories", params=params), 422, "invalid_request")
        named = ok(await client.delete("/memories", params={"user_id": "%", "confirm": True}))
        assert named["deleted"] == 0
        wrong = {"filters": {"colour": "red"}, "confirm": True}
        problem(await client.post("/memories/delete", json=wrong), 422, "invalid_filter")

        assert await self.left(client) == "one two three four five six"

    async def test_another_tenant_keeps_everything(
        self, client: AsyncClient, stranger: AsyncClient, crowd: None
    ) -> None:
        kept = await save(stranger, TEA)

        ok(await client.delete("/memories", params={"user_id": "ana", "confirm": True}))
        foreign = await stranger.delete("/memories", params={"user_id": "bob", "confirm": True})

        assert ok(foreign)["deleted"] == 0
        assert await listed(stranger) == [kept["memory_id"]]
        assert "four five" in await self.left(client)

    async def test_a_repeated_request_counts_what_it_deleted_once(
        self, client: AsyncClient, crowd: None
    ) -> None:
        body, headers = {"user_id": "bob", "confirm": True}, {"Idempotency-Key": "k"}
        first = await client.post("/memories/delete", json=body, headers=headers)
        await save(client, TEA, user_id="bob")

        again = await client.post("/memories/delete", json=body, headers=headers)

        assert again.json() == first.json() == {"deleted": 2, "dry_run": False}
        assert len(await listed(client, user_id="bob")) == 1

    async def test_the_record_says_why(
        self, client: AsyncClient, crowd: None, dsn: str, acme
    ) -> None:
        body = {"memory_type": "event", "confirm": True, "reason": "清理"}

        ok(await client.post("/memories/delete", json=body))

        rows = await execute(
            dsn,
            "SELECT reason, actor FROM memory_history WHERE tenant_id = $1 AND event = 'DELETE'",
            acme.tenant_id,
        )
        assert [(row["reason"], row["actor"]) for row in rows] == [("清理", acme.key_id)] * 2


class TestStats:
    async def test_counts_say_what_there_is(self, client: AsyncClient) -> None:
        empty = ok(await client.get("/memories/stats"))
        await save(client, "Locker number one.", memory_type="goal")
        last = await save(client, "Locker number two.", tier="short", source="ai", agent_id="a1")
        gone = await save(client, "Locker number three.", user_id="bob")
        ok(await client.patch(f"/memories/{gone['memory_id']}", json={"status": "archived"}))

        stats = ok(await client.get("/memories/stats"))

        assert (empty["total"], empty["last_saved"]) == (0, None)
        assert (stats["total"], stats["by_status"]) == (2, {"active": 2, "archived": 1})
        assert stats["by_memory_type"] == {"fact": 1, "goal": 1}
        assert stats["by_tier"] == {"long": 1, "short": 1}
        assert stats["by_source"] == {"ai": 1, "user": 1}
        assert stats["by_scope"] == {"user": 2}
        assert stats["by_embedding_model"] == {last["memory"]["embedding_model"]: 2}
        assert stats["decisions"] == {"accepted": 3}
        narrowed = ok(await client.get("/memories/stats", params={"agent_id": "a1"}))
        assert (narrowed["total"], narrowed["decisions"]) == (1, {"accepted": 1})
        assert narrowed["last_saved"] == last["memory"]["create_time"]


async def test_a_search_never_shows_half_a_change(client: AsyncClient, path: str) -> None:
    changed = ok(await client.patch(path, json={"content": "The cat sleeps on the sofa."}))

    [hit] = (await search(client, "cat", user_id="ana"))["results"]

    assert {name: hit[name] for name in changed} == changed


async def test_a_refused_change_leaves_its_verdict_and_nothing_else(client: AsyncClient) -> None:
    saved = await client.post(
        "/memories", json={"messages": "He likes the sea.", "user_id": "u", "infer": False}
    )
    memory_id = saved.json()["results"][0]["memory_id"]

    refused = await client.patch(f"/memories/{memory_id}", json={"content": "no"})

    assert (refused.status_code, refused.json()["code"]) == (422, "gate_rejected")
    verdicts = await client.get("/memories/decisions", params={"verdict": "rejected"})
    [verdict] = verdicts.json()["items"]
    assert verdict["decision_id"] == refused.json()["decision_id"]
    assert (verdict["codes"], verdict["memory_id"]) == (["too_short"], memory_id)
    assert (await client.get(f"/memories/{memory_id}")).json()["version"] == 1


async def test_an_accepted_change_of_words_leaves_its_verdict(client: AsyncClient) -> None:
    saved = await client.post(
        "/memories", json={"messages": "He likes the sea.", "user_id": "u", "infer": False}
    )
    memory_id = saved.json()["results"][0]["memory_id"]

    await client.patch(f"/memories/{memory_id}", json={"content": "He likes the mountains."})

    verdicts = await client.get("/memories/decisions", params={"verdict": "accepted"})
    contents = [one["content"] for one in verdicts.json()["items"]]
    assert contents == ["He likes the mountains.", "He likes the sea."]
