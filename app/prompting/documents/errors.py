"""What can go wrong with folders, files and passages."""

from app.errors import ConflictError, DomainError, NotFoundError, UnprocessableError


class FolderNotFoundError(NotFoundError):
    code = "folder_not_found"
    title = "Folder not found"

    def __init__(self, folder_id: str) -> None:
        super().__init__(f"No folder {folder_id}.", folder_id=folder_id)


class FileNotFoundInFolderError(NotFoundError):
    code = "file_not_found"
    title = "File not found"

    def __init__(self, file_id: str) -> None:
        super().__init__(f"No file {file_id} in that folder.", file_id=file_id)


class PassageNotFoundError(NotFoundError):
    code = "passage_not_found"
    title = "Passage not found"

    def __init__(self, passage_id: str) -> None:
        super().__init__(f"No passage {passage_id} in that folder.", passage_id=passage_id)


class ArchiveClosedError(NotFoundError):
    code = "archive_closed"
    title = "No archive to write to"

    def __init__(self, user_id: str) -> None:
        super().__init__(f"No archive of {user_id} that this caller may fill.", user_id=user_id)


class FolderNotAttachedError(NotFoundError):
    code = "folder_not_attached"
    title = "Folder not attached"

    def __init__(self, folder_id: str, agent_id: str) -> None:
        super().__init__(
            f"The folder {folder_id} is not attached to {agent_id}.",
            folder_id=folder_id,
            agent_id=agent_id,
        )


class FileNameTakenError(ConflictError):
    code = "file_name_taken"
    title = "File name taken"

    def __init__(self, file_id: str) -> None:
        super().__init__(
            "The folder has a file with that name, and `on_same_name` is `reject`.",
            file_id=file_id,
        )


class FileBusyError(ConflictError):
    code = "file_busy"
    title = "File is being read"

    def __init__(self, file_id: str, job_id: str | None) -> None:
        super().__init__(
            "The file is being read; wait for its job, or cancel that.",
            file_id=file_id,
            job_id=job_id,
        )


class FileNotReadyError(ConflictError):
    code = "file_not_ready"
    title = "File has no passages"

    def __init__(self, file_id: str, state: str) -> None:
        super().__init__(
            f"The file is {state}; only a completed one can be extracted.",
            file_id=file_id,
            state=state,
        )


class EmptyFileError(UnprocessableError):
    code = "empty_file"
    title = "File is empty"

    def __init__(self) -> None:
        super().__init__(
            "The file has no bytes.",
            errors=[{"location": ["body", "file"], "detail": "has no bytes"}],
        )


class MediaTypeError(DomainError):
    """The bytes are of a type that is not read, or not of the claimed type."""

    status = 415


class UnsupportedMediaTypeError(MediaTypeError):
    code = "unsupported_media_type"
    title = "Type not supported"

    def __init__(self, found: str) -> None:
        super().__init__(
            f"The bytes look like {found}. Text, Markdown, HTML, PDF, DOCX, JSON and CSV are read.",
            found=found,
        )


class TypeMismatchError(MediaTypeError):
    code = "type_mismatch"
    title = "Type is not what it says"

    def __init__(self, found: str, claimed: str) -> None:
        super().__init__(
            f"Its name or Content-Type says {claimed}, and its bytes are {found}.",
            found=found,
            claimed=claimed,
        )
