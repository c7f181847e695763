"""Which memories a caller may see, and which remove: as SQLAlchemy; `search_sql.py` has it as text.

A user sees that user's memories, those of projects as `projects/policy.py` says, and the
knowledge of agents. A key restricted to an agent sees what belongs to that agent, and what is
shared by all agents about the users at home with it. A third definition would be a leak
waiting to happen; tests compare the two, and both with the policy.
"""

from collections.abc import Mapping
from functools import cache
from typing import Any

from sqlalchemy import ColumnElement, and_, false, or_, true
from sqlalchemy.dialects.postgresql.base import PGDialect

from app.identity.projects.policy import MANAGING
from app.identity.projects.repository import visible_project_ids
from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.memory.memories.models import Memory


def visible(access: Access) -> ColumnElement[bool]:
    """The condition, without the tenant."""
    if not access.restricted:
        return true()
    mine = Memory.user_id.in_(visible_user_ids(access))
    member = Memory.project_id.in_(visible_project_ids(access))
    # An id that no user has is no user of the tenant.
    known = visible_user_ids(access).exists()
    shared = and_(
        Memory.scope == "project",
        or_(
            and_(Memory.visibility == "public", known),
            and_(member, or_(Memory.visibility != "owner_only", mine)),
        ),
    )
    return _fitting(access, mine, shared, knowledge=True)


def visible_text(access: Access) -> str:
    """The condition for the driver: `$1` is the tenant, `$2` and `$3` the agent and the user of
    the key.
    """
    return _text(by_agent=access.agent_id is not None, by_user=access.user_id is not None)


@cache
def _text(*, by_agent: bool, by_user: bool) -> str:
    tenant, agent, user = (f"\x1f{name}" for name in ("tenant", "agent", "user"))
    named = Access(tenant, agent if by_agent else None, user if by_user else None)
    compiled = visible(named).compile(
        dialect=PGDialect(),  # type: ignore[no-untyped-call] # not annotated there
        compile_kwargs={"literal_binds": True},
    )
    text = str(compiled)
    for place, name in enumerate((tenant, agent, user), start=1):
        text = text.replace(f"'{name}'", f"CAST(${place} AS text)")
    return text


def removable(access: Access, *, unseen: bool = True) -> ColumnElement[bool]:
    """What the caller may delete, without the tenant; of knowledge only an admin's key decides.

    Args:
        unseen: with what an owner or admin of a project may remove and not read. A condition on
            what it says must go without it, or counts would reveal it.

    """
    if access.user_id is None:
        return visible(access)
    mine = Memory.user_id.in_(visible_user_ids(access))
    managed: ColumnElement[bool] = Memory.project_id.in_(visible_project_ids(access, MANAGING))
    edited = Memory.project_id.in_(visible_project_ids(access, {"editor"}))
    if not unseen:
        managed = and_(managed, or_(Memory.visibility != "owner_only", mine))
    shared = and_(Memory.scope == "project", or_(managed, and_(edited, mine)))
    return _fitting(access, mine, shared, knowledge=False)


def removable_selection(
    access: Access, equal: Mapping[str, Any], filters: Mapping[str, Any] | None
) -> tuple[ColumnElement[bool], ...]:
    """The conditions that a deletion of many starts from, for what it selects by."""
    unseen = not filters and not equal.keys() & {"memory_type", "run_id"}
    return (
        Memory.tenant_id == access.tenant_id,
        Memory.status != "deleted",
        removable(access, unseen=unseen),
    )


def _fitting(
    access: Access, mine: ColumnElement[bool], shared: ColumnElement[bool], *, knowledge: bool
) -> ColumnElement[bool]:
    private = and_(Memory.scope != "project", mine)
    known = Memory.scope == "agent" if knowledge else false()
    if access.agent_id is None:
        return or_(private, shared, known)
    fitting = or_(Memory.agent_id == access.agent_id, Memory.agent_id.is_(None))
    return or_(and_(known, Memory.scope_id == access.agent_id), and_(fitting, or_(private, shared)))
