"""/v1/graph"""

from typing import Annotated

from fastapi import APIRouter, Query

from app.errors import DisabledError, SelectorRequiredError, VersionConflictError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError, ReadOnlyMemberError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError, UserRequiredError
from app.memory.graph.edit_service import GraphEditService
from app.memory.graph.errors import (
    AliasNotFoundError,
    ChangedSinceError,
    ChangeNotFoundError,
    ChangeUndoneError,
    DifferentOwnersError,
    EntityMergedError,
    EntityNotFoundError,
    EntityTakenError,
    InvalidChangeError,
    InvalidPeriodError,
    NotOfEntityError,
    NotYourGraphError,
    RelationNotFoundError,
    RelationTakenError,
    SameEntityError,
    TooManyRowsError,
)
from app.memory.graph.merge_service import GraphMergeService
from app.memory.graph.schemas import (
    AliasCreate,
    AliasQuery,
    ChangeListed,
    ChangeRead,
    EntityDetail,
    EntityMerge,
    EntityPatch,
    EntityQuery,
    EntityRead,
    EntitySplit,
    GraphFound,
    GraphSearchQuery,
    MentionPage,
    NeighbourQuery,
    Neighbours,
    PathQuery,
    Paths,
    RelationCreate,
    RelationPatch,
    RelationQuery,
    RelationRead,
)
from app.memory.graph.service import GraphService
from app.memory.memories.errors import MemoryNotFoundError, ScopeRequiresError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import Id
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError

router = APIRouter(prefix="/v1/graph", tags=["graph"], responses=responses_for(*KEY_ERRORS))

WRITE_ERRORS = (
    NotYourGraphError,
    ReadOnlyMemberError,
    DisabledError,
    MemoryDisabledError,
    MemoryPausedError,
)
ENTITY_ERRORS = (EntityNotFoundError, EntityMergedError, *WRITE_ERRORS)
REGROUP_ERRORS = (TooManyRowsError, *ENTITY_ERRORS, *IDEMPOTENCY_ERRORS)
RELATION_ERRORS = (RelationNotFoundError, VersionConflictError, *WRITE_ERRORS)


ServiceDep = Annotated[GraphService, provided(GraphService)]
EditingDep = Annotated[GraphEditService, provided(GraphEditService)]
RegroupingDep = Annotated[GraphMergeService, provided(GraphMergeService)]


@router.get("/entities", responses=responses_for(InvalidCursorError))
async def list_entities(
    query: Annotated[EntityQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[EntityRead]:
    """List people and things in the graph, newest first."""
    return await service.entities(principal, query)


@router.get("/entities/{entity_id}", responses=responses_for(EntityNotFoundError))
async def get_entity(entity_id: Id, principal: ReaderDep, service: ServiceDep) -> EntityDetail:
    """Get one entity; of a merged one, what it was merged into."""
    return await service.entity(principal, entity_id)


@router.get(
    "/entities/{entity_id}/memories",
    responses=responses_for(EntityNotFoundError, InvalidCursorError),
)
async def list_entity_memories(
    entity_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> MentionPage:
    """List the ids of the memories that speak of an entity, newest first."""
    return await service.memories(principal, entity_id, query)


@router.patch(
    "/entities/{entity_id}",
    responses=responses_for(EntityTakenError, VersionConflictError, *ENTITY_ERRORS),
)
async def update_entity(
    entity_id: Id,
    body: EntityPatch,
    principal: WriterDep,
    service: EditingDep,
    version: VersionDep,
) -> EntityRead:
    """Change an entity; its old name stays as an alias."""
    return await service.patch_entity(principal, entity_id, body, expected=version)


@router.post(
    "/entities/{entity_id}/aliases",
    responses=responses_for(EntityTakenError, *ENTITY_ERRORS, *IDEMPOTENCY_ERRORS),
)
async def add_entity_alias(
    entity_id: Id,
    body: AliasCreate,
    principal: WriterDep,
    service: EditingDep,
    key: IdempotencyKeyDep,
) -> EntityRead:
    """Give an entity another name, under which it is found from now on."""
    return await service.add_alias(principal, entity_id, body.alias, key=key)


@router.delete(
    "/entities/{entity_id}/aliases",
    status_code=204,
    responses=responses_for(AliasNotFoundError, *ENTITY_ERRORS),
)
async def remove_entity_alias(
    entity_id: Id,
    query: Annotated[AliasQuery, Query()],
    principal: WriterDep,
    service: EditingDep,
) -> None:
    """Take a name from an entity."""
    await service.remove_alias(principal, entity_id, query.alias)


@router.post(
    "/entities/{entity_id}/merge",
    responses=responses_for(SameEntityError, DifferentOwnersError, *REGROUP_ERRORS),
)
async def merge_entities(
    entity_id: Id,
    body: EntityMerge,
    principal: WriterDep,
    service: RegroupingDep,
    key: IdempotencyKeyDep,
) -> ChangeRead:
    """Merge entities into one; a change that can be undone."""
    return await service.merge(principal, entity_id, body, key=key)


@router.post(
    "/entities/{entity_id}/split",
    responses=responses_for(EntityTakenError, NotOfEntityError, *REGROUP_ERRORS),
)
async def split_entity(
    entity_id: Id,
    body: EntitySplit,
    principal: WriterDep,
    service: RegroupingDep,
    key: IdempotencyKeyDep,
) -> ChangeRead:
    """Split a new entity off one; a change that can be undone."""
    return await service.split(principal, entity_id, body, key=key)


@router.get("/changes", responses=responses_for(InvalidCursorError))
async def list_graph_changes(
    query: Annotated[PageQuery, Query()], principal: ReaderDep, service: RegroupingDep
) -> Page[ChangeListed]:
    """List merges and splits, newest first."""
    return await service.changes(principal, query)


@router.post(
    "/changes/{change_id}/undo",
    responses=responses_for(
        ChangeNotFoundError,
        ChangeUndoneError,
        ChangedSinceError,
        InvalidChangeError,
        *WRITE_ERRORS,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def undo_graph_change(
    change_id: Id, principal: WriterDep, service: RegroupingDep, key: IdempotencyKeyDep
) -> ChangeRead:
    """Undo a merge or a split: every row is as it was, or nothing is done."""
    return await service.undo(principal, change_id, key=key)


@router.get("/relations", responses=responses_for(InvalidCursorError))
async def list_relations(
    query: Annotated[RelationQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[RelationRead]:
    """List relations: what held at one time, by what was known at another."""
    return await service.relations(principal, query)


@router.post(
    "/relations",
    status_code=201,
    responses=responses_for(
        EntityNotFoundError,
        EntityMergedError,
        MemoryNotFoundError,
        UserNotFoundError,
        AgentNotFoundError,
        ProjectNotFoundError,
        DifferentOwnersError,
        SameEntityError,
        UserRequiredError,
        ScopeRequiresError,
        *WRITE_ERRORS,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def add_relation(
    body: RelationCreate, principal: WriterDep, service: EditingDep, key: IdempotencyKeyDep
) -> RelationRead:
    """Add a relation; adding it again confirms it."""
    return await service.add_relation(principal, body, key=key)


@router.get(
    "/relations/{relation_id}/history",
    responses=responses_for(RelationNotFoundError, InvalidCursorError),
)
async def list_relation_history(
    relation_id: Id,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[RelationRead]:
    """All that was ever known of a relation, newest first."""
    return await service.history(principal, relation_id, query)


@router.patch(
    "/relations/{relation_id}",
    responses=responses_for(
        EntityNotFoundError,
        EntityMergedError,
        DifferentOwnersError,
        SameEntityError,
        InvalidPeriodError,
        RelationTakenError,
        *RELATION_ERRORS,
    ),
)
async def update_relation(
    relation_id: Id,
    body: RelationPatch,
    principal: WriterDep,
    service: EditingDep,
    version: VersionDep,
) -> RelationRead:
    """Correct a relation: the next version is what is known from now on."""
    return await service.patch_relation(principal, relation_id, body, expected=version)


@router.delete(
    "/relations/{relation_id}", status_code=204, responses=responses_for(*RELATION_ERRORS)
)
async def delete_relation(
    relation_id: Id, principal: WriterDep, service: EditingDep, version: VersionDep
) -> None:
    """Know a relation no longer; its history stays."""
    await service.delete_relation(principal, relation_id, expected=version)


@router.get("/neighbours", responses=responses_for(EntityNotFoundError, SelectorRequiredError))
async def list_neighbours(
    query: Annotated[NeighbourQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Neighbours:
    """What is around an entity, up to three steps away."""
    return await service.neighbours(principal, query)


@router.get("/paths", responses=responses_for(EntityNotFoundError))
async def list_paths(
    query: Annotated[PathQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Paths:
    """How two entities are related: the shortest paths, of at most three steps."""
    return await service.paths(principal, query)


@router.get("/search", responses=responses_for(SelectorRequiredError))
async def search_graph(
    query: Annotated[GraphSearchQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> GraphFound:
    """Find the entities that a text names, with their relations."""
    return await service.search(principal, query)
