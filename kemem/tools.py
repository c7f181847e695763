"""Memory as functions that a model may call, and the processors that a deployment allows."""

# mypy: disable-error-code="explicit-override"
# As in reading.py.

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from kemem.reading import Answer, Listing


@dataclass(frozen=True, slots=True, kw_only=True)
class Tools(Answer):
    """What a model can be told it may call; `tools` goes to the provider as it is."""

    tools: tuple[Mapping[str, Any], ...] = ()
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolResult(Answer):
    """What came of a call. `str()` is the text for the model, whether it came to pass or not."""

    tool: str
    ok: bool = False
    result: str | None = None
    error: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict)
    """The same for programs: what the result shows, or the `code` of the error."""
    next_cursor: str | None = None
    request_heartbeat: bool = False
    """Whether the model wants to go on before the user gets an answer."""
    tool_call_id: str | None = None
    duration_ms: int = 0

    def __str__(self) -> str:
        return self.result or self.error or ""

    @property
    def message(self) -> dict[str, Any]:
        """The message of the tool, for the provider and for `append`.

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
    """Code of the deployment that an agent may choose, and where it is asked."""

    name: str
    points: tuple[str, ...] = ()
    timeout_seconds: float = 1.0
    on_error: str = "skip"
    """`skip`: work goes on without it. `refuse`: nothing goes on."""

    def __str__(self) -> str:
        return f"{self.name}: {', '.join(self.points)}"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Processors(Listing[Processor]):
    """The processors that a deployment allows, in the order they run in."""

    rows_key: ClassVar[str] = "items"

    results: tuple[Processor, ...] = ()
