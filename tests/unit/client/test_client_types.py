"""What the client answers is typed as other SDKs take it, for mypy and pyright alike."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
BIN = Path(sys.executable).parent

PROGRAM = """
import anthropic
import openai
from openai.types.chat import ChatCompletionMessageParam

from kemem import AsyncMemory, Memory


def ask(memory: Memory, client: openai.OpenAI) -> str | None:
    context = memory.context("trip", "Where to?")
    offered = memory.tools(session_id="trip")
    messages: list[ChatCompletionMessageParam] = [*context.messages]
    answer = client.chat.completions.create(
        model="gpt-4o-mini", messages=context.messages, tools=offered.tools
    )
    for call in answer.choices[0].message.tool_calls or []:
        if call.type == "function":
            done = memory.call_tool(call.function.name, "trip", call.function.arguments, call.id)
            messages.append(done.message)
    return answer.choices[0].message.content


async def ask_async(memory: AsyncMemory, client: openai.AsyncOpenAI) -> str | None:
    context = await memory.context("trip", "Where to?")
    answer = await client.chat.completions.create(model="m", messages=context.messages)
    return answer.choices[0].message.content


def ask_claude(memory: Memory, client: anthropic.Anthropic) -> None:
    context = memory.context("trip", "Where to?", render="anthropic")
    client.messages.create(
        model="m", max_tokens=100, system=context.prompt, messages=context.messages
    )
"""
WRONG = """
import openai

from kemem import Memory


def ask(memory: Memory, client: openai.OpenAI) -> None:
    client.chat.completions.create(model="m", messages=memory.context("trip").used)
"""


def checked(tool: str, program: Path) -> subprocess.CompletedProcess[str]:
    if tool == "mypy":
        cache = program.parents[1] / "cache"
        options = ["--strict", "--config-file", "", "--cache-dir", str(cache)]
    else:
        config = {
            "typeCheckingMode": "standard",
            "extraPaths": [str(ROOT)],
            "include": [program.name],
            "failOnWarnings": True,
        }
        (program.parent / "pyrightconfig.json").write_text(json.dumps(config))
        options = ["--project", str(program.parent), "--pythonpath", sys.executable]
    targets = [str(program)] if tool == "mypy" else []
    return subprocess.run(
        [BIN / tool, *options, *targets],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=900,
        check=False,
    )


@pytest.mark.slow
@pytest.mark.parametrize("tool", ["mypy", "basedpyright"])
def test_contexts_and_tools_are_arguments_of_other_sdks(tool: str, tmp_path: Path) -> None:
    right, wrong = tmp_path / "right" / "program.py", tmp_path / "wrong" / "program.py"
    for program, text in ((right, PROGRAM), (wrong, WRONG)):
        program.parent.mkdir()
        program.write_text(text)

    done = checked(tool, right)
    assert done.returncode == 0, done.stdout + done.stderr
    # The checker sees the SDK's types: what is no message is refused.
    refused = checked(tool, wrong)
    assert refused.returncode == 1, refused.stdout + refused.stderr
    assert "messages" in refused.stdout
