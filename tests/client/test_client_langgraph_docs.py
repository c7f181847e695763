"""The examples of docs/langgraph.md run as they stand, with a scripted model."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from tests.cli.cli_support import Service, embedded, environment

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PRELUDE = """
from tests.client.test_client_langgraph_docs import Reader

model, tools = Reader(), []
"""
PAGE = (ROOT / "docs" / "langgraph.md").read_text(encoding="utf-8")


class Reader(BaseChatModel):
    """Repeats the name in its prompt."""

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(self, messages: list[BaseMessage], *_rest: object, **_options: object):
        told = " ".join(one.text for one in messages)
        said = "Biscuit." if "Biscuit" in told else "I do not know."
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said))])


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="kd-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


def example(title: str) -> str:
    section = PAGE.split(f"## {title}\n")[1]
    return re.search(r"```python\n(.*?)```", section, re.DOTALL)[1]


def run(service: Service, program: str) -> str:
    """What an example prints, in a process of its own."""
    env = environment(
        {"KEMEM_URL": service.address, "KEMEM_API_KEY": service.key, "PYTHONPATH": str(ROOT)}
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE}\n{program}"],
        env=env, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_example_of_memory_across_threads_runs(service: Service) -> None:
    assert run(service, example("Memory across threads")) == "Biscuit.\n"
