"""Writing what a run says of whom into the graph, in the transaction of its memories.

The caller holds the buckets' locks. What a memory that ended had to say ends with it.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from typing import Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.language.text.names import name_key
from app.memory.extraction.drafts import Draft
from app.memory.extraction.run_state import RunState
from app.memory.graph.memory_reader import note_mentions
from app.memory.graph.owner_repository import SpeakerRepository
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import (
    SPEAKERS,
    GraphOwner,
    RelationStatement,
    Speaker,
    fits,
    graph_owner,
    triples_of,
)
from app.memory.graph.writer import GraphWriter

KEPT: Final = frozenset({"ADD", "UPDATE", "SUPERSEDE", "MERGE", "NONE"})
"""Events after which a memory says what the draft said."""

ENDING: Final = frozenset({"SUPERSEDE", "DELETE"})
"""Events whose targets hold no longer."""

ENDED: Final = "the memory that said so has ended"


class DraftGraphWriter:
    """Writes the relations of one run's drafts. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, state: RunState, now: datetime) -> None:
        """Prepare for the names whose vectors `state` has."""
        request = state.request
        access = request.principal.access
        self._request = request
        self._speakers = SpeakerRepository(db, access)
        self._entities = EntityRepository(db, access)
        self._graph = GraphWriter(
            db,
            access,
            actor=request.principal.key_id or None,
            job_id=request.job_id,
            now=now,
            embedding_model=state.embedder.name,
            vectors=state.name_vectors,
        )

    async def write(self, drafts: Sequence[Draft]) -> dict[str, int]:
        """Store the relations of what was kept, note whom it mentions, and close what ended.

        Called when every draft has its end. Returns counts for the job's result.
        """
        counts: dict[str, int] = defaultdict(int)
        if self._request.graph:
            said = "\n".join(name_key(turn.content) for turn in self._request.context.turns)
            for owner, own in _by_owner(drafts).items():
                for name, count in (await self._of_owner(owner, own, said)).items():
                    counts[name] += count
        ended = _ended(drafts)
        if ended:
            counts["closed"] += await self._graph.close_of(ended, ENDED)
        return {name: count for name, count in counts.items() if count}

    async def _of_owner(
        self, owner: GraphOwner, drafts: Sequence[Draft], said: str
    ) -> dict[str, int]:
        counts: dict[str, int] = {}
        if any(draft.proposed.relations for draft in drafts):
            speaker = await self._speaker(owner)
            statements: list[RelationStatement] = []
            for draft in drafts:
                statements += statements_of(draft, speaker, said)
            if statements:
                written = await self._graph.store(owner, statements)
                if speaker is not None:
                    await self._speakers.remember(owner, speaker)
                counts = {
                    "entities": written.entities_created,
                    "relations": written.relations_added,
                    "closed": written.relations_closed,
                }
        await self._mention(owner, drafts)
        return counts

    async def _speaker(self, owner: GraphOwner) -> Speaker | None:
        user_id = self._request.context.scopes.user_id
        if user_id is None or owner.scope == "agent":
            return None
        return await self._speakers.ensure(owner, user_id)

    async def _mention(self, owner: GraphOwner, drafts: Sequence[Draft]) -> None:
        """Note of every memory that was kept which entities of its bucket it names."""
        await note_mentions(
            self._entities,
            owner,
            [
                (draft.memory_id, draft.content.text)
                for draft in drafts
                if draft.memory_id is not None and not draft.proposed.retracts
            ],
        )


def _by_owner(drafts: Sequence[Draft]) -> dict[GraphOwner, list[Draft]]:
    found: dict[GraphOwner, list[Draft]] = {}
    for draft in drafts:
        owner = graph_owner(draft.owner)
        retracted = draft.event == "DELETE" and draft.proposed.retracts
        if owner is not None and (retracted or (draft.event in KEPT and draft.memory_id)):
            found.setdefault(owner, []).append(draft)
    return found


def _ended(drafts: Sequence[Draft]) -> list[str]:
    """Memories that hold no longer. Those merged into others hold in other words."""
    ended = [
        memory_id
        for draft in drafts
        if draft.event in ENDING
        for memory_id in draft.target_ids
        if draft.event == "DELETE" or memory_id != draft.memory_id
    ]
    return list(dict.fromkeys(ended))


def names_in(drafts: Sequence[Draft]) -> list[str]:
    """Names of a run that are not the user's, by which what is near may be found, each once."""
    found: dict[str, str] = {}
    for draft in drafts:
        if draft.open and draft.owner.scope != "session":
            for relation in draft.proposed.relations:
                for name in (relation.source, relation.destination):
                    if fits(name) and name_key(name) not in SPEAKERS:
                        found.setdefault(name_key(name), name)
    return list(found.values())


def statements_of(draft: Draft, speaker: Speaker | None, said: str) -> list[RelationStatement]:
    """The triples of a stored draft, in order; none whose names nobody said.

    Args:
        speaker: who "user" is; None where nobody in particular spoke.
        said: everything that was read, in normal form.

    """
    proposed = draft.proposed
    memory_ids = () if draft.memory_id is None or proposed.retracts else (draft.memory_id,)
    said = f"{said} {name_key(proposed.content)}"
    return triples_of(proposed, speaker, said, evidence=draft.evidence, memory_ids=memory_ids)
