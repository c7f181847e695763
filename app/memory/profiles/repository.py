"""SQL for profiles, their values and history, and for the memories that values are derived from."""

from collections.abc import Collection, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any, Final

from sqlalchemy import (
    ColumnElement,
    Date,
    Text,
    and_,
    case,
    cast,
    false,
    func,
    not_,
    or_,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, insert
from sqlalchemy.ext.asyncio import AsyncSession

from app.errors import VersionConflictError
from app.identity.tenants.access import Access
from app.language.llm.profiler import ProfileMemory
from app.memory.memories.models import Memory
from app.memory.memories.refreshes import Owner
from app.memory.memories.repository import current, existing
from app.memory.profiles.models import Profile, ProfileHistory, ProfileValue
from app.memory.profiles.slots import INSTRUCTIONS
from app.memory.profiles.value_changes import Evidence, ValueAuthor, ValueChange, ValueRow
from app.platform.database.base import after, new_id

MOST_KNOWN: Final = 400
"""Memories that a job reads: those that give an attribute, then the newest."""

ENDED_DAYS: Final = 365
"""For so long a profile may tell of what has ended."""

# An entry holds the value before, too. So all entries of a slot are emptied with one of its
# memories: when it is deleted, and when it becomes its author's alone in a project.
_GONE: Final = """
    SELECT DISTINCT line.slot
    FROM profile_history AS line, unnest(line.memory_ids) AS source(memory_id)
    WHERE line.tenant_id = :tenant_id AND line.profile_id = :profile_id
        AND NOT EXISTS (
            SELECT 1 FROM memories
            WHERE memories.tenant_id = :tenant_id AND memories.memory_id = source.memory_id
                AND memories.status <> 'deleted'
                AND NOT (memories.scope = 'project' AND memories.visibility = 'owner_only')
        )
"""

_FORGET: Final = text(
    f"""
    WITH gone AS ({_GONE})
    UPDATE profile_history AS line
    SET before = NULL, after = CASE WHEN line.origin = 'user' THEN line.after END
    FROM gone
    WHERE line.tenant_id = :tenant_id AND line.profile_id = :profile_id
        AND line.slot = gone.slot AND (line.before IS NOT NULL OR line.origin = 'derived')
    """
)


class ProfileRepository:
    """Profiles of one tenant; access to their owner is checked before. Never begins or ends a
    transaction.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access
        self._tenant_id = access.tenant_id

    def _of(self, owner: Owner) -> ColumnElement[bool]:
        kind, owner_id = owner
        column = Profile.user_id if kind == "user" else Profile.project_id
        return and_(Profile.tenant_id == self._tenant_id, column == owner_id)

    async def find(self, owner: Owner) -> Profile | None:
        return await self._db.scalar(select(Profile).where(self._of(owner)))

    async def locked(self, owner: Owner, *, expected: int | None = None) -> Profile:
        """The profile, locked; made on first use as version 0.

        Raises:
            VersionConflictError: it is of another version than `expected`.

        """
        kind, owner_id = owner
        # Two first uses at once: one inserts, the other finds.
        await self._db.execute(
            insert(Profile)
            .values(
                tenant_id=self._tenant_id,
                profile_id=new_id("pfl"),
                user_id=owner_id if kind == "user" else None,
                project_id=owner_id if kind == "project" else None,
                version=0,
            )
            .on_conflict_do_nothing()
        )
        statement = select(Profile).where(self._of(owner)).with_for_update()
        profile = (
            await self._db.scalars(statement, execution_options={"populate_existing": True})
        ).one()
        if expected is not None and profile.version != expected:
            raise VersionConflictError(profile.version)
        return profile

    async def values(self, profile_id: str) -> Sequence[ProfileValue]:
        """All values of a profile, in order of their slots."""
        rows = await self._db.scalars(
            select(ProfileValue)
            .where(ProfileValue.tenant_id == self._tenant_id, ProfileValue.profile_id == profile_id)
            .order_by(ProfileValue.slot)
            .execution_options(populate_existing=True)
        )
        return rows.all()

    async def shown(self, profile_id: str, agent_id: str | None = None) -> Sequence[ProfileValue]:
        """Values whose memories the caller may all see, none deleted or its author's alone, and
        not all of them ended since the value was written.

        Args:
            agent_id: only what this agent may know.

        """
        rows = await self.values(profile_id)
        ids = {memory_id for row in rows for memory_id in row.memory_ids}
        seen = await self._seen(ids, agent_id)
        return [
            row
            for row in rows
            if seen.keys() >= set(row.memory_ids)
            and not _is_over(row, [seen[memory_id] for memory_id in row.memory_ids])
        ]

    async def _seen(
        self, memory_ids: Collection[str], agent_id: str | None
    ) -> Mapping[str, datetime | None]:
        """When each of the memories that the caller may see has ended."""
        if not memory_ids:
            return {}
        ended = case((Memory.valid_to <= func.now(), Memory.valid_to))
        rows = await self._db.execute(
            select(Memory.memory_id, ended).where(
                existing(self._access),
                _known_to(agent_id),
                _shared(),
                Memory.memory_id.in_(memory_ids),
            )
        )
        return {row[0]: row[1] for row in rows}

    async def write(
        self, profile: Profile, changes: Sequence[ValueChange], author: ValueAuthor
    ) -> list[str]:
        """Change a locked profile, with a history entry for each change; returns the changed slots.

        A job changes no value that a user wrote, and no instructions.
        """
        present = {row.slot: row for row in await self.values(profile.profile_id)}
        lines = []
        for change in changes:
            row = present.get(change.slot)
            if author.origin == "derived" and (
                change.slot == INSTRUCTIONS or (row is not None and row.origin == "user")
            ):
                continue
            before = _before(profile, change.slot, row)
            if await self._put(profile, change, row, author.origin):
                lines.append((change, before))
        if not lines:
            return []
        profile.version += 1
        await self._db.flush()
        await self._db.refresh(profile)
        self._db.add_all(self._line(profile, change, before, author) for change, before in lines)
        await self._db.flush()
        return [change.slot for change, _ in lines]

    async def _put(
        self, profile: Profile, change: ValueChange, row: ProfileValue | None, origin: str
    ) -> bool:
        """Whether that changed anything."""
        if change.slot == INSTRUCTIONS:
            changed = bool(profile.instructions != change.value)
            profile.instructions = change.value
            return changed
        if change.value is None:
            if row is not None:
                await self._db.delete(row)
            return row is not None
        memory_ids = list(change.memory_ids)
        if row is None:
            self._db.add(
                ProfileValue(
                    tenant_id=self._tenant_id,
                    profile_id=profile.profile_id,
                    slot=change.slot,
                    value=change.value,
                    origin=origin,
                    memory_ids=memory_ids,
                    deriver=change.deriver,
                )
            )
            return True
        wanted = (change.value, origin, memory_ids, change.deriver)
        if (row.value, row.origin, row.memory_ids, row.deriver) == wanted:
            return False
        row.value, row.origin, row.memory_ids, row.deriver = wanted
        return True

    def _line(
        self, profile: Profile, change: ValueChange, before: Any, author: ValueAuthor
    ) -> ProfileHistory:
        return ProfileHistory(
            tenant_id=self._tenant_id,
            history_id=new_id("pfh"),
            profile_id=profile.profile_id,
            slot=change.slot,
            event="REMOVE" if change.value is None else "SET",
            before=before,
            after=change.value,
            origin=author.origin,
            memory_ids=list(change.memory_ids),
            reason=author.reason,
            actor=author.actor,
            job_id=author.job_id,
            version=profile.version,
        )

    async def note(self, profile: Profile, **columns: Any) -> None:
        """Note how a job has derived a profile; this changes no value, and so no version."""
        changed = {name: given for name, given in columns.items() if given is not None}
        if any(getattr(profile, name) != given for name, given in changed.items()):
            await self._db.execute(
                update(Profile)
                .where(
                    Profile.tenant_id == self._tenant_id, Profile.profile_id == profile.profile_id
                )
                .values(**changed)
            )

    async def forget(self, profile: Profile) -> None:
        """Remove values of memories that are gone, or private now, from the history."""
        await self._db.execute(
            _FORGET, {"tenant_id": self._tenant_id, "profile_id": profile.profile_id}
        )

    async def gone(self, profile_id: str) -> set[str]:
        """Slots whose history has values that `forget` will remove."""
        rows = await self._db.scalars(
            text(_GONE), {"tenant_id": self._tenant_id, "profile_id": profile_id}
        )
        return set(rows)

    async def history(
        self, profile_id: str, *, start: tuple[datetime, str] | None, limit: int
    ) -> Sequence[ProfileHistory]:
        """Newest first, one more than `limit` when another page follows."""
        rows = await self._db.scalars(
            after(
                select(ProfileHistory).where(
                    ProfileHistory.tenant_id == self._tenant_id,
                    ProfileHistory.profile_id == profile_id,
                ),
                (ProfileHistory.create_time, ProfileHistory.history_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def known(self, owner: Owner, home: str | None) -> Sequence[ValueRow]:
        """Memories that a profile may tell of, the first MOST_KNOWN.

        Those that count now, will count later, or ended in the last ENDED_DAYS, in this order. Of
        a user those that all agents or the home agent may know; of a project none that is its
        author's alone. Those that give an attribute come first, then the newest.

        Args:
            home: the user's home agent; None for a project.

        """
        kind, owner_id = owner
        since = func.coalesce(Memory.valid_from, Memory.said_at, Memory.create_time)
        due = func.coalesce(Memory.said_at, Memory.create_time) + func.make_interval(
            0, 0, 0, Memory.expected_valid_days
        )
        ended = func.coalesce(Memory.valid_to <= func.now(), false())
        readable = (
            or_(Memory.agent_id.is_(None), Memory.agent_id == home) if kind == "user" else _shared()
        )
        columns: tuple[Any, ...] = (
            Memory.memory_id, Memory.content, Memory.memory_type, Memory.attribute,
            Memory.confidence, since, Memory.speaker, Memory.said_at, Memory.valid_from,
            Memory.valid_to, cast(due, Date), Memory.version, Memory.update_time,
        )  # fmt: skip
        rows = await self._db.execute(
            select(*columns)
            .where(
                existing(Access(self._tenant_id)),
                _tellable(),
                Memory.scope == kind,
                Memory.scope_id == owner_id,
                readable,
            )
            .order_by(
                not_(current()), ended, Memory.attribute.is_(None), since.desc(), Memory.memory_id
            )
            .limit(MOST_KNOWN)
        )
        return [ValueRow(ProfileMemory(*row[:11]), row[11], row[12]) for row in rows]

    async def evidence(self, memory_ids: Collection[str]) -> Mapping[str, Evidence]:
        """Those of the memories that a profile may still tell of, by id."""
        rows = await self._db.execute(
            select(Memory.memory_id, Memory.version, Memory.valid_to).where(
                existing(Access(self._tenant_id)),
                _tellable(),
                _shared(),
                Memory.memory_id == func.any(cast(list(memory_ids), ARRAY(Text))),
            )
        )
        return {row[0]: Evidence(row[1], row[2]) for row in rows}

    async def facts(self, user_id: str, agent_id: str | None, *, limit: int) -> Sequence[Memory]:
        """Memories about a user that the caller may see, the surest first."""
        rows = await self._db.scalars(
            select(Memory)
            .where(
                existing(self._access),
                current(),
                _known_to(agent_id),
                Memory.scope == "user",
                Memory.scope_id == user_id,
            )
            .order_by(Memory.confidence.desc(), Memory.create_time, Memory.memory_id)
            .limit(limit)
        )
        return rows.all()

    async def imported(self, user_id: str, fact_ids: Collection[str]) -> Mapping[str, Memory]:
        """Memories of a user that have these ids, or were imported with them, by that id."""
        rows = await self._db.scalars(
            select(Memory).where(
                existing(self._access),
                Memory.scope == "user",
                Memory.scope_id == user_id,
                or_(Memory.external_id.in_(fact_ids), Memory.memory_id.in_(fact_ids)),
            )
        )
        found: dict[str, Memory] = {}
        for row in rows:
            external_id = row.external_id
            named = external_id is not None and external_id in fact_ids
            found[str(external_id) if named else row.memory_id] = row
        return found


def _known_to(agent_id: str | None) -> ColumnElement[bool]:
    """What this agent may know; everything when none is named."""
    if agent_id is None:
        return true()
    return or_(Memory.agent_id.is_(None), Memory.agent_id == agent_id)


def _before(profile: Profile, slot: str, row: ProfileValue | None) -> Any:
    if slot == INSTRUCTIONS:
        return profile.instructions
    return None if row is None else row.value


def _is_over(row: ProfileValue, ended: Collection[datetime | None]) -> bool:
    """Whether a value tells only of what ended after it was written; `SHOWN` says the same."""
    return bool(ended) and all(time is not None and time > row.update_time for time in ended)


def _tellable() -> ColumnElement[bool]:
    """What counts now, will count later, or ended not long ago."""
    return and_(
        Memory.status == "active",
        or_(Memory.expires_at.is_(None), Memory.expires_at > func.now()),
        or_(Memory.valid_to.is_(None), Memory.valid_to > func.now() - timedelta(days=ENDED_DAYS)),
    )


def _shared() -> ColumnElement[bool]:
    """What is not its author's alone in a project; `SHOWN` and `_GONE` say the same as text."""
    return not_(and_(Memory.scope == "project", Memory.visibility == "owner_only"))


SHOWN = """
SELECT jsonb_build_object('instructions', profile.instructions, 'values', (
    SELECT jsonb_object_agg(
        shown.slot, jsonb_build_object('value', shown.value, 'memory_ids', shown.memory_ids)
    )
    FROM profile_values AS shown
    WHERE shown.tenant_id = {tenant} AND shown.profile_id = profile.profile_id
        AND (
            SELECT count(*) = cardinality(shown.memory_ids) AND coalesce(
                bool_or(source.valid_to IS NULL OR source.valid_to > now()
                    OR source.valid_to <= shown.update_time),
                true
            ) FROM memories AS source
            WHERE source.tenant_id = {tenant} AND source.memory_id = ANY(shown.memory_ids)
                AND source.status <> 'deleted'
                AND (source.agent_id IS NULL OR source.agent_id = {agent})
                AND NOT (source.scope = 'project' AND source.visibility = 'owner_only')
        )
))
FROM profiles AS profile
WHERE profile.tenant_id = {tenant} AND profile.{column} = {owner}
"""
"""`{tenant}`, `{agent}` and `{owner}` are SQL for the values; `{column}` is
`user_id` or `project_id`. Access to the owner is checked before.
"""
