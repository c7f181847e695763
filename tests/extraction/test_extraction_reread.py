"""Stored conversations read again by a newer keyless reader: what it replaces, and what stays."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from typing import Any

import pytest
from httpx import AsyncClient
from typing_extensions import override

from app.builders.factory import Factory
from app.language.keyless.extractor import RulesExtractor
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.extractor import ConversationTurn, Extraction, ExtractionRequest, Proposed
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.memory.extraction.reread_service import RereadService, SessionReread
from app.runtime import Runtime
from tests.support.api import append, every_page, execute, ok, save
from tests.support.model_service import app_of
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.working import extracted, working

LISBON = "I live in Lisbon."
PORTO = "I live in Porto."


class Reader(RulesExtractor):
    """Proposes every message of the user, in words that tell which reader it was."""

    @override
    async def extract(self, request: ExtractionRequest) -> Extraction:
        news = [turn for turn in request.turns if turn.role == "user" and not turn.context]
        # As the keyless one does: what stood in the context is no news.
        return Extraction(
            tuple(self.proposed(turn) for turn in news if turn.content not in request.recalled)
        )

    def proposed(self, turn: ConversationTurn) -> Proposed:
        raise NotImplementedError


class OldReader(Reader):
    @property
    @override
    def name(self) -> str:
        return "rules/old"

    @override
    async def extract(self, request: ExtractionRequest) -> Extraction:
        seen = [turn for turn in request.turns if turn.message_id != "overlooked"]
        return await super().extract(replace(request, turns=seen))

    @override
    def proposed(self, turn: ConversationTurn) -> Proposed:
        content = turn.content.replace("I live", "The user lives").replace("I ", "The user ")
        return Proposed(content, "fact", 0.9, (turn.message_id,))


class NewReader(Reader):
    @property
    @override
    def name(self) -> str:
        return "rules/new"

    @override
    def proposed(self, turn: ConversationTurn) -> Proposed:
        attribute = "user.residence" if "I live" in turn.content else None
        return Proposed(
            turn.content, "fact", 0.9, (turn.message_id,), attribute=attribute, quoted=True
        )


def reading(runtime: Runtime, reader: RulesExtractor) -> Runtime:
    rules = ExtractionModel(reader, RulesReconciler())
    return replace(runtime, models=ModelCatalogue("rules", rules=rules))


@pytest.fixture(scope="module")
async def old(runtime: Runtime) -> Runtime:
    return reading(runtime, OldReader())


@pytest.fixture
def again(runtime: Runtime) -> RereadService:
    return Factory(reading(runtime, NewReader())).get(RereadService)


@pytest.fixture(scope="module")
async def old_app(old: Runtime) -> AsyncIterator[Any]:
    async with app_of(old) as application:
        yield application


@pytest.fixture
async def client(old_app: Any, old: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(old)
    async with client_of(old_app, owner.key) as opened:
        opened.tenant_id = owner.tenant_id
        yield opened


async def told(client: AsyncClient, old: Runtime, dsn: str, **sessions: list[Any]) -> None:
    """Append to sessions and let the old reader read them."""
    async with working(old, dsn):
        for session_id, messages in sessions.items():
            await append(client, session_id, *messages)
            await extracted(client, session_id)


async def read_again(
    again: RereadService, client: AsyncClient, *, dry_run: bool = False, **only: str
) -> list[SessionReread | None]:
    plan = await again.plan(client.tenant_id, only.get("user_id"), only.get("session_id"))
    return [await again.reread(plan, one, dry_run=dry_run) for one in plan.sessions]


async def active(client: AsyncClient, **query: Any) -> list[str]:
    rows = await every_page(client, "/memories", user_id="ana", **query)
    return sorted(row["content"] for row in rows)


async def everything(client: AsyncClient) -> list[dict[str, Any]]:
    return [
        row
        for status in ("active", "archived", "superseded")
        for row in await every_page(client, "/memories", user_id="ana", status=status)
    ]


def then(content: str, at: str) -> dict[str, Any]:
    return {"role": "user", "content": content, "metadata": {"client_time": at}}


async def test_new_statements_replace_the_old_ones_and_the_history_says_why(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON, "I keep bees."])
    [bees, lisbon] = sorted(
        await every_page(client, "/memories", user_id="ana"), key=lambda one: one["content"]
    )

    [done] = await read_again(again, client)

    assert done is not None
    assert [one.content for one in done.archived] == ["The user lives in Lisbon.", bees["content"]]
    assert await active(client) == ["I keep bees.", LISBON]
    assert ok(await client.get(f"/memories/{lisbon['memory_id']}"))["status"] == "archived"
    history = await every_page(client, f"/memories/{lisbon['memory_id']}/history")
    assert [(line["event"], line["reason"]) for line in history][1:] == [("ARCHIVE", "reread")]
    [run, _] = await every_page(client, "/extractions")
    assert (run["trigger"], run["extractor"], run["status"]) == ("reread", "rules/new", "committed")
    assert (run["first_sequence_no"], run["last_sequence_no"]) == (1, 2)


async def test_second_reading_changes_nothing(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    await read_again(again, client)
    before = await everything(client)

    assert await read_again(again, client) == []
    # As when the log of runs was cleared.
    await execute(dsn, "DELETE FROM extraction_runs WHERE tenant_id = $1", client.tenant_id)
    assert await read_again(again, client) == []
    assert await everything(client) == before


async def test_what_the_present_reader_made_stays_beside_what_an_older_one_made(
    client: AsyncClient, old: Runtime, again: RereadService, runtime: Runtime, dsn: str
) -> None:
    await told(client, old, dsn, talk=["I keep bees."], older=["I keep hens."])
    present = reading(runtime, NewReader())
    await told(client, present, dsn, talk=["I keep goats."], newer=[LISBON])
    made = {row["content"]: row for row in await every_page(client, "/memories", user_id="ana")}

    plan = await again.plan(client.tenant_id, None, None)
    shown = [await again.reread(plan, one, dry_run=True) for one in plan.sessions]

    assert again.reader == "rules/new"
    assert {one.session_id for one in plan.sessions} == {"talk", "older"}
    archived = [old for done in shown if done for old in done.archived]
    assert {(old.content, old.extractor) for old in archived} == {
        ("The user keep bees.", "rules/old"),
        ("The user keep hens.", "rules/old"),
    }
    await read_again(again, client)
    after = {row["content"]: row for row in await every_page(client, "/memories", user_id="ana")}
    assert after.keys() == {"I keep bees.", "I keep hens.", "I keep goats.", LISBON}
    assert {row["metadata"]["extractor"] for row in after.values()} == {"rules/new"}
    for content in ("I keep goats.", LISBON):
        assert after[content]["memory_id"] == made[content]["memory_id"]


async def test_session_of_which_no_log_is_left_is_read(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    await execute(dsn, "DELETE FROM extraction_runs WHERE tenant_id = $1", client.tenant_id)

    await read_again(again, client)

    assert await active(client) == [LISBON]


@pytest.mark.parametrize("change", ["edit", "archive", "delete", "erase"])
async def test_what_a_caller_changed_stays_so(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str, change: str
) -> None:
    await told(client, old, dsn, talk=[LISBON, "I keep bees."])
    rows = await every_page(client, "/memories", user_id="ana")
    [lisbon] = [row["memory_id"] for row in rows if "Lisbon" in row["content"]]
    body = {"edit": {"content": "The user lives in Faro."}, "archive": {"status": "archived"}}
    if change in body:
        headers = {"If-Match": "*"}
        answer = await client.patch(f"/memories/{lisbon}", json=body[change], headers=headers)
        assert answer.status_code == 200, answer.text
    else:
        params = {"hard": change == "erase"}
        assert (await client.delete(f"/memories/{lisbon}", params=params)).status_code == 204

    await read_again(again, client)

    kept = ["The user lives in Faro."] if change == "edit" else []
    assert await active(client, status="active") == ["I keep bees.", *kept]


async def test_what_was_saved_by_hand_wins(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await save(client, PORTO, attribute="user.residence")
    await told(client, old, dsn, talk=[LISBON])

    await read_again(again, client)

    rows = await every_page(client, "/memories", user_id="ana", status="active")
    assert PORTO in [row["content"] for row in rows]


async def test_what_a_caller_edited_wins_over_other_messages(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, first=[LISBON], second=["I live in Porto, by the sea."])
    rows = await every_page(client, "/memories", user_id="ana")
    [lisbon] = [row["memory_id"] for row in rows if "Lisbon" in row["content"]]
    change = {"content": "I live in Faro.", "attribute": "user.residence"}
    ok(await client.patch(f"/memories/{lisbon}", json=change, headers={"If-Match": "*"}))

    await read_again(again, client)

    assert "I live in Faro." in await active(client, status="active")


async def test_messages_that_are_gone_keep_what_was_made_of_them(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON, "I keep bees."])
    [first, _] = await every_page(client, "/sessions/talk/messages")
    assert (await client.delete(f"/sessions/talk/messages/{first['message_id']}")).is_success

    await read_again(again, client)

    assert await active(client, status="active") == ["I keep bees.", "The user lives in Lisbon."]


async def test_sessions_are_read_in_the_order_of_their_time(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(
        client,
        old,
        dsn,
        appended_first=[then(PORTO, "2024-05-01T00:00:00Z")],
        appended_last=[then(LISBON, "2021-05-01T00:00:00Z")],
    )

    done = await read_again(again, client)

    assert [one and one.session_id for one in done] == ["appended_last", "appended_first"]
    assert PORTO in await active(client, status="active")


async def test_old_memories_of_later_sessions_swallow_no_statement(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    overlooked = {"role": "user", "content": "I keep bees.", "message_id": "overlooked"}
    await told(client, old, dsn, first=[overlooked], second=["I keep bees."])

    [done, _] = await read_again(again, client)

    assert done is not None
    assert [content for content, _ in done.found] == ["I keep bees."]


async def test_dry_run_stores_nothing(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    before = await every_page(client, "/extractions")

    [done] = await read_again(again, client, dry_run=True)

    assert done is not None
    assert [one.content for one in done.archived] == ["The user lives in Lisbon."]
    assert [content for content, _ in done.found] == [LISBON]
    assert await active(client) == ["The user lives in Lisbon."]
    assert await every_page(client, "/extractions") == before


async def test_two_commands_at_once_read_a_session_once(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    plan = await again.plan(client.tenant_id, None, None)
    [session] = plan.sessions

    done = await asyncio.gather(*(again.reread(plan, session, dry_run=False) for _ in range(4)))

    assert sum(one is not None for one in done) == 1
    assert await active(client, status="active") == [LISBON]


async def test_what_a_model_reads_and_what_is_paused_is_left_alone(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    ok(await client.patch("/sessions/talk", json={"memory_enabled": False}))
    assert await read_again(again, client) == [None]
    ok(await client.patch("/sessions/talk", json={"memory_enabled": True}))
    statement = 'UPDATE agents SET config = \'{"model": "openai/x"}\' WHERE tenant_id = $1'
    await execute(dsn, statement, client.tenant_id)

    assert await read_again(again, client) == [None]
    assert await active(client) == ["The user lives in Lisbon."]


async def test_user_and_session_choose(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, first=[LISBON], second=["I keep bees."])

    assert await read_again(again, client, user_id="ben") == []
    assert len(await read_again(again, client, user_id="ana", session_id="second")) == 1
    assert await active(client, status="active") == ["I keep bees.", "The user lives in Lisbon."]


async def test_what_the_session_was_shown_of_itself_is_news_again(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    long = "I moved to a little white house by the river in Lisbon last spring with my dog."
    await told(client, old, dsn, talk=[long])
    statement = (
        "INSERT INTO context_injections (tenant_id, session_id, memory_id) "
        "SELECT tenant_id, 'talk', memory_id FROM memories WHERE tenant_id = $1"
    )
    await execute(
        dsn, "UPDATE memories SET content = $1 WHERE tenant_id = $2", long, client.tenant_id
    )
    await execute(dsn, statement, client.tenant_id)

    await read_again(again, client)

    rows = await every_page(client, "/memories", user_id="ana", status="active")
    assert [row["metadata"]["extractor"] for row in rows] == ["rules/new"]


async def test_unread_messages_wait_for_their_own_reading(
    client: AsyncClient, old: Runtime, again: RereadService, dsn: str
) -> None:
    await told(client, old, dsn, talk=[LISBON])
    await append(client, "talk", "I keep bees.")

    await read_again(again, client)

    assert await active(client, status="active") == [LISBON]
