"""What every answer carries, whatever it says, and where redirects lead."""

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from tests.support.api import ok
from tests.support.folders import folder, upload
from tests.support.service import client_of


@pytest.mark.parametrize(
    ("path", "status"),
    [("/users", 200), ("/users/nobody", 404), ("/nothing", 404), ("/users?limit=0", 422),
     ("http://test/livez", 200), ("http://test/openapi.json", 200)],
)  # fmt: skip
async def test_nothing_is_kept_and_no_type_is_guessed(
    client: AsyncClient, path: str, status: int
) -> None:
    answer = await client.get(path)

    assert answer.status_code == status
    assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
    assert answer.headers.get_list("cache-control") == ["no-store"]


async def test_refusal_without_a_key_carries_them_too(app: FastAPI) -> None:
    async with client_of(app, None) as stranger:
        answer = await stranger.get("/users")

    assert (answer.status_code, answer.headers["cache-control"]) == (401, "no-store")


async def test_file_and_export_carry_each_once(client: AsyncClient) -> None:
    folder_id = await folder(client)
    uploaded = await upload(client, folder_id, "a.txt", b"tea")
    path = f"/folders/{folder_id}/files/{uploaded['file']['file_id']}/content"

    for answer in (
        await client.get(path),
        await client.get("/export"),
    ):
        assert answer.status_code == 200
        assert answer.headers.get_list("x-content-type-options") == ["nosniff"]
        assert answer.headers.get_list("cache-control") == ["no-store"]


async def test_redirect_leads_to_a_path_and_never_to_the_host_of_the_request(
    client: AsyncClient,
) -> None:
    answer = await client.get("/users/?limit=1&x=%2F", headers={"Host": "evil.example"})

    assert answer.status_code == 307
    assert answer.headers["location"] == "/v1/users?limit=1&x=%2F"
    assert ok(await client.get("/users/", follow_redirects=True))["items"] == []
