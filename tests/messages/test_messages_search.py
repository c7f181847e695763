"""POST /v1/messages/search: what is found, in which order, and whose it is."""

import asyncio
from datetime import UTC, datetime, timedelta
from itertools import chain
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.conversation.messages.search_schemas import MessageSearchAnswer
from app.language.ranking.fusion import SIGNALS
from app.runtime import Runtime
from tests.support.api import append, execute, fields, ok, problem, save
from tests.support.openai_server import openai_server
from tests.support.recall import recall, recalled, recalled_pages
from tests.support.rows import for_each
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key

CLIMB = "I went climbing with Melanie in Yosemite."
PIANO = "My daughter has started to play the piano."
PARCEL = "The parcel 1Z-999-AA1 weighs 2.5 kg and cost $49.90."
CALL = {"id": "c1", "type": "function", "function": {"name": "memory_search", "arguments": "{}"}}


def said(role: str, content: str, **rest: Any) -> dict[str, Any]:
    return {"role": role, "content": content} | rest


class TestFinding:
    @pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical"])
    async def test_words_that_were_said_find_their_message(
        self, client: AsyncClient, mode: str
    ) -> None:
        await append(client, "s1", CLIMB, PIANO, PARCEL)

        best, *_ = await recalled(client, "Who plays the piano?", user_id="ana", mode=mode)

        assert best == PIANO

    @pytest.mark.parametrize(
        ("query", "text"),
        [
            ("bees", "She keeps a bee in a jar."),
            ("1Z-999-AA1", PARCEL),
            ("49.90", PARCEL),
            ("parse_config", "Call parse_config() before main()."),
            ("parseConfig", "We renamed parse_config yesterday."),
            ("钢琴", "我女儿开始学钢琴了。"),
            ("慕尼黑", "我上周搬到了慕尼黑。"),
            ("鋼琴", "我女儿开始学钢琴了。"),
            ("资料库", "我們換了一個資料庫。"),
            ("2023年5月", "会议定在2023年5月8日。"),
        ],
    )
    async def test_words_numbers_and_identifiers_are_found_in_any_script(
        self, client: AsyncClient, query: str, text: str
    ) -> None:
        await append(client, "s1", CLIMB, "今天天气很好。", text, "Good morning!")

        for mode in ("hybrid", "lexical"):
            assert (await recalled(client, query, user_id="ana", mode=mode))[0] == text

    async def test_in_lexical_mode_nothing_is_found_without_a_word(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", CLIMB)

        answer = await recall(client, "bicycle", user_id="ana", mode="lexical")

        assert (answer["items"], answer["next_cursor"]) == ([], None)
        assert (answer["embedding_models"], answer["waiting"]) == ([], 0)

    async def test_who_speaks_is_found_by_name(self, client: AsyncClient) -> None:
        await append(
            client,
            "s1",
            said("user", "I bought a red kayak.", name="Caroline"),
            said("user", "I bought a blue kayak.", metadata={"speaker": "Melanie"}),
        )

        for name, text in (("Caroline", "red"), ("Melanie", "blue")):
            best, _ = await recalled(client, f"Which kayak did {name} buy?", user_id="ana")
            assert text in best

    async def test_when_it_was_said_is_found_by_its_day(self, client: AsyncClient) -> None:
        for day in ("2023-05-08", "2023-08-14"):
            meta = {"client_time": f"{day}T10:00:00Z"}
            await append(client, f"s-{day}", said("user", "We met for lunch.", metadata=meta))

        answer = await recall(client, "Whom did we meet on 8 May 2023?", user_id="ana")

        assert answer["items"][0]["session_id"] == "s-2023-05-08"

    async def test_text_among_parts_is_found(self, client: AsyncClient) -> None:
        parts = [
            {"type": "text", "text": "A lighthouse at dusk."},
            {"type": "image_url", "image_url": {"url": "https://kemem.invalid/windmill.png"}},
        ]
        await append(client, "s1", said("user", "", content_parts=parts))

        [hit] = (await recall(client, "lighthouse", user_id="ana"))["items"]
        assert hit["content_parts"] == parts
        assert await recalled(client, "windmill", user_id="ana", mode="lexical") == []

    async def test_the_end_of_a_long_message_is_found(self, client: AsyncClient) -> None:
        text = "So it goes. " * 3000 + "The keyword is marzipan."
        await append(client, "s1", text, PIANO)

        assert await recalled(client, "marzipan", user_id="ana", mode="lexical") == [text]


class TestNeverFound:
    async def test_tools_are_found_only_where_asked_for_and_their_calls_never(
        self, client: AsyncClient
    ) -> None:
        await append(
            client,
            "s1",
            "What do you know about my piano?",
            said("assistant", "I search for the piano.", tool_calls=[CALL]),
            said("tool", '{"results": ["piano"]}', tool_call_id="c1"),
            said("assistant", "Your piano is a Steinway."),
        )

        for roles in ({}, {"roles": ["user", "assistant", "system"]}):
            for mode in ("hybrid", "semantic", "lexical"):
                hits = await recalled(client, "piano", user_id="ana", mode=mode, **roles)
                assert sorted(hits) == [
                    "What do you know about my piano?",
                    "Your piano is a Steinway.",
                ]
        for mode in ("hybrid", "semantic", "lexical"):
            tools = await recalled(client, "piano", user_id="ana", mode=mode, roles=["tool"])
            assert tools == ['{"results": ["piano"]}']

    async def test_results_of_tools_change_no_search_that_does_not_ask_for_them(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", CLIMB, PIANO, PARCEL)
        search = {"query": "piano lessons", "user_id": "ana", "explain": True,
                  "reference_time": "2026-11-26T12:00:00Z"}  # fmt: skip
        before = ok(await client.post("/messages/search", json=search))
        result = "The piano lessons cost 30 euros. " * 20
        await append(
            client,
            "s1",
            said("assistant", "", tool_calls=[CALL]),
            said("tool", result, tool_call_id="c1"),
        )

        after = ok(await client.post("/messages/search", json=search))

        assert after["items"] == before["items"]
        assert after["searched"] == before["searched"] == 3

    async def test_a_piece_of_a_long_result_of_a_tool_is_shown(self, client: AsyncClient) -> None:
        rows = [f"Row {number}: nothing to see here in this table. " for number in range(400)]
        rows[250] = "Row 250: the ferry to the cabin leaves at nine from pier seven. "
        await append(
            client,
            "s1",
            "When does it leave?",
            said("assistant", "", tool_calls=[CALL]),
            said("tool", "".join(rows), tool_call_id="c1"),
        )

        search = {"query": "ferry to the cabin", "user_id": "ana", "roles": ["tool"]}
        [hit] = ok(await client.post("/messages/search", json=search))["items"]

        assert "pier seven" in hit["piece"]["text"]
        assert len(hit["piece"]["text"]) < 1_000

    async def test_hidden_messages_and_injected_blocks_are_never_found(
        self, client: AsyncClient
    ) -> None:
        await append(
            client,
            "s1",
            said("user", "The hidden piano.", metadata={"hidden": True}),
            "<uploaded_files>piano.pdf</uploaded_files>",
            "<uploaded_files>piano.pdf</uploaded_files> What does it say?",
        )

        assert await recalled(client, "piano", user_id="ana", mode="lexical") == []
        [found] = await recalled(client, "what does it say", user_id="ana", mode="lexical")
        assert found.endswith("What does it say?")

    async def test_system_messages_are_found_when_asked_for(self, client: AsyncClient) -> None:
        await append(client, "s1", said("system", "You tune pianos."), "Who are you?")

        assert "You tune pianos." not in await recalled(client, "tune pianos", user_id="ana")
        only = await recalled(client, "tune pianos", user_id="ana", roles=["system"])
        assert only == ["You tune pianos."]

    async def test_deleted_messages_are_never_found(self, client: AsyncClient) -> None:
        appended = await append(client, "s1", CLIMB, PIANO)
        await append(client, "s2", "A piano in another session.")

        ok(await client.delete(f"/sessions/s1/messages/{appended['messages'][1]['message_id']}"))
        assert PIANO not in await recalled(client, "piano", user_id="ana")

        ok(await client.delete("/sessions/s2/messages", params={"confirm": "true"}))
        assert await recalled(client, "piano", user_id="ana") == [CLIMB]

        ok(await client.delete("/sessions/s1", params={"confirm": "true"}))
        assert await recalled(client, "climbing", user_id="ana") == []


class TestFilters:
    async def test_roles_narrow_and_several_may_be_named(self, client: AsyncClient) -> None:
        await append(
            client, "s1", "Tea, please.", said("assistant", "Green tea?"), said("system", "Tea.")
        )

        async def of(*roles: str) -> set[str]:
            return set(await recalled(client, "tea", user_id="ana", roles=list(roles)))

        assert await of("user") == {"Tea, please."}
        assert await of("assistant") == {"Green tea?"}
        assert await of("assistant", "system") == {"Green tea?", "Tea."}

    async def test_times_narrow_by_when_it_was_said(self, client: AsyncClient) -> None:
        for month in (1, 2, 3):
            meta = {"client_time": f"2024-0{month}-01T00:00:00+00:00"}
            await append(client, "s1", said("user", f"Tea number {month}.", metadata=meta))
        await append(client, "s1", "Tea of today.")

        async def of(**times: str) -> set[str]:
            return set(await recalled(client, "tea", user_id="ana", **times))

        february = "2024-02-01T00:00:00Z"
        assert await of(until=february) == {"Tea number 1."}
        assert await of(since=february, until="2024-02-01T00:00:00.000001Z") == {"Tea number 2."}
        assert await of(since=february) == {"Tea number 2.", "Tea number 3.", "Tea of today."}
        assert await of(since="2024-02-01T08:00:00+08:00", until="2025-01-01T00:00:00Z") == {
            "Tea number 2.",
            "Tea number 3.",
        }

    @pytest.mark.parametrize("told", ["yesterday", "2024-13-01", 7, None, "", "0001-01-01T00:00Z"])
    async def test_a_client_time_that_is_none_counts_as_not_told(
        self, client: AsyncClient, told: Any
    ) -> None:
        meta = {"client_time": told}
        appended = await append(client, "s1", said("user", "Tea, please.", metadata=meta))

        [hit] = (await recall(client, "tea", user_id="ana"))["items"]

        assert hit["said_at"] == hit["create_time"] == appended["messages"][0]["create_time"]

    async def test_a_session_a_user_and_an_agent_narrow_together(self, client: AsyncClient) -> None:
        await append(client, "s1", "Tea one.", agent_id="a1")
        await append(client, "s2", "Tea two.", agent_id="a2")
        await append(client, "s3", "Tea three.", user_id="ben", agent_id="a1")

        async def of(**ids: str) -> set[str]:
            return set(await recalled(client, "tea", **ids))

        assert await of(user_id="ana") == {"Tea one.", "Tea two."}
        assert await of(agent_id="a1") == {"Tea one.", "Tea three."}
        assert await of(session_id="s2") == {"Tea two."}
        assert await of(user_id="ana", agent_id="a1") == {"Tea one."}
        assert await of(session_id="s3", user_id="ana") == set()
        assert await of(session_id="nowhere") == set()

    async def test_a_threshold_leaves_out_what_is_below_and_keeps_what_is_at_it(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", CLIMB, PIANO, PARCEL)
        for mode, field in (("hybrid", "similarity"), ("lexical", "lexical")):
            whole = (await recall(client, "piano daughter trumpet", user_id="ana", mode=mode))[
                "items"
            ]
            [mark] = [hit[field] for hit in whole if hit["content"] == PIANO]

            assert 0 < mark < 1
            for threshold, count in ((mark, 1), (mark + 1e-4, 0)):
                kept = await recalled(
                    client, "piano daughter trumpet", user_id="ana", mode=mode, threshold=threshold
                )
                assert kept.count(PIANO) == count


class TestAnswer:
    async def test_a_hit_is_the_message_with_how_it_came_to_its_place(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", CLIMB, PIANO)

        answer = await recall(client, "piano lessons", user_id="ana", explain=True)

        MessageSearchAnswer.model_validate(answer)
        assert set(answer) == set(MessageSearchAnswer.model_fields)
        assert (answer["mode"], answer["degraded"], answer["waiting"]) == ("hybrid", False, 0)
        best, other = answer["items"]
        listed = ok(await client.get("/sessions/s1/messages"))["items"]
        [message] = [one for one in listed if one["message_id"] == best["message_id"]]
        assert message.items() <= best.items()
        assert best["score"] == best["relevance"] >= other["score"]
        explain = best["explain"]
        assert explain["cosine"] == best["similarity"]
        assert explain["lexical"] == best["lexical"] > 0
        assert explain["fused"] == best["relevance"]
        assert set(explain["boosts"]) == {*SIGNALS, "role"}
        signals = {"piece", "message", "role", "neighbours", "session", "asked", "wish"}
        assert set(explain["pieces"]) == signals
        # The hits are ordered by their sums.
        worth = [sum(one["explain"]["pieces"].values()) for one in (best, other)]
        assert worth[0] / worth[1] == pytest.approx(best["score"] / other["score"], rel=1e-4)
        assert (await recall(client, "piano", user_id="ana"))["items"][0]["explain"] is None

    async def test_each_mode_says_what_it_looked_at(self, client: AsyncClient) -> None:
        await append(client, "s1", PIANO)

        def parts(answer: dict[str, Any]) -> Any:
            [hit] = answer["items"]
            explain = hit["explain"]
            unexplained = explain["boosts"] == {}, explain["pieces"] is None
            return hit["similarity"] is None, hit["lexical"] is None, *unexplained

        for mode, expected in (
            ("hybrid", (False, False, False, False)),
            ("semantic", (False, True, True, True)),
            ("lexical", (True, False, True, True)),
        ):
            answer = await recall(client, "piano", user_id="ana", mode=mode, explain=True)
            assert parts(answer) == expected, mode

    async def test_a_boost_may_be_switched_off(self, client: AsyncClient) -> None:
        await append(client, "s1", said("user", "I bought a kayak.", name="Caroline"))

        async def speaker(**weights: float) -> float:
            answer = await recall(
                client, "Caroline's kayak", user_id="ana", explain=True, boosts=weights
            )
            explain = answer["items"][0]["explain"]
            # Where a speaker is named the whole message decides.
            assert explain["pieces"] is None
            return explain["boosts"]["speaker"]

        assert await speaker() > 0
        assert await speaker(speaker=0.0) == 0

    @pytest.mark.parametrize(
        ("before", "words"),
        [
            (timedelta(seconds=59), "just now"),
            (timedelta(seconds=60), "1 minute ago"),
            (timedelta(hours=23, minutes=59), "23 hours ago"),
            (timedelta(days=3), "3 days ago"),
            (timedelta(days=400), "1 year ago"),
            (timedelta(hours=-2), "in 2 hours"),
        ],
    )
    async def test_how_long_ago_it_was_is_told(
        self, client: AsyncClient, before: timedelta, words: str
    ) -> None:
        now = datetime(2024, 6, 1, 12, tzinfo=UTC)
        meta = {"client_time": (now - before).isoformat()}
        await append(client, "s1", said("user", PIANO, metadata=meta))

        [hit] = (await recall(client, "piano", user_id="ana", reference_time=now.isoformat()))[
            "items"
        ]

        assert (hit["said_ago"], hit["said_ago_seconds"]) == (words, before.total_seconds())

    async def test_left_out_it_is_counted_from_now(self, client: AsyncClient) -> None:
        await append(client, "s1", PIANO)

        [hit] = (await recall(client, "piano", user_id="ana"))["items"]

        assert hit["said_ago"] == "just now"
        assert abs(hit["said_ago_seconds"]) < 30


class TestPages:
    async def talk(self, client: AsyncClient) -> set[str]:
        appended = [
            await append(client, f"s{session}", *(f"Tea {session} {n}." for n in range(9)))
            for session in range(3)
        ]
        return {one["message_id"] for answer in appended for one in answer["messages"]}

    @pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical"])
    async def test_pages_show_every_hit_once(self, client: AsyncClient, mode: str) -> None:
        everything = await self.talk(client)
        whole = await recalled_pages(client, "tea 1 3", limit=100, user_id="ana", mode=mode)

        for limit in (1, 7, 9, 26, 27, 28):
            pages = await recalled_pages(client, "tea 1 3", limit=limit, user_id="ana", mode=mode)
            assert [len(page) for page in pages[:-1]] == [limit] * (len(pages) - 1)
            assert list(chain(*pages)) == whole[0]
        assert set(whole[0]) == everything

    async def test_what_is_said_or_deleted_meanwhile_moves_no_other(
        self, client: AsyncClient
    ) -> None:
        await self.talk(client)
        [whole] = await recalled_pages(client, "tea", limit=100, user_id="ana", mode="semantic")
        search = {"user_id": "ana", "mode": "semantic"}
        first = await recall(client, "tea", limit=6, **search)
        await append(client, "s9", "Tea, tea.", "Quarterly invoices.")
        sessions = {hit["message_id"]: hit["session_id"] for hit in first["items"]}
        for gone in (whole[2], whole[5]):
            ok(await client.delete(f"/sessions/{sessions[gone]}/messages/{gone}"))

        rest, cursor = [], first["next_cursor"]
        for _ in range(len(whole)):
            page = await recall(client, "tea", limit=6, cursor=cursor, **search)
            rest += [hit["message_id"] for hit in page["items"]]
            cursor = page["next_cursor"]
            if cursor is None:
                break

        assert rest == whole[6:]

    async def test_a_page_beyond_the_end_is_empty(self, client: AsyncClient) -> None:
        await self.talk(client)
        first = await recall(client, "tea", limit=20, user_id="ana")
        ok(await client.delete("/sessions/s1/messages", params={"confirm": "true"}))
        ok(await client.delete("/sessions/s2/messages", params={"confirm": "true"}))
        ok(await client.delete("/sessions/s0/messages", params={"confirm": "true"}))

        page = await recall(client, "tea", limit=20, user_id="ana", cursor=first["next_cursor"])

        assert (page["items"], page["next_cursor"]) == ([], None)

    async def test_a_cursor_is_good_for_its_search_alone(
        self, client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        await self.talk(client)
        cursor = (await recall(client, "tea", limit=5, user_id="ana"))["next_cursor"]
        bound = await make_key(runtime, acme.tenant_id, "read", user_id="ana")

        body = {"query": "tea", "user_id": "ana", "cursor": cursor}
        assert ok(await client.post("/messages/search", json=body | {"limit": 9, "explain": True}))
        for other in (
            {"query": "coffee"},
            {"session_id": "s1"},
            {"mode": "lexical"},
            {"roles": ["user"]},
            {"threshold": 0.1},
            {"boosts": {"date": 0}},
            {"since": "2020-01-01T00:00:00Z"},
            {"reference_time": "2024-01-01T00:00:00Z"},
        ):
            response = await client.post("/messages/search", json=body | other)
            assert fields(problem(response, 422, "invalid_cursor")) == ["body.cursor"], other
        async with client_of(app, bound.key) as theirs:
            response = await theirs.post("/messages/search", json=body)
            problem(response, 422, "invalid_cursor")

    @for_each(
        "cursor",
        ["x", "", "WzEsMl0", "bnVsbA", "W10", "é", "WzEsImEiLCIyMDI0IiwiMjAyNCIsImEiXQ", "[" * 500],
    )
    async def test_a_cursor_of_nobody_is_refused(self, client: AsyncClient, cursor: str) -> None:
        body = {"query": "tea", "user_id": "ana", "cursor": cursor}

        response = await client.post("/messages/search", json=body)

        assert fields(problem(response, 422, "invalid_cursor")) == ["body.cursor"]


class TestLimits:
    @for_each(
        ("field", "good", "bad"),
        [
            ("limit", [1, 100], [0, 101, "x", 1.5]),
            ("query", ["x", "?", " x ", "x" * 10_000], ["", " \n\u3000", "x" * 10_001, "a\x00b"]),
            ("threshold", [0, 1], [-0.01, 1.01]),
            (
                "roles",
                [["tool"], ["user", "assistant", "system", "tool"]],
                [[], ["robot"], ["user"] * 5],
            ),
            ("mode", ["hybrid"], ["exact"]),
            ("boosts", [{}, {"date": 0}, {"date": 1}], [{"date": -1}, {"date": 1.1}, {"x": 1}]),
            ("since", ["2024-01-01T00:00:00Z"], ["2024-01-01", "2024-01-01T00:00:00"]),
            ("until", ["2024-01-01T00:00:00Z"], ["soon"]),
            ("cursor", [None], ["x" * 513]),
        ],
    )
    async def test_what_is_out_of_bounds_is_refused_by_name(
        self, client: AsyncClient, field: str, good: list[Any], bad: list[Any]
    ) -> None:
        body = {"query": "tea", "user_id": "ana"}
        for value in good:
            ok(await client.post("/messages/search", json=body | {field: value}))
        for value in bad:
            response = await client.post("/messages/search", json=body | {field: value})
            places = fields(problem(response, 422, "invalid_request"))
            assert all(place.startswith(f"body.{field}") for place in places), places

    async def test_nothing_is_searched_without_whose(self, client: AsyncClient) -> None:
        response = await client.post("/messages/search", json={"query": "tea"})

        body = problem(response, 422, "selector_required")
        assert fields(body) == ["body.session_id"]
        for name in ("session_id", "user_id", "agent_id"):
            assert name in body["detail"]

    async def test_an_empty_store_answers_nothing(self, client: AsyncClient) -> None:
        for mode in ("hybrid", "semantic", "lexical"):
            answer = await recall(client, "tea", user_id="ana", mode=mode)
            assert (answer["items"], answer["next_cursor"], answer["waiting"]) == ([], None, 0)

    async def test_a_hundred_hits_fit_on_a_page_and_one_more_does_not(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", *(f"Tea {number}." for number in range(100)))
        assert (await recall(client, "tea", user_id="ana"))["next_cursor"] is None

        await append(client, "s1", "Tea 100.")

        answer = await recall(client, "tea", user_id="ana")
        assert len(answer["items"]) == 100
        rest = await recall(client, "tea", user_id="ana", cursor=answer["next_cursor"])
        assert len(rest["items"]) == 1


class TestWhose:
    async def test_another_tenant_finds_nothing(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        appended = await append(client, "s1", PIANO, agent_id="a1")
        assert appended["created"] == 1

        for ids in ({"user_id": "ana"}, {"session_id": "s1"}, {"agent_id": "a1"}):
            assert await recalled(stranger, "piano", **ids) == []
            assert await recalled(client, "piano", **ids) == [PIANO]

    async def test_a_key_of_a_user_finds_that_users_messages_alone(
        self, client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        await append(client, "s1", "Tea of Ana.", agent_id="a1")
        await append(client, "s2", "Tea of Ben.", user_id="ben", agent_id="a1")
        bound = await make_key(runtime, acme.tenant_id, "read", user_id="ana")

        async with client_of(app, bound.key) as theirs:
            # Nobody is named: it is the key's user.
            answer = ok(await theirs.post("/messages/search", json={"query": "tea"}))
            assert [hit["content"] for hit in answer["items"]] == ["Tea of Ana."]
            assert await recalled(theirs, "tea", agent_id="a1") == ["Tea of Ana."]
            assert await recalled(theirs, "tea", session_id="s2") == []
            texts = []
            for user_id in ("ben", "nobody"):
                body = {"query": "tea", "user_id": user_id}
                response = await theirs.post("/messages/search", json=body)
                document = problem(response, 404, "user_not_found")
                texts.append(document["detail"].replace(user_id, "X"))
            assert texts[0] == texts[1]

    async def test_a_key_of_an_agent_finds_what_was_said_to_that_agent(
        self, client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller
    ) -> None:
        await append(client, "s1", "Tea with one.", agent_id="a1")
        await append(client, "s2", "Tea with two.", agent_id="a2")
        bound = await make_key(runtime, acme.tenant_id, "read", agent_id="a1")

        async with client_of(app, bound.key) as theirs:
            assert await recalled(theirs, "tea", user_id="ana") == ["Tea with one."]
            assert await recalled(theirs, "tea", session_id="s2") == []
            response = await theirs.post(
                "/messages/search", json={"query": "tea", "agent_id": "a2"}
            )
            problem(response, 404, "agent_not_found")

    async def test_an_erased_person_is_not_found(self, client: AsyncClient) -> None:
        await append(client, "s1", PIANO)

        ok(await client.delete("/users/ana", params={"confirm": "true"}))

        assert await recalled(client, "piano", user_id="ana") == []
        assert await recalled(client, "piano", session_id="s1") == []


class TestAppending:
    async def test_an_append_of_the_same_messages_changes_nothing(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        message = said("user", PIANO, message_id="m1")
        await append(client, "s1", message)
        rows = "SELECT xmin::text, terms::text FROM messages WHERE tenant_id = $1"
        before = await execute(dsn, rows, acme.tenant_id)

        assert (await append(client, "s1", message))["existing"] == 1

        assert await execute(dsn, rows, acme.tenant_id) == before
        assert await recalled(client, "piano", user_id="ana") == [PIANO]

    async def test_paused_memory_hides_nothing_that_was_said(self, client: AsyncClient) -> None:
        body = {"session_id": "s1", "user_id": "ana", "memory_enabled": False}
        ok(await client.post("/sessions", json=body), 201)

        appended = await append(client, "s1", PIANO)

        assert appended["extraction"]["reason"] == "memory_paused"
        assert await recalled(client, "piano", user_id="ana") == [PIANO]

    async def test_many_appends_at_once_are_all_found(self, client: AsyncClient) -> None:
        await asyncio.gather(
            *(append(client, f"s{number % 3}", f"Tea {number}.") for number in range(12))
        )

        assert len(await recalled(client, "tea", user_id="ana", mode="lexical")) == 12


class TestModels:
    async def test_a_message_of_a_model_new_to_the_tenant_is_found_by_meaning_at_once(
        self, dsn: str, acme: Caller
    ) -> None:
        """Until then every vector of the tenant was made by its agent's own model."""
        local, remote = "wordllama/l2_supercat:256", "openai/alpha:64"
        with openai_server() as provider:
            async with (
                service(dsn, openai_base_url=provider.base_url) as app,
                client_of(app, acme.key) as client,
            ):
                body = {"agent_id": "a1", "agent_name": "A", "config": {"embedding": remote[:-3]}}
                ok(await client.post("/agents", json=body), 201)
                ok(await client.post("/users", json={"user_id": "ana"}), 201)
                await save(client, "She drinks green tea.", agent_id="a1")
                before = await recall(client, PIANO, user_id="ana", mode="semantic")

                await append(client, "s1", PIANO)
                after = await recall(client, PIANO, user_id="ana", mode="semantic")

        assert before["embedding_models"] == [remote]
        assert set(after["embedding_models"]) == {remote, local}
        [hit] = after["items"]
        assert (hit["content"], after["waiting"]) == (PIANO, 0)
        assert hit["similarity"] == pytest.approx(1.0, abs=1e-4)


LONG = "We talked about the garden and the fence, and about the roof of the shed. " * 8


class TestRole:
    """Who is asked about has said it."""

    TURNS = (
        {"role": "user", "content": "A budget for the trip: 400 euros would do."},
        {"role": "assistant", "content": "A budget for the trip: 900 euros would do."},
    )

    @pytest.mark.parametrize(
        ("query", "role"),
        [
            ("What did I say about the budget for the trip?", "user"),
            ("What budget for the trip did you recommend?", "assistant"),
            ("budget for the trip", "user"),
        ],
    )
    async def test_preferred_role_comes_first(
        self, client: AsyncClient, query: str, role: str
    ) -> None:
        await append(client, "s1", *self.TURNS)

        answer = await recall(client, query, user_id="ana")

        assert answer["items"][0]["role"] == role

    async def test_preferred_role_can_be_switched_off(self, client: AsyncClient) -> None:
        await append(client, "s1", *self.TURNS)

        for query in ("What did I say about the budget?", "What budget did you recommend?"):
            answer = await recall(client, query, user_id="ana", boosts={"role": 0}, explain=True)
            roles = [one["explain"]["boosts"]["role"] for one in answer["items"]]
            assert roles == [0, 0]


class TestPieces:
    async def test_a_hit_shows_the_piece_that_fits(self, client: AsyncClient) -> None:
        await append(client, "s1", LONG + "The dentist moved to Main Street. " + LONG)

        [hit] = (await recall(client, "Where is the dentist?", user_id="ana"))["items"]

        piece = hit["piece"]
        assert "dentist" in piece["text"]
        assert piece["text"].startswith("…")
        assert piece["text"].endswith("…")
        assert len(piece["text"]) < len(hit["content"]) / 2
        assert 0 < piece["number"] < piece["of"] - 1
        assert 0 < piece["similarity"] <= 1

    async def test_a_message_of_one_piece_shows_none(self, client: AsyncClient) -> None:
        await append(client, "s1", PIANO)

        [hit] = (await recall(client, "piano", user_id="ana"))["items"]

        assert hit["piece"] is None
