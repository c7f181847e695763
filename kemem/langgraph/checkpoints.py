"""Conversion between LangGraph's checkpoints and the JSON of the service."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem.langgraph.chunks import SplitValue, bytes_of, split_value, text_of
from kemem.langgraph.threads import (
    Address,
    address_of,
    config_of,
    namespace_of,
    session_id_of,
    thread_of,
)

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


def prepare(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    *,
    serde: SerializerProtocol,
    owner: Mapping[str, str],
) -> Prepared:
    """A checkpoint with its new values in chunks.

    Numbers and short texts are part of the checkpoint itself. Of other values the new ones are
    sent; the rest is taken from the parent.

    Raises:
        ValueError, TypeError: the thread id is invalid, or the metadata are not JSON.

    """
    parent = address_of(config, owner)
    values = dict(checkpoint["channel_values"])
    inline = {name: value for name, value in values.items() if _is_small(value)}
    stored = {name: value for name, value in values.items() if name not in inline}
    new = {name for name in stored if parent.checkpoint_id is None or name in new_versions}
    kind, data = serde.dumps_typed({**checkpoint, "channel_values": inline})
    body = {
        "parent_id": parent.checkpoint_id,
        **owner,
        **_other_name(parent.thread_id),
        "checkpoint": {"type": kind, "data": text_of(data)},
        "metadata": _storable(get_serializable_checkpoint_metadata(config, metadata)),
    }
    return Prepared(
        replace(parent, checkpoint_id=checkpoint["id"]),
        body,
        {name: split_value(*serde.dumps_typed(stored[name])) for name in sorted(new)},
        {name: value for name, value in stored.items() if name not in new},
        serde,
    )


def list_parameters(
    config: RunnableConfig | None,
    metadata: Mapping[str, Any] | None,
    before: RunnableConfig | None,
    owner: Mapping[str, str],
) -> tuple[str | None, dict[str, str | int | None]]:
    """The thread to list, None for all, and the filters.

    Raises:
        ValueError: an id is too long.

    """
    configurable = {} if config is None else config["configurable"]
    namespace = configurable.get("checkpoint_ns")
    return (
        None if config is None else thread_of(configurable["thread_id"]),
        {
            "namespace": None if namespace is None else namespace_of(namespace),
            "checkpoint_id": configurable.get("checkpoint_id"),
            "before": None if before is None else before["configurable"].get("checkpoint_id"),
            "filter": json.dumps(dict(metadata)) if metadata else None,
            **owner,
        },
    )


def tuple_of(
    item: Mapping[str, Any], content: Mapping[str, bytes], serde: SerializerProtocol
) -> CheckpointTuple:
    """A checkpoint from the JSON of the service."""
    checkpoint = cast("Checkpoint", document_of(item, serde))
    for name in item["values"]:
        checkpoint["channel_values"][name] = value_of(item, name, content, serde)
    thread_id, namespace = item["thread_id"], item["namespace"]
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


def _other_name(thread_id: str) -> dict[str, str]:
    """LangGraph's id of a thread, where it is not that of the session."""
    return {} if session_id_of(thread_id) == thread_id else {"thread_id": thread_id}


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
