"""Writing what a run says of whom into the graph, in the transaction of its memories.

The caller holds the buckets' locks. What a memory that ended had to say ends with it.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.language.text.names import name_key, name_keys
from app.memory.extraction.drafts import Draft
from app.memory.extraction.relating import ENDING, KEPT, Speaker, graph_place, statements_of
from app.memory.extraction.speaker_repository import SpeakerRepository
from app.memory.extraction.work import Work
from app.memory.graph.repository import EntityRepository
from app.memory.graph.statements import GraphOwner, RelationStatement
from app.memory.graph.writer import GraphWriter

MOST_KEYS: Final = 1_000
"""Pieces of one statement that are looked up as names."""

ENDED: Final = "the memory that said so has ended"


class Graphing:
    """Writes the relations of one run's drafts. Never begins or ends a transaction."""

    def __init__(
        self,
        db: AsyncSession,
        work: Work,
        *,
        model: str,
        vectors: Mapping[str, Any],
        now: datetime,
    ) -> None:
        """Prepare for names whose `vectors` of `model` are known by `name_key`."""
        access = work.principal.access
        self._work = work
        self._speakers = SpeakerRepository(db, access)
        self._entities = EntityRepository(db, access)
        self._graph = GraphWriter(
            db,
            access,
            actor=work.principal.key_id or None,
            job_id=work.job_id,
            now=now,
            embedding_model=model,
            vectors=vectors,
        )

    async def write(self, drafts: Sequence[Draft]) -> dict[str, int]:
        """Store the relations of what was kept, note whom it mentions, and close what ended.

        Called when every draft has its end. Returns counts for the job's result.
        """
        counts: dict[str, int] = defaultdict(int)
        if self._work.graph:
            said = "\n".join(name_key(turn.content) for turn in self._work.hearing.turns)
            for place, own in _by_place(drafts).items():
                for name, count in (await self._of_place(place, own, said)).items():
                    counts[name] += count
        ended = _ended(drafts)
        if ended:
            counts["closed"] += await self._graph.close_of(ended, ENDED)
        return {name: count for name, count in counts.items() if count}

    async def _of_place(
        self, place: GraphOwner, drafts: Sequence[Draft], said: str
    ) -> dict[str, int]:
        counts: dict[str, int] = {}
        if any(draft.proposed.relations for draft in drafts):
            speaker = await self._speaker(place)
            statements: list[RelationStatement] = []
            for draft in drafts:
                statements += statements_of(draft, speaker, said)
            if statements:
                written = await self._graph.store(place, statements)
                if speaker is not None:
                    await self._speakers.remember(place, speaker)
                counts = {
                    "entities": written.entities_created,
                    "relations": written.relations_added,
                    "closed": written.relations_closed,
                }
        await self._mention(place, drafts)
        return counts

    async def _speaker(self, place: GraphOwner) -> Speaker | None:
        user_id = self._work.hearing.grounds.user_id
        if user_id is None or place.scope == "agent":
            return None
        return await self._speakers.settled(place, user_id)

    async def _mention(self, place: GraphOwner, drafts: Sequence[Draft]) -> None:
        """Note of every memory that was kept which entities of its bucket it names."""
        await note_spoken(
            self._entities,
            place,
            [
                (draft.memory_id, draft.words.text)
                for draft in drafts
                if draft.memory_id is not None and not draft.proposed.retracts
            ],
        )


async def note_spoken(
    entities: EntityRepository, place: GraphOwner, texts: Iterable[tuple[str, str]]
) -> None:
    """Note of memories, by id and words, which entities of their bucket they name."""
    spoken: dict[str, list[str]] = {}
    for memory_id, text in texts:
        for key in name_keys(text, most=MOST_KEYS):
            spoken.setdefault(key, []).append(memory_id)
    if not spoken:
        return
    rows = [
        *(await entities.by_keys(place, spoken)).items(),
        *await entities.by_aliases(place, spoken),
    ]
    await entities.note_mentions(
        (memory_id, row.entity_id) for key, row in rows for memory_id in spoken[key]
    )


def _by_place(drafts: Sequence[Draft]) -> dict[GraphOwner, list[Draft]]:
    found: dict[GraphOwner, list[Draft]] = {}
    for draft in drafts:
        place = graph_place(draft.place)
        retracted = draft.event == "DELETE" and draft.proposed.retracts
        if place is not None and (retracted or (draft.event in KEPT and draft.memory_id)):
            found.setdefault(place, []).append(draft)
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
