"""Reading a session behind its watermark: which messages, for whom, under which limits."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import TEXT_LENGTH, CapturedTurn, Said, readable
from app.conversation.messages.models import Message
from app.conversation.sessions.jobs import RESCUE, TO_SEQ
from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository, refuse_disabled
from app.errors import DisabledError
from app.identity.agents.repository import AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.repository import TenantRepository
from app.identity.usage.quota import Quota, exhausted
from app.identity.usage.repository import UsageRepository
from app.identity.users.repository import UserRepository
from app.language.llm.extractor import ConversationTurn, ExtractionRequest
from app.memory.extraction.choosing import draws_graph, instructions
from app.memory.extraction.grounds import Grounds
from app.memory.extraction.judging import Hearing
from app.memory.extraction.repository import DAY, ExtractionRepository, Recalled
from app.memory.extraction.work import Span, Trigger, Work
from app.platform.jobs.errors import DeferJobError
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

EXEMPT_RUNS = 20
"""Runs of a day beside the automatic ones: at the end of a session."""

DISABLED = timedelta(hours=1)
"""How long work of who is disabled waits before it looks again."""

WRITING_ROLES = {"owner", "admin", "editor"}


@dataclass(frozen=True, slots=True)
class Reading:
    """What a session holds behind its watermark.

    Args:
        said_back: what others put before the model.
        recalled: of that, the memories that count still.
        messages: how many are new to this run.
        last: up to where this run reads.
        more: whether messages are left behind that.
        paused: whether its agent or itself keeps what is said out of memory.

    """

    principal: Principal
    session: Session
    grounds: Grounds
    config: Mapping[str, Any]
    turns: Sequence[ConversationTurn]
    said_back: Sequence[str]
    recalled: Sequence[str]
    messages: int
    last: int
    more: bool
    paused: bool

    @property
    def span(self) -> Span:
        return Span(self.session.session_id, self.session.last_extracted_seq, self.last)

    @property
    def ended(self) -> bool:
        return self.session.status == 0

    @property
    def news(self) -> bool:
        """Whether a user said something that was not read yet."""
        return any(turn.role == "user" and not turn.context for turn in self.turns)

    def work(self, job: ClaimedJob, trigger: Trigger, *, summary: bool = False) -> Work:
        """The run that reads this."""
        request = ExtractionRequest(
            self.turns,
            frozenset(job.signals),
            instructions(job.payload.get("prompt"), self.config),
            self.grounds.scopes,
            self.recalled,
        )
        return Work(
            principal=self.principal,
            hearing=Hearing(self.turns, self.grounds, self.said_back),
            request=request,
            trigger=trigger,
            agent_id=self.session.agent_id,
            span=self.span,
            job=job,
            summary=summary,
            graph=draws_graph(self.config, self.principal.config),
        )


async def principal_of(db: AsyncSession, job: ClaimedJob) -> Principal:
    """Whoever asked for the work, with the tenant's settings as they are now.

    Raises:
        DeferJobError: the tenant is disabled.

    """
    tenant = await TenantRepository(db, job.tenant_id).get()
    if tenant.status == 0:
        raise DeferJobError(datetime.now(UTC) + DISABLED, "tenant_disabled")
    return Principal(
        Access(job.tenant_id),
        job.creator or "",
        frozenset({"write"}),
        tenant.config,
        tuple(tenant.embedding_models),
    )


async def writable_project(
    db: AsyncSession, access: Access, project_id: str | None, user_id: str | None
) -> str | None:
    """The project, when the user may write there."""
    if project_id is None or user_id is None:
        return None
    role = await ProjectRepository(db, access).role_of(project_id, user_id)
    return project_id if role in WRITING_ROLES else None


class SessionReader:
    """Reads one session for one job. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, job: ClaimedJob, tags: Sequence[str]) -> None:
        """Prepare for blocks of `tags`, which somebody else put into messages."""
        self._db = db
        self._job = job
        self._tags = tags

    async def read(self, *, whole: bool = False, most: int = MESSAGES) -> Reading:
        """What is unread, with what came just before it.

        Args:
            most: how many messages to read at the most.
            whole: the end of the session instead, read or not, for its experience.

        Raises:
            SessionNotFoundError: it was deleted meanwhile.
            DeferJobError: the tenant, the agent or the user is disabled.

        """
        principal = await principal_of(self._db, self._job)
        session_id = self._job.session_id or ""
        session = await SessionRepository(self._db, principal.access).get(session_id)
        agent = await AgentRepository(self._db, principal.access).find(session.agent_id)
        user = await UserRepository(self._db, principal.access).find(session.user_id)
        try:
            refuse_disabled(agent, user)
        except DisabledError as error:
            raise DeferJobError(datetime.now(UTC) + DISABLED, "disabled") from error
        repository = ExtractionRepository(self._db, principal.access)
        watermark = session.last_extracted_seq
        to = _evicted(self._job, session)
        found: Sequence[Message] = []
        if whole:
            context: Sequence[Message] = []
            fresh: Sequence[Message] = await repository.before(
                session_id, watermark, limit=SUMMARISED
            )
        else:
            found = await repository.after(session_id, watermark, limit=most + 1, to=to)
            context = await repository.before(session_id, watermark, limit=CONTEXT)
            fresh = fitting(found, most)
        told = list(await repository.system_texts(session_id, limit=SYSTEM_TEXTS))
        recalled = await repository.recalled(session_id, limit=RECALLED)
        turns, said_back = turns_of(context, fresh, self._tags)
        project_id = await writable_project(
            self._db, principal.access, session.project_id, session.user_id
        )
        return Reading(
            principal=principal,
            session=session,
            grounds=Grounds(session.user_id, None, session_id, project_id),
            config={} if agent is None else agent.config,
            turns=turns,
            said_back=[*told, *said_back, *injected(recalled)],
            # What was replaced or has expired may be said anew, and then it is news.
            recalled=[one.content for one in recalled if one.counts],
            messages=len(fresh),
            last=_up_to(session, fresh, more=whole or len(fresh) < len(found), to=to),
            more=not whole and len(fresh) < len(found),
            paused=not session.memory_enabled or agent is None or not agent.memory_enabled,
        )


def injected(recalled: Sequence[Recalled]) -> list[str]:
    """Memories as the model read them, each with the mistake that it mends."""
    return [
        f"{one.content} (avoid: {one.source_error})" if one.source_error else one.content
        for one in recalled
    ]


def fitting(found: Sequence[Message], most: int = MESSAGES) -> Sequence[Message]:
    """As many of the messages, from the first on, as one run reads; at least one."""
    characters = 0
    for count, message in enumerate(found[:most]):
        # A longer one is cut where it is shown.
        shown = TEXT_LENGTH if message.content_parts else min(len(message.content), TEXT_LENGTH)
        characters += shown
        if characters > CHARACTERS and count:
            return found[:count]
    return found[:most]


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
) -> tuple[list[ConversationTurn], list[str]]:
    """Turns in order, and what was only said back to the model."""
    captured = [message for message in (*context, *fresh) if message.captured]
    reading = readable([said(message) for message in captured], tags)
    known = {message.message_id for message in context}
    turns = [turn_of(one) for one in reading.turns]
    return [replace(turn, context=turn.message_id in known) for turn in turns], list(
        reading.said_back
    )


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
    return ConversationTurn(
        captured.message_id, captured.role, captured.text, captured.said_at, captured.name
    )


@dataclass(frozen=True, slots=True)
class Limits:
    """What a day allows: runs per session, calls and tokens per tenant."""

    automatic_runs: int
    quota: Quota

    async def check(
        self,
        db: AsyncSession,
        reading: Reading,
        trigger: Trigger,
        now: Callable[[], datetime],
    ) -> None:
        """Whether a model may read now.

        Raises:
            DeferJobError: not before some time; the watermark keeps what is unread.

        """
        access = reading.principal.access
        await self.check_quota(db, reading.principal)
        limits: Mapping[Trigger, tuple[list[str], int]] = {
            "automatic": (["automatic"], self.automatic_runs),
            "end": (["end"], EXEMPT_RUNS),
        }
        if trigger not in limits:
            return
        triggers, most = limits[trigger]
        count, first = await ExtractionRepository(db, access).model_runs(
            reading.session.session_id, triggers
        )
        if count >= most:
            raise DeferJobError((first or now()) + DAY, "rate_limited")

    async def check_quota(self, db: AsyncSession, principal: Principal) -> None:
        """Raises DeferJobError when the tenant's day is used up."""
        totals = await UsageRepository(db, principal.tenant_id).today()
        used_up = exhausted(totals, self.quota.overridden(principal.config))
        if used_up is not None:
            raise DeferJobError(used_up.until, used_up.reason)
