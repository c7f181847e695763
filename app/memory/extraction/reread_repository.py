"""SQL for reading stored conversations again: which sessions wait for it, what an older keyless
reader made of them, and what people did with that since.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from sqlalchemy import Text, cast, func, select, text
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.memory.memories.models import Memory

REREAD: Final = "reread"
"""The trigger of such a run in the log, and the reason in the history of what it replaces."""

KEYLESS: Final = "rules/"
"""What the names of keyless readers begin with, of whatever version."""

# A change by somebody's call; jobs, and what goes with time, name a job or nobody.
_BY_HAND = (
    "SELECT FROM memory_history h WHERE h.tenant_id = m.tenant_id AND h.memory_id = m.memory_id "
    "AND h.job_id IS NULL AND h.actor IS NOT NULL"
)

# A correction mends a mistake and an experience sums a session up: neither is made of a message.
_REPLACEABLE = f"""
m.tenant_id = CAST(:tenant_id AS text) AND m.status = 'active' AND m.source = 'ai'
AND m.memory_type NOT IN ('correction', 'experience')
AND m.metadata->>'extractor' LIKE '{KEYLESS}%' AND m.metadata->>'extractor' <> :extractor
AND m.evidence <> '{{}}'
AND NOT EXISTS (SELECT FROM unnest(m.evidence) AS said(message_id) WHERE NOT EXISTS (
    SELECT FROM messages x WHERE x.tenant_id = m.tenant_id AND x.message_id = said.message_id
    AND x.captured AND x.session_id = coalesce(CAST(:only_session AS text), x.session_id)))
AND EXISTS (SELECT FROM memory_history h WHERE h.tenant_id = m.tenant_id
    AND h.memory_id = m.memory_id AND h.event IN ('ADD', 'MERGE') AND h.job_id IS NOT NULL)
AND NOT EXISTS ({_BY_HAND})
"""

_RUN = (
    "SELECT FROM extraction_runs r WHERE r.tenant_id = s.tenant_id AND r.session_id = s.session_id"
)

# The log of runs is kept for some months; of an older session its memories tell who read it.
_WAITING = text(f"""
SELECT s.session_id, s.user_id, s.agent_id FROM sessions s
WHERE s.tenant_id = CAST(:tenant_id AS text) AND s.last_extracted_seq > 0
  AND s.user_id = coalesce(CAST(:user_id AS text), s.user_id)
  AND s.session_id = coalesce(CAST(:only_session AS text), s.session_id)
  AND EXISTS (SELECT FROM messages x WHERE x.tenant_id = s.tenant_id
      AND x.session_id = s.session_id AND x.role = 'user' AND x.captured AND x.copied_from IS NULL)
  AND NOT EXISTS ({_RUN} AND r.trigger = '{REREAD}' AND r.status = 'committed'
      AND r.extractor = :extractor)
  AND (EXISTS ({_RUN} AND r.status = 'committed' AND r.extractor LIKE '{KEYLESS}%'
          AND r.extractor <> :extractor)
      OR EXISTS (SELECT FROM memories m WHERE m.session_id = s.session_id AND {_REPLACEABLE})
      OR (NOT EXISTS ({_RUN}) AND NOT EXISTS (SELECT FROM memories m
          WHERE m.tenant_id = s.tenant_id AND m.session_id = s.session_id
          AND m.metadata->>'extractor' = :extractor)))
ORDER BY (SELECT coalesce(x.said_at, x.create_time) FROM messages x
    WHERE x.tenant_id = s.tenant_id AND x.session_id = s.session_id
    ORDER BY x.sequence_no LIMIT 1), s.session_id
""")

_OF_USER = text(f"""
SELECT m.memory_id, m.session_id, m.scope, m.scope_id, m.content, m.evidence,
    m.metadata->>'extractor'
FROM memories m
WHERE m.session_id IN (SELECT s.session_id FROM sessions s
    WHERE s.tenant_id = CAST(:tenant_id AS text) AND s.user_id = :user_id)
  AND m.session_id = coalesce(CAST(:only_session AS text), m.session_id) AND {_REPLACEABLE}
ORDER BY m.create_time, m.memory_id
""")

_KEPT = text(f"""
SELECT m.memory_id FROM memories m WHERE m.tenant_id = CAST(:tenant_id AS text)
  AND m.user_id = :user_id AND m.status = 'active' AND m.source = 'ai' AND EXISTS ({_BY_HAND})
""")

# What was deleted for good is known from its verdict alone.
_SETTLED = text(f"""
SELECT unnest(m.evidence) AS message_id FROM memories m
WHERE m.tenant_id = CAST(:tenant_id AS text) AND m.session_id = :session_id AND m.source = 'ai'
  AND EXISTS ({_BY_HAND})
UNION
SELECT unnest(d.evidence) FROM gate_decisions d
WHERE d.tenant_id = CAST(:tenant_id AS text) AND d.user_id = :user_id
  AND d.session_id = :session_id AND d.memory_id IS NOT NULL AND d.event <> 'NONE'
  AND NOT EXISTS (SELECT FROM memories m
      WHERE m.tenant_id = d.tenant_id AND m.memory_id = d.memory_id)
""")

_DONE = text(f"""
SELECT EXISTS ({_RUN} AND r.trigger = '{REREAD}' AND r.status = 'committed'
    AND r.extractor = :extractor)
FROM sessions s WHERE s.tenant_id = CAST(:tenant_id AS text) AND s.session_id = :session_id
""")


class WaitingSession(NamedTuple):
    """A session that the present reader has not read."""

    session_id: str
    user_id: str
    agent_id: str


class Replaceable(NamedTuple):
    """A memory that an older reader made of messages that are still there, and nobody changed."""

    memory_id: str
    session_id: str
    scope: str
    scope_id: str
    content: str
    evidence: Sequence[str]
    extractor: str


class RereadRepository:
    """Looks with one reader's eyes. Never begins or ends a transaction."""

    def __init__(
        self, db: AsyncSession, access: Access, extractor: str, only_session: str | None
    ) -> None:
        """Prepare for the reader `extractor`; other sessions than `only_session` are not read."""
        self._db = db
        self._given: Mapping[str, Any] = {
            "tenant_id": access.tenant_id,
            "extractor": extractor,
            "only_session": only_session,
        }

    async def waiting(self, user_id: str | None) -> list[WaitingSession]:
        """Sessions to be read again, the one that began first first."""
        rows = await self._db.execute(_WAITING, {**self._given, "user_id": user_id})
        return [WaitingSession(*row) for row in rows]

    async def replaceable(self, user_id: str) -> list[Replaceable]:
        """What of a user's sessions is to be replaced."""
        rows = await self._db.execute(_OF_USER, {**self._given, "user_id": user_id})
        return [Replaceable(*row) for row in rows]

    async def kept(self, user_id: str) -> frozenset[str]:
        """Ids of extracted memories that a caller has changed."""
        rows = await self._db.scalars(_KEPT, {**self._given, "user_id": user_id})
        return frozenset(rows)

    async def settled(self, session: WaitingSession) -> frozenset[str]:
        """Ids of messages of which a caller has changed or deleted what was made."""
        given = {"session_id": session.session_id, "user_id": session.user_id}
        return frozenset(await self._db.scalars(_SETTLED, {**self._given, **given}))

    async def is_done(self, session_id: str) -> bool:
        """Whether the session was read by now."""
        given = {**self._given, "session_id": session_id}
        return bool(await self._db.scalar(_DONE, given))

    async def lock(self, memory_ids: Sequence[str]) -> Sequence[Memory]:
        """Memories, locked."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                Memory.tenant_id == self._given["tenant_id"],
                Memory.memory_id == func.any(cast(sorted(memory_ids), ARRAY(Text))),
            )
            .order_by(Memory.memory_id)
            .with_for_update()
        )
        return rows.all()
