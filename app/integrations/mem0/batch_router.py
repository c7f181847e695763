"""mem0's batches, feedback, exports and summaries."""

from typing import Annotated

from fastapi import APIRouter, Depends

from app.identity.tenants.principal import MoreCountDep, ReaderDep, WriterDep
from app.integrations.mem0.answers import Shown
from app.integrations.mem0.batch_schemas import (
    Mem0BatchDelete,
    Mem0BatchUpdate,
    Mem0Feedback,
    Mem0FeedbackAdded,
)
from app.integrations.mem0.batch_service import Mem0BatchService, Mem0FeedbackService
from app.integrations.mem0.export_schemas import (
    ExportCreate,
    ExportCreated,
    ExportGet,
    ExportSummary,
    ExportSummaryRequest,
)
from app.integrations.mem0.export_service import Mem0ExportService
from app.integrations.mem0.project_schemas import Mem0Message
from app.integrations.mem0.router import same_project
from app.platform.http.dependencies import provided

router = APIRouter(prefix="/v1", tags=["mem0"], dependencies=[Depends(same_project)])

BatchDep = Annotated[Mem0BatchService, provided(Mem0BatchService)]
FeedbackDep = Annotated[Mem0FeedbackService, provided(Mem0FeedbackService)]
ExportDep = Annotated[Mem0ExportService, provided(Mem0ExportService)]


@router.put("/batch/")
async def batch_update(
    body: Mem0BatchUpdate, principal: WriterDep, service: BatchDep, count_more: MoreCountDep
) -> Mem0Message:
    """Update up to 1,000 memories in their order; none when one of them is missing.

    Each is made as if alone, so the request counts as so many.
    """
    count_more("write", len(body.memories))
    updated = await service.update(principal, body)
    return Mem0Message(message=f"Successfully updated {updated} memories")


@router.delete("/batch/")
async def batch_delete(
    body: Mem0BatchDelete, principal: WriterDep, service: BatchDep
) -> Mem0Message:
    """Delete up to 1,000 memories in one transaction; none when one of them is missing."""
    deleted = await service.delete(principal, body)
    return Mem0Message(message=f"Successfully deleted {deleted} memories")


@router.post("/feedback/")
async def add_feedback(
    body: Mem0Feedback, principal: WriterDep, service: FeedbackDep
) -> Mem0FeedbackAdded:
    """Say that a memory is right or wrong."""
    return await service.add(principal, body)


@router.post("/exports/", status_code=201)
async def create_export(
    body: ExportCreate, principal: ReaderDep, service: ExportDep
) -> ExportCreated:
    """The id of an export, which is read when it is fetched."""
    return await service.order(principal, body)


@router.post("/exports/get/")
async def get_export(body: ExportGet, principal: ReaderDep, service: ExportDep) -> Shown:
    """The memories that an export or filters choose, and the fields of its schema."""
    return await service.get(principal, body)


@router.post("/summary/")
async def get_summary(
    body: ExportSummaryRequest, principal: ReaderDep, service: ExportDep
) -> ExportSummary:
    """How much is remembered, and of one user the profile as text."""
    return await service.summary(principal, body)
