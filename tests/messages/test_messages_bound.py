"""How many messages one search looks at: the newest of whoever is named, and no more."""

from typing import Any

import pytest
from httpx import AsyncClient

from app.conversation.messages.search_schemas import MessageSearch, MessageSearchAnswer
from app.conversation.messages.search_service import MessageSearchService
from app.conversation.messages.search_sql import MOST_MESSAGES
from app.identity.tenants.access import Access, Principal
from app.language.ranking.boosts import Boosts
from app.runtime import Runtime
from tests.support.api import append, ok
from tests.support.recall import recall
from tests.support.tenants import Caller

TURNS = [f"The kayak number {number} is red." for number in range(6)]
LONG_AGO = "2020-01-01T00:00:00Z"


def said(content: str, *, role: str = "user", time: str | None = None) -> dict[str, Any]:
    return {"role": role, "content": content, "metadata": {"client_time": time} if time else {}}


async def looked(
    runtime: Runtime, caller: Caller, most: int, **fields: Any
) -> tuple[set[str], int, bool]:
    """What a search that looks at `most` messages finds, at how many it looked, and whether others
    were left out.
    """
    searching = MessageSearchService(
        runtime.database,
        runtime.embedders,
        Boosts(),
        runtime.now,
        (),
        counter=runtime.counter,
        most=most,
    )
    principal = Principal(Access(caller.tenant_id), "key", frozenset({"read"}), {})
    body = {"query": "red kayak", "user_id": "ana"} | fields
    answer = await searching.search(principal, MessageSearch(**body))
    MessageSearchAnswer.model_validate(answer)
    return {hit["content"] for hit in answer["items"]}, answer["searched"], answer["left_out"]


@pytest.mark.parametrize("mode", ["hybrid", "semantic", "lexical"])
@pytest.mark.parametrize("whose", ["user_id", "session_id", "agent_id"])
async def test_above_the_bound_the_newest_are_found(
    client: AsyncClient, runtime: Runtime, acme: Caller, mode: str, whose: str
) -> None:
    await append(client, "s1", *(said(text) for text in TURNS))
    session = ok(await client.get("/sessions/s1"))
    fields = dict.fromkeys(("user_id", "session_id", "agent_id")) | {whose: session[whose]}

    for most, count in ((7, 6), (6, 6), (5, 5), (1, 1)):
        found = await looked(runtime, acme, most, mode=mode, **fields)
        assert found == (set(TURNS[-count:]), count, count < 6)


async def test_nobody_named_and_nothing_said_is_nothing_left_out(
    runtime: Runtime, acme: Caller
) -> None:
    assert await looked(runtime, acme, 1) == (set(), 0, False)


async def test_the_newest_of_several_sessions_are_found(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    for number, text in enumerate(TURNS):
        await append(client, f"s{number % 2}", said(text))

    assert await looked(runtime, acme, 3) == (set(TURNS[-3:]), 3, True)


async def test_what_roles_and_times_leave_out_takes_no_place(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await append(
        client,
        "s1",
        *(said(text, role="system", time=LONG_AGO) for text in TURNS[:2]),
        *(said(text) for text in TURNS[2:]),
    )

    for narrowed in ({"roles": ["system"]}, {"until": "2021-01-01T00:00:00Z"}):
        fields = {"roles": ["system", "user"]} | narrowed
        # Two of six: at the bound all are looked at, for what stands beside.
        assert await looked(runtime, acme, 6, **fields) == (set(TURNS[:2]), 6, False)
        for most in (5, 2):
            assert await looked(runtime, acme, most, **fields) == (set(TURNS[:2]), 2, False)
        assert await looked(runtime, acme, 1, **fields) == ({TURNS[1]}, 1, True)


async def test_what_is_never_found_takes_no_place(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    hidden = {"role": "user", "content": "A red kayak.", "metadata": {"hidden": True}}
    await append(client, "s1", *(said(text) for text in TURNS[:2]), hidden, hidden)

    assert await looked(runtime, acme, 2) == (set(TURNS[:2]), 2, False)


async def test_pages_go_on_among_what_the_first_looked_at(
    client: AsyncClient, runtime: Runtime, acme: Caller
) -> None:
    await append(client, "s1", *(said(text) for text in TURNS))
    searching = MessageSearchService(
        runtime.database,
        runtime.embedders,
        Boosts(),
        runtime.now,
        (),
        counter=runtime.counter,
        most=4,
    )
    principal = Principal(Access(acme.tenant_id), "key", frozenset({"read"}), {})
    seen: list[str] = []
    cursor = None
    for page in range(2):
        body = MessageSearch(query="red kayak", user_id="ana", limit=2, cursor=cursor)
        answer = await searching.search(principal, body)
        seen += [hit["content"] for hit in answer["items"]]
        cursor = answer["next_cursor"]
        await append(client, "s1", said(f"A red kayak said after page {page}."))

    assert sorted(seen) == sorted(TURNS[-4:])
    assert cursor is None


async def test_an_answer_tells_at_how_many_it_looked(client: AsyncClient) -> None:
    await append(client, "s1", *(said(text) for text in TURNS))

    answer = await recall(client, "red kayak", user_id="ana", limit=1)

    assert (answer["searched"], answer["left_out"]) == (6, False)
    assert MOST_MESSAGES == 20_000
