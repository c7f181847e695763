"""Between LangGraph's checkpoints and what is sent: pure, but for the serializer's work."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem.langgraph_calls import Place
from kemem.langgraph_values import Cut, bytes_of, cut, text_of

_THREAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}")
_INLINE_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checkpoint ready to be sent.

    Args:
        body: what is sent, without values.
        values: channels with a new value.
        kept: channels whose value the parent has, each with it.

    """

    place: Place
    body: Mapping[str, Any]
    values: Mapping[str, Cut]
    kept: Mapping[str, Any]
    serde: SerializerProtocol


def thread_of(thread_id: object) -> str:
    """A LangGraph thread's id as the id of a session.

    Raises:
        ValueError: it cannot be one.

    """
    text = str(thread_id)
    if not _THREAD.fullmatch(text):
        raise ValueError(
            "KeMem keeps a thread as a session: a thread_id has 1 to 64 letters, digits or "
            "characters of . _ : @ | + = ~ - and begins with a letter or a digit."
        )
    return text


def place_of(config: RunnableConfig) -> Place:
    """Where `config` points.

    Raises:
        ValueError: it names no thread that can be one.

    """
    configurable = config.get("configurable", {})
    if "thread_id" not in configurable:
        raise ValueError('the config names no thread: {"configurable": {"thread_id": "…"}}')
    return Place(
        thread_of(configurable["thread_id"]),
        configurable.get("checkpoint_ns") or "",
        get_checkpoint_id(config),
    )


def config_of(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {
        "configurable": {
            "thread_id": thread_id,
            "checkpoint_ns": namespace,
            "checkpoint_id": checkpoint_id,
        }
    }


def prepare(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    *,
    serde: SerializerProtocol,
    owner: Mapping[str, str | None],
) -> Prepared:
    """A checkpoint with its new values in pieces.

    Numbers and short texts travel within the checkpoint itself; of other values those that are
    new do, and the parent is named for the rest.

    Raises:
        ValueError, TypeError: the thread's id is none, or metadata are not JSON.

    """
    parent = place_of(config)
    values = dict(checkpoint["channel_values"])
    inline = {name: value for name, value in values.items() if _is_small(value)}
    stored = {name: value for name, value in values.items() if name not in inline}
    new = {name for name in stored if parent.checkpoint_id is None or name in new_versions}
    kind, data = serde.dumps_typed({**checkpoint, "channel_values": inline})
    body = {
        "parent_id": parent.checkpoint_id,
        **{name: one for name, one in owner.items() if one is not None},
        "checkpoint": {"type": kind, "data": text_of(data)},
        "metadata": _storable(get_serializable_checkpoint_metadata(config, metadata)),
    }
    return Prepared(
        Place(parent.thread_id, parent.namespace, checkpoint["id"]),
        body,
        {name: cut(*serde.dumps_typed(stored[name])) for name in sorted(new)},
        {name: value for name, value in stored.items() if name not in new},
        serde,
    )


def tuple_of(
    item: Mapping[str, Any], content: Mapping[str, bytes], serde: SerializerProtocol
) -> CheckpointTuple:
    """A checkpoint of the service as LangGraph's."""
    checkpoint = cast("Checkpoint", document_of(item, serde))
    for name in item["values"]:
        checkpoint["channel_values"][name] = value_of(item, name, content, serde)
    thread_id, namespace = item["session_id"], item["namespace"]
    parent_id = item["parent_id"]
    return CheckpointTuple(
        config_of(thread_id, namespace, item["checkpoint_id"]),
        checkpoint,
        cast("CheckpointMetadata", dict(item["metadata"])),
        None if parent_id is None else config_of(thread_id, namespace, parent_id),
        [write_of(one, serde) for one in item["writes"]],
    )


def document_of(item: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, Any]:
    """The checkpoint itself, with the values that travel within it."""
    told = item["checkpoint"]
    document: dict[str, Any] = serde.loads_typed((told["type"], bytes_of(told["data"])))
    return document


def value_of(
    item: Mapping[str, Any], name: str, content: Mapping[str, bytes], serde: SerializerProtocol
) -> Any:
    value = item["values"][name]
    data = b"".join(content[digest] for digest in value["chunks"])
    return serde.loads_typed((value["type"], data))


def write_of(write: Mapping[str, Any], serde: SerializerProtocol) -> tuple[str, str, Any]:
    value = serde.loads_typed((write["type"], bytes_of(write["data"])))
    return write["task_id"], write["channel"], value


def _is_small(value: Any) -> bool:
    # Exactly these types: a subclass, such as an enumeration, is left to the serializer.
    if type(value) is str:
        return len(value) <= _INLINE_CHARACTERS
    return value is None or type(value) in {bool, int, float}


def _storable(value: Any) -> Any:
    """`value` as metadata are stored, NUL left out as LangGraph does at the top.

    Raises:
        TypeError: it holds what JSON has not.

    """
    if isinstance(value, str):
        return value.replace("\x00", "")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(one) for one in value]
    raise TypeError(f"metadata of a checkpoint are JSON, and a {type(value).__name__} is not")
