"""Use cases of an export: one snapshot, streamed row by row, with a manifest and an end."""

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

from app.governance.exports.errors import ExportsBusyError
from app.governance.exports.exported_tables import ANCHORS, NOUNS, TABLES
from app.governance.exports.repository import ExportRepository
from app.governance.exports.schemas import FORMAT, ExportQuery
from app.governance.exports.scope_sql import ExportScope
from app.identity.agents.repository import AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError, KeyRestrictedError
from app.identity.tenants.repository import TenantRepository
from app.identity.users.repository import UserRepository
from app.platform.database.engine import Database
from app.platform.database.migrate import head
from app.version import VERSION

log = structlog.get_logger()

MOST_EXPORTS: Final = 2

STALLED_SECONDS: Final = 60.0
"""How long a reader may take nothing of what is sent. It holds a transaction, which keeps
PostgreSQL from cleaning up, and a slot for which others wait; slow networks and disks pause for
seconds."""


class ExportSlots:
    """Counts those that run, one of a tenant: nobody can hold them all. One per process.

    Args:
        connections: how many the pool has; all but one may be an export's.
        patience: how long a reader may take nothing, in seconds.

    """

    def __init__(self, connections: int, *, patience: float = STALLED_SECONDS) -> None:
        self.patience = patience
        self._free = min(MOST_EXPORTS, max(1, connections - 1))
        self._tenants: set[str] = set()

    @contextmanager
    def taken(self, tenant_id: str) -> Iterator[None]:
        """One more runs inside.

        Raises:
            ExportsBusyError: the tenant has one already, or there are as many as there may be.

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
        self.stalled_seconds = slots.patience

    async def export(self, principal: Principal, query: ExportQuery) -> AsyncIterator[bytes]:
        """The lines of an export, in pieces of a few rows; the first is the manifest.

        All of it is of one moment. Nothing is held but a page of rows, and the transaction ends
        with the reading.

        Raises:
            UserNotFoundError, AgentNotFoundError, ProjectNotFoundError: before the first line.
            InsufficientScopeError: only a key of the user may do without admin.
            KeyRestrictedError: the key is one agent's, or one user's who asks for more.
            ExportsBusyError: enough exports are running, or one of this tenant.

        """
        scope = _scope(principal, query)
        schema = await asyncio.to_thread(head)
        # Not later than the snapshot: who is erased after it was erased after this moment.
        moment = self._now()
        with self._slots.taken(principal.tenant_id):
            async with self._database.begin(principal.tenant_id, snapshot=True) as db:
                await _find(db, principal, scope)
                models = (await TenantRepository(db, principal.tenant_id).get()).embedding_models
                stream = _Stream()
                manifest = {
                    "created_at": moment.astimezone(UTC).isoformat(timespec="seconds"),
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
                        yield stream.rows(noun, page)
                    if name in ANCHORS and scope.kind != "tenant":
                        async for page in repository.rows(TABLES[name], vectors=False, stubs=True):
                            yield stream.rows(noun, page, stubs=True)
        yield stream.end()
        log.info("rows_exported", kind=scope.kind, rows=sum(stream.counts.values()))


class _Stream:
    """Lines, and what is known of those that were written."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._everything = hashlib.sha256()
        self._rows = hashlib.sha256()

    def manifest(self, line: bytes) -> bytes:
        told = line + b"\n"
        self._everything.update(told)
        return told

    def rows(self, noun: str, page: list[str], *, stubs: bool = False) -> bytes:
        begin = '{"parent":true,"row":' if stubs else '{"row":'
        told = "".join(f'{begin}{row},"type":"{noun}"}}\n' for row in page).encode()
        self.counts[noun] += len(page)
        self._everything.update(told)
        self._rows.update(told)
        return told

    def end(self) -> bytes:
        told = {
            "counts": dict(sorted(self.counts.items())),
            "rows_sha256": self._rows.hexdigest(),
            "sha256": self._everything.hexdigest(),
            "type": "end",
        }
        return to_json(told) + b"\n"


def _scope(principal: Principal, query: ExportQuery) -> ExportScope:
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
    """Whether there is such a user, agent or project for the caller."""
    match scope.kind:
        case "user":
            await UserRepository(db, principal.access).get(scope.one)
        case "agent":
            await AgentRepository(db, principal.access).get(scope.one)
        case "project":
            await ProjectRepository(db, principal.access).get(scope.one)
        case "tenant":
            return
