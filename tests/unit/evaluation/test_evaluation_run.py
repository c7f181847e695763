"""How an evaluation treats a service that is slow, fails, or takes less than others."""

import asyncio
import json
from datetime import UTC, datetime

import httpx2
import pytest

from app.evaluation.api import Api
from app.evaluation.dataset import Dataset, DatasetUnit, Question, Store
from app.evaluation.report import print_report, report_of
from app.evaluation.run import Evaluation, Plan

NOW = datetime(2026, 11, 21, tzinfo=UTC)
ASKED_AT = datetime(2024, 6, 1, tzinfo=UTC)
DATASET = Dataset(
    "two",
    tuple(
        Store(
            name,
            (DatasetUnit("1", "Hello there"), DatasetUnit("2", "Hello again")),
            (Question("Who?", frozenset({"1"}), moment=ASKED_AT),),
        )
        for name in ("ana", "ben")
    ),
)

MODEL = "some/model:8"
FOUND = {
    "results": [],
    "embedding_models": [MODEL],
    "degraded": False,
    "mode": "hybrid",
    "reranker": None,
}


class StandIn:
    """Answers as the service would; `answers` says where it does not. Keeps what was asked."""

    def __init__(self, **answers):
        self.answers = answers
        self.seen = []
        self.storing = asyncio.Event()

    async def __call__(self, request):
        body = json.loads(request.content or "null")
        what = f"{request.method} {request.url.path.rpartition('/')[2]}"
        if request.url.path == "/v1/memories":
            self.storing.set()
            await asyncio.sleep(0.05)
        self.seen.append((what, body))
        status = self.status(request, what.split(" ")[1], body)
        if status >= 400:
            return httpx2.Response(status, json={"code": f"code_{status}", "detail": "No."})
        return httpx2.Response(status, json=self.body(request, body))

    def status(self, request, name, body):
        if request.method == "DELETE":
            return self.answers.get("delete", 200)
        if name == "search" and body["query"] == "Who?":
            return self.answers.get("search", 200)
        if name == "search" and "reference_time" in body:
            return self.answers.get("time", 200)
        return 200

    def body(self, request, body):
        if request.url.path.endswith("/search"):
            told = self.answers.get("told", {})
            return FOUND | told.get(body["user_id"], {})
        if request.url.path == "/v1/memories":
            return {
                "results": [
                    {
                        "index": n,
                        "event": "ADD",
                        "memory_id": f"{body['user_id']}-{n}",
                        "reasons": [],
                    }
                    for n, _ in enumerate(body["messages"])
                ]
            }
        return {}

    def bodies(self, what):
        return [body for one, body in self.seen if one == what]


def evaluation(stand_in, *, keep=False):
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(stand_in), base_url="http://test")
    plan = Plan(run_id="eval-1", limit=10, search={"rerank": False}, concurrency=2, keep=keep)
    return Evaluation(Api(client), DATASET, plan, NOW)


async def played(stand_in, **options):
    run = evaluation(stand_in, **options)
    await run.check()
    async with run.stored():
        asked = await run.ask()
    return run, report_of(DATASET, run, asked, [5])


async def test_what_is_being_stored_is_stored_before_it_is_removed():
    stand_in = StandIn()

    async def play():
        async with evaluation(stand_in).stored():
            pass

    task = asyncio.create_task(play())
    await stand_in.storing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    done = [what for what, _ in stand_in.seen]
    # Cut off, the service would have stored them after their users were removed.
    assert done.count("POST memories") == 2
    assert done[-3:] == ["DELETE eval-1-1", "DELETE eval-1-2", "DELETE eval-1"]
    assert max(n for n, what in enumerate(done) if what == "POST memories") < len(done) - 3


async def test_what_could_not_be_removed_is_named(capsys):
    run = evaluation(StandIn(delete=500))
    async with run.stored():
        pass
    assert run.left == ["/users/eval-1-1", "/users/eval-1-2", "/agents/eval-1"]
    assert "DELETE these" in capsys.readouterr().err


async def test_what_is_gone_already_was_removed():
    run = evaluation(StandIn(delete=404))
    async with run.stored():
        pass
    assert run.left == []


async def test_what_is_kept_is_not_removed():
    stand_in = StandIn()
    await played(stand_in, keep=True)
    assert not [what for what, _ in stand_in.seen if what.startswith("DELETE")]


async def test_everything_is_removed_when_the_block_fails():
    stand_in = StandIn()
    with pytest.raises(ZeroDivisionError):
        async with evaluation(stand_in).stored():
            raise ZeroDivisionError
    assert [what for what, _ in stand_in.seen][-1] == "DELETE eval-1"


@pytest.mark.parametrize(
    ("status", "failed"), [(413, 0), (422, 0), (429, 2), (500, 2), (503, 2), (599, 2)]
)
async def test_a_search_that_is_not_answered_is_a_miss(status, failed):
    _, report = await played(StandIn(search=status))
    assert report["asked"]["failed"] == failed
    assert report["asked"]["problems"] == {f"code_{status}": 2}
    assert report["total"]["recall"] == {"5": 0.0}
    # Refusals are quick, and would make the service look so.
    assert report["milliseconds"] is None


async def test_questions_are_asked_at_their_time():
    stand_in = StandIn()
    run, _ = await played(stand_in)
    asked = [body for body in stand_in.bodies("POST search") if body["query"] == "Who?"]
    assert sorted(asked, key=lambda body: body["user_id"]) == [
        {
            "query": "Who?",
            "user_id": user,
            "limit": 10,
            "rerank": False,
            "reference_time": "2024-06-01T00:00:00+00:00",
        }
        for user in ("eval-1-1", "eval-1-2")
    ]
    assert not run.unsent_times


async def test_a_service_that_takes_no_time_is_asked_without():
    stand_in = StandIn(time=422)
    run, report = await played(stand_in)
    asked = [body for body in stand_in.bodies("POST search") if body["query"] == "Who?"]
    assert len(asked) == 2
    assert not any("reference_time" in body for body in asked)
    assert run.unsent_times
    assert report["asked"]["reference_time_refused"]


LATE = {"degraded": True}


@pytest.mark.parametrize(
    ("ana", "ben", "words"),
    [
        ({}, LATE | {"embedding_models": []}, "1 searches were answered without the embedder."),
        ({"embedding_models": [MODEL, "b"]}, LATE, "1 searches were answered without the embedder"),
        ({}, LATE | {"reranker": "judge"}, "1 searches were answered without the embedder."),
        ({"reranker": "judge"}, LATE, "1 searches were answered in the order they had without"),
        (LATE, LATE, "2 searches were answered in the order they had without the reranker."),
        (
            {},
            LATE | {"mode": "lexical", "embedding_models": []},
            "1 searches were answered in the order they had without the reranker.",
        ),
    ],
)
async def test_what_did_not_answer_is_named(ana, ben, words, capsys):
    _, report = await played(StandIn(told={"eval-1-1": ana, "eval-1-2": ben}))

    print_report("two", report, [5])

    said = [line for line in capsys.readouterr().out.splitlines() if "were answered" in line]
    assert len(said) == 1
    assert words in said[0]
    assert report["asked"]["without_embedder"] == ("embedder" in words)
