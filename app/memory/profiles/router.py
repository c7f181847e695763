"""Profiles of users and projects, what an agent sees of them, and DeerFlow's memory document"""

from typing import Annotated, Any

from fastapi import APIRouter, Query

from app.errors import DisabledError, IdTakenError, VersionConflictError, VersionRequiredError
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError, ReadOnlyMemberError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError
from app.language.llm.errors import EmbeddingUnavailableError
from app.memory.memories.errors import GateRejectedError
from app.memory.profiles.document_service import MemoryDocumentService
from app.memory.profiles.documents import (
    DocumentImported,
    DocumentImportQuery,
    DocumentQuery,
    MemoryDocument,
)
from app.memory.profiles.schemas import (
    ProfileChangeRead,
    ProfileContextQuery,
    ProfileContextRead,
    ProfileJob,
    ProjectProfilePatch,
    ProjectProfileRead,
    SlotTooLongError,
    UnknownSlotError,
    UserProfilePatch,
    UserProfileRead,
)
from app.memory.profiles.service import ProfileService
from app.platform.http.dependencies import RequiredVersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.values.fields import OwnId
from app.platform.values.pagination import InvalidCursorError, Page, PageQuery
from app.platform.work.unit import MemoryDisabledError, MemoryPausedError

router = APIRouter(prefix="/v1", tags=["profiles"], responses=responses_for(*KEY_ERRORS))

WRITE_ERRORS = (
    VersionConflictError,
    VersionRequiredError,
    MemoryDisabledError,
    GateRejectedError,
)
USER_ERRORS = (
    UserNotFoundError,
    IdTakenError,
    UnknownSlotError,
    SlotTooLongError,
    DisabledError,
    MemoryPausedError,
)
PROJECT_ERRORS = (ProjectNotFoundError, ReadOnlyMemberError)


ServiceDep = Annotated[ProfileService, provided(ProfileService)]
DocumentsDep = Annotated[MemoryDocumentService, provided(MemoryDocumentService)]


@router.get("/users/{user_id}/profile", responses=responses_for(UserNotFoundError))
async def get_user_profile(
    user_id: OwnId, principal: ReaderDep, service: ServiceDep
) -> UserProfileRead:
    """What is known of a user, and the memories behind each value; empty when nothing is."""
    return await service.of_user(principal, user_id)


@router.patch("/users/{user_id}/profile", responses=responses_for(*USER_ERRORS, *WRITE_ERRORS))
async def update_user_profile(
    user_id: OwnId,
    body: UserProfilePatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> UserProfileRead:
    """Write values that no job changes; null gives one back to jobs. The first `If-Match` is 0."""
    return await service.write_user(principal, user_id, body, expected=version, whole=False)


@router.put("/users/{user_id}/profile", responses=responses_for(*USER_ERRORS, *WRITE_ERRORS))
async def put_user_profile(
    user_id: OwnId,
    body: UserProfilePatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> UserProfileRead:
    """Write all that is the user's own, who is made on first use; what is left out goes to jobs."""
    return await service.write_user(principal, user_id, body, expected=version, whole=True)


@router.get(
    "/users/{user_id}/profile/history",
    responses=responses_for(UserNotFoundError, InvalidCursorError),
)
async def list_user_profile_history(
    user_id: OwnId, query: Annotated[PageQuery, Query()], principal: ReaderDep, service: ServiceDep
) -> Page[ProfileChangeRead]:
    """Every change of a value, newest first, without the words of deleted memories."""
    return await service.history(principal, ("user", user_id), query)


@router.post(
    "/users/{user_id}/profile/derive",
    status_code=202,
    responses=responses_for(
        UserNotFoundError, DisabledError, MemoryDisabledError, *IDEMPOTENCY_ERRORS
    ),
)
async def derive_user_profile(
    user_id: OwnId, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> ProfileJob:
    """Derive the profile now. Changes of memories order it too, after 20 seconds.

    A model is asked then only when the last time is `MEMORY_PROFILE_INTERVAL_SECONDS` ago, and
    never when nothing has changed since.
    """
    return await service.derive(principal, ("user", user_id), key=key)


@router.get("/projects/{project_id}/profile", responses=responses_for(ProjectNotFoundError))
async def get_project_profile(
    project_id: OwnId, principal: ReaderDep, service: ServiceDep
) -> ProjectProfileRead:
    """What is known of a project, and the memories behind each value; empty when nothing is."""
    return await service.of_project(principal, project_id)


@router.patch(
    "/projects/{project_id}/profile", responses=responses_for(*PROJECT_ERRORS, *WRITE_ERRORS)
)
async def update_project_profile(
    project_id: OwnId,
    body: ProjectProfilePatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> ProjectProfileRead:
    """Write values that no job changes; null gives one back to jobs. Viewers may not."""
    return await service.write_project(principal, project_id, body, expected=version, whole=False)


@router.put(
    "/projects/{project_id}/profile", responses=responses_for(*PROJECT_ERRORS, *WRITE_ERRORS)
)
async def put_project_profile(
    project_id: OwnId,
    body: ProjectProfilePatch,
    principal: WriterDep,
    service: ServiceDep,
    version: RequiredVersionDep,
) -> ProjectProfileRead:
    """Write all that is the team's own: what is left out goes back to jobs."""
    return await service.write_project(principal, project_id, body, expected=version, whole=True)


@router.get(
    "/projects/{project_id}/profile/history",
    responses=responses_for(ProjectNotFoundError, InvalidCursorError),
)
async def list_project_profile_history(
    project_id: OwnId,
    query: Annotated[PageQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> Page[ProfileChangeRead]:
    """Every change of a value, newest first, without the words of deleted memories."""
    return await service.history(principal, ("project", project_id), query)


@router.post(
    "/projects/{project_id}/profile/derive",
    status_code=202,
    responses=responses_for(*PROJECT_ERRORS, MemoryDisabledError, *IDEMPOTENCY_ERRORS),
)
async def derive_project_profile(
    project_id: OwnId, principal: WriterDep, service: ServiceDep, key: IdempotencyKeyDep
) -> ProfileJob:
    """Derive the profile now. Changes of memories order it too, after 20 seconds.

    A model is asked then only when the last time is `MEMORY_PROFILE_INTERVAL_SECONDS` ago, and
    never when nothing has changed since.
    """
    return await service.derive(principal, ("project", project_id), key=key)


@router.get(
    "/agents/{agent_id}/profile-context",
    responses=responses_for(AgentNotFoundError, UserNotFoundError, ProjectNotFoundError),
)
async def get_profile_context(
    agent_id: OwnId,
    query: Annotated[ProfileContextQuery, Query()],
    principal: ReaderDep,
    service: ServiceDep,
) -> ProfileContextRead:
    """The profiles of a user and a project as this agent may know them, as lines for a prompt."""
    return await service.for_agent(principal, agent_id, query)


@router.get(
    "/users/{user_id}/memory-document",
    responses=responses_for(UserNotFoundError, AgentNotFoundError),
    response_model=MemoryDocument,
    response_model_exclude_none=True,
)
async def get_memory_document(
    user_id: OwnId,
    query: Annotated[DocumentQuery, Query()],
    principal: ReaderDep,
    service: DocumentsDep,
) -> dict[str, Any]:
    """What is known of a user as DeerFlow's memory document, with the 1,000 surest facts."""
    return await service.render(principal, user_id, query)


@router.post(
    "/users/{user_id}/memory-document",
    responses=responses_for(
        UserNotFoundError,
        AgentNotFoundError,
        IdTakenError,
        DisabledError,
        MemoryPausedError,
        MemoryDisabledError,
        EmbeddingUnavailableError,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def import_memory_document(
    user_id: OwnId,
    body: MemoryDocument,
    query: Annotated[DocumentImportQuery, Query()],
    principal: WriterDep,
    service: DocumentsDep,
    key: IdempotencyKeyDep,
) -> DocumentImported:
    """Import a memory document of DeerFlow's in one go, each fact and section through the gate.

    Short and unsure facts are kept, with `source: import` and their own confidence.
    A user who is not there yet is made, as by saving a memory.
    """
    return await service.import_document(principal, user_id, body, query, key=key)
