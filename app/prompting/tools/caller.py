"""Who calls a tool, and how its answer is kept for a repeated call."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel
from sqlalchemy.ext.asyncio import AsyncSession
from typing_extensions import override

from app.identity.tenants.access import Principal
from app.platform.work.idempotency import IdempotencyKey
from app.prompting.tools.error_texts import CallRefusedError
from app.prompting.tools.tool_results import Budget, ToolResult


@dataclass(frozen=True, slots=True)
class ToolCaller:
    """The caller of a tool and its session, which no argument of the tool selects.

    Args:
        key_principal: the holder of the key.
        session_id: None where a tool is called outside of a session, as a desktop does.
        principal: the same, restricted to the user, and never an admin.
        project_id: the session's, when its user is a member.
        remembers: whether neither the agent nor the session keeps what is said out of memory.
        keep: makes the answer over HTTP from a tool's result.

    """

    key_principal: Principal
    principal: Principal
    session_id: str | None
    user_id: str
    agent_id: str | None
    project_id: str | None
    remembers: bool
    budget: Budget
    key: IdempotencyKey | None
    keep: Callable[[ToolResult], BaseModel]

    @property
    def in_session(self) -> str:
        """The session, for what cannot be done outside of one. Raises CallRefusedError."""
        if self.session_id is None:
            raise CallRefusedError("This can be done in a stored conversation alone.")
        return self.session_id


class ToolKey(IdempotencyKey):
    """The key of a tool call: a repeated call gets the tool's answer, not the service's."""

    def __init__(self, key: IdempotencyKey, keep: Callable[[Any], Awaitable[BaseModel]]) -> None:
        """Use `key`, and store what `keep` makes of the service's answer."""
        self._given = key
        self._make = keep

    @override
    async def claim(self, db: AsyncSession) -> None:
        await self._given.claim(db)

    @override
    async def keep(
        self, db: AsyncSession, answer: BaseModel, *, status: int, user_id: str | None
    ) -> None:
        await self._given.keep(db, await self._make(answer), status=200, user_id=user_id)


class DeferredAnswer:
    """The tool's result from a service's answer, rendered once.

    It is rendered in the service's transaction when the call has an idempotency key, else after it.
    """

    def __init__(self, caller: ToolCaller, render: Callable[[Any], Awaitable[ToolResult]]) -> None:
        self._calling = caller
        self._render = render
        self._result: ToolResult | None = None
        self.key = None if caller.key is None else ToolKey(caller.key, self._kept)

    async def result(self, answer: Any) -> ToolResult:
        """The result for the model, rendered at the first call."""
        if self._result is None:
            self._result = await self._render(answer)
        return self._result

    async def _kept(self, answer: Any) -> BaseModel:
        return self._calling.keep(await self.result(answer))
