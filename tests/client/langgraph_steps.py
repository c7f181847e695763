"""An agent of many tool steps with memory and a thread in KeMem, which can be killed on the way.

    python langgraph_steps.py THREAD say "Count to 200." [tool:60 | model:60 | reply]
    python langgraph_steps.py THREAD resume [tool:120 | model:120 | reply]
    python langgraph_steps.py THREAD look

Prints a line of JSON: the messages of the thread and of its session, and what the model saw last.
"""

import hashlib
import json
import os
import signal
import sys
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool

from kemem import Memory
from kemem.langgraph import KeMemMiddleware, KeMemSaver

LARGEST = 100_000
DEATH = ""
SEEN: list[str] = []


def die_at(place: str) -> None:
    if place == DEATH:
        os.kill(os.getpid(), signal.SIGKILL)


@tool
def count(step: int) -> str:
    """Count one step; each result differs from one attempt to the next."""
    die_at(f"tool:{step}")
    size = step * 7919 % LARGEST
    return f"step {step}, {os.urandom(8).hex()}: " + "data " * (size // 5)


class Counter(BaseChatModel):
    """Counts to the number it was asked for, one step a call, and checks what it is sent."""

    @property
    def _llm_type(self) -> str:
        return "counter"

    def bind_tools(self, tools: Any, **_options: Any) -> "Counter":
        return self

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_options: Any) -> ChatResult:
        check(messages)
        SEEN[:] = [one.text for one in messages]
        last = messages[-1]
        step = 1
        if isinstance(last, ToolMessage):
            step += int(last.text.split()[1].rstrip(","))
        asked = [one.text for one in messages if isinstance(one, HumanMessage)]
        goal = int(os.environ["AGENT_STEPS"]) if "Count" in asked[-1] else 0
        die_at(f"model:{step}")
        if step <= goal:
            # Ids are numbered anew by each attempt, as some models do.
            call = {"name": "count", "args": {"step": step}, "id": f"call-{step}"}
            said = AIMessage(f"Step {step} of {os.getpid()}.", tool_calls=[call])
        else:
            die_at("reply")
            said = AIMessage("Done.")
        return ChatResult(generations=[ChatGeneration(message=said)])


def check(messages: list[BaseMessage]) -> None:
    """Providers refuse a call whose results are not right behind it, and the other way round."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            waiting.remove(message.tool_call_id)
        else:
            assert not waiting, waiting
            calls = message.tool_calls if isinstance(message, AIMessage) else []
            waiting = [call["id"] for call in calls]
    assert not waiting
    assert not any(isinstance(one, SystemMessage) for one in messages[1:])


def digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def run(thread: str, action: str, text: str) -> dict[str, Any]:
    config = {"configurable": {"thread_id": thread}, "recursion_limit": 10_000}
    with Memory(timeout=60) as memory:
        agent = create_agent(
            Counter(),
            [count],
            system_prompt="You count.",
            middleware=[KeMemMiddleware(memory, user_id="ana", window_tokens=40_000)],
            checkpointer=KeMemSaver(memory, user_id="ana"),
        )
        if action == "say":
            agent.invoke({"messages": [("user", text)]}, config)
        elif action == "resume":
            agent.invoke(None, config)
        kept = agent.get_state(config).values.get("messages", [])
        stored = memory.messages(thread, None)
        roles = {"human": "user", "ai": "assistant", "tool": "tool"}
        return {
            "thread": [[roles[one.type], digest(one.text)] for one in kept],
            "session": [[one.role, digest(one.content)] for one in stored],
            "largest": max((len(one.text) for one in kept), default=0),
            "saw": [one[:2000] for one in SEEN],
        }


if __name__ == "__main__":
    thread_id, wanted, *rest = sys.argv[1:]
    if rest and rest[-1].partition(":")[0] in {"tool", "model", "reply"}:
        DEATH = rest.pop()
    sys.stdout.write(json.dumps(run(thread_id, wanted, " ".join(rest))))
