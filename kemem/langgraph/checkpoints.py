"""Conversion between LangGraph's checkpoints and the JSON of the service."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.serde.base import SerializerProtocol

from kemem.langgraph.chunks import (
    Chunks,
    Content,
    SplitValue,
    bytes_of,
    compressed,
    split_value,
    text_of,
)
from kemem.langgraph.threads import (
    Address,
    address_of,
    config_of,
    namespace_of,
    session_id_of,
    thread_of,
)

STEP_BYTES = 48 * 1024 * 1024
"""Most bytes of the values that change in a step, or that a task writes, as serialized."""
_INLINE_CHARACTERS = 256
_INLINE_BYTES = 16 * 1024
"""A larger write is cut into chunks, which it shares with the channel that it goes to."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """A checkpoint ready to be sent.

    Args:
        body: what is sent, without values.
        values: channels with a new value.
        packed: chunks that the service is not known to have, compressed.
        kept: channels whose value is that of the parent, with that value.

    """

    address: Address
    body: Mapping[str, Any]
    values: Mapping[str, SplitValue]
    packed: Mapping[str, str]
    kept: Mapping[str, Any]
    serde: SerializerProtocol

    def of_kept(self, names: Collection[str]) -> dict[str, SplitValue]:
        """These of the kept values, in chunks. Raises ValueError if they are too large."""
        return _split({name: self.kept[name] for name in names}, self.serde)


@dataclass(frozen=True, slots=True)
class PreparedWrites:
    """The writes of a task ready to be sent.

    Args:
        body: what is sent, without chunks.
        chunks: those of large values.
        packed: chunks that the service is not known to have, compressed.

    """

    address: Address
    task_id: str
    body: Mapping[str, Any]
    chunks: Chunks
    packed: Mapping[str, str]


def _split(values: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, SplitValue]:
    """Values by channel in chunks.

    Raises:
        ValueError: they are too large together.

    """
    typed = {name: serde.dumps_typed(value) for name, value in values.items()}
    _check_size({name: len(data) for name, (_, data) in typed.items()})
    return {name: split_value(kind, data) for name, (kind, data) in typed.items()}


def _check_size(sizes: Mapping[str, int]) -> None:
    total = sum(sizes.values())
    if total > STEP_BYTES:
        largest = max(sizes, key=lambda name: sizes[name])
        raise ValueError(
            f"the values that a step changes have at most {STEP_BYTES:,} bytes, as serialized, and "
            f"these have {total:,}: {sizes[largest]:,} of them in the channel {largest!r}"
        )


def prepare(
    config: RunnableConfig,
    checkpoint: Checkpoint,
    metadata: CheckpointMetadata,
    new_versions: ChannelVersions,
    *,
    serde: SerializerProtocol,
    owner: Mapping[str, str],
    known: Callable[[str], frozenset[str]],
) -> Prepared:
    """A checkpoint with its new values in chunks.

    Numbers and short texts are part of the checkpoint itself. Of other values the new ones are
    sent; the rest is taken from the parent.

    Raises:
        ValueError, TypeError: the thread id is invalid, the metadata are not JSON, or the new
            values are too large together.

    """
    parent = address_of(config, owner)
    values = dict(checkpoint["channel_values"])
    inline = {name: value for name, value in values.items() if _is_small(value)}
    stored = {name: value for name, value in values.items() if name not in inline}
    new = {name for name in stored if parent.checkpoint_id is None or name in new_versions}
    split = _split({name: stored[name] for name in sorted(new)}, serde)
    chunks = {digest: chunk for value in split.values() for digest, chunk in value.chunks.items()}
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
        split,
        compressed(chunks, chunks.keys() - known(parent.thread_id)),
        {name: value for name, value in stored.items() if name not in new},
        serde,
    )


def prepare_writes(
    address: Address,
    writes: Sequence[tuple[str, Any]],
    task_id: str,
    task_path: str,
    *,
    serde: SerializerProtocol,
    known: Callable[[str], frozenset[str]],
) -> PreparedWrites:
    """The writes of a task, the large ones in chunks.

    Raises:
        ValueError: the config names no checkpoint, or the writes are too large together.

    """
    if address.checkpoint_id is None:
        raise ValueError("the config of writes names the checkpoint they belong to")
    typed = [(channel, *serde.dumps_typed(value)) for channel, value in writes]
    sizes: Counter[str] = Counter()
    for channel, _, data in typed:
        sizes[channel] += len(data)
    _check_size(sizes)
    rows, chunks = list[dict[str, Any]](), Chunks()
    for number, (channel, kind, data) in enumerate(typed):
        row = {"index": WRITES_IDX_MAP.get(channel, number), "channel": channel, "type": kind}
        if len(data) > _INLINE_BYTES:
            value = split_value(kind, data)
            chunks |= value.chunks
            rows.append({**row, "chunks": value.digests})
        else:
            rows.append({**row, "data": text_of(data)})
    body = {"task_id": task_id, "task_path": task_path, "writes": rows}
    packed = compressed(chunks, chunks.keys() - known(address.thread_id))
    return PreparedWrites(address, task_id, body, chunks, packed)


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


def chunks_of(item: Mapping[str, Any]) -> Iterator[str]:
    """Digests of the chunks of a checkpoint's values and writes."""
    for value in item["values"].values():
        yield from value["chunks"]
    for write in item["writes"]:
        yield from write["chunks"] or ()


def tuple_of(
    item: Mapping[str, Any], content: Content, serde: SerializerProtocol
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
        [write_of(write, content, serde) for write in item["writes"]],
    )


def document_of(item: Mapping[str, Any], serde: SerializerProtocol) -> dict[str, Any]:
    """The checkpoint itself, with the values that are part of it."""
    stored = item["checkpoint"]
    document: dict[str, Any] = serde.loads_typed((stored["type"], bytes_of(stored["data"])))
    return document


def value_of(
    item: Mapping[str, Any], name: str, content: Content, serde: SerializerProtocol
) -> Any:
    value = item["values"][name]
    return serde.loads_typed((value["type"], content.joined(value["chunks"])))


def write_of(
    write: Mapping[str, Any], content: Content, serde: SerializerProtocol
) -> tuple[str, str, Any]:
    chunks = write["chunks"]
    data = bytes_of(write["data"]) if chunks is None else content.joined(chunks)
    value = serde.loads_typed((write["type"], data))
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
