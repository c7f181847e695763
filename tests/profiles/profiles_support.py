"""What tests of profiles say again and again."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from httpx import AsyncClient

from app.runtime import Runtime
from tests.support.api import ok
from tests.support.working import over, working

ANY = {"If-Match": "*"}


async def profile(client: AsyncClient, owner: str = "users/ana") -> dict[str, Any]:
    return ok(await client.get(f"/{owner}/profile"))


async def derive(client: AsyncClient, owner: str = "users/ana") -> dict[str, Any]:
    """Have a profile derived by the worker that runs; its job."""
    job = ok(await client.post(f"/{owner}/profile/derive"), 202)
    done = await over(client, job["job_id"])
    assert done["status"] == "succeeded", done
    return done["result"]


@asynccontextmanager
async def deriving(runtime: Runtime, dsn: str) -> AsyncIterator[None]:
    async with working(runtime, dsn):
        yield


def values(shown: dict[str, Any], group: str = "attributes") -> dict[str, Any]:
    """What stands in a group, without where it is from."""
    return {name: value["value"] for name, value in shown[group].items()}
