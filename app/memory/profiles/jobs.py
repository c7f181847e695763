"""The handler of jobs `profile`, ordered by changes of memories, and the choice of the profiler."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from app.errors import DisabledError
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.repository import TenantRepository
from app.language.llm.errors import UnknownModelError
from app.language.llm.model_catalogue import ProfilerCatalogue
from app.language.llm.profiler import Profiler
from app.memory.memories.refreshes import REQUESTED, derive_soon, owner_of
from app.memory.profiles.derivation import DerivationResult, DerivationSnapshot, ProfileDerivation
from app.platform.jobs.failures import DeferJobError
from app.platform.jobs.orders import CHANGED, ClaimedJob
from app.platform.jobs.repository import JobRepository
from app.platform.work.unit import Work

HANDLE = "profile_model"
"""Its name in the settings of an agent or a tenant."""


def chosen(catalogue: ProfilerCatalogue, configs: Sequence[Mapping[str, Any]]) -> Profiler:
    """The profiler of the first of `configs` that names one, else the default.

    Raises:
        UnknownModelError: this deployment does not have it.

    """
    handles = (config.get(HANDLE) for config in configs)
    handle = next((handle for handle in handles if isinstance(handle, str) and handle), None)
    return catalogue.default if handle is None else catalogue.resolve(handle)


DISABLED: Final = timedelta(hours=1)
SWITCHED_OFF: Final = timedelta(minutes=5)
"""How long a job waits before it checks again whether it may run."""


class ProfileJobs:
    """Derives profiles after changes of memories."""

    def __init__(
        self,
        work: Work,
        derivation: ProfileDerivation,
        profilers: ProfilerCatalogue,
        now: Callable[[], datetime],
        interval: timedelta,
    ) -> None:
        """Ask a model for one profile no more often than each `interval`, but on request."""
        self._interval = interval
        self._work = work
        self._derivation = derivation
        self._profilers = profilers
        self._now = now

    async def derive(self, job: ClaimedJob) -> None:
        """Derive one profile, and finish the job. Safe to repeat.

        Raises:
            UserNotFoundError, ProjectNotFoundError: erased meanwhile; nothing is pending then.
            DeferJobError: a model was asked less than an interval ago, the day's quota is used
                up, or writing is switched off.
            ModelUnavailableError: nothing was changed; try again.
            LeaseLostError: another worker has done it, or the job was erased with its user.

        """
        if not self._work.enabled:
            raise DeferJobError(self._now() + SWITCHED_OFF, "memory_disabled")
        owner = owner_of(job.key)
        async with self._work.read(job) as db:
            tenant = await TenantRepository(db, job.tenant_id).get()
            if tenant.status == 0:
                raise DeferJobError(self._now() + DISABLED, "tenant_disabled")
            principal = Principal(
                Access(job.tenant_id), job.creator or "", frozenset({"write"}), tenant.config
            )
            try:
                seen = await self._derivation.read(db, principal, owner)
            except DisabledError as error:
                raise DeferJobError(self._now() + DISABLED, "disabled") from error
        profiler = self._profiler(seen)
        if seen.is_derived(profiler) and not job.signals & {CHANGED, REQUESTED}:
            await self._finish_unchanged(job, profiler, seen)
            return
        unchanged = profiler.model is not None and not seen.needs_model(profiler)
        if seen.needs_model(profiler):
            await self._wait(job, principal, seen)
        changes = [] if unchanged else await self._derivation.derive(principal, seen, profiler)
        async with self._work.write(job, while_disabled=True) as unit:
            stored = await self._derivation.store(
                unit.db,
                principal,
                seen,
                changes,
                profiler=profiler,
                job_id=job.job_id,
            )
            jobs = JobRepository(unit.db, job.tenant_id)
            if not stored.up_to_date:
                await jobs.schedule(derive_soon(owner, creator=job.creator, changed=True))
            await jobs.finish(job, _result(profiler, seen, stored, unchanged=unchanged))

    async def _finish_unchanged(
        self, job: ClaimedJob, profiler: Profiler, seen: DerivationSnapshot
    ) -> None:
        """End a run that would derive what there is: its memories were read by the run before."""
        result = _result(profiler, seen, DerivationResult((), up_to_date=True), unchanged=True)
        async with self._work.write(job, while_disabled=True) as unit:
            await JobRepository(unit.db, job.tenant_id).finish(job, result)

    def _profiler(self, seen: DerivationSnapshot) -> Profiler:
        try:
            return chosen(self._profilers, seen.config)
        except UnknownModelError:
            # Its endpoint was removed from the deployment.
            return self._profilers.default

    async def _wait(self, job: ClaimedJob, principal: Principal, seen: DerivationSnapshot) -> None:
        """Let a model be asked only when it may.

        Raises:
            DeferJobError: it was asked less than an interval ago and nobody has asked for the
                profile since, or it may not be asked today.

        """
        due = self._now()
        if seen.asked_at is not None and REQUESTED not in job.signals:
            due = seen.asked_at + self._interval
        if due > self._now():
            # The words of deleted memories do not wait.
            async with self._work.write(job, while_disabled=True) as unit:
                await self._derivation.forget(unit.db, principal, seen.owner, job_id=job.job_id)
            raise DeferJobError(due, "profile_interval")
        used_up = await self._derivation.used_up(principal)
        if used_up is not None:
            raise DeferJobError(used_up.until, used_up.reason)


def _result(
    profiler: Profiler, seen: DerivationSnapshot, stored: DerivationResult, *, unchanged: bool
) -> dict[str, Any]:
    """What is shown with a job."""
    return {
        "deriver": profiler.name,
        "memories": len(seen.rows),
        "changed": list(stored.slots),
        "unchanged": unchanged,
        "settled": stored.up_to_date,
    }
