"""Use cases of users."""

from typing import Any, Final, TypeVar

from pydantic import BaseModel

from app.identity.agents.errors import AgentNotFoundError
from app.identity.agents.repository import AgentRepository
from app.identity.tenants.access import Access, Principal
from app.identity.tenants.errors import KeyRestrictedError
from app.identity.users.repository import User, UserRepository
from app.identity.users.schemas import UserCreate, UserNotFoundError, UserPatch, UserQuery, UserRead
from app.platform.database.base import new_id
from app.platform.values.fields import ENABLED
from app.platform.values.pagination import Page, decode_time, page
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work


class UserService:
    def __init__(self, work: Work, *, auto_create: bool) -> None:
        self._work = work
        self._auto_create = auto_create

    async def add(
        self, principal: Principal, body: UserCreate, *, key: IdempotencyKey | None = None
    ) -> UserRead:
        """Create a user at home with an agent, made on first use.

        Raises:
            AgentNotFoundError: the home agent is missing and may not be made.
            IdTakenError: the tenant has a user with that id, or the agent one with that
                external id.
            IdNotAllowedError: the key is bound, and an id is not its to choose.

        """
        access = principal.access
        access.refuse_choice("user_id", body.user_id)
        _refuse_external_id(access, body.external_id)
        values = _columns(body.model_dump())
        values["user_id"] = body.user_id or principal.access.user_id or new_id("usr")
        async with self._work.write(principal, key, while_disabled=True) as unit:
            agent = await AgentRepository(unit.db, principal.access).ensure(
                body.agent_id, create=self._auto_create, creator=principal.key_id
            )
            user = User(**values | {"agent_id": agent.agent_id})
            await UserRepository(unit.db, principal.access).add(user)
            shown = UserRead.model_validate(user)
            return unit.answer(shown, 201, user_id=user.user_id)

    async def get(self, principal: Principal, user_id: str) -> UserRead:
        """The user.

        Raises:
            UserNotFoundError: there is none for this caller.

        """
        async with self._work.read(principal) as db:
            user = await UserRepository(db, principal.access).get(user_id)
            return UserRead.model_validate(user)

    async def list_users(self, principal: Principal, query: UserQuery) -> Page[UserRead]:
        """A page of users, newest first."""
        start = decode_time(query.cursor, "users")
        filters = _columns(
            query.model_dump(exclude={"limit", "cursor", "starts_with"}, exclude_none=True)
        )
        async with self._work.read(principal) as db:
            rows = await UserRepository(db, principal.access).list_users(
                start=start,
                limit=query.limit,
                filters=filters,
                starts_with=query.starts_with,
            )
        return page(
            "users",
            rows,
            query.limit,
            show=UserRead.model_validate,
            place=lambda user: (user.create_time, user.user_id),
        )

    async def patch(
        self, principal: Principal, user_id: str, body: UserPatch, *, expected: int | None
    ) -> UserRead:
        """The changed user; a user's own key may neither enable nor rehome that user.

        Raises:
            UserNotFoundError, AgentNotFoundError, VersionConflictError, IdTakenError,
            IdNotAllowedError, KeyRestrictedError: nothing was changed.

        """
        changes = _columns(body.model_dump(exclude_unset=True))
        if principal.access.user_id is not None and {"status", "agent_id"} & changes.keys():
            raise KeyRestrictedError
        _refuse_external_id(principal.access, body.external_id)
        async with self._work.write(principal, while_disabled=True) as unit:
            if "agent_id" in changes:
                await AgentRepository(unit.db, principal.access).get(changes["agent_id"])
            user = await UserRepository(unit.db, principal.access).patch(user_id, changes, expected)
            return UserRead.model_validate(user)


_NULLABLE = {"user_name", "user_type", "external_id"}


def _columns(values: dict[str, Any]) -> dict[str, Any]:
    """As the table wants them; null means "leave it" where the column has no null."""
    kept = {name: value for name, value in values.items() if value is not None or name in _NULLABLE}
    if "status" in kept:
        kept["status"] = ENABLED[kept["status"]]
    return kept


Body = TypeVar("Body", bound=BaseModel)

_NAMED: Final = ("user_id", "agent_id", "session_id", "run_id", "project_id")


def for_default_user(principal: Principal, body: Body) -> Body:
    """The request as one about the default user, where it and its key name nobody at all."""
    default = principal.access.default_user_id
    if default is None or principal.access.restricted:
        return body
    if getattr(body, "scope", None) not in {None, "user"}:
        return body
    if any(getattr(body, name, None) is not None for name in _NAMED):
        return body
    if _keys(getattr(body, "filters", None)) & {*_NAMED}:
        return body
    return body.model_copy(update={"user_id": default})


def _keys(filters: object) -> set[str]:
    """The fields that a filter names, at any depth."""
    if isinstance(filters, list):
        return set[str]().union(*map(_keys, filters))
    if not isinstance(filters, dict):
        return set()
    return {*filters}.union(*map(_keys, filters.values()))


def resolve_subject(
    access: Access, user_id: str | None, agent_id: str | None
) -> tuple[str | None, str | None]:
    """The user and the agent that a request means: those of the key where it names none.

    Raises:
        UserNotFoundError, AgentNotFoundError: the key is another user's or agent's.

    """
    user_id = user_id or access.user_id
    if access.user_id not in {None, user_id}:
        raise UserNotFoundError(user_id or "")
    agent_id = agent_id or access.agent_id
    if access.agent_id not in {None, agent_id}:
        raise AgentNotFoundError(agent_id or "")
    return user_id, agent_id


def _refuse_external_id(access: Access, external_id: str | None) -> None:
    """They are unique at an agent, whose own key sees them all. Raises IdNotAllowedError."""
    if access.agent_id is None:
        access.refuse_choice("external_id", external_id)
