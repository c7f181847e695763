"""Processors at work on memories: before they are stored or changed, and after a search."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import TypeAdapter

from app.identity.tenants.access import Principal
from app.memory.memories.candidate_search import Found
from app.memory.memories.candidates import REMEMBERED_ROLES
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.schemas import MemoryCreate, SaidMessage
from app.platform.plugins.points import (
    AFTER_SEARCH,
    BEFORE_STORE,
    About,
    AfterSearch,
    BeforeStore,
    FoundMemory,
    StoredMemory,
)
from app.platform.plugins.runner import ProcessorChain
from app.platform.values.fields import Metadata

METADATA: TypeAdapter[dict[str, Any]] = TypeAdapter(Metadata)
_SAID = TypeAdapter(SaidMessage)


async def before_store(
    chain: ProcessorChain, principal: Principal, body: MemoryCreate, owner: MemoryOwner
) -> MemoryCreate:
    """The request as processors leave it; the gate judges that.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    if not chain.at(BEFORE_STORE):
        return body
    batch = body.batch
    memories = tuple(
        StoredMemory(
            str(index),
            message.content,
            body.metadata | message.metadata,
            body.memory_type,
            owner.scope,
            extracted=False,
        )
        for index, message in enumerate(batch)
        if message.role in REMEMBERED_ROLES
    )
    if not memories:
        return body
    about = About(principal.tenant_id, owner.user_id, owner.agent_id, owner.session_id)
    after = await chain.ask(BeforeStore(about, memories), _settled)
    if after.memories == memories:
        return body
    left = {int(memory.id): memory for memory in after.memories}
    if isinstance(body.messages, str):
        return body.model_copy(
            update={"messages": left[0].content, "metadata": dict(left[0].metadata)}
        )
    made = [
        message.model_copy(
            update={"content": left[index].content, "metadata": dict(left[index].metadata)}
        )
        if index in left
        else message
        for index, message in enumerate(batch)
    ]
    return body.model_copy(
        update={"messages": made if isinstance(body.messages, list) else made[0], "metadata": {}}
    )


async def before_change(
    chain: ProcessorChain, principal: Principal, row: Memory, changes: dict[str, Any]
) -> None:
    """Put into `changes` what processors leave of a new content or new metadata.

    They see the memory as it would stand; of what the request leaves alone nothing changes.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    if not chain.at(BEFORE_STORE):
        return
    memory = StoredMemory(
        "0",
        changes.get("content", row.content),
        changes.get("metadata_", row.metadata_),
        changes.get("memory_type", row.memory_type),
        row.scope,
        extracted=False,
    )
    about = About(principal.tenant_id, row.user_id, row.agent_id, row.session_id)
    [left] = (await chain.ask(BeforeStore(about, (memory,)), _settled)).memories
    made = {"content": left.content, "metadata_": dict(left.metadata)}
    changes |= {name: value for name, value in made.items() if name in changes}


def _settled(item: StoredMemory) -> StoredMemory:
    said = _SAID.validate_python({"content": item.content})
    return replace(
        item, content=said.content, metadata=METADATA.validate_python(dict(item.metadata))
    )


@dataclass(frozen=True, slots=True)
class Annotated:
    """Hits as processors leave them, with what they noted on each, by id of the memory."""

    found: list[Found]
    annotations: Mapping[str, Mapping[str, Any]]


async def after_search(
    chain: ProcessorChain, about: About, query: str, found: Sequence[Found]
) -> Annotated:
    """The hits in another order, without some, or with notes.

    Raises:
        ProcessorFailedError: one failed that may not.

    """
    if not found or not chain.at(AFTER_SEARCH):
        return Annotated(list(found), {})
    by_id = {hit.ranked.memory_id: hit for hit in found}
    hits = tuple(
        FoundMemory(
            memory_id,
            hit.row["content"],
            hit.row["memory_type"],
            hit.row["scope"],
            hit.ranked.confidence,
            hit.ranked.score,
            {},
        )
        for memory_id, hit in by_id.items()
    )
    after = await chain.ask(AfterSearch(about, query, hits), _annotated)
    return Annotated(
        [by_id[hit.id] for hit in after.hits],
        {hit.id: hit.annotations for hit in after.hits if hit.annotations},
    )


def _annotated(item: FoundMemory) -> FoundMemory:
    return replace(item, annotations=METADATA.validate_python(dict(item.annotations)))
