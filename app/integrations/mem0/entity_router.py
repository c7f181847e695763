"""mem0's hosted API below /mem0: users, agents, apps and runs, and events."""

from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from app.identity.tenants.principal import ReaderDep, WriterDep
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.entity_service import Mem0EntityService
from app.integrations.mem0.router import same_project
from app.integrations.mem0.schemas import EntitiesQuery, EventQuery
from app.platform.http.dependencies import provided

ServiceDep = Annotated[Mem0EntityService, provided(Mem0EntityService)]

router = APIRouter(tags=["mem0"], dependencies=[Depends(same_project)])


@router.get("/v1/entities/")
async def list_entities(
    request: Request,
    query: Annotated[EntitiesQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Shown:
    """Apps, runs, agents and users that have memories."""
    items, counts = await service.entities(principal, query)

    def link(number: int) -> str:
        return str(request.url.include_query_params(page=number, page_size=query.page_size))

    count = sum(counts.values())
    totals = {f"total_{kind}s": found for kind, found in counts.items()}
    return answers.paged(items, count, query.page, query.page_size, link) | totals


@router.delete("/v2/entities/{kind}/{name:path}/")
@router.delete("/v1/entities/{kind}/{name:path}/", operation_id="delete_entity_v1")
async def delete_entity(kind: str, name: str, principal: WriterDep, service: ServiceDep) -> Shown:
    """Delete the memories of an app, a run or an agent, or everything of a user."""
    return await service.delete(principal, kind, name)


@router.get("/v1/event/{event_id}/")
async def get_event(event_id: str, principal: ReaderDep, service: ServiceDep) -> Shown:
    """How far an add in the background is, and what became of it."""
    return await service.event(principal, event_id)


@router.get("/v1/events/")
async def list_events(
    request: Request,
    query: Annotated[EventQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Shown:
    """Adds in the background, newest first, without their results; `next` leads on."""
    items, cursor = await service.events(principal, query)
    following = cursor and str(request.url.include_query_params(cursor=cursor))
    return {"count": len(items), "next": following, "previous": None, "results": items}
