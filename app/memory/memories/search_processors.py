"""Hits as processors see them: in another order, without some, or with notes on them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from app.memory.memories.candidate_search import Found
from app.memory.memories.memory_processors import METADATA
from app.platform.plugins.points import AFTER_SEARCH, About, AfterSearch, FoundMemory
from app.platform.plugins.runner import ProcessorChain


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
    by_id = {one.ranked.memory_id: one for one in found}
    hits = tuple(
        FoundMemory(
            memory_id,
            one.row["content"],
            one.row["memory_type"],
            one.row["scope"],
            one.ranked.confidence,
            one.ranked.score,
            {},
        )
        for memory_id, one in by_id.items()
    )
    after = await chain.ask(AfterSearch(about, query, hits), _annotated)
    return Annotated(
        [by_id[one.id] for one in after.hits],
        {one.id: one.annotations for one in after.hits if one.annotations},
    )


def _annotated(item: FoundMemory) -> FoundMemory:
    return replace(item, annotations=METADATA.validate_python(dict(item.annotations)))
