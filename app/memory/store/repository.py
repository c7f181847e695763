"""SQL that changes a store: items are put, deleted, kept alive and swept in sets."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import and_, delete, func, literal, not_, or_, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import VectorRepository
from app.memory.store.models import Spaces, StoreItem, StoreText
from app.platform.database.engine import clock_of

_PUT = text("""
INSERT INTO store_items (tenant_id, item_id, space, path, key, user_id, agent_id, value,
    ttl_minutes, expires_at, create_time, update_time)
SELECT CAST(:tenant_id AS text), put.item_id, put.space, put.path, put.key, put.user_id,
    CAST(:agent_id AS text), CAST(put.value AS jsonb), put.ttl_minutes,
    CAST(:now AS timestamptz) + put.ttl_minutes * interval '1 minute',
    -- One moment each, so that the last of a request is the newest.
    CAST(:now AS timestamptz) + put.place * interval '1 microsecond',
    CAST(:now AS timestamptz) + put.place * interval '1 microsecond'
FROM unnest(CAST(:item_ids AS text[]), CAST(:spaces AS text[]), CAST(:paths AS text[]),
    CAST(:keys AS text[]), CAST(:user_ids AS text[]), CAST(:contents AS text[]),
    CAST(:ttls AS float8[])) WITH ORDINALITY
    AS put(item_id, space, path, key, user_id, value, ttl_minutes, place)
-- Everybody locks them in this order.
ORDER BY put.item_id
ON CONFLICT (tenant_id, item_id) DO UPDATE SET value = excluded.value,
    user_id = coalesce(excluded.user_id, store_items.user_id),
    ttl_minutes = excluded.ttl_minutes, expires_at = excluded.expires_at,
    create_time = CASE WHEN store_items.expires_at <= CAST(:now AS timestamptz)
        THEN excluded.create_time ELSE store_items.create_time END,
    update_time = excluded.update_time
""")

_ADD_TEXTS = text("""
INSERT INTO store_texts (tenant_id, text_id, item_id, content, embedding, embedding_model)
SELECT CAST(:tenant_id AS text), given.text_id, given.item_id, given.content,
    CAST(given.vector AS vector), CAST(:model AS text)
FROM unnest(CAST(:text_ids AS text[]), CAST(:item_ids AS text[]), CAST(:contents AS text[]),
    CAST(:vectors AS text[])) AS given(text_id, item_id, content, vector)
""")

# A row that is being written gets its new end there.
_KEEP_ALIVE = text("""
UPDATE store_items SET expires_at =
    CAST(:now AS timestamptz) + ttl_minutes * interval '1 minute'
WHERE tenant_id = CAST(:tenant_id AS text) AND item_id IN (
    SELECT item_id FROM store_items
    WHERE tenant_id = CAST(:tenant_id AS text) AND item_id = ANY (CAST(:item_ids AS text[]))
        AND ttl_minutes IS NOT NULL AND expires_at > CAST(:now AS timestamptz)
    FOR NO KEY UPDATE SKIP LOCKED
)
""")


@dataclass(frozen=True, slots=True)
class PutRow:
    """An item to store; `value` is JSON."""

    item_id: str
    space: str
    path: str
    key: str
    user_id: str | None
    value: str
    ttl_minutes: float | None


@dataclass(frozen=True, slots=True)
class TextRow:
    """A text of an item, and its vector."""

    item_id: str
    number: int
    content: str
    vector: Sequence[float]


class StoreRepository:
    """Items of one tenant's stores. Never begins or ends a transaction."""

    def __init__(self, db: AsyncSession, tenant_id: str, spaces: Spaces) -> None:
        self._db = db
        self._tenant_id = tenant_id
        self._spaces = spaces

    def _visible(self) -> Any:
        own = StoreItem.space == self._spaces.own
        if self._spaces.user_id is not None:
            own = and_(
                or_(own, StoreItem.space == self._spaces.shared),
                StoreItem.user_id == self._spaces.user_id,
            )
        return and_(StoreItem.tenant_id == self._tenant_id, own)

    async def lock_seen(self, item_ids: Collection[str]) -> dict[str, bool]:
        """Lock those of the items that the caller sees; tells of each whether it is alive."""
        rows = await self._db.execute(
            select(StoreItem.item_id, not_(expired(func.now())).label("alive"))
            .where(self._visible(), StoreItem.item_id == func.any(list(item_ids)))
            .order_by(StoreItem.item_id)
            .with_for_update()
        )
        return {row.item_id: row.alive for row in rows}

    async def put(
        self, rows: Sequence[PutRow], texts: Sequence[TextRow], *, agent_id: str | None, model: str
    ) -> None:
        """Store items in their order, with their texts and in place of former ones.

        An item keeps its owner where the new one names none.
        """
        await self._db.execute(
            _PUT,
            {
                "tenant_id": self._tenant_id,
                "agent_id": agent_id,
                "now": await clock_of(self._db),
                "item_ids": [row.item_id for row in rows],
                "spaces": [row.space for row in rows],
                "paths": [row.path for row in rows],
                "keys": [row.key for row in rows],
                "user_ids": [row.user_id for row in rows],
                "contents": [row.value for row in rows],
                "ttls": [row.ttl_minutes for row in rows],
            },
        )
        await self._db.execute(
            delete(StoreText).where(
                StoreText.tenant_id == self._tenant_id,
                StoreText.item_id == func.any([row.item_id for row in rows]),
            )
        )
        if texts:
            await self._add_texts(texts, model)

    async def _add_texts(self, texts: Sequence[TextRow], model: str) -> None:
        await self._db.execute(
            _ADD_TEXTS,
            {
                "tenant_id": self._tenant_id,
                "model": model,
                "text_ids": [f"{row.item_id}_{row.number}" for row in texts],
                "item_ids": [row.item_id for row in texts],
                "contents": [row.content for row in texts],
                "vectors": [
                    f"[{','.join(f'{number:.9g}' for number in row.vector)}]" for row in texts
                ],
            },
        )

    async def delete(self, item_ids: Collection[str]) -> None:
        """Delete those of the items that the caller sees."""
        await self._db.execute(
            delete(StoreItem)
            .where(self._visible(), StoreItem.item_id == func.any(sorted(item_ids)))
            .execution_options(synchronize_session=False)
        )

    async def keep_alive(self, item_ids: Collection[str]) -> None:
        """Let the time to live of items begin again, where they have one and it is not over."""
        await self._db.execute(
            _KEEP_ALIVE,
            {
                "tenant_id": self._tenant_id,
                "now": await clock_of(self._db),
                "item_ids": sorted(item_ids),
            },
        )

    async def sweep(self, limit: int) -> int:
        """Delete at most `limit` expired items that the caller sees; how many it were."""
        now = await clock_of(self._db)
        chosen = (
            select(StoreItem.item_id)
            .where(self._visible(), expired(now))
            .limit(limit)
            .with_for_update(skip_locked=True)
        )
        rows = await self._db.scalars(
            delete(StoreItem)
            .where(StoreItem.tenant_id == self._tenant_id, StoreItem.item_id.in_(chosen))
            .returning(literal(1))
            .execution_options(synchronize_session=False)
        )
        return len(rows.all())


def expired(now: Any) -> Any:
    """Whether the time of an item is over."""
    return and_(StoreItem.expires_at.is_not(None), StoreItem.expires_at <= now)


class StoreVectorRepository(VectorRepository):
    """Vectors of one tenant's store."""

    # The choice of `Embedders.for_writing`: of an agent's store the agent's, else the tenant's.
    WAITING = """
FROM store_texts t
JOIN store_items i ON i.tenant_id = CAST(:tenant_id AS text) AND i.item_id = t.item_id
LEFT JOIN agents a ON a.tenant_id = CAST(:tenant_id AS text) AND a.agent_id = i.agent_id
JOIN unnest(CAST(:handles AS text[]), CAST(:models AS text[])) AS in_force(handle, model)
  ON in_force.handle = coalesce(nullif(a.config->>'embedding', ''), CAST(:home AS text))
WHERE t.tenant_id = CAST(:tenant_id AS text) AND t.embedding_model IS DISTINCT FROM in_force.model
"""
    KEY = "t.text_id"
    COLUMNS = (
        "t.text_id AS id, t.content, md5(t.content) AS version, "
        "t.embedding_model AS old, in_force.model AS new"
    )
    REPLACE = """
WITH locked AS MATERIALIZED (
    SELECT text_id FROM store_texts
    WHERE tenant_id = CAST(:tenant_id AS text) AND text_id = ANY (CAST(:ids AS text[]))
    FOR NO KEY UPDATE SKIP LOCKED
)
UPDATE store_texts t SET embedding = CAST(v.vector AS vector), embedding_model = v.new
FROM unnest(
    CAST(:ids AS text[]), CAST(:versions AS text[]), CAST(:old AS text[]), CAST(:new AS text[]),
    CAST(:vectors AS text[])
) AS v(text_id, version, old, new, vector), locked
WHERE t.tenant_id = CAST(:tenant_id AS text) AND t.text_id = v.text_id
  AND locked.text_id = v.text_id AND md5(t.content) = v.version
  AND t.embedding_model IS NOT DISTINCT FROM v.old
"""
    PRESENT = """
EXISTS (
    SELECT 1 FROM store_texts t
    WHERE t.tenant_id = CAST(:tenant_id AS text) AND t.embedding_model = listed.model
)
"""
