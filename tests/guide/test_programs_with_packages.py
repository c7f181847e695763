"""Programs of the manual that need other packages or a beginning, run against a real service.

Models are scripted: what the programs do with them is real. `test_snippets_run` runs those that
are whole; those of frameworks are run in `tests/client`.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.cli_support import Service, environment
from tests.guide.test_snippets_run import ROOT, running
from tests.support.documents import pdf
from tests.support.openai_server import Answer, OpenAIServer, Request, completion, openai_server
from tests.unit.test_snippets import BLOCKS

pytestmark = pytest.mark.slow

BEGIN = """
from kemem import Memory
memory = Memory()
"""
BEGIN_OPENAI = BEGIN + "from openai import OpenAI\nclient = OpenAI()\n"
SAID = "My dog is called Biscuit."
TALK = f"""
print(chat({SAID!r}))
print(chat("What is my dog called?"))
"""
TWO_MESSAGES = f"""
messages = []
memory.append("chat-1", {SAID!r}, user_id="ana")
context = memory.context("chat-1")
"""
THREAD = """
with Memory() as memory:
    kept = KeMemSaver(memory, user_id="ana").get({"configurable": {"thread_id": "trip"}})
    print([one.text for one in kept["channel_values"]["messages"]])
"""
REMEMBERING = """
from tests.support.scripted_model import Scripted
model = Scripted(script=[
    ("manage_memory", {"content": "Ana likes green tea.", "action": "create"}), "Noted.",
    ("search_memory", {"query": "drinks"}), "Green tea.",
])
"""
SUPPORT = """
import httpx, os
httpx.post(
    f"{os.environ['KEMEM_URL']}/v1/agents", json={"agent_id": "support", "agent_name": "Support"},
    headers={"Authorization": f"Bearer {os.environ['KEMEM_API_KEY']}"}, trust_env=False,
    timeout=60,
).raise_for_status()
"""
DELIVERY = """
import json
from datetime import UTC, datetime
from fastapi.testclient import TestClient
sender = TestClient(app)
body = json.dumps({"id": "evt_1", "type": "memory.added"})
now = datetime.now(UTC)
head = {"webhook-id": "evt_1", "webhook-timestamp": str(int(now.timestamp()))}
signature = {"webhook-signature": webhook.sign("evt_1", now, body)}
print(sender.post("/kemem", content=body, headers=head | signature).status_code)
print(sender.post("/kemem", content=body + " ", headers=head | signature).status_code)
"""


@pytest.fixture(scope="module")
def service() -> Iterator[Service]:
    with running() as found:
        yield found


@pytest.fixture
def openai() -> Iterator[OpenAIServer]:
    with openai_server() as server:
        yield server


def program(page: str, part: str) -> str:
    [text] = [
        block.text
        for block in BLOCKS
        if block.page == page and block.language == "python" and part in block.text
    ]
    return text


def output(service: Service, folder: Path, code: str, **env: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=folder,
        env=environment(
            {
                "KEMEM_URL": service.address,
                "KEMEM_API_KEY": service.key,
                "PYTHONPATH": str(ROOT),
                **env,
            }
        ),
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


async def reads(request: Request) -> Answer:
    """Repeats the name that its prompt holds."""
    known = "Biscuit" in json.dumps(request.body["messages"])
    return completion("Biscuit." if known else "I do not know.")


async def saves(_: Request) -> Answer:
    """Calls the tool that saves."""
    arguments = json.dumps({"content": "Ana's dog is called Biscuit."})
    function = {"name": "memory_save", "arguments": arguments}
    call = {"id": "call_1", "type": "function", "function": function}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    choice = {"index": 0, "message": message, "finish_reason": "tool_calls"}
    answer = {"id": "chatcmpl-1", "object": "chat.completion", "created": 0, "model": "m"}
    return Answer.of(answer | {"choices": [choice]})


def of(server: OpenAIServer) -> dict[str, str]:
    return {"OPENAI_BASE_URL": server.base_url, "OPENAI_API_KEY": "sk-secret"}


def test_chat_of_the_first_page_remembers(service, openai, tmp_path) -> None:
    openai.chat.script(reads, reads)
    code = program("getting-started.md", "def chat(") + TALK

    assert output(service, tmp_path, code, **of(openai)) == "Biscuit.\nBiscuit.\n"
    last = openai.chat.requests[-1].body["messages"]
    assert [one["role"] for one in last][-3:] == ["user", "assistant", "user"]
    assert "You are a helpful assistant." in last[0]["content"]


def test_context_is_an_argument_of_the_sdk_of_openai(service, openai, tmp_path) -> None:
    openai.chat.script(reads)
    said = f'memory.append("trip", {SAID!r}, user_id="ana")\n'

    output(service, tmp_path, BEGIN_OPENAI + said + program("client.md", '"trip"'), **of(openai))
    assert SAID in json.dumps(openai.chat.requests[0].body["messages"])


def test_tools_are_offered_and_called(service, openai, tmp_path) -> None:
    openai.chat.script(saves)
    code = BEGIN_OPENAI + TWO_MESSAGES + program("tools.md", "memory.tools(")

    out = output(
        service, tmp_path, code + '\nprint(messages[0]["tool_call_id"], result.ok)', **of(openai)
    )
    assert out == "call_1 True\n"
    offered = [one["function"]["name"] for one in openai.chat.requests[0].body["tools"]]
    assert "memory_save" in offered


def test_document_is_uploaded_and_found(service, tmp_path) -> None:
    (tmp_path / "pump.pdf").write_bytes(pdf("The filter of the pump goes every six months."))
    out = output(service, tmp_path, BEGIN + SUPPORT + program("documents.md", "upload("))

    assert out.endswith("pump.pdf 1 The filter of the pump goes every six months.\n")


def test_thread_of_an_agent_is_kept(service, tmp_path) -> None:
    begin = "from tests.client.test_client_examples import Reader\nmodel, tools = Reader(), []\n"
    code = begin + program("langgraph.md", "checkpointer=KeMemSaver") + THREAD

    assert output(service, tmp_path, code) == "['Hello!', 'I do not know.']\n"


def test_tools_of_langmem_remember_in_the_store(service, tmp_path) -> None:
    out = output(service, tmp_path, REMEMBERING + program("langgraph.md", "langmem"))

    assert "{'content': 'Ana likes green tea.'}" in out


def test_receiver_of_webhooks_takes_what_is_signed_alone(service, tmp_path) -> None:
    code = program("webhooks.md", "standardwebhooks").replace("whsec_…", "whsec_" + "c2VjcmV0" * 4)

    assert output(service, tmp_path, code + DELIVERY) == "204\n401\n"
