"""Use cases of profiles: read, edit, history, derive now; and rows as the API shows them."""

from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import structlog
from sqlalchemy.ext.asyncio import AsyncSession

from app.conversation.sessions.repository import refuse_disabled
from app.identity.agents.config import ProfileSlot, profile_slots
from app.identity.agents.errors import InvalidConfigError
from app.identity.agents.repository import AgentRepository
from app.identity.projects.policy import WRITING
from app.identity.projects.repository import ProjectRepository
from app.identity.projects.schemas import ReadOnlyMemberError
from app.identity.tenants.access import Access, Principal
from app.identity.users.repository import UserRepository
from app.language.text.offload import read_text
from app.memory.memories.errors import GateRejectedError
from app.memory.memories.gate import Gate
from app.memory.memories.owner import ensure_owner, user_owner
from app.memory.memories.refreshes import (
    PROFILE,
    Owner,
    derive_now,
    derive_soon,
    hasten,
    key_of,
)
from app.memory.profiles.models import Profile, ProfileHistory, ProfileValue
from app.memory.profiles.prompt_lines import RenderedProfile, project_lines, user_lines
from app.memory.profiles.repository import ProfileRepository
from app.memory.profiles.schemas import (
    ProfileChangeRead,
    ProfileContextQuery,
    ProfileContextRead,
    ProfileJob,
    ProjectProfilePatch,
    ProjectProfileRead,
    SlotTooLongError,
    UnknownSlotError,
    UserProfilePatch,
    UserProfileRead,
    ValueRead,
)
from app.memory.profiles.slots import ATTRIBUTES, DECISIONS, INSTRUCTIONS, SECTIONS, SLOTS
from app.memory.profiles.value_changes import ValueAuthor, ValueChange
from app.platform.jobs.repository import JobRepository
from app.platform.values.pagination import Page, PageQuery, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


def user_profile(
    user_id: str, profile: Profile | None, rows: Sequence[ProfileValue]
) -> UserProfileRead:
    """A user's profile as shown; empty where there is none."""
    groups = _grouped(rows)
    slots: dict[str, dict[str, ValueRead]] = {}
    for name, value in groups.get(SLOTS, {}).items():
        topic, _, sub_topic = name.partition(".")
        slots.setdefault(topic, {})[sub_topic] = value
    return UserProfileRead(
        user_id=user_id,
        attributes=groups.get(ATTRIBUTES, {}),
        sections=groups.get(SECTIONS, {}),
        slots=slots,
        instructions=None if profile is None else profile.instructions,
        **_of(profile),
    )


def project_profile(
    project_id: str, profile: Profile | None, rows: Sequence[ProfileValue]
) -> ProjectProfileRead:
    """A project's profile as shown; empty where there is none."""
    groups = _grouped(rows)
    return ProjectProfileRead(
        project_id=project_id,
        attributes=groups.get(ATTRIBUTES, {}),
        key_decisions=groups.get(DECISIONS, {}).get(""),
        **_of(profile),
    )


def _grouped(rows: Sequence[ProfileValue]) -> dict[str, dict[str, ValueRead]]:
    groups: dict[str, dict[str, ValueRead]] = {}
    for row in rows:
        group, _, name = row.slot.partition(".")
        groups.setdefault(group, {})[name] = ValueRead.model_validate(row)
    return groups


def _of(profile: Profile | None) -> dict[str, Any]:
    if profile is None:
        return {"version": 0}
    names = ("version", "derived_until", "create_time", "update_time")
    return {name: getattr(profile, name) for name in names}


log = structlog.get_logger()


class ProfileService:
    """Profiles of users and projects, as far as a caller may see and edit them."""

    def __init__(self, work: Work, gate: Gate, *, auto_create: bool) -> None:
        self._work = work
        self._gate = gate
        self._auto_create = auto_create

    async def of_user(self, principal: Principal, user_id: str) -> UserProfileRead:
        """A user's profile; empty when nothing is known.

        Raises:
            UserNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await UserRepository(db, principal.access).get(user_id)
            shown = await _user_profile(db, principal.access, user_id)
        await hasten(self._work, principal, PROFILE, key_of(("user", user_id)))
        return shown

    async def of_project(self, principal: Principal, project_id: str) -> ProjectProfileRead:
        """A project's profile; empty when nothing is known.

        Raises:
            ProjectNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            await ProjectRepository(db, principal.access).get(project_id)
            shown = await _project_profile(db, principal.access, project_id)
        await hasten(self._work, principal, PROFILE, key_of(("project", project_id)))
        return shown

    async def write_user(
        self,
        principal: Principal,
        user_id: str,
        body: UserProfilePatch,
        *,
        expected: int | None,
        whole: bool,
    ) -> UserProfileRead:
        """The profile after an edit by the caller; the user is made on first use.

        The same values again change nothing.

        Args:
            whole: slots that are not named go back to jobs, as those named with null do.

        Raises:
            UserNotFoundError: there is none for this caller, and none may be made.
            IdTakenError: the id belongs to a user whom this key may not see.
            VersionConflictError: the profile has another version than `expected`.
            UnknownSlotError, SlotTooLongError: of a slot of the home agent.
            GateRejectedError: a value must not be kept.
            DisabledError, MemoryPausedError, MemoryDisabledError: writing is switched off.

        """
        self._work.refuse_disabled()
        changes = _user_changes(body)
        await self._judge(changes)
        async with self._work.write(principal) as unit:
            users = UserRepository(unit.db, principal.access)
            if await users.find(user_id) is None:
                owner = user_owner(principal, user_id)
                await ensure_owner(unit.db, principal, owner, create=self._auto_create)
            user = await users.get(user_id)
            refuse_disabled(None, user)
            # A caller may edit a profile without seeing the home agent.
            agent = await AgentRepository(unit.db, Access(principal.tenant_id)).get(user.agent_id)
            _check_slots(changes, agent.config)
            await self._write(unit.db, principal, ("user", user_id), changes, expected, whole=whole)
            return await _user_profile(unit.db, principal.access, user_id)

    async def write_project(
        self,
        principal: Principal,
        project_id: str,
        body: ProjectProfilePatch,
        *,
        expected: int | None,
        whole: bool,
    ) -> ProjectProfileRead:
        """A project's profile after an edit by the caller; see `write_user`.

        Raises:
            ProjectNotFoundError: there is none for this caller.
            VersionConflictError: the profile has another version than `expected`.
            ReadOnlyMemberError: the caller is a viewer.
            GateRejectedError: a value must not be kept.
            MemoryDisabledError: writing is switched off.

        """
        self._work.refuse_disabled()
        changes = _named(ATTRIBUTES, body.attributes.model_dump(exclude_unset=True))
        if DECISIONS in body.model_fields_set:
            decisions = body.model_dump(mode="json")[DECISIONS]
            # Null and an empty list both give the slot back to jobs.
            changes.append(ValueChange(DECISIONS, decisions or None))
        await self._judge(changes)
        async with self._work.write(principal) as unit:
            await _writable(unit.db, principal, project_id)
            owner: Owner = ("project", project_id)
            await self._write(unit.db, principal, owner, changes, expected, whole=whole)
            return await _project_profile(unit.db, principal.access, project_id)

    async def _judge(self, changes: Sequence[ValueChange]) -> None:
        """Refuse what must not be kept: every context of the user or the project has it.

        Raises:
            GateRejectedError: with a reason for each rule that a value breaks.

        """
        texts = [str(change.value) for change in changes if change.value is not None]
        judged = partial(self._gate.check_kept, extracted=False)
        found = [await read_text(len(text), judged, text) for text in texts]
        reasons = {reason.code: asdict(reason) for each in found for reason in each}
        if reasons:
            raise GateRejectedError([*reasons.values()])

    async def _write(
        self,
        db: AsyncSession,
        principal: Principal,
        owner: Owner,
        changes: Sequence[ValueChange],
        expected: int | None,
        *,
        whole: bool,
    ) -> None:
        profiles = ProfileRepository(db, principal.access)
        profile = await profiles.locked(owner, expected=expected)
        changes = list(changes)
        if whole:
            named = {change.slot for change in changes}
            rows = await profiles.values(profile.profile_id)
            changes += [
                ValueChange(row.slot, None)
                for row in rows
                if row.origin == "user" and row.slot not in named
            ]
            if profile.instructions is not None and INSTRUCTIONS not in named:
                changes.append(ValueChange(INSTRUCTIONS, None))
        written = await profiles.write(profile, changes, ValueAuthor("user", principal.key_id))
        given_back = {change.slot for change in changes if change.value is None}
        if given_back & set(written) - {INSTRUCTIONS}:
            order = derive_soon(owner, creator=principal.key_id, changed=True)
            await JobRepository(db, principal.tenant_id).schedule(order)
        log.info("profile_written", owner=owner[0], changed=len(written))

    async def history(
        self, principal: Principal, owner: Owner, query: PageQuery
    ) -> Page[ProfileChangeRead]:
        """A page of changes of values, newest first; empty without a profile.

        Values of memories that are gone are shown as null.

        Raises:
            UserNotFoundError, ProjectNotFoundError: there is none for this caller.

        """
        start = decode_time(query.cursor, "profile_history")
        kind, owner_id = owner
        async with self._work.read(principal) as db:
            if kind == "user":
                await UserRepository(db, principal.access).get(owner_id)
            else:
                await ProjectRepository(db, principal.access).get(owner_id)
            profiles = ProfileRepository(db, principal.access)
            profile = await profiles.find(owner)
            rows: Sequence[ProfileHistory] = []
            gone: set[str] = set()
            if profile is not None:
                rows = await profiles.history(profile.profile_id, start=start, limit=query.limit)
                # A job removes it from the history; until then it is not shown.
                gone = await profiles.gone(profile.profile_id)
        # A project's values may be derived from what was said to other agents.
        veiled = kind == "project" and principal.access.agent_id is not None
        return page(
            "profile_history",
            rows,
            query.limit,
            show=lambda row: _change(row, veiled=veiled or row.slot in gone),
            place=lambda row: (row.create_time, row.history_id),
        )

    async def derive(
        self, principal: Principal, owner: Owner, *, key: IdempotencyKey | None = None
    ) -> ProfileJob:
        """The job of a derivation ordered now; it joins a pending one. Safe to retry with `key`.

        Raises:
            UserNotFoundError, ProjectNotFoundError: there is none for this caller.
            ReadOnlyMemberError: the caller is a viewer of the project.
            DisabledError, MemoryDisabledError: writing is switched off.

        """
        self._work.refuse_disabled()
        kind, owner_id = owner
        async with self._work.write(principal, key) as unit:
            if kind == "user":
                refuse_disabled(None, await UserRepository(unit.db, principal.access).get(owner_id))
            else:
                await _writable(unit.db, principal, owner_id)
            order = derive_now(owner, creator=principal.key_id)
            scheduled = await JobRepository(unit.db, principal.tenant_id).schedule(order)
            answer = ProfileJob.model_validate(scheduled)
            user_id = owner_id if kind == "user" else None
            return unit.answer(answer, 202, user_id=user_id)

    async def for_agent(
        self, principal: Principal, agent_id: str, query: ProfileContextQuery
    ) -> ProfileContextRead:
        """Profiles as this agent may know them, and as text for its prompt.

        Raises:
            AgentNotFoundError, UserNotFoundError, ProjectNotFoundError: there is none for this
                caller; the user must be a member of the project.

        """
        async with self._work.read(principal) as db:
            # The user is checked first: a user's key may see any agent.
            user = await UserRepository(db, principal.access).get(query.user_id)
            await AgentRepository(db, principal.access).get(agent_id)
            owner: Owner = ("user", user.user_id)
            found, rows = await _shown(db, principal.access, owner, agent_id)
            shown = user_profile(user.user_id, found, rows)
            lines = user_lines(_rendered(rows), shown.instructions)
            project = None
            if query.project_id is not None:
                member = Access(principal.tenant_id, principal.access.agent_id, user.user_id)
                await ProjectRepository(db, member).get(query.project_id)
                owner = ("project", query.project_id)
                found, rows = await _shown(db, principal.access, owner, agent_id)
                project = project_profile(query.project_id, found, rows)
                lines += project_lines(_rendered(rows))
        text = "\n".join(line.text for line in lines)
        return ProfileContextRead(text=text, user=shown, project=project)

    async def text(self, principal: Principal, user_id: str) -> str:
        """A user's profile as lines for a prompt, escaped; empty when nothing is known.

        Raises:
            UserNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            user = await UserRepository(db, principal.access).get(user_id)
            owner: Owner = ("user", user.user_id)
            found, rows = await _shown(db, principal.access, owner, principal.access.agent_id)
        shown = user_profile(user.user_id, found, rows)
        return "\n".join(line.text for line in user_lines(_rendered(rows), shown.instructions))


async def _user_profile(db: AsyncSession, access: Access, user_id: str) -> UserProfileRead:
    return user_profile(user_id, *await _shown(db, access, ("user", user_id)))


async def _project_profile(db: AsyncSession, access: Access, project_id: str) -> ProjectProfileRead:
    return project_profile(project_id, *await _shown(db, access, ("project", project_id)))


async def _shown(
    db: AsyncSession, access: Access, owner: Owner, agent_id: str | None = None
) -> tuple[Profile | None, Sequence[ProfileValue]]:
    profiles = ProfileRepository(db, access)
    profile = await profiles.find(owner)
    return profile, [] if profile is None else await profiles.shown(profile.profile_id, agent_id)


def _rendered(rows: Sequence[ProfileValue]) -> dict[str, RenderedProfile]:
    return {row.slot: RenderedProfile(row.value, row.memory_ids) for row in rows}


async def _writable(db: AsyncSession, principal: Principal, project_id: str) -> None:
    """Check that the caller may edit a project.

    Raises:
        ProjectNotFoundError: there is none for this caller.
        ReadOnlyMemberError: the caller is a viewer.

    """
    projects = ProjectRepository(db, principal.access)
    await projects.get(project_id)
    user_id = principal.access.user_id
    if user_id is not None and await projects.membership(project_id) not in WRITING:
        raise ReadOnlyMemberError(project_id, user_id)


def _named(group: str, values: dict[str, Any]) -> list[ValueChange]:
    return [ValueChange(f"{group}.{name}", value) for name, value in values.items()]


def _user_changes(body: UserProfilePatch) -> list[ValueChange]:
    changes = _named(ATTRIBUTES, body.attributes.model_dump(exclude_unset=True))
    changes += _named(SECTIONS, body.sections.model_dump(exclude_unset=True))
    changes += [
        ValueChange(f"{SLOTS}.{topic}.{sub_topic}", value)
        for topic, values in body.slots.items()
        for sub_topic, value in values.items()
    ]
    if INSTRUCTIONS in body.model_fields_set:
        changes.append(ValueChange(INSTRUCTIONS, body.instructions))
    return changes


def _check_slots(changes: Sequence[ValueChange], config: dict[str, Any]) -> None:
    """Check the caller's slots; a value may be removed even from a slot that no agent names.

    Raises:
        UnknownSlotError, SlotTooLongError: of a slot of the home agent.

    """
    try:
        own: dict[str, ProfileSlot] = {slot.name: slot for slot in profile_slots(config)}
    except InvalidConfigError:
        own = {}
    slots = [
        change
        for change in changes
        if change.slot.startswith(f"{SLOTS}.") and change.value is not None
    ]
    unknown = [change.slot for change in slots if change.slot not in own]
    if unknown:
        raise UnknownSlotError(unknown, sorted(own))
    for change in slots:
        if len(change.value) > own[change.slot].max_chars:
            raise SlotTooLongError(change.slot, own[change.slot].max_chars)


def _change(row: ProfileHistory, *, veiled: bool) -> ProfileChangeRead:
    shown = ProfileChangeRead.model_validate(row)
    if veiled:
        after = shown.after if row.origin == "user" else None
        return shown.model_copy(update={"before": None, "after": after})
    return shown
