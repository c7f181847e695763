"""/v1/folders, their files and passages, POST /v1/passages/search and POST /v1/files/…/extract"""

from typing import Annotated
from urllib.parse import quote

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.conversation.messages.errors import OtherSearchError
from app.errors import (
    ConfirmationRequiredError,
    DisabledError,
    IdTakenError,
    SelectorRequiredError,
    VersionConflictError,
)
from app.identity.agents.errors import AgentNotFoundError
from app.identity.projects.schemas import ProjectNotFoundError, ReadOnlyMemberError
from app.identity.tenants.principal import (
    IDEMPOTENCY_ERRORS,
    KEY_ERRORS,
    AdminDep,
    IdempotencyKeyDep,
    ReaderDep,
    WriterDep,
)
from app.identity.users.schemas import UserNotFoundError
from app.language.llm.errors import (
    EmbeddingUnavailableError,
    UnknownEmbedderError,
    UnknownModelError,
)
from app.language.parsing.file_kinds import KINDS
from app.memory.memories.errors import ScopeRequiresError
from app.platform.http.dependencies import VersionDep, provided
from app.platform.http.problems import responses_for
from app.platform.http.uploads import (
    InvalidUploadError,
    UploadTooLargeError,
    receive_upload,
)
from app.platform.values.fields import Id, OwnId
from app.platform.values.pagination import ContentQuery, InvalidCursorError, Page
from app.platform.work.unit import MemoryDisabledError
from app.prompting.documents.errors import (
    EmptyFileError,
    FileBusyError,
    FileNameTakenError,
    FileNotFoundInFolderError,
    FileNotReadyError,
    FolderNotAttachedError,
    FolderNotFoundError,
    PassageNotFoundError,
    TypeMismatchError,
    UnsupportedMediaTypeError,
)
from app.prompting.documents.extract_service import FileExtractService
from app.prompting.documents.file_service import FileService
from app.prompting.documents.passage_service import PassageSearchService, PassageService
from app.prompting.documents.schemas import (
    ExtractOrdered,
    FileAccepted,
    FileDeleted,
    FileDeleteQuery,
    FileExtract,
    FileQuery,
    FileRead,
    FolderCreate,
    FolderDeleted,
    FolderPatch,
    FolderQuery,
    FolderRead,
    PassageCreate,
    PassageHits,
    PassageRead,
    PassagesAdded,
    PassageSearch,
    UploadOptions,
)
from app.prompting.documents.service import FolderService
from app.prompting.documents.upload import idempotency_key_of, upload_of

router = APIRouter(prefix="/v1", tags=["folders"], responses=responses_for(*KEY_ERRORS))

OWNER_ERRORS = (
    UserNotFoundError,
    AgentNotFoundError,
    ProjectNotFoundError,
    ReadOnlyMemberError,
    DisabledError,
    MemoryDisabledError,
)
WRITE_ERRORS = (FolderNotFoundError, *OWNER_ERRORS)
UPLOAD_ERRORS = (
    EmptyFileError,
    InvalidUploadError,
    UploadTooLargeError,
    UnsupportedMediaTypeError,
    TypeMismatchError,
    FileNameTakenError,
)

_FILE = {"type": "string", "format": "binary"}
_BODY = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {
                        "file": _FILE,
                        "on_same_name": {"type": "string"},
                        "tags": {"type": "array", "items": {"type": "string"}},
                        "metadata": {"type": "string"},
                    },
                }
            },
            "application/octet-stream": {"schema": _FILE},
        },
    }
}


FoldersDep = Annotated[FolderService, provided(FolderService)]
FilesDep = Annotated[FileService, provided(FileService)]
PassagesDep = Annotated[PassageService, provided(PassageService)]
SearchDep = Annotated[PassageSearchService, provided(PassageSearchService)]
ExtractingDep = Annotated[FileExtractService, provided(FileExtractService)]


@router.post(
    "/folders",
    status_code=201,
    responses=responses_for(IdTakenError, ScopeRequiresError, *OWNER_ERRORS, *IDEMPOTENCY_ERRORS),
)
async def add_folder(
    body: FolderCreate, principal: WriterDep, service: FoldersDep, key: IdempotencyKeyDep
) -> FolderRead:
    """Create a folder of a user, a project or an agent."""
    return await service.add(principal, body, key=key)


@router.get("/folders", responses=responses_for(InvalidCursorError))
async def list_folders(
    query: Annotated[FolderQuery, Query()], principal: ReaderDep, service: FoldersDep
) -> Page[FolderRead]:
    """List folders, newest first."""
    return await service.list_folders(principal, query)


@router.get("/folders/{folder_id}", responses=responses_for(FolderNotFoundError))
async def get_folder(folder_id: Id, principal: ReaderDep, service: FoldersDep) -> FolderRead:
    """One folder, with what it holds counted."""
    return await service.get(principal, folder_id)


@router.patch("/folders/{folder_id}", responses=responses_for(VersionConflictError, *WRITE_ERRORS))
async def update_folder(
    folder_id: Id,
    body: FolderPatch,
    principal: WriterDep,
    service: FoldersDep,
    version: VersionDep,
) -> FolderRead:
    """Change a folder; what is left out stays."""
    return await service.patch(principal, folder_id, body, expected=version)


@router.delete(
    "/folders/{folder_id}", responses=responses_for(ConfirmationRequiredError, *WRITE_ERRORS)
)
async def delete_folder(
    folder_id: Id,
    query: Annotated[FileDeleteQuery, Query()],
    principal: WriterDep,
    service: FoldersDep,
) -> FolderDeleted:
    """Delete a folder with its files and passages; memories made of them stay."""
    return await service.delete(principal, folder_id, query)


@router.put("/folders/{folder_id}/agents/{agent_id}", responses=responses_for(*WRITE_ERRORS))
async def attach_folder(
    folder_id: Id, agent_id: OwnId, principal: AdminDep, service: FoldersDep
) -> FolderRead:
    """Let a further agent read a folder in all its sessions; needs an admin key."""
    return await service.attach(principal, folder_id, agent_id)


@router.delete(
    "/folders/{folder_id}/agents/{agent_id}",
    status_code=204,
    responses=responses_for(FolderNotAttachedError, *WRITE_ERRORS),
)
async def detach_folder(
    folder_id: Id, agent_id: OwnId, principal: AdminDep, service: FoldersDep
) -> None:
    """Take a folder from an agent that it was attached to; the folder stays."""
    await service.detach(principal, folder_id, agent_id)


@router.post(
    "/folders/{folder_id}/files",
    status_code=202,
    openapi_extra=_BODY,
    responses={
        200: {"model": FileAccepted, "description": "Skipped: the folder has that name."},
        **responses_for(*UPLOAD_ERRORS, *WRITE_ERRORS, *IDEMPOTENCY_ERRORS),
    },
)
async def upload_file(
    folder_id: Id,
    options: Annotated[UploadOptions, Query()],
    principal: WriterDep,
    service: FilesDep,
    request: Request,
    response: Response,
    idempotency_key: Annotated[
        str | None,
        Header(
            alias="Idempotency-Key",
            description="Any text of yours: the request has one effect however often it is sent.",
            min_length=1,
            max_length=255,
            pattern=r"^[\x20-\x7e]+$",
        ),
    ] = None,
) -> FileAccepted:
    """Upload a file, as a form or as a raw body; a job reads it."""
    await service.refuse_early(principal, folder_id)
    received = await receive_upload(request, service.upload_max_bytes)
    with received.content:
        upload = upload_of(options, received)
        key = idempotency_key_of(request.url.path, principal, idempotency_key, received, options)
        answer, response.status_code = await service.add(principal, folder_id, upload, key=key)
        return answer


@router.get(
    "/folders/{folder_id}/files", responses=responses_for(FolderNotFoundError, InvalidCursorError)
)
async def list_files(
    folder_id: Id,
    query: Annotated[FileQuery, Query()],
    principal: ReaderDep,
    service: FilesDep,
) -> Page[FileRead]:
    """List the files of a folder, newest first."""
    return await service.list_files(principal, folder_id, query)


@router.get(
    "/folders/{folder_id}/files/{file_id}",
    responses=responses_for(FolderNotFoundError, FileNotFoundInFolderError),
)
async def get_file(folder_id: Id, file_id: Id, principal: ReaderDep, service: FilesDep) -> FileRead:
    """One file, and how far it has been read."""
    return await service.get(principal, folder_id, file_id)


@router.get(
    "/folders/{folder_id}/files/{file_id}/content",
    response_class=StreamingResponse,
    status_code=200,
    responses={
        200: {"content": {kind: {"schema": _FILE} for kind in KINDS}},
        **responses_for(FolderNotFoundError, FileNotFoundInFolderError),
    },
)
async def get_file_content(
    folder_id: Id, file_id: Id, principal: ReaderDep, service: FilesDep
) -> StreamingResponse:
    """Download a file as it was uploaded."""
    file = await service.get(principal, folder_id, file_id)
    return StreamingResponse(
        service.content(principal, folder_id, file_id),
        headers={
            # Not as `media_type`, which would call every text UTF-8.
            "Content-Type": file.content_type,
            "Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.file_name, safe='')}",
            "Content-Length": str(file.size),
        },
    )


@router.post(
    "/folders/{folder_id}/files/{file_id}/reingest",
    status_code=202,
    responses=responses_for(
        FileNotFoundInFolderError, FileBusyError, *WRITE_ERRORS, *IDEMPOTENCY_ERRORS
    ),
)
async def reingest_file(
    folder_id: Id, file_id: Id, principal: WriterDep, service: FilesDep, key: IdempotencyKeyDep
) -> FileAccepted:
    """Read a file anew, after an error or with a newer parser; until then it keeps what it has."""
    return await service.reingest(principal, folder_id, file_id, key=key)


@router.delete(
    "/folders/{folder_id}/files/{file_id}",
    responses=responses_for(FileNotFoundInFolderError, *WRITE_ERRORS),
)
async def delete_file(
    folder_id: Id,
    file_id: Id,
    query: Annotated[FileDeleteQuery, Query()],
    principal: WriterDep,
    service: FilesDep,
) -> FileDeleted:
    """Delete a file with its passages; memories made of it stay, and say so."""
    return await service.delete(principal, folder_id, file_id, query)


@router.get(
    "/folders/{folder_id}/files/{file_id}/passages",
    responses=responses_for(FileNotFoundInFolderError, InvalidCursorError),
)
async def list_file_passages(
    folder_id: Id,
    file_id: Id,
    query: Annotated[ContentQuery, Query()],
    principal: ReaderDep,
    service: PassagesDep,
) -> Page[PassageRead]:
    """List the passages of a file, in its order; until all are there, those it had before."""
    return await service.list_of_file(principal, folder_id, file_id, query)


@router.post(
    "/folders/{folder_id}/passages",
    status_code=201,
    responses=responses_for(
        EmbeddingUnavailableError, UnknownEmbedderError, *WRITE_ERRORS, *IDEMPOTENCY_ERRORS
    ),
)
async def add_passages(
    folder_id: Id,
    body: PassageCreate,
    principal: WriterDep,
    service: PassagesDep,
    key: IdempotencyKeyDep,
) -> PassagesAdded:
    """Add a text to a folder; a long text becomes several passages."""
    return await service.add(principal, folder_id, body, key=key)


@router.get(
    "/folders/{folder_id}/passages",
    responses=responses_for(FolderNotFoundError, InvalidCursorError),
)
async def list_passages(
    folder_id: Id,
    query: Annotated[ContentQuery, Query()],
    principal: ReaderDep,
    service: PassagesDep,
) -> Page[PassageRead]:
    """List the passages of a folder, newest first."""
    return await service.list_passages(principal, folder_id, query)


@router.get(
    "/folders/{folder_id}/passages/{passage_id}",
    responses=responses_for(FolderNotFoundError, PassageNotFoundError),
)
async def get_passage(
    folder_id: Id, passage_id: Id, principal: ReaderDep, service: PassagesDep
) -> PassageRead:
    """One passage of this folder."""
    return await service.get(principal, folder_id, passage_id)


@router.delete(
    "/folders/{folder_id}/passages/{passage_id}",
    status_code=204,
    responses=responses_for(PassageNotFoundError, *WRITE_ERRORS),
)
async def delete_passage(
    folder_id: Id, passage_id: Id, principal: WriterDep, service: PassagesDep
) -> None:
    """Delete a passage of this folder."""
    await service.delete(principal, folder_id, passage_id)


@router.post("/passages/search", responses=responses_for(SelectorRequiredError, OtherSearchError))
async def search_passages(
    body: PassageSearch, principal: ReaderDep, service: SearchDep
) -> PassageHits:
    """Find the passages that answer a query best, in folders that the request or the key names."""
    return await service.search(principal, body)


@router.post(
    "/files/{file_id}/extract",
    status_code=202,
    responses=responses_for(
        FileNotFoundInFolderError,
        FileNotReadyError,
        ScopeRequiresError,
        UnknownModelError,
        *OWNER_ERRORS,
        *IDEMPOTENCY_ERRORS,
    ),
)
async def extract_file(
    file_id: Id,
    body: FileExtract,
    principal: WriterDep,
    service: ExtractingDep,
    key: IdempotencyKeyDep,
) -> ExtractOrdered:
    """Turn a file's passages into memories; a job does it."""
    return await service.order(principal, file_id, body, key=key)
