"""What models put aside for a user: passages of one folder of the user's, made on first use."""

from dataclasses import asdict
from functools import partial
from hashlib import sha256

from app.errors import IdNotAllowedError, IdTakenError
from app.identity.tenants.access import Principal
from app.language.text.offload import read_text
from app.memory.memories.errors import GateRejectedError
from app.memory.memories.gate import Gate
from app.platform.work.idempotency import IdempotencyKey
from app.platform.work.unit import Work
from app.prompting.documents.errors import ArchiveClosedError
from app.prompting.documents.passage_service import PassageService
from app.prompting.documents.repository import FolderRepository
from app.prompting.documents.schemas import (
    ARCHIVE_PREFIX,
    FolderCreate,
    PassageCreate,
    PassagesAdded,
)
from app.prompting.documents.service import FolderService

NAME = "Archive"
ABOUT = "What models have put aside for this user."


class ArchiveService:
    def __init__(
        self, work: Work, folders: FolderService, passages: PassageService, gate: Gate
    ) -> None:
        self._work = work
        self._folders = folders
        self._passages = passages
        self._gate = gate

    async def add(
        self,
        principal: Principal,
        user_id: str,
        body: PassageCreate,
        *,
        key: IdempotencyKey | None = None,
    ) -> PassagesAdded:
        """Add a text to a user's archive, as several passages if it is long; in order.

        Raises:
            GateRejectedError: it or a tag holds something that must not be kept; nothing was
                stored.
            ArchiveClosedError: the caller may not write what is kept for this user.
            DisabledError, MemoryDisabledError: the user, or writing, is switched off.
            EmbeddingUnavailableError: nothing was stored; safe to retry.

        """
        text = "\n".join([body.content, *body.tags])
        reasons = await read_text(len(text), partial(self._gate.check_kept, extracted=False), text)
        if reasons:
            raise GateRejectedError([asdict(reason) for reason in reasons])
        folder_id = await self._folder(principal, user_id)
        return await self._passages.add(principal, folder_id, body, key=key)

    async def _folder(self, principal: Principal, user_id: str) -> str:
        """Id of the user's archive. Raises ArchiveClosedError."""
        folder_id = archive_id(user_id)
        if await self._exists(principal, folder_id, user_id):
            return folder_id
        body = FolderCreate(folder_name=NAME, description=ABOUT, scope="user", user_id=user_id)
        try:
            await self._folders.add(principal, body, folder_id=folder_id)
        except (IdTakenError, IdNotAllowedError) as error:
            # Of two first calls at once one makes it. Else the folder, or the user, is another's.
            if not await self._exists(principal, folder_id, user_id):
                raise ArchiveClosedError(user_id) from error
        return folder_id

    async def _exists(self, principal: Principal, folder_id: str, user_id: str) -> bool:
        async with self._work.read(principal) as db:
            return await FolderRepository(db, principal.access).is_own(folder_id, user_id=user_id)


def archive_id(user_id: str) -> str:
    """The id of a user's archive: always the same, so that there is one."""
    return f"{ARCHIVE_PREFIX}{sha256(user_id.encode()).hexdigest()[:32]}"
