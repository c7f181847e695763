"""LangGraph's checkpoints through the public routes."""

import zlib

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.runtime import Runtime
from tests.checkpoints.saver_support import (
    b64,
    body,
    content,
    digest,
    held,
    listed,
    put,
    rows,
    value,
    write,
)  # fmt: skip
from tests.support.api import fields, ok, problem
from tests.support.rows import for_each
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key


class TestPutting:
    async def test_the_first_checkpoint_opens_the_session(self, client: AsyncClient) -> None:
        put_one = ok(await put(client, "c1", agent_id="helper", namespace="子图:1|b"))

        assert put_one == {"session_id": "trip", "namespace": "子图:1|b", "checkpoint_id": "c1"}
        session = ok(await client.get("/sessions/trip"))
        assert (session["user_id"], session["agent_id"]) == ("ana", "helper")

    async def test_without_a_user_no_session_is_opened(self, client: AsyncClient) -> None:
        refused = await put(client, "c1", user_id=None)

        assert fields(problem(refused, 422, "user_required")) == ["body.user_id"]
        problem(await client.get("/sessions/trip"), 404, "session_not_found")

    async def test_a_checkpoint_comes_back_with_everything(self, client: AsyncClient) -> None:
        pieces = {"messages": [b"a" * 3000, b"b" * 3000], "plan": ["看枫叶".encode()], "none": []}
        ok(await put(client, "c1"))
        ok(
            await put(
                client, "c2", "c1", values=pieces,
                checkpoint={"type": "json", "data": b64(b'{"nul": "\\u0000"}')},
                metadata={"source": "update", "step": 2, "run_id": "r1", "看": [1.5, None]},
            )
        )  # fmt: skip

        page = ok(await client.get("/sessions/trip/saver/checkpoints", params={"limit": 1}))

        [step] = page["items"]
        assert step.pop("create_time").endswith("Z")
        assert step == {
            "session_id": "trip", "thread_id": "trip", "namespace": "", "checkpoint_id": "c2",
            "parent_id": "c1", "run_id": "r1",
            "checkpoint": {"type": "json", "data": b64(b'{"nul": "\\u0000"}')},
            "metadata": {"source": "update", "step": 2, "run_id": "r1", "看": [1.5, None]},
            "values": {name: value(*parts) for name, parts in pieces.items()},
            "writes": [],
        }  # fmt: skip
        assert await held(client, limit=1) == [
            {"messages": b"a" * 3000 + b"b" * 3000, "plan": "看枫叶".encode(), "none": b""}
        ]

    async def test_unchanged_channels_are_stored_once(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        """A hundred steps of a constant channel take one value."""
        ok(await put(client, "c000", values={"constant": [b"x" * 9000], "n": [b"0"]}))
        for number in range(1, 20):
            step = await put(
                client, f"c{number:03}", f"c{number - 1:03}",
                kept=["constant"], values={"n": [str(number).encode()]},
            )  # fmt: skip
            ok(step)

        assert await rows(dsn, acme.tenant_id) == {
            "saver_checkpoints": 20, "saver_values": 21, "saver_chunks": 21, "saver_writes": 0,
        }  # fmt: skip
        assert all(one["constant"] == b"x" * 9000 for one in await held(client))

    async def test_a_piece_that_is_stored_need_not_be_sent_again(self, client: AsyncClient) -> None:
        ok(await put(client, "c1", values={"list": [b"one", b"two"]}))

        grown = await put(
            client, "c2", "c1",
            values={"list": [b"one", b"two", b"three"]}, content=content(b"three"),
        )  # fmt: skip

        ok(grown)
        assert await held(client, limit=1) == [{"list": b"onetwothree"}]

    async def test_content_taken_for_stored_is_asked_for_and_nothing_is_written(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"]}))
        before = await rows(dsn, acme.tenant_id)

        lost = await put(client, "c2", "c1", values={"a": [b"one", b"two"]}, content={})
        unknown = await put(client, "c2", "c1", kept=["a", "b"])
        rootless = await put(client, "c3", kept=["a"])

        told = problem(lost, 409, "saver_content_missing")
        assert (told["channels"], told["chunks"]) == ([], [digest(b"two")])
        told = problem(unknown, 409, "saver_content_missing")
        assert (told["channels"], told["chunks"]) == (["b"], [])
        assert problem(rootless, 409, "saver_content_missing")["channels"] == ["a"]
        assert await rows(dsn, acme.tenant_id) == before

    async def test_chunks_of_another_session_are_not_used(self, client: AsyncClient) -> None:
        """Otherwise a digest would tell what somebody else has stored."""
        ok(await put(client, "c1", values={"a": [b"secret"]}, session="other"))

        guessed = await put(client, "c1", values={"a": [b"secret"]}, content={})

        problem(guessed, 409, "saver_content_missing")

    async def test_a_put_that_is_repeated_is_the_same_put(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for _ in range(2):
            ok(await put(client, "c1", values={"a": [b"one"]}))
            ok(await write(client, "c1", "hello"))

        assert list((await rows(dsn, acme.tenant_id)).values()) == [1, 1, 1, 1]

    async def test_second_put_with_the_same_id_replaces_the_checkpoint_completely(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"], "b": [b"shared"]}))
        ok(await put(client, "c1", values={"a": [b"two"], "b": [b"shared"]}))

        assert await held(client) == [{"a": b"two", "b": b"shared"}]
        assert list((await rows(dsn, acme.tenant_id)).values()) == [1, 2, 2, 0]

    async def test_namespaces_that_read_alike_when_joined_stay_apart(
        self, client: AsyncClient
    ) -> None:
        for session, namespace in (("a", "b:c"), ("a:b", "c"), ("a", "b|c"), ("a", "")):
            ok(
                await put(
                    client, "c1", session=session, namespace=namespace,
                    values={"x": [f"{session}/{namespace}".encode()]},
                )
            )  # fmt: skip

        assert await held(client, "a", namespace="b:c") == [{"x": b"a/b:c"}]
        assert await held(client, "a:b") == [{"x": b"a:b/c"}]
        assert await held(client, "a", namespace="b|c") == [{"x": b"a/b|c"}]
        assert len(await held(client, "a")) == 3

    @pytest.mark.parametrize("parent", ["gone", "c1"])
    async def test_a_checkpoint_without_its_parent_is_refused(
        self, client: AsyncClient, parent: str
    ) -> None:
        ok(await put(client, "c0"))

        refused = await put(client, "c1", parent)

        assert problem(refused, 404, "saver_checkpoint_not_found")["checkpoint_id"] == parent

    async def test_parent_in_another_namespace_is_not_found(self, client: AsyncClient) -> None:
        ok(await put(client, "c1", namespace="child"))

        problem(await put(client, "c2", "c1"), 404, "saver_checkpoint_not_found")

    async def test_put_into_an_ended_or_foreign_session_is_refused(
        self, client: AsyncClient
    ) -> None:
        ok(await put(client, "c1"))
        problem(await put(client, "c2", "c1", user_id="bob"), 409, "session_mismatch")
        ok(await client.post("/sessions/trip/end"))

        problem(await put(client, "c2", "c1"), 409, "session_ended")
        problem(await write(client, "c1", "late"), 409, "session_ended")
        assert await listed(client) == ["c1"]
        ok(await client.delete("/sessions/trip/saver"), 204)

    async def test_a_disabled_user_is_read_and_not_written(self, client: AsyncClient) -> None:
        ok(await put(client, "c1"))
        ok(await client.patch("/users/ana", json={"status": "disabled"}))

        problem(await put(client, "c2", "c1"), 409, "disabled")
        problem(await write(client, "c1", "late"), 409, "disabled")
        assert await listed(client) == ["c1"]

    async def test_switched_off_nothing_is_written_and_all_is_read_and_deleted(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1"))
        async with (
            service(dsn, enabled=False) as off,
            client_of(off, acme.key) as caller,
        ):
            problem(await put(caller, "c2", "c1"), 503, "memory_disabled")
            problem(await write(caller, "c1", "x"), 503, "memory_disabled")
            copy = {"target_session_id": "trip-2"}
            copied = await caller.post("/sessions/trip/saver/copy", json=copy)
            problem(copied, 503, "memory_disabled")
            assert await listed(caller) == ["c1"]
            ok(await caller.delete("/sessions/trip/saver"), 204)


class TestContent:
    async def put_content(self, client: AsyncClient, sent: dict[str, str], *names: str):
        values = {"a": {"type": "raw", "chunks": list(names)}}
        return await client.put(
            "/sessions/trip/saver/checkpoints/c1", json=body() | {"values": values, "content": sent}
        )

    @pytest.mark.parametrize(
        ("packed", "why"),
        [
            (b"no zlib", "is not compressed with zlib"),
            (zlib.compress(b"other"), "does not have this digest"),
            (zlib.compress(b"one")[:-2], "is not one whole zlib stream"),
            (zlib.compress(b"one") + b"more", "is not one whole zlib stream"),
        ],
    )
    async def test_chunk_with_a_wrong_digest_is_refused(
        self, client: AsyncClient, packed: bytes, why: str
    ) -> None:
        name = digest(b"one")

        refused = await self.put_content(client, {name: b64(packed)}, name)

        told = problem(refused, 422, "invalid_request")
        assert told["errors"] == [{"location": ["body", "content", name], "detail": why}]
        problem(await client.get("/sessions/trip"), 404, "session_not_found")

    @pytest.mark.parametrize(("size", "status"), [(65_535, 200), (65_536, 200), (65_537, 422)])
    async def test_a_chunk_has_at_most_64_kib(
        self, client: AsyncClient, size: int, status: int
    ) -> None:
        piece = bytes(size)

        answer = await self.put_content(client, content(piece), digest(piece))

        assert answer.status_code == status, answer.text

    @pytest.mark.parametrize(("count", "status"), [(255, 200), (256, 200), (257, 422)])
    async def test_all_chunks_of_a_request_have_at_most_16_mib(
        self, client: AsyncClient, count: int, status: int
    ) -> None:
        pieces = [number.to_bytes(2, "big") + bytes(65_534) for number in range(count)]

        answer = await self.put_content(client, content(*pieces), *map(digest, pieces))

        assert answer.status_code == status, answer.text

    @for_each(
        ("change", "field"),
        [
            ({"content": {digest(b"x"): "no base64!"}}, f"body.content.{digest(b'x')}"),
            ({"content": {"abc": ""}}, "body.content.abc.[key]"),
            ({"checkpoint": {"type": "raw", "data": 5}}, "body.checkpoint.data"),
            ({"metadata": {"a": "nul \x00"}}, "body.metadata"),
            ({"kept": ["nul \x00"]}, "body.kept.0"),
            ({"values": {"a": {"type": "", "chunks": []}}}, "body.values.a.type"),
            ({"unknown": 1}, "body.unknown"),
        ],
    )
    async def test_invalid_field_is_refused_and_named(
        self, client: AsyncClient, change, field
    ) -> None:
        """NUL in metadata is refused; in blobs it is kept."""
        refused = await client.put("/sessions/trip/saver/checkpoints/c1", json=body() | change)

        assert fields(problem(refused, 422, "invalid_request")) == [field]

    async def test_a_body_over_two_mebibytes_is_refused(self, client: AsyncClient) -> None:
        blob = {"type": "raw", "data": b64(bytes(1_600_000))}

        problem(await put(client, "c1", checkpoint=blob), 413, "body_too_large")


class TestWrites:
    async def test_they_come_in_the_order_in_which_langgraph_applies_them(
        self, client: AsyncClient
    ) -> None:
        ok(await put(client, "c1"))
        ok(await write(client, "c1", "x", "y", task="a", task_path="~2"))
        ok(await write(client, "c1", "z", task="b", task_path="~10"))
        ok(await write(client, "c1", "w", task="c"))
        ok(await write(client, "c1", "v", task="a", task_path="~2", first=-3))

        [step] = ok(await client.get("/sessions/trip/saver/checkpoints"))["items"]

        places = [(one["task_path"], one["task_id"], one["index"]) for one in step["writes"]]
        assert places == [("", "c", 0), ("~10", "b", 0), ("~2", "a", -3), ("~2", "a", 0), ("~2", "a", 1)]  # fmt: skip # noqa: E501

    async def test_the_first_stays_but_in_langgraphs_own_channels(
        self, client: AsyncClient
    ) -> None:
        ok(await put(client, "c1"))
        for text in ("first", "last"):
            ok(await write(client, "c1", text))
            ok(await write(client, "c1", text, first=-4))
            # Twice in one request too.
            doubled = [
                {"index": index, "channel": text, "type": "raw", "data": ""}
                for index in (7, -1) for text in ("first", "last")
            ]  # fmt: skip
            ok(await write(client, "c1", writes=doubled))

        [step] = ok(await client.get("/sessions/trip/saver/checkpoints"))["items"]
        told = {one["index"]: (one["channel"], one["data"]) for one in step["writes"]}
        assert told == {
            0: ("messages", b64(b"first")), -4: ("messages", b64(b"last")),
            7: ("first", ""), -1: ("last", ""),
        }  # fmt: skip

    async def test_they_never_come_before_their_checkpoint(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        problem(await write(client, "c1", "early"), 404, "session_not_found")
        ok(await put(client, "c1"))

        problem(await write(client, "c2", "early"), 404, "saver_checkpoint_not_found")
        problem(
            await write(client, "c1", "x", namespace="child"), 404, "saver_checkpoint_not_found"
        )
        assert (await rows(dsn, acme.tenant_id))["saver_writes"] == 0


class TestListing:
    @pytest.fixture
    async def thread(self, client: AsyncClient) -> AsyncClient:
        parent = None
        for number in range(5):
            source = "input" if number % 2 else "loop"
            ok(
                await put(
                    client, f"c{number}", parent, values={"n": [str(number).encode()]},
                    metadata={"source": source, "step": number, "who": {"name": "安娜", "n": 1}},
                )
            )  # fmt: skip
            parent = f"c{number}"
        ok(await put(client, "c2", namespace="child"))
        return client

    @for_each(
        ("params", "expected"),
        [
            ({}, ["c4", "c3", "c2", "c2", "c1", "c0"]),
            ({"namespace": ""}, ["c4", "c3", "c2", "c1", "c0"]),
            ({"namespace": "child"}, ["c2"]),
            ({"namespace": "", "limit": 2}, ["c4", "c3"]),
            ({"namespace": "", "before": "c3"}, ["c2", "c1", "c0"]),
            ({"namespace": "", "checkpoint_id": "c1"}, ["c1"]),
            ({"checkpoint_id": "c9"}, []),
            ({"filter": '{"source": "input"}'}, ["c3", "c1"]),
            ({"filter": '{"source": "loop", "step": 4}'}, ["c4"]),
            ({"filter": '{"who": {"name": "安娜"}}', "before": "c1"}, ["c0"]),
            ({"filter": '{"who": null}'}, []),
            ({"filter": "{}", "namespace": "child"}, ["c2"]),
        ],
    )
    async def test_list_of_checkpoints_can_be_narrowed(
        self, thread: AsyncClient, params, expected
    ) -> None:
        assert await listed(thread, **params) == expected

    async def test_pages_cover_namespaces_and_sessions_in_order(self, thread: AsyncClient) -> None:
        ok(await thread.post("/sessions/trip/saver/copy", json={"target_session_id": "trip-2"}))
        seen = []
        cursor: dict[str, str] = {}
        while True:
            page = ok(await thread.get("/saver/checkpoints", params={"limit": 5} | cursor))
            seen += [
                (one["checkpoint_id"], one["session_id"], one["namespace"]) for one in page["items"]
            ]
            wanted = {
                name
                for one in page["items"]
                for v in one["values"].values()
                for name in v["chunks"]
            }
            assert page["content"].keys() == wanted
            if page["next_cursor"] is None:
                break
            cursor = {"cursor": page["next_cursor"]}

        assert len(seen) == len(set(seen)) == 12
        assert seen == sorted(seen, reverse=True)

    @pytest.mark.parametrize("text", ["no json", "[]", '"a"', "[" * 3000, '{"a": "\\u0000"}'])
    async def test_a_filter_is_an_object(self, thread: AsyncClient, text: str) -> None:
        refused = await thread.get("/sessions/trip/saver/checkpoints", params={"filter": text})

        assert fields(problem(refused, 422, "invalid_request")) == ["query.filter"]

    @pytest.mark.parametrize("text", ["no cursor", "W10=", "WyJhIiwxLCJiIl0=", "bnVsbA==", "é"])
    async def test_foreign_cursor_is_refused(self, thread: AsyncClient, text: str) -> None:
        refused = await thread.get("/sessions/trip/saver/checkpoints", params={"cursor": text})

        problem(refused, 422, "invalid_cursor")

    async def test_an_unknown_session_is_none(self, client: AsyncClient) -> None:
        problem(await client.get("/sessions/x/saver/checkpoints"), 404, "session_not_found")


class TestAccess:
    async def test_another_tenant_neither_sees_nor_changes_anything(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"]}, metadata={"run_id": "r1"}))

        problem(await stranger.get("/sessions/trip/saver/checkpoints"), 404, "session_not_found")
        problem(await stranger.delete("/sessions/trip/saver"), 404, "session_not_found")
        assert ok(await stranger.get("/saver/checkpoints"))["items"] == []
        prune = {"session_ids": ["trip"], "strategy": "delete"}
        assert ok(await stranger.post("/saver/prune", json=prune)) == {"checkpoints": 0}
        runs = {"run_ids": ["r1"]}
        assert ok(await stranger.post("/saver/runs/delete", json=runs)) == {"checkpoints": 0}
        assert await held(client) == [{"a": b"one"}]

    async def test_a_key_of_a_user_or_an_agent_reaches_their_threads_alone(
        self, app: FastAPI, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        ok(await put(client, "c1", agent_id="a1", metadata={"run_id": "r1"}))
        ok(await put(client, "c1", session="bobs", user_id="bob", agent_id="a2", metadata={"run_id": "r1"}))  # fmt: skip # noqa: E501
        for restriction, mine, theirs in (
            ({"user_id": "bob"}, "bobs", "trip"),
            ({"agent_id": "a1"}, "trip", "bobs"),
        ):
            key = await make_key(runtime, acme.tenant_id, "write", **restriction)
            async with client_of(app, key.key) as caller:
                path = f"/sessions/{theirs}/saver/checkpoints"
                problem(await caller.get(path), 404, "session_not_found")
                [seen] = ok(await caller.get("/saver/checkpoints"))["items"]
                assert seen["session_id"] == mine
                problem(
                    await put(caller, "c2", "c1", session=theirs, user_id=None),
                    404,
                    "session_not_found",
                )
                problem(await write(caller, "c1", "x", session=theirs), 404, "session_not_found")
                prune = {"session_ids": [theirs], "strategy": "delete"}
                assert ok(await caller.post("/saver/prune", json=prune)) == {"checkpoints": 0}

        key = await make_key(runtime, acme.tenant_id, "write", user_id="bob")
        async with client_of(app, key.key) as caller:
            # Named by nobody: the key says whose it is.
            ok(await put(caller, "c1", session="bob:2", user_id=None))
            runs = {"run_ids": ["r1"]}
            assert ok(await caller.post("/saver/runs/delete", json=runs)) == {"checkpoints": 1}
        assert await listed(client) == ["c1"]

    async def test_an_erased_person_takes_everything_along(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await put(client, "c1", values={"a": [b"one"]}))
        ok(await write(client, "c1", "hello"))

        ok(await client.delete("/users/ana", params={"confirm": "true"}))

        assert list((await rows(dsn, acme.tenant_id)).values()) == [0, 0, 0, 0]
