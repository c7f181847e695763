"""What was true at a moment, and what was known then: lists, searches, chains and deletions."""

import asyncio
import json
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from httpx import AsyncClient
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.identity.tenants.access import Access
from app.memory.memories.search_sql import Bucket, SearchPlan, search_statement
from app.memory.memories.timeline_sql import known_statement, known_waiting_statement
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import Runtime
from app.settings import Settings
from tests.support.api import (
    every_page,
    execute,
    fields,
    found,
    listed,
    ok,
    problem,
    save,
    search,
)
from tests.support.patience import PATIENCE
from tests.support.plans import Crowd, new_crowd, nodes, plan_of
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key, make_tenant

TEA = "She drinks green tea."
COFFEE = "She drinks black coffee."
CAT = "The cat sleeps on the sofa."
MODEL = "wordllama/l2_supercat:256"
LONG_AGO = "2000-01-01T00:00:00Z"
NOT_OF_THEN = {"use_count", "last_used_at"}


def moment(years: int = 0) -> str:
    """Now, by the clock that client and database share here."""
    return (datetime.now(UTC) + timedelta(days=365 * years)).isoformat()


async def supersede(client: AsyncClient, memory_id: str, content: str, **rest: Any) -> str:
    body = {"content": content} | rest
    return ok(await client.post(f"/memories/{memory_id}/supersede", json=body), 201)["memory_id"]


async def texts(client: AsyncClient, **params: Any) -> set[str]:
    return {row["content"] for row in await every_page(client, "/memories", **params)}


async def hits(client: AsyncClient, query: str = TEA, **rest: Any) -> list[str]:
    answer = await search(client, query, user_id="ana", rerank=False, **rest)
    return [hit["content"] for hit in answer["results"]]


class TestAsOf:
    @pytest.fixture
    async def dated(self, client: AsyncClient) -> None:
        """Tea from 2010 to 2020, coffee from 2020 on, the cat since ever."""
        year = "{}-01-01T00:00:00Z".format
        await save(client, TEA, valid_from=year(2010), valid_to=year(2020))
        await save(client, COFFEE, valid_from=year(2020), on_duplicate="allow")
        await save(client, CAT)

    @for_each(
        ("as_of", "expected"),
        [
            ("0001-06-01T00:00:00Z", {CAT}),
            ("2009-12-31T23:59:59.999999Z", {CAT}),
            ("2010-01-01T00:00:00Z", {CAT, TEA}),
            ("2019-12-31T23:59:59.999999Z", {CAT, TEA}),
            ("2020-01-01T00:00:00Z", {CAT, COFFEE}),
            ("2020-01-01T01:00:00+02:00", {CAT, TEA}),
            ("9999-12-31T00:00:00Z", {CAT, COFFEE}),
        ],
    )
    @pytest.mark.usefixtures("dated")
    async def test_what_was_valid_then_is_listed_and_found(
        self, client: AsyncClient, as_of: str, expected: set[str]
    ) -> None:
        assert await texts(client, as_of=as_of) == expected
        assert set(await hits(client, as_of=as_of)) == expected

    @pytest.mark.usefixtures("dated")
    async def test_without_a_moment_what_is_valid_now_counts(self, client: AsyncClient) -> None:
        assert await texts(client) == set(await hits(client)) == {CAT, COFFEE}

    async def test_what_had_expired_then_is_not_there(self, client: AsyncClient) -> None:
        await save(client, TEA, expires_at="2026-01-01T00:00:00Z")

        assert await texts(client, as_of="2025-12-31T23:59:59Z") == {TEA}
        assert await texts(client, as_of="2026-01-01T00:00:00Z") == set()
        assert await hits(client, as_of="2025-12-31T23:59:59Z") == [TEA]
        assert await hits(client, as_of="2026-01-01T00:00:00Z") == []

    async def test_what_was_archived_or_deleted_was_never_true(self, client: AsyncClient) -> None:
        archived, deleted, gone = [
            (await save(client, text))["memory_id"] for text in (TEA, CAT, "Bees make honey.")
        ]
        ok(await client.patch(f"/memories/{archived}", json={"status": "archived"}))
        ok(await client.delete(f"/memories/{deleted}"), 204)
        ok(await client.delete(f"/memories/{gone}", params={"hard": True}), 204)

        assert await texts(client, as_of=LONG_AGO) == set()
        assert await hits(client, as_of=LONG_AGO) == []

    async def test_of_a_chain_exactly_one_link_holds_at_any_moment(
        self, client: AsyncClient
    ) -> None:
        chain = [(await save(client, TEA))["memory_id"]]
        for cups in range(4):
            chain.append(await supersede(client, chain[-1], f"She drinks {cups} cups of coffee."))
        links = [ok(await client.get(f"/memories/{one}")) for one in chain]
        turns = [link["valid_from"] for link in links[1:]]
        assert [link["valid_to"] for link in links[:-1]] == turns
        tick = timedelta(microseconds=1)
        for number, turn in enumerate(turns):
            at = datetime.fromisoformat(turn)
            for asked, expected in ((at - tick, number), (at, number + 1), (at + tick, number + 1)):
                assert await listed(client, as_of=asked.isoformat()) == [chain[expected]]
                assert await found(client, user_id="ana", as_of=asked.isoformat()) == [
                    chain[expected]
                ]
        assert await listed(client, as_of=LONG_AGO) == [chain[0]]
        assert await listed(client) == [chain[-1]]

    async def test_a_successor_begins_when_it_says(self, client: AsyncClient) -> None:
        old = (await save(client, "He lives in Paris."))["memory_id"]
        since = "2020-05-01T00:00:00Z"

        new = await supersede(client, old, "He lives in Bonn.", valid_from=since)

        assert ok(await client.get(f"/memories/{old}"))["valid_to"] == since
        assert ok(await client.get(f"/memories/{new}"))["valid_from"] == since
        assert await listed(client, as_of="2020-04-30T23:59:59Z") == [old]
        assert await listed(client, as_of=since) == [new]

    async def test_until_a_successor_begins_the_old_statement_counts(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        old = (await save(client, "He lives in Paris."))["memory_id"]
        begin = datetime.now(UTC) + timedelta(days=30)

        new = await supersede(client, old, "He lives in Bonn.", valid_from=begin.isoformat())

        shown = ok(await client.get(f"/memories/{old}"))
        assert (shown["status"], shown["superseded_by"]) == ("active", new)
        assert await listed(client) == await found(client) == [old]
        assert await listed(client, as_of=begin.isoformat()) == [new]
        again = await client.post(f"/memories/{old}/supersede", json={"content": "He is in Rome."})
        problem(again, 409, "not_changeable")
        # The day comes.
        await execute(
            dsn,
            "UPDATE memories SET valid_from = valid_from - interval '31 days', "
            "valid_to = valid_to - interval '31 days' WHERE tenant_id = $1",
            acme.tenant_id,
        )
        assert await listed(client) == await found(client) == [new]

    async def test_a_save_that_supersedes_begins_now_unless_it_says(
        self, client: AsyncClient
    ) -> None:
        first = await save(client, TEA)
        near = {"on_duplicate": "supersede"}

        async def ended(outcome: dict[str, Any]) -> str:
            return ok(await client.get(f"/memories/{outcome['memory_id']}"))["valid_to"]

        second = await save(client, "Green tea is what she drinks.", **near)
        assert second["event"] == "SUPERSEDE"
        assert await ended(first) == second["memory"]["valid_from"]
        june = "2026-06-01T00:00:00Z"
        third = await save(client, "She drinks green tea!", valid_from=june, **near)

        # The second never held then, and the first no longer than until June.
        assert (third["event"], third["memory"]["valid_from"]) == ("SUPERSEDE", june)
        assert await ended(second) == await ended(first) == june
        history = await every_page(client, f"/memories/{first['memory_id']}/history")
        assert [line["event"] for line in history] == ["ADD", "SUPERSEDE", "UPDATE"]

    async def test_a_successor_that_ends_before_it_begins_is_refused(
        self, client: AsyncClient
    ) -> None:
        old = (await save(client, TEA))["memory_id"]
        year = "{}-01-01T00:00:00Z".format
        for validity in (
            {"valid_from": year(2021), "valid_to": year(2020)},
            {"valid_from": year(2021), "valid_to": year(2021)},
            {"valid_to": year(2021)},
        ):
            response = await client.post(
                f"/memories/{old}/supersede", json={"content": COFFEE} | validity
            )
            problem(response, 422, "invalid_request")
        body = {"messages": "Green tea is what she drinks.", "user_id": "ana", "infer": False}
        body |= {"on_duplicate": "supersede", "valid_to": year(2021)}
        problem(await client.post("/memories", json=body), 422, "invalid_request")

        assert await listed(client) == [old]

    async def test_only_what_held_can_be_asked_for(self, client: AsyncClient) -> None:
        for status in ("archived", "superseded"):
            response = await client.get("/memories", params={"status": status, "as_of": moment()})
            problem(response, 422, "invalid_request")
        for wrong in ("yesterday", "2026-01-01", "2026-01-01T00:00:00"):
            for name in ("as_of", "known_at"):
                response = await client.get("/memories", params={name: wrong})
                assert fields(problem(response, 422, "invalid_request")) == [f"query.{name}"]
                body = {"query": TEA, "user_id": "ana", name: wrong}
                response = await client.post("/memories/search", json=body)
                assert fields(problem(response, 422, "invalid_request")) == [f"body.{name}"]

    async def test_pages_of_the_past_are_walked(self, client: AsyncClient) -> None:
        ids = [(await save(client, f"Locker {number} is hers."))["memory_id"] for number in "123"]
        await supersede(client, ids[0], "Locker 9 is hers.")
        past = {"order": "asc", "limit": 1}

        assert await listed(client, as_of=LONG_AGO, **past) == ids
        assert await listed(client, known_at=moment(), **past) == [
            *ids[1:],
            (await listed(client))[0],
        ]


class TestKnownAt:
    async def test_words_of_then_are_listed_and_found_by_their_own_vector(
        self, client: AsyncClient
    ) -> None:
        before = moment()
        memory_id = (await save(client, TEA))["memory_id"]
        stored = moment()
        for content in (COFFEE, CAT):
            ok(await client.patch(f"/memories/{memory_id}", json={"content": content}))
        now = moment()

        assert await texts(client, known_at=before) == set()
        assert await hits(client, known_at=before) == []
        assert await texts(client, known_at=stored) == {TEA}
        assert await texts(client, known_at=now) == {CAT}
        for at, words in ((stored, TEA), (now, CAT)):
            assert await hits(client, words, known_at=at, threshold=0.99) == [words]
        assert await hits(client, CAT, known_at=stored, threshold=0.6) == []

    async def test_everything_else_is_as_it_was(self, client: AsyncClient) -> None:
        given = {
            "memory_type": "preference", "attribute": "user.drink", "confidence": 0.8125,
            "evidence": ["m1", "m2"], "metadata": {"茶": [1, None, {"k": 0.1}]},
            "valid_from": "2020-01-01T00:00:00.000001Z", "external_id": "x", "tier": "short",
        }  # fmt: skip
        outcome = await save(client, TEA, **given)
        stored = moment()
        changes = dict.fromkeys(("attribute", "valid_from", "external_id"))
        changes |= {
            "content": CAT, "memory_type": "fact", "confidence": 1.0, "evidence": [],
            "metadata": {}, "tier": "long",
        }  # fmt: skip
        ok(await client.patch(f"/memories/{outcome['memory_id']}", json=changes))

        [row] = await every_page(client, "/memories", known_at=stored)
        [hit] = (await search(client, TEA, user_id="ana", known_at=stored))["results"]

        assert row == outcome["memory"]
        assert outcome["memory"].items() <= hit.items()

    async def test_what_was_known_then_about_another_time(self, client: AsyncClient) -> None:
        paris = (await save(client, "He lives in Paris."))["memory_id"]
        believed = moment()
        await supersede(client, paris, "He lives in Bonn.", valid_from="2020-01-01T00:00:00Z")
        after = moment()

        # Today we know that he had moved; when we did not, we took it for Paris.
        for known_at, place in ((believed, "Paris"), (after, "Bonn")):
            asked = {"known_at": known_at, "as_of": "2023-01-01T00:00:00Z"}
            assert await texts(client, **asked) == {f"He lives in {place}."}
            assert await hits(client, **asked) == [f"He lives in {place}."]
        earlier = {"known_at": after, "as_of": "2019-01-01T00:00:00Z"}
        assert await texts(client, **earlier) == set(await hits(client, **earlier))
        assert await hits(client, **earlier) == ["He lives in Paris."]

    async def test_what_is_deleted_never_comes_back(self, client: AsyncClient) -> None:
        soft, hard = [(await save(client, text))["memory_id"] for text in (TEA, CAT)]
        stored = moment()
        ok(await client.delete(f"/memories/{soft}"), 204)
        ok(await client.delete(f"/memories/{hard}", params={"hard": True}), 204)

        for status in ("active", "archived", "superseded"):
            assert await listed(client, known_at=stored, status=status) == []
        assert await hits(client, known_at=stored) == []

    async def test_filters_and_selectors_read_the_state_of_then(self, client: AsyncClient) -> None:
        memory = await save(client, TEA, metadata={"topic": "tea"}, memory_type="habit")
        stored = moment()
        change = {"metadata": {"topic": "cats"}, "memory_type": "fact", "status": "archived"}
        ok(await client.patch(f"/memories/{memory['memory_id']}", json=change))
        then, now = {"metadata.topic": "tea"}, {"metadata.topic": "cats"}

        listing = {"known_at": stored, "filters": json.dumps(then), "memory_type": "habit"}
        assert await listed(client, **listing) == [memory["memory_id"]]
        assert await hits(client, known_at=stored, filters=then, memory_type="habit") == [TEA]
        assert await listed(client, known_at=stored, filters=json.dumps(now)) == []
        assert await hits(client, known_at=stored, filters=now) == []
        assert await hits(client, known_at=stored, memory_type="fact") == []
        assert await listed(client, known_at=moment(), status="archived") == [memory["memory_id"]]

    async def test_who_may_see_it_is_asked_of_now(
        self, client: AsyncClient, app: Any, runtime: Runtime, acme: Caller
    ) -> None:
        for user in ("ana", "bob"):
            ok(await client.post("/users", json={"user_id": user}), 201)
        ok(await client.post("/projects", json={"project_id": "p1", "project_name": "P"}), 201)
        for user in ("ana", "bob"):
            path = f"/projects/p1/members/{user}"
            ok(await client.put(path, json={"role": "editor"}))
        memory = await save(client, TEA, scope="project", project_id="p1")
        stored = moment()
        key = (await make_key(runtime, acme.tenant_id, "read", user_id="bob")).key
        asked = {"user_id": "bob", "project_id": "p1", "known_at": stored}

        async with client_of(app, key) as bob:
            assert await listed(bob, known_at=stored) == [memory["memory_id"]]
            assert await found(bob, TEA, **asked) == [memory["memory_id"]]
            hidden = {"visibility": "owner_only"}
            ok(await client.patch(f"/memories/{memory['memory_id']}", json=hidden))

            assert await listed(bob, known_at=stored) == []
            assert await found(bob, TEA, **asked) == []

    async def test_another_tenant_knows_nothing(
        self, client: AsyncClient, stranger: AsyncClient
    ) -> None:
        await save(client, TEA)
        await save(stranger, CAT)

        assert await texts(stranger, known_at=moment()) == {CAT}
        assert await hits(stranger, known_at=moment()) == [CAT]

    async def test_a_look_back_does_not_count_as_a_use(self, client: AsyncClient) -> None:
        memory = await save(client, TEA)
        path = f"/memories/{memory['memory_id']}"
        for past in ({"known_at": moment()}, {"as_of": moment()}):
            assert await hits(client, **past) == [TEA]
        assert await hits(client) == [TEA]

        async def uses() -> int:
            return int(ok(await client.get(path))["use_count"])

        # Counts are written a moment later; those of the past would have been by then.
        async with asyncio.timeout(PATIENCE):
            while not await uses():  # noqa: ASYNC110 (only the service says so)
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.3)
        assert await uses() == 1

    async def test_vectors_of_then_that_nothing_compares_are_counted(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        memory = await save(client, TEA)
        stored = moment()
        ok(await client.patch(f"/memories/{memory['memory_id']}", json={"content": CAT}))
        await execute(
            dsn,
            "UPDATE memory_history SET embedding = '[1,0]', embedding_model = 'gone/model:2' "
            "WHERE tenant_id = $1 AND embedding IS NOT NULL",
            acme.tenant_id,
        )

        answer = await search(client, TEA, user_id="ana", known_at=stored)

        assert (answer["waiting"], answer["results"][0]["similarity"]) == (1, 0)
        assert (await search(client, TEA, user_id="ana"))["waiting"] == 0


TEXTS = [TEA, COFFEE, CAT, "她喝绿茶，每天两杯", "他住在慕尼黑", "Bees make honey in June."]

steps = st.one_of(
    st.tuples(st.just("save"), st.sampled_from(TEXTS)),
    st.tuples(
        st.sampled_from(["patch", "supersede", "archive", "unarchive", "confidence"])
        | st.sampled_from(["delete", "restore"]),
        st.integers(0, 5),
        st.integers(0, 5),
    ),
)


async def take(client: AsyncClient, step: tuple[Any, ...], ids: list[str]) -> None:
    """One step, which may be refused: what is refused changes nothing."""
    act, *rest = step
    if act == "save":
        body = {"messages": rest[0], "user_id": "ana", "infer": False, "on_duplicate": "allow"}
        response = await client.post("/memories", json=body)
        ids += [one["memory_id"] for one in ok(response, response.status_code)["results"]]
        return
    if not ids:
        return
    path = f"/memories/{ids[rest[0] % len(ids)]}"
    text = TEXTS[rest[1] % len(TEXTS)]
    if act == "patch":
        response = await client.patch(path, json={"content": text})
    elif act == "confidence":
        response = await client.patch(path, json={"confidence": 0.7 + rest[1] / 100})
    elif act in {"archive", "unarchive"}:
        status = "archived" if act == "archive" else "active"
        response = await client.patch(path, json={"status": status})
    elif act == "delete":
        response = await client.delete(path)
    elif act == "supersede":
        response = await client.post(f"{path}/supersede", json={"content": text})
        if response.status_code == 201:
            ids.append(response.json()["memory_id"])
    else:
        history = await client.get(f"{path}/history")
        if history.status_code == 404:
            return
        entries = history.json()["items"]
        body = {"history_id": entries[rest[1] % len(entries)]["history_id"]}
        response = await client.post(f"{path}/restore", json=body)
    assert response.status_code in {200, 201, 204, 404, 409}, response.text


async def shown(client: AsyncClient, **at: str) -> dict[str, Any]:
    """All that lists and a search show, by id."""
    rows = {
        row["memory_id"]: row
        for status in ("active", "archived", "superseded")
        for row in await every_page(client, "/memories", status=status, **at)
    }
    answer = await search(client, TEA, user_id="ana", **at)
    found_then = {hit["memory_id"]: round(hit["similarity"], 5) for hit in answer["results"]}
    return {
        memory_id: (
            {name: value for name, value in row.items() if name not in NOT_OF_THEN},
            found_then.get(memory_id),
        )
        for memory_id, row in rows.items()
    }


@pytest.mark.slow
@settings(
    max_examples=12,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(script=st.lists(steps, min_size=3, max_size=10))
async def test_what_was_known_is_what_was_shown(app: Any, runtime: Runtime, script) -> None:
    tenant = await make_tenant(runtime)
    async with client_of(app, tenant.key) as client:
        ids: list[str] = []
        seen = []
        for step in [("save", TEA), *script]:
            await take(client, step, ids)
            at = moment()
            seen.append((at, await shown(client)))

        left = {one for one in ids if (await client.get(f"/memories/{one}")).status_code == 200}
        for at, then in seen:
            expected = {one: state for one, state in then.items() if one in left}
            assert await shown(client, known_at=at) == expected


@settings(
    max_examples=10,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
)
@given(
    begins=st.lists(st.none() | st.integers(-3000, -1), min_size=1, max_size=5),
    asked=st.lists(st.integers(-4000, 400), min_size=1, max_size=5),
)
async def test_exactly_one_of_a_chain_holds_whenever_its_links_begin(
    app: Any, runtime: Runtime, begins, asked
) -> None:
    tenant = await make_tenant(runtime)
    noon = datetime.now(UTC)

    def day(number: int) -> str:
        return (noon + timedelta(days=number)).isoformat()

    async with client_of(app, tenant.key) as client:
        last = (await save(client, TEA))["memory_id"]
        for cups, begin in enumerate(begins):
            validity = {} if begin is None else {"valid_from": day(begin)}
            last = await supersede(client, last, f"She drinks {cups} cups of tea.", **validity)
        told = [day(begin) for begin in begins if begin is not None]

        for at in [*told, *(day(number) for number in asked), moment()]:
            assert len(await listed(client, as_of=at)) == 1
        assert await listed(client) == await listed(client, as_of=day(500)) == [last]


MANY = """
WITH home AS (
    INSERT INTO agents (tenant_id, agent_id, agent_name) VALUES ($1, 'default', 'A')
    RETURNING agent_id
), crowd AS (
    INSERT INTO users (tenant_id, user_id, agent_id)
    SELECT $1, 'user' || n, agent_id FROM home, generate_series(1, 200) AS n RETURNING user_id
)
INSERT INTO memories (tenant_id, memory_id, user_id, scope, scope_id, content, content_hash,
    memory_type, tier, source, confidence, visibility, embedding, embedding_model, status,
    create_time)
SELECT $1, user_id || '/' || n, user_id, 'user', user_id, 'x', convert_to(n::text, 'UTF8'),
    'fact', 'long', 'user', 0.7 + (n % 30) / 100.0, 'members',
    array_fill(0.0625::float4, ARRAY[256])::vector, 'wordllama/l2_supercat:256',
    (ARRAY['active', 'active', 'superseded', 'archived'])[1 + n % 4],
    timestamptz '2026-01-01'
FROM crowd, generate_series(1, 40) AS n
"""

HISTORY = """
INSERT INTO memory_history (tenant_id, history_id, memory_id, user_id, event, after, version,
    create_time)
SELECT tenant_id, 'his_' || memory_id || event, memory_id, user_id, event,
    (to_jsonb(memories) - ARRAY['tenant_id', 'content_hash', 'embedding', 'use_count',
    'last_used_at']) || '{"status": "active"}', 1, create_time + age
FROM memories, (VALUES ('ADD', interval '0'), ('UPDATE', interval '1 day')) AS line(event, age)
WHERE tenant_id = $1
"""


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def crowded(postgres: EmbeddedPostgres, settings: Settings) -> AsyncIterator[Crowd]:
    """A tenant with 8,000 memories of 200 users, each changed once."""
    async with new_crowd(postgres, settings, "memories_time") as crowd:
        await execute(crowd.dsn, MANY, crowd.tenant_id)
        await execute(crowd.dsn, HISTORY, crowd.tenant_id)
        await execute(crowd.dsn, "ANALYZE memories")
        await execute(crowd.dsn, "ANALYZE memory_history")
        yield crowd


# Both begin with the bucket and hold active rows alone.
OF_THE_BUCKET = {"memories_idx_bucket", "memories_uk_content_hash"}


class TestPlan:
    """The statements of the past read a bucket and its history, and nothing else."""

    def plan(self, tenant_id: str, **past: Any) -> SearchPlan:
        return SearchPlan(
            access=Access(tenant_id),
            buckets=[Bucket("session", "none", 1.0), Bucket("user", "user1", 0.6)],
            vectors={MODEL: np.ones(256, np.float32) / 16},
            user_id="user1",
            agent_id=None,
            weights=(0.5, 0.3, 0.2),
            limit=10,
            **past,
        )

    async def test_as_of_reads_two_indexes_of_the_bucket(self, crowded: Crowd) -> None:
        plan = self.plan(crowded.tenant_id, as_of=datetime(2026, 2, 1, tzinfo=UTC))

        found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, *search_statement(plan)))

        indexes = {node["Index Name"] for node in found_plan if "Index Name" in node}
        assert indexes & OF_THE_BUCKET
        assert "memories_idx_bucket_past" in indexes
        assert rows_read(found_plan, "memories") <= 50
        assert found_plan[0]["Actual Rows"] == 10

    @pytest.mark.parametrize("statement", [known_statement, known_waiting_statement])
    async def test_known_at_reads_the_history_of_the_bucket_alone(
        self, crowded: Crowd, statement: Any
    ) -> None:
        plan = self.plan(crowded.tenant_id, known_at=datetime(2026, 1, 1, 12, tzinfo=UTC))

        found_plan = nodes(await plan_of(crowded.dsn, crowded.tenant_id, *statement(plan)))

        indexes = {node["Index Name"] for node in found_plan if "Index Name" in node}
        assert indexes & OF_THE_BUCKET
        assert {"memories_idx_bucket_past", "memory_history_idx_memory_id"} <= indexes
        assert rows_read(found_plan, "memories") <= 50
        # The entry of then, a look at what came after, and the ten best once more.
        assert rows_read(found_plan, "memory_history") <= 40 + 40 + 10


def rows_read(found_plan: list[dict[str, Any]], table: str) -> int:
    reads = [node for node in found_plan if node.get("Relation Name") == table]
    assert reads
    assert not [node for node in reads if node["Node Type"] == "Seq Scan"]
    return sum(node["Actual Rows"] * node["Actual Loops"] for node in reads)
