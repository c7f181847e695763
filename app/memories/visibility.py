"""Which memories a caller may see: one definition, as SQLAlchemy and as text for the hot read.

A key restricted to a user sees that user's memories, those of the projects it is a member
of, and the knowledge of agents. A key restricted to an agent sees what belongs to that
agent, and what is shared by all agents about the users at home with it. A second definition
somewhere else would be a leak waiting to happen; a test compares the two.
"""

from sqlalchemy import ColumnElement, and_, or_, true

from app.memories.models import Memory
from app.projects.repository import visible_project_ids
from app.tenants.access import Access
from app.users.repository import visible_user_ids


def visible(access: Access) -> ColumnElement[bool]:
    """The condition, without the tenant."""
    if not access.restricted:
        return true()
    mine = Memory.user_id.in_(visible_user_ids(access))
    shared = and_(
        Memory.scope == "project",
        Memory.project_id.in_(visible_project_ids(access)),
        or_(Memory.visibility != "owner_only", mine),
    )
    private = and_(Memory.scope != "project", mine)
    if access.agent_id is None:
        return or_(private, shared, Memory.scope == "agent")
    fitting = or_(Memory.agent_id == access.agent_id, Memory.agent_id.is_(None))
    knowledge = and_(Memory.scope == "agent", Memory.scope_id == access.agent_id)
    return or_(knowledge, and_(fitting, or_(private, shared)))
