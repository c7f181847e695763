"""The port of the graph: what extraction writes to and retrieval asks.

The adapter is `writer.GraphWriter`, on PostgreSQL, with recursive queries.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from app.memory.graph.statements import GraphOwner, NamedEntity, RelationStatement


@dataclass(frozen=True, slots=True)
class WriteResult:
    """How many entities and relations a write made, matched, closed or confirmed."""

    entities_created: int = 0
    entities_matched: int = 0
    relations_added: int = 0
    relations_closed: int = 0
    relations_confirmed: int = 0


@dataclass(frozen=True, slots=True)
class NearMemory:
    """A memory that speaks of an entity, and how many relations away that is from those asked."""

    memory_id: str
    entity_id: str
    hops: int


class GraphStore(Protocol):
    """A graph, in a transaction of the caller's, under the locks of the buckets it holds."""

    async def store(
        self, owner: GraphOwner, statements: Sequence[RelationStatement]
    ) -> WriteResult:
        """Write statements in order; entities are matched or made, relations are added,
        confirmed or closed. To write the same again confirms it.

        A statement that cannot be kept (`statements.fits`, `relation_name`) is left out.
        """
        ...

    async def mention(
        self, owner: GraphOwner, named: Mapping[NamedEntity, Sequence[str]]
    ) -> WriteResult:
        """Write that memories mention entities, which are matched or made, without a relation.

        Args:
            owner: whose graph it is.
            named: ids of the memories, for each.

        """
        ...

    async def close_of(
        self, memory_ids: Sequence[str], reason: str, *, withdraw: bool = False
    ) -> int:
        """End the relations that only these memories support; returns how many.

        Args:
            memory_ids: memories that were superseded or deleted; their rows are still there.
            reason: kept in the history.
            withdraw: they were never true, rather than true until now.

        """
        ...

    async def near(
        self,
        keys: Sequence[str],
        *,
        depth: int = 1,
        limit: int = 50,
        as_of: datetime | None = None,
    ) -> Sequence[NearMemory]:
        """Memories that speak of the entities with these names or aliases (`name_key`), and of
        their neighbours, the nearest first; of what the caller may see.
        """
        ...
