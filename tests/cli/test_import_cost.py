"""`kemem import-conversations` where a model reads: its cost beforehand, budgets and quotas."""

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cli_support import KEMEM, Service, environment, eventually, handed_on
from typer.testing import CliRunner, Result

from app.cli.main import cli
from benchmarks.scripted_model import ScriptedModel, served
from tests.support.flaky_server import Behaviour, FlakyServer, flaky_server, refuses, says

PLACES = ("Lisbon", "Porto", "Munich", "Kyoto", "Quito", "Hanoi")

Run = Callable[..., Result]


@pytest.fixture(scope="module")
def endpoint() -> Iterator[tuple[ScriptedModel, str]]:
    model = ScriptedModel(0.0, "en")
    with served(model) as base_url:
        yield model, base_url


@pytest.fixture(scope="module")
def variables(endpoint: tuple[ScriptedModel, str]) -> dict[str, str]:
    return {
        "OPENAI_BASE_URL": endpoint[1],
        "MEMORY_EXTRACTION_MODEL": "openai/scripted",
        "MEMORY_MODEL_PRICES": "scripted=1000/2000",
        # Nothing is read but what the command waits for.
        "MEMORY_DEBOUNCE_SECONDS": "300",
    }


@pytest.fixture
def model(endpoint: tuple[ScriptedModel, str]) -> ScriptedModel:
    endpoint[0].reset()
    return endpoint[0]


@pytest.fixture
def tenant(service: Service) -> dict[str, Any]:
    with service.client() as client:
        answer = client.post("/tenants", json={"tenant_name": "Fresh"})
        assert answer.status_code == 201, answer.text
        return answer.json()


@pytest.fixture
def key(tenant: dict[str, Any]) -> str:
    return tenant["key"]["key"]


@pytest.fixture
def run(service: Service, key: str) -> Run:
    return lambda *arguments: called(*arguments, "--url", service.address, "--key", key)


def called(*arguments: str | Path) -> Result:
    kept = environment()
    env = {name: kept.get(name) for name in os.environ}
    return CliRunner().invoke(cli, ["import-conversations", *map(str, arguments)], env=env)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Six conversations of ana, of six messages, in each of which she says two things."""
    made = tmp_path / "chats.jsonl"
    made.write_text("\n".join(json.dumps(talk(number)) for number in range(len(PLACES))))
    return made


def talk(number: int) -> dict[str, Any]:
    place = PLACES[number]
    said = [
        f"I have rented a small flat near the old harbour of {place} for the whole summer.",
        "How do you like it there?",
        f"Well enough, and my sister Clara visits me in {place} with her two dogs next week.",
        "That sounds like a full house.",
        "ok",
        "Tell me when you need anything.",
    ]
    return {
        "session_id": f"s{number}",
        "user_id": "ana",
        "client_time": f"2024-0{number + 1}-02T10:00:00Z",
        "messages": [
            {"role": ("user", "assistant")[place % 2], "content": text}
            for place, text in enumerate(said)
        ],
    }


def contents(service: Service, key: str, path: str) -> list[str]:
    with service.client(key) as client:
        answer = client.get(path)
        assert answer.status_code == 200, answer.text
        return [one["content"] for one in answer.json()["items"]]


def test_dry_run_tells_what_the_import_will_cost(
    run: Run, model: ScriptedModel, file: Path
) -> None:
    shown = run(file, "--dry-run")
    cost = json.loads(run(file, "--dry-run", "--json").stdout)["cost"]
    assert not model.spent.calls
    done = json.loads(run(file, "--wait", "--json").stdout)

    assert "about" in shown.stdout.split("tokens")[1]
    spent, by_work = model.spent, cost["by_work"]
    assert {one["model"] for one in by_work.values()} == {"scripted"}
    assert by_work["extraction"]["calls"] == spent.calls["memories"] == len(PLACES)
    told, used = by_work["extraction"]["input_tokens"], spent.input_tokens["memories"]
    assert told == pytest.approx(used, rel=0.15)
    told, used = by_work["extraction"]["output_tokens"], spent.output_tokens["memories"]
    assert told == pytest.approx(used, rel=0.35)
    # The first conversation has nothing to be compared with.
    assert len(PLACES) - 1 <= spent.calls["decisions"] <= by_work["reconciliation"]["calls"]
    asked = {name: one for name, one in by_work.items() if name != "profile"}
    reading = sum(one["input_tokens"] + one["output_tokens"] for one in asked.values())
    used = sum((spent.input_tokens + spent.output_tokens)[name] for name in QUESTIONS)
    assert reading == pytest.approx(used, rel=0.35)
    assert cost["money"] == pytest.approx(
        (cost["input_tokens"] + 2 * cost["output_tokens"]) / 1_000
    )
    assert done["stopped"] is None
    assert done["spent"]["money"] > done["spent"]["tokens"] / 1_000


QUESTIONS = ("memories", "decisions")


def test_budget_stops_between_conversations_and_the_next_run_goes_on(
    run: Run, service: Service, key: str, model: ScriptedModel, file: Path
) -> None:
    ran = []
    while not ran or ran[-1]["stopped"]:
        assert len(ran) < len(PLACES)
        done = run(file, "--budget-calls", "2", "--json")
        ran.append(json.loads(done.stdout))
        assert done.exit_code == (1 if ran[-1]["stopped"] else 0), done.stderr

    assert ran[0]["stopped"].startswith("at chats.jsonl, line")
    assert "calls of 2 are used" in ran[0]["stopped"]
    assert len(ran) > 1
    assert sum(one["messages"] for one in ran) == 6 * len(PLACES)
    for number, place in enumerate(PLACES):
        stored = contents(service, key, f"/sessions/s{number}/messages")
        assert len(stored) == 6
        assert place in stored[0]
    assert model.spent.calls["memories"] == len(PLACES)


@pytest.mark.parametrize("option", ["--budget-tokens", "--budget-money"])
def test_budgets_in_tokens_and_money_stop_after_the_first(
    run: Run, model: ScriptedModel, file: Path, option: str
) -> None:
    done = run(file, option, "1")

    assert done.exit_code == 1
    assert "Stopped at chats.jsonl, line 2: the budget is reached" in done.stderr
    assert model.spent.calls["memories"] == 1


def test_budget_that_is_not_reached_stops_nothing(
    run: Run, model: ScriptedModel, file: Path
) -> None:
    done = run(file, "--budget-tokens", "10000000", "--json")

    assert done.exit_code == 0, done.stderr
    told = json.loads(done.stdout)
    assert (told["conversations"], told["stopped"]) == (len(PLACES), None)
    assert told["spent"]["calls"] >= model.spent.calls["memories"] == len(PLACES)


def test_quota_of_the_day_stops_and_says_so(
    run: Run, service: Service, tenant: dict[str, Any], model: ScriptedModel, file: Path
) -> None:
    with service.client() as client:
        path = f"/tenants/{tenant['tenant_id']}"
        assert client.patch(path, json={"config": {"daily_calls": 1}}).status_code == 200

    done = run(file, "--wait")

    assert done.exit_code == 1
    assert "line 2: the service's quota of the day (daily_calls) is used up until" in done.stderr
    assert model.spent.calls["memories"] == 1


def test_quota_that_is_used_up_while_waiting_is_told(file: Path) -> None:
    with flaky_server() as server:
        server.otherwise = _quota_in_between(server)

        done = called(file, "--wait", "--url", server.address, "--key", "kem_a_b")

    assert done.exit_code == 1
    assert "line 1: the service's quota of the day (daily_tokens) is used up until" in done.stderr


def _quota_in_between(server: FlakyServer) -> Behaviour:
    """The quota is used up by what is read first, and the rest is put off."""

    def behave(to: BaseHTTPRequestHandler) -> None:
        request = server.requests[-1]
        extracting = any(one.path.endswith("/extract") for one in server.requests)
        answer: dict[str, Any] = {"items": [], "next_cursor": None}
        if "/usage" in request.path:
            day = "2026-01-01"
            today = {"day": day, "exhausted": "daily_tokens" if extracting else None}
            answer |= {"since": day, "until": day, "today": today}
        elif request.path.endswith("/extract"):
            answer = {"session_id": "s", "job_id": "job_1", "status": "pending"}
        elif request.method == "POST":
            answer = {"session_id": "s", "created": 1}
        says(answer)(to)

    return behave


def test_money_without_prices_is_refused(tmp_path: Path, file: Path) -> None:
    with flaky_server() as server:
        day = "2026-01-01"
        models = {"extraction": {"model": "m", "price": None}}
        usage = {"items": [], "since": day, "until": day, "today": {"day": day}, "models": models}
        server.otherwise = says(usage)

        done = called(file, "--budget-money", "5", "--url", server.address, "--key", "kem_a_b")
        dry = called(file, "--dry-run", "--url", server.address, "--key", "kem_a_b")

    assert done.exit_code == 2
    assert "--budget-money needs the price of m: set MEMORY_MODEL_PRICES" in done.stderr
    assert all(request.method == "GET" for request in server.requests)
    assert "money" in dry.stdout
    assert "not known: MEMORY_MODEL_PRICES" in dry.stdout


def test_import_that_is_cut_off_goes_on_and_asks_nothing_twice(
    run: Run, service: Service, key: str, model: ScriptedModel, file: Path
) -> None:
    """The second conversation is read, and the command ends without learning of it."""
    with flaky_server() as between:
        between.otherwise = _cut_off(between, service, after=2)
        cut = called(file, "--budget-calls", "100", "--url", between.address, "--key", key)
    assert cut.exit_code == 1
    assert "Not finished." in cut.stderr
    assert model.spent.calls["memories"] == 2

    done = run(file, "--budget-calls", "100", "--json")

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["there"] == 12
    everything_was_asked_once(service, key, model)


def _cut_off(between: FlakyServer, service: Service, *, after: int) -> Behaviour:
    """Hands requests on, and refuses instead of answering so many extractions."""

    def behave(to: BaseHTTPRequestHandler) -> None:
        answer = handed_on(between.requests[-1], service)
        read = sum(one.path.endswith("/extract") for one in between.requests)
        (answer if read < after else refuses(401, "invalid_key"))(to)

    return behave


def everything_was_asked_once(service: Service, key: str, model: ScriptedModel) -> None:
    assert model.spent.calls["memories"] == len(PLACES)
    assert [model.spent.repeated[name] for name in QUESTIONS] == [0, 0]
    memories = contents(service, key, "/memories?limit=100&user_id=ana")
    assert len(memories) == len(set(memories)) > len(PLACES)


@pytest.mark.slow
def test_killed_import_goes_on_and_asks_nothing_twice(
    run: Run, service: Service, key: str, model: ScriptedModel, file: Path
) -> None:
    """The command is killed while the model reads the second conversation."""
    command = [*KEMEM, "import-conversations", str(file), "--budget-calls", "100"]
    with model.held(after=1):
        process = subprocess.Popen(
            [*command, "--url", service.address, "--key", key],
            cwd=file.parent,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            eventually(lambda: model.spent.calls["memories"] == 2)
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()

    done = run(file, "--budget-calls", "100", "--json")

    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["there"] == 12
    everything_was_asked_once(service, key, model)
