"""Use cases of the store: a batch of operations, and sweeping.

Reads of a batch see the store as it was before the batch, whatever their place in it; of several
puts and deletions of one item the last counts. Both are what LangGraph's stores do.
"""

import asyncio
import json
from collections import Counter, defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeVar

import asyncpg
from pydantic_core import from_json
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.identity.agents.embedders import Embedders, embed
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.tenants.repository import TenantRepository
from app.identity.users.repository import UserRepository
from app.identity.users.service import resolve_subject
from app.language.text.offload import read_text
from app.memory.store.json_values import Looks, LooksExceededError, steps_of, texts_at
from app.memory.store.models import Spaces, item_id, namespace_of, path_of
from app.memory.store.repository import PutRow, StoreRepository, TextRow
from app.memory.store.schemas import (
    ROWS,
    StoreAnswerTooLargeError,
    StoreBatch,
    StoreDelete,
    StoreGet,
    StoreItemRead,
    StoreListNamespaces,
    StorePut,
    StoreResult,
    StoreResults,
    StoreSearch,
    StoreSwept,
    TooManyTextsError,
)
from app.memory.store.search_sql import (
    Statement,
    items_statement,
    namespaces_statements,
    search_statements,
)
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work

ANSWER_BYTES: Final = 16 * 1024 * 1024
"""Most bytes of values, namespaces and keys in one answer."""

ROW_BYTES: Final = 200
"""About what an item takes beside these."""

TEXTS: Final = 100
"""Most texts of one item that are indexed."""

LOOKED_AT: Final = 200_000
"""Most values of one request that the paths of its items lead over: about 0.2 s."""

SWEPT: Final = 1000
"""Rows that one transaction deletes."""

Operation = TypeVar("Operation")
Numbered = list[tuple[int, Operation]]


@dataclass(frozen=True, slots=True)
class _Hit:
    """An item that a search found."""

    item_id: str
    score: float | None


@dataclass(frozen=True, slots=True)
class _Put:
    """An item to be put: its value as JSON, and the texts of it that are indexed."""

    operation: StorePut
    path: str
    content: str
    texts: Sequence[str]


@dataclass(frozen=True, slots=True)
class _Vectors:
    by_text: Mapping[str, Any]
    model: str


class StoreService:
    def __init__(
        self, work: Work, embedders: Embedders, *, auto_create: bool, answer_bytes: int
    ) -> None:
        self._work = work
        self._embedders = embedders
        self._auto_create = auto_create
        self._answer_bytes = answer_bytes

    async def run(
        self, principal: Principal, body: StoreBatch, *, key: IdempotencyKey | None = None
    ) -> StoreResults:
        """The results of operations, in their order.

        All that is put and deleted is one transaction. Vectors are made before it. With a key a
        repetition is answered as before; a batch that only reads is read again.

        Raises:
            InsufficientScopeError: something is put or deleted, and the key may only read.
            StoreAnswerTooLargeError, TooManyTextsError: nothing was written.
            EmbeddingUnavailableError: nothing was written; safe to retry.
            UnknownEmbedderError: this deployment does not have the embedder in force.
            UserNotFoundError, AgentNotFoundError, IdTakenError, DisabledError: about the owner of
                an item.
            MemoryDisabledError: memory is switched off.

        """
        changes = _changes(body)
        if changes:
            if not principal.may("write"):
                raise InsufficientScopeError("write", acting=principal.acting)
            self._work.refuse_disabled()
            await self._work.refuse_repeated(principal, key)
        puts = await asyncio.to_thread(_prepared, changes)
        vectors = await self._vectors(principal, puts)
        results = [StoreResult() for _ in body.operations]
        alive = await self._read(principal, body, results)
        await self._list(principal, body, results)
        answer = StoreResults(results=results)
        if changes:
            async with self._work.write(principal, key) as unit:
                await self._delete(unit.db, principal, changes.values())
                await self._put(unit.db, principal, puts, vectors)
                await self._keep_alive(unit.db, principal, alive)
                return unit.answer(answer, user_id=principal.access.user_id)
        if alive:
            async with self._work.write(principal, while_disabled=True) as unit:
                await self._keep_alive(unit.db, principal, alive)
        return answer

    async def sweep(self, principal: Principal, key: IdempotencyKey | None = None) -> StoreSwept:
        """Delete what has expired now; the service does so once an hour. Safe to repeat."""
        await self._work.refuse_repeated(principal, key)
        total = 0
        while True:
            async with self._work.write(principal, while_disabled=True) as unit:
                store = _store(unit.db, principal)
                count = await store.sweep(SWEPT)
            total += count
            if count < SWEPT:
                break
        async with self._work.write(principal, key, while_disabled=True) as unit:
            return unit.answer(StoreSwept(deleted=total))

    # --- reading

    async def _read(
        self, principal: Principal, body: StoreBatch, results: list[StoreResult]
    ) -> list[str]:
        """Fill in what gets and searches find; the items whose time begins again."""
        spaces = Spaces.of(principal.access)
        gets = _numbered(body, StoreGet)
        searches = _numbered(body, StoreSearch)
        hits = await self._search(principal, spaces, searches)
        for number, get in gets:
            hits[number] = [_Hit(id_, None) for id_ in spaces.ids(path_of(get.namespace), get.key)]
        times = Counter(hit.item_id for found in hits.values() for hit in found)
        rows = await self._items(principal, spaces, times)
        size = rows[0]["bytes"] + ROW_BYTES * times.total() if rows else 0
        found = await read_text(size, _found, hits, rows)
        refreshed: set[str] = set()
        for number, get in gets:
            results[number].item = next((item for item, _ in found[number]), None)
            refreshed.update(id_ for _, id_ in found[number] if get.refresh_ttl)
        for number, search in searches:
            results[number].items = [item for item, _ in found[number]]
            refreshed.update(id_ for _, id_ in found[number] if search.refresh_ttl)
        return sorted(
            row["item_id"]
            for row in rows
            if row["ttl_minutes"] is not None and row["item_id"] in refreshed
        )

    async def _search(
        self, principal: Principal, spaces: Spaces, searches: Numbered[StoreSearch]
    ) -> dict[int, list[_Hit]]:
        """By the number of the search.

        Raises:
            EmbeddingUnavailableError: the queries were not embedded.
            StoreAnswerTooLargeError: they find more than ROWS items together.

        """
        queries = sorted({search.query for _, search in searches if search.query})
        by_query: dict[str, dict[str, Any]] = {}
        if queries:
            made = await self._embedders.for_query(principal, queries, required=True)
            for place, query in enumerate(queries):
                by_query[query] = {model: rows[place] for model, rows in made.by_model.items()}
        vectors = [(search, by_query.get(search.query or "", {})) for _, search in searches]
        rows = await self._rows(principal, search_statements(spaces, vectors, ROWS + 1))
        hits: dict[int, list[_Hit]] = {number: [] for number, _ in searches}
        for row in rows:
            number, _ = searches[row["operation"]]
            hits[number].append(_Hit(row["item_id"], row["score"]))
        return hits

    async def _rows(
        self, principal: Principal, statements: Sequence[Statement]
    ) -> list[asyncpg.Record]:
        """Raises StoreAnswerTooLargeError: they have more than ROWS together."""
        rows: list[asyncpg.Record] = []
        for text, values in statements:
            rows += await self._work.database.fetch(principal.tenant_id, text, *values)
            if len(rows) > ROWS:
                raise StoreAnswerTooLargeError(ROWS, "items or namespaces")
        return rows

    async def _items(
        self, principal: Principal, spaces: Spaces, times: Mapping[str, int]
    ) -> list[asyncpg.Record]:
        """Raises StoreAnswerTooLargeError."""
        if not times:
            return []
        text, values = items_statement(spaces, times, self._answer_bytes)
        rows = await self._work.database.fetch(principal.tenant_id, text, *values)
        if rows and rows[0]["bytes"] > self._answer_bytes:
            raise StoreAnswerTooLargeError(self._answer_bytes, "bytes")
        return rows

    async def _list(
        self, principal: Principal, body: StoreBatch, results: list[StoreResult]
    ) -> None:
        """Raises StoreAnswerTooLargeError: there are more than ROWS namespaces."""
        lists = _numbered(body, StoreListNamespaces)
        wanted = [listing for _, listing in lists]
        statements = namespaces_statements(Spaces.of(principal.access), wanted, ROWS + 1)
        found: dict[int, list[list[str]]] = defaultdict(list)
        for row in await self._rows(principal, statements):
            found[row["operation"]].append(row["labels"])
        for place, (number, _) in enumerate(lists):
            results[number].namespaces = found[place]

    # --- writing

    async def _vectors(self, principal: Principal, puts: Sequence[_Put]) -> _Vectors:
        """Raises EmbeddingUnavailableError, UnknownEmbedderError."""
        texts = list(dict.fromkeys(text for put in puts for text in put.texts))
        if not texts:
            return _Vectors({}, "")
        embedder = await self._embedders.for_writing(principal, principal.access.agent_id)
        vectors = await embed(embedder, texts)
        return _Vectors(dict(zip(texts, vectors, strict=True)), embedder.name)

    async def _delete(
        self, db: AsyncSession, principal: Principal, changes: Collection[StorePut | StoreDelete]
    ) -> None:
        spaces = Spaces.of(principal.access)
        gone = [change for change in changes if isinstance(change, StoreDelete)]
        ids = {id_ for op in gone for id_ in spaces.ids(path_of(op.namespace), op.key)}
        if ids:
            await _store(db, principal).delete(ids)

    async def _put(
        self, db: AsyncSession, principal: Principal, puts: Sequence[_Put], vectors: _Vectors
    ) -> None:
        """Store items; their owners are made on first use.

        Raises:
            UserNotFoundError, AgentNotFoundError, IdTakenError, DisabledError: an owner is
                missing, another's, or disabled.

        """
        if not puts:
            return
        owners = await self._owners(db, principal, {put.operation.user_id for put in puts})
        store = _store(db, principal)
        places = await _places(store, Spaces.of(principal.access), puts)
        rows, texts = [], []
        for put, space in zip(puts, places, strict=True):
            key = put.operation.key
            here = item_id(space, put.path, key)
            owner, ttl = owners[put.operation.user_id], put.operation.ttl_minutes
            rows.append(PutRow(here, space, put.path, key, owner, put.content, ttl))
            texts += [
                TextRow(here, number, text, vectors.by_text[text])
                for number, text in enumerate(put.texts)
            ]
        if texts:
            await TenantRepository(db, principal.tenant_id).note_model(vectors.model)
        await store.put(rows, texts, agent_id=principal.access.agent_id, model=vectors.model)

    async def _owners(
        self, db: AsyncSession, principal: Principal, named: Collection[str | None]
    ) -> dict[str | None, str | None]:
        """The owner of an item by the one that its put names."""
        access = principal.access
        agents, users = AgentRepository(db, access), UserRepository(db, access)
        if access.agent_id is not None:
            refuse_disabled(await agents.get(access.agent_id), None)
        owners = {name: resolve_subject(access, name, None)[0] for name in named}
        for user_id in sorted(user_id for user_id in set(owners.values()) if user_id is not None):
            user = await users.find(user_id)
            if user is None:
                home = await agents.ensure(None, create=self._auto_create, creator=principal.key_id)
                user = await users.ensure(user_id, agent_id=home.agent_id, create=self._auto_create)
            refuse_disabled(None, user)
        return owners

    async def _keep_alive(
        self, db: AsyncSession, principal: Principal, item_ids: Sequence[str]
    ) -> None:
        if item_ids:
            await _store(db, principal).keep_alive(item_ids)


async def _places(store: StoreRepository, spaces: Spaces, puts: Sequence[_Put]) -> list[str]:
    """The space of each item that is put: where the caller reads it, else their own."""
    if spaces.user_id is None:
        return [spaces.own for _ in puts]
    ids = [spaces.ids(put.path, put.operation.key) for put in puts]
    alive = await store.lock_seen([id_ for both in ids for id_ in both])
    return [
        spaces.shared if shared in alive and not alive.get(own) else spaces.own
        for own, shared in ids
    ]


def _store(db: AsyncSession, principal: Principal) -> StoreRepository:
    return StoreRepository(db, principal.tenant_id, Spaces.of(principal.access))


def _changes(body: StoreBatch) -> dict[int, StorePut | StoreDelete]:
    """What is put and deleted, of each item the last, by its place in the request."""
    last: dict[tuple[str, str], tuple[int, StorePut | StoreDelete]] = {}
    for number, operation in enumerate(body.operations):
        if isinstance(operation, StorePut | StoreDelete):
            name = path_of(operation.namespace), operation.key
            last.pop(name, None)
            last[name] = number, operation
    return dict(last.values())


def _prepared(changes: Mapping[int, StorePut | StoreDelete]) -> list[_Put]:
    """Raises TooManyTextsError."""
    looks = Looks(LOOKED_AT)
    return [
        _Put(
            change,
            path_of(change.namespace),
            json.dumps(change.value),
            _indexed(number, change, looks),
        )
        for number, change in changes.items()
        if isinstance(change, StorePut)
    ]


def _indexed(number: int, put: StorePut, looks: Looks) -> list[str]:
    """The texts of an item, each once. Raises TooManyTextsError."""
    texts: dict[str, None] = {}
    try:
        for path in dict.fromkeys(map(steps_of, put.index)):
            for text in texts_at(put.value, path, looks):
                texts[text] = None
                if len(texts) > TEXTS:
                    raise TooManyTextsError(number, TEXTS, "texts of this item")
    except LooksExceededError:
        raise TooManyTextsError(number, LOOKED_AT, "values of the request") from None
    return list(texts)


def _numbered(body: StoreBatch, kind: type[Operation]) -> Numbered[Operation]:
    """Operations of one kind with their place in the request."""
    return [
        (number, operation)
        for number, operation in enumerate(body.operations)
        if isinstance(operation, kind)
    ]


def _found(
    hits: Mapping[int, Sequence[_Hit]], rows: Sequence[asyncpg.Record]
) -> dict[int, list[tuple[StoreItemRead, str]]]:
    """What is shown of the hits of each operation, with the ids of the items."""
    items = {row["item_id"]: _shown(row) for row in rows}
    return {
        number: [
            (items[hit.item_id].model_copy(update={"score": hit.score}), hit.item_id)
            for hit in found
            if hit.item_id in items
        ]
        for number, found in hits.items()
    }


def _shown(row: asyncpg.Record) -> StoreItemRead:
    return StoreItemRead(
        namespace=namespace_of(row["path"]),
        key=row["key"],
        value=from_json(row["value"]),
        user_id=row["user_id"],
        expires_at=row["expires_at"],
        create_time=row["create_time"],
        update_time=row["update_time"],
    )
