"""Letting go of what waits to be done and of what came of it: jobs, runs, feedback, deliveries."""

import asyncio
from dataclasses import dataclass, field

import pytest
from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import counts, dump, execute, ok, problem, tables_with
from tests.support.patience import PATIENCE
from tests.support.tenants import Caller
from tests.support.working import working

WORDS = "zanzibar-nightingale"
OTHER = "kakapo"

# Tables in which somebody's words may stand; the others hold ids, codes and figures.
WITH_WORDS = {
    "gate_decisions", "idempotency_keys", "jobs", "memories", "memory_feedback", "memory_history",
}  # fmt: skip


@dataclass(frozen=True)
class Holder:
    """Something that is let go, and how a request says that its words belong there."""

    path: str
    place: dict[str, str]
    tables: set[str] = field(default_factory=lambda: WITH_WORDS | {"messages"})

    def of(self, other: str) -> "Holder":
        """The same with another id, whose things must stay."""
        ids = {
            name: value if name == "scope" else f"{other}-{value}"
            for name, value in self.place.items()
        }
        return Holder(self.path, ids, self.tables)


HOLDERS = {
    "user": Holder("/users/ana", {"user_id": "ana", "session_id": "talk"}),
    "session": Holder(
        "/sessions/talk", {"user_id": "ana", "session_id": "talk", "scope": "session"}
    ),
    "agent": Holder("/agents/coach", {"user_id": "ana", "agent_id": "coach", "session_id": "talk"}),
    "project": Holder(
        "/projects/apollo",
        {"user_id": "ana", "project_id": "apollo", "scope": "project"},
        WITH_WORDS,
    ),
}


async def fill(client: AsyncClient, holder: Holder, words: str) -> None:
    """Say the words wherever something keeps them: said, ordered, saved, refused, judged."""
    place = holder.place
    kept = ({"Idempotency-Key": f"{step} {words}"} for step in ("said", "read", "saved"))
    await client.post("/users", json={"user_id": place["user_id"]})
    if "project_id" in place:
        body = {"project_id": place["project_id"], "project_name": "P", "owner_id": "ana"}
        ok(await client.post("/projects", json=body | {"owner_id": place["user_id"]}), 201)
    if "session_id" in place:
        said = {name: place[name] for name in ("user_id", "agent_id") if name in place}
        said |= {"messages": [{"role": "user", "content": f"I love the {words}."}]}
        path = f"/sessions/{place['session_id']}"
        ok(await client.post(f"{path}/messages", json=said, headers=next(kept)), 201)
        prompt = {"prompt": f"Look for the {words}."}
        ok(await client.post(f"{path}/extract", json=prompt), 202)
    ordered = place | {"messages": f"My favourite bird is the {words}."}
    for _ in range(2):
        ok(await client.post("/memories?async=true", json=ordered), 202)
    read = ok(await client.post("/memories", json=ordered, headers=next(kept)), 201)
    assert words in read["results"][0]["memory"]["content"]
    saved = place | {"messages": f"She has seen a {words}.", "infer": False}
    problem(await client.post("/memories", json=saved | {"confidence": 0.1}), 422, "gate_rejected")
    stored = ok(await client.post("/memories", json=saved, headers=next(kept)), 201)
    memory = stored["results"][0]
    path = f"/memories/{memory['memory_id']}"
    ok(await client.patch(path, json={"content": f"She has seen the {words} twice."}))
    ok(await client.post(f"{path}/feedback", json={"rating": "wrong", "comment": words}), 201)


@pytest.fixture(params=HOLDERS)
async def holder(
    request: pytest.FixtureRequest, client: AsyncClient, acme: Caller, dsn: str
) -> Holder:
    """One of each kind with all its words, beside another one of the kind."""
    holder = HOLDERS[request.param]
    hook = ok(await client.post("/webhooks", json={"url": "https://kemem.invalid"}), 201)
    await fill(client, holder, WORDS)
    await fill(client, holder.of("b"), OTHER)
    # What is told of the erasure itself is another test's matter.
    ok(await client.patch(f"/webhooks/{hook['webhook_id']}", json={"enabled": False}))
    # Dead jobs keep what they were to do, for whoever retries them.
    await execute(
        dsn,
        "UPDATE jobs SET status = 'dead', finished_at = now() WHERE tenant_id = $1 AND job_id IN "
        "(SELECT min(job_id) FROM jobs WHERE tenant_id = $1 AND kind = 'infer' GROUP BY user_id)",
        acme.tenant_id,
    )
    return holder


async def erase(client: AsyncClient, holder: Holder) -> dict[str, int]:
    counted = ok(await client.delete(holder.path, params={"dry_run": True}))
    receipt = ok(await client.delete(holder.path, params={"confirm": True}))
    assert receipt["deleted"] == counted["deleted"]
    return receipt["deleted"]


async def test_no_word_stays_anywhere_and_all_of_the_others_does(
    client: AsyncClient, acme: Caller, dsn: str, holder: Holder
) -> None:
    before = await dump(dsn, acme.tenant_id)
    assert set(tables_with(WORDS, before)) == set(tables_with(OTHER, before)) == holder.tables

    await erase(client, holder)

    after = await dump(dsn, acme.tenant_id)
    assert tables_with(WORDS, after) == []
    for table in holder.tables:
        kept = [line for line in before[table] if OTHER in line]
        assert [line for line in after[table] if OTHER in line] == kept


async def test_the_receipt_counts_what_went(
    client: AsyncClient, acme: Caller, dsn: str, holder: Holder
) -> None:
    before = await counts(dsn, acme.tenant_id)

    deleted = await erase(client, holder)

    after = await counts(dsn, acme.tenant_id)
    gone = {name: before[name] - after[name] for name in before if before[name] != after[name]}
    names = {
        "answers": "idempotency_keys", "decisions": "gate_decisions", "history": "memory_history",
        "feedback": "memory_feedback", "deliveries": "webhook_deliveries", "members":
        "project_members", "memberships": "project_members", "runs": "extraction_runs",
        "buckets": "memory_buckets", "entities": "graph_entities", "mentions": "graph_mentions",
        "relations": "graph_relations", "aliases": "graph_aliases",
        "attached_folders": "agent_folders",
    }  # fmt: skip
    itself = holder.path.split("/")[1]
    assert gone.pop(itself) == 1
    assert gone.pop("erasures") == -1
    assert gone == {names.get(name, name): count for name, count in deleted.items() if count}
    # Of a user there is the job of the profile besides.
    assert deleted["jobs"] >= (2 if itself == "projects" else 3)
    expected = {"feedback": 1, "memories": 2}
    assert expected.items() <= deleted.items()
    assert deleted["history"] == 3
    if itself != "projects":
        assert deleted["runs"] == 1


async def test_vectors_of_former_words_go_with_them(
    client: AsyncClient, acme: Caller, dsn: str, holder: Holder
) -> None:
    vectors = "SELECT after FROM memory_history WHERE tenant_id = $1 AND embedding IS NOT NULL"
    before = await execute(dsn, vectors, acme.tenant_id)
    assert any(WORDS in str(row["after"]) for row in before)

    await erase(client, holder)

    left = await execute(dsn, vectors, acme.tenant_id)
    assert len(left) == len(before) // 2
    assert not any(WORDS in str(row["after"]) for row in left)


async def test_what_waited_is_not_remembered_afterwards(
    runtime: Runtime, client: AsyncClient, acme: Caller, dsn: str, holder: Holder
) -> None:
    await erase(client, holder)

    async with working(runtime, dsn):
        await done(client)

    left = await dump(dsn, acme.tenant_id)
    assert tables_with(WORDS, left) == []
    problem(await client.get(holder.path), 404, f"{holder.path.split('/')[1][:-1]}_not_found")


async def done(client: AsyncClient) -> None:
    """Wait until the other one's order is worked off, which was placed later."""
    async with asyncio.timeout(PATIENCE):
        while True:
            jobs = ok(await client.get("/jobs", params={"kind": "infer"}))["items"]
            if not {"pending", "running"} & {job["status"] for job in jobs}:
                return
            await asyncio.sleep(0.02)


class TestAnAgentsOwn:
    """What names the agent alone, or its session alone."""

    async def test_an_order_of_what_all_its_users_share_goes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        for agent, words in (("coach", WORDS), ("tutor", OTHER)):
            body = {"messages": f"I love the {words}.", "agent_id": agent, "scope": "agent"}
            ok(await client.post("/memories?async=true", json=body), 202)

        receipt = ok(await client.delete("/agents/coach"))

        assert receipt["deleted"]["jobs"] == 1
        left = await dump(dsn, acme.tenant_id)
        assert (tables_with(WORDS, left), tables_with(OTHER, left)) == ([], ["jobs"])

    async def test_a_refusal_of_what_was_said_in_its_session_goes(
        self, client: AsyncClient, acme: Caller, dsn: str
    ) -> None:
        ok(await client.post("/users", json={"user_id": "ana"}), 201)
        for agent, session, words in (("coach", "talk", WORDS), ("tutor", "chat", OTHER)):
            opened = {"session_id": session, "user_id": "ana", "agent_id": agent}
            ok(await client.post("/sessions", json=opened), 201)
            refused = {"messages": words, "user_id": "ana", "session_id": session, "infer": False}
            answer = await client.post("/memories", json=refused | {"confidence": 0.1})
            problem(answer, 422, "gate_rejected")

        ok(await client.delete("/agents/coach", params={"confirm": True}))

        left = await dump(dsn, acme.tenant_id)
        assert (tables_with(WORDS, left), tables_with(OTHER, left)) == ([], ["gate_decisions"])
