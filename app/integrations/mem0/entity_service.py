"""Users, agents, apps and runs of mem0's clients, and the events of their adds."""

from collections.abc import Sequence
from typing import Final

from app.conversation.sessions.service import SessionService
from app.governance.operations.schemas import JobQuery, JobRead
from app.governance.operations.service import JobService
from app.governance.privacy.service import ErasureService
from app.identity.agents.service import AgentService
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.tenants.schemas import ErasureQuery
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.change_service import Mem0ChangeService
from app.integrations.mem0.errors import (
    InvalidMem0RequestError,
    Mem0EntityNotFoundError,
    Mem0EventNotFoundError,
)
from app.integrations.mem0.filters import text_of, translated
from app.integrations.mem0.repository import ListedMemories
from app.integrations.mem0.schemas import EntitiesQuery, EventQuery, own_id
from app.memory.extraction.inference_request import INFER
from app.memory.memories.deletion_service import KIND as DELETE
from app.memory.memories.errors import DecisionNotFoundError
from app.memory.memories.list_repository import DecisionRepository
from app.memory.memories.search_schemas import DecisionRead
from app.platform.jobs.failures import JobNotFoundError
from app.platform.values.fields import composed
from app.platform.work.unit import Work

KINDS: Final = ("app", "run", "agent", "user")
EVENT_RESULTS: Final = 100
"""Most results that an event shows."""


class Mem0EntityService:
    """Lists and deletes entities, and shows events."""

    def __init__(
        self,
        work: Work,
        changes: Mem0ChangeService,
        erasure: ErasureService,
        agents: AgentService,
        sessions: SessionService,
        jobs: JobService,
    ) -> None:
        self._work = work
        self._changes = changes
        self._erasure = erasure
        self._agents = agents
        self._sessions = sessions
        self._jobs = jobs

    async def entities(
        self, principal: Principal, query: EntitiesQuery, kinds: Sequence[str] = KINDS
    ) -> tuple[list[Shown], dict[str, int]]:
        """A page of the entities that have memories, and how many there are of each kind."""
        async with self._work.read(principal) as db:
            rows, counts = await ListedMemories(db, principal.access).entities(
                kinds, page=query.page, size=query.page_size
            )
        shown = [
            {
                "id": row.name,
                "name": row.name,
                "type": row.kind,
                "owner": principal.tenant_id,
                "created_at": text_of(row.first),
                "updated_at": text_of(row.last),
            }
            for row in rows
        ]
        return shown, {kind: counts.get(kind, 0) for kind in KINDS}

    async def delete(self, principal: Principal, kind: str, name: str) -> Shown:
        """Delete an entity: the memories of an app, a run or an agent, and everything of a user.

        Of a user nothing stays, for good: messages, graph and profile go with the memories.

        Raises:
            InvalidMem0RequestError: there is no such kind.
            InsufficientScopeError: a user or an agent takes an admin's key.
            Mem0EntityNotFoundError, UserNotFoundError, AgentNotFoundError,
            SessionNotFoundError: there is none for this caller.

        """
        if kind not in KINDS:
            raise InvalidMem0RequestError("The type is user, agent, app or run.")
        if kind in {"user", "agent"} and not principal.may("admin"):
            raise InsufficientScopeError("admin", acting=principal.acting)
        name = composed(name)
        if kind == "user":
            await self._erasure.delete(principal, "user", name, ErasureQuery(confirm=True))
        else:
            done = await self._changes.delete_chosen(
                principal, translated({f"{kind}_id": {"eq": name}})
            )
            if not done.get("deleted", 1):
                await self._refuse_unknown(principal, kind, name)
        return {"message": "Entity deleted successfully!"}

    async def _refuse_unknown(self, principal: Principal, kind: str, name: str) -> None:
        """Whether it is there, though it has no memories.

        Raises:
            Mem0EntityNotFoundError, AgentNotFoundError, SessionNotFoundError: it is not.

        """
        if kind == "agent":
            await self._agents.get(principal, name)
        elif kind == "run":
            await self._sessions.get(principal, name)
        else:
            raise Mem0EntityNotFoundError(kind)

    async def event(self, principal: Principal, event_id: str) -> Shown:
        """An add, or a delete that takes long: how far it is, and what became of it.

        Raises:
            InvalidMem0RequestError: the id is no UUID.
            Mem0EventNotFoundError: there is none for this caller.

        """
        job_id = own_id("job", event_id)
        try:
            job = await self._jobs.get(principal, job_id)
        except JobNotFoundError:
            return await self._event_at_once(principal, own_id("gat", event_id))
        if job.kind not in {INFER, DELETE}:
            raise Mem0EventNotFoundError
        return answers.event(job, await self._decisions(principal, job))

    async def _decisions(self, principal: Principal, job: JobRead) -> list[DecisionRead]:
        async with self._work.read(principal) as db:
            rows = await DecisionRepository(db, principal.access).decisions(
                user_id=None, verdict=None, code=None, job_id=job.job_id, start=None,
                limit=EVENT_RESULTS,
            )  # fmt: skip
        return [DecisionRead.model_validate(row) for row in rows[:EVENT_RESULTS]]

    async def _event_at_once(self, principal: Principal, decision_id: str) -> Shown:
        """An add that was answered at once. Raises Mem0EventNotFoundError."""
        async with self._work.read(principal) as db:
            decisions = DecisionRepository(db, principal.access)
            try:
                row = await decisions.get(decision_id)
            except DecisionNotFoundError:
                raise Mem0EventNotFoundError from None
            return answers.event_at_once(DecisionRead.model_validate(row))

    async def events(
        self, principal: Principal, query: EventQuery
    ) -> tuple[list[Shown], str | None]:
        """A page of adds in the background, newest first, without their results."""
        found = await self._jobs.list_jobs(
            principal, JobQuery(kind=INFER, limit=query.page_size, cursor=query.cursor)
        )
        shown = [answers.event(job, []) for job in found.items]
        for event in shown:
            del event["results"]
        return shown, found.next_cursor
