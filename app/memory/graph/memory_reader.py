"""Memories that callers wrote, read by rules for the graph.

No model is asked: a memory that was saved without inference costs no tokens.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Access
from app.language.keyless.relations import relations_of
from app.language.llm.extractor import Proposed, ProposedRelation
from app.language.text.names import name_key, name_keys
from app.language.text.offload import read_text
from app.memory.graph.owner_repository import SpeakerRepository
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import GraphOwner, draws_graph, graph_owner, triples_of
from app.memory.graph.writer import GraphWriter
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner

MOST_KEYS: Final = 1_000
"""Pieces of one statement that are looked up as names."""


class MemoryReader:
    """Reads memories for the graph. Never begins or ends a transaction."""

    async def finds_relations(self, memories: Sequence[Memory]) -> bool:
        """Whether any of these memories states a relation."""
        return any(await _relations(memories))

    async def read(
        self,
        db: AsyncSession,
        access: Access,
        memories: Sequence[Memory],
        config: Mapping[str, Any],
        *,
        job_id: str,
        now: datetime,
    ) -> dict[str, int]:
        """Write the entities and relations of memories; returns how many of each.

        Nothing is written for an agent or tenant whose graph is switched off.
        """
        counts: dict[str, int] = defaultdict(int)
        writer = GraphWriter(db, access, actor=None, job_id=job_id, now=now)
        for owner, rows in (await self._by_owner(db, access, memories, config)).items():
            speakers = SpeakerRepository(db, access)
            speaker = None
            found = await _relations(rows)
            proposals = [(row, _proposed(row, each)) for row, each in zip(rows, found, strict=True)]
            if owner.user_id is not None and any(proposed.relations for _, proposed in proposals):
                speaker = await speakers.ensure(owner, owner.user_id)
            statements = [
                statement
                for row, proposed in proposals
                for statement in triples_of(
                    proposed,
                    speaker,
                    name_key(row.content),
                    evidence=row.evidence,
                    memory_ids=[row.memory_id],
                )
            ]
            if statements:
                written = await writer.store(owner, statements)
                if speaker is not None:
                    await speakers.remember(owner, speaker)
                counts["relations"] += written.relations_added
                counts["entities"] += written.entities_created
            texts = [(row.memory_id, row.content) for row in rows]
            await note_mentions(EntityRepository(db, access), owner, texts)
        return counts

    async def _by_owner(
        self,
        db: AsyncSession,
        access: Access,
        memories: Sequence[Memory],
        config: Mapping[str, Any],
    ) -> dict[GraphOwner, list[Memory]]:
        agents = AgentRepository(db, access)
        drawn: dict[str | None, bool] = {None: draws_graph(config)}
        found: dict[GraphOwner, list[Memory]] = defaultdict(list)
        for row in memories:
            if row.agent_id not in drawn:
                agent = await agents.find(row.agent_id or "")
                drawn[row.agent_id] = draws_graph(agent.config if agent else {}, config)
            owner = graph_owner(
                MemoryOwner(
                    row.scope,
                    row.scope_id,
                    row.user_id,
                    row.agent_id,
                    row.session_id,
                    row.project_id,
                )
            )
            if owner is not None and drawn[row.agent_id]:
                found[owner].append(row)
        return found


async def note_mentions(
    entities: EntityRepository, owner: GraphOwner, texts: Iterable[tuple[str, str]]
) -> None:
    """Note which entities of their bucket memories name, given as ids and texts."""
    texts = list(texts)
    named = await read_text(sum(len(text) for _, text in texts), _by_key, texts)
    if not named:
        return
    rows = [
        *(await entities.by_keys(owner, named)).items(),
        *await entities.by_aliases(owner, named),
    ]
    await entities.note_mentions(
        (memory_id, row.entity_id) for key, row in rows for memory_id in named[key]
    )


def _by_key(texts: Iterable[tuple[str, str]]) -> dict[str, list[str]]:
    """The ids of the texts that have each piece that may be a name."""
    named: dict[str, list[str]] = {}
    for memory_id, text in texts:
        for key in name_keys(text, most=MOST_KEYS):
            named.setdefault(key, []).append(memory_id)
    return named


async def _relations(memories: Sequence[Memory]) -> list[tuple[ProposedRelation, ...]]:
    """The relations that each of these memories states. Many are read in a thread."""
    contents = [row.content for row in memories]
    return await read_text(sum(map(len, contents)), lambda: list(map(relations_of, contents)))


def _proposed(row: Memory, relations: tuple[ProposedRelation, ...]) -> Proposed:
    """A stored memory as rules would propose it from its content."""
    return Proposed(
        content=row.content,
        memory_type=row.memory_type,
        confidence=row.confidence,
        evidence=tuple(row.evidence),
        attribute=row.attribute,
        valid_from=row.valid_from,
        valid_to=row.valid_to,
        said_at=row.said_at,
        relations=relations,
    )
