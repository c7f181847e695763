"""What of the graph a caller may see: one definition, for entities, relations and changes.

Of the memories that support a relation, at least one must exist and be readable by the caller; an
entity needs a readable memory that mentions it, a visible relation, or an edit by a caller.

The condition is that of memories (`memories/visibility_sql.py`) without sessions and `owner_only`,
which make no graph. A key restricted to a user sees the rows of that user, of the projects the user
is a member of, and of agents. A key restricted to an agent sees the rows of that agent, and what
all agents share about the users at home with it.
"""

from sqlalchemy import ColumnElement, and_, exists, func, or_, select, true

from app.identity.projects.repository import visible_project_ids
from app.identity.tenants.access import Access
from app.identity.users.repository import visible_user_ids
from app.memory.graph.models import GraphChange, GraphEntity, GraphMention, GraphRelation
from app.memory.memories.models import Memory
from app.memory.memories.repository import existing

Placed = type[GraphEntity] | type[GraphRelation] | type[GraphChange]


def visible(access: Access, table: Placed) -> ColumnElement[bool]:
    """The condition, with the tenant."""
    mine = table.tenant_id == access.tenant_id
    if not access.restricted:
        return and_(mine, true())
    private = and_(table.scope == "user", table.user_id.in_(visible_user_ids(access)))
    shared = and_(table.scope == "project", table.project_id.in_(visible_project_ids(access)))
    if access.agent_id is None:
        return and_(mine, or_(private, shared, table.scope == "agent"))
    fitting = or_(table.agent_id == access.agent_id, table.agent_id.is_(None))
    knowledge = and_(table.scope == "agent", table.scope_id == access.agent_id)
    return and_(mine, or_(knowledge, and_(fitting, or_(private, shared))))


def has_readable_source(access: Access) -> ColumnElement[bool]:
    """Whether the caller may read one of a relation's memories, or it was written without any."""
    return or_(
        func.cardinality(GraphRelation.memory_ids) == 0,
        exists(
            select(Memory.memory_id)
            .where(existing(access), Memory.memory_id == func.any(GraphRelation.memory_ids))
            .correlate(GraphRelation)
        ),
    )


def is_mentioned(access: Access) -> ColumnElement[bool]:
    """Whether anything that the caller may read mentions an entity."""
    mentioned = (
        select(GraphMention.memory_id)
        .join(Memory, Memory.memory_id == GraphMention.memory_id)
        .where(
            GraphMention.tenant_id == access.tenant_id,
            GraphMention.entity_id == GraphEntity.entity_id,
            existing(access),
        )
    )
    joined = (
        select(GraphRelation.relation_id).where(
            GraphRelation.tenant_id == access.tenant_id,
            side == GraphEntity.entity_id,
            has_readable_source(access),
        )
        for side in (GraphRelation.source_id, GraphRelation.destination_id)
    )
    regrouped = select(GraphChange.change_id).where(
        GraphChange.tenant_id == access.tenant_id,
        GraphEntity.entity_id == func.any(GraphChange.entity_ids),
    )
    return or_(
        GraphEntity.merged_into.is_not(None),
        *(exists(source.correlate(GraphEntity)) for source in (mentioned, *joined, regrouped)),
    )
