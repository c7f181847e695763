"""Use cases of windows (what is in one, and what a strategy would show of it; neither writes), and
the strategies that choose what of a window a call shows.

A strategy only points at messages. Whatever it points at is mended to a conversation that a
provider takes and shortened until it fits, by the same rules for all of them (`window_trim.py`).
"""

from collections.abc import Callable, Collection, Mapping
from datetime import datetime
from importlib.metadata import entry_points
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.errors import (
    InvalidStrategyError,
    UnknownStrategyError,
    WindowTooSmallError,
)
from app.conversation.messages.message_forms import MessageForms, ShownMessage
from app.conversation.messages.models import Message
from app.conversation.messages.pressure import pressure_of, room_for_messages
from app.conversation.messages.repository import MessageRepository
from app.conversation.messages.schemas import (
    LeftOutRange,
    MessageRead,
    PressureRead,
    WindowPolicyRead,
    WindowRead,
    WindowStrategy,
    WindowTrim,
    WindowTrimmed,
)
from app.conversation.messages.window import Window
from app.conversation.messages.window_repository import WindowRepository, WindowRequest
from app.conversation.messages.window_trim import Pick, Trimming, trim
from app.conversation.sessions.jobs import COMPACT
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import SessionRepository
from app.errors import ConfigurationError
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.language.llm.tokens import TokenCounter
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

GROUP: Final = "kemem.window_strategies"
BUILT_IN: Final = ("last_tokens", "last_messages", "first_last", "message_fraction")

StrategyFactory = Callable[[Mapping[str, Any]], Pick]
"""What an entry point holds: called with the options of a request; ValueError refuses them."""


def last_tokens(window: Window) -> Collection[str]:
    """Everything without a gap, as far as it fits."""
    return [message.message_id for message in window.newest]


def last_messages(count: int) -> Pick:
    """The newest, at most `count`; instructions and calls that wait are not among them, and the
    current request and the newest message are there in any case.
    """

    def pick(window: Window) -> Collection[str]:
        trimming = Trimming(window, window.instructions_tokens)
        newest = trimming.places({message.message_id for message in window.newest})
        return trimming.ids(trimming.newest(newest, count))

    return pick


def first_last(keep: int) -> Pick:
    """No change up to `keep` messages; else the first and the last `keep`, or one more of an
    odd number.
    """

    def pick(window: Window) -> Collection[str]:
        ids = [message.message_id for message in window.inside]
        # A window that an older release has appended to counts more than it shows.
        if window.total <= keep or not ids:
            return ids
        return [ids[0], *ids[-keep if window.total % 2 == 0 else -keep - 1 :]]

    return pick


def message_fraction(kept: float) -> Pick:
    """From place `round((1 - kept) * total)` on; `kept` lies in 0 to 1."""

    def pick(window: Window) -> Collection[str]:
        count = window.total - round((1 - kept) * window.total)
        return [message.message_id for message in window.newest[-count:]] if count else []

    return pick


def pick_of(strategy: WindowStrategy, installed: Mapping[str, StrategyFactory]) -> Pick:
    """What a request asks for.

    Raises:
        UnknownStrategyError: there is no such strategy here.
        InvalidStrategyError: it does not take these options.

    """
    match strategy.name:
        case "last_tokens":
            return last_tokens
        case "last_messages":
            return last_messages(strategy.count)
        case "first_last":
            return first_last(strategy.keep)
        case "message_fraction":
            return message_fraction(strategy.fraction)
    if strategy.name not in installed:
        raise UnknownStrategyError([*BUILT_IN, *sorted(installed)])
    try:
        return installed[strategy.name](strategy.options)
    except ValueError as error:
        raise InvalidStrategyError(strategy.name) from error


def installed_strategies() -> dict[str, StrategyFactory]:
    """What installed packages offer, by name.

    Raises:
        ConfigurationError: one cannot be loaded, or has a name that is ours or another's.

    """
    found: dict[str, StrategyFactory] = {}
    for point in entry_points(group=GROUP):
        if point.name in {*BUILT_IN, *found}:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot have this "
                "name: it is taken."
            )
        try:
            found[point.name] = point.load()
        except Exception as error:
            raise ConfigurationError(
                f"The installed window strategy {point.name!r} ({point.value}) cannot be loaded: "
                f"{type(error).__name__}. Mend or uninstall its package."
            ) from error
    return found


class WindowService:
    def __init__(
        self,
        work: Work,
        counter: TokenCounter,
        policy: WindowPolicy,
        strategies: Mapping[str, StrategyFactory],
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._counter = counter
        self._policy = policy
        self._strategies = strategies
        self._now = now

    async def get(self, principal: Principal, session_id: str) -> WindowRead:
        """What is in the window, and the policy that holds for it.

        Raises:
            SessionNotFoundError: the caller has no such session.

        """
        async with self._work.read(principal) as db:
            session, policy = await self._session(db, principal, session_id)
            windows = WindowRepository(db, principal.access, session)
            counted = await windows.counted(policy)
            pressure, job_id = pressure_of(counted, policy), None
            if pressure.level == "flush":
                job_id = await JobRepository(db, principal.tenant_id).live_id(COMPACT, session_id)
        return WindowRead(
            session_id=session_id,
            in_context_from=session.in_context_from,
            messages=counted.window_messages,
            tokens=counted.window_tokens,
            current_request=counted.last_user_seq or None,
            summary_ids=session.summary_ids,
            summary_tokens=session.summary_tokens,
            token_scale=session.token_scale,
            set_aside=sum(
                (omitted.upper or 0) - (omitted.lower or 0) for omitted in session.set_aside
            ),
            policy=WindowPolicyRead.model_validate(policy),
            pressure=PressureRead(**pressure.shown(job_id=job_id), counter=self._counter.name),
        )

    async def trim(self, principal: Principal, session_id: str, body: WindowTrim) -> WindowTrimmed:
        """What a strategy shows of the window for one call; nothing is changed by it.

        Raises:
            SessionNotFoundError: the caller has no such session.
            UnknownStrategyError, InvalidStrategyError: there is no such strategy.
            WindowTooSmallError: what must be shown does not fit, not even in its shortest forms.

        """
        pick = pick_of(body.strategy, self._strategies)
        async with self._work.read(principal) as db:
            session, policy = await self._session(db, principal, session_id)
            windows = WindowRepository(db, principal.access, session)
            most = body.max_tokens or room_for_messages(session, policy)
            window, spoken, ends = await windows.tail(WindowRequest(policy, self._now()), most)
            forms = MessageForms(self._counter, spoken, ends)
            trimmed = trim(window, pick, most, forms.least)
            if not trimmed.fits:
                raise WindowTooSmallError(most, trimmed.needed, "max_tokens")
            ids = [message.message_id for message in trimmed.messages]
            rows = await MessageRepository(db, principal.access, session_id).known(ids)
            # Somebody may have deleted some since the window was read.
            trimmed = trimmed.among(rows)
        shown = forms.all_shown(trimmed.messages, trimmed.allowed)
        return WindowTrimmed(
            session_id=session_id,
            strategy=body.strategy.name,
            messages=[_read(rows[kept.message.message_id], kept) for kept in shown],
            tokens=sum(kept.tokens for kept in shown),
            max_tokens=most,
            starts_with_user=trimmed.starts_with_user,
            fits=trimmed.fits,
            waiting=list(trimmed.waiting),
            left_out=trimmed.left_out,
            left_out_ranges=[
                LeftOutRange(from_sequence_no=omitted.first, to_sequence_no=omitted.last)
                for omitted in trimmed.ranges
            ],
            shortened=[kept.message.message_id for kept in shown if kept.form != "whole"],
            counter=self._counter.name,
        )

    async def _session(
        self, db: AsyncSession, principal: Principal, session_id: str
    ) -> tuple[Session, WindowPolicy]:
        session = await SessionRepository(db, principal.access).get(session_id)
        agent = await AgentRepository(db, principal.access).get(session.agent_id)
        return session, resolve(self._policy, agent.window_policy, session.window_policy)


def _read(row: Message, shown: ShownMessage) -> MessageRead:
    """A message of the window, in the form in which it fits."""
    message = MessageRead.model_validate(row)
    if shown.form == "whole":
        return message
    names = ("content", "content_parts", "tool_calls")
    return message.model_copy(update={name: getattr(shown.spoken, name) for name in names})
