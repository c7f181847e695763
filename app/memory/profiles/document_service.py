"""Use cases of DeerFlow's memory document: render it, and take one in, all of it or nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.identity.tenants.access import Principal
from app.identity.users.repository import UserRepository
from app.identity.users.service import resolve_subject
from app.language.text.normal_forms import normalise
from app.language.text.offload import read_text
from app.memory.memories.gate import Gate, Proposal
from app.memory.memories.models import Memory
from app.memory.memories.owner import ensure_owner, user_owner
from app.memory.memories.save_service import SaveService, check_owner
from app.memory.memories.schemas import MemoryCreate, Outcome, Reason
from app.memory.profiles.documents import (
    MOST_FACTS,
    DocumentFact,
    DocumentImported,
    DocumentImportQuery,
    DocumentQuery,
    FactOutcome,
    MemoryDocument,
    document,
    memory_fields,
    section_changes,
)
from app.memory.profiles.repository import ProfileRepository
from app.memory.profiles.value_changes import ValueAuthor, ValueChange
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work, answering

log = structlog.get_logger()

REASON = "memory document imported"


class MemoryDocumentService:
    def __init__(self, work: Work, saving: SaveService, gate: Gate, *, auto_create: bool) -> None:
        self._work = work
        self._gate = gate
        self._saving = saving
        self._auto_create = auto_create

    async def render(
        self, principal: Principal, user_id: str, query: DocumentQuery
    ) -> dict[str, Any]:
        """What is known of a user as a DeerFlow document, with the at most 1,000 surest facts.

        Empty sections and facts when nothing is known.

        Raises:
            UserNotFoundError, AgentNotFoundError: there is none for this caller.

        """
        _, agent_id = resolve_subject(principal.access, None, query.agent_id)
        async with self._work.read(principal) as db:
            user = await UserRepository(db, principal.access).get(user_id)
            profiles = ProfileRepository(db, principal.access)
            profile = await profiles.find(("user", user_id))
            values = [] if profile is None else await profiles.shown(profile.profile_id, agent_id)
            facts = await profiles.facts(user_id, agent_id, limit=MOST_FACTS)
        return document(values, facts, user.create_time)

    async def import_document(
        self,
        principal: Principal,
        user_id: str,
        body: MemoryDocument,
        query: DocumentImportQuery,
        *,
        key: IdempotencyKey | None = None,
    ) -> DocumentImported:
        """Remember the facts of a document and write its sections, each through the gate.

        Short and unsure facts are kept, with the confidence that they have; secrets, injections and
        what is too long are refused. A fact that was imported before is not imported again,
        whatever it says now; sections become the user's own values. The user is made on first use.
        Safe to repeat.

        Raises:
            UserNotFoundError, AgentNotFoundError: there is none for this caller, and none may be
                made.
            IdTakenError: the id belongs to a user whom this key may not see.
            EmbeddingUnavailableError: nothing was stored; safe to retry.
            DisabledError, MemoryPausedError, MemoryDisabledError: writing is switched off.

        """
        self._work.refuse_disabled()
        owner = user_owner(principal, user_id, query.agent_id)
        agent_id = owner.agent_id
        async with self._work.read(principal, key) as db:
            user = await UserRepository(db, principal.access).find(user_id)
            if user is None:
                await check_owner(db, principal, owner, create=self._auto_create)
            refuse_disabled(None, user)
            profiles = ProfileRepository(db, principal.access)
            known = await profiles.imported(user_id, {fact.id for fact in body.facts})
        fresh = [fact for fact in body.facts if fact.id not in known]
        bodies = [_saving_of(fact, user_id, agent_id) for fact in fresh]
        changes = section_changes(body)
        size = sum(len(str(change.value)) for change in changes)
        kept, refused = await read_text(size, self._passed, changes)
        answers: list[DocumentImported] = []

        async def also(db: AsyncSession, outcomes: Sequence[Outcome]) -> None:
            async with answering(db, key) as unit:
                if user is None and not query.dry_run:
                    await ensure_owner(db, principal, owner, create=self._auto_create)
                sections = await self._write(db, principal, user_id, kept, query)
                outcomes_by_id = dict(zip((fact.id for fact in fresh), outcomes, strict=True))
                answer = _answer(body.facts, outcomes_by_id, known, dry_run=query.dry_run)
                told = answer.model_copy(update={"sections": sections, "refused_sections": refused})
                answers.append(unit.answer(told, user_id=user_id))

        await self._saving.add_imported(principal, bodies, also, dry_run=query.dry_run)
        log.info("document_imported", dry_run=query.dry_run, **answers[-1].counts)
        return answers[-1]

    def _passed(
        self, changes: Sequence[ValueChange]
    ) -> tuple[list[ValueChange], list[FactOutcome]]:
        """The sections that may be kept, with what is to be redacted redacted; and the others."""
        kept, refused = [], []
        for change in changes:
            text = self._gate.redacted(Proposal(str(change.value))).content
            reasons = self._gate.check_kept(text, extracted=False)
            if reasons:
                told = [Reason.model_validate(asdict(reason)) for reason in reasons]
                name = change.slot.partition(".")[2]
                refused.append(FactOutcome(id=name, event="REJECT", memory_id=None, reasons=told))
            else:
                kept.append(replace(change, value=text))
        return kept, refused

    async def _write(
        self,
        db: AsyncSession,
        principal: Principal,
        user_id: str,
        changes: Sequence[ValueChange],
        query: DocumentImportQuery,
    ) -> list[str]:
        """The sections that are written, or would be."""
        if not changes:
            return []
        names = [change.slot.partition(".")[2] for change in changes]
        if query.dry_run:
            return names
        # A user erased meanwhile must not come back.
        await UserRepository(db, principal.access).get(user_id)
        profiles = ProfileRepository(db, principal.access)
        profile = await profiles.locked(("user", user_id))
        await profiles.write(profile, changes, ValueAuthor("user", principal.key_id, reason=REASON))
        return names


def _saving_of(fact: DocumentFact, user_id: str, agent_id: str | None) -> MemoryCreate:
    return MemoryCreate(
        user_id=user_id,
        agent_id=agent_id,
        scope="user",
        infer=False,
        on_duplicate="return",
        **memory_fields(fact),
    )


def _answer(
    facts: Sequence[DocumentFact],
    saved: Mapping[str, Outcome],
    known: Mapping[str, Memory],
    *,
    dry_run: bool,
) -> DocumentImported:
    outcomes = [
        _known(fact, known[fact.id]) if fact.id in known else _saved_fact(fact, saved[fact.id])
        for fact in facts
    ]
    return DocumentImported(
        dry_run=dry_run,
        facts=outcomes,
        sections=[],
        refused_sections=[],
        counts=dict(sorted(Counter(outcome.event for outcome in outcomes).items())),
    )


def _saved_fact(fact: DocumentFact, outcome: Outcome) -> FactOutcome:
    memory_id = outcome.memory.memory_id if outcome.memory else outcome.memory_id
    return FactOutcome(
        id=fact.id, event=outcome.event, memory_id=memory_id, reasons=outcome.reasons
    )


def _known(fact: DocumentFact, row: Memory) -> FactOutcome:
    same = normalise(fact.content) == normalise(row.content)
    reason = Reason(
        code="imported_before" if same else "changed_since",
        detail="This fact came with an earlier import."
        if same
        else "A fact of this id is there in other words, which stay: edit the memory.",
        figures={},
    )
    return FactOutcome(id=fact.id, event="NONE", memory_id=row.memory_id, reasons=[reason])
