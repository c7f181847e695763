"""The page about frameworks, run as it stands with the real packages, against a running service."""

import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_support import Service, embedded
from tests.support.environments import python, quiet_environment
from tests.support.patience import PATIENCE

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "frameworks.md").read_text(encoding="utf-8")
MODEL = "from tests.client.test_client_examples import Reader\nmodel = Reader()\n"
LLAMA_INDEX = ("llama-index-core==0.14.25", "httpx==0.28.1")
AUTOGEN = ("autogen-core==0.7.5", "httpx==0.28.1")

LONG_CONVERSATION = """
import asyncio
from llama_index.core.base.llms.types import ChatMessage
from llama_index.core.memory import Memory
from kemem import Memory as Client
from kemem.llama_index import KeMemMemoryBlock

with Client() as client:
    block = KeMemMemoryBlock(client=client, user_id="ana")
    memory = Memory.from_defaults(
        session_id="long", memory_blocks=[block], token_limit=60, token_flush_size=20
    )

    async def talk():
        for number in range(8):
            for role in ("user", "assistant"):
                text = f"Message {number} of the {role}, a little longer than the one before it."
                await memory.aput(ChatMessage(role=role, content=text))

    asyncio.run(talk())
    stored = [(one.role, one.content) for one in client.messages("long", limit=None)]
    assert stored, "nothing left the short-term memory"
    assert stored[0] == ("user", "Message 0 of the user, a little longer than the one before it.")
    assert stored[1][0] == "assistant"
    assert len(set(stored)) == len(stored) < 16, stored
    try:
        asyncio.run(block.aget([], session_id="no/id"))
    except ValueError:
        print("done")
"""
AUTOGEN_RULES = """
import asyncio
from autogen_core import CancellationToken
from autogen_core.memory import Memory, MemoryContent, MemoryMimeType
from autogen_core.model_context import UnboundedChatCompletionContext
from kemem import AsyncMemory, UnprocessableError
from kemem.autogen import KeMemMemory


async def refused(call):
    try:
        await call
    except (ValueError, UnprocessableError) as error:
        return str(error)


async def main():
    async with AsyncMemory() as client:
        memory = KeMemMemory(client, user_id="bea")
        assert isinstance(memory, Memory)
        context = UnboundedChatCompletionContext()
        assert (await memory.update_context(context)).memories.results == []
        assert await context.get_messages() == []
        text = MemoryContent(
            content="Bea lives in Ghent.", mime_type="text/plain", metadata={"topic": "home"}
        )
        await memory.add(text, CancellationToken())
        await memory.add(text)
        [found] = (await memory.query(text, CancellationToken())).results
        assert (found.content, found.metadata["topic"]) == ("Bea lives in Ghent.", "home")
        other = KeMemMemory(client, user_id="carl")
        assert (await other.query("Where does Bea live?")).results == []
        image = MemoryContent(content=b"x", mime_type=MemoryMimeType.BINARY)
        assert "texts" in await refused(memory.add(image))
        secret = MemoryContent(
            content="Her password is hunter2secret.", mime_type=MemoryMimeType.TEXT
        )
        assert "verdict" in await refused(memory.add(secret))
        cancelled = CancellationToken()
        cancelled.cancel()
        try:
            await memory.query("Where?", cancelled)
        except asyncio.CancelledError:
            await memory.clear()
        assert (await memory.query("Where does Bea live?")).results == []
        try:
            KeMemMemory(client)
        except ValueError:
            print("done")


asyncio.run(main())
"""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    folder = Path(tempfile.mkdtemp(prefix="kf-", dir="/tmp"))
    folder.chmod(0o755)
    with embedded(folder / "data") as running:
        yield running
    shutil.rmtree(folder, ignore_errors=True)


def example(title: str) -> str:
    return re.search(r"```python\n(.*?)```", PAGE.split(f"## {title}\n")[1], re.DOTALL)[1]


def output_of(service: Service, interpreter: Path | str, code: str) -> str:
    env = quiet_environment(
        KEMEM_URL=service.address, KEMEM_API_KEY=service.key, PYTHONPATH=str(ROOT)
    )
    done = subprocess.run(
        [str(interpreter), "-c", code],
        env=env, capture_output=True, text=True, timeout=PATIENCE, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_retriever_example_finds_what_was_saved(service) -> None:
    out = output_of(service, sys.executable, example("A LangChain retriever"))
    assert "Her dog is called Biscuit.\n" in out


def test_chat_history_example_remembers(service) -> None:
    out = output_of(service, sys.executable, MODEL + example("A LangChain chat history"))
    assert out == "Biscuit.\n"


def test_llama_index_example_recalls(service) -> None:
    interpreter = python("llama-index", *LLAMA_INDEX)
    out = output_of(service, interpreter, example("A LlamaIndex memory block"))
    assert out.startswith("system ")
    assert "Her dog is called Biscuit." in out
    assert out.rstrip().endswith("user What is my dog called?")


def test_llama_index_hands_on_what_leaves_its_short_term_memory(service) -> None:
    out = output_of(service, python("llama-index", *LLAMA_INDEX), LONG_CONVERSATION)
    assert out == "done\n"


def test_autogen_example_recalls(service) -> None:
    out = output_of(service, python("autogen", *AUTOGEN), example("An AutoGen memory"))
    assert "- Her dog is called Biscuit.\n" in out


def test_autogen_memory_keeps_to_its_protocol(service) -> None:
    assert output_of(service, python("autogen", *AUTOGEN), AUTOGEN_RULES) == "done\n"
