"""Storing what a run decided: items, history, verdicts, in one transaction of the caller's.

The caller holds the buckets' locks. Whatever stands here is written with the job's end and
the watermark, or not at all.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.retention import Policies
from app.identity.tenants.repository import TenantRepository
from app.language.llm.extractor import Malformed
from app.memory.extraction.drafts import Buckets, Draft
from app.memory.extraction.neighbourhood import Neighbourhood
from app.memory.extraction.waves import name_of, resolved
from app.memory.extraction.work import MovedError, Work
from app.memory.memories.duplicates import EXPIRED, make_room
from app.memory.memories.errors import MemoryNotFoundError
from app.memory.memories.eviction_repository import OVER_CAPACITY
from app.memory.memories.gate import GateReason
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.save_service import cut_short, superseded
from app.memory.memories.verdicts import verdict_row
from app.platform.database.ids import new_id

SOURCE = "ai"
MOST_EVIDENCE = 100


class Storing:
    """Writes one run's drafts. Never begins or ends a transaction."""

    def __init__(
        self,
        db: AsyncSession,
        work: Work,
        *,
        run_id: str,
        extractor: str,
        model: str,
        now: datetime,
    ) -> None:
        """Prepare for vectors of `model`; `now` is when what ends, ends."""
        self._db = db
        self._work = work
        self._run_id = run_id
        self._extractor = extractor
        self._model = model
        self._now = now
        access = work.principal.access
        self._memories = MemoryRepository(db, access)
        self._records = RecordRepository(db, access)

    async def store(self, drafts: Sequence[Draft]) -> None:
        """Carry out what was decided, in order, and keep a history line for each change."""
        if any(draft.event in {"ADD", "UPDATE", "SUPERSEDE", "MERGE"} for draft in drafts):
            await TenantRepository(self._db, self._work.principal.tenant_id).note_model(self._model)
        stored: dict[str, str | None] = {}
        for draft in drafts:
            resolved(draft, stored)
            await self._carry_out(draft)
            stored[name_of(draft)] = None if draft.event == "DELETE" else draft.memory_id

    async def _carry_out(self, draft: Draft) -> None:
        if draft.event in {"ADD", "UPDATE", "SUPERSEDE", "MERGE"} and not await self._twin(draft):
            match draft.event:
                case "ADD":
                    await self._add(draft, "ADD")
                case "UPDATE":
                    await self._update(draft)
                case "SUPERSEDE":
                    await self._add(draft, "ADD")
                    await self._end_targets(draft)
                case "MERGE":
                    await self._merge(draft)
        elif draft.event == "DELETE":
            await self._retire(draft)

    async def _twin(self, draft: Draft) -> bool:
        """Whether another memory says exactly that; one that counts no longer makes room."""
        bucket = asdict(draft.place)
        same = (await self._memories.same_hash(bucket, [draft.words.content_hash])).get(
            draft.words.content_hash
        )
        if same is None or same.row.memory_id in draft.target_ids:
            return False
        if same.past:
            await self._note(await make_room(self._memories, same.row), EXPIRED)
            return False
        draft.repeats(same.row.memory_id if same.shown else None, "it is remembered already")
        return True

    async def _add(self, draft: Draft, event: str) -> None:
        draft.memory_id = new_id("mem")
        [row] = await self._memories.add_all([self._row(draft)])
        await self._note([MemoryChange(event, None, snapshot(row))], draft.reason)

    async def _merge(self, draft: Draft) -> None:
        """One memory for several: a new one, or the one of them that has its words already."""
        rows = [await self._target(one) for one in draft.target_ids]
        kept = next((row for row in rows if row.content_hash == draft.words.content_hash), None)
        if kept is None:
            await self._add(draft, "MERGE")
        else:
            draft.memory_id = kept.memory_id
        await self._end_targets(draft)

    async def _end_targets(self, draft: Draft) -> None:
        """Let what the draft takes the place of end where it begins."""
        previous = []
        at = self._begins(draft)
        for memory_id in draft.target_ids:
            if memory_id == draft.memory_id:
                continue
            old = await self._target(memory_id)
            previous.append(old.content)
            changes = await cut_short(self._db, self._memories, old, at)
            changes.append(await superseded(self._db, old, draft.memory_id or "", at))
            await self._note(changes, draft.reason)
        draft.previous = "\n".join(previous) or None

    async def _target(self, memory_id: str) -> Memory:
        """A memory that is to change, locked.

        Raises:
            MovedError: it was deleted or archived since it was looked at, which needs no
                bucket's lock.

        """
        try:
            row = await self._memories.get(memory_id, lock=True)
        except MemoryNotFoundError as error:
            raise MovedError from error
        if row.status != "active":
            raise MovedError
        return row

    def _begins(self, draft: Draft) -> datetime:
        """Since when the new statement holds: as it says itself, at the latest now."""
        return min(draft.proposed.valid_from or self._now, self._now)

    async def _update(self, draft: Draft) -> None:
        row = await self._target(draft.target_ids[0])
        draft.previous = row.content
        draft.memory_id = row.memory_id
        values = {
            "content": draft.words.text,
            "content_hash": draft.words.content_hash,
            "embedding": draft.words.vector,
            "embedding_model": self._model,
            "confidence": max(row.confidence, draft.proposed.confidence),
            "evidence": list(dict.fromkeys([*row.evidence, *draft.evidence]))[-MOST_EVIDENCE:],
            "attribute": draft.proposed.attribute or row.attribute,
            "expected_valid_days": draft.proposed.expected_valid_days or row.expected_valid_days,
        }
        await self._rewrite(row, values, "UPDATE", draft.reason)

    async def _retire(self, draft: Draft) -> None:
        """End what holds no longer. It keeps its words, and is found as of before."""
        row = await self._target(draft.target_ids[0])
        draft.previous = row.content
        draft.memory_id = row.memory_id
        end = max(self._now, row.valid_from or self._now)
        values = {"status": "superseded", "valid_to": min(row.valid_to or end, end)}
        await self._rewrite(row, values, "DELETE", draft.reason)

    async def _rewrite(
        self, row: Memory, values: Mapping[str, Any], event: str, reason: str | None
    ) -> None:
        change = await rewrite(self._db, row, values, event)
        if change is not None:
            await self._note([change], reason)

    async def trim(
        self,
        buckets: Buckets,
        neighbourhood: Neighbourhood,
        *,
        policies: Policies,
        left: int,
        spared: Collection[str],
    ) -> None:
        """Archive the weakest extracted memories beyond the cap of each bucket.

        A draft that is among them was not kept, and says so.

        Args:
            policies: what the agents of the buckets say of their cap.
            left: how many memories the run may still end.
            spared: ids of those that stand for others, which would be lost with them.

        """
        for place, drafts in buckets.items():
            if left <= 0 or not any(one.event in {"ADD", "SUPERSEDE"} for one in drafts):
                continue
            policy = policies.of(place.agent_id)
            if not policy.enabled or policy.max_facts == 0:
                continue
            over = await neighbourhood.weakest_derived(
                place, keep=policy.max_facts, eviction=policy.eviction, limit=left
            )
            left -= len(over)
            fresh = {one.memory_id: one for one in drafts}
            for row in over:
                if row.memory_id in spared or (
                    row.memory_id in fresh and fresh[row.memory_id].target_ids
                ):
                    # What it took the place of has ended: both would be lost.
                    continue
                before = snapshot(row)
                await self._memories.archive(row)
                await self._note([MemoryChange("ARCHIVE", before, snapshot(row))], OVER_CAPACITY)
                if row.memory_id in fresh:
                    fresh[row.memory_id].reject(
                        [
                            GateReason(
                                OVER_CAPACITY,
                                "Stronger memories fill the bucket.",
                                {"cap": policy.max_facts},
                            )
                        ]
                    )

    async def decide(
        self, drafts: Sequence[Draft], malformed: Sequence[Malformed], fallback: MemoryOwner
    ) -> None:
        """Keep a verdict for every proposal, refused ones and those that are none too."""
        rows = [self._verdict(draft) for draft in drafts]
        for draft, row in zip(drafts, rows, strict=True):
            draft.decision_id = str(row["decision_id"])
        for one in malformed:
            reason = GateReason("malformed", one.detail, {"index": one.index})
            rows.append(
                verdict_row(
                    self._work.principal,
                    place=asdict(fallback),
                    content="",
                    source=SOURCE,
                    accepted=False,
                    reasons=[reason],
                    event="REJECT",
                    job_id=self._work.job_id,
                    run_id=self._run_id,
                )
            )
        if rows:
            await self._records.decide(rows)

    def _verdict(self, draft: Draft) -> dict[str, Any]:
        return verdict_row(
            self._work.principal,
            place=asdict(draft.place),
            content=draft.proposed.content,
            source=SOURCE,
            accepted=draft.event in {"ADD", "UPDATE", "SUPERSEDE", "MERGE", "DELETE"},
            reasons=draft.reasons,
            memory_id=draft.memory_id,
            event=draft.event,
            evidence=draft.evidence,
            job_id=self._work.job_id,
            run_id=self._run_id,
        )

    async def _note(self, changes: Sequence[MemoryChange], reason: str | None) -> None:
        await self._records.note(
            changes,
            actor=self._work.principal.key_id,
            reason=reason,
            job_id=self._work.job_id,
        )

    def _row(self, draft: Draft) -> dict[str, Any]:
        proposed = draft.proposed
        base = dict(self._work.base if draft.base is None else draft.base)
        metadata = base.pop("metadata_", {}) | {"extractor": self._extractor}
        begins = proposed.valid_from
        if begins is None and draft.event in {"SUPERSEDE", "MERGE"}:
            begins = self._begins(draft)
        columns = {
            "tenant_id": self._work.principal.tenant_id,
            "memory_id": draft.memory_id,
            "content": draft.words.text,
            "content_hash": draft.words.content_hash,
            "memory_type": proposed.memory_type,
            "attribute": proposed.attribute,
            "tier": "short" if draft.place.scope == "session" else "long",
            "source": SOURCE,
            "source_id": draft.place.session_id,
            "source_error": proposed.source_error,
            "evidence": list(draft.evidence),
            "confidence": proposed.confidence,
            "visibility": "members",
            "external_id": None,
            "valid_from": begins,
            "valid_to": proposed.valid_to,
            "expected_valid_days": proposed.expected_valid_days,
            "expires_at": None,
            "embedding": draft.words.vector,
            "embedding_model": self._model,
            "creator": self._work.principal.key_id,
        }
        return columns | asdict(draft.place) | base | {"metadata_": metadata}
