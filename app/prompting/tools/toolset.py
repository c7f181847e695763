"""The tools there are, which of them somebody may call, and how a model is told of them. Pure."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Final, Literal

from app.platform.values.fields import Schema
from app.prompting.tools.arguments import (
    HEARTBEAT,
    AppendArguments,
    ConversationArguments,
    DeleteArguments,
    InsertArguments,
    Nothing,
    PassageArguments,
    ReplaceArguments,
    RewriteArguments,
    SaveArguments,
    SearchArguments,
)
from app.prompting.tools.schemas import Format


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    Args:
        scope: what the caller's key must be allowed to do.
        about: what it works on; all tools on memories can be switched off at once, and those
            on blocks are offered where there is one.

    """

    name: str
    description: str
    arguments: type[Schema]
    scope: Literal["read", "write"]
    about: Literal["memories", "messages", "documents", "blocks"]


_ALL: Final = (
    Tool(
        "memory_save",
        "Remember something about the user for later conversations. Call it when the user asks "
        "you to remember something, or says something lasting about themselves. Never save "
        "passwords, keys or numbers of cards.",
        SaveArguments,
        "write",
        "memories",
    ),
    Tool(
        "memory_search",
        "Search what is remembered about the user, by meaning and by words, best first.",
        SearchArguments,
        "read",
        "memories",
    ),
    Tool(
        "memory_delete",
        "Forget one memory, when the user asks for it or it is wrong. Search first to learn its "
        "id.",
        DeleteArguments,
        "write",
        "memories",
    ),
    Tool("memory_stats", "Count what is remembered about the user.", Nothing, "read", "memories"),
    Tool(
        "conversation_search",
        "Search what was said in all conversations with the user, best first; it also says how "
        "long ago.",
        ConversationArguments,
        "read",
        "messages",
    ),
    Tool(
        "passage_search",
        "Search the documents that you and the user have, best passages first; it also says which "
        "document and page each is from.",
        PassageArguments,
        "read",
        "documents",
    ),
    Tool(
        "core_memory_append",
        "Add a line to the end of a memory block that always stands before you.",
        AppendArguments,
        "write",
        "blocks",
    ),
    Tool(
        "core_memory_replace",
        "Replace a passage of a memory block that always stands before you.",
        ReplaceArguments,
        "write",
        "blocks",
    ),
    Tool(
        "memory_insert",
        "Insert a line into a memory block that always stands before you.",
        InsertArguments,
        "write",
        "blocks",
    ),
    Tool(
        "memory_rethink",
        "Write a memory block that always stands before you anew, to put it in order or to make "
        "it shorter.",
        RewriteArguments,
        "write",
        "blocks",
    ),
)

TOOLS: Final[Mapping[str, Tool]] = MappingProxyType({tool.name: tool for tool in _ALL})


def allowed(config: Mapping[str, Any]) -> tuple[Tool, ...]:
    """The tools that an agent may call by its settings: `tools`, a list of names, and
    `enable_memory`. Without them all; what is no list allows nothing.
    """
    listed = config.get("tools")
    names: Collection[object] = (
        TOOLS if listed is None else listed if isinstance(listed, list) else ()
    )
    remembers = config.get("enable_memory", True) is not False
    return tuple(
        tool for tool in _ALL if tool.name in names and (remembers or tool.about != "memories")
    )


def rendered(
    tools: Iterable[Tool], format_: Format, *, heartbeat: bool, labels: Sequence[str] | None
) -> list[dict[str, Any]]:
    """Tools as a provider takes them.

    Args:
        heartbeat: whether each also takes `request_heartbeat`.
        labels: of the blocks that may be edited, where that is known.

    """
    shown = []
    for tool in tools:
        parameters = _parameters(tool.arguments, heartbeat=heartbeat, labels=labels)
        told = {"name": tool.name, "description": tool.description}
        if format_ == "anthropic":
            shown.append(told | {"input_schema": parameters})
        else:
            shown.append({"type": "function", "function": told | {"parameters": parameters}})
    return shown


def _parameters(
    arguments: type[Schema], *, heartbeat: bool, labels: Sequence[str] | None
) -> dict[str, Any]:
    schema = arguments.model_json_schema()
    properties = {name: _plain(one) for name, one in schema.get("properties", {}).items()}
    if labels is not None and "label" in properties:
        properties["label"] |= {"enum": list(labels)}
    if heartbeat:
        properties[HEARTBEAT] = {
            "type": "boolean",
            "description": "True when you want to go on before the user gets an answer.",
        }
    return {
        "type": "object",
        "properties": properties,
        "required": list(schema.get("required", ())),
        "additionalProperties": False,
    }


def _plain(schema: Mapping[str, Any]) -> dict[str, Any]:
    """One argument without what a model has no use for: titles, and null for what is left out."""
    told = {name: one for name, one in schema.items() if name not in {"title", "examples"}}
    options = [one for one in told.pop("anyOf", ()) if one != {"type": "null"}]
    if options:
        [option] = options
        told = {**_plain(option), **told}
    if told.get("default", "") is None:
        del told["default"]
    return told
