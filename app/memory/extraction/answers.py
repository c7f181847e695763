"""What a caller is told of a run. Pure, but for reading the memories it shows."""

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.extraction.drafts import Draft
from app.memory.extraction.run_state import RunResult
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.schemas import MemoryAdded, MemoryRead, Outcome, Reason

TOLD_WHERE = {"UPDATE", "SUPERSEDE", "MERGE"}


async def outcomes(db: AsyncSession, access: Access, result: RunResult) -> MemoryAdded:
    """One outcome per proposal, with the memory that holds it, where the caller may see it."""
    memories = MemoryRepository(db, access)
    shown: dict[str, MemoryRead] = {}
    for memory_id in {draft.memory_id for draft in result.drafts} - {None}:
        try:
            row = await memories.get(str(memory_id))
        except MemoryNotFoundError:
            continue
        shown[row.memory_id] = MemoryRead.model_validate(row)
    results = [_outcome(draft, shown) for draft in result.drafts]
    results += [
        Outcome(
            index=len(result.drafts) + place,
            event="REJECT",
            reasons=[Reason(code="malformed", detail=one.detail, figures={"index": one.index})],
        )
        for place, one in enumerate(result.malformed)
    ]
    return MemoryAdded(results=results, extractor=result.extractor, run_id=result.run_id)


def _outcome(draft: Draft, shown: dict[str, MemoryRead]) -> Outcome:
    nearest = draft.neighbours[0].similarity if draft.neighbours else None
    return Outcome(
        index=draft.index,
        event=draft.event or "ADD",
        memory_id=draft.memory_id,
        memory=shown.get(draft.memory_id or ""),
        content=None if draft.sensitive else draft.proposed.content,
        previous=draft.previous,
        replaced=[one for one in draft.target_ids if one != draft.memory_id]
        if draft.event in TOLD_WHERE
        else [],
        similarity=nearest,
        reason=draft.reason,
        reasons=[
            Reason(code=reason.code, detail=reason.detail, figures=dict(reason.figures))
            for reason in draft.reasons
        ],
        decision_id=draft.decision_id,
    )
