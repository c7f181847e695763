"""Use cases of stored messages: read, list, delete."""

from collections.abc import Sequence
from dataclasses import dataclass

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.errors import MessageNotFoundError
from app.conversation.messages.repository import AnyMessageRepository, MessageRepository
from app.conversation.messages.schemas import (
    MessageDelete,
    MessageQuery,
    MessageRead,
    MessagesDeleted,
)
from app.conversation.messages.search_schemas import MessageSlice, MessageSliceQuery
from app.conversation.messages.window import closure
from app.conversation.messages.window_repository import WindowRepository
from app.conversation.sessions.checkpoint_store import CheckpointStore
from app.conversation.sessions.models import Session
from app.conversation.sessions.policy import WindowPolicy, resolve
from app.conversation.sessions.repository import SessionRepository
from app.errors import ConfirmationRequiredError
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.language.llm.tokens import TokenCounter, fitting
from app.platform.values.pagination import Page, decode_number, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

LISTED = 1000


@dataclass(frozen=True, slots=True)
class WindowRules:
    """What the deployment says about windows.

    Args:
        policy: for agents and sessions without a policy of their own.
        checkpoint_store: keeps checkpoints, and calls that wait for a human.

    """

    counter: TokenCounter
    policy: WindowPolicy
    checkpoint_store: CheckpointStore


class MessageService:
    def __init__(self, work: Work, windows: WindowRules) -> None:
        self._work = work
        self._windows = windows

    async def get(
        self,
        principal: Principal,
        session_id: str,
        message_id: str | int,
        query: MessageSliceQuery,
    ) -> MessageSlice:
        """A message, or a stretch of its text: empty where it has no more.

        Args:
            message_id: its id, or its number in the session.

        Raises:
            SessionNotFoundError, MessageNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            message = await MessageRepository(db, principal.access, session_id).get(message_id)
            return MessageSlice.of(MessageRead.model_validate(message), query)

    async def get_anywhere(
        self, principal: Principal, message_id: str, query: MessageSliceQuery
    ) -> MessageSlice:
        """A message, whatever its session, or a stretch of its text.

        Raises:
            MessageNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            message = await AnyMessageRepository(db, principal.access).get(message_id)
            return MessageSlice.of(MessageRead.model_validate(message), query)

    async def list_messages(
        self, principal: Principal, session_id: str, query: MessageQuery
    ) -> Page[MessageRead]:
        """Messages in the order of the conversation.

        Raises:
            SessionNotFoundError: the caller has no such session.
            MessageNotFoundError: `branch` or `before` names no message of it.

        """
        start = decode_number(query.cursor, "messages")
        async with self._work.read(principal) as db:
            await SessionRepository(db, principal.access).get(session_id)
            messages = MessageRepository(db, principal.access, session_id)
            if query.branch is not None:
                await messages.get(query.branch)
            before = None
            if query.before is not None:
                before = (await messages.get(query.before)).sequence_no
            rows = await messages.list_messages(
                after_sequence_no=start,
                descending=query.order == "desc",
                limit=query.limit,
                role=query.role,
                since=query.since,
                until=query.until,
                branch=query.branch,
                words=query.query,
                before=before,
            )
        counter = self._windows.counter
        return page(
            "messages",
            rows,
            query.limit,
            show=MessageRead.model_validate,
            place=lambda message: (message.sequence_no, message.message_id),
            fits=lambda items: fitting(counter, (item.content for item in items), query.max_tokens),
        )

    async def delete(
        self,
        principal: Principal,
        session_id: str,
        body: MessageDelete,
        *,
        key: IdempotencyKey | None = None,
    ) -> MessagesDeleted:
        """Delete the named messages, or the oldest ones, for good.

        The other half of a tool call goes with it. Numbers are not used again.

        Raises:
            SessionNotFoundError, MessageNotFoundError: nothing was deleted.

        """
        async with self._work.write(principal, key, while_disabled=True) as unit:
            session = await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(unit.db, principal.access, session_id)
            if body.message_ids is not None:
                chosen: Sequence[str] = list(dict.fromkeys(body.message_ids))
                here = await messages.here(chosen)
                for message_id in chosen:
                    if message_id not in here:
                        raise MessageNotFoundError(message_id)
            else:
                chosen = await messages.oldest_ids(body.oldest)
            shown = await self._delete(unit.db, principal, session, chosen, dry_run=body.dry_run)
            return unit.answer(shown, 200, user_id=session.user_id)

    async def delete_all(
        self, principal: Principal, session_id: str, *, confirm: bool, dry_run: bool
    ) -> MessagesDeleted:
        """Delete every message of a session for good.

        Raises:
            SessionNotFoundError: the caller has no such session.
            ConfirmationRequiredError: there are messages and `confirm` is not set.

        """
        async with self._work.write(principal, while_disabled=True) as unit:
            session = await SessionRepository(unit.db, principal.access).get(session_id, lock=True)
            messages = MessageRepository(unit.db, principal.access, session_id)
            chosen = await messages.oldest_ids(None)
            if chosen and not confirm and not dry_run:
                raise ConfirmationRequiredError("session", {"messages": len(chosen)})
            return await self._delete(unit.db, principal, session, chosen, dry_run=dry_run)

    async def _delete(
        self,
        db: AsyncSession,
        principal: Principal,
        session: Session,
        chosen: Sequence[str],
        *,
        dry_run: bool,
    ) -> MessagesDeleted:
        messages = MessageRepository(db, principal.access, session.session_id)
        all_of_them = closure(chosen, await messages.tool_traffic())
        pairs = sorted(all_of_them - set(chosen))
        if dry_run:
            gone = await messages.in_order(sorted(all_of_them))
        else:
            gone = await messages.delete(sorted(all_of_them), user_id=session.user_id)
            await self._windows.checkpoint_store.forget(
                db, principal.access, session.session_id, gone
            )
            agent = await AgentRepository(db, principal.access).get(session.agent_id)
            policy = resolve(self._windows.policy, agent.window_policy, session.window_policy)
            await WindowRepository(db, principal.access, session).recount_deleted(policy)
        return MessagesDeleted(
            deleted=len(gone), message_ids=gone[:LISTED], pairs=pairs[:LISTED], dry_run=dry_run
        )
