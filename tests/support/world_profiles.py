"""Profiles of the world: of ana and of her project, each with a value and its history."""

from httpx import AsyncClient

from app.identity.tenants.access import Access
from app.memory.profiles.repository import ProfileRepository
from app.runtime import Runtime


async def portray(
    runtime: Runtime, client: AsyncClient, *, tenant_id: str, user_id: str, project_id: str
) -> dict[str, str]:
    """Write into both by hand; the id of the user's, which no route shows."""
    for path, body in (
        (f"/users/{user_id}", {"attributes": {"profession": "nurse"}, "instructions": "Be brief."}),
        (f"/projects/{project_id}", {"attributes": {"current_phase": "beta"}}),
    ):
        response = await client.patch(f"{path}/profile", json=body, headers={"If-Match": "*"})
        assert response.is_success, response.text
    async with runtime.database.begin(tenant_id) as db:
        profile = await ProfileRepository(db, Access(tenant_id)).find(("user", user_id))
    assert profile is not None
    return {"profile_id": profile.profile_id}
