"""Examples of the documents run as they stand, with a scripted model."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from agents import ModelResponse, Usage
from agents.models.interface import Model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from openai.types.responses import ResponseOutputMessage, ResponseOutputText

from tests.cli.cli_support import Service, embedded, environment
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PRELUDE = """
from tests.client.test_client_examples import {model}

model, tools = {model}(), []
"""


def read(prompt: str) -> str:
    return "Biscuit." if "Biscuit" in prompt else "I do not know."


class Reader(BaseChatModel):
    """Repeats the name in its prompt."""

    @property
    def _llm_type(self) -> str:
        return "reader"

    def _generate(self, messages: list[BaseMessage], *_rest: object, **_options: object):
        said = AIMessage(read(" ".join(one.text for one in messages)))
        return ChatResult(generations=[ChatGeneration(message=said)])


class AgentReader(Model):
    """The same, for OpenAI's SDK."""

    async def get_response(self, **call: Any) -> ModelResponse:
        text = read(f"{call['system_instructions']} {call['input']}")
        part = ResponseOutputText(text=text, type="output_text", annotations=[])
        said = ResponseOutputMessage(
            id="msg", content=[part], role="assistant", status="completed", type="message"
        )
        return ModelResponse(output=[said], usage=Usage(), response_id=None)

    def stream_response(self, *_rest: Any, **_options: Any) -> Any:
        raise NotImplementedError


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="kd-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


def example(page: str, title: str) -> str:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    return re.search(r"```python\n(.*?)```", text.split(f"# {title}\n")[1], re.DOTALL)[1]


@pytest.mark.parametrize(
    ("page", "title", "model"),
    [
        ("langgraph.md", "Memory across threads", "Reader"),
        ("openai-agents.md", "OpenAI's Agents SDK", "AgentReader"),
    ],
)
def test_example_remembers_what_another_conversation_said(
    service: Service, page: str, title: str, model: str
) -> None:
    env = environment(
        {"KEMEM_URL": service.address, "KEMEM_API_KEY": service.key, "PYTHONPATH": str(ROOT)}
    )
    done = subprocess.run(
        [sys.executable, "-c", f"{PRELUDE.format(model=model)}\n{example(page, title)}"],
        env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip

    assert done.returncode == 0, done.stderr
    assert done.stdout == "Biscuit.\n"
