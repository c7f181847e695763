"""Read: what a session holds behind its watermark, and for whom it may be remembered."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import (
    READ_LENGTH,
    CapturedMessages,
    CapturedTurn,
    Said,
    is_hidden,
    readable,
    readable_text,
)
from app.conversation.messages.models import Message
from app.conversation.sessions.jobs import RESCUE, TO_SEQ
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository, refuse_disabled
from app.errors import DisabledError
from app.identity.agents.repository import Agent, AgentRepository
from app.identity.tenants.access import Principal
from app.identity.users.repository import UserRepository
from app.language.llm.extractor import ConversationTurn, ExtractionRequest
from app.language.text.offload import read_text
from app.memory.extraction.evidence import EvidenceContext, WritableScopes
from app.memory.extraction.repository import ExtractionRepository, Recalled
from app.memory.extraction.run_policy import (
    DISABLED,
    instructions,
    principal_of,
    writable_project,
)
from app.memory.extraction.run_state import MessageSpan, RunRequest, Trigger
from app.memory.extraction.shared_words import Reply, ShownMemory, drawn_on
from app.memory.graph.statements import draws_graph
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob

MESSAGES = 200
"""How many messages one run reads; the rest is read by the next."""

CHARACTERS = 40_000
"""How much text one run reads, counted in messages as they are shown to a model."""

CONTEXT = 6
"""How many messages read before are shown again, to understand the new ones."""

SUMMARISED = 100
"""How many of the last messages the experience of an ended session is drawn from."""

SYSTEM_TEXTS = 20

RECALLED = 200
"""How many memories that stood in the session's context are told from news, the last ones."""


@dataclass(frozen=True, slots=True)
class UnreadMessages:
    """What a session holds behind its watermark.

    Args:
        said_back: what others put before the model.
        recalled: of that, the memories that count still.
        drawn_on: ids of the memories whose words the assistant seems to have used.
        cut: how many new messages of the user are longer than what is read of them.
        messages: how many are new to this run.
        last: up to where this run reads.
        more: whether messages are left behind that.
        paused: whether its agent or itself keeps what is said out of memory.

    """

    principal: Principal
    session: Session
    scopes: WritableScopes
    config: Mapping[str, Any]
    turns: Sequence[ConversationTurn]
    said_back: Sequence[str]
    recalled: Sequence[str]
    drawn_on: Sequence[str]
    cut: int
    messages: int
    last: int
    more: bool
    paused: bool

    @property
    def span(self) -> MessageSpan:
        """Which messages this reads."""
        return MessageSpan(self.session.session_id, self.session.last_extracted_seq, self.last)

    @property
    def ended(self) -> bool:
        """Whether the session has ended."""
        return self.session.status == 0

    @property
    def news(self) -> bool:
        """Whether a user said something that was not read yet."""
        return any(turn.role == "user" and not turn.context for turn in self.turns)

    @property
    def whole(self) -> bool:
        """Whether this is the session from its first message to its last, and it has ended."""
        return self.ended and not self.more and self.session.last_extracted_seq == 0

    def request(self, job: ClaimedJob, trigger: Trigger, *, summary: bool = False) -> RunRequest:
        """The run that reads this."""
        reading = ExtractionRequest(
            self.turns,
            frozenset(job.signals),
            instructions(job.payload.get("prompt"), self.config, self.principal.config),
            self.scopes.names,
            self.recalled,
            ended=self.whole and not summary and bool(job.payload.get("end")),
        )
        return RunRequest(
            principal=self.principal,
            context=EvidenceContext(self.turns, self.scopes, self.said_back),
            reading=reading,
            trigger=trigger,
            agent_id=self.session.agent_id,
            span=self.span,
            job=job,
            summary=summary,
            cut=0 if summary else self.cut,
            graph=draws_graph(self.config, self.principal.config),
        )


@dataclass(frozen=True, slots=True)
class _Batch:
    """Messages of one run, those before them, and where the watermark will stand."""

    context: Sequence[Message]
    fresh: Sequence[Message]
    last: int
    more: bool


class SessionReader:
    """Reads one session for one job. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, job: ClaimedJob, tags: Sequence[str]) -> None:
        """Prepare for blocks of `tags`, which somebody else put into messages."""
        self._db = db
        self._job = job
        self._tags = tags

    async def read(
        self, *, whole: bool = False, again: bool = False, most: int = MESSAGES
    ) -> UnreadMessages:
        """What is unread, with what came just before it.

        Args:
            most: how many messages to read at the most.
            whole: the end of the session instead, read or not, for its experience.
            again: all that was read before instead, as if nothing of it was remembered.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: the tenant, the agent or the user is disabled.

        """
        principal = await principal_of(self._db, self._job)
        session, agent = await self._participants(principal)
        session_id = session.session_id
        repository = ExtractionRepository(self._db, principal.access)
        if whole:
            batch = await self._last(repository, session)
        elif again:
            read = await repository.after(
                session_id, 0, limit=session.last_extracted_seq, to=session.last_extracted_seq
            )
            batch = _Batch((), read, session.last_extracted_seq, more=False)
        else:
            batch = await self._unread(repository, session, most)
        told = await repository.system_texts(session_id, limit=SYSTEM_TEXTS)
        recalled = await repository.recalled(session_id, limit=RECALLED, from_elsewhere=again)
        turns, found = turns_of(batch.context, batch.fresh, self._tags)
        fresh = {message.message_id for message in batch.fresh}
        project_id = await writable_project(
            self._db, principal.access, session.project_id, session.user_id
        )
        return UnreadMessages(
            principal=principal,
            session=session,
            scopes=WritableScopes(session.user_id, None, session_id, project_id),
            config={} if agent is None else agent.config,
            turns=turns,
            said_back=[*told, *found.said_back, *injected(recalled)],
            # What was replaced or has expired may be said anew, and then it is news.
            recalled=[memory.content for memory in recalled if memory.counts],
            drawn_on=[] if again or whole else await _drawn_on(recalled, batch.fresh, turns),
            cut=len(fresh.intersection(found.cut)),
            messages=len(batch.fresh),
            last=batch.last,
            more=batch.more,
            paused=not session.memory_enabled or agent is None or not agent.memory_enabled,
        )

    async def _participants(self, principal: Principal) -> tuple[Session, Agent | None]:
        """The session and its agent.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: the agent or the user is disabled.

        """
        access = principal.access
        session = await SessionRepository(self._db, access).get(self._job.session_id or "")
        agent = await AgentRepository(self._db, access).find(session.agent_id)
        user = await UserRepository(self._db, access).find(session.user_id)
        try:
            refuse_disabled(agent, user)
        except DisabledError as error:
            raise DeferJobError(datetime.now(UTC) + DISABLED, "disabled") from error
        return session, agent

    async def _last(self, repository: ExtractionRepository, session: Session) -> _Batch:
        """The end of the session, up to its watermark, which stays where it is."""
        watermark = session.last_extracted_seq
        read = await repository.before(session.session_id, watermark, limit=SUMMARISED)
        # A fork sums up what was said in it; the rest is its context.
        copies = [message for message in read if message.copied_from is not None]
        fresh = [message for message in read if message.copied_from is None]
        to = _evicted(self._job, session)
        return _Batch(copies, fresh, _up_to(session, fresh, more=True, to=to), more=False)

    async def _unread(
        self, repository: ExtractionRepository, session: Session, most: int
    ) -> _Batch:
        """As much behind the watermark as one run reads.

        What an earlier attempt has paid for is read in the same pieces, so that its answer is found
        whatever was said since.
        """
        session_id, watermark = session.session_id, session.last_extracted_seq
        to = _evicted(self._job, session)
        end = session.last_sequence_no if to is None else min(to, session.last_sequence_no)
        paid = await repository.paid_up_to(session_id, watermark)
        if paid is not None:
            to, most = paid, MESSAGES
        found = await repository.after(session_id, watermark, limit=most + 1, to=to)
        context = await repository.before(session_id, watermark, limit=CONTEXT)
        fresh = fitting(found, most)
        left = len(fresh) < len(found)
        last = _up_to(session, fresh, more=left, to=to)
        return _Batch(context, fresh, last, more=left or last < end)


async def _drawn_on(
    recalled: Sequence[Recalled], fresh: Sequence[Message], turns: Sequence[ConversationTurn]
) -> list[str]:
    """Ids of the memories whose words the assistant's new messages seem to have used."""
    shown = [
        ShownMemory(memory.memory_id, memory.content, memory.since)
        for memory in recalled
        if not memory.drawn_on
    ]
    stored = {message.message_id: message.create_time for message in fresh}
    replies = [
        Reply(turn.content, stored[turn.message_id])
        for turn in turns
        if turn.role == "assistant" and turn.message_id in stored
    ]
    if not shown or not replies:
        return []
    said = [turn.content for turn in turns if turn.role == "user"]
    texts = [*said, *(reply.content for reply in replies), *(message.content for message in shown)]
    return await read_text(sum(map(len, texts)), drawn_on, replies, said, shown)


def injected(recalled: Sequence[Recalled]) -> list[str]:
    """Memories as the model read them, each with the mistake that it mends."""
    return [
        f"{memory.content} (avoid: {memory.source_error})"
        if memory.source_error
        else memory.content
        for memory in recalled
    ]


def fitting(found: Sequence[Message], most: int = MESSAGES) -> Sequence[Message]:
    """As many of the messages, from the first on, as one run reads; at least one.

    They end before a turn begins, or where the messages do. Only a turn that is longer than what
    one run reads is cut.
    """
    count = _count_within(found, most)
    if count == len(found):
        return found
    begins = (place for place in range(count, 0, -1) if _begins_turn(found, place))
    return found[: next(begins, count)]


def _count_within(found: Sequence[Message], most: int) -> int:
    characters = 0
    for count, message in enumerate(found[:most]):
        # A longer one is cut; what tools and systems say is shown to nobody, and counts a little.
        longest = READ_LENGTH.get(message.role, READ_LENGTH["assistant"])
        characters += min(len(readable_text(message.content, message.content_parts)), longest)
        if characters > CHARACTERS and count:
            return count
    return min(len(found), most)


def _begins_turn(found: Sequence[Message], place: int) -> bool:
    """Whether the user speaks there after somebody else did."""
    return _is_users(found[place]) and not _is_users(found[place - 1])


def _is_users(message: Message) -> bool:
    return message.role == "user" and not is_hidden(said(message))


def _evicted(job: ClaimedJob, session: Session) -> int | None:
    """Up to where a rescue reads: what left the window by now; other jobs read everything."""
    if job.kind != RESCUE:
        return None
    ordered = job.payload.get(TO_SEQ)
    return max(session.in_context_from, ordered if isinstance(ordered, int) else 0)


def _up_to(session: Session, fresh: Sequence[Message], *, more: bool, to: int | None) -> int:
    """Where the watermark will stand: behind deleted messages too, when nothing is left.

    The session was read before its messages, so what came in between is among these alone.
    """
    last = max(session.last_extracted_seq, fresh[-1].sequence_no if fresh else 0)
    end = session.last_sequence_no
    return last if more else max(last, end if to is None else min(to, end))


def turns_of(
    context: Sequence[Message], fresh: Sequence[Message], tags: Sequence[str]
) -> tuple[list[ConversationTurn], CapturedMessages]:
    """Turns in order, and what else was captured."""
    captured = [message for message in (*context, *fresh) if message.captured]
    found = readable([said(message) for message in captured], tags)
    known = {message.message_id for message in context}
    turns = [turn_of(turn) for turn in found.turns]
    return [replace(turn, context=turn.message_id in known) for turn in turns], found


def said(message: Message) -> Said:
    """A stored message as capture reads it."""
    return Said(
        message_id=message.message_id,
        role=message.role,
        content=message.content,
        content_parts=message.content_parts,
        tool_calls=message.tool_calls,
        metadata=message.metadata_,
        name=message.name,
        sequence_no=message.sequence_no,
        create_time=message.create_time,
    )


def turn_of(captured: CapturedTurn) -> ConversationTurn:
    """A captured message as an extractor sees it."""
    return ConversationTurn(
        captured.message_id,
        captured.role,
        captured.text,
        captured.said_at,
        captured.name,
        parts=captured.parts,
    )
