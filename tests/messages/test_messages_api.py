"""Messages through the public routes."""

import pytest
from httpx import AsyncClient

from tests.support.api import append, dump, every_page, fields, ok, problem, tables_with
from tests.support.rows import for_each
from tests.support.tenants import Caller

PATH = "/sessions/s1/messages"


def calling(*call_ids: str, **fields) -> dict:
    """An assistant message that calls tools."""
    calls = [{"id": one, "type": "function", "function": {"name": "now"}} for one in call_ids]
    return {"role": "assistant", "content": "", "tool_calls": calls} | fields


def result(call_id: str, **fields) -> dict:
    return {"role": "tool", "content": "12:00", "tool_call_id": call_id} | fields


def said(text: str, message_id: str | None = None, **fields) -> dict:
    named = {} if message_id is None else {"message_id": message_id}
    return {"role": "user", "content": text} | named | fields


async def texts(client: AsyncClient, **params) -> list[str]:
    return [row["content"] for row in await every_page(client, PATH, **params)]


async def ids(client: AsyncClient, **params) -> list[str]:
    return [row["message_id"] for row in await every_page(client, PATH, **params)]


async def numbers(client: AsyncClient) -> list[int]:
    return [row["sequence_no"] for row in await every_page(client, PATH)]


WRONG_TIMES = ["last week", "1899-12-31T23:59:59Z", "2999-01-01", 1_717_600_000]


@pytest.mark.parametrize("told", WRONG_TIMES)
async def test_client_time_that_is_not_used_is_named(client: AsyncClient, told: object) -> None:
    right = {"metadata": {"client_time": "2024-06-02T10:00:00Z"}}
    wrong = {"metadata": {"client_time": told}}
    batch = [said("One.", "m1", **right), said("Two.", "m2", **wrong), said("Three.", "m3")]

    for _ in range(2):
        # What is sent again gets the same answer.
        answer = await append(client, "s1", *batch)

        [warning] = answer["warnings"]
        assert warning["code"] == "client_time_ignored"
        assert warning["location"] == ["body", "messages", "1", "metadata", "client_time"]
        assert str(told) not in warning["detail"]
    assert (await append(client, "s1", said("Four.", **right)))["warnings"] == []


async def refused(client: AsyncClient, status: int, code: str, *messages: dict, **fields) -> dict:
    """The problem of an append that must fail, and must have stored nothing."""
    before = (await client.get(PATH)).json()
    body = {"user_id": "ana", "messages": list(messages)} | fields
    document = problem(await client.post(PATH, json=body), status, code)
    after = (await client.get(PATH)).json()
    for one in (before, after):
        one.pop("request_id", None)
    assert after == before
    return document


class TestAppend:
    async def test_messages_are_numbered_from_one_in_the_order_of_the_request(
        self, client: AsyncClient
    ) -> None:
        first = await append(client, "s1", "One.", "Two.")
        second = await append(client, "s1", "Three.")

        rows = first["messages"] + second["messages"]
        assert [row["sequence_no"] for row in rows] == [1, 2, 3]
        moments = [row["create_time"] for row in rows]
        assert moments == sorted(set(moments))
        assert (first["created"], first["existing"]) == (2, 0)
        assert await every_page(client, PATH) == rows
        session = ok(await client.get("/sessions/s1"))
        assert session["last_sequence_no"] == 3
        assert session["last_message_time"] == moments[-1]

    @pytest.mark.parametrize(
        "text",
        [
            "我上周搬到了慕尼黑。",
            "She said 你好 to the 店长",
            "🍵👩‍👩‍👧‍👦 e\u0301",
            "  kept as it is \n",
            "x",
        ],
        ids=["Chinese", "mixed", "emoji", "spaces", "one letter"],
    )
    async def test_a_text_comes_back_to_the_code_point(self, client: AsyncClient, text) -> None:
        [message] = (await append(client, "s1", text))["messages"]

        assert message["content"] == text
        whole = {"offset": 0, "next_offset": None, "total_length": len(text)}
        assert ok(await client.get(f"{PATH}/{message['message_id']}")) == message | whole

    async def test_everything_about_a_message_is_kept(self, client: AsyncClient) -> None:
        whole = {
            "role": "user",
            "content": "看这张图",
            "content_type": "image",
            "content_parts": [
                {"type": "text", "text": "看这张图"},
                {"type": "image_url", "image_url": {"url": "https://example.org/a.png"}},
            ],
            "name": "安娜",
            "metadata": {"client_time": "2019-07-01T08:00:00+08:00", "tokens": 5, "模型": None},
        }

        [message] = (await append(client, "s1", whole))["messages"]

        assert whole.items() <= message.items()
        assert message["create_time"] > "2026"

    async def test_a_message_of_parts_alone_needs_no_text(self, client: AsyncClient) -> None:
        parts = {"role": "user", "content_parts": [{"type": "audio", "ref": "a.ogg"}]}

        [message] = (await append(client, "s1", parts))["messages"]

        assert message["content"] == ""

    async def test_a_batch_has_one_to_a_hundred_messages(self, client: AsyncClient) -> None:
        batch = [said(f"Message {number}.") for number in range(101)]
        for wrong in (batch, []):
            document = await refused(client, 422, "invalid_request", *wrong)
            assert fields(document) == ["body.messages"]

        assert (await append(client, "s1", *batch[:100]))["created"] == 100
        assert await numbers(client) == list(range(1, 101))

    @for_each(
        ("message", "place"),
        [
            ({"role": "user", "content": ""}, "body.messages.0"),
            ({"role": "king", "content": "x"}, "body.messages.0.role"),
            ({"role": "user", "content": "a\x00b"}, "body.messages.0.content"),
            (result("c1", role="user"), "body.messages.0"),
            ({"role": "tool", "content": "x"}, "body.messages.0"),
            (calling("c1", role="user"), "body.messages.0"),
            (calling("c1", "c1"), "body.messages.0"),
            ({"role": "assistant", "tool_calls": [{"name": "now"}]}, "body.messages.0"),
            (said("x", "a/b"), "body.messages.0.message_id"),
        ],
    )  # fmt: skip
    async def test_what_is_no_message_is_refused_by_its_place(
        self, client: AsyncClient, message, place
    ) -> None:
        document = await refused(client, 422, "invalid_request", message)

        assert fields(document) == [place]

    async def test_one_bad_message_keeps_its_whole_batch_out(self, client: AsyncClient) -> None:
        await append(client, "s1", "One.")

        document = await refused(
            client, 422, "unknown_tool_call", said("Two."), said("Three."), result("none")
        )

        assert fields(document) == ["body.messages.2.tool_call_id"]

    async def test_a_request_with_a_key_is_appended_once(self, client: AsyncClient) -> None:
        body = {"user_id": "ana", "messages": [said("Hello.")]}
        headers = {"Idempotency-Key": "k"}
        first = await client.post(PATH, json=body, headers=headers)

        again = await client.post(PATH, json=body, headers=headers)
        elsewhere = await client.post("/sessions/s2/messages", json=body, headers=headers)

        assert (again.status_code, again.json()) == (201, first.json())
        problem(elsewhere, 422, "idempotency_key_reused")
        assert await texts(client) == ["Hello."]

    async def test_a_refused_request_may_use_its_key_again(self, client: AsyncClient) -> None:
        headers = {"Idempotency-Key": "k"}
        body = {"user_id": "ana", "messages": [result("none")]}
        problem(await client.post(PATH, json=body, headers=headers), 422, "unknown_tool_call")

        body["messages"] = [said("Hello.")]

        ok(await client.post(PATH, json=body, headers=headers), 201)


class TestRepeat:
    async def test_the_same_message_again_is_answered_as_before(self, client: AsyncClient) -> None:
        batch = [said("你好。", "m1", metadata={"a": 1.0}), said("Well.", "m2", name="Ana")]
        first = await append(client, "s1", *batch)

        again = await append(client, "s1", *batch)

        assert again["messages"] == first["messages"]
        assert (again["created"], again["existing"]) == (0, 2)
        assert await numbers(client) == [1, 2]

    @pytest.mark.parametrize(
        "change",
        [
            {"content": "Other."},
            {"role": "assistant"},
            {"metadata": {"a": 2}},
            {"name": "Bob"},
            {"content_type": "note"},
            {"content_parts": [{"type": "text"}]},
            {"parent_message_id": "m0"},
        ],
        ids=lambda change: next(iter(change)),
    )
    async def test_another_message_under_a_used_id_is_refused(
        self, client: AsyncClient, change
    ) -> None:
        await append(
            client, "s1", said("Zero.", "m0"), said("Hello.", "m1", parent_message_id=None)
        )

        document = await refused(
            client, 409, "message_conflict", said("New.", "m2"), said("Hello.", "m1") | change
        )

        assert document["message_id"] == "m1"
        assert await ids(client) == ["m0", "m1"]

    async def test_an_id_of_another_session_is_taken(self, client: AsyncClient) -> None:
        await append(client, "s2", said("Hello.", "m1"))

        document = await refused(client, 409, "id_taken", said("Hello.", "m1"))

        assert document["message_id"] == "m1"

    async def test_an_id_stands_in_a_batch_once(self, client: AsyncClient) -> None:
        document = await refused(client, 422, "invalid_request", said("A.", "m1"), said("A.", "m1"))

        assert fields(document) == ["body"]

    async def test_old_and_new_messages_mix_in_one_batch(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "m1"), said("Two.", "m2"))

        mixed = await append(
            client,
            "s1",
            said("Three."),
            said("Two.", "m2"),
            said("Four.", "m4"),
            said("One.", "m1"),
        )

        assert [row["content"] for row in mixed["messages"]] == ["Three.", "Two.", "Four.", "One."]
        assert [row["sequence_no"] for row in mixed["messages"]] == [3, 2, 4, 1]
        assert (mixed["created"], mixed["existing"]) == (2, 2)
        assert await texts(client) == ["One.", "Two.", "Three.", "Four."]
        chain = [row["parent_message_id"] for row in await every_page(client, PATH)]
        assert chain == [None, "m1", "m2", mixed["messages"][0]["message_id"]]

    async def test_a_tool_may_have_nothing_to_say(self, client: AsyncClient) -> None:
        stored = await append(client, "s1", calling("c1"), result("c1") | {"content": ""})

        assert stored["created"] == 2
        shown = ok(await client.post("/sessions/s1/context", json={}))["messages"]
        assert [one["role"] for one in shown] == ["assistant", "tool"]
        assert shown[1]["content"] == ""

    async def test_a_tool_result_may_be_sent_again(self, client: AsyncClient) -> None:
        batch = [calling("c1", message_id="m1"), result("c1", message_id="m2")]
        first = await append(client, "s1", *batch)

        assert (await append(client, "s1", *batch))["messages"] == first["messages"]


class TestBranches:
    async def test_a_message_follows_the_one_before_it(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "m1"), said("Two.", "m2"))
        await append(client, "s1", said("Three.", "m3"))

        rows = await every_page(client, PATH)

        assert [row["parent_message_id"] for row in rows] == [None, "m1", "m2"]

    async def test_a_branch_goes_from_its_leaf_to_the_root(self, client: AsyncClient) -> None:
        await append(client, "s1", *(said(f"Turn {n}.", f"m{n}") for n in (1, 2, 3)))
        await append(
            client, "s1", said("Other.", "b1", parent_message_id="m1"), said("Further.", "b2")
        )
        await append(client, "s1", said("Fresh start.", "r1", parent_message_id=None))

        assert await ids(client, branch="m3") == ["m1", "m2", "m3"]
        assert await ids(client, branch="b2") == ["m1", "b1", "b2"]
        assert await ids(client, branch="b2", order="desc", limit=1) == ["b2", "b1", "m1"]
        assert await ids(client, branch="r1") == ["r1"]
        assert await ids(client, branch="m2") == ["m1", "m2"]
        problem(await client.get(PATH, params={"branch": "none"}), 404, "message_not_found")

    async def test_a_parent_may_stand_earlier_in_the_batch(self, client: AsyncClient) -> None:
        await append(
            client, "s1",
            said("Root.", "m1"), said("A.", "m2"), said("B.", "m3", parent_message_id="m1"),
        )  # fmt: skip

        assert await ids(client, branch="m3") == ["m1", "m3"]

    async def test_a_parent_of_another_session_is_none(self, client: AsyncClient) -> None:
        await append(client, "s2", said("Elsewhere.", "m1"))

        for parent in ("m1", "nobody", "m3"):
            document = await refused(
                client, 422, "parent_not_found",
                said("One.", "m2"), said("Two.", "m3", parent_message_id=parent),
            )  # fmt: skip
            assert fields(document) == ["body.messages.1.parent_message_id"]
        problem(await client.get(PATH, params={"branch": "m1"}), 404, "session_not_found")


class TestTools:
    async def test_a_result_answers_a_call_of_an_earlier_request(self, client: AsyncClient) -> None:
        await append(client, "s1", "What time is it?", calling("c1", "c2"))

        await append(client, "s1", result("c2"))
        await append(client, "s1", result("c1"))

        assert [row["tool_call_id"] for row in await every_page(client, PATH)] == [
            None, None, "c2", "c1",
        ]  # fmt: skip

    async def test_a_call_and_its_results_may_come_together(self, client: AsyncClient) -> None:
        stored = await append(client, "s1", calling("c1", "c2"), result("c1"), result("c2"))

        assert stored["created"] == 3
        assert stored["messages"][0]["tool_calls"] == calling("c1", "c2")["tool_calls"]

    @pytest.mark.parametrize(
        "batch",
        [
            [said("Hi."), result("c9")],
            [said("Hi."), result("done")],
            [result("open"), result("open")],
            [said("Hi."), result("c1"), calling("c1")],
        ],
        ids=["never called", "answered before", "answered twice", "answered before the call"],
    )
    async def test_a_result_without_an_open_call_is_refused(
        self, client: AsyncClient, batch
    ) -> None:
        await append(client, "s1", calling("open", "done"), result("done"))

        document = await refused(client, 422, "unknown_tool_call", *batch)

        assert fields(document) == ["body.messages.1.tool_call_id"]

    async def test_a_call_of_another_session_is_none(self, client: AsyncClient) -> None:
        await append(client, "s2", calling("c1"))

        await refused(client, 422, "unknown_tool_call", result("c1"))


class TestRead:
    async def test_pages_run_in_both_directions(self, client: AsyncClient) -> None:
        await append(client, "s1", *(f"Message {number}." for number in range(7)))

        assert await texts(client, limit=3) == [f"Message {number}." for number in range(7)]
        backwards = await texts(client, limit=3, order="desc")
        assert backwards == [f"Message {number}." for number in reversed(range(7))]

    async def test_messages_appended_while_paging_come_at_the_end(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", "One.", "Two.", "Three.")
        first = ok(await client.get(PATH, params={"limit": 2}))
        newest = ok(await client.get(PATH, params={"limit": 2, "order": "desc"}))

        await append(client, "s1", "Four.")

        rest = await texts(client, limit=2, cursor=first["next_cursor"])
        older = await texts(client, limit=2, order="desc", cursor=newest["next_cursor"])
        assert rest == ["Three.", "Four."]
        assert older == ["One."]

    async def test_a_list_can_be_narrowed(self, client: AsyncClient) -> None:
        await append(client, "s1", "Q1", {"role": "assistant", "content": "A1"})
        middle = await append(client, "s1", "Q2")
        await append(client, "s1", {"role": "system", "content": "S"}, "Q3")
        moment = middle["messages"][0]["create_time"]

        assert await texts(client, role="user") == ["Q1", "Q2", "Q3"]
        assert await texts(client, role="user", limit=1) == ["Q1", "Q2", "Q3"]
        assert await texts(client, since=moment) == ["Q2", "S", "Q3"]
        assert await texts(client, until=moment) == ["Q1", "A1"]
        assert await texts(client, since=moment, role="user") == ["Q2", "Q3"]
        assert await texts(client, since=moment, until=moment) == []

    async def test_a_time_without_a_zone_is_refused(self, client: AsyncClient) -> None:
        await append(client, "s1", "Hello.")

        response = await client.get(PATH, params={"since": "2026-01-01T00:00:00"})

        assert fields(problem(response, 422, "invalid_request")) == ["query.since"]

    async def test_a_message_is_of_its_session_and_tenant_alone(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await append(client, "s1", said("Hello.", "m1"))
        await append(client, "s2", said("Hello.", "m2"))
        await append(stranger, "s1", said("Hello.", "m3"))

        problem(await client.get(f"{PATH}/m2"), 404, "message_not_found")
        problem(await stranger.get(f"{PATH}/m1"), 404, "message_not_found")
        problem(await client.get("/sessions/none/messages"), 404, "session_not_found")
        problem(await stranger.get("/sessions/s2/messages"), 404, "session_not_found")


class TestDelete:
    async def test_one_message_goes_for_good(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "m1"), said("Two.", "m2"))

        receipt = ok(await client.delete(f"{PATH}/m1"))

        assert receipt == {"deleted": 1, "message_ids": ["m1"], "pairs": [], "dry_run": False}
        assert await texts(client) == ["Two."]
        problem(await client.get(f"{PATH}/m1"), 404, "message_not_found")
        problem(await client.delete(f"{PATH}/m1"), 404, "message_not_found")

    async def test_numbers_are_not_used_again(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "m1"), said("Two.", "m2"), said("Three.", "m3"))
        last = ok(await client.get(f"{PATH}/m3"))["create_time"]
        ok(await client.post(f"{PATH}/delete", json={"message_ids": ["m3", "m2"]}))

        await append(client, "s1", said("Four.", "m4"))

        assert await numbers(client) == [1, 4]
        assert ok(await client.get(f"{PATH}/m4"))["create_time"] > last
        ok(await client.delete(PATH, params={"confirm": True}))
        [message] = (await append(client, "s1", "Five."))["messages"]
        assert (message["sequence_no"], message["parent_message_id"]) == (5, None)

    async def test_several_go_or_none(self, client: AsyncClient) -> None:
        await append(client, "s1", *(said(f"Turn {n}.", f"m{n}") for n in range(5)))
        await append(client, "s2", said("Elsewhere.", "x1"))

        for stranger in ("x1", "none"):
            body = {"message_ids": ["m1", stranger]}
            response = await client.post(f"{PATH}/delete", json=body)
            assert problem(response, 404, "message_not_found")["message_id"] == stranger
        assert len(await ids(client)) == 5
        receipt = ok(await client.post(f"{PATH}/delete", json={"message_ids": ["m3", "m1", "m3"]}))

        assert receipt["message_ids"] == ["m1", "m3"]
        assert await ids(client) == ["m0", "m2", "m4"]

    async def test_the_oldest_go_first(self, client: AsyncClient) -> None:
        await append(client, "s1", *(said(f"Turn {n}.", f"m{9 - n}") for n in range(5)))

        counted = ok(await client.post(f"{PATH}/delete", json={"oldest": 2, "dry_run": True}))
        assert len(await ids(client)) == 5
        receipt = ok(await client.post(f"{PATH}/delete", json={"oldest": 2}))

        assert counted == receipt | {"dry_run": True}
        assert receipt["message_ids"] == ["m9", "m8"]
        assert await ids(client) == ["m7", "m6", "m5"]
        assert ok(await client.post(f"{PATH}/delete", json={"oldest": 9}))["deleted"] == 3

    @pytest.mark.parametrize(
        "body", [{}, {"message_ids": ["m1"], "oldest": 1}, {"message_ids": []}, {"oldest": 0}]
    )
    async def test_one_selector_is_needed(self, client: AsyncClient, body) -> None:
        await append(client, "s1", said("One.", "m1"))

        problem(await client.post(f"{PATH}/delete", json=body), 422, "invalid_request")

        assert await ids(client) == ["m1"]

    async def test_all_of_a_session_goes_when_confirmed(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "b"), said("Two.", "a"))
        await append(client, "s2", "Elsewhere.")

        asked = problem(await client.delete(PATH), 409, "confirmation_required")
        counted = ok(await client.delete(PATH, params={"dry_run": True}))
        assert await ids(client) == ["b", "a"]
        gone = ok(await client.delete(PATH, params={"confirm": True}))

        assert asked["holds"] == {"messages": 2}
        assert counted == gone | {"dry_run": True}
        assert gone["message_ids"] == ["b", "a"]
        assert await ids(client) == []
        assert len(await every_page(client, "/sessions/s2/messages")) == 1
        assert ok(await client.delete(PATH))["deleted"] == 0

    @pytest.mark.parametrize("chosen", ["call", "r1", "r2"])
    async def test_a_call_and_its_results_go_together(self, client: AsyncClient, chosen) -> None:
        await append(
            client, "s1",
            said("Before.", "m1"), calling("c1", "c2", message_id="call"),
            result("c1", message_id="r1"), result("c2", message_id="r2"),
            calling("c3", message_id="other"), result("c3", message_id="r3"),
        )  # fmt: skip

        receipt = ok(await client.delete(f"{PATH}/{chosen}"))

        assert receipt["message_ids"] == ["call", "r1", "r2"]
        assert receipt["pairs"] == sorted({"call", "r1", "r2"} - {chosen})
        assert await ids(client) == ["m1", "other", "r3"]

    async def test_the_oldest_take_their_other_halves_along(self, client: AsyncClient) -> None:
        await append(
            client, "s1",
            calling("c1", message_id="call"), said("Between.", "m1"), result("c1", message_id="r1"),
        )  # fmt: skip

        receipt = ok(await client.post(f"{PATH}/delete", json={"oldest": 1}))

        assert (receipt["deleted"], receipt["pairs"]) == (2, ["r1"])
        assert await ids(client) == ["m1"]

    async def test_children_move_up_to_the_nearest_ancestor_that_stays(
        self, client: AsyncClient
    ) -> None:
        await append(client, "s1", *(said(f"Turn {n}.", f"m{n}") for n in range(1, 6)))
        await append(client, "s1", said("Aside.", "b1", parent_message_id="m3"))

        ok(await client.post(f"{PATH}/delete", json={"message_ids": ["m2", "m3"]}))

        assert await ids(client, branch="m5") == ["m1", "m4", "m5"]
        assert await ids(client, branch="b1") == ["m1", "b1"]
        ok(await client.delete(f"{PATH}/m1"))
        parents = {
            row["message_id"]: row["parent_message_id"] for row in await every_page(client, PATH)
        }
        assert parents == {"m4": None, "m5": "m4", "b1": None}

    async def test_an_ended_session_lets_go_of_messages(self, client: AsyncClient) -> None:
        await append(client, "s1", said("One.", "m1"))
        ok(await client.post("/sessions/s1/end"))

        assert ok(await client.delete(f"{PATH}/m1"))["deleted"] == 1


class TestKeptAnswers:
    async def test_a_deleted_message_is_not_told_again_by_the_answer_of_its_append(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for name, text in (("gone", "The secret ladder."), ("stays", "The open door.")):
            body = {"user_id": "ana", "messages": [said(text, name)]}
            ok(await client.post(PATH, json=body, headers={"Idempotency-Key": name}), 201)

        ok(await client.post(f"{PATH}/delete", json={"message_ids": ["gone"]}))

        rows = await dump(dsn, acme.tenant_id)
        assert tables_with("secret ladder", rows) == []
        assert tables_with("open door", rows) == ["idempotency_keys", "messages"]
