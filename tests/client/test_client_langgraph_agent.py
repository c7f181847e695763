"""A LangChain agent keeps its thread in KeMem while both processes come and go."""

import json
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_support import Service, embedded, environment
from tests.client.langgraph_agent import part

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AGENT = Path(__file__).with_name("langgraph_agent.py")


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short and open to all: pytest's own are closed to the account that root lends."""
    path = Path(tempfile.mkdtemp(prefix="ka-", dir="/tmp"))
    path.chmod(0o755)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def start(service: Service, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """One turn of the agent, in a process of its own."""
    env = environment(
        {
            "KEMEM_URL": service.address,
            "KEMEM_API_KEY": service.key,
            "PYTHONPATH": str(ROOT),
            **more,
        }
    )
    return subprocess.run(
        [sys.executable, str(AGENT), *words],
        env=env, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip


def turn(service: Service, *words: str, **more: str) -> dict[str, Any]:
    done = start(service, *words, **more)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_thread_waiting_for_approval_survives_the_death_of_both_processes(
    folder: Path, kind: str
) -> None:
    more = {"AGENT_ASYNC": "1"} if kind == "async" else {}
    with embedded(folder / "data") as service:
        key = service.key
        first = turn(service, "trip", "say", "Look up 枫叶", **more)
        assert first["messages"] == [
            "human: Look up 枫叶",
            "ai: ",
            "tool: 枫叶 的意思是 叶枫.",
            "ai: Done: 枫叶 的意思是 叶枫.",
        ]
        asked = turn(service, "trip", "say", "Mail Ben that I am late.", **more)
        assert (asked["waits"], asked["mailed"]) == (True, [])
        service.stop(signal.SIGKILL)

    with embedded(folder / "data") as again:
        assert again.key == key
        still = turn(again, "trip", "look", **more)
        assert (still["waits"], still["messages"]) == (True, asked["messages"])
        resumed = turn(again, "trip", "approve", **more)
        assert resumed["mailed"] == ["Ben: Mail Ben that I am late."]
        assert (resumed["waits"], resumed["messages"][-1]) == (False, "ai: Done: Mailed Ben.")
        # Nothing is done twice, and the whole thread is read.
        last = turn(again, "trip", "say", "How much have you read?", **more)
        assert last["mailed"] == []
        assert last["messages"][-1] == "ai: I have read 9 messages."
        other = turn(again, "another", "say", "Hello.", **more)
        assert other["messages"] == ["human: Hello.", "ai: I have read 1 messages."]


@pytest.mark.parametrize("kind", ["sync", "async"])
def test_agent_of_two_hundred_steps_survives_being_killed_twice(folder: Path, kind: str) -> None:
    more = {"AGENT_ASYNC": "1"} if kind == "async" else {}
    steps = 200
    with embedded(folder / "data") as service:
        killed = start(
            service, "long/线", "say", f"Read {steps} parts", AGENT_KILLED_AT="70", **more
        )
        assert killed.returncode == -signal.SIGKILL
        killed = start(service, "long/线", "resume", AGENT_KILLED_AT="140", **more)
        assert killed.returncode == -signal.SIGKILL
        half = turn(service, "long/线", "look", **more)
        assert 2 * 138 <= len(half["messages"]) <= 2 * 140 + 2

        done = turn(service, "long/线", "resume", **more)

        results = [f"tool: {part(number)}" for number in range(steps)]
        assert done["messages"][0] == f"human: Read {steps} parts"
        assert done["messages"][1::2] == ["ai: "] * steps + [f"ai: Read {steps} parts."]
        assert done["messages"][2::2] == results
        assert turn(service, "long/线", "look", **more) == done


def test_dead_service_is_an_error_and_nothing_is_half_written(folder: Path) -> None:
    with embedded(folder / "data") as service:
        before = turn(service, "trip", "say", "Hello.")
        service.stop(signal.SIGKILL)
        failed = start(service, "trip", "say", "Are you there?")
        assert failed.returncode != 0
        assert f"No service can be reached at {service.address}" in failed.stderr
        assert "Are you there?" not in failed.stdout

    with embedded(folder / "data") as again:
        assert turn(again, "trip", "look")["messages"] == before["messages"]
        assert turn(again, "trip", "say", "Now?")["messages"][-1] == "ai: I have read 3 messages."
