"""Conversion between LangGraph's checkpoints and the JSON of the service."""

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

from kemem.langgraph.calls import Address
from kemem.langgraph.chunks import SplitValue, bytes_of, split_value, text_of

_THREAD = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@|+=~-]{0,63}")
_INLINE_CHARACTERS = 256


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checkpoint ready to be sent.

    Args:
        body: what is sent, without values.
        values: channels with a new value.
        kept: channels whose value is that of the parent, with that value.

    """

    address: Address
    body: Mapping[str, Any]
    values: Mapping[str, SplitValue]
    kept: Mapping[str, Any]
    serde: SerializerProtocol


def thread_of(thread_id: object) -> str:
    """The id of a LangGraph thread as the id of a session.

    Raises:
        ValueError: it cannot be the id of a session.

    """
    text = str(thread_id)
    if not _THREAD.fullmatch(text):
        raise ValueError(
            "KeMem keeps a thread as a session: a thread_id has 1 to 64 letters, digits or "
            "characters of . _ : @ | + = ~ - and begins with a letter or a digit."
        )
    return text


def address_of(config: RunnableConfig) -> Address:
    """The thread, namespace and checkpoint that `config` names.

    Raises:
        ValueError: it names no thread, or one that cannot be a session.

    """
    configurable = config.get("configurable", {})
    if "thread_id" not in configurable:
        raise ValueError('the config names no thread: {"configurable": {"thread_id": "…"}}')
    return Address(
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
    """A checkpoint with its new values in chunks.

    Numbers and short texts are part of the checkpoint itself. Of other values the new ones are
    sent; the rest is taken from the parent.

    Raises:
        ValueError, TypeError: the thread id is invalid, or the metadata are not JSON.

    """
    parent = address_of(config)
    values = dict(checkpoint["channel_values"])
    inline = {name: value for name, value in values.items() if _is_small(value)}
    stored = {name: value for name, value in values.items() if name not in inline}
    new = {name for name in stored if parent.checkpoint_id is None or name in new_versions}
    kind, data = serde.dumps_typed({**checkpoint, "channel_values": inline})
    body = {
        "parent_id": parent.checkpoint_id,
        **{name: owner_id for name, owner_id in owner.items() if owner_id is not None},
        "checkpoint": {"type": kind, "data": text_of(data)},
        "metadata": _storable(get_serializable_checkpoint_metadata(config, metadata)),
    }
    return Prepared(
        Address(parent.thread_id, parent.namespace, checkpoint["id"]),
        body,
        {name: split_value(*serde.dumps_typed(stored[name])) for name in sorted(new)},
        {name: value for name, value in stored.items() if name not in new},
        serde,
    )


def tuple_of(
    item: Mapping[str, Any], content: Mapping[str, bytes], serde: SerializerProtocol
) -> CheckpointTuple:
    """A checkpoint from the JSON of the service."""
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
        [write_of(write, serde) for write in item["writes"]],
    )


def document_of(item: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, Any]:
    """The checkpoint itself, with the values that are part of it."""
    stored = item["checkpoint"]
    document: dict[str, Any] = serde.loads_typed((stored["type"], bytes_of(stored["data"])))
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
    # Exactly these types; a subclass, such as an enumeration, needs the serializer.
    if type(value) is str:
        return len(value) <= _INLINE_CHARACTERS
    return value is None or type(value) in {bool, int, float}


def _storable(value: Any) -> Any:
    """`value` as JSON metadata, without NUL characters, as LangGraph does at the top level.

    Raises:
        TypeError: it has a value that JSON lacks.

    """
    if isinstance(value, str):
        return value.replace("\x00", "")
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, Mapping):
        return {_storable(str(key)): _storable(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_storable(item) for item in value]
    raise TypeError(f"metadata of a checkpoint are JSON, and a {type(value).__name__} is not")
