"""Storing by hand what the gate refused: past the rules that the verdict names, and no others."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Principal
from app.memory.memories.errors import InvalidValidityError, NotStorableError
from app.memory.memories.list_repository import DecisionRepository
from app.memory.memories.models import GateDecision
from app.memory.memories.save_service import SaveService
from app.memory.memories.schemas import MemoryCreate, MemoryRead
from app.memory.memories.search_schemas import RefusedStore, RefusedStored
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

log = structlog.get_logger()

STORED_PAST = "stored_past"
"""Key of the metadata of such a memory: the codes of the rules."""


class RefusedTextService:
    """Stores texts that were refused."""

    def __init__(self, work: Work, saving: SaveService) -> None:
        self._work = work
        self._saving = saving

    async def store(
        self,
        principal: Principal,
        decision_id: str,
        body: RefusedStore,
        *,
        key: IdempotencyKey | None = None,
    ) -> RefusedStored:
        """Remember the text of a refusal for whom it was said, as sure as what a person saves.

        The memory names the verdict in `source_id`, its messages in `evidence`, and the rules in
        its metadata. It has the visibility, tier, attribute, times and, as a correction, the
        mistake that were asked for. A near duplicate is kept beside the memory that it repeats.
        Safe to retry with `key`; without one a repetition is refused.

        Raises:
            DecisionNotFoundError: there is none for this caller.
            NotStorableError: nothing was refused, it was stored before, or its text is not kept,
                nor, of one for a project, who may see it.
            InvalidValidityError: it would end before it begins.
            GateRejectedError: it breaks a rule that the verdict does not name.
            What `SaveService.add` raises besides.

        """
        async with self._work.read(principal, key) as db:
            decision = await DecisionRepository(db, principal.access).get(decision_id)
        if decision.obstacle is not None:
            raise NotStorableError(decision_id, decision.obstacle)

        async def note(db: AsyncSession, memory: MemoryRead) -> RefusedStored:
            decisions = DecisionRepository(db, principal.access)
            await decisions.note_stored(decision_id, memory.memory_id)
            return RefusedStored(decision_id=decision_id, memory=memory)

        stored = await self._saving.add_refused(
            principal, _body(decision, body), decision.codes, note, key=key
        )
        log.info("refused_text_stored", decision_id=decision_id, memory_id=stored.memory.memory_id)
        return stored


def _body(decision: GateDecision, body: RefusedStore) -> MemoryCreate:
    owner: Mapping[str, Any] = {
        name: getattr(decision, name)
        for name in ("user_id", "agent_id", "session_id", "project_id", "scope")
    }
    kept = dict(decision.request or {})
    begin, end = kept.get("valid_from"), kept.get("valid_to")
    if begin and end and datetime.fromisoformat(begin) >= datetime.fromisoformat(end):
        raise InvalidValidityError
    if body.memory_type != "correction":
        kept.pop("source_error", None)
    return MemoryCreate(
        messages=decision.content or "",
        memory_type=body.memory_type,
        confidence=1.0,
        source="user",
        source_id=decision.decision_id,
        evidence=decision.evidence,
        metadata={STORED_PAST: list(decision.codes)},
        infer=False,
        on_duplicate="allow",
        **owner,
        **kept,
    )
