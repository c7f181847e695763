"""A LangChain agent with a scripted model, whose thread is kept in KeMem; one turn per run.

    python langgraph_agent.py THREAD say "Mail Ben that I am late."
    python langgraph_agent.py THREAD approve
    python langgraph_agent.py THREAD look
    python langgraph_agent.py THREAD say "Read 200 parts"
    python langgraph_agent.py THREAD resume

Prints a line of JSON: the texts of the thread, whether it waits for approval, what was mailed.
With AGENT_KILLED_AT=70 the process kills itself while it reads that part.
"""

import asyncio
import json
import os
import random
import signal
import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.types import Command

from kemem import AsyncMemory, Memory
from kemem.langgraph import KeMemSaver

MAILED: list[str] = []


@tool
def send_mail(to: str, text: str) -> str:
    """Send a mail."""
    MAILED.append(f"{to}: {text}")
    return f"Mailed {to}."


@tool
def look_up(word: str) -> str:
    """Look a word up."""
    return f"{word} 的意思是 {word[::-1]}."


def part(number: int) -> str:
    """Up to 100 kB that are the same each time."""
    size = 100_000 if number % 10 == 9 else 200 + 97 * number
    return random.Random(number).randbytes(size // 2).hex()


@tool
def read_part(number: int) -> str:
    """Read a part of a long file."""
    if os.environ.get("AGENT_KILLED_AT") == str(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return part(number)


class ScriptedModel(BaseChatModel):
    """Calls a tool when it is asked to, and otherwise says how much it has read."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_options: Any) -> ChatResult:
        last = messages[-1]
        asked = next(one.text for one in reversed(messages) if isinstance(one, HumanMessage))
        read = sum(isinstance(one, ToolMessage) for one in messages)
        if asked.startswith("Read ") and read < int(asked.split()[1]):
            call = {"name": "read_part", "args": {"number": read}, "id": f"part-{read}"}
            said = AIMessage("", tool_calls=[call])
        elif asked.startswith("Read "):
            said = AIMessage(f"Read {read} parts.")
        elif isinstance(last, ToolMessage):
            said = AIMessage(f"Done: {last.content}")
        elif last.text.startswith("Mail "):
            arguments = {"to": last.text.split()[1], "text": last.text}
            call = {"name": "send_mail", "args": arguments, "id": f"call-{len(messages)}"}
            said = AIMessage("", tool_calls=[call])
        elif last.text.startswith("Look up "):
            call = {
                "name": "look_up",
                "args": {"word": last.text.removeprefix("Look up ")},
                "id": f"call-{len(messages)}",
            }
            said = AIMessage("", tool_calls=[call])
        else:
            said = AIMessage(f"I have read {len(messages)} messages.")
        return ChatResult(generations=[ChatGeneration(message=said)])


def agent_of(saver: KeMemSaver) -> Any:
    return create_agent(
        ScriptedModel(),
        [send_mail, look_up, read_part],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})],
        checkpointer=saver,
    )


def asked(action: str, text: str) -> Any:
    if action == "resume":
        return None
    if action == "approve":
        return Command(resume={"decisions": [{"type": "approve"}]})
    return {"messages": [("user", text)]}


def shown(state: Any) -> dict[str, Any]:
    return {
        "messages": [f"{one.type}: {one.text}" for one in state.values.get("messages", [])],
        "waits": bool(state.interrupts),
        "mailed": MAILED,
    }


def run(thread: str, action: str, text: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 1000}
    with Memory(timeout=20) as memory:
        agent = agent_of(KeMemSaver(memory, user_id="ana"))
        if action != "look":
            agent.invoke(asked(action, text), config, durability="sync")
        return shown(agent.get_state(config))


async def run_async(thread: str, action: str, text: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 1000}
    async with AsyncMemory(timeout=20) as memory:
        agent = agent_of(KeMemSaver(memory, user_id="ana"))
        if action != "look":
            await agent.ainvoke(asked(action, text), config, durability="sync")
        return shown(await agent.aget_state(config))


if __name__ == "__main__":
    thread_id, wanted, *rest = sys.argv[1:]
    words = " ".join(rest)
    if os.environ.get("AGENT_ASYNC"):
        answer = asyncio.run(run_async(thread_id, wanted, words))
    else:
        answer = run(thread_id, wanted, words)
    sys.stdout.write(json.dumps(answer))
