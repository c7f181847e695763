"""Storing what was decided about old memories, in the transaction that stores a run.

The caller holds the buckets' locks. What has changed since it was shown is left as it is: it
is no reason to throw away what the run came for.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.memory.extraction.agenda import AgendaRepository
from app.memory.extraction.applying import MOST_EVIDENCE, SOURCE, Storing
from app.memory.extraction.drafts import Draft
from app.memory.extraction.upkeep import (
    SOURCE_CHANGED,
    VALID_DAYS,
    Reviewed,
    Shown,
    Upkeep,
    extended,
)
from app.memory.extraction.work import Work
from app.memory.memories.gate import GateReason
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.record_repository import MemoryChange, RecordRepository, rewrite, snapshot
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.verdicts import verdict_row

SAID_AGAIN = "it was said again"


class Tending:
    """Writes what came of one run's agenda. Never begins or ends a transaction."""

    def __init__(
        self, db: AsyncSession, work: Work, storing: Storing, *, run_id: str, now: datetime
    ) -> None:
        self._db = db
        self._work = work
        self._storing = storing
        self._run_id = run_id
        self._now = now
        access = work.principal.access
        self._agenda = AgendaRepository(db, access)
        self._memories = MemoryRepository(db, access)
        self._records = RecordRepository(db, access)

    async def store(self, upkeep: Upkeep, drafts: Sequence[Draft]) -> Counter[str]:
        """Carry it out after the run's own statements; how many memories became what.

        Args:
            drafts: the run's; what they repeat need not be reviewed for a while.

        """
        said_again = {str(one.memory_id) for one in drafts if one.event == "NONE"} - {"None"}
        reviews = [one for one in upkeep.reviews if one.memory_id not in said_again]
        wanted = {one for merge in upkeep.granted for one in merge.target_ids}
        wanted |= said_again | {one.memory_id for one in reviews}
        rows = await self._agenda.lock(wanted) if wanted else {}
        done: Counter[str] = Counter()
        for merge in upkeep.merges:
            if upkeep.shown is not None:
                await self._merge(merge, upkeep.shown, rows)
            done["merged" if merge.event == "MERGE" else "refused"] += 1
        await self._storing.decide(upkeep.merges, (), self._work.hearing.grounds.first)
        await self._review(reviews, rows, done)
        for memory_id in sorted(said_again & rows.keys()):
            await self._confirm(rows[memory_id])
        return done

    async def _merge(self, merge: Draft, shown: Shown, rows: dict[str, Memory]) -> None:
        """Make one memory of its sources, if they are still what was shown, all of them."""
        if merge.event != "MERGE":
            return
        sources = [rows[one] for one in merge.target_ids if one in rows]
        unchanged = [row for row in sources if row.version == shown.parts[row.memory_id].version]
        if len(unchanged) < len(merge.target_ids):
            merge.reject([SOURCE_CHANGED])
            return
        unchanged.sort(key=_said_at)
        merge.place = _common_place(merge.place, unchanged)
        told = [message for row in unchanged for message in row.evidence]
        merge.evidence = tuple(dict.fromkeys(told))[-MOST_EVIDENCE:]
        periods = [row.expected_valid_days for row in unchanged if row.expected_valid_days]
        merge.proposed = replace(
            merge.proposed,
            valid_from=_said_at(unchanged[-1]),
            expected_valid_days=min(periods, default=None),
        )
        merge.base = {"metadata_": _common_metadata(unchanged)}
        await self._storing.store([merge])

    async def _review(
        self, reviews: Sequence[Reviewed], rows: dict[str, Memory], done: Counter[str]
    ) -> None:
        verdicts = []
        for one in reviews:
            row = rows.get(one.memory_id)
            if row is None or (row.version, row.status) != (one.seen.version, "active"):
                done["skipped"] += 1
                continue
            await self._carry_out(one, row)
            verdicts.append(self._verdict(one, row))
            done[one.verdict] += 1
        if verdicts:
            await self._records.decide(verdicts)

    async def _carry_out(self, one: Reviewed, row: Memory) -> None:
        values: dict[str, Any] = {"reviewed_at": self._now}
        if one.verdict == "REMOVE":
            before = snapshot(row)
            await self._memories.archive(row)
            await self._note(MemoryChange("ARCHIVE", before, snapshot(row)), f"stale: {one.reason}")
            return
        if one.verdict == "EXTEND":
            values["expected_valid_days"] = extended(row.expected_valid_days)
        reason = f"reviewed ({one.verdict}): {one.reason}"
        await self._note(await rewrite(self._db, row, values, "UPDATE"), reason)

    async def _confirm(self, row: Memory) -> None:
        """Let the time of what was said again begin anew.

        Not each time: what is said every day would be written every day.
        """
        period = timedelta(days=row.expected_valid_days or VALID_DAYS)
        if row.status == "active" and _fresh(row) + period / 3 <= self._now:
            change = await rewrite(self._db, row, {"reviewed_at": self._now}, "UPDATE")
            await self._note(change, SAID_AGAIN)

    def _verdict(self, one: Reviewed, row: Memory) -> dict[str, Any]:
        stale, *others = one.reasons
        figures = {
            "days": one.seen.standing.days,
            "expected_valid_days": one.seen.standing.expected_valid_days or VALID_DAYS,
        }
        return verdict_row(
            self._work.principal,
            place=asdict(one.seen.place),
            content=row.content,
            source=SOURCE,
            accepted=True,
            reasons=[GateReason(stale.code, stale.detail, figures), *others],
            memory_id=row.memory_id,
            event=one.verdict,
            evidence=row.evidence,
            job_id=self._work.job_id,
            run_id=self._run_id,
        )

    async def _note(self, change: MemoryChange | None, reason: str) -> None:
        if change is not None:
            await self._records.note(
                [change],
                actor=self._work.principal.key_id,
                reason=reason,
                job_id=self._work.job_id,
            )


def _said_at(row: Memory) -> datetime:
    return row.valid_from or row.create_time


def _fresh(row: Memory) -> datetime:
    times = (row.update_time, row.valid_from, row.reviewed_at)
    return max(time for time in times if time is not None)


def _common_place(place: MemoryOwner, rows: Sequence[Memory]) -> MemoryOwner:
    """The bucket; of a conversation or a project only what all of them hang on."""
    sessions = {row.session_id for row in rows}
    projects = {row.project_id for row in rows}
    return replace(
        place,
        session_id=sessions.pop() if len(sessions) == 1 else None,
        project_id=projects.pop() if len(projects) == 1 else None,
    )


def _common_metadata(rows: Sequence[Memory]) -> dict[str, Any]:
    """What holds of each of them holds of the whole."""
    first, *others = (row.metadata_ for row in rows)
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in others)
    }
