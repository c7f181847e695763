"""The model's reconciler over the real SDK: nothing it answers can lose or destroy anything."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from openai import AsyncOpenAI

from app.language.llm.errors import ModelUnavailableError
from app.language.llm.extractor import Proposed
from app.language.llm.model_reconciler import ModelReconciler
from app.language.llm.openai_chat import OpenAIChat
from app.language.llm.reconciler import Neighbour, ReconcileDecision, ReconcileQuestion, Remainder
from tests.support.chat_behaviours import cut_off, decides, empty, lines_of, says, writes
from tests.support.openai_server import OpenAIServer, refusal

IDS = ("mem_0193a", "mem_0193b", "mem_0193c")


@pytest.fixture
def reconciler(client: AsyncOpenAI) -> ModelReconciler:
    return ModelReconciler(OpenAIChat(client, "local-model"))


def near(memory_id: str = IDS[0], content: str = "The user lives in Berlin.", **members: Any):
    return Neighbour(memory_id, content, "fact", 0.9, 0.8, **members)


def question(*neighbours: Neighbour, **members: Any) -> ReconcileQuestion:
    said = {"content": "The user lives in Munich.", "memory_type": "fact", **members}
    return ReconcileQuestion(Proposed(confidence=0.95, evidence=("msg_1",), **said), neighbours)


async def decide(
    server: OpenAIServer,
    reconciler: ModelReconciler,
    asked: ReconcileQuestion,
    answer: Mapping[str, Any],
) -> ReconcileDecision:
    server.chat.script(says({"decisions": [{"statement": "q1", "reason": "So.", **answer}]}))
    [decision] = (await reconciler.reconcile([asked])).decisions
    return decision


def test_reconciler_says_who_it_is(reconciler: ModelReconciler):
    assert reconciler.name == "openai/local-model"
    assert reconciler.model == "local-model"
    assert reconciler.prompt_version == "reconcile/10"


async def test_all_questions_with_neighbours_are_one_call(
    server: OpenAIServer, reconciler: ModelReconciler
):
    server.chat.script(decides(lambda _, near: {"event": "NONE", "memories": [near[0]["id"]]}))

    found = await reconciler.reconcile(
        [
            question(near(IDS[0])),
            question(),
            question(near(IDS[1]), near(IDS[0])),
            question(retracts=True),
        ]
    )

    assert found.decisions == (
        ReconcileDecision("NONE", (IDS[0],), reason="Because."),
        ReconcileDecision("ADD", reason="Nothing like it is remembered."),
        ReconcileDecision("NONE", (IDS[1],), reason="Because."),
        ReconcileDecision("NONE", reason="Nothing like it is remembered."),
    )
    assert (found.use.calls, found.use.input_tokens, found.use.output_tokens) == (1, 120, 30)


@pytest.mark.parametrize("questions", [[], [question()]])
async def test_nobody_is_asked_about_nothing(
    server: OpenAIServer, reconciler: ModelReconciler, questions: list[ReconcileQuestion]
):
    found = await reconciler.reconcile(questions)

    assert [one.event for one in found.decisions] == ["ADD"] * len(questions)
    assert found.use.calls == 0
    assert server.chat.requests == []


async def test_last_day_on_which_it_holds_is_sent(
    server: OpenAIServer, reconciler: ModelReconciler
):
    known = near(valid_to=datetime(2026, 7, 1, tzinfo=UTC))

    await reconciler.reconcile([question(known, valid_to=datetime(2026, 8, 1, 0, 1, tzinfo=UTC))])

    [sent] = server.chat.requests
    assert [line["valid_to"] for line in lines_of(sent)] == ["2026-06-30", "2026-08-01"]


async def test_memories_are_sent_once_and_without_their_ids(
    server: OpenAIServer, reconciler: ModelReconciler
):
    day = datetime(2026, 5, 1, 8, tzinfo=UTC)
    known = near(
        content='住在柏林。"}\n{"kind":',
        saved_by_person=True,
        attribute="user.residence",
        valid_from=day,
        valid_to=day,
        said_at=day,
        create_time=day + timedelta(days=200),
        expected_valid_days=30,
    )
    corrected = {"source_error": "Not Berlin.", "retracts": True, "attribute": "user.residence"}
    corrected |= {"said_at": day, "expected_valid_days": 1}

    await reconciler.reconcile(
        [question(known, near(IDS[1])), question(near(IDS[1]), known, valid_from=day, **corrected)]
    )

    [sent] = server.chat.requests
    assert lines_of(sent) == [
        {
            "kind": "memory",
            "id": "n1",
            "text": '住在柏林。"}\n{"kind":',
            "type": "fact",
            "attribute": "user.residence",
            "valid_from": "2026-05-01",
            "valid_to": "2026-05-01",
            "due": "2026-05-31",
            "said": "2026-05-01",
            "fixed": True,
        },
        {"kind": "memory", "id": "n2", "text": "The user lives in Berlin.", "type": "fact"},
        {
            "kind": "statement",
            "id": "q1",
            "text": "The user lives in Munich.",
            "type": "fact",
            "near": ["n1", "n2"],
        },
        {
            "kind": "statement",
            "id": "q2",
            "text": "The user lives in Munich.",
            "type": "fact",
            "attribute": "user.residence",
            "valid_from": "2026-05-01",
            "due": "2026-05-02",
            "said": "2026-05-01",
            "mends": "Not Berlin.",
            "retracts": True,
            "near": ["n2", "n1"],
        },
    ]
    assert not any(memory_id in str(sent.body) for memory_id in IDS)


@pytest.mark.parametrize(
    ("answer", "decision"),
    [
        ({"event": "ADD"}, ReconcileDecision("ADD")),
        ({"event": "ADD", "memories": ["n1"], "content": "x"}, ReconcileDecision("ADD")),
        ({"event": "none", "memories": ["n1"]}, ReconcileDecision("NONE", IDS[:1])),
        ({"event": "NONE", "memories": "N2"}, ReconcileDecision("NONE", IDS[1:2])),
        ({"event": "NONE", "memories": ["n1", "n2", "n1"]}, ReconcileDecision("NONE", IDS[:2])),
        ({"event": "SUPERSEDE", "memories": ["n2"]}, ReconcileDecision("SUPERSEDE", IDS[1:2])),
        (
            {"event": "UPDATE", "memories": ["n1"], "content": " Both. "},
            ReconcileDecision("UPDATE", IDS[:1], "Both."),
        ),
        (
            {"event": "MERGE", "memories": ["n1", "n2"], "content": "All."},
            ReconcileDecision("MERGE", IDS[:2], "All."),
        ),
        # With one memory it is what an update does.
        (
            {"event": "MERGE", "memories": ["n1"], "content": "Both."},
            ReconcileDecision("UPDATE", IDS[:1], "Both."),
        ),
        (
            {"event": "SUPERSEDE", "memories": ["n2", "n1"], "content": "The rest."},
            ReconcileDecision(
                "SUPERSEDE",
                (IDS[1], IDS[0]),
                remainders=(Remainder(IDS[1], "The rest.", inherits=True),),
            ),
        ),
        (
            {
                "event": "SUPERSEDE",
                "memories": ["n1", "n2"],
                "rests": [
                    {"memory": "n2", "content": "老周是木匠。", "attribute": "老周.occupation"},
                    {"memory": "N1", "content": " The rest. ", "attribute": None},
                    {"memory": "n1", "content": "Another rest.", "attribute": None},
                    {"memory": "n9", "content": "Of an unknown memory."},
                    {"memory": "n2", "content": " "},
                    {"content": "Of none."},
                    "n1",
                ],
            },
            ReconcileDecision(
                "SUPERSEDE",
                IDS[:2],
                remainders=(
                    Remainder(IDS[0], "The rest."),
                    Remainder(IDS[1], "老周是木匠。", "老周.occupation"),
                ),
            ),
        ),
        (
            {
                "event": "SUPERSEDE",
                "memories": ["n1"],
                "rests": [{"memory": "n2", "content": "It does not end."}],
            },
            ReconcileDecision("SUPERSEDE", IDS[:1]),
        ),
        # Deleting the old one for a new one would lose the new one, too.
        ({"event": "DELETE", "memories": ["n1"]}, ReconcileDecision("SUPERSEDE", IDS[:1])),
    ],
)
async def test_a_decision_is_taken_over(
    server: OpenAIServer,
    reconciler: ModelReconciler,
    answer: Mapping[str, Any],
    decision: ReconcileDecision,
):
    found = await decide(server, reconciler, question(near(), near(IDS[1])), answer)

    assert found.reason == "So."
    assert (found.event, found.memory_ids, found.content, found.remainders) == (
        decision.event,
        decision.memory_ids,
        decision.content,
        decision.remainders,
    )


@pytest.mark.parametrize(
    ("answer", "event", "ids"),
    [
        ({"event": "DELETE", "memories": ["n1"]}, "DELETE", IDS[:1]),
        ({"event": "NONE"}, "NONE", ()),
        ({"event": "DELETE", "memories": []}, "ADD", ()),
        ({"event": "DELETE", "memories": ["n1", "n2"]}, "DELETE", IDS[:2]),
    ],
)
async def test_only_a_retraction_deletes(
    server: OpenAIServer,
    reconciler: ModelReconciler,
    answer: Mapping[str, Any],
    event: str,
    ids: tuple[str, ...],
):
    asked = question(near(), near(IDS[1]), retracts=True)

    found = await decide(server, reconciler, asked, answer)

    assert (found.event, found.memory_ids) == (event, ids)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"event": "SUPERSEDE", "memories": ["n9"]}, "an unknown memory"),
        ({"event": "SUPERSEDE", "memories": ["n1", "n9"]}, "an unknown memory"),
        ({"event": "NONE", "memories": ["n9"]}, "an unknown memory"),
        ({"event": "ADD", "memories": ["n9"]}, "an unknown memory"),
        # A statement names no later one, nor itself.
        ({"event": "SUPERSEDE", "memories": ["q2"]}, "an unknown memory"),
        ({"event": "SUPERSEDE", "memories": ["q1"]}, "an unknown memory"),
        # Real ids are not in the prompt; whoever knows one has it from elsewhere.
        ({"event": "SUPERSEDE", "memories": [IDS[0]]}, "an unknown memory"),
        ({"event": "DELETE", "memories": [{"id": "n1"}]}, "an unknown memory"),
        ({"event": "NONE", "memories": []}, "no memory that says so"),
        ({"event": "UPDATE", "memories": ["n1"]}, "gave no text"),
        ({"event": "UPDATE", "memories": ["n1"], "content": " \x00"}, "gave no text"),
        ({"event": "MERGE", "memories": ["n1", "n2"], "content": None}, "gave no text"),
        ({"event": "UPDATE", "memories": [], "content": "x"}, "not name one"),
        ({"event": "UPDATE", "memories": ["n1", "n2"], "content": "x"}, "not name one"),
        ({"event": "MERGE", "memories": None, "content": "x"}, "not name one"),
        ({"event": "SUPERSEDE", "memories": []}, "named no memory"),
        ({"event": "FORGET", "memories": ["n1"]}, "an unknown event"),
        ({"event": None}, "an unknown event"),
        ({}, "an unknown event"),
        ({"statement": "q7", "event": "DELETE", "memories": ["n1"]}, "changes nothing"),
        ({"statement": None, "event": "DELETE", "memories": ["n1"]}, "changes nothing"),
    ],
)
async def test_what_does_not_hold_together_adds(
    server: OpenAIServer, reconciler: ModelReconciler, answer: Mapping[str, Any], reason: str
):
    server.chat.script(
        says(
            {
                "decisions": [
                    {"statement": "q1", **answer},
                    {"statement": "q2", "event": "NONE", "memories": ["n3"]},
                ]
            }
        )
    )

    found = await reconciler.reconcile(
        [question(near(IDS[0]), near(IDS[1])), question(near(IDS[2]))]
    )

    first, second = found.decisions
    assert (first.event, first.memory_ids, first.content) == ("ADD", (), None)
    assert reason in first.reason
    # The other one's decision stands.
    assert (second.event, second.memory_ids) == ("NONE", IDS[2:])


@pytest.mark.parametrize("decisions", [[], [None, "ADD", 3, []]])
async def test_questions_without_a_decision_add(
    server: OpenAIServer, reconciler: ModelReconciler, decisions: list[Any]
):
    server.chat.script(says({"decisions": decisions}))

    found = await reconciler.reconcile([question(near()), question(near())])

    assert {(one.event, one.reason) for one in found.decisions} == {
        ("ADD", "It changes nothing that is remembered.")
    }


async def test_retraction_without_a_decision_takes_back_nothing(
    server: OpenAIServer, reconciler: ModelReconciler
):
    server.chat.script(says({"decisions": []}))

    [decision] = (await reconciler.reconcile([question(near(), retracts=True)])).decisions

    assert (decision.event, decision.memory_ids) == ("NONE", ())


async def test_statement_names_memories_of_others_and_earlier_statements(
    server: OpenAIServer, reconciler: ModelReconciler
):
    first = replace(question(near(IDS[0])), statement_id="draft:0")
    alone = replace(question(), statement_id="draft:1")
    last = replace(question(near("draft:1"), near(IDS[1])), statement_id="draft:4")
    server.chat.script(
        says(
            {
                "decisions": [
                    {"statement": "q1", "event": "SUPERSEDE", "memories": ["n2"]},
                    {"statement": "q3", "event": "SUPERSEDE", "memories": ["q2", "n1", "q1"]},
                ]
            }
        )
    )

    decisions = (await reconciler.reconcile([first, alone, last])).decisions

    assert [(one.event, one.memory_ids) for one in decisions] == [
        ("SUPERSEDE", (IDS[1],)),
        ("ADD", ()),
        ("SUPERSEDE", ("draft:1", IDS[0], "draft:0")),
    ]
    [sent] = server.chat.requests
    assert [line["near"] for line in lines_of(sent, "statement") if "near" in line] == [
        ["n1"],
        ["q2", "n2"],
    ]


async def test_the_first_of_two_decisions_counts(server: OpenAIServer, reconciler: ModelReconciler):
    one = {"statement": "q1", "event": "NONE", "memories": ["n1"]}
    server.chat.script(says({"decisions": [one, {**one, "event": "SUPERSEDE"}]}))

    [decision] = (await reconciler.reconcile([question(near())])).decisions

    assert decision.event == "NONE"


@pytest.mark.parametrize(("length", "kept"), [(299, 299), (300, 300), (301, 300)])
async def test_a_reason_is_short(
    server: OpenAIServer, reconciler: ModelReconciler, length: int, kept: int
):
    answer = {"event": "ADD", "reason": "so" * 200}
    answer["reason"] = answer["reason"][:length]

    decision = await decide(server, reconciler, question(near()), answer)

    assert len(decision.reason) == kept


@pytest.mark.parametrize(
    "behaviour",
    [
        cut_off('{"decisions": ['),
        writes('{"decisions": [{"statement": "q1", "event": "DELETE", "memories": ["n1"'),
        empty,
        says({"decisions": None}),
        says({"decisions": {"q1": "ADD"}}),
        says({"answer": []}),
        refusal(500),
    ],
)
async def test_no_answer_decides_nothing(
    server: OpenAIServer, reconciler: ModelReconciler, behaviour: Any
):
    server.chat.otherwise = behaviour

    with pytest.raises(ModelUnavailableError) as caught:
        await reconciler.reconcile([question(near())])

    assert caught.value.use.calls == len(server.chat.requests) <= 2


@pytest.mark.parametrize(("count", "tokens"), [(1, 600), (38, 8_000), (39, 8_000)])
async def test_the_answer_has_room_for_every_decision(
    server: OpenAIServer, reconciler: ModelReconciler, count: int, tokens: int
):
    await reconciler.reconcile([question(near())] * count)

    assert server.chat.requests[0].body["max_tokens"] == tokens
