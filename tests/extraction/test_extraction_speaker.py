"""Who said a memory and when: columns that an extractor's quotations fill, and what keeps them."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from httpx import AsyncClient

from app.language.keyless.extractor import RulesExtractor
from app.language.keyless.reconciler import RulesReconciler
from app.language.llm.extractor import ConversationTurn, Extraction, ExtractionRequest, Proposed
from app.language.llm.model_catalogue import ExtractionModel, ModelCatalogue
from app.language.llm.reconciler import (
    NO_AGENDA,
    Agenda,
    ReconcileDecision,
    ReconcileQuestion,
    Reconciliation,
)
from app.language.text.time_expressions import validity
from app.runtime import Runtime
from tests.support.api import (
    append,
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
from tests.support.model_service import app_of
from tests.support.rows import for_each
from tests.support.service import client_of
from tests.support.tenants import make_tenant
from tests.support.tools import result
from tests.support.working import extracted, over, working

LISBON = "I moved to Lisbon last month."
MAY = "2025-05-03T23:30:00+02:00"
IN_UTC = "2025-05-03T21:30:00Z"
REWORDED = "I moved to Lisbon on 3 April."
REPEATED = "I moved to Lisbon last month, by train."
LINE = "- [fact] ana, 3 May 2025: I moved to Lisbon last month."


class Quoting(RulesExtractor):
    """Proposes every message of the user as it stands, in their own words."""

    async def extract(self, request: ExtractionRequest) -> Extraction:
        return Extraction(
            tuple(
                _quoted(turn) for turn in request.turns if turn.role == "user" and not turn.context
            )
        )


def _quoted(turn: ConversationTurn) -> Proposed:
    begin, end = validity(turn.content, turn.said_at)
    return Proposed(
        turn.content,
        "fact",
        0.9,
        (turn.message_id,),
        attribute="user.residence" if turn.content.startswith("I live") else None,
        valid_from=begin,
        valid_to=end,
        quoted=True,
    )


class Rewording(RulesReconciler):
    """Puts what is said more exactly into words of its own, or leaves it in the speaker's."""

    async def reconcile(
        self, questions: Sequence[ReconcileQuestion], agenda: Agenda = NO_AGENDA
    ) -> Reconciliation:
        found = await super().reconcile(questions, agenda)
        pairs = zip(questions, found.decisions, strict=True)
        return replace(found, decisions=tuple(self._reworded(*pair) for pair in pairs))

    def _reworded(
        self, question: ReconcileQuestion, decision: ReconcileDecision
    ) -> ReconcileDecision:
        said = question.proposed.content
        if said not in {REWORDED, REPEATED}:
            return decision
        content = "Ana moved to Lisbon on 3 April 2025." if said == REWORDED else said
        return ReconcileDecision("UPDATE", (question.neighbours[0].memory_id,), content)


@pytest.fixture(scope="module")
async def quoting(runtime: Runtime) -> Runtime:
    rules = ExtractionModel(Quoting(), Rewording())
    return replace(runtime, models=ModelCatalogue("rules", rules=rules))


@pytest.fixture(scope="module")
async def quoting_app(quoting: Runtime) -> AsyncIterator[Any]:
    async with app_of(quoting) as application:
        yield application


@pytest.fixture
async def client(quoting_app: Any, quoting: Runtime) -> AsyncIterator[AsyncClient]:
    owner = await make_tenant(quoting)
    async with client_of(quoting_app, owner.key) as opened:
        opened.tenant_id = owner.tenant_id
        yield opened


def said(content: str, at: str | None = None, **fields: Any) -> dict[str, Any]:
    meta = {} if at is None else {"client_time": at}
    return {"role": "user", "content": content, "metadata": meta} | fields


async def infer(client: AsyncClient, *messages: Any, **fields: Any) -> dict[str, Any]:
    body = {"messages": list(messages), "user_id": "ana"} | fields
    answer = await client.post("/memories", json=body)
    assert answer.status_code in {200, 201}, answer.text
    return answer.json()["results"][0]["memory"]


async def test_session_that_is_read_keeps_who_said_it_and_when(
    client: AsyncClient, quoting: Runtime, dsn: str
) -> None:
    await append(client, "talk", said(LISBON, MAY), said("I have a dog.", name="Bo"))
    async with working(quoting, dsn):
        await extracted(client, "talk")

    rows = {row["content"]: row for row in await every_page(client, "/memories", user_id="ana")}
    messages = await every_page(client, "/sessions/talk/messages")
    assert (rows[LISBON]["speaker"], rows[LISBON]["said_at"]) == ("ana", IN_UTC)
    dog = rows["I have a dog."]
    assert (dog["speaker"], dog["said_at"]) == ("Bo", messages[1]["create_time"])


JUNE = "2024-06-15T10:00:00Z"


class TestTimeOfARequest:
    @pytest.mark.parametrize(
        "told",
        [
            {"messages": LISBON, "valid_from": JUNE},
            {"messages": LISBON, "metadata": {"client_time": JUNE}},
            {"messages": {"content": LISBON, "said_at": JUNE}},
            {"messages": {"content": LISBON, "metadata": {"client_time": JUNE}}},
            # What is nearer to the words wins.
            {
                "messages": [
                    {"content": LISBON, "said_at": JUNE, "metadata": {"client_time": MAY}}
                ],
                "valid_from": MAY,
            },
            {
                "messages": [{"content": LISBON, "metadata": {"client_time": JUNE}}],
                "valid_from": MAY,
            },
            {"messages": LISBON, "valid_from": JUNE, "metadata": {"client_time": MAY}},
        ],
    )
    async def test_last_month_is_that_before_the_words_were_said(
        self, client: AsyncClient, told: dict[str, Any]
    ) -> None:
        body = told | {"user_id": "ana"}
        [outcome] = ok(await client.post("/memories", json=body), 201)["results"]

        memory = outcome["memory"]
        assert memory["said_at"] == JUNE
        assert memory["valid_from"] == "2024-05-01T00:00:00Z"

    async def test_job_reads_them_as_of_the_same_time(
        self, client: AsyncClient, quoting: Runtime, dsn: str
    ) -> None:
        body = {"messages": {"content": LISBON, "said_at": JUNE}, "user_id": "ana"}
        job = ok(await client.post("/memories", json=body, params={"async": True}), 202)
        async with working(quoting, dsn):
            await over(client, job["job_id"])

        [memory] = await every_page(client, "/memories", user_id="ana")
        assert (memory["said_at"], memory["valid_from"]) == (JUNE, "2024-05-01T00:00:00Z")

    async def test_day_before_is_that_of_the_speaker(self, client: AsyncClient) -> None:
        told = {"content": "I moved to Lisbon yesterday.", "said_at": "2024-06-15T01:00:00+08:00"}

        memory = await infer(client, told)

        assert memory["said_at"] == "2024-06-14T17:00:00Z"
        assert memory["valid_from"] == "2024-06-14T00:00:00Z"

    async def test_statement_as_it_stands_keeps_when_its_message_was_said(
        self, client: AsyncClient
    ) -> None:
        told = {"content": "She moved to Lisbon.", "said_at": JUNE}
        memory = (await save(client, told, valid_from=MAY))["memory"]

        assert (memory["said_at"], memory["valid_from"]) == (JUNE, IN_UTC)
        assert memory["speaker"] is None

    @for_each("infer", [True, False])
    @for_each("path", ["/memories", "/memories?async=true", "/memories/validate"])
    @for_each("days", [timedelta(days=1, minutes=5), timedelta(days=-50_000), None])
    async def test_message_that_cannot_have_been_said_then_is_refused(
        self, client: AsyncClient, days: timedelta | None, path: str, infer: bool
    ) -> None:
        out = "9999-12-31T23:59:59-12:00"
        at = out if days is None else (datetime.now(UTC) + days).isoformat()
        said_then = {"content": LISBON, "said_at": at}
        body = {"messages": [{"content": LISBON}, said_then], "user_id": "ana", "infer": infer}

        refused = problem(await client.post(path, json=body), 422, "invalid_request")

        assert fields(refused) == ["body.messages.1.said_at"]
        body["messages"] = said_then
        refused = problem(await client.post(path, json=body), 422, "invalid_request")
        assert fields(refused) == ["body.messages.said_at"]
        assert await listed(client, user_id="ana") == []

    async def test_request_ahead_is_refused_with_infer_alone(self, client: AsyncClient) -> None:
        ahead = (datetime.now(UTC) + timedelta(days=2)).isoformat()
        body = {"messages": LISBON, "user_id": "ana", "valid_from": ahead}

        refused = problem(await client.post("/memories", json=body), 422, "invalid_request")

        assert fields(refused) == ["body.valid_from"]
        await save(client, LISBON, valid_from=ahead)

    @pytest.mark.parametrize(
        "told", ["1899-12-31T23:59:59Z", "9999-12-31T23:59:59-12:00", "2999-01-01", "last week"]
    )
    async def test_client_time_that_cannot_be_is_ignored(
        self, client: AsyncClient, told: str
    ) -> None:
        memory = await infer(client, said(LISBON, told))

        assert datetime.fromisoformat(memory["said_at"]) > datetime.now(UTC) - timedelta(hours=1)

    @for_each("path", ["/memories", "/memories?async=true", "/memories/validate"])
    @for_each(
        ("body", "locations"),
        [
            ({"messages": LISBON, "metadata": {"client_time": "last week"}}, ["metadata"]),
            ({"messages": {"content": LISBON, "metadata": {"client_time": "1899-12-31"}}},
             ["messages.metadata"]),
            ({"messages": [{"content": LISBON},
                           {"content": LISBON, "metadata": {"client_time": 3}}],
              "metadata": {"client_time": "2999-01-01"}}, ["messages.1.metadata", "metadata"]),
            # Nothing goes by them.
            ({"messages": LISBON, "valid_from": JUNE, "metadata": {"client_time": "?"}}, []),
            ({"messages": {"content": LISBON, "said_at": JUNE, "metadata": {"client_time": "?"}}},
             []),
            ({"messages": [{"content": LISBON, "metadata": {"client_time": JUNE}}],
              "metadata": {"client_time": "?"}}, []),
            ({"messages": LISBON, "metadata": {"client_time": "?"}, "infer": False}, []),
        ],
    )  # fmt: skip
    async def test_client_time_that_is_not_used_is_named(
        self, client: AsyncClient, path: str, body: dict[str, Any], locations: list[str]
    ) -> None:
        response = await client.post(path, json=body | {"user_id": "ana"})

        assert response.is_success, response.text
        told = response.json().get("warnings", [])
        assert {warning["code"] for warning in told} <= {"client_time_ignored"}
        assert [".".join(warning["location"]) for warning in told] == [
            f"body.{location}.client_time" for location in locations
        ]


async def test_older_value_ends_when_the_newer_one_was_said(client: AsyncClient) -> None:
    first = await infer(client, said("I live in Munich.", "2024-01-10T00:00:00Z"))
    second = await infer(client, said("I live in Lisbon now.", JUNE))

    old = ok(await client.get(f"/memories/{first['memory_id']}"))
    assert (old["status"], old["valid_to"]) == ("superseded", JUNE)
    assert second["valid_from"] == JUNE
    then = await found(client, "Where do I live?", user_id="ana", as_of="2024-03-01T00:00:00Z")
    assert then == [first["memory_id"]]


async def test_context_and_search_show_them(client: AsyncClient) -> None:
    await append(client, "talk", "Hello there, how are you today?")
    await infer(client, said(LISBON, MAY))

    hits = await search(client, LISBON, user_id="ana", format="text")
    assert f"{LINE} (since 1 April 2025)" in hits["prompt"].splitlines()
    [hit] = hits["results"]
    assert (hit["speaker"], hit["said_at"]) == ("ana", IN_UTC)
    shown = ok(
        await client.post("/sessions/talk/context", json={"query": LISBON, "render": "openai"})
    )
    lines = shown["messages"][0]["content"].splitlines()
    assert f"{LINE} (since 1 April 2025)" in lines
    told = await result(client, "memory_search", {"query": LISBON}, session_id="talk")
    assert LINE.removeprefix("- [fact] ") in told


async def test_statement_saved_as_it_stands_is_nobodys_words(client: AsyncClient) -> None:
    memory = (await save(client, "She moved to Lisbon.", metadata={"name": "Bo"}))["memory"]

    assert (memory["speaker"], memory["said_at"]) == (None, None)


async def test_edit_of_the_words_ends_the_quotation_and_undo_brings_it_back(
    client: AsyncClient,
) -> None:
    memory_id = (await infer(client, said(LISBON, MAY)))["memory_id"]
    path = f"/memories/{memory_id}"

    kept = ok(await client.patch(path, json={"content": LISBON, "confidence": 0.8}))
    changed = ok(await client.patch(path, json={"content": "Ana moved to Lisbon."}))

    assert (kept["speaker"], kept["said_at"]) == ("ana", IN_UTC)
    assert (changed["speaker"], changed["said_at"]) == (None, IN_UTC)
    lines = await every_page(client, f"{path}/history")
    assert [line["after"]["speaker"] for line in lines] == ["ana", "ana", None]
    body = {"history_id": lines[0]["history_id"]}
    again = ok(await client.post(f"{path}/restore", json=body))["memory"]
    assert (again["content"], again["speaker"], again["said_at"]) == (LISBON, "ana", IN_UTC)


async def test_words_of_a_reconciler_are_nobodys_and_those_of_the_speaker_theirs(
    client: AsyncClient,
) -> None:
    first = await infer(client, said(LISBON, MAY))

    again = await infer(client, said(REPEATED, JUNE, name="Bo"))
    assert (again["memory_id"], again["version"]) == (first["memory_id"], 2)
    assert (again["content"], again["speaker"], again["said_at"]) == (REPEATED, "Bo", IN_UTC)
    later = await infer(client, said(REWORDED, "2025-07-01T00:00:00Z"))
    assert (later["memory_id"], later["version"]) == (first["memory_id"], 3)
    assert (later["speaker"], later["said_at"]) == (None, "2025-07-01T00:00:00Z")
    path = f"/memories/{first['memory_id']}"
    [line, *_] = await every_page(client, f"{path}/history")
    body = {"history_id": line["history_id"]}
    back = ok(await client.post(f"{path}/restore", json=body))["memory"]
    assert (back["speaker"], back["said_at"]) == ("ana", IN_UTC)


async def test_past_shows_them_as_they_were(client: AsyncClient) -> None:
    memory = await infer(client, said(LISBON, MAY))
    path = f"/memories/{memory['memory_id']}"
    [line] = await every_page(client, f"{path}/history")
    ok(await client.patch(path, json={"content": "Ana moved away."}))

    then = await search(client, LISBON, user_id="ana", known_at=line["create_time"])

    [hit] = then["results"]
    assert (hit["content"], hit["speaker"], hit["said_at"]) == (LISBON, "ana", IN_UTC)


async def test_filters_know_both(client: AsyncClient) -> None:
    first = await infer(client, said(LISBON, MAY))
    second = await infer(client, said("I have a dog.", name="Bo"))

    def ids(filters: dict[str, Any]) -> Any:
        return found(client, "dog or Lisbon", user_id="ana", filters=filters)

    assert await ids({"speaker": "Bo"}) == [second["memory_id"]]
    assert await ids({"said_at": {"lt": "2025-06-01T00:00:00Z"}}) == [first["memory_id"]]


async def test_speaker_is_found_as_if_named_in_the_words(client: AsyncClient, dsn: str) -> None:
    memory = await infer(client, said("I have a dog.", name="Bartholomew"))

    async def terms() -> Any:
        query = "SELECT terms::text FROM memories WHERE memory_id = $1"
        return await execute(dsn, query, memory["memory_id"])

    before = await terms()
    await client.patch(f"/memories/{memory['memory_id']}", json={"content": "I have a cat."})
    ok(await client.patch(f"/memories/{memory['memory_id']}", json={"content": "I have a dog."}))
    assert await terms() != before


async def test_erasure_of_the_user_takes_their_words_and_name(
    client: AsyncClient, dsn: str
) -> None:
    await infer(client, said(LISBON, MAY))

    ok(await client.delete("/users/ana", params={"confirm": True}))

    query = "SELECT count(*) FROM memories WHERE tenant_id = $1 AND speaker IS NOT NULL"
    [row] = await execute(dsn, query, client.tenant_id)
    assert row["count"] == 0


async def test_another_speaker_of_the_session_is_somebody_else(client: AsyncClient) -> None:
    def spoken(name: str, content: str) -> dict[str, Any]:
        return said(content, JUNE, name=name)

    await infer(client, spoken("Ana", "I live in Lisbon."), spoken("Ben", "I live in Rome."))
    await infer(client, spoken("Ana", "I live in Porto now."))

    rows = await every_page(client, "/memories", user_id="ana")
    live = {(row["speaker"], row["content"]) for row in rows if row["status"] == "active"}
    assert live == {("Ana", "I live in Porto now."), ("Ben", "I live in Rome.")}
