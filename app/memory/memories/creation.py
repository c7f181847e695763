"""What `POST /v1/memories` asks for; extraction implements it, since messages may be inferred."""

from typing import Protocol

from app.identity.tenants.access import Principal
from app.memory.memories.schemas import JobAccepted, MemoryAdded, MemoryCreate
from app.platform.work.idempotency import IdempotencyKey


class MemoryCreation(Protocol):
    """Memories out of the messages of a request, inferred or as they stand."""

    async def add(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> tuple[MemoryAdded, int]:
        """Remember what the messages say; returns the outcomes and their HTTP status."""

    async def order(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> JobAccepted:
        """Put the same into the queue, and answer at once."""
