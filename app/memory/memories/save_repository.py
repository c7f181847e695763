"""What a save reads and writes: two statements, whatever the number of memories."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

from pydantic_core import from_json, to_json
from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.tenants.access import Access
from app.language.text.offload import read_text
from app.memory.memories.candidates import NEIGHBOURS, Neighbour, SaveCandidate
from app.memory.memories.owner import MemoryOwner
from app.memory.memories.save_sql import KEPT, WRITE, read_statement
from app.memory.memories.searchable import characters, row_terms
from app.platform.database.base import new_id
from app.platform.database.engine import driver_of
from app.platform.database.vectors import vectors_bytes
from app.platform.jobs.orders import Order
from app.platform.outbox.repository import Subscription

_FIRST: Final[dict[str, Any]] = dict.fromkeys(KEPT) | {
    "status": "active",
    "evidence": [],
    "metadata": {},
    "version": 1,
}
"""A new memory where nothing is given."""

_TIMES: Final = ("valid_from", "valid_to", "expires_at", "said_at")
"""Columns of KEPT that a new memory may have a time in, besides those of the row."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored already and decides about the statements of a request.

    Args:
        now: when the transaction began.
        owner_is_there: user and agent exist, are visible to the caller and may be written to;
            sessions and projects are not looked at.
        model_is_noted: the tenant has noted the model of the vectors.
        text_is_known: an active memory of the bucket has one of the texts.
        near: by index of the statement what is near enough to be a duplicate, nearest first.
        subscriptions: enabled webhooks, locked against deletion.

    """

    now: datetime
    owner_is_there: bool
    model_is_noted: bool
    text_is_known: bool
    near: Mapping[int, Sequence[Neighbour]]
    subscriptions: Sequence[Subscription]


class SaveRepository:
    """Memories that are saved. Never begins or ends a transaction; call it under the bucket's
    lock.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    async def read(
        self,
        owner: MemoryOwner,
        batch: Sequence[SaveCandidate],
        model: str,
        floors: Sequence[float],
    ) -> Stored:
        """What is stored that decides about `batch`, in one statement.

        Args:
            owner: names the bucket; what the caller may not see is never near.
            batch: with vectors of `model`.
            floors: the least similarity for each; none looks for nothing near.

        """
        compared = batch[: len(floors)]
        row = await (await driver_of(self._db)).fetchrow(
            read_statement(self._access),
            self._access.tenant_id,
            self._access.agent_id,
            self._access.user_id,
            owner.scope,
            owner.scope_id,
            owner.user_id,
            owner.agent_id,
            [candidate.content_hash for candidate in batch],
            vectors_bytes([candidate.vector for candidate in compared]),
            list(floors),
            model,
            NEIGHBOURS,
        )
        near: dict[int, list[Neighbour]] = {}
        for each in row["near"] or ():
            found = near.setdefault(compared[each["place"] - 1].index, [])
            found.append((each["memory_id"], each["content"], float(each["similarity"])))
        return Stored(
            row["now"],
            row["owner_is_there"],
            row["model_is_noted"],
            row["text_is_known"],
            near,
            [Subscription(each["webhook_id"], each["events"]) for each in row["subscribed"] or ()],
        )

    async def write(
        self,
        rows: Sequence[Mapping[str, Any]],
        verdicts: Sequence[Mapping[str, Any]],
        orders: Sequence[Order],
        *,
        actor: str,
        now: datetime,
    ) -> list[dict[str, Any]]:
        """Store new memories with their history, verdicts and orders of jobs, in one statement.

        Args:
            rows: values by column, of what the history keeps, and `content_hash`, `embedding`.
            now: when the transaction began.

        Returns:
            The memories as the history keeps them, in order.

        """
        at = _in_utc(now)
        kept = [_kept(row, at) for row in rows]
        beside = await read_text(characters(rows), _beside, rows)
        terms = [each.pop("terms").to_binary() for each in beside]
        found = await (await driver_of(self._db)).fetchval(
            WRITE,
            self._access.tenant_id,
            to_json(kept).decode(),
            to_json(beside, bytes_mode="hex").decode(),
            vectors_bytes([row["embedding"] for row in rows]),
            terms,
            actor,
            to_json(verdicts).decode(),
            to_json([order.row(new_id("job")) for order in orders]).decode(),
            now,
        )
        metadata = from_json(found or "{}")
        return [one | {"metadata": metadata.get(one["memory_id"], {})} for one in kept]


def _kept(row: Mapping[str, Any], now: str) -> dict[str, Any]:
    values = _FIRST | {name: row[name] for name in KEPT if name in row}
    values |= {"create_time": now, "update_time": now}
    for name in _TIMES:
        if values[name] is not None:
            values[name] = _in_utc(values[name])
    return values


def _in_utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat()


def _beside(rows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What is `BESIDE` the memories in the statement, and their terms: all that is read of them."""
    return [
        row_terms(row["content"], row["metadata"], row["valid_from"], row["said_at"])
        | {"content_hash": row["content_hash"], "history_id": new_id("his")}
        for row in rows
    ]
