"""What ends with its session: short-term memories of the conversation."""

from datetime import datetime

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import SessionRepository
from app.memory.extraction.reading import Reading
from app.memory.extraction.repository import ExtractionRepository
from app.memory.memories.record_repository import RecordRepository, rewrite
from app.platform.jobs.orders import ClaimedJob

REASON = "the session has ended"


async def expire_short(db: AsyncSession, reading: Reading, job: ClaimedJob, at: datetime) -> int:
    """Let memories of tier short that count in this session alone expire; how many.

    They keep their words for `as_of`, and the purge takes them like others that expired. A
    session that was reopened meanwhile keeps them.
    """
    session = await SessionRepository(db, reading.principal.access).get(
        reading.session.session_id, lock=True
    )
    if session.status != 0:
        return 0
    repository = ExtractionRepository(db, reading.principal.access)
    rows = await repository.lock_short(reading.session.session_id)
    changes = [await rewrite(db, row, {"expires_at": at}, "UPDATE") for row in rows]
    await RecordRepository(db, reading.principal.access).note(
        [change for change in changes if change is not None],
        actor=reading.principal.key_id,
        reason=REASON,
        job_id=job.job_id,
    )
    return len(rows)
