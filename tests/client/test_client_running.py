"""The sync client, the demo program and README's example against a running `kemem serve`."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from kemem import Memory
from tests.cli.cli_support import Service, embedded, environment
from tests.support.chat_behaviours import writes
from tests.support.openai_server import openai_server
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
DEMO = Path(__file__).with_name("seed_demo.py")
EXAMPLE = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)[0]


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    """On a short folder open to all: pytest's own are closed to the account that root lends."""
    folder = Path(tempfile.mkdtemp(prefix="kc-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data", env={"MEMORY_DEBOUNCE_SECONDS": "1"}) as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture
def memory(service: Service) -> Iterator[Memory]:
    with Memory(service.address, service.key) as opened:
        yield opened


def here(service: Service, **more: str) -> dict[str, str]:
    """The environment of a program on the machine of the service: no key in it."""
    return environment(
        {
            "KEMEM_URL": service.address,
            "MEMORY_DATA_DIR": str(service.data_dir),
            "PYTHONPATH": str(ROOT),
            **more,
        }
    )


def test_readme_example_finds_what_it_saved(service: Service) -> None:
    done = subprocess.run(
        [sys.executable, "-c", EXAMPLE],
        env=here(service),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert done.returncode == 0, done.stderr
    assert "I live in Munich and drink green tea every morning." in done.stdout


def test_demo_program_remembers_across_runs(service: Service, memory: Memory) -> None:
    with openai_server() as model:
        env = here(service, OPENAI_BASE_URL=model.base_url, OPENAI_API_KEY="sk-x")

        def run(said: str, *replies: str) -> str:
            model.chat.script(*map(writes, replies))
            done = subprocess.run(
                [sys.executable, str(DEMO)],
                input=said,
                env=env,
                capture_output=True,
                text=True,
                timeout=PATIENCE,
                check=False,
            )
            assert done.returncode == 0, done.stderr
            return done.stdout

        said = run("I live in Berlin.\n我对花生过敏。\n", "Noted!", "好的，我记住了。")
        assert "Assistant: Noted!" in said
        assert "Assistant: 好的，我记住了。" in said
        run("Where do I live?\n", "In Berlin.")

        prompts = [one.body["messages"][0]["content"] for one in model.chat.requests]

    begin = "You are a friendly assistant.\n\nWhat is remembered about the user:\n"
    assert prompts[0] == begin
    lines = prompts[2].removeprefix(begin).splitlines()
    assert all(line.startswith("- [") for line in lines)
    assert any("Berlin" in line for line in lines)
    assert any("花生" in line for line in lines)
    kept = memory.get_all(user_id="user_001")
    assert {one.content for one in kept} >= {line.split(": ", 1)[1] for line in lines}


def test_program_on_this_machine_needs_only_the_address(service: Service) -> None:
    code = "from kemem import Memory\nwith Memory() as m: print(len(m.get_all(user_id='nobody')))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=here(service), capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.stdout == "0\n", done.stderr


def test_job_is_waited_for(memory: Memory) -> None:
    job = memory.add("I live in Oslo.", user_id="kari", async_=True)
    done = memory.wait(job, timeout=PATIENCE)
    assert done.status == "succeeded"
    assert done.finished_at is not None
    assert ["Oslo" in one.content for one in memory.get_all(user_id="kari")] == [True]


def test_memories_are_extracted_automatically(memory: Memory) -> None:
    said = [
        {"role": "user", "content": "I live in Lima."},
        {"role": "assistant", "content": "Good to know."},
    ]
    appended = memory.append("s1", said, user_id="rosa")
    assert appended.extraction.scheduled

    memory.wait(appended.extraction, timeout=PATIENCE)

    assert ["Lima" in one.content for one in memory.get_all(user_id="rosa")] == [True]


def test_memories_are_extracted_on_request(memory: Memory) -> None:
    said = [
        {"role": "user", "content": "My daughter is allergic to peanuts."},
        {"role": "assistant", "content": "Thank you for telling me."},
    ]
    memory.append("s2", said, user_id="olga")

    extraction = memory.extract("s2", wait=True)

    assert extraction.done
    assert extraction.last_extracted_seq == 2
    assert ["peanuts" in one.content for one in memory.get_all(user_id="olga")] == [True]


def test_sync_methods_work(memory: Memory) -> None:
    [outcome] = memory.add("She drinks green tea.", user_id="mia", infer=False)
    memory_id = outcome.memory_id
    assert memory.get(memory_id).content == "She drinks green tea."
    assert memory.update(memory_id, "She drinks black tea.").version == 2
    history = memory.history(memory_id)
    assert memory.restore(memory_id, history[0].history_id).memory.version == 3
    assert memory.feedback(memory_id, "helpful").rating == "helpful"
    newer = memory.supersede(memory_id, "She drinks coffee.")
    assert [one.memory_id for one in memory.search("drink", "mia")] == [newer.memory_id]
    assert [one.memory_id for one in memory.iterate("mia")] == [newer.memory_id]
    assert memory.append("s3", "Hello there.", user_id="mia").created == 1
    assert str(memory.messages("s3")) == "user: Hello there."
    assert memory.end("s3").status == "ended"
    assert memory.reopen("s3").status == "running"
    assert memory.delete(newer.memory_id) is None
    assert memory.delete_all("mia", confirm=True).job_id is None
    assert memory.usage().today.calls.used >= 0


def test_each_call_has_one_effect_when_postgresql_is_killed(
    service: Service, memory: Memory
) -> None:
    """Calls go on while the database dies; each is answered, and none counts twice."""
    texts = [f"The code of door {number} begins with {number + 100}." for number in range(40)]
    failures: list[Exception] = []

    def save(part: list[str]) -> None:
        for text in part:
            try:
                memory.add(text, user_id="doors", infer=False, on_duplicate="allow")
            except Exception as error:  # noqa: BLE001 (told to the main thread)
                failures.append(error)

    threads = [threading.Thread(target=save, args=(texts[start::4],)) for start in range(4)]
    for one in threads:
        one.start()
    os.kill(service.postgres()[0], signal.SIGKILL)
    for one in threads:
        one.join()

    assert failures == []
    kept = [one.content for one in memory.get_all(user_id="doors", limit=None)]
    assert sorted(kept) == sorted(texts)
