"""Folders and files through the API."""

from typing import Any

from httpx import AsyncClient, Response

from tests.support.working import over


def done(response: Response) -> Any:
    """The body of an answer that must be a success, whichever."""
    assert response.is_success, response.text
    return response.json() if response.content else None


async def folder(client: AsyncClient, **place: Any) -> str:
    """The id of a new folder; of the user ana, who is made, when nobody is named."""
    if not place:
        user = await client.post("/users", json={"user_id": "ana"})
        assert user.status_code == 201 or user.json()["code"] == "id_taken", user.text
        place = {"scope": "user", "user_id": "ana"}
    made = done(await client.post("/folders", json={"folder_name": "Manuals"} | place))
    return made["folder_id"]


async def upload(
    client: AsyncClient, folder_id: str, name: str, content: bytes, **params: Any
) -> dict[str, Any]:
    """What an upload is answered."""
    return done(
        await client.post(
            f"/folders/{folder_id}/files", params={"file_name": name} | params, content=content
        )
    )


async def ingested(
    client: AsyncClient, folder_id: str, name: str, content: bytes, **params: Any
) -> dict[str, Any]:
    """A file once its job is over; a worker has to run."""
    accepted = await upload(client, folder_id, name, content, **params)
    await over(client, accepted["job_id"])
    return done(await client.get(f"/folders/{folder_id}/files/{accepted['file']['file_id']}"))


async def passages_of(client: AsyncClient, folder_id: str, file_id: str) -> list[dict[str, Any]]:
    path = f"/folders/{folder_id}/files/{file_id}/passages"
    return done(await client.get(path))["items"]
