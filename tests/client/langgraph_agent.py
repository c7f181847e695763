"""A LangChain agent with a scripted model, whose thread is kept in KeMem; one turn per run.

    python langgraph_agent.py THREAD say "Mail Ben that I am late."
    python langgraph_agent.py THREAD approve
    python langgraph_agent.py THREAD look

Prints a line of JSON: the texts of the thread, whether it waits for approval, what was mailed.
"""

import asyncio
import json
import os
import sys
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
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


class ScriptedModel(BaseChatModel):
    """Calls a tool when it is asked to, and otherwise says how much it has read."""

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> "ScriptedModel":
        return self

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_options: Any) -> ChatResult:
        last = messages[-1]
        if isinstance(last, ToolMessage):
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
        [send_mail, look_up],
        middleware=[HumanInTheLoopMiddleware(interrupt_on={"send_mail": True})],
        checkpointer=saver,
    )


def asked(action: str, text: str) -> Any:
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
    config = {"configurable": {"thread_id": thread}}
    with Memory(timeout=20) as memory:
        agent = agent_of(KeMemSaver(memory, user_id="ana"))
        if action != "look":
            agent.invoke(asked(action, text), config)
        return shown(agent.get_state(config))


async def run_async(thread: str, action: str, text: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}}
    async with AsyncMemory(timeout=20) as memory:
        agent = agent_of(KeMemSaver(memory, user_id="ana"))
        if action != "look":
            await agent.ainvoke(asked(action, text), config)
        return shown(await agent.aget_state(config))


if __name__ == "__main__":
    thread_id, wanted, *rest = sys.argv[1:]
    words = " ".join(rest)
    if os.environ.get("AGENT_ASYNC"):
        answer = asyncio.run(run_async(thread_id, wanted, words))
    else:
        answer = run(thread_id, wanted, words)
    sys.stdout.write(json.dumps(answer))
