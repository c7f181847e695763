"""A team: one user in each role, one who is no member, and items that they wrote."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import pytest
from fastapi import FastAPI
from httpx import AsyncClient

from app.identity.projects.policy import Visibility
from app.identity.projects.schemas import Role
from app.runtime import Runtime
from tests.support.api import ok, save
from tests.support.service import client_of
from tests.support.tenants import Caller, make_key

PROJECT = "apollo"
ROLES: dict[str, Role | None] = {
    "olga": "owner", "adam": "admin", "edda": "editor", "vera": "viewer", "nora": None,
}  # fmt: skip
WHO = {role: user_id for user_id, role in ROLES.items()}
WAYS = ("the header", "a key of the user's")


@dataclass
class Team:
    """The project `apollo`. Its keeper is an owner who is always there, and no case of its own."""

    client: AsyncClient
    app: FastAPI
    runtime: Runtime
    caller: Caller
    items: int = 0

    async def put(self, user_id: str, role: Role | None) -> None:
        """Give a user a role, as the application."""
        path = f"/projects/{PROJECT}/members/{user_id}"
        if role is None:
            await self.client.delete(path)
        else:
            ok(await self.client.put(path, json={"role": role}))

    async def write(self, author: str, visibility: Visibility, text: str = "") -> str:
        """An item of an author who could write then, whatever the role is now."""
        role = ROLES.get(author, "owner")
        if role in {"viewer", None}:
            await self.put(author, "editor")
        self.items += 1
        outcome = await save(
            self.client,
            text or f"The tortoise number {self.items} of {author} likes {visibility} lettuce.",
            user_id=author,
            scope="project",
            project_id=PROJECT,
            visibility=visibility,
            on_duplicate="allow",
        )
        if role in {"viewer", None}:
            await self.put(author, role)
        return str(outcome["memory_id"])

    @asynccontextmanager
    async def acting(
        self, user_id: str, way: str = WAYS[0], *scopes: str
    ) -> AsyncIterator[AsyncClient]:
        """The API as one user sees it, with a key that may write unless `scopes` say otherwise."""
        bound = user_id if way == WAYS[1] else None
        key = await make_key(self.runtime, self.caller.tenant_id, *scopes, user_id=bound)
        async with client_of(self.app, key.key) as client:
            if bound is None:
                client.headers["KeMem-User"] = user_id
            yield client


@pytest.fixture
async def team(client: AsyncClient, app: FastAPI, runtime: Runtime, acme: Caller) -> Team:
    made = Team(client, app, runtime, acme)
    for user_id in ("keeper", *ROLES):
        ok(await client.post("/users", json={"user_id": user_id}), 201)
    body = {"project_id": PROJECT, "project_name": "Apollo", "owner_id": "keeper"}
    ok(await client.post("/projects", json=body), 201)
    for user_id, role in ROLES.items():
        if role is not None:
            await made.put(user_id, role)
    return made
