"""`KeMemSession`: the session protocol of OpenAI's Agents SDK; a session is one of KeMem."""

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any, Literal, TypeVar, cast

from agents import TResponseInputItem
from agents.memory import SessionSettings

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Call, Operation, Page, fetch_pages, post
from kemem.conversation import DeletedMessages, batches, clear, newest, recall
from kemem.errors import UnprocessableError
from kemem.ids import checked_id
from kemem.openai_items import as_part, call_ids, items_of, message_of
from kemem.owners import UserChoice, UserSource
from kemem.sessions import Appended, Message

Result = TypeVar("Result")


class KeMemSession:
    """The items of a conversation, kept in a session of KeMem, for `Runner.run(session=…)`.

    Items come back as they came. KeMem reads them like any conversation: it extracts memories, and
    finds what was said. The session is created with the first items.

    Args:
        session_id: 1 to 64 characters of any script, without `/` (docs/api.md has the rule).
        client: a `Memory`, or an `AsyncMemory` of the event loop; it is not closed.
        user_id: the user; `KEY_USER` if the key is bound to one. It may be left out if `client`
            acts as a user.
        agent_id: the agent; by default the user's home agent.
        session_settings: `limit` is how many of the newest items a run gets; all by default.

    Raises:
        ValueError: the id can be none of a session, or nothing says whose the session is.
        ConflictError: of a method: the session has ended, or belongs to another user or agent.
        KememError: of a method: the service did not answer, or refused.

    """

    def __init__(
        self,
        session_id: str,
        client: Sender | AsyncSender,
        *,
        user_id: str | Literal[UserSource.KEY_USER] | None = None,
        agent_id: str | None = None,
        session_settings: SessionSettings | None = None,
    ) -> None:
        self.session_id = checked_id("session", session_id)
        self.session_settings = session_settings or SessionSettings()
        self._client = client
        user = UserChoice("KeMemSession", user_id, client)
        self._owner = {"user_id": user.user_id, "agent_id": agent_id}

    async def get_items(self, limit: int | None = None) -> list[TResponseInputItem]:
        """Return the newest `limit` items in the order of the conversation; None means all.

        Messages that were appended to the session in another way are among them.
        """
        most = self.session_settings.limit if limit is None else limit
        if most is not None and most <= 0:
            return []
        rows = await self._run(newest(self.session_id, self._owner, most))
        items = [item for row in rows for item in items_of(row.raw)]
        return cast("list[TResponseInputItem]", items if most is None else items[-most:])

    async def add_items(self, items: list[TResponseInputItem]) -> None:
        """Store items; up to 100 of up to 1 MB together are stored all or none."""
        messages = [message_of(cast("Mapping[str, Any]", item)) for item in items]
        given = [cast("Mapping[str, Any]", item) for item in items]
        await self._run(_add(self.session_id, self._owner, given, messages))

    async def pop_item(self) -> TResponseInputItem | None:
        """Delete the newest item for good and return it; None if there is none.

        KeMem deletes a call together with its output. What stays of the two, and stood behind them,
        is stored again: a process that is killed in between may lose an open call.
        """
        popped = await self._run(_pop(self.session_id, self._owner))
        return cast("TResponseInputItem | None", popped)

    async def clear_session(self) -> None:
        """Delete all items for good. The session stays, and so do memories extracted from it."""
        await self._run(clear(self.session_id, self._owner))

    async def recall(self, query: str | Sequence[TResponseInputItem]) -> str:
        """Return what KeMem knows for a query, as a section for the agent's instructions.

        That is the session's context without its messages: profile, blocks, corrections, memories,
        and excerpts of what the user said in any session. A query of items, such as a run's
        `turn_input`, is what the user said last in them.
        """
        text = query if isinstance(query, str) else _said(query)
        return await self._run(recall(self.session_id, self._owner, text))

    async def _run(self, operation: Operation[Result]) -> Result:
        if isinstance(self._client, Sender):
            return await asyncio.to_thread(self._client._run, operation)  # noqa: SLF001
        return await self._client._run(operation)  # noqa: SLF001 (of this package)


def _add(
    session_id: str,
    owner: Mapping[str, str | None],
    items: Sequence[Mapping[str, Any]],
    messages: list[dict[str, Any]],
) -> Operation[None]:
    for start, end in batches(messages):
        while True:
            body = {"messages": messages[start:end], **owner}
            try:
                yield post(Appended, "sessions", session_id, "messages", body=body)
            except UnprocessableError as error:
                if error.code != "unknown_tool_call":
                    raise
                # An output without its call: KeMem keeps it as a part alone.
                place = start + int(error.errors[0].location.split(".")[2])
                messages[place] = as_part(items[place])
            else:
                break


def _pop(session_id: str, owner: Mapping[str, str | None]) -> Operation[Mapping[str, Any] | None]:
    rows = yield from newest(session_id, owner, 1)
    if not rows:
        return None
    items = items_of(rows[-1].raw)
    if rows[-1].role == "tool":
        rows = yield from _whole_calls(session_id)
    kept = [item for row in rows for item in items_of(row.raw)][:-1]
    path = ("sessions", session_id, "messages", "delete")
    yield post(DeletedMessages, *path, body={"message_ids": [row.message_id for row in rows]})
    yield from _add(session_id, owner, kept, [message_of(item) for item in kept])
    return items[-1]


def _whole_calls(session_id: str) -> Operation[list[Message]]:
    """The newest messages, back to one behind which every output has its call."""
    rows: list[Message] = []
    open_calls: set[str] = set()
    call: Call[Page[Message]] | None = fetch_pages(
        Message, "sessions", session_id, "messages", limit=20, order="desc"
    )
    while call is not None:
        page: Page[Message] = yield call
        for row in page.items:
            rows.append(row)
            open_calls |= {row.tool_call_id} if row.tool_call_id else set()
            open_calls -= set(call_ids(row.raw))
            if not open_calls:
                return rows[::-1]
        call = page.following
    return rows[::-1]


def _said(items: Sequence[TResponseInputItem]) -> str:
    """What the user said last."""
    for item in reversed(items):
        given = cast("Mapping[str, Any]", item)
        if given.get("role") == "user":
            message = as_part(given)
            return str(message["content"])
    return ""
