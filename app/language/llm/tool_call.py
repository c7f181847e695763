"""A call of a tool, in whichever form a client appended it. Pure.

OpenAI has `function` with `arguments`, a text; LangChain `args` and Anthropic `input`, an object.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from app.language.llm.tool_arguments import read_arguments

_ARGUMENTS: Final = ("arguments", "args", "input")


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call, read from any of the forms; empty is what it does not say."""

    call_id: str
    name: str
    arguments: Any

    @classmethod
    def of(cls, call: Mapping[str, Any]) -> "ToolCall":
        function = call.get("function")
        inside = function if isinstance(function, Mapping) else call
        given: Any = next((inside[key] for key in _ARGUMENTS if key in inside), {})
        name = inside.get("name")
        return cls(str(call.get("id") or ""), name if isinstance(name, str) else "", given)

    @property
    def text(self) -> str:
        """The arguments as JSON, as OpenAI wants them."""
        return arguments_text(self.arguments)

    @property
    def document(self) -> dict[str, Any]:
        """The arguments as an object, as Anthropic wants them."""
        value = self.arguments
        if isinstance(value, str):
            value = read_arguments(value) if value.strip() else {}
        return value if isinstance(value, dict) else {"arguments": value}


def arguments_text(arguments: Any) -> str:
    """Arguments as a text, whether they came as one or as an object."""
    return arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)


def with_arguments(call: Mapping[str, Any], change: Callable[[Any], Any]) -> Mapping[str, Any]:
    """The call in its form, with its arguments changed."""
    function = call.get("function")
    if isinstance(function, Mapping):
        return {**call, "function": with_arguments(function, change)}
    return {**call, **{key: change(call[key]) for key in _ARGUMENTS if key in call}}
