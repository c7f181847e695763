"""How `kemem eval` measures messages and contexts, against a service whose answers are given."""

import asyncio
import json
from datetime import UTC, datetime

import httpx2
import pytest
from typer import Exit

from app.evaluation.api import Api
from app.evaluation.conversation_measurement import (
    Gathered,
    context_report_of,
    print_context_report,
    report_conversations,
)
from app.evaluation.conversation_run import RETRY_SECONDS, ConversationEvaluation
from app.evaluation.dataset import Dataset, DatasetUnit, Question, Store
from app.evaluation.run import Plan

NOW = datetime(2026, 11, 21, tzinfo=UTC)
SAID_AT = datetime(2024, 5, 13, tzinfo=UTC)
UNITS = (
    DatasetUnit("1", "I live in Munich.", "monday", "Ana", SAID_AT),
    DatasetUnit("2", "Noted.", "monday", moment=SAID_AT, role="assistant"),
    DatasetUnit("3", "I moved.", "friday", moment=datetime(2999, 1, 1, tzinfo=UTC)),
    DatasetUnit("4", "Hello"),
)
QUESTIONS = (
    Question("Where?", frozenset({"1", "3"}), "place", datetime(2024, 6, 1, tzinfo=UTC)),
    Question("Who?", frozenset({"4"}), "who"),
    Question("Why?", frozenset(), "never", answer="Nothing was said about it."),
)
DATASET = Dataset("one", (Store("ana", UNITS, QUESTIONS),))


class StandIn:
    """A service that stores messages and answers as `answers` say; keeps what was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.seen = []
        # Messages that are not read yet, and those without a vector, as the polls see them.
        self.unread = [0, 0, 2]
        self.waiting = [0, 3, 0]
        self.stored = 0
        self.pauses = []

    async def sleep(self, seconds):
        """Nobody waits for a service that is none."""
        self.pauses.append(seconds)
        await asyncio.sleep(0)

    async def __call__(self, request):
        body = json.loads(request.content or "null")
        path = request.url.path.removeprefix("/v1")
        self.seen.append((request.method, path, body))
        status, answer = self.answer(path, body)
        return httpx2.Response(status, json=answer)

    def answer(self, path, body):
        if path == "/messages/search":
            polls = body["limit"] == 1
            waiting = self.waiting.pop() if self.waiting and polls else 0
            unread = self.unread.pop() if self.unread and polls else 0
            items = [{"message_id": "eval-1-1-m1", "content": "I live in Munich."}]
            return 200, {
                "items": items, "embedding_models": ["m"], "degraded": False, "mode": "hybrid",
                "waiting": waiting, "searched": self.stored - unread, "left_out": False,
            }  # fmt: skip
        if path.endswith("/context"):
            return self.context(path, body)
        if path.endswith("/messages"):
            return self.append(body)
        if path.endswith("/extract"):
            return 200, {"done": len(self.paths("/extract")) % 2 == 0}
        return 200, {}

    def append(self, body):
        texts = [one["content"] for one in body["messages"]]
        refused = self.answers.get("refused")
        if refused in texts:
            return 413, {"code": "too_long", "detail": "No."}
        kept = [one for one in body["messages"] if one["content"] != self.answers.get("dropped")]
        self.stored += len(kept)
        return 200, {"messages": kept}

    def context(self, path, body):
        if path == "/sessions/eval-1-0/context":
            return self.answers.get("unknown_session", (404, {}))
        if body["query"] == "Who?" and "who" in self.answers:
            return self.answers["who"], {"code": "no"}
        shown = [1, 2] if body["max_memory_tokens"] == 100 else [1, 2, 3]
        told = {
            "prompt": "In eval-1-1 she said that she lives in Munich.",
            "memory_tokens": 40,
            "used_excerpts": [{"message_id": f"eval-1-1-m{number}"} for number in shown],
            "parts": [{"name": "profile", "tokens": 9}, {"name": "excerpts", "tokens": 31}],
        }
        return 200, {key: told[key] for key in told if key not in self.answers.get("without", ())}

    def paths(self, end):
        return [path for _, path, _ in self.seen if path.endswith(end)]

    def bodies(self, end):
        return [body for _, path, body in self.seen if path.endswith(end)]


def evaluation(stand_in, **changes):
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(stand_in), base_url="http://test")
    values = {"run_id": "eval-1", "limit": 10, "search": {"mode": "hybrid"}, "concurrency": 1}
    plan = Plan(**values | {"keep": False, "budgets": (100, 200)} | changes)
    return ConversationEvaluation(Api(client), DATASET, plan, NOW, sleep=stand_in.sleep)


async def played(stand_in, **changes):
    run = evaluation(stand_in, **changes)
    await run.check()
    async with run.stored():
        asked = await run.ask()
        contexts = {budget: await run.contexts(budget) for budget in (100, 200)}
    return Gathered(dataset=DATASET, evaluation=run, asked=asked, contexts=contexts)


async def test_units_are_messages_of_their_sessions():
    stand_in = StandIn()
    gathered = await played(stand_in)

    sessions = [body["session_id"] for body in stand_in.bodies("/sessions")]
    assert sessions == ["eval-1-1-1", "eval-1-1-2", "eval-1-1-3", "eval-1-1-asking"]
    first, second, third = stand_in.bodies("/messages")
    at = {"client_time": "2024-05-13T00:00:00+00:00"}
    assert first["messages"] == [
        {
            "message_id": "eval-1-1-m1", "role": "user", "name": "Ana", "metadata": at,
            "content": "I live in Munich.",
        },
        {
            "message_id": "eval-1-1-m2", "role": "assistant", "content": "Noted.", "metadata": at,
        },
    ]  # fmt: skip
    # What is said to be of the future has no time.
    assert second["messages"][0]["metadata"] == third["messages"][0]["metadata"] == {}
    assert [hits for one in gathered.asked for hits in one.hits] == [frozenset({"1"})] * 3
    loaded = gathered.evaluation.loaded["ana"]
    assert (loaded.ahead, loaded.waiting, loaded.events["ADD"]) == (1, 0, 4)
    # Nothing is asked before every message is read and can be compared.
    polls = [body for body in stand_in.bodies("/messages/search") if body["limit"] == 1]
    assert len(polls) == 3


async def test_contexts_are_asked_for_in_a_session_where_nothing_was_said():
    stand_in = StandIn()
    await played(stand_in, context={"rerank": False})

    paths = stand_in.paths("/context")
    assert paths == ["/sessions/eval-1-0/context", *["/sessions/eval-1-1-asking/context"] * 6]
    without = {"memories": False, "profile": False, "corrections": False}
    assert stand_in.bodies("/context")[1] == {
        "query": "Where?",
        "max_memory_tokens": 100,
        "include": without,
        "rerank": False,
        "reference_time": "2024-06-01T00:00:00+00:00",
    }


async def test_memories_are_shown_when_they_are_read_first():
    stand_in = StandIn()
    await played(stand_in, extract=True)
    assert "include" not in stand_in.bodies("/context")[1]
    # Each until it is done.
    assert stand_in.paths("/extract") == [
        f"/sessions/eval-1-1-{number}/extract" for number in (1, 1, 2, 2, 3, 3)
    ]
    assert stand_in.pauses.count(RETRY_SECONDS) == 3


async def test_the_share_of_the_evidence_is_told_by_budget(capsys):
    gathered = await played(StandIn())
    report = report_conversations(gathered, [1])

    small, large = report["contexts"]["100"], report["contexts"]["200"]
    assert small["categories"]["place"] == {
        "questions": 1, "evidence": 0.5, "interval": [0.5, 0.5], "all_evidence": 0.0,
        "messages": 2.0, "excerpt_tokens": 31.0, "tokens": 40.0,
    }  # fmt: skip
    assert (small["total"]["evidence"], large["total"]["evidence"]) == (0.25, 0.5)
    assert large["total"]["interval"] == [0.0, 1.0]
    # A question that nothing answers counts in neither.
    assert large["total"]["questions"] == report["total"]["questions"] == 2
    assert small["questions"][0]["not_shown"] == ["3"]
    assert report["total"]["recall"] == {"1": 0.25}
    assert "among the excerpts of a context of 200 tokens" in capsys.readouterr().out


async def test_ids_of_a_run_are_no_part_of_what_a_model_sees():
    gathered = await played(StandIn())
    assert gathered.contexts[100][0].prompt == "In eval-1 she said that she lives in Munich."


@pytest.mark.parametrize(("status", "failed"), [(422, 0), (503, 2)])
async def test_a_context_that_is_not_given_shows_nothing(status, failed, capsys):
    gathered = await played(StandIn(who=status))
    report = context_report_of(DATASET, gathered.contexts)
    print_context_report(report)

    assert report["100"]["categories"]["who"]["evidence"] == 0
    assert report["100"]["problems"] == {"no": 1}
    assert gathered.failed == failed
    assert "1 contexts were not given (no)." in capsys.readouterr().out


@pytest.mark.parametrize(
    ("answers", "events", "refusals"),
    [
        ({"refused": "Noted."}, {"ADD": 3, "REJECT": 1}, {"too_long": 1}),
        ({"dropped": "Noted."}, {"ADD": 3, "REJECT": 1}, {"dropped": 1}),
    ],
)
async def test_a_message_that_is_not_stored_takes_no_other_along(answers, events, refusals):
    gathered = await played(StandIn(**answers))
    loaded = gathered.evaluation.loaded["ana"]
    assert (loaded.events, loaded.refusals) == (events, refusals)
    assert set().union(*loaded.units.values()) == {"1", "3", "4"}


@pytest.mark.parametrize(
    ("answers", "words"),
    [
        (
            {"unknown_session": (422, {"errors": [{"location": ["body", "x"], "detail": "no"}]})},
            "refuses such a context: x: no",
        ),
        ({"without": ["used_excerpts"]}, "have no excerpts"),
    ],
)
async def test_a_service_that_cannot_be_measured_is_said_so(answers, words, capsys):
    with pytest.raises(Exit):
        await played(StandIn(**answers))
    assert words in capsys.readouterr().err
