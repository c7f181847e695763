"""Use cases of LangGraph's saver: a thread is a session, and every write locks it.

So a prune never deletes a chunk that a concurrent put needs, and a write that waited for a deletion
sees it: a late write is refused, and restores nothing.
"""

import asyncio
import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import structlog

from app.conversation.sessions.repository import (
    Participants,
    SessionRepository,
    refuse_mismatch,
)
from app.conversation.sessions.schemas import SessionEndedError
from app.identity.tenants.access import Principal
from app.integrations.langgraph.list_repository import SaverLists, Wanted
from app.integrations.langgraph.pages import (
    CHUNK_BYTES,
    PAGE_BYTES,
    STAGED_BYTES,
    STEP_BYTES,
    Listed,
    SaverCheckpointNotFoundError,
    SaverContentMissingError,
    SaverStepTooLargeError,
    check_content,
    first_chunks,
    metadata_of,
    page_json,
    position_of,
    value_digest,
)
from app.integrations.langgraph.repository import Look, SaverRepository
from app.integrations.langgraph.schemas import (
    SaverContentDone,
    SaverContentPut,
    SaverContentQuery,
    SaverContentRead,
    SaverPut,
    SaverPutDone,
    SaverQuery,
    SaverWritesPut,
)
from app.platform.work.unit import Work
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
            SaverStepTooLargeError: the values of the request are too large together.
            InvalidChunkError: a chunk is not what its digest says.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        checked = await _checked(body.content)
        channels, values = _named(body)
        async with self._work.write(principal) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            await self._open(sessions, principal, session_id, body, create=body.parent_id is None)
            saver = SaverRepository(unit.db, principal.tenant_id, session_id)
            needed = {part for _, parts in values.values() for part in parts}
            look = await saver.look(namespace, checkpoint_id, body.parent_id, needed)
            channels |= _kept(session_id, checkpoint_id, body, look)
            new = _new(needed, look, checked, "The values of the step")
            columns = _columns(body) | {"channels": json.dumps(channels)}
            await saver.put(namespace, checkpoint_id, columns, values, new)
            await saver.settle(look.staged)
            if look.own is not None and look.own != channels:
                await SaverThreadRepository(unit.db, principal.tenant_id, session_id).sweep()
        log.debug("saver_checkpoint_put", session_id=session_id)
        return SaverPutDone(session_id=session_id, namespace=namespace, checkpoint_id=checkpoint_id)

    async def put_content(
        self, principal: Principal, session_id: str, body: SaverContentPut
    ) -> SaverContentDone:
        """Store chunks ahead of the checkpoint or the writes that will have them; safe to repeat.

        Nothing shows them before. What nothing has within an hour is deleted.

        Raises:
            SessionNotFoundError, SessionMismatchError, SessionEndedError, DisabledError,
            UserRequiredError, UserNotFoundError, AgentNotFoundError, IdTakenError: about the
                session.
            SaverStepTooLargeError: too much came ahead in this session.
            InvalidChunkError: a chunk is not what its digest says.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        checked = await _checked(body.content)
        async with self._work.write(principal) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            await self._open(sessions, principal, session_id, body, create=body.create)
            saver = SaverRepository(unit.db, principal.tenant_id, session_id)
            size = await saver.staged_bytes() + sum(map(len, checked.values()))
            if size > STAGED_BYTES:
                raise SaverStepTooLargeError(
                    "The chunks that came ahead in this session", size=size, limit=STAGED_BYTES
                )
            new = await saver.stage(checked)
        return SaverContentDone(session_id=session_id, chunks=new)

    async def read_content(
        self, principal: Principal, session_id: str, body: SaverContentQuery
    ) -> SaverContentRead:
        """The first of the chunks that fit into a page, and how many those are.

        Raises:
            SessionNotFoundError: the caller has no such session.
            SessionMismatchError: it is that of another user or agent than the body names.

        """
        digests = [bytes.fromhex(digest) for digest in body.chunks]
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            refuse_mismatch(session, Participants(body.user_id, body.agent_id))
            lists = SaverLists(db, principal.access)
            sizes = await lists.chunk_bytes([session_id], digests)
            number = first_chunks(digests, sizes)
            content = await lists.content([session_id], digests[:number])
        shown = {digest.hex(): packed for digest, packed in content.items()}
        return SaverContentRead(content=shown, read=number)

    async def _open(
        self,
        sessions: SessionRepository,
        principal: Principal,
        session_id: str,
        body: SaverPut | SaverContentPut | SaverWritesPut,
        *,
        create: bool,
    ) -> None:
        """Raises SessionEndedError, UserRequiredError."""
        opened = await sessions.open_for_append(
            session_id,
            Participants(body.user_id, body.agent_id),
            create=self._auto_create and create,
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
            SaverContentMissingError: the request takes content for stored that is not.
            SaverStepTooLargeError: the writes are too large together.
            InvalidChunkError: a chunk is not what its digest says.
            SessionEndedError, DisabledError: the session can only be read.
            MemoryDisabledError: memory is switched off.

        """
        self._work.refuse_disabled()
        checked = await _checked(body.content)
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
                    "chunks": _digests(write.chunks),
                }
        needed = {part for row in rows.values() for part in row["chunks"] or ()}
        async with self._work.write(principal) as unit:
            sessions = SessionRepository(unit.db, principal.access)
            await self._open(sessions, principal, session_id, body, create=False)
            saver = SaverRepository(unit.db, principal.tenant_id, session_id)
            if needed:
                look = await saver.look(namespace, checkpoint_id, None, needed)
                if look.own is None:
                    raise SaverCheckpointNotFoundError(session_id, checkpoint_id)
                await saver.stage(_new(needed, look, checked, "The writes of the task"))
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
            steps, more = await lists.list_checkpoints(wanted, start=start, limit=query.limit)
            listed = Listed(steps, await lists.values(steps), await lists.writes(steps))
            shown, held, content = await _fitting(lists, listed)
        more = more or len(shown.steps) < len(steps)
        if sum(map(len, content.values())) <= INLINE_BYTES:
            return page_json(shown, held, content, more=more)
        return await asyncio.to_thread(page_json, shown, held, content, more=more)


async def _fitting(
    lists: SaverLists, listed: Listed
) -> tuple[Listed, Collection[bytes], Mapping[bytes, bytes]]:
    """The steps that fit into a page, the chunks that are stored, and those in the page."""
    sessions = {step.session_id for step in listed.steps}
    chunks = list(dict.fromkeys(chunk for chunks in listed.chunks() for chunk in chunks))
    if len(chunks) * CHUNK_BYTES <= PAGE_BYTES:
        content = await lists.content(sessions, chunks)
        return listed, content.keys(), content
    sizes = await lists.chunk_bytes(sessions, chunks)
    shown = listed.first(listed.fitting(sizes))
    chunks = list(dict.fromkeys(chunk for chunks in shown.chunks() for chunk in chunks))
    content = await lists.content(sessions, chunks[: first_chunks(chunks, sizes)])
    return shown, sizes.keys(), content


def _digests(names: Sequence[str] | None) -> list[bytes] | None:
    return None if names is None else [bytes.fromhex(name) for name in names]


async def _checked(content: Mapping[str, bytes]) -> dict[bytes, bytes]:
    """Raises InvalidChunkError."""
    if sum(map(len, content.values())) <= INLINE_BYTES:
        return check_content(content)
    return await asyncio.to_thread(check_content, content)


def _new(
    needed: Collection[bytes], look: Look, given: Mapping[bytes, bytes], what: str
) -> dict[bytes, bytes]:
    """Those of the needed chunks that are not stored yet.

    Raises:
        SaverContentMissingError: they are not given either.
        SaverStepTooLargeError: all together are too large.

    """
    new = set(needed) - look.chunks
    missing = new - given.keys()
    if missing:
        raise SaverContentMissingError(chunks=missing)
    size = look.size + sum(len(given[digest]) for digest in new)
    if size > STEP_BYTES:
        raise SaverStepTooLargeError(what, size=size, limit=STEP_BYTES)
    return {digest: given[digest] for digest in new}


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
