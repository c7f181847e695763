"""`kemem eval` against a running service: exact figures, and nothing left behind."""

import json
import signal
import subprocess
from functools import partial

import pytest
from cli_support import KEMEM, environment, eventually, kemem

from tests.support.chat_behaviours import schema_name_of, writes
from tests.support.openai_server import completion, openai_server, refusal
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

SET = {
    "name": "six",
    "stores": [
        {
            "id": "ana",
            "units": [
                {
                    "id": "bees", "session": "one", "speaker": "Ana", "date": "2023-05-08",
                    "text": "My sister Clara keeps bees in her garden.",
                },
                {"id": "thanks", "session": "one", "speaker": "Ben", "text": "Thanks a lot!"},
                {
                    "id": "bicycle", "session": "two", "date": "some day",
                    "text": "I bought a red bicycle for 300 euros.",
                },
                # Word for word the same, but for case and white space.
                {"id": "thanks again", "session": "two", "text": "Thanks  a LOT!"},
                {"id": "dentist", "session": "two", "text": "牙医预约在星期二。", "date": "2999"},
                {"id": "short", "session": "two", "text": "Ok"},
            ],
            "questions": [
                {"question": "Who keeps bees in her garden?", "gold": ["bees"], "type": "easy"},
                {"question": "thanks a lot", "gold": ["thanks", "thanks again"], "type": "easy"},
                {
                    "question": "Which red bicycle was bought for 300 euros?",
                    "gold": ["bicycle", "short", "nowhere"], "type": "hard",
                },
                {"question": "long " * 2500, "gold": ["dentist"], "type": "hard"},
                {"question": "牙医预约在星期几？", "gold": ["dentist"], "type": "other"},
                {"question": "Who?", "gold": ["nobody"]},
            ],
        }
    ],
    "apart": ["other"],
}  # fmt: skip


@pytest.fixture
def data(folder):
    file = folder / "six.json"
    file.write_text(json.dumps(SET, ensure_ascii=False), encoding="utf-8")
    return file


def evaluated(service, data, *arguments, code=0, env=None):
    """The result file, None when there is none, and what was printed."""
    result = data.parent / "result.json"
    done = kemem(
        "eval", data, "--url", service.address, "--data-dir", service.data_dir, "--json", result,
        *arguments, cwd=data.parent, env=env,
    )  # fmt: skip
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    return (json.loads(result.read_text()) if result.exists() else None), done


def made(service):
    """Ids of the users and agents of evaluations that are there."""
    with service.client() as client:
        return [
            one[name]
            for path, name in (("/users", "user_id"), ("/agents", "agent_id"))
            for one in client.get(path).json()["items"]
            if one[name].startswith("eval-")
        ]


def test_the_figures_are_exact(service, data):
    report, done = evaluated(service, data, "--k", "1,6")

    easy, hard = report["categories"]["easy"], report["categories"]["hard"]
    assert easy["questions"] == hard["questions"] == 2
    # One memory stands for both thanks.
    assert easy["recall"] == {"1": 1.0, "6": 1.0}
    assert (easy["ndcg@10"], easy["mrr"]) == (1.0, 1.0)
    # 41 and 13 characters, four to a token.
    assert easy["tokens"]["1"] == (11 + 4) / 2
    # Half of one answer was refused, and the other question is too long to be asked.
    assert hard["recall"] == {"1": 0.25, "6": 0.25}
    assert hard["hit"] == {"1": 0.5, "6": 0.5}
    assert hard["ndcg@10"] == round(0.61315 / 2, 4)
    assert report["total"]["questions"] == 4
    assert report["total"]["recall"]["1"] == 0.625
    assert report["total"]["mrr"] == 0.75
    assert report["total"]["session_recall@5"] == 0.75
    assert report["apart"]["other"]["recall"]["1"] == 1.0

    assert report["loaded"] == {
        "units": 6,
        "stored": 4,
        "same_as_another": 1,
        "refused": 1,
        "refusals": {"too_short": 1},
        "ahead_of_now": 0,
        "waiting": 0,
        "unread_dates": 2,
    }
    assert report["asked"] == {
        "questions": 5,
        "problems": {"invalid_request": 1},
        "failed": 0,
        "degraded": 0,
        "without_embedder": 0,
        "without_gold": 1,
        "unknown_gold": 2,
        "reference_time_refused": False,
    }
    assert report["questions"][1]["ranks"] == {"thanks": 1, "thanks again": 1}
    assert report["questions"][2]["ranks"] == {"bicycle": 1, "short": None}
    assert report["embedding_models"] == ["wordllama/l2_supercat:256"]
    assert report["settings"]["k"] == [1, 6]
    assert report["milliseconds"]["p50"] <= report["milliseconds"]["p95"]

    assert "62.5" in done.stdout
    assert "refused as too_short: 1" in done.stdout
    assert "apart: other" in done.stdout
    assert made(service) == []


def test_figures_are_stored_with_the_service(service, data):
    found, done = evaluated(service, data, "--store", "before")

    with service.client() as client:
        [kept] = client.get("/evaluations", params={"name": "before"}).json()["items"]
    assert f"Stored as {kept['evaluation_id']}." in done.stdout
    assert (kept["dataset"], kept["settings"]["data"]["file"]) == ("six", "six.json")
    assert kept["settings"]["settings"] == found["settings"]
    assert kept["metrics"]["total"] == found["total"]
    assert kept["metrics"]["categories"] == found["categories"]
    assert "questions" not in kept["metrics"]
    assert made(service) == []


def test_what_is_kept_is_what_was_in_the_file(service, data):
    changed = json.loads(data.read_text())
    changed["stores"][0]["units"][4]["date"] = "2999-01-01"
    data.write_text(json.dumps(changed), encoding="utf-8")

    report, done = evaluated(service, data, "--keep", "--limit-questions", "1")

    assert report["asked"]["questions"] == 1
    assert report["loaded"]["ahead_of_now"] == 1
    user, agent = made(service)
    assert user in done.stderr
    assert agent in done.stderr
    with service.client() as client:
        rows = client.get("/memories", params={"user_id": user, "order": "asc"}).json()["items"]
        assert [row["content"] for row in rows] == [
            "My sister Clara keeps bees in her garden.",
            "Thanks a lot!",
            "I bought a red bicycle for 300 euros.",
            "牙医预约在星期二。",
        ]
        bees, thanks, bicycle, dentist = rows
        assert bees["valid_from"] == "2023-05-08T00:00:00Z"
        assert thanks["valid_from"] is bicycle["valid_from"] is dentist["valid_from"] is None
        assert bees["metadata"]["name"] == "Ana"
        assert bees["session_id"] == thanks["session_id"] != bicycle["session_id"]
        assert bees["scope"] == "user"
        for path in (f"/users/{user}", f"/agents/{agent}"):
            assert client.delete(path, params={"confirm": True}).status_code == 200


def test_a_text_that_cannot_cross_takes_nobody_along(service, data):
    changed = json.loads(data.read_text())
    changed["stores"][0]["units"][0]["text"] = "x" * 200_001
    changed["stores"][0]["units"][1]["text"] = "x" * 2_001
    changed["stores"][0]["units"][2]["speaker"] = "B" * 256
    data.write_text(json.dumps(changed), encoding="utf-8")

    report, _ = evaluated(service, data)

    assert report["loaded"]["stored"] == 2
    assert report["loaded"]["refusals"] == {
        "invalid_request": 2, "too_long": 1, "too_short": 1,
    }  # fmt: skip
    assert report["categories"]["easy"]["recall"]["5"] == 0.25


def test_messages_are_found_and_stand_in_contexts(service, data):
    report, done = evaluated(
        service, data, "--messages", "--context", "--budget", "300", "--budget", "100", "--k", "1,6"
    )

    assert report["settings"]["budgets"] == [100, 300]
    # As messages, nothing is too short, and what is word for word the same stands for itself.
    assert report["loaded"]["stored"] == 6
    assert report["categories"]["easy"]["recall"]["6"] == 1.0
    small, large = report["contexts"]["100"], report["contexts"]["300"]
    # One of the two thanks is shown: they say the same.
    assert small["categories"]["easy"]["evidence"] >= 0.75
    assert small["total"]["tokens"] <= 100
    assert large["total"]["tokens"] <= 300
    assert large["problems"] == {"invalid_request": 1}
    assert "a context of 300 tokens" in done.stdout
    assert made(service) == []

    again, _ = evaluated(service, data, "--context", "--budget", "300", "--budget", "100")
    assert "total" not in again
    # The same context in every run, so that answers to it are.
    for budget in ("100", "300"):
        both = [
            [one["sha256"] for one in found["contexts"][budget]["questions"]]
            for found in (report, again)
        ]
        assert both[0] == both[1]


async def answers_or_grades(request):
    """A reader that repeats what it sees of bees, and a grader that likes that."""
    name, seen = schema_name_of(request), request.body["messages"][-1]["content"]
    if name == "answer":
        said = "Clara keeps bees." if "Clara keeps bees" in seen else "I have no information."
        return completion(json.dumps({"answer": said}))
    return completion(json.dumps({"right": "Clara keeps bees" in json.loads(seen)["answer"]}))


def test_answers_are_graded_and_kept(service, data):
    changed = json.loads(data.read_text())
    changed["stores"][0]["questions"][0]["answer"] = "Clara"
    changed["stores"][0]["questions"][5]["answer"] = "Nothing was said about it."
    data.write_text(json.dumps(changed), encoding="utf-8")
    asked = ("--answers", "openai/m", "--judge", "openai/n", "--budget", "300")
    with openai_server() as server:
        server.chat.otherwise = answers_or_grades
        env = {"OPENAI_BASE_URL": server.base_url, "MEMORY_MODEL_PRICES": "m=0/5000"}

        dry, done = evaluated(service, data, *asked, "--dry-run", env=env)
        assert server.chat.requests == []
        # Ten messages are the whole conversation here, and the same prompt is sent once.
        assert dry["answers"]["price"]["reader"]["calls"] == 6
        assert "To ask of the reader openai/m: 6 calls" in done.stdout
        # Answers of 200 tokens; the judge has no price.
        assert (
            done.stdout.count(" in money.") == done.stdout.count("prompts, about 6 in money.") == 1
        )
        _, unasked = evaluated(service, data, *asked, env=env, code=2)
        assert "give --yes, or --dry-run" in unasked.stderr

        # Longer than the service waits inside a call.
        server.chat.script(refusal(429, retry_after="5.2"))
        report, done = evaluated(service, data, *asked, "--yes", env=env)
        answers = report["answers"]
        told = {name: found["categories"] for name, found in answers["variants"].items()}
        assert list(told) == ["context 300", "messages", "whole", "nothing"]
        assert [one["easy"]["score"] for one in told.values()] == [1.0, 1.0, 1.0, 0.0]
        assert answers["variants"]["nothing"]["total"]["questions"] == 2
        assert answers["spent"]["reader"]["calls"] == 6
        assert "graded by openai/n" in done.stdout

        before = len(server.chat.requests)
        again, _ = evaluated(service, data, *asked, env=env)
        assert len(server.chat.requests) == before
        assert again["answers"]["variants"] == answers["variants"]

        server.chat.otherwise = writes("no JSON at all")
        elsewhere = data.parent / "elsewhere"
        failed, _ = evaluated(service, data, *asked, "--yes", "--cache", elsewhere, env=env, code=1)
        assert failed["answers"]["variants"]["nothing"]["total"]["score"] is None
    assert made(service) == []


def test_a_search_that_is_refused_is_refused_before_anything_is_stored(service, data):
    report, done = evaluated(service, data, "--search", "bost=1", code=2)
    assert report is None
    assert "refuses such a search: bost" in done.stderr
    assert made(service) == []


def test_a_key_that_may_not_remove_is_refused_at_once(service, data):
    created = kemem(
        "keys", "create", "--tenant", "default", "--scope", "write", "--name", "w", "--json",
        "--data-dir", service.data_dir, cwd=data.parent,
    )  # fmt: skip
    env = {"KEMEM_API_KEY": json.loads(created.stdout)["key"]}

    report, done = evaluated(service, data, code=1, env=env)

    assert report is None
    assert "--keep" in done.stderr
    assert made(service) == []


def test_a_key_that_is_none_is_said_so(service, data):
    report, done = evaluated(service, data, "--key", "kem_0000_0000", code=1)
    assert report is None
    assert "401" in done.stderr


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_interrupted_run_leaves_nothing(service, folder, number, code):
    units = [{"id": n, "text": f"Fact number {n} of many.", "session": n // 9} for n in range(900)]
    question = {"question": "Which fact?", "gold": [1]}
    stores = [{"id": n, "units": units, "questions": [question]} for n in range(8)]
    (folder / "many.json").write_text(json.dumps({"stores": stores}))
    with subprocess.Popen(
        [*KEMEM, "eval", "many.json", "--url", service.address, "--key", service.key],
        cwd=folder, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        # A shell that runs the tests in the background has them, and their children, ignore it.
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    ) as process:  # fmt: skip
        eventually(lambda: len(made(service)) > 1)
        process.send_signal(number)
        said = process.communicate(timeout=PATIENCE)

    assert process.returncode == code
    assert said == ("", "")
    assert made(service) == []
