"""What stands in a context says whether it holds now, begins later or has just ended."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.language.text.periods import written_day
from app.memory.memories.validity_sql import ENDED_DAYS
from app.runtime import Runtime
from tests.support.api import append, execute, listed, ok, save, search
from tests.support.rerank_server import rerank_server
from tests.support.service import client_of, service
from tests.support.tenants import Caller, make_key
from tests.support.tools import called

TODAY = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)


def day(days: int) -> str:
    """The midnight so many days from today's."""
    return (TODAY + timedelta(days)).isoformat()


def shown_day(days: int) -> str:
    return written_day(TODAY + timedelta(days))


async def context(client: AsyncClient, session_id: str = "s1", **body: Any) -> dict[str, Any]:
    wanted = {"include": {"excerpts": False}} | body
    return ok(await client.post(f"/sessions/{session_id}/context", json=wanted))


def lines(answer: dict[str, Any]) -> list[str]:
    return [line for line in answer["prompt"].splitlines() if line.startswith("- [")]


def validity(answer: dict[str, Any]) -> dict[str, str]:
    return {used["memory_id"]: used["validity"] for used in answer["used"]}


@pytest.fixture
async def talk(client: AsyncClient) -> AsyncClient:
    """The API, with a session s1 of Ana's."""
    await append(client, "s1", {"role": "assistant", "content": "Hello."})
    return client


ENGLISH = (
    "She works at Acme as a nurse.", "She rents a flat in Bonn.", "She will work at Initech.",
    "She had a contract with Hooli.", "Which contract, work or flat does she have?",
)  # fmt: skip
CHINESE = (
    "她在西门子当工程师。", "她在上海租了一套公寓。", "她将去腾讯工作。", "她和华为有一份合同。",
    "她的合同、工作和公寓是哪些？",
)  # fmt: skip


@pytest.mark.parametrize("texts", [ENGLISH, CHINESE], ids=["english", "chinese"])
@pytest.mark.parametrize("asks", [True, False])
async def test_lines_say_when_they_hold_and_what_has_ended_comes_last(
    talk: AsyncClient, texts: tuple[str, ...], *, asks: bool
) -> None:
    works, rents, begins, ended, query = texts
    # The surest and the nearest, and behind the others all the same.
    over = await save(talk, ended, valid_from=day(-90), valid_to=day(-3), confidence=1.0)
    later = await save(talk, begins, valid_from=day(40), confidence=0.9)
    until = await save(talk, rents, valid_to=day(9), confidence=0.8)
    now = await save(talk, works, valid_from=day(-400), confidence=0.7)

    answer = await context(talk, **({"query": query} if asks else {}))

    assert sorted(lines(answer)) == sorted(
        (
            f"- [fact] {works} (since {shown_day(-400)})",
            f"- [fact] {rents} (until {shown_day(8)})",
            f"- [fact] {begins} (from {shown_day(40)})",
            f"- [fact] {ended} (since {shown_day(-90)}, ended {shown_day(-4)})",
        )
    )
    assert lines(answer)[-1].startswith(f"- [fact] {ended}")
    assert validity(answer) == {
        now["memory_id"]: "current", until["memory_id"]: "current",
        later["memory_id"]: "upcoming", over["memory_id"]: "ended",
    }  # fmt: skip


@pytest.mark.parametrize("asks", [True, False])
async def test_month_after_its_end_nothing_is_said_of_it(talk: AsyncClient, *, asks: bool) -> None:
    now, minute = datetime.now(UTC), timedelta(minutes=5)
    ends = {"within": now - timedelta(ENDED_DAYS) + minute, "after": now - timedelta(ENDED_DAYS)}
    kept = {
        name: await save(talk, f"She swims in lane {name}.", valid_to=end.isoformat())
        for name, end in ends.items()
    }

    answer = await context(talk, **({"query": "Where does she swim?"} if asks else {}))

    assert validity(answer) == {kept["within"]["memory_id"]: "ended"}


async def test_search_and_list_have_what_counts_now_alone(talk: AsyncClient) -> None:
    await save(talk, "She had a contract with Hooli.", valid_to=day(-3))
    await save(talk, "She will have a contract with Initech.", valid_from=day(3))
    held = (await save(talk, "She has a contract with Acme.", valid_to=day(3)))["memory_id"]

    found = await search(talk, "contract", user_id="ana", format="text")

    assert [hit["memory_id"] for hit in found["results"]] == await listed(talk) == [held]
    assert found["prompt"].splitlines()[1:] == [
        f"- [fact] She has a contract with Acme. (until {shown_day(2)})"
    ]


async def test_past_is_shown_as_it_was(talk: AsyncClient) -> None:
    await save(talk, "She had a contract with Hooli.", valid_from=day(-90), valid_to=day(-3))
    await save(talk, "She will work at Initech.", valid_from=day(3))

    then = await context(talk, as_of=day(-10))

    assert lines(then) == [
        f"- [fact] She had a contract with Hooli. (since {shown_day(-90)}, until {shown_day(-4)})"
    ]
    assert set(validity(then).values()) == {"current"}


async def test_tool_of_a_model_says_the_same(talk: AsyncClient) -> None:
    await save(talk, "She had a contract with Hooli.", valid_to=day(-3), confidence=1.0)
    await save(talk, "She sees the dentist about a tooth.", valid_from=day(3), memory_type="event")
    await save(talk, "She has a contract with Acme.", confidence=0.7)

    answer = await called(talk, "memory_search", {"query": "contract with Hooli, dentist"})

    items = answer["data"]["items"]
    assert {item["content"]: item["validity"] for item in items} == {
        "She had a contract with Hooli.": "ended",
        "She sees the dentist about a tooth.": "upcoming",
        "She has a contract with Acme.": "current",
    }
    assert items[-1]["validity"] == "ended"
    assert f"She had a contract with Hooli. (ended {shown_day(-4)})" in answer["result"]
    assert f"about a tooth. (from {shown_day(3)})" in answer["result"]


async def test_ended_ones_never_take_the_room_of_others(talk: AsyncClient) -> None:
    holding = [
        (await save(talk, f"Her locker in hall {n} is blue.", confidence=0.7))["memory_id"]
        for n in range(12)
    ]
    for n in range(12):
        text = f"Her old locker number {n} in the sports hall was red and far too small."
        await save(talk, text, valid_to=day(-1), confidence=1.0, on_duplicate="allow")

    for query in ({}, {"query": "old locker number 3 in the sports hall"}):
        answer = await context(talk, max_memory_tokens=100, **query)
        assert set(validity(answer)) <= set(holding)
        assert set(validity(await context(talk, **query))) > set(holding)


async def test_reranker_does_not_put_them_first(dsn: str, acme: Caller) -> None:
    over, held = "She had a contract with Hooli.", "She has a contract with Acme."
    with rerank_server() as server:
        server.scores = {over: 0.9, held: 0.2}
        async with (
            service(dsn, rerank_model=server.handle()) as app,
            client_of(app, acme.key) as client,
        ):
            await append(client, "s1", {"role": "assistant", "content": "Hello."})
            await save(client, over, valid_to=day(-3))
            await save(client, held)

            answer = await context(client, query="Which contract?")
            found = await called(client, "memory_search", {"query": "Which contract?"})

    assert list(validity(answer).values()) == ["current", "ended"]
    assert [item["validity"] for item in found["data"]["items"]] == ["current", "ended"]


async def test_replaced_one_stays_out_and_its_successor_is_shown(
    talk: AsyncClient, acme: Caller, dsn: str
) -> None:
    paris = (await save(talk, "He lives in Paris."))["memory_id"]
    body = {"content": "He lives in Bonn.", "valid_from": day(5)}
    bonn = ok(await talk.post(f"/memories/{paris}/supersede", json=body), 201)["memory_id"]

    assert set(lines(await context(talk))) == {
        f"- [fact] He lives in Paris. (until {shown_day(4)})",
        f"- [fact] He lives in Bonn. (from {shown_day(5)})",
    }
    # The day comes.
    await execute(
        dsn,
        "UPDATE memories SET valid_from = valid_from - interval '6 days', "
        "valid_to = valid_to - interval '6 days' WHERE tenant_id = $1",
        acme.tenant_id,
    )
    assert validity(await context(talk)) == {bonn: "current"}


async def test_goal_is_shown_after_its_day(talk: AsyncClient, acme: Caller, dsn: str) -> None:
    goal = await save(talk, "She wants to save $2,000 by 1 May 2024.", memory_type="goal")
    await execute(
        dsn,
        "UPDATE memories SET expected_valid_days = 1, said_at = '2024-04-01', "
        "create_time = '2024-04-01' WHERE tenant_id = $1",
        acme.tenant_id,
    )

    for query in ({}, {"query": "What is she saving for?"}):
        assert validity(await context(talk, **query)) == {goal["memory_id"]: "current"}


async def lockers(client: AsyncClient) -> None:
    """Two users of two agents in a project, with a memory of every kind that these can have."""
    for agent_id in ("a1", "a2"):
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
    ok(await client.post("/projects", json={"project_id": "p", "project_name": "P"}), 201)
    for user_id, home in (("ana", "a1"), ("bob", "a2")):
        ok(await client.post("/users", json={"user_id": user_id, "agent_id": home}), 201)
        ok(await client.put(f"/projects/p/members/{user_id}", json={}))
        for agent_id in ("a1", "a2"):
            names = {"session_id": f"{user_id}-{agent_id}", "user_id": user_id}
            body = names | {"agent_id": agent_id, "project_id": "p"}
            ok(await client.post("/sessions", json=body), 201)
            await save(client, f"Locker of {names}.", scope="session", **names)
            await locker(client, user_id=user_id, agent_id=agent_id)
        await locker(client, user_id=user_id)
    await save(client, "Locker of an agent.", user_id=None, agent_id="a1", scope="agent")


async def locker(client: AsyncClient, **owner: str) -> None:
    await save(client, f"Locker of {owner}.", **owner)
    for visibility in ("owner_only", "members"):
        place = {"scope": "project", "project_id": "p", "visibility": visibility}
        await save(client, f"Shared locker of {owner}, {visibility}.", **owner, **place)


async def everything(app: FastAPI, runtime: Runtime, tenant: Caller) -> dict[str, dict[str, str]]:
    """What contexts show of memories, by key, session and query."""
    seen = {}
    for restriction in ({}, {"user_id": "ana"}, {"agent_id": "a1"}):
        key = await make_key(runtime, tenant.tenant_id, "read", **restriction)
        async with client_of(app, key.key) as bound:
            for session_id in ("ana-a1", "ana-a2", "bob-a1", "bob-a2"):
                for query in ({}, {"query": "locker"}):
                    body = query | {"max_memory_tokens": 8000}
                    response = await bound.post(f"/sessions/{session_id}/context", json=body)
                    shown = validity(ok(response)) if response.is_success else {}
                    seen[f"{restriction} {session_id} {query}"] = shown
    return seen


@pytest.mark.parametrize(
    ("shift", "expected"),
    [("valid_to = now() - interval '1 day'", "ended"),
     ("valid_from = now() + interval '1 day'", "upcoming")],
)  # fmt: skip
async def test_nobody_sees_more_for_its_time(
    client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller, dsn: str,
    shift: str, expected: str,
) -> None:  # fmt: skip
    """Whatever somebody sees while it holds they see when it has ended, and nothing else."""
    await lockers(client)
    before = await everything(app, runtime, acme)

    await execute(dsn, f"UPDATE memories SET {shift} WHERE tenant_id = $1", acme.tenant_id)

    after = await everything(app, runtime, acme)
    assert {key: set(shown) for key, shown in after.items()} == {
        key: set(shown) for key, shown in before.items()
    }
    assert {state for shown in after.values() for state in shown.values()} == {expected}
    assert len({frozenset(shown) for shown in before.values()}) > 4
