"""Pieces of what was said before in a context: which, how they are laid out, and what they take."""

from typing import Any

import pytest
from httpx import AsyncClient

from tests.support.api import append, fields, ok, problem, save
from tests.support.excerpts import (
    context,
    excerpt_lines,
    opened,
    part,
    said,
    said_at,
    shown_numbers,
)
from tests.support.folders import folder
from tests.support.rows import every_row
from tests.support.service import client_of, service
from tests.support.tenants import Caller

QUERY = "When does the ferry to the cabin leave?"
CABIN = "How do I get to the cabin on the lake?"
FERRY = "Take the ferry to the cabin, which leaves Lindau at nine."
# Of several subjects, a sentence of some 20 words each.
LONG = (
    "My sister has a bakery in the old town, where she bakes rye bread and poppy seed cakes. "
    "The ferry to the cabin leaves Lindau at nine and takes forty minutes in calm weather. "
    "Our dentist has moved to the second floor of the new house behind the railway station. "
    "In winter we heat the kitchen with beech wood that a farmer brings on his small tractor."
)
FILLER = "We talked about paint, curtains and the colour of the hall on a quiet day"


async def trip(client: AsyncClient) -> None:
    """What was said of the cabin in another session, and something of another day in a third."""
    await append(
        client,
        "trip",
        said_at("2024-05-03T10:00:00Z", "user", CABIN),
        said_at("2024-05-03T10:01:00Z", "assistant", FERRY),
        said_at("2024-05-03T10:02:00Z", "user", "Thanks, that helps."),
    )
    await append(client, "hall", said_at("2024-06-01T10:00:00Z", "user", f"{FILLER}."))


class TestLayout:
    async def test_another_session_is_shown_with_role_date_and_number(
        self, client: AsyncClient
    ) -> None:
        await trip(client)
        await opened(client)

        answer = await context(client, query=QUERY)

        assert excerpt_lines(answer) == [
            "3 May 2024, session 1 of 2, 3 messages:",
            f"1 user: {CABIN}",
            f"2 assistant: {FERRY}",
            "3 user: Thanks, that helps.",
            "1 June 2024, session 2 of 2, 1 message:",
            f"1 user: {FILLER}.",
        ]
        assert shown_numbers(answer) == [("trip", 1), ("trip", 2), ("trip", 3), ("hall", 1)]
        first = answer["used_excerpts"][1]
        assert (first["role"], first["pieces"], first["of_pieces"]) == ("assistant", [0], 1)
        assert first["said_at"] == "2024-05-03T10:01:00Z"
        assert 0 < first["score"] <= 1
        assert first["similarity"] > 0
        assert "explain" not in first
        assert answer["excerpt_source"] == {"searched": 4, "left_out": False}

    async def test_a_reply_has_what_it_was_asked_unless_that_has_its_own_line(
        self, client: AsyncClient
    ) -> None:
        await trip(client)
        await opened(client)

        answer = await context(
            client, query="Which ferry did you recommend?", excerpts={"limit": 1}
        )

        assert excerpt_lines(answer)[1:] == [f'2 assistant, replying to "{CABIN}": {FERRY}']

    async def test_a_long_request_is_cut_at_a_sentence(self, client: AsyncClient) -> None:
        await append(client, "trip", said("user", LONG), said("assistant", FERRY))
        await opened(client)

        answer = await context(client, query=FERRY, excerpts={"limit": 1, "roles": ["assistant"]})

        [_, line] = excerpt_lines(answer)
        assert line.startswith('2 assistant, replying to "My sister has a bakery')
        asked = line.split('"')[1]
        assert asked.endswith("…")
        assert len(asked.split()) <= 16

    async def test_a_request_in_parts_is_shown_as_text(self, client: AsyncClient) -> None:
        picture = {"type": "image_url", "image_url": {"url": "https://kemem.invalid/lake.png"}}
        parts = [{"type": "text", "text": CABIN}, picture]
        reply = said("assistant", "", content_parts=[{"type": "text", "text": FERRY}])
        await append(client, "trip", said("user", "", content_parts=parts), reply)
        await opened(client)

        answer = await context(client, query=FERRY, excerpts={"roles": ["assistant"]})

        assert excerpt_lines(answer)[1:] == [f'2 assistant, replying to "{CABIN} [image]": {FERRY}']

    async def test_one_piece_of_a_long_message_is_shown_between_ellipses(
        self, client: AsyncClient
    ) -> None:
        await append(client, "trip", LONG)
        await opened(client)

        answer = await context(client, query=QUERY, excerpts={"tokens": 95})

        [_, line] = excerpt_lines(answer)
        assert line == f"1 user: … {LONG.split('. ')[1]}. …"
        [used] = answer["used_excerpts"]
        assert (used["pieces"], used["of_pieces"]) == ([1], 4)

    async def test_neighbouring_pieces_are_joined(self, client: AsyncClient) -> None:
        await append(client, "trip", LONG)
        await opened(client)

        answer = await context(client, query=QUERY)

        assert excerpt_lines(answer)[1:] == [f"1 user: {LONG}"]
        assert answer["used_excerpts"][0]["pieces"] == [0, 1, 2, 3]

    async def test_who_spoke_is_named(self, client: AsyncClient) -> None:
        await append(client, "trip", said("user", CABIN, name="Ana <b>"))
        await opened(client)

        answer = await context(client, query=QUERY)

        assert excerpt_lines(answer)[1:] == [f"1 user Ana &lt;b&gt;: {CABIN}"]

    async def test_lines_of_code_stay_lines(self, client: AsyncClient) -> None:
        code = "def rent(months):\n    # three at least\n\n    return 3 * months"
        await append(client, "code", said("user", f"The ferry:\n{code}"))
        await opened(client)

        lines = excerpt_lines(await context(client, query="ferry"))

        assert lines[1:] == [
            "1 user: The ferry:",
            "  def rent(months):",
            "      # three at least",
            "      return 3 * months",
        ]

    async def test_days_out_of_order_have_one_heading_each(self, client: AsyncClient) -> None:
        days = [f"2024-05-0{day}T10:00:00Z" for day in (1, 2, 1, 2, 1, 2)]
        await append(client, "trip", *(said_at(day, "user", "The ferry.") for day in days))
        await opened(client)

        answer = await context(client, query="ferry")

        assert excerpt_lines(answer) == [
            "1 May 2024, session 1 of 1, 6 messages:",
            *(f"{number} user: The ferry." for number in (1, 3, 5)),
            "2 May 2024, session 1 of 1, 6 messages:",
            *(f"{number} user: The ferry." for number in (2, 4, 6)),
        ]
        for tokens in range(60, 150, 5):
            shown = part(await context(client, query="ferry", excerpts={"tokens": tokens}))
            assert shown["tokens"] <= shown["budget"] == tokens

    @pytest.mark.parametrize("render", ["openai", "anthropic", "plain", "parts"])
    async def test_every_rendering_has_the_block(self, client: AsyncClient, render: str) -> None:
        await trip(client)
        await append(client, "s1", QUERY)

        answer = await context(client, render=render)

        assert f"2 assistant: {FERRY}" in answer["prompt"]
        assert answer["prompt"].count("Pieces of what was said before") == 1
        if render == "openai":
            assert answer["messages"][0]["content"] == answer["prompt"]
        if render == "parts":
            assert part(answer)["text"] in answer["prompt"]


class TestThisSession:
    async def test_what_the_window_shows_is_not_repeated(self, client: AsyncClient) -> None:
        await append(client, "s1", said("user", CABIN), said("assistant", FERRY), QUERY)

        answer = await context(client)

        assert answer["query"]["source"] == "last_user_message"
        assert (answer["used_excerpts"], excerpt_lines(answer)) == ([], [])
        assert answer["excerpt_source"] == {"searched": 3, "left_out": False}

    async def test_nor_where_the_request_excludes_the_window(self, client: AsyncClient) -> None:
        await trip(client)
        await append(client, "s1", QUERY)

        answer = await context(client, query=QUERY, include={"window": False})

        assert {one[0] for one in shown_numbers(answer)} == {"trip", "hall"}

    async def test_what_the_window_no_longer_shows_is_found(self, client: AsyncClient) -> None:
        await append(client, "s1", said("user", CABIN), said("assistant", FERRY))
        await append(client, "s1", *(f"{FILLER}, {number}." for number in range(20)), QUERY)

        answer = await context(client, window_tokens=200, excerpts={"limit": 2})

        assert answer["window"]["from_sequence_no"] > 2
        shown = shown_numbers(answer)
        assert ("s1", 2) in shown
        assert all(number < answer["window"]["from_sequence_no"] for _, number in shown)
        assert excerpt_lines(answer)[0].endswith(", earlier in this session:")

    async def test_messages_of_the_request_are_the_conversation(self, client: AsyncClient) -> None:
        await trip(client)
        appended = await append(client, "s1", "The cabin has a ferry of its own.")
        stored = appended["messages"][0]["message_id"]
        given = [said("user", "The cabin has a ferry of its own."), said("user", QUERY)]

        answer = await context(client, messages=given)

        assert answer["query"]["source"] == "last_user_message"
        assert ("trip", 2) in shown_numbers(answer)
        # The window shows it already, although it was sent without its id.
        assert stored not in {each["message_id"] for each in answer["used_excerpts"]}


class TestRequest:
    async def test_excluded_they_are_not_looked_for(self, client: AsyncClient) -> None:
        await trip(client)
        await opened(client)

        answer = await context(client, query=QUERY, include={"excerpts": False})

        shown = part(answer)
        assert (shown["tokens"], shown["shown"], shown["reason"]) == (0, 0, "excluded")
        assert (answer["used_excerpts"], answer["excerpt_source"]) == ([], None)
        assert FERRY not in answer["prompt"]

    async def test_without_a_query_there_are_none(self, client: AsyncClient) -> None:
        await trip(client)
        await opened(client)

        answer = await context(client)

        assert answer["query"]["source"] == "none"
        assert (answer["used_excerpts"], answer["excerpt_source"]) == ([], None)
        assert (part(answer)["shown"], part(answer)["reason"]) == (0, None)

    @pytest.mark.parametrize(
        ("field", "good", "bad"),
        [
            ("limit", [1, 100], [0, 101]),
            ("tokens", [1, 8000], [0, 8001]),
            ("roles", [["user"], ["user", "assistant", "tool"]], [[], ["system"], ["user"] * 4]),
            ("sessions", [["trip"], ["x"] * 100], [[], ["x"] * 101, [""]]),
            ("since", ["2024-01-01T00:00:00Z"], ["2024-01-01", "soon"]),
            ("until", ["2024-01-01T00:00:00Z"], ["2024-01-01T00:00:00"]),
            ("pages", [], [1]),
        ],
    )
    async def test_what_is_out_of_bounds_is_refused_by_name(
        self, client: AsyncClient, field: str, good: list[Any], bad: list[Any]
    ) -> None:
        await opened(client)
        for value in good:
            await context(client, query=QUERY, excerpts={field: value})
        for value in bad:
            body = {"query": QUERY, "excerpts": {field: value}}
            response = await client.post("/sessions/s1/context", json=body)
            places = fields(problem(response, 422, "invalid_request"))
            assert all(place.startswith(f"body.excerpts.{field}") for place in places), places

    async def test_they_can_be_narrowed(self, client: AsyncClient) -> None:
        await trip(client)
        await opened(client)

        cases = [
            ({"limit": 1}, {("trip", 1)}),
            ({"limit": 4}, {("trip", 1), ("trip", 2), ("trip", 3), ("hall", 1)}),
            ({"roles": ["assistant"]}, {("trip", 2)}),
            ({"since": "2024-05-03T10:01:00Z"}, {("trip", 2), ("trip", 3), ("hall", 1)}),
            ({"since": "2024-05-03T10:01:00.1Z"}, {("trip", 3), ("hall", 1)}),
            ({"until": "2024-05-03T10:01:00Z"}, {("trip", 1)}),
            ({"until": "2024-05-03T10:01:00.1Z"}, {("trip", 1), ("trip", 2)}),
            ({"sessions": ["hall", "nobodys"]}, {("hall", 1)}),
            ({"sessions": ["nobodys"]}, set()),
        ]
        query = "How do I get to the cabin?"
        with every_row() as trying:
            for wanted, expected in cases:
                with trying(**wanted):
                    answer = await context(client, query=query, excerpts=wanted)

                    assert set(shown_numbers(answer)) == expected
                    assert answer["excerpt_source"]["searched"] == 4

    async def test_as_of_a_past_time_nothing_said_later_is_shown(self, client: AsyncClient) -> None:
        await trip(client)
        await opened(client)
        then = "2024-05-03T10:02:00Z"

        for wanted, numbers in (
            ({}, [("trip", 1), ("trip", 2)]),
            ({"until": "2024-05-03T10:01:00Z"}, [("trip", 1)]),
            ({"until": "2025-01-01T00:00:00Z"}, [("trip", 1), ("trip", 2)]),
        ):
            answer = await context(client, query=QUERY, as_of=then, excerpts=wanted)
            assert shown_numbers(answer) == numbers, wanted

    async def test_with_explain_every_signal_is_told(self, client: AsyncClient) -> None:
        await trip(client)
        await opened(client)

        answer = await context(client, query="How do I get to the cabin?", explain=True)

        best = max(answer["used_excerpts"], key=lambda each: each["score"])
        assert best["score"] == 1
        assert best["explain"].keys() == {
            "piece", "message", "role", "neighbours", "session", "asked", "wish",
        }  # fmt: skip
        assert best["explain"]["role"] > 0
        reply = answer["used_excerpts"][1]
        assert (reply["role"], reply["explain"]["role"]) == ("assistant", 0)


class TestBudget:
    @pytest.mark.parametrize("tokens", [100, 101, 300, 1000, 8000])
    async def test_everything_remembered_keeps_to_it(
        self, client: AsyncClient, tokens: int
    ) -> None:
        await client.post("/users", json={"user_id": "ana"})
        ok(await client.patch("/users/ana", json={"profile": {"city": "Bonn"}}))
        for number in range(30):
            await save(client, f"The ferry number {number} goes to the cabin.")
        folder_id = await folder(client)
        body = {"content": "A timetable of the ferry to the cabin."}
        ok(await client.post(f"/folders/{folder_id}/passages", json=body), 201)
        await append(client, "trip", *(f"{number}: {LONG}" for number in range(12)))
        await opened(client)

        answer = await context(client, query=QUERY, max_memory_tokens=tokens, passages={})

        names = ("profile", "corrections", "memories", "passages", "excerpts")
        pieces = {name: part(answer, name) for name in names}
        assert answer["memory_tokens"] == sum(each["tokens"] for each in pieces.values()) <= tokens
        assert answer["tokens"] == sum(each["tokens"] for each in answer["parts"])
        assert all(each["tokens"] <= each["budget"] for each in pieces.values())
        others = answer["memory_tokens"] - pieces["excerpts"]["tokens"]
        assert pieces["excerpts"]["budget"] == max(tokens // 2, tokens - others)
        if tokens == 300:
            # What excerpts leave of it is shared by the others.
            assert pieces["memories"]["shown"] > 0
            assert pieces["passages"]["shown"] == 1
            assert pieces["excerpts"]["dropped"] > 0
            assert pieces["excerpts"]["reason"] == "budget"
        if tokens == 8000:
            assert (pieces["excerpts"]["dropped"], pieces["excerpts"]["reason"]) == (0, None)

    async def test_without_others_they_get_all_of_it(self, client: AsyncClient) -> None:
        await append(client, "trip", *(f"{number}: {LONG}" for number in range(12)))
        await opened(client)

        answer = await context(client, query=QUERY, max_memory_tokens=400)

        assert part(answer)["budget"] == 400
        assert 300 < part(answer)["tokens"] <= 400

    async def test_one_long_message_may_fill_it(self, client: AsyncClient) -> None:
        await append(client, "trip", f"{LONG} " * 20)
        await opened(client)

        answer = await context(client, query=QUERY, max_memory_tokens=1000)

        [used] = answer["used_excerpts"]
        assert len(used["pieces"]) < used["of_pieces"]
        assert 800 < part(answer)["tokens"] <= 1000

    async def test_a_request_may_give_them_less(self, client: AsyncClient) -> None:
        await append(client, "trip", *(f"{number}: {LONG}" for number in range(12)))
        await opened(client)

        for tokens in (1, 120):
            answer = await context(client, query=QUERY, excerpts={"tokens": tokens})
            assert part(answer)["budget"] == tokens
            assert part(answer)["tokens"] <= tokens
        assert part(answer)["shown"] > 0

    async def test_the_default_is_the_deployments(self, acme: Caller, dsn: str) -> None:
        async with (
            service(dsn, max_injection_tokens=150) as app,
            client_of(app, acme.key) as client,
        ):
            await append(client, "trip", *(f"{number}: {LONG}" for number in range(6)))
            await opened(client)

            answer = await context(client, query=QUERY)

        assert 0 < answer["memory_tokens"] <= 150


class TestSwitchedOff:
    @pytest.mark.parametrize("where", ["deployment", "agent", "session"])
    async def test_where_nothing_is_injected_no_excerpt_is(
        self, acme: Caller, dsn: str, where: str
    ) -> None:
        settings = {"injection_enabled": False} if where == "deployment" else {}
        async with service(dsn, **settings) as app, client_of(app, acme.key) as client:
            await trip(client)
            await opened(client)
            path = {"agent": "/agents/default", "session": "/sessions/s1"}.get(where)
            if path is not None:
                off, header = {"injection_enabled": False}, {"If-Match": "*"}
                ok(await client.patch(path, json=off, headers=header))

            answer = await context(client, query=QUERY)

        shown = part(answer)
        assert (shown["tokens"], shown["shown"], shown["reason"]) == (0, 0, "injection_off")
        assert (answer["used_excerpts"], answer["excerpt_source"]) == ([], None)
        assert answer["injection"] == {"enabled": False, "off_by": where}
        assert FERRY not in answer["prompt"]
