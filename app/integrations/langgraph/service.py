"""Use cases of LangGraph's saver: a thread is a session, and every write locks it.

So a prune never deletes a chunk that a concurrent put needs, and a write that waited for a deletion
sees it: a late write is refused, and restores nothing.
"""

import asyncio
import json
from collections.abc import Collection, Sequence
from typing import Any

import structlog

from app.conversation.sessions.errors import SessionEndedError
from app.conversation.sessions.repository import (
    Participants,
    SessionRepository,
    refuse_mismatch,
)
from app.identity.tenants.access import Principal
from app.integrations.langgraph.errors import (
    SaverCheckpointNotFoundError,
    SaverContentMissingError,
)
from app.integrations.langgraph.list_repository import SaverLists, Wanted
from app.integrations.langgraph.pages import (
    CHUNK_BYTES,
    PAGE_BYTES,
    Values,
    check_content,
    chunks_of,
    fitting,
    metadata_of,
    page_json,
    position_of,
    value_digest,
)
from app.integrations.langgraph.repository import Look, SaverRepository
from app.integrations.langgraph.schemas import SaverPut, SaverPutDone, SaverQuery, SaverWritesPut
from app.platform.work.unit import Work
from app.prompting.checkpoints.models import SaverCheckpoint
from app.prompting.checkpoints.saver_thread_repository import SaverThreadRepository

log = structlog.get_logger()

INLINE_BYTES = 64 * 1024
"""Checking or serialising so much takes less than a millisecond; more is done in a thread."""

RUN_ID = 255
"""Longest run id that can be deleted by; a longer one is only stored in the metadata."""


class SaverService:
    def __init__(self, work: Work, *, auto_create: bool) -> None:
        self._work = work
        self._auto_create = auto_create

    async def put(
        self,
        principal: Principal,
        session_id: str,
        namespace: str,
        checkpoint_id: str,
        body: SaverPut,
    ) -> SaverPutDone:
        """Store a checkpoint, all of it or nothing; safe to repeat.

        A checkpoint without a parent begins a thread: its session is opened on first use. A
        checkpoint with a parent continues a thread, and is refused when the parent is gone.

        Raises:
            SessionNotFoundError, SessionMismatchError, SessionEndedError, DisabledError,
            UserRequiredError, UserNotFoundError, AgentNotFoundError, IdTakenError: about the
                session.
            SaverCheckpointNotFoundError: the parent is not there.
            SaverContentMissingError: the request takes content for stored that is not.
            InvalidChunkError: a chunk is not what its digest says.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        size = sum(len(packed) for packed in body.content.values())
        checked = (
            check_content(body.content)
            if size <= INLINE_BYTES
            else await asyncio.to_thread(check_content, body.content)
        )
        channels, values = _named(body)
        async with self._work.write(principal) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            await self._open(sessions, principal, session_id, body)
            saver = SaverRepository(unit.db, principal.tenant_id, session_id)
            needed = {part for _, parts in values.values() for part in parts}
            look = await saver.look(namespace, checkpoint_id, body.parent_id, needed)
            channels |= _kept(session_id, checkpoint_id, body, look)
            missing = needed - look.chunks - checked.keys()
            if missing:
                raise SaverContentMissingError(chunks=missing)
            columns = _columns(body) | {"channels": json.dumps(channels)}
            new = {digest: checked[digest] for digest in needed - look.chunks}
            await saver.put(namespace, checkpoint_id, columns, values, new)
            if look.own is not None and look.own != channels:
                await SaverThreadRepository(unit.db, principal.tenant_id, session_id).sweep()
        log.debug("saver_checkpoint_put", session_id=session_id)
        return SaverPutDone(session_id=session_id, namespace=namespace, checkpoint_id=checkpoint_id)

    async def _open(
        self, sessions: SessionRepository, principal: Principal, session_id: str, body: SaverPut
    ) -> None:
        """Raises SessionEndedError, UserRequiredError."""
        opened = await sessions.open_for_append(
            session_id,
            Participants(body.user_id, body.agent_id),
            create=self._auto_create and body.parent_id is None,
            creator=principal.key_id,
        )
        if opened.session.status == 0:
            raise SessionEndedError(session_id)

    async def put_writes(
        self,
        principal: Principal,
        session_id: str,
        namespace: str,
        checkpoint_id: str,
        body: SaverWritesPut,
    ) -> SaverPutDone:
        """Store the writes of a task in a step; safe to repeat.

        Raises:
            SessionNotFoundError, SaverCheckpointNotFoundError: it was deleted, or not stored yet.
            SessionMismatchError: the session is that of another user or agent.
            SessionEndedError, DisabledError: the session can only be read.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        rows: dict[int, dict[str, Any]] = {}
        for write in body.writes:
            if write.index < 0 or write.index not in rows:
                rows[write.index] = {
                    "task_id": body.task_id,
                    "task_path": body.task_path,
                    "idx": write.index,
                    "channel": write.channel,
                    "type": write.type,
                    "value": write.data,
                }
        async with self._work.write(principal) as unit:
            opened = await SessionRepository(unit.db, principal.access).open_for_append(
                session_id,
                Participants(body.user_id, body.agent_id),
                create=False,
                creator=None,
            )
            if opened.session.status == 0:
                raise SessionEndedError(session_id)
            saver = SaverRepository(unit.db, principal.tenant_id, session_id)
            await saver.put_writes(namespace, checkpoint_id, list(rows.values()))
        return SaverPutDone(session_id=session_id, namespace=namespace, checkpoint_id=checkpoint_id)

    async def list_checkpoints(
        self, principal: Principal, session_id: str | None, query: SaverQuery
    ) -> bytes:
        """A `SaverPage` as JSON, newest first; of all visible sessions when `session_id` is None.

        It ends before `query.limit` where it would be too large, and its cursor continues there.

        Raises:
            SessionNotFoundError: the caller has no such session.
            SessionMismatchError: it is that of another user or agent than the query names.
            InvalidSaverFilterError, InvalidCursorError: filter or cursor is not valid.

        """
        start = position_of(query.cursor)
        wanted = Wanted(
            session_id,
            query.namespace,
            query.checkpoint_id,
            query.before,
            metadata_of(query.filter),
        )
        async with self._work.read(principal) as db:
            named = Participants(query.user_id, query.agent_id)
            if session_id is not None:
                refuse_mismatch(
                    await SessionRepository(db, principal.access).get(session_id), named
                )
            lists = SaverLists(db, principal.access, named)
            listed, more = await lists.list_checkpoints(wanted, start=start, limit=query.limit)
            values = await lists.values(listed)
            steps, chunks = await _fitting(lists, listed, values)
            content = await lists.content(steps, chunks)
            writes = await lists.writes(steps)
        more = more or len(steps) < len(listed)
        if sum(map(len, content.values())) <= INLINE_BYTES:
            return page_json(steps, values, writes, content, more=more)
        return await asyncio.to_thread(page_json, steps, values, writes, content, more=more)


async def _fitting(
    lists: SaverLists, steps: Sequence[SaverCheckpoint], values: Values
) -> tuple[Sequence[SaverCheckpoint], Collection[bytes]]:
    """The first of `steps` that fit into a page, and their chunks."""
    chunks = chunks_of(steps, values)
    if len(steps) <= 1 or len(chunks) * CHUNK_BYTES <= PAGE_BYTES:
        return steps, chunks
    held = fitting(steps, values, await lists.chunk_bytes(steps, chunks))
    return held, chunks_of(held, values)


def _named(
    body: SaverPut,
) -> tuple[dict[str, str], dict[bytes, tuple[str, Sequence[bytes]]]]:
    """Digests of the new values by channel, and their types and chunks by digest."""
    channels: dict[str, str] = {}
    values: dict[bytes, tuple[str, Sequence[bytes]]] = {}
    for name, value in body.values.items():
        parts = [bytes.fromhex(chunk) for chunk in value.chunks]
        digest = value_digest(value.type, parts)
        channels[name] = digest.hex()
        values[digest] = (value.type, parts)
    return channels, values


def _kept(session_id: str, checkpoint_id: str, body: SaverPut, look: Look) -> dict[str, str]:
    """Digests of the values that the checkpoint shares with its parent.

    Raises:
        SaverCheckpointNotFoundError: the parent is not there.
        SaverContentMissingError: it has no such channel.

    """
    if body.parent_id is not None and (look.parent is None or body.parent_id == checkpoint_id):
        raise SaverCheckpointNotFoundError(session_id, body.parent_id)
    inherited = look.parent or {}
    missing = set(body.kept) - inherited.keys()
    if missing:
        raise SaverContentMissingError(channels=missing)
    return {name: inherited[name] for name in body.kept}


def _columns(body: SaverPut) -> dict[str, Any]:
    run_id = body.metadata.get("run_id")
    return {
        "thread_id": body.thread_id,
        "parent_id": body.parent_id,
        "run_id": run_id if isinstance(run_id, str) and 0 < len(run_id) <= RUN_ID else None,
        "metadata": json.dumps(body.metadata),
        "type": body.checkpoint.type,
        "checkpoint": body.checkpoint.data,
    }
