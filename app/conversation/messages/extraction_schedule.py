"""What an append makes necessary: reading the session for memories, or why not."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import (
    Said,
    readable,
    readable_text,
    signals_of,
    time_said,
    turn_complete,
    worth_reading,
)
from app.conversation.messages.models import Message
from app.conversation.messages.schemas import ExtractionScheduled, MessageCreate
from app.conversation.sessions.jobs import Debounce
from app.conversation.sessions.repository import Opened, SessionRepository
from app.identity.tenants.access import Principal
from app.language.text.stop_words import NO_STOP_WORDS, StopWords
from app.platform.jobs.orders import Order
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
            role=one.role,
            content=one.content,
            content_parts=one.content_parts,
            tool_calls=one.tool_calls,
            metadata=one.metadata,
            name=one.name,
            sequence_no=number,
            create_time=now,
        )
        for number, one in enumerate(batch)
    ]


def notice(batch: Sequence[MessageCreate], rules: CaptureRules) -> Noticed:
    """Look through a batch; takes time in proportion to its text."""
    said = as_said(batch, _NO_MOMENT)
    stopped = frozenset(
        number
        for number, one in enumerate(batch)
        if rules.stop_words(readable_text(one.content, one.content_parts))
    )
    readable_messages = [one for one in said if one.sequence_no not in stopped]
    reason: str | None = worth_reading(readable_messages, rules.tags)
    if reason == "no_user_message" and any(batch[number].role == "user" for number in stopped):
        reason = "stop_word"
    turns = readable(readable_messages, rules.tags).turns
    return Noticed(reason, signals_of(turns, rules.window), turn_complete(said), stopped)


async def schedule_indexing(db: AsyncSession, principal: Principal, opened: Opened) -> None:
    """Order what an append leaves to be read or embedded for searches."""
    session = opened.session
    await JobRepository(db, principal.tenant_id).schedule(
        Order(
            INDEX,
            session.session_id,
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session.session_id,
            creator=principal.key_id,
            delay=INDEX_DELAY,
            longest=INDEX_LONGEST,
        )
    )


async def schedule(
    db: AsyncSession,
    principal: Principal,
    opened: Opened,
    first: Message,
    noticed: Noticed,
    rules: CaptureRules,
) -> ExtractionScheduled:
    """Order the reading in the transaction that stores the messages.

    What holds nothing to read only postpones a reading that is ordered already: it goes on the
    same turn.

    Args:
        first: the first new message.

    """
    if not opened.remembers:
        return ExtractionScheduled(scheduled=False, reason="memory_paused")
    order = rules.debounce.order(
        opened.session,
        creator=principal.key_id,
        signals=noticed.signals,
        complete=noticed.complete,
        postpone_only=noticed.reason is not None,
        since=time_said(first.metadata_, first.create_time),
    )
    jobs = JobRepository(db, principal.tenant_id)
    scheduled = await jobs.schedule(order)
    if scheduled is None:
        return ExtractionScheduled(scheduled=False, reason=noticed.reason)
    if not scheduled.merged and opened.session.last_extracted_seq + 1 < first.sequence_no:
        # Older messages are unread that started nothing, or whose job has died.
        since = await SessionRepository(db, principal.access).unread_since(opened.session)
        await jobs.schedule(replace(order, lane_order=since))
    return ExtractionScheduled(
        scheduled=True,
        job_id=scheduled.job_id,
        due_at=scheduled.due_at,
        signals=sorted(noticed.signals),
        reason=None if noticed.complete else "awaiting_reply",
    )
