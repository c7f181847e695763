"""Paid answers are kept until they are used: found by the same question alone, and not for long."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import structlog
from httpx import AsyncClient
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access, Principal
from app.identity.usage.ledger import ModelLedger
from app.identity.usage.paid_answers import AnswerPurpose, ModelQuestion, PaidAnswers
from app.identity.usage.quota import Quota
from app.identity.usage.repository import KEPT, AnswerRepository
from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import (
    ConversationTurn,
    Extraction,
    Malformed,
    ModelUse,
    Proposed,
    ProposedRelation,
)
from app.language.llm.profiler import Derivation, DerivedValue
from app.language.llm.reconciler import Join, ReconcileDecision, Reconciliation, Review
from app.language.llm.summariser import Summary
from app.runtime import Runtime
from tests.support.api import append, execute, ok
from tests.support.locks import committing, until_somebody_waits
from tests.support.tenants import Caller

SAID = datetime(2025, 5, 3, 10, 30, 0, 123456, tzinfo=UTC)
PURPOSE = AnswerPurpose("session:talk")
TURN = ConversationTurn("m1", "user", "我住在慕尼黑。", SAID)
QUESTION = ModelQuestion("extract", PURPOSE, "openai/reader", [[TURN]], Summary, "extraction/3")
USE = ModelUse(1, 300, 20, 900)


class Asked:
    """What a test asks, and how often the model was reached."""

    def __init__(self, runtime: Runtime, answer: Any = None) -> None:
        self.runtime = runtime
        self.answer = Summary("住在慕尼黑", USE) if answer is None else answer
        self.calls = 0
        self.noted: list[ModelUse] = []

    async def call(self) -> Any:
        self.calls += 1
        return self.answer

    async def note(self, _: AsyncSession, answer: Any) -> None:
        self.noted.append(answer.use)

    async def ask(self, tenant_id: str, question: Any = QUESTION) -> Any:
        """As another process would, which shares nothing but the database."""
        answers = PaidAnswers(self.runtime.database)
        return await answers.ask(tenant_id, question, self.call, self.note)


@pytest.fixture
def asked(runtime: Runtime) -> Asked:
    return Asked(runtime)


async def rows(dsn: str, caller: Caller) -> list[Any]:
    return await execute(
        dsn, "SELECT * FROM model_answers WHERE tenant_id = $1 ORDER BY purpose", caller.tenant_id
    )


async def two_of_each(client: AsyncClient, whose: str) -> tuple[str, str]:
    """Two of a kind, by the column that names it, with nothing else in them."""
    kind = whose.removesuffix("_id")
    named = {"agent": "agent_name", "project": "project_name"}
    body = {"user_id": "ana"} if kind == "session" else {}
    if kind in named:
        body = {named[kind]: "A name"}
    ids = (f"{kind}-1", f"{kind}-2")
    for one in ids:
        ok(await client.post(f"/{kind}s", json=body | {whose: one}), 201)
    return ids


class TestFound:
    async def test_the_same_question_is_asked_once_and_counted_once(
        self, asked: Asked, acme: Caller
    ) -> None:
        first = await asked.ask(acme.tenant_id)
        again = await asked.ask(acme.tenant_id)

        assert asked.calls == 1
        assert again == replace(first, use=ModelUse())
        assert asked.noted == [USE, ModelUse()]

    @pytest.mark.parametrize(
        "other",
        [
            {"operation": "summarise"},
            {"model": "openai/other"},
            {"prompt_version": "extraction/4"},
            {"prompt_version": None},
            {"purpose": AnswerPurpose("session:other")},
            {"shown": [[replace(TURN, content="我住在柏林。")]]},
            {"shown": [[replace(TURN, message_id="m2")]]},
            {"shown": [[replace(TURN, role="assistant")]]},
            {"shown": [[replace(TURN, said_at=SAID + timedelta(microseconds=1))]]},
            {"shown": [[replace(TURN, context=True)]]},
            {"shown": [[TURN, TURN]]},
            {"shown": []},
        ],
        ids=lambda other: next(iter(other)),
    )
    async def test_another_question_is_asked(
        self, asked: Asked, acme: Caller, other: dict[str, Any]
    ) -> None:
        await asked.ask(acme.tenant_id)
        await asked.ask(acme.tenant_id, replace(QUESTION, **other))

        assert asked.calls == 2

    @pytest.mark.parametrize("whose", ["agent_id", "user_id", "project_id", "session_id"])
    async def test_what_was_bought_for_somebody_else_is_not_used(
        self, asked: Asked, acme: Caller, client: AsyncClient, whose: str
    ) -> None:
        questions = [
            replace(QUESTION, purpose=AnswerPurpose("job:1", **{whose: one}))
            for one in await two_of_each(client, whose)
        ]
        for question in (*questions, *questions):
            await asked.ask(acme.tenant_id, question)

        assert asked.calls == 2

    async def test_what_another_tenant_bought_is_not_used(
        self, asked: Asked, acme: Caller, other: Caller
    ) -> None:
        await asked.ask(acme.tenant_id)
        await asked.ask(other.tenant_id)

        assert asked.calls == 2

    @pytest.mark.parametrize(
        ("age", "calls"),
        [(KEPT - timedelta(minutes=1), 1), (KEPT, 2), (KEPT + timedelta(minutes=1), 2)],
    )
    async def test_an_answer_serves_for_a_day(
        self, asked: Asked, acme: Caller, dsn: str, age: timedelta, calls: int
    ) -> None:
        await asked.ask(acme.tenant_id)
        old = "UPDATE model_answers SET create_time = now() - $2::interval WHERE tenant_id = $1"
        await execute(dsn, old, acme.tenant_id, age)

        await asked.ask(acme.tenant_id)
        await asked.ask(acme.tenant_id)

        # What was asked again is kept in the place of the old one.
        assert asked.calls == calls

    @pytest.mark.parametrize(
        "body", [b"", b"{", b"\xff", b"null", b"{}", b'{"text": 3}', b'{"words": "former name"}']
    )
    async def test_an_unreadable_answer_is_asked_for_again_and_replaced(
        self, asked: Asked, acme: Caller, dsn: str, body: bytes
    ) -> None:
        await asked.ask(acme.tenant_id)
        spoilt = "UPDATE model_answers SET answer = $2 WHERE tenant_id = $1"
        await execute(dsn, spoilt, acme.tenant_id, body)

        with structlog.testing.capture_logs() as lines:
            answers = [await asked.ask(acme.tenant_id) for _ in range(2)]

        assert asked.calls == 2
        assert [answer.text for answer in answers] == ["住在慕尼黑"] * 2
        events = [line["event"] for line in lines]
        assert events == ["kept_answer_unreadable", "kept_answer_used"]
        assert "慕尼黑" not in str(lines)

    @pytest.mark.parametrize(
        "answer",
        [
            Extraction(
                (
                    Proposed(
                        "住在 \x00 \ud800 慕尼黑",
                        "fact",
                        0.1 + 0.2,
                        ("m1",),
                        valid_from=SAID,
                        relations=(ProposedRelation("user", "lives_in", "Munich"),),
                    ),
                ),
                (Malformed(1, "no text"),),
                USE,
            ),
            Reconciliation(
                (ReconcileDecision("MERGE", ("mem_1",), "两只狗", "Because.", ("mem_2",)),),
                USE,
                (Review("mem_3", "REMOVE", "Over."),),
                (Join(("mem_4", "mem_5"), "one", 0.5),),
            ),
            Derivation(
                [DerivedValue("a", "nurse", ("m1",)), DerivedValue("b", ["x", "y"], ())],
                ["c"],
                USE,
            ),
        ],
        ids=lambda answer: type(answer).__name__,
    )
    async def test_every_kind_of_answer_comes_back_as_it_was(
        self, runtime: Runtime, acme: Caller, answer: Any
    ) -> None:
        asked, question = Asked(runtime, answer), replace(QUESTION, answer_type=type(answer))
        await asked.ask(acme.tenant_id, question)

        assert await asked.ask(acme.tenant_id, question) == replace(answer, use=ModelUse())
        assert asked.calls == 1


class TestKept:
    async def test_what_no_model_was_asked_is_not_kept(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        await Asked(runtime, Summary("nothing to read")).ask(acme.tenant_id)
        await Asked(runtime).ask(acme.tenant_id, None)

        assert await rows(dsn, acme) == []

    async def test_a_failure_is_not_kept(self, runtime: Runtime, acme: Caller, dsn: str) -> None:
        class Failing(Asked):
            async def call(self) -> Any:
                await super().call()
                raise ModelUnavailableError("bad_answer", fault="unreadable", use=USE)

        asked = Failing(runtime)
        for _ in range(2):
            with pytest.raises(ModelUnavailableError):
                await asked.ask(acme.tenant_id)

        assert (asked.calls, asked.noted, await rows(dsn, acme)) == (2, [], [])

    async def test_a_failed_note_keeps_nothing(
        self, runtime: Runtime, acme: Caller, dsn: str
    ) -> None:
        class Unnoted(Asked):
            async def note(self, db: AsyncSession, answer: Any) -> None:
                raise RuntimeError

        with pytest.raises(RuntimeError):
            await Unnoted(runtime).ask(acme.tenant_id)

        assert await rows(dsn, acme) == []

    async def test_what_is_stored_takes_its_own_answers_along(
        self, asked: Asked, runtime: Runtime, acme: Caller, other: Caller, dsn: str
    ) -> None:
        for caller in (acme, other):
            for name in ("session:talk", "session:talk2"):
                for shown in ("reading", "decisions"):
                    question = replace(QUESTION, purpose=AnswerPurpose(name), shown=shown)
                    await asked.ask(caller.tenant_id, question)

        async with runtime.database.begin(acme.tenant_id) as db:
            await AnswerRepository(db, acme.tenant_id).delete("session:talk")

        assert [row["purpose"] for row in await rows(dsn, acme)] == ["session:talk2"] * 2
        assert len(await rows(dsn, other)) == 4

    async def test_the_ledger_counts_a_kept_answer_as_no_call(
        self, runtime: Runtime, acme: Caller, client: AsyncClient
    ) -> None:
        class Teller:
            name, model = "openai/teller", "teller"

        asked, principal = (
            Asked(runtime),
            Principal(Access(acme.tenant_id), acme.key_id, frozenset({"write"}), {}),
        )
        for _ in range(3):
            ledger = ModelLedger(runtime.database, Quota(), "profile", failure="profile_failed")
            question = ledger.question(Teller(), PURPOSE, "the same", Summary)
            await ledger.ask(principal, Teller(), question, asked.call)

        [row] = ok(await client.get("/usage"))["items"]
        assert (row["operation"], row["calls"], row["input_tokens"]) == ("profile", 1, 300)
        assert asked.calls == 1


class TestErased:
    @pytest.mark.parametrize("whose", ["agent_id", "user_id", "project_id", "session_id"])
    async def test_an_erasure_takes_what_may_hold_words_of_the_erased(
        self, asked: Asked, acme: Caller, client: AsyncClient, dsn: str, whose: str
    ) -> None:
        gone, stays = await two_of_each(client, whose)
        for one in (gone, stays):
            purpose = AnswerPurpose(f"job:{one}", **{whose: one})
            await asked.ask(acme.tenant_id, replace(QUESTION, purpose=purpose))

        path = f"/{whose.removesuffix('_id')}s/{gone}"
        receipt = ok(await client.delete(path, params={"confirm": True}))

        assert receipt["deleted"]["model_answers"] == 1
        assert [row[whose] for row in await rows(dsn, acme)] == [stays]

    async def test_a_session_of_an_erased_user_takes_its_answers_along(
        self, asked: Asked, acme: Caller, client: AsyncClient, dsn: str
    ) -> None:
        await append(client, "talk", "I live in Munich.")
        purpose = AnswerPurpose("session:talk", session_id="talk")
        await asked.ask(acme.tenant_id, replace(QUESTION, purpose=purpose))

        receipt = ok(await client.delete("/users/ana", params={"confirm": True}))

        assert (receipt["deleted"]["model_answers"], await rows(dsn, acme)) == (1, [])

    async def test_a_deleted_message_leaves_no_words_behind(
        self, asked: Asked, acme: Caller, client: AsyncClient, dsn: str
    ) -> None:
        for session_id in ("talk", "other"):
            await append(client, session_id, "I live in Munich.")
            purpose = AnswerPurpose(f"session:{session_id}", session_id=session_id)
            await asked.ask(acme.tenant_id, replace(QUESTION, purpose=purpose))
        [said] = ok(await client.get("/sessions/talk/messages"))["items"]

        ok(await client.delete(f"/sessions/talk/messages/{said['message_id']}"))

        assert [row["session_id"] for row in await rows(dsn, acme)] == ["other"]

    async def test_who_was_erased_during_the_call_does_not_come_back_and_the_cost_counts(
        self, asked: Asked, acme: Caller, dsn: str
    ) -> None:
        purpose = AnswerPurpose("profile:user:nobody", user_id="nobody")
        answer = await asked.ask(acme.tenant_id, replace(QUESTION, purpose=purpose))

        assert answer.text == "住在慕尼黑"
        assert (asked.noted, await rows(dsn, acme)) == ([USE], [])

    async def test_somebody_of_the_same_id_gets_no_words_of_the_erased(
        self, runtime: Runtime, acme: Caller, client: AsyncClient, dsn: str
    ) -> None:
        class Slow(Asked):
            async def call(self) -> Any:
                ok(await client.delete("/users/eve", params={"confirm": True}))
                ok(await client.post("/users", json={"user_id": "eve"}), 201)
                return await super().call()

        ok(await client.post("/users", json={"user_id": "eve"}), 201)
        asked = Slow(runtime)
        purpose = AnswerPurpose("profile:user:eve", user_id="eve")
        await asked.ask(acme.tenant_id, replace(QUESTION, purpose=purpose))

        assert (asked.noted, await rows(dsn, acme)) == ([USE], [])

    async def test_an_erasure_that_is_under_way_is_waited_for(
        self, asked: Asked, acme: Caller, client: AsyncClient, dsn: str
    ) -> None:
        ok(await client.post("/users", json={"user_id": "eve"}), 201)
        purpose = AnswerPurpose("profile:user:eve", user_id="eve")
        question = replace(QUESTION, purpose=purpose)
        gone = f"DELETE FROM users WHERE tenant_id = '{acme.tenant_id}' AND user_id = 'eve'"

        async with committing(dsn, gone) as holder:
            asking = asyncio.create_task(asked.ask(acme.tenant_id, question))
            await until_somebody_waits(dsn, holder)
        await asking

        assert (asked.noted, await rows(dsn, acme)) == ([USE], [])
