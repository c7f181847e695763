"""What of the graph a caller may see: one definition, for entities, relations and changes.

Of a relation that stands on memories, one must be there and the caller's to read; of an entity
one that speaks of it, or a relation, or somebody's own hand.

It is that of memories (`memories/visibility.py`) with no session and no `owner_only`, which make
no graph: a key restricted to a user sees what is that user's, what is of the projects it is a
member of, and of agents; a key restricted to an agent sees what is that agent's, and what all
agents share about the users at home with it.
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
    """Whether a relation was written by hand alone, or a memory that says so may be read."""
    return or_(
        func.cardinality(GraphRelation.memory_ids) == 0,
        exists(
            select(Memory.memory_id)
            .where(existing(access), Memory.memory_id == func.any(GraphRelation.memory_ids))
            .correlate(GraphRelation)
        ),
    )


def is_mentioned(access: Access) -> ColumnElement[bool]:
    """Whether something that the caller may read speaks of an entity."""
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
