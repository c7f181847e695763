"""The rows of privacy in the world: the receipt of somebody who is gone."""

from httpx import AsyncClient


async def erase_somebody(client: AsyncClient, *, mark: str = "") -> str:
    """Make a person and erase them again; the id of what stays."""
    person = f"{mark}gone"
    made = await client.post("/users", json={"user_id": person, "agent_id": f"{mark}helper"})
    assert made.status_code == 201, made.text
    erased = await client.delete(f"/users/{person}", params={"hard": True, "confirm": True})
    assert erased.status_code == 200, erased.text
    erasure_id: str = erased.json()["erasure_id"]
    return erasure_id
