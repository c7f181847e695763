"""mem0's hosted API below /mem0: ping, and memories added, searched, listed and changed."""

from typing import Annotated

from fastapi import APIRouter, Depends, Request

from app.identity.tenants.principal import (
    IdempotencyKeyDep,
    ModelCountDep,
    ReaderDep,
    WriterDep,
    identified,
)
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.errors import UnknownMem0ProjectError
from app.integrations.mem0.schemas import AddRequest, SearchRequest, SearchRequestV3
from app.integrations.mem0.service import Mem0Service
from app.platform.http.dependencies import provided

ServiceDep = Annotated[Mem0Service, provided(Mem0Service)]


async def same_project(
    request: Request, org_id: str | None = None, project_id: str | None = None
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
async def search(body: SearchRequestV3, principal: ReaderDep, service: ServiceDep) -> Shown:
    """Find memories by meaning, best first."""
    return await service.search(principal, body)


@router.post("/v2/memories/search/")
@router.post("/v1/memories/search/", operation_id="search_v1")
async def search_v2(body: SearchRequest, principal: ReaderDep, service: ServiceDep) -> list[Shown]:
    """The same for clients before 2.0: ids may be beside `filters`, and the answer is a list."""
    results: list[Shown] = (await service.search(principal, body))["results"]
    return results


@router.get("/v1/memories/{memory_id}/")
async def get(memory_id: str, principal: ReaderDep, service: ServiceDep) -> Shown:
    """One memory."""
    return await service.get(principal, memory_id)
