"""What an append makes necessary: reading the session for memories, or why not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.append_repository import OpenSession
from app.conversation.messages.capture import (
    Said,
    readable,
    readable_text,
    signals_of,
    turn_complete,
    why_unread,
)
from app.conversation.messages.schemas import ExtractionScheduled, MessageCreate
from app.conversation.sessions.jobs import Debounce
from app.conversation.sessions.models import SessionRow
from app.conversation.sessions.repository import SessionRepository
from app.identity.tenants.access import Access
from app.language.text.sensitive import NO_STOP_WORDS, StopWords
from app.platform.jobs.orders import Order, Scheduled
from app.platform.jobs.repository import JobRepository

INDEX = "index_messages"
INDEX_DELAY = timedelta(seconds=1)
INDEX_LONGEST = timedelta(seconds=5)
"""Turns of a dialogue that come at once share a call of the embedder."""

_NO_MOMENT = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CaptureRules:
    """What the deployment says about capture.

    Args:
        tags: tags of blocks that a middleware put into messages.
        stop_words: what keeps a message from being read.
        window: how many of the last turns are searched for signals.

    """

    debounce: Debounce
    tags: Sequence[str]
    window: int
    stop_words: StopWords = NO_STOP_WORDS


@dataclass(frozen=True, slots=True)
class Noticed:
    """What a batch holds for memory.

    Args:
        reason: why there is nothing to read in it; None when there is.
        stopped: places of messages that are never read.
        complete: whether it ends with the assistant's reply.

    """

    reason: str | None
    signals: frozenset[str]
    complete: bool
    stopped: frozenset[int] = frozenset()


def as_said(batch: Sequence[MessageCreate], now: datetime) -> list[Said]:
    """A batch that is about to be stored; the place in it is each one's id."""
    return [
        Said(
            message_id=str(number),
            role=message.role,
            content=message.content,
            content_parts=message.content_parts,
            tool_calls=message.tool_calls,
            metadata=message.metadata,
            name=message.name,
            sequence_no=number,
            create_time=now,
        )
        for number, message in enumerate(batch)
    ]


def notice(batch: Sequence[MessageCreate], rules: CaptureRules) -> Noticed:
    """Look through a batch; takes time in proportion to its text."""
    said = as_said(batch, _NO_MOMENT)
    stopped = frozenset(
        number
        for number, message in enumerate(batch)
        if rules.stop_words(readable_text(message.content, message.content_parts))
    )
    readable_messages = [message for message in said if message.sequence_no not in stopped]
    reading = readable(readable_messages, rules.tags)
    reason: str | None = why_unread(readable_messages, reading)
    if reason == "no_user_message" and any(batch[number].role == "user" for number in stopped):
        reason = "stop_word"
    signals = signals_of(reading.turns, rules.window)
    return Noticed(reason, signals, turn_complete(said), stopped)


def index_order(session: SessionRow, *, creator: str | None) -> Order:
    """To read or embed what an append has left for searches."""
    return Order(
        INDEX,
        session.session_id,
        agent_id=session.agent_id,
        user_id=session.user_id,
        session_id=session.session_id,
        creator=creator,
        delay=INDEX_DELAY,
        longest=INDEX_LONGEST,
    )


def reading_order(
    session: OpenSession,
    noticed: Noticed,
    rules: CaptureRules,
    *,
    since: datetime,
    creator: str | None,
) -> Order | None:
    """To read the session for memories, in the transaction that stores the messages; None where it
    keeps none.

    What holds nothing to read only postpones a reading that is ordered already: it goes on the
    same turn.

    Args:
        since: when the first new message was said.

    """
    if not session.remembers:
        return None
    return rules.debounce.order(
        session,
        creator=creator,
        signals=noticed.signals,
        complete=noticed.complete,
        postpone_only=noticed.reason is not None,
        since=since,
    )


async def put_into_lane(
    db: AsyncSession, session: OpenSession, order: Order, scheduled: Scheduled, *, first: int
) -> None:
    """Give a new reading its place: older messages may be unread that started nothing, or whose
    job has died.

    Args:
        first: number of the first new message.

    """
    if scheduled.merged or session.last_extracted_seq + 1 >= first:
        return
    access = Access(session.tenant_id)
    since = await SessionRepository(db, access).unread_since(session)
    await JobRepository(db, session.tenant_id).schedule(replace(order, lane_order=since))


def shown_reading(
    order: Order | None, scheduled: Scheduled | None, noticed: Noticed
) -> ExtractionScheduled:
    """What an answer says of the reading that was ordered, if one was."""
    if order is None:
        return ExtractionScheduled(scheduled=False, reason="memory_paused")
    if scheduled is None:
        return ExtractionScheduled(scheduled=False, reason=noticed.reason)
    return ExtractionScheduled(
        scheduled=True,
        job_id=scheduled.job_id,
        due_at=scheduled.due_at,
        signals=sorted(noticed.signals),
        reason=None if noticed.complete else "awaiting_reply",
    )
