"""/v1/stats."""

from typing import Annotated

from fastapi import APIRouter, Query

from app.governance.statistics.schemas import (
    EffectAnswer,
    ExtractionAnswer,
    MemoryStatisticsAnswer,
    MemoryStatisticsQuery,
    RefusalAnswer,
    StatisticsQuery,
)
from app.governance.statistics.service import StatisticsService
from app.identity.tenants.principal import KEY_ERRORS, ReaderDep
from app.identity.usage.quota import InvalidDaysError
from app.platform.http.dependencies import provided
from app.platform.http.problems import responses_for

router = APIRouter(
    prefix="/v1/stats",
    tags=["statistics"],
    responses=responses_for(*KEY_ERRORS, InvalidDaysError),
)


ServiceDep = Annotated[StatisticsService, provided(StatisticsService)]


@router.get("/effect")
async def get_effect(
    query: Annotated[StatisticsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> EffectAnswer:
    """How often searches and contexts found something fitting, and how much of it was used."""
    return await service.effect(principal, query)


@router.get("/refusals")
async def get_refusals(
    query: Annotated[StatisticsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> RefusalAnswer:
    """What the gate accepted and refused, by the rule that was broken."""
    return await service.refusals(principal, query)


@router.get("/extraction")
async def get_extraction(
    query: Annotated[StatisticsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> ExtractionAnswer:
    """How much was read of conversations, how long that took, and how far it lagged behind."""
    return await service.extraction(principal, query)


@router.get("/memories")
async def get_memory_statistics(
    query: Annotated[MemoryStatisticsQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> MemoryStatisticsAnswer:
    """What is remembered by type and state, now and at the end of each day."""
    return await service.memories(principal, query)
