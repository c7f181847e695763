"""What is ordered for a session: to read it for memories, to rescue what leaves its window, and
to compact the window. Extraction and compaction have the handlers.

What reads the words of one user is in one lane, in the order in which they were said: readings
beside each other would compare with what the others change, and an old session read late would
replace what a newer one brought.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from app.conversation.sessions.models import Session, SessionRow
from app.platform.jobs.orders import Order

EXTRACT = "extract"

RESCUE = "rescue"
"""Reads what left the window, at once and whatever else the session waits for."""

COMPACT = "compact"
"""Puts the older messages of the window into a summary."""

TO_SEQ = "to_seq"
"""In the payload of a rescue: up to where it reads."""

URGENT_PRIORITY = -1
"""Somebody waits, or nothing more will come: before what only fell silent."""

ATTEMPTS = 20
"""With the queue's back-off more than two hours: a provider may be away for lunch."""

REPLY = 2
"""How many times the debounce a message waits for the reply that will probably come."""

CAP = 10
"""How many times the debounce a session that never falls silent may wait."""


def reading_key(session: SessionRow) -> str:
    """One live job per agent, user and session."""
    return f"{session.agent_id}/{session.user_id}/{session.session_id}"


def reading_lane(user_id: str | None) -> str | None:
    """The lane of whatever reads the words of a user."""
    return None if user_id is None else f"read/{user_id}"


@dataclass(frozen=True, slots=True)
class Debounce:
    """How long a session must be silent before it is read.

    An append that a reply will probably follow waits longer: it is read even if the reply
    never comes, and the reply shortens the wait.
    """

    silence: timedelta

    @property
    def cap(self) -> timedelta:
        return CAP * self.silence

    def order(
        self,
        session: SessionRow,
        *,
        creator: str | None,
        signals: frozenset[str],
        complete: bool,
        postpone_only: bool,
        since: datetime,
    ) -> Order:
        """The order of an append.

        Args:
            complete: whether the turn ended with the assistant's reply.
            postpone_only: there is nothing to read in it, but it goes on with what there is.
            since: when the first message of the append was said.

        """
        return Order(
            kind=EXTRACT,
            key=reading_key(session),
            agent_id=session.agent_id,
            user_id=session.user_id,
            session_id=session.session_id,
            creator=creator,
            signals=signals,
            delay=self.silence if complete else REPLY * self.silence,
            longest=self.cap,
            postpone_only=postpone_only,
            max_attempts=ATTEMPTS,
            lane=reading_lane(session.user_id),
            lane_order=since,
        )


def read_now(
    session: Session, *, since: datetime | None, creator: str | None, payload: Mapping[str, Any]
) -> Order:
    """The order of a request, of a session's end, or of the rest of a run: due at once.

    Args:
        since: when the first unread message was said.

    """
    return Order(
        kind=EXTRACT,
        key=reading_key(session),
        agent_id=session.agent_id,
        user_id=session.user_id,
        session_id=session.session_id,
        creator=creator,
        payload=payload,
        priority=URGENT_PRIORITY,
        max_attempts=ATTEMPTS,
        lane=reading_lane(session.user_id),
        lane_order=since or session.last_message_time,
    )


def rescue_now(
    session: Session,
    *,
    to_seq: int,
    since: datetime | None,
    creator: str | None,
    payload: Mapping[str, Any],
) -> Order:
    """The order to have everything up to `to_seq` read, due at once; `since` as in `read_now`."""
    return Order(
        kind=RESCUE,
        key=reading_key(session),
        agent_id=session.agent_id,
        user_id=session.user_id,
        session_id=session.session_id,
        creator=creator,
        payload={**payload, TO_SEQ: to_seq},
        priority=URGENT_PRIORITY,
        max_attempts=ATTEMPTS,
        lane=reading_lane(session.user_id),
        lane_order=since or session.last_message_time,
    )


def compact_soon(session: SessionRow, *, creator: str | None) -> Order:
    """Due at once; one live job per session, however many appends ask for it."""
    return Order(
        kind=COMPACT,
        key=session.session_id,
        agent_id=session.agent_id,
        user_id=session.user_id,
        session_id=session.session_id,
        creator=creator,
    )
