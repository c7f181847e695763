"""`kemem import-conversations`: whole conversations with their dates, once, or why not."""

import json
import os
import signal
import subprocess
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

import pytest
from cli_support import KEMEM, Service, environment, handed_on
from typer.testing import CliRunner, Result

from app.cli.main import cli
from tests.support.flaky_server import Behaviour, FlakyServer, flaky_server, says
from tests.support.patience import PATIENCE

Run = Callable[..., Result]


def called(*arguments: str | Path, **variables: str) -> Result:
    """What the command says; nobody's own settings count, but for these variables."""
    kept = environment() | variables
    env = {name: kept.get(name) for name in {*os.environ, *variables}}
    return CliRunner().invoke(cli, ["import-conversations", *map(str, arguments)], env=env)


@pytest.fixture
def key(service: Service) -> str:
    """The key of a new tenant."""
    with service.client() as client:
        answer = client.post("/tenants", json={"tenant_name": "Fresh"})
        assert answer.status_code == 201, answer.text
        return answer.json()["key"]["key"]


@pytest.fixture
def run(service: Service, key: str) -> Run:
    return lambda *arguments: called(*arguments, "--url", service.address, "--key", key)


def file_of(folder: Path, *records: Any) -> Path:
    file = folder / "chats.jsonl"
    file.write_text("\n".join(json.dumps(one) for one in records))
    return file


def talk(session_id: str, time: str | None, *said: str, **fields: Any) -> dict[str, Any]:
    messages = [{"role": "user", "content": one} for one in said]
    return {"session_id": session_id, "client_time": time, "messages": messages} | fields


def got(service: Service, key: str, path: str, **query: Any) -> list[dict[str, Any]]:
    """All pages."""
    items: list[dict[str, Any]] = []
    with service.client(key) as client:
        while True:
            answer = client.get(path, params={"limit": 100} | query)
            assert answer.status_code == 200, answer.text
            items += answer.json()["items"]
            query["cursor"] = answer.json()["next_cursor"]
            if query["cursor"] is None:
                return items


def test_dry_run_counts_and_needs_no_service(tmp_path: Path) -> None:
    file = file_of(
        tmp_path,
        talk("a", "2024-05-02T10:00:00Z", "I live in Lisbon.", "I keep bees.", user_id="ana"),
        talk("b", None, "Hello."),
        {"session_id": "c", "role": "tool", "content": "42"},
        {"session_id": "d", "role": "narrator", "content": "He left."},
    )

    # No service of this machine is asked what the import costs.
    nowhere = {"MEMORY_DATA_DIR": str(tmp_path / "nothing")}
    shown = called(file, "--dry-run", **nowhere)
    counted = called(file, "--dry-run", "--json", **nowhere)

    assert shown.exit_code == 1
    place = "chats.jsonl, line 4: role is none of"
    assert shown.stderr.startswith(place)
    assert "He left." not in shown.output
    assert "that of the key, ana" in shown.stdout
    plan = json.loads(counted.stdout)
    assert [fault.startswith(place) for fault in plan.pop("unreadable")] == [True]
    assert plan == {
        "conversations": 2,
        "messages": 3,
        "users": [None, "ana"],
        "first": "2024-05-02 10:00:00+00:00",
        "last": "2024-05-02 10:00:00+00:00",
        "without_time": 1,
        "left_out": {"tools": 1},
        "cost": None,
    }
    assert "not known, as no service told its models" in shown.stdout


@pytest.mark.parametrize(
    ("ana", "ben", "kept", "told"),
    [
        (10, 9, 9, None),
        (11, 10, 9, "1 user may tell more than the 9 memories"),
        (11, 11, 9, "2 users may tell more than the 9 memories"),
        (11, 11, 0, None),
    ],
)
def test_dry_run_says_that_a_user_tells_more_than_is_kept(
    tmp_path: Path, ana: int, ben: int, kept: int, told: str | None
) -> None:
    """Nine in ten messages of a user make a memory; a reply makes none."""
    talks = [
        talk(f"{user}-{number}", None, "I keep bees.", user_id=user)
        for user, count in (("ana", ana), ("ben", ben))
        for number in range(count)
    ]
    replies = [{"role": "assistant", "content": "I see."}] * 20
    talks.append({"session_id": "replies", "user_id": "ana", "messages": replies})
    shown = called(file_of(tmp_path, *talks), "--dry-run", MEMORY_MAX_FACTS=str(kept))

    lines = " ".join(shown.stdout.split())
    assert shown.exit_code == 0, shown.output
    assert ("MEMORY_MAX_FACTS" in lines) is (told is not None)
    assert told is None or told in lines


def test_second_run_appends_nothing(run: Run, service: Service, key: str, tmp_path: Path) -> None:
    file = file_of(
        tmp_path,
        talk("new", "2024-05-02T10:00:00+02:00", "Newer."),
        talk("old", "2021-01-01T00:00:00Z", "Older.", "And more."),
    )

    first = run(file, "--user", "ana", "--json")
    again = run(file, "--user", "ana", "--json")

    assert first.exit_code == again.exit_code == 0, first.stderr
    told = {"conversations": 2, "left_out": 0, "refused": 0, "unreadable": 0}
    assert json.loads(first.stdout) == told | {"messages": 3, "there": 0}
    assert json.loads(again.stdout) == told | {"messages": 0, "there": 3}
    [new] = got(service, key, "/sessions/new/messages")
    old = got(service, key, "/sessions/old/messages")
    assert [one["content"] for one in old] == ["Older.", "And more."]
    assert new["user_id"] == "ana"
    assert new["metadata"] == {"client_time": "2024-05-02T10:00:00+02:00"}
    assert old[-1]["create_time"] < new["create_time"]


def test_newer_export_goes_on_behind_what_is_stored(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    said = [f"Line {number}." for number in range(5)]
    assert run(file_of(tmp_path, talk("s", None, *said[:3]))).exit_code == 0
    first = got(service, key, "/sessions/s/messages")[0]["message_id"]
    with service.client(key) as client:
        assert client.delete(f"/sessions/s/messages/{first}").status_code < 300

    done = run(file_of(tmp_path, talk("s", None, *said)), "--json")

    counts = json.loads(done.stdout)
    assert (counts["messages"], counts["there"], counts["left_out"]) == (2, 2, 1)
    assert "chats.jsonl, line 1: 1 messages before stored ones are left out" in done.stderr
    # What was deleted stays deleted.
    assert [one["content"] for one in got(service, key, "/sessions/s/messages")] == said[1:]


def test_line_that_comes_in_between_is_added_once(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    one, two, three = (
        {"session_id": "s", "role": "user", "content": said, "client_time": f"{day}T00:00:00Z"}
        for said, day in (("One.", "2024-01-01"), ("Two.", "2024-01-02"), ("Three.", "2024-01-03"))
    )
    assert run(file_of(tmp_path, one, three)).exit_code == 0

    grown = file_of(tmp_path, one, two, three)
    counts = [json.loads(run(grown, "--json").stdout) for _ in range(2)]

    assert [(count["messages"], count["there"]) for count in counts] == [(1, 2), (0, 3)]
    stored = got(service, key, "/sessions/s/messages")
    assert sorted(message["content"] for message in stored) == ["One.", "Three.", "Two."]


def test_since_and_limit_take_whole_conversations(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    times = ["2024-01-01T00:00:00Z", "2024-03-01T00:00:00Z", "2024-05-01T00:00:00Z"]
    file = file_of(
        tmp_path,
        *(talk(f"s{month}", time, "First.", "Last.") for month, time in enumerate(times)),
        talk("none", None, "Now."),
    )

    def sessions(*options: str) -> int:
        return json.loads(run(file, "--dry-run", "--json", *options).stdout)["conversations"]

    assert sessions("--since", "2024-03-01") == 3
    assert sessions("--since", "2024-03-01T00:00:01+0000") == 2
    assert sessions("--limit", "1") == 1
    assert run(file, "--since", "2024-03-01", "--limit", "1").exit_code == 0
    assert [one["session_id"] for one in got(service, key, "/sessions")] == ["s1"]


def test_what_the_service_refuses_is_told_and_the_rest_imported(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    assert run(file_of(tmp_path, talk("a", None, "Hello."), talk("b", None, "Hi."))).exit_code == 0
    with service.client(key) as client:
        assert client.post("/sessions/a/end").status_code == 200
    file = file_of(
        tmp_path,
        talk("a", None, "Hello.", "One more."),
        talk("b", None, "Hi.", user_id="ben"),
        talk("b2", None, "Hi."),
    )

    done = run(file)

    assert done.exit_code == 1
    assert "chats.jsonl, line 1: 409 session_ended" in done.stderr
    assert "1 conversations refused" in done.stderr
    assert got(service, key, "/sessions/b2/messages") != []


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["--user", "a/b"], 2, "--user"),
        (["--limit", "0"], 2, "--limit"),
        (["--since", "May"], 2, "--since"),
        (["--time-zone", "Middle/Earth"], 2, "--time-zone"),
        (["--time-zone", "../zone"], 2, "--time-zone"),
        (["--time-zone", "+25:00"], 2, "--time-zone"),
        (["--time-zone", "+00:00:00.5"], 2, "--time-zone"),
        (["--time-zone", "posixrules"], 2, "--time-zone"),
    ],
)
def test_options_that_cannot_be_are_refused(
    tmp_path: Path, arguments: list[str], code: int, words: str
) -> None:
    done = called(file_of(tmp_path, talk("a", None, "Hello.")), "--dry-run", *arguments)

    assert done.exit_code == code
    assert words in done.stderr


@pytest.mark.parametrize("zone", ["Asia/Shanghai", "+08:00"])
def test_day_of_a_date_is_that_of_the_time_zone(
    run: Run, service: Service, key: str, tmp_path: Path, zone: str
) -> None:
    said = talk(f"late{zone[0]}", "2024-05-01T16:30:00Z", "I moved to Lisbon yesterday.")

    done = run(file_of(tmp_path, said), "--user", "mia", "--time-zone", zone, "--wait")

    assert done.exit_code == 0, done.stderr

    [memory] = got(service, key, "/memories", user_id="mia")
    assert memory["valid_from"] == "2024-05-01T00:00:00Z"


def test_file_that_is_cut_off_leaves_nothing(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    file = file_of(tmp_path, talk("a", None, "Hello."), talk("b", None, "Hi."))
    file.write_text(file.read_text()[:-5])

    done = run(file)

    assert done.exit_code == 1
    assert "chats.jsonl, line 2: it is not JSON" in done.stderr
    assert got(service, key, "/sessions") == []


def test_wrong_key_ends_the_command(service: Service, tmp_path: Path) -> None:
    file = file_of(tmp_path, talk("a", None, "Hello."))

    done = called(file, "--url", service.address, "--key", "kem_no_key")

    assert done.exit_code == 1
    assert "401" in done.stderr
    assert "run the command again" in done.stderr


def test_wait_ends_when_the_memories_are_made(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    said = ["I live in Lisbon.", *(f"Nice, number {number}." for number in range(120))]
    file = file_of(tmp_path, talk("s", "2024-05-02T10:00:00Z", *said))

    done = run(file, "--user", "ana", "--wait")

    assert done.exit_code == 0, done.stderr
    [session] = got(service, key, "/sessions")
    assert session["last_extracted_seq"] == session["last_sequence_no"] == 121
    memories = got(service, key, "/memories", user_id="ana")
    [lisbon] = [one for one in memories if "Lisbon" in one["content"]]
    assert lisbon["said_at"] == "2024-05-02T10:00:00Z"


def test_wait_for_a_job_that_does_not_move_ends(tmp_path: Path) -> None:
    with flaky_server() as server:
        server.otherwise = _never_reads(server)
        file = file_of(tmp_path, talk("s", None, "Hello."))

        done = called(file, "--wait", "--url", server.address, "--key", "kem_a_b")

    assert done.exit_code == 1
    assert "imported, but not read yet: the job job_1 is pending" in done.stderr


def _never_reads(server: FlakyServer) -> Behaviour:
    def behave(to: BaseHTTPRequestHandler) -> None:
        path = server.requests[-1].path
        extraction = {"session_id": "s", "job_id": "job_1", "status": "pending"}
        answer: dict[str, Any] = {"items": [], "next_cursor": None}
        if "/usage" in path:
            day = "2026-01-01"
            answer |= {"since": day, "until": day, "today": {"day": day}}
        elif path.endswith("/extract"):
            answer = extraction
        elif server.requests[-1].method == "POST":
            answer = {"session_id": "s", "created": 1}
        says(answer)(to)

    return behave


@pytest.mark.slow
def test_killed_import_is_completed_by_the_next(
    run: Run, service: Service, key: str, tmp_path: Path
) -> None:
    """The first part of a conversation is stored, and the command dead before its answer comes."""
    said = [f"Line {number}." for number in range(250)]
    file = file_of(tmp_path, talk("s", "2024-05-02T10:00:00Z", *said))
    with flaky_server() as between:
        held, let_go = threading.Event(), threading.Event()
        between.otherwise = _forwards(between, service, held, let_go)
        process = subprocess.Popen(
            [*KEMEM, "import-conversations", str(file), "--url", between.address, "--key", key],
            cwd=tmp_path,
            env=environment(),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        try:
            assert held.wait(PATIENCE), "no append came"
            assert process.poll() is None
        finally:
            os.kill(process.pid, signal.SIGKILL)
            process.wait()
            let_go.set()
    assert len(got(service, key, "/sessions/s/messages")) == 100

    done = run(file, "--json")

    assert json.loads(done.stdout)["messages"] == 150
    assert [one["content"] for one in got(service, key, "/sessions/s/messages")] == said


def _forwards(
    between: FlakyServer, service: Service, held: threading.Event, let_go: threading.Event
) -> Behaviour:
    """Hands requests on, and keeps the answer to the first append back."""

    def behave(to: BaseHTTPRequestHandler) -> None:
        request = between.requests[-1]
        answer = handed_on(request, service)
        if request.method == "POST":
            held.set()
            let_go.wait(PATIENCE)
        answer(to)

    return behave
