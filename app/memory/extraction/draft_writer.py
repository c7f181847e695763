"""Writing what a run decided: memories, history, verdicts, in one transaction of the caller's.

The caller holds the buckets' locks. Whatever stands here is written with the job's end and
the watermark, or not at all.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.repository import TenantRepository
from app.language.llm.extractor import Malformed
from app.memory.extraction.drafts import STORED, Draft, DraftRemainder, EmbeddedText
from app.memory.extraction.related_drafts import with_stored_ids
from app.memory.extraction.run_state import NeighboursMovedError, RunState
from app.memory.memories.amendments import end_predecessors, successor, supersede
from app.memory.memories.conflict_repository import ConflictRepository, link
from app.memory.memories.duplicates import EXPIRED, archive_expired
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.gate import GateReason, verdict_row
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository, SameText
from app.platform.database.base import new_id

SOURCE = "ai"
MOST_EVIDENCE = 100


class DraftWriter:
    """Writes one run's drafts. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, state: RunState, now: datetime) -> None:
        """Prepare for drafts of `state`; `now` is when what ends, ends."""
        self._db = db
        self._request = state.request
        self._extraction_id = state.extraction_id
        self._extractor = state.model.extractor.name
        self._model = state.embedder.name
        self._now = now
        access = state.request.principal.access
        self._memories = MemoryRepository(db, access)
        self._conflicts = ConflictRepository(db, access.tenant_id)
        self._records = RecordRepository(db, access)

    async def store(self, drafts: Sequence[Draft]) -> list[Draft]:
        """Carry out what was decided, in order, and keep a history line for each change.

        Returns:
            The drafts, each with the memory that holds it now.

        Raises:
            NeighboursMovedError: a memory that is to change was deleted or archived meanwhile.

        """
        if any(draft.event in STORED for draft in drafts):
            tenants = TenantRepository(self._db, self._request.principal.tenant_id)
            await tenants.note_model(self._model)
        stored: dict[str, str | None] = {}
        written = []
        for draft in drafts:
            done = await self._carry_out(with_stored_ids(draft, stored))
            stored[done.pending_id] = None if done.event == "DELETE" else done.memory_id
            written.append(done)
        return written

    async def _carry_out(self, draft: Draft) -> Draft:
        if draft.event in STORED:
            twin = await self._twin(draft)
            if twin is not None:
                known = twin.row.memory_id if twin.shown else None
                return draft.repeating(known, "it is remembered already")
        return await self._write(draft)

    async def _write(self, draft: Draft) -> Draft:
        match draft.event:
            case "ADD":
                return await self._add(draft, "ADD")
            case "UPDATE":
                return await self._update(draft)
            case "SUPERSEDE":
                draft = await self._with_start(draft)
                return await self._end_targets(await self._add(draft, "ADD"))
            case "MERGE":
                return await self._merge(draft)
            case "DELETE":
                return await self._retire(draft)
        return draft

    async def _twin(self, draft: Draft) -> SameText | None:
        """Another memory than those it changes that says exactly that."""
        same = await self._same_text(draft.owner, draft.content)
        return None if same is None or same.row.memory_id in draft.target_ids else same

    async def _same_text(self, owner: MemoryOwner, text: EmbeddedText) -> SameText | None:
        """The memory of a bucket that says exactly that; one that counts no longer makes room."""
        found = await self._memories.same_hash(asdict(owner), [text.content_hash])
        same = found.get(text.content_hash)
        if same is not None and same.past:
            await self._note(await archive_expired(self._memories, same.row), EXPIRED)
            return None
        return same

    async def _add(self, draft: Draft, event: str) -> Draft:
        draft = replace(draft, memory_id=new_id("mem"))
        values = self._row(draft)
        others = await self._conflicts.lock(values, draft.conflicts)
        values["conflict_ids"] = [other.memory_id for other in others] or None
        [row] = await self._memories.add_all([values])
        await self._note([MemoryChange(event, None, snapshot(row))], draft.reason)
        await self._note(await link(self._db, others, [row]), f"{row.memory_id} may contradict it")
        return draft

    async def _with_start(self, draft: Draft) -> Draft:
        """Let what says more hold since the last of what it takes the place of began, or was said.

        Each of those holds until then, and what they had ended stays as it is. Where no start is
        known it has none, as any statement that names none: of an earlier day both are found then,
        and nothing says that what was so before began today.
        """
        if not draft.keeps_start or draft.proposed.begins is not None:
            return draft
        rows = [await self._target(memory_id) for memory_id in draft.target_ids]
        if all(row.valid_from is None for row in rows):
            return draft
        last = max(row.valid_from or row.said_at or row.create_time for row in rows)
        return replace(draft, proposed=replace(draft.proposed, valid_from=last))

    async def _merge(self, draft: Draft) -> Draft:
        """One memory for several: a new one, or the one of them that has its words already."""
        rows = [await self._target(memory_id) for memory_id in draft.target_ids]
        # What contradicts one of them contradicts what they become together.
        draft = replace(draft, conflicts=await self._conflicts.beside(rows))
        own_hash = draft.content.content_hash
        kept = next((row for row in rows if row.content_hash == own_hash), None)
        if kept is None:
            draft = await self._add(draft, "MERGE")
        else:
            draft = replace(draft, memory_id=kept.memory_id)
            others = await self._conflicts.lock(snapshot(kept), draft.conflicts)
            changes = await link(self._db, [kept], others) + await link(self._db, others, [kept])
            await self._note(changes, draft.reason)
        return await self._end_targets(draft)

    async def _end_targets(self, draft: Draft) -> Draft:
        """Let what the draft takes the place of end where it begins."""
        previous = []
        at = self._begins(draft)
        for memory_id in draft.target_ids:
            if memory_id == draft.memory_id:
                continue
            old = await self._target(memory_id)
            previous.append(old.content)
            await self._keep_remainders(old, draft)
            changes = await end_predecessors(self._db, self._memories, old, at)
            changes.append(await supersede(self._db, old, draft.memory_id or "", at))
            await self._note(changes, draft.reason)
        return replace(draft, previous="\n".join(previous) or None)

    async def _keep_remainders(self, old: Memory, draft: Draft) -> None:
        """Store what else a memory says that ends: of several that an earlier statement of the run
        made one, what each of them says, as a memory of its own.
        """
        for rest in draft.remainders:
            if rest.memory_id == old.memory_id:
                await self._keep_remainder(old, rest, draft)

    async def _keep_remainder(self, old: Memory, rest: DraftRemainder, draft: Draft) -> None:
        if await self._same_text(draft.owner, rest.text) is not None:
            return
        remainder = rest.text
        attribute = old.attribute if rest.inherits else rest.attribute
        # The value of that is the statement's now.
        other = None if attribute == draft.proposed.attribute else attribute
        kept = successor(
            old,
            {
                "content": remainder.text,
                "content_hash": remainder.content_hash,
                "embedding": remainder.vector,
                "embedding_model": self._model,
                "attribute": other,
                "source_id": old.source_id,
                "evidence": old.evidence,
                "confidence": old.confidence,
                "said_at": old.said_at,
                "valid_from": old.valid_from,
                "valid_to": old.valid_to,
                "expected_valid_days": old.expected_valid_days,
                "metadata_": old.metadata_,
            },
            self._request.principal.key_id,
        )
        [row] = await self._memories.add_all([kept])
        reason = f"what else {old.memory_id} says, which another statement ends"
        await self._note([MemoryChange("ADD", None, snapshot(row))], reason)

    async def _target(self, memory_id: str) -> Memory:
        """A memory that is to change, locked.

        Raises:
            NeighboursMovedError: it was deleted or archived since it was looked at, which needs
                no bucket's lock.

        """
        try:
            row = await self._memories.get(memory_id, lock=True)
        except MemoryNotFoundError as error:
            raise NeighboursMovedError from error
        if row.status != "active":
            raise NeighboursMovedError
        return row

    def _begins(self, draft: Draft) -> datetime:
        """Since when the new statement holds: as it says, which may be a day to come, else since
        it was said.
        """
        proposed = draft.proposed
        return proposed.begins or min(proposed.said_at or self._now, self._now)

    async def _update(self, draft: Draft) -> Draft:
        row = await self._target(draft.target_ids[0])
        draft = replace(draft, previous=row.content, memory_id=row.memory_id)
        proposed = draft.proposed
        values = {
            "content": draft.content.text,
            "content_hash": draft.content.content_hash,
            "embedding": draft.content.vector,
            "embedding_model": self._model,
            "confidence": max(row.confidence, proposed.confidence),
            "evidence": list(dict.fromkeys([*row.evidence, *draft.evidence]))[-MOST_EVIDENCE:],
            "speaker": draft.quotes,
            "said_at": _newest(row.said_at, proposed.said_at),
            "attribute": proposed.attribute or row.attribute,
            "expected_valid_days": proposed.expected_valid_days or row.expected_valid_days,
        }
        await self._rewrite(row, values, "UPDATE", draft.reason)
        return draft

    async def _retire(self, draft: Draft) -> Draft:
        """End what holds no longer, or until a day to come. It keeps its words, and is found as of
        before.
        """
        previous = []
        proposed = draft.proposed
        begins = proposed.begins or proposed.valid_to or self._begins(draft)
        for memory_id in draft.target_ids:
            row = await self._target(memory_id)
            previous.append(row.content)
            await self._keep_remainders(row, draft)
            end = max(begins, row.valid_from or begins)
            end = min(row.valid_to or end, end)
            status = "superseded" if end <= self._now else "active"
            await self._rewrite(row, {"status": status, "valid_to": end}, "DELETE", draft.reason)
        return replace(draft, previous="\n".join(previous), memory_id=draft.target_ids[0])

    async def _rewrite(
        self, row: Memory, values: Mapping[str, Any], event: str, reason: str | None
    ) -> None:
        change = await rewrite(self._db, row, values, event)
        if change is not None:
            await self._note([change], reason)

    async def record_verdicts(
        self, drafts: Sequence[Draft], malformed: Sequence[Malformed] = ()
    ) -> tuple[Draft, ...]:
        """Keep a verdict for every proposal, refused ones and those that are none too.

        Returns:
            The drafts, each with the id of its verdict.

        """
        rows = [self._verdict(draft) for draft in drafts]
        refused = [self._malformed(entry) for entry in malformed]
        if rows or refused:
            await self._records.decide([*rows, *refused])
        return tuple(
            replace(draft, decision_id=str(row["decision_id"]))
            for draft, row in zip(drafts, rows, strict=True)
        )

    def _verdict(self, draft: Draft) -> dict[str, Any]:
        return verdict_row(
            self._request.principal,
            owner=asdict(draft.owner),
            content=draft.proposed.content,
            source=SOURCE,
            accepted=draft.event in STORED or draft.event == "DELETE",
            reasons=draft.reasons,
            request=self._asked(draft),
            memory_id=draft.memory_id,
            event=draft.event,
            evidence=draft.evidence,
            job_id=self._request.job_id,
            extraction_id=self._extraction_id,
        )

    def _malformed(self, entry: Malformed) -> dict[str, Any]:
        return verdict_row(
            self._request.principal,
            owner=asdict(self._request.context.scopes.usual),
            content="",
            source=SOURCE,
            accepted=False,
            reasons=[GateReason("malformed", entry.detail, {"index": entry.index})],
            event="REJECT",
            job_id=self._request.job_id,
            extraction_id=self._extraction_id,
        )

    async def _note(self, changes: Sequence[MemoryChange], reason: str | None) -> None:
        await self._records.note(
            changes,
            actor=self._request.principal.key_id,
            reason=reason,
            job_id=self._request.job_id,
        )

    def _row(self, draft: Draft) -> dict[str, Any]:
        proposed = draft.proposed
        base = dict(self._request.base if draft.base is None else draft.base)
        metadata = base.pop("metadata_", {}) | {"extractor": self._extractor}
        columns = {
            "tenant_id": self._request.principal.tenant_id,
            "memory_id": draft.memory_id,
            "content": draft.content.text,
            "content_hash": draft.content.content_hash,
            "memory_type": proposed.memory_type,
            "source": SOURCE,
            "source_id": draft.owner.session_id,
            "evidence": list(draft.evidence),
            "speaker": draft.quotes,
            "said_at": proposed.said_at,
            "confidence": proposed.confidence,
            "external_id": None,
            "expected_valid_days": proposed.expected_valid_days,
            "embedding": draft.content.vector,
            "embedding_model": self._model,
            "creator": self._request.principal.key_id,
        }
        return columns | asdict(draft.owner) | base | self._asked(draft) | {"metadata_": metadata}

    def _asked(self, draft: Draft) -> dict[str, Any]:
        """The columns that are kept with a verdict too."""
        proposed = draft.proposed
        begins = proposed.valid_from
        starts = draft.event in {"SUPERSEDE", "MERGE"} and not draft.keeps_start
        if begins is None and starts and not proposed.takes_effect:
            begins = self._begins(draft)
        base = self._request.base if draft.base is None else draft.base
        columns = {
            # What was over when it was said stays true of the past, and is the value of nothing.
            "attribute": None if proposed.is_past else proposed.attribute,
            "tier": "short" if draft.owner.scope == "session" else "long",
            "visibility": "members",
            "valid_from": begins,
            "valid_to": None if proposed.is_past else proposed.valid_to,
            "expires_at": None,
            "source_error": proposed.source_error,
        }
        return columns | {name: base[name] for name in columns.keys() & base.keys()}


def _newest(*times: datetime | None) -> datetime | None:
    return max((time for time in times if time is not None), default=None)
