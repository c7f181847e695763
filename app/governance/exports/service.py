"""Use cases of an export: one snapshot, streamed row by row, from a manifest to an end line.

A running export holds a connection of the pool, so slots limit how many run at a time.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from typing import Final

import structlog
from pydantic_core import to_json
from sqlalchemy.ext.asyncio import AsyncSession

from app.governance.exports.repository import ExportRepository
from app.governance.exports.schemas import FORMAT, ExportQuery, ExportsBusyError
from app.governance.exports.scope_sql import ANCHORS, NOUNS, TABLES, ExportScope
from app.identity.agents.repository import AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError, KeyRestrictedError
from app.identity.tenants.repository import TenantRepository
from app.identity.users.repository import UserRepository
from app.platform.database.engine import Database
from app.platform.database.migrate import head
from app.platform.version import VERSION

log = structlog.get_logger()

MOST_EXPORTS: Final = 2

STALLED_SECONDS: Final = 60.0
"""How long a reader may take nothing of what is sent. It holds a transaction, which keeps
PostgreSQL from cleaning up, and a slot for which others wait; slow networks and disks pause for
seconds."""


class ExportSlots:
    """Limits how many exports run, one of a tenant, so that no tenant takes all. One per process.

    Args:
        connections: how many the pool has; exports may use all but one.
        stalled_seconds: how long a reader may take nothing.

    """

    def __init__(self, connections: int, *, stalled_seconds: float = STALLED_SECONDS) -> None:
        self.stalled_seconds = stalled_seconds
        self._free = min(MOST_EXPORTS, max(1, connections - 1))
        self._tenants: set[str] = set()

    @contextmanager
    def taken(self, tenant_id: str) -> Iterator[None]:
        """Hold a slot inside the block.

        Raises:
            ExportsBusyError: an export of the tenant is running, or all slots are taken.

        """
        if not self._free or tenant_id in self._tenants:
            raise ExportsBusyError
        self._free -= 1
        self._tenants.add(tenant_id)
        try:
            yield
        finally:
            self._free += 1
            self._tenants.discard(tenant_id)


class ExportService:
    def __init__(self, database: Database, slots: ExportSlots, now: Callable[[], datetime]) -> None:
        self._database = database
        self._slots = slots
        self._now = now
        self.stalled_seconds = slots.stalled_seconds

    async def export(self, principal: Principal, query: ExportQuery) -> AsyncIterator[bytes]:
        """The lines of an export, in pieces of a few rows; the first is the manifest.

        All rows come from one snapshot. No more than a page of rows is in memory, and the
        transaction ends when the reading ends.

        Raises:
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: before the first line.
            InsufficientScopeError: the key has no `admin`; a user's own key needs none.
            KeyRestrictedError: the key is an agent's, or a user's that asks for more than the user.
            ExportsBusyError: all slots are taken, or an export of this tenant is running.

        """
        scope = _scope(principal, query)
        schema = await asyncio.to_thread(head)
        # Not later than the snapshot: what is erased after the snapshot is erased after this time.
        created_at = self._now()
        with self._slots.taken(principal.tenant_id):
            async with self._database.begin(principal.tenant_id, snapshot=True) as db:
                await _find(db, principal, scope)
                models = (await TenantRepository(db, principal.tenant_id).get()).embedding_models
                stream = _Stream()
                manifest = {
                    "created_at": created_at.astimezone(UTC).isoformat(timespec="seconds"),
                    "embedding_models": sorted(models) if query.vectors else [],
                    "format": FORMAT,
                    "kinds": list(NOUNS.values()),
                    "schema": schema,
                    "scope": scope.shown(),
                    "service": VERSION,
                    "type": "manifest",
                    "vectors": query.vectors,
                }
                yield stream.manifest(to_json(manifest))
                repository = ExportRepository(db, scope)
                for name, noun in NOUNS.items():
                    async for page in repository.rows(TABLES[name], vectors=query.vectors):
                        yield await stream.rows(noun, page)
                    if name in ANCHORS and scope.kind != "tenant":
                        async for page in repository.rows(TABLES[name], vectors=False, stubs=True):
                            yield await stream.rows(noun, page, stubs=True)
        yield stream.end()
        log.info("rows_exported", kind=scope.kind, rows=sum(stream.counts.values()))


INLINE_CHARACTERS: Final = 200_000
"""Writing and hashing so much takes about a millisecond."""


class _Stream:
    """Lines, with the counts and hashes of those written so far."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._everything = hashlib.sha256()
        self._rows = hashlib.sha256()

    def manifest(self, line: bytes) -> bytes:
        written = line + b"\n"
        self._everything.update(written)
        return written

    async def rows(self, noun: str, page: list[str], *, stubs: bool = False) -> bytes:
        if sum(map(len, page)) <= INLINE_CHARACTERS:
            return self._rows_of(noun, page, stubs=stubs)
        return await asyncio.to_thread(self._rows_of, noun, page, stubs=stubs)

    def _rows_of(self, noun: str, page: list[str], *, stubs: bool) -> bytes:
        begin = '{"parent":true,"row":' if stubs else '{"row":'
        written = "".join(f'{begin}{row},"type":"{noun}"}}\n' for row in page).encode()
        self.counts[noun] += len(page)
        self._everything.update(written)
        self._rows.update(written)
        return written

    def end(self) -> bytes:
        end = {
            "counts": dict(sorted(self.counts.items())),
            "rows_sha256": self._rows.hexdigest(),
            "sha256": self._everything.hexdigest(),
            "type": "end",
        }
        return to_json(end) + b"\n"


def _scope(principal: Principal, query: ExportQuery) -> ExportScope:
    """Raises KeyRestrictedError, InsufficientScopeError."""
    access = principal.access
    own = access.agent_id is None and access.user_id is not None and query.user_id is not None
    if access.restricted and not own:
        raise KeyRestrictedError
    if not access.restricted and not principal.may("admin"):
        raise InsufficientScopeError("admin", acting=principal.acting)
    if query.user_id is not None:
        return ExportScope(principal.tenant_id, "user", query.user_id)
    if query.agent_id is not None:
        return ExportScope(principal.tenant_id, "agent", query.agent_id)
    if query.project_id is not None:
        return ExportScope(principal.tenant_id, "project", query.project_id)
    return ExportScope(principal.tenant_id, "tenant")


async def _find(db: AsyncSession, principal: Principal, scope: ExportScope) -> None:
    """Check that the user, agent or project exists for the caller.

    Raises:
        UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: it does not.

    """
    match scope.kind:
        case "user":
            await UserRepository(db, principal.access).get(scope.owner_id)
        case "agent":
            await AgentRepository(db, principal.access).get(scope.owner_id)
        case "project":
            await ProjectRepository(db, principal.access).get(scope.owner_id)
        case "tenant":
            return
