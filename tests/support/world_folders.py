"""Documents in the world of `world.py`: a folder of ana's, attached to her agent."""

from typing import Any

from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.prompting.documents.file_repository import FileRepository
from app.runtime import Runtime
from tests.support.tenants import Caller


async def shelve(
    runtime: Runtime,
    client: AsyncClient,
    owner: Caller,
    *,
    user_id: str,
    agent_id: str,
    mark: str = "",
) -> dict[str, str]:
    """An agent's folder, and one with a file as if it had been read and a passage; its ids."""

    async def sent(method: str, path: str, **rest: Any) -> dict[str, Any]:
        response = await client.request(method, path, **rest)
        assert response.is_success, response.text
        answer: dict[str, Any] = response.json()
        return answer

    folder_id = f"{mark}shelf"
    body = {"folder_id": folder_id, "folder_name": "Shelf", "scope": "user", "user_id": user_id}
    await sent("POST", "/folders", json=body)
    domain = {"folder_name": "Field", "scope": "agent", "agent_id": agent_id}
    await sent("POST", "/folders", json={"folder_id": f"{mark}field"} | domain)
    path = f"/folders/{folder_id}"
    await sent("PUT", f"{path}/agents/{agent_id}")
    file = await sent(
        "POST", f"{path}/files", params={"file_name": "lease.txt"}, content=b"The flat is old."
    )
    async with runtime.database.begin(owner.tenant_id) as db:
        files = FileRepository(db, Access(owner.tenant_id))
        row = await files.get(folder_id, file["file"]["file_id"])
        await files.change(row.file, state="completed", passages_expected=0)
    passages = await sent("POST", f"{path}/passages", json={"content": "The rent is due in May."})
    return {
        "folder_id": folder_id,
        "file_id": file["file"]["file_id"],
        "passage_id": passages["items"][0]["passage_id"],
    }
