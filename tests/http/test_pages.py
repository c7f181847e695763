"""The three searches and the lists of what has a content: `cursor`, `limit` and `max_tokens`."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.conversation.messages.message_ranking import KEPT
from app.runtime import Runtime
from tests.support.api import append, ok, problem, save
from tests.support.service import client_of
from tests.support.tenants import make_tenant

TEXTS = [f"The blue notebook number {n} lies on the shelf in room {n}." for n in range(7)]
SEARCHES = {
    "messages": ("/messages/search", "items", "message_id"),
    "memories": ("/memories/search", "results", "memory_id"),
    "passages": ("/passages/search", "items", "passage_id"),
}
LISTS = {
    "/sessions/s1/messages": "content",
    "/memories": "content",
    "/folders/f/passages": "content",
    "/blocks": "value",
    "/agents/default/blocks": "value",
}

Fetch = Callable[..., Awaitable[dict[str, Any]]]


async def fill(client: AsyncClient) -> None:
    """The same seven texts as messages, memories and passages of Ana's."""
    await append(client, "s1", *TEXTS)
    body = {"folder_id": "f", "folder_name": "F", "scope": "user", "user_id": "ana"}
    ok(await client.post("/folders", json=body), 201)
    for number, text in enumerate(TEXTS):
        block = {"label": f"l{number}", "value": text, "agent_id": "default"}
        ok(await client.post("/blocks", json=block), 201)
        await save(client, text)
        ok(await client.post("/folders/f/passages", json={"content": text}), 201)


@pytest.fixture(scope="module")
async def filled(app: FastAPI, runtime: Runtime) -> AsyncIterator[AsyncClient]:
    """A client of a tenant in which nobody writes any more."""
    owner = await make_tenant(runtime)
    async with client_of(app, owner.key) as opened:
        await fill(opened)
        yield opened


def search(client: AsyncClient, kind: str) -> tuple[Fetch, str, str]:
    path, rows, row_id = SEARCHES[kind]

    async def fetch(**body: Any) -> dict[str, Any]:
        asked = {"query": "blue notebook", "user_id": "ana", "limit": 100} | body
        answer = ok(await client.post(path, json=asked))
        return answer | {"items": answer[rows]}

    return fetch, path, row_id


async def every(fetch: Fetch, **body: Any) -> list[list[dict[str, Any]]]:
    pages: list[list[dict[str, Any]]] = []
    cursor: dict[str, str] = {}
    while len(pages) < 20:
        page = await fetch(**(body | cursor))
        pages.append(page["items"])
        if page["next_cursor"] is None:
            return pages
        cursor = {"cursor": page["next_cursor"]}
    raise AssertionError("the pages never end")


@pytest.mark.parametrize("kind", SEARCHES)
async def test_a_search_goes_on_where_a_page_ended(filled: AsyncClient, kind: str) -> None:
    fetch, path, row_id = search(filled, kind)
    [whole] = await every(fetch)
    assert len(whole) == len(TEXTS)

    pages = await every(fetch, limit=3)

    assert [len(page) for page in pages] == [3, 3, 1]
    assert [row[row_id] for page in pages for row in page] == [row[row_id] for row in whole]
    exact = await every(fetch, limit=7)
    assert [len(page) for page in exact] == [7]
    cursor = (await fetch(limit=3))["next_cursor"]
    for wrong in ({"query": "red", "cursor": cursor}, {"query": "blue notebook", "cursor": "x"}):
        answer = await filled.post(path, json={"user_id": "ana"} | wrong)
        assert problem(answer, 422, "invalid_cursor")["errors"][0]["location"] == ["body", "cursor"]


@pytest.mark.parametrize("kind", SEARCHES)
async def test_what_is_written_between_two_pages_takes_no_hit_from_the_next(
    client: AsyncClient, kind: str
) -> None:
    """More is written than a cursor remembers hits, and all of it fits the query better."""
    body = {"folder_id": "f", "folder_name": "F", "scope": "user", "user_id": "ana"}
    ok(await client.post("/folders", json=body), 201)

    async def write(*texts: str) -> None:
        if kind == "messages":
            await append(client, "s1", *texts)
        elif kind == "memories":
            await save(client, [{"role": "user", "content": text} for text in texts])
        else:
            for text in texts:
                ok(await client.post("/folders/f/passages", json={"content": text}), 201)

    numbers = range(2 * KEPT)
    await write(*(f"The blue notebook number {n} lies on the shelf in room {n}." for n in numbers))
    fetch, _, row_id = search(client, kind)
    # Each mode goes its own way through the same hits.
    cursors: dict[str, dict[str, str] | None] = {"hybrid": {}, "semantic": {}}
    stored, shown = {}, {}
    for mode in cursors:
        [whole] = await every(fetch, mode=mode)
        stored[mode] = sorted(row[row_id] for row in whole)
        assert len(stored[mode]) == 2 * KEPT
        shown[mode] = []

    for number in range(KEPT):
        for mode, cursor in cursors.items():
            if cursor is None:
                continue
            page = await fetch(mode=mode, limit=5, **cursor)
            shown[mode] += [row[row_id] for row in page["items"]]
            goes_on = page["next_cursor"] is not None
            assert len(page["items"]) == 5 or not goes_on
            cursors[mode] = {"cursor": page["next_cursor"]} if goes_on else None
        if not any(cursors.values()):
            break
        written = range(100 + 5 * number, 105 + 5 * number)
        await write(*(f"The blue notebook {n} is blue." for n in written))

    assert {mode: sorted(hits) for mode, hits in shown.items()} == stored


@pytest.mark.parametrize("kind", ["memories", "passages"])
async def test_what_was_written_with_an_earlier_time_ends_no_search_early(
    client: AsyncClient, kind: str
) -> None:
    """What came in front without being newer hides no other hit."""
    await fill(client)
    fetch, _, row_id = search(client, kind)
    [whole] = await every(fetch, mode="semantic")
    first = await fetch(mode="semantic", limit=4)
    expected = {row[row_id] for row in whole}
    early = {"content": "Blue notebook", "create_time": "2020-01-01T00:00:00Z"}
    if kind == "passages":
        for number in range(4):
            text = {"content": f"Blue notebook {number}"}
            ok(await client.post("/folders/f/passages", json=early | text), 201)
    else:
        # Changed in its place: the worst hit becomes the best.
        last = whole[-1]
        expected.remove(last[row_id])
        params = {"If-Match": f'"{last["version"]}"'}
        change = {"content": "Blue notebook"}
        ok(await client.patch(f"/memories/{last[row_id]}", json=change, headers=params))

    rest = await every(fetch, mode="semantic", limit=2, cursor=first["next_cursor"])

    shown = [row[row_id] for page in [first["items"], *rest] for row in page]
    assert len(shown) == len(set(shown))
    assert expected <= set(shown)


@pytest.mark.parametrize("kind", SEARCHES)
async def test_the_contents_of_a_page_of_hits_fit(
    filled: AsyncClient, runtime: Runtime, kind: str
) -> None:
    fetch, path, row_id = search(filled, kind)
    [whole] = await every(fetch)
    two = sum(runtime.counter.count(row["content"]) for row in whole[:2])

    for tokens, first in ((1, 1), (two - 1, 1), (two, 2)):
        pages = await every(fetch, max_tokens=tokens)
        assert len(pages[0]) == first
        assert [row[row_id] for page in pages for row in page] == [row[row_id] for row in whole]
    for wrong in (0, 10_000_001):
        body = {"query": "x", "user_id": "ana", "max_tokens": wrong}
        problem(await filled.post(path, json=body), 422, "invalid_request")


@pytest.mark.parametrize("path", LISTS)
async def test_the_contents_of_a_page_of_a_list_fit(
    filled: AsyncClient, runtime: Runtime, path: str
) -> None:
    async def fetch(**params: Any) -> dict[str, Any]:
        return ok(await filled.get(path, params={"limit": 100} | params))

    [whole] = await every(fetch)
    assert len(whole) == len(TEXTS)
    two = sum(runtime.counter.count(row[LISTS[path]]) for row in whole[:2])

    for tokens, first in ((1, 1), (two - 1, 1), (two, 2)):
        pages = await every(fetch, max_tokens=tokens)
        assert len(pages[0]) == first
        assert [row for page in pages for row in page] == whole
    by_limit = await every(fetch, limit=1, max_tokens=two)
    assert {len(page) for page in by_limit} == {1}


@pytest.mark.parametrize(
    ("params", "numbers"),
    [
        ({"query": "NUMBER 3"}, [4]),
        ({"query": "100%"}, []),
        ({"query": "_lies"}, []),
        ({"query": "notebook", "limit": "2"}, [1, 2]),
        ({"query": "in room", "order": "desc", "limit": "1"}, [7]),
    ],
)
async def test_messages_are_listed_by_their_text(
    filled: AsyncClient, params: dict[str, str], numbers: list[int]
) -> None:
    page = ok(await filled.get("/sessions/s1/messages", params=params))
    assert [row["sequence_no"] for row in page["items"]] == numbers


async def test_messages_are_listed_up_to_another(client: AsyncClient) -> None:
    made = (await append(client, "s1", *TEXTS))["messages"]
    await append(client, "s2", "Elsewhere.")
    elsewhere = ok(await client.get("/sessions/s2/messages"))["items"][0]["message_id"]

    params = {"before": made[3]["message_id"], "order": "desc", "limit": 2}
    page = ok(await client.get("/sessions/s1/messages", params=params))
    assert [row["sequence_no"] for row in page["items"]] == [3, 2]
    page = ok(
        await client.get("/sessions/s1/messages", params=params | {"cursor": page["next_cursor"]})
    )
    assert [row["sequence_no"] for row in page["items"]] == [1]
    refused = await client.get("/sessions/s1/messages", params={"before": elsewhere})
    problem(refused, 404, "message_not_found")
