"""mem0's hosted API below /mem0: ping; memories added, searched, listed and changed, singly or in
batches; users, agents, apps and runs; events, feedback, exports and summaries.
"""

from functools import partial
from typing import Annotated

from fastapi import APIRouter, Depends, Query, Request

from app.identity.tenants.principal import (
    IdempotencyKeyDep,
    ModelCountDep,
    MoreCountDep,
    ReaderDep,
    WriterDep,
    identified,
)
from app.integrations.mem0 import answers
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.change_service import (
    Mem0BatchService,
    Mem0ChangeService,
    Mem0FeedbackService,
)
from app.integrations.mem0.entity_service import Mem0EntityService
from app.integrations.mem0.errors import InvalidMem0RequestError, UnknownMem0ProjectError
from app.integrations.mem0.export_schemas import (
    ExportCreate,
    ExportCreated,
    ExportGet,
    ExportSummary,
    ExportSummaryRequest,
)
from app.integrations.mem0.export_service import Mem0ExportService
from app.integrations.mem0.project_schemas import Mem0Message
from app.integrations.mem0.schemas import (
    AddRequest,
    DeleteManyQuery,
    DeleteQuery,
    EntitiesQuery,
    EventQuery,
    ListQuery,
    ListRequest,
    Mem0BatchDelete,
    Mem0BatchUpdate,
    Mem0Feedback,
    Mem0FeedbackAdded,
    SearchBody,
    SearchBodyV3,
    UpdateRequest,
)
from app.integrations.mem0.service import DEFAULT_PAGE, Mem0Service
from app.platform.http.dependencies import provided

ServiceDep = Annotated[Mem0Service, provided(Mem0Service)]
ChangeDep = Annotated[Mem0ChangeService, provided(Mem0ChangeService)]


async def same_project(
    request: Request,
    org_id: str | None = None,
    project_id: str | None = None,
    # The command-line client says `source=CLI` with every request.
    _source: Annotated[str | None, Query(alias="source", max_length=50)] = None,
) -> None:
    """Raises UnknownMem0ProjectError for ids that are not those of the key's tenant."""
    principal = await identified(request)
    if {org_id, project_id} - {None, principal.tenant_id}:
        raise UnknownMem0ProjectError


router = APIRouter(tags=["mem0"], dependencies=[Depends(same_project)])


@router.get("/v1/ping/")
async def ping(principal: ReaderDep) -> Shown:
    """Whose key it is; organization and project are both the tenant."""
    return {
        "status": "ok",
        "org_id": principal.tenant_id,
        "project_id": principal.tenant_id,
        "user_email": None,
    }


@router.post("/v3/memories/add/")
async def add(
    body: AddRequest,
    principal: WriterDep,
    service: ServiceDep,
    count_model: ModelCountDep,
    key: IdempotencyKeyDep,
) -> Shown:
    """Remember messages: in the background with `infer`, at once as they stand without."""
    if body.infer:
        count_model()
    if body.infer and body.async_mode is not False:
        return await service.order(principal, body, key=key)
    return await service.add(principal, body, key=key)


@router.post("/v1/memories/")
async def add_v1(
    body: AddRequest,
    principal: WriterDep,
    service: ServiceDep,
    count_model: ModelCountDep,
    key: IdempotencyKeyDep,
) -> Shown:
    """The same for clients before 2.0, which read `results`."""
    answer = await add(body, principal, service, count_model, key)
    return answer if "results" in answer else {"results": [answer]}


@router.post("/v3/memories/search/")
async def search(
    body: SearchBodyV3, principal: ReaderDep, service: ServiceDep, count_more: MoreCountDep
) -> Shown:
    """Find memories by meaning, best first."""
    return await service.search(principal, body, count=partial(count_more, "read"))


@router.post("/v2/memories/search/")
@router.post("/v1/memories/search/", operation_id="search_v1")
async def search_v2(
    body: SearchBody, principal: ReaderDep, service: ServiceDep, count_more: MoreCountDep
) -> list[Shown]:
    """The same for clients before 2.0: ids may be beside `filters`, and the answer is a list."""
    found = await service.search(principal, body, count=partial(count_more, "read"))
    results: list[Shown] = found["results"]
    return results


@router.get("/v1/memories/{memory_id}/")
async def get(memory_id: str, principal: ReaderDep, service: ServiceDep) -> Shown:
    """One memory."""
    return await service.get(principal, memory_id)


@router.put("/v1/memories/{memory_id}/")
async def update(
    memory_id: str, body: UpdateRequest, principal: WriterDep, service: ChangeDep
) -> Shown:
    """Change a memory's text, metadata or dates."""
    return await service.update(principal, memory_id, body)


@router.delete("/v1/memories/{memory_id}/")
async def delete(
    memory_id: str,
    query: Annotated[DeleteQuery, Query()],
    principal: WriterDep,
    service: ChangeDep,
) -> Shown:
    """Delete a memory, and with `delete_linked` those that it replaced."""
    return await service.delete(principal, memory_id, linked=query.delete_linked)


@router.get("/v1/memories/{memory_id}/history/")
async def history(memory_id: str, principal: ReaderDep, service: ChangeDep) -> list[Shown]:
    """What happened to a memory, oldest first."""
    return await service.history(principal, memory_id)


async def chosen_by_query_alone(request: Request, _principal: WriterDep) -> None:
    """Refuse what a delete would not read, and so take more than was asked.

    Raises:
        InvalidMem0RequestError: there is a body, or a parameter is there twice.

    """
    if (await request.body()).strip() not in {b"", b"{}", b"null"}:
        raise InvalidMem0RequestError(
            "Name what to delete in the query: a body is not read, and nothing was deleted."
        )
    names = [name for name, _ in request.query_params.multi_items()]
    if twice := sorted({name[:100] for name in names if names.count(name) > 1}):
        raise InvalidMem0RequestError(f"Each may be named once: {', '.join(twice)}.")


@router.delete("/v1/memories/", dependencies=[Depends(chosen_by_query_alone)])
async def delete_all(
    query: Annotated[DeleteManyQuery, Query()], principal: WriterDep, service: ChangeDep
) -> Shown:
    """Delete all memories of a user, an agent, an app or a run, or what `filters` chooses."""
    return await service.delete_all(principal, query)


@router.post("/v3/memories/")
async def list_memories(
    request: Request,
    body: ListRequest,
    query: Annotated[ListQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Shown:
    """A page of memories, newest first."""
    page = query.page or body.page or 1
    size = query.page_size or body.page_size or body.top_k or body.limit or DEFAULT_PAGE
    items, count = await service.list_memories(principal, body, page=page, size=size)

    def link(number: int) -> str:
        return str(request.url.include_query_params(page=number, page_size=size))

    return answers.warned(answers.paged(items, count, page, size, link), body.unused)


@router.post("/v2/memories/")
async def list_memories_v2(
    request: Request,
    body: ListRequest,
    query: Annotated[ListQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Shown | list[Shown]:
    """The same for clients before 2.0: without a page number the answer is a list."""
    listed = await list_memories(request, body, query, principal, service)
    results: list[Shown] = listed["results"]
    return results if query.page is None and body.page is None else listed


EntityDep = Annotated[Mem0EntityService, provided(Mem0EntityService)]


@router.get("/v1/entities/")
async def list_entities(
    request: Request,
    query: Annotated[EntitiesQuery, Query()],
    principal: ReaderDep,
    service: EntityDep,
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
async def delete_entity(kind: str, name: str, principal: WriterDep, service: EntityDep) -> Shown:
    """Delete the memories of an app, a run or an agent, or everything of a user."""
    return await service.delete(principal, kind, name)


@router.get("/v1/event/{event_id}/")
async def get_event(event_id: str, principal: ReaderDep, service: EntityDep) -> Shown:
    """How far an add in the background is, and what became of it."""
    return await service.event(principal, event_id)


@router.get("/v1/events/")
async def list_events(
    request: Request,
    query: Annotated[EventQuery, Query()],
    principal: ReaderDep,
    service: EntityDep,
) -> Shown:
    """Adds in the background, newest first, without their results; `next` leads on."""
    items, cursor = await service.events(principal, query)
    following = cursor and str(request.url.include_query_params(cursor=cursor))
    return {"count": len(items), "next": following, "previous": None, "results": items}


batch_router = APIRouter(prefix="/v1", tags=["mem0"], dependencies=[Depends(same_project)])

BatchDep = Annotated[Mem0BatchService, provided(Mem0BatchService)]
FeedbackDep = Annotated[Mem0FeedbackService, provided(Mem0FeedbackService)]
ExportDep = Annotated[Mem0ExportService, provided(Mem0ExportService)]


@batch_router.put("/batch/")
async def batch_update(
    body: Mem0BatchUpdate, principal: WriterDep, service: BatchDep, count_more: MoreCountDep
) -> Mem0Message:
    """Update up to 1,000 memories in their order; none when one of them is missing.

    Each is made as if alone, so the request counts as so many.
    """
    count_more("write", len(body.memories))
    updated = await service.update(principal, body)
    return Mem0Message(message=f"Successfully updated {updated} memories")


@batch_router.delete("/batch/")
async def batch_delete(
    body: Mem0BatchDelete, principal: WriterDep, service: BatchDep
) -> Mem0Message:
    """Delete up to 1,000 memories in one transaction; none when one of them is missing."""
    deleted = await service.delete(principal, body)
    return Mem0Message(message=f"Successfully deleted {deleted} memories")


@batch_router.post("/feedback/")
async def add_feedback(
    body: Mem0Feedback, principal: WriterDep, service: FeedbackDep
) -> Mem0FeedbackAdded:
    """Say that a memory is right or wrong."""
    return await service.add(principal, body)


@batch_router.post("/exports/", status_code=201)
async def create_export(
    body: ExportCreate, principal: ReaderDep, service: ExportDep
) -> ExportCreated:
    """The id of an export, which is read when it is fetched."""
    return await service.order(principal, body)


@batch_router.post("/exports/get/")
async def get_export(body: ExportGet, principal: ReaderDep, service: ExportDep) -> Shown:
    """The memories that an export or filters choose, and the fields of its schema."""
    return await service.get(principal, body)


@batch_router.post("/summary/")
async def get_summary(
    body: ExportSummaryRequest, principal: ReaderDep, service: ExportDep
) -> ExportSummary:
    """How much is remembered, and of one user the profile as text."""
    return await service.summary(principal, body)
