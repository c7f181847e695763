"""`POST /v1/memories`: messages of a request become memories, inside the request or as a job.

With `infer` false they are saved as they stand (`memories/saving.py`). With `infer` true the
same steps run as for a session; the messages themselves are not kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.messages.capture import Said, readable, signals_of
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Access, Principal
from app.identity.usage.errors import QuotaExhaustedError
from app.language.llm.extractor import ExtractionRequest
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.answers import outcomes
from app.memory.extraction.evidence import EvidenceContext, WritableScopes
from app.memory.extraction.inference_order import infer
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.run_policy import (
    RunLimits,
    instructions,
    model_for,
    principal_of,
    writable_project,
)
from app.memory.extraction.run_state import RunRequest, RunResult
from app.memory.extraction.session_reader import turn_of
from app.memory.graph.triples import draws_graph
from app.memory.memories.errors import DuplicateMemoryError, GateRejectedError, NotInferredError
from app.memory.memories.owner import MemoryOwner, ensure_owner, requested_owner
from app.memory.memories.save_service import SaveService
from app.memory.memories.schemas import JobAccepted, MemoryAdded, MemoryCreate, SaidMessage
from app.platform.jobs.errors import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work, answering

BASE = ("memory_type", "tier", "visibility", "external_id", "expires_at")
"""Fields of a request that every memory drawn from it gets, when they are given."""

OF_ONE_STATEMENT = (
    "attribute", "confidence", "source", "source_id", "source_error", "evidence", "valid_from",
    "valid_to", "on_duplicate",
)  # fmt: skip
"""Fields that say something of one statement as it stands: reading decides about them."""


@dataclass(frozen=True, slots=True)
class InferenceRules:
    """What the deployment says about reading requests."""

    auto_create: bool
    tags: Sequence[str]
    signal_window: int
    limits: RunLimits


class InferringService:
    def __init__(
        self,
        work: Work,
        saving: SaveService,
        pipeline: Pipeline,
        models: ModelCatalogue,
        rules: InferenceRules,
        now: Callable[[], datetime],
    ) -> None:
        self._work = work
        self._saving = saving
        self._pipeline = pipeline
        self._models = models
        self._rules = rules
        self._now = now

    async def add(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> tuple[MemoryAdded, int]:
        """Remember what messages say, or with `infer` false the messages themselves.

        Saying the same again adds nothing. A refused proposal is an outcome like the others,
        with every rule it broke.

        Returns:
            The outcomes, and the HTTP status that fits them.

        Raises:
            NotInferredError: a field is given that only `infer` false has a use for.
            QuotaExhaustedError: the tenant's day is used up; nothing was read.
            ModelUnavailableError, EmbeddingUnavailableError: nothing was stored; try again.
            UnknownModelError: the agent names a model that this deployment does not have.
            and what `SaveService.add` raises.

        """
        if not body.infer:
            return await self._saving.add(principal, body, key=key)
        self._work.refuse_disabled()
        _refuse_unusable(body)
        place = requested_owner(principal, body)
        scopes, config = await self._settle(principal, body, place, key)
        model = model_for(self._models, config, principal.config)
        if model.extractor.model is not None:
            await self._check_quota(principal)
        answers: list[tuple[MemoryAdded, int]] = []

        async def finish(db: AsyncSession, result: RunResult) -> None:
            async with answering(db, key) as unit:
                answer = await outcomes(db, principal.access, result)
                status = 201 if {"ADD", "SUPERSEDE", "MERGE"} & result.events.keys() else 200
                unit.answer(answer, status, user_id=place.user_id)
            answers.append((answer, status))

        request = self._request(principal, body, scopes, config, job=None)
        await self._pipeline.run(request, model, finish)
        return answers[-1]

    async def order(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> JobAccepted:
        """Put the same into the queue, whole and durable, and answer at once.

        Raises:
            MemoryDisabledError, MemoryPausedError, DisabledError: memory is switched off.
            UserRequiredError, ScopeRequiresError, InsufficientScopeError: of the place.

        """
        self._work.refuse_disabled()
        if body.infer:
            _refuse_unusable(body)
        place = requested_owner(principal, body)
        async with self._work.write(principal, key) as unit:
            await ensure_owner(unit.db, principal, place, create=self._rules.auto_create)
            told = body.model_dump(mode="json", exclude_unset=True)
            scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(
                infer(principal, told, place)
            )
            assert scheduled is not None  # noqa: S101 (the order is no postponement)
            answer = JobAccepted.model_validate(scheduled)
            return unit.answer(answer, 202, user_id=place.user_id)

    async def work_off(self, job: ClaimedJob) -> dict[str, Any] | None:
        """The handler of jobs `infer`.

        Raises:
            DeferJobError: the tenant's day is used up.
            and what `add` raises.

        """
        body = MemoryCreate.model_validate(job.payload["body"])
        async with self._work.read(job) as db:
            principal = _caller(await principal_of(db, job), job.payload)
        if not body.infer:
            return {"events": await self._save(principal, body)}
        place = requested_owner(principal, body)
        scopes, config = await self._settle(principal, body, place, None)
        model = model_for(self._models, config, principal.config)
        if model.extractor.model is not None:
            async with self._work.write(job, while_disabled=True) as unit:
                await self._rules.limits.check_quota(unit.db, principal)

        async def finish(db: AsyncSession, result: RunResult) -> None:
            await JobRepository(db, job.tenant_id).finish(job, result.summary())

        await self._pipeline.run(
            self._request(principal, body, scopes, config, job=job), model, finish
        )
        return None

    async def _save(self, principal: Principal, body: MemoryCreate) -> dict[str, int]:
        """How many texts ended as what; a refusal is an answer, and has its verdict."""
        try:
            saved, _ = await self._saving.add(principal, body)
        except (GateRejectedError, DuplicateMemoryError):
            return {"REJECT": 1}
        events = [one.event for one in saved.results]
        return {event: events.count(event) for event in sorted(set(events))}

    async def _settle(
        self,
        principal: Principal,
        body: MemoryCreate,
        place: MemoryOwner,
        key: IdempotencyKey | None,
    ) -> tuple[WritableScopes, Mapping[str, Any]]:
        """Make sure that everybody is there and willing, and say where memories may go."""
        await self._work.refuse_repeated(principal, key)
        async with self._work.write(principal, while_disabled=True) as unit:
            await ensure_owner(unit.db, principal, place, create=self._rules.auto_create)
            project_id = place.project_id
            if place.scope != "project":
                project_id = await writable_project(
                    unit.db, principal.access, place.project_id, place.user_id
                )
            agents = AgentRepository(unit.db, principal.access)
            agent = await agents.find(place.agent_id) if place.agent_id else None
        scopes = WritableScopes(
            place.user_id, place.agent_id, place.session_id, project_id, scope=body.scope
        )
        return scopes, {} if agent is None else agent.config

    async def _check_quota(self, principal: Principal) -> None:
        async with self._work.read(principal) as db:
            try:
                await self._rules.limits.check_quota(db, principal)
            except DeferJobError as error:
                raise QuotaExhaustedError(error.until - self._now()) from error

    def _request(
        self,
        principal: Principal,
        body: MemoryCreate,
        scopes: WritableScopes,
        config: Mapping[str, Any],
        *,
        job: ClaimedJob | None,
    ) -> RunRequest:
        said_at = self._now() if job is None else job.create_time
        found = readable(_said(body, said_at), self._rules.tags)
        turns = [turn_of(one) for one in found.turns]
        given = body.model_dump(include=set(BASE) & body.model_fields_set)
        return RunRequest(
            principal=principal,
            context=EvidenceContext(turns, scopes, list(found.said_back), stored=False),
            reading=ExtractionRequest(
                turns,
                signals_of(found.turns, self._rules.signal_window),
                instructions(body.prompt, config),
                scopes.names,
            ),
            trigger="infer",
            agent_id=scopes.agent_id,
            job=job,
            base=given | {"metadata_": dict(body.metadata)},
            graph=draws_graph(config, principal.config) and body.visibility != "owner_only",
        )


def _refuse_unusable(body: MemoryCreate) -> None:
    """Raises NotInferredError for a field that would be passed over in silence."""
    given = [name for name in OF_ONE_STATEMENT if name in body.model_fields_set]
    if given:
        raise NotInferredError(given)


def _said(body: MemoryCreate, at: datetime) -> list[Said]:
    """The messages of a request as capture reads them, named by their place."""
    messages = body.messages
    if isinstance(messages, str):
        messages = SaidMessage(content=messages)
    batch = [messages] if isinstance(messages, SaidMessage) else messages
    return [
        Said(
            message_id=f"m{number}",
            role=one.role,
            content=one.content,
            content_parts=None,
            tool_calls=None,
            metadata=one.metadata,
            name=one.name,
            sequence_no=number,
            create_time=at,
        )
        for number, one in enumerate(batch, 1)
    ]


def _caller(tenant: Principal, payload: Mapping[str, Any]) -> Principal:
    """The one who ordered, restricted and entitled as when the order was placed."""
    return Principal(
        Access(tenant.tenant_id, payload.get("agent_id"), payload.get("user_id")),
        tenant.key_id,
        frozenset(payload.get("scopes", ["write"])),
        tenant.config,
        tenant.embedding_models,
    )
