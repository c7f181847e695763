"""`memory.projects` and acting users: the requests they make, and both against the service."""

import pytest

from kemem import AsyncMemory, ConflictError, ForbiddenError, NotFoundError


async def test_team_shares_what_its_roles_allow(memory_of_acme: AsyncMemory) -> None:
    ana, ben = memory_of_acme.acting_as("ana"), memory_of_acme.acting_as("ben")
    made = await ana.projects.create("Apollo", project_id="apollo")
    shared = {"infer": False, "scope": "project", "project_id": "apollo"}
    secret = await ana.add("Ana's draft says April.", visibility="owner_only", **shared)
    with pytest.raises(NotFoundError):
        await ana.projects.put_member("apollo", "ben")
    await ben.add("Ben keeps bees.", infer=False)
    assert (await ana.projects.put_member("apollo", "ben", "viewer")).role == "viewer"

    assert [one.project_id for one in await ben.projects.list_projects()] == [made.project_id]
    with pytest.raises(ForbiddenError) as viewer:
        await ben.add("The release is in March.", **shared)
    assert viewer.value.code == "read_only_member"
    with pytest.raises(ConflictError) as last:
        await ana.projects.remove_member("apollo", "ana")
    assert last.value.code == "last_owner"

    told = await ana.projects.transfer("apollo", "ben")
    assert (told.owner_id, told.former_owners) == ("ben", ("ana",))
    members = {one.user_id: one.role for one in await ana.projects.members("apollo")}
    assert members == {"ana": "admin", "ben": "owner"}
    [item] = await ben.projects.items("apollo")
    assert (item.user_id, item.visibility) == ("ana", "owner_only")
    assert item.memory_id == secret.results[0].memory_id
    with pytest.raises(NotFoundError):
        await ben.get(item.memory_id)
    await ben.delete(item.memory_id)
    assert len(await ben.projects.items("apollo")) == 0
    assert (await ben.projects.update("apollo", description="Done.")).description == "Done."
    assert (await ben.projects.delete("apollo", confirm=True)).deleted["members"] == 2
