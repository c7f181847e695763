"""A chat model of LangChain that does what a script says."""

import re
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult


class Scripted(BaseChatModel):
    """Says one thing after the other; `{id}` stands for the id that a tool named last."""

    script: list[Any]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **_options: Any) -> "Scripted":
        return self

    def _generate(self, messages: list[BaseMessage], *_rest: Any, **_options: Any) -> ChatResult:
        step = self.script.pop(0)
        if isinstance(step, str):
            return ChatResult(generations=[ChatGeneration(message=AIMessage(step))])
        name, arguments = step
        told = " ".join(one.text for one in messages if isinstance(one, ToolMessage))
        ids = re.findall(r"[0-9a-f]{8}-[0-9a-f-]{27}", told)
        arguments = {key: ids[-1] if value == "{id}" else value for key, value in arguments.items()}
        call = {"name": name, "args": arguments, "id": f"call-{len(messages)}"}
        message = AIMessage("", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])
