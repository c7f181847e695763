"""`POST /v1/files/{file_id}/extract`: memories from a file's passages, only on request.

The steps are those of conversations: the gate, evidence, reconciling. The memories name the file as
their source and the passages as their evidence.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from hashlib import sha256
from typing import Any, Final

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Principal
from app.identity.usage.repository import AnswerRepository
from app.language.llm.extractor import ConversationTurn, ExtractionRequest
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.evidence import EvidenceContext, WritableScopes
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.run_policy import (
    SWITCHED_OFF,
    RunLimits,
    instructions,
    model_for,
    principal_of,
)
from app.memory.extraction.run_state import RunRequest, RunResult, job_purpose
from app.memory.graph.statements import draws_graph
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob, Order
from app.platform.jobs.repository import JobRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.errors import FileNotReadyError
from app.prompting.documents.file_repository import FileRepository
from app.prompting.documents.models import File, Passage
from app.prompting.documents.passage_repository import PassageRepository
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import ExtractOrdered, FileExtract
from app.prompting.documents.service import owner_of, refuse_outsiders

EXTRACT_FILE: Final = "extract_file"
AT_ONCE: Final = 40
"""Passages of a run, some 10,000 tokens."""

DOCUMENT: Final = (
    "These messages are passages of a document that the user has asked to remember. Report what "
    "it states as type knowledge, each entry naming what it is about; nobody speaks of themselves "
    "in it, so nothing in it is about the user."
)


class FileExtractService:
    def __init__(
        self,
        work: Work,
        pipeline: Pipeline,
        models: ModelCatalogue,
        limits: RunLimits,
        now: Callable[[], datetime],
    ) -> None:
        self._now = now
        self._work = work
        self._pipeline = pipeline
        self._models = models
        self._limits = limits

    async def order(
        self,
        principal: Principal,
        file_id: str,
        body: FileExtract,
        *,
        key: IdempotencyKey | None = None,
    ) -> ExtractOrdered:
        """Order the job that extracts memories; an order that waits already is returned again.

        Raises:
            FileNotFoundInFolderError: there is none for this caller.
            ScopeRequiresError: the id of the memories' owner is missing.
            FileNotReadyError: it has no passages, or does not have them yet.
            UnknownModelError: the agent names a model that this deployment does not have.
            UserNotFoundError, ProjectNotFoundError, AgentNotFoundError, InsufficientScopeError,
            ReadOnlyMemberError, DisabledError: as in `refuse_outsiders`, for the owner of the
                memories.

        """
        async with self._work.write(principal, key) as unit:
            file = (await FileRepository(unit.db, principal.access).get(None, file_id)).file
            if file.state != "completed":
                raise FileNotReadyError(file_id, file.state)
            folders = FolderRepository(unit.db, principal.access)
            folder = await folders.get(file.folder_id)
            scope, scope_id = folder.scope, folder.scope_id
            if body.scope is not None or body.user_id or body.project_id or body.agent_id:
                scope = body.scope or folder.scope
                scope_id = owner_of(
                    principal,
                    scope,
                    user_id=body.user_id or folder.user_id,
                    project_id=body.project_id or folder.project_id,
                    agent_id=body.agent_id or folder.agent_id,
                )
            for owner in {(folder.scope, folder.scope_id), (scope, scope_id)}:
                await folders.hold_owner(*owner)
            await refuse_outsiders(unit.db, principal, scope, scope_id)
            ids = {f"{scope}_id": scope_id}
            config = await _config(unit.db, principal, ids.get("agent_id"))
            model = model_for(self._models, config, principal.config)
            order = Order(
                kind=EXTRACT_FILE,
                key=_key(file_id, scope, scope_id, body.prompt),
                agent_id=ids.get("agent_id"),
                user_id=ids.get("user_id"),
                creator=principal.key_id,
                payload={"file_id": file_id, "scope": scope, "scope_id": scope_id}
                | ({"prompt": body.prompt} if body.prompt else {}),
            )
            scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(order)
            assert scheduled is not None  # noqa: S101 (the order is no postponement)
            answer = ExtractOrdered(
                job_id=scheduled.job_id,
                file_id=file_id,
                passages=file.passage_count,
                extractor=model.extractor.name,
            )
            return unit.answer(answer, 202, user_id=ids.get("user_id"))

    async def work_off(self, job: ClaimedJob) -> dict[str, Any] | None:
        """The handler of jobs `extract_file`; a repeated run adds no memory twice.

        Raises:
            FileNotFoundInFolderError: the file was deleted meanwhile.
            DeferJobError: memory is switched off, the tenant is disabled, or its daily quota is
                used up.
            ModelUnavailableError, EmbeddingUnavailableError: try again.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        payload = job.payload
        scope, scope_id = payload["scope"], payload["scope_id"]
        ids = {f"{scope}_id": scope_id}
        async with self._work.read(job) as db:
            principal = await principal_of(db, job)
            file = (await FileRepository(db, principal.access).get(None, payload["file_id"])).file
            config = await _config(db, principal, ids.get("agent_id"))
        model = model_for(self._models, config, principal.config)
        scopes = WritableScopes(
            user_id=ids.get("user_id"),
            agent_id=ids.get("agent_id"),
            project_id=ids.get("project_id"),
            scope=scope,
        )
        events: dict[str, int] = {}
        after: int | None = None
        while passages := await self._passages(principal, file, after):
            if model.extractor.model is not None:
                async with self._work.read(job) as db:
                    await self._limits.check_quota(db, principal)
            request = _request(principal, file, scopes, passages, job, config)
            result = await self._pipeline.run(request, model, _nothing_more)
            for event, count in result.events.items():
                events[event] = events.get(event, 0) + count
            after = passages[-1].ordinal
        async with self._work.write(job, while_disabled=True) as unit:
            # Only now: a repeated job begins with the first passage.
            await AnswerRepository(unit.db, job.tenant_id).delete(job_purpose(job.job_id))
        return {"file_id": file.file_id, "extractor": model.extractor.name, "events": events}

    async def _passages(
        self, principal: Principal, file: File, after: int | None
    ) -> Sequence[Passage]:
        async with self._work.read(principal) as db:
            await FileRepository(db, principal.access).get(None, file.file_id)
            rows = await PassageRepository(db, principal.access).list_of_file(
                file.file_id, start=after, limit=AT_ONCE
            )
        return rows[:AT_ONCE]


def _key(file_id: str, scope: str, scope_id: str, prompt: str | None) -> str:
    """The key under which equal orders are one job; other instructions are a different job."""
    whole = f"{file_id}/{scope}/{scope_id}"
    return f"{whole}/{sha256(prompt.encode()).hexdigest()[:16]}" if prompt else whole


def _request(
    principal: Principal,
    file: File,
    scopes: WritableScopes,
    passages: Sequence[Passage],
    job: ClaimedJob,
    config: Mapping[str, Any],
) -> RunRequest:
    turns = [
        ConversationTurn(
            passage.passage_id, "user", passage.content, passage.create_time, file.file_name
        )
        for passage in passages
    ]
    guidance = instructions(job.payload.get("prompt"), config, principal.config)
    return RunRequest(
        principal=principal,
        context=EvidenceContext(turns, scopes),
        reading=ExtractionRequest(
            turns,
            prompt=f"{DOCUMENT} {guidance}" if guidance else DOCUMENT,
            scopes=scopes.names,
        ),
        trigger="explicit",
        agent_id=scopes.agent_id,
        job=job,
        base={
            "source": "knowledge_base",
            "source_id": file.file_id,
            "said_at": None,
            "metadata_": {"file_name": file.file_name},
        },
        graph=draws_graph(config, principal.config),
        hold=partial(_held, principal, file.file_id),
        ends_work=False,
    )


async def _held(principal: Principal, file_id: str, db: AsyncSession) -> None:
    """Keep a file until the run is stored: a later deletion then marks its memories.

    It is locked after its owner and before any memory, in the order of the deletion of a file.
    """
    files, folders = FileRepository(db, principal.access), FolderRepository(db, principal.access)
    folder = await folders.get((await files.get(None, file_id)).file.folder_id)
    await folders.hold_owner(folder.scope, folder.scope_id)
    await files.get(None, file_id, lock=True)


async def _config(
    db: AsyncSession, principal: Principal, agent_id: str | None
) -> Mapping[str, Any]:
    agent = await AgentRepository(db, principal.access).find(agent_id) if agent_id else None
    return {} if agent is None else agent.config


async def _nothing_more(_db: AsyncSession, _result: RunResult) -> None:
    """A run finishes nothing itself: the job ends with the last run, and each may be repeated."""
