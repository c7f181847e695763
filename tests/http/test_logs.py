"""What the log says: one line per request, ids and sizes, and never what was said.

A worker runs beside the service: what it reads and whom it tells is in the log too.
"""

import asyncio
import json
import re
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from app.language.keyless.extractor import READER
from app.platform.embedded.server import EmbeddedPostgres
from app.runtime import open_runtime
from app.settings import Settings
from tests.support.databases import migrated_database, served
from tests.support.tenants import make_tenant
from tests.support.webhook_receiver import Receiver, answering, webhook_receiver

ROOT = Path(__file__).parents[2]
NAME = "Zerberus"
SAID = f"Her cat is called {NAME}, she said."


@dataclass(frozen=True)
class Transcript:
    """Requests by name with their answers, and all that was logged meanwhile."""

    answers: dict[str, dict[str, Any]]
    lines: list[dict[str, Any]]
    errors: str
    key: str
    called: list[str]
    """Where the webhooks' receiver was called."""

    def of(self, name: str) -> list[dict[str, Any]]:
        """Lines of one request, in order."""
        request_id = self.answers[name]["request_id"]
        return [line for line in self.lines if line.get("request_id") == request_id]


def requests(key: str, hook: str = "http://127.0.0.1:9/hook") -> dict[str, dict[str, Any]]:
    """What is asked, by name; `hook` is where events are sent to."""

    def post(path: str, body: Any, **headers: str) -> dict[str, Any]:
        return {
            "method": "POST",
            "url": path,
            "json": body,
            "headers": {"Authorization": f"Bearer {key}"} | headers,
        }

    def get(path: str, **headers: str) -> dict[str, Any]:
        return {
            "method": "GET",
            "url": path,
            "headers": {"Authorization": f"Bearer {key}"} | headers,
        }

    saved = {"messages": SAID, "user_id": "ana", "infer": False}
    told = {"role": "user", "content": f"My cat is called {NAME}."}
    return {
        "tell of events": post(
            "/v1/webhooks", {"url": f"{hook}?token={NAME}", "description": SAID}
        ),
        "tell nobody": post("/v1/webhooks", {"url": f"https://kemem.invalid/?token={NAME}"}),
        "tell a wrong address": post("/v1/webhooks", {"url": f"ftp://{NAME}.invalid/"}),
        "save": post("/v1/memories", saved | {"metadata": {"cat": NAME}}),
        "save again": post("/v1/memories", saved),
        "refused by the gate": post("/v1/memories", saved | {"messages": SAID, "confidence": 0.1}),
        "validate": post("/v1/memories/validate", saved),
        "append": post(
            "/v1/sessions/talk/messages",
            {"user_id": "ana", "messages": [{"role": "user", "content": SAID}]},
        ),
        "told": post("/v1/sessions/told/messages", {"user_id": "eve", "messages": [told]}),
        "extract": post("/v1/sessions/told/extract", {"wait": True, "prompt": SAID}),
        "infer": post("/v1/memories", {"messages": [told], "user_id": "bob"}),
        "order": post("/v1/memories?async=true", {"messages": [told], "user_id": "cem"}),
        "order in vain": post(
            "/v1/memories?async=true", saved | {"user_id": "dot", "confidence": 0.1}
        ),
        "jobs": get("/v1/jobs"),
        "known then": get(f"/v1/memories?known_at={NAME}"),
        "search": post("/v1/memories/search", {"query": SAID, "user_id": "ana"}),
        "recall": post("/v1/messages/search", {"query": SAID, "user_id": "ana"}),
        "list": get(f"/v1/memories?external_id={NAME}"),
        "not valid": post("/v1/memories", {"messages": {"content": [SAID]}, "user_id": f"{SAID}/"}),
        "filter not valid": post(
            "/v1/memories/search", {"query": SAID, "user_id": "ana", "filters": {"use_count": SAID}}
        ),
        "missing": get(f"/v1/users/{NAME}"),
        "no such path": get(f"/v1/nowhere/{NAME}"),
        "unknown key": get("/v1/users", Authorization=f"Bearer kem_0123456789abcdef_{NAME}"),
        "no key": {"method": "GET", "url": "/v1/users"},
        "conflict": post("/v1/users", {"user_id": "ana", "user_name": SAID}),
        "database error": post("/v1/stumble", SAID),
        "crash": post("/v1/stumble-alone", SAID),
        "desktop saves": post("/mcp", _tool("memory_save", content=SAID, user_id="mia")),
        "desktop finds": post("/mcp", _tool("memory_search", query=SAID, user_id="mia")),
        "desktop is refused": post("/mcp", _tool("memory_save", content=SAID, colour=SAID)),
        "desktop names no tool": post("/mcp", _tool(NAME, content=SAID)),
        "desktop reads nothing": post("/mcp", _asked("resources/read", uri=f"kemem://{NAME}")),
        "desktop says nothing": post("/mcp", {"jsonrpc": "2.0", "id": SAID, "method": [SAID]}),
        "desktop asks for nothing": post("/mcp", _asked(NAME, arguments=SAID)),
        "probe": get("/livez"),
        "own id": get("/v1/users", **{"X-Request-ID": "trace-0001.a_B"}),
        "own id of 64": get("/v1/users", **{"X-Request-ID": "x" * 64}),
        "own id of 65": get("/v1/users", **{"X-Request-ID": "x" * 65}),
        "own id with a space": get("/v1/users", **{"X-Request-ID": "two words"}),
        "own id with quotes": get("/v1/users", **{"X-Request-ID": '{"a":1}'}),
        "own id that is empty": get("/v1/users", **{"X-Request-ID": ""}),
    }


def _asked(method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def _tool(name: str, **arguments: Any) -> dict[str, Any]:
    return _asked("tools/call", name=name, arguments=arguments)


@pytest.fixture(scope="module")
async def transcript(postgres: EmbeddedPostgres, settings: Settings) -> Transcript:
    """In a database without work of other tests."""
    dsn = await migrated_database(postgres, "logs")
    async with open_runtime(settings, served(dsn)) as runtime:
        caller = await make_tenant(runtime)
    async with webhook_receiver() as receiver:
        receiver.script(answering(500, SAID.encode()))
        return await transcribed(dsn, caller.key, receiver)


async def transcribed(dsn: str, key: str, receiver: Receiver) -> Transcript:
    asked = requests(key, receiver.url)
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.support.logged_service",
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    told = json.dumps({"dsn": served(dsn), "requests": list(asked.values())})
    answers, errors = await process.communicate(told.encode())
    assert process.returncode == 0, errors.decode()
    lines = [json.loads(line) for line in errors.decode().splitlines()]
    return Transcript(
        dict(zip(asked, json.loads(answers), strict=True)),
        lines,
        errors.decode(),
        key,
        [one.path for one in receiver.requests],
    )


NAMES = list(requests("key"))


def test_the_requests_went_as_they_should(transcript: Transcript) -> None:
    """Or the silence below would prove nothing."""
    statuses = {name: answer["status"] for name, answer in transcript.answers.items()}

    assert statuses["save"] == 201
    assert statuses["append"] == 201
    assert NAME in transcript.answers["save"]["body"]
    assert NAME in transcript.answers["search"]["body"]
    assert NAME in transcript.answers["infer"]["body"]
    assert NAME in transcript.answers["desktop finds"]["body"]
    assert statuses["desktop says nothing"] == 400
    assert (statuses["extract"], statuses["order"], statuses["order in vain"]) == (200, 202, 202)
    assert '"ADD":1' in transcript.answers["extract"]["body"]
    assert f"/hook?token={NAME}" in transcript.called
    assert statuses["refused by the gate"] == 422
    assert (statuses["database error"], statuses["crash"]) == (500, 500)


class TestLines:
    @pytest.mark.parametrize("name", NAMES)
    def test_every_request_is_served_once_under_its_own_id(
        self, transcript: Transcript, name: str
    ) -> None:
        answer = transcript.answers[name]

        [served] = [line for line in transcript.of(name) if line["event"] == "request_served"]
        assert served["status"] == answer["status"]
        assert served["milliseconds"] >= 0
        assert transcript.of(name)[-1] == served
        if answer["body"].startswith('{"type"'):
            assert json.loads(answer["body"])["request_id"] == answer["request_id"]

    def test_every_line_is_json_with_an_event_a_level_and_a_time(
        self, transcript: Transcript
    ) -> None:
        assert len(transcript.lines) > len(NAMES)
        for line in transcript.lines:
            assert re.fullmatch(r"[a-z]+(_[a-z]+)*", line["event"])
            assert line["level"] in {"debug", "info", "warning", "error"}
            assert line["timestamp"].endswith("Z")

    def test_what_happens_in_between_carries_the_same_id(self, transcript: Transcript) -> None:
        assert [line["event"] for line in transcript.of("save")] == [
            "memories_saved",
            "request_served",
        ]
        assert [line["event"] for line in transcript.of("append")] == [
            "messages_appended",
            "request_served",
        ]
        assert [line["event"] for line in transcript.of("infer")] == [
            "extraction_run_committed",
            "request_served",
        ]

    def test_the_worker_tells_what_it_did(self, transcript: Transcript) -> None:
        runs = [line for line in transcript.lines if line["event"] == "extraction_run_committed"]
        sent = [line for line in transcript.lines if line["event"] == "webhook_attempted"]

        # On a slow machine more: of a session that is read while requests about it go on.
        assert len(runs) >= 3
        assert all(line["extraction_id"] and line["extractor"] == READER for line in runs)
        assert {line["outcome"] for line in sent} > {"delivered"}

    def test_only_a_crash_is_an_error(self, transcript: Transcript) -> None:
        loud = {line.get("request_id") for line in transcript.lines if line["level"] == "error"}

        crashes = {transcript.answers[name]["request_id"] for name in ("database error", "crash")}
        assert loud == crashes

    def test_a_route_is_named_by_its_template(self, transcript: Transcript) -> None:
        assert transcript.of("missing")[-1]["route"] == "/v1/users/{user_id}"
        assert transcript.of("no such path")[-1]["route"] == "unmatched"

    def test_probes_are_quiet(self, transcript: Transcript) -> None:
        assert [line["level"] for line in transcript.of("probe")] == ["debug"]


class TestSilence:
    def test_no_line_says_what_was_said(self, transcript: Transcript) -> None:
        assert NAME not in transcript.errors
        assert "she said" not in transcript.errors

    def test_no_line_holds_the_secret_of_a_webhook(self, transcript: Transcript) -> None:
        secret = json.loads(transcript.answers["tell of events"]["body"])["secret"]

        assert secret.startswith("whsec_")
        assert secret.removeprefix("whsec_") not in transcript.errors
        assert "token=" not in transcript.errors

    def test_no_line_holds_a_key(self, transcript: Transcript) -> None:
        assert transcript.key not in transcript.errors
        assert transcript.key.split("_")[2] not in transcript.errors
        assert "Bearer" not in transcript.errors

    @pytest.mark.parametrize(
        ("name", "raised"), [("database error", "DataError"), ("crash", "LookupError")]
    )
    def test_a_crash_is_logged_with_its_place_and_without_its_message(
        self, transcript: Transcript, name: str, raised: str
    ) -> None:
        [crashed] = [line for line in transcript.of(name) if line["level"] == "error"]

        assert crashed["event"] == "request_crashed"
        types = [one["type"] for one in crashed["exception"]]
        assert any(raised in one or "DBAPIError" in one for one in types), types
        assert "logged_service.py" in json.dumps(crashed["exception"])

    @pytest.mark.parametrize("name", ["database error", "crash"])
    def test_a_crash_answers_with_nothing_of_it(self, transcript: Transcript, name: str) -> None:
        problem = json.loads(transcript.answers[name]["body"])

        assert (problem["status"], problem["code"]) == (500, "internal_error")
        assert set(problem) == {
            "type", "title", "status", "detail", "instance", "code", "request_id",
        }  # fmt: skip

    @pytest.mark.parametrize(
        "name",
        ["tell a wrong address", "known then", "refused by the gate", "not valid",
         "filter not valid", "unknown key", "conflict", "database error", "crash"],
    )  # fmt: skip
    def test_an_error_answer_does_not_repeat_what_was_sent(
        self, transcript: Transcript, name: str
    ) -> None:
        body = transcript.answers[name]["body"]

        assert NAME not in body
        assert "kem_" not in body


class TestRequestIds:
    @pytest.mark.parametrize(
        ("name", "wanted"), [("own id", "trace-0001.a_B"), ("own id of 64", "x" * 64)]
    )
    def test_a_callers_own_one_is_used(
        self, transcript: Transcript, name: str, wanted: str
    ) -> None:
        assert transcript.answers[name]["request_id"] == wanted

    @pytest.mark.parametrize("name", [name for name in NAMES if name.startswith("own id ")][1:])
    def test_one_that_could_do_harm_is_replaced(self, transcript: Transcript, name: str) -> None:
        assert re.fullmatch(r"req_[0-9a-f]{32}", transcript.answers[name]["request_id"])

    def test_otherwise_each_request_gets_its_own(self, transcript: Transcript) -> None:
        assert len({one["request_id"] for one in transcript.answers.values()}) == len(NAMES)
