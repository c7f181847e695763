"""Use cases of tools: what a model may call, and calling it."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import structlog

from app.conversation.sessions.models import Session
from app.conversation.sessions.repository import SessionRepository
from app.conversation.sessions.schemas import SessionMismatchError
from app.errors import DomainError, UnavailableError
from app.identity.agents.repository import Agent, AgentRepository
from app.identity.projects.repository import ProjectRepository
from app.identity.tenants.access import Principal
from app.identity.tenants.errors import InsufficientScopeError
from app.language.llm.tokens import TokenCounter
from app.platform.observability.metrics import TOOL_SECONDS
from app.platform.work.idempotency import (
    IdempotencyKey,
    IdempotencyKeyReusedError,
    RequestInProgressError,
)
from app.platform.work.unit import MemoryDisabledError, Work
from app.prompting.blocks.edit_service import BlockEditService
from app.prompting.tools.arguments import parsed_arguments, validated_arguments
from app.prompting.tools.caller import ToolCaller
from app.prompting.tools.error_texts import CallRefusedError, error_text
from app.prompting.tools.handlers import ToolHandlers
from app.prompting.tools.schemas import ToolAnswer, ToolCall, ToolsQuery, ToolsShown
from app.prompting.tools.tool_results import Budget, ToolResult
from app.prompting.tools.toolset import TOOLS, Tool, allowed, rendered_tools

log = structlog.get_logger()

NO_TOOL = "unknown"
"""Label of the metric for unknown names."""


@dataclass(frozen=True, slots=True)
class _CallContext:
    """The session in which a tool is called, with its agent and its project."""

    session: Session
    agent: Agent
    project_id: str | None


@dataclass(slots=True)
class _AnswerBuilder:
    """Builds the answer to a call, whether it succeeds or is refused."""

    tool: str
    body: ToolCall
    started: float
    heartbeat: bool
    kept: ToolAnswer | None = None

    def keep(self, result: ToolResult) -> ToolAnswer:
        """The answer that is stored for a repeated request; this request then gets the same."""
        self.kept = self.succeeded(result)
        return self.kept

    def succeeded(self, result: ToolResult) -> ToolAnswer:
        return self.kept or self._answer(
            ok=True, result=result.text, data=result.data, next_cursor=result.cursor
        )

    def refused(self, text: str, code: str) -> ToolAnswer:
        return self._answer(ok=False, error=text, data={"code": code})

    def _answer(
        self,
        *,
        ok: bool,
        data: dict[str, Any],
        result: str | None = None,
        error: str | None = None,
        next_cursor: str | None = None,
    ) -> ToolAnswer:
        return ToolAnswer(
            tool=self.tool,
            ok=ok,
            result=result,
            error=error,
            data=data,
            next_cursor=next_cursor,
            request_heartbeat=self.heartbeat,
            tool_call_id=self.body.tool_call_id,
            duration_ms=round(1000 * (perf_counter() - self.started)),
        )


class ToolService:
    def __init__(
        self,
        work: Work,
        handlers: ToolHandlers,
        blocks: BlockEditService,
        counter: TokenCounter,
    ) -> None:
        self._work = work
        self._handlers = handlers
        self._blocks = blocks
        self._counter = counter

    async def list_tools(self, principal: Principal, query: ToolsQuery) -> ToolsShown:
        """The tools that the key, and the agent if the request names it, may call.

        For a session the tools that edit blocks are included only when it has a block that may be
        edited, and they list the labels.

        Raises:
            AgentNotFoundError, SessionNotFoundError: there is none for this caller.
            SessionMismatchError: the session is with a different agent.

        """
        agent_id = query.agent_id or principal.access.agent_id
        labels = None
        if query.session_id is not None:
            context = await self._context(principal, query.session_id)
            if query.agent_id not in {None, context.agent.agent_id}:
                raise SessionMismatchError(query.session_id, "agent_id")
            tools = allowed(context.agent.config, in_session=True)
            shown = await self._blocks.blocks(principal, query.session_id)
            labels = [block.label for block in shown if not block.read_only]
            tools = tuple(tool for tool in tools if labels or tool.about != "blocks")
        elif agent_id is not None:
            async with self._work.read(principal) as db:
                agent = await AgentRepository(db, principal.access).get(agent_id)
            tools = allowed(agent.config)
        else:
            tools = allowed({})
        mine = [tool for tool in tools if principal.may(tool.scope)]
        return ToolsShown(
            tools=rendered_tools(mine, query.format, heartbeat=query.heartbeat, labels=labels),
            names=[tool.name for tool in mine],
        )

    async def call(
        self, principal: Principal, name: str, body: ToolCall, *, key: IdempotencyKey | None = None
    ) -> ToolAnswer:
        """Call a tool for a model. A refused or failed call is an answer with `ok` false.

        The session decides on which memory it works. It never sees more than the session's user
        may see, whatever the key is allowed to do.

        Raises:
            SessionNotFoundError: there is none for this caller.
            InsufficientScopeError: the tool writes, and the key may not.
            EmbeddingUnavailableError: nothing was done; safe to retry.
            IdempotencyKeyReusedError, RequestInProgressError: about the idempotency key.

        """
        builder = _AnswerBuilder(name, body, perf_counter(), heartbeat=bool(body.request_heartbeat))
        tool = TOOLS.get(name)
        context = await self._context(principal, body.session_id)
        if tool is not None and not principal.may(tool.scope):
            raise InsufficientScopeError(tool.scope, acting=principal.acting)
        try:
            arguments, asked = parsed_arguments(body.arguments)
            if body.request_heartbeat is None:
                builder.heartbeat = bool(asked)
            permitted = _permitted(context.agent, tool)
            caller = self._caller(principal, context, body, key, builder.keep)
            if permitted.scope == "write":
                # Before the handler looks for what the first request may have removed.
                await self._work.refuse_repeated(principal, key)
            handler = self._handlers.by_name[permitted.name]
            result = await handler(caller, validated_arguments(permitted.arguments, arguments))
            answer = builder.succeeded(result)
        except CallRefusedError as refusal:
            answer = builder.refused(refusal.text, "refused")
        except DomainError as error:
            if _is_for_the_caller(error):
                raise
            answer = builder.refused(error_text(error), error.code)
        finally:
            label = NO_TOOL if tool is None else tool.name
            TOOL_SECONDS.labels(label).observe(perf_counter() - builder.started)
        log.info("tool_called", tool=label, ok=answer.ok, code=answer.data.get("code"))
        return answer

    async def _context(self, principal: Principal, session_id: str) -> _CallContext:
        async with self._work.read(principal) as db:
            session = await SessionRepository(db, principal.access).get(session_id)
            agent = await AgentRepository(db, principal.access).get(session.agent_id)
            project_id = session.project_id
            if project_id is not None:
                projects = ProjectRepository(db, principal.access)
                member = await projects.role_of(project_id, session.user_id)
                project_id = project_id if member else None
        return _CallContext(session, agent, project_id)

    def _caller(
        self,
        principal: Principal,
        context: _CallContext,
        body: ToolCall,
        key: IdempotencyKey | None,
        keep: Callable[[ToolResult], ToolAnswer],
    ) -> ToolCaller:
        session = context.session
        return ToolCaller(
            key_principal=principal,
            principal=_narrowed(principal, session.user_id),
            session_id=session.session_id,
            user_id=session.user_id,
            agent_id=session.agent_id,
            project_id=context.project_id,
            remembers=context.agent.memory_enabled and session.memory_enabled,
            budget=Budget(self._counter, body.max_tokens),
            key=key,
            keep=keep,
        )


def _narrowed(principal: Principal, user_id: str) -> Principal:
    """The caller, restricted to the session's user, and never an admin."""
    scope = "write" if principal.may("write") else "read"
    return replace(
        principal,
        access=replace(principal.access, user_id=user_id),
        scopes=frozenset({scope}),
    )


def _permitted(agent: Agent, tool: Tool | None) -> Tool:
    """Raises CallRefusedError: there is no such tool, or the agent may not call it."""
    tools = allowed(agent.config, in_session=True)
    listed = ", ".join(permitted.name for permitted in tools) or "none"
    if tool is None:
        raise CallRefusedError(f"There is no tool of this name. The tools here: {listed}.")
    if tool not in tools:
        raise CallRefusedError(
            f"{tool.name} may not be called here. Do without it. The tools here: {listed}."
        )
    return tool


def _is_for_the_caller(error: DomainError) -> bool:
    """Whether a failure is raised to the calling program, which can repeat the request, instead of
    being answered to the model.
    """
    if isinstance(error, MemoryDisabledError):
        return False
    return isinstance(error, UnavailableError | IdempotencyKeyReusedError | RequestInProgressError)
