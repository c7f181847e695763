"""Old memories beside new statements, over the real SDK: what is asked, and what an answer is."""

from datetime import UTC, date, datetime
from typing import Any

import pytest
from openai import AsyncOpenAI

from app.language.llm.extractor import Proposed
from app.language.llm.model_reconciler import ModelReconciler
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.reconciler import (
    Agenda,
    AgendaMemory,
    Join,
    Neighbour,
    ReconcileQuestion,
    Reconciliation,
    Review,
)
from tests.support.chat_behaviours import (
    lines_of,
    says,
    schema_name_of,
    system_of,
    without_json,
    writes,
)
from tests.support.openai_server import OpenAIServer

TODAY = date(2026, 11, 21)
LONG_AGO = datetime(2026, 3, 1, 8, tzinfo=UTC)
ASKED = ReconcileQuestion(
    Proposed("The user lives in Munich.", "fact", 0.95, ("msg_1",)),
    (Neighbour("mem_near", "The user lives in Berlin.", "fact", 0.9, 0.8),),
)
DECIDED = [{"statement": "q1", "event": "ADD", "reason": "", "memories": [], "content": None}]


@pytest.fixture
def reconciler(client: AsyncOpenAI) -> ModelReconciler:
    return ModelReconciler(OpenAIChat(client, "local-model"))


def standing(number: int, **members: Any) -> AgendaMemory:
    usual = {"content": f"The user said {number}.", "memory_type": "fact", "confidence": 0.9}
    return AgendaMemory(f"mem_{number}", **(usual | members))


DUE = Agenda(TODAY, due=(standing(1, days=91), standing(2, days=200)))
PARTS = Agenda(TODAY, parts=(standing(1), standing(2), standing(3)))


async def answered(
    server: OpenAIServer, reconciler: ModelReconciler, agenda: Agenda, **members: Any
) -> Reconciliation:
    server.chat.script(says({"decisions": DECIDED, **members}))
    return await reconciler.reconcile([ASKED], agenda)


async def test_review_rides_in_the_one_call_with_names_of_its_own(
    server: OpenAIServer, reconciler: ModelReconciler
):
    old = standing(1, content="住在柏林。", days=120, expected_valid_days=30, since=LONG_AGO)
    found = await answered(server, reconciler, Agenda(TODAY, (old,), (standing(2),)))

    [sent] = server.chat.requests
    assert found.use.calls == 1
    assert schema_name_of(sent) == "decisions"
    assert [line["kind"] for line in lines_of(sent)] == [
        "memory", "statement", "today", "due", "part",
    ]  # fmt: skip
    assert lines_of(sent, "today", "due", "part") == [
        {"kind": "today", "date": "2026-11-21"},
        {
            "kind": "due",
            "id": "d1",
            "text": "住在柏林。",
            "type": "fact",
            "since": "2026-03-01",
            "days": 120,
            "expected": 30,
        },
        {"kind": "part", "id": "p1", "text": "The user said 2.", "type": "fact", "confidence": 0.9},
    ]
    assert "mem_" not in str(sent.body)


@pytest.mark.parametrize(
    ("agenda", "lists"),
    [(Agenda(), set()), (DUE, {"reviews"}), (PARTS, {"merges"})],
)
async def test_only_what_is_shown_is_asked_about(
    server: OpenAIServer, reconciler: ModelReconciler, agenda: Agenda, lists: set[str]
):
    await answered(server, reconciler, agenda)

    [sent] = server.chat.requests
    form = sent.body["response_format"]["json_schema"]["schema"]["properties"]
    assert form.keys() == {"decisions"} | lists
    assert {name for name in ("reviews", "merges") if f'"{name}"' in system_of(sent)} == lists


async def test_review_is_no_reason_to_ask(server: OpenAIServer, reconciler: ModelReconciler):
    alone = ReconcileQuestion(ASKED.proposed, ())

    found = await reconciler.reconcile([alone], Agenda(TODAY, DUE.due, PARTS.parts))

    assert (server.chat.requests, found.reviews, found.joins) == ([], (), ())


@pytest.mark.parametrize(("length", "shown"), [(499, 499), (500, 500), (501, 500)])
async def test_a_long_memory_is_cut_where_it_is_reviewed_and_whole_where_it_is_merged(
    server: OpenAIServer, reconciler: ModelReconciler, length: int, shown: int
):
    long = standing(1, content="长" * length)
    await answered(server, reconciler, Agenda(TODAY, (long,), (long,)))

    due, part = lines_of(server.chat.requests[0], "due", "part")
    assert (len(due["text"]), len(part["text"])) == (shown, length)


@pytest.mark.parametrize(
    ("due", "parts", "tokens"), [((), (), 600), (DUE.due, (), 720), ((), PARTS.parts, 1_600)]
)
async def test_its_answer_has_room(
    server: OpenAIServer, reconciler: ModelReconciler, due: Any, parts: Any, tokens: int
):
    await answered(server, reconciler, Agenda(TODAY, due, parts))

    assert server.chat.requests[0].body["max_tokens"] == tokens


class TestReviews:
    async def test_are_taken_over(self, server: OpenAIServer, reconciler: ModelReconciler):
        found = await answered(
            server,
            reconciler,
            DUE,
            reviews=[
                {"memory": " D2 ", "verdict": "remove", "reason": "Over."},
                {"memory": "d1", "verdict": "EXTEND", "reason": "x" * 400},
                {"memory": "d1", "verdict": "REMOVE", "reason": "Twice."},
            ],
        )

        assert found.reviews == (
            Review("mem_2", "REMOVE", "Over."),
            Review("mem_1", "EXTEND", "x" * 300),
        )

    @pytest.mark.parametrize(
        "reviews",
        [
            None,
            {},
            "REMOVE",
            [None, 3, "d1", []],
            [{"memory": "d9", "verdict": "REMOVE"}],
            # Near to the statement, and not under review.
            [{"memory": "n1", "verdict": "REMOVE"}],
            [{"memory": "mem_1", "verdict": "REMOVE"}],
            [{"memory": ["d1"], "verdict": "REMOVE"}],
            [{"memory": "d1", "verdict": "DELETE"}],
            [{"memory": "d1", "verdict": None}],
            [{"memory": "d1"}],
        ],
    )
    async def test_that_do_not_hold_together_are_none(
        self, server: OpenAIServer, reconciler: ModelReconciler, reviews: Any
    ):
        found = await answered(server, reconciler, DUE, reviews=reviews)

        assert found.reviews == ()
        assert [one.event for one in found.decisions] == ["ADD"]

    async def test_may_be_missing(self, server: OpenAIServer, reconciler: ModelReconciler):
        """A weak model that answers what it always did has answered."""
        found = await answered(server, reconciler, Agenda(TODAY, DUE.due, PARTS.parts))

        assert (len(found.decisions), found.reviews, found.joins) == (1, (), ())

    async def test_may_be_missing_in_a_bare_list(
        self, server: OpenAIServer, reconciler: ModelReconciler
    ):
        server.chat.otherwise = without_json(
            writes('[{"statement": "q1", "event": "NONE", "memories": ["n1"]}]')
        )

        found = await reconciler.reconcile([ASKED], DUE)

        assert [one.event for one in found.decisions] == ["NONE"]

    async def test_that_nobody_asked_for_are_none(
        self, server: OpenAIServer, reconciler: ModelReconciler
    ):
        found = await answered(
            server,
            reconciler,
            PARTS,
            reviews=[{"memory": "p1", "verdict": "REMOVE"}, {"memory": "d1", "verdict": "REMOVE"}],
        )

        assert found.reviews == ()


class TestMerges:
    async def test_are_taken_over(self, server: OpenAIServer, reconciler: ModelReconciler):
        found = await answered(
            server,
            reconciler,
            PARTS,
            merges=[
                {"memories": ["P3", "p1", "p3"], "content": " 全部。 ", "confidence": 0.8},
                {"memories": ["p2"], "content": "Alone.", "confidence": 7, "reason": "So."},
                {"memories": [], "content": "None."},
            ],
        )

        # How many it takes, and whether they overlap, is judged by the caller.
        assert found.joins == (
            Join(("mem_3", "mem_1"), "全部。", 0.8),
            Join(("mem_2",), "Alone.", 1.0, "So."),
            Join((), "None.", None),
        )

    @pytest.mark.parametrize("name", ["p9", "n1", "d1", "mem_1", ""])
    async def test_lose_all_their_parts_when_one_was_not_shown(
        self, server: OpenAIServer, reconciler: ModelReconciler, name: str
    ):
        merge = {"memories": ["p1", name, "p2"], "content": "All."}

        found = await answered(server, reconciler, PARTS, merges=[merge])

        assert found.joins == (Join((), "All."),)

    @pytest.mark.parametrize(
        "merge",
        [
            None,
            {"memories": ["p1", "p2"]},
            {"memories": ["p1", "p2"], "content": " \x00"},
            {"memories": ["p1", "p2"], "content": ["a"]},
            {"memories": "p1", "content": "All."},
            {"memories": ["p1", 2], "content": "All."},
        ],
    )
    async def test_that_do_not_hold_together_are_none(
        self, server: OpenAIServer, reconciler: ModelReconciler, merge: Any
    ):
        assert (await answered(server, reconciler, PARTS, merges=[merge])).joins == ()

    @pytest.mark.parametrize(
        ("said", "sure"), [("high", 0.5), (-1, 0.0), (True, 0.5), (None, None)]
    )
    async def test_have_a_confidence(
        self, server: OpenAIServer, reconciler: ModelReconciler, said: Any, sure: float | None
    ):
        merge = {"memories": ["p1", "p2"], "content": "All.", "confidence": said}

        found = await answered(server, reconciler, PARTS, merges=[merge])

        assert [one.confidence for one in found.joins] == [sure]

    @pytest.mark.parametrize(("count", "kept"), [(49, 49), (50, 50), (51, 50)])
    async def test_beyond_fifty_are_not_read(
        self, server: OpenAIServer, reconciler: ModelReconciler, count: int, kept: int
    ):
        merges = [{"memories": ["p1", "p2"], "content": "All."}] * count

        assert len((await answered(server, reconciler, PARTS, merges=merges)).joins) == kept
