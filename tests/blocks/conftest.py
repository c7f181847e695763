"""Two people who talk to one agent, and what edits its blocks in their sessions."""

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from httpx import AsyncClient

from app.identity.tenants.access import Principal
from app.prompting.blocks.block_text import ShownBlock
from app.prompting.blocks.edit_service import BlockEditService
from app.prompting.blocks.schemas import BlockAppend, BlockRead, Edit
from app.runtime import Runtime
from tests.support.api import ok
from tests.support.tenants import Caller


class Desk:
    """Edits as a tool makes them, with one key."""

    def __init__(self, runtime: Runtime, principal: Principal) -> None:
        self._editing = BlockEditService(runtime.work, runtime.saving_rules.gate)
        self._principal = principal

    async def edit(self, session_id: str, label: str, edit: Edit) -> BlockRead:
        return await self._editing.edit(self._principal, session_id, label, edit)

    async def append(self, session_id: str, label: str, text: str) -> BlockRead:
        return await self.edit(session_id, label, BlockAppend(text=text))

    async def seen(self, session_id: str) -> list[ShownBlock]:
        return list(await self._editing.blocks(self._principal, session_id))

    async def said(self, session_id: str) -> dict[str, str]:
        """What the model of a session sees: text by label."""
        return {block.label: block.value for block in await self.seen(session_id)}


@pytest.fixture
async def desk(runtime: Runtime, acme: Caller) -> Desk:
    return await desk_of(runtime, acme.key)


async def desk_of(runtime: Runtime, key: str) -> Desk:
    return Desk(runtime, await runtime.identification.identify(key))


@pytest.fixture
async def people(client: AsyncClient) -> None:
    """Ana (session s1, and s3 with a2) and Ben (session s2), both at home with a1."""
    for agent_id in ("a1", "a2"):
        ok(await client.post("/agents", json={"agent_id": agent_id, "agent_name": "A"}), 201)
    for user_id in ("ana", "ben"):
        ok(await client.post("/users", json={"user_id": user_id, "agent_id": "a1"}), 201)
    for session_id, user_id, agent_id in (
        ("s1", "ana", "a1"), ("s2", "ben", "a1"), ("s3", "ana", "a2"),
    ):  # fmt: skip
        body = {"session_id": session_id, "user_id": user_id, "agent_id": agent_id}
        ok(await client.post("/sessions", json=body), 201)


@pytest.fixture
def make(client: AsyncClient) -> Callable[..., Awaitable[dict[str, Any]]]:
    """A block, attached to a1 unless it is told otherwise."""

    async def made(block_id: str, label: str = "notes", **given: Any) -> dict[str, Any]:
        body = {"block_id": block_id, "label": label, "agent_id": "a1"} | given
        return ok(await client.post("/blocks", json=body), 201)

    return made
