"""One derivation: read what is remembered, let a profiler derive values, store what is still valid.

Nothing waits for a model while a transaction is open. A value is stored only if its memories are as
they were read, under the lock of the profile; a value that the user wrote stays.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, time
from functools import partial
from hashlib import sha256
from typing import Any, Final

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.identity.agents.config import profile_slots
from app.identity.agents.errors import InvalidConfigError
from app.identity.agents.repository import AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Access, Principal
from app.identity.usage.ledger import ModelLedger
from app.identity.usage.paid_answers import AnswerPurpose
from app.identity.usage.quota import Exhausted
from app.identity.usage.repository import AnswerRepository
from app.identity.users.repository import UserRepository
from app.language.llm.profiler import (
    CurrentValue,
    Derivation,
    DerivedValue,
    Profiler,
    ProfileRequest,
    Slot,
    SlotValue,
    newest_day,
)
from app.language.text.normal_forms import normalise
from app.language.text.uploads import scrub_upload_mentions
from app.memory.memories.gate import Gate
from app.memory.memories.refreshes import Owner
from app.memory.memories.repository import MemoryRepository
from app.memory.profiles.repository import ProfileRepository
from app.memory.profiles.slots import ATTRIBUTES, DECISIONS, HISTORY, PROJECT_SLOTS, user_slots
from app.memory.profiles.value_changes import (
    ValueAuthor,
    ValueChange,
    ValueRow,
    changes_of,
    decisions_of,
    lasting,
    origins_of,
    removals,
    still_supported,
    with_old_evidence,
    without_repetitions,
)

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class DerivationSnapshot:
    """What a derivation reads, in one transaction.

    Args:
        config: settings of the agent and of the tenant, which may name a profiler.
        origins: of the values that are there, by slot.
        current: those values, but for decisions.
        names: what the user is called, in normal form.
        asked_at: when a model was asked last.
        derived_from: what its answer stood on, as `basis` says it.

    """

    owner: Owner
    slots: Sequence[Slot]
    rows: Sequence[ValueRow]
    config: tuple[Mapping[str, Any], ...]
    now: datetime
    origins: Mapping[str, str] = field(default_factory=dict)
    current: Sequence[CurrentValue] = ()
    names: frozenset[str] = frozenset()
    asked_at: datetime | None = None
    derived_from: str | None = None

    @property
    def versions(self) -> dict[str, int]:
        return {row.known.memory_id: row.version for row in self.rows}

    def is_derived(self, profiler: Profiler) -> bool:
        """Whether the values that are there were derived from just this."""
        return self.derived_from == self.basis(profiler, self.origins)

    def needs_model(self, profiler: Profiler) -> bool:
        """Whether a model would be asked, and for anything else than it has answered."""
        return profiler.model is not None and bool(self.rows) and not self.is_derived(profiler)

    def basis(self, profiler: Profiler, origins: Mapping[str, str]) -> str:
        """A hash of all that an answer depends on, when the profile has values of these origins.

        The month is part of it, because sections are about months: a model counts them from the
        newest statement, so that a user who is silent costs nothing. A model's does not depend on
        names: another name is no reason to pay for the same memories again.
        """
        known = [row.known for row in self.rows]
        asked = profiler.model is not None
        month = newest_day(known, self.now) if asked else self.now.date()
        names = () if asked else (sorted(self.names),)
        return sha256(
            repr(
                (
                    *names,
                    profiler.name,
                    profiler.prompt_version,
                    f"{month:%Y-%m}",
                    self.slots,
                    self.versions,
                    [memory.state(self.now) for memory in known],
                    sorted(origins.items()),
                )
            ).encode()
        ).hexdigest()

    @property
    def purpose(self) -> AnswerPurpose:
        """What a model's answer is kept for."""
        kind, owner_id = self.owner
        return AnswerPurpose(f"profile:{kind}:{owner_id}", **{f"{kind}_id": owner_id})


@dataclass(frozen=True, slots=True)
class DerivationResult:
    """What was changed, and whether everything read was as it had been."""

    slots: Sequence[str]
    up_to_date: bool


class ProfileDerivation:
    """Derives the values of one profile, in three steps: `read`, `derive`, `store`."""

    def __init__(self, ledger: ModelLedger, gate: Gate, now: Callable[[], datetime]) -> None:
        self._ledger = ledger
        self._gate = gate
        self._now = now

    async def read(
        self, db: AsyncSession, principal: Principal, owner: Owner
    ) -> DerivationSnapshot:
        """The memories, slots and settings to derive from.

        Raises:
            UserNotFoundError, ProjectNotFoundError: there is none.
            DisabledError: the user or the home agent is disabled.

        """
        access = Access(principal.tenant_id)
        kind, owner_id = owner
        profiles = ProfileRepository(db, access)
        if kind == "project":
            await ProjectRepository(db, access).get(owner_id)
            config: tuple[Mapping[str, Any], ...] = (principal.config,)
            seen = DerivationSnapshot(
                owner, PROJECT_SLOTS, await profiles.known(owner, None), config, self._now()
            )
            return await _with_profile(profiles, seen)
        user = await UserRepository(db, access).get(owner_id)
        agent = await AgentRepository(db, access).get(user.agent_id)
        refuse_disabled(agent, user)
        try:
            own = profile_slots(agent.config)
        except InvalidConfigError:
            # Stored before it was checked.
            own = []
        config = (agent.config, principal.config)
        rows = await profiles.known(owner, agent.agent_id)
        seen = DerivationSnapshot(owner, user_slots(own), rows, config, self._now())
        seen = await _with_profile(profiles, seen)
        return replace(seen, names=_names_of(user.user_id, user.user_name, seen))

    async def used_up(self, principal: Principal) -> Exhausted | None:
        """The quota that keeps a model from being asked today, or None."""
        return await self._ledger.used_up(principal)

    async def derive(
        self, principal: Principal, seen: DerivationSnapshot, profiler: Profiler
    ) -> list[ValueChange]:
        """The changes that the memories suggest; empty without memories. Stores nothing.

        Raises:
            ModelUnavailableError: the model gave no answer; safe to retry.

        """
        known = [row.known for row in seen.rows]
        if not known:
            # Without memories no model is asked.
            return []
        request = ProfileRequest(
            seen.owner[0], seen.slots, known, seen.now, seen.current, seen.names
        )
        # On one day the same memories are the same question.
        day = datetime.combine(request.now, time())
        shown = [replace(request, now=day, names=frozenset()), sorted(request.names)]
        question = self._ledger.question(
            profiler, seen.purpose, shown, Derivation, profiler.prompt_version
        )
        derivation = await self._ledger.ask(
            principal, profiler, question, partial(profiler.derive, request)
        )
        ended = {memory.memory_id for memory in known if memory.state(seen.now) == "ended"}
        values = [
            replace(value, value=_scrubbed(value.value))
            for value in derivation.values
            if not self._is_refused(value)
            and not (value.slot not in HISTORY and ended.issuperset(value.memory_ids))
        ]
        changes = changes_of(values, seen.slots, profiler.name)
        if profiler.model is not None:
            changes = with_old_evidence(changes, seen.current, seen.versions)
            named = {change.slot for change in changes}
            changes += [ValueChange(slot, None) for slot in derivation.cleared if slot not in named]
            changes = without_repetitions(changes, seen.slots, seen.current)
        if seen.owner[0] == "project":
            decisions, ids = decisions_of(known)
            if decisions:
                # Decisions are quoted from the memories, whichever profiler derives the rest.
                changes.append(ValueChange(DECISIONS, decisions, ids, "rules/2"))
        return changes

    def _is_refused(self, derived: DerivedValue) -> bool:
        """Whether the gate refuses what a model made of memories that it had let in."""
        values = derived.value if isinstance(derived.value, list) else [derived.value]
        return any(self._gate.refuses(str(value)) for value in values)

    async def forget(
        self, db: AsyncSession, principal: Principal, owner: Owner, *, job_id: str
    ) -> None:
        """Remove what stands on memories that are gone, before any profiler is asked; in the
        caller's transaction.
        """
        await MemoryRepository(db, Access(principal.tenant_id)).lock_bucket(*owner)
        profiles = ProfileRepository(db, Access(principal.tenant_id))
        if await profiles.find(owner) is None:
            return
        profile = await profiles.locked(owner)
        present = await profiles.values(profile.profile_id)
        there = await profiles.shown(profile.profile_id)
        kept = {row.slot for row in there}
        gone = [ValueChange(row.slot, None) for row in present if row.slot not in kept]
        author = ValueAuthor("derived", principal.key_id or None, job_id)
        await profiles.write(profile, gone, author)
        await profiles.forget(profile)

    async def store(
        self,
        db: AsyncSession,
        principal: Principal,
        seen: DerivationSnapshot,
        changes: Sequence[ValueChange],
        *,
        profiler: Profiler,
        job_id: str | None,
    ) -> DerivationResult:
        """Store the changes whose memories are unchanged, in the caller's transaction.

        Args:
            profiler: what was asked for them; a model may pass a slot over, rules do not.

        Raises:
            UserNotFoundError, ProjectNotFoundError: it was erased meanwhile.

        """
        access = Access(principal.tenant_id)
        kind, owner_id = seen.owner
        # Saves in this bucket wait; a deletion orders another derivation.
        await MemoryRepository(db, access).lock_bucket(kind, owner_id)
        if kind == "user":
            await UserRepository(db, access).get(owner_id)
        else:
            await ProjectRepository(db, access).get(owner_id)
        profiles = ProfileRepository(db, access)
        profile = await profiles.locked(seen.owner)
        present = await profiles.values(profile.profile_id)
        memory_ids = {memory_id for change in changes for memory_id in change.memory_ids}
        memory_ids |= {memory_id for row in present for memory_id in row.memory_ids}
        now = await profiles.evidence(memory_ids)
        staying = lasting(now, seen.now, seen.asked_at)
        kept, up_to_date = still_supported(changes, seen.versions, now)
        # A slot whose memories changed is derived again; its old value stays if its memories do.
        derived = {change.slot for change in changes}
        gone = removals(present, {change.slot for change in kept}, staying, complete=False)
        if profiler.model is None:
            gone += removals(
                present, {*derived, *(change.slot for change in gone)}, staying, complete=True
            )
        author = ValueAuthor("derived", principal.key_id or None, job_id)
        slots = await profiles.write(profile, [*gone, *kept], author)
        noted: dict[str, Any] = {}
        if profiler.model is None or seen.needs_model(profiler):
            origins = origins_of(await profiles.values(profile.profile_id))
            noted["derived_from"] = seen.basis(profiler, origins)
        if seen.needs_model(profiler):
            noted["model_asked_at"] = seen.now
        latest = max((row.update_time for row in seen.rows), default=None)
        await profiles.note(profile, derived_until=latest, **noted)
        await profiles.forget(profile)
        if profiler.model is not None:
            await AnswerRepository(db, principal.tenant_id).delete(seen.purpose.name)
        log.info("profile_derived", owner=kind, changed=len(slots), up_to_date=up_to_date)
        return DerivationResult(slots, up_to_date)


async def _with_profile(
    profiles: ProfileRepository, seen: DerivationSnapshot
) -> DerivationSnapshot:
    """The snapshot with what stands in the profile now, and which of its memories are new."""
    profile = await profiles.find(seen.owner)
    if profile is None:
        return seen
    present = await profiles.values(profile.profile_id)
    ids = {memory_id for row in present for memory_id in row.memory_ids}
    staying = lasting(await profiles.evidence(ids), seen.now, profile.model_asked_at)
    until = profile.derived_until
    rows = [
        replace(row, known=replace(row.known, new=until is not None and row.update_time > until))
        for row in seen.rows
    ]
    current = [
        CurrentValue(
            row.slot,
            row.value,
            row.memory_ids,
            fixed=row.origin == "user",
            outdated=not staying.issuperset(row.memory_ids),
            written=row.update_time,
        )
        for row in present
        if row.slot != DECISIONS
    ]
    return replace(
        seen,
        rows=rows,
        origins=origins_of(present),
        current=current,
        asked_at=profile.model_asked_at,
        derived_from=profile.derived_from,
    )


_ROLES: Final = frozenset({"assistant", "system", "tool"})
"""Speakers who are nobody's name."""


def _names_of(user_id: str, user_name: str | None, seen: DerivationSnapshot) -> frozenset[str]:
    """What the user is called: by id, by name, and as the only one who is quoted."""
    called = [value.value for value in seen.current if value.slot == f"{ATTRIBUTES}.username"]
    speakers = {row.known.speaker for row in seen.rows}
    alone = speakers - _ROLES if len(speakers) == 1 else ()
    names = [user_id, user_name, *called, *alone]
    return frozenset(normalise(name) for name in names if isinstance(name, str)) - {""}


def _scrubbed(value: SlotValue) -> SlotValue:
    """The value without what tells of uploads, which are gone when it is read."""
    if isinstance(value, str):
        return scrub_upload_mentions(value)
    return [entry for entry in map(scrub_upload_mentions, value) if entry]
