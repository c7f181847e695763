"""What is sent: the same by both clients, nothing that was not said, nothing that is no JSON."""

import asyncio
import contextlib
import inspect
import json
import math
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta, timezone
from types import MappingProxyType
from urllib.parse import parse_qs, urlsplit

import pytest

import kemem
from kemem import AsyncMemory, Memory
from tests.support.either_client import ask
from tests.support.flaky_server import says

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)
SEED = {
    "add": ["messages", "user_id", "agent_id", "session_id", "metadata", "infer", "memory_type",
            "prompt"],
    "get": ["memory_id"],
    "get_all": ["user_id", "agent_id", "session_id", "filters", "limit"],
    "search": ["query", "user_id", "agent_id", "session_id", "limit", "filters", "threshold",
               "rerank"],
    "delete": ["memory_id"],
    "delete_all": ["user_id", "agent_id", "session_id", "filters"],
}  # fmt: skip


def test_positional_parameters_have_a_fixed_order() -> None:
    for name, parameters in SEED.items():
        for kind in (Memory, AsyncMemory):
            signature = inspect.signature(getattr(kind, name))
            positional = [
                one.name
                for one in signature.parameters.values()
                if one.kind is one.POSITIONAL_OR_KEYWORD
            ]
            assert positional == ["self", *parameters], name
    search = inspect.signature(Memory.search).parameters
    assert (search["limit"].default, search["rerank"].default) == (100, True)
    assert inspect.signature(Memory.add).parameters["infer"].default is True
    assert inspect.signature(Memory.get_all).parameters["limit"].default == 100


def test_every_exported_name_exists() -> None:
    assert sorted(kemem.__all__) == kemem.__all__
    for name in kemem.__all__:
        assert hasattr(kemem, name)


EMPTY = says({"results": [], "items": [], "next_cursor": None})


async def sent(server, method, *arguments, **named):
    """The request that a call made, whatever its answer."""
    server.otherwise = EMPTY
    server.requests.clear()
    with contextlib.suppress(kemem.UnexpectedAnswerError):
        await ask(method, *arguments, **named)
    return server.requests[-1]


@pytest.mark.parametrize(
    "messages",
    ["She drinks tea.", {"role": "user", "content": "Tea."},
     [{"role": "user", "content": "她喝茶。"}, {"role": "assistant", "content": "Noted."}]],
)  # fmt: skip
async def test_text_message_and_list_are_sent_unchanged(server, memory, messages) -> None:
    request = await sent(server, memory.add, messages, user_id="ana")

    assert request.json == {"messages": messages, "user_id": "ana", "infer": True}
    assert (request.method, request.path) == ("POST", "/v1/memories")
    assert request.headers["User-Agent"].startswith("kemem-python/")


async def test_other_sequences_and_mappings_are_accepted(server, memory) -> None:
    message: Mapping[str, str] = MappingProxyType({"role": "user", "content": "Tea."})

    request = await sent(server, memory.add, (message,), user_id="ana")

    assert request.json["messages"] == [dict(message)]


async def test_add_sends_every_parameter(server, memory) -> None:
    request = await sent(
        server, memory.add, "Tea.", "ana", "helper", "s1", {"topic": "tea"}, False, "short",
        "Only drinks.", scope="session", project_id="p1", on_duplicate="return", confidence=0.9,
        valid_from=NOON, evidence=("m1",), tier=None,
    )  # fmt: skip

    assert request.json == {
        "messages": "Tea.", "user_id": "ana", "agent_id": "helper", "session_id": "s1",
        "metadata": {"topic": "tea"}, "infer": False, "memory_type": "short",
        "prompt": "Only drinks.", "scope": "session", "project_id": "p1",
        "on_duplicate": "return", "confidence": 0.9, "valid_from": "2026-11-21T12:00:00+00:00",
        "evidence": ["m1"],
    }  # fmt: skip


async def test_add_with_async_returns_a_job(server, memory) -> None:
    server.script(says({"job_id": "job_1", "status": "pending", "due_at": "2026-11-21T12:00:00Z"}))

    job = await ask(memory.add, "Tea.", user_id="ana", async_=True)

    assert type(job) is kemem.Job
    assert (job.job_id, job.due_at) == ("job_1", NOON)
    assert server.requests[0].path == "/v1/memories?async=true"


async def test_search_sends_every_parameter(server, memory) -> None:
    request = await sent(
        server, memory.search, "tea?", "ana", "helper", "s1", 5,
        {"create_time": {"gte": NOON}}, 0.3, False, scopes=["user"], as_of=NOON,
        known_at=NOON - timedelta(days=1), explain=True, memory_type="fact", project_id="p1",
        tier="long",
    )  # fmt: skip

    assert request.json == {
        "query": "tea?", "user_id": "ana", "agent_id": "helper", "session_id": "s1", "limit": 5,
        "filters": {"create_time": {"gte": "2026-11-21T12:00:00+00:00"}}, "threshold": 0.3,
        "rerank": False, "scopes": ["user"], "as_of": "2026-11-21T12:00:00+00:00",
        "known_at": "2026-11-20T12:00:00+00:00", "explain": True, "memory_type": "fact",
        "project_id": "p1", "tier": "long",
    }  # fmt: skip


async def test_run_and_session_are_sent_by_their_names(server, memory) -> None:
    for method, arguments in ((memory.search, ("tea?",)), (memory.delete_all, ())):
        request = await sent(server, method, *arguments, session_id="s1", run_id="r1")
        assert (request.json["session_id"], request.json["run_id"]) == ("s1", "r1")
        alone = await sent(server, method, *arguments, run_id="r1")
        assert "session_id" not in alone.json
    server.otherwise = says({"items": [], "next_cursor": None})
    listed = await sent(server, memory.get_all, session_id="s1", run_id="r1")
    assert "session_id=s1&run_id=r1" in listed.path


async def test_none_is_sent_by_update_only(server, memory) -> None:
    request = await sent(server, memory.update, "mem_1", valid_to=None, metadata={})
    assert request.json == {"valid_to": None, "metadata": {}}
    assert (request.method, request.path) == ("PATCH", "/v1/memories/mem_1")

    request = await sent(server, memory.supersede, "mem_1", "Coffee.", valid_to=None)
    assert request.json == {"content": "Coffee."}


async def test_list_sends_only_given_parameters(server, memory) -> None:
    request = await sent(
        server, memory.get_all, user_id="ana", filters={"metadata.topic": "茶"}, as_of=NOON
    )
    query = parse_qs(urlsplit(request.path).query)

    assert json.loads(query.pop("filters")[0]) == {"metadata.topic": "茶"}
    assert query == {"user_id": ["ana"], "limit": ["100"], "as_of": ["2026-11-21T12:00:00+00:00"]}


async def test_bulk_deletion_sends_confirm(server, memory) -> None:
    request = await sent(server, memory.delete_all, "ana", filters={"memory_type": "event"})
    assert request.json == {
        "user_id": "ana", "filters": {"memory_type": "event"}, "confirm": False, "dry_run": False,
    }  # fmt: skip
    assert request.path == "/v1/memories/delete"
    assert request.headers["Idempotency-Key"]

    server.script(says({"selected": 20_000, "job_id": "job_1"}, 202))
    deleted = await ask(memory.delete_all, "ana", confirm=True)
    assert (deleted.deleted, deleted.selected, deleted.job_id) == (0, 20_000, "job_1")


async def test_append_accepts_text_message_and_list(server, memory) -> None:
    said = {"role": "user", "content": "Hi."}
    for messages in ("Hi.", said, [said], (said,)):
        request = await sent(server, memory.append, "s/1", messages, user_id="ana")
        assert request.json == {"messages": [said], "user_id": "ana"}
        assert request.path == "/v1/sessions/s%2F1/messages"


@pytest.mark.parametrize("name", ["", ".", ".."])
async def test_id_that_would_change_the_path_is_refused(server, memory, name) -> None:
    for method in (memory.get, memory.delete, memory.history, memory.end, memory.job):
        with pytest.raises(ValueError, match="an id"):
            await ask(method, name)
    assert server.requests == []


@pytest.mark.parametrize(("wrong", "error"), [("", ValueError), (7, TypeError)])
async def test_malformed_id_is_refused_in_every_parameter(server, memory, wrong, error) -> None:
    for name in ("user_id", "agent_id", "session_id", "project_id"):
        named = {name: wrong}
        for method, arguments in (
            (memory.add, ("Tea.",)), (memory.search, ("tea?",)), (memory.get_all, ()),
            (memory.delete_all, ()), (memory.append, ("s1", "Hi.")),
        ):  # fmt: skip
            if method == memory.append and name == "session_id":
                continue
            with pytest.raises(error, match="an id"):
                await ask(method, *arguments, **named)
        with pytest.raises(error, match="an id"):
            await ask(memory.add, "Tea.", async_=True, **named)
    with pytest.raises(error, match="an id"):
        await ask(memory.search, "tea?", run_id=wrong)
    with pytest.raises(error, match="an id"):
        await ask(memory.get_all, run_id=wrong)
    with pytest.raises(error, match="an id"):
        await ask(memory.delete_all, run_id=wrong)
    with pytest.raises(error, match="an id"):
        await ask(memory.restore, "mem_1", wrong)
    for method in (memory.get, memory.job, memory.end):
        with pytest.raises(error, match="an id"):
            await ask(method, wrong)
    assert server.requests == []


async def test_unknown_parameter_is_sent_by_methods_with_options(server, memory) -> None:
    for method, arguments in (
        (memory.add, ("Tea.",)), (memory.search, ("tea?",)), (memory.update, ("mem_1",)),
        (memory.supersede, ("mem_1", "Tea.")), (memory.delete_all, ()),
    ):  # fmt: skip
        assert (await sent(server, method, *arguments, mood="merry")).json["mood"] == "merry"
    request = await sent(server, memory.get_all, mood="merry", deep=True, steps=3)
    query = parse_qs(urlsplit(request.path).query)
    assert (query["mood"], query["deep"], query["steps"]) == (["merry"], ["true"], ["3"])


async def test_unknown_parameter_is_refused_by_methods_without_options(server, memory) -> None:
    for method, arguments in (
        (memory.get, ("mem_1",)), (memory.delete, ("mem_1",)), (memory.history, ("mem_1",)),
        (memory.restore, ("mem_1", "his_1")), (memory.feedback, ("mem_1", "wrong")),
        (memory.append, ("s1", "Hi.")), (memory.messages, ("s1",)), (memory.extract, ("s1",)),
        (memory.end, ("s1",)), (memory.reopen, ("s1",)), (memory.job, ("job_1",)),
        (memory.usage, ()),
    ):  # fmt: skip
        with pytest.raises(TypeError, match="mood"):
            await ask(method, *arguments, mood="merry")
    assert server.requests == []


@pytest.mark.parametrize(
    ("name", "path"),
    [("../users/ana", "..%2Fusers%2Fana"), ("a?hard=true", "a%3Fhard%3Dtrue"), ("a#b", "a%23b"),
     ("a b", "a%20b"), ("ключ", "%D0%BA%D0%BB%D1%8E%D1%87"), ("a%2Fb", "a%252Fb")],
)  # fmt: skip
async def test_id_is_escaped_in_the_path(server, memory, name, path) -> None:
    request = await sent(server, memory.delete, name)

    assert request.path == f"/v1/memories/{path}"


@pytest.mark.parametrize(
    "metadata",
    [{"x": math.nan}, {"x": datetime(2026, 1, 1)}, {"x": object()}, {"x": "\ud800"}],  # noqa: DTZ001
)
async def test_body_that_is_no_json_is_refused_before_sending(server, memory, metadata) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        await ask(memory.add, "My secret words.", user_id="ana", metadata=metadata)

    assert "secret" not in str(raised.value)
    assert server.requests == []


@pytest.mark.parametrize(
    ("value", "error"),
    [(object(), TypeError), (datetime(2026, 1, 1), ValueError), (math.nan, ValueError)],  # noqa: DTZ001
)
async def test_malformed_query_is_refused_before_sending(server, memory, value, error) -> None:
    for method, named in ((memory.get_all, {"as_of": value}), (memory.usage, {"since": value})):
        with pytest.raises(error):
            await ask(method, **named)
    assert server.requests == []


async def test_datetimes_of_any_zone_and_dates_are_sent(server, memory) -> None:
    evening = datetime(2026, 11, 21, 20, tzinfo=timezone(timedelta(hours=8)))
    request = await sent(server, memory.messages, "s1", since=evening, order="desc", role="user")
    assert parse_qs(urlsplit(request.path).query) == {
        "limit": ["100"], "order": ["desc"], "role": ["user"],
        "since": ["2026-11-21T20:00:00+08:00"],
    }  # fmt: skip

    request = await sent(server, memory.usage, since=date(2026, 11, 1))
    assert request.path == "/v1/usage?since=2026-11-01"


def page(first: int, count: int, cursor: str | None):
    rows = [{"memory_id": f"mem_{n}", "content": "Tea."} for n in range(first, first + count)]
    return says({"items": rows, "next_cursor": cursor})


def queries(server) -> list[dict[str, list[str]]]:
    return [parse_qs(urlsplit(one.path).query) for one in server.requests]


@pytest.mark.parametrize(
    ("limit", "pages", "sizes"),
    [(1, 1, "1"), (99, 1, "99"), (100, 1, "100"), (101, 2, "100"), (200, 2, "100"),
     (201, 3, "100"), (None, 3, "100")],
)  # fmt: skip
async def test_pages_are_fetched_up_to_the_limit(server, memory, limit, pages, sizes) -> None:
    first = min(limit or 100, 100)
    server.script(page(0, first, "c1"), page(100, 100, "c2"), page(200, 50, None))

    found = await ask(memory.get_all, user_id="ana", limit=limit)

    assert len(found) == (250 if limit is None else min(limit, 250))
    assert [one.memory_id for one in found] == [f"mem_{n}" for n in range(len(found))]
    assert len(server.requests) == pages
    cursors = [query.get("cursor", [None])[0] for query in queries(server)]
    assert cursors == [None, "c1", "c2"][:pages]
    assert all(query["limit"] == [sizes] for query in queries(server))
    assert all(query["user_id"] == ["ana"] for query in queries(server))


@pytest.mark.parametrize("limit", [0, -1])
async def test_limit_below_one_is_refused(server, memory, limit) -> None:
    for method, arguments in (
        (memory.get_all, ()), (memory.history, ("mem_1",)), (memory.messages, ("s1",)),
        (memory.search, ("tea?",)), (memory.search_messages, ("tea?",)),
    ):  # fmt: skip
        with pytest.raises(ValueError, match="limit"):
            await ask(method, *arguments, limit=limit)
    assert server.requests == []


async def test_search_sends_its_limit(server, memory) -> None:
    assert (await sent(server, memory.search, "tea?", user_id="ana", limit=1)).json["limit"] == 1
    assert "limit" not in (await sent(server, memory.search, "tea?", "ana", limit=None)).json


async def test_iterate_fetches_a_page_when_it_is_reached(server, memory) -> None:
    server.script(page(0, 100, "c1"), page(100, 100, None))
    seen = []
    rows = memory.iterate(user_id="ana")
    if hasattr(rows, "__aiter__"):
        async for one in rows:
            seen.append(one.memory_id)
            if len(seen) == 100:
                assert len(server.requests) == 1
    else:
        for one in rows:
            seen.append(one.memory_id)
            if len(seen) == 100:
                assert len(server.requests) == 1

    assert seen == [f"mem_{n}" for n in range(200)]
    assert len(server.requests) == 2


async def test_tasks_share_one_async_client(server) -> None:
    server.otherwise = page(0, 1, None)
    async with AsyncMemory(server.address, "kem_x") as memory:
        answers = await asyncio.gather(*(memory.get_all() for _ in range(50)))

    assert {len(one) for one in answers} == {1}
    assert len(server.requests) == 50
