"""SQL of an append: one statement that locks and reads, one that writes. `docs/decisions/0022`.

A statement sees what was committed when it began, a row that it waits to lock as it is when the
lock is got. So what an append decides by may be older than the lock: the statement says whether
it is, and is then sent again. Whoever changes the messages of a session changes its row too.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cache
from typing import Any, Final

from pgvector import SparseVector
from pydantic_core import from_json, to_json
from sqlalchemy.dialects.postgresql import Range
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.repository import NEAR
from app.conversation.sessions.jobs import COMPACT
from app.conversation.sessions.repository import Participants, SessionRepository, refuse_mismatch
from app.conversation.sessions.schemas import SessionNotFoundError
from app.errors import DisabledError, IdTakenError
from app.identity.tenants.access import Access
from app.platform.database.base import new_id, vector_bytes, vector_text
from app.platform.database.engine import driver_of
from app.platform.jobs.models import LIVE
from app.platform.jobs.ordering_sql import ORDER, POSTPONE, numbered_from, parameters_of
from app.platform.jobs.orders import Order, Scheduled

_SESSION_COLUMNS: Final = (
    "agent_id", "user_id", "project_id", "status", "memory_enabled", "last_sequence_no",
    "last_message_time", "last_extracted_seq", "in_context_from", "set_aside", "window_tokens",
    "window_messages", "window_seq", "last_user_seq", "token_scale", "summary_tokens",
    "beside_tokens", "memory_tokens", "update_time",
)  # fmt: skip

_SESSION = f"""
    SELECT {", ".join(f"s.{name}" for name in _SESSION_COLUMNS)},
        CAST(s.window_policy AS text) AS window_policy,
        CAST(a.window_policy AS text) AS agent_policy, a.memory_enabled AS agent_remembers,
        a.config ->> 'embedding' AS agent_embedding, a.status AS agent_status,
        u.status AS user_status
    FROM {{sessions}} AS s
    JOIN agents AS a ON a.tenant_id = $1 AND a.agent_id = s.agent_id
    JOIN users AS u ON u.tenant_id = $1 AND u.user_id = s.user_id
"""

# `$5` are the ids of the batch, `$6` its parents, `$7` the calls that its results answer. The time
# is read whether the session is there or not.
_OPEN = f"""
WITH s AS (
    {_SESSION.format(sessions="sessions")}
    WHERE s.tenant_id = $1 AND s.session_id = $2
      AND (CAST($3 AS text) IS NULL OR s.agent_id = $3)
      AND (CAST($4 AS text) IS NULL OR s.user_id = $4)
    FOR UPDATE OF s
)
SELECT s.*, clock_timestamp() AS now,
    (SELECT seen.last_sequence_no = s.last_sequence_no AND seen.update_time = s.update_time
     FROM sessions AS seen WHERE seen.tenant_id = $1 AND seen.session_id = $2) AS is_current,
    (SELECT m.message_id FROM messages AS m
     WHERE m.tenant_id = $1 AND m.session_id = $2 AND NOT m.sequence_no <@ s.set_aside
     ORDER BY m.sequence_no DESC LIMIT 1) AS last_id,
    ARRAY(SELECT m.message_id FROM messages AS m
     WHERE m.tenant_id = $1 AND m.message_id = ANY(CAST($5 AS text[]))) AS known,
    ARRAY(SELECT m.message_id FROM messages AS m
     WHERE m.tenant_id = $1 AND m.message_id = ANY(CAST($6 AS text[]))
       AND m.session_id = $2) AS parents,
    (SELECT CAST(json_object_agg(made.call_id, made.calls - (
        SELECT count(*) FROM messages AS m
        WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.tool_call_id = made.call_id
          AND m.sequence_no > made.since AND NOT m.sequence_no <@ s.set_aside
     )) AS text) FROM (
        SELECT call.value ->> 'id' AS call_id, count(*) AS calls, min(m.sequence_no) AS since
        FROM (
            SELECT m.sequence_no, m.tool_calls FROM messages AS m
            WHERE m.tenant_id = $1 AND m.session_id = $2 AND m.tool_calls IS NOT NULL
              AND NOT m.sequence_no <@ s.set_aside
            ORDER BY m.sequence_no DESC LIMIT {NEAR}
        ) AS m CROSS JOIN LATERAL jsonb_array_elements(
            CASE WHEN jsonb_typeof(m.tool_calls) = 'array' THEN m.tool_calls END
        ) AS call
        WHERE cardinality(CAST($7 AS text[])) > 0 AND call.value ->> 'id' = ANY($7)
        GROUP BY call.value ->> 'id'
     ) AS made) AS open_calls,
    (SELECT j.job_id FROM jobs AS j WHERE j.tenant_id = $1 AND j.kind = '{COMPACT}'
       AND j.key = CAST($2 AS text) AND {LIVE}) AS compaction_job_id
FROM (SELECT 1) AS always LEFT JOIN s ON true
"""

# Of a user and an agent that are there, seen by the caller, and not disabled.
_CREATE = f"""
WITH made AS (
    INSERT INTO sessions (tenant_id, session_id, agent_id, user_id)
    SELECT $1, CAST($2 AS text), a.agent_id, u.user_id
    FROM users AS u JOIN agents AS a
        ON a.tenant_id = $1 AND a.agent_id = coalesce(CAST($6 AS text), u.agent_id)
    WHERE u.tenant_id = $1 AND u.user_id = $5 AND u.status <> 0 AND a.status <> 0
      AND (CAST($3 AS text) IS NULL OR (u.agent_id = $3 AND a.agent_id = $3))
      AND (CAST($4 AS text) IS NULL OR u.user_id = $4)
    ON CONFLICT DO NOTHING
    RETURNING *
)
{_SESSION.format(sessions="made")}
"""


@dataclass(frozen=True, slots=True)
class Mentioned:
    """What a batch names that may be stored already.

    Args:
        call_ids: of the calls that its results answer.

    """

    message_ids: Sequence[str]
    parent_ids: Sequence[str]
    call_ids: Sequence[str]


@dataclass(slots=True)
class OpenSession:
    """A session, locked, as far as an append reads and changes it; `now` is PostgreSQL's clock at
    the lock.

    Args:
        agent_embedding: of the agent's `config`: an embedder that is not the tenant's.
        last_id: of the newest message that is not set aside.
        known: which of the batch's ids are messages already, of any session.
        parents: which of the parents it names are messages of this session.
        open_calls: by id, how many of the calls it answers wait, among the newest messages with
            calls. Not fewer wait in all of them.
        compaction_job_id: of the live job that compacts it.

    """

    tenant_id: str
    session_id: str
    agent_id: str
    user_id: str
    project_id: str | None
    status: int
    memory_enabled: bool
    last_sequence_no: int
    last_message_time: datetime | None
    last_extracted_seq: int
    in_context_from: int
    set_aside: Sequence[Range[int]]
    window_tokens: int
    window_messages: int
    window_seq: int
    last_user_seq: int
    token_scale: float
    summary_tokens: int
    beside_tokens: int | None
    memory_tokens: int | None
    window_policy: Mapping[str, Any] | None
    agent_policy: Mapping[str, Any] | None
    agent_remembers: bool
    agent_embedding: str | None
    agent_status: int
    user_status: int
    now: datetime
    last_id: str | None
    known: Sequence[str]
    parents: Sequence[str]
    open_calls: Counter[str]
    compaction_job_id: str | None

    @property
    def remembers(self) -> bool:
        """Whether neither the agent nor the session keeps what is said out of memory."""
        return self.agent_remembers and self.memory_enabled


_AS_JSON: Final[Mapping[str, str]] = {
    "message_id": "text", "role": "text", "content": "text", "content_type": "text",
    "content_parts": "jsonb", "tool_calls": "jsonb", "tool_call_id": "text", "name": "text",
    "metadata": "jsonb", "captured": "boolean", "parent_message_id": "text",
    "input_hash": "text", "create_time": "timestamptz", "sequence_no": "bigint",
    "token_count": "bigint", "said_at": "timestamptz", "searched_text": "text",
    "states_wish": "boolean", "term_count": "smallint", "word_count": "smallint",
    "is_question": "boolean", "has_time": "boolean", "analyser": "smallint",
    "embedding_model": "text",
    "piece_ends": "integer[]", "piece_terms": "sparsevec[]", "piece_term_counts": "smallint[]",
    "piece_embeddings": "vector[]",
}  # fmt: skip

_IN_BINARY: Final = {"embedding": "vector", "terms": "sparsevec"}
"""Every message has these, and as text they would be most of what is sent."""

COLUMNS: Final = (*_AS_JSON, *_IN_BINARY)

_VALUES: Final = ", ".join(
    "decode(r.input_hash, 'hex')" if name == "input_hash" else f"r.{name}" for name in COLUMNS
)

# An error would not say which id it was: PostgreSQL keeps that to itself under RLS. Of two
# sessions of one user, the earlier append may commit last.
_ADD = f"""
WITH grown AS (
    UPDATE sessions SET last_sequence_no = $5, last_message_time = $6, window_seq = $5,
        window_messages = $7, window_tokens = $8, last_user_seq = $9, token_scale = $10
    WHERE tenant_id = $1 AND session_id = $2
), added AS (
    INSERT INTO messages (tenant_id, session_id, agent_id, user_id, {", ".join(COLUMNS)})
    SELECT $1, $2, $3, $4, {_VALUES}
    FROM ROWS FROM (
        json_to_recordset(CAST(CAST($11 AS text) AS json))
            AS ({", ".join(f"{name} {kind}" for name, kind in _AS_JSON.items())}),
        unnest(CAST($12 AS vector[]), CAST($13 AS sparsevec[]))
    ) AS r({", ".join(COLUMNS)})
    ON CONFLICT (tenant_id, message_id) DO NOTHING
    RETURNING message_id
), active AS (
    UPDATE users SET last_active_time = greatest(last_active_time, $6)
    WHERE tenant_id = $1 AND user_id = $4
)
"""
_ADD_PARAMETERS: Final = 13


@cache
def _adding(postponed: tuple[bool, ...]) -> str:
    """The statement that adds messages and orders jobs, of which some are only postponed."""
    orders, told, first = "", "", _ADD_PARAMETERS + 1
    for place, postpone in enumerate(postponed):
        statement = numbered_from(first, POSTPONE if postpone else ORDER)
        orders += f", order_{place} AS ({statement})"
        told += "".join(
            f", (SELECT {name} FROM order_{place})" for name in ("job_id", "status", "due_at")
        )
        first += len(parameters_of(Order("", ""), "", "")) + postpone
    return f"{_ADD} {orders} SELECT ARRAY(SELECT message_id FROM added) AS added {told}"


def _written(value: object) -> str:
    """A vector of a piece as PostgreSQL reads it."""
    return value.to_text() if isinstance(value, SparseVector) else vector_text(value)


def _as_json(rows: Sequence[Mapping[str, Any]]) -> str:
    values = [{name: row[name] for name in _AS_JSON} for row in rows]
    return to_json(values, bytes_mode="hex", fallback=_written).decode()


def _in_binary(value: object) -> bytes | None:
    if isinstance(value, SparseVector):
        return value.to_binary()
    return None if value is None else vector_bytes(value)


class AppendRepository:
    """One session and what is appended to it. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def open(
        self,
        session_id: str,
        named: Participants,
        mentioned: Mentioned,
        *,
        create: bool,
        creator: str | None,
    ) -> OpenSession:
        """As `SessionRepository.open_for_append` opens it, in one statement where it is there.

        Raises:
            What `SessionRepository.open_for_append` raises.

        """
        row = await self._read(session_id, mentioned)
        found = self._opened(session_id, row)
        if found is None and not create:
            raise SessionNotFoundError(session_id)
        if found is None:
            self._access.refuse_choice("session_id", session_id)
            found = await self._made(session_id, named, row["now"])
        if found is None:
            await SessionRepository(self._db, self._access).ensure_opened(
                session_id, named, create=create, creator=creator
            )
            found = await self.find(session_id, mentioned)
        if found is None:
            raise IdTakenError("session_id", session_id)
        refuse_mismatch(found, named)
        if found.agent_status == 0:
            raise DisabledError("agent", found.agent_id)
        if found.user_status == 0:
            raise DisabledError("user", found.user_id)
        return found

    async def find(self, session_id: str, mentioned: Mentioned) -> OpenSession | None:
        """The session, locked until the transaction ends; None where the caller has none."""
        return self._opened(session_id, await self._read(session_id, mentioned))

    async def _read(self, session_id: str, mentioned: Mentioned) -> Mapping[str, Any]:
        """What is known of the session and the batch as of the lock, or of now without one."""
        driver = await driver_of(self._db)
        access = self._access
        while True:
            row: Mapping[str, Any] = await driver.fetchrow(
                _OPEN,
                access.tenant_id,
                session_id,
                access.agent_id,
                access.user_id,
                mentioned.message_ids,
                mentioned.parent_ids,
                mentioned.call_ids,
            )
            if row["agent_id"] is None or row["is_current"]:
                return row
            # It was changed before the lock was got. Nobody changes it any more.

    async def _made(
        self, session_id: str, named: Participants, now: datetime
    ) -> OpenSession | None:
        """A new session of a known user; None where more has to be made, or looked at."""
        access = self._access
        user_id = named.user_id or access.user_id or access.default_user_id
        if named.project_id is not None:
            return None
        row = await (await driver_of(self._db)).fetchrow(
            _CREATE,
            access.tenant_id,
            session_id,
            access.agent_id,
            access.user_id,
            user_id,
            named.agent_id,
        )
        empty = dict.fromkeys(("last_id", "open_calls", "compaction_job_id"))
        lists: dict[str, list[str]] = {"known": [], "parents": []}
        return (
            None if row is None else self._opened(session_id, {**row, **empty, **lists, "now": now})
        )

    def _opened(self, session_id: str, row: Mapping[str, Any]) -> OpenSession | None:
        if row["agent_id"] is None:
            return None
        values = dict(row)
        values.pop("is_current", None)
        del values["update_time"]
        for policy in ("window_policy", "agent_policy"):
            values[policy] = values[policy] and from_json(values[policy])
        values["set_aside"] = [
            Range(omitted.lower, omitted.upper) for omitted in values["set_aside"]
        ]
        calls = values["open_calls"]
        values["open_calls"] = +Counter[str](from_json(calls)) if calls else Counter()
        return OpenSession(tenant_id=self._access.tenant_id, session_id=session_id, **values)

    async def add(
        self, session: OpenSession, rows: Sequence[Mapping[str, Any]], orders: Sequence[Order]
    ) -> dict[str, Scheduled]:
        """Insert `rows`, keep the counts of `session`, which has grown by them, and order jobs.

        Args:
            rows: each with values for columns of `messages`; nothing in those that are missing.
            orders: each of another kind.

        Returns:
            By kind, the jobs that were made or joined.

        Raises:
            IdTakenError: one of the ids is a message of another session.

        """
        tenant_id = self._access.tenant_id
        parameters: list[Any] = []
        job_ids = [new_id("job") for _ in orders]
        for order, job_id in zip(orders, job_ids, strict=True):
            parameters += parameters_of(order, tenant_id, job_id)
            parameters += [session.now] if order.postpone_only else []
        row = await (await driver_of(self._db)).fetchrow(
            _adding(tuple(order.postpone_only for order in orders)),
            tenant_id,
            session.session_id,
            session.agent_id,
            session.user_id,
            session.last_sequence_no,
            session.last_message_time,
            session.window_messages,
            session.window_tokens,
            session.last_user_seq,
            session.token_scale,
            _as_json(rows),
            [_in_binary(row["embedding"]) for row in rows],
            [_in_binary(row["terms"]) for row in rows],
            *parameters,
        )
        added, *told = row
        if len(added) < len(rows):
            taken = next(row["message_id"] for row in rows if row["message_id"] not in added)
            raise IdTakenError("message_id", taken)
        jobs = zip(orders, job_ids, zip(*[iter(told)] * 3, strict=True), strict=True)
        return {
            order.kind: Scheduled(job, status, due_at, merged=job != job_id)
            for order, job_id, (job, status, due_at) in jobs
            if job is not None
        }
