"""The table of users, and its SQL."""

from collections.abc import Collection, Sequence
from datetime import datetime
from typing import Any, Final

from sqlalchemy import (
    CheckConstraint,
    ColumnElement,
    ForeignKeyConstraint,
    Index,
    Select,
    SmallInteger,
    String,
    and_,
    func,
    or_,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB, insert
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Mapped, mapped_column

from app.errors import IdTakenError
from app.identity.tenants.access import Access
from app.identity.users.schemas import UserNotFoundError
from app.platform.database.base import Base, Id, TenantOwned, Timed, after, apply_changes
from app.platform.database.failures import conflicts
from app.platform.values.fields import composed


class User(TenantOwned, Timed, Base):
    """A person or organisation an agent talks to.

    `agent_id` is the home agent; sessions may be held with other agents too.
    """

    __tablename__ = "users"
    __table_args__ = (
        ForeignKeyConstraint(["tenant_id", "agent_id"], ["agents.tenant_id", "agents.agent_id"]),
        CheckConstraint("status IN (0, 1)", name="status"),
        Index("users_idx_agent_id", "tenant_id", "agent_id", "create_time", "user_id"),
        Index("users_idx_agent_status", "tenant_id", "agent_id", "status"),
        Index("users_idx_last_active_time", "tenant_id", "last_active_time"),
        Index("users_idx_create_time", "tenant_id", "create_time", "user_id"),
        Index(
            "users_idx_user_name",
            "tenant_id",
            "user_name",
            postgresql_ops={"user_name": "varchar_pattern_ops"},
        ),
        Index("users_uk_external_id", "tenant_id", "agent_id", "external_id", unique=True),
    )

    user_id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_id: Mapped[str] = mapped_column(Id)
    user_name: Mapped[str | None] = mapped_column(String(255))
    user_type: Mapped[str | None] = mapped_column(String(50))
    external_id: Mapped[str | None] = mapped_column(String(255))
    profile: Mapped[dict[str, Any]] = mapped_column(
        JSONB, server_default=text("'{}'"), default=dict
    )
    status: Mapped[int] = mapped_column(SmallInteger, server_default=text("1"), default=1)
    last_active_time: Mapped[datetime | None]
    version: Mapped[int] = mapped_column(server_default=text("1"), default=1)


_LAST: Final = "\U0010ffff"
"""Sorts behind every other character."""


def _starts_with(prefix: str) -> ColumnElement[bool]:
    """Whether an id or a name does, as ranges of two indexes: LIKE is not leakproof."""
    own = composed(prefix)
    spellings = {prefix, own, own.lower(), own.upper(), own.title()}
    return or_(
        User.user_id.between(own, own + _LAST),
        *(
            and_(
                User.user_name.bool_op("~>=~")(spelling),
                User.user_name.bool_op("~<=~")(spelling + _LAST),
            )
            for spelling in sorted(spellings)
        ),
    )


def visible_user_ids(access: Access) -> Select[str]:
    """Ids of the users a caller may see, for the statements of other packages."""
    statement = select(User.user_id).where(User.tenant_id == access.tenant_id)
    if access.agent_id is not None:
        statement = statement.where(User.agent_id == access.agent_id)
    if access.user_id is not None:
        statement = statement.where(User.user_id == access.user_id)
    return statement


class UserRepository:
    """Users a caller may see. Never begins or ends a transaction.

    A key restricted to an agent sees the users at home with it; a key restricted to a user
    sees that one.
    """

    def __init__(self, db: AsyncSession, access: Access) -> None:
        self._db = db
        self._access = access

    def _visible(self) -> Select[User]:
        statement = select(User).where(User.tenant_id == self._access.tenant_id)
        if self._access.agent_id is not None:
            statement = statement.where(User.agent_id == self._access.agent_id)
        if self._access.user_id is not None:
            statement = statement.where(User.user_id == self._access.user_id)
        return statement

    async def add(self, user: User) -> None:
        """Insert `user` now, so that a taken id is reported here.

        Raises:
            IdTakenError: the tenant has a user of this id.

        """
        if self._access.user_id not in {None, user.user_id}:
            raise UserNotFoundError(user.user_id)
        user.tenant_id = self._access.tenant_id
        self._db.add(user)
        taken = {
            "users_pkey": IdTakenError("user_id", user.user_id),
            "users_uk_external_id": IdTakenError("external_id", user.external_id or ""),
        }
        with conflicts(taken):
            await self._db.flush()
        await self._db.refresh(user)

    async def find(self, user_id: str) -> User | None:
        return await self._db.scalar(self._visible().where(User.user_id == user_id))

    async def get(self, user_id: str, *, lock: bool = False) -> User:
        """The user.

        Raises:
            UserNotFoundError: there is none for this caller.

        """
        statement = self._visible().where(User.user_id == user_id)
        user = await self._db.scalar(statement.with_for_update() if lock else statement)
        if user is None:
            raise UserNotFoundError(user_id)
        return user

    async def present(self, user_ids: Collection[str]) -> set[str]:
        """Those of the ids that belong to users."""
        if not user_ids:
            return set()
        rows = await self._db.scalars(
            visible_user_ids(self._access).where(User.user_id == func.any(list(user_ids)))
        )
        return set(rows)

    async def ensure(self, user_id: str, *, agent_id: str, create: bool) -> User:
        """The user; with `create` made on first use, at home with `agent_id`.

        Raises:
            UserNotFoundError: missing and not to be made, or the key is another user's.
            IdNotAllowedError: the key is bound, and the id is not its to choose.
            IdTakenError: the id is a user's whom this key may not see.

        """
        user = await self.find(user_id)
        if user is not None:
            return user
        if not create or self._access.user_id not in {None, user_id}:
            raise UserNotFoundError(user_id)
        self._access.refuse_choice("user_id", user_id)
        # Two first uses at once: one inserts, the other finds.
        await self._db.execute(
            insert(User)
            .values(tenant_id=self._access.tenant_id, user_id=user_id, agent_id=agent_id)
            .on_conflict_do_nothing()
        )
        user = await self.find(user_id)
        if user is None:
            raise IdTakenError("user_id", user_id)
        return user

    async def list_users(
        self,
        *,
        start: tuple[datetime, str] | None,
        limit: int,
        filters: dict[str, Any],
        starts_with: str | None = None,
    ) -> Sequence[User]:
        """Newest first, one more than `limit` when another page follows.

        Args:
            filters: column to the value it must have.
            starts_with: what the id or the name begins with.

        """
        statement = self._visible().filter_by(**filters)
        if starts_with is not None:
            statement = statement.where(_starts_with(starts_with))
        rows = await self._db.scalars(
            after(
                statement,
                (User.create_time, User.user_id),
                start=start,
                descending=True,
                limit=limit,
            )
        )
        return rows.all()

    async def patch(self, user_id: str, changes: dict[str, Any], expected: int | None) -> User:
        """The changed user.

        Raises:
            UserNotFoundError: there is none for this caller.
            VersionConflictError: its version is not `expected`.
            IdTakenError: the new id is taken.

        """
        user = await self.get(user_id, lock=True)
        taken = IdTakenError("external_id", str(changes.get("external_id")))
        with conflicts({"users_uk_external_id": taken}):
            await apply_changes(self._db, user, changes, expected=expected)
        return user
