"""`KeMemMiddleware`: long-term memory and a bounded context for agents of LangChain."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, TypeVar, Unpack

from langchain.agents import AgentState
from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain.tools import ToolRuntime
from langchain_core.messages import AnyMessage, SystemMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.config import get_config
from langgraph.runtime import Runtime

from kemem._async.sender import AsyncSender
from kemem._sync.sender import Sender
from kemem.calls import Operation, fetch, post
from kemem.errors import (
    ConnectionFailedError,
    KememError,
    RateLimitedError,
    TimedOutError,
    UnavailableError,
)
from kemem.langgraph.conversation import KnownThreads, store
from kemem.langgraph.threads import session_id_of
from kemem.langgraph.transcript import Transcript, answered
from kemem.langgraph.view import context
from kemem.options import ContextOptions
from kemem.owners import UserChoice, UserSource
from kemem.sessions import Session, refuse_others
from kemem.tools import ToolResult

Result = TypeVar("Result")
View = tuple[str, list[AnyMessage]]

log = logging.getLogger("kemem.langgraph")

MESSAGE_READ = (
    "Read a message of this conversation that was left out or cut before you, by its id or its "
    "number, from an offset on: the result of a tool, or what somebody said."
)
NOT_THERE = "The message cannot be read now."

AWAY = (ConnectionFailedError, TimedOutError, UnavailableError, RateLimitedError)
"""The service does not answer, or is busy. Any other error is a mistake that somebody must see."""


class KeMemMiddleware(AgentMiddleware[AgentState[Any], Any, Any]):
    """Lets an agent of `create_agent` remember across threads, and bounds what its model sees.

    Before each call of the model, the messages of the thread that are new are appended to the
    session of the thread, and the model gets that session's context: behind the agent's own system
    prompt what KeMem knows, and of the agent's messages those that fit. At the end of the run the
    reply is appended. A run that is killed, retried or resumed stores nothing twice.

    The thread is the `thread_id` of the run's `configurable` or context. Any checkpointer will do,
    or none. Put this middleware first, so that others see what the model will.

    Args:
        client: a `Memory` or, for an agent that runs in its event loop, an `AsyncMemory`; it is not
            closed.
        user_id: the user, unless `configurable` or the context of the run has a `user_id`.
            `PER_RUN` if every run has one, `KEY_USER` if the key is bound to a user. It may be left
            out if `client` acts as a user.
        agent_id: likewise the agent; by default the user's home agent.
        required: raise if the service is away. By default a warning is logged, the model gets the
            agent's own messages, and what could not be stored is stored with the next call.
        message_read: give the agent the tool `message_read`, by which its model reads on where a
            message is cut or left out.
        max_memory_tokens: the budget of everything remembered.
        options: see `ContextOptions`; `window_tokens` is the budget of messages, blocks and
            summaries.

    Raises:
        KememError: the service refused, or with `required` did not answer.
        TypeError: an argument that there is not.
        ValueError: nothing says whose the threads are, or the run names no thread or no user.

    """

    def __init__(
        self,
        client: Sender | AsyncSender,
        *,
        user_id: str | UserSource | None = None,
        agent_id: str | None = None,
        required: bool = False,
        message_read: bool = False,
        max_memory_tokens: int | None = None,
        **options: Unpack[ContextOptions],
    ) -> None:
        super().__init__()
        if "messages" in options:
            raise TypeError("the messages of a context are those of the agent")
        for name in options.keys() - ContextOptions.__annotations__.keys():
            raise TypeError(f"KeMemMiddleware has no argument {name!r}")
        self._client = client
        self._user = UserChoice("KeMemMiddleware", user_id, client)
        self._agent_id = agent_id
        self._required = required
        self._options = {"max_memory_tokens": max_memory_tokens, **options}
        self._known = KnownThreads()
        if message_read:
            self.tools = [self._message_read()]

    def wrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], ModelResponse[Any]],
    ) -> ModelResponse[Any]:
        """Call the model with the session's context."""
        transcript, owner = self._thread(request.state["messages"], request.runtime)
        view = self._run(self._view(transcript, owner))
        return handler(request if view is None else _seen(request, view))

    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        """Like `wrap_model_call`."""
        transcript, owner = self._thread(request.state["messages"], request.runtime)
        view = await self._run_async(self._view(transcript, owner))
        return await handler(request if view is None else _seen(request, view))

    def after_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Append the end of the turn."""
        self._run(store(*self._thread(state["messages"], runtime), self._known))

    async def aafter_agent(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Like `after_agent`."""
        await self._run_async(store(*self._thread(state["messages"], runtime), self._known))

    def _message_read(self) -> BaseTool:
        def message_read(
            runtime: ToolRuntime[Any, Any],
            message_id: str | None = None,
            number: int | None = None,
            offset: int = 0,
        ) -> str:
            call = self._read(runtime, message_id=message_id, number=number, offset=offset)
            return str(self._run(call) or NOT_THERE)

        async def read_async(
            runtime: ToolRuntime[Any, Any],
            message_id: str | None = None,
            number: int | None = None,
            offset: int = 0,
        ) -> str:
            call = self._read(runtime, message_id=message_id, number=number, offset=offset)
            return str(await self._run_async(call) or NOT_THERE)

        return StructuredTool.from_function(
            message_read, read_async, name="message_read", description=MESSAGE_READ
        )

    def _read(
        self, runtime: ToolRuntime[Any, Any], **arguments: str | int | None
    ) -> Operation[ToolResult]:
        session_id, owner = self._session(runtime.config, runtime.context)
        # The model may have been called while the service was away, so that nothing was checked.
        session: Session = yield fetch(Session, "sessions", session_id)
        refuse_others(session_id, session, owner)
        given = {name: value for name, value in arguments.items() if value is not None}
        body = {"session_id": session_id, "arguments": given}
        result: ToolResult = yield post(ToolResult, "tools", "message_read", "call", body=body)
        return result

    def _thread(
        self, messages: Sequence[AnyMessage], runtime: Runtime[Any]
    ) -> tuple[Transcript, Mapping[str, str | None]]:
        """The messages of the run's thread, and whose they are."""
        session_id, owner = self._session(get_config(), runtime.context)
        return Transcript(session_id, messages), owner

    def _session(
        self, config: RunnableConfig, run_context: Any
    ) -> tuple[str, Mapping[str, str | None]]:
        """The session of the run's thread, and whose it is to be."""
        given = _given(config, run_context)
        owner = {
            "user_id": self._user.of_run(given),
            "agent_id": given.get("agent_id") or self._agent_id,
        }
        return session_id_of(given["thread_id"]), owner

    def _view(self, transcript: Transcript, owner: Mapping[str, str | None]) -> Operation[View]:
        if not (yield from store(transcript, owner, self._known)):
            return "", []
        return (yield from context(transcript, self._options))

    def _run(self, operation: Operation[Result]) -> Result | None:
        if not isinstance(self._client, Sender):
            raise TypeError(
                "KeMemMiddleware has an AsyncMemory: run the agent with `ainvoke` or `astream`, or "
                "give it a Memory."
            )
        try:
            return self._client._run(operation)  # noqa: SLF001 (of this package)
        except AWAY as error:
            self._tell(error)
            return None

    async def _run_async(self, operation: Operation[Result]) -> Result | None:
        try:
            if isinstance(self._client, Sender):
                return await asyncio.to_thread(self._client._run, operation)  # noqa: SLF001
            return await self._client._run(operation)  # noqa: SLF001 (of this package)
        except AWAY as error:
            self._tell(error)
            return None

    def _tell(self, error: KememError) -> None:
        """Log a warning, or raise the error if the memory is required."""
        if self._required:
            raise error
        log.warning(
            "KeMem is away (%s): the agent goes on without its memory, and what is said is stored "
            "when the service is back and the thread goes on.",
            error.code,
        )


def _given(config: RunnableConfig, run_context: Any) -> dict[str, Any]:
    """What a run names of its thread.

    Raises:
        ValueError: no thread.

    """
    given = {**_fields(run_context), **config.get("configurable", {})}
    if given.get("thread_id") is None:
        raise ValueError(
            'the run names no thread: pass {"configurable": {"thread_id": "…"}} as its config'
        )
    return given


def _fields(run_context: Any) -> dict[str, Any]:
    """The ids in the context of a run, which is a mapping or an object."""
    names = ("thread_id", "user_id", "agent_id")
    if isinstance(run_context, Mapping):
        return {name: run_context[name] for name in names if run_context.get(name) is not None}
    found = {name: getattr(run_context, name, None) for name in names}
    return {name: value for name, value in found.items() if value is not None}


def _seen(request: ModelRequest[Any], view: View) -> ModelRequest[Any]:
    """The request with what the service shows.

    What another middleware has changed of a message stays changed; what it has added for this call
    stays where the thread begins or ends.
    """
    prompt, shown = view
    system = _system(request.system_message, prompt)
    if not shown:
        return request.override(system_message=system)
    in_thread = {message.id for message in request.state["messages"]}
    own = {message.id: message for message in request.messages}
    before = {message.id: message for message in request.state["messages"]}
    messages = [
        own[message.id] if message is before.get(message.id) else message
        for message in shown
        if message.id is None or message.id in own
    ]
    added = [message for message in request.messages if message.id not in in_thread]
    first = [message for message in added if message is request.messages[0]]
    last = [message for message in added if message not in first]
    return request.override(
        system_message=system,
        messages=answered([*first, *messages, *last]),
    )


def _system(own: SystemMessage | None, prompt: str) -> SystemMessage | None:
    """The agent's own system prompt, and the context behind it."""
    if not prompt:
        return own
    if own is None:
        return SystemMessage(prompt)
    if isinstance(own.content, str):
        content: str | list[Any] = f"{own.content}\n\n{prompt}" if own.content else prompt
    else:
        content = [*own.content, {"type": "text", "text": prompt}]
    return own.model_copy(update={"content": content})
