"""An agent of hundreds of tool steps is killed and resumed: its memory has each message once."""

import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cli.cli_support import Service, embedded, environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
AGENT = Path(__file__).with_name("langgraph_steps.py")


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="km-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


def start(service: Service, *words: str, steps: int) -> subprocess.CompletedProcess[str]:
    env = environment(
        {
            "KEMEM_URL": service.address,
            "KEMEM_API_KEY": service.key,
            "PYTHONPATH": str(ROOT),
            "AGENT_STEPS": str(steps),
        }
    )
    return subprocess.run(
        [sys.executable, str(AGENT), *words],
        env=env, capture_output=True, text=True, timeout=900, check=False,
    )  # fmt: skip


def finished(service: Service, *words: str, steps: int) -> dict[str, Any]:
    done = start(service, *words, steps=steps)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def killed(service: Service, *words: str, steps: int) -> None:
    done = start(service, *words, steps=steps)
    assert done.returncode == -9, done.stderr


def test_200_steps_killed_twice_are_stored_once_and_known_to_a_second_thread(
    service: Service,
) -> None:
    said = "My dog is called Biscuit. Count to 200."
    killed(service, "long", "say", said, "tool:60", steps=200)
    killed(service, "long", "resume", "model:130", steps=200)
    done = finished(service, "long", "resume", steps=200)

    assert len(done["thread"]) == 402
    assert done["session"] == done["thread"]
    assert done["largest"] > 90_000
    other = finished(service, "short", "say", "What is my dog called?", steps=200)
    assert "Biscuit" in other["saw"][0]
    assert other["saw"][1:] == ["What is my dog called?"]


@pytest.mark.parametrize("place", ["tool:1", "tool:2", "model:1", "model:2", "model:4", "reply"])
def test_kill_at_any_place_loses_and_repeats_nothing(service: Service, place: str) -> None:
    thread = place.replace(":", "-")
    killed(service, thread, "say", "Count to 3.", place, steps=3)
    done = finished(service, thread, "resume", steps=3)

    assert done["session"] == done["thread"]
    assert [role for role, _ in done["thread"]] == [
        "user", *["assistant", "tool"] * 3, "assistant"
    ]  # fmt: skip
