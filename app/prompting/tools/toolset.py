"""All tools, which of them an agent may call, and their schemas for a provider. Pure."""

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
    PassageInsertArguments,
    ReadArguments,
    ReplaceArguments,
    RewriteArguments,
    SaveArguments,
    SearchArguments,
    UpdateArguments,
)
from app.prompting.tools.schemas import Format


@dataclass(frozen=True, slots=True)
class Tool:
    """A function that a model may call.

    Args:
        scope: the scope that the caller's key needs.
        about: what it works on; all tools on memories can be switched off together, and those on
            blocks are offered only when there is a block.

    """

    name: str
    description: str
    arguments: type[Schema]
    scope: Literal["read", "write"]
    about: Literal["memories", "messages", "documents", "blocks"]


MESSAGE_READ: Final = "message_read"

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
        "memory_update",
        "Correct one memory or bring it up to date, when it is wrong or no longer says all. What "
        "it said stays in its history. Search first to learn its id.",
        UpdateArguments,
        "write",
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
        MESSAGE_READ,
        "Read a message that was left out or cut before you, or that a search has cut: by its id, "
        "or one of this conversation by its number.",
        ReadArguments,
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
        "passage_insert",
        "Put a text aside in the user's archive, to be found with passage_search later: notes, "
        "results, what is too long for memory_save. Never passwords, keys or numbers of cards.",
        PassageInsertArguments,
        "write",
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


def allowed(config: Mapping[str, Any], *, in_session: bool = False) -> tuple[Tool, ...]:
    """The tools that an agent's settings allow.

    `tools` is a list of names, and `enable_memory` switches the tools on memories. Without these
    settings all are allowed; a `tools` that is not a list allows none. In a session `message_read`
    is allowed whatever they say, as the lines for what is left out name it.
    """
    listed = config.get("tools")
    names: Collection[object] = (
        TOOLS if listed is None else listed if isinstance(listed, list) else ()
    )
    remembers = config.get("enable_memory", True) is not False
    return tuple(
        tool
        for tool in _ALL
        if (tool.name in names and (remembers or tool.about != "memories"))
        or (in_session and tool.name == MESSAGE_READ)
    )


def rendered_tools(
    tools: Iterable[Tool], format_: Format, *, heartbeat: bool, labels: Sequence[str] | None
) -> list[dict[str, Any]]:
    """The definitions of tools in the format of a provider.

    Args:
        tools: the tools.
        format_: whose format.
        heartbeat: whether each also takes `request_heartbeat`.
        labels: labels of the blocks that may be edited; None when they are not known.

    """
    shown = []
    for tool in tools:
        schema = parameters(tool.arguments, heartbeat=heartbeat, labels=labels)
        function = {"name": tool.name, "description": tool.description}
        if format_ == "anthropic":
            shown.append(function | {"input_schema": schema})
        else:
            shown.append({"type": "function", "function": function | {"parameters": schema}})
    return shown


def parameters(
    arguments: type[Schema], *, heartbeat: bool = False, labels: Sequence[str] | None = None
) -> dict[str, Any]:
    """The JSON schema of a tool's arguments, as `rendered_tools` shows it."""
    schema = arguments.model_json_schema()
    properties = {name: _plain(argument) for name, argument in schema.get("properties", {}).items()}
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
    """The schema of an argument, without titles, examples and the null of optional values."""
    plain = {name: value for name, value in schema.items() if name not in {"title", "examples"}}
    options = [option for option in plain.pop("anyOf", ()) if option != {"type": "null"}]
    if options:
        [option] = options
        plain = {**_plain(option), **plain}
    if plain.get("default", "") is None:
        del plain["default"]
    return plain
