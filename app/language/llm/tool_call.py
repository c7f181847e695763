"""A call of a tool, in whichever form a client appended it. Pure.

OpenAI has `function` with `arguments`, a text; LangChain `args` and Anthropic `input`, an object.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

_ARGUMENTS: Final = ("arguments", "args", "input")

DEEPEST_ARGUMENTS: Final = 100
"""Most levels of nested objects and lists. An answer is not written much deeper."""


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


def read_arguments(text: str) -> Any:
    """The value that the text is in JSON, or the text itself where it is none.

    Not read are half a surrogate pair, numbers that are not finite, and what is nested too deep:
    a model may write them, and no answer in JSON can have them.
    """
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (ValueError, RecursionError):
        return text
    return value if _is_flat(value) else text


def _is_flat(value: Any) -> bool:
    level = [value]
    for _ in range(DEEPEST_ARGUMENTS + 1):
        level = [item for container in level for item in _inside(container)]
        if not level:
            return True
    return False


def _inside(value: Any) -> list[Any]:
    """What it contains."""
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []
