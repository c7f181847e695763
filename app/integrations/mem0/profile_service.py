"""mem0's profiles of users: read, derived on request, and given fields of an application's own."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final

from app.governance.operations.schemas import JobQuery, JobRead
from app.governance.operations.service import JobService
from app.identity.agents.config import NAME, profile_slots
from app.identity.agents.errors import AgentNotFoundError
from app.identity.agents.repository import DEFAULT_AGENT_ID
from app.identity.agents.schemas import AgentPatch, AgentRead
from app.identity.agents.service import AgentService
from app.identity.tenants.access import Principal
from app.identity.users.schemas import UserQuery
from app.identity.users.service import UserService
from app.integrations.mem0.errors import (
    InvalidMem0RequestError,
    NoCounterpartError,
    ProfileJobNotFoundError,
)
from app.integrations.mem0.profile_schemas import (
    MOST_SAMPLED,
    SAMPLED,
    TOPIC,
    JobStatus,
    Mem0Profile,
    Mem0ProfileJob,
    Mem0ProfileJobCreate,
    Mem0ProfileJobRead,
    Mem0ProfileProgress,
    Mem0ProfileSettings,
    Mem0ProfileSettingsRead,
    ProfileStatus,
    content_of,
    schema_of,
    slots_of,
)
from app.integrations.mem0.schemas import own_id, shown_id
from app.language.llm.model_catalogue import ProfilerCatalogue
from app.memory.memories.refreshes import PROFILE
from app.memory.profiles.jobs import chosen
from app.memory.profiles.schemas import ProfileJob
from app.memory.profiles.service import ProfileService
from app.platform.jobs.failures import JobNotFoundError
from app.platform.work.idempotency import IdempotencyKey, ReplayedAnswer
from app.platform.work.unit import Work

JOBS_PATH: Final = "/v2/profiles/jobs/"
_SAMPLE: Final = "sample."
_BETWEEN: Final = "."
"""Between the ids of a sample's jobs, which are together the id of the sample."""

_LIVE: Final = ("pending", "running")


class Mem0ProfileService:
    """Profiles as mem0's clients read and order them."""

    def __init__(
        self,
        work: Work,
        profiles: ProfileService,
        users: UserService,
        jobs: JobService,
    ) -> None:
        self._work = work
        self._profiles = profiles
        self._users = users
        self._jobs = jobs

    async def get(self, principal: Principal, user_id: str) -> Mem0Profile:
        """What is known of a user; `status` says why nothing is.

        Raises:
            UserNotFoundError: there is none for this caller.

        """
        profile = await self._profiles.of_user(principal, user_id)
        content = content_of(profile)
        status: ProfileStatus = "succeeded"
        error = None
        if not content:
            query = JobQuery(kind=PROFILE, user_id=user_id, limit=1)
            status, error = _without_content((await self._jobs.list_jobs(principal, query)).items)
        return Mem0Profile(
            profile=content,
            status=status,
            entity_id=user_id,
            updated_at=profile.update_time,
            generation_count=profile.version,
            error=error,
        )

    async def generate(
        self, principal: Principal, body: Mem0ProfileJobCreate, *, key: IdempotencyKey | None
    ) -> Mem0ProfileJob:
        """Order the derivation of one user's profile, or of some users'.

        Safe to repeat with `key`, which answers as before, and without: a derivation that is
        still pending is joined.

        Raises:
            UserNotFoundError: there is none for this caller.
            NoCounterpartError: there is no user to sample.
            DisabledError, MemoryDisabledError: writing is switched off.

        """
        try:
            await self._work.refuse_repeated(principal, key)
            user_ids = await self._chosen(principal, body)
            ordered = [
                await self._profiles.derive(principal, ("user", user_id)) for user_id in user_ids
            ]
            answer = _ordered(body, ordered)
            async with self._work.write(principal, key) as unit:
                unit.answer(answer, 202, user_id=body.entity_id)
        except ReplayedAnswer as replayed:
            answer = Mem0ProfileJob.model_validate_json(replayed.body)
            answer = answer.model_copy(update={"replayed": True})
        if body.operation == "sample":
            # Not kept with the answer, where no erasure would find the ids of several users.
            jobs = await self._read(principal, answer.job_id)
            users = sorted({job.user_id for job in jobs if job.user_id is not None})
            answer = answer.model_copy(update={"entity_ids": users})
        return answer

    async def job(self, principal: Principal, job_id: str) -> Mem0ProfileJobRead:
        """How far a derivation or a sample is.

        Raises:
            ProfileJobNotFoundError: there is none for this caller.

        """
        jobs = await self._read(principal, job_id)
        ended = Counter(job.status for job in jobs if job.status not in _LIVE)
        return Mem0ProfileJobRead(
            job=Mem0ProfileProgress(
                id=job_id,
                operation="sample" if job_id.startswith(_SAMPLE) else "trigger",
                status=_together(jobs),
                total=len(jobs),
                completed=ended.total(),
                succeeded=ended["succeeded"],
                failed=ended["dead"],
                skipped=ended["cancelled"],
            )
        )

    async def _chosen(self, principal: Principal, body: Mem0ProfileJobCreate) -> list[str]:
        """Ids of the users whose profiles are ordered; of a sample the newest.

        Raises:
            NoCounterpartError: there is no user to sample.

        """
        if body.entity_id is not None:
            return [body.entity_id]
        newest = UserQuery(limit=body.limit or SAMPLED, status="enabled")
        users = await self._users.list_users(principal, newest)
        if not users.items:
            raise NoCounterpartError("A sample without users", "Add memories of a user first.")
        return [user.user_id for user in users.items]

    async def _read(self, principal: Principal, job_id: str) -> list[JobRead]:
        """The jobs of an order.

        Raises:
            ProfileJobNotFoundError: one is none of a profile, or not for this caller.

        """
        job_ids = job_id.removeprefix(_SAMPLE).split(_BETWEEN)
        if len(job_ids) > MOST_SAMPLED:
            raise ProfileJobNotFoundError
        try:
            jobs = [await self._jobs.get(principal, own_id("job", job_id)) for job_id in job_ids]
        except (JobNotFoundError, InvalidMem0RequestError):
            raise ProfileJobNotFoundError from None
        if any(job.kind != PROFILE for job in jobs):
            raise ProfileJobNotFoundError
        return jobs


class Mem0ProfileSettingsService:
    """The schema of profiles: slots of the agent that users have unless they name one."""

    def __init__(self, agents: AgentService, profilers: ProfilerCatalogue) -> None:
        self._agents = agents
        self._profilers = profilers

    async def get(self, principal: Principal) -> Mem0ProfileSettingsRead:
        """The settings as they are; `capabilities` says whether a schema would be filled."""
        agent = await self._agent(principal)
        return self._shown(principal, {} if agent is None else agent.config)

    async def update(
        self, principal: Principal, body: Mem0ProfileSettings
    ) -> Mem0ProfileSettingsRead:
        """The settings after the change; what is not named stays. Safe to repeat.

        Raises:
            NoCounterpartError: profiles cannot be switched off; there are no instructions of
                their own; the schema asks for more than texts, or no model is there to fill it.
            AgentNotFoundError: nobody has a user of the default agent yet.
            KeyRestrictedError: the key is a user's or another agent's.
            VersionConflictError: somebody changes the agent at the same time.

        """
        given = body.entities.user
        if body.enabled is False:
            raise NoCounterpartError(
                "Switching profiles off", "They are derived of whatever is remembered."
            )
        if given.custom_instructions is not None:
            raise NoCounterpartError(
                "`custom_instructions` of profiles",
                "Describe the properties of the schema, or instruct what is extracted "
                "(`custom_instructions` of the project).",
            )
        if "schema_" not in given.model_fields_set:
            return await self.get(principal)
        slots = [] if given.schema_ is None else slots_of(given.schema_)
        agent = await self._agent(principal)
        if agent is None:
            raise AgentNotFoundError(DEFAULT_AGENT_ID)
        if slots and not self._fills(principal, agent.config):
            raise NoCounterpartError(
                "A schema without a model",
                "Rules fill the fields that every profile has. Set MEMORY_EXTRACTION_MODEL.",
            )
        kept = [topic for topic in agent.config.get(NAME) or [] if topic.get("topic") != TOPIC]
        config = agent.config | {NAME: [*kept, *slots]}
        patch = AgentPatch(config=config)
        changed = await self._agents.patch(
            principal, DEFAULT_AGENT_ID, patch, expected=agent.version
        )
        return self._shown(principal, changed.config)

    async def _agent(self, principal: Principal) -> AgentRead | None:
        try:
            return await self._agents.get(principal, DEFAULT_AGENT_ID)
        except AgentNotFoundError:
            return None

    def _fills(self, principal: Principal, config: dict[str, Any]) -> bool:
        return chosen(self._profilers, [config, principal.config]).model is not None

    def _shown(self, principal: Principal, config: dict[str, Any]) -> Mem0ProfileSettingsRead:
        user = {"schema": schema_of(profile_slots(config)), "custom_instructions": None}
        return Mem0ProfileSettingsRead(
            entities={"user": user}, capabilities={"schema": self._fills(principal, config)}
        )


def _ordered(body: Mem0ProfileJobCreate, jobs: Sequence[ProfileJob]) -> Mem0ProfileJob:
    job_id = _BETWEEN.join(shown_id(job.job_id) for job in jobs)
    if body.operation == "sample":
        job_id = _SAMPLE + job_id
    return Mem0ProfileJob(
        job_id=job_id,
        status="running" if any(job.status == "running" for job in jobs) else "pending",
        status_url=f"{JOBS_PATH}{job_id}/",
        operation=body.operation,
        entity_count_reserved=len(jobs),
        sampled=len(jobs) if body.operation == "sample" else None,
    )


def _without_content(jobs: Sequence[JobRead]) -> tuple[ProfileStatus, str | None]:
    """The status of a profile without content, by its last job, and why that failed."""
    for job in jobs:
        if job.status in _LIVE:
            return "pending", None
        if job.status == "dead":
            return "failed", job.error_code
    return "insufficient_data", None


def _together(jobs: Sequence[JobRead]) -> JobStatus:
    if any(job.status == "running" for job in jobs):
        return "running"
    if any(job.status == "pending" for job in jobs):
        return "pending"
    return "failed" if any(job.status == "dead" for job in jobs) else "succeeded"
