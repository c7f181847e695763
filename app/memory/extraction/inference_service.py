"""`POST /v1/memories`: messages of a request become memories, inside the request or as a job.

With `infer` false they are saved as they stand (`memories/save_service.py`). With `infer` true the
same stages run as for a session; the messages themselves are not kept.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy.ext.asyncio import AsyncSession

from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.identity.usage.quota import QuotaExhaustedError
from app.identity.users.service import for_default_user
from app.language.llm.extractor import Malformed
from app.language.llm.model_catalogue import ModelCatalogue
from app.memory.extraction.drafts import Draft
from app.memory.extraction.evidence import WritableScopes
from app.memory.extraction.inference_request import (
    InferenceRules,
    caller_of,
    infer_order,
    inference_run,
    refuse_unusable,
    said_messages,
    unremembered,
    warnings_of,
)
from app.memory.extraction.pipeline import Pipeline
from app.memory.extraction.run_policy import model_for, principal_of, writable_project
from app.memory.extraction.run_state import RunRequest, RunResult
from app.memory.memories.conflict_repository import shown_memories
from app.memory.memories.errors import (
    DuplicateMemoryError,
    GateRejectedError,
    MemoryNotFoundError,
)
from app.memory.memories.gate import GateReason, verdict_row
from app.memory.memories.models import Memory
from app.memory.memories.owner import MemoryOwner, ensure_owner, requested_owner
from app.memory.memories.record_repository import RecordRepository
from app.memory.memories.repository import MemoryRepository
from app.memory.memories.save_service import SaveService, check_owner
from app.memory.memories.schemas import (
    AddAccepted,
    MemoryAdded,
    MemoryCreate,
    MemoryRead,
    MemoryValidated,
    Outcome,
    Reason,
)
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work, answering

REPLACING = {"UPDATE", "SUPERSEDE", "MERGE"}
"""Events that say what they took the place of."""


class InferenceService:
    """Remembers what the messages of requests say."""

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
            ImpossibleTimeError: a message cannot have been said then.
            QuotaExhaustedError: the tenant's day is used up; nothing was read.
            ModelUnavailableError, EmbeddingUnavailableError: nothing was stored; try again.
            UnknownModelError: the agent names a model that this deployment does not have.
            and what `SaveService.add` raises.

        """
        body = for_default_user(principal, body)
        refuse_unusable(body, self._now())
        if not body.infer:
            return await self._saving.add(principal, body, key=key)
        self._work.refuse_disabled()
        owner = requested_owner(principal, body)
        scopes, config = await self._ensure(principal, body, owner, key)
        model = model_for(self._models, config, principal.config)
        if model.extractor.model is not None:
            await self._check_quota(principal)
        answers: list[tuple[MemoryAdded, int]] = []
        request = inference_run(
            principal, body, scopes, config, rules=self._rules, said_at=self._now(), job=None
        )

        async def finish(db: AsyncSession, result: RunResult) -> None:
            async with answering(db, key) as unit:
                answer = await outcomes(db, principal.access, result)
                silent = unremembered(said_messages(body, self._now()), request, result.drafts)
                answer.results += await _recorded(db, request, result, silent)
                answer.warnings = warnings_of(body, self._now(), self._rules.tags)
                status = 201 if {"ADD", "SUPERSEDE", "MERGE"} & result.events.keys() else 200
                unit.answer(answer, status, user_id=owner.user_id)
            answers.append((answer, status))

        await self._pipeline.run(request, model, finish)
        return answers[-1]

    async def validate(self, principal: Principal, body: MemoryCreate) -> MemoryValidated:
        """What `add` would do, one outcome per statement or proposal; nothing is stored.

        Only what model calls cost is counted.

        Raises:
            What `add` raises, without what is an outcome here.

        """
        refuse_unusable(body, self._now())
        if not body.infer:
            return await self._saving.validate(principal, body)
        self._work.refuse_disabled()
        body = for_default_user(principal, body)
        owner = requested_owner(principal, body)
        async with self._work.read(principal) as db:
            await check_owner(db, principal, owner, create=self._rules.auto_create)
            scopes, config = await self._scopes(db, principal, body, owner)
        model = model_for(self._models, config, principal.config)
        if model.extractor.model is not None:
            if not principal.may("write"):
                # A model's answer is paid for.
                raise InsufficientScopeError("write", acting=principal.acting)
            await self._check_quota(principal)
        request = inference_run(
            principal, body, scopes, config, rules=self._rules, said_at=self._now(), job=None
        )
        drafts, malformed = await self._pipeline.preview(replace(request, preview=True), model)
        results = [*(_outcome(draft, {}) for draft in drafts), *_refused(malformed, len(drafts))]
        said = said_messages(body, self._now())
        results += _silent(unremembered(said, request, drafts), len(results))
        return MemoryValidated(
            valid=all(outcome.event != "REJECT" for outcome in results),
            results=results,
            warnings=warnings_of(body, self._now(), self._rules.tags),
        )

    async def order(
        self, principal: Principal, body: MemoryCreate, *, key: IdempotencyKey | None = None
    ) -> AddAccepted:
        """Put the same into the queue, whole and durable, and answer at once.

        Raises:
            MemoryDisabledError, MemoryPausedError, DisabledError: memory is switched off.
            UserRequiredError, ScopeRequiresError, InsufficientScopeError: of the owner.

        """
        self._work.refuse_disabled()
        body = for_default_user(principal, body)
        refuse_unusable(body, self._now())
        owner = requested_owner(principal, body)
        async with self._work.write(principal, key) as unit:
            await ensure_owner(unit.db, principal, owner, create=self._rules.auto_create)
            scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(
                infer_order(principal, body, owner, self._now())
            )
            assert scheduled is not None  # noqa: S101 (the order is no postponement)
            answer = AddAccepted.model_validate(scheduled)
            answer.warnings = warnings_of(body, self._now(), self._rules.tags)
            return unit.answer(answer, 202, user_id=owner.user_id)

    async def work_off(self, job: ClaimedJob) -> dict[str, Any] | None:
        """The handler of jobs `infer`.

        Raises:
            DeferJobError: the tenant's day is used up.
            and what `add` raises.

        """
        body = MemoryCreate.model_validate(job.payload["body"])
        async with self._work.read(job) as db:
            principal = caller_of(await principal_of(db, job), job.payload)
        if not body.infer:
            return {"events": await self._save(principal, body)}
        owner = requested_owner(principal, body)
        scopes, config = await self._ensure(principal, body, owner, None)
        model = model_for(self._models, config, principal.config)
        if model.extractor.model is not None:
            async with self._work.read(job) as db:
                await self._rules.limits.check_quota(db, principal)

        request = inference_run(
            principal, body, scopes, config, rules=self._rules, said_at=job.create_time, job=job
        )

        async def finish(db: AsyncSession, result: RunResult) -> None:
            silent = unremembered(said_messages(body, job.create_time), request, result.drafts)
            await _recorded(db, request, result, silent)
            await JobRepository(db, job.tenant_id).finish(job, result.summary())

        await self._pipeline.run(request, model, finish)
        return None

    async def _save(self, principal: Principal, body: MemoryCreate) -> dict[str, int]:
        """How many texts ended as what; a refusal is an answer, and has its verdict."""
        try:
            saved, _ = await self._saving.add(principal, body)
        except (GateRejectedError, DuplicateMemoryError):
            return {"REJECT": 1}
        events = [outcome.event for outcome in saved.results]
        return {event: events.count(event) for event in sorted(set(events))}

    async def _ensure(
        self,
        principal: Principal,
        body: MemoryCreate,
        owner: MemoryOwner,
        key: IdempotencyKey | None,
    ) -> tuple[WritableScopes, Mapping[str, Any]]:
        """Make sure that everybody is there and willing, and say where memories may go."""
        await self._work.refuse_repeated(principal, key)
        async with self._work.write(principal, while_disabled=True) as unit:
            await ensure_owner(unit.db, principal, owner, create=self._rules.auto_create)
            return await self._scopes(unit.db, principal, body, owner)

    async def _scopes(
        self, db: AsyncSession, principal: Principal, body: MemoryCreate, owner: MemoryOwner
    ) -> tuple[WritableScopes, Mapping[str, Any]]:
        """Where memories of the request may go, and the settings of its agent."""
        project_id = owner.project_id
        if owner.scope != "project":
            project_id = await writable_project(
                db, principal.access, owner.project_id, owner.user_id
            )
        agents = AgentRepository(db, principal.access)
        agent = await agents.find(owner.agent_id) if owner.agent_id else None
        scopes = WritableScopes(
            owner.user_id, owner.agent_id, owner.session_id, project_id, scope=body.scope
        )
        return scopes, {} if agent is None else agent.config

    async def _check_quota(self, principal: Principal) -> None:
        """Whether the tenant's day has calls and tokens left.

        Raises:
            QuotaExhaustedError: it has none; nothing was read.

        """
        async with self._work.read(principal) as db:
            try:
                await self._rules.limits.check_quota(db, principal)
            except DeferJobError as error:
                raise QuotaExhaustedError(error.until - self._now()) from error


async def _recorded(
    db: AsyncSession, request: RunRequest, result: RunResult, silent: Mapping[int, GateReason]
) -> list[Outcome]:
    """One outcome for each message that led to nothing, with a verdict in the log."""
    rows = [
        verdict_row(
            request.principal,
            owner=asdict(request.context.scopes.usual),
            content="",
            source="ai",
            accepted=False,
            reasons=[reason],
            event="NONE",
            job_id=request.job_id,
            extraction_id=result.extraction_id,
        )
        for reason in silent.values()
    ]
    if rows:
        await RecordRepository(db, request.principal.access).decide(rows)
    shown = _silent(silent, len(result.drafts) + len(result.malformed))
    for outcome, row in zip(shown, rows, strict=True):
        outcome.decision_id = row["decision_id"]
    return shown


def _silent(silent: Mapping[int, GateReason], before: int) -> list[Outcome]:
    """Outcomes of messages that led to nothing, behind so many others."""
    return [
        Outcome(
            index=number,
            event="NONE",
            reasons=[Reason(code=reason.code, detail=reason.detail, figures=dict(reason.figures))],
        )
        for number, reason in enumerate(silent.values(), before)
    ]


async def outcomes(db: AsyncSession, access: Access, result: RunResult) -> MemoryAdded:
    """One outcome per proposal, with the memory that holds it, where the caller may see it."""
    memories = MemoryRepository(db, access)
    rows: list[Memory] = []
    for memory_id in {draft.memory_id for draft in result.drafts} - {None}:
        try:
            rows.append(await memories.get(str(memory_id)))
        except MemoryNotFoundError:
            continue
    shown = {each.memory_id: each for each in await shown_memories(db, access, rows)}
    results = [_outcome(draft, shown) for draft in result.drafts]
    results += _refused(result.malformed, len(results))
    return MemoryAdded(
        results=results, extractor=result.extractor, extraction_id=result.extraction_id
    )


def _refused(malformed: Sequence[Malformed], before: int) -> list[Outcome]:
    """Outcomes of entries that are no proposals, behind so many others."""
    return [
        Outcome(
            index=number,
            event="REJECT",
            reasons=[Reason(code="malformed", detail=entry.detail, figures={"index": entry.index})],
        )
        for number, entry in enumerate(malformed, before)
    ]


def _outcome(draft: Draft, shown: dict[str, MemoryRead]) -> Outcome:
    nearest = draft.neighbours[0].similarity if draft.neighbours else None
    return Outcome(
        index=draft.index,
        event=draft.event or "ADD",
        memory_id=draft.memory_id,
        memory=shown.get(draft.memory_id or ""),
        content=None if draft.sensitive else draft.proposed.content,
        previous=draft.previous,
        replaced=[target for target in draft.target_ids if target != draft.memory_id]
        if draft.event in REPLACING
        else [],
        similarity=nearest,
        reason=draft.reason,
        reasons=[
            Reason(code=reason.code, detail=reason.detail, figures=dict(reason.figures))
            for reason in draft.reasons
        ],
        decision_id=draft.decision_id,
    )
