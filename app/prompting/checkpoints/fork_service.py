"""The use case of forks: a new session that goes on from a place in another one."""

from datetime import datetime
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.messages.extraction_schedule import index_order
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.models import LINEAGE, Session, lineage_of
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import Opened, Participants, SessionRepository
from app.conversation.sessions.schemas import SessionRead
from app.conversation.sessions.state_repository import StateRepository
from app.errors import IdTakenError
from app.identity.tenants.access import Principal
from app.platform.database.base import new_id
from app.platform.jobs.repository import JobRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.checkpoints.archive_repository import read_parts
from app.prompting.checkpoints.errors import ForkPointError, ForkTooLargeError
from app.prompting.checkpoints.fork_repository import ForkPoint, ForkRepository, ForkWindow
from app.prompting.checkpoints.repository import CheckpointRepository, Kept
from app.prompting.checkpoints.schemas import SessionFork, SessionForked

log = structlog.get_logger()

MOST_COPIED: Final = 30_000
"""Messages of a fork: 20,000 take 4 s, and the forked session takes no message until then."""

_KEPT: Final = (
    "agent_id", "user_id", "project_id", "session_name", "session_type", "context",
    "memory_enabled", "injection_enabled", "window_policy", "token_scale", "beside_tokens",
    "memory_tokens",
)  # fmt: skip


class ForkService:
    def __init__(self, work: Work, policy: WindowPolicy, *, most: int = MOST_COPIED) -> None:
        """Fork sessions of at most `most` messages.

        Args:
            work: opens the transactions.
            policy: the deployment's window policy, for agents and sessions without their own.
            most: messages that one fork copies.

        """
        self._work = work
        self._policy = policy
        self._most = most

    async def fork(
        self,
        principal: Principal,
        session_id: str,
        body: SessionFork,
        *,
        key: IdempotencyKey | None = None,
    ) -> SessionForked:
        """A new running session of the same user and agent, as this one was at a place.

        It has copies of the messages up to there with their numbers and times, what the window
        was then, and the working state: at an earlier message, the last copy that was made of it
        by then. Copied messages count as read for memories. An ended session can be forked too.

        Raises:
            SessionNotFoundError, MessageNotFoundError, CheckpointNotFoundError: there is none.
            ForkPointError: a call of a tool is open there, or the message was set aside.
            ForkTooLargeError: there are too many messages.
            IdTakenError: the tenant has a session with that id already.
            IdNotAllowedError: the key is bound, and the id is not its to choose.
            DisabledError, MemoryDisabledError: nothing may be written.

        """
        principal.access.refuse_choice("session_id", body.session_id)
        async with self._work.write(principal, key) as unit:
            opened = await SessionRepository(unit.db, principal.access).open_for_append(
                session_id, Participants(), create=False, creator=None
            )
            if body.session_id == session_id:
                raise IdTakenError("session_id", session_id)
            copier = ForkRepository(unit.db, principal.access, opened.session)
            checkpoints = CheckpointRepository(unit.db, principal.access, session_id)
            named = body.checkpoint_id
            checkpoint = None if named is None else await checkpoints.get(named)
            point = await _point(copier, opened, body, checkpoint)
            copied = await self._copied(copier, point)
            window = await _window(copier, opened.session, point, checkpoint)
            state = await _state(unit.db, principal, copier, opened.session, point, checkpoint)
            last = await copier.last(point)
            fork = _session(opened.session, body, point, window, last)
            await SessionRepository(unit.db, principal.access).add(fork)
            if await copier.copy(point, window, fork):
                order = index_order(fork, creator=principal.key_id)
                await JobRepository(unit.db, principal.tenant_id).schedule(order)
            policy = resolve(self._policy, opened.agent.window_policy, fork.window_policy)
            await WindowRepository(unit.db, principal.access, fork).recount(policy)
            states = StateRepository(unit.db, principal.access)
            stored = await states.put(fork.session_id, state, None)
            shown = _shown(fork, copied, stored.version)
            unit.answer(shown, 201, user_id=fork.user_id)
        log.info("session_forked", session_id=session_id, fork_id=shown.session_id, copied=copied)
        return shown

    async def _copied(self, copier: ForkRepository, point: ForkPoint) -> int:
        """How many messages are to be copied. Raises ForkTooLargeError, ForkPointError."""
        copied = await copier.count(point)
        if copied > self._most:
            raise ForkTooLargeError(copied, self._most)
        waiting = await copier.open_calls(point)
        if waiting is not None:
            raise ForkPointError.open_call(*waiting)
        return copied


async def _point(
    copier: ForkRepository, opened: Opened, body: SessionFork, checkpoint: Kept | None
) -> ForkPoint:
    """Raises MessageNotFoundError, ForkPointError."""
    session = opened.session
    if checkpoint is not None:
        return ForkPoint(checkpoint.message_seq, checkpoint.set_aside, checkpoint.create_time)
    present = ForkPoint(session.last_sequence_no, session.set_aside)
    if session.status == 0:
        # Its state was dropped at its end; the copy that was kept then is the last.
        present = ForkPoint(present.upto, present.aside, opened.now)
    if body.at_message_id is None and body.at_sequence_no is None:
        return present
    number = await copier.named(body.at_message_id, body.at_sequence_no)
    if number is None:
        raise MessageNotFoundError(body.at_message_id or str(body.at_sequence_no))
    if any(number in omitted for omitted in session.set_aside):
        raise ForkPointError.set_aside(number)
    last = await copier.last(present)
    if last is not None and last[1] == number:
        return present
    return ForkPoint(number, session.set_aside, await copier.next_time(number))


async def _window(
    copier: ForkRepository, session: Session, point: ForkPoint, checkpoint: Kept | None
) -> ForkWindow:
    """The window there; its summaries are those that were there by then."""
    if checkpoint is None and point.upto < session.last_sequence_no and point.before is not None:
        return await copier.window(point)
    kept = session if checkpoint is None else checkpoint
    tokens = await copier.tokens(kept.summary_ids)
    return ForkWindow(kept.in_context_from, tokens)


async def _state(
    db: AsyncSession,
    principal: Principal,
    copier: ForkRepository,
    session: Session,
    point: ForkPoint,
    checkpoint: Kept | None,
) -> dict[str, Any]:
    """The working state there; empty where none was ever kept."""
    if checkpoint is not None:
        return (await read_parts(checkpoint)).state
    states = StateRepository(db, principal.access)
    if point.before is None:
        return (await states.get(session.session_id)).state
    source = await copier.state_source(point)
    match source:
        case None:
            return {}
        case ("snapshot", snapshot_id):
            return (await states.get_snapshot(session.session_id, snapshot_id)).state
        case (_, checkpoint_id):
            checkpoints = CheckpointRepository(db, principal.access, session.session_id)
            return (await read_parts(await checkpoints.get(checkpoint_id))).state


def _shown(fork: Session, copied: int, state_version: int) -> SessionForked:
    return SessionForked(
        **SessionRead.model_validate(fork).model_dump(),
        copied_messages=copied,
        window_messages=fork.window_messages,
        window_tokens=fork.window_tokens,
        state_version=state_version,
    )


def _session(
    source: Session,
    body: SessionFork,
    point: ForkPoint,
    window: ForkWindow,
    last: tuple[str, int, datetime] | None,
) -> Session:
    """The row of the fork; its window is to be counted."""
    kept = {name: getattr(source, name) for name in _KEPT}
    if body.session_name is not None:
        kept["session_name"] = body.session_name
    return Session(
        session_id=body.session_id or new_id("ses"),
        last_sequence_no=point.upto,
        last_message_time=None if last is None else last[2],
        # What is unread of it is read in the session where it was said.
        last_extracted_seq=point.upto,
        taught=False,
        in_context_from=window.in_context_from,
        summary_ids=[new_id("sum") for _ in window.summaries],
        summary_tokens=sum(window.summaries.values()),
        forked_from={
            "session_id": source.session_id,
            "sequence_no": point.upto,
            "message_id": None if last is None else last[0],
            "checkpoint_id": body.checkpoint_id,
            LINEAGE: [
                [source.session_id, point.upto],
                *(
                    [session_id, min(upto, point.upto)]
                    for session_id, upto in lineage_of(source.forked_from)
                ),
            ],
        },
        **kept,
    )
