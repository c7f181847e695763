"""Answers about tools that a model may call, and about the processors of a deployment."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemem.answers import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools(Answer):
    """Tools that a model may call; pass `tools` to the provider unchanged."""

    tools: tuple[Any, ...] = ()
    """Dictionaries as the provider's SDK takes them; `format` chooses the form."""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Answer):
    """The result of a tool call. `str()` is the text for the model: the result or the error."""

    tool: str
    ok: bool = False
    result: str | None = None
    error: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """The result for programs, or the `code` of the error."""
    next_cursor: str | None = None
    request_heartbeat: bool = False
    """Whether the model wants another turn before the user gets an answer."""
    tool_call_id: str | None = None
    duration_ms: int = 0

    def __str__(self) -> str:
        return self.result or self.error or ""

    @property
    def message(self) -> Any:
        """The tool message, a dictionary, to send to the provider and to `append`.

        Raises:
            ValueError: the call was made without a `tool_call_id`.

        """
        if self.tool_call_id is None:
            raise ValueError("call_tool needs a tool_call_id for a message")
        return {
            "role": "tool",
            "content": str(self),
            "tool_call_id": self.tool_call_id,
            "name": self.tool,
            "metadata": {"duration_ms": self.duration_ms},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Processor(Answer):
    """Code of the deployment that an agent may use, and the points at which it runs."""

    name: str
    points: tuple[str, ...] = ()
    timeout_seconds: float = 1.0
    on_error: str = "skip"
    """What happens if it fails. `skip`: continue without it. `refuse`: refuse the request."""

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.points)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Processors(Listing[Processor]):
    """The processors of a deployment, in the order in which they run."""

    rows_key: ClassVar[str] = "items"
    results: tuple[Processor, ...] = ()
